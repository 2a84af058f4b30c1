"""The metadata image: what all records of the metadata log up to an offset add up to.

The controller has one ahead of the log's committed end, every broker one that lags behind it. An
image is a plain object with one way to change, ``apply``.

Left out: who may write which record, and what a broker does when its image changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType

from cluster.errors import ProtocolBug
from cluster.names import TopicIdPartition
from cluster.records import (
    BrokerRecord,
    ConfigRecord,
    MetadataRecord,
    OffsetCommitRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

__all__ = ["MetadataImage"]

_NO_CONFIG: Mapping[str, str] = MappingProxyType({})


class MetadataImage:
    """Brokers, topics, partitions, configuration, producer ids and committed offsets.

    Attributes:
        end_offset: the offset behind the last record applied.
        brokers: by id.
        topic_ids: topic name to id.
        next_producer_id: ids below are taken.
    """

    __slots__ = (
        "_configs",
        "_offsets",
        "_partitions",
        "_topics",
        "brokers",
        "end_offset",
        "next_producer_id",
        "topic_ids",
    )

    def __init__(self) -> None:
        self.end_offset = 0
        self.brokers: dict[str, BrokerRecord] = {}
        self.topic_ids: dict[str, str] = {}
        self.next_producer_id = 0
        self._topics: dict[str, dict[int, PartitionRecord]] = {}
        self._partitions: dict[TopicIdPartition, PartitionRecord] = {}
        self._configs: dict[tuple[bool, str], dict[str, str]] = {}
        self._offsets: dict[tuple[str, TopicIdPartition], OffsetCommitRecord] = {}

    # Changing it -------------------------------------------------------------------------------

    def apply(self, record: MetadataRecord) -> None:
        """Take in the record at ``end_offset``."""
        match record:
            case PartitionRecord(partition=partition):
                self._partitions[partition] = record
                self._topics.setdefault(partition.topic_id, {})[partition.partition] = record
            case BrokerRecord():
                self.brokers[record.broker_id] = record
            case TopicRecord():
                self.topic_ids[record.topic] = record.topic_id
                self._topics.setdefault(record.topic_id, {})
            case RemoveTopicRecord():
                self._remove_topic(record)
            case ConfigRecord():
                self._set_config(record)
            case ProducerIdsRecord():
                self.next_producer_id = record.next_producer_id
            case OffsetCommitRecord():
                self._offsets[record.group, record.partition] = record
            case _:
                raise ProtocolBug(f"no such metadata record: {record!r}")
        self.end_offset += 1

    def _remove_topic(self, record: RemoveTopicRecord) -> None:
        if self.topic_ids.get(record.topic) == record.topic_id:
            del self.topic_ids[record.topic]
            self._configs.pop((True, record.topic), None)
        for partition in self._topics.pop(record.topic_id, {}).values():
            del self._partitions[partition.partition]
        for key in [key for key in self._offsets if key[1].topic_id == record.topic_id]:
            del self._offsets[key]

    def _set_config(self, record: ConfigRecord) -> None:
        key = record.is_topic, record.resource
        if record.value is not None:
            self._configs.setdefault(key, {})[record.name] = record.value
        elif key in self._configs:
            self._configs[key].pop(record.name, None)
            if not self._configs[key]:
                del self._configs[key]

    # Asking it ---------------------------------------------------------------------------------

    def partition(self, partition: TopicIdPartition) -> PartitionRecord | None:
        """The state of a partition, None where there is none of that topic id."""
        return self._partitions.get(partition)

    def partitions(self) -> Iterator[PartitionRecord]:
        """Of all topics, by topic id and number: an order that every process has."""
        for topic_id in sorted(self._topics):
            yield from self.partitions_of(topic_id)

    def partitions_of(self, topic_id: str) -> Iterator[PartitionRecord]:
        """Of one topic, by number."""
        found = self._topics.get(topic_id, {})
        for number in sorted(found):
            yield found[number]

    def config(self, *, is_topic: bool, resource: str) -> Mapping[str, str]:
        """The values set for a topic or broker."""
        return self._configs.get((is_topic, resource), _NO_CONFIG)

    def committed_offset(
        self, group: str, partition: TopicIdPartition
    ) -> OffsetCommitRecord | None:
        """Where a group is in a partition, None where it never committed there."""
        return self._offsets.get((group, partition))

    def is_active(self, broker_id: str) -> bool:
        """Registered, not fenced and not leaving: it may lead and join ISRs."""
        broker = self.brokers.get(broker_id)
        return broker is not None and broker.is_active

    def broker_epoch(self, broker_id: str) -> int:
        """Its latest registration's epoch, -1 where it never registered."""
        broker = self.brokers.get(broker_id)
        return -1 if broker is None else broker.broker_epoch

    # Snapshots ---------------------------------------------------------------------------------

    def to_records(self) -> tuple[MetadataRecord, ...]:
        """Records that build this image from an empty one, apart from ``end_offset``."""
        records: list[MetadataRecord] = [self.brokers[name] for name in sorted(self.brokers)]
        records += [TopicRecord(self.topic_ids[name], name) for name in sorted(self.topic_ids)]
        records += self.partitions()
        for is_topic, resource in sorted(self._configs):
            values = self._configs[is_topic, resource]
            records += [
                ConfigRecord(is_topic, resource, name, values[name]) for name in sorted(values)
            ]
        if self.next_producer_id:
            records.append(ProducerIdsRecord(self.next_producer_id))
        records += [self._offsets[key] for key in sorted(self._offsets)]
        return tuple(records)

    @classmethod
    def from_records(cls, records: Iterable[MetadataRecord], end_offset: int) -> MetadataImage:
        """The image that ``to_records`` gave these for, at ``end_offset``."""
        image = cls()
        for record in records:
            image.apply(record)
        image.end_offset = end_offset
        return image

    def copy(self) -> MetadataImage:
        """An image that changes apart from this one; the records are values and shared."""
        other = MetadataImage()
        other.end_offset = self.end_offset
        other.brokers = dict(self.brokers)
        other.topic_ids = dict(self.topic_ids)
        other.next_producer_id = self.next_producer_id
        other._topics = {topic_id: dict(found) for topic_id, found in self._topics.items()}
        other._partitions = dict(self._partitions)
        other._configs = {key: dict(values) for key, values in self._configs.items()}
        other._offsets = dict(self._offsets)
        return other

    def __deepcopy__(self, memo: object) -> MetadataImage:
        return self.copy()
