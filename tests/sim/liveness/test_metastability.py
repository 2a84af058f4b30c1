"""A cluster that looks healthy and does not do its work, and one that does."""

from __future__ import annotations

from typing import Any

import pytest

from sim.liveness.metastability import WINDOW_US, wrong
from sim.liveness.outcome import Throughput
from sim.network_rules import Cut, Slow
from sim.plans import begin, end
from sim.running.interpreter import BOOT_US
from sim.timeline import EventClass
from sim.world import World
from tests.sim.liveness.small import WRITER, ran

SECOND_US = 1_000_000
UNTIL_US = 10 * SECOND_US
PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 10 }'
CRASH = 'at = "3s"; crash = { node = "b3" }'
LAG = 'config = { "replica.lag.time.max.ms" = 1500 }'


def throughput(acked: int, twin: int, changes: int = 0) -> Throughput:
    return Throughput(window_us=WINDOW_US, acked=acked, twin=twin, changes=changes)


@pytest.mark.parametrize(
    ("found", "texts"),
    [
        (throughput(100, 100), 0),
        (throughput(80, 100), 0),
        (throughput(79, 100), 1),
        (throughput(0, 0), 0),
        (throughput(120, 100), 0),
        (throughput(100, 100, changes=1), 1),
        (throughput(10, 100, changes=2), 2),
    ],
)
def test_a_window_is_judged_by_its_share_and_by_changes(found: Throughput, texts: int) -> None:
    assert len(wrong(found)) == texts


def test_words_have_both_numbers() -> None:
    few, changed = wrong(throughput(79, 100, 3))
    assert few == (
        "in the 30 s behind convergence 79 records were acknowledged, and 100 in the same window "
        "without faults: less than 80 %"
    )
    assert changed == "in the 30 s behind convergence epochs or ISRs changed 3 times"


def measured(*steps: str, plant: Any = None, cluster: str = "") -> Any:
    return ran(
        PRODUCE,
        *steps,
        until="10s",
        more=WRITER,
        cluster=cluster,
        liveness={"metastability": True},
        run={"on_world": plant},
    )


def test_a_cluster_that_recovers_writes_as_its_twin_does() -> None:
    result = measured(CRASH)
    found = result.liveness.throughput
    assert found.acked == found.twin == 10 * WINDOW_US // SECOND_US
    assert found.changes == 0
    assert result.verdict.word == "passed"
    assert result.liveness.word == "converged"


class Storm:
    """Behind the run all links become slow: requests time out, and are sent again and again."""

    def __init__(self, world: World) -> None:
        self.world = world
        at_us = BOOT_US + UNTIL_US + 2 * SECOND_US
        world.timeline.at(at_us, EventClass.FAULT, "storm", self.strike)

    def strike(self) -> None:
        self.world.faults["storm"] = Slow(id="storm", edges=(("*", "*"),), addend_us=1_500_000)
        begin(self.world, "storm")


def test_a_storm_behind_convergence_is_found() -> None:
    result = measured(CRASH, plant=Storm, cluster=LAG)
    found = result.liveness.throughput
    assert found.acked < found.twin * 8 // 10
    kinds = [each.kind for each in result.liveness.violations]
    assert "metastable" in kinds
    assert result.verdict.word == "failed"
    assert "progress was violated" in result.verdict.reasons


class Flapping:
    """Behind the run the link of b3 fails and heals, again and again: its ISR never settles."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.turn = 0
        at_us = BOOT_US + UNTIL_US + SECOND_US
        world.timeline.at(at_us, EventClass.FAULT, "flap", self.flap)

    def flap(self) -> None:
        name = f"flap-{self.turn}"
        if self.turn % 2 == 0:
            edges = (("b3", "b1"), ("b1", "b3"))
            self.world.faults[name] = Cut(id=name, edges=edges)
            begin(self.world, name)
        else:
            end(self.world, f"flap-{self.turn - 1}")
        self.turn += 1
        at_us = self.world.now_us + 2 * SECOND_US
        self.world.timeline.at(at_us, EventClass.FAULT, "flap", self.flap)


def test_an_isr_that_flaps_is_found() -> None:
    result = measured(CRASH, plant=Flapping, cluster=LAG)
    found = result.liveness.throughput
    assert found is not None
    assert found.changes > 0
    texts = [each.detail for each in result.liveness.violations if each.kind == "metastable"]
    assert any("epochs or ISRs changed" in each for each in texts)
    assert result.verdict.word == "failed"


def test_without_being_asked_nothing_is_measured() -> None:
    result = ran(PRODUCE, CRASH, until="10s", more=WRITER)
    assert result.liveness is not None
    assert result.liveness.throughput is None
