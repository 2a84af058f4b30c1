"""``--twice``: the same run in a fresh process with another hash seed must give the same trace.

Left out: comparing traces (``sim.trace.diff``).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sim.cli.exits import Exit
from sim.cli.orders import Settings
from sim.cli.ran import Ran, Second
from sim.cli.run_folders import TRACE

__all__ = ["fresh_process", "other_hash_seed", "run_again"]

_HASH_SEEDS = 1 << 32


def run_again(first: Ran, settings: Settings) -> None:
    """Run it again, and put what came of it into ``first``; a difference is exit code 4."""
    assert first.folder is not None
    hash_seed = other_hash_seed()
    done = fresh_process([*first.order.words(settings)[1:], "--json", "-q"], hash_seed)
    found = _read(done.stdout)
    if found is None or found.get("folder") is None:
        said = done.stderr.decode("utf-8", "replace").strip().split("\n")[-8:]
        lines = (f"the second run ended with {done.returncode}:", *said)
        first.second = Second(False, hash_seed, None, None, lines)
        first.code = Exit.INTERNAL
        return
    folder, digest = str(found["folder"]), found.get("digest")
    lines = _differences(first.folder, Path(folder))
    is_same = not lines and digest == first.document.get("digest")
    is_same = is_same and found.get("verdict") == first.document.get("verdict")
    if not is_same and not lines:
        lines = (f"verdict {found.get('verdict')}, digest {digest}",)
    first.second = Second(is_same, hash_seed, digest, folder, lines)
    if not is_same:
        first.code = Exit.NOT_DETERMINISTIC


def fresh_process(words: Sequence[str], hash_seed: str) -> subprocess.CompletedProcess[bytes]:
    """A command of ours in a process of its own, to its end."""
    # -P: a folder named cluster/ where the user stands must not come before ours.
    return subprocess.run(
        [sys.executable, "-P", "-m", "sim.cli", *words],
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": _python_path()},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )


def other_hash_seed() -> str:
    """One that this process surely does not have."""
    own = os.environ.get("PYTHONHASHSEED", "random")
    return str((int(own) + 1) % _HASH_SEEDS) if own.isascii() and own.isdigit() else "1"


def _python_path() -> str:
    """Ours first: the second process must import what this one did."""
    home = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    return home if not before else os.pathsep.join((home, before))


def _read(data: bytes) -> dict[str, Any] | None:
    try:
        found = json.loads(data)["runs"][0]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return found if isinstance(found, dict) else None


def _differences(one: Path, other: Path) -> tuple[str, ...]:
    """The report on the first event that differs; empty where the traces are the same."""
    from sim.trace.diff import ContradictionError, diff_files
    from sim.trace.reader import TraceError
    from sim.trace.report import report_difference

    if one == other:
        return ()
    try:
        found = diff_files(one / TRACE, other / TRACE)
        if found.is_same:
            return ()
        return tuple(report_difference(found, str(one), str(other)).split("\n"))
    except (TraceError, ContradictionError, OSError) as error:
        return (f"the traces cannot be compared: {error}",)
