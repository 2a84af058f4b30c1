"""What a partition owes, what its replicas hold of it, and what became of every copy.

A record is known by offset and epoch (two records of one offset and epoch are a violation of their
own, I3). Sets of records are kept as ranges, so a ledger grows with what happens, not with the
records.

Left out: when any of this is noted (``sim.checks.judge``), and by which licence records are lost
(``sim.checks.licences``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from attrs import asdict, define, field, frozen

from cluster.isr import IsrState
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Replica, Role
from sim.checks.history import Batch, History
from sim.checks.licences import DISK_TAKES, MEDIA
from sim.checks.mirrors import LogMirror
from sim.checks.ranges import Records, Span
from sim.checks.standing import Elected, Standing

__all__ = ["DISK_LOSSES", "Early", "Fate", "Ledger", "Loss", "Place"]

DISK_LOSSES: Final = DISK_TAKES | MEDIA
"""Fates of copies that a fault of the disk, or of the power, is behind."""


class Fate(NamedTuple):
    """How a replica came to hold some records no longer.

    Attributes:
        how: ``power`` (with what was not synced), ``lied`` (with what the disk had called synced),
            ``recovery-cut``, ``replaced``, ``damaged``, ``salvaged`` (cut off behind damage;
            ``DISK_LOSSES`` up to here), or ``truncated``, ``restarted``, ``deleted`` (by
            retention, compaction or a request), ``unfinished`` (by a compaction that a crash
            interrupted), ``removed`` (with the whole replica), ``overwritten``, ``vanished``,
            ``hidden`` (behind a log start that nothing has deleted up to).
        event: number of the event.
        was_durable: the bytes were synced, on a disk without faults.
    """

    how: str
    event: int
    spans: tuple[Span, ...]
    was_durable: bool = False

    def covers(self, epoch: int, offset: int) -> bool:
        """Whether a record is among them."""
        return any(span.epoch == epoch and span.start <= offset < span.end for span in self.spans)

    def covers_any(self, offset: int) -> bool:
        """Whether a record of this offset is among them, whatever its epoch."""
        return any(span.start <= offset < span.end for span in self.spans)


@frozen
class Loss:
    """A leader can serve without these records, or they were acknowledged behind its back.

    Attributes:
        at: ``serving`` from now on, ``leading`` on, ``acknowledging``, ``deleting`` by a wrong
            clock, or ``nowhere``: no log has them any more, and nobody leads without them yet.
        event: number of the event.
        leader, leader_epoch: the leader that does not have them; empty and -1 with ``nowhere``.
        how: by which fate the leader lost its copies: as ``Fate.how``, or ``never-held``.
        cause: the event of that fate, 0 where there is none.
        is_committed: whether they were owed: committed, or acknowledged under acks all.
        is_unclean: whether the leader was elected from outside ISR and ELR.
        licence: ``L0`` to ``L4``, ``ILLEGAL`` or ``UNEXPLAINED`` (FAULTS D.4).
        rule: why, in words that follow "because".
        culprits: events that are behind it, in order: faults, ends of processes, the election.
        copies: what became of every node's copy of the first of them: node, fate, event; a copy
            that is there is ``held``.
        told: number of the event of kind ``loss``.
    """

    at: str
    event: int
    partition: str
    leader: str
    leader_epoch: int
    spans: tuple[Span, ...]
    how: str
    cause: int
    is_committed: bool
    is_unclean: bool
    licence: str = ""
    rule: str = ""
    culprits: tuple[int, ...] = ()
    copies: tuple[tuple[str, str, int], ...] = ()
    told: int = 0

    @property
    def records(self) -> int:
        """How many records."""
        return sum(span.end - span.start for span in self.spans)

    def plain(self) -> dict[str, Any]:
        """As the trace's footer has it; spans as epoch, first offset, end."""
        return {
            **asdict(self, recurse=False),
            "spans": [list(span) for span in self.spans],
            "culprits": list(self.culprits),
            "copies": [list(each) for each in self.copies],
        }


