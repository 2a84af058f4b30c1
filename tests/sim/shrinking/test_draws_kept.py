"""What is left out re-rolls nothing else."""

from __future__ import annotations

from typing import Any

from sim.running.scenario_run import run_scenario
from sim.shrinking.removing import without
from sim.shrinking.resolving import resolve
from sim.shrinking.tables import Document, named
from sim.trace.kinds import Kind
from tests.sim.shrinking.cases import losing, scenario_of, shrunk, trials_of

FIVE: dict[str, Any] = {
    "cluster": {"brokers": 5},
    "topic": [{"name": "orders", "replicas": [["b1", "b2", "b3"]]}],
    "step": [
        {"at": "1s", "produce": {"to": "orders-0", "count": 1}},
        {"at": "1.5s", "flush": "b2"},
        {"at": "2s", "crash": {"node": "one"}},
        {"at": "4s", "pause": "minority"},
    ],
}


def _struck(document: Document) -> list[list[str]]:
    """Whom the steps that draw have meant."""
    result = run_scenario(scenario_of(document), keeps_lines=True)
    return [
        each.args["args"]["node"]
        for each in result.trace.events()
        if each.kind == Kind.STEP and each.args.get("step") in ("crash", "pause")
        if "args" in each.args
    ]


def test_a_step_with_an_id_draws_the_same_without_the_steps_before_it() -> None:
    moved = 0
    for seed in range(6):
        document = losing(**FIVE, seed=seed)
        moments = run_scenario(scenario_of(document)).moments
        kept = named(document)
        gone = frozenset({"produce-1", "flush-2"})
        assert _struck(without(kept, moments, steps=gone)) == _struck(kept)
        shorter = document | {"step": document["step"][2:]}
        moved += _struck(shorter) != _struck(document)
    assert moved  # By their numbers alone they strike others.


def test_names_for_draws_strike_the_same() -> None:
    document = losing(**FIVE, seed=4, expect=[{"at_end": "len(isr('orders-0')) == 9"}])
    trials = trials_of(document, ("expectation", "at_end: len(isr('orders-0')) == 9"))
    struck = _struck(trials.document)
    resolve(trials)
    assert "one" not in str(trials.document["step"])
    assert "minority" not in str(trials.document["step"])
    assert _struck(trials.document) == struck


def test_a_draw_by_number_survives_the_steps_before_it() -> None:
    steps = [
        {"at": "500ms", "flush": "b1"},
        {"at": "700ms", "flush": "b2"},
        {"at": "1s", "produce": {"to": "orders-0", "count": 1}},
        {"at": "2s", "crash": {"node": "one", "how": "power"}},
    ]
    for seed in range(20):
        document = losing(
            cluster={"brokers": 3, "writeback": "off"},
            topic=[{"name": "orders", "replicas": [["b2"]]}],
            step=steps,
            seed=seed,
        )
        (struck,) = _struck(document)
        if struck == ["b2"]:
            break
    found = shrunk(scenario_of(document))
    assert 'crash = { node = "b1", how = "power" }' in found.text  # b2 goes under another name.
    assert "flush" not in found.text
