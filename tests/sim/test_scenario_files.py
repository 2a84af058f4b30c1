"""The scenario files of the project: they pass, and what they say could be wrong.

Each variant runs once with mutants of all its expectations beside them: the same expression
negated, and with each of its integers off by one. None of them may hold. The names in ``breaks``
are judged anew without them, and with names of what was not violated.
"""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from sim.running import scenario_run
from sim.running.expectations import Expectation
from sim.running.scenario_run import Result, run_scenario
from sim.running.verdicts import ALIASES, PROMISES, verdict_of
from sim.scenario.effective import effective
from sim.scenario.expressions import expression
from sim.scenario.model import Expect, Scenario
from sim.scenario.names import VERDICT_NAMES, gather
from sim.scenario.reading import read_scenario
from sim.scenario_files import FOLDERS, scenario_files
from sim.trace.lines import Level

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "scenarios"


def name_of(file: Path) -> str:
    """``disks/lying_fsync``."""
    return file.relative_to(FOLDER).with_suffix("").as_posix()


FILES = list(scenario_files().values())
RUNS = [
    (name_of(file), variant.get("name"))
    for file in FILES
    for variant in tomllib.loads(file.read_text("utf-8")).get("variant", [{}])
]
OPPOSITE = {"at": "at", "at_end": "at_end", "always": "eventually", "eventually": "always"}

every_file = pytest.mark.parametrize("file", FILES, ids=name_of)
every_run = pytest.mark.parametrize(("name", "variant"), RUNS)


@cache
def scenario_of(name: str, variant: str | None) -> Scenario:
    return effective(read_scenario(FOLDER / f"{name}.toml"), variant, ())


# Mutants -----------------------------------------------------------------------------------------


class _OffByOne(ast.NodeTransformer):
    """Changes the integer that is the ``which``-th of an expression, from 0."""

    def __init__(self, which: int, by: int) -> None:
        self.left, self.by = which, by

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if node.value.__class__ is int:
            self.left -= 1
            if self.left == -1:
                return ast.Constant(node.value + self.by)
        return node


def off_by_one(text: str) -> Iterator[str]:
    """The expression with one integer changed, for each of them and both ways."""
    tree = ast.parse(text, mode="eval")
    count = sum(
        isinstance(node, ast.Constant) and node.value.__class__ is int for node in ast.walk(tree)
    )
    for which in range(count):
        for by in (1, -1):
            changed = _OffByOne(which, by).visit(ast.parse(text, mode="eval"))
            found = ast.unparse(changed)
            if not re.search(r"record\(.*, -1\)", found):
                yield found


def mutants(scenario: Scenario) -> list[Expect]:
    """What must not hold where the scenario's own expectations do."""
    names = gather(scenario.document)
    found: list[Expect] = []
    for expect in scenario.expects:
        if expect.that is None:
            continue
        text = expect.that.text
        changed = [(OPPOSITE[expect.form], f"not ({text})")]
        changed += [(expect.form, each) for each in off_by_one(text)]
        for form, each in changed:
            that = expression(each, names)
            found.append(evolve(expect, form=form, that=that, number=1000 + len(found)))
    return found


@cache
def run_with_mutants(name: str, variant: str | None) -> tuple[Result, Any]:
    """A run, and its judge."""
    scenario = scenario_of(name, variant)
    scenario = evolve(scenario, expects=(*scenario.expects, *mutants(scenario)))
    seen = []

    def keep(*args: Any) -> Any:
        seen.append(args)
        return verdict_of(*args)

    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(scenario_run, "verdict_of", keep)
        result = run_scenario(scenario, level=Level.EVENTS)
    return result, seen[0][1]


# The files ---------------------------------------------------------------------------------------


def test_there_are_scenarios_for_all_that_the_project_promises() -> None:
    assert {name_of(file) for file in FILES} >= {
        "controller_down",
        "idempotent_retry",
        "kip101_divergence",
        "kip101_lost_write",
        "kip279_fast_failover",
        "kip320_zombie_follower",
        "leader_crash_acks1",
        "min_isr_freeze",
        "partition_unclean",
        "planned_leader_change",
    }


@every_file
def test_a_file_has_its_name_a_title_a_picture_and_a_story(file: Path) -> None:
    text = file.read_text("utf-8")
    document = tomllib.loads(text)
    assert document["name"].replace("-", "_") == file.stem
    assert document["title"]

    header = text[: text.index("[cluster]")]
    comments = [line[1:].strip() for line in header.splitlines() if line.startswith("#")]
    assert any(line.startswith("offset ") for line in comments)
    assert sum(line.startswith("b1 ") for line in comments) >= 1
    assert len(" ".join(comments)) > 400
    assert all(len(line) <= 100 for line in header.splitlines() if line.startswith("#"))
    assert any(each.get("because") for each in document["expect"])


@every_file
def test_the_index_names_it(file: Path) -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    title = tomllib.loads(file.read_text("utf-8"))["title"]
    path = file.relative_to(FOLDER).as_posix()
    row = f"| [`{path}`]({path}) | {title} |"
    assert index.count(row) == 1
    folder = path.rpartition("/")[0]
    if folder:
        above = [line for line in index[: index.index(row)].splitlines() if line.startswith("#")]
        assert above[-1] == f"## {FOLDERS[folder]}"


def test_the_index_has_nothing_else() -> None:
    index = (FOLDER / "README.md").read_text("utf-8")
    links = re.findall(r"\(([a-z0-9_/]+\.toml)\)", index)
    assert sorted(links) == sorted(file.relative_to(FOLDER).as_posix() for file in FILES)
    assert [each for each in index.splitlines() if each[3:] in FOLDERS.values()] == [
        f"## {FOLDERS[each]}" for each in FOLDERS if (FOLDER / each).is_dir()
    ]


