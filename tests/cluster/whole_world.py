"""A whole cluster that a history drives: every step is a name and plain values, so it can be kept.

``World.do("kill", "b1")`` makes one step, then every check. Steps are total: what does not apply
does nothing, so a history stays one when steps are taken out of it. ``World.script`` has them all,
and ``replay`` makes them again.

Left out: the checks (``tests.cluster.whole_watch``), and how a history ends
(``tests.cluster.whole_end``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from attrs import frozen

from cluster.broker import Broker
from cluster.config import BrokerConfig, ConsumerConfig, ControllerConfig, ProducerConfig
from cluster.consumer import Consumer
from cluster.consumer_events import ConsumerEvent, PolledRecord
from cluster.controller import Controller
from cluster.effects import Effect, Effects
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_control import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    CreateTopicsRequest,
    CreateTopicsTopic,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from cluster.messages_data import DeleteRecordsPartition, DeleteRecordsRequest
from cluster.names import TopicIdPartition
from cluster.outcomes import Outcome
from cluster.producer import Producer
from cluster.records import PartitionRecord
from cluster.truncation import TruncationMode
from sim.disks import SimDisk
from sim.draws import Draws
from storage.batch import Record
from storage.memdisk import MemDisk
from tests.cluster.whole_ledger import Broken
from tests.cluster.whole_net import Net
from tests.cluster.whole_watch import Watch

BROKERS = ("b1", "b2", "b3", "b4")
TOPIC = "orders"
PRODUCERS = {
    "p1": ProducerConfig(request_timeout_ms=5_000, delivery_timeout_ms=20_000),
    "p2": ProducerConfig(
        request_timeout_ms=2_000, delivery_timeout_ms=8_000, batch_max_records=2, linger_ms=5
    ),
    "p3": ProducerConfig(
        enable_idempotence=False, request_timeout_ms=3_000, delivery_timeout_ms=12_000
    ),
    "p4": ProducerConfig(
        acks=1, enable_idempotence=False, request_timeout_ms=3_000, delivery_timeout_ms=12_000
    ),
    "p5": ProducerConfig(acks=0, enable_idempotence=False),
}
"""p1 and p2 are idempotent; p3 asks for all, p4 for the leader alone, p5 for no answer."""

ALL_GUARDS = Guards()

Step = tuple[Any, ...]
Script = Sequence[Step]


@frozen(kw_only=True)
class Setup:
    """What a history begins with.

    Attributes:
        disk: ``mem``, or a simulated disk with this mode of names.
        topic: configuration of the topic, as Kafka spells it.
        brokers: how many of ``BROKERS``.
        is_bounded: power cuts are refused where a promise could fall with them (FAULTS D.4).
    """

    disk: Literal["mem", "ext4", "posix"] = "mem"
    topic: tuple[tuple[str, str], ...] = (("min.insync.replicas", "2"),)
    brokers: int = 4
    partitions: int = 1
    copies: int = 3
    elr: bool = False
    truncation: TruncationMode = TruncationMode.FETCH
    fetch_bytes: int = 1 << 20
    snapshot_records: int = 0
    lag_ms: int = 10_000
    is_bounded: bool = True
    guards: Guards = ALL_GUARDS

    @property
    def config(self) -> dict[str, str]:
        return dict(self.topic)


def broker_config(setup: Setup) -> BrokerConfig:
    return BrokerConfig(
        replica_lag_time_max_ms=setup.lag_ms,
        request_timeout_ms=8_000,
        log_retention_check_interval_ms=15_000,
        log_cleaner_backoff_ms=10_000,
        flush_offset_checkpoint_interval_ms=20_000,
        eligible_leader_replicas=setup.elr,
        truncation=setup.truncation,
        replica_fetch_max_bytes=setup.fetch_bytes,
    )


class World:
    """See the module."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.names = BROKERS[: setup.brokers]
        self.net = Net()
        safe = setup.truncation in (TruncationMode.FETCH, TruncationMode.KIP_279)
        self.watch = Watch(self.net, eligible_leader_replicas=setup.elr, truncation_is_safe=safe)
        self.net.watch = self._watched
        self.net.on_power_cut = self._power_failed
        self.fuses: dict[str, tuple[int, str]] = {}
        self._burnt: dict[str, int] = {}
        self.script: list[Step] = []
        self.starts: dict[str, int] = {}
        self.unclean: set[str] = set()
        self.sent: dict[tuple[str, int], tuple[bytes, int]] = {}
        self.outcomes: dict[tuple[str, int], Outcome] = {}
        self.polled: list[PolledRecord] = []
        self.events: list[ConsumerEvent] = []
        self._numbers = 0
        self._mem = {name: MemDisk() for name in ("c1", *self.names)}
        self._sim: dict[str, SimDisk] = {}
        if setup.disk != "mem":
            for number, (name, disk) in enumerate(self._mem.items()):
                self._sim[name] = SimDisk(
                    disk, Path("/") / name, Draws(number), name=name, names_mode=setup.disk
                )
        for name in ("c1", *self.names):
            self._start(name)
        self.net.run_for(3_000)
        self._create()
        self._clients()
        self.net.run_for(1_000)
        self._after()

    # Nodes -------------------------------------------------------------------------------------

    def _start(self, name: str) -> None:
        incarnation = self.starts.get(name, 0)
        self.starts[name] = incarnation + 1
        setup, disk = self.setup, self._sim.get(name) or self._mem[name]
        path = Path("/" if self._sim else f"/{name}") / "data"
        if not self._sim and incarnation == 0:
            disk.mkdir(path.parent)
        machine: Controller | Broker
        if name == "c1":
            controller = ControllerConfig(
                eligible_leader_replicas=setup.elr,
                metadata_snapshot_records=setup.snapshot_records,
                leader_imbalance_check_interval_ms=0,
            )
            machine = Controller(
                name, controller, disk, path, guards=setup.guards, incarnation=incarnation
            )
        else:
            machine = Broker(
                name,
                broker_config(setup),
                disk,
                path,
                guards=setup.guards,
                incarnation=incarnation,
            )
        self.net.start(name, machine)
        self.net.settle()

    def _end(self, name: str) -> None:
        """The process is gone, its files stay."""
        self.net.drop(name)
        if name in self._sim:
            self._sim[name].kill()
            self._sim[name].disarm_fuse()
            self.fuses.pop(name, None)
        else:
            self._mem[name] = self._mem[name].copy()

    def is_up(self, name: str) -> bool:
        return name in self.net.nodes

    def broker(self, name: str) -> Broker:
        machine = self.net.nodes[name]
        assert isinstance(machine, Broker)
        return machine

    def up(self) -> list[str]:
        return [name for name in self.names if self.is_up(name)]

    # Topic and clients -------------------------------------------------------------------------

    @property
    def topic_id(self) -> str:
        return self.watch.image.topic_ids.get(TOPIC, "")

    def partition(self, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.topic_id, TOPIC, number)

    def state(self, number: int = 0) -> PartitionRecord | None:
        return self.watch.records.get(self.partition(number))

    def ask(self, to: str, message: Message) -> None:
        """A request of the operator; the answer, if there is one, is nobody's concern."""
        if self.is_up(to):
            self.net.queue.append(("admin", to, message))
            self.net.settle()
            self.net.take("admin")

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def _create(self) -> None:
        setup = self.setup
        wanted = CreateTopicsTopic(TOPIC, setup.partitions, setup.copies, configs=setup.topic)
        self.ask("c1", CreateTopicsRequest(self.number(), (wanted,)))

    def _clients(self) -> None:
        for name, config in PRODUCERS.items():
            self.net.start(
                name,
                Producer(
                    name, config, brokers=self.names, controller="c1", guards=self.setup.guards
                ),
            )
        config = ConsumerConfig(
            auto_offset_reset="earliest",
            request_timeout_ms=3_000,
            metadata_max_age_ms=10_000,
            max_poll_records=10_000,
        )
        consumer = Consumer(
            "k1", config, brokers=self.names, controller="c1", guards=self.setup.guards
        )
        self.net.start("k1", consumer)
        numbers = tuple((TOPIC, number) for number in range(self.setup.partitions))
        fx = Effects()
        consumer.assign(self.net.now, fx, numbers)
        self._carry_out("k1", fx)

    def _carry_out(self, name: str, fx: Effects) -> None:
        for effect in fx.drain():
            self.net.carry_out(name, effect)
        self.net.settle()

    def producer(self, name: str) -> Producer:
        machine = self.net.nodes[name]
        assert isinstance(machine, Producer)
        return machine

    @property
    def consumer(self) -> Consumer:
        machine = self.net.nodes["k1"]
        assert isinstance(machine, Consumer)
        return machine

    # Steps -------------------------------------------------------------------------------------

    def do(self, kind: str, *args: Any) -> None:
        """Make a step, then check everything."""
        self.script.append((kind, *args))
        getattr(self, f"_do_{kind}")(*args)
        self._after()

    def replay(self, script: Script) -> None:
        for kind, *args in script:
            self.do(kind, *args)

    def _after(self) -> None:
        self.net.settle()
        for name in ("c1", *self.names):
            # A broker that has stopped in order: the process has ended.
            if not self.is_up(name) and name in self.starts and name not in self._sim:
                self._mem[name] = self._mem[name].copy()
        self.take()
        with self._looking(*self.names):
            self.watch.check()
        self._forgive()

    def take(self) -> None:
        """What clients have to say."""
        for name in PRODUCERS:
            for outcome in self.producer(name).take_outcomes():
                key = name, outcome.operation
                if key in self.outcomes:
                    raise Broken("outcome", f"{key} ends twice: {self.outcomes[key]}, {outcome}")
                self.outcomes[key] = outcome
        self.events += self.consumer.take_events()
        self.polled += self.consumer.poll()

    def _forgive(self) -> None:
        """Who is in every ISR again has everything: its unclean end is forgotten (FAULTS D.4)."""
        for name in list(self.unclean):
            mine = [r for r in self.watch.records.values() if name in r.replicas]
            if self.is_up(name) and all(
                name in record.isr and self.watch.is_legitimate(record.leader or "", p)
                for p, record in self.watch.records.items()
                if record in mine
            ):
                self.unclean.discard(name)

    def _do_send(self, producer: str, partition: int, count: int) -> None:
        now, fx = self.net.now, Effects()
        machine = self.producer(producer)
        for _ in range(count):
            number = self.number()
            value, key = b"%s-%d" % (producer.encode(), number), b"k%d" % (number % 3)
            target = partition % self.setup.partitions
            record = Record(key, value, now.wall_ms)
            operation = machine.send(now, fx, TOPIC, record, partition=target)
            self.sent[producer, operation] = value, target
        self._carry_out(producer, fx)
        # A batch that is not full leaves when its timer is due, which is now.
        self.net.run_for(0)

    def _do_wait(self, duration_ms: int) -> None:
        self.net.run_for(duration_ms)

    def _do_kill(self, name: str) -> None:
        if self.is_up(name) and self._may_end(name):
            self._end(name)

    def _do_start(self, name: str) -> None:
        if not self.is_up(name):
            self._start(name)

    def _do_stop(self, name: str) -> None:
        if self.is_up(name) and name != "c1":
            self.net.call(name, "on_stop")

    def _may_end(self, name: str) -> bool:
        """Whether an end that is not in order, or one that loses, is within the limits."""
        if name == "c1" or self.setup.disk == "mem" or not self.setup.is_bounded:
            return True
        if self.setup.config.get("flush.messages") == "1":
            return True
        if not self.unclean <= {name}:
            return False
        self.unclean.add(name)
        return True

    def _do_power(self, name: str, mode: str) -> None:
        """The power of a host goes off; what its disk keeps is drawn in a mode."""
        if name not in self._sim or not self._may_end(name):
            return
        self.fuses[name] = 0, mode
        self._power_failed(name)

    def _do_fuse(self, name: str, calls: int, mode: str) -> None:
        """The power goes off inside one of the next calls of its disk, wherever that is."""
        if name in self._sim and self._may_end(name):
            self.fuses[name] = calls, mode
            self._burnt[name] = self._sim[name].call_count
            self._sim[name].arm_fuse(calls)

    def _do_no_fuses(self) -> None:
        for name in list(self.fuses):
            self._sim[name].disarm_fuse()
            del self.fuses[name]

    def _power_failed(self, name: str) -> None:
        _, mode = self.fuses.pop(name)
        self.net.drop(name)
        self._sim[name].power_cut(mode=mode)
        if name != "c1":
            self.watch.note_power_cut(name, is_bounded=self.setup.is_bounded)

    def _watched(
        self, name: str, handler: str, args: tuple[Any, ...], effects: list[Effect]
    ) -> None:
        with self._looking(name):
            self.watch.after(name, handler, args, effects)

    @contextmanager
    def _looking(self, *names: str) -> Iterator[None]:
        """What the watch reads of a disk burns no fuse."""
        names = tuple(name for name in names if name in self.fuses)
        for name in names:
            calls, mode = self.fuses[name]
            disk = self._sim[name]
            self.fuses[name] = max(1, calls - disk.call_count + self._burnt[name]), mode
            disk.disarm_fuse()
        yield
        for name in names:
            self._sim[name].arm_fuse(self.fuses[name][0])
            self._burnt[name] = self._sim[name].call_count

    # Links and disks ---------------------------------------------------------------------------

    def _do_hold(self, src: str, dst: str) -> None:
        self.net.held_ways.add((src, dst))

    def _do_cut(self, one: str, other: str) -> None:
        self.net.held_ways |= {(one, other), (other, one)}

    def _do_stepwise(self) -> None:
        """Nothing passes between brokers but what is let through."""
        for name in self.names:
            for other in self.names:
                if name < other:
                    self._do_cut(name, other)

    def _do_isolate(self, name: str) -> None:
        for other in ("c1", *self.names):
            if other != name:
                self._do_cut(name, other)

    def _do_let(self, src: str, dst: str, count: int) -> None:
        self.net.let_through(src, dst, count)

    def _do_release(self, src: str, dst: str) -> None:
        self.net.let_go((src, dst))

    def _do_heal(self) -> None:
        self.net.let_go()

    def _do_reset(self, one: str, other: str) -> None:
        self.net.reset(one, other)

    def _do_slow(self, name: str, kind: str) -> None:
        self.net.slow.add((name, kind))

    def _do_work(self, name: str, count: int) -> None:
        self.net.work(name, count)

    def _do_fast(self, name: str) -> None:
        self.net.slow -= {(name, "fsync"), (name, "background")}
        while any(each[0] == name for each in self.net.held):
            self.net.work(name, 1_000)

    def _do_yield(self, name: str, point: str) -> None:
        self.net.yields[name] = (point,)

    def _do_resume(self) -> None:
        self.net.yields.clear()
        self.net.resume()
        self.net.settle()

    # The operator ------------------------------------------------------------------------------

    def _do_prefer(self) -> None:
        partitions = tuple(self.watch.records)
        self.ask("c1", ElectLeadersRequest(self.number(), ElectionType.PREFERRED, partitions))

    def _do_reassign(self, partition: int, replicas: str) -> None:
        """``"b1 b2 b4"``, or ``""`` to take a reassignment back."""
        wanted = tuple(replicas.split()) or None
        change = Reassignment(self.partition(partition % self.setup.partitions), wanted)
        self.ask("c1", AlterPartitionReassignmentsRequest(self.number(), (change,)))

    def _do_delete(self, partition: int, quarters: int) -> None:
        """Delete a part of what is committed; with more than 4, all that the leader has."""
        state = self.state(partition % self.setup.partitions)
        if state is None or state.leader is None or not self.is_up(state.leader):
            return
        copy = self.watch.copies.get((state.leader, state.partition))
        if copy is not None:
            offset = copy.marks.high_watermark * quarters // 4
            if quarters > 4:
                offset = copy.marks.leo
            asked = DeleteRecordsPartition(state.partition, offset)
            self.ask(state.leader, DeleteRecordsRequest(self.number(), 1_000, (asked,)))

    def _do_min_isr(self, value: int) -> None:
        self._do_config("min.insync.replicas", str(value))

    def _do_config(self, name: str, value: str) -> None:
        change = ConfigChange(True, TOPIC, name, value)
        self.ask("c1", AlterConfigsRequest(self.number(), (change,)))

    def _do_recreate(self) -> None:
        self.ask("c1", DeleteTopicsRequest(self.number(), (TOPIC,)))
        self._create()

    # Looking -----------------------------------------------------------------------------------

    def draw(self) -> str:
        """Every partition and every log in a line each."""
        lines = []
        for partition, record in self.watch.records.items():
            lines.append(
                f"{partition.topic}-{partition.partition} {record.leader}@{record.leader_epoch} "
                f"isr {record.isr} elr {record.elr} of {record.replicas} ~{record.partition_epoch}"
            )
            for (name, other), copy in sorted(self.watch.copies.items()):
                if other == partition and not self.is_up(name):
                    lines.append(f"  {name} {tuple(copy.marks)} is down")
                elif other == partition:
                    fields = self.broker(name).fields()
                    state = fields.get(f"{partition}/fetch_state", "")
                    epochs = fields.get(f"{partition}/epochs", "")
                    lines.append(f"  {name} {tuple(copy.marks)} {state} {epochs}")
        return "\n".join(lines)
