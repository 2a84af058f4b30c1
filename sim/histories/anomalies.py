"""Anomalies: their names, the table of what makes each legal, and what is kept of those found.

The table is data. A check says what holds of the records at hand (``Reason``), and the table says
whether that makes the anomaly legal. Flipped bits make everything legal: a client believes the
fields of a frame that have no checksum.

Left out: the checks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any, Final, NamedTuple

from attrs import evolve, field, frozen

from cluster.names import TopicIdPartition

__all__ = ["LEGAL", "SAFETY", "Anomaly", "Conditions", "Found", "Reason", "Witness", "illegal"]


class Reason(StrEnum):
    """What may make an anomaly legal.

    LOSS: one of the records is among the excused ones, and was lost by then.
    NOT_IDEMPOTENT: the producer does not number its batches.
    UNORDERED: nor does it wait: it has several requests in flight, or gave one of the two up.
    COMPACTED: the topic is compacted.
    DELETED: the log begins behind it now, or the topic is gone. A log knows a producer by the
        records that it has: where it has lost those it takes any sequence (PROTOCOL A18).
    FORGOTTEN: a leader had forgotten the producer, which was idle for longer than
        ``producer.id.expiration.ms``, when it took the record, perhaps once more.
    AHEAD: so had it when it took the record ahead of what was sent before.
    UNAVAILABLE: the partition cannot be read.
    FLIPPED_BITS: bits of messages were flipped under way.
    GUARD_OFF: a guard that is off guards against just this.
    """

    LOSS = "loss"
    NOT_IDEMPOTENT = "not-idempotent"
    UNORDERED = "unordered"
    COMPACTED = "compacted"
    DELETED = "deleted"
    FORGOTTEN = "forgotten"
    AHEAD = "ahead"
    UNAVAILABLE = "unavailable"
    FLIPPED_BITS = "flipped-bits"
    GUARD_OFF = "guard-off"


_GONE: Final = (Reason.LOSS, Reason.COMPACTED, Reason.DELETED)

LEGAL: Final[dict[str, tuple[str, tuple[Reason, ...]]]] = {
    "inconsistent-offsets": ("one offset, two values", (Reason.LOSS,)),
    "fractured-read": ("a later read at one offset differs", (Reason.LOSS,)),
    "duplicate": (
        "one value at two offsets",
        (Reason.NOT_IDEMPOTENT, Reason.LOSS, Reason.DELETED, Reason.FORGOTTEN),
    ),
    "lost-write": ("acknowledged, never read, and a reader passed its offset", _GONE),
    "lost-tail": ("acknowledged, and above everything ever read", _GONE),
    "unseen": ("acknowledged, and not read by the end", (*_GONE, Reason.UNAVAILABLE)),
    "aborted-read": ("read, though every operation with that value failed (G1a)", ()),
    "phantom": ("read, though nobody wrote it", ()),
    "int-poll-skip": ("a reader jumps over a record within a poll", _GONE),
    "poll-skip": ("a reader jumps over a record between polls", _GONE),
    "int-nonmonotonic-poll": ("a reader goes back within a poll", ()),
    "nonmonotonic-poll": ("a reader goes back, and was not told", ()),
    "false-truncation": ("a reader is told that what it read last is gone, and it is there", _GONE),
    "stale-read": ("a reader reads on in an older epoch, and was not told", ()),
    "int-nonmonotonic-send": (
        "records sent at one moment stand in another order",
        (Reason.UNORDERED, Reason.LOSS, Reason.DELETED, Reason.FORGOTTEN, Reason.AHEAD),
    ),
    "nonmonotonic-send": (
        "records of one producer stand in another order",
        (Reason.UNORDERED, Reason.LOSS, Reason.DELETED, Reason.FORGOTTEN, Reason.AHEAD),
    ),
    "commit-regression": ("a group's committed offset goes back", ()),
    "commit-beyond-end": ("an offset is committed behind everything seen", (Reason.COMPACTED,)),
}
"""By name: what it is, and what makes it legal. ``FLIPPED_BITS`` and ``GUARD_OFF`` always do."""

SAFETY: Final = frozenset(LEGAL) - {"unseen"}
"""Those that a cluster must never show, unless they are legal."""


@frozen
class Conditions:
    """What is known of the run besides its history, for the table.

    Attributes:
        compacted: ids of topics that are, or were, compacted.
        log_starts: where logs begin now, or began last.
        gone: ids of topics that were deleted.
        taken_again, taken_ahead: offsets, from one to another, of what leaders took late, and too
            early, since they had forgotten its producer.
        unavailable: partitions that cannot be read at the end.
        has_flipped_bits: messages were changed under way.
        guards_off: names of anomalies against which a guard is off.
    """

    compacted: frozenset[str] = frozenset()
    log_starts: Mapping[TopicIdPartition, int] = field(factory=dict)
    gone: frozenset[str] = frozenset()
    taken_again: Mapping[TopicIdPartition, Sequence[tuple[int, int]]] = field(factory=dict)
    taken_ahead: Mapping[TopicIdPartition, Sequence[tuple[int, int]]] = field(factory=dict)
    unavailable: frozenset[str] = frozenset()
    has_flipped_bits: bool = False
    guards_off: frozenset[str] = frozenset()


class Witness(NamedTuple):
    """One of the observations that contradict each other.

    Attributes:
        who: the client.
        how: ``acked`` (was told that it is stored), ``read``, ``failed``, ``sent``, ``passed``,
            ``committed``, ``moved``.
        value: as text.
        event: of the trace.
    """

    who: str
    how: str
    offset: int
    value: str
    event: int
    t_us: int

    def __str__(self) -> str:
        at = f" at offset {self.offset}" if self.offset >= 0 else ""
        return f"{self.who} {self.how} {self.value}{at} (event {self.event})"


@frozen
class Anomaly:
    """Observations that contradict each other, the first ones of their kind at this partition.

    Attributes:
        name: a key of ``LEGAL``.
        partition: as ``orders-0``.
        witnesses: the smallest counterexample.
        detail: one sentence.
        legal: why it is legal, by ``Reason``; empty where it is not.
        count: how often it was found.
    """

    name: str
    partition: str
    witnesses: tuple[Witness, ...]
    detail: str
    legal: str = ""
    count: int = 1

    @property
    def events(self) -> tuple[int, ...]:
        """Of the witnesses, ascending."""
        return tuple(sorted({each.event for each in self.witnesses}))

    def plain(self) -> dict[str, Any]:
        """For reports."""
        return {
            "name": self.name,
            "partition": self.partition,
            "detail": self.detail,
            "legal": self.legal,
            "count": self.count,
            "events": list(self.events),
            "witnesses": [each._asdict() for each in self.witnesses],
        }

    def __str__(self) -> str:
        return f"{self.name} {self.partition}: {self.detail}"


def illegal(anomalies: Iterable[Anomaly]) -> list[Anomaly]:
    """Those that nothing makes legal."""
    return [each for each in anomalies if not each.legal]


class Found:
    """Collects anomalies: of each name, partition and reason the first, and how many there were."""

    def __init__(self, conditions: Conditions) -> None:
        self.conditions = conditions
        self._kept: dict[tuple[str, str, str], Anomaly] = {}

    def why(self, name: str, holds: Iterable[Reason]) -> str:
        """Why an anomaly of that name is legal, if these hold; empty if it is not."""
        if self.conditions.has_flipped_bits:
            return Reason.FLIPPED_BITS
        if name in self.conditions.guards_off:
            return Reason.GUARD_OFF
        known = frozenset(holds)
        return next((each for each in LEGAL[name][1] if each in known), "")

    def report(
        self,
        name: str,
        partition: str,
        witnesses: Iterable[Witness],
        detail: str,
        holds: Iterable[Reason] = (),
    ) -> None:
        """An anomaly; ``holds`` is what is known of its records."""
        legal = str(self.why(name, holds))
        key = name, partition, legal
        known = self._kept.get(key)
        if known is not None:
            self._kept[key] = evolve(known, count=known.count + 1)
            return
        self._kept[key] = Anomaly(name, partition, tuple(witnesses), detail, legal)

    def all(self) -> list[Anomaly]:
        """Illegal ones first, then by the number of witnesses and their last event."""
        return sorted(
            self._kept.values(),
            key=lambda each: (
                bool(each.legal),
                len(each.witnesses),
                each.events[-1:],
                each.name,
                each.partition,
            ),
        )
