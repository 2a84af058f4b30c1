"""``leaderfall diff``: two runs compared, as text or as JSON.

Left out: comparing (``sim.present.comparing``), the text (``sim.cli.diff_report``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import click

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.show import complete_paths, trace_path

if TYPE_CHECKING:
    from sim.present.compared import Source
    from sim.present.comparing import Comparison
    from sim.trace.lines import Event

__all__ = ["command", "compared"]

EVENTS_MAX: Final = 2_000_000
"""Of each trace: more would take more memory than most machines have."""


@click.command("diff")
@click.argument("a", shell_complete=complete_paths)
@click.argument("b", shell_complete=complete_paths)
@click.option(
    "--context",
    type=click.IntRange(0, 1_000),
    default=4,
    show_default=True,
    help="So many rows before and behind the first divergence.",
)
@click.option("--json", "is_json", is_flag=True, help="One JSON document instead of text.")
@color_option
def command(a: str, b: str, *, context: int, is_json: bool, color: str) -> int:
    """Compare two runs: where they part first, and what their replicas have then.

    A and B are traces (trace.jsonl) or run folders: two variants, two seeds, a guard on and off.
    Events are paired by what they say and by their causes, not by number or time. A trace that was
    cut short is compared as far as it goes. Exit code 0: the same events and the same outcome, even
    if the headers differ. 1: they differ. 2: one is no trace, or damaged.
    """
    found = compared(a, b)
    if is_json:
        from sim.trace.lines import encode

        say(encode(found.plain()))
    else:
        from sim.cli.diff_report import print_comparison

        print_comparison(make_console(color), found, context=context)
    return Exit.OK if found.is_same else Exit.FAILED


def compared(a: str, b: str) -> Comparison:
    """Two traces or run folders, compared.

    Raises:
        UserError: one is no trace, damaged, too long, or cannot be read.
    """
    from sim.present.comparing import compare
    from sim.trace.reader import TraceError

    try:
        return compare(_source(a), _source(b))
    except TraceError as error:
        raise UserError(shown(error)) from None
    except OSError as error:
        name = shown(error.filename if error.filename is not None else f"{a}, {b}")
        raise UserError(f'"{name}" cannot be read: {shown(error.strerror or error)}') from None


def _source(text: str) -> Source:
    from sim.present.compared import Source
    from sim.trace.reader import TraceReader

    path = trace_path(text)
    try:
        reader = TraceReader(path)
    except ValueError as error:
        raise UserError(f'"{shown(path)}" is no name of a file: {shown(error)}') from None
    if reader.footer is not None and reader.footer.n:
        _demand_few(text, reader.footer.n)
        if not reader.checks.has_events:
            count = reader.footer.n
            raise UserError(
                f'"{shown(text)}" keeps no events, only digests of {count} (--trace-level digest).',
                "Compare traces of level events or full.",
            )

    def fetch(first: int, last: int | None) -> Iterable[Event]:
        for event in reader.fetch(first, last):
            if event.n > EVENTS_MAX:
                _demand_few(text, event.n)
            yield event

    return Source(str(path), reader.header, fetch, reader.footer)


def _demand_few(text: str, count: int) -> None:
    if count > EVENTS_MAX:
        raise UserError(
            f'"{shown(text)}" has {count} events or more; at most {EVENTS_MAX} can be compared.'
        )
