"""A world as an onlooker sees it: who leads, who is in sync, what the logs have.

Everything is read from the machines and their logs at the moment of asking. What a broker believes
is found in ``fields``; ``records`` reads the bytes of its log, also of a node that is down.

Left out: judgement (invariants and losses are later work).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from cluster.broker import Broker
from cluster.controller import Controller
from cluster.metadata import MetadataImage
from cluster.names import CONTROLLER, TopicIdPartition
from cluster.records import PartitionRecord
from cluster.replica import Replica
from sim.hosts import Host
from sim.world_errors import WorldError
from storage.errors import CorruptBatch
from storage.mkb1 import decode_batch
from storage.mkb1_header import FRAME

__all__ = ["LoggedRecord", "View"]


class LoggedRecord(NamedTuple):
    """One record of one log."""

    offset: int
    leader_epoch: int
    key: bytes | None
    value: bytes | None


class View:
    """See the module. It does not change, and is out of date after the next step."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self._hosts = hosts

    def _host(self, name: str) -> Host:
        if name not in self._hosts:
            raise WorldError(f"node is {name!r}, there are {', '.join(self._hosts)}")
        return self._hosts[name]

    # Nodes -------------------------------------------------------------------------------------

    def status(self, name: str) -> str:
        """``running``, ``paused``, ``down`` or ``off``."""
        return self._host(name).status

    def running(self) -> list[str]:
        """The brokers that run, in order."""
        return [name for name in self._hosts if self._broker(name) is not None]

    def fields(self, name: str) -> Mapping[str, Any]:
        """What a process shows of its state; empty where none runs."""
        process = self._host(name).process
        return {} if process is None else process.machine.fields()

    def _broker(self, name: str) -> Broker | None:
        process = self._host(name).process
        machine = None if process is None else process.machine
        return machine if isinstance(machine, Broker) and hasattr(machine, "core") else None

    # Metadata ----------------------------------------------------------------------------------

    def image(self) -> MetadataImage:
        """What the controller has committed; while it is down, the newest that a broker has."""
        process = self._hosts[CONTROLLER].process
        machine = None if process is None else process.machine
        if isinstance(machine, Controller) and machine.is_running:
            return machine.committed_image
        brokers = [self._broker(name) for name in self._hosts]
        images = [broker.core.image for broker in brokers if broker is not None]
        return max(images, key=_end_offset, default=MetadataImage())

    def partition(self, topic: str, number: int = 0) -> PartitionRecord | None:
        """The controller's word on a partition; None where there is none."""
        image = self.image()
        topic_id = image.topic_ids.get(topic)
        if topic_id is None:
            return None
        return image.partition(TopicIdPartition(topic_id, topic, number))

    def leader(self, topic: str, number: int = 0) -> str | None:
        """The leader by the controller's word; None where there is none."""
        found = self.partition(topic, number)
        return None if found is None else found.leader

    def isr(self, topic: str, number: int = 0) -> tuple[str, ...]:
        """The in-sync replicas by the controller's word."""
        found = self.partition(topic, number)
        return () if found is None else found.isr

    def is_led(self, topic: str) -> bool:
        """Whether every partition of a topic has a leader that knows that it leads."""
        image = self.image()
        topic_id = image.topic_ids.get(topic)
        if topic_id is None:
            return False
        for found in image.partitions_of(topic_id):
            broker = None if found.leader is None else self._broker(found.leader)
            replica = None if broker is None else broker.core.replicas.get(found.partition)
            if replica is None or replica.leading is None:
                return False
        return True

    # Logs --------------------------------------------------------------------------------------

    def replica(self, name: str, topic: str, number: int = 0) -> Replica | None:
        """The replica object of a running broker; None where there is none."""
        broker = self._broker(name)
        if broker is None:
            return None
        for partition, replica in broker.core.replicas.items():
            if (partition.topic, partition.partition) == (topic, number):
                return replica
        return None

    def log_end(self, name: str, topic: str, number: int = 0) -> int:
        """The log end offset of a running broker's log; -1 where there is none."""
        replica = self.replica(name, topic, number)
        return -1 if replica is None or replica.log is None else replica.log.leo

    def high_watermark(self, name: str, topic: str, number: int = 0) -> int:
        """What a running broker holds for the high watermark; -1 where it has no replica."""
        replica = self.replica(name, topic, number)
        return -1 if replica is None else replica.high_watermark

    def records(self, name: str, topic: str, number: int = 0) -> list[LoggedRecord]:
        """Every record of a node's log, committed or not, whether the node runs or not.

        Read from the bytes of its files, so that looking changes nothing; up to the first frame
        that is damaged.
        """
        disk = self._host(name).require_disk().files
        directory = f"{topic}-{number}"
        found: list[LoggedRecord] = []
        for path, inode in disk.names.paths():
            if path.parts[:-1] == (directory,) and path.suffix == ".log":
                found += _records_in(disk.content_of(inode))
        replica = self.replica(name, topic, number)
        start = 0 if replica is None or replica.log is None else replica.log.log_start_offset
        return [record for record in found if record.offset >= start]


def _records_in(data: bytes) -> Iterator[LoggedRecord]:
    """The records of one segment."""
    position = 0
    while position + FRAME.size <= len(data):
        end = position + FRAME.size + int.from_bytes(data[position + 4 : position + 8], "big")
        try:
            batch = decode_batch(data[position:end], max_batch_bytes=len(data))
        except CorruptBatch:
            return
        position = end
        if batch.base_offset is None or batch.control is not None:
            continue
        for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
            offset = batch.base_offset + delta
            yield LoggedRecord(offset, batch.leader_epoch, record.key, record.value)


def _end_offset(image: MetadataImage) -> int:
    return image.end_offset
