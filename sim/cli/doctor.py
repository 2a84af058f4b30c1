"""``leaderfall doctor``: whether this installation can work, and what it lacks.

It imports neither ``cluster`` nor ``storage``: what it looks for is whether these are ours at all.

Left out: mending anything.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sim.cli.console import color_option, make_console
from sim.cli.exits import Exit

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["command"]

_PYTHONS: Final = ((3, 11), (3, 13))
NEEDED: Final = ("trio", "attrs", "cattrs", "click", "rich")
EXTRAS: Final = {"test": ("hypothesis", "pytest"), "tui": ("textual",)}
"""What each optional part needs."""
_MARKS: Final = {"cluster": "guards.py", "storage": "mkb1.py"}
"""A module by which a package of ours is known."""
_SLOW_DISKS: Final = frozenset("9p afs cifs fuse.sshfs glusterfs nfs nfs4 smb3 smbfs".split())
_FREE_BYTES: Final = 100 << 20

Row = tuple[str, str, str]
"""``ok``, ``warning``, ``wrong`` or ``-``; what; what was found."""


@click.command("doctor")
@click.option("--out", default="runs", show_default=True, help="The folder that runs would go to.")
@color_option
def command(out: str, *, color: str) -> int:
    """Check this installation.

    Looks at versions, import names, the disk, optional extras and completion. Exit code 0: it can
    work. 1: something is wrong, and it says what to do.
    """
    rows = [*_versions(), *_names(), *_disk(Path(out)), *_extras(), *_scenarios(), *_completion()]
    _print(make_console(color), rows)
    return Exit.FAILED if any(row[0] == "wrong" for row in rows) else Exit.OK


def _print(console: Console, rows: list[Row]) -> None:
    from rich.text import Text

    styles = {"ok": "green", "warning": "yellow", "wrong": "red", "-": "dim"}
    for state, what, found in rows:
        text = Text().append(f"{state:<8}", styles[state]).append(f"{_safe(what)}: {_safe(found)}")
        console.print(text, soft_wrap=True)
    wrong = sum(row[0] == "wrong" for row in rows)
    console.print(f"{wrong} thing{'s are' if wrong > 1 else ' is'} wrong" if wrong else "all right")


def _safe(text: str) -> str:
    """As ``console.shown``, which needs ``storage``, and that may not be ours here."""
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in text)


# What there is -----------------------------------------------------------------------------------


def _versions() -> Iterator[Row]:
    from sim.version import leaderfall_version

    yield "ok", "leaderfall", f"{leaderfall_version()} in {Path(__file__).resolve().parents[2]}"
    version = sys.version_info[:3]
    text = f"{'.'.join(map(str, version))} ({sys.implementation.name}) at {sys.executable}"
    low, high = _PYTHONS
    if version[:2] < low:
        yield "wrong", "Python", f"{text}; {low[0]}.{low[1]} is the oldest that works"
    elif version[:2] > high:
        yield "warning", "Python", f"{text}; tested are {low[0]}.{low[1]} to {high[0]}.{high[1]}"
    else:
        yield "ok", "Python", text
    for name in NEEDED:
        found = _version(name)
        if found is None:
            yield "wrong", name, "missing; pip install leaderfall again"
        else:
            yield "ok", name, found


def _version(name: str) -> str | None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _names() -> Iterator[Row]:
    """Whether ``cluster`` and ``storage`` are the packages beside ``sim``."""
    from importlib.metadata import packages_distributions

    home = Path(__file__).resolve().parents[2]
    owners = packages_distributions()
    is_right = True
    for name in ("cluster", "storage"):
        spec = find_spec(name)
        origin = None if spec is None or spec.origin is None else Path(spec.origin).resolve()
        if (
            origin is None
            or origin.parent != home / name
            or not (home / name / _MARKS[name]).is_file()
        ):
            is_right = False
            yield "wrong", f"import {name}", f"{origin} is not ours; use an environment of its own"
        others = sorted({each for each in owners.get(name, ()) if each.lower() != "leaderfall"})
        if others:
            is_right = False
            yield (
                "wrong",
                f"import {name}",
                f"{', '.join(others)} installs it too, over ours; use an environment of its own",
            )
    here = Path.cwd()
    is_clone = here != home and all((here / name / mark).is_file() for name, mark in _MARKS.items())
    if is_clone:
        yield (
            "-",
            "this folder",
            "a clone; python -m runs what is here, not what is installed (pip install -e .: both)",
        )
    for name in ("cluster", "sim", "storage"):
        if here != home and not is_clone and (here / name).is_dir():
            yield (
                "warning",
                f"folder {name}/",
                "in this folder; python -m would import it instead of ours",
            )
    if is_right:
        yield "ok", "import names", "cluster, sim and storage are ours"


def _disk(out: Path) -> Iterator[Row]:
    folder = out.absolute()
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    kind = _file_system(folder)
    try:
        what = _try_out(folder)
        free_bytes = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
    except OSError as error:
        yield "wrong", f"folder {out}", f"cannot be written ({error}); use --out"
        return
    text = f"writable, {kind}, {free_bytes >> 20} MiB free"
    if what:
        yield "wrong", f"folder {out}", f"{text}; {what}; use --out"
    elif free_bytes < _FREE_BYTES:
        yield "warning", f"folder {out}", f"{text}: little for full traces"
    elif kind in _SLOW_DISKS:
        yield "warning", f"folder {out}", f"{text}: runs with real files will be slow there"
    else:
        yield "ok", f"folder {out}", text


def _try_out(folder: Path) -> str:
    """What the disk lacks of what a run needs; nothing is left behind."""
    from tempfile import TemporaryDirectory

    with TemporaryDirectory(prefix=".leaderfall-doctor-", dir=folder) as name:
        place = Path(name)
        (place / "a").write_bytes(b"x")
        os.rename(place / "a", place / "b")
        try:
            os.symlink("b", place / "latest")
        except OSError:
            return "it has no symbolic links"
        (place / "Case").mkdir()
        if (place / "case").exists():
            return "it does not tell A from a, and topics may differ so"
    return ""


def _file_system(folder: Path) -> str:
    """Its kind, as Linux says."""
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").split("\n")
    except OSError:
        return "unknown file system"
    best, kind = -1, "unknown file system"
    resolved = folder.resolve()
    for line in lines:
        parts = line.split(" ")
        if len(parts) < 3:
            continue
        mount = Path(parts[1].replace("\\040", " "))
        if (resolved == mount or mount in resolved.parents) and len(mount.parts) >= best:
            best, kind = len(mount.parts), parts[2]
    return kind


def _extras() -> Iterator[Row]:
    for extra, names in EXTRAS.items():
        found = {name: _version(name) for name in names}
        there = [f"{name} {version}" for name, version in found.items() if version is not None]
        missing = [name for name, version in found.items() if version is None]
        text = ", ".join(there)
        if missing:
            more = f"without {', '.join(missing)}: pip install 'leaderfall[{extra}]'"
            text = f"{text}; {more}" if text else more
        yield "-" if missing else "ok", f"extra {extra}", text


def _scenarios() -> Iterator[Row]:
    from sim.scenario_files import scenario_files, scenarios_dir

    try:
        folder, count = scenarios_dir(), len(scenario_files())
    except FileNotFoundError as error:
        yield "wrong", "scenarios", str(error)
        return
    yield "ok", "scenarios", f"{count} in {folder}"


def _completion() -> Iterator[Row]:
    from sim.cli.completion import HINTS

    shell = Path(os.environ.get("SHELL", "")).name
    if shell in HINTS:
        yield "-", f"completion for {shell}", HINTS[shell]
    else:
        yield "-", "completion", "leaderfall completion bash, zsh or fish"
