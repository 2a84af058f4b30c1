"""One replica of a partition on a broker: its log, its role, and its high watermark.

What belongs to one role lives in that role's object and goes with it. ``TRANSITIONS`` is the one
table of moves; ``Replica.move`` is the one place that makes them.

Left out: what leads to a move (``cluster.applying``), serving clients (``cluster.serving``) and
fetching (``cluster.fetcher``).
"""

from __future__ import annotations

from collections import deque
from enum import Enum
from typing import Final

from attrs import define, field

from cluster.config import TopicConfig
from cluster.errors import ProtocolBug
from cluster.isr import CaughtUp, IsrState
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, NO_OFFSET, TopicIdPartition
from cluster.parked import DeleteWaiter, Waiters
from cluster.records import PartitionRecord
from storage.errors import NotTruncatable, StorageError
from storage.partition_log import PartitionLog

__all__ = [
    "TRANSITIONS",
    "Event",
    "Follower",
    "Leader",
    "Quarantined",
    "RemoteReplica",
    "Replica",
    "Role",
    "Waiting",
]


HIDDEN_MAX = 10_000


class Event(Enum):
    """What moves a replica."""

    LEAD = "the metadata names this broker leader"
    FOLLOW = "the metadata names another leader"
    WAIT = "the metadata names no leader"
    DAMAGE = "the log refuses to open"
    SALVAGE = "the log was cut to its good prefix"


@define(eq=False)
class RemoteReplica:
    """What a leader knows of one follower.

    Attributes:
        leo: the offset of its last fetch that was served, -1 if unknown.
        log_start_offset: its own, -1 if unknown.
        broker_epoch: of that fetch, -1 if it named none.
        caught_up: when it last had everything.
    """

    leo: int = NO_OFFSET
    log_start_offset: int = NO_OFFSET
    broker_epoch: int = NO_BROKER_EPOCH
    caught_up: CaughtUp = field(factory=CaughtUp)


class Role:
    """Root of the roles."""

    name: str = "none"


@define(eq=False)
class Leader(Role):
    """This broker leads.

    Attributes:
        leader_epoch: under which it appends.
        leader_epoch_start: the log's end when the epoch began here.
        isr: committed and proposed.
        followers: every assigned replica but this one.
        produces: requests that wait for the high watermark.
        synced_produces: requests with acks 1 that wait for the leader's own flush.
        deletes: deletions that wait for the log starts of the followers.
        shown: the high watermark when consumers that wait were last looked at, -1 for never.
        hidden: next offset and bytes of each append above it, as far as ``sized_from``.
        sized_from: what lies below was not appended by this leadership, or was too much to note.
    """

    name = "leader"
    leader_epoch: int
    leader_epoch_start: int
    isr: IsrState
    followers: dict[str, RemoteReplica]
    produces: Waiters = field(factory=Waiters)
    synced_produces: Waiters = field(factory=Waiters)
    deletes: list[DeleteWaiter] = field(factory=list)
    shown: int = NO_OFFSET
    hidden: deque[tuple[int, int]] = field(factory=deque)
    sized_from: int = field(init=False)
    is_recovering: bool = False

    def __attrs_post_init__(self) -> None:
        self.sized_from = self.leader_epoch_start

    def note_append(self, next_offset: int, size_bytes: int) -> None:
        """Note what consumers that wait for bytes will see once it is committed."""
        if len(self.hidden) >= HIDDEN_MAX:
            self.hidden.clear()
            self.sized_from = next_offset
        else:
            self.hidden.append((next_offset, size_bytes))

    def show(self, high_watermark: int) -> int | None:
        """Consumers may read so far: how many bytes that adds, None where it is not known."""
        size = 0
        while self.hidden and self.hidden[0][0] <= high_watermark:
            size += self.hidden.popleft()[1]
        before, self.shown = self.shown, high_watermark
        return None if before < self.sized_from else size


@define(eq=False)
class Follower(Role):
    """Another broker leads."""

    name = "follower"
    leader: str
    leader_epoch: int


@define(eq=False)
class Waiting(Role):
    """No leader is known: before the first metadata, and while there is none."""

    name = "waiting"


