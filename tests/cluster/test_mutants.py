"""Every rule that is said to be modelled has a mutant, and the test named for it fails under it.

A mutant lives in a tree of its own: the package that it changes is a copy, everything else a link
into the repository. Nothing is written outside that tree, not even byte code.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cluster.mutant import Mutant
from tests.cluster.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
LINKED = ("cluster", "storage", "sim", "scenarios", "tests", "pyproject.toml")
RULES = frozenset(f"A{number}" for number in range(1, 25)) - {"A19"}


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty folder that goes with the test: pytest would keep all the copies."""
    with TemporaryDirectory() as name:
        yield Path(name)


def mutate(text: str, mutant: Mutant) -> str:
    """``text`` with the mutant's line in place of the one that is there once."""
    lines = text.split("\n")
    found = [number for number, line in enumerate(lines) if line.strip() == mutant.old]
    assert len(found) == 1, f"{mutant.file} has {len(found)} times: {mutant.old}"
    before = lines[found[0]]
    lines[found[0]] = before[: len(before) - len(before.lstrip())] + mutant.new
    return "\n".join(lines)


def tree(root: Path, mutant: Mutant | None) -> Path:
    """A tree to test in: the repository, with the mutant applied to it."""
    copied = "" if mutant is None else mutant.file.split("/")[0]
    for name in LINKED:
        if name != copied:
            (root / name).symlink_to(ROOT / name)
    if mutant is not None:
        shutil.copytree(ROOT / copied, root / copied)
        path = root / mutant.file
        path.write_text(mutate(path.read_text(encoding="utf-8"), mutant), encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()
    return root


def run(root: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests in a tree, in a process that has nothing of this one's options.

    Plug-ins that are installed would be half of its time; no named test needs one.
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    environment |= {"PYTHONDONTWRITEBYTECODE": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    options = ("-x", "-q", "-p", "no:cacheprovider", "--rootdir", str(root))
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options, *tests],
        capture_output=True,
        text=True,
        cwd=root,
        env=environment,
        check=False,
    )


def test_every_modelled_rule_has_a_mutant() -> None:
    assert {mutant.rule for mutant in MUTANTS} == RULES


def test_every_mutant_is_another_one() -> None:
    assert len({mutant.what for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.file, mutant.old, mutant.new) for mutant in MUTANTS}) == len(MUTANTS)
    assert all(mutant.old != mutant.new for mutant in MUTANTS)


@pytest.mark.parametrize("text", ["x = 1\n", "    old\nold\n", "older\n"])
def test_a_line_that_is_not_there_once_is_refused(text: str) -> None:
    mutant = Mutant("A1", "what", "cluster/any.py", "old", "new", "tests/any.py")
    with pytest.raises(AssertionError, match="times: old"):
        mutate(text, mutant)


@pytest.mark.slow
def test_named_tests_pass_without_mutants(root: Path) -> None:
    done = run(tree(root, None), *sorted({mutant.test for mutant in MUTANTS}))
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("mutant", MUTANTS, ids=[f"{m.rule}: {m.what}" for m in MUTANTS])
def test_a_named_test_fails_under_a_mutant(mutant: Mutant, root: Path) -> None:
    done = run(tree(root, mutant), mutant.test)
    assert done.returncode == 1, done.stdout + done.stderr
