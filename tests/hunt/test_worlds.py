"""What counts as a failure of a world, by its envelope; a find that is planted is found."""

from __future__ import annotations

import signal
from contextlib import suppress
from typing import Any

import pytest
from attrs import evolve

from sim.checks.judge import Judge
from sim.running.findings import Examined, Finding, examine
from sim.world import World
from tests.hunt import worlds
from tests.hunt.census import Census
from tests.hunt.worlds import Job, WorldHangs, draw, failures, parse, run

CASES = [
    (Finding("invariant", "hw-valid", ""), True, True),
    (Finding("oracle", "disagreement", ""), True, True),
    (Finding("defect", "KeyError in a.b", ""), True, True),
    (Finding("loss", "ILLEGAL", ""), True, True),
    (Finding("loss", "UNEXPLAINED", ""), True, True),
    (Finding("loss", "L2", ""), True, False),
    (Finding("liveness", "stuck", ""), True, True),
    (Finding("liveness", "unavailable", ""), True, False),
    (Finding("step", "cannot act", ""), True, False),
    (Finding("expectation", "at_end: x", ""), True, False),
]


@pytest.mark.parametrize(("finding", "recoverable", "unrestricted"), CASES, ids=str)
def test_what_fails_a_world(finding: Finding, recoverable: bool, unrestricted: bool) -> None:
    examined = Examined((finding,), None)
    assert bool(failures(examined, "recoverable")) is recoverable
    assert bool(failures(examined, "unrestricted")) is unrestricted


def lost(examined: Examined, licence: str, *, is_committed: bool) -> Examined:
    """The same run, with a loss that is covered."""

    class Loss:
        records = 3

    class Lost:
        records = 3

    loss: Any = Loss()
    loss.is_committed = is_committed
    found: Any = Lost()
    found.licence, found.losses = licence, ((loss, ()),)
    assert examined.result is not None
    verdict = evolve(examined.result.verdict, lost=(found,))
    return Examined((), evolve(examined.result, verdict=verdict))


@pytest.fixture(scope="module")
def examined() -> Examined:
    found = examine(parse(draw(Job(3, "recoverable"))), level="digest")
    assert found.findings == ()
    return found


def test_a_recoverable_world_loses_nothing_that_was_promised(examined: Examined) -> None:
    assert failures(examined, "recoverable") == []
    assert failures(lost(examined, "L0", is_committed=False), "recoverable") == []
    for licence, is_committed in (("L0", True), ("L1", False), ("L3", True)):
        (found,) = failures(lost(examined, licence, is_committed=is_committed), "recoverable")
        assert found.identity == ("loss", licence)
    assert failures(lost(examined, "L2", is_committed=True), "unrestricted") == []


def test_a_recoverable_world_is_whole_again(examined: Examined) -> None:
    assert examined.result is not None
    assert examined.result.liveness is not None
    for word, wrong in (("converged", 0), ("unavailable", 1), ("degraded", 1)):
        liveness = evolve(examined.result.liveness, word=word)
        found = Examined((), evolve(examined.result, liveness=liveness))
        assert len(failures(found, "recoverable")) == wrong
        assert failures(found, "unrestricted") == []


@pytest.fixture
def _planted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A judge that raises."""

    def finish(self: Judge) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(Judge, "finish", finish)


@pytest.mark.usefixtures("_planted")
def test_an_exception_is_a_find_with_its_place() -> None:
    answer = run(Job(3, "recoverable"))
    (found,) = answer["found"]
    assert found[:2] == ["defect", "ZeroDivisionError in test_worlds.finish"]
    assert answer["word"] == "defect"


def test_a_generator_that_fails_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(seed: int, envelope: str, **wanted: Any) -> dict[str, Any]:
        return {"schema": 1, "name": "x", "until": "no time"}

    monkeypatch.setattr(worlds, "drawn", drawn)
    (found,) = run(Job(3, "recoverable"))["found"]
    assert found[:2] == ["defect", "ScenarioError in the generator"]


def test_a_world_that_does_not_end_is_a_find(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_world(self: Census, world: World) -> None:
        while True:
            pass

    monkeypatch.setattr(Census, "on_world", on_world)
    monkeypatch.setattr(worlds, "_HANGS_S", 1)
    (found,) = run(Job(3, "recoverable"))["found"]
    assert found[1].startswith("WorldHangs in ")


def test_an_alarm_that_nobody_hears_rings_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worlds, "_HANGS_S", 0.05)

    def hangs() -> None:
        with suppress(WorldHangs):
            while True:
                pass
        while True:
            pass

    with pytest.raises(WorldHangs), worlds._Alarm():
        hangs()
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_an_alarm_that_rings_while_it_is_put_away_rings_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before, real = signal.getsignal(signal.SIGALRM), signal.signal

    def rings(number: int, handler: Any) -> Any:
        if handler is signal.SIG_IGN:
            raise WorldHangs
        return real(number, handler)

    monkeypatch.setattr(signal, "signal", rings)
    with pytest.raises(WorldHangs), worlds._Alarm():
        pass
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is before


def test_every_second_core_of_an_unrestricted_world_is_drawn() -> None:
    cores = [draw(Job(seed, "unrestricted"))["liveness"]["core"] for seed in range(4)]
    assert cores == ["all", "drawn", "all", "drawn"]
    assert draw(Job(1, "recoverable"))["liveness"]["core"] == "all"
