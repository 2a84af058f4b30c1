"""A look-up in a log's directory, told step by step.

Left out: doing it (``sim.xray.lookup``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sim.cli.console import shown
from sim.cli.wrapping import print_line, print_wrapped
from storage.inspection.escaping import utc

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["counted", "print_lookup", "print_title"]

_PROBES_MAX: Final = 40
_INDENT: Final = 13


def counted(number: int, noun: str) -> str:
    """A number and its noun."""
    many = {"entry": "entries", "batch": "batches"}.get(noun, f"{noun}s")
    return f"{number:,} {noun if number == 1 else many}"


def print_title(console: Console, title: str, rest: str = "") -> None:
    """The title of a section, behind an empty line."""
    print_line(console, ("", ""))
    print_line(console, (title, "bold cyan"), (f"  {rest}" if rest else "", "dim"))


def print_lookup(
    console: Console, data: dict[str, Any], found: dict[str, Any], *, why: str = ""
) -> None:
    """Probes, seek, scan and what was found."""
    is_time = found["kind"] == "time"
    target = found["target"]
    what = f"look-up of time {target} ({utc(target)})" if is_time else f"look-up of offset {target}"
    print_title(console, what, f"({why})" if why else "")
    if found["segment"] is None:
        print_wrapped(console, found["text"], 2, style="yellow")
        return
    segment = data["segments"][found["segment"]]
    _segment_line(console, found, segment, is_time=is_time)
    if is_time:
        _time_probes(console, found, segment)
    _offset_probes(console, found, segment)
    _scan(console, found)
    for note in found["notes"]:
        _step(console, "note", shown(note), "yellow")


def _step(console: Console, name: str, text: str, style: str = "") -> None:
    from rich.text import Text

    head = Text(f"  {name}".ljust(_INDENT))
    head.stylize("dim")
    print_wrapped(console, text, _INDENT, head=head, style=style)


def _segment_line(
    console: Console, found: dict[str, Any], segment: dict[str, Any], *, is_time: bool
) -> None:
    count = len(found["segment_probes"])
    if is_time:
        how = f"{counted(count, 'segment')} looked at, the first whose records are late enough"
    else:
        how = f"{counted(count, 'probe')} of the segments' names, the last base at or below it"
    _step(console, "segment", f"{shown(segment['file'])}: {how}")


def _time_probes(console: Console, found: dict[str, Any], segment: dict[str, Any]) -> None:
    index = segment["time_index"]
    name = "no time index" if index is None else shown(index["file"])
    entries = 0 if index is None else len(index["entries"])
    _step(console, "time index", f"{name}: {counted(entries, 'entry')}")
    for number, probe in enumerate(found["time_probes"][:_PROBES_MAX], 1):
        text = f"[{probe['number']}] {probe['value']} ms, up to offset {probe['offset']}"
        _probe(console, number, probe, text, "too late" if probe["goes"] == "left" else "early")
    anchor = found["time_anchor"]
    if anchor is None:
        _step(console, "so", f"nothing to skip: from offset {segment['base_offset']} on")
    else:
        _step(console, "so", f"entry {anchor['number']}: from offset {anchor['offset']} on", "bold")


def _offset_probes(console: Console, found: dict[str, Any], segment: dict[str, Any]) -> None:
    index = segment["index"]
    name = "no offset index" if index is None else shown(index["file"])
    entries = 0 if index is None else len(index["entries"])
    _step(console, "index", f"{name}: {counted(entries, 'entry')}")
    for number, probe in enumerate(found["probes"][:_PROBES_MAX], 1):
        text = f"[{probe['number']}] offset {probe['value']} at byte {probe['position']}"
        _probe(console, number, probe, text, "above" if probe["goes"] == "left" else "at or below")
    anchor = found["anchor"]
    if anchor is None:
        _step(console, "seek", f"byte {found['seek']}, where the segment begins", "bold")
    else:
        _step(console, "seek", f"byte {anchor['position']}, from entry {anchor['number']}", "bold")


def _probe(console: Console, number: int, probe: dict[str, Any], text: str, verdict: str) -> None:
    arrow = "<-" if probe["goes"] == "left" else "->"
    between = f"of {probe['low']}..{probe['high'] - 1}"
    _step(console, f"probe {number}", f"{arrow} {text}: {verdict} ({between})")


def _scan(console: Console, found: dict[str, Any]) -> None:
    records = counted(found["records_scanned"], "record")
    batches = counted(found["batches_scanned"], "batch")
    size = counted(found["bytes_scanned"], "byte")
    _step(console, "scan", f"{records} passed, in {batches}, {size}")
    result = found["result"]
    if result is None:
        text = "nothing there" if found["verdict"] != "unknown" else "not in what is listed"
        _step(console, "found", text, "yellow")
        return
    where = (
        f"batch of offsets {result['base_offset']}..{result['next_offset'] - 1} at byte "
        f"{result['position']}, {counted(result['size_bytes'], 'byte')}"
    )
    if found["verdict"] == "hole":
        _step(console, "found", f"no record of that offset; the next is in the {where}", "yellow")
        return
    time = "" if result["timestamp_ms"] is None else f", {utc(result['timestamp_ms'])}"
    record = "" if result["offset"] is None else f"offset {result['offset']}{time}, in the "
    _step(console, "found", f"{record}{where}", "bold green")
