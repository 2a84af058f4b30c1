"""Finding the first difference of two traces, by few looks, in memory and in files.

The twin compares the traces event by event, from the beginning.
"""

from __future__ import annotations

import math
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, overload

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sim.trace.__main__ import main
from sim.trace.diff import (
    ContradictionError,
    Difference,
    Side,
    Unlike,
    diff_files,
    first_difference,
    side_of,
)
from sim.trace.kinds import Kind
from sim.trace.lines import Change, Check, Event
from sim.trace.parsing import Line
from sim.trace.reader import TraceError, TraceReader
from sim.trace.writer import Trace
from tests.sim.traces import HEADER, Raw, made, raws, replay

ROOT = Path(__file__).resolve().parents[2]


class Counted(Sequence[Check]):
    """Check points that count how many were asked for."""

    def __init__(self, checks: Sequence[Check]) -> None:
        self.checks = checks
        self.reads = 0

    def __len__(self) -> int:
        return len(self.checks)

    @overload
    def __getitem__(self, index: int) -> Check: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Check]: ...
    def __getitem__(self, index: int | slice) -> Check | Sequence[Check]:
        self.reads += 1
        return self.checks[index]


class Remote:
    """A trace in memory as a side, which counts the events that it hands over."""

    def __init__(self, trace: Trace, *, has_end: bool = True, has_events: bool = True) -> None:
        self.events = trace.events() if has_events else []
        self.checks = Counted(trace.checks)
        self.handed = 0
        end = Check(trace.count, trace.digest()) if has_end else None
        self.side = Side(self.checks, self.fetch, end, has_events)

    def fetch(self, first: int, last: int | None) -> Iterator[Event]:
        for event in self.events[first - 1 : last]:
            self.handed += 1
            yield event


def kept(events: Iterable[Raw], check_every: int = 10) -> Trace:
    return replay(events, "events", keeps_lines=True, check_every=check_every)


def with_change(events: list[Raw], n: int, **args: Any) -> list[Raw]:
    """The events with other arguments at number ``n``."""
    t_us, node, kind, cause, old, changes = events[n - 1]
    return [*events[: n - 1], (t_us, node, kind, cause, old | args, changes), *events[n:]]


# The search ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 9, 10, 11, 4_999, 5_000, 5_001, 9_990, 9_991, 10_000, 10_005])
@pytest.mark.parametrize("has_end", [True, False])
def test_the_exact_event_is_found_by_few_looks(n: int, has_end: bool) -> None:
    events = list(made(10_005))
    a = Remote(kept(events), has_end=has_end)
    b = Remote(kept(with_change(events, n, base_offset=-1)), has_end=has_end)
    found = first_difference(a.side, b.side)
    assert found is not None
    assert found.n == n
    assert found.unlike == (Unlike("args.base_offset", n, -1),)
    assert [event.n for event in found.before] == list(range(max(1, n - 5), n))
    assert [event.n for event in found.causes] == list(range(max(1, n - 8), n))
    looks = math.ceil(math.log2(1_001)) + 2
    assert max(a.checks.reads, b.checks.reads) <= looks
    assert max(a.handed, b.handed) <= 10 + 5 + 8


@given(raws(max_size=7), raws(max_size=7), st.integers(0, 7), st.integers(1, 3), st.booleans())
def test_it_is_what_comparing_all_events_finds(
    front: list[Raw], rest: list[Raw], at: int, check_every: int, has_end: bool
) -> None:
    left, right = front, [*front[:at], *rest[len(front[:at]) :]]
    a, b = (Remote(kept(each, check_every), has_end=has_end) for each in (left, right))
    same = 0
    for one, other in zip(a.events, b.events, strict=False):
        # Through their texts, since 1 and True are equal.
        if repr(one[:6]) != repr(other[:6]):
            break
        same += 1
    found = first_difference(a.side, b.side)
    if same == len(left) == len(right):
        assert found is None
    else:
        assert found is not None
        assert found.n == same + 1
        assert found.a == (a.events[same] if same < len(left) else None)
        assert found.b == (b.events[same] if same < len(right) else None)


@pytest.mark.parametrize("more", [1, 4, 5, 10, 40])
def test_one_trace_may_end_before_the_other(more: int) -> None:
    a, b = Remote(kept(made(25))), Remote(kept(made(25 + more)))
    found = first_difference(a.side, b.side)
    assert found is not None
    assert (found.n, found.a, found.b) == (26, None, b.events[25])
    assert [event.n for event in found.causes] == list(range(18, 26))
    turned = first_difference(b.side, a.side)
    assert turned is not None
    assert (turned.n, turned.a, turned.b) == (26, b.events[25], None)


