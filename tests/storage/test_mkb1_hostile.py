"""Frames that must be refused, and bytes from anywhere.

``decode_batch`` gives a value or ``CorruptBatch``, whatever it gets, and builds no more than the
input justifies. What it gives encodes to the same bytes. The verdict on every frame, legal or not,
is that of the naive twin.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from storage import ControlType, Header, Record, RecordBatch, decode_batch, encode_batch
from storage.errors import CorruptBatch, CorruptData
from storage.mkb1 import MKB1
from tests.storage import naive_mkb1 as naive
from tests.storage.batches import batches, commit, emptied, integers_of
from tests.storage.naive_mkb1 import NaiveBatch, NaiveRecord, framed, patched, unsigned

HEADER = Header("k", b"h")
RECORD = Record(b"key", b"value", 1_000, (HEADER,))
DATA = RecordBatch.unassigned((RECORD, RECORD), transactional_id="tx").assign(7, 3)
V2 = encode_batch(DATA)
V1 = encode_batch(evolve(DATA, format_version=1))
MARKER = encode_batch(commit(timestamp_ms=5).assign(9, 3))

# Where the fields of the header are, and where the first record begins in V2.
VERSION, BASE, EPOCH, FLAGS, LAST_DELTA, ID_LENGTH, COUNT, MAX_TIMESTAMP = (
    12,
    13,
    21,
    41,
    42,
    46,
    48,
    52,
)
V2_RECORD = 60 + len("tx")
V2_HEADER = V2_RECORD + 22 + len(b"key") + len(b"value")


def i32(value: int) -> bytes:
    return value.to_bytes(4, "big", signed=True)


def i64(value: int) -> bytes:
    return value.to_bytes(8, "big", signed=True)


def records(*deltas: int) -> tuple[NaiveRecord, ...]:
    return tuple(NaiveRecord(delta, 0, None, None) for delta in deltas)


def naive_batch(**changes: object) -> bytes:
    plain = NaiveBatch(2, 0, 0, -1, -1, -1, 0, 0, 0, b"", records(0))
    return naive.encode(plain._replace(**changes))  # type: ignore[arg-type]


# One record of no key and no value, with one header of no value: every length is -1.
NOTHING = naive_batch(records=(NaiveRecord(0, 0, None, None, ((b"", None),)),))
NOTHING_RECORD = 60

ILLEGAL: dict[str, bytes] = {
    "no bytes": b"",
    "another magic": b"MKB2" + V2[4:],
    "payload length above the input": V2[:4] + unsigned(len(V2) - 11, 4) + V2[8:],
    "payload length below the input": V2[:4] + unsigned(len(V2) - 13, 4) + V2[8:],
    "payload length 2^32-1": V2[:4] + b"\xff" * 4 + V2[8:],
    "payload of 0 bytes": framed(b""),
    "payload of one version byte": framed(b"\x02"),
    "version 1 header cut": framed(V1[12:51]),
    "version 2 header cut": framed(V2[12:59]),
    "version 1 header as version 2": patched(
        encode_batch(evolve(commit(), format_version=1).assign(0, 0)), VERSION, b"\x02"
    ),
    "another CRC": V2[:8] + bytes([V2[8] ^ 1]) + V2[9:],
    "a byte behind the frame": V2 + b"\0",
    "a second frame": V2 + V2,
    "version 0": patched(V2, VERSION, b"\0"),
    "version 3": patched(V2, VERSION, b"\x03"),
    "version 255": patched(V2, VERSION, b"\xff"),
    "negative base offset": patched(V2, BASE, i64(-1)),
    "base + last delta = 2^63": patched(V2, BASE, i64(2**63 - 1)),
    "base + last delta = 2^63, huge delta": naive_batch(
        base_offset=2**63 - 2**31 + 1, last_offset_delta=2**31 - 1
    ),
    "epoch 2^31": patched(V2, EPOCH, unsigned(2**31, 4)),
    "epoch 2^32-1": patched(V2, EPOCH, unsigned(2**32 - 1, 4)),
    "flags 0 with a transactional id": patched(V2, FLAGS, b"\0"),
    "flags 1 without a transactional id": naive_batch(flags=1),
    "flags 2 without 1": patched(MARKER, FLAGS, b"\x02"),
    "flags 4 without 1": patched(MARKER, FLAGS, b"\x04"),
    "flags 2 and 4": patched(MARKER, FLAGS, b"\x07"),
    "flag 8": patched(V2, FLAGS, b"\x09"),
    "flag 128": patched(V2, FLAGS, b"\x81"),
    "commit flag on a data batch": patched(V2, FLAGS, b"\x03"),
    "abort flag on a data batch": patched(V2, FLAGS, b"\x05"),
    "marker with last delta 1": patched(MARKER, LAST_DELTA, i32(1)),
    "marker with a record": naive_batch(flags=3, transactional_id=b"t"),
    "marker with trailing bytes": framed(MARKER[12:] + b"\0"),
    "marker that counts a record": patched(MARKER, COUNT, unsigned(1, 4)),
    "marker without a transactional id": naive_batch(flags=3, records=()),
    "negative last delta": patched(V2, LAST_DELTA, i32(-1)),
    "last delta below the last record": patched(V2, LAST_DELTA, i32(0)),
    "transactional id past the end": patched(V2, ID_LENGTH, b"\xff\xff"),
    "transactional id of bad UTF-8": patched(V2, 60, b"\xff"),
    "transactional id of half a character": naive_batch(flags=1, transactional_id=b"\xc3"),
    "transactional id of a surrogate": naive_batch(flags=1, transactional_id=b"\xed\xa0\x80"),
    "one record too few": patched(V2, COUNT, unsigned(1, 4)),
    "one record too many": patched(V2, COUNT, unsigned(3, 4)),
    "2^32-1 records": patched(V2, COUNT, b"\xff" * 4),
    "version 1 with 0 records": naive_batch(version=1, max_timestamp_ms=None, records=()),
    "version 1 with 0 records and a transaction": naive_batch(
        version=1, max_timestamp_ms=None, records=(), flags=1, transactional_id=b"t"
    ),
    "max timestamp above the records'": patched(V2, MAX_TIMESTAMP, i64(1_001)),
    "max timestamp below the records'": patched(V2, MAX_TIMESTAMP, i64(999)),
    "max timestamp -1 with records": patched(V2, MAX_TIMESTAMP, i64(-1)),
    "max timestamp of an emptied batch": naive_batch(records=(), max_timestamp_ms=0),
    "emptied batch with trailing bytes": framed(encode_batch(emptied(0, 1))[12:] + b"\0"),
    "negative delta": naive_batch(records=records(-1)),
    "equal deltas": naive_batch(records=records(0, 0), last_offset_delta=1),
    "falling deltas": naive_batch(records=records(1, 0), last_offset_delta=1),
    "delta above the last": naive_batch(records=records(0, 2), last_offset_delta=1),
    "key length -2": patched(V2, V2_RECORD + 12, i32(-2)),
    "key length -2^31": patched(V2, V2_RECORD + 12, i32(-(2**31))),
    "key length 2^31-1": patched(V2, V2_RECORD + 12, i32(2**31 - 1)),
    "value length -2": patched(V2, V2_RECORD + 16, i32(-2)),
    "value length 2^31-1": patched(V2, V2_RECORD + 16, i32(2**31 - 1)),
    "value length one too long": patched(V2, V2_RECORD + 16, i32(6)),
    "header count 65,535": patched(V2, V2_RECORD + 20, b"\xff\xff"),
    "header count one too few": patched(V2, V2_RECORD + 20, b"\0\0"),
    "header key past the end": patched(V2, V2_HEADER, b"\xff\xff"),
    "header key of bad UTF-8": patched(V2, V2_HEADER + 2, b"\x80"),
    "header value length -2": patched(V2, V2_HEADER + 3, i32(-2)),
    "key length -2 and no bytes": patched(NOTHING, NOTHING_RECORD + 12, i32(-2)),
    "value length -2 and no bytes": patched(NOTHING, NOTHING_RECORD + 16, i32(-2)),
    "header value length -2 and no bytes": patched(NOTHING, len(NOTHING) - 4, i32(-2)),
    "header value length 2^31-1": patched(V2, V2_HEADER + 3, i32(2**31 - 1)),
    "a byte behind the last record": framed(V2[12:] + b"\0"),
    "a byte behind the last record of version 1": framed(V1[12:] + b"\0"),
    "the last byte of the last record missing": framed(V2[12:-1]),
    "the last byte of version 1 missing": framed(V1[12:-1]),
}


@pytest.mark.parametrize("frame", ILLEGAL.values(), ids=ILLEGAL)
def test_illegal_frame_is_corrupt(frame: bytes) -> None:
    with pytest.raises(naive.IllegalFrame):
        naive.decode(frame)
    for kind in (bytes, bytearray, memoryview):
        with pytest.raises(CorruptBatch) as caught:
            decode_batch(kind(frame))
        assert caught.value.reason in str(caught.value)
        assert isinstance(caught.value, CorruptData)


def test_the_frames_that_the_illegal_ones_were_made_from_are_legal() -> None:
    for frame in (V1, V2, MARKER, naive_batch(), naive_batch(records=(), max_timestamp_ms=-1)):
        assert naive.encode(naive.decode(frame)) == frame
        assert encode_batch(decode_batch(frame)) == frame


@pytest.mark.parametrize("frame", [V1, V2, MARKER], ids=["v1", "v2", "marker"])
def test_one_flipped_bit_anywhere_is_corrupt(frame: bytes) -> None:
    for bit in range(8 * len(frame)):
        damaged = bytearray(frame)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(CorruptBatch):
            decode_batch(damaged)


# The verdict of the naive twin -----------------------------------------------------------------


def check_verdict(frame: bytes, max_batch_bytes: int = naive.MAX_BATCH_BYTES) -> bool:
    """Both sides accept the frame as the same batch, or both refuse; which of the two."""
    try:
        expected = naive.to_batch(naive.decode(frame, max_batch_bytes))
    except naive.IllegalFrame:
        with pytest.raises(CorruptBatch):
            decode_batch(frame, max_batch_bytes=max_batch_bytes)
        return False
    decoded = decode_batch(frame, max_batch_bytes=max_batch_bytes)
    assert decoded == expected
    assert encode_batch(decoded) == frame
    size, base, next_offset, epoch, timestamp_ms = MKB1.check(frame, 0, len(frame), len(frame))
    assert (size, base, next_offset) == (len(frame), decoded.base_offset, decoded.next_offset)
    assert (epoch, timestamp_ms) == (decoded.leader_epoch, decoded.max_timestamp_ms)
    return True


RAW_TEXT = st.binary(max_size=3) | st.sampled_from([b"", b"t", "é".encode(), b"\xc3"])
RAW_RECORDS = st.builds(
    NaiveRecord,
    delta=st.integers(-1, 4),
    timestamp_ms=st.integers(-2, 2),
    key=st.none() | st.binary(max_size=2),
    value=st.none() | st.binary(max_size=2),
    headers=st.lists(st.tuples(RAW_TEXT, st.none() | st.binary(max_size=1)), max_size=2).map(tuple),
)


@st.composite
def any_fields(draw: st.DrawFn) -> bytes:
    """A well-formed frame of fields that are legal or not, mostly close to the border."""
    version = draw(st.sampled_from([1, 2, 1, 2, 0, 3]))
    rows = draw(st.lists(RAW_RECORDS, max_size=3))
    if draw(st.booleans()):
        rows = [row._replace(delta=number) for number, row in enumerate(rows)]
    last = max(len(rows) - 1, 0) + draw(st.sampled_from([0, 0, 0, 1, -1, 2**31 - 5]))
    largest = max((row.timestamp_ms for row in rows), default=-1)
    if draw(st.sampled_from([False, False, True])):
        largest = draw(st.integers(-2, 2))
    base = draw(st.sampled_from([0, 5, -1, 2**63 - 2 - max(last, 0)]) | integers_of(64))
    # The one end at which text and code are known to differ has a test of its own.
    assume(base + last != 2**63 - 1)
    batch = NaiveBatch(
        version,
        base,
        draw(st.sampled_from([0, 3, 2**31 - 1, 2**31])),
        draw(integers_of(64)),
        draw(integers_of(32)),
        draw(integers_of(32)),
        draw(st.sampled_from([0, 0, 1, 3, 5, 2, 4, 7, 8])),
        last,
        None if version == 1 else largest,
        draw(RAW_TEXT),
        tuple(rows),
    )
    return naive.encode(batch)


@given(any_fields())
def test_verdict_on_any_fields_is_the_naive_twins(frame: bytes) -> None:
    check_verdict(frame)


EDITS = st.lists(
    st.tuples(
        st.integers(0, 1 << 16),
        st.integers(0, 8),
        st.binary(max_size=4) | st.sampled_from([i32(-1), i32(-2), i32(2**31 - 1), b"\xff\xff"]),
    ),
    max_size=3,
)


@given(batches(), EDITS)
def test_verdict_on_an_edited_payload_with_its_crc_renewed_is_the_naive_twins(
    batch: RecordBatch, edits: list[tuple[int, int, bytes]]
) -> None:
    payload = bytearray(encode_batch(batch)[12:])
    for at, size, data in edits:
        at %= len(payload) + 1
        payload[at : at + size] = data
    frame = framed(bytes(payload))
    # The one end at which text and code are known to differ has a test of its own.
    ends_at = int.from_bytes(payload[1:9], "big") + int.from_bytes(payload[30:34], "big")
    assume(ends_at != 2**63 - 1)
    check_verdict(frame)


@given(batches(), EDITS)
def test_edited_frame_is_a_value_or_corrupt(
    batch: RecordBatch, edits: list[tuple[int, int, bytes]]
) -> None:
    frame = bytearray(encode_batch(batch))
    for at, size, data in edits:
        at %= len(frame) + 1
        frame[at : at + size] = data
    check_verdict(bytes(frame))


@given(st.binary(max_size=200), st.booleans(), st.booleans())
def test_random_bytes_are_a_value_or_corrupt(data: bytes, is_framed: bool, is_v2: bool) -> None:
    if is_framed:
        data = framed((b"\x02" if is_v2 else b"\x01") + data)
    check_verdict(data)


@given(batches(), st.integers(0, 400))
def test_verdict_on_a_frame_above_max_batch_bytes_is_the_naive_twins(
    batch: RecordBatch, max_batch_bytes: int
) -> None:
    frame = encode_batch(batch)
    assert check_verdict(frame, max_batch_bytes) == (len(frame) <= max_batch_bytes)


# Memory ----------------------------------------------------------------------------------------


def peak_bytes(call: Callable[[], object]) -> int:
    """The most bytes that a call had allocated at one time."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def decode_or_refuse(frame: bytes) -> None:
    try:
        decode_batch(frame)
    except CorruptBatch:
        return


