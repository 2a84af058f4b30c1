"""The plugin in a run of pytest: what it costs others, how it is found, and workers of xdist."""

from __future__ import annotations

from pathlib import Path

import pytest

import sim.pytest_plugin
from tests.plugin.projects import LOSS, ROOT, SCENARIO, Project

pytest_plugins = ["pytester"]

SHOWN = """
import sys

def pytest_unconfigure():
    names = {each.split(".")[0] for each in sys.modules}
    ours = {each for each in sys.modules if each.split(".")[0] in ("cluster", "sim", "storage")}
    heavy = names & {"attr", "attrs", "cattrs", "click", "hypothesis", "rich", "trio"}
    print("LOADED", *sorted(ours | heavy))
"""
# Others' plugins load what they like.
ALONE = ("-p", "no:hypothesispytest", "-p", "no:trio", "-p", "no:xdist", "-p", "no:cacheprovider")


def installed(folder: Path) -> Path:
    """What makes pytest find the plugin by its entry point, as if it were installed."""
    place = folder / "leaderfall-9.dist-info"
    place.mkdir()
    (place / "METADATA").write_text("Metadata-Version: 2.1\nName: leaderfall\nVersion: 9\n")
    (place / "entry_points.txt").write_text("[pytest11]\nleaderfall = sim.pytest_plugin\n")
    return folder


def loaded(text: str) -> list[str]:
    """What a run has imported of what matters."""
    (line,) = (each for each in text.splitlines() if each.startswith("LOADED"))
    return line.split()[1:]


def test_a_run_that_does_not_use_it_loads_nothing_heavy(project: Project) -> None:
    project.write("tests/test_a.py", "def test_a():\n    pass\n")
    project.write("conftest.py", SHOWN)
    result = project.run_apart("-p", "sim.pytest_plugin", *ALONE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert loaded(result.stdout) == [
        "sim",
        "sim.pytest_plugin",
        "sim.pytest_plugin.traces",
        "sim.version",
    ]


def test_scenarios_that_are_listed_load_no_world_until_one_is_collected(project: Project) -> None:
    project.ini('leaderfall_scenarios = ["scenarios"]\n')
    project.write("scenarios/x.toml", "[project]\n")
    project.write("tests/test_a.py", "def test_a():\n    pass\n")
    project.write("conftest.py", SHOWN)
    result = project.run_apart("-p", "sim.pytest_plugin", *ALONE)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "sim.pytest_plugin.files" in loaded(result.stdout)
    assert not {"attr", "cattrs", "trio", "sim.world"} & set(loaded(result.stdout))


@pytest.mark.parametrize("way", ["entry point", "-p", "conftest", "both"])
def test_it_comes_once_whichever_ways_it_is_named(
    way: str, project: Project, tmp_path_factory: pytest.TempPathFactory
) -> None:
    site = installed(tmp_path_factory.mktemp("site"))
    project.write("tests/test_a.py", "def test_a(cluster):\n    pass\n")
    project.write("tests/conftest.py", "")
    project.write(
        "conftest.py",
        """
        def pytest_report_header(config):
            import sim.pytest_plugin as plugin
            pairs = config.pluginmanager.list_name_plugin()
            return f"FOUND {sum(each is plugin for _, each in pairs)}"
        """,
    )
    args = ["-p", "sim.pytest_plugin"] if way in ("-p", "both") else []
    if way in ("conftest", "both"):
        with (project.path / "conftest.py").open("a") as file:
            file.write('\npytest_plugins = ["sim.pytest_plugin"]\n')
    result = project.run_apart(*args, path=(site,))
    assert result.returncode == 0, result.stdout + result.stderr
    assert "FOUND 1" in result.stdout
    assert result.stdout.count("leaderfall: ") == 1
    assert "1 passed" in result.stdout


def test_it_can_be_left_out(project: Project, tmp_path_factory: pytest.TempPathFactory) -> None:
    site = installed(tmp_path_factory.mktemp("site"))
    project.write("tests/test_a.py", "def test_a(cluster):\n    pass\n")
    result = project.run_apart("-p", "no:leaderfall", path=(site,))
    assert "fixture 'cluster' not found" in result.stdout
    assert "leaderfall: " not in result.stdout


def test_help_tells_of_options_marks_and_fixtures(project: Project) -> None:
    text = str(project.run("--help").stdout)
    for each in ("--leaderfall-seeds", "--leaderfall-replay", "--leaderfall-traces"):
        assert each in text
    assert "leaderfall_scenarios" in text
    text = str(project.run("--markers").stdout)
    assert "@pytest.mark.leaderfall(config=None" in text
    assert "@pytest.mark.leaderfall_seeds(*seeds)" in text
    text = str(project.run("--fixtures").stdout)
    assert "scripted_cluster" in text
    names = [each for each in vars(sim.pytest_plugin) if each.startswith("pytest_")]
    assert len(names) > 8


@pytest.mark.slow
@pytest.mark.parametrize("dist", ["load", "loadfile"])
def test_workers_share_the_tests_and_the_controller_tells(dist: str, project: Project) -> None:
    pytest.importorskip("xdist")
    project.ini('leaderfall_scenarios = ["scenarios"]\n')
    project.write("scenarios/bad.toml", SCENARIO.format(name="bad", acked=4))
    project.write("tests/test_loss.py", LOSS.replace("MARK", 'guards={"ack-waits-for-hw": False}'))
    project.write("tests/test_b.py", "def test_b(cluster):\n    cluster.create_topic('t')\n")
    args = ["-p", "sim.pytest_plugin", "-n", "2", "--dist", dist, "--leaderfall-seeds", "0..1"]
    result = project.run_apart(*args, "--junitxml=junit.xml")
    assert "6 failed" not in result.stdout
    assert "4 failed, 2 passed" in result.stdout, result.stdout + result.stderr
    assert result.stdout.count("= leaderfall: saved traces =") == 1
    traces = [each for each in project.saved() if each.endswith("trace.jsonl")]
    assert len(traces) == 4
    for each in traces:
        assert f"  trace   .leaderfall/failures/{each}\n" in result.stdout
        assert f'value=".leaderfall/failures/{each}"' in (project.path / "junit.xml").read_text()
    assert not [each for each in project.saved() if each.startswith(".")]


@pytest.mark.slow
def test_files_of_the_repository_are_scenarios(project: Project) -> None:
    """As many items as the command would run; nothing is run here."""
    from sim.scenario.reading import read_scenario
    from sim.scenario_files import REGRESSIONS, scenario_files, scenarios_dir

    files = [*scenario_files().values(), *(scenarios_dir() / REGRESSIONS).glob("*.toml")]
    count = sum(len(read_scenario(each).variants) or 1 for each in files)
    project.ini(f'leaderfall_scenarios = ["{ROOT / "scenarios"}"]\n')
    result = project.run("--collect-only", "-q")
    assert f"{count} tests collected" in str(result.stdout)
