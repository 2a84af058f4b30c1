"""``leaderfall shrink``: make a failing scenario small, and write it down.

Left out: the search (``sim.shrinking``), files and checks of the result (``sim.cli.shrunk_cases``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import click

from sim.cli.console import color_option, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.files import complete_files, complete_variants
from sim.cli.replicas import replica_option

if TYPE_CHECKING:
    from sim.cli.blamed_runs import BlamedRun
    from sim.cli.shrunk_cases import Case
    from sim.running.findings import Examined, Finding
    from sim.shrinking.goals import Base
    from sim.shrinking.shrinker import Shrunk

__all__ = ["command"]

_SEED_MAX: Final = 2**63 - 1
_RUNS_MAX: Final = 1_000
_EPILOG: Final = """\b
Exit codes:
  0    there is a result: no single thing more can be left out
  2    bad usage, a scenario file that is wrong, or a run in which nothing is wrong: nothing is
       written
  3    the budget of runs ended first, and the best so far is written; or the scenario's own run
       could not end within its budget of events
  4    the result, or the run that was asked about, was made again and differed
  70   a defect of Leaderfall; one that a scenario provokes is shrunk like any failure
  130  interrupted; the best so far is written"""


@click.command("shrink", epilog=_EPILOG)
@click.argument("scenario", shell_complete=complete_files)
@click.option(
    "--keep", metavar="NAME", help="Which finding stays: a rule, a licence, ...  [default: first]"
)
@click.option("--strict", "is_strict", is_flag=True, help="Excuse nothing, as in run.")
@click.option(
    "--variant", metavar="NAME", shell_complete=complete_variants, help="Of a scenario file."
)
@click.option("--seed", type=click.IntRange(0, _SEED_MAX), metavar="N", help="Of a scenario file.")
@click.option(
    "--set", "sets", multiple=True, metavar="PATH=VALUE", help="Of a scenario file; as in run."
)
@click.option("--liveness", "is_live", is_flag=True, help="As in run.")
@click.option(
    "--runs",
    "runs_max",
    type=click.IntRange(1, 1_000_000),
    default=_RUNS_MAX,
    show_default=True,
    metavar="N",
    help="Try so many candidates, at most.",
)
@click.option(
    "--events-max", type=click.IntRange(1, 10**9), metavar="N", help="Of each run, as in run."
)
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="Write it there.  [default: .leaderfall/failures/NAME-shrunk/scenario.toml]",
)
@click.option("--json", "is_json", is_flag=True, help="One JSON document on standard output.")
@replica_option
@color_option
def command(
    scenario: str,
    *,
    keep: str | None,
    is_strict: bool,
    variant: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    is_live: bool,
    runs_max: int,
    events_max: int | None,
    output: str | None,
    is_json: bool,
    replica: str | None,
    color: str,
) -> int:
    """Make a failing scenario small: the same failure with less in it.

    SCENARIO is a scenario file, a run folder (runs/NAME/latest), or a trace in one. Faults, steps,
    records, brokers and values are left out or made simpler as long as the same thing is wrong, and
    nothing that was not wrong before. What else goes wrong on the way is kept as a scenario of its
    own.

    If nothing is wrong but what the file excuses or expects, that is what stays.
    """
    from sim.cli.blamed_runs import FileProblems, possible_runs
    from sim.cli.shrunk_cases import Again, require_free, save

    require_free(output)
    try:
        runs = possible_runs(scenario, variant=variant, seed=seed, sets=sets, replica=replica)
    except FileProblems as error:
        from sim.cli.run import refuse

        return refuse(error.problems, color, is_json=is_json)
    run, base = _base(runs, is_strict, is_live, events_max)
    finding = _finding(base, keep)
    began = monotonic()
    found = _shrink(base, finding, runs_max, events_max or run.events_max)
    seconds = monotonic() - began
    case = save(found, run, output, Again(replica, events_max or run.events_max))
    code = _code(found, case)
    if is_json:
        say(json.dumps(_document(run, found, case, seconds, code), indent=2))
    else:
        from sim.cli.shrink_report import print_shrunk

        print_shrunk(color, run, found, case, seconds)
    return code


def _code(found: Shrunk, case: Case) -> Exit:
    if found.ended == "interrupted":
        return Exit.INTERRUPTED
    if case.problems:
        return Exit.NOT_DETERMINISTIC
    return Exit.OK if found.ended == "minimal" else Exit.INCONCLUSIVE


# What is shrunk ----------------------------------------------------------------------------------


def _base(
    runs: Sequence[BlamedRun], is_strict: bool, is_live: bool, events_max: int | None
) -> tuple[BlamedRun, Base]:
    """The run that fails; of several variants the only one that does."""
    from attrs import evolve

    from sim.running.interpreter import EVENTS_MAX
    from sim.scenario.model import Liveness
    from sim.shrinking.goals import look

    failing: list[tuple[BlamedRun, Base]] = []
    excused: list[tuple[BlamedRun, Base]] = []
    inconclusive = 0
    for run in runs:
        scenario = run.scenario
        if is_live:
            scenario = evolve(scenario, liveness=scenario.liveness or Liveness())
        base = look(
            scenario,
            is_strict=is_strict or run.is_strict,
            level="digest",
            events_max=events_max or run.events_max or EVENTS_MAX,
        )
        _require_same(run, base.examined)
        inconclusive += base.examined.is_inconclusive
        if base.examined.findings:
            (excused if base.is_excused else failing).append((run, base))
    found = failing or excused
    if len(found) > 1:
        names = ", ".join(shown(run.scenario.variant) for run, _ in found)
        raise UserError("Several variants fail; --variant names one.", f"There are {names}.")
    if found:
        return found[0]
    name = shown(runs[0].scenario.name)
    if inconclusive:
        raise UserError(
            f"{name}: the run could not end within its budget of events; nothing is wrong so far.",
            code=Exit.INCONCLUSIVE,
        )
    where = "" if len(runs) == 1 else f" in any of its {len(runs)} variants"
    raise UserError(f"{name} does not fail{where}: there is nothing to shrink.")


def _require_same(run: BlamedRun, examined: Examined) -> None:
    """A run folder must still be what its result says."""
    if run.digest is None or examined.result is None:
        return
    now = examined.result.digest
    if now != run.digest:
        raise UserError(
            f"The run cannot be made again: its digest is {run.digest}, now it is {now}.",
            code=Exit.NOT_DETERMINISTIC,
        )


def _finding(base: Base, keep: str | None) -> Finding:
    findings = base.examined.findings
    if keep is None:
        return findings[0]
    for each in findings:
        if keep in (each.name, f"{each.kind} {each.name}", f"{each.kind}: {each.name}"):
            return each
    there = list(dict.fromkeys(f'"{shown(each.name)}" ({each.kind})' for each in findings))
    raise UserError(
        f'Nothing is wrong by the name "{shown(keep)}".', f"There are {', '.join(there)}."
    )


def _shrink(base: Base, finding: Finding, runs_max: int, events_max: int | None) -> Shrunk:
    from sim.cli.shrink_report import Progress
    from sim.running.interpreter import EVENTS_MAX
    from sim.shrinking.shrinker import NotTheSame, shrink

    progress = Progress()
    try:
        return shrink(
            base,
            finding,
            runs_max=runs_max,
            events_max=events_max or EVENTS_MAX,
            on_run=progress.tell,
        )
    except NotTheSame:
        raise UserError(
            f'"{shown(finding.name)}" is not there in a second run.', code=Exit.NOT_DETERMINISTIC
        ) from None
    finally:
        progress.end()


# JSON --------------------------------------------------------------------------------------------


def _document(
    run: BlamedRun, found: Shrunk, case: Case, seconds: float, code: Exit
) -> dict[str, Any]:
    from sim.version import leaderfall_version

    return {
        "leaderfall": leaderfall_version(),
        "scenario": run.scenario.name,
        "variant": run.scenario.variant,
        "seed": run.scenario.seed,
        "kept": _plain(found.finding),
        "strict": found.goal.is_strict,
        "status": found.ended,
        "before": found.before.plain(),
        "after": found.after.plain(),
        "runs": found.runs,
        "unreadable": found.refused,
        "accepted": found.accepted,
        "rounds": found.rounds,
        "seconds": round(seconds, 3),
        "file": str(case.file),
        "trace": None if case.trace is None else str(case.trace),
        "digest": case.digest,
        "replay": case.replay,
        "verified": list(case.verified),
        "problems": list(case.problems),
        "also_found": [
            {**_plain(each.finding), "file": str(path)}
            for each, path in zip(found.finds, case.finds, strict=True)
        ],
        "exit": code,
    }


def _plain(finding: Finding) -> dict[str, Any]:
    return {
        "kind": finding.kind,
        "name": finding.name,
        "text": finding.text,
        "event": finding.event,
    }
