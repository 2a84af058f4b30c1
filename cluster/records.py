"""Records of the metadata log: what the controller decides, one record an offset.

Each holds the whole new state of its subject, so applying a record twice or skipping to a snapshot
gives the same image. Source: Kafka's metadata records; a partition's change and its first state
are one class here, since both say what holds from now on.

Left out: what the records add up to (``cluster.metadata``), and who writes them
(``cluster.controller``).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from attrs import frozen

from cluster.names import TopicIdPartition
from cluster.wire import Registry
from storage.values import Value

__all__ = [
    "METADATA_RECORDS",
    "BrokerRecord",
    "ConfigRecord",
    "LeaderRecoveryState",
    "MetadataRecord",
    "OffsetCommitRecord",
    "PartitionRecord",
    "ProducerIdsRecord",
    "RemoveTopicRecord",
    "TopicRecord",
]


class LeaderRecoveryState(Enum):
    """Whether the leader was elected without knowing that it has everything (KIP-704)."""

    RECOVERED = 0
    RECOVERING = 1


@frozen
class MetadataRecord(Value):
    """Root of the records."""


@frozen
class BrokerRecord(MetadataRecord):
    """A broker's registration, and every change of its state.

    Attributes:
        broker_epoch: the metadata offset of the record of its registration.
        is_fenced: it may lead nothing and joins no ISR.
        in_controlled_shutdown: it is leaving: as if fenced, for elections and ISRs.
        damaged_partitions: which of its logs refused to open, so that it must not lead them.
    """

    broker_id: str
    incarnation_id: str
    broker_epoch: int
    is_fenced: bool
    in_controlled_shutdown: bool
    damaged_partitions: tuple[TopicIdPartition, ...] = ()

    @property
    def is_active(self) -> bool:
        """It may lead and join ISRs."""
        return not self.is_fenced and not self.in_controlled_shutdown


@frozen
class TopicRecord(MetadataRecord):
    """A topic came to be."""

    topic_id: str
    topic: str


@frozen
class RemoveTopicRecord(MetadataRecord):
    """A topic, its partitions and its configuration are gone."""

    topic_id: str
    topic: str


@frozen
class PartitionRecord(MetadataRecord):
    """The state of a partition from this offset on.

    Attributes:
        replicas: assigned brokers, the preferred leader first; those being added count.
        isr: in sync, in the order of ``replicas``.
        leader: None while there is none.
        leader_epoch: rises when a leader is named, None included (PROTOCOL A14).
        partition_epoch: rises with every change.
        elr: eligible leader replicas outside the ISR (KIP-966).
        last_known_elr: the last leader, noted when the ISR emptied.
        adding_replicas, removing_replicas: of a reassignment under way, part of ``replicas``.
    """

    partition: TopicIdPartition
    replicas: tuple[str, ...]
    isr: tuple[str, ...]
    leader: str | None
    leader_epoch: int
    partition_epoch: int
    leader_recovery_state: LeaderRecoveryState = LeaderRecoveryState.RECOVERED
    elr: tuple[str, ...] = ()
    last_known_elr: tuple[str, ...] = ()
    adding_replicas: tuple[str, ...] = ()
    removing_replicas: tuple[str, ...] = ()


@frozen
class ConfigRecord(MetadataRecord):
    """One configuration value of a topic or broker; None takes it away.

    Attributes:
        resource: a topic's name, a broker's, or the empty text for all brokers.
        is_topic: which of them.
        name: as Kafka spells it, ``min.insync.replicas``.
    """

    is_topic: bool
    resource: str
    name: str
    value: str | None


@frozen
class ProducerIdsRecord(MetadataRecord):
    """Producer ids below this one are taken."""

    next_producer_id: int


@frozen
class OffsetCommitRecord(MetadataRecord):
    """Where a consumer group is in a partition: the offset that it reads next.

    ``leader_epoch`` is that of the last record read, -1 if unknown (KIP-320).
    """

    group: str
    partition: TopicIdPartition
    offset: int
    leader_epoch: int


METADATA_RECORDS: Final[Registry[MetadataRecord]] = Registry(
    (
        BrokerRecord,
        TopicRecord,
        RemoveTopicRecord,
        PartitionRecord,
        ConfigRecord,
        ProducerIdsRecord,
        OffsetCommitRecord,
    )
)
"""Numbers are the order here: append, never reorder."""
