"""What the controller decides on: its image, ahead of the disk, and the decisions of one handler.

A handler decides record by record; each is in the image at once and in the batch that the handler
leaves behind. The batch is appended as a whole when the handler ends, so a crash keeps all of a
handler's decisions or none.

Left out: the log that the batch goes to (``cluster.metadata_log``), and every rule.
"""

from __future__ import annotations

from cluster.config import ControllerConfig, TopicConfig
from cluster.elections import Election
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.partition_changes import Circumstances
from cluster.records import MetadataRecord, PartitionRecord

__all__ = ["ControllerState"]


class ControllerState:
    """The image, and how the configuration bears on a partition.

    Attributes:
        image: has every decision, durable or not.
        batch: the decisions of the running handler, in order.
        elections: those of them that began a leader epoch, before and after.
        defaults: of topics that do not set a value.
    """

    def __init__(self, config: ControllerConfig, guards: Guards, defaults: TopicConfig) -> None:
        self.config = config
        self.guards = guards
        self.defaults = defaults
        self.image = MetadataImage()
        self.batch: list[MetadataRecord] = []
        self.elections: list[tuple[PartitionRecord, PartitionRecord]] = []

    def decide(self, record: MetadataRecord) -> None:
        """From here on this holds."""
        if isinstance(record, PartitionRecord):
            before = self.image.partition(record.partition)
            if before is not None and record.leader_epoch > before.leader_epoch:
                self.elections.append((before, record))
        self.image.apply(record)
        self.batch.append(record)

    def decide_change(self, before: PartitionRecord, after: PartitionRecord) -> bool:
        """Decide ``after`` if it is a change; whether it was."""
        if after is before:
            return False
        self.decide(after)
        return True

    # Partitions --------------------------------------------------------------------------------

    def find(self, partition: TopicIdPartition) -> tuple[PartitionRecord | None, ErrorCode]:
        """A partition's record, or why there is none.

        An empty topic id stands for the topic that bears the name now.
        """
        topic_id = partition.topic_id or self.image.topic_ids.get(partition.topic, "")
        record = self.image.partition(partition._replace(topic_id=topic_id))
        if record is not None:
            return record, ErrorCode.NONE
        is_known = self.image.topic_ids.get(partition.topic) == topic_id != ""
        if is_known or not partition.topic_id:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        return None, ErrorCode.UNKNOWN_TOPIC_ID

    def circumstances(
        self, record: PartitionRecord, *, deposes: str | None = None
    ) -> Circumstances:
        """What changes of this partition depend on.

        A damaged log keeps a broker from being chosen. One that leads all the same was forced, and
        goes on, unless it is the broker that the change ``deposes``.
        """
        image, partition = self.image, record.partition
        leader = None if record.leader == deposes else record.leader

        def is_acceptable(broker_id: str) -> bool:
            if not image.is_active(broker_id):
                return False
            return broker_id == leader or (
                partition not in image.brokers[broker_id].damaged_partitions
            )

        return Circumstances(
            is_acceptable,
            self.min_isr(partition.topic),
            self.config.eligible_leader_replicas,
            self.guards,
        )

    def election(self, topic: str) -> Election:
        """The kind that follows a change: unclean where the topic allows it (PROTOCOL A15)."""
        if not self.guards.unclean_needs_permission or self.allows_unclean(topic):
            return Election.UNCLEAN
        return Election.ONLINE

    # Configuration -----------------------------------------------------------------------------

    def min_isr(self, topic: str) -> int:
        """The topic's ``min.insync.replicas``."""
        value = self.image.config(is_topic=True, resource=topic).get("min.insync.replicas")
        return self.defaults.min_insync_replicas if value is None else int(value)

    def allows_unclean(self, topic: str) -> bool:
        """The topic's ``unclean.leader.election.enable``."""
        values = self.image.config(is_topic=True, resource=topic)
        value = values.get("unclean.leader.election.enable")
        if value is None:
            return self.defaults.unclean_leader_election_enable
        return value == "true"
