"""``run``: verdicts, documents, reports, folders, what goes wrong, and the second process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from sim.cli.exits import Exit
from sim.shell_words import command_line, shell_word
from sim.trace.reader import TraceReader, verify
from tests.sim.cli.tools import LOSING, ROOT, SMALL, VARIANTS, call, spawn, write

WRONG = SMALL.replace("== 10", "== 11")
ENDLESS = SMALL.replace('"3s"', '"20h"')


def _document(*words: str) -> dict[str, Any]:
    done = call("run", *words, "--json", "-q")
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["exit"] == done.exit_code
    return found


# Verdicts and reports ----------------------------------------------------------------------------


def test_a_run_that_passes_says_everything(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml")
    assert done.exit_code == 0, done.output
    assert done.stderr == ""
    text = done.stdout
    parts = (
        "small: Ten records, and nobody falls\n",
        "  small.toml, seed 0, leaderfall ",
        "  cluster: brokers 2\n",
        "truncation fetch",
        "  topic orders: replicas b1 b2\n",
        "\nWhat happened\n",
        "10 acked",
        "\nThe logs at the end\n",
        "b1 leader",
        "\nWhat was expected\n",
        "holds     1  at the end: leo('orders-0') == 10\n",
        "leo('orders-0') = 10\n",
        "because ten were sent\n",
        "\nVerdict: passed\n",
        "digest  ",
        "trace   runs/small/0/trace.jsonl\n",
        "brokers runs/small/0/{b1,b2}\n",
    )
    places = [text.find(part) for part in parts]
    assert -1 not in places, parts[places.index(-1)]
    assert places == sorted(places)
    assert text.endswith(
        "again   leaderfall run small.toml --seed 0\n"
        "page    leaderfall report runs/small/0 -o run.html\n"
        "step    leaderfall step runs/small/0\n"
    )


def test_a_run_that_fails_says_what_does_not_hold(folder: Path) -> None:
    write(folder, WRONG)
    done = call("run", "small.toml")
    assert done.exit_code == Exit.FAILED
    assert "FAILS     1  at the end: leo('orders-0') == 11" in done.stdout
    assert "leo('orders-0') = 10" in done.stdout
    assert "Verdict: failed\n  - expect 1 does not hold" in done.stdout


def test_a_loss_that_nothing_expects_fails_and_is_explained(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    done = call("run", "losing.toml")
    assert done.exit_code == Exit.FAILED
    text = " ".join(done.stdout.split())
    assert "acked-records-survive (NOT expected): 3 records lost" in text
    assert "What was lost NOT COVERED: L0 (acks=1 promises no more): 3 records" in text
    assert "b1 truncated the records" in text
    assert "served without them" in text
    assert "Why" not in text, "no rule is broken, and the loss is told where it is named"


def test_breaks_makes_the_loss_expected(folder: Path) -> None:
    write(folder, LOSING + '\n[[expect]]\nbreaks = "acked-records-survive"\n', "losing.toml")
    done = call("run", "losing.toml")
    assert done.exit_code == 0, done.output
    assert "acked-records-survive (expected): 3 records lost" in done.stdout


def test_a_budget_that_ends_is_inconclusive(folder: Path) -> None:
    write(folder, SMALL + "\n[[step]]\nwait = \"leo('orders-0') == 99\"\n")
    done = call("run", "small.toml", "-q", "--events-max", "500")
    assert done.exit_code == Exit.INCONCLUSIVE
    assert "small: inconclusive" in done.stdout
    assert "500 events are over" in done.stdout
    assert "\nagain   leaderfall run small.toml --seed 0 --events-max 500\n" in done.stdout


def test_a_budget_that_ends_with_the_last_event_of_boot_waits_for_the_cluster(folder: Path) -> None:
    write(folder, SMALL)
    call("run", "small.toml", "-q")
    lines = (folder / "runs/small/0/trace.jsonl").read_text().split("\n")[1:-2]
    events = [event for event in map(json.loads, lines) if "kind" in event]
    last = max(event["n"] for event in events if event["t"] <= 0)
    text = call("run", "small.toml", "-q", "--events-max", str(last - 1)).stdout
    assert f"{last - 1} events are over at 0s, and the run still waits for the cluster" in text


def test_quiet_is_one_line_a_run_that_passes(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    done = call("run", "small.toml", "-q")
    assert done.stdout == "small (one): passed\nsmall (Two of them): passed\n2 of 2 passed\n"


def test_several_runs_end_with_a_summary_and_the_worst_code(folder: Path) -> None:
    write(folder, SMALL, "a.toml")
    write(folder, WRONG.replace('"small"', '"wrong"'), "b.toml")
    done = call("run", "a.toml", "b.toml")
    assert done.exit_code == Exit.FAILED
    tail = done.stdout.split("\n")[-4:]
    assert tail[0].startswith("small  passed  ")
    assert tail[1].startswith("wrong  failed  ")
    assert tail[2] == "1 of 2 passed"


@pytest.mark.parametrize("width", [20, 40, 60, 200])
def test_a_report_fits_its_width(width: int, folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    done = call("run", "losing.toml", "--disk", "memory", env={"COLUMNS": str(width)})
    body = done.stdout.partition("\nVerdict")[0]
    words = [line for line in body.split("\n") if len(line) > width and " " in line.strip()]
    assert width < 40 or not words


def test_colour_comes_only_where_it_is_wanted(folder: Path) -> None:
    write(folder)
    words = ("run", "small.toml", "--disk", "memory")
    for color, more, is_colored in (
        ("auto", {}, False),
        ("auto", {"FORCE_COLOR": "1"}, False),
        ("never", {}, False),
        ("always", {}, True),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, True),
    ):
        done = call(*words, "--color", color, color=True, env=more)
        assert ("\x1b[" in done.stdout) == is_colored, (color, more)
    plain = call(*words, color=True).stdout
    assert not [each for each in plain if not each.isprintable() and each != "\n"]


def test_only_what_is_meant_has_a_colour(folder: Path) -> None:
    """A style given to a rich ``Text`` itself is the ground of all that is appended later."""
    write(folder, LOSING, "losing.toml")
    lines = call("run", "losing.toml", "--color", "always", color=True).stdout.split("\n")
    (killed,) = [line for line in lines if "killed;" in line]
    head, red = killed.split("\x1b[31m", 1)
    assert head.startswith("\x1b[2m")
    assert "\x1b[2" not in red
    listed = call("scenarios", "list", "--color", "always", color=True).stdout.split("\n")[0]
    assert listed.startswith("\x1b[1m")
    assert listed.count("\x1b[") == 2
    state = call("doctor", "--color", "always", color=True).stdout.split("\n")[0]
    assert state.count("\x1b[") == 2


def test_a_trace_without_events_has_no_story(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "--trace-level", "digest")
    assert done.exit_code == 0
    assert "What happened" not in done.stdout
    assert "keeps no events" in done.stdout


# What is asked for -------------------------------------------------------------------------------


def test_disk_and_level_change_no_digest(folder: Path) -> None:
    write(folder)
    digests = {
        _document("small.toml", "--disk", disk, "--trace-level", level)["digest"]
        for disk, level in (("real", "full"), ("memory", "events"), ("memory", "digest"))
    }
    assert len(digests) == 1


def test_the_seed_variant_and_values_of_the_command_line_win(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    found = _document(
        "small.toml", "--seed", "5", "--variant", "two-of-them", "--set", "cluster.brokers=3"
    )
    (run,) = found["runs"]
    assert (run["seed"], run["variant"]) == (5, "Two of them")
    assert run["options"]["brokers"] == 3
    assert run["folder"] == "runs/small/5/two-of-them"
    assert run["overrides"] == [["cluster.brokers", 3]]
    assert run["replay"] == (
        "leaderfall run small.toml --seed 5 --variant 'Two of them' --set cluster.brokers=3"
    )


def test_the_replay_line_gives_the_same_digest(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    first = _document("small.toml", "--seed", "9", "--variant", "one", "--disk", "memory")
    (run,) = first["runs"]
    words = run["replay"].split()
    again = _document(*words[2:])
    assert again["digest"] == first["digest"] == run["digest"]


def test_the_document_says_what_came_of_it(folder: Path) -> None:
    write(folder, WRONG)
    found = _document("small.toml")
    (run,) = found["runs"]
    assert (run["verdict"], run["exit"]) == ("failed", 1)
    assert run["expectations"][0]["values"] == {"leo('orders-0')": 10}
    assert run["expectations"][0]["holds"] is False
    assert run["reasons"]
    kept = json.loads((folder / run["folder"] / "result.json").read_text(encoding="utf-8"))
    assert kept["digest"] == run["digest"]
    assert kept == {key: value for key, value in run.items() if key != "folder"}


def test_with_json_people_read_standard_error(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "--json")
    json.loads(done.stdout)
    assert "Verdict: passed" in done.stderr


def test_several_runs_have_one_digest(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    both = _document("small.toml")
    assert len(both["runs"]) == 2
    assert both["digest"] not in [each["digest"] for each in both["runs"]]
    assert both["digest"] == _document("small.toml")["digest"]


def test_junit_has_a_case_a_run(folder: Path) -> None:
    write(folder, SMALL + VARIANTS, "a.toml")
    write(folder, WRONG, "b.toml")
    call("run", "a.toml", "b.toml", "-q", "--junit", "out.xml")
    root = ElementTree.parse(folder / "out.xml").getroot()
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "0")
    names = [case.get("name") for case in root.iter("testcase")]
    assert names == ["small (one), seed 0", "small (Two of them), seed 0", "small, seed 0"]
    (failure,) = root.iter("failure")
    assert "expect 1 does not hold" in str(failure.get("message"))


def test_junit_that_cannot_be_written_is_told(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "-q", "--junit", "no/such/folder.xml")
    assert done.exit_code == Exit.USAGE
    assert "no/such/folder.xml" in done.stderr


# Nothing runs where something is wrong -----------------------------------------------------------


@pytest.mark.parametrize(
    "words",
    [
        ("good.toml", "bad.toml"),
        ("bad.toml", "good.toml"),
        (".",),
        ("good.toml", "missing.toml"),
        ("good.toml", "--set", "cluster.brokers=0"),
        ("good.toml", "--set", "nothing"),
        ("good.toml", "--set", "=1"),
        ("good.toml", "--set", "cluster.brokers=__import__('os')"),
        ("good.toml", "--variant", "three"),
        ("good.toml", "--seed", "-1"),
        ("good.toml", "--seed", "99999999999999999999"),
        ("good.toml", "--seed", "x"),
        ("good.toml", "-q", "-v"),
        ("good.toml", "--disk", "none"),
        (),
    ],
)
def test_what_is_wrong_runs_nothing_and_writes_nothing(
    words: tuple[str, ...], folder: Path
) -> None:
    write(folder, SMALL, "good.toml")
    write(folder, SMALL.replace("orders-0", "order-0"), "bad.toml")
    done = call("run", *words)
    assert done.exit_code == Exit.USAGE
    assert done.stdout == ""
    assert done.stderr
    assert sorted(os.listdir(folder)) == ["bad.toml", "good.toml"]


def test_problems_of_files_and_command_line_are_told_together(folder: Path) -> None:
    write(folder, SMALL, "good.toml")
    write(folder, SMALL.replace("orders-0", "order-0"), "bad.toml")
    done = call("run", ".", "--set", "x", "--set", "cluster.brokers=0", "--variant", "v", "--json")
    assert "bad.toml:15" in done.stderr
    assert "--set x" in done.stderr
    assert 'good.toml has no variant "v"' in done.stderr
    assert "it has no variants at all: leave --variant out" in done.stderr
    found = json.loads(done.stdout)
    assert (found["exit"], found["digest"], found["runs"]) == (2, None, [])
    assert len(found["problems"]) == 4


def test_a_problem_of_all_variants_is_told_once(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    done = call("run", "small.toml", "--set", "cluster.brokers=0", "--json")
    assert "1 problem, nothing was run" in done.stderr
    assert len(json.loads(done.stdout)["problems"]) == 1


@pytest.mark.parametrize("out", ["/proc/nowhere", "small.toml", "small.toml/x", "a\0b", "x" * 300])
def test_a_folder_that_cannot_be_made_is_told(out: str, folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "--out", out)
    assert done.exit_code == Exit.USAGE
    assert "cannot be written" in done.stderr


# What breaks off ---------------------------------------------------------------------------------


def test_a_defect_keeps_the_trace_and_says_how_to_see_it_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> None:
        raise AssertionError("it was \x1b[31m not so")

    write(folder)
    monkeypatch.setattr("sim.running.scenario_run.verdict_of", fail)
    done = call("run", "small.toml")
    assert done.exit_code == Exit.INTERNAL
    assert "internal error: AssertionError: it was \\x1b[31m not so" in done.stdout
    assert "again   leaderfall run small.toml --seed 0" in done.stdout
    place = folder / "runs" / "small" / "0.error"
    assert "AssertionError" in (place / "traceback.txt").read_text(encoding="utf-8")
    assert len(list(TraceReader(place / "trace.jsonl"))) > 100
    assert json.loads((place / "result.json").read_text("utf-8"))["verdict"] == "error"
    assert not list(place.parent.glob(".running*"))


def test_other_files_go_on_behind_a_defect(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from sim.running import scenario_run

    verdict_of, calls = scenario_run.verdict_of, []

    def fail_once(*rest: Any) -> Any:
        calls.append(rest)
        if len(calls) == 1:
            raise ValueError("once")
        return verdict_of(*rest)

    write(folder, SMALL + VARIANTS)
    monkeypatch.setattr("sim.running.scenario_run.verdict_of", fail_once)
    done = call("run", "small.toml", "-q")
    assert done.exit_code == Exit.INTERNAL
    assert "small (Two of them): passed" in done.stdout
    assert "1 of 2 passed" in done.stdout


def test_a_full_disk_is_no_defect(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    write(folder)
    monkeypatch.setattr("sim.running.scenario_run.verdict_of", fail)
    done = call("run", "small.toml")
    assert done.exit_code == Exit.USAGE
    assert "No space left on device" in done.stderr


_INTERRUPTED_AT_500 = """
import os, signal
from sim.world import World
# Who starts the tests in the background may have had it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
step, left = World.step, [500]
def interrupt(world):
    left[0] -= 1
    if not left[0]:
        os.kill(os.getpid(), signal.SIGINT)
    return step(world)
