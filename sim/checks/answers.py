"""Requests that a broker has under way, and what its answers promise and show.

Left out: what the broker's logs look like (``sim.checks.brokers``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cluster.broker import Broker
from cluster.errors import ErrorCode
from cluster.messages_data import (
    CONSUMER,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import LATEST_TIMESTAMP, NO_EPOCH, TopicIdPartition
from sim.checks import (
    ack_honours_min_isr,
    committed_durability,
    committed_log_matching,
    consistent_read,
    epoch_fencing,
    idempotence,
)
from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["Answers"]

Request = FetchRequest | OffsetsForLeaderEpochRequest | ProduceRequest | ListOffsetsRequest
Response = FetchResponse | OffsetsForLeaderEpochResponse | ProduceResponse | ListOffsetsResponse


class Answers:
    """See the module.

    Attributes:
        requests: that this broker has to answer, by sender and correlation id.
    """

    def __init__(self, scene: Scene, node: str) -> None:
        self.scene = scene
        self.node = node
        self.requests: dict[tuple[str, int], Request] = {}

    def note_request(self, src: str, message: Any) -> dict[TopicIdPartition, int] | None:
        """A message has come; of a fetch response, the epochs under which was asked for it."""
        if isinstance(message, FetchRequest | ProduceRequest | OffsetsForLeaderEpochRequest):
            if not isinstance(message, ProduceRequest) or message.acks:
                self.requests[src, message.correlation_id] = message
            return None
        if isinstance(message, ListOffsetsRequest):
            if message.replica_id == CONSUMER:
                self.requests[src, message.correlation_id] = message
            return None
        if isinstance(message, FetchResponse):
            asked = self.scene.asked.pop((self.node, src, message.correlation_id), None)
            if asked is not None:
                return {each.partition: each.current_leader_epoch for each in asked.partitions}
        return None

    def forget(self, src: str) -> None:
        """A connection is gone: what came over it is not answered."""
        for key in [key for key in self.requests if key[0] == src]:
            del self.requests[key]

    def forget_all(self) -> None:
        """The process has ended."""
        self.requests.clear()
        for key in [key for key in self.scene.asked if key[0] == self.node]:
            del self.scene.asked[key]

    def check(
        self,
        broker: Broker,
        places: Mapping[TopicIdPartition, Place],
        to: str,
        answer: Response,
        before: Mapping[TopicIdPartition, int],
        event: int,
    ) -> None:
        """The broker answers.

        Args:
            before: leader epochs that the handler has changed, as they were: an answer may have
                been given before that.
        """
        request = self.requests.pop((to, answer.correlation_id), None)
        if isinstance(answer, ProduceResponse):
            if isinstance(request, ProduceRequest):
                self._acknowledge(places, to, request, answer, event)
            return
        if isinstance(answer, ListOffsetsResponse):
            if isinstance(request, ListOffsetsRequest):
                self._tell_ends(places, to, request, answer, event)
            return
        if isinstance(answer, FetchResponse):
            self._show(places, answer)
        if isinstance(request, FetchRequest | OffsetsForLeaderEpochRequest):
            if isinstance(request, FetchRequest) and request.replica_id:
                self.scene.asked[to, self.node, answer.correlation_id] = request
            epochs = {
                each.partition: before[each.partition]
                if each.partition in before
                else _epoch_of(places.get(each.partition))
                for each in answer.partitions
            }
            epoch_fencing.check_answer(
                self.scene, self.node, broker.core.image, to, request, answer, epochs, event
            )

    def _show(self, places: Mapping[TopicIdPartition, Place], answer: FetchResponse) -> None:
        """What is below a high watermark that anybody is shown is exposed."""
        for result in answer.partitions:
            if result.error_code is not ErrorCode.NONE:
                continue
            place = places.get(result.partition)
            mark = result.high_watermark
            if place is None or mark <= place.shown:
                continue
            ledger = self.scene.ledger(result.partition)
            ledger.exposed.add(place.mirror.surely(place.shown, mark))
            ledger.exposed_top = max(ledger.exposed_top, mark)
            place.shown = mark

    def _tell_ends(
        self,
        places: Mapping[TopicIdPartition, Place],
        client: str,
        request: ListOffsetsRequest,
        answer: ListOffsetsResponse,
        event: int,
    ) -> None:
        for asked, result in zip(request.partitions, answer.partitions, strict=True):
            place = places.get(result.partition)
            is_end = asked.timestamp == LATEST_TIMESTAMP and result.error_code is ErrorCode.NONE
            if place is not None and is_end:
                ledger = self.scene.ledger(result.partition)
                consistent_read.check_latest(
                    self.scene, ledger, place, client, result.offset, event
                )

    def agree(
        self,
        places: Mapping[TopicIdPartition, Place],
        asked: Mapping[TopicIdPartition, int],
        message: FetchResponse,
        event: int,
    ) -> None:
        """A fetch in the current epoch that does not diverge: the logs agree from here on."""
        scene = self.scene
        for result in message.partitions:
            place = places.get(result.partition)
            if place is None or not place.is_uncertain or place.replica is None:
                continue
            if result.error_code is not ErrorCode.NONE or result.diverging_epoch is not None:
                continue
            record, epoch = scene.records.get(result.partition), asked.get(result.partition)
            if record is None or record.leader_epoch != place.replica.leader_epoch:
                continue
            # Without the guard fetch-epoch, fetches name no epoch; the replica's own one counts.
            if epoch in (record.leader_epoch, NO_EPOCH):
                place.is_uncertain = False
                committed_log_matching.check(scene, scene.ledger(result.partition), place, event)

    def _acknowledge(
        self,
        places: Mapping[TopicIdPartition, Place],
        client: str,
        request: ProduceRequest,
        answer: ProduceResponse,
        event: int,
    ) -> None:
        scene = self.scene
        frames = {each.partition: each.records for each in request.partitions}
        for result in answer.partitions:
            place = places.get(result.partition)
            if result.error_code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and place is not None:
                ledger, frame = scene.ledger(result.partition), frames.get(result.partition, b"")
                idempotence.check_refused(scene, ledger, place, frame, event)
            if result.error_code is not ErrorCode.NONE or place is None:
                continue
            ledger = scene.ledger(result.partition)
            batch = place.mirror.at(result.base_offset)
            if request.acks == -1:
                committed_durability.acknowledge(
                    scene, ledger, place, result.base_offset, batch, event
                )
                if batch is not None:
                    ack_honours_min_isr.check(scene, ledger, place, batch, event)
            if batch is not None:
                answered = ledger.answered.setdefault(client, {})
                for offset in range(result.base_offset, batch.next):
                    answered[offset] = batch.epoch


def _epoch_of(place: Place | None) -> int:
    return NO_EPOCH if place is None or place.replica is None else place.replica.leader_epoch
