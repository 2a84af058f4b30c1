"""What an operation of the crash proof wrote and removed, told before it does so.

``tests.crash.judge`` holds what a crash left against it. Everything here says what *may* be found;
``durable``, ``starts`` and ``gone`` also say what *must*.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from attrs import define, field

from storage import CompactionPolicy, PartitionLog, Record, RecordBatch
from storage.reading import iter_batches

__all__ = ["History", "HistoryKey", "append", "batches_of"]

HistoryKey = tuple[Any, ...]


@define
class History:
    """What was ever written, and what was durable.

    Attributes:
        written: per offset every record (value, epoch) that an append stored there.
        durable: offsets below this were durable at some time, unless removed since.
        end: the log ends here or above: at ``durable``, but for a truncation that met a hole.
        starts: the log starts that may be found. One that is durably raised is the only one.
        holes: offsets that compaction may take.
        gone: records (offset, value) that compaction took durably: they must not come back.
        tombstones: keys whose tombstone compaction may take, and its offset: nothing older of the
            key may be left without it.
        taken: batches that retention or compaction may take, as they were.
        cleaned: the log's cleaned offset is not above this.
        files: what the checkpoints of a broker's directory may say, by name.
        refuses: the log may refuse for damage in what was durable; salvage is under way.
    """

    written: dict[int, set[tuple[bytes | None, int]]] = field(factory=dict)
    durable: int = 0
    end: int = 0
    starts: set[int] = field(factory=lambda: {0})
    holes: set[int] = field(factory=set)
    gone: set[tuple[int, bytes | None]] = field(factory=set)
    tombstones: dict[bytes, int] = field(factory=dict)
    taken: list[RecordBatch] = field(factory=list)
    cleaned: int = 0
    files: dict[str, set[Hashable]] = field(factory=dict)
    refuses: bool = False

    def note(self, log: PartitionLog, values: list[bytes | None], offset: int | None) -> None:
        """One append of ``values`` is about to be made to ``log``, at ``offset`` or its end."""
        for at, value in enumerate(values, log.leo if offset is None else offset):
            self.written.setdefault(at, set()).add((value, log.leader_epoch))

    def note_durable(self, log: PartitionLog) -> None:
        """Everything below the log's boundary is durable."""
        self.durable = self.end = log.boundary.end_offset

    def note_cut(self, target: int) -> None:
        """What lies at ``target`` or above is about to go; others may come in its place."""
        self.durable = self.end = min(self.durable, target)
        while self.end - 1 in self.holes:
            # The empty batch that stands for the hole is an append, which a crash may take.
            self.end -= 1
        self.holes = {offset for offset in self.holes if offset < target}
        self.cleaned = min(self.cleaned, target)

    def note_taking(self, log: PartitionLog) -> None:
        """Retention or compaction is about to take batches."""
        self.taken = batches_of(log)

    def note_compaction(
        self, log: PartitionLog, end: int, *, now_ms: int, policy: CompactionPolicy
    ) -> None:
        """A pass over what lies below ``end`` is about to begin: the rule by the letter."""
        self.note_taking(log)
        records = [r for r in log.fetch(0, 1_000_000) if r.offset < end and r.key is not None]
        latest = {record.key: record.offset for record in records}
        for record in records:
            assert record.key is not None
            if record.offset != latest[record.key]:
                self.holes.add(record.offset)
            elif record.value is None and (
                record.timestamp_ms + policy.delete_retention_ms <= now_ms
            ):
                self.holes.add(record.offset)
                self.tombstones[record.key] = record.offset
        self.cleaned = end

    def note_compacted(self, log: PartitionLog) -> None:
        """A pass is done, and its swaps are durable."""
        present = {record.offset for record in log.fetch(0, 1_000_000)}
        for offset in self.holes - present:
            self.gone |= {(offset, value) for value, _ in self.written[offset]}

    def allow(self, name: str, value: Hashable) -> None:
        """A checkpoint is about to be written."""
        self.files.setdefault(name, set()).add(value)

    def settle(self, name: str, value: Hashable) -> None:
        """A checkpoint is durable."""
        self.files[name] = {value}

    def key(self) -> HistoryKey:
        """Everything that ``judge`` looks at, comparable."""
        return (
            tuple((offset, frozenset(self.written[offset])) for offset in sorted(self.written)),
            self.durable,
            self.end,
            frozenset(self.starts),
            frozenset(self.holes),
            frozenset(self.gone),
            frozenset(self.tombstones.items()),
            len(self.taken),
            self.cleaned,
            tuple((name, frozenset(self.files[name])) for name in sorted(self.files)),
            self.refuses,
        )


def append(
    log: PartitionLog,
    history: History,
    *values: bytes | None,
    key: bytes | None = None,
    time_ms: int | None = None,
    producer: tuple[int, int] | None = None,
    offset: int | None = None,
) -> None:
    """Append one batch and tell the history first.

    Args:
        producer: an id and a sequence.
        offset: where the batch is to go, if not at what the log takes for its end.
    """
    history.note(log, list(values), offset)
    time_ms = 1_000 + log.leo if time_ms is None else time_ms
    records = [Record(key, value, time_ms) for value in values]
    if producer is None:
        log.append(RecordBatch.unassigned(records))
        return
    producer_id, sequence = producer
    stored = log.append(
        RecordBatch.unassigned(
            records, producer_id=producer_id, producer_epoch=0, base_sequence=sequence
        )
    )
    assert not stored.is_duplicate


def batches_of(log: PartitionLog) -> list[RecordBatch]:
    """All batches in the files, those that the log start hides too."""
    return [batch for s in log.segments for batch in iter_batches(s, s.base_offset)]
