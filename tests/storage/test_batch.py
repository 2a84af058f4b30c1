"""Records and batches as values: what can be built, what is derived, and what refusals say."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from attrs.exceptions import FrozenInstanceError

from storage import ControlType, Header, Record, RecordBatch, decode_batch, encode_batch
from storage.batch import dense_deltas
from storage.errors import InvalidRecord, StorageError
from tests.storage.batches import commit, emptied, many, one

A = Record(b"k", b"v", 1_000, (Header("h", None),))


def compacted(deltas: tuple[int, ...], last: int, base: int | None = 10) -> RecordBatch:
    return RecordBatch((A,) * len(deltas), deltas, last, base, 0)


# Building --------------------------------------------------------------------------------------


def test_unassigned_batch_is_dense_and_has_neither_offset_nor_epoch() -> None:
    batch = RecordBatch.unassigned((A, A, A))
    assert batch.records == (A, A, A)
    assert batch.offset_deltas == (0, 1, 2)
    assert batch.last_offset_delta == 2
    assert (batch.base_offset, batch.leader_epoch) == (None, -1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-1, -1, -1)
    assert (batch.transactional_id, batch.control) == (None, None)
    assert (batch.format_version, batch.marker_timestamp_ms) == (2, -1)


def test_unassigned_batch_takes_any_iterable_of_records() -> None:
    assert RecordBatch.unassigned(iter([A, A])) == RecordBatch.unassigned((A, A))


def test_unassigned_batch_keeps_its_producer() -> None:
    batch = RecordBatch.unassigned(
        (A,),
        producer_id=7,
        producer_epoch=1,
        base_sequence=5,
        transactional_id="tx",
        format_version=1,
    )
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (7, 1, 5)
    assert (batch.transactional_id, batch.format_version) == ("tx", 1)


def test_control_marker_has_no_records_and_takes_one_offset() -> None:
    batch = commit(timestamp_ms=99)
    assert (batch.records, batch.offset_deltas, batch.last_offset_delta) == ((), (), 0)
    assert (batch.control, batch.transactional_id) == (ControlType.COMMIT, "tx-1")
    assert (batch.producer_id, batch.producer_epoch) == (42, 0)
    assert (batch.logical_count, batch.max_timestamp_ms) == (1, 99)
    assert batch.assign(9, 3).next_offset == 10


def test_assign_gives_offset_and_epoch_to_a_copy() -> None:
    batch = RecordBatch.unassigned((A, A), producer_id=7)
    stored = batch.assign(5, 3)
    assert (stored.base_offset, stored.leader_epoch, stored.next_offset) == (5, 3, 7)
    assert evolve(stored, base_offset=None, leader_epoch=-1) == batch
    assert batch.base_offset is None


def test_assign_at_the_edges_of_epoch_and_offset_holds() -> None:
    assert one().assign(0, 0).next_offset == 1
    assert one().assign(2**63 - 2, 2**31 - 1).leader_epoch == 2**31 - 1


def test_batch_is_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        one().base_offset = 1  # type: ignore[misc]


def test_plain_tuples_do_as_records() -> None:
    plain: Any = (None, b"v", 5, ())
    batch = RecordBatch.unassigned((plain,)).assign(0, 0)
    assert decode_batch(encode_batch(batch)).records == (Record(None, b"v", 5),)


def test_header_and_record_are_named_tuples_with_the_seeds_fields() -> None:
    assert Header._fields == ("key", "value")
    assert Record._fields == ("key", "value", "timestamp_ms", "headers")
    assert Record(None, None, 0).headers == ()


def test_emptied_batch_is_legal_only_once_assigned_and_in_version_2() -> None:
    batch = emptied(10, 3)
    assert (batch.next_offset, batch.logical_count, batch.max_timestamp_ms) == (13, 3, -1)
    with pytest.raises(InvalidRecord, match="at least one record"):
        evolve(batch, base_offset=None)
    with pytest.raises(InvalidRecord, match="at least one record"):
        evolve(batch, format_version=1)


def test_a_client_cannot_build_an_empty_batch() -> None:
    with pytest.raises(InvalidRecord, match="at least one record"):
        RecordBatch.unassigned(())


@pytest.mark.parametrize(
    ("deltas", "last"),
    [
        ((0, 0), 1),
        ((1, 0), 1),
        ((-1, 0), 1),
        ((0, 2), 1),
        ((0, 1), 2**31),
        ((), -1),
        ((5,), 4),
    ],
)
def test_deltas_that_do_not_rise_up_to_the_last_are_refused(
    deltas: tuple[int, ...], last: int
) -> None:
    with pytest.raises(InvalidRecord, match=r"offset_deltas|last_offset_delta|at least one record"):
        compacted(deltas, last)


@pytest.mark.parametrize("deltas", [(0,), (0, 1, 2)])
def test_other_numbers_of_deltas_than_of_records_are_refused(deltas: tuple[int, ...]) -> None:
    with pytest.raises(InvalidRecord, match="offset_deltas"):
        RecordBatch((A, A), deltas, 5, 0, 0)


@pytest.mark.parametrize("base_offset", [-1, 2**63, 2**63 - 3])
def test_offsets_outside_0_to_the_end_are_refused(base_offset: int) -> None:
    with pytest.raises(InvalidRecord, match=f"base_offset is {base_offset}"):
        many(4).assign(base_offset, 0)


@pytest.mark.parametrize("epoch", [-1, 2**31])
def test_epochs_outside_31_bits_are_refused_by_assign(epoch: int) -> None:
    with pytest.raises(InvalidRecord, match=f"leader_epoch is {epoch}, allowed is 0..2147483647"):
        one().assign(0, epoch)


@pytest.mark.parametrize("version", [0, 3, -1])
def test_unknown_format_versions_are_refused(version: int) -> None:
    with pytest.raises(InvalidRecord, match=f"format_version is {version}, allowed is 1 or 2"):
        RecordBatch.unassigned((A,), format_version=version)


def test_an_empty_transactional_id_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="transactional_id is ''"):
        RecordBatch.unassigned((A,), transactional_id="")


@pytest.mark.parametrize(
    "change",
    [
        {"records": (A,), "offset_deltas": (0,)},
        {"last_offset_delta": 1},
        {"transactional_id": None},
        {"transactional_id": ""},
        {"format_version": 1},
    ],
)
def test_markers_that_are_not_bare_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(InvalidRecord):
        evolve(commit(timestamp_ms=5), **change)


def test_a_version_1_marker_has_no_timestamp() -> None:
    evolve(commit(), format_version=1)
    with pytest.raises(InvalidRecord, match="version 1 marker"):
        evolve(commit(timestamp_ms=0), format_version=1)


def test_a_data_batch_has_no_marker_timestamp() -> None:
    with pytest.raises(InvalidRecord, match="marker_timestamp_ms"):
        evolve(one(), marker_timestamp_ms=5)


# Derived values --------------------------------------------------------------------------------


def test_next_offset_and_logical_count_include_holes() -> None:
    batch = compacted((2, 4), 9)
    assert (batch.logical_count, batch.next_offset) == (10, 20)


def test_next_offset_of_an_unassigned_batch_is_refused() -> None:
    with pytest.raises(InvalidRecord, match="unassigned"):
        _ = one().next_offset


@pytest.mark.parametrize(
    ("base", "last_delta", "expected"),
    [(-1, 0, -1), (-1, 9, -1), (0, 0, 0), (5, 2, 7), (2**31 - 1, 0, 2**31 - 1), (2**31 - 1, 1, 0)],
)
def test_last_sequence_counts_holes_and_wraps(base: int, last_delta: int, expected: int) -> None:
    batch = evolve(compacted((0,), last_delta), base_sequence=base)
    assert batch.last_sequence == expected


@pytest.mark.parametrize(
    ("stamps", "expected"), [((5,), 5), ((1, 9, 3), 9), ((-7, -9), -7), ((-1,), -1)]
)
def test_max_timestamp_is_the_largest_of_the_records(
    stamps: tuple[int, ...], expected: int
) -> None:
    batch = RecordBatch.unassigned(tuple(Record(None, None, stamp) for stamp in stamps))
    assert batch.max_timestamp_ms == expected


def test_dense_deltas_count_from_0_whatever_was_asked_before() -> None:
    for count in (0, 3, 1, 1_024, 1_025, 5_000, 2):
        assert dense_deltas(count) == tuple(range(count))
    assert dense_deltas(1_024) is dense_deltas(1_024)


# What refusals say -----------------------------------------------------------------------------

BYTES = "bytes or None"
INT64 = "a signed integer of 64 bits"
TEXT = "UTF-8 text of at most 65,535 bytes"
BAD_RECORDS: list[tuple[Any, str, str, str]] = [
    (("k", b"v", 0, ()), "key", "'k'", BYTES),
    ((bytearray(b"k"), b"v", 0, ()), "key", "bytearray(b'k')", BYTES),
    ((b"k", 5, 0, ()), "value", "5", BYTES),
    ((b"k", memoryview(b"v"), 0, ()), "value", "<memory", BYTES),
    ((b"k", b"v", 1.5, ()), "timestamp_ms", "1.5", INT64),
    ((b"k", b"v", None, ()), "timestamp_ms", "None", INT64),
    ((b"k", b"v", 2**63, ()), "timestamp_ms", str(2**63), INT64),
    ((b"k", b"v", -(2**63) - 1, ()), "timestamp_ms", str(-(2**63) - 1), INT64),
    ((b"k", b"v", 0, None), "headers", "None", "a tuple of at most 65,535 headers"),
    ((b"k", b"v", 0, [Header("h", b"")]), "headers", "[Header", "a tuple of at most 65,535"),
    ((b"k", b"v", 0, (Header("h", b""),) * 65_536), "headers", "(Header", "at most 65,535 headers"),
    ((b"k", b"v", 0, (("h",),)), "header", "('h',)", "a Header or a tuple (key, value)"),
    ((b"k", b"v", 0, ("hv",)), "header", "'hv'", "a Header or a tuple (key, value)"),
    ((b"k", b"v", 0, ((b"h", b""),)), "header key", "b'h'", TEXT),
    ((b"k", b"v", 0, (("h" * 65_536, b""),)), "header key", "'hhhhh", TEXT),
    ((b"k", b"v", 0, (("é" * 32_768, b""),)), "header key", "'ééééé", TEXT),
    ((b"k", b"v", 0, (("\ud800", b""),)), "header key", "'\\ud800'", TEXT),
    ((b"k", b"v", 0, (("h", "v"),)), "header value", "'v'", BYTES),
]


def hand_built(records: tuple[Any, ...]) -> RecordBatch:
    return RecordBatch(records, (0, 1, 2), 2, 0, 0)


@pytest.mark.parametrize("build", [RecordBatch.unassigned, hand_built])
@pytest.mark.parametrize(("record", "field", "seen", "allowed"), BAD_RECORDS)
def test_refused_record_is_named_by_number_field_value_and_what_is_allowed(
    build: Callable[[tuple[Any, ...]], RecordBatch],
    record: Any,
    field: str,
    seen: str,
    allowed: str,
) -> None:
    with pytest.raises(InvalidRecord) as caught:
        encode_batch(build((A, A, record)).assign(0, 0))
    message = str(caught.value)
    assert message.startswith(f"record 2 {field} is {seen}")
    assert f"allowed is {allowed}" in message or message.endswith(allowed)
    assert len(message) < 250, "a huge value is cut short"


def test_batch_cannot_be_built_from_a_record_that_cannot_be_stored() -> None:
    """ "InvalidRecord: there is no record, or one that cannot be stored", before any encoding."""
    for record, *_ in BAD_RECORDS:
        with pytest.raises(InvalidRecord):
            RecordBatch.unassigned((record,))


def test_buffer_that_counts_in_items_never_becomes_a_wrong_frame() -> None:
    items: Any = memoryview(array("I", [1, 2]))
    with pytest.raises(InvalidRecord, match="record 0 value"):
        encode_batch(RecordBatch((Record(None, items, 0),), (0,), 0, 0, 0))


@pytest.mark.parametrize("record", [None, 5, (), (b"k", b"v", 0), (b"k", b"v", 0, (), 1)])
def test_something_that_is_no_record_is_refused_by_number(record: Any) -> None:
    with pytest.raises(InvalidRecord, match=r"record 1 is .*\(key, value, timestamp_ms, headers\)"):
        RecordBatch.unassigned((A, record))


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("producer_id", 2**63, "64 bits"),
        ("producer_id", "7", "64 bits"),
        ("producer_epoch", 2**31, "32 bits"),
        ("base_sequence", -(2**31) - 1, "32 bits"),
        ("transactional_id", "é" * 32_768, "65,535 bytes"),
        ("transactional_id", "\ud800", "UTF-8"),
    ],
)
def test_producer_field_that_no_frame_holds_is_named_when_encoding(
    field: str, value: Any, allowed: str
) -> None:
    batch = evolve(one().assign(0, 0), **{field: value})
    with pytest.raises(InvalidRecord, match=f"{field} is .*{allowed}"):
        encode_batch(batch)


def test_marker_timestamp_that_no_frame_holds_is_named_when_encoding() -> None:
    batch = evolve(commit().assign(0, 0), marker_timestamp_ms=2**63)
    with pytest.raises(InvalidRecord, match="marker_timestamp_ms is 9223372036854775808"):
        encode_batch(batch)


def test_an_unassigned_batch_cannot_be_encoded() -> None:
    with pytest.raises(InvalidRecord, match="unassigned"):
        encode_batch(one())


@pytest.mark.parametrize("epoch", [-1, 2**31, 2**32])
def test_an_epoch_outside_31_bits_cannot_be_encoded(epoch: int) -> None:
    with pytest.raises(InvalidRecord, match=r"epoch"):
        encode_batch(evolve(one(), base_offset=0, leader_epoch=epoch))


def test_refusals_are_storage_errors_and_value_errors_with_a_code() -> None:
    assert issubclass(InvalidRecord, StorageError)
    assert issubclass(InvalidRecord, ValueError)
    assert InvalidRecord.code == "INVALID_RECORD"
