"""The leader-epoch cache: every small input against a naive twin, the rules by sentence, the file.

The sentences quoted are those of PROTOCOL A8. ``previousEntry`` and ``nextEpoch`` of that section
have no counterpart in ``LeaderEpochCache``.
"""

from __future__ import annotations

from itertools import combinations, pairwise, product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import LogRules, PartitionLog
from storage.epochs import UNDEFINED, LeaderEpochCache, read_epochs, write_epochs
from storage.errors import CorruptCheckpoint, DiskError
from storage.memdisk import MemDisk
from tests.storage import naive_epochs as naive
from tests.storage.batches import one
from tests.storage.faults import FaultDisk

SMALL = range(4)
# Every cache with epochs and offsets of 0 to 3: both columns rise.
CACHES = [
    list(zip(epochs, starts, strict=True))
    for size in range(5)
    for epochs in combinations(SMALL, size)
    for starts in combinations(SMALL, size)
]
OPERATIONS = [
    *product(["assign"], SMALL, SMALL),
    *product(["truncate_from_end"], range(-1, 5)),
    *product(["truncate_from_start"], range(5)),
]
RULES = LogRules()
DIRECTORY = Path("/t-0")
FILE = DIRECTORY / "leader-epoch-checkpoint"


def check_answers(cache: LeaderEpochCache, entries: naive.Entries) -> None:
    assert list(cache.entries) == entries
    assert cache.latest == (entries[-1][0] if entries else UNDEFINED)
    assert cache.previous == (entries[-2][0] if len(entries) > 1 else UNDEFINED)
    for requested, log_end in product(range(-1, 5), (3, 7)):
        expected = naive.end_offset_for(entries, requested, log_end)
        assert cache.end_offset_for(requested, log_end) == expected, (entries, requested, log_end)
    for offset in range(6):
        expected_epoch = naive.epoch_for_offset(entries, offset)
        assert cache.epoch_for_offset(offset) == expected_epoch, (entries, offset)


def test_every_small_cache_answers_as_the_naive_twin() -> None:
    assert len(CACHES) == 70
    for entries in CACHES:
        check_answers(LeaderEpochCache(entries), entries)


def test_every_operation_on_every_small_cache_does_what_the_naive_twin_does() -> None:
    for entries, (name, *args) in product(CACHES, OPERATIONS):
        cache = LeaderEpochCache(entries)
        changed = getattr(cache, name)(*args)
        expected = getattr(naive, name)(entries, *args)
        assert list(cache.entries) == expected, (entries, name, args)
        assert changed == (expected != entries), (entries, name, args)
        check_answers(cache, expected)


def test_every_short_sequence_of_operations_ends_as_the_naive_twin_does() -> None:
    for sequence in product(OPERATIONS, repeat=3):
        cache, entries = LeaderEpochCache(), []
        for name, *args in sequence:
            getattr(cache, name)(*args)
            entries = getattr(naive, name)(entries, *args)
        assert list(cache.entries) == entries, sequence


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 100)), max_size=30))
def test_lines_in_any_order_are_replayed_through_assign(lines: naive.Entries) -> None:
    """A9: "On open the epoch file's lines are replayed through `assign`"."""
    entries: naive.Entries = []
    for epoch, start in lines:
        entries = naive.assign(entries, epoch, start)
    check_answers(LeaderEpochCache(lines), entries)
    assert all(a < b for pair in pairwise(entries) for a, b in zip(*pair, strict=True))


# The rules, sentence by sentence ---------------------------------------------------------------

CACHE = [(1, 0), (3, 10), (6, 20)]


def cache_of(entries: naive.Entries, **rules: bool) -> LeaderEpochCache:
    return LeaderEpochCache(entries, rules=LogRules(**rules))


@pytest.mark.parametrize(("epoch", "start"), [(-1, 0), (0, -1), (-1, -1)])
def test_assign_of_a_negative_number_is_an_error(epoch: int, start: int) -> None:
    """ "`assign(e,o)`: negative => error."""
    cache = LeaderEpochCache(CACHE)
    with pytest.raises(ValueError, match=r"must be 0 or more"):
        cache.assign(epoch, start)
    assert list(cache.entries) == CACHE


@pytest.mark.parametrize("start", [20, 21, 99])
def test_assign_of_the_latest_epoch_at_or_behind_its_start_changes_nothing(start: int) -> None:
    """ "No-op if `e == latest epoch && o >= latest start`."""
    cache = LeaderEpochCache(CACHE)
    assert not cache.assign(6, start)
    assert list(cache.entries) == CACHE


