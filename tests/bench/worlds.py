"""The worlds bench: drawn worlds from their text to their verdict, and where the time goes.

What a hunt does to each world is done here: the scenario is drawn (``sim.swarm``) and parsed, its
world built, booted, run and judged, its histories checked, a healed copy watched, and each loss put
to the test by runs without its culprits. Fixed seeds of both envelopes; the same ones in each turn.

Worlds differ widely in size, so a rate of worlds says little without the events of one; beside it
stands that of delivered messages, against the bare heap loop of ``tests.bench.sim``.

The parts of a world add up to it. ``judging`` and ``histories`` are of the run alone, ``trace`` is
numbering, encoding and digesting; what all of them take within a healed copy or a run without
culprits is counted there. Figures are of CPU time of one thread.
"""

from __future__ import annotations

import gc
from dataclasses import replace
from functools import partial
from typing import Any, Final

from sim.blame import loss_tests
from sim.checks.judge import Judge
from sim.histories.recorder import Recorder
from sim.liveness import judging
from sim.running import scenario_run
from sim.running.findings import examine
from sim.running.interpreter import Interpreter
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.swarm import ENVELOPES, drawn
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.world import World
from tests.bench.measure import CPU, Scale, Subject, race
from tests.bench.report import Figure, Report, Row, above, rated
from tests.bench.sim import IN_FLIGHT, TURN_FACTOR, HeapLoop
from tests.bench.stopwatch import Place, Stopwatch
from tests.hunt.worker import collect_seldom

__all__ = ["facts", "run"]

WORLDS: Final = above(30, "worlds/s")
EVENTS_MAX: Final = 600_000


def _named(place: Any, start: str) -> list[Place]:
    return [(place, name) for name in vars(place) if name.startswith(start)]


PARTS: Final[dict[str, list[Place]]] = {
    "drawing": [],
    "parsing": [],
    "building the world": [(scenario_run, "stage")],
    "boot": [(Interpreter, "boot")],
    "run": [(Interpreter, "run")],
    "judging": [*_named(Judge, "on_"), (Judge, "before_power_cut"), (Judge, "finish")],
    "histories": [
        *_named(Recorder, "on_"),
        (scenario_run, "anomalies_of"),
        (scenario_run, "disagreements"),
    ],
    "liveness, the copy": [(judging, "continuation")],
    "liveness, the healing": [(scenario_run, "judge_liveness")],
    "necessity": [],
    "trace": [(Trace, "emit"), (Trace, "digest"), (Trace, "close")],
    "the rest": [],
}
WHOLE: Final[dict[str, list[str]]] = {
    "liveness, the copy": [],
    "liveness, the healing": ["liveness, the copy"],
    "necessity": [],
}


def facts() -> dict[str, Any]:
    """What the figures depend on."""
    return {"events_max": EVENTS_MAX}


def run(scale: Scale, report: Report) -> None:
    """Each envelope: how fast, how large, and where the time goes."""
    report.note(f"The reference is a heap loop with {IN_FLIGHT} queued callbacks.")
    report.note("Worlds are of fixed seeds. Their parts are slower than they are unwatched.")
    for envelope in ENVELOPES:
        _rates(scale, report, envelope)
        _parts(scale, report, envelope)


def _rates(scale: Scale, report: Report, envelope: str) -> None:
    count = scale.worlds
    delivered, events = _size(envelope, count)
    heap = Subject(HeapLoop(IN_FLIGHT).run)
    worlds = Subject(partial(_worlds, envelope, count), operations_max=1)
    longer = replace(scale, turn_s=scale.turn_s * TURN_FACTOR)
    took, reference = race(longer, worlds, heap, clock=CPU)
    per_message = took / delivered
    report.add(
        Row(envelope, f"worlds, {count} seeds", Figure(count / took, "worlds/s"), budget=WORLDS),
        rated(envelope, "messages", per_message, 1, "msg", reference_s=reference, of="heap loop"),
        Row(envelope, "messages delivered in a run", Figure(delivered / count, "msg")),
        Row(envelope, "events of a run", Figure(events / count, "events")),
    )


def _parts(scale: Scale, report: Report, envelope: str) -> None:
    """The better of two times, part by part, since other work only ever adds."""
    best: dict[str, float] = {}
    for _ in range(2):
        watch = Stopwatch(PARTS, WHOLE)
        with watch.watching():
            watch.timed("the rest", _worlds)(envelope, scale.worlds, watch=watch)
        for part in PARTS:
            best[part] = min(best.get(part, watch.took_s[part]), watch.took_s[part])
    whole = sum(best.values())
    for part, took in best.items():
        share = Figure(100 * took / whole, "%", "of a world")
        report.add(Row(f"{envelope}, parts", part, Figure(took / scale.worlds, "s"), share))


def _worlds(envelope: str, count: int, turns: int = 1, watch: Stopwatch | None = None) -> None:
    """``turns``: for a race, of one turn each; garbage is collected as in a hunt's processes."""
    del turns
    gc.enable()
    collect_seldom()
    for seed in range(count):
        _world(envelope, seed, watch or Stopwatch({}))


def _world(envelope: str, seed: int, watch: Stopwatch) -> None:
    text = watch.timed("drawing", _text)(seed, envelope)
    scenario = watch.timed("parsing", parse_scenario)(text)
    tested = watch.timed("necessity", loss_tests.tested_as_kept)
    examine(scenario, level="digest", keeps_lines=True, tests_losses=tested, events_max=EVENTS_MAX)


def _text(seed: int, envelope: str) -> str:
    return scenario_text(drawn(seed, envelope))


def _size(envelope: str, count: int) -> tuple[int, int]:
    """Messages delivered and events in the runs themselves."""
    delivered = events = 0
    for seed in range(count):
        worlds: list[World] = []
        scenario = parse_scenario(_text(seed, envelope))
        examine(scenario, level="events", keeps_lines=True, on_world=worlds.append)
        found = worlds[0].trace.events()
        events += len(found)
        delivered += sum(each.kind == Kind.DELIVER for each in found)
    return delivered, events
