"""Histories and the judge agree on healthy code, and a judge that is wrong is noticed.

Method: the judge is broken from outside, as it might be by a mistake, and a run in which that
matters must end as a fault of the oracle. Where nothing is broken no run may: all scenarios that
come with Leaderfall, and drawn worlds whose logs are read to their ends.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cluster.names import TopicIdPartition
from sim.checks import audit, losses
from sim.checks.clients import ClientWatch
from sim.checks.facts import Facts
from sim.checks.ledger import Ledger, Loss, Place
from sim.checks.ranges import Records, Span
from sim.cli.exits import Exit
from sim.histories.anomalies import illegal
from sim.histories.recorder import Recorder
from sim.running.agreement import Disagreement, OracleFault, excuses_of
from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.trace.reader import TraceReader
from sim.world import World
from tests.sim.checks.judged import SECOND_US, Stage
from tests.sim.cli.tools import ROOT, call
from tests.sim.histories.drained import Drained, drain, judgement

SCENARIOS = sorted((ROOT / "scenarios").glob("*.toml"))
Plant = Callable[[pytest.MonkeyPatch], None]


def runs_of(path: Path) -> list[tuple[Path, str | None]]:
    scenario = read_scenario(path)
    return [(path, each.name) for each in scenario.variants] or [(path, None)]


def ran(name: str, variant: str | None, **options: Any) -> Result:
    scenario = read_scenario(ROOT / "scenarios" / f"{name}.toml")
    return run_scenario(effective(scenario, variant), **options)


# Healthy ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "variant"),
    [each for path in SCENARIOS for each in runs_of(path)],
    ids=lambda each: each.stem if isinstance(each, Path) else str(each),
)
def test_scenarios_have_no_disagreement_whatever_their_readers_did(
    path: Path, variant: str | None
) -> None:
    worlds: list[World] = []
    result = run_scenario(effective(read_scenario(path), variant), on_world=worlds.append)
    notes = worlds[0].producers.values()
    begun = sum(sum(each.told.values()) + len(each.produced) for each in notes)
    assert len(Recorder.of(worlds[0]).history().operations) == begun
    assert illegal(result.anomalies) == [] or result.verdict.broken


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1, 37, 6))
def test_drawn_worlds_that_are_read_to_the_end_have_no_disagreement(first: int) -> None:
    for seed in range(first, first + 6):
        anomalies, found = Drained(seed, power=seed % 3 != 0).judgement()
        assert found == [], (seed, [str(each) for each in found])
        assert illegal(anomalies) == [], seed


# A judge that is wrong -------------------------------------------------------------------------


def forgets_losses(patch: pytest.MonkeyPatch) -> None:
    """Neither noted nor missed: what is only not noted has no licence, and breaks a rule."""
    patch.setattr(losses, "note", lambda *_, **__: None)
    patch.setattr(losses, "unlicensed", lambda *_: [])
    without_audit(patch)


def without_audit(patch: pytest.MonkeyPatch) -> None:
    """The ledger's own audit would notice, too; here the histories have to."""
    patch.setattr(audit, "doubts", lambda _: [])


def forgets_never_held(patch: pytest.MonkeyPatch) -> None:
    kept = Facts.losses_of

    def told(self: Facts, partition: TopicIdPartition) -> list[Loss]:
        return [each for each in kept(self, partition) if each.how != "never-held"]

    patch.setattr(Facts, "losses_of", told)