@frozen
class Early:
    """Batches that retention has deleted by a wall clock that was ahead.

    Attributes:
        retention_ms: of the topic, then.
        culprits: events of the faults that moved the clock, and of the deletion.
    """

    batches: tuple[Batch, ...]
    retention_ms: int
    culprits: tuple[int, ...]


@define(eq=False)
class Place:
    """One replica: its log as the files have it, and its state as it was last seen.

    Attributes:
        replica: None while its broker is down.
        start, high_watermark, end: of the replica; what a broker that is down had last.
        role, state, isr: as last seen, to see changes.
        fates: of copies that are gone.
        is_uncertain: not yet agreed with a leader since it was started (I2).
        is_lossy: its disk lost something since it last entered the ISR (I5).
        is_damaged: its files were cut behind its process's back, which does not know (I14).
        durable_end: the end of what a power loss could not take, just before one.
        had: every batch that a power loss may have left or brought back.
        was_closed: a clean-shutdown marker was written since it was last opened.
        shown: the highest high watermark that it has shown anybody, since its log was last cut.
        claimed_end: up to where its process called its log durable.
        early: deleted too early while it did not lead.
        forgotten: where its log ended when it last forgot a producer that was idle, by its id; -1
            once it knows it again.
        ever_forgotten: the same, known again or not.
    """

    node: str
    partition: TopicIdPartition
    mirror: LogMirror
    replica: Replica | None = None
    start: int = 0
    high_watermark: int = 0
    end: int = 0
    role: Role | None = None
    state: PartitionRecord | None = None
    isr: IsrState | None = None
    fates: list[Fate] = field(factory=list)
    is_uncertain: bool = False
    is_lossy: bool = False
    is_damaged: bool = False
    durable_end: int | None = None
    had: dict[tuple[int, int], Batch] | None = None
    was_closed: bool = False
    shown: int = 0
    claimed_end: int = 0
    early: list[Early] = field(factory=list)
    forgotten: dict[int, int] = field(factory=dict)
    ever_forgotten: dict[int, int] = field(factory=dict)

    @property
    def files_end(self) -> int:
        """The log end by its files; where they hold nothing, as the replica had it last."""
        mirror = self.mirror
        return mirror.log_end if mirror.batches or mirror.segments else self.end

    def damaged(self) -> list[Span]:
        """The records of its log that cannot be read."""
        batches = [self.mirror.at(base) for base in self.mirror.damaged]
        return [Span(b.epoch, b.base, b.next) for b in batches if b is not None]

    @property
    def damages(self) -> tuple[tuple[int, int], ...]:
        """Where batches begin and end, in order, that its process has and cannot read."""
        found = [(span.start, span.end) for span in self.damaged()]
        if self.is_damaged and self.mirror.log_end < self.end:
            found.append((self.mirror.log_end, self.end))
        return tuple(sorted(found))

    def ever_held(self, batch: Batch) -> bool:
        """Whether it has, or had, a batch."""
        if self.mirror.holds(batch):
            return True
        return any(fate.covers(batch.epoch, batch.base) for fate in self.fates)


