"""``leaderfall xray``: the directory of a log, looked through to the bytes.

Left out: reading it (``sim.xray``), and how it looks (``sim.cli.xray_text``).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
from attrs import frozen

from sim.cli.console import color_option, make_console, outlet, shown
from sim.cli.exits import Exit, UserError

if TYPE_CHECKING:
    from sim.xray.pending import Pending
    from sim.xray.places import Place

__all__ = ["command"]

_CHOICES_MAX: Final = 20
_OFFSETS: Final = click.IntRange(0, 2**63 - 1)
_DIGITS_MAX: Final = 18
_RUN_TIME: Final = re.compile(r"(-)?([0-9]{1,9})(?:\.([0-9]{1,6}))?s")


@click.command("xray")
@click.argument("directory", metavar="DIR")
@click.option("--offset", type=_OFFSETS, metavar="N", help="Look this offset up, step by step.")
@click.option(
    "--time",
    metavar="TIME",
    help="Look this time up: ms since 1970, or a time of the run as 3.5s.",
)
@click.option("--segment", metavar="NAME", help="One segment: its index entries and batches.")
@click.option("--hex", "hex_at", type=_OFFSETS, metavar="OFFSET", help="Its batch, byte by byte.")
@click.option("--pages", is_flag=True, help="Every file's pages: clean, dirty, unknown.")
@click.option("--transfer", is_flag=True, help="Measure sendfile against read and send, here.")
@click.option("--explain", is_flag=True, help="Say what it all means, and what each file is.")
@click.option("--json", "as_json", is_flag=True, help="The same as plain data.")
@color_option
def command(
    directory: str,
    *,
    offset: int | None,
    time: str | None,
    segment: str | None,
    hex_at: int | None,
    pages: bool,
    transfer: bool,
    explain: bool,
    as_json: bool,
    color: str,
) -> int:
    """Look through a log's directory: segments, indexes, pages, bytes.

    DIR is the directory of one partition, or that of a broker or of a run (runs/NAME/latest) with
    one partition in it. It is only read. Without options: everything in brief, with an example of a
    look-up. Exit code 2: there is no log in it, or more than one.
    """
    from sim.cli.xray_text import example_offset
    from sim.xray.lookup import lookup
    from storage.errors import DiskError

    try:
        place = _place(directory)
        time_ms = None if time is None else _time_ms(place, time)
        near = [each for each in (offset, hex_at, _base_in(segment)) if each is not None]
        data = _read(place, near[0] if near else None, time_ms, hex_at)
        name = _segment(data, segment)
        asked = _Asked(offset, time_ms, name, hex_at, pages, transfer, explain)
        if as_json:
            _print_json(data, asked)
        else:
            target = example_offset(data) if asked.is_nothing_special else None
            if target is not None and lookup(data, target)["verdict"] == "unknown":
                # The log is too long for all of its batches: the example's are wanted.
                data = _read(place, target, None, None)
            _print(make_console(color), data, asked, target)
    except DiskError as error:
        raise UserError(f'"{shown(directory)}" cannot be read: {shown(error)}') from None
    return Exit.OK


@frozen
class _Asked:
    """What is to be shown; ``segment`` is a number."""

    offset: int | None
    time_ms: int | None
    segment: int | None
    hex_at: int | None
    pages: bool
    transfer: bool
    explain: bool

    @property
    def is_nothing_special(self) -> bool:
        """Whether it is everything in brief."""
        numbers = (self.offset, self.time_ms, self.segment, self.hex_at)
        flags = (self.pages, self.transfer, self.explain)
        return all(each is None for each in numbers) and not any(flags)


# Finding ---------------------------------------------------------------------------------------


def _place(text: str) -> Place:
    """The one log that is meant."""
    from sim.xray.places import find_places
    from storage.disk import OsDisk
    from storage.read_only import ReadOnlyDisk

    try:
        found = find_places(ReadOnlyDisk(OsDisk()), Path(text))
    except FileNotFoundError:
        raise UserError(f'There is no directory "{shown(text)}".') from None
    except (OSError, RuntimeError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(text)}" cannot be read: {shown(said)}') from None
    if found.kind == "nothing" or not found.places:
        reason = found.reason or "no log is in it"
        raise UserError(
            f'"{shown(text)}" is not the directory of a log: {reason}.',
            "Allowed are a partition's directory (with files like 00000000000000000000.log), "
            "a broker's, and a run's.",
        )
    if len(found.places) > 1:
        names = [str(Path(text) / each.name) for each in found.places[:_CHOICES_MAX]]
        more = len(found.places) - len(names)
        lines = [f"  {shown(each)}" for each in names]
        if more:
            lines.append(f"  and {more} more")
        what = {"broker": "a broker's directory", "run": "the folder of a run"}[found.kind]
        count = len(found.places)
        raise UserError(f'"{shown(text)}" is {what} with {count} logs. Name one:', *lines)
    return found.places[0]


def _pending(place: Place) -> tuple[Pending | None, str | None]:
    """What the run's trace says of the files, or why it says nothing."""
    if place.trace is None or place.node is None:
        return None, None
    from sim.trace.reader import TraceError
    from sim.xray.pending import pending_of

    try:
        return pending_of(place.trace), None
    except (TraceError, OSError, ValueError) as error:
        return None, f"the run's trace does not tell what was synced: {error}"


