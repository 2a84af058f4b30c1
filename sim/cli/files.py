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
from sim.scenario_files import SUFFIX

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

DEFAULT_OUT: Final = "runs"
FILES_MAX: Final = 10_000
_COMPLETED_BYTES_MAX: Final = 1_000_000
"""Completion reads no larger files, and waits for no pipes."""


def shipped() -> dict[str, Path]:
    """The files that come with Leaderfall, by name: ``leader_crash_acks1``, ``disks/lying_fsync``.

    Raises:
        UserError: they are not there.
    """
    from sim.scenario_files import scenario_files

    try:
        return scenario_files()
    except OSError as error:
        raise UserError(shown(error)) from None


def stem_of(name: str) -> str:
    """A name as shipped files have it: ``leader-crash-acks1`` is ``leader_crash_acks1``."""
    return name.removesuffix(SUFFIX).replace("-", "_")


def _among(known: Mapping[str, Path], name: str) -> Path | None:
    """The file of a name, with its folder or, where only one has that name, without."""
    stem = stem_of(name)
    if stem in known:
        return known[stem]
    found = [path for path in known.values() if path.stem == stem]
    return found[0] if len(found) == 1 else None


def _like(known: Mapping[str, Path], name: str) -> str | None:
    """The name that is most like one that is none: of any folder, or of the folder it names."""
    folder, _, stem = stem_of(name).rpartition("/")
    words = {
        each.rpartition("/")[2]: each for each in known if folder in ("", each.rpartition("/")[0])
    }
    near = get_close_matches(stem, words, n=1)
    return words[near[0]] if near else None


def shipped_path(name: str) -> Path:
    """A file that comes with Leaderfall.

    Raises:
        UserError: there is none of that name.
    """
    known = shipped()
    found = _among(known, name)
    if found is None:
        near = _like(known, name)
        hint = f' Did you mean "{near}"?' if near else ""
        raise UserError(
            f'No scenario "{shown(name)}" comes with Leaderfall.{hint}',
            "leaderfall scenarios list shows those that do.",
        )
    return found


def scenario_paths(names: Iterable[str]) -> dict[str, Path]:
    """The files that are meant, by what a command may call them; each file comes once.

    Folders give what ends in .toml in them and in their folders, run folders left out. A relative
    name that is no file may be one that comes with Leaderfall.

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
        elif not _exists(path) and _among(_shipped_or_none(), name) is not None:
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
    """The files of a folder, then those of its folders; no hidden ones, and none behind links.

    Run folders are passed over: each keeps the file that ran.
    """
    from sim.cli.run_folders import RESULT

    found: list[Path] = []
    waiting = [folder]
    try:
        while waiting:
            inside = sorted(waiting.pop().iterdir())
            below = [each for each in inside if each.is_dir() and not each.is_symlink()]
            found += [each for each in inside if each.suffix == SUFFIX and each not in below]
            seen = [each for each in below if not each.name.startswith(".")]
            waiting += reversed([each for each in seen if not (each / RESULT).is_file()])
    except OSError as error:
        raise UserError(f'The folder "{shown(folder)}" cannot be read: {shown(error)}') from None
    return found


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

    if _exists(path):
        return problems
    near = _like(_shipped_or_none(), name)
    if near:
        hint = f'did you mean "{near}", which comes with Leaderfall?'
    elif path.name != name:
        return problems
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
