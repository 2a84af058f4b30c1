"""A run that is written while it goes on is the run of what was written."""

from __future__ import annotations

import random
from typing import Any

import pytest
from attrs import evolve

from sim.running.findings import examine
from sim.running.live import Live
from sim.scenario.model import Liveness, Scenario
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from tests.sim.testing.wrong import Hasty

BROKERS = ["b1", "b2", "b3"]
BASE = """
schema = 1
name = "live"
until = "1s"
when_impossible = "skip"
[cluster]
brokers = 3
scheduler = "SCHEDULER"
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
[[expect]]
allow = ["L0", "L1", "L2", "L3", "L4"]
"""


def base(scheduler: str = "fifo") -> Scenario:
    return parse_scenario(BASE.replace("SCHEDULER", scheduler))


def table(chance: random.Random, number: int) -> dict[str, Any]:
    node = chance.choice(BROKERS)
    rest = [each for each in BROKERS if each != node]
    tables: list[dict[str, Any]] = [
        {"produce": {"to": "orders-0", "count": chance.randint(1, 5), "acks": "1"}},
        {"produce": {"to": "orders-0", "count": chance.randint(1, 5)}},
        {"consume": {"from": "orders-0", "count": chance.randint(1, 5)}},
        {"crash": {"node": node}},
        {"crash": {"node": node, "how": "power", "image": "drawn"}},
        {"start": node},
        {"start": node},
        {"partition": [[node], rest], "id": f"s{number}"},
        {"heal": "all"},
        {"elect": {"partition": "orders-0"}},
        {"elect": {"partition": "orders-0", "kind": "unclean", "force": True}},
        {"pause": node},
        {"resume": node},
        {"settle": "5s"},
        {"slow": {"node": node, "disk": "100x"}, "id": f"s{number}"},
        {"delete_records": {"partition": "orders-0", "before": -1}},
        {"corrupt": {"node": node, "partition": "orders-0", "offset": chance.randint(0, 3)}},
    ]
    return chance.choice(tables)


def drive(live: Live, chance: random.Random, steps: int) -> None:
    for number in range(steps):
        if live.is_over:
            return
        if chance.random() < 0.15:
            kind = chance.choice(["fsync-lie", "fsync-fail", "eio"])
            live.fault({"kind": kind, "target": chance.choice(BROKERS)})
        else:
            live.step(table(chance, number))
        if not live.is_over:
            live.go_on(chance.choice([0, 1, 50_000, 3_000_000, 12_000_000]))


@pytest.mark.parametrize("scheduler", ["fifo", "seeded"])
@pytest.mark.parametrize("seed", range(8))
def test_the_file_is_the_run(scheduler: str, seed: int) -> None:
    liveness = Liveness() if seed % 2 else None
    whole = base(scheduler)
    live = Live(whole, seed=seed)
    if seed % 3 == 0:
        live = Live(whole, seed=seed).fork()
    drive(live, random.Random(seed), 15)
    if liveness is not None and not live.is_over:
        assert live.would_recover(liveness)
        live.go_on(1_000_000)
    scenario = live.scenario(liveness)
    first = live.conclude(liveness=liveness)
    again = parse_scenario(scenario_text(scenario.document))
    assert again.steps == scenario.steps
    second = examine(again, is_strict=True, level="digest")
    assert first.result is not None
    assert second.result is not None
    assert first.result.digest == second.result.digest
    assert first.findings == second.findings


def test_what_is_broken_ends_the_run_at_once() -> None:
    live = Live(evolve(base(), make_broker=Hasty), seed=1)
    live.step({"produce": {"to": "orders-0", "count": 1}})
    live.go_on(60_000_000)
    assert live.is_over
    assert live.now_us < 100_000
    with pytest.raises(ValueError, match="the run is over"):
        live.step({"start": "b1"})
    scenario = live.scenario()
    first = live.conclude()
    second = examine(scenario, is_strict=True, level="digest")
    assert ("invariant", "hw-valid") in first.identities
    assert first.findings == second.findings
    assert first.result is not None
    assert second.result is not None
    assert first.result.digest == second.result.digest


def test_a_wrong_table_changes_nothing() -> None:
    live = Live(base(), seed=1)
    digest = live.stage.world.trace.digest()
    for wrong in ({"crush": {"node": "b1"}}, {"crash": {"node": "b9"}}, {"crash": {}}):
        with pytest.raises(ScenarioError):
            live.step(wrong)
    with pytest.raises(ScenarioError):
        live.fault({"kind": "fsync-lies", "target": "b1"})
    assert live.stage.world.trace.digest() == digest
    assert live.scenario().steps == ()


def test_a_disk_of_an_earlier_step_is_not_kept() -> None:
    live = Live(base(), seed=1)
    live.step({"id": "x", "crash": {"node": "b1"}})
    with pytest.raises(ScenarioError, match="cannot be kept"):
        live.step({"start": {"node": "b1", "disk": "image:x"}})
    assert len(live.scenario().steps) == 1


@pytest.mark.parametrize("word", ["step", "fault", "workload"])
def test_what_only_a_file_can_have_is_refused(word: str) -> None:
    tables = {
        "step": 'start = "b1"\nat = "1s"',
        "fault": 'kind = "fsync-lie"\ntarget = "b1"\nid = "f"\nstart = "1s"',
        "workload": 'name = "w"\nkind = "producer"\ntopic = "orders-0"\nrate = 5',
    }
    text = BASE.replace("SCHEDULER", "fifo").replace('"1s"', '"9s"')
    whole = parse_scenario(f"{text}\n[[{word}]]\n{tables[word]}\n")
    with pytest.raises(ScenarioError, match=word):
        Live(whole, seed=1)


def test_a_cluster_that_does_not_come_up_is_a_failure() -> None:
    class Never(Hasty):
        def on_start(self, now: Any, fx: Any) -> None:
            raise KeyError("no")

    live = Live(evolve(base(), make_broker=Never), seed=1)
    assert live.is_over
    ((kind, name),) = live.conclude().identities
    assert (kind, name) == ("defect", "KeyError in test_live.on_start")
