"""``leaderfall run --liveness``, the table ``[liveness]``, and what is said of both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from sim.scenario.effective import effective
from sim.scenario.model import Liveness
from sim.scenario.schema import schema
from tests.sim.cli.tools import call
from tests.sim.running.scenarios import text_of
from tests.sim.scenario.texts import read, said

PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 10 }'
CRASH = 'at = "3s"; crash = { node = "all" }'
WRITER = '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders"\nrate = 10\n'


def run(folder: Path, *options: str, more: str = "") -> Result:
    file = folder / "small.toml"
    file.write_text(text_of(PRODUCE, CRASH, until="5s", more=more), encoding="utf-8")
    return call("run", str(file), "--out", str(folder / "runs"), "--color", "never", *options)


def document(folder: Path) -> dict[str, Any]:
    (found,) = sorted((folder / "runs").rglob("result.json"))
    whole: dict[str, Any] = json.loads(found.read_text(encoding="utf-8"))
    return whole


# The command -----------------------------------------------------------------------------------


def test_the_option_asks_a_file_that_does_not(tmp_path: Path) -> None:
    done = run(tmp_path, "--liveness")
    assert done.exit_code == 0, done.output
    assert "Whether it recovers\n  - converged 10.2 s behind the end of all faults" in done.output
    assert "--liveness" in done.output.split("again")[-1]
    found = document(tmp_path)
    assert found["liveness"]["outcome"] == "converged"
    assert found["liveness"]["core"] == ["c1", "b1", "b2", "b3"]


def test_without_it_nothing_is_asked(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert "recovers" not in done.output
    assert document(tmp_path)["liveness"] is None


def test_real_files_memory_and_no_question_give_one_digest(tmp_path: Path) -> None:
    digests = set()
    for at, options in enumerate((("--liveness",), ("--liveness", "--disk", "memory"), ())):
        folder = tmp_path / str(at)
        folder.mkdir()
        assert run(folder, *options).exit_code == 0
        digests.add(document(folder)["digest"])
    assert len(digests) == 1


def test_a_run_twice_is_the_same(tmp_path: Path) -> None:
    done = run(tmp_path, "--liveness", "--twice")
    assert done.exit_code == 0, done.output
    assert "the same with PYTHONHASHSEED" in done.output


def test_what_may_not_recover_is_told_with_its_culprits(tmp_path: Path) -> None:
    table = '[liveness]\ncore = "drawn"\ndemand = "unavailable"\n'
    file = tmp_path / "small.toml"
    file.write_text(
        text_of(PRODUCE, CRASH, until="25s", more=table).replace(
            'replicas = [["b1", "b2", "b3"]]',
            'replicas = [["b1", "b2", "b3"]]\nconfig = { "min.insync.replicas" = 2 }',
        ),
        encoding="utf-8",
    )
    done = call("run", str(file), "--out", str(tmp_path / "runs"), "--color", "never")
    assert done.exit_code == 0, done.output
    words = " ".join(done.output.split())
    assert "core: c1, b1; faults of others stay - unavailable, licensed: orders-0 needs 2" in words
    assert "b2 ended (process) (#" in words
    (proof,) = document(tmp_path)["liveness"]["unavailable"]
    assert proof["kind"] == "min-isr-unreachable"
    assert all(each["event"] for each in proof["culprits"])


def test_what_fails_the_run_is_among_its_reasons(tmp_path: Path) -> None:
    done = run(tmp_path, more='[liveness]\ndemand = "unavailable"\n')
    assert done.exit_code == 1
    assert "- liveness: demanded is a proof that the cluster may not recover" in done.output


def test_a_run_that_ends_early_says_that_it_was_not_asked(tmp_path: Path) -> None:
    wait = '[[step]]\nwait = "leo(\'orders-0\') == 77"\nwithin = "1s"\n'
    done = run(tmp_path, "--liveness", more=wait)
    assert done.exit_code == 1
    assert "not asked, since the run ended early" in done.output


# The table -------------------------------------------------------------------------------------


def test_keys_have_defaults() -> None:
    assert read("").liveness is None
    assert read("[liveness]\n").liveness == Liveness()
    found = read('[liveness]\nwithin = "5s"\ncore = "drawn"\ndemand = "unavailable"\n').liveness
    assert found == Liveness(within_us=5_000_000, core="drawn", demand="unavailable")


def test_set_turns_it_on_and_variants_may() -> None:
    variant = '[[variant]]\nname = "v"\nset = { "liveness.core" = "drawn" }\n'
    scenario = read(variant)
    assert effective(scenario, None).liveness is None
    assert effective(scenario, "v").liveness == Liveness(core="drawn")
    found = effective(scenario, "v", [("liveness.within", "3s")]).liveness
    assert found == Liveness(core="drawn", within_us=3_000_000)


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ('core = "half"', 'unknown value "half"'),
        ('demand = "yes"', 'unknown value "yes"'),
        ('within = "0s"', "0s"),
        ("within = 5", "5 is no duration"),
        ("metastability = 1", "1 is neither true nor false"),
        ('until = "5s"', 'unknown key "until"'),
        ("metastability = true", "metastability needs a [[workload]] of a producer without stop"),
    ],
)
def test_what_is_wrong_is_named(table: str, text: str) -> None:
    (found,) = said(f"[liveness]\n{table}\n")
    assert text in found


@pytest.mark.parametrize("more", ['stop = "9s"\n', 'acks = "0"\n'])
def test_metastability_needs_somebody_who_writes_and_is_answered(more: str) -> None:
    assert read(f"{WRITER}[liveness]\nmetastability = true\n").liveness == Liveness(
        metastability=True
    )
    (found,) = said(f"{WRITER}{more}[liveness]\nmetastability = true\n")
    assert found.startswith("metastability needs")


def test_metastability_and_a_demand_to_be_unavailable_exclude_each_other() -> None:
    table = '[liveness]\nmetastability = true\ndemand = "unavailable"\n'
    (found,) = said(WRITER + table)
    assert found == 'metastability goes with demand = "converge"'


def test_the_schema_and_explain_know_it() -> None:
    properties = schema()["properties"]["liveness"]["properties"]
    assert sorted(properties) == ["core", "demand", "metastability", "within"]
    done = call("explain", "liveness")
    assert done.exit_code == 0
    assert "metastability" in done.output
