"""MKB1 byte for byte: the worked examples, the naive twin, facts from headers, restamping.

Frames that must be refused are the subject of ``test_mkb1_hostile.py``.
"""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import assume, given
from hypothesis import strategies as st

from storage import ControlType, Header, Record, RecordBatch, decode_batch, encode_batch
from storage.errors import BatchTooLarge, CorruptBatch
from storage.mkb1 import MKB1
from storage.mkb1_header import MAGIC
from tests.storage import naive_mkb1 as naive
from tests.storage.batches import EPOCHS, base_offsets, batches, commit, emptied, many, one

# The examples of the format's text, in hex.
RECORD_V1 = (
    "4d4b4231000000478dd7a01801000000000000000700000003ffffffffffffffffffffffffffffffff000000000000"
    "00000000010000000000000000000003e8ffffffff000000020001686900016bffffffff"
)
RECORD_V2 = (
    "4d4b42310000004f35fadbd102000000000000000700000003ffffffffffffffffffffffffffffffff000000000000"
    "000000000100000000000003e80000000000000000000003e8ffffffff000000020001686900016bffffffff"
)
MARKER_V1 = (
    "4d4b42310000002cd60e64a201000000000000000900000003000000000000002a00000000ffffffff030000000000"
    "040000000074782d31"
)
MARKER_V2 = (
    "4d4b423100000034c566477a02000000000000000900000003000000000000002a00000000ffffffff030000000000"
    "040000000000000000000003e874782d31"
)
RECORD = RecordBatch.unassigned((Record(None, b"hi", 1_000, (Header("k", None),)),)).assign(7, 3)
EXAMPLES = {
    "record v1": (RECORD_V1, evolve(RECORD, format_version=1)),
    "record v2": (RECORD_V2, RECORD),
    "marker v1": (MARKER_V1, evolve(commit().assign(9, 3), format_version=1)),
    "marker v2": (MARKER_V2, commit(timestamp_ms=1_000).assign(9, 3)),
}

example = pytest.mark.parametrize(("text", "batch"), EXAMPLES.values(), ids=EXAMPLES)


@example
def test_example_encodes_to_the_documented_bytes(text: str, batch: RecordBatch) -> None:
    assert encode_batch(batch).hex() == text


@example
def test_example_decodes_to_the_documented_batch(text: str, batch: RecordBatch) -> None:
    assert decode_batch(bytes.fromhex(text)) == batch


@example
def test_naive_twin_agrees_with_the_example(text: str, batch: RecordBatch) -> None:
    frame = bytes.fromhex(text)
    assert naive.encode(naive.from_batch(batch)) == frame
    assert naive.to_batch(naive.decode(frame)) == batch


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_any_byte_buffer_decodes_into_values_of_its_own(kind: type) -> None:
    buffer = bytearray.fromhex(RECORD_V2)
    batch = decode_batch(kind(buffer))
    buffer[:] = bytes(len(buffer))
    assert batch == RECORD
    assert type(batch.records[0].value) is bytes


# Against the naive twin ------------------------------------------------------------------------


@given(batches())
def test_encoded_batch_is_what_the_naive_twin_encodes(batch: RecordBatch) -> None:
    assert encode_batch(batch) == naive.encode(naive.from_batch(batch))


@given(batches())
def test_naively_encoded_batch_decodes_to_the_batch(batch: RecordBatch) -> None:
    frame = naive.encode(naive.from_batch(batch))
    decoded = decode_batch(frame)
    assert decoded == batch
    assert naive.to_batch(naive.decode(frame)) == batch
    assert encode_batch(decoded) == frame


@given(batches())
def test_decoded_records_and_headers_are_named_tuples(batch: RecordBatch) -> None:
    for record in decode_batch(encode_batch(batch)).records:
        assert type(record) is Record
        assert all(type(header) is Header for header in record.headers)


def test_none_and_empty_are_different_in_key_value_and_header_value() -> None:
    records = tuple(
        Record(key, value, 0, (Header("", header),))
        for key in (None, b"")
        for value in (None, b"")
        for header in (None, b"")
    )
    batch = RecordBatch.unassigned(records).assign(0, 0)
    assert decode_batch(encode_batch(batch)).records == records
    assert len({encode_batch(RecordBatch.unassigned((r,)).assign(0, 0)) for r in records}) == 8


def test_widest_headers_key_and_transactional_id_fit() -> None:
    headers = (Header("k" * 65_535, b""), *[Header("", None)] * 65_534)
    batch = RecordBatch.unassigned(
        (Record(None, None, 0, headers),), transactional_id="é" * 32_767 + "x"
    ).assign(0, 0)
    assert decode_batch(encode_batch(batch)) == batch


def test_the_last_offset_below_2_to_the_63_can_be_stored() -> None:
    """ "Offsets are >= 0 and base + delta < 2^63": 2^63 - 1 is below 2^63."""
    at_the_edge = naive.from_batch(one().assign(0, 0))._replace(base_offset=2**63 - 1)
    frame = naive.encode(at_the_edge)
    assert naive.decode(frame) == at_the_edge
    assert encode_batch(decode_batch(frame)) == frame


def test_clients_write_version_2() -> None:
    assert encode_batch(one().assign(0, 0))[12] == 2
    assert encode_batch(commit().assign(0, 0))[12] == 2


# Header facts ----------------------------------------------------------------------------------


