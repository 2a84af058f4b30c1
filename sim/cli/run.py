"""``leaderfall run``: check all files, run them one by one, report.

Left out: one run (``sim.cli.runs``), and its text (``sim.cli.report``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from sim.cli.console import color_option, make_console, say
from sim.cli.exits import Exit, UserError, worst
from sim.cli.files import (
    DEFAULT_OUT,
    complete_files,
    complete_folders,
    complete_variants,
    read_all,
    scenario_paths,
)
from sim.cli.replicas import replica_of, replica_option

if TYPE_CHECKING:
    from rich.console import Console

    from sim.cli.orders import Order, Settings
    from sim.cli.ran import Ran
    from sim.scenario.problems import Problem

__all__ = ["command", "refuse"]

_SEED_MAX = 2**63 - 1
_EPILOG = """\b
Exit codes:
  0    all expectations and invariants hold
  1    an expectation or an invariant failed
  2    bad usage, or a scenario file that is wrong; nothing was run
  3    a run could not end within its budget
  4    the second run of --twice differed
  70   a defect of Leaderfall
  130  interrupted
Of several runs the worst counts, in the order 70, 4, 1, 3, 2, 0."""


@click.command("run", epilog=_EPILOG)
@click.argument("files", nargs=-1, required=True, shell_complete=complete_files)
@click.option(
    "--seed", type=click.IntRange(0, _SEED_MAX), metavar="N", help="Instead of the file's."
)
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="PATH=VALUE",
    help="Set a value, as cluster.truncation=kip-101; may be repeated.",
)
@click.option(
    "--variant",
    "variants",
    multiple=True,
    metavar="NAME",
    shell_complete=complete_variants,
    help="Run only this variant; may be repeated.  [default: all]",
)
@click.option(
    "--json",
    "is_json",
    is_flag=True,
    help="One JSON document on standard output; the report goes to standard error.",
)
@click.option("--junit", metavar="FILE", help="Write JUnit XML there.")
@click.option(
    "--twice", "is_twice", is_flag=True, help="Run again in a fresh process, and compare."
)
@click.option(
    "--disk",
    type=click.Choice(("real", "memory")),
    default="real",
    show_default=True,
    help="Where brokers write; the digest is the same.",
)
@click.option(
    "--trace-level",
    "level",
    type=click.Choice(("digest", "events", "full")),
    default="full",
    show_default=True,
    help="How much the trace keeps; the digest is the same.",
)
@click.option(
    "--out",
    default=DEFAULT_OUT,
    show_default=True,
    metavar="FOLDER",
    shell_complete=complete_folders,
    help="Where run folders go.",
)
@click.option(
    "--liveness",
    "is_live",
    is_flag=True,
    help="Ask whether the cluster recovers behind the run; a file's [liveness] says how.",
)
@click.option("--strict", "is_strict", is_flag=True, help="Excuse nothing because a guard is off.")
@replica_option
@click.option("--paranoid", "is_paranoid", is_flag=True, help="Every check at every event: slow.")
@click.option(
    "--events-max",
    type=click.IntRange(1, 10**9),
    metavar="N",
    help="Give up behind so many events (exit 3).",
)
@click.option("-q", "--quiet", "is_quiet", is_flag=True, help="Verdicts only.")
@click.option("-v", "--verbose", "is_verbose", is_flag=True, help="Nothing is shortened.")
@color_option
def command(
    files: tuple[str, ...],
    *,
    seed: int | None,
    sets: tuple[str, ...],
    variants: tuple[str, ...],
    is_json: bool,
    junit: str | None,
    is_twice: bool,
    disk: str,
    level: str,
    out: str,
    is_live: bool,
    is_strict: bool,
    replica: str | None,
    is_paranoid: bool,
    events_max: int | None,
    is_quiet: bool,
    is_verbose: bool,
    color: str,
) -> int:
    """Run scenario files, and say what was lost and why.

    FILES are files, folders, or names of scenarios that come with Leaderfall. All are checked
    first: if one is wrong, nothing runs. Each run leaves a folder OUT/NAME/SEED[/VARIANT] with the
    brokers' directories, trace.jsonl and result.json; nothing in it is ever overwritten.
    """
    if is_quiet and is_verbose:
        raise UserError("--quiet and --verbose exclude each other.")
    from sim.cli.orders import Settings

    settings = Settings(
        out=out,
        disk=disk,
        level=level,
        is_live=is_live,
        is_strict=is_strict,
        replica=replica,
        is_paranoid=is_paranoid,
        events_max=events_max,
    )
    make_broker = replica_of(replica)
    orders, problems = _orders(files, seed, variants, sets)
    orders = [each.of_replica(make_broker) for each in orders]
    orders = [each.live() for each in orders] if is_live else orders
    if problems:
        return refuse(problems, color, is_json=is_json)
    console = make_console(color, is_error=is_json)
    ran = _run_all(console, orders, settings, is_twice, is_quiet, is_verbose)
    code = worst(each.code for each in ran)
    if junit is not None:
        from sim.cli.junit import write_junit

        write_junit(junit, ran, settings)
    if is_json:
        from sim.cli.documents import whole

        say(json.dumps(whole(ran, code), indent=2))
    return code


def _orders(
    files: Sequence[str], seed: int | None, variants: Sequence[str], sets: Sequence[str]
) -> tuple[list[Order], list[Problem]]:
    """Everything that is to run, and everything that is wrong with it."""
    from sim.cli.orders import orders_of, parse_overrides

    paths = scenario_paths(files)
    overrides, problems = parse_overrides(sets)
    scenarios, wrong = read_all(paths)
    orders, more = orders_of(
        scenarios, seed=seed, variants=variants, overrides=overrides, texts=sets
    )
    return orders, [*problems, *wrong, *more]


def refuse(problems: list[Problem], color: str, *, is_json: bool) -> int:
    """Say what is wrong with scenario files."""
    from sim.cli.check import print_problems

    print_problems(make_console(color, is_error=True), problems)
    if is_json:
        from sim.cli.documents import problems_document

        say(json.dumps(problems_document(problems, Exit.USAGE), indent=2))
    return Exit.USAGE


def _run_all(
    console: Console,
    orders: Sequence[Order],
    settings: Settings,
    is_twice: bool,
    is_quiet: bool,
    is_verbose: bool,
) -> list[Ran]:
    from sim.cli.report import print_run, print_summary
    from sim.cli.runs import carry_out
    from sim.cli.twice import run_again

    ran = []
    for at, order in enumerate(orders):
        one = carry_out(order, settings)
        if is_twice and one.result is not None:
            run_again(one, settings)
        ran.append(one)
        if not is_quiet and at:
            console.print()
        print_run(console, one, settings, is_quiet=is_quiet, is_verbose=is_verbose)
        one.result = None  # A world is large, and nothing asks for it any more.
        if one.code is Exit.INTERRUPTED:
            break
    if len(orders) > 1:
        print_summary(console, ran, len(orders), is_quiet=is_quiet)
    return ran
