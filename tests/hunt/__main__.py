"""``python -m tests.hunt --worlds N``: hunt for worlds in which something is wrong.

Worlds are drawn from seeds, five recoverable ones for each unrestricted one. A hunt goes on where
it ended, as long as the code is the same: its lines are in ``.hunt/worlds.jsonl``, and each failing
world is a scenario file in ``.hunt/finds``, at most four of a sort.

With ``--guards``, worlds in which one rule of the protocol is off, until it is missed.

Exit status: 0 nothing found and everything seen; 1 a finding, something that was never seen (from
20,000 worlds on, or with ``--demand-coverage``), or a guard that was never missed; 2 a wrong call,
or a file that cannot be gone on with; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cluster.guards import GUARDS
from sim.scenario.problems import guess
from tests.hunt import tables
from tests.hunt.finds import Finds
from tests.hunt.guarding import BUDGET, OUT_OF_REACH, GuardHunt
from tests.hunt.hunting import DEMAND_FROM, Hunt, Summary
from tests.hunt.lines import Lines, LinesError, digest_of_sources
from tests.hunt.pool import Pool
from tests.hunt.small import shrink_finds
from tests.hunt.workers import Workers

__all__ = ["main"]

_INTERRUPTED = 130
_SEED_MAX = (1 << 64) - 1


def main(arguments: Sequence[str] | None = None, *, workers: Workers | None = None) -> int:
    """The command line; ``workers`` instead of processes, for tests."""
    options = _options(arguments)
    try:
        if workers is not None:
            return _hunt(options, workers)
        with Pool(options.processes) as pool:
            return _hunt(options, pool)
    except LinesError as error:
        print(error, file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted; the same call goes on from here", file=sys.stderr)
        return _INTERRUPTED


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hunt",
        description="Hunt for worlds in which something is wrong.",
        epilog="Exit status: 0 clean, 1 a finding or a gap, 2 a wrong call, 130 interrupted.",
    )
    number = _number
    parser.add_argument("--worlds", type=number(1), metavar="N", help="how many worlds there are")
    parser.add_argument(
        "--first", type=number(0, _SEED_MAX), default=0, metavar="SEED", help="seed of the first"
    )
    cores = os.cpu_count() or 1
    parser.add_argument(
        "--processes", type=number(1, 1_000), default=cores, metavar="N", help=f"here {cores}"
    )
    parser.add_argument("--folder", type=Path, default=Path(".hunt"), help="default .hunt")
    parser.add_argument(
        "--every", type=number(0), default=50, metavar="K", help="one world in K is run twice"
    )
    parser.add_argument("--anew", action="store_true", help="put an earlier file aside")
    parser.add_argument("--shrink", action="store_true", help="make finds small at the end")
    parser.add_argument(
        "--demand-coverage",
        action=argparse.BooleanOptionalAction,
        help=f"fail if something was never seen; by default from {DEMAND_FROM} worlds on",
    )
    parser.add_argument(
        "--guards", action="store_true", help="hunt without each guard in turn that is in reach"
    )
    parser.add_argument("--guard", action="append", metavar="NAME", help="without this guard")
    parser.add_argument(
        "--budget", type=number(1), default=BUDGET, metavar="N", help="worlds for each guard"
    )
    options = parser.parse_args(arguments)
    options.guard = _guards(parser, options)
    if (options.worlds is None) == (not options.guard):
        parser.error("what is asked for is either --worlds N, or --guards, or --guard NAME")
    return options


def _number(low: int, high: int = 10**12) -> Any:
    def number(text: str) -> int:
        try:
            found = int(text)
        except ValueError:
            found = low - 1
        if not low <= found <= high:
            raise argparse.ArgumentTypeError(f"{text!r}, allowed is {low}..{high}")
        return found

    return number


def _guards(parser: argparse.ArgumentParser, options: argparse.Namespace) -> list[str]:
    known = [each.id for each in GUARDS]
    if options.guards:
        return [each for each in known if each not in OUT_OF_REACH]
    for name in options.guard or ():
        if name not in known:
            hint = guess(name, known)
            more = f" ({hint})" if hint else ""
            parser.error(f"there is no guard {name!r}{more}, allowed: {', '.join(known)}")
    return options.guard or []


# Hunting -----------------------------------------------------------------------------------------


def _hunt(options: argparse.Namespace, workers: Workers) -> int:
    header = {"hunt": 1, "code": digest_of_sources(), "first": options.first}
    if options.guard:
        return _hunt_guards(options, workers, header)
    with Lines(options.folder / "worlds.jsonl", header, anew=options.anew) as lines:
        finds = Finds(options.folder / "finds")
        hunt = Hunt(lines, finds, workers, options.worlds, options.first, options.every, tell=_tell)
        summary = hunt.run()
    return _report(options, summary, finds, workers)


def _report(options: argparse.Namespace, summary: Summary, finds: Finds, workers: Workers) -> int:
    print(tables.coverage(summary.sights))
    if finds.counts:
        print()
        print(tables.found(finds))
        print(f"scenario files: {finds.folder}")
    if options.shrink and finds.counts:
        for path, told in shrink_finds(finds.folder, workers).items():
            print(f"{path}: {told}")
    demands = options.demand_coverage
    if demands is None:
        demands = summary.worlds >= DEMAND_FROM
    unseen = summary.unseen
    per_s = summary.worlds / summary.cpu_s if summary.cpu_s else 0
    print(
        f"\n{summary.worlds} worlds, {summary.failed} with findings, {summary.inconclusive} that "
        f"ran out of events, {len(unseen)} things never seen; {per_s:.2f} worlds per CPU second"
    )
    if unseen:
        names = ", ".join(f"{each.group} {each.name!r}" for each in unseen)
        print(f"never seen{'' if demands else ' (not demanded of so few worlds)'}: {names}")
    return int(bool(summary.failed or (demands and unseen)))


def _hunt_guards(options: argparse.Namespace, workers: Workers, header: dict[str, Any]) -> int:
    with Lines(options.folder / "guards.jsonl", header, anew=options.anew) as lines:
        hunt = GuardHunt(
            lines,
            options.folder / "guards",
            workers,
            options.guard,
            options.budget,
            options.first,
            options.shrink,
            tell=_tell,
        )
        never = hunt.run()
    print(hunt.table())
    print(f"\n{len(options.guard) - len(never)} of {len(options.guard)} guards missed")
    if never:
        print(f"never missed: {', '.join(never)}")
    for guard in OUT_OF_REACH if options.guards else ():
        print(f"not hunted: {guard}, since {OUT_OF_REACH[guard]}")
    return int(bool(never))


def _tell(text: str) -> None:
    is_tty = sys.stderr.isatty()
    print(f"\r\x1b[K{text}" if is_tty else text, end="" if is_tty else "\n", file=sys.stderr)
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
