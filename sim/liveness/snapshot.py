"""What recovery is judged by: the cluster at one moment, as plain values.

Left out: how it is taken of a world (``sim.liveness.looking``).
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import frozen

__all__ = ["Culprit", "Node", "Partition", "Replica", "Snapshot", "Wait"]


@frozen
class Culprit:
    """What is to blame for something that is gone for good.

    Attributes:
        text: what it did, as ``b2 lost its power``.
        event: number of the event of its effect; 0 where there is none.
        fault: id of the fault or step; empty where none is known.
    """

    text: str
    event: int = 0
    fault: str = ""

    def __str__(self) -> str:
        by = f", by {self.fault!r}" if self.fault else ""
        return f"{self.text}{by}{f' (#{self.event})' if self.event else ''}"


@frozen(kw_only=True)
class Node:
    """A broker or the controller.

    Attributes:
        status: ``running``, ``paused``, ``down`` or ``off``.
        is_core: whether it was healed.
        is_fenced: by the controller's word; also where it was never registered.
        is_behind: it has not applied all that the controller has committed.
        is_gone: its state will not change any more: outside the core, or it cannot live.
        is_full: its disk has no room for another batch.
        impaired: why others may not reach it, for good; None if they may.
        culprit: of its status, where it does not run.
    """

    name: str
    status: str = "running"
    is_core: bool = True
    is_fenced: bool = False
    is_behind: bool = False
    is_gone: bool = False
    is_full: bool = False
    impaired: Culprit | None = None
    culprit: Culprit | None = None

    @property
    def is_running(self) -> bool:
        return self.status == "running"

    @property
    def is_dead(self) -> bool:
        """It does nothing any more, for certain."""
        return self.is_gone and not self.is_running

    @property
    def is_lost(self) -> bool:
        """Nobody can count on it: it is dead, or a fault stays with it, maybe a light one."""
        return self.is_dead or (self.is_gone and self.impaired is not None)


@frozen(kw_only=True)
class Replica:
    """One replica of a partition.

    Attributes:
        role: ``leader``, ``follower``, ``waiting``, ``quarantined``, or ``none`` where there is no
            process or no replica.
        leader, leader_epoch: whom it follows, and the epoch that it has applied.
        start, high_watermark, end: of its log, -1 where that is not known.
        fetch: state of its fetcher; empty where it has none.
        is_same: its log is that of the leader as far as it goes; None where nobody knows.
        error: why it is quarantined.
        is_salvageable: its good prefix may be kept, once nobody counts on it.
        failed: event at which its fetcher failed, 0 for never.
        misled: where that was by a request, or an answer, that was garbled on its way, its event; 0
            if it was not.
        circles: event since which it cuts its log again and again, 0 if it does not.
        culprit: of its damage, or of what has misled it.
        damages: from which offset to below which one, in order, a log in use cannot be read.
        torn: those of them at which its file is too short, so that a response with them fails as a
            whole; others reach who reads them, who notices.
        hidden: from which offset to below which one no look-up gets, since a header is damaged.
        refused: event at which it last failed to take its role, 0 for never.
    """

    node: str
    role: str = "follower"
    leader: str | None = None
    leader_epoch: int = 0
    start: int = 0
    high_watermark: int = 0
    end: int = 0
    fetch: str = ""
    is_same: bool | None = True
    error: str = ""
    is_salvageable: bool = True
    failed: int = 0
    misled: int = 0
    circles: int = 0
    culprit: Culprit | None = None
    damages: tuple[tuple[int, int], ...] = ()
    torn: tuple[tuple[int, int], ...] = ()
    hidden: tuple[tuple[int, int], ...] = ()
    refused: int = 0

    def damaged_at(self, offset: int = 0) -> int:
        """Where who reads from an offset gets no further; -1 for nowhere.

        A position may lie within a batch: a log's start does, and a consumer's.
        """
        return next((max(start, offset) for start, end in self.damages if offset < end), -1)

    def is_hidden(self, offset: int) -> bool:
        """Whether who asks for an offset gets an error."""
        return any(start <= offset < end for start, end in self.hidden)


@frozen(kw_only=True)
class Partition:
    """A partition, by the controller's word and by its replicas.

    Attributes:
        min_isr: effective: at most the number of replicas.
        is_led: the leader is alive, has applied its epoch and serves.
        proposed: an ISR that the leader has asked for and has no answer to.
        probe: what came of the acks=all write: empty for not asked, ``waiting``, ``acked``,
            ``rejected`` or ``unknown``; ``probe_error`` is its error.
        read_end: the final reader's position; None before there is one.
        changed_us: when one of its epochs last changed, 0 for not since the first look.
    """

    name: str
    replicas: tuple[str, ...]
    isr: tuple[str, ...]
    leader: str | None
    leader_epoch: int = 0
    partition_epoch: int = 0
    elr: tuple[str, ...] = ()
    last_known_elr: tuple[str, ...] = ()
    adding: tuple[str, ...] = ()
    removing: tuple[str, ...] = ()
    min_isr: int = 1
    is_unclean_allowed: bool = False
    is_led: bool = True
    proposed: tuple[str, ...] | None = None
    logs: tuple[Replica, ...] = ()
    probe: str = ""
    probe_error: str = ""
    read_end: int | None = None
    changed_us: int = 0

    @property
    def goal(self) -> tuple[str, ...]:
        """The replicas that a reassignment leads to, all of which must be in sync at its end."""
        return tuple(name for name in self.replicas if name not in self.removing)

    @property
    def is_reassigned(self) -> bool:
        """Whether a reassignment is under way."""
        return bool(self.adding or self.removing)

    def log(self, node: str) -> Replica | None:
        """The replica at a node."""
        return next((each for each in self.logs if each.node == node), None)


@frozen(kw_only=True)
class Wait:
    """Something that a client has asked for and has no end of.

    Attributes:
        what: ``produce``, ``consume`` or ``request``.
        partition: empty where it is about none.
        at: who has the request; empty while nobody has.
        offset: the high watermark that a ``produce`` needs there, the position of a ``consume``;
            -1 where it is not known.
        since: its event, 0 where it is not known.
        text: of a ``request``.
        needs: how many of whom must be active, for a ``request`` to be answered.
    """

    client: str
    what: str
    partition: str = ""
    at: str = ""
    offset: int = -1
    since: int = 0
    text: str = ""
    needs: tuple[tuple[int, tuple[str, ...]], ...] = ()


@frozen(kw_only=True)
class Snapshot:
    """The cluster at one moment.

    Attributes:
        t_us: virtual time.
        changed_us: when it was first looked at, or a partition last went away.
        stable_us: how long epochs must have stood still.
        is_loaded: workloads write, so followers are always a little behind.
        waits: open operations, oldest first.
        unanswered: records that producers were given and know no outcome of.
        busy_us: how long lanes, disks and links still have to do with what they were given.
    """

    t_us: int = 0
    changed_us: int = 0
    stable_us: int = 0
    is_loaded: bool = False
    nodes: tuple[Node, ...] = ()
    partitions: tuple[Partition, ...] = ()
    waits: tuple[Wait, ...] = ()
    unanswered: int = 0
    busy_us: int = 0

    def node(self, name: str) -> Node:
        """A node by name.

        Raises:
            KeyError: there is none.
        """
        for each in self.nodes:
            if each.name == name:
                return each
        raise KeyError(name)

    @property
    def controller(self) -> Node:
        return self.nodes[0]

    def usable(self, partition: Partition) -> tuple[str, ...]:
        """The replicas that can be in sync with the leader, now or later, in their order.

        A replica that is being removed need not be.
        """
        found = self._sound(partition, partition.goal)
        return tuple(name for name in found if not self.node(name).is_lost)

    def thinkable(self, partition: Partition) -> tuple[str, ...]:
        """Those of whom it is not certain that they cannot: the usable ones, and maybe more.

        A replica that is being removed may be in sync for as long as the reassignment takes.
        """
        found = self._sound(partition, partition.replicas)
        return tuple(name for name in found if not self.node(name).is_dead)

    def _sound(self, partition: Partition, names: Sequence[str]) -> list[str]:
        logs = [(name, partition.log(name)) for name in names]
        return [
            name
            for name, log in logs
            if log is None or log.role != "quarantined" or log.is_salvageable
        ]

    def expected(self, partition: Partition) -> tuple[str, ...]:
        """Those of ``usable`` that must be in sync: core brokers; nobody where the lead is lost."""
        leader = partition.leader
        if leader is None or self.node(leader).is_lost:
            return ()
        return tuple(name for name in self.usable(partition) if self.node(name).is_core)
