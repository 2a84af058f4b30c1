"""What the parts of one broker share: its logs, its view of the cluster, its replicas.

Left out: what is done with them (``cluster.broker`` and the parts that it puts together).
"""

from __future__ import annotations

from attrs import define, field

from cluster.config import BrokerConfig, TopicConfig
from cluster.effects import Effects
from cluster.guards import Guards
from cluster.machine import Correlations
from cluster.metadata import MetadataImage
from cluster.names import NO_BROKER_EPOCH, TopicIdPartition
from cluster.parked import ParkedDelete, ParkedFetches, ParkedProduce
from cluster.replica import Quarantined, Replica, Waiting
from storage.errors import CorruptData, CorruptLog, ForeignFile, NotRegularFile, StorageError
from storage.log_dir import LogDir, TopicPartition

__all__ = ["BrokerCore"]


@define(eq=False)
class BrokerCore:
    """The state of one broker.

    Attributes:
        controller: the node that it registers with.
        image: the metadata as far as it has been applied.
        replicas: by partition; what is in quarantine too.
        broker_epoch: of the registration that was acknowledged, -1 before.
        applied_offset: the end of the metadata that its replicas follow.
        is_open: it was unfenced once, and answers others from then on.
        is_halted: its disk has failed, or it has stopped; it does nothing more.
        replica_class: what its replicas are.
    """

    name: str
    config: BrokerConfig
    guards: Guards
    controller: str
    correlations: Correlations
    log_dir: LogDir
    image: MetadataImage = field(factory=MetadataImage)
    replicas: dict[TopicIdPartition, Replica] = field(factory=dict)
    parked_fetches: ParkedFetches = field(factory=ParkedFetches)
    parked_produces: dict[tuple[str, int], ParkedProduce] = field(factory=dict)
    parked_deletes: dict[tuple[str, int], ParkedDelete] = field(factory=dict)
    broker_epoch: int = NO_BROKER_EPOCH
    applied_offset: int = 0
    is_open: bool = False
    is_halted: bool = False
    replica_class: type[Replica] = Replica

    def halt(self, error: StorageError, fx: Effects) -> None:
        """The log directory has failed: stop here, without a clean-shutdown marker.

        Kafka's broker does so when its last log directory fails. After a failed fsync nothing that
        the disk says can be trusted; after another failed write it may not be asked again.
        """
        if not self.is_halted:
            self.is_halted = True
            fx.note("halt", error=error.code, detail=str(error))
            self.log_dir.abandon()
            fx.stopped()

    def give_out_work(self, replica: Replica, fx: Effects) -> None:
        """Pending work of a replica's log becomes effects."""
        if replica.log is not None and replica.log.has_pending:
            fx.background(replica.partition, replica.log.take_pending())

    def open_replica(
        self,
        partition: TopicIdPartition,
        config: TopicConfig,
        *,
        salvaging: StorageError | None = None,
    ) -> Replica:
        """Open a partition's log, or begin it; one that refuses to open is put in quarantine.

        Args:
            salvaging: what it refused with before: keep its good prefix. What is not
                ``CorruptLog`` cannot be salvaged and stays in quarantine.

        Raises:
            DiskError: the disk cannot be read or written.
        """
        limits = config.log_config(self.config, self.guards.log_rules())
        if salvaging is not None and not isinstance(salvaging, CorruptLog):
            return self.replica_class(partition, None, Quarantined(salvaging), config)
        try:
            log = self.log_dir.open_log(
                partition.topic,
                partition.partition,
                limits,
                topic_id=partition.topic_id,
                salvaging=salvaging,
                # Logs are small here, and damage below the boundary must not lead (DECISIONS 1.3).
                verify="all",
            )
        except (CorruptData, ForeignFile, NotRegularFile) as error:
            return self.replica_class(partition, None, Quarantined(error), config)
        name = TopicPartition(partition.topic, partition.partition)
        replica = self.replica_class(
            partition,
            log,
            Waiting(),
            config,
            high_watermark=self.log_dir.high_watermarks.get(name, 0),
            unflushed_from=log.boundary.end_offset,
        )
        replica.clamp_high_watermark()
        return replica
