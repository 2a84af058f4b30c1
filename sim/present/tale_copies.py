"""How each copy of some records went, and whether any is left.

Left out: who led without them (``sim.present.tales``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from sim.present.fates import Copy
from sim.present.history import How
from sim.present.tale_base import DEAD, Marks, TaleBase
from sim.present.words import at, listed, name

__all__ = ["TaleOfCopies"]

_FALLS: Final = {"down": "was killed", "off": "lost power", "stopped": "stopped"}
_GOT: Final = {
    How.APPENDED: "had appended",
    How.COPIED: "had copied",
    How.FOUND: "had found",
}
_BY_START: Final = frozenset({How.POWER, How.TORN, How.WIPED, How.OLDER})
"""What is seen of at a start at the latest: the disk did not keep them until then."""
_WENT: Final = {
    How.TORN: "cut {what} off at {when}, when it opened its log again",
    How.WIPED: "came back on an empty disk at {when}, without {what}",
    How.OLDER: "came back at {since} on an older image of its disk, which did not have {what}",
    How.DAMAGED: "dropped {what} at {when}, when it salvaged what was whole of its damaged log",
    How.RESTARTED: "began its log anew at {when}, without {what}: its leader had nothing older",
    How.EXPIRED: "deleted {what} at {when}, below its new log start",
    How.DELETED: "deleted its replica at {when}, and {what} with it",
}


class TaleOfCopies(TaleBase):
    """Says how copies went."""

    def ends(self, born: int, leader: str | None) -> None:
        """How each copy went; if a leader had lost its own, that is why it did not have them."""
        for each in self.copies:
            cut = each.piece.cut
            if cut is None:
                self._fell(each, born)
                continue
            if cut.how not in _BY_START:
                self._fell(each, born)
            if cut.how is How.POWER and each.node == leader:
                self.because(
                    f"{name(leader)} had lost power at {at(cut.by or cut.n)} before {Marks.THEY} "
                    f"{Marks.WAS} synced there"
                )
            tell_end = _ENDS.get(cut.how, TaleOfCopies._went)
            tell_end(self, each)

    def _fell(self, each: Copy, born: int) -> None:
        """A crash that a copy survived."""
        statuses = self.story.node(each.node).statuses
        for n, status in statuses:
            if not max(born, each.piece.n) < n < each.piece.until or status not in DEAD:
                continue
            if n > self.spoilt.get(each.node, n):
                return
            kept = "" if status != "off" else self._synced(each)
            back = next((m for m, s in statuses if m > n and s == "up"), 0)
            again = f" and came back at {self.when(back)}" if back else " and has not come back"
            self.say(
                n,
                f"{name(each.node)} {_FALLS[status]} at {self.when(n)}{again}; its disk kept "
                f"{Marks.IT}{kept}.",
            )
            return

    def _synced(self, each: Copy) -> str:
        n = self.story.bytes.synced(each.node, each.piece)
        return f" (synced at {at(n)})" if n > 0 else ""

    def _power(self, each: Copy) -> None:
        cut = each.piece.cut
        assert cut is not None
        crash = cut.by or cut.n
        how = _GOT[each.piece.how]
        synced = self.story.bytes.synced(each.node, each.piece)
        why = ", and nothing had synced that part of the file to its disk since"
        if each.node in self.lied:
            why = f", and its disk had called {Marks.IT} synced, which was a lie"
        elif synced:
            why = "" if synced < 0 else f", and its disk had called {Marks.IT} synced"
        self.say(
            crash,
            f"{name(each.node)} lost power at {self.when(crash)} and {Marks.WHAT} with it: it "
            f"{how} {Marks.IT}{why}.",
        )

    def _truncated(self, each: Copy) -> None:
        story, cut = self.story, each.piece.cut
        assert cut is not None
        answer = story.brief(cut.by)
        leader = None if answer is None else answer.peer
        role = story.replica(each.node, self.records.partition).roles.at(cut.n)
        found = f"{name(each.node)} truncated {Marks.WHAT} at {self.when(cut.n)}"
        if leader is not None and cut.epoch_ended is not None and cut.epoch_ended[0] >= 0:
            epoch, end = cut.epoch_ended
            found += (
                f", as a follower does: its leader {name(leader)} had answered that epoch {epoch} "
                f"ends at offset {end} there"
            )
        elif cut.epoch_ended is not None and cut.high_watermark == cut.base:
            found += f" without asking: it cut to its own high watermark, {cut.high_watermark}"
        elif leader is not None:
            theirs = self.partition.replicas.get(leader)
            is_end = theirs is not None and theirs.log_ends.at(cut.n) == cut.base
            found += f", after an answer of its leader {name(leader)}"
            found += ", whose log ended there" if is_end else ""
        elif role is not None and role.leader is not None:
            found += f", as a follower of {name(role.leader)}"
        self.say(cut.n, f"{found}.")

    def _went(self, each: Copy) -> None:
        cut = each.piece.cut
        assert cut is not None
        node, moment = name(each.node), self.when(cut.n)
        found = _WENT.get(cut.how, "lost {what} at {when}: " + cut.how)
        said = found.format(what=Marks.WHAT, when=moment, since=self.when(cut.by or cut.n))
        self.say(cut.by if cut.how is How.OLDER else cut.n, f"{node} {said}.")

    def end(self) -> None:
        """Whether that was the last copy."""
        left = [each.node for each in self.copies if each.piece.cut is None]
        n = self.story.last_n
        if left:
            states = [
                f"{name(node)} ({DEAD[status]})"
                if (status := self.story.status(node, n)) in DEAD
                else name(node)
                for node in dict.fromkeys(left)
            ]
            self.say(n, f"At the end {listed(states)} still had {Marks.IT}.")
            return
        gone = max((each.piece.until for each in self.copies), default=0)
        if gone:
            self.say(gone, f"That was the last copy.{self._replaced(gone)}")

    def _replaced(self, gone: int) -> str:
        """What is at their place now."""
        offset = self.records.base
        now: dict[int | None, list[str]] = {}
        for node, replica in self.story.replicas(self.records.partition):
            piece = replica.had(offset, None, self.story.last_n)
            if piece is not None:
                now.setdefault(piece.epoch, []).append(name(node))
        if not now:
            return ""
        parts = [f"of epoch {epoch} on {listed(nodes)}" for epoch, nodes in now.items()]
        return f" Offset {offset} is another record now, {listed(parts)}."


_ENDS: Final[dict[How, Callable[[TaleOfCopies, Copy], None]]] = {
    How.TRUNCATED: TaleOfCopies._truncated,
    How.POWER: TaleOfCopies._power,
}
