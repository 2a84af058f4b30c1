"""How messages look in the interaction scripts: one short line each, in one style."""

from __future__ import annotations

from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    MetadataFetchResponse,
)
from cluster.messages_data import (
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    FetchPartitionResult,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
)
from cluster.names import LATEST_TIMESTAMP
from cluster.records import METADATA_RECORDS, PartitionRecord, RemoveTopicRecord, TopicRecord
from storage.mkb1 import MKB1, decode_batch

__all__ = ["is_idle", "line_of", "runs"]


def runs(records: bytes) -> str:
    """``0:3-5 1:6`` of whole frames."""
    found: list[list[int]] = []
    at = 0
    while at < len(records):
        size, base, next_offset, epoch = MKB1.hop(records, at)
        if found and found[-1][0] == epoch and found[-1][2] == base:
            found[-1][2] = next_offset
        else:
            found.append([epoch, base, next_offset])
        at += size
    return " ".join(
        f"{epoch}:{base}" if end == base + 1 else f"{epoch}:{base}-{end - 1}"
        for epoch, base, end in found
    )


def is_idle(message: Message) -> bool:
    """A fetch, or an answer to one with nothing in it: many of these pass while time does."""
    if isinstance(message, FetchRequest):
        return True
    return isinstance(message, FetchResponse) and all(
        part.error_code is ErrorCode.NONE and not part.records and part.diverging_epoch is None
        for part in message.partitions
    )


def line_of(src: str, dst: str, message: Message) -> str | None:
    """A delivery as a line, None for what the scripts do not show (heartbeats and the like)."""
    text = _text(message)
    return None if text is None else f"{src}>{dst} {text}"


def _error(error: ErrorCode) -> str:
    return f"error {error.name}"


def _text(message: Message) -> str | None:
    match message:
        case FetchRequest(partitions=parts, replica_id=replica):
            return "; ".join(
                f"fetch {part.fetch_offset}"
                + (f" last {part.last_fetched_epoch} epoch {part.current_leader_epoch}")
                * bool(replica)
                for part in parts
            )
        case FetchResponse(partitions=results):
            return "; ".join(_fetched(result) for result in results)
        case OffsetsForLeaderEpochRequest(partitions=asked):
            return "; ".join(f"end of epoch {part.leader_epoch}?" for part in asked)
        case OffsetsForLeaderEpochResponse(partitions=ends):
            return "; ".join(
                f"epoch {end.leader_epoch} ends at {end.end_offset}"
                if end.error_code is ErrorCode.NONE
                else _error(end.error_code)
                for end in ends
            )
        case ListOffsetsRequest(partitions=wanted):
            return "; ".join(
                "latest?" if part.timestamp == LATEST_TIMESTAMP else "earliest?" for part in wanted
            )
        case ListOffsetsResponse(partitions=offsets):
            return "; ".join(
                f"offset {part.offset}"
                if part.error_code is ErrorCode.NONE
                else _error(part.error_code)
                for part in offsets
            )
        case _:
            return _client_text(message) or _control_text(message)


def _fetched(result: FetchPartitionResult) -> str:
    if result.error_code is not ErrorCode.NONE:
        return _error(result.error_code)
    if result.diverging_epoch is not None:
        return f"diverging: epoch {result.diverging_epoch[0]} ends at {result.diverging_epoch[1]}"
    start = f" start {result.log_start_offset}" if result.log_start_offset else ""
    return f"{runs(result.records) or 'nothing'} | hw {result.high_watermark}{start}"


def _client_text(message: Message) -> str | None:
    match message:
        case ProduceRequest(partitions=parts, acks=acks):
            values = " ".join(
                (record.value or b"").decode()
                for part in parts
                for record in decode_batch(part.records, max_batch_bytes=1 << 20).records
            )
            return f"produce {values} acks {'all' if acks == -1 else acks}"
        case ProduceResponse(partitions=results):
            return "; ".join(
                f"at {result.base_offset}"
                if result.error_code is ErrorCode.NONE
                else _error(result.error_code)
                for result in results
            )
        case DeleteRecordsRequest(partitions=asked):
            return "; ".join(f"delete below {part.offset}" for part in asked)
        case DeleteRecordsResponse(partitions=done):
            return "; ".join(
                f"low watermark {part.low_watermark}"
                if part.error_code is ErrorCode.NONE
                else _error(part.error_code)
                for part in done
            )
    return None


def _control_text(message: Message) -> str | None:
    match message:
        case AlterPartitionRequest(partitions=changes):
            return "; ".join(
                f"isr {','.join(member.broker_id for member in change.new_isr)}?"
                for change in changes
            )
        case AlterPartitionResponse(partitions=results):
            return "; ".join(
                f"isr {','.join(result.isr)}"
                if result.error_code is ErrorCode.NONE
                else _error(result.error_code)
                for result in results
            )
        case MetadataFetchResponse(records=records, is_snapshot=is_snapshot):
            told = []
            for data in records:
                match METADATA_RECORDS.decode(data):
                    case PartitionRecord() as state:
                        isr = ",".join(state.isr)
                        told.append(f"leader {state.leader} epoch {state.leader_epoch} isr {isr}")
                    case TopicRecord():
                        told.append("new topic")
                    case RemoveTopicRecord():
                        told.append("topic removed")
            kind = "snapshot" if is_snapshot else "metadata"
            return f"{kind}: {'; '.join(told)}" if told else None
    return None
