"""State machines that drive a live cluster: rules act, planted faults are found, cases replay."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import invariant, rule, run_state_machine_as_test

from sim.scenario.effective import effective
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import read_scenario
from sim.testing import ClusterMachine, MachineError, RecordedMachine, ScenarioFailed, check
from sim.testing.recorded import ENVELOPES
from tests.sim.testing.wrong import Broken, Hasty, Keeping

ROOT = Path(__file__).resolve().parents[3]
FEW = settings(
    max_examples=8,
    stateful_step_count=8,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    report_multiple_bugs=False,
)


def found(machine: type[RecordedMachine], examples: settings = FEW) -> ScenarioFailed:
    with pytest.raises(ScenarioFailed) as caught:
        run_state_machine_as_test(machine, settings=examples)
    return caught.value


def replayed(line: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words = [*shlex.split(line)[1:], "--out", str(folder / "runs")]
    return subprocess.run(
        [sys.executable, "-m", "sim.cli", *words],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_wrong_replica_is_found_shrunk_and_replayed(tmp_path: Path) -> None:
    class Orders(ClusterMachine):
        replica = Hasty
        liveness = None
        folder = tmp_path / "failures"
        case = "orders"

    error = found(Orders)
    assert ("invariant", "hw-valid") in [each.identity for each in error.findings]
    saved = error.saved
    assert saved is not None
    assert saved.notes == ()
    assert saved.scenario is not None
    assert len(read_scenario(saved.scenario).steps) <= 3
    assert saved.replay.endswith("--replica tests.sim.testing.wrong:Hasty")
    ran = replayed(saved.replay, tmp_path)
    assert ran.returncode == 1, ran.stderr
    assert "hw-valid" in ran.stdout
    assert f"digest  {saved.digest}" in ran.stdout
    ours = replayed(saved.replay.partition(" --replica")[0], tmp_path)
    assert ours.returncode == 0
    assert [each.name for each in (tmp_path / "failures").iterdir()] == ["orders"]


def test_the_machine_of_the_readme_can_be_pasted() -> None:
    text = (ROOT / "sim" / "README.md").read_text(encoding="utf-8")
    (block,) = [
        each
        for each in re.findall(r"```text\n(.*?)```", text, re.DOTALL)
        if "class Orders(ClusterMachine)" in each
    ]
    names: dict[str, Any] = {"__name__": "readme"}
    exec(block, names)
    machine = names["Orders"]()
    machine.fail_over()
    machine.epochs_are_small()
    assert machine.with_status("down")
    machine.teardown()


def test_the_wrong_replica_of_the_readme_is_found(tmp_path: Path) -> None:
    text = (ROOT / "sim" / "README.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    (block,) = [each for each in blocks if "class HastyLeading" in each]
    names: dict[str, Any] = {"__name__": "readme"}
    exec(block, names)

    class Orders(RecordedMachine):
        replica = names["Hasty"]
        liveness = None
        folder = tmp_path

        @rule()
        def send(self) -> None:
            self.act("produce", to="orders-0", count=1)

    error = found(Orders)
    assert ("invariant", "hw-valid") in [each.identity for each in error.findings]
    assert error.saved is not None
    assert error.saved.scenario is not None
    assert len(read_scenario(error.saved.scenario).steps) == 1


def test_a_cluster_that_is_stuck_fails_at_the_end(tmp_path: Path) -> None:
    class Stuck(RecordedMachine):
        replica = Keeping
        folder = tmp_path

        @rule()
        def diverge(self) -> None:
            if self.with_status("running") == list(self.nodes):
                self.act("cut", from_="leader:orders-0", to="followers:orders-0", both=True)
                self.act("produce", 1_000_000, to="orders-0", count=3, acks="1")
                self.act("crash", 12_000_000, node="leader:orders-0")
                self.act("heal", short="all")

    one = settings(FEW, max_examples=1, stateful_step_count=2, phases=[Phase.generate])
    error = found(Stuck, one)
    assert ("invariant", "progress") in [each.identity for each in error.findings]

    class Sound(Stuck):
        replica = None

    run_state_machine_as_test(Sound, settings=one)


def test_a_guard_that_is_off_excuses_nothing(tmp_path: Path) -> None:
    class Unguarded(RecordedMachine):
        guards = {"hw-freeze": False}  # noqa: RUF012 - the class says what runs
        replica = Hasty
        liveness = None
        folder = tmp_path

        @rule()
        def send(self) -> None:
            self.act("produce", to="orders-0", count=1)

    error = found(Unguarded)
    assert error.saved is not None
    assert error.saved.notes == ()
    assert "--strict" in error.saved.replay
    ran = replayed(error.saved.replay, tmp_path)
    assert ran.returncode == 1
    assert f"digest  {error.saved.digest}" in ran.stdout
    assert replayed(error.saved.replay.replace(" --strict", ""), tmp_path).returncode == 0


def test_a_broker_that_raises_is_found(tmp_path: Path) -> None:
    class Raising(ClusterMachine):
        replica = Broken
        liveness = None
        folder = tmp_path

    error = found(Raising)
    assert error.findings[0].kind == "defect"
    assert error.saved is not None
    assert error.saved.notes == ()


def test_an_own_check_fails_with_its_case(tmp_path: Path) -> None:
    class Bounded(ClusterMachine):
        folder = tmp_path
        case = "bounded"

        @invariant()
        def logs_are_short(self) -> None:
            assert self.view.log_end("b1", "orders") < 1

    with pytest.raises(AssertionError) as caught:
        run_state_machine_as_test(Bounded, settings=FEW)
    assert not isinstance(caught.value, ScenarioFailed)
    assert "leaderfall run" in "\n".join(caught.value.__notes__)
    assert len(read_scenario(tmp_path / "bounded" / "scenario.toml").steps) <= 4


@pytest.mark.parametrize("envelope", sorted(ENVELOPES))
def test_a_sound_cluster_passes(envelope: str, tmp_path: Path) -> None:
    machine = type("Sound", (ClusterMachine,), {"envelope": envelope, "folder": tmp_path})
    run_state_machine_as_test(machine, settings=settings(FEW, stateful_step_count=20))
    assert list(tmp_path.iterdir()) == []


EFFECTS: dict[str, dict[str, Any]] = {
    "produce": {"partition": "orders-0", "count": 2, "acks": "all"},
    "consume": {"partition": "orders-0", "count": 1},
    "crash": {"node": "b1", "then_ms": 20},
    "power_cut": {"node": "b1", "image": "lost", "then_ms": 20},
    "pause": {"node": "b1", "then_ms": 20},
    "partition_network": {
        "side": ["b1"],
        "in_flight": "drop",
        "has_controller": False,
        "then_ms": 1_000,
    },
    "isolate_leader": {"partition": "orders-0", "then_ms": 1_000},
    "elect": {"partition": "orders-0", "is_forced": True},
    "delete_records": {"partition": "orders-0"},
    "slow_disk": {"node": "b1", "factor": 100},
    "corrupt": {"node": "b1", "partition": "orders-0", "offset": 0},
    "fail_disk": {"node": "b1", "kind": "fsync-fail"},
}


@pytest.mark.parametrize("name", EFFECTS)
def test_each_rule_has_an_effect(name: str) -> None:
    class Anything(ClusterMachine):
        envelope = "unrestricted"

    machine = Anything()
    machine.produce("orders-0", 1, "all")
    machine.go_on(6_000_000)
    before = machine.live.fork()
    getattr(machine, name)(**EFFECTS[name])
    before.go_on(machine.live.now_us - before.now_us)
    assert machine.world.trace.digest() != before.stage.world.trace.digest()
    steps = [each.action.NAME for each in machine.live.scenario().steps]
    assert len(steps) + len(machine.live.scenario().faults) == 2
    if name in ("crash", "power_cut", "pause"):
        assert machine.with_status("running") == ["b2", "b3"]
        machine.start("b1", 20)
        assert machine.with_status("running") == ["b1", "b2", "b3"]
    if name in ("partition_network", "isolate_leader", "slow_disk"):
        assert machine.active_faults
        machine.heal()
        assert not machine.active_faults
    machine.recover()


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"brokers": "3"}, "brokers is '3'"),
        ({"brokers": 0}, "describes no cluster"),
        ({"topics": ()}, "topics is empty"),
        ({"topics": "orders"}, "topics is 'orders'"),
        ({"topics": ({"nome": "orders"},)}, "describes no cluster"),
        ({"cluster": {"guards": {}}}, "cluster has 'guards'"),
        ({"guards": {"no-such-guard": False}}, "describes no cluster"),
        ({"envelope": "x"}, "allowed are recoverable, unrestricted"),
        ({"allow": ("L9",)}, "allow is"),
        ({"replica": 5}, "replica is 5"),
        ({"liveness": 5}, "liveness is 5"),
        ({"pace_us": -1}, "pace_us is -1"),
        ({"topics": None}, "topics is None"),
        ({"envelope": ["recoverable"]}, "envelope is"),
        ({"allow": 5}, "allow is 5"),
        ({"folder": 5}, "folder is 5"),
        ({"case": 5}, "case is 5"),
    ],
)
def test_a_class_attribute_that_cannot_be_is_named(values: dict[str, Any], said: str) -> None:
    with pytest.raises(MachineError, match=said) as caught:
        type("Mine", (ClusterMachine,), values)()
    assert str(caught.value).startswith("Mine: ")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda machine: machine.go_on("1s"), "a duration is '1s', allowed"),
        (lambda machine: machine.go_on(-1), "a duration is -1, allowed"),
        (lambda machine: machine.go_on(25 * 3_600_000_000), "a duration is 90000000000"),
        (lambda machine: machine.act("crash", True, node="b1"), "a duration is True"),
        (lambda machine: machine.strike("fsync-lie", -1, target="b1"), "a duration is -1"),
        (lambda machine: machine.strike("fsync-lie", target="b1", start="1s"), "start is '1s'"),
        (lambda machine: machine.strike("fsync-lie", target="b1", id="f"), "id is 'f'"),
        (lambda machine: machine.act("crash", node=None), "None is no node"),
    ],
)
def test_a_step_that_cannot_be_has_not_happened(
    call: Callable[[ClusterMachine], object], said: str
) -> None:
    machine = ClusterMachine()
    with pytest.raises((ValueError, ScenarioError), match=said):
        call(machine)
    assert not machine.live.scenario().steps
    assert not machine.live.scenario().faults


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"scenario": "a.toml"}, "scenario is 'a.toml', allowed are"),
        ({"folder": 5}, "folder is 5"),
        ({"nonsense": 1}, "there is no option 'nonsense', allowed are seed, "),
        ({"root": Path()}, "there is no option 'root'"),
        ({"seed": -1}, "seed is -1, allowed"),
        ({"seed": "7"}, "seed is '7', allowed"),
        ({"events_max": 0}, "events_max is 0, allowed"),
        ({"on_world": 5}, "on_world is 5, allowed"),
    ],
)
def test_a_wrong_call_of_check_is_no_failure_of_the_scenario(
    options: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        check(**{"scenario": {"schema": 1, "name": "a", "until": "1s"}, **options})


def test_variants_are_checked_one_by_one(tmp_path: Path) -> None:
    read = read_scenario(ROOT / "scenarios" / "kip101_divergence.toml")
    with pytest.raises(ValueError, match="has variants, allowed is one of high-watermark, fetch"):
        check(read)
    assert check(effective(read, "fetch"), folder=tmp_path).verdict.word == "passed"


def test_check_saves_what_fails(tmp_path: Path) -> None:
    read = read_scenario(ROOT / "scenarios" / "leader_crash_acks1.toml")
    assert check(read).verdict.word == "passed"
    document = {key: value for key, value in read.document.items() if key != "expect"}
    with pytest.raises(ScenarioFailed) as caught:
        check(document, name="mine", folder=str(tmp_path))
    assert caught.value.findings[0].identity == ("loss", "L0")
    assert caught.value.saved is not None
    assert str(caught.value).endswith(caught.value.saved.replay)
    assert (tmp_path / "mine" / "trace.jsonl").is_file()
