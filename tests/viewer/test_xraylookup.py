"""The page's look-ups are those of ``sim.xray.lookup``: both run on the same data.

The data is that of real directories, and the same with something missing, wrong or of another
format, so that every branch of a look-up is walked. It needs node alone.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.xray.lookup import lookup, lookup_time
from sim.xray.panel import xray_panel
from tests.viewer.driving import VIEWER, run_module
from tests.viewer.panel_pages import segmented_run

pytestmark = pytest.mark.slow
Data = dict[str, Any]
MODULE = VIEWER / "src" / "xraylookup.js"
SCRIPT = """
const { lookup, lookupTime } = await import(process.argv[1]);
const { readFileSync } = await import("node:fs");
const asked = JSON.parse(readFileSync(0, "utf8"));
const found = asked.map(({ data, offsets, times }) =>
  [offsets.map((each) => lookup(data, each)), times.map((each) => lookupTime(data, each))]);
process.stdout.write(JSON.stringify(found));
"""


def in_page(given: list[Data], module: Path = MODULE) -> Any:
    """What the page's module finds."""
    return run_module(SCRIPT, module, given)


def asked_of(data: Data, rng: random.Random, count: int = 60) -> Data:
    """Offsets and times to look up: at every border, and some in between."""
    end = data["marks"]["log_end"]["offset"]
    borders = [0, data["marks"]["log_start"]["offset"], end]
    rows = [row for segment in data["segments"] for row in segment["batches"]]
    for segment in data["segments"]:
        borders += [segment["base_offset"], segment["next_offset"]]
        if segment["index"]:
            borders += [entry[0] for entry in segment["index"]["entries"][:40]]
    offsets = {each + step for each in borders for step in (-1, 0, 1)}
    offsets |= {rng.randrange(end + 2) for _ in range(count)}
    stamps = [row[5] for row in rows] or [0]
    times = {each + step for each in (min(stamps), max(stamps)) for step in (-1, 0, 1)}
    times |= {rng.choice(stamps) + rng.randrange(-3, 4) for _ in range(count)}
    return {"data": data, "offsets": sorted(offsets), "times": sorted(times)}


def _no_index(segment: Data) -> None:
    segment["index"] = segment["time_index"] = None


def _unusable(segment: Data) -> None:
    for key in ("index", "time_index"):
        segment[key]["unusable"] = "entry 3 does not rise"


def _wrong_entry(segment: Data) -> None:
    for entry in segment["index"]["entries"][1:]:
        entry[1] += 1


def _wrong_offset(segment: Data) -> None:
    for entry in segment["index"]["entries"][1:]:
        entry[0] += 1


def _late_index(segment: Data) -> None:
    """Its first entries are gone."""
    for key in ("index", "time_index"):
        del segment[key]["entries"][:3]


def _no_timestamps(segment: Data) -> None:
    for row in segment["batches"]:
        row[7] = None


def _not_listed(segment: Data) -> None:
    rows = segment["batches"]
    del rows[: len(rows) // 3], rows[len(rows) // 2 :]
    segment["listed"] = [rows[0][0], rows[-1][0] + rows[-1][1]] if rows else [0, 0]


def _kafka(segment: Data) -> None:
    segment["format"] = "Kafka"


def _hole(segment: Data) -> None:
    """As compaction leaves it: records are gone, and the last batch of the segment, too."""
    for row in segment["batches"][::2]:
        row[7] = row[7][1:]
    segment["batches"].pop()
    segment["good_bytes"] = segment["listed"][1] = sum(segment["batches"][-1][:2])


def _nothing(segment: Data) -> None:
    del segment


CHANGES: tuple[Callable[[Data], None], ...] = (
    _nothing,
    _no_index,
    _unusable,
    _wrong_entry,
    _wrong_offset,
    _late_index,
    _no_timestamps,
    _not_listed,
    _kafka,
    _hole,
)


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Data]:
    found = xray_panel(segmented_run(tmp_path_factory.mktemp("run")))
    assert found is not None
    assert max(len(each["segments"]) for each in found["directories"]) >= 3
    return list(found["directories"])


@pytest.fixture(scope="module")
def asked(logs: list[Data]) -> list[Data]:
    rng = random.Random(1)
    everything = []
    for log in logs:
        for change in CHANGES:
            data = copy.deepcopy(log)
            for segment in data["segments"]:
                change(segment)
            everything.append(asked_of(data, rng))
    raised = copy.deepcopy(logs[0])
    raised["marks"]["log_start"]["offset"] = raised["segments"][1]["base_offset"] + 5
    empty = copy.deepcopy(logs[0])
    empty["segments"] = []
    return [*everything, asked_of(raised, rng), asked_of(empty, rng)]


def test_both_find_the_same(asked: list[Data]) -> None:
    count = 0
    seen = set()
    for each, (by_offset, by_time) in zip(asked, in_page(asked), strict=True):
        for target, found in zip(each["offsets"], by_offset, strict=True):
            assert found == lookup(each["data"], target)
            seen.add(("offset", found["verdict"]))
        for target, found in zip(each["times"], by_time, strict=True):
            assert found == lookup_time(each["data"], target)
            seen.add(("time", found["verdict"]))
        count += len(by_offset) + len(by_time)
    assert count > 5_000
    verdicts = {"found", "hole", "below-start", "at-end", "beyond-end", "unknown"}
    assert {verdict for kind, verdict in seen if kind == "offset"} == verdicts
    assert {("time", "found"), ("time", "at-end"), ("time", "unknown")} <= seen


FAULTS = (
    ("target < values[middle]", "target <= values[middle]"),
    (
        "return [low - 1, probes]",
        "return [Math.max(low - 1, Math.min(0, values.length - 1)), probes]",
    ),
    ("if (row[3] > offset)", "if (row[3] >= offset)"),
    ("row[2] === offset", "row[2] <= offset"),
    ("timestampMs : timestampMs - 1", "timestampMs : timestampMs"),
    ("time >= timestampMs && offset >= start", "time > timestampMs && offset >= start"),
    ("first <= position && (", "first < position && ("),
    ("before(row, offset) - row[6]", "before(row, offset)"),
)


@pytest.mark.parametrize(("right", "wrong"), FAULTS)
def test_a_planted_fault_is_seen(right: str, wrong: str, asked: list[Data], tmp_path: Path) -> None:
    source = MODULE.read_text(encoding="utf-8")
    assert right in source
    module = tmp_path / "lookup.mjs"
    module.write_text(source.replace(right, wrong), encoding="utf-8")
    wanted = [
        [
            [lookup(each["data"], target) for target in each["offsets"]],
            [lookup_time(each["data"], target) for target in each["times"]],
        ]
        for each in asked
    ]
    assert in_page(asked, module) != wanted
