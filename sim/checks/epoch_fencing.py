"""I20: what is of an older epoch than its receiver knows has no effect.

Looked at are fetches and epoch queries at leaders (leader epoch; of fetches also the broker epoch),
responses at followers, proposals of an ISR and heartbeats at the controller. A follower whose log
has records says under which epoch it has the last of them, unless it truncates by asking. Requests
that name no leader epoch (-1) are left out, and so are produce requests, which carry none. A fetch
of a fenced broker's earlier life is served by right, and gives no eligibility (PROTOCOL A4.6).
"""

from __future__ import annotations

from cluster.controller import Controller
from cluster.errors import ErrorCode
from cluster.messages_control import AlterPartitionRequest, BrokerHeartbeatRequest
from cluster.messages_data import (
    CONSUMER,
    FetchRequest,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from cluster.metadata import MetadataImage
from cluster.names import NO_BROKER_EPOCH, NO_EPOCH, TopicIdPartition
from cluster.records import PartitionRecord
from cluster.truncation import TruncationMode
from sim.checks import truncation_floor
from sim.checks.history import Batch
from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["check_answer", "check_proposal", "check_response", "report_heartbeat"]

CHECK = "epoch-fencing"

Asked = FetchRequest | OffsetsForLeaderEpochRequest
Answered = FetchResponse | OffsetsForLeaderEpochResponse


def check_answer(
    scene: Scene,
    node: str,
    image: MetadataImage,
    src: str,
    asked: Asked,
    answer: Answered,
    epochs: dict[TopicIdPartition, int],
    event: int,
) -> None:
    """A broker answers a fetch or an epoch query; ``epochs`` are those that it has applied."""
    wanted = {each.partition: each.current_leader_epoch for each in asked.partitions}
    for result in answer.partitions:
        if result.error_code is not ErrorCode.NONE:
            continue
        epoch, own = wanted.get(result.partition, NO_EPOCH), epochs.get(result.partition, NO_EPOCH)
        if NO_EPOCH < epoch < own:
            scene.report(
                CHECK,
                result.partition,
                "old-leader-epoch",
                event,
                f"{node} serves {src} under epoch {epoch}, and is in epoch {own}",
                node=node,
                src=src,
                epoch=epoch,
                own=own,
            )
    if isinstance(asked, FetchRequest) and asked.replica_id != CONSUMER:
        offsets = {each.partition: each.fetch_offset for each in asked.partitions}
        for result in answer.partitions if isinstance(answer, FetchResponse) else ():
            truncation_floor.check_told(scene, node, src, offsets, result, event)
        if scene.world.config.broker.truncation is TruncationMode.FETCH:
            _check_last_fetched(scene, asked, answer, event)
        known = image.brokers.get(asked.replica_id)
        is_old = known is not None and NO_BROKER_EPOCH < asked.replica_epoch < known.broker_epoch
        if known is not None and is_old and not known.is_fenced:
            served = [r.partition for r in answer.partitions if r.error_code is ErrorCode.NONE]
            for partition in served:
                scene.report(
                    CHECK,
                    partition,
                    "old-broker-epoch",
                    event,
                    f"{node} serves a fetch of {src} from broker epoch {asked.replica_epoch}, "
                    f"which has registered under {known.broker_epoch}",
                    node=node,
                    src=src,
                    epoch=asked.replica_epoch,
                    known=known.broker_epoch,
                )


def _check_last_fetched(scene: Scene, asked: FetchRequest, answer: Answered, event: int) -> None:
    asking = scene.broker(asked.replica_id)
    if asking is None or asking.core.broker_epoch != asked.replica_epoch:
        # It may have another log by now than when it asked.
        return
    served = {each.partition for each in answer.partitions if each.error_code is ErrorCode.NONE}
    for each in asked.partitions:
        if each.last_fetched_epoch != NO_EPOCH or each.partition not in served:
            continue
        place = scene.ledger(each.partition).places.get(asked.replica_id)
        last = None if place is None else place.mirror.last_before(each.fetch_offset)
        if place is None or last is None:
            continue
        if last.next == each.fetch_offset > place.start:
            scene.report(
                CHECK,
                each.partition,
                "asks-without-epoch",
                event,
                f"{asked.replica_id} asks for offset {each.fetch_offset}, and does not say that it "
                f"has {last} in front of that",
                node=asked.replica_id,
                offset=each.fetch_offset,
                epoch=last.epoch,
            )


def check_response(
    scene: Scene, place: Place, epoch: int, added: tuple[Batch, ...], event: int
) -> None:
    """A response to a fetch under ``epoch`` has changed a follower's log or high watermark."""
    if epoch == NO_EPOCH:
        return
    own = place.replica.leader_epoch if place.replica is not None else NO_EPOCH
    newest = max((batch.epoch for batch in added), default=NO_EPOCH)
    if epoch < own:
        kind, what = "old-response", f"is in epoch {own}"
    elif newest > epoch:
        kind, what = "newer-batch", f"takes a batch of epoch {newest} from it"
    else:
        return
    scene.report(
        CHECK,
        place.partition,
        kind,
        event,
        f"{place.node} takes the response to a fetch under epoch {epoch}, and {what}",
        node=place.node,
        epoch=epoch,
        own=own,
        newest=newest,
    )


def check_proposal(
    scene: Scene,
    controller: Controller,
    message: AlterPartitionRequest,
    before: dict[TopicIdPartition, PartitionRecord],
    event: int,
) -> None:
    """The controller has handled a proposal; ``before`` is what it had decided until then."""
    known = controller.image.broker_epoch(message.broker_id)
    is_old_life = NO_BROKER_EPOCH < message.broker_epoch < known
    for asked in message.partitions:
        record, old = controller.image.partition(asked.partition), before.get(asked.partition)
        if old is None or record is None or record is old:
            continue
        is_old = (
            asked.leader_epoch < old.leader_epoch or asked.partition_epoch < old.partition_epoch
        )
        if not is_old and not is_old_life:
            continue
        scene.report(
            CHECK,
            asked.partition,
            "old-broker-epoch" if is_old_life else "old-proposal",
            event,
            f"a proposal of {message.broker_id} under leader epoch {asked.leader_epoch}, partition "
            f"epoch {asked.partition_epoch}, broker epoch {message.broker_epoch} is accepted, "
            f"where {old.leader_epoch}, {old.partition_epoch} and {known} are current",
            sender=message.broker_id,
            asked=[asked.leader_epoch, asked.partition_epoch, message.broker_epoch],
            current=[old.leader_epoch, old.partition_epoch, known],
        )


def report_heartbeat(scene: Scene, message: BrokerHeartbeatRequest, known: int, event: int) -> None:
    """The controller has taken the heartbeat of an earlier life than ``known``, a broker epoch."""
    scene.report(
        CHECK,
        None,
        "old-heartbeat",
        event,
        f"a heartbeat of {message.broker_id} from broker epoch {message.broker_epoch} counts, and "
        f"{known} is registered",
        broker=message.broker_id,
        epoch=message.broker_epoch,
        known=known,
    )
