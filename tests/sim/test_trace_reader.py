"""Reading traces: round trips, traces cut at any byte, changed bytes, and hostile input.

Every byte of a small trace is changed once: the reader or ``verify`` must notice each.
"""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sim.trace.lines import Check, Event, Footer, Level, sum_tail
from sim.trace.parsing import DEPTH_MAX, Malformed, parse
from sim.trace.reader import TraceError, TraceReader, verify
from tests.sim.traces import HEADER, Raw, made, raws, replay

_files = itertools.count()


@pytest.fixture(name="fresh", scope="module")
def _fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the files of tests that draw many examples."""
    return tmp_path_factory.mktemp("traces")


def fresh_file(folder: Path) -> Path:
    return folder / f"{next(_files)}.jsonl"


def as_read(events: list[Raw], *, changes: bool) -> list[Event]:
    """What a reader gives, by way of the public ``json``."""
    found = []
    for n, (t_us, node, kind, cause, args, changed) in enumerate(events, 1):
        plain = json.loads(json.dumps([args, changed]))
        tuples = tuple((path, old, new) for path, old, new in plain[1]) if changes else ()
        found.append(Event(n, t_us, node, kind, cause, plain[0], tuples))
    return found


# Round trips -----------------------------------------------------------------------------------


@given(raws(), st.integers(1, 9), st.sampled_from([Level.EVENTS, Level.FULL]))
def test_what_is_written_is_read(
    fresh: Path, events: list[Raw], check_every: int, level: Level
) -> None:
    path = fresh_file(fresh)
    trace = replay(events, level, path, check_every=check_every)
    reader = TraceReader(path)
    assert reader.header == HEADER
    assert reader.is_complete
    assert reader.footer == trace.footer
    assert list(reader.checks) == trace.checks
    expected = as_read(events, changes=level is Level.FULL)
    assert list(reader) == expected
    assert list(reader) == expected, "a second time"
    found = verify(path)
    assert (found.count, found.verified, found.is_complete) == (len(events), len(events), True)
    assert found.digest == trace.digest()
    path.unlink()


@given(raws(), st.integers(1, 9), st.integers(1, 31), st.none() | st.integers(0, 31))
def test_any_range_can_be_fetched(
    fresh: Path, events: list[Raw], check_every: int, first: int, last: int | None
) -> None:
    path = fresh_file(fresh)
    replay(events, "full", path, check_every=check_every)
    expected = as_read(events, changes=True)[first - 1 : last]
    assert list(TraceReader(path).fetch(first, last)) == expected
    path.unlink()


def test_fetching_reads_from_the_check_point_in_front(tmp_path: Path) -> None:
    path = tmp_path / "t"
    replay(made(2_000), "events", path, check_every=10)
    data = path.read_bytes()
    at = data.index(b'{"n":55,')
    path.write_bytes(data[:at] + b"?" + data[at + 1 :])
    assert [event.n for event in TraceReader(path).fetch(1_234, 1_236)] == [1_234, 1_235, 1_236]
    with pytest.raises(TraceError, match=":61: not JSON"):
        list(TraceReader(path))


def test_a_trace_of_level_digest_is_verified(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(25), "digest", path, check_every=10)
    found = verify(path)
    assert (found.count, found.has_events, found.digest) == (25, False, trace.digest())
    assert list(TraceReader(path).fetch(12)) == []


def test_the_ends_of_a_trace_of_level_digest_do_not_contradict_each_other(tmp_path: Path) -> None:
    path = tmp_path / "t"
    data = HEADER.line()
    for line in (Check(5, "a" * 32).line(), Footer(5, "pass", "b" * 32).line()):
        data += line
        data += sum_tail(blake2b(data, digest_size=16).hexdigest())
    path.write_bytes(data)
    with pytest.raises(TraceError, match=r":3: the digest is b{32}, it was a{32}"):
        verify(path)


# Cut short -------------------------------------------------------------------------------------


@pytest.fixture(name="small", scope="module")
def _small(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A trace of 12 events and 3 check points."""
    path = tmp_path_factory.mktemp("small") / "t"
    replay(made(12), "full", path, check_every=5)
    return path.read_bytes()


