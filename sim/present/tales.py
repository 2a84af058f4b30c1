"""The tale of some records: who had them, who led without them, how each copy went.

It is made from the copies that the trace shows and from the causes that its events name, never from
what kind of scenario it was.

Left out: which records (``sim.present.chains``).
"""

from __future__ import annotations

from typing import Final

from sim.present.fates import Copy, epochs_at
from sim.present.history import Ack, Elected, Election, How
from sim.present.tale_base import DEAD, Chain, Marks, Sentence, capital
from sim.present.tale_copies import TaleOfCopies
from sim.present.tallies import Ranges
from sim.present.trouble_tellings import fault_words
from sim.present.words import acks_word, at, listed, name, value
from sim.trace.kinds import Kind

__all__ = ["ALONE_ACKS_1", "Tale"]

VALUES_MAX: Final = 3
VALUE_MAX: Final = 20
GROUPS_MAX: Final = 4
ALONE_ACKS_1: Final = (
    ": with acks=1 a leader answers as soon as its own log has a record, before any follower has it"
)
"""Why somebody alone had what was acknowledged."""
_WHO: Final = "\x00"
_WHO_WAS: Final = "\x05"
"""Stand for those of whom a reason speaks, until it is known how many they are."""


class Tale(TaleOfCopies):
    """Says who had them, and who led without them; ``chain`` puts all of it in order."""

    def chain(self) -> Chain:
        groups = sorted(self.groups().values(), key=lambda group: group[0].n)
        for group in groups[:GROUPS_MAX]:
            self.acknowledged(group)
        if len(groups) > GROUPS_MAX:
            more = sum(len(group) for group in groups[GROUPS_MAX:])
            self.say(groups[GROUPS_MAX][0].n, f"{more} more of them were acknowledged later.")
        if not groups and self.copies:
            first = self.copies[0]
            self.say(
                first.piece.n,
                f"{capital(self.what)} came to {name(first.node)} at {self.when(first.piece.n)}; "
                "nobody was told.",
            )
        without = self.fates()
        self.end()
        sentences = sorted(self.told, key=lambda each: each.n)
        return Chain(
            self._filled(self._summary(without)),
            tuple(Sentence(each.n, self._filled(each.text)) for each in sentences),
        )

    def fates(self) -> Election | None:
        """Say who never had them, who led without them, and how each copy went.

        Returns:
            The first election of a leader that did not have them.
        """
        born = self.copies[0].piece.n if self.copies else 0
        if self.records.acks:
            born = min(ack.n for ack in self.records.acks)
        self._missing(born)
        without = self._elections(born)
        self.ends(born, None if without is None else without.leader)
        return without

    def _filled(self, text: str) -> str:
        it = "it" if self.records.is_one else "them"
        return Marks.filled(text, what=self.what, it=it, is_one=self.records.is_one)

    def groups(self) -> dict[object, list[Ack]]:
        """Acknowledgements of one client and one kind, to which the same replicas had a copy."""
        groups: dict[object, list[Ack]] = {}
        for ack in self.records.acks:
            leader = self.partition.leaders.at(ack.n)
            key = ack.client, ack.acks, ack.by, tuple(self.holders(ack.n)), leader
            groups.setdefault(key, []).append(ack)
        return groups

    # Who had them ------------------------------------------------------------------------------

    def acknowledged(self, acks: list[Ack]) -> None:
        """Say when a group was acknowledged, and who had a copy then."""
        first, last = min(each.n for each in acks), max(each.n for each in acks)
        span = self.when(first) if first == last else f"{at(first)} to {self.when(last)}"
        values = ", ".join(value(each.value, VALUE_MAX) for each in acks[:VALUES_MAX])
        values += ", …" if len(acks) > VALUES_MAX else ""
        ack = acks[0]
        by = f" by {name(ack.by)}" if ack.by else ""
        ranges = Ranges()
        for each in acks:
            ranges.add(each.offset, each.offset + 1)
        is_one = len(acks) == 1
        self.say(
            first,
            f"Offset{'' if is_one else 's'} {ranges} ({values}) {'was' if is_one else 'were'} "
            f"acknowledged to {name(ack.client)}{by} at {span}, {acks_word(ack.acks)}. "
            f"{self._when_acked(ack, is_one)}{self._deposed(ack)}",
        )

    def _deposed(self, ack: Ack) -> str:
        """Who led by the controller's word, if not who answered."""
        leader, epoch = self.partition.leaders.at(ack.n) or (None, -1)
        if leader in (None, ack.by) or ack.by is None:
            return ""
        since = self.when(self.partition.leaders.since(ack.n))
        return f" By then {name(leader)} led, with epoch {epoch} since {since}."

    def _when_acked(self, ack: Ack, is_one: bool) -> str:
        holders = self.holders(ack.n)
        isr = self.partition.isrs.at(ack.n)
        who = listed(map(name, holders))
        it = "it" if is_one else "them"
        if ack.acks == -1 and isr is not None and len(isr) == 1:
            alone = name(isr[0])
            self.because(f"the ISR was {alone} alone when the acknowledgement was due")
            return (
                f"With acks=all a leader waits for every member of the ISR, and that was {alone} "
                f"alone{self._isr_since(ack.n)}: {who} had {it}, nobody else."
            )
        if len(holders) == 1 and ack.acks == 1:
            if all(each.node == holders[0] for each in self.copies):
                self.because(f"{who} had answered before any follower had {Marks.IT}")
            return f"{who} alone had {it} then{ALONE_ACKS_1}."
        in_isr = "" if isr is None else f"; the ISR was {listed(map(name, isr))}"
        return f"{who} had {it} then{in_isr}."

    def _isr_since(self, n: int) -> str:
        since = self.partition.isrs.since(n)
        before = self.partition.isrs.at(since - 1)
        now = self.partition.isrs.at(n) or ()
        left = [node for node in before or () if node not in now]
        if not left:
            return f" (since {at(since)})" if since else ""
        return f" since {self.when(since)}, when {listed(map(name, left))} had left it"

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
            why = why.replace(_WHO_WAS, "they were" if len(nodes) > 1 else "it was")
            self.say(max(born, source.piece.n), f"{listed(nodes)} never got {Marks.IT}{why}.")

    def _why_not(self, node: str, source: Copy) -> str:
        story, born = self.story, source.piece.n
        until = story.node(source.node).statuses
        fell = next((n for n, status in until if n > born and status in DEAD), story.last_n + 1)
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
                found = f": fault {name(fault.id)} kept {_WHO} from fetching from "
                found += name(source.node)
                if fault.begin in self.known:
                    return found
                return f"{found} ({fault_words(fault)}; since {self.when(fault.begin)})"
        status = story.status(node, born)
        if status in DEAD:
            return f": {_WHO_WAS} {DEAD[status]} then"
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
            holders = self.holders(election.n)
            if election.leader in holders:
                if first is None:
                    self.say(election.n, self._kept_by(election))
                continue
            if election.leader == last_leader:
                continue
            if first is not None and not holders:
                break  # They are gone; who leads now does not matter any more.
            last_leader = election.leader
            first = first or election
            self.say(election.n, self._election(election))
            if holders:
                self.say(election.n, self._left(election, holders))
        return first

    def _kept_by(self, election: Election) -> str:
        """A leader that has them; who is in the ISR from then on may lead later."""
        leader = name(election.leader)
        found = (
            f"{name(election.by)} made {leader} leader with epoch {election.leader_epoch} at "
            f"{self.when(election.n)}{self._fenced(election)}; {leader} had {Marks.IT}"
        )
        if election.isr is not None:
            alone = " alone" if len(election.isr) == 1 else ""
            found += f". The ISR was {listed(map(name, election.isr))}{alone} from then on"
        return found + "."

    def _election(self, election: Election) -> str:
        leader = name(election.leader)
        why = self._fenced(election)
        found = (
            f"{name(election.by)} made {leader} leader with epoch {election.leader_epoch} at "
            f"{self.when(election.n)}{why}. {leader} did not have {Marks.IT}"
        )
        if election.kind is Elected.LAST_KNOWN:
            found += "; ISR and ELR were empty, so the leader known last may lead (KIP-966)"
        elif election.kind is Elected.ELR:
            found += "; the ISR was empty, and it was eligible (ELR): the election counts as clean"
        elif election.is_unclean:
            isr = "" if not election.old_isr else f" ({listed(map(name, election.old_isr))})"
            was = "the ISR was empty" if election.old_isr == () else f"was not in the ISR{isr}"
            found += f", and {was}: an unclean election"
        elif election.old_isr is not None and election.leader in election.old_isr:
            members = listed(map(name, election.old_isr))
            alone = len(election.old_isr) == 1
            found += f"; it was in the ISR ({members}{' alone' if alone else ''}), so the election"
            found += " counts as clean"
        return f"{found}."

    def _left(self, election: Election, holders: list[str]) -> str:
        """Who else had them when a leader without them was elected."""
        found = f"Of the replicas only {listed(map(name, holders))} still had {Marks.IT} then"
        dead = [node for node in holders if self.story.status(node, election.n) in DEAD]
        if dead == holders:
            found += ", and " + ("was" if len(dead) == 1 else "were")
            found += f" {DEAD[self.story.status(dead[0], election.n)]}"
        return found + "."

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
            holders = dict.fromkeys(c.node for c in self.copies if c.piece.cut is None)
            is_everywhere = len(holders) == len(self.partition.replicas)
            where = listed(map(name, holders))
            fate = "is" if self.records.is_one else "are"
            fate += f" in every log: {where}" if is_everywhere else f" left on {where} only"
        else:
            fate = f"{verb} in no log that the trace shows"
        found = (
            f"{capital(self.what)}{self._which()} of {name(self.records.partition)}{first} {fate}"
        )
        if without is not None:
            found += (
                f": {name(without.leader)} became leader with epoch {without.leader_epoch} at "
                f"{at(without.n)} without {Marks.IT}"
            )
            if without.kind is Elected.LAST_KNOWN:
                found += " as the leader known last"
            elif without.is_unclean:
                found += " in an unclean election"
        if self.reasons:
            found += f", because {listed(self.reasons)}"
        return found

    def _which(self) -> str:
        """Their epoch, where other records have been at the same offset."""
        epoch, partition = self.records.epoch, self.records.partition
        if epoch is None or len(epochs_at(self.story, partition, self.records.base)) < 2:
            return ""
        return f" of epoch {epoch}"


_FATES: Final = {
    How.TRUNCATED: "truncated",
    How.RESTARTED: "dropped, when its log began anew,",
    How.POWER: "lost with the power",
    How.TORN: "cut at recovery",
    How.WIPED: "lost with its disk",
    How.OLDER: "not on the older disk that was put in",
    How.DAMAGED: "cut as damaged",
    How.EXPIRED: "deleted below its log start",
    How.DELETED: "deleted with the replica",
}
