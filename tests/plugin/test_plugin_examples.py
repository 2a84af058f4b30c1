"""``sim/README.md``, pytest: its examples are a project of a user, and do what it says."""

from __future__ import annotations

import re

import pytest

from tests.plugin.projects import ROOT, SCENARIO, VARIANTS, Project, needs_pytest_trio

pytest_plugins = ["pytester"]

EXAMPLE = re.compile(r"<!-- ([\w/]+\.(?:py|toml)) -->\n```\w+\n(.*?)```\n", re.DOTALL)


def write_examples(project: Project) -> list[str]:
    """Each under the name that stands in front of it; returns the names."""
    section = (ROOT / "sim" / "README.md").read_text().split("\n## pytest\n")[1].split("\n## ")[0]
    found = EXAMPLE.findall(section)
    for name, text in found:
        project.write(name, text)
    with (project.path / "pyproject.toml").open("a") as file:
        file.write('filterwarnings = ["error"]\naddopts = ["-p", "no:cacheprovider"]\n')
    project.write("scenarios/crash.toml", SCENARIO.format(name="crash", acked=3) + VARIANTS)
    assert section.count("```python") + section.count("```toml") == len(found)
    return [name for name, _ in found]


@needs_pytest_trio
def test_the_examples_pass(project: Project) -> None:
    assert len(write_examples(project)) == 5
    result = project.run("--strict-markers", "--strict-config", "-v")
    result.assert_outcomes(passed=8)
    text = str(result.stdout)
    for each in (
        "tests/test_failover.py::test_failover[seed2] PASSED",
        "scenarios/crash.toml::three PASSED",
    ):
        assert each in text


@needs_pytest_trio
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("tests/test_guard.py", "breaks=[", "breaks=['hw-valid', "),
        ("tests/test_guard.py", "cluster.sleep(1)", "pass"),
        ("tests/test_failover.py", "== 5\n", "== 6\n"),
        ("tests/test_scripted.py", 'b"late"', 'b"never"'),
        ("scenarios/crash.toml", "== 3", "== 4"),
    ],
)
def test_each_example_can_fail(file: str, old: str, new: str, project: Project) -> None:
    write_examples(project)
    path = project.path / file
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    outcomes = project.run(file).parseoutcomes()
    assert outcomes.get("failed", 0) >= 1
    assert "passed" not in outcomes
