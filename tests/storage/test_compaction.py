"""Compaction rule by rule: which records and batches stay.

Histories against the naive twin are in ``tests.storage.test_compaction_model``, limits in
``tests.storage.test_compaction_limits``, steps and failures in
``tests.storage.test_compaction_steps``, crashes in ``tests.storage.test_compaction_crash``.
"""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from storage.batch import ControlType, Header, Record, RecordBatch
from storage.compaction import plan_compaction
from storage.config import LogConfig
from storage.errors import CorruptLog
from storage.memdisk import MemDisk
from storage.mkb1 import MKB1, encode_batch
from storage.partition_log import PartitionLog
from tests.storage.cleaning import (
    DIRECTORY,
    ONE_EACH,
    SMALL,
    batches_of,
    build,
    data,
    files_of,
    marker,
    open_log,
    rows_of,
    run,
    spans_of,
)
from tests.storage.faults import FaultDisk


def bases_of(log: PartitionLog) -> list[int | None]:
    return [batch.base_offset for batch in batches_of(log)]


# Records ---------------------------------------------------------------------------------------


def test_latest_record_of_each_key_stays_at_its_offset() -> None:
    log = build([data((b"a", b"1"), (b"b", b"1"))], [data((b"a", b"2"), (b"c", b"1"))])
    result = run(log)
    assert rows_of(log) == [(1, b"b", b"1"), (2, b"a", b"2"), (3, b"c", b"1"), (4, None, b"active")]
    assert result.is_complete
    assert (result.counts.superseded, result.counts.batches_dropped) == (1, 0)


def test_records_of_the_active_segment_neither_go_nor_displace_others() -> None:
    log = build([data((b"a", b"1"))], [data((b"b", b"1"))])
    log.append(data((b"a", b"2")))
    log.flush()
    run(log)
    assert rows_of(log)[0] == (0, b"a", b"1")


def test_key_may_be_empty_and_a_record_without_a_key_stays() -> None:
    log = build([data((b"", b"1"), (None, b"x"))], [data((b"", b"2"), (None, b"x"), (None, None))])
    result = run(log, now=10**15)
    assert [row[0] for row in rows_of(log)] == [1, 2, 3, 4, 5]
    assert (result.counts.keyless, result.counts.superseded) == (3, 1)


def test_tombstone_stays_until_its_time_and_its_values_never_come_back() -> None:
    log = build([data((b"a", b"1", 5))], [data((b"a", None, 100), (b"b", b"1", 0))])
    run(log, now=149, delete_retention_ms=50)
    assert [row[:2] for row in rows_of(log)] == [(1, b"a"), (2, b"b"), (3, None)]
    result = run(log, now=150, delete_retention_ms=50)
    assert result.counts.tombstones == 1
    assert [row[:2] for row in rows_of(log)] == [(2, b"b"), (3, None)]


def test_expired_tombstone_and_its_values_go_in_one_pass() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", None, 100))], config=ONE_EACH)
    run(log, now=100, delete_retention_ms=0)
    assert rows_of(log) == [(2, None, b"active")]


def test_tombstone_without_a_timestamp_counts_as_long_expired() -> None:
    log = build([data((b"a", None, -1), (b"b", None, 0))])
    run(log, now=9, delete_retention_ms=10)
    assert [row[1] for row in rows_of(log)] == [b"b", None]


def test_value_written_after_a_tombstone_stays() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", None))], [data((b"a", b"2"))])
    run(log, now=10**9, delete_retention_ms=0)
    assert rows_of(log)[0] == (2, b"a", b"2")


def test_headers_timestamps_and_deltas_of_what_stays_are_unchanged() -> None:
    records = [
        Record(b"a", b"1", 7, (Header("x", b"y"),)),
        Record(b"b", b"2", 9, (Header("k", None), Header("", b""))),
        Record(b"c", None, 3),
        Record(b"a", b"3", 1, (Header("é", b"z"),)),
    ]
    log = build([RecordBatch.unassigned(records)], [data((b"c", b"later"))])
    run(log)
    (batch,) = batches_of(log)[:1]
    assert batch.records == (records[1], records[3])
    assert (batch.offset_deltas, batch.last_offset_delta) == ((1, 3), 3)
    assert batch.max_timestamp_ms == 9


RECORDS = st.builds(
    Record,
    st.none() | st.binary(max_size=3),
    st.none() | st.binary(max_size=3),
    st.integers(-(2**63), 2**63 - 1),
    st.lists(st.builds(Header, st.text("aé", max_size=2), st.none() | st.binary(max_size=2))).map(
        tuple
    ),
)


