"""``leaderfall shrink``: files, folders and variants; what is written; what cannot be asked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sim.cli import shrink as shrink_module
from sim.cli import shrunk_cases
from sim.cli.exits import Exit
from sim.running.findings import Examined, examine
from sim.scenario.reading import parse_scenario
from tests.sim.cli.tools import SMALL, VARIANTS, call, spawn, write

LOSING = """schema = 1
name   = "losing"
title  = "One copy, never synced, that a power cut takes"
until  = "20s"

[cluster]
brokers   = 2
writeback = "off"

[[topic]]
name     = "orders"
replicas = [["b1"]]

[[step]]
at      = "1s"
produce = { to = "orders-0", count = 3 }

[[step]]
at      = "3s"
crash   = { node = "leader:orders-0", how = "power" }

[[step]]
at      = "4s"
start   = "b1"
"""
BOTH = """
[[variant]]
name = "one"
set  = { "cluster.brokers" = 1 }

[[variant]]
name = "two"
set  = { "cluster.brokers" = 2 }
"""
ONLY_ONE = """
[[expect]]
variant = "synced"
allow   = ["L2"]

[[variant]]
name = "unsynced"

[[variant]]
name = "synced"
"""
CASE = Path(".leaderfall/failures/losing-shrunk/scenario.toml")


def _shrunk(*words: str) -> dict[str, Any]:
    done = call("shrink", *words, "--json")
    assert done.exit_code == Exit.OK, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _left(folder: Path) -> list[str]:
    """What a command has written."""
    return sorted(str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file())


# Results -----------------------------------------------------------------------------------------


def test_a_failing_file_becomes_a_small_one(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    done = call("shrink", "losing.toml")
    assert done.exit_code == Exit.OK, done.output
    assert "losing, seed 0: loss L2" in done.stdout
    assert "3 -> 2" in done.stdout
    assert "Run again in memory, on real files, in a fresh process: the same." in done.stdout
    assert f"replay  leaderfall run {CASE}" in done.stdout
    assert "\r" not in done.output
    text = CASE.read_text(encoding="utf-8")
    head, _, rest = text.partition("\n\n")
    assert all(line.startswith("# ") for line in head.split("\n"))
    assert "# loss L2" in head
    assert "losing.toml, seed 0" in head
    assert f"# leaderfall run {CASE}" in head
    found = examine(parse_scenario(rest), level="digest")
    assert found.identities == {("loss", "L2")}
    assert call("run", str(CASE), "-q").exit_code == Exit.FAILED
    assert CASE.with_name("trace.jsonl").is_file()
    assert not [each for each in _left(folder) if ".saving" in each]


def test_json_says_all_of_it(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    found = _shrunk("losing.toml", "--seed", "5")
    assert found["kept"]["kind"] == "loss"
    assert found["seed"] == 5
    assert found["before"]["steps"] == 3
    assert found["after"]["steps"] == 2
    assert found["after"]["brokers"] == 1
    assert found["status"] == "minimal"
    assert found["verified"] == ["in memory", "on real files", "in a fresh process"]
    assert found["problems"] == []
    assert found["file"] == str(CASE)
    assert found["exit"] == 0
    assert "seed = 5" in CASE.read_text(encoding="utf-8")


def test_a_run_folder_and_its_trace_are_shrunk_as_they_ran(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--seed", "3")
    texts = []
    for name in ("runs/losing/3", "runs/losing/3/trace.jsonl"):
        _shrunk(name)
        texts.append(CASE.read_text(encoding="utf-8").partition("\n\n")[2])
    assert texts[0] == texts[1]
    assert "seed = 3" in texts[0]


def test_an_output_file_is_written_once(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    assert _shrunk("losing.toml", "-o", "small.toml")["file"] == "small.toml"
    assert _left(folder) == ["losing.toml", "small.toml"]
    before = (folder / "small.toml").read_bytes()
    done = call("shrink", "losing.toml", "-o", "small.toml")
    assert done.exit_code == Exit.USAGE
    assert "is there already" in done.stderr
    assert (folder / "small.toml").read_bytes() == before


def test_the_default_file_is_replaced(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    first, second = _shrunk("losing.toml"), _shrunk("losing.toml", "--seed", "1")
    assert first["file"] == second["file"]
    assert "seed = 1" in CASE.read_text(encoding="utf-8")
    assert _shrunk(str(CASE))["after"]["steps"] == 2


def test_an_override_is_part_of_it(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    _shrunk("losing.toml", "--set", "cluster.brokers=3")
    assert "# with --set cluster.brokers=3" in CASE.read_text(encoding="utf-8")


# Which one ---------------------------------------------------------------------------------------


def test_of_several_variants_the_one_that_fails_is_meant(folder: Path) -> None:
    write(folder, LOSING + ONLY_ONE, "losing.toml")
    assert _shrunk("losing.toml")["variant"] == "unsynced"


def test_of_several_failing_variants_one_must_be_named(folder: Path) -> None:
    write(folder, LOSING + BOTH, "losing.toml")
    done = call("shrink", "losing.toml")
    assert done.exit_code == Exit.USAGE
    assert "Several variants fail; --variant names one." in done.stderr
    assert "one, two" in done.stderr
    assert _left(folder) == ["losing.toml"]
    assert _shrunk("losing.toml", "--variant", "two")["variant"] == "two"


def test_another_finding_can_be_kept(folder: Path) -> None:
    write(folder, LOSING + '[[expect]]\nat_end = "not alive(b1)"\n', "losing.toml")
    assert _shrunk("losing.toml")["kept"]["kind"] == "loss"
    kept = _shrunk("losing.toml", "--keep", "at_end: not alive(b1)")
    assert kept["kept"]["kind"] == "expectation"
    assert kept["after"]["steps"] == 0
    done = call("shrink", "losing.toml", "--keep", "L\x1b4")
    assert done.exit_code == Exit.USAGE
    assert 'There are "L2" (loss), "at_end: not alive(b1)" (expectation).' in done.stderr
    assert "\x1b" not in done.stderr


def test_what_is_excused_is_what_is_left_where_nothing_else_fails(folder: Path) -> None:
    found = _shrunk("kip101_lost_write", "--variant", "high-watermark", "-o", "small.toml")
    assert found["strict"]
    assert found["kept"]["kind"] == "invariant"
    assert call("run", "small.toml", "-q").exit_code == Exit.OK
    assert found["replay"] == "leaderfall run small.toml --strict"
    done = call("run", "small.toml", "--strict")
    assert done.exit_code == Exit.FAILED
    assert "(NOT expected): violated at" in done.stdout
    assert "(expected): violated at" in call("run", "small.toml").stdout


# Nothing to shrink -------------------------------------------------------------------------------


def test_a_scenario_that_does_not_fail_is_left_alone(folder: Path) -> None:
    write(folder)
    done = call("shrink", "small.toml")
    assert done.exit_code == Exit.USAGE
    assert "small does not fail: there is nothing to shrink." in done.stderr
    write(folder, SMALL + VARIANTS)
    assert "in any of its 2 variants" in call("shrink", "small.toml", "--json").stderr
    assert _left(folder) == ["small.toml"]


def test_a_run_without_an_end_says_nothing(folder: Path) -> None:
    write(folder)
    done = call("shrink", "small.toml", "--events-max", "30")
    assert done.exit_code == Exit.INCONCLUSIVE
    assert _left(folder) == ["small.toml"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("no-such.toml",), "there is no such file"),
        ((".",), "has no result.json"),
        (("losing.toml", "--variant", "x"), "has no variant"),
        (("losing.toml", "--set", "x=1"), "is no path"),
        (("losing.toml", "--runs", "0"), "0 is not in the range"),
        (("losing.toml", "-o", "no/such.toml"), 'There is no folder "no"'),
        (("losing.toml", "-o", "."), "is there already"),
        (("losing.toml", "-o", "a\0b"), "is no name of a file"),
        (("losing.toml", "-o", "x" * 300), "is no name of a file"),
        (("\x1b[31m",), "there is no such file"),
    ],
)
def test_bad_usage_runs_nothing(folder: Path, words: tuple[str, ...], said: str) -> None:
    place = folder / "in"
    place.mkdir()
    if words != (".",):
        write(folder, LOSING, "losing.toml")
    done = call("shrink", *words)
    assert done.exit_code == Exit.USAGE
    if words != (".",):
        assert said in done.stderr
    assert not (folder / ".leaderfall").exists()
    assert all(line.isprintable() for line in done.output.split("\n"))


def test_a_wrong_file_is_refused_as_in_run(folder: Path) -> None:
    write(folder, LOSING.replace("brokers   = 2", "brokers   = 0"), "losing.toml")
    done = call("shrink", "losing.toml", "--json")
    assert done.exit_code == Exit.USAGE
    assert json.loads(done.stdout)["exit"] == Exit.USAGE


def test_a_folder_that_cannot_be_written_is_told(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    (folder / ".leaderfall").write_text("a file", encoding="utf-8")
    done = call("shrink", "losing.toml")
    assert done.exit_code == Exit.USAGE
    assert "cannot be written" in done.stderr


# How it ends -------------------------------------------------------------------------------------


def test_the_budget_ends_it_with_a_file(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    done = call("shrink", "losing.toml", "--runs", "12")
    assert done.exit_code == Exit.INCONCLUSIVE
    assert "The budget of runs ended first" in done.stdout
    assert "did not come to its end" in CASE.read_text(encoding="utf-8")


def test_an_interrupt_leaves_a_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sim.cli.shrink_report import Progress

    def interrupts(self: Progress, trials: Any) -> None:
        if trials.runs == 12:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "tell", interrupts)
    write(folder, LOSING, "losing.toml")
    done = call("shrink", "losing.toml")
    assert done.exit_code == Exit.INTERRUPTED
    assert "Interrupted" in done.stdout
    found = examine(parse_scenario(CASE.read_text(encoding="utf-8")), level="digest")
    assert ("loss", "L2") in found.identities


def test_a_result_that_differs_when_it_is_run_again_is_told(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shrunk_cases, "examine", lambda *_, **__: Examined((), None))
    write(folder, LOSING, "losing.toml")
    done = call("shrink", "losing.toml")
    assert done.exit_code == Exit.NOT_DETERMINISTIC
    assert "Run again, it differs: in memory it shows nothing." in done.stdout


def test_a_run_folder_of_other_code_is_refused(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q", "--trace-level", "digest")
    path = folder / "runs/losing/0/result.json"
    document = json.loads(path.read_bytes()) | {"digest": "0" * 32}
    path.write_text(json.dumps(document), encoding="utf-8")
    (folder / "runs/losing/0/trace.jsonl").unlink(missing_ok=True)
    done = call("shrink", "runs/losing/0")
    assert done.exit_code == Exit.NOT_DETERMINISTIC
    assert "cannot be made again" in done.stderr


def test_another_process_with_another_hash_seed_writes_the_same(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    texts = []
    for hash_seed in ("1", "2"):
        done = spawn("shrink", "losing.toml", cwd=folder, env={"PYTHONHASHSEED": hash_seed})
        assert done.returncode == Exit.OK, done.stderr
        assert done.stderr == ""
        texts.append((folder / CASE).read_text(encoding="utf-8"))
    assert texts[0] == texts[1]


def test_the_exit_codes_are_documented() -> None:
    text = call("shrink", "--help").output
    for code in ("0 ", "2 ", "3 ", "4 ", "70 ", "130 "):
        assert f"\n    {code}" in text
    assert shrink_module.command.name == "shrink"