@every_file
def test_nothing_that_it_says_is_ignored(file: Path) -> None:
    scenario = read_scenario(file)
    assert not [each for each in scenario.expects if each.form == "sometimes"]
    assert scenario.sweep is None
    forms = {each.form for each in scenario.expects}
    assert "at_end" in forms
    assert forms & {"at", "eventually"}


# Verdicts ----------------------------------------------------------------------------------------


@every_run
def test_it_passes(name: str, variant: str | None) -> None:
    result, judge = run_with_mutants(name, variant)
    own = [each for each in result.expectations if each.number < 1000]
    found = verdict_of(scenario_of(name, variant), judge, own, result.failure)
    assert found.reasons == ()
    assert found.exit_code == 0
    assert all(each.holds for each in own if each.expect.that is not None)


@every_run
def test_no_expectation_holds_negated_or_with_a_number_off_by_one(
    name: str, variant: str | None
) -> None:
    result, judge = run_with_mutants(name, variant)
    scenario = scenario_of(name, variant)
    own = [each for each in result.expectations if each.number < 1000]
    changed = [each for each in result.expectations if each.number >= 1000]
    assert len(changed) >= len([each for each in own if each.expect.that is not None])
    for mutant in changed:
        assert mutant.holds is False, f"{mutant.expect.form}: {mutant.expect.that}"
        found = verdict_of(scenario, judge, [*own, mutant], result.failure)
        assert found.exit_code == 1


@every_run
def test_breaks_must_name_what_is_broken(name: str, variant: str | None) -> None:
    result, judge = run_with_mutants(name, variant)
    scenario = scenario_of(name, variant)
    own = [each for each in result.expectations if each.number < 1000]
    broken = {each.name for each in result.verdict.broken}
    intact = [each for each in VERDICT_NAMES if not broken & {each, *ALIASES.get(each, ())}]
    for at, each in enumerate(own):
        for breaks in each.expect.breaks:
            others = tuple(other for other in each.expect.breaks if other != breaks)
            replaced = _with_breaks(own, at, (*others, intact[0]))
            assert verdict_of(scenario, judge, replaced, None).exit_code == 1
    bare = [_without_promises(each) for each in own if each.expect.form != "allow"]
    assert verdict_of(scenario, judge, bare, None).exit_code == bool(result.verdict.lost)


def _without_promises(each: Expectation) -> Expectation:
    excuses = (*PROMISES, "committed-durability")
    names = tuple(name for name in each.expect.breaks if name not in excuses)
    return Expectation(evolve(each.expect, breaks=names), holds=each.holds)


@every_run
def test_allowances_must_fit_what_was_lost(name: str, variant: str | None) -> None:
    result, judge = run_with_mutants(name, variant)
    scenario = scenario_of(name, variant)
    own = [each for each in result.expectations if each.number < 1000]
    for at, each in enumerate(own):
        for one in each.expect.allow:
            lost = {lost.licence: lost.records for lost in result.verdict.lost}
            wrong = evolve(one, operator="==", count=lost.get(one.licence, 0) + 1)
            changed = Expectation(evolve(each.expect, allow=(wrong,)))
            mutant = [*own[:at], changed, *own[at + 1 :]]
            assert verdict_of(scenario, judge, mutant, None).exit_code == 1


def _with_breaks(own: list[Expectation], at: int, breaks: tuple[str, ...]) -> list[Expectation]:
    changed = Expectation(evolve(own[at].expect, breaks=breaks))
    return [*own[:at], changed, *own[at + 1 :]]


@pytest.mark.parametrize(
    ("name", "old", "new", "rule"),
    [
        ("kip101_lost_write", "high-watermark", "fetch", "leader-completeness"),
        ("kip101_divergence", "high-watermark", "fetch", "log-matching"),
        ("kip279_fast_failover", "kip-101", "kip-279", "log-matching"),
        ("kip279_fast_failover", "kip-101", "fetch", "log-matching"),
        ("kip320_zombie_follower", "without fences", "today", "log-matching"),
        ("min_isr_freeze", "without freeze", "today", "leader-completeness"),
    ],
)
def test_the_old_rule_breaks_what_the_new_one_keeps(
    name: str, old: str, new: str, rule: str
) -> None:
    names = set(ALIASES.get(rule, (rule,)))
    was, _ = run_with_mutants(name, old)
    now, _ = run_with_mutants(name, new)
    assert names & {each.name for each in was.verdict.broken if each.is_expected}
    assert {each.name for each in now.verdict.broken} <= set(PROMISES)


# Determinism -------------------------------------------------------------------------------------

# The licences are a hundred variants of a few stories: the last one of each stands for them.
_PROGRAM = """
import sys, tempfile
from pathlib import Path
from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import read_scenario
from sim.scenario_files import scenario_files
for file in scenario_files().values():
    scenario = read_scenario(file)
    variants = [each.name for each in scenario.variants] or [None]
    for variant in variants[-1:] if file.parent.name == "licences" else variants:
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) if sys.argv[1] == "real" else None
            level = "full" if root is None else "digest"
            result = run_scenario(effective(scenario, variant, ()), root=root, level=level)
        print(file.stem, variant, result.verdict.word, result.trace.count, result.digest)
"""


@pytest.mark.slow
def test_fresh_processes_real_files_and_levels_agree() -> None:
    said = []
    for hash_seed, disk in (("1", "memory"), ("4242", "real")):
        done = subprocess.run(
            [sys.executable, "-c", _PROGRAM, disk],
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said.append(done.stdout.splitlines())
    assert said[0] == said[1]
    assert {each.split()[0] for each in said[0]} == {file.stem for file in FILES}
    assert len(said[0]) > len(FILES)
    assert all(" passed " in line for line in said[0])
