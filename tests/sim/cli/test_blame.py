"""``leaderfall blame``: folders, traces and files; what cannot be asked; exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sim.cli.exits import Exit
from tests.sim.cli.tools import LOSING, SMALL, VARIANTS, call, write

FOLDER = "runs/losing/0"
TWO_CUTS = """schema = 1
name   = "two-cuts"
until  = "20s"

[cluster]
writeback = "off"

[[topic]]
name     = "orders"
replicas = [["b1"]]

[[step]]
at      = "1s"
produce = { to = "orders-0", count = 3, acks = "1" }

[[step]]
id      = "one"
at      = "3s"
crash   = { node = "b1", how = "power" }

[[step]]
at      = "4s"
start   = "b1"

[[step]]
id      = "two"
at      = "4.5s"
crash   = { node = "b1", how = "power" }

[[step]]
at      = "5s"
start   = "b1"
"""


@pytest.fixture
def ran(folder: Path) -> Path:
    """A run folder with a loss."""
    write(folder, LOSING, "losing.toml")
    call("run", "losing.toml", "-q")
    assert (folder / FOLDER / "scenario.toml").read_text(encoding="utf-8") == LOSING
    return folder / FOLDER


def _answer(*words: str) -> dict[str, Any]:
    done = call("blame", *words, "--json")
    assert done.exit_code == Exit.OK, done.output
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _edit(place: Path, **changes: Any) -> None:
    path = place / "result.json"
    document = json.loads(path.read_bytes()) | changes
    path.write_text(json.dumps(document), encoding="utf-8")


# Answers -----------------------------------------------------------------------------------------


def test_a_run_folder_its_trace_and_the_file_have_the_same_answer(ran: Path) -> None:
    answers = [_answer(each) for each in (FOLDER, f"{FOLDER}/trace.jsonl", "losing.toml")]
    assert answers[0] == answers[1] == answers[2]
    found = answers[0]
    assert [each["name"] for each in found["parts"]] == ["step 3"]
    assert [each["name"] for each in found["enough_alone"]] == ["step 3", "lag"]
    assert (found["status"], found["target"]["kind"], found["exit"]) == ("found", "loss", 0)
    assert found["slice"][-1]["n"] == found["target"]["event"]


def test_the_text_says_what_did_what_and_when_and_where_to_look(ran: Path) -> None:
    text = call("blame", "runs/losing/latest").output
    head, _, rest = text.partition("How it came about")
    words = " ".join(head.split())
    assert words.startswith("losing, seed 0, at #")
    assert "without offsets 0..2 of orders-0" in words
    assert "To blame is step 3 (crash b1; #" in words
    assert 'Leaving out another one alone prevents it, too: "lag" (cut from b1' in words
    lines = rest.strip().split("\n")
    assert 10 <= len(lines) <= 30
    event = words.partition("#")[2].partition(":")[0]
    assert lines[-1] == f"open    leaderfall step runs/losing/latest --at {event}"


def test_nothing_lost_is_no_error(folder: Path) -> None:
    write(folder)
    done = call("blame", "small.toml")
    assert done.exit_code == Exit.OK
    assert done.output == (
        "small, seed 0: nothing to blame: no rule is broken and no record is lost in this run.\n"
    )
    assert _answer("small.toml")["status"] == "nothing"


def test_a_violation_is_asked_about_by_name_number_or_alias(folder: Path) -> None:
    words = ("min_isr_freeze", "--variant", "without freeze", "--violation")
    one, other = (_answer(*words, each) for each in ("quorum-superset", "I18"))
    assert one == other
    assert one["rules_off"] == [{"what": "guard hw-freeze", "with_it_on": "does not happen"}]
    text = " ".join(call("blame", *words, "I18").output.split())
    assert "The guard hw-freeze is off: with it back this does not happen." in text
    words = ("kip101_divergence", "--variant", "high-watermark", "--violation", "log-matching")
    assert _answer(*words)["target"]["violation"]["check"] == "committed-log-matching"


def test_two_power_cuts_are_blamed_together(folder: Path) -> None:
    write(folder, TWO_CUTS, "cuts.toml")
    found = _answer("cuts.toml")
    assert [each["name"] for each in found["parts"]] == ["one", "two"]
    assert (found["is_smallest"], found["enough_alone"]) == (True, [])
    text = " ".join(call("blame", "cuts.toml").output.split())
    assert 'To blame are, together, "one" (crash b1, how power; #' in text
    assert "Each is needed" in text


def test_seed_and_values_of_a_file_are_taken(ran: Path) -> None:
    found = _answer("losing.toml", "--seed", "5", "--set", "cluster.truncation=kip-279")
    assert found["seed"] == 5
    assert found["rules_off"][0]["what"] == "truncation kip-279"


def test_a_run_with_overrides_is_made_again_with_them(ran: Path) -> None:
    call("run", "losing.toml", "-q", "--seed", "4", "--set", "topic.orders:min.insync.replicas=1")
    call("run", "losing.toml", "-q", "--seed", "4", "--set", "cluster.truncation=kip-279")
    assert _answer("runs/losing/4.2")["rules_off"][0]["what"] == "truncation kip-279"
    assert _answer("runs/losing/4")["rules_off"] == []


# Budget ------------------------------------------------------------------------------------------


def test_a_budget_that_ends_is_exit_code_3(ran: Path) -> None:
    done = call("blame", FOLDER, "--budget", "1")
    assert done.exit_code == Exit.INCONCLUSIVE
    assert "The budget of 1 runs ended before everything was tried" in " ".join(done.output.split())


# What cannot be asked ----------------------------------------------------------------------------


def _refused(*words: str, code: int = Exit.USAGE) -> str:
    done = call("blame", *words)
    assert done.exit_code == code, done.output
    assert not done.stdout
    return done.stderr


def test_a_folder_of_an_older_version_names_the_file(ran: Path) -> None:
    (ran / "scenario.toml").unlink()
    text = _refused(FOLDER)
    assert "has no scenario.toml: an older Leaderfall wrote it" in text
    assert "leaderfall blame losing.toml --seed 0" in text


def test_a_scenario_that_was_changed_in_the_folder_is_refused(ran: Path) -> None:
    (ran / "scenario.toml").write_text(LOSING + "\n", encoding="utf-8")
    assert "is not the file that ran: it was changed since" in _refused(FOLDER)


def test_a_run_that_comes_out_otherwise_is_exit_code_4(ran: Path) -> None:
    digest = "0" * 32
    _edit(ran, digest=digest, leaderfall="0.0.1")
    (ran / "trace.jsonl").unlink()
    text = _refused(FOLDER, code=Exit.NOT_DETERMINISTIC)
    assert f"its digest is {digest}, now it is " in text
    assert "leaderfall 0.0.1 made it, this is " in text
    _edit(ran, leaderfall=json.loads(call("run", "losing.toml", "--json").stdout)["leaderfall"])
    assert "was its code changed since?" in _refused(FOLDER, code=Exit.NOT_DETERMINISTIC)


def test_a_trace_that_was_cut_short_is_refused(ran: Path) -> None:
    path = ran / "trace.jsonl"
    path.write_bytes(path.read_bytes()[:-40])
    assert "was cut short" in _refused(f"{FOLDER}/trace.jsonl")
    path.write_bytes(b'{"leaderfall":1')
    assert "trace.jsonl:1: no whole line" in _refused(FOLDER)


def test_a_trace_that_cannot_be_opened_is_refused(ran: Path) -> None:
    (ran / "trace.jsonl").unlink()
    (ran / "trace.jsonl").mkdir()
    assert 'trace.jsonl" cannot be read: [Errno 21]' in _refused(FOLDER)


def test_trace_and_result_of_two_runs_are_refused(ran: Path) -> None:
    _edit(ran, digest="0" * 32)
    assert "are of two runs: their digests differ" in _refused(FOLDER)


def test_a_trace_alone_is_refused(ran: Path, folder: Path) -> None:
    (folder / "other.jsonl").write_bytes((ran / "trace.jsonl").read_bytes())
    (folder / "noname").write_bytes((ran / "trace.jsonl").read_bytes())
    for name in ("other.jsonl", "noname"):
        assert "lies in no run folder" in _refused(name)


def test_a_run_that_broke_off_is_refused(ran: Path) -> None:
    _edit(ran, digest=None, verdict="interrupted")
    assert "broke off (interrupted): it has no verdict" in _refused(FOLDER)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "cannot be read"),
        ("[]", "is no result of a run"),
        ("{", "cannot be read"),
        ("[" * 100_000, "cannot be read"),
        ('{"digest": "x"}', "is not the file that ran"),
    ],
)
def test_a_result_that_is_none_is_refused(ran: Path, text: str, said: str) -> None:
    (ran / "result.json").write_text(text, encoding="utf-8")
    assert said in _refused(FOLDER)


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": "x"},
        {"seed": -1},
        {"seed": 2**63},
        {"overrides": 3},
        {"overrides": [["a"]]},
        {"variant": 7},
    ],
)
def test_a_result_with_other_values_is_refused(ran: Path, changes: dict[str, Any]) -> None:
    _edit(ran, **changes)
    assert "does not say what ran" in _refused(FOLDER)


def test_folders_that_are_no_runs_say_what_they_have(ran: Path, folder: Path) -> None:
    assert "is no run folder: it has no result.json" in _refused("runs/losing/..")
    assert "Runs in it: 0, latest." in _refused("runs/losing")
    (folder / "empty").mkdir()
    assert "is no run folder" in _refused("empty")
    assert "there is no such file" in _refused("nowhere")
    assert "is no name of a file" in _refused("a\0b") or "cannot be read" in _refused("a\0b")


def test_options_of_files_are_refused_for_runs(ran: Path) -> None:
    text = _refused(FOLDER, "--seed", "3", "--set", "a=b")
    assert "--seed and --set go with a scenario file" in text


def test_a_file_with_variants_needs_one(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    assert "There are one, Two of them." in _refused("small.toml")
    assert "nothing to blame" in call("blame", "small.toml", "--variant", "one").output


def test_a_wrong_file_is_refused_as_by_run(folder: Path) -> None:
    write(folder, SMALL.replace("brokers", "brokrs"))
    assert call("blame", "small.toml").exit_code == Exit.USAGE
    assert "brokrs" in _refused("small.toml")


def test_what_is_not_there_is_told_with_what_is(ran: Path) -> None:
    assert '"I7" is not violated; violated are: none' in _refused(FOLDER, "--violation", "I7")
    text = _refused(FOLDER, "--loss", "other-0")
    assert '"other-0" has lost nothing; partitions with losses: orders-0' in text
    text = _refused(FOLDER, "--loss", "orders-0", "--violation", "I7")
    assert "exclude each other" in text
