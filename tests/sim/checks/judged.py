"""Judged worlds for tests, and ways to plant a fault into one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import evolve

from cluster.broker import Broker
from cluster.controller import Controller
from cluster.guards import Guards
from cluster.message import Message
from cluster.replica import Replica
from sim.checks.judge import Judge
from sim.checks.violations import Violation
from sim.cluster_config import ClusterConfig
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World
from storage.mkb1 import decode_batch, encode_batch

SECOND_US = 1_000_000
LOG = Path("/orders-0/00000000000000000000.log")

Tamper = Callable[[str, str, Message], Message]


class Tampered(World):
    """A world whose messages can be changed on their way."""

    tamper: Tamper | None = None

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        if self.tamper is not None:
            message = self.tamper(node, src, message)
        super().receive(node, src, message, sent)


class Stage:
    """A judged world with a topic ``orders`` of one partition on three brokers; b1 leads."""

    def __init__(
        self,
        *,
        seed: int = 7,
        guards: dict[str, bool] | None = None,
        topic: dict[str, str] | None = None,
        records: int = 5,
        paranoid: bool = False,
        **config: Any,
    ) -> None:
        config = {"guards": Guards(**(guards or {})), **config}
        trace = Trace("events", keeps_lines=True)
        self.world = Tampered(ClusterConfig(**config), seed=seed, trace=trace)
        self.judge = Judge(self.world, is_paranoid=paranoid)
        self.cluster = Cluster(self.world)
        values = {"min.insync.replicas": "2"} if topic is None else topic
        self.cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]], config=values).wait()
        if records:
            self.cluster.produce("orders", records).wait()
            self.world.run_for(2 * SECOND_US)
        assert not self.judge.violations, [str(each) for each in self.judge.violations]
        self.planted_at = self.world.trace.count

    def broker(self, name: str) -> Broker:
        machine = self.world.hosts[name].process.machine  # type: ignore[union-attr]
        assert isinstance(machine, Broker)
        return machine

    def controller(self) -> Controller:
        machine = self.world.hosts["c1"].process.machine  # type: ignore[union-attr]
        assert isinstance(machine, Controller)
        return machine

    def replica(self, name: str) -> Replica:
        found = self.world.view().replica(name, "orders")
        assert found is not None
        return found

    def frames(self, name: str) -> list[bytes]:
        """The frames of a log, in order."""
        disk = self.world.hosts[name].require_disk().files
        number = disk.names.find(("orders-0", LOG.name))
        assert number is not None
        data, found = disk.content_of(number), []
        while data:
            size = 12 + int.from_bytes(data[4:8], "big")
            found.append(data[:size])
            data = data[size:]
        return found

    def rewrite(self, name: str, place: int, value: bytes) -> None:
        """Give one record of a log another value, with a right checksum, through the disk."""
        frames = self.frames(name)
        frame = with_value(frames[place], value)
        assert len(frame) == len(frames[place])
        disk = self.world.hosts[name].require_disk().files
        file = disk.open(LOG)
        file.write_at(sum(map(len, frames[:place])), frame)
        file.close()

    def found(self, check: str) -> Violation:
        """The first violation of a check; it came about behind the planting."""
        mine = [each for each in self.judge.violations if each.check == check]
        assert mine, [str(each) for each in self.judge.violations]
        violation = mine[0]
        assert violation.partition in ("orders-0", "")
        assert self.planted_at < violation.event < violation.told <= self.world.trace.count
        told = self.world.trace.events()[violation.told - 1]
        assert told.kind == "check"
        assert told.args["check"] == check
        assert told.args["kind"] == violation.kind
        assert list(told.cause)[-1] == violation.event
        return violation


def with_value(frame: bytes, value: bytes) -> bytes:
    """A frame of one record with another value."""
    batch = decode_batch(frame)
    (record,) = batch.records
    return encode_batch(evolve(batch, records=(record._replace(value=value),)))
