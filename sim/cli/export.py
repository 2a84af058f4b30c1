"""``leaderfall export``: a trace in the form of another tool.

Left out: the forms (``sim.exports``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from sim.cli.console import outlet, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.show import complete_kinds, complete_paths, kind_of, trace_path

if TYPE_CHECKING:
    from sim.exports.selection import Exported, Selection
    from sim.present.story import Story
    from sim.trace.lines import Event, Header
    from sim.trace.reader import TraceReader

__all__ = ["FORMATS", "command"]

FORMATS: Final = ("shiviz", "mermaid", "plantuml", "perfetto")
EVENTS_MAX: Final = 2_000_000
"""More would take more memory than most machines have."""


@click.command("export")
@click.argument("trace", shell_complete=complete_paths)
@click.option("--as", "form", type=click.Choice(FORMATS), required=True, help="For which tool.")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    shell_complete=complete_paths,
    help="Write there instead of to standard output; a file of that name is replaced.",
)
@click.option("--from", "first", type=click.IntRange(1), metavar="N", help="From event N on.")
@click.option("--to", "last", type=click.IntRange(1), metavar="N", help="Up to event N.")
@click.option("--node", "nodes", multiple=True, help="Only this node's events; may be repeated.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    shell_complete=complete_kinds,
    help="Only this kind; may be repeated.",
)
def command(
    trace: str,
    *,
    form: str,
    output: str | None,
    first: int | None,
    last: int | None,
    nodes: tuple[str, ...],
    kinds: tuple[str, ...],
) -> int:
    """Write a trace for ShiViz, Mermaid, PlantUML or Perfetto.

    TRACE is a trace.jsonl or a run folder (runs/NAME/latest). Diagrams for Mermaid and PlantUML
    hold 200 rows: without --from and --to those around the first loss or broken rule. What was cut
    is said in the diagram and on standard error. Exit code 2: it is no trace, or damaged.
    """
    from sim.exports.selection import ExportError, Selection
    from sim.trace.reader import TraceError

    path = trace_path(trace)
    if first is not None and last is not None and first > last:
        raise UserError(f"--from {first} is behind --to {last}.")
    wanted = Selection(
        first=first or 1, last=last, nodes=nodes, kinds=tuple(kind_of(each) for each in kinds)
    )
    try:
        return _export(path, form, output, wanted)
    except (TraceError, ExportError) as error:
        raise UserError(shown(error)) from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        where = getattr(error, "filename", None) or path
        raise UserError(f'"{shown(where)}": {shown(said)}') from None


def _export(path: Path, form: str, output: str | None, wanted: Selection) -> int:
    from sim.cli.outputs import demand_place, write_whole
    from sim.present.story import Story
    from sim.trace.reader import TraceReader

    reader = TraceReader(path)
    place = None if output is None else demand_place(output, [path], option="-o")
    if reader.footer is not None:
        _demand_few(path, reader.footer.n)
    story = Story(reader.header, _counted(path, reader), reader.footer)
    _demand_events(reader, story, wanted)
    made = _function(form)(reader.header, reader, story, wanted)
    for each in made.notices:
        say(f"({shown(each)}.)", is_error=True)
    if reader.footer is None:
        say(f"(The trace was cut short behind event {story.last_n}.)", is_error=True)
    if place is None:
        stream = outlet()
        for line in made.lines:
            stream.write(f"{line}\n")
        stream.flush()
    else:
        write_whole(place, _read_lines(path, made.lines), encoding="ascii")
    return Exit.OK


def _read_lines(path: Path, lines: Iterable[str]) -> Iterator[str]:
    """Lines for a file; the trace is read while they are made, and that may fail, too."""
    try:
        for line in lines:
            yield f"{line}\n"
    except OSError as error:
        raise UserError(f'"{shown(path)}" cannot be read: {shown(error.strerror)}') from None


def _function(
    form: str,
) -> Callable[[Header, Iterable[Event], Story, Selection], Exported]:
    if form == "shiviz":
        from sim.exports.shiviz import shiviz

        return shiviz
    if form == "mermaid":
        from sim.exports.mermaid import mermaid

        return mermaid
    if form == "plantuml":
        from sim.exports.plantuml import plantuml

        return plantuml
    from sim.exports.perfetto import perfetto

    return perfetto


def _counted(path: Path, reader: TraceReader) -> Iterator[Event]:
    for event in reader:
        _demand_few(path, event.n)
        yield event


def _demand_few(path: Path, count: int) -> None:
    if count > EVENTS_MAX:
        raise UserError(
            f'"{shown(path)}" has {count} events or more; at most {EVENTS_MAX} can be exported.'
        )


def _demand_events(reader: TraceReader, story: Story, wanted: Selection) -> None:
    if not story.last_n and reader.footer is not None and reader.footer.n:
        count = reader.footer.n
        raise UserError(
            f"The trace keeps no events, only digests of {count} (--trace-level digest)."
        )
    if wanted.first > max(1, story.last_n):
        raise UserError(f"There is no event {wanted.first}: the trace has {story.last_n}.")
    seen = {brief.node for brief in story.briefs}
    unknown = [each for each in wanted.nodes if each not in seen and each not in story.nodes]
    if unknown:
        known = ", ".join(shown(each) for each in story.nodes)
        raise UserError(f'There is no node "{shown(unknown[0])}". There are {known}.')
