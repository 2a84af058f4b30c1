"""Run folders: numbers, ``latest``, the same again, and that nothing is ever overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from sim.cli.exits import UserError
from sim.cli.run_folders import RESULT, SCENARIO, TRACE, begin

BASE = {"digest": "d1", "level": "full", "disk": "real", "verdict": "passed", "file": "a.toml"}


def _run(variant: str = "", ending: str = "", **changes: Any) -> Path:
    document = {**BASE, **changes}
    folder = begin("runs", "name", 7, variant)
    folder.trace.write_text("trace", encoding="utf-8")
    (folder.path / SCENARIO).write_text("scenario", encoding="utf-8")
    (folder.path / RESULT).write_text(json.dumps(document), encoding="utf-8")
    if document["disk"] == "real":
        folder.nodes.mkdir()
        (folder.nodes / "b1").mkdir()
        (folder.nodes / "b1.inodes").mkdir()
    return folder.publish(document, ending=ending)


def test_a_run_gets_its_seeds_name_with_the_nodes_at_the_top() -> None:
    place = _run()
    assert place == Path("runs/name/7")
    assert sorted(os.listdir(place)) == ["b1", RESULT, SCENARIO, TRACE]
    assert sorted(os.listdir("runs/name")) == ["7", "latest"]


def test_the_same_result_again_needs_no_second_folder() -> None:
    before = _run().stat().st_ino
    assert _run() == Path("runs/name/7")
    assert Path("runs/name/7").stat().st_ino == before
    assert sorted(os.listdir("runs/name")) == ["7", "latest"]


@pytest.mark.parametrize("changes", [{"digest": "d2"}, {"verdict": "failed"}, {"reasons": ["x"]}])
def test_another_result_goes_beside_it(changes: dict[str, Any]) -> None:
    _run()
    assert _run(**changes) == Path("runs/name/7.2")
    assert json.loads(Path("runs/name/7", RESULT).read_bytes()) == BASE
    assert _run(**changes) == Path("runs/name/7.2")
    assert _run(digest="d3") == Path("runs/name/7.3")
    assert _run() == Path("runs/name/7")


def test_less_of_the_same_is_covered_and_more_is_not() -> None:
    assert _run(level="events", disk="memory") == Path("runs/name/7")
    assert _run(level="digest", disk="memory") == Path("runs/name/7")
    assert _run(level="full", disk="memory") == Path("runs/name/7.2")
    assert _run(level="full", disk="real") == Path("runs/name/7.3")
    assert _run(level="full", disk="memory", file="b.toml") == Path("runs/name/7.2")


def test_a_folder_without_its_scenario_does_not_cover_one_with_it() -> None:
    _run()
    Path("runs/name/7", SCENARIO).unlink()
    assert _run() == Path("runs/name/7.2")


def test_variants_stand_below_the_seed() -> None:
    assert _run(variant="one") == Path("runs/name/7/one")
    assert _run(variant="two") == Path("runs/name/7/two")
    assert _run(variant="one", digest="d2") == Path("runs/name/7.2/one")
    assert _run() == Path("runs/name/7.3")
    assert os.readlink("runs/name/latest") == "7.3"


def test_latest_points_to_the_newest() -> None:
    for changes, place in (({}, "7"), ({"digest": "d2"}, "7.2"), ({}, "7")):
        _run(**changes)
        assert os.readlink("runs/name/latest") == place
    _run(variant="v")
    assert os.readlink("runs/name/latest") == "7.3/v" or os.readlink("runs/name/latest") == "7/v"
    assert Path("runs/name/latest", TRACE).is_file()


def test_something_else_called_latest_stays() -> None:
    Path("runs/name").mkdir(parents=True)
    Path("runs/name/latest").write_text("mine", encoding="utf-8")
    _run()
    assert Path("runs/name/latest").read_text(encoding="utf-8") == "mine"
    Path("runs/name/latest").unlink()
    Path("runs/name/latest").mkdir()
    _run(digest="d2")
    assert os.listdir("runs/name/latest") == []


def test_what_broke_off_does_not_take_the_seeds_name() -> None:
    assert _run(ending=".interrupted", digest=None) == Path("runs/name/7.interrupted")
    assert _run(ending=".interrupted", digest=None) == Path("runs/name/7.interrupted.2")
    assert _run(ending=".error", digest=None) == Path("runs/name/7.error")
    assert _run() == Path("runs/name/7")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"digest": "d1"}', "[" * 100_000, "null"])
def test_a_result_that_cannot_be_read_is_left_alone(text: str) -> None:
    place = Path("runs/name/7")
    place.mkdir(parents=True)
    (place / RESULT).write_text(text, encoding="utf-8")
    (place / TRACE).touch()
    assert _run() == Path("runs/name/7.2")
    assert (place / RESULT).read_text(encoding="utf-8") == text


def test_a_file_or_a_dangling_link_of_that_name_stays() -> None:
    Path("runs/name").mkdir(parents=True)
    Path("runs/name/7").write_text("mine", encoding="utf-8")
    Path("runs/name/7.2").symlink_to("nowhere")
    assert _run() == Path("runs/name/7.3")
    assert Path("runs/name/7").read_text(encoding="utf-8") == "mine"


def test_an_empty_folder_of_that_name_is_not_taken() -> None:
    Path("runs/name/7").mkdir(parents=True)
    assert _run() == Path("runs/name/7.2")


def test_a_folder_that_cannot_be_made_is_told() -> None:
    Path("runs").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="cannot be written"):
        begin("runs", "name", 7, "")