def test_a_trace_cut_at_any_byte_is_readable_and_says_so(small: bytes, tmp_path: Path) -> None:
    path = tmp_path / "t"
    path.write_bytes(small)
    whole = list(TraceReader(path))
    header_end = small.index(b"\n") + 1
    for end in range(header_end, len(small)):
        path.write_bytes(small[:end])
        reader = TraceReader(path)
        assert not reader.is_complete
        events = small[:end].count(b"\n") - 1 - small[:end].count(b'{"check":', 0, end)
        found = list(reader)
        assert found == whole[: len(found)]
        # The line of a check point counts as begun above, and is not whole perhaps.
        assert events <= len(found) <= events + 1
        verified = verify(path)
        assert (verified.is_complete, verified.count) == (False, len(found))
        assert verified.verified == (reader.checks[-1].n if len(reader.checks) else 0)


@pytest.mark.parametrize("size", [0, 1, 40])
def test_a_file_without_a_whole_header_is_no_trace(small: bytes, tmp_path: Path, size: int) -> None:
    path = tmp_path / "t"
    path.write_bytes(small[:size])
    with pytest.raises(TraceError, match=":1: no whole line, a trace begins with a header"):
        TraceReader(path)


# Changed bytes ---------------------------------------------------------------------------------


def noticed(path: Path) -> bool:
    try:
        return not verify(path).is_complete
    except TraceError:
        return True


@pytest.mark.parametrize("mask", [0x01, 0x20, 0x80])
def test_a_changed_byte_anywhere_is_noticed(small: bytes, tmp_path: Path, mask: int) -> None:
    path = tmp_path / "t"
    path.write_bytes(small)
    assert not noticed(path)
    missed = []
    for at in range(len(small)):
        data = bytearray(small)
        data[at] ^= mask
        path.write_bytes(data)
        if not noticed(path):
            missed.append((at, small[max(0, at - 20) : at + 20]))
    assert missed == []


@given(data=st.data())
def test_changed_bytes_of_a_drawn_trace_are_noticed(fresh: Path, data: st.DataObject) -> None:
    path = fresh_file(fresh)
    level = data.draw(st.sampled_from(list(Level)))
    replay(data.draw(raws(max_size=8)), level, path, check_every=3)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] = data.draw(st.integers(0, 255).filter(lambda byte: byte != content[at]))
    path.write_bytes(content)
    assert noticed(path)
    path.unlink()


def changed(small: bytes, old: bytes, new: bytes) -> bytes:
    assert small.count(old) == 1, old
    return small.replace(old, new)


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        (b'"seed":7', b'"seed":8', ":7: the sum .*; the events give the digest: .* 1 and line 7"),
        (
            b'"base_offset":7',
            b'"base_offset":9',
            ":13: the digest is .* between line 8 and line 13",
        ),
        (b'leo",6,7]', b'leo",6,8]', ":13: the sum .* between line 8 and line 13"),
        (b'{"check":10,', b'{"check":9,', ":13: it names event 9, allowed is the last one, 10"),
        (b'"verdict":"pass"', b'"verdict":"fail"', ":16: the sum .* between line 14 and line 16"),
        (b'"losses":["L0"]', b'"losses":[]', ":16: the sum .* between line 14 and line 16"),
    ],
)
def test_a_change_is_located(
    small: bytes, tmp_path: Path, old: bytes, new: bytes, what: str
) -> None:
    path = tmp_path / "t"
    path.write_bytes(changed(small, old, new))
    with pytest.raises(TraceError, match=what):
        verify(path)


# Hostile input ---------------------------------------------------------------------------------

EVENT = {"n": 1, "t": 0, "node": "b1", "kind": "hw"}
CHECK = {"check": 1, "digest": "0" * 32, "sum": "0" * 32}
FOOTER = {"end": 1, "verdict": "pass", "digest": "0" * 32, "violations": [], "losses": []}
FOOTER |= {"sum": "0" * 32}
HEAD = json.loads(HEADER.line())


