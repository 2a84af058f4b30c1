"""What a client knows of topics and leaders, and how it keeps that fresh (PROTOCOL A22, KIP-320).

Rules, all of Kafka's class Metadata:

* A partition's leader and epoch are replaced by metadata of the same or a newer epoch only: a
  broker that lags would else move the client back to a leader that is one no more (guard
  ``newer_metadata_only``).
* A topic that was created anew under its old name starts at epoch 0 again: another topic id tells
  it from old metadata (KAFKA-12257, guard ``topic_id_tells_topics``). Kafka takes any other id;
  here it has to come from an image that is not older than the one that named the present id.
* A topic that a broker does not know, or that is gone, changes nothing that is known.

Brokers are asked in turn, whatever the last one answered: it may lag, and say the same for ever.
The timer ``("metadata",)`` asks again when what is known is too old, or, no sooner than the
back-off after the last attempt, when somebody asked for it.

Left out: what follows from a new leader (``cluster.producer``, ``cluster.consumer``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cluster.client_requests import ClientRequests
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.messages_data import (
    MetadataRequest,
    MetadataResponse,
    PartitionMetadata,
    TopicMetadata,
)
from cluster.names import Now, TopicIdPartition

__all__ = ["METADATA_TIMER", "ClientMetadata", "LeaderAndEpoch"]

METADATA_TIMER: Final = ("metadata",)


class LeaderAndEpoch(NamedTuple):
    """Who leads a partition, None while nobody does, and since which epoch."""

    partition: TopicIdPartition
    leader: str | None
    leader_epoch: int


class _Topic(NamedTuple):
    """``metadata_offset``: of the image that named ``topic_id`` first, as far as is known."""

    topic_id: str
    metadata_offset: int
    partitions: dict[int, LeaderAndEpoch]


class ClientMetadata:
    """See the module.

    Attributes:
        version: rises by one whenever a leader, an epoch, a topic id or a partition changed.
    """

    __slots__ = (
        "_armed_us",
        "_attempt_us",
        "_backoff_us",
        "_brokers",
        "_guards",
        "_max_age_us",
        "_next_broker",
        "_requests",
        "_topics",
        "_waiting_id",
        "_wanted",
        "version",
    )

    def __init__(
        self,
        requests: ClientRequests,
        brokers: tuple[str, ...],
        guards: Guards,
        *,
        backoff_us: int,
        max_age_us: int,
    ) -> None:
        if not brokers:
            raise ValueError("brokers is empty, a client needs one at least to ask")
        self.version = 0
        self._requests = requests
        self._brokers = brokers
        self._guards = guards
        self._backoff_us = backoff_us
        self._max_age_us = max_age_us
        self._next_broker = 0
        self._wanted: dict[str, None] = {}
        self._topics: dict[str, _Topic] = {}
        self._waiting_id: int | None = None
        self._attempt_us: int | None = None
        self._armed_us: int | None = None

    # What is known -----------------------------------------------------------------------------

    def leader(self, topic: str, partition: int) -> LeaderAndEpoch | None:
        """Leader and epoch of a partition, None where there is none that the client knows of."""
        found = self._topics.get(topic)
        return None if found is None else found.partitions.get(partition)

    def partitions(self, topic: str) -> list[LeaderAndEpoch]:
        """Of a topic, by number; empty while it is not known."""
        found = self._topics.get(topic)
        if found is None:
            return []
        return [found.partitions[number] for number in sorted(found.partitions)]

    # Asking ------------------------------------------------------------------------------------

    def want(self, now: Now, fx: Effects, topic: str) -> None:
        """Keep this topic fresh from now on; asks at once where it is new."""
        if topic not in self._wanted:
            self._wanted[topic] = None
            self._arm(now, fx, now.timer_us if self._attempt_us is None else self._earliest(now))

    def request_update(self, now: Now, fx: Effects) -> None:
        """Ask as soon as the back-off allows: what is known did not work."""
        if self._wanted and self._waiting_id is None:
            self._arm(now, fx, self._earliest(now))

    def _earliest(self, now: Now) -> int:
        if self._attempt_us is None:
            return now.timer_us
        return max(now.timer_us, self._attempt_us + self._backoff_us)

    def _arm(self, now: Now, fx: Effects, at_us: int) -> None:
        if self._armed_us is None or at_us < self._armed_us:
            self._armed_us = at_us
            fx.arm(METADATA_TIMER, at_us, now.timer_clock)

    def on_timer(self, now: Now, fx: Effects) -> None:
        """``METADATA_TIMER`` is due."""
        self._armed_us = None
        if self._waiting_id is not None or not self._wanted:
            return
        broker = self._brokers[self._next_broker]
        self._next_broker = (self._next_broker + 1) % len(self._brokers)
        self._waiting_id = self._requests.correlations.take()
        self._attempt_us = now.timer_us
        request = MetadataRequest(self._waiting_id, tuple(sorted(self._wanted)))
        self._requests.send(now, fx, broker, request)

    def on_failure(self, now: Now, fx: Effects, request: MetadataRequest) -> None:
        """No answer came: the next broker is asked after the back-off."""
        if request.correlation_id == self._waiting_id:
            self._waiting_id = None
            self._arm(now, fx, self._earliest(now))

    def stop(self, fx: Effects) -> None:
        """Ask no more."""
        self._wanted.clear()
        self._armed_us = None
        fx.disarm(METADATA_TIMER)

    # Answers -----------------------------------------------------------------------------------

    def on_response(self, now: Now, fx: Effects, response: MetadataResponse) -> None:
        """Take in what a broker knows. Entries that contradict themselves are passed over."""
        self._waiting_id = None
        for topic in response.topics:
            if topic.topic in self._wanted and topic.topic_id and _is_usable(topic):
                self._take_topic(topic, response.metadata_offset)
        if all(self._is_complete(topic) for topic in self._wanted):
            self._arm(now, fx, now.timer_us + self._max_age_us)
        else:
            self._arm(now, fx, self._earliest(now))

    def _is_complete(self, topic: str) -> bool:
        found = self._topics.get(topic)
        if found is None or not found.partitions:
            return False
        return all(each.leader is not None for each in found.partitions.values())

    def _take_topic(self, new: TopicMetadata, metadata_offset: int) -> None:
        known = self._topics.get(new.topic)
        is_other = known is not None and known.topic_id != new.topic_id
        if known is not None and is_other and self._guards.topic_id_tells_topics:
            if metadata_offset < known.metadata_offset:
                return
            known = None
        if known is None:
            known = self._topics[new.topic] = _Topic(new.topic_id, metadata_offset, {})
            self.version += 1
        for partition in new.partitions:
            self._take_partition(known.partitions, new, partition)

    def _take_partition(
        self, known: dict[int, LeaderAndEpoch], topic: TopicMetadata, new: PartitionMetadata
    ) -> None:
        name = new.partition
        if (name.topic, name.topic_id) != (topic.topic, topic.topic_id) or name.partition < 0:
            return
        if new.leader_epoch < 0:
            return
        before = known.get(name.partition)
        if before is not None and new.leader_epoch < before.leader_epoch:
            if self._guards.newer_metadata_only:
                return
        # An empty name can be nobody's.
        after = LeaderAndEpoch(name, new.leader or None, new.leader_epoch)
        if after != before:
            known[name.partition] = after
            self.version += 1


def _is_usable(topic: TopicMetadata) -> bool:
    """Whether partitions are to be looked at: a partition's own error leaves its epoch true."""
    return topic.error_code in (ErrorCode.NONE, ErrorCode.LEADER_NOT_AVAILABLE)
