"""Logs that differ, built by brokers that do not hear of each other, and how logs compare.

``History`` is a ``Cluster`` in which metadata reaches only the brokers that a test names: who is
not told goes on as before, as a broker does behind a cut network. So a log of any epochs is built
by naming its broker leader of each epoch in turn, out of sight of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby, pairwise

from cluster.broker import Broker
from cluster.config import BrokerConfig
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_data import FetchResponse
from cluster.records import PartitionRecord
from cluster.replica import Follower, Replica
from cluster.truncation import TruncationMode
from storage.mkb1 import MKB1
from tests.cluster.scripted import ORDERS, Cluster

MODES = tuple(TruncationMode)
EPOCH_MODES = (TruncationMode.FETCH, TruncationMode.KIP_279)
"""The modes that end in equal logs whatever the logs were."""


class History(Cluster):
    """A cluster whose links and whose controller a test holds back.

    Attributes:
        cut: pairs of nodes between which messages are held (``heal`` delivers them).
        holds: what else is held, by source, destination and message.
    """

    def __init__(
        self,
        brokers: int = 2,
        *,
        mode: TruncationMode = TruncationMode.FETCH,
        config: BrokerConfig | None = None,
        guards: Guards | None = None,
        topic: dict[str, str] | None = None,
    ) -> None:
        super().__init__(
            brokers,
            config=config or BrokerConfig(truncation=mode),
            guards=guards,
            topic=topic,
        )
        self.cut: set[frozenset[str]] = set()
        self.holds: Callable[[str, str, Message], bool] = lambda src, dst, message: False
        self.router.is_held = self._is_held

    def _is_held(self, src: str, dst: str, message: Message) -> bool:
        return frozenset((src, dst)) in self.cut or self.holds(src, dst, message)

    # What nodes hear ---------------------------------------------------------------------------

    def cut_off(self, name: str, *others: str) -> None:
        """Hold what goes between a broker and others (all brokers by default)."""
        for other in others or self.names:
            if other != name:
                self.cut.add(frozenset((name, other)))

    def heal(self, *, but: Callable[[str, str, Message], bool] | None = None) -> None:
        """Deliver what was held, and hold nothing more (``but`` what is named)."""
        self.cut.clear()
        self.holds = but or (lambda src, dst, message: False)
        kept, self.router.kept = self.router.kept, []
        for src, dst, message in kept:
            if self.holds(src, dst, message):
                self.router.kept.append((src, dst, message))
            else:
                self.router.queue.append((src, dst, message))
        self.router.settle()

    def lead_alone(
        self,
        leader: str,
        *,
        epoch: int | None = None,
        isr: Sequence[str] | None = None,
        told: Iterable[str] = (),
    ) -> PartitionRecord:
        """Name a leader and tell only it, and who is ``told``."""
        self.controller.silent_to = set(self.names) - {leader, *told}
        return self.lead(leader, isr or [leader], epoch=epoch)

    def tell(self, *names: str) -> None:
        """Let brokers hear of everything that was decided (all by default)."""
        self.controller.silent_to -= set(names or self.names)
        self.hand_out()

    def tell_for(self, deliveries: int, *names: str) -> None:
        """``tell``, with so many messages at most: where what follows may never end."""
        self.controller.silent_to -= set(names or self.names)
        fx = Effects()
        self.controller.hand_out(self.router.now, fx)
        for effect in fx.drain():
            self.router.carry_out("c1", effect)
        self.router.deliver_up_to(deliveries)

    # Logs --------------------------------------------------------------------------------------

    def build(self, name: str, runs: str) -> None:
        """Append to one broker's log alone: ``"0:5 2:3"`` is five batches of epoch 0, three of 2.

        Nobody copies them before ``heal``. In an epoch that it leads already it goes on.
        """
        self.cut_off(name)
        for run in runs.split():
            epoch, count = (int(part) for part in run.split(":"))
            replica = self.broker(name).core.replicas.get(ORDERS)
            leader = None if replica is None else replica.leading
            if leader is None or leader.leader_epoch != epoch:
                self.lead_alone(name, epoch=epoch)
            self.write(name, count)

    def write(self, name: str, count: int, *, acks: int = 1, mark: bytes = b"") -> list[int]:
        """Produce so many batches of one record, each with a value that no other has."""
        numbers = []
        for _ in range(count):
            value = b"%s@%d" % (mark or name.encode(), self._numbers)
            numbers.append(self.produce(name, value, acks=acks))
        return numbers

    def is_acked(self, number: int) -> bool:
        answer = self.acked(number)
        return answer is not None and answer[0] is ErrorCode.NONE

    def kill(self, name: str) -> None:
        """End a process; what it had sent and was held is lost with its connections."""
        self.router.kept = [each for each in self.router.kept if name not in each[:2]]
        super().kill(name)

    # Looking -----------------------------------------------------------------------------------

    def replica(self, name: str) -> Replica:
        return self.broker(name).core.replicas[ORDERS]

    def draw(self, name: str) -> str:
        """A log as runs of epochs: ``0:0-4 2:5-7 | hw 5 leo 8``."""
        log = self.replica(name).opened
        runs = []
        for epoch, group in groupby(self.log(name), key=lambda record: record[1]):
            offsets = [record[0] for record in group]
            runs.append(f"{epoch}:{offsets[0]}-{offsets[-1]}")
        start = f"start {log.log_start_offset} " if log.log_start_offset else ""
        marks = f"| {start}hw {self.high_watermark(name)} leo {log.leo}"
        return " ".join([*runs, marks])

    def fetch_state(self, name: str) -> str:
        """The state of the copy of ``orders-0``, empty where there is none."""
        return str(self.broker(name).fields().get(f"{ORDERS}/fetch_state", ""))

    def truncations(self, name: str) -> list[tuple[int, int]]:
        """(from, to) of every truncation at a broker, oldest first."""
        return [(args["log_end"], args["offset"]) for args in self.router.noted("truncate", name)]

    def records_from(self, leader: str, follower: str) -> int:
        """How many responses with records went from one broker to another."""
        return sum(
            any(part.records for part in message.partitions)
            for src, dst, message in self.router.delivered
            if (src, dst) == (leader, follower) and isinstance(message, FetchResponse)
        )


# Comparing -------------------------------------------------------------------------------------


def first_difference(history: Cluster, a: str, b: str) -> int | None:
    """The lowest offset that both logs have, and have differently."""
    left, right = history.log(a), history.log(b)
    theirs = {offset: (epoch, value) for offset, epoch, value in right}
    for offset, epoch, value in left:
        if offset in theirs and theirs[offset] != (epoch, value):
            return offset
    return None


def committed_difference(history: Cluster, a: str, b: str) -> int | None:
    """The lowest such offset below both high watermarks (I2)."""
    found = first_difference(history, a, b)
    limit = min(history.high_watermark(a), history.high_watermark(b))
    return found if found is not None and found < limit else None


def is_settled(name: str, replicas: Mapping[str, Replica]) -> bool:
    """Whether a log has been found to fit: a leader, or a follower that its leader counts.

    ``replicas`` are those of the brokers that run, by name.
    """
    replica = replicas[name]
    if replica.leading is not None:
        return True
    role = replica.role
    leader = replicas.get(role.leader) if isinstance(role, Follower) else None
    if leader is None or leader.leading is None:
        return False
    remote = leader.leading.followers.get(name)
    return leader.leader_epoch == replica.leader_epoch and remote is not None and remote.leo >= 0


def has(history: Cluster, name: str, offset: int, epoch: int) -> bool:
    """Whether a record stands at its place in a log."""
    return any(record[:2] == (offset, epoch) for record in history.log(name))


def raw(broker: Broker, start: int | None = None) -> bytes:
    """The frames of a log, byte for byte, from its log start (or ``start``) on."""
    log = broker.core.replicas[ORDERS].opened
    parts = []
    offset = log.log_start_offset if start is None else start
    while offset < log.leo:
        part = log.read_range(offset, 1 << 20)
        at = 0
        while at < len(part):
            size, _, offset, _ = MKB1.hop(part, at)
            at += size
        parts.append(part)
    return b"".join(parts)


def violations(replica: Replica) -> list[str]:
    """What is wrong with one replica: I9 (epochs match batches), I10, I14."""
    found = []
    log = replica.opened
    start, end = log.log_start_offset, log.leo
    if not 0 <= start <= replica.high_watermark <= end:
        found.append(f"I14: start {start}, hw {replica.high_watermark}, leo {end}")
    entries = log.epochs.entries
    for (epoch, offset), (later, further) in pairwise(entries):
        if not (epoch < later and offset < further):
            found.append(f"I9: entries {entries}")
    if entries and entries[-1][1] > end:
        found.append(f"I9: the last entry of {entries} is behind {end}")
    expected = None
    for batch in log.all_batches():
        base = batch.base_offset
        assert base is not None
        if expected is not None and base < expected:
            found.append(f"I10: {base} after {expected}")
        expected = batch.next_offset
        if batch.next_offset > start and batch.records:
            epoch = log.epochs.epoch_for_offset(max(base, start))
            if epoch != batch.leader_epoch:
                found.append(f"I9: batch {base} of {batch.leader_epoch}, cache {entries}")
    return found


def prefix_violation(history: Cluster, a: str, b: str) -> str | None:
    """I3: two logs that hold a batch of one epoch at one offset agree on all before it."""
    left = {offset: (epoch, value) for offset, epoch, value in history.log(a)}
    right = {offset: (epoch, value) for offset, epoch, value in history.log(b)}
    both = sorted(left.keys() & right.keys())
    common = [offset for offset in both if left[offset][0] == right[offset][0]]
    if not common:
        return None
    for offset in both:
        if offset <= common[-1] and left[offset] != right[offset]:
            return f"I3: {a} and {b} agree on {common[-1]} and differ at {offset}"
    return None