@pytest.mark.parametrize(
    ("plain", "what"),
    [
        (EVENT | {"n": 0}, "n is 0, allowed is an integer from 1"),
        (EVENT | {"n": True}, "n is true"),
        (EVENT | {"n": "1"}, 'n is "1"'),
        (EVENT | {"n": None}, "n is null"),
        (EVENT | {"t": "1"}, 't is "1", allowed is an integer'),
        (EVENT | {"t": 1.5}, "a number is 1.5, allowed are integers"),
        (EVENT | {"t": float("nan")}, "a number is NaN"),
        (EVENT | {"args": {"a": float("-inf")}}, "a number is -Infinity"),
        (EVENT | {"args": {"a": 1e400}}, "a number is Infinity"),
        (EVENT | {"node": 1}, "node is 1, allowed is a string"),
        (EVENT | {"node": "\x1b[2J" * 40, "kind": "?"}, 'kind is "\\?", allowed is one of step, '),
        (EVENT | {"kind": ["hw"]}, 'kind is \\["hw"\\]'),
        (EVENT | {"kind": "\x1b[2J"}, r'kind is "\\u001b\[2J"'),
        (EVENT | {"kind": "x" * 999}, 'kind is "x{59}\\.\\.\\., allowed'),
        (EVENT | {"cause": [1]}, "cause is 1, allowed is a number from 1 to 0"),
        (EVENT | {"n": 3, "cause": [True]}, "cause is true"),
        (EVENT | {"cause": []}, "cause is \\[\\]"),
        (EVENT | {"cause": 1}, "cause is 1, allowed is a list"),
        (EVENT | {"args": []}, "args is \\[\\], allowed is an object"),
        (EVENT | {"args": {}}, "args is {}"),
        (EVENT | {"set": []}, "set is \\[\\]"),
        (EVENT | {"set": [["a", 1]]}, 'set is \\["a", 1\\], allowed is a change'),
        (EVENT | {"set": [[1, 1, 1]]}, "set is \\[1, 1, 1\\]"),
        (EVENT | {"set": ["abc"]}, 'set is "abc"'),
        (EVENT | {"sets": 1}, 'key "sets", allowed are n, t, node, kind, cause, args, set'),
        ({"n": 1}, "t is null"),
        (CHECK | {"check": 0}, "check is 0"),
        (CHECK | {"digest": "0" * 31}, "digest is .*, allowed is 32 hex digits"),
        (CHECK | {"sum": "G" * 32}, "sum is .*, allowed is 32 hex digits"),
        (CHECK | {"more": 1}, "the keys are .*, allowed are check, digest, sum"),
        (FOOTER | {"end": -1}, "end is -1"),
        (FOOTER | {"verdict": None}, "verdict is null"),
        (FOOTER | {"losses": {}}, "losses is {}"),
        (FOOTER | {"sum": 1}, "sum is 1"),
        ({"end": 1}, "the keys are"),
        (HEAD | {"leaderfall": 2}, "leaderfall is 2, allowed is 1"),
        (HEAD | {"leaderfall": True}, "leaderfall is true"),
        (HEAD | {"version": None}, "version is null"),
        (HEAD | {"scenario": 1}, "scenario is 1"),
        (HEAD | {"seed": -1}, "seed is -1"),
        (HEAD | {"options": []}, "options is"),
        (HEAD | {"nodes": [1]}, "nodes is"),
        (HEAD | {"topics": 1}, "topics is"),
        ({"leaderfall": 1}, "the keys are"),
        ({}, "the line is {}, allowed are a header"),
        ([1], "the line is \\[1\\], allowed is a JSON object"),
        (3, "the line is 3"),
    ],
)
def test_a_line_of_wrong_values_is_refused(plain: object, what: str) -> None:
    with pytest.raises(Malformed, match=what):
        parse(json.dumps(plain).encode())


@pytest.mark.parametrize(
    ("line", "what"),
    [
        (b"\x00\xff\xfe", "byte 1 is 0xff, allowed is ASCII"),
        (b"\n", "not JSON"),
        (b'{"n":1', "not JSON"),
        (b' {"n":1}', "not JSON"),
        (b'{"end":1}\r\n', 'behind the JSON is "\\\\r\\\\n"'),
        (b'{"end":1}{"end":1}\n', "behind the JSON"),
        (b"[" * 100_000, "too deep"),
        (b'{"n":' * 100_000, "too deep"),
        (b'{"n":1,"a":' + b"[" * 200 + b"]" * 200 + b"}", "too deep, at most 64"),
        (b'{"n":' + b"9" * 5_000 + b"}", "not JSON: Exceeds the limit"),
    ],
)
def test_a_line_that_is_no_json_of_ours_is_refused(line: bytes, what: str) -> None:
    with pytest.raises(Malformed, match=what):
        parse(line)