@pytest.mark.parametrize(
    ("epoch", "start", "left"),
    [
        (6, 19, [(1, 0), (3, 10), (6, 19)]),
        (6, 10, [(1, 0), (6, 10)]),
        (7, 20, [(1, 0), (3, 10), (7, 20)]),
        (9, 0, [(9, 0)]),
        (3, 25, [(1, 0), (3, 25)]),
        (0, 99, [(0, 99)]),
        (4, 12, [(1, 0), (3, 10), (4, 12)]),
    ],
)
def test_assign_evicts_what_contradicts_it(epoch: int, start: int, left: naive.Entries) -> None:
    """ "Last writer wins": a lower epoch or start evicts what contradicts it."""
    cache = LeaderEpochCache(CACHE)
    assert cache.assign(epoch, start)
    assert list(cache.entries) == left


def test_assign_stops_evicting_at_the_first_survivor() -> None:
    """ "from the tail, remove entries while ... start >= o (stop at first survivor)"."""
    cache = LeaderEpochCache([(2, 5), (4, 6)])
    assert cache.assign(5, 6)
    assert list(cache.entries) == [(2, 5), (5, 6)]


def test_assign_of_a_new_epoch_is_durable_before_its_first_batch() -> None:
    """ "insert, write the file synchronously with fsync": on the disk, before the data."""
    disk = FaultDisk(MemDisk())
    log = PartitionLog.open(DIRECTORY, disk=disk)
    disk.calls.clear()
    log.append(one())
    names = [(call.operation, call.name) for call in disk.calls]
    temporary = FILE.name + ".tmp"
    order = [
        ("write_at", temporary),
        ("fsync", temporary),
        ("rename", temporary),
        ("fsync_dir", DIRECTORY.name),
        ("write_at", "00000000000000000000.log"),
    ]
    assert [name for name in names if name in order] == order
    assert read_epochs(disk, DIRECTORY) == [(0, 0)]


@pytest.mark.parametrize(
    ("requested", "expected", "sentence"),
    [
        (-1, (-1, -1), "r = -1 => (-1,-1)"),
        (6, (6, 77), "r = latest => (r, leo)"),
        (7, (-1, -1), "No entry with epoch > r (newer than latest, or empty cache) => (-1,-1)"),
        (2, (1, 10), "h = start of the smallest epoch > r; floor present => (floor, h)"),
        (1, (1, 10), "floor = greatest epoch <= r"),
        (5, (3, 20), "floor present => (floor, h)"),
        (0, (0, 0), "absent (r older than earliest) => (r, h), the requested epoch is echoed"),
    ],
)
def test_end_offset_for(requested: int, expected: tuple[int, int], sentence: str) -> None:
    assert LeaderEpochCache(CACHE).end_offset_for(requested, 77) == expected, sentence


def test_end_offset_for_anything_is_undefined_in_an_empty_cache() -> None:
    """ "No entry with epoch > r (newer than latest, or empty cache) => (-1,-1)"."""
    assert {LeaderEpochCache().end_offset_for(epoch, 5) for epoch in range(-1, 3)} == {(-1, -1)}


def test_truncate_from_end_drops_entries_at_or_behind_the_offset() -> None:
    """ "if o >= 0 and last start >= o, drop entries with start >= o"."""
    for offset, left in ((-1, 3), (0, 0), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3)):
        cache = LeaderEpochCache(CACHE)
        assert cache.truncate_from_end(offset) == (left < 3)
        assert list(cache.entries) == CACHE[:left]


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (0, CACHE),
        (5, [(1, 5), (3, 10), (6, 20)]),
        (10, [(3, 10), (6, 20)]),
        (15, [(3, 15), (6, 20)]),
        (20, [(6, 20)]),
        (99, [(6, 99)]),
    ],
)
def test_truncate_from_start_keeps_the_spanning_epoch(offset: int, left: naive.Entries) -> None:
    """ "drop leading entries with start <= o, re-insert the last dropped with start = o".

    "Entry exactly at o unchanged; o past the last start keeps the last epoch, at o."
    """
    cache = LeaderEpochCache(CACHE)
    cache.truncate_from_start(offset)
    assert list(cache.entries) == left


def test_truncate_from_start_below_the_first_entry_changes_nothing() -> None:
    cache = LeaderEpochCache([(1, 5)])
    assert not cache.truncate_from_start(4)
    assert cache.entries == ((1, 5),)


def test_epoch_for_offset_is_that_of_the_last_entry_at_or_before_it() -> None:
    """ "epoch of the last entry with start <= o, none before the first"."""
    cache = LeaderEpochCache([(1, 5), (3, 10)])
    assert [cache.epoch_for_offset(o) for o in (0, 4, 5, 9, 10, 99)] == [-1, -1, 1, 1, 3, 3]


def test_previous_is_the_second_latest_epoch() -> None:
    """ "`previousEpoch()` second-latest"."""
    assert LeaderEpochCache(CACHE).previous == 3
    assert LeaderEpochCache([(1, 5)]).previous == UNDEFINED
    assert LeaderEpochCache().previous == UNDEFINED


# Guards ----------------------------------------------------------------------------------------