@define(eq=False)
class Quarantined(Role):
    """The log refused to open with ``error``; it serves nobody until it is salvaged."""

    name = "quarantined"
    error: StorageError


TRANSITIONS: Final[dict[tuple[type[Role], Event], type[Role]]] = {
    (Waiting, Event.LEAD): Leader,
    (Waiting, Event.FOLLOW): Follower,
    (Waiting, Event.WAIT): Waiting,
    (Waiting, Event.DAMAGE): Quarantined,
    (Leader, Event.LEAD): Leader,
    (Leader, Event.FOLLOW): Follower,
    (Leader, Event.WAIT): Waiting,
    (Follower, Event.LEAD): Leader,
    (Follower, Event.FOLLOW): Follower,
    (Follower, Event.WAIT): Waiting,
    (Quarantined, Event.SALVAGE): Waiting,
}
"""Role and event to the next role. What is not here cannot happen: a quarantined log leads and
follows nobody, and a log that is open does not refuse to open."""


@define(eq=False)
class Replica:
    """One partition on this broker.

    Attributes:
        log: None in quarantine.
        state: the partition's record as last applied, None before the first.
        high_watermark: exclusive end of what is known to be committed; on a follower it trails,
            and may fall (PROTOCOL A3).
        config: the topic's.
        unflushed_from: where the records begin that no flush covers (``flush.messages``).
        flushes: flushes under way that an answer or a fetch waits for, by token id: from which
            offset on each counts.
    """

    partition: TopicIdPartition
    log: PartitionLog | None
    role: Role
    config: TopicConfig
    high_watermark: int = 0
    state: PartitionRecord | None = None
    unflushed_from: int = 0
    flushes: dict[int, int] = field(factory=dict)

    @property
    def opened(self) -> PartitionLog:
        """The log of a replica that is not in quarantine."""
        if self.log is None:
            raise ProtocolBug(f"{self.partition} is in quarantine and was asked for its log")
        return self.log

    @property
    def synced_end(self) -> int:
        """The end of what an answer may count as stored here: what no flush under way is for."""
        leo = self.opened.leo
        return min(leo, *self.flushes.values()) if self.flushes else leo

    @property
    def leader_epoch(self) -> int:
        """As last applied, -1 before the first metadata."""
        return NO_EPOCH if self.state is None else self.state.leader_epoch

    @property
    def partition_epoch(self) -> int:
        """As last applied, -1 before the first metadata."""
        return NO_EPOCH if self.state is None else self.state.partition_epoch

    @property
    def leading(self) -> Leader | None:
        """The leader's role, if it has it."""
        return self.role if isinstance(self.role, Leader) else None

    def move(self, event: Event, role: Role) -> None:
        """Take another role, as ``TRANSITIONS`` allows."""
        wanted = TRANSITIONS.get((type(self.role), event))
        if wanted is not type(role):
            raise ProtocolBug(
                f"{self.partition}: {self.role.name} and {event.name} do not lead to {role.name}"
            )
        self.role = role

    def clamp_high_watermark(self) -> None:
        """Keep log start <= high watermark <= log end (I14)."""
        log = self.opened
        self.high_watermark = max(log.log_start_offset, min(self.high_watermark, log.leo))

    def truncate(self, offset: int) -> int:
        """Cut the log to ``offset``, or to the batch that holds it; returns where it ends.

        Raises ``DiskError`` and other ``StorageError`` as ``PartitionLog.truncate_to`` does.
        """
        log = self.opened
        try:
            log.truncate_to(offset)
        except NotTruncatable:
            if offset < log.log_start_offset:
                # The batch is hidden, and everything visible goes.
                log.truncate_fully_and_start_at(offset)
                self.unflushed_from = min(self.unflushed_from, offset)
                self.clamp_high_watermark()
                return offset
            base = log.read_batches(offset, 1)[0].base_offset
            assert base is not None, "a stored batch has offsets"
            log.truncate_to(base)
        self.unflushed_from = min(self.unflushed_from, log.leo)
        self.clamp_high_watermark()
        return log.leo

    def restart_at(self, offset: int) -> None:
        """Drop everything and begin, empty, at ``offset``."""
        self.opened.truncate_fully_and_start_at(offset)
        self.high_watermark = self.unflushed_from = offset
