"""What a story keeps: nodes, logs, partitions, records, faults, each with the events that made it.

Nothing here is ever taken back: a part of a log that was cut is still there, with the event that
cut it. So the state at any event is a question, not another copy (``sim.present.moments``).

Offsets are half-open ranges. Event numbers are written ``n``; ``FOREVER`` is behind all of them.

Left out: reading events (``sim.present.story``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Final, Generic, TypeVar

from attrs import define, field, frozen

__all__ = [
    "FOREVER",
    "Ack",
    "Cut",
    "Elected",
    "Election",
    "Fault",
    "Finding",
    "How",
    "Loss",
    "Node",
    "Partition",
    "Piece",
    "Replica",
    "Role",
    "Series",
    "Step",
]

FOREVER: Final = 1 << 62
_T = TypeVar("_T")


class Series(Generic[_T]):
    """A value over time: what it became with which event."""

    __slots__ = ("_numbers", "_values")

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._values: list[_T] = []

    def put(self, n: int, value: _T) -> None:
        """It has this value from event ``n`` on; the last one that is put with a number counts."""
        if self._numbers and self._numbers[-1] == n:
            self._values[-1] = value
        elif not self._values or self._values[-1] != value:
            self._numbers.append(n)
            self._values.append(value)

    def at(self, n: int) -> _T | None:
        """The value behind event ``n``; None before the first."""
        index = bisect_right(self._numbers, n)
        return self._values[index - 1] if index else None

    def since(self, n: int) -> int:
        """With which event the value behind event ``n`` came; 0 before the first."""
        index = bisect_right(self._numbers, n)
        return self._numbers[index - 1] if index else 0

    @property
    def last(self) -> _T | None:
        return self._values[-1] if self._values else None

    def __len__(self) -> int:
        return len(self._values)

    def __iter__(self) -> Iterator[tuple[int, _T]]:
        return iter(zip(self._numbers, self._values, strict=True))


class How(StrEnum):
    """How a part of a log came, or went."""

    APPENDED = "appended"
    COPIED = "copied"
    FOUND = "found"

    TRUNCATED = "truncated"
    RESTARTED = "restarted"
    POWER = "lost with the power"
    TORN = "cut at recovery"
    WIPED = "gone with its disk"
    OLDER = "not on the older disk"
    DAMAGED = "cut as damaged"
    EXPIRED = "deleted at the log start"
    DELETED = "deleted with the replica"


@frozen
class Cut:
    """A part of a log went.

    Attributes:
        n: the event with which it went.
        how: why.
        base, end: the offsets that went.
        by: the event that made it so, as a crash; 0 if none is known.
        epoch_ended: epoch and end offset that a leader answered, for a truncation.
        high_watermark: the replica's before, if told.
    """

    n: int
    how: How
    base: int
    end: int
    by: int = 0
    epoch_ended: tuple[int, int] | None = None
    high_watermark: int | None = None


@define(eq=False)
class Piece:
    """A range of offsets in one log, of one epoch, that came with one event.

    Attributes:
        epoch: of the records; None where nobody said.
        n: the event with which it came.
        how: appended by a leader, copied from one, or found at recovery.
        source: the node that it was copied from.
        place: file, first byte and end of it; None where the trace does not say.
        cut: how it went; None while it is there.
    """

    base: int
    end: int
    epoch: int | None
    n: int
    how: How
    source: str | None = None
    place: tuple[str, int, int] | None = None
    cut: Cut | None = None

    @property
    def until(self) -> int:
        """The event with which it went."""
        return FOREVER if self.cut is None else self.cut.n


@frozen
class Role:
    """What a replica is.

    Attributes:
        name: leader, follower, waiting, quarantined.
        leader: the leader's name, if told.
        log_end: of its log when it took the role, if told.
    """

    n: int
    name: str
    leader_epoch: int
    leader: str | None
    log_end: int | None


@define(eq=False)
class Replica:
    """One copy of one partition.

    Attributes:
        since: the first event that names it.
        pieces: all that it ever held, in the order in which it came.
        alive: those of them that it has now, by offset.
        cuts: all that went.
        roles, high_watermarks, log_starts, log_ends: over time.
    """

    node: str
    partition: str
    since: int
    pieces: list[Piece] = field(factory=list)
    alive: list[Piece] = field(factory=list)
    cuts: list[Cut] = field(factory=list)
    roles: Series[Role] = field(factory=Series)
    high_watermarks: Series[int] = field(factory=Series)
    log_starts: Series[int] = field(factory=Series)
    log_ends: Series[int] = field(factory=Series)

    def held(self, base: int, end: int, epoch: int | None) -> list[Piece]:
        """What it ever held of a range, of one epoch; of any where ``epoch`` is None."""
        return [
            piece
            for piece in self.pieces
            if piece.base < end and base < piece.end and epoch in (None, piece.epoch)
        ]

    def had(self, offset: int, epoch: int | None, n: int) -> Piece | None:
        """The part in which it had an offset behind event ``n``."""
        for piece in reversed(self.pieces):
            if piece.base <= offset < piece.end and piece.n <= n < piece.until:
                if epoch in (None, piece.epoch):
                    return piece
        return None


@define(eq=False)
class Node:
    """One node: what it is, and its status over time: up, paused, down, off, stopped."""

    name: str
    statuses: Series[str] = field(factory=Series)
    starts: int = 0
    is_controller: bool = False
    is_broker: bool = False
    is_client: bool = False


class Elected(StrEnum):
    """From where the controller took a leader."""

    ISR = "isr"
    ELR = "elr"
    LAST_KNOWN = "last-known"
    UNCLEAN = "unclean"
    NOBODY = "nobody"


@frozen
class Election:
    """The controller's choice.

    Attributes:
        by: the node that chose.
        kind: with ISR and ELR empty the leader known last may lead, without any permission
            (KIP-966): that is ``LAST_KNOWN``. ``UNCLEAN`` is anybody else outside both.
        elr: eligible leader replicas from then on; None where the trace does not say.
        fenced: node that it fenced with it, if any.
    """

    n: int
    by: str
    partition: str
    leader: str | None
    leader_epoch: int
    kind: Elected
    isr: tuple[str, ...] | None
    elr: tuple[str, ...] | None
    old_leader: str | None
    old_isr: tuple[str, ...] | None
    causes: tuple[int, ...]

    @property
    def is_unclean(self) -> bool:
        """Whether the leader comes from outside ISR and ELR."""
        return self.kind in (Elected.LAST_KNOWN, Elected.UNCLEAN)


@frozen
class Ack:
    """A record that was acknowledged.

    Attributes:
        offset: -1 if the client was not told.
        begun: event with which the application sent it; 0 if not known.
        by: the node that answered, if known.
        epoch: of the leader that had appended it, if known.
    """

    n: int
    client: str
    partition: str
    offset: int
    acks: int
    value: Any
    begun: int
    by: str | None
    epoch: int | None


@define(eq=False)
class Partition:
    """One partition: its copies, its leaders, its acknowledged records.

    Attributes:
        elrs, last_known: eligible leader replicas, and who led last when the ISR emptied, over
            time; a trace of level ``events`` does not say.
    """

    name: str
    replicas: dict[str, Replica] = field(factory=dict)
    leaders: Series[tuple[str | None, int]] = field(factory=Series)
    isrs: Series[tuple[str, ...]] = field(factory=Series)
    elrs: Series[tuple[str, ...]] = field(factory=Series)
    last_known: Series[tuple[str, ...]] = field(factory=Series)
    elections: list[Election] = field(factory=list)
    acks: list[Ack] = field(factory=list)


@define(eq=False)
class Fault:
    """A fault: what it is, when it was active, how often it struck.

    Attributes:
        end: event with which it ended; None while it is active.
        strikes: how many events it made.
    """

    id: str
    kind: str
    target: Any
    args: dict[str, Any]
    node: str
    begin: int
    end: int | None = None
    strikes: int = 0


@define(eq=False)
class Step:
    """A step of the scenario."""

    id: str
    text: str
    begin: int
    end: int | None = None


@frozen
class Finding:
    """A rule that a check found broken."""

    n: int
    check: str
    partition: str | None
    kind: str
    detail: str
    evidence: Any
    causes: tuple[int, ...]


@frozen
class Loss:
    """Records of which the trace itself says that they are lost.

    Attributes:
        spans: leader epoch, first offset and end of each range.
        at: ``serving``, ``leading``, ``acknowledging`` or ``nowhere``.
        culprits: events that are behind it.
        copies: of the first record: node, fate, event.
    """

    n: int
    partition: str
    spans: tuple[tuple[int, int, int], ...]
    count: int
    licence: str
    rule: str
    at: str
    leader: str
    leader_epoch: int | None
    how: str
    is_committed: bool
    culprits: tuple[int, ...]
    copies: tuple[tuple[str, str, int], ...]