def test_undefined_epoch_guard_off_answers_with_the_log_end() -> None:
    """KAFKA-6857: the asker takes the log end for its truncation point, and truncates nothing."""
    cache = cache_of(CACHE, undefined_epoch_is_undefined=False)
    assert cache.end_offset_for(7, 77) == (7, 77)
    assert cache.end_offset_for(-1, 77)[1] == 77
    assert cache.end_offset_for(2, 77) == (1, 10)
    assert cache_of([], undefined_epoch_is_undefined=False).end_offset_for(0, 5) == (0, 5)


def test_oldest_epoch_guard_off_answers_undefined() -> None:
    """KAFKA-7415: a follower whose epoch retention took away falls back to the high watermark."""
    cache = cache_of(CACHE, answer_below_oldest_epoch=False)
    assert cache.end_offset_for(0, 77) == (-1, -1)
    assert cache.end_offset_for(1, 77) == (1, 10)


# The file --------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> MemDisk:
    made = MemDisk()
    made.mkdir(DIRECTORY)
    return made


def put(disk: MemDisk, data: bytes) -> None:
    file = disk.open(FILE, create=True)
    file.write_at(0, data)
    file.close()


def content(disk: MemDisk) -> bytes:
    file = disk.open(FILE, write=False)
    data = file.read_at(0, file.size())
    file.close()
    return data


def test_file_is_kafkas_text(disk: MemDisk) -> None:
    write_epochs(disk, DIRECTORY, LeaderEpochCache([(0, 0), (3, 120)]), RULES)
    assert content(disk) == b"0\n2\n0 0\n3 120\n"


def test_file_of_an_empty_cache_counts_0_entries(disk: MemDisk) -> None:
    write_epochs(disk, DIRECTORY, LeaderEpochCache(), RULES)
    assert content(disk) == b"0\n0\n"
    assert read_epochs(disk, DIRECTORY) == []


def test_missing_file_is_not_an_empty_one(disk: MemDisk) -> None:
    assert read_epochs(disk, DIRECTORY) is None
    put(disk, b"")
    assert read_epochs(disk, DIRECTORY) == []


@given(st.lists(st.tuples(st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)), max_size=8))
def test_written_cache_reads_back(lines: naive.Entries) -> None:
    disk = MemDisk()
    disk.mkdir(DIRECTORY)
    cache = LeaderEpochCache(lines)
    write_epochs(disk, DIRECTORY, cache, RULES)
    assert read_epochs(disk, DIRECTORY) == list(cache.entries)


def test_lines_are_returned_as_they_stand(disk: MemDisk) -> None:
    """Whoever opens the log compares them with the batches; normalising would hide damage."""
    put(disk, b"0\n3\n5 9\n2 3\n2 3\n")
    assert read_epochs(disk, DIRECTORY) == [(5, 9), (2, 3), (2, 3)]


@pytest.mark.parametrize(
    ("data", "line"),
    [
        (b"1\n0\n", 1),
        (b"x\n0\n", 1),
        (b"0\nx\n", 2),
        (b"0\n2\n0 0\n", 2),
        (b"0\n0\n0 0\n", 2),
        (b"0\n-1\n", 2),
        (b"0\n1\n0\n", 3),
        (b"0\n1\n0 0 0\n", 3),
        (b"0\n1\n\n", 3),
        (b"0\n1\n0 x\n", 3),
        (b"0\n1\n0x0 0\n", 3),
        (b"0\n1\n1.0 0\n", 3),
        (b"0\n1\n\xd9\xa1 0\n", 3),
        (b"0\n2\n0 0\n-1 5\n", 4),
        (b"0\n1\n0 -1\n", 3),
        (b"0\n1\n0 9223372036854775808\n", 3),
        (b"0\n1\n0 " + b"9" * 5_000 + b"\n", 3),
        (b"\xff\xfe", 0),
    ],
)
def test_malformed_file_is_refused_by_line(disk: MemDisk, data: bytes, line: int) -> None:
    put(disk, data)
    with pytest.raises(CorruptCheckpoint) as caught:
        read_epochs(disk, DIRECTORY)
    assert (caught.value.path, caught.value.line) == (FILE, line)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("epoch", [2**31, 2**40, 2**63 - 1])
def test_epoch_that_no_batch_can_have_is_malformed(disk: MemDisk, epoch: int) -> None:
    """Epochs are below 2^31. Believed, such an entry at the log end stops every later append."""
    put(disk, f"0\n1\n{epoch} 0\n".encode())
    with pytest.raises(CorruptCheckpoint):
        read_epochs(disk, DIRECTORY)


def test_log_with_an_impossible_epoch_at_its_end_takes_appends(disk: MemDisk) -> None:
    put(disk, b"0\n1\n1099511627776 0\n")
    log = PartitionLog.open(DIRECTORY, disk=disk)
    assert log.append(one()).leader_epoch < 2**31


def test_directory_in_place_of_the_file_is_a_disk_error(disk: MemDisk) -> None:
    disk.mkdir(FILE)
    with pytest.raises(DiskError):
        read_epochs(disk, DIRECTORY)
