"""What disk calls cost, and when syncs are done."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from attrs import evolve

from sim.disk_fuses import OPERATIONS
from sim.disk_speed import LOOKS, SYNCS, DiskQueue, DiskSpeed, SlowDisk, StalledDisk
from sim.draws import Draws

EXACT = DiskSpeed(fsync_min_us=100, fsync_max_us=100, call_us=1, bytes_per_us=10, names_us=7)


def queue(speed: DiskSpeed = EXACT, seed: int = 1, name: str = "b1") -> DiskQueue:
    return DiskQueue(speed, Draws(seed), name)


@pytest.mark.parametrize("operation", [*OPERATIONS, "fsync"])
def test_each_call_has_its_cost(operation: str) -> None:
    cost_us = queue().cost_us(operation, 30, 1_000)
    if operation in LOOKS:
        assert cost_us == 0
    elif operation in SYNCS:
        assert cost_us == 100
    elif operation in ("read_at", "read_into", "write_at", "append"):
        assert cost_us == 1 + 3
    else:
        assert cost_us == 7


def test_a_cached_write_costs_little_by_default_and_a_sync_much() -> None:
    disk = queue(DiskSpeed())
    assert disk.cost_us("append", 1_000, 0) == 0
    assert disk.cost_us("append", 1_000_000, 0) == 500
    done = [disk.fsync_done_us(at * 10_000) - at * 10_000 for at in range(2_000)]
    assert min(done) < 510
    assert max(done) > 2_990
    assert all(500 <= us <= 3_000 for us in done)
    assert 1_700 < sum(done) / len(done) < 1_800


def test_both_ends_of_the_range_are_drawn() -> None:
    disk = queue(DiskSpeed(fsync_min_us=2, fsync_max_us=4))
    assert {disk.fsync_done_us(at * 10) - at * 10 for at in range(100)} == {2, 3, 4}


def test_syncs_of_one_device_wait_for_each_other() -> None:
    disk = queue()
    assert [disk.fsync_done_us(at) for at in (0, 10, 250)] == [100, 200, 350]
    # A direct sync waits in the same queue, a cached write does not.
    assert disk.cost_us("fsync", 0, 300) == 150
    assert disk.cost_us("fsync_dir", 0, 440) == 110
    assert disk.cost_us("append", 0, 300) == 1
    assert disk.fsync_count == 5
    assert disk.free_us == 550


def test_a_tail_makes_some_syncs_long_and_changes_no_other() -> None:
    plain, tailed = queue(DiskSpeed()), queue(DiskSpeed(tail_ppm=100_000, tail_max_us=1_000_000))
    extra = []
    for at in range(0, 500 * 10_000_000, 10_000_000):
        extra.append(tailed.fsync_done_us(at) - plain.fsync_done_us(at))
    longer = [us for us in extra if us]
    assert 25 < len(longer) < 80
    assert max(longer) > 900_000
    assert max(longer) <= 1_000_000


def test_slow_disks_multiply_then_add() -> None:
    disk = queue()
    disk.add(SlowDisk(id="s1", factor_ppm=2_500_000, start_us=1_000, end_us=2_000))
    disk.add(SlowDisk(id="s2", addend_us=40, start_us=1_500))
    assert disk.cost_us("append", 90, 999) == 10
    assert disk.cost_us("append", 90, 1_000) == 25
    assert disk.cost_us("append", 90, 1_500) == 65
    assert disk.cost_us("append", 90, 2_000) == 50
    assert disk.cost_us("size", 90, 1_500) == 0
    assert disk.fsync_done_us(1_500) == 1_500 + 250 + 40
    disk.remove("s2")
    disk.remove("unknown")
    assert disk.cost_us("append", 90, 1_999) == 25


def test_only_some_calls_may_be_slow() -> None:
    disk = queue()
    disk.add(SlowDisk(id="s", factor_ppm=3_000_000, only=frozenset({"fsync_dir", "append"})))
    assert disk.cost_us("append", 0, 0) == 3
    assert disk.cost_us("write_at", 0, 0) == 1
    assert disk.fsync_done_us(0) == 100
    assert disk.cost_us("fsync_dir", 0, 1_000) == 300


def test_nothing_completes_in_a_stall() -> None:
    disk = queue()
    disk.add(StalledDisk(id="s", start_us=1_000, end_us=5_000))
    assert disk.cost_us("append", 0, 998) == 1  # done at 999
    assert disk.cost_us("append", 0, 999) == 4_001  # would be done at 1,000
    assert disk.cost_us("rename", 0, 4_999) == 7
    assert disk.cost_us("stat", 0, 1_000) == 0
    assert disk.fsync_done_us(899) == 999
    assert [disk.fsync_done_us(at) for at in (950, 960, 970)] == [5_000, 5_100, 5_200]


def test_stalls_that_meet_are_one() -> None:
    disk = queue()
    for name, start_us, end_us in (("a", 50, 60), ("b", 10, 30), ("c", 29, 50)):
        disk.add(StalledDisk(id=name, start_us=start_us, end_us=end_us))
    assert [disk.stalled_until_us(at) for at in (9, 10, 29, 49, 59, 60)] == [9, 60, 60, 60, 60, 60]
    disk.remove("c")
    assert [disk.stalled_until_us(at) for at in (10, 29, 30, 49, 50)] == [30, 30, 30, 49, 60]


def test_a_fault_takes_no_draw_of_another_sync() -> None:
    plain, struck = queue(DiskSpeed()), queue(DiskSpeed())
    struck.add(SlowDisk(id="s", factor_ppm=4_000_000, start_us=10_000_000, end_us=20_000_000))
    struck.add(StalledDisk(id="t", start_us=30_000_000, end_us=30_900_000))
    for at in range(0, 50_000_000, 1_000_000):
        took = [disk.fsync_done_us(at) - at for disk in (plain, struck)]
        if 10_000_000 <= at < 20_000_000:
            assert took[1] == 4 * took[0]
        elif at == 30_000_000:
            assert took[1] == 900_000
        else:
            assert took[1] == took[0]


def test_disks_and_seeds_draw_apart_and_runs_alike() -> None:
    def times(**how: Any) -> list[int]:
        disk = queue(DiskSpeed(), **how)
        return [disk.fsync_done_us(at * 10_000) for at in range(20)]

    assert times() == times()
    assert times() != times(seed=2)
    assert times() != times(name="b2")


def test_a_copy_goes_on_alone() -> None:
    disk = queue(DiskSpeed())
    disk.add(SlowDisk(id="s", factor_ppm=2_000_000))
    disk.fsync_done_us(0)
    twin = copy.deepcopy(disk)
    expected = [twin.fsync_done_us(at) for at in (10, 20, 9_000)]
    twin.remove("s")
    twin.add(StalledDisk(id="t", end_us=1_000_000))
    assert [disk.fsync_done_us(at) for at in (10, 20, 9_000)] == expected


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"fsync_max_us": 99}, "fsync_max_us is 99, allowed is 100 or more"),
        ({"bytes_per_us": 0}, "bytes_per_us is 0, allowed is 1 or more"),
        ({"tail_ppm": -1}, "tail_ppm is -1, allowed is 0 or more"),
    ],
)
def test_bad_speeds_are_refused(how: dict[str, int], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evolve(EXACT, **how)


def test_bad_windows_are_refused() -> None:
    with pytest.raises(ValueError, match="end_us is 5, allowed is 6 or more"):
        SlowDisk(id="s", start_us=6, end_us=5)
    with pytest.raises(ValueError, match="end_us is 5, allowed is 6 or more"):
        StalledDisk(id="s", start_us=6, end_us=5)
    with pytest.raises(ValueError, match="factor_ppm is -1, allowed is 0 or more"):
        SlowDisk(id="s", factor_ppm=-1)
