"""``python -m sim.trace``: compare two trace files, or verify one.

Exit codes: 0 the same, or intact; 1 different, or damaged or cut short; 2 bad usage, or a file that
cannot be read.

Left out: everything that ``leaderfall`` does.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from sim.trace.diff import ContradictionError, diff_files
from sim.trace.reader import TraceError, TraceReader, verify
from sim.trace.report import report_difference

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what the arguments say, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m sim.trace", description="Look at traces.")
    commands = parser.add_subparsers(dest="command", required=True)
    diff = commands.add_parser("diff", help="find the first event in which two traces differ")
    diff.add_argument("a", type=Path, metavar="A")
    diff.add_argument("b", type=Path, metavar="B")
    check = commands.add_parser("verify", help="say whether a trace is as it was written")
    check.add_argument("file", type=Path, metavar="FILE")
    given = parser.parse_args(arguments)
    try:
        return _diff(given.a, given.b) if given.command == "diff" else _verify(given.file)
    except (TraceError, ContradictionError, OSError) as error:
        print(ascii(str(error))[1:-1] if not str(error).isprintable() else error, file=sys.stderr)
        return 2


def _diff(a: Path, b: Path) -> int:
    found = diff_files(a, b)
    print(report_difference(found, str(a), str(b)))
    return 0 if found.is_same else 1


def _verify(path: Path) -> int:
    TraceReader(path)  # What is no trace at all is not a damaged one.
    try:
        found = verify(path)
    except TraceError as error:
        print(f"damaged: {error}")
        return 1
    if not found.is_complete:
        print(
            f"cut short behind event {found.count}; "
            f"the events up to {found.verified} are as they were written"
        )
        return 1
    print(f"intact: {found.count} events, digest {found.digest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