@pytest.mark.parametrize(
    ("plant", "name", "variant"),
    [
        (forgets_losses, "kip101_divergence", "fetch"),
        (forgets_losses, "partition_unclean", "unclean on"),
        (forgets_never_held, "kip320_zombie_follower", "today"),
        (forgets_never_held, "partition_unclean", "unclean on"),
    ],
)
def test_a_ledger_that_forgets_is_noticed(
    plant: Plant, name: str, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    healthy = ran(name, variant)
    assert [each.legal for each in healthy.anomalies if each.name == "inconsistent-offsets"] == [
        "loss"
    ]
    plant(monkeypatch)
    with pytest.raises(OracleFault, match="disagree, so this run has no verdict") as caught:
        ran(name, variant)
    (found,) = caught.value.disagreements
    assert found.partition == "orders-0"
    assert found.history.startswith("inconsistent-offsets: offset ")
    assert "the judge knows of no loss of that record" in found.judgement
    assert len(found.events) == 2


def zombie() -> Stage:
    """b1 was deposed behind a partition; its successor has records where it takes one more."""
    stage = Stage(records=0)
    stage.world.kernel.recorder = Recorder()
    cluster, patient = stage.cluster, {"client": "p2", "timeout_us": 200 * SECOND_US}
    cluster.produce("orders", ["old"], acks=1, client="q1").wait()
    cluster.produce("orders", ["base"], **patient).wait()  # type: ignore[arg-type]
    stage.world.run_for(SECOND_US)
    cluster.partition(["b1"], ["b2", "b3", "c1", "p2"])
    view = stage.world.view
    assert stage.world.run_until_true(
        lambda: view().leader("orders") in ("b2", "b3"), 60 * SECOND_US
    )
    cluster.produce("orders", ["new0", "new1"], **patient).wait()  # type: ignore[arg-type]
    cluster.produce("orders", ["zombie"], acks=1, client="q1").wait()
    return stage


def finished(stage: Stage) -> tuple[list[Any], list[Disagreement]]:
    """Heal, read to the ends, judge."""
    stage.cluster.heal()
    stage.world.run_for(60 * SECOND_US)
    assert drain(stage.world, stage.cluster) == []
    return judgement(stage.world, stage.judge, is_drained=True, unavailable=[])


def test_a_loss_to_a_zombie_is_legal_and_told() -> None:
    anomalies, found = finished(zombie())
    assert found == []
    assert {each.name: each.legal for each in anomalies} == {
        "inconsistent-offsets": "loss",
        "lost-write": "loss",
    }


def test_a_judge_that_believes_a_log_end_instead_of_the_log_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def believed(self: Ledger, place: Place, records: Records) -> list[Span]:
        return records.missing_in((), max(place.start, place.files_end))

    monkeypatch.setattr(Ledger, "missing_at", believed)
    without_audit(monkeypatch)
    _, found = finished(zombie())
    assert [each.history.split(":")[0] for each in found] == ["inconsistent-offsets", "lost-write"]


def test_a_judge_that_does_not_count_an_acknowledgement_is_noticed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    kept = ClientWatch.on_outcome

    def deaf(self: ClientWatch, node: str, outcome: Any, event: int) -> None:
        if node != "q1":
            kept(self, node, outcome, event)

    monkeypatch.setattr(ClientWatch, "on_outcome", deaf)
    _, found = finished(zombie())
    told = {(each.history, each.judgement) for each in found}
    assert ("5 acknowledgements", "the judge counts 3") in told
    assert any(history.startswith("lost-write") for history, _ in told)


def lost(ledger: Ledger, offset: int, event: int) -> Loss:
    """One committed record of epoch 0."""
    where, spans = str(ledger.partition), (Span(0, offset, offset + 1),)
    return Loss("serving", event, where, "b1", 0, spans, "power", 0, True, False)


def test_a_ledger_that_calls_lost_what_is_read_is_noticed() -> None:
    stage = Stage(records=0)
    stage.world.kernel.recorder = Recorder()
    stage.cluster.produce("orders", 3).wait()
    stage.cluster.consume("orders", 3, client="early").wait()
    (ledger,) = stage.judge.scene.ledgers.values()
    ledger.gone.add([Span(0, 1, 2)])
    assert judgement(stage.world, stage.judge, is_drained=True, unavailable=[])[1] != []
    ledger.losses.append(lost(ledger, 1, stage.world.trace.count))
    # Who read it before the loss says nothing.
    assert judgement(stage.world, stage.judge, is_drained=True, unavailable=[])[1] == []
    _, (found,) = finished(stage)
    assert found.history == "offset 1 of epoch 0, which final read"
    assert found.judgement == "the judge has it as lost for good"


def test_losses_of_a_deleted_topic_say_nothing_about_another_one_of_its_name() -> None:
    stage = Stage(records=0)
    stage.world.kernel.recorder = Recorder()
    stage.cluster.delete_topic("orders").wait()
    stage.cluster.create_topic("orders").wait()
    stage.cluster.produce("orders", 3).wait()
    stage.cluster.consume("orders", 3, client="reader").wait()
    old, new = stage.judge.scene.ledgers.values()
    assert old.partition.topic_id != new.partition.topic_id
    # The old one loses a record behind what was read, the new one is said to have lost one before.
    late = stage.world.trace.count
    old.losses.append(lost(old, 1, late))
    (excuse,) = excuses_of(stage.judge)
    assert excuse.place == old.partition
    new.gone.add([Span(0, 1, 2)])
    (found,) = judgement(stage.world, stage.judge, is_drained=True, unavailable=[])[1]
    assert found.history == "offset 1 of epoch 0, which reader read"


def test_a_violation_at_the_partition_covers_an_anomaly(monkeypatch: pytest.MonkeyPatch) -> None:
    forgets_losses(monkeypatch)
    result = ran("kip101_lost_write", "high-watermark")
    assert [each.legal for each in result.anomalies if each.name == "inconsistent-offsets"] == [""]
    assert result.verdict.broken


# Through the command line ----------------------------------------------------------------------


def test_a_fault_of_the_oracle_ends_with_70_and_keeps_the_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forgets_losses(monkeypatch)
    path = ROOT / "scenarios" / "kip101_divergence.toml"
    done = call("run", str(path), "--variant", "fetch", "--out", str(tmp_path))
    assert done.exit_code == Exit.INTERNAL
    said = " ".join(done.stdout.split())
    assert "what the clients saw and what the judge says cannot both be right" in said
    assert "clients saw inconsistent-offsets: offset 1 is 'm1'" in said
    assert "the judge knows of no loss of that record" in said
    assert "defect of Leaderfall's judgement" in said
    (trace,) = tmp_path.rglob("trace.jsonl")
    reader = TraceReader(trace)
    events = {each.n: each for each in reader}
    assert reader.footer is not None
    assert reader.footer.verdict == "oracle-fault"
    (result,) = tmp_path.rglob("result.json")
    assert json.loads(result.read_text("utf-8"))["exit"] == 70
    assert {events[number].kind for number in _numbers(said)} == {"ack"}


def _numbers(said: str) -> list[int]:
    """Of the events that the last line in brackets names."""
    return [int(each) for each in re.findall(r"#(\d+)", said)]