@define(eq=False)
class Ledger:
    """One partition.

    Attributes:
        history: of all its logs.
        places: by node; of brokers that are down too.
        top: the highest high watermark of a legitimate leader (``T`` in PROTOCOL C.4).
        top_ever: the same, losses or not.
        tip: the last batch below ``top``.
        start: the highest log start of any replica, up to ``deleted``.
        deleted: up to where retention has deleted records, or was asked to; a log start behind that
            is none that anybody wanted.
        cleared: the highest log start of a legitimate leader, up to ``deleted``, by its epoch. Its
            followers take that later, and may lead before.
        replaced: what leaders had deleted, and a later one has others for, from an event on.
        asked: up to where anybody has asked for records to be deleted.
        owed: committed, or answered under acks all, and not yet lost.
        committed, acked, exposed: ever; ``acked`` is what a client was told.
        gone: with a loss event.
        back: of ``gone``, what a later leader has committed.
        retired: replicas that were deleted.
        answered: by client and offset: the epoch of the record that an answer was about.
        acked_count: operations that were told to be acknowledged.
        appended_by: node and incarnation by epoch.
        appended: event of the newest append of a leader, and its node, by epoch.
        led: legitimate leaderships that were judged: node, incarnation, epoch.
        unclean_epochs: elections outside ISR and ELR whose leader has not served yet.
        parted: of those whose leader has served, the epoch, and what its log had then.
        was_unclean: such a leader has served; or a disk took what was owed.
        taken_again, taken_ahead: offsets, from one to another, of what a leader took late, or ahead
            of what was sent before, since it had forgotten the producer.
        standing: who could be trusted (``sim.checks.standing``).
        without_elr: promised before a change that emptied the ELR.
        licensed: lost, and legally so.
        settled: up to where two replicas were found to agree (I2), by pair.
    """

    partition: TopicIdPartition
    history: History = field(factory=History)
    places: dict[str, Place] = field(factory=dict)
    top: int = 0
    top_ever: int = 0
    tip: Batch | None = None
    start: int = 0
    deleted: int = 0
    cleared: dict[int, int] = field(factory=dict)
    replaced: list[tuple[Span, int]] = field(factory=list)
    asked: int = 0
    exposed_top: int = 0
    owed: Records = field(factory=Records)
    committed: Records = field(factory=Records)
    acked: Records = field(factory=Records)
    exposed: Records = field(factory=Records)
    gone: Records = field(factory=Records)
    back: Records = field(factory=Records)
    retired: dict[str, Place] = field(factory=dict)
    answered: dict[str, dict[int, int]] = field(factory=dict)
    acked_count: int = 0
    appended_by: dict[int, tuple[str, int]] = field(factory=dict)
    appended: dict[int, tuple[int, str]] = field(factory=dict)
    led: set[tuple[str, int, int]] = field(factory=set)
    unclean_epochs: set[int] = field(factory=set)
    parted: list[tuple[int, Records]] = field(factory=list)
    was_unclean: bool = False
    was_disk_lost: bool = False
    is_compacted: bool = False
    taken_again: list[tuple[int, int]] = field(factory=list)
    taken_ahead: list[tuple[int, int]] = field(factory=list)
    standing: Standing = field(factory=Standing)
    without_elr: Records = field(factory=Records)
    licensed: Records = field(factory=Records)
    settled: dict[tuple[str, str], int] = field(factory=dict)
    losses: list[Loss] = field(factory=list)
    reads: dict[int, tuple[int, tuple[bytes | None, bytes | None]]] = field(factory=dict)
    appended_us: int = 0

    def missing_at(self, place: Place, records: Records) -> list[Span]:
        """Which records a replica does not have, of those at or behind its log start.

        What its log start hides, and nothing has deleted, it does not have. What a leader has
        deleted nobody needs to have, also where a log starts lower. Of a compacted log only what
        lies behind its end is missing for sure, or where it cannot have been.
        """
        if self.is_compacted:
            return list(self.uncleared(_surely_missing(place, records)))
        start = min(place.start, self.deleted)
        first = place.start if start < place.start else 0
        missing = records.missing_in(place.mirror.spans(first, place.mirror.end), start)
        damaged = place.damaged()
        if damaged:
            missing += Records(records.common(damaged)).missing_in((), place.start)
        return list(self.uncleared(missing)) if self.cleared else missing

    def uncleared(self, spans: Iterable[Span]) -> Iterator[Span]:
        """Without what a leader has deleted: what was written below its log start by then."""
        for epoch, start, end in spans:
            low = max((at for until, at in self.cleared.items() if epoch <= until), default=0)
            if low < end:
                yield Span(epoch, max(start, low), end)

    def promised(self) -> Records:
        """Every record that anybody counts on, or did."""
        found = Records(self.owed)
        for each in (self.acked, self.committed, self.exposed):
            found.add(each)
        return found

    def note_begun_below(self, place: Place, event: int) -> None:
        """A leader's log starts below what another leader has deleted.

        It has an older past there, of what was lost before, or makes one anew.
        """
        top = max(self.cleared.values(), default=0)
        if place.start >= top:
            return
        shown = place.mirror.spans(place.start, top)
        self.back.add(self.gone.common(shown))
        missing = Records(self.promised().missing_in(shown, place.start))
        missing.discard(list(self.uncleared(missing)))
        self.replaced += [(span, event) for span in missing]

    def commit(self, place: Place) -> None:
        """The high watermark of a legitimate leader stands where ``place`` has it."""
        mark = place.high_watermark
        if mark <= self.top:
            return
        spans = place.mirror.surely(self.top, mark)
        self.owed.add(spans)
        self.committed.add(spans)
        self.back.add(self.gone.common(spans))
        self.top = mark
        self.top_ever = max(self.top_ever, mark)
        self.tip = place.mirror.last_before(mark)
        if self.is_compacted:
            self.tip = None

    def forget_elections(self, behind: int) -> None:
        """Elections behind an epoch, whose leader has not served: the controller forgot them."""
        self.unclean_epochs = {each for each in self.unclean_epochs if each <= behind}
        elected = self.standing.elected
        for epoch in [each for each in elected if each > behind]:
            del elected[epoch]

    def outside(self, epoch: int) -> Elected | None:
        """The election from outside ISR and ELR behind a leader that has not served before.

        Of several up to its epoch the first that was allowed as such counts: the later ones could
        choose only from what that one had left.
        """
        elected = [self.standing.elected.get(each) for each in sorted(self.unclean_epochs)]
        known = [each for each in elected if each is not None and each.epoch <= epoch]
        allowed = [each for each in known if each.kind == "unclean"]
        return allowed[0] if allowed else next(reversed(known), None)

    def part_with(self, place: Place, epoch: int) -> None:
        """A leader from outside ISR and ELR serves: its log is what there is from here on."""
        self.parted.append((epoch, Records(place.mirror.spans(0, place.mirror.end))))

    def parted_by(self, spans: Iterable[Span]) -> list[tuple[int, list[Span]]]:
        """Which records such a leader did not have when it began, by its epoch.

        What was written in its epoch or later it has no part in, nor in what it had.
        """
        found: dict[int, Records] = {}
        left = Records(spans)
        for epoch, had in reversed(self.parted):
            old = Records(span for span in left if span.epoch < epoch)
            kept = old.common(had)
            left.discard(kept)
            old.discard(kept)
            for newer in found.values():
                newer.discard(list(old))
            found[epoch] = old
        return [(epoch, list(old)) for epoch, old in found.items() if old]

    def free(self, place: Place, spans: list[Span], *, is_whole: bool) -> None:
        """Records are lost, and nobody owes them any more: the log of ``place`` is the truth.

        Args:
            is_whole: nothing that this log does not have is owed, whoever has it.
        """
        self.owed.discard(spans)
        if is_whole:
            self.owed.discard(self.missing_at(place, self.owed))
        # Where the log has others than those that are lost, it has to commit them anew.
        self.top = min(self.top, place.files_end, *(span.start for span in spans))
        self.tip = place.mirror.last_before(self.top)
        self.settled.clear()


def _surely_missing(place: Place, records: Records) -> Iterator[Span]:
    """Which records a compacted log cannot have had, since compaction drops records only.

    Those behind its end; and, since epochs rise along a log, those behind a batch of a newer epoch
    and before one of an older epoch.
    """
    mirror, start = place.mirror, place.start
    runs = mirror.spans(start, mirror.end)
    log_end = max(start, place.files_end)
    for epoch, low, high in records:
        older = [mirror.last_before(run.end) for run in runs if run.epoch < epoch]
        below = max((last.next for last in older if last is not None), default=start)
        above = min((run.start for run in runs if run.epoch > epoch), default=log_end)
        above = max(below, min(above, log_end))
        for first, end in ((max(low, start), min(high, below)), (max(low, above), high)):
            if first < end:
                yield Span(epoch, first, end)
