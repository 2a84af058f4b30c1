"""How far compaction goes: limits, segments, the size of the key map, the cleaned offset."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from storage.batch import Record, RecordBatch
from storage.compaction import Compaction, count_covered, group_segments, plan_compaction
from storage.config import LogConfig
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from storage.state import SegmentSeal
from tests.storage.cleaning import (
    DIRECTORY,
    ONE_EACH,
    build,
    data,
    open_log,
    rows_of,
    run,
    spans_of,
)

INT32_MAX = 2**31 - 1


# Segments and limits ---------------------------------------------------------------------------


def test_no_segment_that_ends_above_the_limit_is_touched() -> None:
    """KAFKA-13194, hazard B-34: an uncommitted value must not displace a committed one."""
    log = build([data((b"k", b"v1"))], [data((b"a", b"1"))], [data((b"k", b"v2"))])
    result = run(log, limit=2)
    assert result.plan.end_offset == 2
    assert rows_of(log)[0] == (0, b"k", b"v1")
    log.truncate_to(2)
    assert rows_of(log) == [(0, b"k", b"v1"), (1, b"a", b"1")]
    assert run(log, limit=0).plan.segments == 0


def test_segment_of_the_durable_boundary_is_not_touched() -> None:
    log = PartitionLog.open(DIRECTORY, ONE_EACH, disk=MemDisk(), runs_pending=False)
    for value in (b"1", b"2"):
        log.append(data((b"a", value)))
        log.flush()
        log.roll()
    log.append(data((b"a", b"3")))
    assert log.boundary.segment_base == 1
    assert plan_compaction(log, log.leo).segments == 1
    run(log)
    assert [row[2] for row in rows_of(log)] == [b"1", b"2", b"3"]


def test_neighbours_are_merged_up_to_the_size_of_a_segment() -> None:
    config = LogConfig(segment_max_bytes=260)
    log = build(*([data((b"k%d" % n, b"v"))] for n in range(8)), config=config)
    assert len(log.segments) == 9
    result = run(log)
    assert spans_of(log) == [(0, 3), (3, 6), (6, 8), (8, 9)]
    assert (result.segments_before, result.segments_after) == (8, 3)
    assert result.bytes_before == result.bytes_after
    log.close()
    again = open_log(log._disk, config)
    assert again.report.rebuilt == ()
    assert len(rows_of(again)) == 9


def wide(base: int, delta: int) -> RecordBatch:
    return RecordBatch((Record(b"k%d" % base, b"v", 0),), (0,), delta, base, 0)


def test_merged_segment_spans_at_most_2_to_the_31_offsets() -> None:
    """KAFKA-5413, hazard B-64: relative offsets in the indexes would wrap."""
    log = open_log(MemDisk())
    for base in (0, 2**30, 2**31, 3 * 2**30):
        log.append_replica_batch(wide(base, 2**30 - 1))
        log.roll()
    log.append(data((None, b"active")))
    log.flush()
    run(log)
    assert spans_of(log)[:2] == [(0, 2**31), (2**31, 2**32)]
    assert log.fetch(2**31 + 1, 1)[0].offset == 3 * 2**30
    log.close()
    assert open_log(log._disk).report.rebuilt == ()


SEALS = st.lists(
    st.tuples(st.integers(1, 400), st.sampled_from([1, 5, 2**30, INT32_MAX])), max_size=8
)


@given(SEALS, st.integers(1, 900), st.integers(1, 200), st.integers(12, 120))
def test_groups_keep_every_limit_and_none_could_take_the_next(
    shapes: list[tuple[int, int]], size: int, interval: int, index: int
) -> None:
    config = LogConfig(segment_max_bytes=size, index_interval_bytes=interval, index_max_bytes=index)
    seals, base = [], 3
    for size_bytes, span in shapes:
        seals.append(SegmentSeal(base, size_bytes, base + span, 0, -1))
        base += span
    left, groups = list(seals), []
    for count in group_segments(seals, config):
        groups.append(left[:count])
        del left[:count]
    assert not left

    def fits(group: list[SegmentSeal]) -> bool:
        total = sum(seal.size_bytes for seal in group)
        entries = total // interval + 2
        span = group[-1].next_offset - group[0].base_offset
        return total <= size and span <= 2**31 and entries * 12 <= index

    for group in groups:
        assert len(group) == 1 or fits(group)
    for group, after in pairwise(groups):
        assert not fits([*group, after[0]])


@given(SEALS, st.integers(0, 2**32), st.integers(0, 2**32))
def test_covered_segments_are_closed_and_end_below_both_limits(
    shapes: list[tuple[int, int]], boundary: int, limit: int
) -> None:
    seals, base = [], 0
    for size_bytes, span in [*shapes, (1, 1)]:
        seals.append(SegmentSeal(base, size_bytes, base + span, 0, -1))
        base += span
    count = count_covered(seals, boundary, limit)
    assert all(seal.next_offset <= min(boundary, limit) for seal in seals[:count])
    assert count == len(seals) - 1 or seals[count].next_offset > min(boundary, limit)


# The key map -----------------------------------------------------------------------------------


def test_full_key_map_ends_the_pass_and_says_so() -> None:
    log = build(
        [data((b"a", b"1"), (b"b", b"1"))],
        [data((b"b", b"2")), data((b"c", b"1"))],
        [data((b"a", b"2"))],
        config=ONE_EACH,
    )
    result = run(log, keys_max=2)
    assert (result.end_offset, result.is_complete, result.cleaned_offset) == (3, False, 3)
    assert result.plan.end_offset == 5
    assert [row[:2] for row in rows_of(log)][:2] == [(0, b"a"), (2, b"b")]
    result = run(log, keys_max=2)
    assert (result.end_offset, result.is_complete, result.cleaned_offset) == (5, True, 5)
    assert [row[:2] for row in rows_of(log)][:3] == [(2, b"b"), (3, b"c"), (4, b"a")]


def test_key_map_is_bounded_by_bytes_too() -> None:
    log = build([data((b"a" * 30, b"1")), data((b"b" * 30, b"1")), data((b"c" * 30, b"1"))])
    result = run(log, key_bytes_max=60)
    assert (result.end_offset, result.is_complete) == (2, False)


def test_batch_that_alone_is_too_large_for_the_map_is_mapped_all_the_same() -> None:
    log = build([data((b"a", b"1"), (b"b", b"1"), (b"c", b"1"))], [data((b"a", b"2"))])
    ends = [run(log, keys_max=1).end_offset for _ in range(3)]
    assert ends == [3, 4, 4]
    assert rows_of(log)[0] == (1, b"b", b"1")


def test_tombstone_that_did_not_fit_into_the_map_stays_though_its_file_is_compacted() -> None:
    """The value that it deletes lies in the clean part and would come back."""
    log = build([data((b"c", b"1"))])
    run(log)
    log.append(data((b"a", b"1")))
    log.append(data((b"a", b"2")))
    log.append(data((b"b", b"1")))
    log.append(data((b"c", None)))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    result = run(log, keys_max=2, now=10**9, delete_retention_ms=0)
    assert (result.end_offset, result.counts.superseded, result.is_complete) == (5, 1, False)
    assert [row[1:] for row in rows_of(log)][:1] == [(b"c", b"1")]
    assert (5, b"c", None) in rows_of(log)
    run(log, keys_max=2, now=10**9, delete_retention_ms=0)
    assert b"c" not in [row[1] for row in rows_of(log)]


# The cleaned offset ----------------------------------------------------------------------------


def test_next_pass_maps_only_what_is_new_and_clears_everything_before() -> None:
    log = build([data((b"a", b"1"), (b"b", b"1"))], config=ONE_EACH)
    assert run(log).cleaned_offset == log.cleaned_offset == 2
    log.append(data((b"b", b"2")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    plan = plan_compaction(log, log.leo)
    assert (plan.start_offset, plan.dirty_offset, plan.end_offset) == (0, 2, 4)
    assert plan.clean_bytes == log.segments[0].size_bytes
    assert plan.dirty_bytes == sum(segment.size_bytes for segment in log.segments[1:3])
    compaction = Compaction(log, log.leo, now_ms=0)
    while compaction.step():
        pass
    assert set(compaction._keys.latest) == {b"b"}
    assert [row[0] for row in rows_of(log)] == [0, 2, 3, 4]


def test_truncation_lowers_the_cleaned_offset() -> None:
    """KAFKA-3330, hazard B-61: what is written there anew was never cleaned."""
    log = build(*([data((b"k%d" % n, b"v"))] for n in range(4)), config=ONE_EACH)
    run(log)
    assert log.cleaned_offset == 4
    log.truncate_to(3)
    assert log.cleaned_offset == 3
    log.append(data((b"k0", b"new")))
    log.roll()
    log.append(data((None, b"active")))
    log.flush()
    run(log)
    assert [row[:2] for row in rows_of(log)][:3] == [(1, b"k1"), (2, b"k2"), (3, b"k0")]


def test_full_truncation_lowers_the_cleaned_offset() -> None:
    log = build(*([data((b"k%d" % n, b"v"))] for n in range(4)), config=ONE_EACH)
    run(log)
    log.truncate_fully_and_start_at(2)
    assert log.cleaned_offset == 0
    run(log)
    assert log.cleaned_offset == 0


def test_log_that_begins_anew_below_its_first_file_has_nothing_clean() -> None:
    """Its first file was at 2: what is written at 1 now is not what was cleaned."""
    log = build(*([data((b"k%d" % n, b"v"))] for n in range(4)), config=ONE_EACH)
    log.delete_old_segments(2, retention_bytes=0)
    run(log)
    assert (log.segments[0].base_offset, log.cleaned_offset) == (2, 4)
    log.truncate_to(1)
    assert (log.leo, log.cleaned_offset) == (1, 1)


def test_tombstone_in_the_clean_part_goes_when_its_time_has_come() -> None:
    log = build([data((b"a", b"1"))], [data((b"a", None, 100))])
    run(log, now=0, delete_retention_ms=50)
    assert log.cleaned_offset == 2
    result = run(log, now=150, delete_retention_ms=50)
    assert (result.plan.dirty_bytes, result.counts.tombstones) == (0, 1)
    assert rows_of(log) == [(2, None, b"active")]