def facts_of(batch: RecordBatch, frame: bytes) -> tuple[int, int, int, int, int]:
    base = batch.base_offset
    assert base is not None
    return len(frame), base, batch.next_offset, batch.leader_epoch, batch.max_timestamp_ms


@given(batches(), st.binary(max_size=80), st.binary(max_size=80))
def test_check_and_hop_tell_what_decode_tells_wherever_the_frame_stands(
    batch: RecordBatch, before: bytes, behind: bytes
) -> None:
    frame = encode_batch(batch)
    buffer = before + frame + behind
    facts = facts_of(decode_batch(frame), frame)
    for view in (buffer, bytearray(buffer), memoryview(buffer)):
        assert MKB1.check(view, len(before), len(buffer), len(frame)) == facts
        assert MKB1.check(view, len(before), len(before) + len(frame), len(frame)) == facts
    assert MKB1.hop(buffer, len(before)) == facts[:4]
    assert MKB1.hop(memoryview(frame)[: MKB1.hop_bytes], 0) == facts[:4]


@given(batches())
def test_encode_at_another_place_tells_the_max_timestamp(batch: RecordBatch) -> None:
    frame, timestamp_ms = MKB1.encode(batch, 12, 34, 1 << 20)
    assert timestamp_ms == batch.max_timestamp_ms
    assert frame == encode_batch(evolve(batch, base_offset=12, leader_epoch=34))


@given(batches())
def test_frame_cut_anywhere_is_torn(batch: RecordBatch) -> None:
    frame = encode_batch(batch)
    for size in range(len(frame)):
        with pytest.raises(CorruptBatch) as caught:
            MKB1.check(frame + frame, 0, size, 1 << 20)
        assert caught.value.reason == "torn", f"cut after {size} bytes"
        with pytest.raises(CorruptBatch):
            decode_batch(frame[:size])


@pytest.mark.parametrize("text", [text for text, _ in EXAMPLES.values()], ids=EXAMPLES)
@pytest.mark.parametrize("at", range(4))
def test_cut_frame_with_another_magic_is_not_torn(text: str, at: int) -> None:
    frame = bytearray.fromhex(text)
    frame[at] ^= 1
    for size in range(at + 1, len(frame) + 1):
        with pytest.raises(CorruptBatch) as caught:
            MKB1.check(frame, 0, size, 1 << 20)
        assert caught.value.reason == "magic"


@pytest.mark.parametrize("length", [0, 39, 1 << 20, 2**32 - 1])
def test_cut_frame_with_an_impossible_length_is_not_torn(length: int) -> None:
    frame = MAGIC + length.to_bytes(4, "big") + bytes(40)
    for size in range(8, len(frame)):
        with pytest.raises(CorruptBatch) as caught:
            MKB1.check(frame, 0, size, 1 << 20)
        assert caught.value.reason == "length"


def test_hop_without_magic_is_refused() -> None:
    with pytest.raises(CorruptBatch, match="magic"):
        MKB1.hop(bytes(60), 0)


# Restamping ------------------------------------------------------------------------------------


@given(batches(), st.data())
def test_restamped_frame_is_the_batch_at_the_other_place(
    batch: RecordBatch, data: st.DataObject
) -> None:
    base, epoch = data.draw(base_offsets(batch.last_offset_delta)), data.draw(EPOCHS)
    frame = encode_batch(batch)
    before = bytes(frame)
    moved = MKB1.restamp(frame, base, epoch)
    assert frame == before
    assert moved == encode_batch(evolve(batch, base_offset=base, leader_epoch=epoch))


@given(batches())
def test_restamping_back_gives_the_same_bytes(batch: RecordBatch) -> None:
    assume(batch.base_offset is not None)
    frame = encode_batch(batch)
    assert MKB1.restamp(MKB1.restamp(frame, 0, 0), *MKB1.hop(frame, 0)[1::2]) == frame


# Size ------------------------------------------------------------------------------------------


def test_max_batch_bytes_counts_the_whole_frame_on_both_sides() -> None:
    batch = many(3).assign(0, 0)
    size = len(encode_batch(batch))
    assert encode_batch(batch, max_batch_bytes=size)
    frame = encode_batch(batch)
    assert decode_batch(frame, max_batch_bytes=size) == batch
    with pytest.raises(BatchTooLarge) as caught:
        encode_batch(batch, max_batch_bytes=size - 1)
    assert (caught.value.size_bytes, caught.value.max_batch_bytes) == (size, size - 1)
    with pytest.raises(CorruptBatch, match="max_batch_bytes"):
        decode_batch(frame, max_batch_bytes=size - 1)


@pytest.mark.parametrize(
    ("batch", "size"),
    [
        (one(b"").assign(0, 0), 12 + 48 + 22),
        (evolve(one(b"").assign(0, 0), format_version=1), 12 + 40 + 22),
        (emptied(0, 5), 12 + 48),
        (commit("t").assign(0, 0), 12 + 48 + 1),
    ],
)
def test_smallest_frames_have_the_documented_sizes(batch: RecordBatch, size: int) -> None:
    assert len(encode_batch(batch)) == size


def test_abort_marker_carries_flags_1_and_4() -> None:
    batch = evolve(commit(), control=ControlType.ABORT).assign(0, 0)
    frame = encode_batch(batch)
    assert frame[41] == 5
    assert decode_batch(frame) == batch
