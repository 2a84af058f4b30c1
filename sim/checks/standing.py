"""Who could still be trusted when records were lost: elections, shutdowns, and who was the last.

What is kept of a partition is what the licences L1 and L2 turn on: how each leader was elected, and
what kept those before it from leading; which members of ISR and ELR came back from an unclean
shutdown; and who was alone in ISR and ELR when the controller last judged it.

A shutdown is unclean if the broker registers anew with another broker epoch than its directory
says, a plain kill included (PROTOCOL A16). A member whose log refuses to open leaves ISR and ELR
just so (DECISIONS 2.10), and counts as one that was shut down uncleanly. They are counted from the
last moment on at which ``min.insync.replicas`` members of ISR and ELR had none behind them (FAULTS
D.4).

Left out: what any of it licenses (``sim.checks.licences``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from attrs import define, field, frozen

from cluster.records import PartitionRecord

__all__ = ["OUTSIDE", "Elected", "Standing"]

OUTSIDE: Final = ("unclean", "last-known")
"""Kinds of elections from outside ISR and ELR that count as such."""


@frozen
class Elected:
    """How a leader came to be.

    Attributes:
        kind: ``clean``, ``preferred``, ``unclean``, ``unpermitted``, ``last-known`` or ``none``.
        event: number of the event.
        reasons: events that kept the leader before it, or whoever else might have led, from
            leading on: ends of processes, faults that began, elections whose leader never served.
            Of a preferred one, which moves the lead back: what had moved it away.
        leader: None where nobody may lead.
    """

    epoch: int
    kind: str
    event: int
    reasons: tuple[int, ...] = ()
    leader: str | None = None


@define(eq=False)
class Standing:
    """Of one partition.

    Attributes:
        elected: by leader epoch.
        unclean: nodes back from an unclean shutdown that have not joined a leader, or served as
            one, since.
        run: unclean shutdowns since enough members were last clean: node and event.
        enough: how many those were; what is committed is on so many. A minimum that was raised
            since asks for no more of it.
        last: who was alone in ISR and ELR when it was judged last, by node.
        isr_then: the ISR when it was, by node.
        assigned: events that changed the replicas, or their order.
    """

    elected: dict[int, Elected] = field(factory=dict)
    unclean: dict[str, int] = field(factory=dict)
    run: list[tuple[str, int]] = field(factory=list)
    enough: int | None = None
    last: dict[str, bool] = field(factory=dict)
    isr_then: dict[str, tuple[str, ...]] = field(factory=dict)
    assigned: list[int] = field(factory=list)

    def last_of(self, epochs: Collection[int]) -> int:
        """With which event the last election of some epochs was; 0 if there was none."""
        return max(
            (each.event for each in self.elected.values() if each.epoch in epochs), default=0
        )

    def elections_behind(self, event: int) -> list[Elected]:
        """Those behind an event, in order."""
        return [each for each in self.elected.values() if each.event > event]

    def moved_away(self, leader: str) -> tuple[int, ...]:
        """The events behind which a replica that is to lead does not lead any more, or not yet."""
        led = [each.epoch for each in self.elected.values() if each.leader == leader]
        found = set(self.assigned)
        for each in self.elections_behind(self.last_of(led)):
            found.update((*each.reasons, each.event))
        return tuple(sorted(found))

    def election(self, epoch: int) -> Elected | None:
        """The election behind a leader epoch: the last one up to it."""
        known = [each for each in self.elected if each <= epoch]
        return self.elected[max(known)] if known else None

    def note_unclean(self, record: PartitionRecord, node: str, event: int, min_isr: int) -> None:
        """A broker registers, and did not shut down cleanly, or its log is put into quarantine;
        ``record`` is from before that.
        """
        members = {*record.isr, *record.elr}
        clean = [each for each in sorted(members) if each != node and each not in self.unclean]
        if node in members and node not in self.unclean:
            if not self._is_enough(len(clean), min_isr):
                self.run.append((node, event))
        self.unclean[node] = event

    def note_change(
        self, before: PartitionRecord | None, record: PartitionRecord, min_isr: int
    ) -> None:
        """The controller's word has changed: who entered the ISR has all that is committed.

        Who enters it by being elected may lack something; that is known when it serves.
        """
        for node in record.isr:
            if before is None or node in before.isr:
                continue
            if node == record.leader and record.leader_epoch > before.leader_epoch:
                continue
            self.unclean.pop(node, None)
            self.last.pop(node, None)
            self.isr_then.pop(node, None)
        self._end_run(record, min_isr)

    def note_serving(self, record: PartitionRecord, min_isr: int) -> None:
        """A leader serves, and what it lacks is on record: it has all that is owed from here on."""
        if record.leader is not None:
            self.unclean.pop(record.leader, None)
        self._end_run(record, min_isr)

    def _end_run(self, record: PartitionRecord, min_isr: int) -> None:
        members = {*record.isr, *record.elr}
        self._is_enough(len([each for each in members if each not in self.unclean]), min_isr)

    def _is_enough(self, clean: int, min_isr: int) -> bool:
        """Whether so many clean members make good what was before; then they do."""
        if clean >= min_isr:
            self.enough = min_isr
        elif self.enough is None or clean < self.enough:
            return False
        self.run.clear()
        return True

    def note_judged(self, record: PartitionRecord, nodes: Iterable[str]) -> None:
        """These were fenced or registered anew; ``record`` says what that made of the partition."""
        for node in nodes:
            self.last[node] = not {*record.isr, *record.elr} - {node}
            self.isr_then[node] = record.isr
