"""``leaderfall blame``: run again without single faults and steps, and say which ones it takes.

Left out: the search (``sim.blame``), and which run is meant (``sim.cli.blamed_runs``).
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

import click

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.files import complete_files, complete_variants
from sim.cli.replicas import replica_option
from sim.shell_words import command_line

if TYPE_CHECKING:
    from rich.console import Console

    from sim.blame.blaming import Blame, Blamed
    from sim.blame.counterfactual import Replays
    from sim.cli.blamed_runs import BlamedRun

__all__ = ["command"]

_NOTES_MAX: Final = 3
_WAITED: Final = "not done in time"
_SEED_MAX: Final = 2**63 - 1
_EPILOG: Final = """\b
Exit codes:
  0    there is an answer, or nothing to ask about
  2    bad usage, a scenario file that is wrong, or a run that cannot be made again
  3    the budget ended before everything was tried
  4    the run, made again, gave other events
  70   a defect of Leaderfall
  130  interrupted"""


@click.command("blame", epilog=_EPILOG)
@click.argument("run", shell_complete=complete_files)
@click.option(
    "--violation", metavar="CHECK", help="Ask about this invariant, by its name or number."
)
@click.option("--loss", metavar="PARTITION", help="Ask about the first loss of it, as orders-0.")
@click.option(
    "--variant", metavar="NAME", shell_complete=complete_variants, help="Of a scenario file."
)
@click.option("--seed", type=click.IntRange(0, _SEED_MAX), metavar="N", help="Of a scenario file.")
@click.option(
    "--set", "sets", multiple=True, metavar="PATH=VALUE", help="Of a scenario file; as in run."
)
@click.option(
    "--budget",
    type=click.IntRange(1, 1_000_000),
    default=200,
    show_default=True,
    metavar="N",
    help="So many runs without something, at most.",
)
@replica_option
@click.option("--json", "is_json", is_flag=True, help="One JSON document on standard output.")
@color_option
def command(
    run: str,
    *,
    violation: str | None,
    loss: str | None,
    variant: str | None,
    seed: int | None,
    sets: tuple[str, ...],
    budget: int,
    replica: str | None,
    is_json: bool,
    color: str,
) -> int:
    """Say which faults and steps a loss or a violation takes.

    RUN is a run folder (runs/NAME/latest), a trace in one, or a scenario file. It is run again,
    without single faults and disturbing steps, until a smallest set is known without which the
    loss or the violation does not happen; everything else keeps its time and its chances.

    Asked about is the first violation that failed the run, else the first loss.
    """
    if violation is not None and loss is not None:
        raise UserError("--violation and --loss exclude each other.")
    from sim.blame.blaming import NoTarget, blame, target_of
    from sim.cli.blamed_runs import FileProblems, blamed_run

    try:
        asked = blamed_run(run, variant=variant, seed=seed, sets=sets, replica=replica)
    except FileProblems as error:
        from sim.cli.run import refuse

        return refuse(error.problems, color, is_json=is_json)
    replays = _replays(asked, budget)
    try:
        target = target_of(replays, violation=violation, partition=loss)
    except NoTarget as error:
        if error.is_asked:
            raise UserError(f"In this run {shown(error)}.") from None
        return _nothing(asked, replays, shown(error), is_json=is_json)
    found = blame(replays, target)
    if is_json:
        say(json.dumps({**_head(asked, replays), **found.plain(), "exit": _code(found)}, indent=2))
    else:
        _print(make_console(color), asked, found, budget)
    return _code(found)


def _replays(asked: BlamedRun, budget: int) -> Replays:
    """The run made again, which must be the same."""
    from sim.blame.counterfactual import Replays
    from sim.running.interpreter import EVENTS_MAX
    from sim.version import leaderfall_version

    events_max = asked.events_max or EVENTS_MAX
    replays = Replays(asked.scenario, events_max=events_max, runs_max=budget)
    now = replays.base.result.digest
    if asked.digest is not None and asked.digest != now:
        version = leaderfall_version()
        by = f"leaderfall {asked.version} made it, this is {version}"
        if asked.version == version:
            by = f"both by leaderfall {version}: was its code changed since?"
        raise UserError(
            f"The run cannot be made again: its digest is {asked.digest}, now it is {now}.",
            by,
            code=Exit.NOT_DETERMINISTIC,
        )
    return replays


def _code(found: Blame) -> Exit:
    return Exit.OK if found.is_complete else Exit.INCONCLUSIVE


def _head(asked: BlamedRun, replays: Replays) -> dict[str, Any]:
    from sim.version import leaderfall_version

    return {
        "leaderfall": leaderfall_version(),
        "scenario": asked.scenario.name,
        "variant": asked.scenario.variant,
        "seed": asked.scenario.seed,
        "digest": replays.base.result.digest,
        "verdict": replays.base.result.verdict.word,
    }


def _nothing(asked: BlamedRun, replays: Replays, why: str, *, is_json: bool) -> int:
    if is_json:
        document = {**_head(asked, replays), "target": None, "status": "nothing", "exit": Exit.OK}
        say(json.dumps(document, indent=2))
    else:
        say(f"{shown(_name(asked))}: nothing to blame: {why}.")
    return Exit.OK


def _name(asked: BlamedRun) -> str:
    scenario = asked.scenario
    variant = "" if scenario.variant is None else f" ({scenario.variant})"
    return f"{scenario.name}{variant}, seed {scenario.seed}"


# Text --------------------------------------------------------------------------------------------


def _print(console: Console, asked: BlamedRun, found: Blame, budget: int) -> None:
    from rich.text import Text

    from sim.present.text import print_timeline
    from sim.present.timeline import Line, Tone, Weight

    def put(text: str, style: str = "") -> None:
        for line in textwrap.wrap(shown(text), max(20, console.width)):
            console.print(Text(line, style), soft_wrap=True)

    put(f"{_name(asked)}, at #{found.target.event}: {found.words}.", "bold")
    console.print()
    put(" ".join(_sentences(found, budget)))
    if found.lines:
        console.print()
        console.print(Text("How it came about", "bold underline"))
        print_timeline(
            console,
            (Line(x.n, x.n, x.t_us, x.text, Tone.PLAIN, Weight.CHANGE) for x in found.lines),
        )
    console.print()
    words = [*asked.again]
    if asked.folder is not None:
        words += ["--at", str(found.target.event)]
    console.print(Text("open    ", "dim").append(command_line(words), ""), soft_wrap=True)


def _sentences(found: Blame, budget: int) -> Iterable[str]:
    status, parts = found.found.status, found.parts
    if status in ("found", "inconclusive") and parts:
        yield from _set(found)
    elif status == "unavoidable":
        yield (
            "No fault and no disturbing step is to blame: it happens without all of those that had "
            "begun by then."
        )
    elif status == "unknown":
        yield (
            "Nothing can be told: without all faults and disturbing steps that had begun by then "
            "the records are never acknowledged."
        )
    others = [each for each in found.alone if each not in parts]
    if others:
        listed = "; ".join(_part(each) for each in others)
        yield f"Leaving out another one alone prevents it, too: {listed}."
    notes = [each for each in found.found.passed_over if not each.text.startswith(_WAITED)]
    if notes:
        told = "; ".join(f"step {each.step}: {each.text}" for each in notes[:_NOTES_MAX])
        more = f"; and {len(notes) - _NOTES_MAX} more" if len(notes) > _NOTES_MAX else ""
        yield f"In the run without, something else could not act: {told}{more}."
    for each in found.loosened:
        state = "is off" if each.what.startswith("guard") else "is an older rule"
        now = "it back" if each.what.startswith("guard") else "today's in its place"
        yield f"The {each.what} {state}: with {now} this {_ANSWERS[str(each.answer)]}."
    if not found.is_complete:
        yield f"The budget of {budget} runs ended before everything was tried (--budget)."
    runs = "1 run" if found.runs == 1 else f"{found.runs} runs"
    yield f"({runs} with something left out.)"


_ANSWERS: Final = {
    "happens": "happens all the same",
    "does not happen": "does not happen",
    "cannot be told": "cannot be told of",
}


def _set(found: Blame) -> Iterable[str]:
    parts = found.parts
    if len(parts) == 1:
        yield f"To blame is {_part(parts[0])}: without it this does not happen."
        return
    listed = "; ".join(_part(each) for each in parts)
    yield f"To blame are, together, {listed}: without all {len(parts)} of them it does not happen."
    if found.found.status == "found":
        yield "Each is needed: with any one of them back it happens again, or cannot be told."
        yield "No smaller set does." if found.found.is_smallest else "A smaller set may do as well."


def _part(each: Blamed) -> str:
    from sim.present.words import seconds

    event = f"#{each.event}, " if each.event else ""
    name = each.part.name if each.part.name.startswith("step ") else f'"{each.part.name}"'
    return f"{name} ({each.text}; {event}{seconds(each.t_us)})"
