"""What the rules about source text share: the tree that is read, and a clean one to plant in.

A rule is a function from a tree to its offences; an offence is ``FILE:LINE: what; what to do``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["PACKAGES", "ROOT", "Rule", "assert_finds", "clean_tree", "modules"]

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("cluster", "sim", "storage")

Rule = Callable[[Path], list[str]]


def modules(root: Path, *folders: str) -> Iterator[tuple[str, Path, ast.Module]]:
    """(path relative to root, path, syntax tree) of every module in the folders, in order."""
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            yield path.relative_to(root).as_posix(), path, ast.parse(path.read_bytes(), str(path))


def clean_tree(root: Path) -> None:
    """A tree without an offence, in an empty folder."""
    for package in PACKAGES:
        (root / package).mkdir()
        (root / package / "__init__.py").write_text(f'"""{package}."""\n')
    (root / "storage" / "disk.py").write_text('"""Disk."""\nfile = open("x")\n')
    (root / "sim" / "a.py").write_text('"""A."""\nimport sim.b\nimport storage.disk\n')
    (root / "sim" / "b.py").write_text('"""B."""\nimport storage.disk\n')
    (root / "sim" / "_private.py").write_text("x = 1\n")
    (root / "scenarios").mkdir()
    (root / "tests").mkdir()
    (root / "runs").mkdir()
    (root / ".gitignore").write_text("runs/\n")
    for name in ("CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml"):
        (root / name).touch()


def assert_finds(rule: Rule, files: dict[str, str], expected: str, root: Path) -> None:
    """The files, added to a clean tree, are one offence, which begins as ``expected``."""
    clean_tree(root)
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    offences = rule(root)
    assert len(offences) == 1, offences
    assert offences[0].startswith(expected), offences[0]
    assert re.search(r":\d+: .+; \w+ .+", offences[0]), "an offence says what to do instead"