@given(
    st.lists(RECORDS, min_size=1, max_size=5),
    st.sampled_from([1, 2]),
    st.sampled_from([None, "tx", "é"]),
    st.sets(st.integers(0, 4)),
    st.binary(max_size=5),
)
def test_frame_with_some_of_its_records_is_what_encoding_them_gives(
    records: list[Record], version: int, transaction: str | None, chosen: set[int], before: bytes
) -> None:
    batch = RecordBatch(
        tuple(records),
        tuple(2 * n + 1 for n in range(len(records))),
        2 * len(records),
        11,
        3,
        7,
        1,
        5,
        transaction,
        None,
        version,
    )
    buffer = before + encode_batch(batch) + b"next"
    facts = MKB1.records(buffer, len(before))
    assert [(f[0], f[1], f[2], f[3]) for f in facts] == [
        (delta, record.key, record.value is None, record.timestamp_ms)
        for delta, record in zip(batch.offset_deltas, records, strict=True)
    ]
    assert MKB1.origin(buffer, len(before)) == (7, transaction is not None, None)
    stay = [n for n in range(len(records)) if n in chosen]
    wanted = evolve(
        batch,
        records=tuple(records[n] for n in stay),
        offset_deltas=tuple(batch.offset_deltas[n] for n in stay),
        format_version=version if stay else 2,
    )
    frame, timestamp_ms = MKB1.retain(buffer, len(before), [facts[n] for n in stay])
    assert frame == encode_batch(wanted)
    assert timestamp_ms == wanted.max_timestamp_ms


# Transactions ----------------------------------------------------------------------------------


def test_aborted_record_does_not_displace_a_committed_one() -> None:
    log = build(
        [data((b"a", b"committed"))],
        [data((b"a", b"aborted"), pid=7, in_transaction=True), marker(ControlType.ABORT, 7)],
    )
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"committed", b"aborted", b"active"]


def test_aborted_tombstone_deletes_nothing_and_stays() -> None:
    log = build(
        [data((b"a", b"committed"))],
        [data((b"a", None, 0), pid=7, in_transaction=True), marker(ControlType.ABORT, 7)],
    )
    for _ in range(2):
        run(log, now=10**9, delete_retention_ms=0)
        assert [row[2] for row in rows_of(log)] == [b"committed", None, b"active"]


def test_committed_record_displaces_earlier_ones() -> None:
    log = build(
        [data((b"a", b"1"))],
        [data((b"a", b"2"), pid=7, in_transaction=True), marker(ControlType.COMMIT, 7)],
    )
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"2", b"active"]


def test_transactions_of_two_producers_are_told_apart() -> None:
    log = build(
        [data((b"a", b"0"), (b"b", b"0"))],
        [
            data((b"a", b"7"), pid=7, in_transaction=True),
            data((b"b", b"8"), pid=8, in_transaction=True),
            marker(ControlType.ABORT, 8),
            marker(ControlType.COMMIT, 7),
        ],
    )
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"0", b"7", b"8", b"active"]
    assert rows_of(log)[0] == (1, b"b", b"0")


def test_transaction_after_an_aborted_one_of_the_same_producer_counts() -> None:
    log = build(
        [data((b"a", b"1"), (b"b", b"1"))],
        [data((b"a", b"2"), pid=7, in_transaction=True), marker(ControlType.ABORT, 7)],
        [data((b"b", b"3"), pid=7, in_transaction=True), marker(ControlType.COMMIT, 7)],
    )
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"1", b"2", b"3", b"active"]
    assert rows_of(log)[0] == (0, b"a", b"1")


def test_unfinished_transaction_holds_the_cleaned_offset_back() -> None:
    """Its marker lies above the limit: the next pass must look at its keys again."""
    log = build(
        [data((b"a", b"1")), data((b"b", b"1"))],
        [data((b"a", b"2"), pid=7, in_transaction=True), data((b"b", b"2"))],
        [marker(ControlType.COMMIT, 7)],
    )
    result = run(log, limit=4)
    assert (result.end_offset, result.cleaned_offset) == (4, 2)
    assert [row[2] for row in rows_of(log)] == [b"1", b"2", b"2", b"active"]
    result = run(log)
    assert (result.plan.dirty_offset, result.cleaned_offset) == (2, 5)
    assert [row[2] for row in rows_of(log)] == [b"2", b"2", b"active"]


def test_markers_stay() -> None:
    log = build(
        [data((b"a", b"1"), pid=7, in_transaction=True), marker(ControlType.COMMIT, 7, 5)],
        [data((b"a", b"2"))],
    )
    before = batches_of(log)
    run(log)
    assert batches_of(log)[1:] == before[1:]
    assert batches_of(log)[0].records == ()


# Batches ---------------------------------------------------------------------------------------


def test_batch_without_records_leaves_a_hole() -> None:
    log = build([data((b"a", b"1")), data((b"b", b"1"))], [data((b"a", b"2"))])
    run(log)
    assert bases_of(log) == [1, 2, 3]
    assert log.gaps_end == 3


