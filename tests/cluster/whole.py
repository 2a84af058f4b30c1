"""A whole cluster over the lossless router: one controller, brokers, clients, all of them real."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

from cluster.broker import Broker
from cluster.config import BrokerConfig, ConsumerConfig, ControllerConfig, ProducerConfig
from cluster.consumer import Consumer
from cluster.controller import Controller
from cluster.effects import Effects
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages_control import CreateTopicsRequest, CreateTopicsTopic
from cluster.names import TopicIdPartition
from cluster.outcomes import Outcome
from cluster.producer import Producer
from cluster.records import PartitionRecord
from cluster.replica import Replica
from storage.batch import Record
from storage.disk import Disk, FileKind
from storage.memdisk import MemDisk
from tests.cluster.router import Router

_T = TypeVar("_T")


class Whole:
    """Brokers ``b1..bn``, the controller ``c1``, and clients that a test adds."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        config: BrokerConfig | None = None,
        controller: ControllerConfig | None = None,
        guards: Guards | None = None,
    ) -> None:
        self.router = Router()
        self.config = config or BrokerConfig()
        self.controller_config = controller or ControllerConfig()
        self.guards = guards or Guards()
        self.names = tuple(f"b{number}" for number in range(1, brokers + 1))
        self.disks = {name: MemDisk() for name in ("c1", *self.names)}
        self.starts = dict.fromkeys(self.disks, 0)
        self._numbers = 0
        for name in ("c1", *self.names):
            self.start(name)
        self.router.run_for(3_000)

    # Nodes -------------------------------------------------------------------------------------

    def start(self, name: str) -> None:
        """Start a node on its disk, as a new incarnation."""
        incarnation = self.starts[name]
        self.starts[name] += 1
        path, disk = Path("/") / name, self.disks[name]
        if name == "c1":
            machine: Controller | Broker = Controller(
                name,
                self.controller_config,
                disk,
                path,
                guards=self.guards,
                incarnation=incarnation,
            )
        else:
            machine = Broker(
                name, self.config, disk, path, guards=self.guards, incarnation=incarnation
            )
        self.router.start(name, machine)
        self.router.settle()

    def kill(self, *names: str) -> None:
        """End processes: their files stay as they are."""
        for name in names:
            self.router.drop(name)
            self.disks[name] = self.disks[name].copy()
        self.router.settle()

    def stop(self, name: str, *, within_ms: int = 40_000) -> None:
        """Stop a broker in order."""
        self.router.call(name, "on_stop")
        self.router.run_for(within_ms)
        assert name in self.router.stopped
        self.kill(name)

    @property
    def controller(self) -> Controller:
        machine = self.router.nodes["c1"]
        assert isinstance(machine, Controller)
        return machine

    def broker(self, name: str) -> Broker:
        machine = self.router.nodes[name]
        assert isinstance(machine, Broker)
        return machine

    # Topics ------------------------------------------------------------------------------------

    def ask(self, to: str, message: Message, *, client: str = "admin") -> Message:
        """Send a request of the operator and return its answer."""
        self.router.queue.append((client, to, message))
        self.router.settle()
        for _, answer in self.router.take(client):
            if answer.correlation_id == message.correlation_id:
                return answer
        raise AssertionError(f"no answer to {message}")

    def number(self) -> int:
        self._numbers += 1
        return self._numbers

    def create_topic(
        self, topic: str = "orders", *, partitions: int = 1, copies: int = 3, **configs: str
    ) -> None:
        values = tuple((name.replace("_", "."), value) for name, value in configs.items())
        wanted = CreateTopicsTopic(topic, partitions, copies, configs=values)
        self.ask("c1", CreateTopicsRequest(self.number(), (wanted,)))
        self.router.run_for(100)

    def partition(self, topic: str = "orders", number: int = 0) -> TopicIdPartition:
        return TopicIdPartition(self.controller.image.topic_ids[topic], topic, number)

    def state(self, topic: str = "orders", number: int = 0) -> PartitionRecord:
        found = self.controller.image.partition(self.partition(topic, number))
        assert found is not None
        return found

    def replica(self, name: str, topic: str = "orders", number: int = 0) -> Replica:
        return self.broker(name).core.replicas[self.partition(topic, number)]

    # Clients -----------------------------------------------------------------------------------

    def client(self, name: str, call: Callable[[Effects], _T]) -> _T:
        """Call a client's method that takes a collector, and deliver what follows."""
        fx = Effects()
        result = call(fx)
        for effect in fx.drain():
            self.router.carry_out(name, effect)
        self.router.settle()
        return result

    def producer(self, name: str = "p1", config: ProducerConfig | None = None) -> Producer:
        machine = Producer(
            name,
            config or ProducerConfig(),
            brokers=self.names,
            controller="c1",
            guards=self.guards,
        )
        self.router.start(name, machine)
        return machine

    def consumer(self, name: str = "k1", config: ConsumerConfig | None = None) -> Consumer:
        machine = Consumer(
            name,
            config or ConsumerConfig(auto_offset_reset="earliest"),
            brokers=self.names,
            controller="c1",
            guards=self.guards,
        )
        self.router.start(name, machine)
        self.client(name, lambda fx: machine.assign(self.router.now, fx, (("orders", 0),)))
        return machine

    def send(self, producer: Producer, *values: bytes, partition: int = 0) -> list[int]:
        """Send records at once; returns the operations."""
        now = self.router.now

        def each(fx: Effects) -> list[int]:
            records = [Record(None, value, now.wall_ms) for value in values]
            return [producer.send(now, fx, "orders", r, partition=partition) for r in records]

        return self.client(producer.name, each)

    def outcomes(self, producer: Producer, count: int, within_ms: int = 60_000) -> list[Outcome]:
        """Wait for outcomes."""
        found = producer.take_outcomes()
        for _ in range(within_ms // 500):
            if len(found) >= count:
                return found
            self.router.run_for(500)
            found += producer.take_outcomes()
        raise AssertionError(f"{len(found)} of {count} outcomes after {within_ms} ms")

    def values(self, name: str, topic: str = "orders", number: int = 0) -> list[bytes]:
        """The values in a broker's log, in order."""
        log = self.replica(name, topic, number).opened
        return [record.value or b"" for record in log.fetch(log.log_start_offset, 1 << 20)]


def files_below(disk: Disk, directory: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file and its bytes, in the order of names."""
    for name in disk.listdir(directory):
        path = directory / name
        if disk.stat(path).kind is FileKind.DIRECTORY:
            yield from files_below(disk, path)
        else:
            file = disk.open(path, write=False)
            yield path, file.read_at(0, file.size())
            file.close()
