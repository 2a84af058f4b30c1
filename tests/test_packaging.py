"""What a wheel holds, and that the scenario files are found from a wheel and from a checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from sim import scenario_files

ROOT = Path(__file__).resolve().parent.parent

# What pip and uv say where no package index can be reached for the build backend.
_OFFLINE = re.compile("No matching distribution found for hatchling|Could not connect|dns error")


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel built from this tree with pip, or with uv in an environment without pip."""
    folder = tmp_path_factory.mktemp("wheel")
    uv = os.environ.get("UV") or shutil.which("uv")
    if importlib.util.find_spec("pip"):
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "-w"]
        command += [str(folder), str(ROOT)]
    elif uv:
        command = [uv, "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    else:
        pytest.skip("building a wheel needs pip or uv")
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    output = result.stdout + result.stderr
    if result.returncode != 0 and _OFFLINE.search(output) and not os.environ.get("CI"):
        pytest.skip("building a wheel needs hatchling, and no package index answers")
    assert result.returncode == 0, output
    (built,) = folder.glob("*.whl")
    return built


def _found_from(python_path: Path, cwd: Path) -> Path:
    """What ``scenarios_dir()`` says in a fresh process that has only ``python_path``."""
    code = "from sim.scenario_files import scenarios_dir; print(scenarios_dir())"
    result = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(python_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(result.stdout.strip())


@pytest.mark.slow
def test_wheel_holds_the_packages_and_nothing_else(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"cluster", "sim", "storage"}
    for package in ("cluster", "sim", "storage"):
        assert {f"{package}/__init__.py", f"{package}/py.typed"} <= names
    assert "sim/scenarios/README.md" in names
    assert any(re.fullmatch(r"leaderfall-[^/]+\.dist-info/licenses/LICENSE", n) for n in names)
    assert not [name for name in names if name.endswith((".pyc", "/"))]


@pytest.mark.slow
def test_wheel_has_the_command(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/entry_points.txt"))
        text = archive.read(name).decode("utf-8")
    assert "leaderfall = sim.cli.main:main" in text


@pytest.mark.slow
def test_wheel_holds_every_file_of_the_packages(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    sources = {
        path.relative_to(ROOT).as_posix()
        for package in ("cluster", "sim", "storage")
        for path in (ROOT / package).rglob("*.py")
    }
    assert sources <= names
    stories = (ROOT / "scenarios").rglob("*.toml")
    assert {f"sim/{path.relative_to(ROOT).as_posix()}" for path in stories} <= names


@pytest.mark.slow
def test_wheel_holds_the_page_and_not_its_sources(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if name.startswith("sim/viewer/")}
        template = archive.read("sim/viewer/template.html")
    shipped = ("LICENSES.txt", "README.md", "template.html")
    assert names == {f"sim/viewer/{each}" for each in shipped}
    assert template == (ROOT / "sim" / "viewer" / "template.html").read_bytes()


@pytest.mark.slow
def test_scenarios_are_found_from_an_unpacked_wheel(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    found = _found_from(site, tmp_path)
    assert found == site.resolve() / "sim" / "scenarios"
    assert (found / "README.md").is_file()


def test_scenarios_are_found_from_the_checkout(tmp_path: Path) -> None:
    assert _found_from(ROOT, tmp_path) == ROOT / "scenarios"
    assert scenario_files.scenarios_dir() == ROOT / "scenarios"


def test_the_installed_folder_comes_before_the_checkouts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "sim"
    (package / "scenarios").mkdir(parents=True)
    (tmp_path / "scenarios").mkdir()
    monkeypatch.setattr(scenario_files, "__file__", str(package / "scenario_files.py"))
    assert scenario_files.scenarios_dir() == package.resolve() / "scenarios"


def test_missing_scenarios_are_an_error_that_names_both_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path.resolve() / "sim"
    monkeypatch.setattr(scenario_files, "__file__", str(package / "scenario_files.py"))
    with pytest.raises(FileNotFoundError) as caught:
        scenario_files.scenarios_dir()
    assert str(package / "scenarios") in str(caught.value)
    assert str(tmp_path.resolve() / "scenarios") in str(caught.value)
