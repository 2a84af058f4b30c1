"""The tale of some records: who had them, who led without them, how each copy went.

It is made from the copies that the trace shows and from the causes that its events name, never from
what kind of scenario it was.

Left out: which records (``sim.present.chains``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from attrs import frozen

from sim.present.fates import Copy, Records, copies
from sim.present.history import Ack, Election, How
from sim.present.story import Story
from sim.present.tallies import Ranges
from sim.present.tellings import fault_words
from sim.present.words import acks_word, at, listed, name, seconds, these, value
from sim.trace.kinds import Kind

__all__ = ["Chain", "Sentence", "Tale", "capital", "when"]

VALUES_MAX: Final = 3
GROUPS_MAX: Final = 4
_WHO: Final = "\x00"
"""Stands for those of whom a reason speaks, until it is known how many they are."""


@frozen
class Sentence:
    """One link; ``n`` is the event that it is about."""

    n: int
    text: str


@frozen
class Chain:
    """Links in the order in which they happened; ``summary`` is one sentence, without its stop."""

    summary: str
    sentences: tuple[Sentence, ...]


def when(story: Story, n: int) -> str:
    """An event's number, and its time."""
    return f"{at(n)} ({seconds(story.time_us(n))})"


class Tale:
    """One chain under way."""

    def __init__(self, story: Story, records: Records) -> None:
        self.story = story
        self.records = records
        self.partition = story.partition(records.partition)
        self.copies = copies(story, records)
        self.it = "it" if records.is_one else "them"
        self.they = "it" if records.is_one else "they"
        self.what = these(records.base, records.end)
        self.reasons: list[str] = []
        """Why who led in the end did not have them."""
        self.told: list[Sentence] = []

    def chain(self) -> Chain:
        groups = self._groups()
        born = self.copies[0].piece.n if self.copies else 0
        for group in groups[:GROUPS_MAX]:
            self._acknowledged(group)
        if len(groups) > GROUPS_MAX:
            more = sum(len(group) for group in groups[GROUPS_MAX:])
            self._say(groups[GROUPS_MAX][0].n, f"{more} more of them were acknowledged later.")
        if groups:
            born = min(ack.n for ack in self.records.acks)
        elif self.copies:
            first = self.copies[0]
            self._say(
                first.piece.n,
                f"{capital(self.what)} came to {name(first.node)} at {self._when(first.piece.n)}; "
                "nobody was told.",
            )
        self._missing(born)
        without = self._elections(born)
        self._ends(born, None if without is None else without.leader)
        self._end()
        sentences = sorted(self.told, key=lambda each: each.n)
        return Chain(self._summary(without), tuple(sentences))

    def _groups(self) -> list[list[Ack]]:
        """Acknowledgements of one client and one kind, to which the same replicas had a copy."""
        groups: dict[object, list[Ack]] = {}
        for ack in self.records.acks:
            key = ack.client, ack.acks, ack.by, tuple(self._holders(ack.n))
            groups.setdefault(key, []).append(ack)
        return sorted(groups.values(), key=lambda group: group[0].n)

    def _say(self, n: int, text: str) -> None:
        self.told.append(Sentence(n, text))

    def _when(self, n: int) -> str:
        return when(self.story, n)

    def _from(self, n: int) -> str:
        """At an event, or from it on for several records: each came with one of its own."""
        return f"at {at(n)}" if self.records.is_one else f"from {at(n)} on"

    def _holders(self, n: int) -> list[str]:
        found = dict.fromkeys(
            each.node for each in self.copies if each.piece.n <= n < each.piece.until
        )
        return list(found)

    # Who had them ------------------------------------------------------------------------------

    def _acknowledged(self, acks: list[Ack]) -> None:
        first, last = min(each.n for each in acks), max(each.n for each in acks)
        span = self._when(first) if first == last else f"{at(first)} to {self._when(last)}"
        values = ", ".join(value(each.value) for each in acks[:VALUES_MAX])
        values += ", …" if len(acks) > VALUES_MAX else ""
        ack = acks[0]
        by = f" by {name(ack.by)}" if ack.by else ""
        ranges = Ranges()
        for each in acks:
            ranges.add(each.offset, each.offset + 1)
        is_one = len(acks) == 1
        self._say(
            first,
            f"Offset{'' if is_one else 's'} {ranges} ({values}) {'was' if is_one else 'were'} "
            f"acknowledged to {name(ack.client)}{by} at {span}, {acks_word(ack.acks)}. "
            f"{self._when_acked(ack, is_one)}",
        )

    def _when_acked(self, ack: Ack, is_one: bool) -> str:
        holders = self._holders(ack.n)
        isr = self.partition.isrs.at(ack.n)
        who = listed(map(name, holders))
        it = "it" if is_one else "them"
        if ack.acks == -1 and isr is not None and len(isr) == 1:
            alone = name(isr[0])
            self._because(f"the ISR was {alone} alone when the acknowledgement was due")
            return (
                f"With acks=all a leader waits for every member of the ISR, and that was {alone} "
                f"alone{self._isr_since(ack.n)}: {who} had {it}, nobody else."
            )
        if len(holders) == 1 and ack.acks == 1:
            if all(each.node == holders[0] for each in self.copies):
                self._because(f"{who} had answered before any follower had {self.it}")
            return (
                f"{who} alone had {it} then: with acks=1 a leader answers as soon as its own log "
                "has a record, before any follower has it."
            )
        in_isr = "" if isr is None else f"; the ISR was {listed(map(name, isr))}"
        return f"{who} had {it} then{in_isr}."

    def _because(self, reason: str) -> None:
        if reason not in self.reasons:
            self.reasons.append(reason)

    def _isr_since(self, n: int) -> str:
        since = self.partition.isrs.since(n)
        before = self.partition.isrs.at(since - 1)
        now = self.partition.isrs.at(n) or ()
        left = [node for node in before or () if node not in now]
        if not left:
            return f" (since {at(since)})" if since else ""
        return f" since {self._when(since)}, when {listed(map(name, left))} had left it"

    def _missing(self, born: int) -> None:
        """Why the other replicas never had them."""
        if not self.copies:
            return
        source = self.copies[0]
        ever = {each.node for each in self.copies}
        reasons: dict[str, list[str]] = {}
        for node, _ in self.story.replicas(self.records.partition):
            if node not in ever:
                reasons.setdefault(self._why_not(node, source), []).append(name(node))
        for reason, nodes in reasons.items():
            who = "them" if len(nodes) > 1 else "it"
            why = reason.replace(_WHO, who)
            self._say(max(born, source.piece.n), f"{listed(nodes)} never got {self.it}{why}.")

    def _why_not(self, node: str, source: Copy) -> str:
        story, born = self.story, source.piece.n
        until = story.node(source.node).statuses
        fell = next((n for n, status in until if n > born and status in _DEAD), story.last_n + 1)
        last = max((p.n for p in self.partition.replicas[node].pieces if p.n <= born), default=0)
        asks = {("FetchRequest", node, source.node), ("FetchResponse", source.node, node)}
        for fault in story.faults.values():
            taken = [
                n
                for n, sender, receiver, kind, id_ in story.drops
                if id_ == fault.id and (kind, sender, receiver) in asks
                if last < n < max(fell, born + 1) and (fault.end is None or fault.end > born)
            ]
            if taken:
                return (
                    f": fault {name(fault.id)} kept {_WHO} from fetching from "
                    f"{name(source.node)} ({fault_words(fault)}; since {self._when(fault.begin)})"
                )
        status = story.status(node, born)
        if status in _DEAD:
            return f": {_DEAD[status]} then"
        if fell <= story.last_n:
            return f": not fetched yet when {name(source.node)} fell at {at(fell)}"
        return ""

    # Who led without them ----------------------------------------------------------------------

    def _elections(self, born: int) -> Election | None:
        """Elections of a leader that did not have them; returns the first."""
        first: Election | None = None
        last_leader: str | None = None
        for election in self.partition.elections:
            if election.n <= born or election.leader is None:
                continue
            holders = self._holders(election.n)
            if election.leader in holders:
                if first is None:
                    self._say(election.n, self._kept_by(election))
                continue
            if election.leader == last_leader:
                continue
            if first is not None and not holders:
                break  # They are gone; who leads now does not matter any more.
            last_leader = election.leader
            first = first or election
            self._say(election.n, self._election(election, holders))
        return first

    def _kept_by(self, election: Election) -> str:
        """A leader that has them; who is in the ISR from then on may lead later."""
        leader = name(election.leader)
        found = (
            f"{name(election.by)} made {leader} leader with epoch {election.leader_epoch} at "
            f"{self._when(election.n)}{self._fenced(election)}; {leader} had {self.it}"
        )
        if election.isr is not None:
            alone = " alone" if len(election.isr) == 1 else ""
            found += f". The ISR was {listed(map(name, election.isr))}{alone} from then on"
        return found + "."

    def _election(self, election: Election, holders: list[str]) -> str:
        leader = name(election.leader)
        why = self._fenced(election)
        found = (
            f"{name(election.by)} made {leader} leader with epoch {election.leader_epoch} at "
            f"{self._when(election.n)}{why}. {leader} did not have {self.it}"
        )
        if election.is_unclean:
            isr = "" if not election.old_isr else f" ({listed(map(name, election.old_isr))})"
            was = "the ISR was empty" if election.old_isr == () else f"was not in the ISR{isr}"
            found += f", and {was}: an unclean election{self._last_known(election)}"
        elif election.old_isr is not None and election.leader in election.old_isr:
            members = listed(map(name, election.old_isr))
            alone = len(election.old_isr) == 1
            found += f"; it was in the ISR ({members}{' alone' if alone else ''}), so the election"
            found += " counts as clean"
        if holders:
            found += f". Of the replicas only {listed(map(name, holders))} still had {self.it}"
            dead = [node for node in holders if self.story.status(node, election.n) in _DEAD]
            if dead == holders:
                found += ", and " + ("was" if len(dead) == 1 else "were")
                found += f" {_DEAD[self.story.status(dead[0], election.n)]}"
        return found + "."

    def _last_known(self, election: Election) -> str:
        """With an empty ISR the controller may take who led last, permission or not (KIP-966)."""
        led = [who for n, (who, _) in self.partition.leaders if n < election.n and who is not None]
        is_last = election.old_isr == () and led[-1:] == [election.leader]
        return ", of the leader known last" if is_last else ""

    def _fenced(self, election: Election) -> str:
        """What made the controller elect, as the causes of the event say."""
        for happening in self.story.fencings.get(election.causes, ()):
            broker = str(happening.data.get("broker"))
            if happening.what == "unfence":
                return f", when it let {name(broker)} take part again"
            fell = self.story.crash_before(broker, election.n)
            since = f", which had fallen at {at(fell)}" if fell else ""
            silent = " (no heartbeat)" if self._is_timer(election) else ""
            return f", when it fenced {name(broker)}{silent}{since}"
        return ""

    def _is_timer(self, election: Election) -> bool:
        brief = self.story.brief(election.causes[0]) if election.causes else None
        return brief is not None and brief.kind is Kind.TIMER

    # How the copies went -----------------------------------------------------------------------

    def _ends(self, born: int, leader: str | None) -> None:
        """How each copy went; if a leader had lost its own, that is why it did not have them."""
        for each in self.copies:
            cut = each.piece.cut
            if cut is None:
                self._fell(each, born)
                continue
            if cut.how is not How.POWER:
                self._fell(each, born)
            if cut.how is How.POWER and each.node == leader:
                self._because(
                    f"{name(leader)} had lost power at {at(cut.by or cut.n)} before {self.they} "
                    f"{'was' if self.records.is_one else 'were'} synced there"
                )
            tell_end = _ENDS.get(cut.how, Tale._went)
            tell_end(self, each)

    def _fell(self, each: Copy, born: int) -> None:
        """A crash that a copy survived."""
        statuses = self.story.node(each.node).statuses
        for n, status in statuses:
            if not max(born, each.piece.n) < n < each.piece.until or status not in _DEAD:
                continue
            kept = "" if status != "off" else self._synced(each)
            back = next((m for m, s in statuses if m > n and s == "up"), 0)
            again = f" and came back at {self._when(back)}" if back else " and has not come back"
            self._say(
                n,
                f"{name(each.node)} {_FALLS[status]} at {self._when(n)}{again}; its disk kept "
                f"{self.it}{kept}.",
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
        why = "" if synced else ", and nothing had synced that part of the file to its disk since"
        self._say(
            crash,
            f"{name(each.node)} lost power at {self._when(crash)} and {self.what} with it: it "
            f"{how} {self.it} {self._from(each.piece.n)}{why}.",
        )

    def _truncated(self, each: Copy) -> None:
        story, cut = self.story, each.piece.cut
        assert cut is not None
        answer = story.brief(cut.by)
        leader = None if answer is None else answer.peer
        role = story.replica(each.node, self.records.partition).roles.at(cut.n)
        found = f"{name(each.node)} truncated {self.what} at {self._when(cut.n)}"
        if leader is not None and cut.epoch_ended is not None and cut.epoch_ended[0] >= 0:
            epoch, end = cut.epoch_ended
            found += (
                f", as a follower does: its leader {name(leader)} had answered that epoch {epoch} "
                f"ends at offset {end} there"
            )
        elif cut.epoch_ended is not None and cut.high_watermark is not None:
            found += f" without asking: it cut to its own high watermark, {cut.high_watermark}"
        elif role is not None and role.leader is not None:
            found += f", as a follower of {name(role.leader)}"
        self._say(cut.n, f"{found}.")

    def _went(self, each: Copy) -> None:
        cut = each.piece.cut
        assert cut is not None
        self._say(
            cut.n, f"On {name(each.node)} {self.what} went at {self._when(cut.n)}: {cut.how}."
        )

    def _end(self) -> None:
        """Whether that was the last copy."""
        left = [each.node for each in self.copies if each.piece.cut is None]
        n = self.story.last_n
        if left:
            states = [
                f"{name(node)} ({_DEAD[status]})"
                if (status := self.story.status(node, n)) in _DEAD
                else name(node)
                for node in dict.fromkeys(left)
            ]
            self._say(n, f"At the end {listed(states)} still had {self.it}.")
            return
        gone = max((each.piece.until for each in self.copies), default=0)
        if gone:
            self._say(gone, f"That was the last copy.{self._replaced(gone)}")

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

    # In one sentence ---------------------------------------------------------------------------

    def _summary(self, without: Election | None) -> str:
        first, acks = "", self.records.acks
        if acks:
            since = min(each.n for each in acks)
            kinds = listed(dict.fromkeys(acks_word(each.acks) for each in acks))
            span = f"at {at(since)}" if self.records.is_one else f"from {at(since)} on"
            first = f", acked {span} with {kinds},"
        verb = "was" if self.records.is_one else "were"
        cuts = [each for each in self.copies if each.piece.cut is not None]
        is_lost = bool(self.copies) and len(cuts) == len(self.copies)
        if is_lost:
            end = max(cuts, key=lambda each: each.piece.until)
            cut = end.piece.cut
            assert cut is not None
            fate = f"{verb} {_FATES[cut.how]} on {name(end.node)} at {at(cut.n)}"
        elif self.copies:
            holders = listed(
                name(node)
                for node in dict.fromkeys(c.node for c in self.copies if c.piece.cut is None)
            )
            fate = f"{'is' if self.records.is_one else 'are'} left on {holders} only"
        else:
            fate = f"{verb} in no log that the trace shows"
        found = f"{capital(self.what)} of {name(self.records.partition)}{first} {fate}"
        if without is not None:
            found += (
                f": {name(without.leader)} became leader with epoch {without.leader_epoch} at "
                f"{at(without.n)} without {self.it}"
            )
            found += " in an unclean election" if without.is_unclean else ""
        if self.reasons:
            found += f", because {listed(self.reasons)}"
        return found


def capital(text: str) -> str:
    return text[:1].upper() + text[1:]


_DEAD: Final = {
    "down": "dead",
    "off": "without power",
    "stopped": "stopped",
    "never": "not started",
}
_FALLS: Final = {"down": "was killed", "off": "lost power", "stopped": "stopped"}
_GOT: Final = {
    How.APPENDED: "had appended",
    How.COPIED: "had copied",
    How.FOUND: "had found",
}
_FATES: Final = {
    How.TRUNCATED: "truncated",
    How.RESTARTED: "dropped, when its log began anew,",
    How.POWER: "lost with the power",
    How.TORN: "cut at recovery",
    How.WIPED: "lost with its disk",
    How.DAMAGED: "cut as damaged",
    How.EXPIRED: "deleted as old",
    How.DELETED: "deleted with the replica",
}
_ENDS: Final[dict[How, Callable[[Tale, Copy], None]]] = {
    How.TRUNCATED: Tale._truncated,
    How.POWER: Tale._power,
}
