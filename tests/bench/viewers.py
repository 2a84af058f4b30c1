"""The viewers bench: loading a trace, stepping, the page, comparing and exporting.

One trace of a run in which a broker crashes, at level ``full``; at full scale it has some 100,000
events. The reference of loading, page and comparing is ``json.loads`` of the same lines, an event
each. That of a step is what a stepper without tracks would do: fold all changes from the first
event to the middle. A step is a whole view (``sim.present.step_view``) behind another event each
time, taken from all over the trace.

Left out: the browser, which ``tests/viewer`` watches.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable
from importlib.metadata import version
from itertools import cycle
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from sim.exports.perfetto import perfetto
from sim.exports.selection import Exported, Selection
from sim.exports.shiviz import shiviz
from sim.present.compared import Source
from sim.present.comparing import compare
from sim.present.page import fill
from sim.present.plain_tracks import plain
from sim.present.step_view import view
from sim.present.story import Story
from sim.present.tracks import Tracks
from sim.running.scenario_run import run_scenario
from sim.scenario.reading import parse_scenario
from sim.trace.fold import Fold
from sim.trace.reader import TraceReader
from tests.bench.measure import Scale, Subject, race
from tests.bench.report import Report, below, rated, timed

__all__ = ["facts", "run"]

RECORDS_A_SECOND: Final = 150
EVENTS_A_MESSAGE: Final = 5
EVENTS_A_RECORD: Final = 23
STRIDE: Final = 7_919
JUMPS: Final = 20
"""A turn is so many steps, far from each other, so that no kept block of events helps."""
SCENARIO: Final = """schema = 1
name = "viewed"
until = "{until}s"

[cluster]
brokers = 5

[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"], ["b2", "b3", "b4"], ["b3", "b4", "b5"]]
config = {{ "segment.bytes" = 16384, "index.interval.bytes" = 512 }}

[[workload]]
name = "w1"
kind = "producer"
topic = "orders"
rate = {rate}
stop = "{stop}s"

[[step]]
at = "{third}s"
crash = {{ node = "b3", how = "power", image = "lost" }}

[[step]]
at = "{two_thirds}s"
start = "b3"
"""


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    return {name: version(name) for name in ("attrs", "rich")}


def run(scale: Scale, report: Report) -> None:
    """Each view of a trace against what is least for it."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "trace.jsonl"
        seconds = max(
            9, scale.sim_messages * EVENTS_A_MESSAGE // EVENTS_A_RECORD // RECORDS_A_SECOND
        )
        text = SCENARIO.format(
            until=seconds + 3,
            rate=RECORDS_A_SECOND,
            stop=seconds,
            third=seconds // 3,
            two_thirds=2 * seconds // 3,
        )
        run_scenario(parse_scenario(text), path=path)
        lines = path.read_bytes().splitlines()
        tracks = Tracks.load(path)
        report.note(f"The trace has {tracks.last} events, {path.stat().st_size} bytes.")
        _whole(scale, report, path, lines, tracks)
        _steps(scale, report, tracks)


def _whole(scale: Scale, report: Report, path: Path, lines: list[bytes], tracks: Tracks) -> None:
    """What reads all of it, in one turn each."""

    def parse(count: int) -> None:
        for _ in range(count):
            for line in lines:
                json.loads(line)

    def load(count: int) -> None:
        for _ in range(count):
            Tracks.load(path)

    def page(count: int) -> None:
        for _ in range(count):
            fill(plain(tracks))

    def pair(count: int) -> None:
        for _ in range(count):
            compare(_source(path), _source(path))

    def exported(make: Callable[..., Exported]) -> Callable[[int], None]:
        def export(count: int) -> None:
            for _ in range(count):
                reader = TraceReader(path)
                story = Story(reader.header, reader.fetch(1), reader.footer)
                made = make(reader.header, reader.fetch(1), story, Selection())
                deque(made.lines, maxlen=0)

        return export

    works = (parse, load, page, pair, exported(shiviz), exported(perfetto))
    bare_s, *took_s = race(scale, *(Subject(each, operations_max=1) for each in works))
    rows = (
        "a trace into tracks",
        "tracks into a page",
        "two traces compared",
        "a trace for ShiViz",
        "a trace for Perfetto",
    )
    for what, seconds in zip(rows, took_s, strict=True):
        each_s = seconds / (2 if what.startswith("two") else 1)
        report.add(
            rated(
                "whole traces",
                what,
                each_s,
                tracks.last,
                "events",
                reference_s=bare_s,
                of="json.loads",
            )
        )


def _steps(scale: Scale, report: Report, tracks: Tracks) -> None:
    events = list(tracks.events())
    places = cycle(range(1, tracks.last, max(1, STRIDE % tracks.last)))

    def step(count: int) -> None:
        for _ in range(JUMPS * count):
            view(tracks, next(places))

    def fold(count: int) -> None:
        for _ in range(count):
            Fold().go(len(events) // 2, events)

    fold_s, step_s = race(scale, Subject(fold, operations_max=1), Subject(step, operations_max=1))
    what, step_s = "a step anywhere", step_s / JUMPS
    budget = below(0.1, "s")
    report.add(timed("steps", what, step_s, reference_s=fold_s, of="changes folded", budget=budget))


def _source(path: Path) -> Source:
    reader = TraceReader(path)
    return Source(str(path), reader.header, reader.fetch, reader.footer)