def test_last_batch_of_a_file_stays_empty_so_that_no_file_ends_early() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=ONE_EACH)
    run(log)
    (emptied, *_) = batches_of(log)
    assert (emptied.records, emptied.base_offset, emptied.next_offset) == ((), 0, 1)
    assert spans_of(log) == [(0, 1), (1, 2), (2, 3)]


def test_last_batch_that_stayed_empty_goes_when_its_file_is_merged() -> None:
    config = LogConfig(segment_max_bytes=130)
    log = build([data((b"a", b"1" * 80))], [data((b"a", b"2" * 80))], config=config)
    run(log)
    assert bases_of(log) == [0, 1, 2]
    log.append(data((b"a", b"3" * 80)))
    log.roll()
    log.flush()
    run(log)
    run(log)
    assert 0 not in bases_of(log)


def test_newest_batch_of_a_producer_stays_empty_with_its_sequence() -> None:
    log = build(
        [data((b"a", b"1"), (b"b", b"1"), pid=7, sequence=40), data((b"c", b"1"))],
        [data((b"a", b"2"), (b"b", b"2"))],
    )
    run(log)
    emptied = batches_of(log)[0]
    assert emptied == RecordBatch((), (), 1, 0, 0, 7, 0, 40, None)
    assert emptied.last_sequence == 41


def test_producer_that_always_writes_sequence_0_keeps_one_batch() -> None:
    """KAFKA-8335, hazard B-65: the newest batch is told by its offset, not by its sequence."""
    log = build(
        [data((b"a", b"1"), pid=7, sequence=0) for _ in range(5)],
        [data((b"a", b"2")), data((b"z", b"1"))],
    )
    run(log)
    assert bases_of(log) == [4, 5, 6, 7]


def test_older_batches_of_a_producer_go_though_it_wrote_nothing_lately() -> None:
    """They were all kept by an earlier pass, so the dirty part says nothing of the producer."""
    log = build([data((b"k%d" % n, b"1"), pid=7, sequence=n) for n in range(4)], config=SMALL)
    run(log)
    assert bases_of(log)[:4] == [0, 1, 2, 3]
    for number in range(4):
        log.append(data((b"k%d" % number, b"2")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    assert plan_compaction(log, log.leo).dirty_offset == 4
    run(log)
    assert bases_of(log)[:2] == [3, 4]


def test_version_1_batch_stays_version_1_unless_it_is_emptied() -> None:
    log = build(
        [data((b"a", b"1"), (b"b", b"1"), version=1), data((b"a", b"2"), version=1)],
        [data((b"a", b"3")), data((b"z", b"1"))],
        config=LogConfig(segment_max_bytes=200),
    )
    run(log)
    versions = [(batch.format_version, len(batch.records)) for batch in batches_of(log)]
    assert versions == [(1, 1), (2, 0), (2, 1), (2, 1), (2, 1)]


def test_unchanged_batches_are_copied_as_they_are_and_a_clean_file_is_left_alone() -> None:
    log = build([data((b"a", b"1")), data((b"b", b"1"), version=1)], [data((b"a", b"2"))])
    wanted = b"".join(encode_batch(batch) for batch in batches_of(log)[1:3])
    run(log)
    assert files_of(log._disk)[f"{0:020d}.log"] == wanted
    disk = log._disk
    log.close()
    watched = FaultDisk(disk)
    log = open_log(watched)
    watched.calls.clear()
    result = run(log)
    assert (result.segments_before, result.cleaned_offset) == (0, 3)
    assert not {"rename", "unlink", "write_at"} & {
        call.operation for call in watched.calls if call.name.startswith("0")
    }


def test_damaged_batch_ends_the_pass_before_anything_is_swapped() -> None:
    disk = MemDisk()
    log = build([data((b"a", b"1"))], [data((b"a", b"2"))], config=ONE_EACH, disk=disk)
    file = disk.open(DIRECTORY / f"{1:020d}.log")
    file.write_at(70, b"\xff")
    before = files_of(disk)
    with pytest.raises(CorruptLog) as raised:
        run(log)
    assert (raised.value.last_good_offset, raised.value.file.name) == (1, f"{1:020d}.log")
    assert files_of(disk) == before
    assert log.failure is None


@pytest.mark.parametrize("step", ["map", "write"])
def test_records_that_do_not_fill_their_frame_are_damage(step: str) -> None:
    """The CRC is right: a leader wrote it so."""
    frame = bytearray(encode_batch(data((b"a", b"1")).assign(0, 0)))
    frame[12 + 48 + 22 - 10 : 12 + 48 + 22 - 6] = (5).to_bytes(4, "big")
    log = open_log(MemDisk())
    log.append_replica_batch(MKB1.restamp(bytes(frame), 0, 0))
    log.roll()
    log.append(data((b"b", b"1")))
    log.flush()
    if step == "write":
        log.raise_cleaned_offset(1)
    with pytest.raises(CorruptLog, match="record"):
        run(log)
