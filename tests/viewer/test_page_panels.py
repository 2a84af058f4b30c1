"""The data of a page's panels: what is in them, how much of it, and what is never in them."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from sim.present.page_panels import compare_panel
from sim.present.tracks import Tracks
from sim.xray.panel import xray_panel
from tests.sim.cli.tools import ROOT, call
from tests.viewer.panel_pages import SCENARIO, segmented_run


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return segmented_run(tmp_path_factory.mktemp("segmented"))


@pytest.fixture(scope="module")
def found(trace: Path) -> dict[str, Any]:
    panel = xray_panel(trace)
    assert panel is not None
    return panel


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    done = call("run", str(SCENARIO), "-q", "--out", str(folder))
    assert done.exit_code == 0, done.output
    above = folder / "kip101-divergence" / "0"
    return above / "high-watermark" / "trace.jsonl", above / "fetch" / "trace.jsonl"


@pytest.fixture
def copied(trace: Path, tmp_path: Path) -> Path:
    """The run's folder, to be spoilt."""
    folder = tmp_path / "run"
    shutil.copytree(trace.parent, folder)
    return folder / "trace.jsonl"


def payload(page: Path) -> Any:
    match = re.search(r'id="payload">([A-Za-z0-9+/=]+)<', page.read_text(encoding="utf-8"))
    assert match is not None
    return json.loads(gzip.decompress(base64.b64decode(match[1])))


# The X-ray ---------------------------------------------------------------------------------------


def test_it_has_every_log_of_the_run(found: dict[str, Any]) -> None:
    names = [f"b{number}/orders-{index}" for number in (1, 2, 3) for index in (0, 1)]
    assert [each["name"] for each in found["directories"]] == [*names, "c1"]
    assert found["notices"] == []
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_bytes_in_hex_are_those_of_the_files(trace: Path, found: dict[str, Any]) -> None:
    count = 0
    for each in found["directories"]:
        for number, batch, view in each["hex"]:
            segment = each["segments"][number]
            position, size = segment["batches"][batch][:2]
            content = (trace.parent / each["name"] / segment["file"]).read_bytes()
            assert found["views"][view]["bytes"] == content[position : position + size].hex()
            fields = found["views"][view]["fields"]
            assert fields[0][1] == 0
            assert fields[-1][2] == size
            assert all(0 <= field[0] < len(found["fields"]) for field in fields)
            count += 1
        assert len(each["hex"]) == sum(len(segment["batches"]) for segment in each["segments"])
    # Replicas have the same bytes, which are in the page once.
    assert len(found["views"]) < count / 2


def test_it_says_nothing_of_the_machine(trace: Path, found: dict[str, Any], copied: Path) -> None:
    assert str(trace.parent) not in json.dumps(found)
    for log in sorted(copied.parent.glob("b1/orders-0/*.log")):
        log.write_bytes(b"\xff" * 40)
    (copied.parent / "b2" / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"\xff")
    spoilt = xray_panel(copied)
    assert spoilt is not None
    assert any(each["notices"] for each in spoilt["directories"])
    assert str(copied.parent) not in json.dumps(spoilt)


def test_what_is_too_much_is_left_out_with_a_notice(trace: Path) -> None:
    for few in (
        xray_panel(trace, directories_max=2),
        xray_panel(trace, log_bytes_max=150_000),
        xray_panel(trace, json_bytes_max=150_000),
    ):
        assert few is not None
        assert 0 < len(few["directories"]) < 7
        assert any("left out" in each for each in few["notices"])


def test_limits_of_batches_and_hex_hold(trace: Path) -> None:
    few = xray_panel(trace, batches_max=70, hex_max=21)
    assert few is not None
    listed = [[len(each["batches"]) for each in log["segments"]] for log in few["directories"]]
    assert 0 < sum(map(sum, listed)) <= 70
    assert all(any(each) for each in listed), "a log came away with nothing"
    assert 0 < len(few["views"]) <= 21
    notices = [text for log in few["directories"] for text in log["notices"]]
    assert any("batches are listed" in text for text in notices)
    none = xray_panel(trace, batches_max=0, hex_max=0)
    assert none is not None
    assert none["views"] == []


