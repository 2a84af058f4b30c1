"""The header of an MKB1 frame: where its fields lie, and a look at it without the records.

All numbers are big-endian. A frame is ``4s`` magic ``MKB1``, ``I`` payload length, ``I`` CRC-32
(zlib) of the payload, then the payload:

=====  ====  ==========================================================
field  type  notes
=====  ====  ==========================================================
B            format version, 1 or 2
q            base offset
I            leader epoch
q            producer id, -1 none
i            producer epoch, -1 none
i            base sequence, -1 none
B            flags: 1 transactional, 2 commit, 4 abort
i            last offset delta
H            length of the transactional id
I            record count
q            max timestamp ms (version 2 only)
...          transactional id, UTF-8
...          records
=====  ====  ==========================================================

Left out: records, CRC and what makes a header legal (``storage.mkb1``).
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from storage.batch import ControlType
from storage.errors import CorruptBatch

__all__ = [
    "ABORT",
    "COMMIT",
    "CONTROL_FLAGS",
    "FLAGS",
    "FRAME",
    "HEADER_V1",
    "HEADER_V2",
    "MAGIC",
    "TRANSACTIONAL",
    "FrameHeader",
    "peek_header",
]

MAGIC: Final = b"MKB1"
FRAME: Final = Struct(">4sII")
HEADER_V1: Final = Struct(">BqIqiiBiHI")
HEADER_V2: Final = Struct(">BqIqiiBiHIq")

TRANSACTIONAL: Final = 1
COMMIT: Final = 2
ABORT: Final = 4
CONTROL_FLAGS: Final = {ControlType.COMMIT: COMMIT, ControlType.ABORT: ABORT}
FLAGS: Final[dict[int, tuple[bool, ControlType | None]]] = {
    0: (False, None),
    TRANSACTIONAL: (True, None),
    TRANSACTIONAL | COMMIT: (True, ControlType.COMMIT),
    TRANSACTIONAL | ABORT: (True, ControlType.ABORT),
}


class FrameHeader(NamedTuple):
    """Every field of a frame's header, as it stands there, sensible or not.

    Attributes:
        size_bytes: of the whole frame.
        max_timestamp_ms: None in version 1, which has no such field.
        transactional_id: as far as the bytes given hold it; ``id_bytes`` is its whole length.
    """

    size_bytes: int
    version: int
    base_offset: int
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    flags: int
    last_offset_delta: int
    id_bytes: int
    record_count: int
    max_timestamp_ms: int | None
    transactional_id: bytes

    @property
    def next_offset(self) -> int:
        """The offset behind the batch."""
        return self.base_offset + self.last_offset_delta + 1

    @property
    def control(self) -> ControlType | None:
        """What a marker says, None for data and for flags that make no sense."""
        return FLAGS.get(self.flags, (False, None))[1]


def peek_header(frame: bytes | memoryview) -> FrameHeader:
    """The header of a frame that ``check`` found whole; neither CRC nor records are looked at.

    ``frame`` may end behind the header. Raises ``CorruptBatch`` where even that is not there.
    """
    is_long = len(frame) > FRAME.size and frame[FRAME.size] == 2
    layout = HEADER_V2 if is_long else HEADER_V1
    end = FRAME.size + layout.size
    if len(frame) < end:
        raise CorruptBatch("torn", f"{len(frame)} bytes, a header has {end}")
    size_bytes = FRAME.size + FRAME.unpack_from(frame)[1]
    fields = layout.unpack_from(frame, FRAME.size)
    id_end = min(end + fields[8], size_bytes)
    timestamp = fields[10] if is_long else None
    return FrameHeader._make((size_bytes, *fields[:10], timestamp, bytes(frame[end:id_end])))
