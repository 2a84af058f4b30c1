"""What network tests share: nodes that write down what reaches them, and a trace in a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from attrs import define, evolve, field

from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_control import BrokerHeartbeatRequest, OffsetCommitRequest
from cluster.messages_data import (
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    IsolationLevel,
    MetadataRequest,
    ProducePartition,
    ProduceRequest,
    ProduceResponse,
    RangeRef,
)
from cluster.names import TopicIdPartition
from sim.draws import Draws
from sim.network import Network, NetworkConfig
from sim.network_rules import Rule
from sim.schedulers import Scheduler
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

P0 = TopicIdPartition("AAAAAAAAAAAAAAAAAAAAAA", "orders", 0)


@define
class Event:
    n: int
    t_us: int
    node: str
    kind: Kind
    cause: tuple[int, ...]
    args: dict[str, Any]


@define
class FakeTrace:
    events: list[Event] = field(factory=list)

    def emit(
        self, t_us: int, node: str, kind: Kind, cause: Sequence[int], args: dict[str, Any]
    ) -> int:
        number = len(self.events) + 1
        assert all(1 <= each < number for each in cause)
        self.events.append(Event(number, t_us, node, kind, tuple(cause), args))
        return number


@define
class FakeHosts:
    """Processes by node; every node runs one from the start, with incarnation 0.

    Attributes:
        got: time, node, source, correlation id, event.
        by: which process of the node got it, in the same order.
        heard: time, node, peer, cause.
        log: what each node got (a correlation id) and heard (a peer), in order.
    """

    timeline: Timeline
    running: dict[str, int] = field(factory=dict)
    off: set[str] = field(factory=set)
    died_us: dict[tuple[str, int], int] = field(factory=dict)
    got: list[tuple[int, str, str, int, int]] = field(factory=list)
    messages: list[Message] = field(factory=list)
    by: list[int] = field(factory=list)
    heard: list[tuple[int, str, str, int]] = field(factory=list)
    log: dict[str, list[int | str]] = field(factory=dict)
    has_bytes: bool = True

    def incarnation(self, node: str) -> int:
        return self.running.get(node, 0)

    def is_powered(self, node: str) -> bool:
        return node not in self.off

    def left_before_death(self, node: str, incarnation: int, departs_us: int) -> bool:
        return departs_us <= self.died_us[node, incarnation]

    def transmit(self, node: str, message: Message) -> Message | None:
        assert isinstance(message, FetchResponse)
        if not self.has_bytes:
            return None
        parts = tuple(
            p._replace(records=b"x" * p.range_ref.size_bytes, range_ref=None)
            for p in message.partitions
            if p.range_ref is not None
        )
        return evolve(message, partitions=parts)

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        assert self.incarnation(node) >= 0
        self.got.append((self.timeline.now_us, node, src, message.correlation_id, sent))
        self.messages.append(message)
        self.by.append(self.incarnation(node))
        self.log.setdefault(node, []).append(message.correlation_id)

    def disconnected(self, node: str, peer: str, cause: int) -> None:
        assert self.incarnation(node) >= 0
        self.heard.append((self.timeline.now_us, node, peer, cause))
        self.log.setdefault(node, []).append(peer)


@define
class Net:
    """A network of two nodes and more, and what drives it."""

    timeline: Timeline
    trace: FakeTrace
    hosts: FakeHosts
    network: Network

    @classmethod
    def new(cls, seed: int = 1, *, scheduler: Scheduler | None = None, **config: Any) -> Net:
        timeline = Timeline(scheduler)
        trace, hosts = FakeTrace(), FakeHosts(timeline)
        network = Network(timeline, Draws(seed), trace, hosts, NetworkConfig(**config))
        return cls(timeline, trace, hosts, network)

    def send(self, src: str, dst: str, message: Message | int, departs_us: int = 0) -> None:
        if isinstance(message, int):
            message = heartbeat(message)
        self.network.send(src, dst, message, departs_us=departs_us, cause=())

    def run(self, until_us: int | None = None) -> None:
        while (due := self.timeline.next_us()) is not None:
            if until_us is not None and due > until_us:
                break
            call, args = self.timeline.pop()
            call(*args)
        if until_us is not None:
            self.timeline.advance(until_us)

    def at(self, at_us: int, call: Any, *args: Any) -> None:
        self.timeline.at(at_us, EventClass.FAULT, "test", call, *args)

    def add(self, rule: Rule) -> None:
        self.network.add(rule)

    def got(self, node: str) -> list[int]:
        return [number for _, to, _, number, _ in self.hosts.got if to == node]

    def times(self, node: str) -> dict[int, int]:
        return {number: at for at, to, _, number, _ in self.hosts.got if to == node}

    def heard(self) -> list[tuple[str, str]]:
        return [(node, peer) for _, node, peer, _ in self.hosts.heard]

    def kinds(self, *kinds: Kind) -> list[Event]:
        return [each for each in self.trace.events if each.kind in kinds]

    def whys(self) -> list[tuple[str, str | None]]:
        return [(e.args["why"], e.args.get("fault")) for e in self.kinds(Kind.DROP)]

    # Processes ---------------------------------------------------------------------------------

    def die(self, node: str, *, is_silent: bool = False, died_us: int | None = None) -> None:
        incarnation = self.hosts.running.get(node, 0)
        now_us = self.timeline.now_us
        self.hosts.died_us[node, incarnation] = now_us if died_us is None else died_us
        self.hosts.running[node] = -1
        self.hosts.running[f"next {node}"] = incarnation + 1
        if is_silent:
            self.hosts.off.add(node)
        cause = self.trace.emit(now_us, node, Kind.RESET, (), {"crash": node})
        self.network.process_ended(node, incarnation, (cause,), is_silent=is_silent)

    def power(self, node: str) -> None:
        self.hosts.off.discard(node)

    def start(self, node: str) -> None:
        self.power(node)
        self.hosts.running[node] = self.hosts.running[f"next {node}"]


# Messages ----------------------------------------------------------------------------------------


def heartbeat(number: int) -> Message:
    return BrokerHeartbeatRequest(number, "b1", 1, 0)


def commit(number: int) -> Message:
    return OffsetCommitRequest(number, "g", ())


def metadata(number: int) -> Message:
    return MetadataRequest(number, None)


def produce(number: int, records: bytes = b"r" * 100) -> Message:
    return ProduceRequest(number, -1, 1_000, (ProducePartition(P0, records),))


def produced(number: int) -> Message:
    return ProduceResponse(number, ())


def fetch(number: int) -> Message:
    return FetchRequest(number, "b2", 1, 500, 1, 1_000, IsolationLevel.READ_UNCOMMITTED, ())


def fetched(number: int, size_bytes: int = 50) -> Message:
    ref = RangeRef(P0, 0, 1, 0, size_bytes)
    return FetchResponse(number, (FetchPartitionResult(P0, ErrorCode.NONE, range_ref=ref),))
