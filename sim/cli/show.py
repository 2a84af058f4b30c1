"""``leaderfall show``: a trace as text, one line an event, one column a node.

Left out: the columns themselves (``sim.present.columns``).
"""

from __future__ import annotations

from collections.abc import Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError

if TYPE_CHECKING:
    from sim.trace.kinds import Kind
    from sim.trace.lines import Event
    from sim.trace.reader import TraceReader

__all__ = ["command", "complete_kinds", "complete_paths", "kind_of", "trace_path"]

TRACE_NAME: Final = "trace.jsonl"
_RUNS_MAX: Final = 10
EVENTS_MAX: Final = 1_000_000
"""So many events are read; each takes about half a KB of memory."""


def complete_paths(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Files and folders; ``click.Path`` itself fails at a name with a null in it."""
    return [CompletionItem(incomplete, type="file")]


def complete_kinds(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Kinds of events."""
    from sim.trace.kinds import Kind

    return [CompletionItem(str(each)) for each in Kind if each.startswith(incomplete)]


@click.command("show")
@click.argument("trace", shell_complete=complete_paths)
@click.option("--around", type=click.IntRange(1), metavar="N", help="Only what is around event N.")
@click.option(
    "--context",
    type=click.IntRange(0, 1_000_000),
    default=12,
    show_default=True,
    help="So many events before and behind --around.",
)
@click.option("--node", "nodes", multiple=True, help="Only this node's events; may be repeated.")
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    shell_complete=complete_kinds,
    help="Only this kind; may be repeated.",
)
@color_option
def command(
    trace: str,
    *,
    around: int | None,
    context: int,
    nodes: tuple[str, ...],
    kinds: tuple[str, ...],
    color: str,
) -> int:
    """Show a trace: one line an event, one column a node.

    TRACE is a trace.jsonl or a run folder (runs/NAME/latest). A trace that was cut short is shown
    as far as it goes. Exit code 2: it is no trace, or damaged.
    """
    from sim.trace.reader import TraceError, TraceReader

    path = trace_path(trace)
    wanted = tuple(kind_of(each) for each in kinds)
    try:
        reader = TraceReader(path)
        return _show(reader, around, context, nodes, wanted, color)
    except TraceError as error:
        raise UserError(shown(error)) from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(path)}" cannot be read: {shown(said)}') from None


def trace_path(text: str) -> Path:
    """The trace that a file or a run folder is meant to be."""
    path = Path(text)
    try:
        if not path.is_dir():
            return path
        if not (path / TRACE_NAME).exists():
            inside = [each.parent.name for each in sorted(path.glob(f"*/{TRACE_NAME}"))]
            hints = [f"Runs in it: {', '.join(map(shown, inside[:_RUNS_MAX]))}."] if inside else []
            raise UserError(f'The folder "{shown(text)}" has no {TRACE_NAME}.', *hints)
        return path / TRACE_NAME
    except (OSError, ValueError) as error:
        raise UserError(f'"{shown(text)}" is no name of a file: {shown(error)}') from None


def kind_of(text: str) -> Kind:
    """A kind of event by its name."""
    from sim.trace.kinds import Kind

    try:
        return Kind(text)
    except ValueError:
        near = get_close_matches(text, [str(each) for each in Kind], n=1)
        hint = f' Did you mean "{near[0]}"?' if near else ""
        raise UserError(
            f'There is no kind of event "{shown(text)}".{hint}',
            "leaderfall explain events lists them.",
        ) from None


def _show(
    reader: TraceReader,
    around: int | None,
    context: int,
    nodes: tuple[str, ...],
    kinds: tuple[Kind, ...],
    color: str,
) -> int:
    from sim.present.columns import Selection, columns
    from sim.present.story import Story
    from sim.present.text import print_columns

    counted = _Counted(reader)
    story = Story(reader.header, counted, reader.footer)
    count = counted.count
    if not count:
        _tell_empty(reader)
        return Exit.OK
    if around is not None and around > count:
        if counted.is_cut:
            raise UserError(f"Only the first {count} events are read: {around} is not.")
        raise UserError(f"There is no event {around}: the trace has {count}.")
    unknown = [each for each in nodes if each not in story.nodes and each != "world"]
    if unknown:
        known = ", ".join(shown(each) for each in story.nodes)
        raise UserError(f'There is no node "{shown(unknown[0])}". There are {known}.')
    selection = Selection(around=around, context=context, nodes=nodes, kinds=kinds)
    print_columns(make_console(color), columns(story, selection, counted))
    if counted.is_cut:
        say(f"(Only the first {count} events are shown: the trace is long.)", is_error=True)
    elif reader.footer is None:
        say(f"(The trace was cut short behind event {count}.)", is_error=True)
    return Exit.OK


class _Counted:
    """Events, counted on their way; at most ``EVENTS_MAX`` of them."""

    def __init__(self, reader: TraceReader) -> None:
        self._reader = reader
        self.count = 0
        self.is_cut = False

    def __iter__(self) -> Iterator[Event]:
        for event in self._reader:
            if event.n > EVENTS_MAX:
                self.is_cut = True
                return
            self.count = event.n
            yield event


def _tell_empty(reader: TraceReader) -> None:
    if reader.footer is not None and reader.footer.n:
        count = reader.footer.n
        say(f"The trace keeps no events, only digests of {count} (--trace-level digest).")
    else:
        say("The trace has no events.")