def test_finished_traces_that_are_the_same_cost_one_look() -> None:
    a, b = Remote(kept(made(500))), Remote(kept(made(500)))
    assert first_difference(a.side, b.side) is None
    assert (a.checks.reads, a.handed) == (0, 0)


def test_check_points_at_other_events_cost_more_and_find_the_same() -> None:
    events = list(made(200))
    a, b = Remote(kept(events, 10)), Remote(kept(with_change(events, 77, base_offset=0), 7))
    found = first_difference(a.side, b.side)
    assert found is not None
    assert found.n == 77
    c = Remote(kept(events, 7), has_end=False)
    assert first_difference(a.side, c.side) is None


@pytest.mark.parametrize(("n", "last"), [(1, 10), (10, 10), (11, 20), (91, 100), (101, 105)])
def test_check_points_alone_tell_the_interval(n: int, last: int) -> None:
    events = list(made(105))
    a = Remote(kept(events), has_events=False)
    b = Remote(kept(with_change(events, n, base_offset=-1)))
    assert first_difference(a.side, b.side) == Difference((n - 1) // 10 * 10 + 1, last)


def test_check_points_alone_tell_that_one_goes_on() -> None:
    a, b = (Remote(kept(made(count)), has_events=False) for count in (100, 120))
    assert first_difference(a.side, b.side) == Difference(101, None)
    c = Remote(kept(made(100)), has_events=False, has_end=False)
    assert first_difference(a.side, c.side) is None


def test_check_points_that_contradict_the_events_are_an_error() -> None:
    trace = kept(made(50))
    a, b = Remote(trace, has_end=False), Remote(trace, has_end=False)
    b.checks.checks = [*trace.checks[:2], *(Check(each.n, "f" * 32) for each in trace.checks[2:])]
    with pytest.raises(ContradictionError, match="behind event 20"):
        first_difference(a.side, b.side)


@pytest.mark.parametrize(
    ("args", "unlike"),
    [
        ({"x": {"y": 1, "z": [1]}}, [("args.x.z", [2], [1])]),
        ({"x": 1}, [("args.x", {"y": 1, "z": [2]}, 1)]),
        ({"x": {"z": [2], "y": 1}}, [("args.x (order of keys)", ["y", "z"], ["z", "y"])]),
        ({"x": {"y": True, "z": [2], "w": 0}}, [("args.x.y", 1, True), ("args.x.w", None, 0)]),
    ],
)
def test_what_differs_is_named(args: dict[str, Any], unlike: list[tuple[str, Any, Any]]) -> None:
    events = with_change(list(made(3)), 2, x={"y": 1, "z": [2]})
    found = first_difference(
        Remote(kept(events)).side, Remote(kept(with_change(events, 2, **args))).side
    )
    assert found is not None
    assert list(found.unlike) == unlike


def test_time_node_kind_and_cause_are_named() -> None:
    a, b = Trace("events", keeps_lines=True), Trace("events", keeps_lines=True)
    a.emit(1, "b1", Kind.HW, (), {})
    b.emit(2, "b2", Kind.ISR, (), {})
    found = first_difference(Remote(a).side, Remote(b).side)
    assert found is not None
    assert [each.path for each in found.unlike] == ["t", "node", "kind"]


# Files -----------------------------------------------------------------------------------------


def file(path: Path, events: Iterable[Raw], level: str = "full", **options: Any) -> Path:
    replay(events, level, path, **options)
    return path


def test_long_files_are_compared_by_few_check_points(tmp_path: Path) -> None:
    events = list(made(20_000))
    a = TraceReader(file(tmp_path / "a", events, check_every=20))
    b = TraceReader(
        file(tmp_path / "b", with_change(events, 13_579, base_offset=0), check_every=20)
    )
    found = first_difference(side_of(a), side_of(b))
    assert found is not None
    assert (found.n, found.unlike) == (13_579, (Unlike("args.base_offset", 13_579, 0),))
    # Fetching an event looks its check point up, too: the interval, its context, and 8 causes.
    assert max(a.checks.parsed, b.checks.parsed) <= 12 * 10 + 12


class CountingReader(TraceReader):
    """Counts the lines that it parses."""

    parsed = 0

    def _parse(self, number: int, data: bytes) -> Line:
        self.parsed += 1
        return super()._parse(number, data)


@pytest.mark.slow
def test_a_late_difference_of_200_000_events_costs_log_n_check_points_and_one_interval(
    tmp_path: Path,
) -> None:
    count, n = 200_000, 199_432
    for name, change in (("a", {}), ("b", {"base_offset": -1})):
        trace = Trace("events", path=tmp_path / name, header=HEADER)
        for number, (t_us, node, kind, cause, args, _) in enumerate(made(count), 1):
            trace.emit(t_us, node, kind, cause, args | change if number == n else args)
        trace.close("pass")
    readers = [CountingReader(tmp_path / name) for name in ("a", "b")]
    sides = [side_of(reader) for reader in readers]
    looks = [Counted(side.checks) for side in sides]
    found = first_difference(
        *(evolve(side, checks=each) for side, each in zip(sides, looks, strict=True))
    )
    assert found is not None
    assert found.n == n
    assert found.unlike == (Unlike("args.base_offset", n, -1),)
    # The search looks at few check points; then come one interval up to the difference, and those
    # in which the events in front of it and its 8 causes stand, each with a look-up of its own.
    log_n = math.ceil(math.log2(count / 1_000))
    assert [each.reads for each in looks] == [log_n + 1, log_n + 1]
    assert [reader.checks.parsed <= (1 + 11) * (log_n + 2) for reader in readers] == [True, True]
    assert [reader.parsed <= 11 * 1_000 for reader in readers] == [True, True]


def test_levels_do_not_make_files_differ(tmp_path: Path) -> None:
    paths = [file(tmp_path / level, made(2_100), level) for level in ("digest", "events", "full")]
    for a in paths:
        assert all(diff_files(a, b).is_same for b in paths)


def changed(events: list[Raw], n: int, changes: list[Change]) -> list[Raw]:
    """The events with other changes at number ``n``."""
    return [*events[: n - 1], (*events[n - 1][:5], changes), *events[n:]]


@pytest.mark.parametrize("is_cut", [False, True])
def test_other_changes_of_the_same_events_are_found_in_files_that_have_them(
    is_cut: bool, tmp_path: Path
) -> None:
    events = list(made(3_000))
    other = changed(events, 2_345, [("b1/orders-0/leo", 2_344, 9), ("b1/role", None, "x")])
    for name, each in (("a", events), ("b", other)):
        for level in ("events", "full"):
            path = tmp_path / f"{name}.{level}"
            replay(each, level, path)
            if is_cut:
                path.write_bytes(path.read_bytes()[:-20])
    found = diff_files(tmp_path / "a.full", tmp_path / "b.full")
    assert found.events is None
    assert not found.is_same
    assert found.changes is not None
    assert found.changes.event.n == 2_345
    assert found.changes.unlike == (
        Unlike("set.b1/orders-0/leo", [2_344, 2_345], [2_344, 9]),
        Unlike("set.b1/role", None, [None, "x"]),
    )
    for names in (("a.full", "b.events"), ("a.events", "b.full"), ("a.events", "b.events")):
        assert diff_files(*(tmp_path / name for name in names)).changes is None


def test_changes_in_another_order_differ(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes: list[Change] = [("b1/x", None, 1), ("b1/y", None, 2)]
    for name, each in (("a", changes), ("b", changes[::-1])):
        replay(changed(list(made(9)), 4, each), "full", tmp_path / name)
    assert main(["diff", str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    report = capsys.readouterr().out
    assert "The events are the same. What event 4 changed differs:\n" in report
    assert "\n       4  0.000400  b1 append" in report
    assert 'set (order of keys): ["b1/x","b1/y"] in A, ["b1/y","b1/x"] in B' in report


def test_a_file_that_was_changed_where_no_digest_is_looked_at_is_an_error(tmp_path: Path) -> None:
    """The search looks at the ends only, and the changes are compared by whole lines."""
    events = list(made(30))
    for name in ("a", "b"):
        replay(events, "full", tmp_path / name)
    for old, new, error in (
        (b'"base_offset":7', b'"base_offset":8', ContradictionError),
        (b'"n":7,', b'"n":x,', TraceError),
    ):
        text = bytearray((tmp_path / "a").read_bytes().replace(old, new))
        text[-4] = ord("1") if text[-4] == ord("0") else ord("0")
        (tmp_path / "b").write_bytes(text)
        with pytest.raises(error):
            diff_files(tmp_path / "a", tmp_path / "b")


def test_a_file_of_level_digest_tells_the_interval(tmp_path: Path) -> None:
    events = list(made(3_100))
    a = file(tmp_path / "a", events, "digest")
    b = file(tmp_path / "b", with_change(events, 2_345, base_offset=0), "full")
    assert diff_files(a, b).events == Difference(2_001, 3_000)


def run(*arguments: object) -> int:
    return main([str(each) for each in arguments])


def test_diff_says_that_files_are_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = file(tmp_path / "a", made(30)), file(tmp_path / "b", made(30))
    assert run("diff", a, b) == 0
    assert capsys.readouterr().out == f'A: "{a}"\nB: "{b}"\nThe events are the same.\n'


def test_diff_reports_the_first_difference(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    events = list(made(9))
    a = file(tmp_path / "a", events)
    b = file(tmp_path / "b", with_change(events, 3, partition="\x1b[2J"))
    assert run("diff", a, b) == 1
    assert capsys.readouterr().out.splitlines()[2:] == [
        "They differ first in event 3.",
        "In front of it:",
        '       1  0.000100  b1 append partition="orders-1" base_offset=1 next_offset=2',
        '       2  0.000200  b2 append partition="orders-2" base_offset=2 next_offset=3 <- 1',
        "A:",
        '       3  0.000300  b0 append partition="orders-0" base_offset=3 next_offset=4 <- 2',
        "B:",
        '       3  0.000300  b0 append partition="\\u001b[2J" base_offset=3 next_offset=4 <- 2',
        "What differs:",
        '  args.partition: "orders-0" in A, "\\u001b[2J" in B',
        "What led to it:",
        '       1  0.000100  b1 append partition="orders-1" base_offset=1 next_offset=2',
        '       2  0.000200  b2 append partition="orders-2" base_offset=2 next_offset=3 <- 1',
    ]


def test_names_from_a_trace_reach_no_terminal_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    odd: Raw = (1, "\x1b[2J", Kind.NOTE, (), {"\x1b[3J": 1}, [])
    a, b = file(tmp_path / "a", [odd]), file(tmp_path / "b", [(2, *odd[1:]), odd])
    assert run("diff", a, b) == 1
    assert all(line.isprintable() for line in capsys.readouterr().out.splitlines())


def test_diff_reports_a_trace_that_ends_early(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = file(tmp_path / "a", made(30)), file(tmp_path / "b", made(31))
    assert run("diff", a, b) == 1
    out = capsys.readouterr().out
    assert "A ends behind event 30, where the other goes on.\n" in out
    assert "A:\n  nothing\nB:\n      31  " in out


def test_diff_reports_other_ends_of_the_same_events(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = file(tmp_path / "a", made(30)), file(tmp_path / "b", made(30), verdict="fail")
    c = tmp_path / "c"
    c.write_bytes(a.read_bytes()[: a.read_bytes().index(b'{"end"') + 10])
    assert run("diff", a, b) == 1
    assert 'footer.verdict: "pass" in A, "fail" in B' in capsys.readouterr().out
    assert run("diff", a, c) == 1
    assert "footer.is_complete: true in A, false in B" in capsys.readouterr().out


def test_diff_shows_other_headers_and_does_not_count_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    a, b = file(tmp_path / "a", made(1)), tmp_path / "b"
    file(tmp_path / "c", made(1))
    b.write_bytes((tmp_path / "c").read_bytes().replace(b'"seed":7', b'"seed":8'))
    assert run("diff", a, b) == 0
    assert "The headers differ:\n  header.seed: 7 in A, 8 in B\n" in capsys.readouterr().out


def test_verify_says_what_it_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = file(tmp_path / "a", made(30), check_every=20)
    data = path.read_bytes()
    assert run("verify", path) == 0
    assert capsys.readouterr().out.startswith("intact: 30 events, digest ")
    path.write_bytes(data[:-300])
    assert run("verify", path) == 1
    out = capsys.readouterr().out
    assert out == "cut short behind event 29; the events up to 20 are as they were written\n"
    path.write_bytes(data.replace(b'"base_offset":3,', b'"base_offset":4,'))
    assert run("verify", path) == 1
    assert capsys.readouterr().out.startswith(f"damaged: {path}:22: the digest is ")


@pytest.mark.parametrize("command", ["diff", "verify"])
@pytest.mark.parametrize("content", [None, b"", b"\x1b[2J\xff\n", b"{}\n"])
def test_what_is_no_trace_is_bad_usage(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str, content: bytes | None
) -> None:
    path = tmp_path / "\x1b[2Ja"
    if content is not None:
        path.write_bytes(content)
    assert run(command, *[path] * (2 if command == "diff" else 1)) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.rstrip("\n").isprintable()


def test_the_command_line_is_a_module(tmp_path: Path) -> None:
    path = file(tmp_path / "a", made(3))

    def code(*arguments: str) -> int:
        command = [sys.executable, "-m", "sim.trace", *arguments]
        return subprocess.run(command, cwd=ROOT, capture_output=True, check=False).returncode

    assert code("verify", str(path)) == 0
    assert code("diff", str(path), str(path)) == 0
    assert code("diff", str(path)) == 2
    assert code() == 2