def filled(version: int, row: NaiveRecord, count: int) -> bytes:
    rows = tuple(row._replace(delta=number) for number in range(count))
    largest = row.timestamp_ms if version == 2 else None
    return naive.encode(NaiveBatch(version, 0, 0, -1, -1, -1, 0, count - 1, largest, b"", rows))


BARE = NaiveRecord(0, 10**12, None, None)
WITH_HEADERS = NaiveRecord(0, 10**12, None, None, ((b"ab", b""),) * 300)


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(
    ("row", "count"), [(BARE, 1_000), (WITH_HEADERS, 8), (BARE._replace(value=bytes(65_536)), 1)]
)
@pytest.mark.parametrize("damage", ["none", "trailing byte", "count", "last header"])
def test_memory_for_decoding_is_bounded_by_the_input(
    version: int, row: NaiveRecord, count: int, damage: str
) -> None:
    """Small records are the worst case: a record of 22 bytes becomes a tuple and two integers."""
    frame = filled(version, row, count)
    if damage == "trailing byte":
        frame = framed(frame[12:] + b"\0")
    elif damage == "count":
        frame = patched(frame, COUNT, unsigned(count + 1, 4))
    elif damage == "last header":
        frame = patched(frame, len(frame) - 4, i32(2**31 - 1))
    decode_or_refuse(frame)
    assert peak_bytes(lambda: decode_or_refuse(frame)) < 24 * len(frame) + 16_384


