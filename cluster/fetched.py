"""What a consumer makes of the bytes of a fetch response: records, or where they stop making sense.

Pure. Frames come as a log stores them, so the first may begin below the offset that was asked for:
what lies below is left out. Control batches and batches that compaction emptied have no records and
are passed over, holes too. A frame that is damaged, begins below the end of the one before it, or
is of a newer epoch than the fetch ends the run; what stands before it counts.

Left out: asking, buffers, and what follows from damage (``cluster.consumer``).
"""

from __future__ import annotations

from typing import Final, NamedTuple

from cluster.names import NO_EPOCH
from storage.batch import LogRecord
from storage.errors import CorruptBatch
from storage.mkb1 import decode_batch
from storage.mkb1_header import peek_header

__all__ = ["EPOCH_TOO_NEW", "Fetched", "parse_frames"]

EPOCH_TOO_NEW: Final = "epoch"


class Fetched(NamedTuple):
    """What was read.

    Attributes:
        next_offset: behind the last good frame; the offset that was asked for where there is none.
        leader_epoch: of the last good frame, -1 where there is none.
        damage: why the run ended early; None where it did not.
    """

    records: list[LogRecord]
    next_offset: int
    leader_epoch: int
    damage: str | None


def parse_frames(
    data: bytes, *, fetch_offset: int, records_max: int, epoch_max: int | None
) -> Fetched:
    """The records from ``fetch_offset`` on.

    Args:
        records_max: once there are so many no further frame is looked at; the last counts whole.
        epoch_max: the epoch of the fetch; None for any.
    """
    records: list[LogRecord] = []
    next_offset, leader_epoch = fetch_offset, NO_EPOCH
    frames_end = at = 0
    view = memoryview(data)
    while at < len(data) and len(records) < records_max:
        try:
            size = peek_header(view[at:]).size_bytes
            # A frame is no longer than what is there, so that is limit enough.
            batch = decode_batch(view[at : at + size], max_batch_bytes=len(data))
        except CorruptBatch as error:
            return Fetched(records, next_offset, leader_epoch, error.reason)
        base = batch.base_offset
        assert base is not None
        if base < frames_end:
            return Fetched(records, next_offset, leader_epoch, "offset")
        if epoch_max is not None and batch.leader_epoch > epoch_max:
            return Fetched(records, next_offset, leader_epoch, EPOCH_TOO_NEW)
        at += size
        frames_end = batch.next_offset
        if frames_end <= fetch_offset:
            continue
        next_offset, leader_epoch = frames_end, batch.leader_epoch
        for delta, record in zip(batch.offset_deltas, batch.records, strict=True):
            if base + delta >= fetch_offset:
                records.append(LogRecord(base + delta, *record, batch.leader_epoch))
    return Fetched(records, next_offset, leader_epoch, None)
