"""What the sim bench measures of ours: the kernel alone, the full protocol, small worlds.

Each is a ``Deliveries``: it goes on until so many more messages have been delivered, and begins
anew, untimed, when it has become large. All traces are at digest level.

Left out: what the figures are compared with (``tests.bench.sim``).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

from cluster.message import Message
from cluster.messages_data import ProducePartition, ProduceRequest
from cluster.names import TopicIdPartition
from cluster.outcomes import OutcomeKind
from sim.disks import SimDisk
from sim.draws import Draws
from sim.latency import NetworkConfig
from sim.network import Network
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World
from storage.batch import Record
from storage.disk import OsDisk
from storage.memdisk import MemDisk
from tests.bench.measure import Subject

__all__ = ["Deliveries", "FullProtocol", "KernelAlone", "SmallWorlds", "kernel_parts"]

NODES = 8
VALUE = b"v" * 100
SEND_EVERY_US = 500
SYNC_EVERY = 40
FILE_BYTES_MAX = 1 << 20
FRESH_MESSAGES = 100_000
PARTITION = TopicIdPartition("A" * 22, "orders", 0)


class Deliveries(Protocol):
    """One subject of a race."""

    def prepare(self, count: int) -> None:
        """Be ready to deliver ``count`` messages."""

    def run(self, count: int) -> None:
        """Go on until ``count`` more messages are delivered."""


# The kernel ------------------------------------------------------------------------------------


class KernelAlone:
    """Nodes without a protocol: each writes what it gets to its disk, and sends it back.

    What a message costs: entries of the timeline, keyed latency, a FIFO link, the events send,
    deliver and write in the digest, 100 bytes to a simulated disk, and a check that finds nothing.
    """

    def __init__(self, in_flight: int, folder: Path | None) -> None:
        """``folder``: an empty one for real files; None for disks in memory."""
        self._in_flight = in_flight
        self._folder = folder
        self._worlds = 0
        self._delivered = FRESH_MESSAGES

    def prepare(self, count: int) -> None:
        if self._delivered < FRESH_MESSAGES:
            return
        self._delivered = 0
        self._worlds += 1
        folder = self._folder and self._folder / str(self._worlds)
        if folder:
            folder.mkdir()
        self.nodes = Nodes(self._in_flight, folder, [_no_finding])

    def run(self, count: int) -> None:
        nodes = self.nodes
        target = nodes.delivered + count
        pop, watchers = nodes.timeline.pop, nodes.watchers
        while nodes.delivered < target:
            call, values = pop()
            call(*values)
            for watch in watchers:
                watch(nodes)
        self._delivered += count


class Nodes:
    """What the network asks of a world, without hosts, lanes and machines."""

    def __init__(
        self, in_flight: int, folder: Path | None, watchers: list[Callable[[Any], None]]
    ) -> None:
        self.watchers = watchers
        self.delivered = 0
        self.timeline = Timeline()
        draws = Draws(1)
        self.trace = Trace()
        self.network = Network(self.timeline, draws, self.trace, self, NetworkConfig())
        names = [f"n{number}" for number in range(NODES)]
        self.hosts = dict.fromkeys(names)
        self.files = {}
        for name in names:
            backing = OsDisk() if folder else MemDisk()
            disk = SimDisk(backing, (folder or Path("/")) / name, draws, name=name)
            self.files[name] = disk.open(Path("log"), create=True)
        for number in range(in_flight):
            src = number % NODES
            dst = (src + 1 + number // NODES % (NODES - 1)) % NODES
            message = ProduceRequest(number, -1, 30_000, (ProducePartition(PARTITION, VALUE),))
            self.network.send(names[src], names[dst], message, departs_us=0, cause=())

    def incarnation(self, node: str) -> int:
        return 0

    def is_powered(self, node: str) -> bool:
        return True

    def left_before_death(self, node: str, incarnation: int, departs_us: int) -> bool:
        return True

    def transmit(self, node: str, message: Message) -> Message:
        return message

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        self.delivered += 1
        now_us, emit = self.timeline.now_us, self.trace.emit
        name = type(message).__name__
        args = {"from": src, "type": name, "id": message.correlation_id}
        number = emit(now_us, node, Kind.DELIVER, (sent,), args)
        file = self.files[node]
        position = file.append(VALUE)
        emit(
            now_us,
            node,
            Kind.WRITE,
            (number,),
            {"file": "log", "position": position, "size": len(VALUE)},
        )
        if position % (SYNC_EVERY * len(VALUE)) == 0:
            if position > FILE_BYTES_MAX:
                file.truncate(0)
            file.fsync()
        self.network.send(node, src, message, departs_us=now_us, cause=(number,))

    def disconnected(self, node: str, peer: str, cause: int) -> None:
        raise AssertionError(f"{node} and {peer} are disconnected")


def _no_finding(nodes: Any) -> None:
    return


def kernel_parts(queued: int) -> dict[str, Subject]:
    """What the kernel does for a message, one by one."""
    timeline = Timeline()
    stream = Draws(1).stream("latency", "n1", "n2")
    trace = Trace()
    file = SimDisk(MemDisk(), Path("/n1"), Draws(1)).open(Path("log"), create=True)
    for _ in range(queued):
        timeline.at(0, EventClass.DELIVERY, "n1", _no_finding, None)

    def entries(count: int) -> None:
        for _ in range(count):
            timeline.pop()
            timeline.at(timeline.now_us + 400, EventClass.DELIVERY, "n1", _no_finding, None)

    def draws(count: int) -> None:
        for ordinal in range(count):
            stream.below(400, ordinal)

    def events(count: int) -> None:
        for number in range(count):
            args = {"from": "n1", "type": "ProduceRequest", "id": number}
            cause = (trace.count,) if trace.count else ()
            trace.emit(number * 100, "n2", Kind.DELIVER, cause, args)

    def writes(count: int) -> None:
        for number in range(count):
            file.append(VALUE)
            if number % SYNC_EVERY == 0:
                file.fsync()

    def emptied(count: int) -> None:
        file.truncate(0)
        file.fsync()

    return {
        "an entry of the timeline, entered and taken": Subject(entries),
        "a keyed draw": Subject(draws),
        "an event in the digest": Subject(events),
        "a write of 100 B, simulated disk in memory": Subject(writes, emptied),
    }


# The full protocol -----------------------------------------------------------------------------


class FullProtocol:
    """Three brokers, three replicas, and a producer that sends a record every half millisecond."""

    def __init__(self, folder: Path | None = None, **topic: str) -> None:
        """``folder``: an empty one for real files; ``topic``: what its topic is configured with."""
        self._folder = folder
        self._topic = {"min.insync.replicas": "2", **topic}
        self._worlds = 0
        self._delivered = FRESH_MESSAGES

    def prepare(self, count: int) -> None:
        if self._delivered < FRESH_MESSAGES:
            return
        self._delivered = 0
        self._worlds += 1
        folder = self._folder and self._folder / str(self._worlds)
        if folder:
            folder.mkdir()
        self.load = Load(1, folder, self._topic)

    def run(self, count: int) -> None:
        self.load.deliver(count)
        self._delivered += count


class CountingWorld(World):
    """A world that counts.

    Attributes:
        delivered: how many messages have reached a machine.
    """

    delivered = 0

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        self.delivered += 1
        super().receive(node, src, message, sent)


class Load:
    """A world with one topic, and records for it as long as anybody steps it.

    Attributes:
        acknowledged: how many records were when the latest was sent.
    """

    def __init__(self, seed: int, folder: Path | None, topic: dict[str, str]) -> None:
        self.world = world = CountingWorld(seed=seed, root=folder)
        self.acknowledged = 0
        self._sent = 0
        Cluster(world).create_topic("orders", config=topic).wait()
        world.add_producer("p1")
        self._send()

    def _send(self) -> None:
        world = self.world
        outcomes = world.producers["p1"].unclaimed
        if outcomes:
            self.acknowledged += sum(each.kind is OutcomeKind.ACKED for each in outcomes.values())
            outcomes.clear()
        self._sent += 1
        record = Record(None, VALUE, 0)
        args = {"topic": "orders", "number": self._sent}
        world.call("p1", Kind.PRODUCE, args, "send", "orders", record, partition=0)
        at_us = world.now_us + SEND_EVERY_US
        world.timeline.at(at_us, EventClass.CLIENT, "load:p1", self._send)

    def deliver(self, count: int) -> None:
        """Go on until so many more messages have been delivered."""
        world = self.world
        target = world.delivered + count
        while world.delivered < target:
            world.step()


class SmallWorlds:
    """Worlds from nothing to so many delivered messages, each with a seed of its own."""

    def __init__(self, messages: int) -> None:
        self._messages = messages
        self._seed = 0

    def prepare(self, count: int) -> None:
        """Nothing: to build the world is part of it."""

    def run(self, count: int) -> None:
        """``count`` worlds."""
        for _ in range(count):
            self._seed += 1
            load = Load(self._seed, None, {"min.insync.replicas": "2"})
            load.deliver(self._messages - load.world.delivered)
            assert load.acknowledged > 0
