"""``leaderfall report``: a trace as one HTML page that opens from disk, without a network.

Left out: the data (``sim.present.plain_tracks``), filling the template (``sim.present.page``), and
the page itself (``sim/viewer``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from sim.cli.console import say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.show import complete_paths, trace_path

if TYPE_CHECKING:
    from sim.present.tracks import Tracks

__all__ = ["command"]

EVENTS_MAX: Final = 250_000
"""Such a page has about 4 MB, and opens in a few seconds."""


@click.command("report")
@click.argument("trace", shell_complete=complete_paths)
@click.option(
    "-o",
    "--out",
    metavar="FILE",
    default="run.html",
    show_default=True,
    shell_complete=complete_paths,
    help="The page; a file of that name is replaced.",
)
@click.option(
    "--events",
    "events_max",
    type=click.IntRange(1),
    default=EVENTS_MAX,
    show_default=True,
    help="Show at most so many events.",
)
@click.option(
    "--compare",
    "other",
    metavar="B",
    shell_complete=complete_paths,
    help="Another trace or run folder, to be shown beside this one.",
)
@click.option("--no-xray", "is_bare", is_flag=True, help="Leave the brokers' files out.")
def command(trace: str, *, out: str, events_max: int, other: str | None, is_bare: bool) -> int:
    """Write a trace as one HTML page, to step through in a browser.

    TRACE is a trace.jsonl or a run folder (runs/NAME/latest). The page has everything in it: it
    opens from disk, loads nothing and sends nothing. Add #step=812&node=b2&view=log to its address
    to point at a moment. A trace that was cut short is shown as far as it goes.

    Of a run folder the page has the brokers' files, too: their indexes, and their batches in hex,
    with all that records hold.

    Exit code 2: it is no trace, or damaged, or the page cannot be written.
    """
    from sim.cli.outputs import demand_place, write_whole
    from sim.cli.step import load_tracks
    from sim.present.page import PageError, fill
    from sim.present.plain_tracks import plain
    from sim.trace.reader import TraceError

    inputs = [trace_path(each) for each in (trace, other) if each is not None]
    target = demand_place(out, inputs, option="--out")
    tracks = load_tracks(trace, events_max)
    panels = _panels(trace, tracks, other, events_max, is_bare=is_bare)
    try:
        page = fill(plain(tracks), panels)
    except (PageError, TraceError) as error:
        raise UserError(shown(error)) from None
    write_whole(target, [page], encoding="utf-8")
    for notice in tracks.notices:
        say(shown(notice), is_error=True)
    size = f"{len(page) / 1_000_000:.1f} MB"
    say(f"{shown(target)}: {tracks.last} events, {size}. Open it in a browser.")
    return Exit.OK


def _panels(
    trace: str, tracks: Tracks, other: str | None, events_max: int, *, is_bare: bool
) -> dict[str, Any]:
    """What the page has besides the run's events.

    Raises:
        UserError: the trace to compare with is none, or there is nothing to compare.
    """
    from sim.cli.step import load_tracks
    from sim.present.page_panels import compare_panel
    from sim.trace.reader import TraceError
    from sim.xray.panel import xray_panel

    panels: dict[str, Any] = {}
    if other is not None:
        beside = load_tracks(other, events_max)
        for name, each in ((trace, tracks), (other, beside)):
            if not each.last:
                raise UserError(f'"{shown(name)}" keeps no events: there is nothing to compare.')
        try:
            panels["compare"] = compare_panel(
                trace_path(trace), trace_path(other), beside, events_max=events_max
            )
        except (TraceError, OSError) as error:
            raise UserError(shown(error)) from None
    found = None if is_bare else xray_panel(trace_path(trace))
    if found is not None:
        panels["xray"] = found
    return panels
