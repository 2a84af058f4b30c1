"""Scenario files by the names that users give: files, folders, and those that come with Leaderfall.

Left out: reading them (``sim.scenario``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from click.shell_completion import CompletionItem

from sim.cli.console import shown
from sim.cli.exits import UserError

if TYPE_CHECKING:
    from sim.scenario.model import Scenario
    from sim.scenario.problems import Problem

__all__ = [
    "complete_files",
    "complete_folders",
    "complete_shipped",
    "complete_variants",
    "read_all",
    "scenario_paths",
    "shipped",
    "shipped_path",
    "stem_of",
]

SUFFIX: Final = ".toml"
DEFAULT_OUT: Final = "runs"
FILES_MAX: Final = 10_000
_COMPLETED_BYTES_MAX: Final = 1_000_000
"""Completion reads no larger files, and waits for no pipes."""


def shipped() -> dict[str, Path]:
    """The files that come with Leaderfall, by name.

    Raises:
        UserError: they are not there.
    """
    from sim.scenario_files import scenarios_dir

    try:
        folder = scenarios_dir()
        paths = sorted(folder.glob(f"*{SUFFIX}"))
    except OSError as error:
        raise UserError(shown(error)) from None
    return {path.stem: path for path in paths}


def stem_of(name: str) -> str:
    """A name as shipped files have it: ``leader-crash-acks1`` is ``leader_crash_acks1``."""
    return name.removesuffix(SUFFIX).replace("-", "_")


def shipped_path(name: str) -> Path:
    """A file that comes with Leaderfall.

    Raises:
        UserError: there is none of that name.
    """
    known = shipped()
    found = known.get(stem_of(name))
    if found is None:
        near = get_close_matches(stem_of(name), known, n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise UserError(
            f'No scenario "{shown(name)}" comes with Leaderfall.{hint}',
            "leaderfall scenarios list shows those that do.",
        )
    return found


def scenario_paths(names: Iterable[str]) -> dict[str, Path]:
    """The files that are meant, by what a command may call them; each file comes once.

    Folders give what ends in .toml in them. A name without a folder that is no file may be one that
    comes with Leaderfall.

    Raises:
        UserError: a folder has none, or cannot be read.
    """
    found: dict[str, Path] = {}
    for name in names:
        path = Path(name)
        if _is_folder(path, name):
            inside = _inside(path)
            if not inside:
                raise UserError(f'The folder "{shown(name)}" has no scenario file (*{SUFFIX}).')
            found.update((str(each), each) for each in inside)
        elif not _exists(path) and path.name == name and stem_of(name) in _shipped_or_none():
            found[name] = shipped_path(name)
        else:
            found[str(path)] = path
    if len(found) > FILES_MAX:
        raise UserError(f"These are {len(found)} files, allowed are {FILES_MAX}.")
    return found


def _is_folder(path: Path, name: str) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError) as error:
        raise UserError(f'"{shown(name)}" is no name of a file: {shown(error)}') from None


def _exists(path: Path) -> bool:
    try:
        return path.exists() or path.is_symlink()
    except (OSError, ValueError):
        return False


def _inside(folder: Path) -> list[Path]:
    try:
        return [each for each in sorted(folder.iterdir()) if each.suffix == SUFFIX]
    except OSError as error:
        raise UserError(f'The folder "{shown(folder)}" cannot be read: {shown(error)}') from None


def _shipped_or_none() -> dict[str, Path]:
    try:
        return shipped()
    except UserError:
        return {}


def read_all(paths: Mapping[str, Path]) -> tuple[dict[str, Scenario], list[Problem]]:
    """Read files; what is wrong with them, all of it. Those that are wrong are left out."""
    from sim.scenario.problems import ScenarioError
    from sim.scenario.reading import read_scenario

    scenarios: dict[str, Scenario] = {}
    problems: list[Problem] = []
    for name, path in paths.items():
        try:
            scenarios[name] = read_scenario(path)
        except ScenarioError as error:
            problems += _guessed(error.problems, name, path)
    return scenarios, problems


def _guessed(problems: Sequence[Problem], name: str, path: Path) -> Sequence[Problem]:
    """With a guess, where a name that is no file is like one that comes with Leaderfall."""
    from attrs import evolve

    if _exists(path) or path.name != name:
        return problems
    near = get_close_matches(stem_of(name), _shipped_or_none(), n=1)
    if near:
        hint = f'did you mean "{near[0]}", which comes with Leaderfall?'
    else:
        hint = "leaderfall scenarios list shows those that come with Leaderfall"
    return [evolve(each, hint=hint) for each in problems]


# Completion ------------------------------------------------------------------------------------


def complete_shipped(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of scenarios that come with Leaderfall."""
    return [CompletionItem(each) for each in _shipped_or_none() if _begins(each, incomplete)]


def complete_files(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Scenario files: those here, and the names of those that come with Leaderfall."""
    if "/" in incomplete or incomplete.startswith("."):
        return [CompletionItem(incomplete, type="file")]
    try:
        here = [each.name for each in sorted(Path().iterdir()) if _may_have(each)]
    except OSError:
        here = []
    names = [*here, *(each for each in _shipped_or_none() if each + SUFFIX not in here)]
    found: list[CompletionItem] = [
        CompletionItem(each) for each in names if _begins(each, incomplete)
    ]
    return found or [CompletionItem(incomplete, type="file")]


def _may_have(path: Path) -> bool:
    return path.suffix == SUFFIX or (path.is_dir() and not path.name.startswith("."))


def _begins(name: str, incomplete: str) -> bool:
    return name.startswith((incomplete, stem_of(incomplete)))


def complete_folders(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Folders."""
    return [CompletionItem(incomplete, type="dir")]


def complete_variants(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Variants of the files that are on the command line."""
    import tomllib

    found: dict[str, Any] = {}
    try:
        for path in scenario_paths(ctx.params.get("files") or ctx.args).values():
            if not path.is_file() or path.stat().st_size > _COMPLETED_BYTES_MAX:
                continue
            tables = tomllib.loads(path.read_text(encoding="utf-8")).get("variant", [])
            found.update((str(each["name"]), None) for each in tables)
    except (UserError, OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        pass
    return [CompletionItem(each) for each in found if each.startswith(incomplete)]