@pytest.mark.parametrize("name", [name for name in ILLEGAL if "2^3" in name or "65,535" in name])
def test_memory_for_a_hostile_length_or_count_is_that_of_the_frame(name: str) -> None:
    frame = ILLEGAL[name]
    decode_or_refuse(frame)
    assert peak_bytes(lambda: decode_or_refuse(frame)) < 16_384


def test_memory_for_many_hostile_records_is_bounded_by_the_input() -> None:
    """Each record claims all the headers that the bytes behind it could hold."""
    count = 500
    row = BARE._replace(headers=((b"", None),) * 2)
    frame = bytearray(filled(2, row, count)[12:])
    for number in range(count):
        frame[48 + 34 * number + 20 : 48 + 34 * number + 22] = b"\xff\xff"
    hostile = framed(bytes(frame))
    decode_or_refuse(hostile)
    assert peak_bytes(lambda: decode_or_refuse(hostile)) < 24 * len(hostile) + 16_384


@given(batches(), EDITS)
def test_memory_for_an_edited_frame_is_bounded_by_the_input(
    batch: RecordBatch, edits: list[tuple[int, int, bytes]]
) -> None:
    payload = bytearray(encode_batch(batch)[12:])
    for at, size, data in edits:
        at %= len(payload) + 1
        payload[at : at + size] = data
    frame = framed(bytes(payload))
    decode_or_refuse(frame)
    assert peak_bytes(lambda: decode_or_refuse(frame)) < 64 * len(frame) + 16_384


def test_control_type_has_no_third_value() -> None:
    assert [kind.value for kind in ControlType] == ["commit", "abort"]