World.step = interrupt
from sim.cli.main import main
main()
"""


def test_an_interrupt_leaves_a_readable_trace_and_runs_no_more(folder: Path) -> None:
    write(folder, ENDLESS + VARIANTS)
    done = subprocess.run(
        [sys.executable, "-c", _INTERRUPTED_AT_500, "run", "small.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == Exit.INTERRUPTED, done.stderr
    assert "Verdict: interrupted" in done.stdout
    assert done.stdout.endswith("0 of 1 passed, 1 not run\n")
    assert "Traceback" not in done.stdout + done.stderr
    place = folder / "runs" / "small" / "0.interrupted" / "one"
    found = verify(place / "trace.jsonl")
    assert not found.is_complete
    assert found.count > 100
    assert (place / "b1" / "orders-0").is_dir()
    shown = call("show", str(place), "--around", "100")
    assert shown.exit_code == 0
    assert "cut short" in shown.stderr


@pytest.mark.slow
def test_a_reader_that_goes_ends_nothing(folder: Path) -> None:
    write(folder, WRONG)
    line = f"{shell_word(sys.executable)} -m sim.cli run small.toml | head -n 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {line}"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "small: Ten records, and nobody falls\n"
    assert done.stderr == ""
    assert done.returncode == Exit.FAILED


@pytest.mark.slow
def test_a_stream_without_such_characters_gets_escapes(folder: Path) -> None:
    write(folder, LOSING, "losing.toml")
    done = spawn("run", "losing.toml", cwd=folder, env={"PYTHONIOENCODING": "ascii"})
    assert done.returncode == Exit.FAILED, done.stderr
    assert done.stdout.isascii()


# The second process ------------------------------------------------------------------------------


@pytest.mark.slow
def test_twice_is_the_same(folder: Path) -> None:
    write(folder)
    done = call("run", "small.toml", "--twice")
    assert done.exit_code == 0, done.output
    assert "twice   the same with PYTHONHASHSEED=1\n" in done.stdout
    assert sorted(os.listdir(folder / "runs" / "small")) == ["0", "latest"]


@pytest.mark.slow
def test_twice_names_the_first_event_that_differs(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sim.running import acting
    from sim.trace.kinds import Kind

    class Hashed(acting.Acting):
        """Tells a hash, which the other process does not have, and has not patched."""

        def do(self, *args: Any) -> Any:
            told = {"note": "hash", "value": hash("x")}
            self.world.trace.emit(self.world.now_us, "world", Kind.NOTE, (), told)
            return super().do(*args)

    write(folder)
    monkeypatch.setattr("sim.running.staging.Acting", Hashed)
    done = call("run", "small.toml", "--twice", "--json")
    assert done.exit_code == Exit.NOT_DETERMINISTIC, done.stderr
    assert "Verdict: not deterministic" in done.stderr
    assert "They differ first in event" in done.stderr
    second = json.loads(done.stdout)["runs"][0]["second"]
    assert second["folder"] == "runs/small/0.2"
    assert not second["is_same"]
    assert any('note="hash"' in line for line in second["difference"])


@pytest.mark.parametrize(("own", "other"), [(None, "1"), ("random", "1"), ("0", "1"), ("7", "8")])
def test_the_second_process_has_another_hash_seed(
    own: str | None, other: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def spy(words: list[str], *, env: dict[str, str], **_: Any) -> Any:
        seen.append(env["PYTHONHASHSEED"])
        return subprocess.CompletedProcess(words, 1, b"", b"")

    write(folder)
    if own is not None:
        monkeypatch.setenv("PYTHONHASHSEED", own)
    monkeypatch.setattr("sim.cli.twice.subprocess.run", spy)
    call("run", "small.toml", "--twice", "-q")
    assert seen == [other]


def test_a_second_run_that_breaks_off_is_a_defect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder)
    # Hides the package wherever it is installed.
    (folder / "broken" / "sim").mkdir(parents=True)
    (folder / "broken" / "sim" / "__init__.py").write_text("raise ImportError", "utf-8")
    monkeypatch.setattr("sim.cli.twice._python_path", lambda: str(folder / "broken"))
    done = call("run", "small.toml", "--twice", "-q")
    assert done.exit_code == Exit.INTERNAL
    assert "the second run ended with" in done.stdout


# Words for shells --------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    "text", ["a", "a b", "it's", "$x `y`", "\x1b[31m", "a\nb", "'\\\x01", "é", ""]
)
def test_a_shell_reads_the_words_that_were_meant(text: str) -> None:
    line = command_line(["printf", "%s", text])
    assert line.isprintable()
    done = subprocess.run(["bash", "-c", line], capture_output=True, check=True)
    assert done.stdout.decode("utf-8") == text
