"""The file of a hunt: gone on with by the same code, whole or with a torn last line."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hunt import lines as module
from tests.hunt.lines import Lines, LinesError, digest_of_sources
from tests.hunt.made import HEADER


def write(path: Path, *found: dict[str, object]) -> bytes:
    with Lines(path, HEADER) as lines:
        for each in found:
            lines.append(each)
    return path.read_bytes()


def test_lines_are_there_again(tmp_path: Path) -> None:
    path = tmp_path / "a" / "worlds.jsonl"
    write(path, {"n": 0}, {"n": 1})
    with Lines(path, HEADER) as lines:
        assert lines.found == [{"n": 0}, {"n": 1}]
        lines.append({"n": 2})
        assert path.read_text() == '{"hunt":1,"code":"c"}\n{"n":0}\n{"n":1}\n{"n":2}\n'


def test_a_torn_last_line_goes_wherever_it_is_torn(tmp_path: Path) -> None:
    path = tmp_path / "worlds.jsonl"
    whole = write(path, {"n": 0}, {"n": 1})
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        left = whole[:size].count(b"\n")
        with Lines(path, HEADER) as lines:
            assert len(lines.found) == max(0, left - 1)
            lines.append({"n": 9})
        assert path.read_bytes().endswith(b'\n{"n":9}\n')
        with Lines(path, HEADER) as lines:
            assert lines.found[-1] == {"n": 9}


def test_another_damaged_line_is_told(tmp_path: Path) -> None:
    path = tmp_path / "worlds.jsonl"
    whole = write(path, {"n": 0}, {"n": 1})
    for bad in (b'{"n"', b"7", b""):
        path.write_bytes(whole.replace(b'{"n":0}', bad))
        with pytest.raises(LinesError, match="line 2 is no JSON object"):
            Lines(path, HEADER)


def test_a_file_of_other_code_is_refused_or_put_aside(tmp_path: Path) -> None:
    path = tmp_path / "worlds.jsonl"
    old = write(path, {"n": 0})
    with pytest.raises(LinesError, match="code is 'c' there and 'd' here; --anew"):
        Lines(path, {**HEADER, "code": "d"})
    assert path.read_bytes() == old
    with Lines(path, {**HEADER, "code": "d"}, anew=True) as lines:
        assert lines.found == []
    assert (tmp_path / "worlds.jsonl.old").read_bytes() == old


def test_two_hunts_do_not_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "worlds.jsonl"
    with Lines(path, HEADER):
        for anew in (False, True):
            with pytest.raises(LinesError, match="another hunt writes this file"):
                Lines(path, HEADER, anew=anew)
    with Lines(path, HEADER) as lines:
        assert lines.found == []


def test_the_code_is_every_module_but_tests(tmp_path: Path) -> None:
    for folder in module.SOURCES:
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "a.py").write_text("x = 1\n")
    first = digest_of_sources(tmp_path)
    (tmp_path / "sim" / "test_a.py").write_text("x = 2\n")
    assert digest_of_sources(tmp_path) == first
    seen = {first}
    for folder in module.SOURCES:
        (tmp_path / folder / "a.py").write_text("x = 2\n")
        seen.add(digest_of_sources(tmp_path))
    (tmp_path / "sim" / "a.py").rename(tmp_path / "sim" / "b.py")
    seen.add(digest_of_sources(tmp_path))
    assert len(seen) == len(module.SOURCES) + 2
