"""Files that commands write: whole or not at all, and never over what was read.

Left out: run folders (``sim.cli.run_folders``), and what is written.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile

from sim.cli.console import shown
from sim.cli.exits import UserError
from sim.cli.run_folders import RESULT, SCENARIO, TRACE

__all__ = ["demand_place", "write_whole"]


def demand_place(text: str, inputs: Sequence[Path], *, option: str) -> Path:
    """The file that ``option`` names: no folder, none of the inputs, nothing of a run.

    Args:
        inputs: the traces that are read; a page also shows the files in the folder of their run.

    Raises:
        UserError: it cannot be written there, or must not be.
    """
    place = Path(text)
    try:
        if not text or place.is_dir():
            raise UserError(f'{option} needs the name of a file, "{shown(text)}" is none.')
        if not place.parent.is_dir():
            raise UserError(f'The folder "{shown(place.parent)}" of {option} is not there.')
        for each in inputs if place.exists() else ():
            if each.exists() and place.samefile(each):
                raise UserError(
                    f'"{shown(text)}" is the trace itself; {option} needs the name of another file.'
                )
            if _is_of_run(place, each):
                raise UserError(
                    f'"{shown(text)}" is a file of the run; {option} needs the name of another.'
                )
    except (OSError, ValueError) as error:
        raise _unwritten(place, error) from None
    return place


def _is_of_run(place: Path, trace: Path) -> bool:
    """Whether an existing file is one that a run wrote: its own files, and those of its nodes."""
    folder = Path(os.path.realpath(trace)).parent
    if trace.name != TRACE or not (folder / RESULT).is_file():
        return False
    real = Path(os.path.realpath(place))
    if real.parent == folder:
        return real.name in (TRACE, RESULT, SCENARIO)
    return real.is_relative_to(folder)


def write_whole(place: Path, parts: Iterable[str], *, encoding: str) -> None:
    """Write a text; if that fails, or is interrupted, what was there before stays.

    A link is followed. A device or a pipe is written to, not replaced.

    Raises:
        UserError: it cannot be written.
    """
    try:
        if place.exists() and not place.is_file():
            with place.open("w", encoding=encoding, newline="\n") as file:
                file.writelines(parts)
        else:
            _replace(Path(os.path.realpath(place)), parts, encoding)
    except (OSError, ValueError) as error:
        raise _unwritten(place, error) from None


def _replace(target: Path, parts: Iterable[str], encoding: str) -> None:
    # A name of its own: one that is made up from the target's may be somebody's file, or a link.
    with NamedTemporaryFile(
        "w", encoding=encoding, newline="\n", dir=target.parent, prefix=".part-", delete=False
    ) as file:
        part = Path(file.name)
        try:
            file.writelines(parts)
            file.flush()
            part.chmod(_mode_of(target))
            part.replace(target)
        except BaseException:
            with suppress(OSError):
                part.unlink(missing_ok=True)
            raise


def _mode_of(target: Path) -> int:
    """Of the file that is replaced, or of a new one."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


def _unwritten(place: Path, error: Exception) -> UserError:
    said = getattr(error, "strerror", None) or str(error)
    return UserError(f'"{shown(place)}" cannot be written: {shown(said)}')
