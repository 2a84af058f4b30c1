"""What a trace says of dirty pages against the simulated disks themselves.

Method: shipped scenarios with truncations, power cuts, wiped disks and syncs that fail or lie are
run; at their end each file's pages are asked of the disk that knows, and of the trace alone. The
trace may call more dirty than is, never less, but for a cut tail, which is told of by itself.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Header
from sim.trace.writer import Trace
from sim.world import World
from sim.xray import pending as subject
from sim.xray.pages import PAGE_BYTES, page_maps
from sim.xray.pending import FilePending, Pending, joined, pending_of, without
from sim.xray.reading import xray
from storage.disk import OsDisk
from storage.read_only import ReadOnlyDisk
from tests.conftest import ROOT

SCENARIOS = [
    "leader_crash_acks1",
    "kip101_divergence",
    "disks/fsync_failure",
    "disks/stale_image",
    "disks/wiped_disk",
    "truncation/retention_restarts_follower",
    "truncation/retention_above_high_watermark",
    "failover/rolling_crashes",
]
ALL = 1 << 62


def played(name: str, folder: Path, variant: str | None = None) -> tuple[World, Path]:
    """A scenario's world at its end, and its trace."""
    worlds: list[World] = []
    trace = folder / "trace.jsonl"
    scenario = effective(read_scenario(ROOT / "scenarios" / f"{name}.toml"), variant, ())
    run_scenario(scenario, path=trace, on_world=worlds.append)
    return worlds[0], trace