def _base_in(segment: str | None) -> int | None:
    """The base offset that the name of a segment tells."""
    stem = (segment or "").removesuffix(".log")
    is_number = stem.isascii() and stem.isdigit() and len(stem) <= 20
    return int(stem) if is_number else None


def _read(
    place: Place, around: int | None, time_ms: int | None, hex_at: int | None
) -> dict[str, Any]:
    from sim.xray.reading import xray

    pending, why = _pending(place)
    return xray(
        place.directory,
        name=place.title,
        node=place.node,
        folder=place.folder,
        pending=pending,
        why_unknown=why,
        around=around,
        at_time_ms=time_ms,
        hex_at=hex_at,
    )


def _time_ms(place: Place, text: str) -> int:
    """A time of the clocks of a run's brokers in ms, where no fault has set them.

    A run's clocks begin with its first event, at the time that ``sim.clocks`` says.
    """
    from sim.clocks import WALL_START_US
    from sim.trace.reader import TraceError, TraceReader

    if text.isascii() and text.isdigit() and len(text) < _DIGITS_MAX:
        return int(text)
    found = _RUN_TIME.fullmatch(text)
    if found is None:
        raise UserError(f'--time needs ms since 1970, or a time as 3.5s, not "{shown(text)}".')
    if place.trace is None:
        raise UserError(
            f'"{shown(text)}" is a time of a run, and {shown(place.title)} belongs to none here.',
            "Allowed are ms since 1970.",
        )
    try:
        first = next(iter(TraceReader(place.trace).fetch(1, 1)), None)
    except (OSError, TraceError) as error:
        raise UserError(f"The run's trace cannot be read: {shown(error)}") from None
    sign = -1 if found[1] else 1
    t_us = sign * (int(found[2]) * 1_000_000 + int((found[3] or "").ljust(6, "0")))
    return (WALL_START_US + t_us - (0 if first is None else first.t_us)) // 1_000


def _segment(data: dict[str, Any], name: str | None) -> int | None:
    """The number of a segment by its name or its base offset."""
    if name is None:
        return None
    files = [each["file"] for each in data["segments"]]
    base = _base_in(name)
    for number, each in enumerate(data["segments"]):
        if base == each["base_offset"]:
            return number
    known = ", ".join(shown(each) for each in files[:_CHOICES_MAX]) or "none"
    raise UserError(f'There is no segment "{shown(name)}". There are {known}.')


# Showing ---------------------------------------------------------------------------------------


def _print_json(data: dict[str, Any], asked: _Asked) -> None:
    import json

    from sim.xray.lookup import lookup, lookup_time

    if asked.offset is not None:
        data["lookup"] = lookup(data, asked.offset)
    if asked.time_ms is not None:
        data["lookup_time"] = lookup_time(data, asked.time_ms)
    if asked.segment is not None:
        data["segments"] = [data["segments"][asked.segment]]
    if asked.transfer:
        data["measured_transfer"] = _measured()
    outlet().write(json.dumps(data, allow_nan=False) + "\n")


def _measured() -> dict[str, Any]:
    from sim.cli.transfer import TransferError, measure

    try:
        return measure()
    except TransferError as error:
        raise UserError(f"The transfer cannot be measured here: {shown(error)}.") from None


def _print(console: Any, data: dict[str, Any], asked: _Asked, target: int | None) -> None:
    from sim.cli import xray_text as text
    from sim.cli.xray_steps import print_lookup
    from sim.xray.lookup import lookup, lookup_time

    text.print_head(console, data)
    if asked.is_nothing_special:
        text.print_marks(console, data)
        text.print_segments(console, data)
        if target is not None:
            print_lookup(console, data, lookup(data, target), why="an example: --offset N")
        text.print_pages(console, data, is_brief=True)
        text.print_directory(console, data, is_brief=True)
    if asked.offset is not None:
        print_lookup(console, data, lookup(data, asked.offset))
    if asked.time_ms is not None:
        print_lookup(console, data, lookup_time(data, asked.time_ms))
    if asked.segment is not None:
        text.print_segment(console, data["segments"][asked.segment])
    if asked.hex_at is not None:
        if not data["hex"]:
            raise UserError(f"No batch that is listed holds offset {asked.hex_at}.")
        for view in data["hex"]:
            text.print_hex(console, view)
    if asked.pages:
        text.print_pages(console, data, is_brief=False)
    if asked.explain:
        text.print_directory(console, data, is_brief=False)
        text.print_book(console, data)
    if asked.transfer or asked.explain:
        text.print_paths(console, data)
    if asked.transfer:
        text.print_transfer(console, _measured())
    text.print_notices(console, data)
    if asked.is_nothing_special:
        text.print_more(console)