def test_brackets_in_strings_are_no_depth() -> None:
    assert isinstance(parse(json.dumps(EVENT | {"node": "[{" * 99}).encode()), Event)


def test_the_deepest_line_allowed_is_read() -> None:
    nested: list[object] = []
    for _ in range(DEPTH_MAX - 3):
        nested = [nested]
    line = json.dumps(EVENT | {"args": {"a": nested, "b": "[" * 99}}).encode()
    assert isinstance(parse(line), Event)
    with pytest.raises(Malformed, match="too deep"):
        parse(line.replace(b"[[", b"[[[", 1).replace(b"]]", b"]]]", 1))


@given(st.binary(max_size=60))
@example(b'{"n":1,"t":0,"node":"b1","kind":"hw"}')
def test_binary_lines_are_refused_or_read(line: bytes) -> None:
    try:
        said = repr(parse(line))
    except Malformed as error:
        said = str(error)
    assert said.isprintable()


def lines_of(small: bytes) -> list[bytes]:
    return small.splitlines(keepends=True)


def with_lines(small: bytes, order: Iterator[int] | range | list[int]) -> bytes:
    lines = lines_of(small)
    return b"".join(lines[i] for i in order)


@pytest.mark.parametrize(
    ("order", "what"),
    [
        ([0, 2], ":2: the event's number is 2, allowed is 1"),
        ([0, 1, 1], ":3: the event's number is 1, allowed is 2"),
        ([0, 1, 2, 0], ":4: a second header"),
        ([0, 1, 6], ":3: it names event 5, allowed is the last one, 1"),
        ([0, 6, 7], ":3: an event, where those up to 5 were left out"),
        ([0, 6, 6], ":3: it names event 5 behind 5"),
        ([0, 15, 1], ":3: a line behind the footer"),
        ([0, 12, 6], ":3: it names event 5 behind 10"),
    ],
)
def test_lines_in_a_wrong_order_are_refused(
    small: bytes, tmp_path: Path, order: list[int], what: str
) -> None:
    path = tmp_path / "t"
    path.write_bytes(with_lines(small, order))
    with pytest.raises(TraceError, match=what):
        list(TraceReader(path).lines())


@pytest.mark.parametrize("first", [1, 6, 15])
def test_a_trace_begins_with_a_header(small: bytes, tmp_path: Path, first: int) -> None:
    path = tmp_path / "t"
    path.write_bytes(with_lines(small, range(first, 16)))
    with pytest.raises(TraceError, match=":1: the line is no header"):
        TraceReader(path)


@pytest.mark.parametrize("ending", [b"", b"\n"])
@pytest.mark.parametrize("at", [0, 3, 16])
def test_a_huge_line_is_refused_before_it_is_in_memory(
    small: bytes, tmp_path: Path, at: int, ending: bytes
) -> None:
    path = tmp_path / "t"
    lines = lines_of(small)
    lines.insert(at, b"x" * 5_000 + ending)
    path.write_bytes(b"".join(lines))
    with pytest.raises(TraceError, match=f":{at + 1}: the line is longer than 1000 bytes"):
        verify(path, line_bytes_max=1_000)


def test_the_error_names_file_and_line_in_plain_characters(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[2Jb"
    path.write_bytes(b"\x1b[2J\n")
    with pytest.raises(TraceError) as caught:
        TraceReader(path)
    assert str(caught.value).isprintable()
    assert (caught.value.path, caught.value.line) == (path, 1)


def test_a_long_footer_is_found(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(3), "events", path, verdict=None)
    losses = ["x" * 50] * 1_000
    trace.close("fail", (), losses)
    assert TraceReader(path).footer == Footer(3, "fail", trace.digest(), (), tuple(losses))


def test_check_points_are_a_sequence(tmp_path: Path) -> None:
    path = tmp_path / "t"
    trace = replay(made(35), "full", path, check_every=10)
    checks = TraceReader(path).checks
    assert isinstance(checks[0], Check)
    assert (len(checks), checks[1:], checks[-1]) == (3, trace.checks[1:], trace.checks[2])


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(TraceError, match="it is no regular file"):
            TraceReader(path)
        with pytest.raises(TraceError, match="it is no regular file"):
            verify(path)