def pages_of(ranges: list[tuple[int, int]]) -> set[int]:
    return {page for low, high in ranges for page in range(low // PAGE_BYTES, -(-high // 4096))}


def faults_of(world: World, pending: Pending) -> tuple[list[str], int]:
    """Where the trace promises more than the disks hold, and how many files it speaks of."""
    found, count = [], 0
    for node, host in sorted(world.hosts.items()):
        if host.disk is None:
            continue
        disk = host.disk.files
        durable = {path for path, _ in disk.names._walk(disk.names.durable)}
        for path, number in disk.names.paths():
            if number not in disk.inodes:
                continue
            state = disk.inodes[number].state
            truth = {page for page in state.dirty_pages(ALL) if page * PAGE_BYTES < state.size}
            file = pending.files.get((node, str(path)))
            place = f"{node}/{path}"
            if file is None:
                if truth or (state.size and node not in pending.restored):
                    found.append(f"{place}: not told of, dirty are {truth}")
                continue
            count += 1
            told = pages_of(file.ranges)
            if not told >= truth and not file.is_cut:
                found.append(f"{place}: {told} are called dirty, {truth} are")
            if file.size_bytes not in (None, state.size):
                found.append(f"{place}: {file.size_bytes} bytes, the disk has {state.size}")
            if file.name == "durable" and path not in durable:
                found.append(f"{place}: its name is not durable")
    return found, count


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_trace_never_calls_clean_what_is_dirty(name: str, tmp_path: Path) -> None:
    world, trace = played(name, tmp_path)
    pending = pending_of(trace)
    found, count = faults_of(world, pending)
    assert found == []
    assert count >= 6
    assert pending.why_unknown is None


def test_dirty_bytes_are_told_exactly_where_nothing_odd_happens(tmp_path: Path) -> None:
    world, trace = played("leader_crash_acks1", tmp_path)
    pending, compared = pending_of(trace), 0
    for (node, name), file in pending.files.items():
        disk = world.hosts[node].disk
        assert disk is not None
        numbers = {str(path): number for path, number in disk.files.names.paths()}
        state = disk.files.inodes[numbers[name]].state
        span = state.pending_span(ALL)
        ranges = file.ranges
        assert ((ranges[0][0], ranges[-1][1]) if ranges else (0, 0)) == span
        compared += span != (0, 0)
    assert compared > 3


@pytest.mark.parametrize("ignored", [Kind.WRITE, Kind.FSYNC])
def test_the_comparison_notices_events_that_are_passed_over(
    ignored: Kind, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without its writes a trace promises too much; without its syncs nothing is ever clean."""
    world, trace = played("leader_crash_acks1", tmp_path)
    see = subject._Replay._see

    def deaf(self: Any, event: Event) -> None:
        if event.kind is not ignored:
            see(self, event)

    before = {key: file.ranges for key, file in pending_of(trace).files.items()}
    monkeypatch.setattr(subject._Replay, "_see", deaf)
    pending = pending_of(trace)
    found, _ = faults_of(world, pending)
    if ignored is Kind.WRITE:
        assert any("not told of" in each or "bytes, the disk has" in each for each in found)
    else:
        assert sum(not ranges for ranges in before.values()) > 10
        assert all(file.ranges or not file.size_bytes for file in pending.files.values())


def test_a_sync_that_lied_leaves_the_pages_dirty(tmp_path: Path) -> None:
    header = Header("0", "x", None, 7, {}, ("b1",), [])
    trace = Trace("full", header=header, path=tmp_path / "trace.jsonl")
    file = {"file": "/orders-0/00000000000000000000.log"}
    trace.emit(0, "b1", Kind.WRITE, (), {**file, "position": 0, "size": 100})
    trace.emit(1, "b1", Kind.DISK_ERROR, (), {**file, "operation": "complete_fsync"})
    trace.emit(1, "b1", Kind.FSYNC, (), {**file, "position": 0, "size": 0})
    trace.emit(2, "b1", Kind.WRITE, (), {**file, "position": 100, "size": 50})
    trace.emit(3, "b1", Kind.FSYNC, (), {**file, "position": 100, "size": 50})
    trace.close("passed", [], [])
    pending = pending_of(tmp_path / "trace.jsonl")
    found = pending.files["b1", "orders-0/00000000000000000000.log"]
    assert found.ranges == [(0, 100)]


def test_a_power_cut_leaves_nothing_dirty_and_a_kill_everything(tmp_path: Path) -> None:
    for how, left in (("process", [(0, 10)]), ("power", [])):
        header = Header("0", "x", None, 7, {}, ("b1",), [])
        path = tmp_path / f"{how}.jsonl"
        trace = Trace("full", header=header, path=path)
        trace.emit(0, "b1", Kind.WRITE, (), {"file": "/x", "position": 0, "size": 10})
        trace.emit(1, "b1", Kind.CRASH, (), {"how": how})
        trace.close("passed", [], [])
        assert pending_of(path).files["b1", "x"].ranges == left


def test_a_trace_that_was_cut_short_tells_nothing(tmp_path: Path) -> None:
    _, trace = played("leader_crash_acks1", tmp_path)
    data = trace.read_bytes()
    trace.write_bytes(data[: len(data) // 2])
    assert pending_of(trace).why_unknown == "the run's trace was cut short"


def test_ranges_join_and_part() -> None:
    assert joined([(5, 9), (0, 3), (3, 5), (20, 20), (12, 15)]) == [(0, 9), (12, 15)]
    assert without([(0, 9), (12, 15)], 4, 13) == [(0, 4), (13, 15)]
    assert without([(0, 9), (12, 15)], 4, None) == [(0, 4)]


# The map ---------------------------------------------------------------------------------------


def mapped(folder: Path, file: FilePending | None, size: int) -> dict[str, Any]:
    log = f"{0:020d}.log"
    (folder / log).write_bytes(bytes(size))
    files = {} if file is None else {("b1", f"orders-0/{log}"): file}
    pending = Pending(files, frozenset())
    segment = {
        "file": log,
        "base_offset": 0,
        "next_offset": 3,
        "batch_count": 3,
        "good_bytes": size,
        "listed": [0, size],
        "batches": [[at * 5_000, 5_000, at, at + 1] for at in range(3)],
    }
    disk = ReadOnlyDisk(OsDisk())
    return page_maps(disk, folder, [log], [segment], pending, ("b1", "orders-0"))


def test_a_page_with_one_dirty_byte_is_dirty(tmp_path: Path) -> None:
    file = FilePending(dirty=[(4_095, 4_097), (12_288, 15_000)], size_bytes=15_000)
    found = mapped(tmp_path, file, 15_000)
    assert found["files"][0]["runs"] == [[0, 2, "dirty"], [2, 3, "clean"], [3, 4, "dirty"]]
    assert found["files"][0]["dirty"] == [[4_095, 4_097], [12_288, 15_000]]
    # The first batch lies below byte 5,000, in which bytes are dirty.
    assert found["power"]["log_end"] == 0
    assert found["kill"] == found["kill"] | {"lost_bytes": 0, "log_end": 3}


def test_what_a_power_cut_leaves_ends_at_the_first_batch_with_dirty_bytes(tmp_path: Path) -> None:
    file = FilePending(dirty=[(10_000, 15_000)], size_bytes=15_000, name="durable")
    found = mapped(tmp_path, file, 15_000)
    assert found["power"]["log_end"] == 2
    assert found["power"]["lost_bytes"] == 5_000
    assert "the log below offset 2 is safe" in found["power"]["text"]
    file = FilePending(size_bytes=15_000, name="not synced")
    assert mapped(tmp_path, file, 15_000)["power"]["log_end"] == 0


@pytest.mark.parametrize("file", [None, FilePending(size_bytes=14_999)])
def test_what_the_trace_does_not_explain_is_unknown_and_never_clean(
    file: FilePending | None, tmp_path: Path
) -> None:
    found = mapped(tmp_path, file, 15_000)
    assert found["files"][0]["runs"] == [[0, 4, "unknown"]]
    assert found["power"]["log_end"] is None
    assert (found["files"][0]["note"] is None) == (file is None)


def test_the_durable_boundary_never_lies_behind_what_survives(tmp_path: Path) -> None:
    """Storage's promise and the trace's syncs are two accounts of the same thing."""
    compared = 0
    for name in ("truncation/retention_restarts_follower", "kip101_divergence"):
        folder = tmp_path / name.replace("/", "-")
        worlds: list[World] = []
        scenario = effective(read_scenario(ROOT / "scenarios" / f"{name}.toml"), None, ())
        trace = tmp_path / f"{folder.name}.jsonl"
        folder.mkdir()
        run_scenario(scenario, root=folder, path=trace, on_world=worlds.append)
        pending = pending_of(trace)
        for directory in sorted(folder.glob("b*/*-0")):
            node = directory.parent.name
            data = xray(directory, node=node, folder=directory.name, pending=pending)
            durable, power = data["marks"]["durable_end"], data["pages"]["power"]
            assert power["log_end"] is not None
            assert durable["offset"] <= power["log_end"] <= data["marks"]["log_end"]["offset"]
            compared += 1
    assert compared >= 4
