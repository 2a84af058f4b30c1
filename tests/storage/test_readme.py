"""The storage README is executed: its program prints what stands behind it, its frames decode."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest

from storage import ControlType, Header, Record, decode_batch, encode_batch
from storage.dump import main

README = (Path(__file__).parents[2] / "storage" / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_programs_in_readme_print_the_blocks_behind_them() -> None:
    programs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", README, re.DOTALL)
    assert len(programs) == len(blocks("python")) == 2
    for program, output in programs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(program, "storage/README.md", "exec"), {})
        assert printed.getvalue() == output


def test_frames_in_readme_decode_to_what_it_says() -> None:
    frames = [bytes.fromhex("".join(block.split())) for block in blocks("hex")]
    second, first, marker = [decode_batch(frame) for frame in frames]
    assert [encode_batch(batch) for batch in (second, first, marker)] == frames
    record = Record(None, b"hi", 1000, (Header("k", None),))
    assert first.records == second.records == (record,)
    assert (second.base_offset, second.leader_epoch, second.format_version) == (7, 3, 2)
    assert first.format_version == 1
    assert (marker.control, marker.transactional_id) == (ControlType.COMMIT, "tx-1")
    assert (marker.base_offset, marker.producer_id, marker.max_timestamp_ms) == (9, 42, 1000)


def test_module_table_in_readme_names_every_module() -> None:
    table = README[README.index("## Where things are") : README.index("## Files")]
    named = set(re.findall(r"`([a-z_0-9]+)`", table))
    modules = {path.stem for path in (Path(__file__).parents[2] / "storage").glob("*.py")}
    assert modules - {"__init__", "experiment"} <= named


def test_dumps_in_readme_are_what_the_commands_print(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(blocks("py")[0], "storage/README.md", "exec"), {})
    examples = re.findall(r"```sh\n(.*?)\n```\n```text\n(.*?)```", README, re.DOTALL)
    assert len(examples) == 2
    for command, expected in examples:
        printed = io.StringIO()
        python, option, module, *arguments = command.split()
        assert (python, option, module) == ("python", "-m", "storage.dump")
        assert main(arguments, out=printed) == 1
        assert printed.getvalue() == expected
