"""Scenario files as tests: what is collected, under which ids, and what a failing one says."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import pytest

from sim.pytest_plugin.files import is_scenario
from sim.running import findings
from tests.plugin.projects import SCENARIO, VARIANTS, Project

pytest_plugins = ["pytester"]

LISTED = 'leaderfall_scenarios = ["scenarios"]\n'


@pytest.fixture
def two_files(project: Project) -> Project:
    """One good scenario with variants, one that fails, and TOML files of others."""
    project.ini(LISTED)
    project.write("scenarios/good.toml", SCENARIO.format(name="good", acked=3) + VARIANTS)
    project.write("scenarios/deep/bad.toml", SCENARIO.format(name="bad", acked=4))
    project.write("scenarios/pyproject.toml", '[project]\nname = "x"\nschema = 1\n')
    project.write("scenarios/rust.toml", 'name = "x"\n[package]\nversion = "1"\n')
    project.write("scenarios/broken.toml", 'name = "x"\n[[[\n')
    project.write("scenarios/schema.toml", "schema = 1\n")
    project.write("other/elsewhere.toml", SCENARIO.format(name="elsewhere", acked=3))
    project.write("tests/test_a.py", "def test_a():\n    pass\n")
    return project


def test_variants_are_items_behind_the_projects_own_tests(two_files: Project) -> None:
    result = two_files.run("--collect-only", "-q")
    assert result.outlines[:4] == [
        "tests/test_a.py::test_a",
        "scenarios/deep/bad.toml::bad",
        "scenarios/good.toml::three",
        "scenarios/good.toml::five brokers",
    ]
    assert "4 tests collected" in str(result.stdout)


def test_they_run_and_one_may_be_chosen(two_files: Project) -> None:
    two_files.run("-k", "not bad").assert_outcomes(passed=3, deselected=1)
    two_files.run("scenarios/good.toml::five brokers").assert_outcomes(passed=1)
    two_files.run("tests").assert_outcomes(passed=1)


def test_a_failing_one_tells_reasons_logs_and_how_to_run_it_again(two_files: Project) -> None:
    result = two_files.run("scenarios/deep")
    result.assert_outcomes(failed=1)
    text = str(result.stdout)
    assert "- expectation: does not hold: at: acked('orders-0') == 4" in text
    assert re.search(r"b1 leader +0+\|\]  HW 3, LEO 3", text)
    assert "Traceback" not in text
    assert "sim/pytest_plugin" not in text
    (folder,) = (each for each in two_files.saved() if "/" not in each)
    file = f".leaderfall/failures/{folder}/scenario.toml"
    assert f"replay    leaderfall run {file} --seed 0" in text
    assert two_files.saved()[1:] == [f"{folder}/scenario.toml", f"{folder}/trace.jsonl"]
    assert "= leaderfall: saved traces =" in text
    assert f"  trace   .leaderfall/failures/{folder}/trace.jsonl" in result.outlines
    again = two_files.run("--leaderfall-replay", f".leaderfall/failures/{folder}")
    again.assert_outcomes(failed=1)
    assert "replay: the same events as in the saved trace" in str(again.stdout)
    assert len(two_files.saved()) == 3


def test_a_wrong_file_is_an_error_of_collection(project: Project) -> None:
    project.ini(LISTED)
    project.write("scenarios/x.toml", SCENARIO.format(name="x", acked=3) + "\n[[stepp]]\n")
    result = project.run()
    result.assert_outcomes(errors=1)
    text = str(result.stdout)
    assert 'scenarios/x.toml:18  unknown key "stepp"' in text
    assert 'did you mean "step"?' in text
    assert "\n1 problem\n" in text
    assert "exit 2" not in text
    assert "Traceback" not in text


def test_what_is_wrong_with_one_variant_is_an_error_too(project: Project) -> None:
    project.ini(LISTED)
    wrong = VARIANTS.replace("= 5", "= 2")
    project.write("scenarios/x.toml", SCENARIO.format(name="x", acked=3) + wrong)
    result = project.run()
    result.assert_outcomes(errors=1)
    assert 'there is no broker "b3"' in str(result.stdout)


def test_seeds_of_the_option_are_items(two_files: Project) -> None:
    result = two_files.run(
        "--collect-only", "-q", "--leaderfall-seeds", "8..9", "scenarios/good.toml"
    )
    assert result.outlines[:4] == [
        "scenarios/good.toml::three[seed8]",
        "scenarios/good.toml::five brokers[seed8]",
        "scenarios/good.toml::three[seed9]",
        "scenarios/good.toml::five brokers[seed9]",
    ]
    result = two_files.run("--leaderfall-seeds", "2", "scenarios/good.toml::three[seed1]")
    result.assert_outcomes(passed=1)
    replay = two_files.run("--leaderfall-replay", "9", "-v", "scenarios/deep/bad.toml")
    assert "scenarios/deep/bad.toml::bad FAILED" in str(replay.stdout)
    assert "--seed 9" in str(replay.stdout)


def test_globs_files_and_what_is_not_there(two_files: Project) -> None:
    two_files.ini('leaderfall_scenarios = ["scen*/go*.toml", "other/elsewhere.toml"]\n')
    result = two_files.run("--collect-only", "-q")
    assert "scenarios/good.toml::three" in result.outlines
    assert "other/elsewhere.toml::elsewhere" in result.outlines
    assert "4 tests collected" in str(result.stdout)
    two_files.ini('leaderfall_scenarios = ["scenario"]\n')
    result = two_files.run()
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "leaderfall_scenarios has 'scenario', and nothing of that name" in str(result.stderr)


def test_a_file_that_is_named_needs_no_ini_key(two_files: Project) -> None:
    two_files.ini()
    two_files.run().assert_outcomes(passed=1)
    two_files.run("other/elsewhere.toml").assert_outcomes(passed=1)


def test_a_run_that_cannot_decide_fails(
    two_files: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    short = functools.partial(findings.examine, events_max=50)
    monkeypatch.setattr(findings, "examine", short)
    result = two_files.run("scenarios/good.toml::three")
    result.assert_outcomes(failed=1)
    text = str(result.stdout)
    assert "good (three) is inconclusive" in text
    assert "replay    leaderfall run scenarios/good.toml --seed 0 --variant three" in text
    assert two_files.saved() == []


def test_all_traces_or_none(two_files: Project) -> None:
    two_files.run("--leaderfall-traces", "none", "scenarios").assert_outcomes(passed=2, failed=1)
    assert two_files.saved() == []
    options = ["--leaderfall-traces", "all", "--leaderfall-traces", "kept"]
    result = two_files.run(*options, "scenarios")
    result.assert_outcomes(passed=2, failed=1)
    found = sorted(each.name for each in (two_files.path / "kept").rglob("*.*"))
    assert found.count("trace.jsonl") == found.count("scenario.toml") == 3
    assert not [each for each in found if each.startswith(".running")]
    place = next(
        each.parent
        for each in (two_files.path / "kept").rglob("trace.jsonl")
        if "five" in str(each)
    )
    again = two_files.run("--leaderfall-replay", str(place))
    again.assert_outcomes(passed=1)
    assert "the same events as in the saved trace" in str(again.stdout)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('schema = 1\nname = "x"', True),
        ('\ufeffschema = 1\nname = "x"', True),
        ('schema = 1\nuntil = "1s"', True),
        ('name = "x"\nuntil = "1s"\n[[step]]\nat = "1s"', True),
        ('schema = 1\nname = "x"\nbroken', True),
        ('schema = 1\n[x]\nname = "x"\nbroken', False),
        ("schema = 1", False),
        ('name = "x"', False),
        ('name = "x"\nuntil = "1s"', False),
        ('[project]\nschema = 1\nname = "x"', False),
        ("", False),
    ],
)
def test_which_files_are_scenarios(text: str, expected: bool, tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_text(text, encoding="utf-8")
    assert is_scenario(path) is expected
