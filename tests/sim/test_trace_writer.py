"""Writing traces: numbers, digests, check points, files, kills and copies.

The digest is compared with a twin that encodes each event by the public ``json.dumps``.
"""

from __future__ import annotations

import copy
import errno
import itertools
import json
import os
import signal
import subprocess
import sys
from hashlib import blake2b
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.trace.kinds import Kind
from sim.trace.lines import Check, Footer, Level
from sim.trace.reader import TraceReader
from sim.trace.writer import BATCH_EVENTS_MAX, Trace
from tests.sim.traces import HEADER, Raw, made, raws, replay

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

LEVELS = list(Level)
ROOT = Path(__file__).resolve().parents[2]
_folders = itertools.count()


@pytest.fixture(name="fresh", scope="module")
def _fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of tests that draw many examples."""
    return tmp_path_factory.mktemp("traces")


def fresh_file(folder: Path) -> Path:
    return folder / f"{next(_folders)}.jsonl"


def naive_digest(events: list[Raw]) -> str:
    state = blake2b(digest_size=16)
    for n, (t_us, node, kind, cause, args, _) in enumerate(events, 1):
        line = json.dumps([n, t_us, node, kind.value, cause, args], separators=(",", ":"))
        state.update(line.encode() + b",")
    return state.hexdigest()


# Digests ---------------------------------------------------------------------------------------


@given(raws(), st.integers(1, 9))
def test_the_digest_is_the_same_at_each_level_with_and_without_a_file(
    fresh: Path, events: list[Raw], check_every: int
) -> None:
    for level in LEVELS:
        for path in (None, fresh_file(fresh)):
            for keeps in (False, True):
                trace = replay(events, level, path, check_every=check_every, keeps_lines=keeps)
                assert trace.digest() == naive_digest(events)
                assert trace.checks == [
                    Check(n, naive_digest(events[:n]))
                    for n in range(check_every, len(events) + 1, check_every)
                ]
                if path is not None:
                    path.unlink()


@given(raws(), st.integers(1, 9), st.sampled_from(["pass", None]))
def test_what_is_kept_for_the_digest_is_what_events_keep(
    events: list[Raw], check_every: int, verdict: str | None
) -> None:
    kept, known = (
        replay(events, level, check_every=check_every, keeps_lines=True, verdict=verdict).events()
        for level in ("digest", "events")
    )
    assert kept == known
    assert [type(each.kind) for each in kept] == [Kind] * len(events)


@given(raws(max_size=12))
def test_asking_for_the_digest_changes_nothing(events: list[Raw]) -> None:
    trace = Trace(check_every=5)
    for n, (t_us, node, kind, cause, args, _) in enumerate(events, 1):
        assert trace.emit(t_us, node, kind, cause, args) == n == trace.count
        assert trace.digest() == naive_digest(events[:n])
        assert [check.n for check in trace.checks] == list(range(5, n + 1, 5))


def test_the_digest_tells_each_field_and_the_order_of_keys() -> None:
    events = [
        (1, "b1", Kind.HW, (), {"a": 1, "b": 2}),
        (2, "b1", Kind.HW, (), {"a": 1, "b": 2}),
        (1, "b2", Kind.HW, (), {"a": 1, "b": 2}),
        (1, "b1", Kind.ISR, (), {"a": 1, "b": 2}),
        (1, "b1", Kind.HW, (1,), {"a": 1, "b": 2}),
        (1, "b1", Kind.HW, (), {"b": 2, "a": 1}),
        (1, "b1", Kind.HW, (), {"a": True, "b": 2}),
    ]
    digests = set()
    for event in events:
        trace = Trace()
        trace.emit(0, "c1", Kind.START, (), {})
        trace.emit(*event)
        digests.add(trace.digest())
    assert len(digests) == len(events)


# Files -----------------------------------------------------------------------------------------


def test_the_file_is_as_described(tmp_path: Path) -> None:
    path = tmp_path / "trace.jsonl"
    trace = Trace("full", path=path, header=HEADER, check_every=2)
    trace.emit(5, "b1", Kind.OPEN, (), {})
    n = trace.emit(7, "b1", Kind.HW, (1,), {"partition": "o-0", "isr": ("b1", "b2")})
    trace.attach(n, [("b1/o-0/hw", None, 3)])
    trace.close("pass")
    lines = path.read_bytes().splitlines()
    assert lines[0] == (
        b'{"leaderfall":1,"version":"0.1.0","scenario":"leader_crash","variant":"acks-all",'
        b'"seed":7,"options":{"acks":"all","brokers":3},"nodes":["b1","b2"],"topics":{"o":1}}'
    )
    assert lines[1:3] == [
        b'{"n":1,"t":5,"node":"b1","kind":"open"}',
        (
            b'{"n":2,"t":7,"node":"b1","kind":"hw","cause":[1],'
            b'"args":{"partition":"o-0","isr":["b1","b2"]},"set":[["b1/o-0/hw",null,3]]}'
        ),
    ]
    sums = [line.rindex(b',"sum":"') for line in lines[3:]]
    digest = trace.digest().encode()
    assert lines[3][: sums[0]] == b'{"check":2,"digest":"' + digest + b'"'
    assert lines[4][: sums[1]] == (
        b'{"end":2,"verdict":"pass","digest":"' + digest + b'","violations":[],"losses":[]'
    )
    data = path.read_bytes()
    for line, at in zip(lines[3:], sums, strict=True):
        in_front = data[: data.index(line) + at]
        assert json.loads(line)["sum"] == blake2b(in_front, digest_size=16).hexdigest()


@pytest.mark.parametrize(("level", "keys"), [("events", False), ("full", True)])
def test_changes_are_written_at_level_full_only(tmp_path: Path, level: str, *, keys: bool) -> None:
    path = tmp_path / "t"
    assert replay(made(3), level, path).wants_changes is keys
    assert (b'"set"' in path.read_bytes()) is keys


def test_nobody_need_derive_changes_that_nobody_takes() -> None:
    assert not Trace("full").wants_changes
    assert not Trace("digest", keeps_lines=True).wants_changes
    assert Trace("full", keeps_lines=True).wants_changes


def test_a_trace_of_level_digest_has_check_points_in_its_file(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(25), "digest", path, check_every=10)
    reader = TraceReader(path)
    assert list(reader) == []
    assert list(reader.checks) == trace.checks
    assert reader.footer == trace.footer


def test_a_file_that_exists_is_not_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(b"mine")
    with pytest.raises(FileExistsError):
        Trace(path=path, header=HEADER)
    assert path.read_bytes() == b"mine"


def test_a_full_disk_ends_the_file_and_not_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "t"
    trace = Trace("events", path=path, header=HEADER, check_every=3)
    put: list[bytes] = []

    def write(data: bytes) -> None:
        put.append(data)
        raise OSError(errno.ENOSPC, "full")

    assert trace._sink is not None
    monkeypatch.setattr(type(trace._sink), "write", lambda _, data: write(data))
    events = list(made(10))
    for event in events[:3]:
        trace.emit(*event[:5])
    with pytest.raises(OSError, match="full"):
        trace.emit(*events[3][:5])
    for event in events[3:]:
        trace.emit(*event[:5])
    trace.close("pass")
    assert len(put) == 1
    assert trace.digest() == naive_digest(events)
    assert [check.n for check in trace.checks] == [3, 6, 9]


def test_a_write_that_takes_a_few_bytes_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = FileIO.write

    class Narrow(FileIO):
        def write(self, data: ReadableBuffer) -> int:
            return write(self, memoryview(data)[:7])

    monkeypatch.setattr("sim.trace.writer.FileIO", Narrow)
    replay(made(30), "full", tmp_path / "a", check_every=10)
    monkeypatch.undo()
    replay(made(30), "full", tmp_path / "b", check_every=10)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_a_long_trace_keeps_little_in_memory(tmp_path: Path) -> None:
    trace = replay(made(5_000), "full", tmp_path / "t", verdict=None)
    assert len(trace._batch) <= BATCH_EVENTS_MAX
    assert len(trace._changes) <= BATCH_EVENTS_MAX
    trace.abandon()


# Kills -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, BATCH_EVENTS_MAX + 1, 1_000, 1_777])
def test_a_killed_process_loses_one_batch_at_most(tmp_path: Path, count: int) -> None:
    path = tmp_path / "t"
    code = (
        "import sys; from pathlib import Path; from tests.sim.traces import made, replay\n"
        f"replay(made({count}), 'full', Path(sys.argv[1]), verdict=None)\n"
        "import os; os.kill(os.getpid(), 9)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, path], cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    reader = TraceReader(path)
    assert not reader.is_complete
    found = list(reader)
    assert count - BATCH_EVENTS_MAX <= len(found) <= count
    assert [event.n for event in found] == list(range(1, len(found) + 1))


def test_flush_writes_what_there_is(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(7), "events", path, verdict=None)
    assert len(list(TraceReader(path))) == 0
    trace.flush()
    assert len(list(TraceReader(path))) == 7
    trace.abandon()


def test_an_abandoned_trace_has_its_events_and_no_footer(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(7), "events", path, verdict=None)
    trace.abandon()
    trace.abandon()
    assert (len(list(TraceReader(path))), TraceReader(path).is_complete) == (7, False)


def test_files_are_closed(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    replay(made(3), "full", tmp_path / "a")
    replay(made(3), "full", tmp_path / "b", verdict=None).abandon()
    assert len(os.listdir("/proc/self/fd")) == before


# Copies ----------------------------------------------------------------------------------------


@given(raws(max_size=20), st.integers(0, 20), st.integers(1, 7), st.booleans())
def test_a_copy_goes_on_without_the_file(
    fresh: Path, events: list[Raw], at: int, check_every: int, keeps: bool
) -> None:
    path = fresh_file(fresh)
    front, rest = events[:at], events[at:]
    trace = replay(front, "full", path, check_every=check_every, keeps_lines=keeps, verdict=None)
    other = copy.deepcopy(trace)
    assert other.wants_changes is keeps
    for each in (other, trace):
        for t_us, node, kind, cause, args, changes in rest:
            each.attach(each.emit(t_us, node, kind, cause, args), changes)
    other.close("copy")
    trace.close("own")
    assert other.digest() == trace.digest() == naive_digest(events)
    assert other.checks == trace.checks
    reader = TraceReader(path)
    assert reader.footer is not None
    assert reader.footer.verdict == "own"
    found = list(reader)
    assert len(found) == len(events)
    if keeps:
        assert other.events() == trace.events() == found
    path.unlink()


def test_what_a_copy_does_leaves_the_original_alone() -> None:
    trace = replay(made(5), "full", keeps_lines=True, check_every=3, verdict=None)
    digest, events = trace.digest(), trace.events()
    other = copy.deepcopy(trace)
    for event in made(9, start=6):
        other.emit(*event[:5])
    other.close("pass")
    assert (trace.count, trace.digest(), trace.footer) == (5, digest, None)
    assert (trace.events(), len(trace.checks)) == (events, 1)


# Mistakes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize(
    "value", [{1, 2}, b"x", object(), float("nan"), Path("x")], ids=lambda each: type(each).__name__
)
def test_a_value_that_is_not_plain_is_named_with_its_event(
    tmp_path: Path, level: Level, value: object
) -> None:
    trace = Trace(level, path=tmp_path / "t", header=HEADER)
    trace.emit(1, "b1", Kind.HW, (), {"a": 1})
    trace.emit(1, "b2", Kind.ISR, (1,), {"a": [value]})
    with pytest.raises(TypeError, match=r"event 2 \(isr at b2\)"):
        trace.digest()
    with pytest.raises(TypeError, match=r"event 2 \(isr at b2\)"):
        trace.close("pass")
    with pytest.raises(TypeError, match="event 2"):
        trace.abandon()


@pytest.mark.parametrize("cause", [(0,), (2,), (1, 2), (-1,)])
def test_a_cause_is_an_earlier_event(cause: tuple[int, ...]) -> None:
    trace = replay(made(1), verdict=None)
    with pytest.raises(ValueError, match=f"cause {cause[-1]} of event 2"):
        trace.emit(1, "b1", Kind.HW, cause, {})
    assert trace.emit(1, "b1", Kind.HW, (1,), {}) == 2


def test_changes_belong_to_the_event_emitted_last() -> None:
    trace = replay(made(2), "full", keeps_lines=True, verdict=None)
    with pytest.raises(ValueError, match="event 1, allowed is the one emitted last, 2"):
        trace.attach(1, [("a", None, 1)])
    trace.flush()
    with pytest.raises(ValueError, match="event 2"):
        trace.attach(2, [("a", None, 1)])


def test_changes_can_be_attached_to_an_event_that_fills_a_batch() -> None:
    trace = replay(made(1_000), "full", keeps_lines=True, verdict=None)
    assert all(event.changes for event in trace.events())


def test_a_closed_trace_takes_nothing_more() -> None:
    trace = replay(made(2))
    assert trace.footer == Footer(
        2, "pass", trace.digest(), ({"check": "hw-valid", "n": 3},), ("L0",)
    )
    with pytest.raises(ValueError, match="closed"):
        trace.emit(1, "b1", Kind.HW, (), {})
    with pytest.raises(ValueError, match="closed"):
        trace.close("fail")
    with pytest.raises(ValueError, match="closed"):
        copy.deepcopy(trace).emit(1, "b1", Kind.HW, (), {})
    trace.abandon()
    assert trace.count == 2


def test_arguments_are_checked(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="check_every is 0"):
        Trace(check_every=0)
    with pytest.raises(ValueError, match="header"):
        Trace(path=tmp_path / "t")
    with pytest.raises(ValueError, match="loud"):
        Trace("loud")
    with pytest.raises(ValueError, match="keeps no events"):
        Trace("full").events()