def test_no_link_is_followed(copied: Path, tmp_path: Path) -> None:
    run, outside = copied.parent, tmp_path / "outside"
    (run / "b1").rename(outside)
    (run / "b1").symlink_to(outside)
    secret = tmp_path / "secret"
    secret.write_bytes((run / "b2" / "orders-0" / f"{0:020}.log").read_bytes())
    for name in (f"{0:020}.log", f"{0:020}.index", "leader-epoch-checkpoint"):
        (run / "b2" / "orders-0" / name).unlink()
        (run / "b2" / "orders-0" / name).symlink_to(secret)
    (run / "b3" / "orders-1").rename(tmp_path / "orders-1")
    (run / "b3" / "orders-1").symlink_to(tmp_path / "orders-1")
    linked = xray_panel(copied)
    assert linked is not None
    names = [each["name"] for each in linked["directories"]]
    assert names == ["b2/orders-0", "b2/orders-1", "b3/orders-0", "c1"]
    first = linked["directories"][0]
    assert f"{0:020}.log" not in [each["file"] for each in first["segments"]]
    assert any("symlink" in text for text in first["notices"])
    row = next(each for each in first["directory"] if each["file"] == f"{0:020}.log")
    assert row["size_bytes"] is None


def test_only_a_run_folder_has_one(copied: Path, tmp_path: Path) -> None:
    (tmp_path / "alone").mkdir()
    alone = tmp_path / "alone" / "trace.jsonl"
    shutil.copy(copied, alone)
    assert xray_panel(alone) is None
    assert xray_panel(tmp_path / "missing.jsonl") is None
    other = copied.with_name("other.jsonl")
    copied.rename(other)
    assert xray_panel(other) is None


def test_a_trace_that_was_cut_leaves_pages_unknown(copied: Path) -> None:
    copied.write_bytes(copied.read_bytes()[: copied.stat().st_size // 2])
    cut = xray_panel(copied)
    assert cut is not None
    assert len(cut["directories"]) == 7
    assert not any(each["pages"]["known"] for each in cut["directories"])


# The comparison ----------------------------------------------------------------------------------


def test_the_other_run_is_beside_the_comparison(pair: tuple[Path, Path]) -> None:
    other = Tracks.load(pair[1])
    panel = compare_panel(*pair, other, events_max=250_000)
    assert panel["comparison"]["divergence"]["b"] is not None
    assert {len(column) for column in panel["b"]["events"].values()} == {other.last}
    assert sorted(panel["b"]["events"]) == ["kind", "node", "t", "text"]
    assert [each["name"] for each in panel["b"]["partitions"]] == ["orders-0"]
    assert panel["comparison"]["a"]["name"] == "0/high-watermark"
    assert str(pair[0].parent.parent.parent) not in json.dumps(panel)


def test_no_more_events_are_compared_than_are_shown(pair: tuple[Path, Path]) -> None:
    most = 1_000
    panel = compare_panel(*pair, Tracks.load(pair[1], events_max=most), events_max=most)
    comparison = panel["comparison"]
    assert comparison["a"]["last"] == comparison["b"]["last"] == most
    assert max(comparison["pairs"]["a"] + comparison["pairs"]["b"]) == most
    assert not comparison["a"]["is_complete"]
    assert len(panel["b"]["events"]["t"]) == most


# The command -------------------------------------------------------------------------------------


def test_report_embeds_both_panels(pair: tuple[Path, Path], tmp_path: Path) -> None:
    page = tmp_path / "run.html"
    arguments = ["report", str(pair[0].parent), "-o", str(page)]
    assert call(*arguments).exit_code == 0
    assert sorted(payload(page)["panels"]) == ["xray"]
    assert call(*arguments, "--no-xray").exit_code == 0
    assert payload(page)["panels"] == {}
    assert call(*arguments, "--compare", str(pair[1].parent)).exit_code == 0
    first = page.read_bytes()
    assert sorted(payload(page)["panels"]) == ["compare", "xray"]
    assert call(*arguments, "--compare", str(pair[1])).exit_code == 0
    assert page.read_bytes() == first, "the same page is not the same bytes"


def test_report_says_what_is_wrong_with_the_other_run(
    pair: tuple[Path, Path], tmp_path: Path
) -> None:
    page = tmp_path / "run.html"
    digest = tmp_path / "digest"
    done = call("run", str(SCENARIO), "-q", "--trace-level", "digest", "--out", str(digest))
    assert done.exit_code == 0, done.output
    (empty,) = digest.glob("*/0/fetch")
    for other, word in (
        (tmp_path / "no\x1b[31mne", "cannot be read"),
        (ROOT / "pyproject.toml", "not JSON"),
        (empty, "keeps no events"),
    ):
        done = call("report", str(pair[0]), "-o", str(page), "--compare", str(other))
        assert done.exit_code == 2
        assert word in done.output
        assert "\x1b" not in done.output
        assert not page.exists()
