"""The X-ray of a log's directory on a console: tables, marks, pages, bytes.

Everything is ASCII, so that it looks the same everywhere; what comes from the directory is escaped.

Left out: look-ups (``sim.cli.xray_steps``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from sim.cli.console import shown
from sim.cli.wrapping import print_line, print_wrapped
from sim.cli.xray_steps import counted, print_title
from storage.inspection.escaping import utc

if TYPE_CHECKING:
    from rich.console import Console

__all__ = [
    "example_offset",
    "print_book",
    "print_directory",
    "print_head",
    "print_hex",
    "print_marks",
    "print_more",
    "print_notices",
    "print_pages",
    "print_paths",
    "print_segment",
    "print_segments",
    "print_transfer",
]

Plain = dict[str, Any]
_SIGNS: Final = {"clean": ".", "dirty": "#", "unknown": "?"}
_STYLES: Final = {"clean": "green", "dirty": "bold yellow", "unknown": "dim"}
_ROWS_MAX: Final = 40
_WIDE: Final = 110
_HEX_STYLES: Final = ("cyan", "yellow", "green", "magenta", "blue")


def _table(
    console: Console, titles: Sequence[str], sides: str, rows: Iterable[Sequence[str]]
) -> None:
    """Columns as wide as they must be; a last one on the left is wrapped."""
    from rich.text import Text

    rows = [tuple(row) for row in rows]
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    last = len(titles) - 1
    indent = 2 + sum(width + 2 for width in widths[:last])
    for number, row in enumerate([tuple(titles), *rows]):
        line = Text("  ")
        for at, (cell, width, side) in enumerate(zip(row, widths, sides, strict=True)):
            if at == last and side == "<" and number:
                print_wrapped(console, cell, min(indent, console.width * 2 // 3), head=line)
                break
            line.append(cell.rjust(width) if side == ">" else cell.ljust(width))
            line.append("" if at == last else "  ")
        else:
            print_line(console, (line.plain.rstrip(), "" if number else "dim"))


def print_head(console: Console, data: Plain) -> None:
    """What it is, and what configuration it shows."""
    measured, config = data["configuration"]["measured"], data["configuration"]
    segments = counted(len(data["segments"]), "segment")
    facts = (
        f"{data['format']}, {segments}, {counted(measured['batches'], 'batch')}, "
        f"{counted(measured['log_bytes'], 'byte')}"
    )
    print_line(console, (shown(data["name"]), "bold"), (f"  {facts}", ""))
    apart = ""
    least, most = measured["gap_bytes_least"], measured["gap_bytes_most"]
    if least is not None:
        range_ = f"{least}" if least == most else f"{least} to {most}"
        apart = f"; the entries here are {range_} bytes apart"
    text = (
        f"index.interval.bytes {config['index_interval_bytes']} "
        f"({config['index_interval_source']}){apart}"
    )
    print_wrapped(console, text, 0, style="dim")


def example_offset(data: Plain) -> int | None:
    """An offset in the middle of what may be read, for an example; None in an empty log."""
    marks = data["marks"]
    start, end = marks["log_start"]["offset"], marks["log_end"]["offset"]
    mark = marks["high_watermark"]
    if mark is not None and start < mark["offset"] <= end:
        end = mark["offset"]
    return (start + end) // 2 if start < end else None


def print_marks(console: Console, data: Plain) -> None:
    """The marks on a scale, and what they are."""
    marks = data["marks"]
    named = [("S", "log start", marks["log_start"]), ("H", "HW", marks["high_watermark"])]
    named += [("D", "durable", marks["durable_end"]), ("E", "log end", marks["log_end"])]
    start, end = marks["log_start"]["offset"], marks["log_end"]["offset"]
    print_title(console, "marks")
    width = min(console.width - 6, 70)
    scale = ["-"] * width

    def place(offset: int) -> int:
        inside = min(max(offset, start), end) - start
        return int(inside * (width - 1) // max(end - start, 1))

    for base in marks["segment_bases"]:
        scale[place(base)] = "+"
    below = [" "] * width
    for sign, _, mark in reversed(named):
        if mark is not None:
            # Marks that fall together stand behind one another.
            at = place(mark["offset"])
            while at > 0 and below[at] != " ":
                at -= 1
            below[at] = sign
    print_line(console, ("  |", "dim"), ("".join(scale), ""), ("|", "dim"))
    print_line(console, ("   ", ""), ("".join(below).rstrip(), "bold"))
    rows = [
        (sign, name, "-" if mark is None else str(mark["offset"]), mark and mark["source"])
        for sign, name, mark in named
    ]
    bases = marks["segment_bases"]
    rows.append(("+", "segments", str(len(bases)), f"bases {_some(bases)}"))
    _table(
        console,
        ("", "mark", "offset", "from"),
        "<<><",
        [(sign, name, offset, source or "not known here") for sign, name, offset, source in rows],
    )


def _some(numbers: Sequence[int]) -> str:
    if len(numbers) > 8:
        return f"{', '.join(map(str, numbers[:7]))}, ... {numbers[-1]}"
    return ", ".join(map(str, numbers)) or "none"


def print_segments(console: Console, data: Plain) -> None:
    """A line a segment."""
    print_title(console, "segments")
    rows = []
    for each in data["segments"][-_ROWS_MAX:]:
        is_empty = each["next_offset"] == each["base_offset"]
        offsets = "-" if is_empty else f"{each['base_offset']}..{each['next_offset'] - 1}"
        mark = " damaged" if each["damage"] else " active" if each["is_active"] else ""
        rows.append(
            (
                shown(each["file"]),
                f"{each['size_bytes']:,}",
                offsets,
                str(each["batch_count"]),
                _entries(each["index"]),
                _entries(each["time_index"]) + mark,
            )
        )
    titles = ("file", "bytes", "offsets", "batches", "index", "time index")
    _table(console, titles, "<>>>>>", rows)
    _left_out(console, len(data["segments"]) - len(rows), "older segments")


def _entries(index: Plain | None) -> str:
    if index is None:
        return "none"
    mark = "!" if index["unusable"] or index["problems"] else ""
    return f"{len(index['entries']) + index['left_out']}{mark}"


def _left_out(console: Console, count: int, what: str) -> None:
    if count > 0:
        print_line(console, (f"  and {count:,} {what}", "dim"))


def print_segment(console: Console, segment: Plain) -> None:
    """One segment: entries and batches."""
    print_title(console, shown(segment["file"]), counted(segment["batch_count"], "batch"))
    _print_index(console, segment["index"], ("", "offset", "byte"))
    _print_index(console, segment["time_index"], ("", "time ms", "offset"))
    print_title(console, "batches")
    batches = [
        (
            f"{row[0]:,}",
            str(row[1]),
            f"{row[2]}..{row[3] - 1}",
            str(row[4]),
            str(row[6]),
            utc(row[5]),
        )
        for row in segment["batches"][:_ROWS_MAX]
    ]
    titles = ("byte", "size", "offsets", "epoch", "records", "latest record")
    _table(console, titles, ">>>>><", batches)
    _left_out(console, segment["batch_count"] - len(batches), "more batches")


def _print_index(console: Console, index: Plain | None, titles: Sequence[str]) -> None:
    if index is None:
        return
    print_title(console, shown(index["file"]), f"{index['entry_bytes']} bytes an entry")
    rows = [
        (f"[{number}]", str(left), str(right))
        for number, (left, right) in enumerate(index["entries"][:_ROWS_MAX])
    ]
    _table(console, titles, ">>>", rows)
    _left_out(console, len(index["entries"]) - len(rows) + index["left_out"], "more entries")
    for problem in index["problems"][:_ROWS_MAX]:
        print_wrapped(console, shown(problem["reason"]), 4, first=2, style="yellow")


# Pages -----------------------------------------------------------------------------------------


def print_pages(console: Console, data: Plain, *, is_brief: bool) -> None:
    """A sign a page, and what a crash takes."""
    pages = data["pages"]
    print_title(console, "pages of 4 KiB", ". clean  # dirty  ? unknown")
    files = [each for each in pages["files"] if each["pages"]]
    if is_brief:
        names = {each["file"] for each in data["segments"][-8:]}
        files = [each for each in files if each["file"] in names]
    for each in files[:_ROWS_MAX]:
        _page_line(console, each)
        if not is_brief:
            for start, end in each["dirty"][:8]:
                print_line(console, (f"      bytes {start:,} to {end:,} not synced", "yellow"))
            if each["note"]:
                print_line(console, (f"      {shown(each['note'])}", "yellow"))
    _left_out(console, len(files) - _ROWS_MAX, "more files")
    if not pages["known"]:
        print_wrapped(console, f"Unknown: {shown(pages['why_unknown'])}.", 2, style="yellow")
    print_wrapped(console, f"kill   {pages['kill']['text']}", 9, first=2)
    print_wrapped(console, f"power  {shown(pages['power']['text'])}", 9, first=2)
    if not is_brief:
        for state in pages["states"]:
            text = f"{_SIGNS[state['state']]} {state['state']:<8} {state['meaning']}"
            print_wrapped(console, text, 13, first=2, style="dim")


def _page_line(console: Console, each: Plain) -> None:
    name = shown(each["file"])
    room = console.width - max(len(name), 24) - 6
    parts: list[tuple[str, str]] = [(f"  {name:<24}  ", "")]
    if each["pages"] <= room:
        parts += [
            (_SIGNS[state] * (end - start), _STYLES[state]) for start, end, state in each["runs"]
        ]
    else:
        told = []
        for start, end, state in each["runs"][:4]:
            last = f"..{end - 1}" if end - start > 1 else ""
            told.append(f"{start}{last} {state}")
        more = len(each["runs"]) - len(told)
        told += [f"and {more} more runs"] if more else []
        parts.append((", ".join(told), ""))
    cut = "  cut, not synced" if each["is_cut"] else ""
    print_line(console, *parts, (cut, "yellow"))


# Files -----------------------------------------------------------------------------------------


def print_directory(console: Console, data: Plain, *, is_brief: bool) -> None:
    """The files, by kind: in brief what they are for, else all that is known of them."""
    from rich.text import Text

    print_title(console, "directory", "" if is_brief else "structure, purpose, life cycle")
    groups: dict[tuple[str, str, bool], list[Plain]] = {}
    for row in data["directory"]:
        key = row["where"], row["type"], row["file"] is None
        groups.setdefault(key, []).append(row)
    if is_brief:
        there = [_group_row(rows) for key, rows in groups.items() if not key[2]]
        if console.width >= _WIDE:
            _table(console, ("file", "bytes", "type", "purpose"), "<><<", there)
            return
        for name, size, kind, purpose in there:
            print_line(console, (f"  {name}", ""), (f"  {kind}, {size} bytes", "dim"))
            print_wrapped(console, purpose, 6, first=6, style="dim")
        return
    for (where, kind, is_absent), rows in groups.items():
        first = rows[0]
        name, size, *_ = _group_row(rows)
        place = "" if where == "log" else ", in the broker's directory"
        told = f"{kind}{place}, {first['modelled']}"
        head = Text("  not there", "dim") if is_absent else Text(f"  {name}", "bold")
        rest = told if is_absent else f"{told}, {size} bytes"
        print_wrapped(console, rest, 6, head=head.append(" "))
        for label, fact in (("is", "structure"), ("for", "purpose"), ("life", "life")):
            if first[fact] != "-":
                print_wrapped(console, f"{label:<5} {first[fact]}", 12, first=6, style="dim")
        if first["note"]:
            print_wrapped(console, shown(first["note"]), 12, first=12, style="yellow")


def _group_row(rows: list[Plain]) -> tuple[str, str, str, str]:
    first = rows[0]
    name = shown(first["file"] or "-")
    name = name if len(name) <= 40 else f"{name[:37]}..."
    if first["where"] == "broker":
        name = f"../{name}"
    if len(rows) > 1:
        name = f"{name} +{len(rows) - 1}"
    sizes = [each["size_bytes"] for each in rows if each["size_bytes"] is not None]
    size = f"{sum(sizes):,}" if sizes else "-"
    return name, size, first["type"], first["purpose"]


def print_book(console: Console, data: Plain) -> None:
    """The analogy, section by section."""
    print_title(console, "as a book")
    for section in data["book"]:
        print_line(console, (f"  {section['title']}", "bold"))
        print_wrapped(console, section["text"], 4, first=4)


def print_notices(console: Console, data: Plain) -> None:
    """What was left out or is damaged."""
    if data["notices"]:
        print_title(console, "notices")
    for each in data["notices"][:_ROWS_MAX]:
        print_wrapped(console, shown(each), 4, first=2, style="yellow")
    _left_out(console, len(data["notices"]) - _ROWS_MAX, "more notices")


def print_more(console: Console) -> None:
    """What else can be asked for."""
    print_line(console, ("", ""))
    text = "more: --offset N, --time MS, --segment NAME, --hex OFFSET, --pages, --transfer, "
    print_wrapped(console, f"{text}--explain, --json", 6, first=0, style="dim")


# Bytes -----------------------------------------------------------------------------------------


def print_hex(console: Console, view: Plain) -> None:
    """A batch in hex, and its fields."""
    size = counted(view["size_bytes"], "byte")
    title = f"batch {view['base_offset']} at byte {view['position']:,} of {shown(view['segment'])}"
    print_title(console, title, f"{view['format']}, {size}")
    data = bytes.fromhex(view["bytes"])
    owner = _owners(view["fields"], len(data))
    step = 16 if console.width >= 76 else 8
    for at in range(0, len(data), step):
        parts: list[tuple[str, str]] = [(f"  {at:04x}  ", "dim")]
        chunk = data[at : at + step]
        for number, byte in enumerate(chunk, at):
            field = owner[number]
            # A bar stands where a field begins, for those who see no colours.
            sign = "|" if number == view["fields"][field]["start"] else " "
            parts.append((f"{sign}{byte:02x}", _HEX_STYLES[field % len(_HEX_STYLES)]))
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in chunk)
        parts += [("   " * (step - len(chunk)), ""), (f"  {text}", "dim")]
        print_line(console, *parts)
    if not view["is_whole"]:
        _left_out(console, view["size_bytes"] - len(data), "more bytes")
    rows = [
        (
            f"{each['start']}..{each['end'] - 1}",
            each["name"],
            _short(shown(each["value"])),
            shown(each["meaning"]),
        )
        for each in view["fields"]
    ]
    _table(console, ("bytes", "field", "value", "meaning"), "><<<", rows)


def _short(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:41]}..."


def _owners(fields: list[Plain], size: int) -> list[int]:
    owner = [0] * size
    for number, each in enumerate(fields):
        for at in range(each["start"], min(each["end"], size)):
            owner[at] = number
    return owner


# Transfer --------------------------------------------------------------------------------------


def print_paths(console: Console, data: Plain) -> None:
    """Both ways to a consumer, drawn."""
    print_title(console, "from the disk to a consumer")
    for path in data["transfer"]:
        copies = f"{counted(path['cpu_copies'], 'CPU copy')}".replace("copys", "copies")
        facts = f"{path['switches']} context switches, {copies}, {path['dma_copies']} by DMA"
        print_line(console, (f"  {path['name']}", "bold"), (f"  {facts}", ""))
        print_wrapped(console, path["system_calls"], 4, first=4, style="dim")
        for step in path["steps"]:
            arrow = f"{step['from']} --{step['how']}--> {step['to']}"
            print_wrapped(console, f"{arrow:<48} {step['text']}", 6, first=4)
        print_wrapped(console, path["note"], 4, first=4, style="dim")


def print_transfer(console: Console, measured: Plain) -> None:
    """What was measured here."""
    rounds = f"best of {measured['rounds']}, {measured['chunk_bytes'] >> 10} KiB a call"
    print_title(console, "measured here", rounds)
    print_wrapped(console, f"{measured['transport']}.", 2, style="dim")
    rows = []
    for each in measured["sizes"]:
        for name in ("sendfile", "copying"):
            way = each[name]
            ratio = f"{each['ratio']}" if name == "copying" else "1"
            cpu = "-" if each["cpu_ratio"] is None else f"{each['cpu_ratio']}"
            cpu = cpu if name == "copying" else "1"
            rows.append(
                (
                    f"{each['size_bytes'] >> 10:,} KiB",
                    name,
                    f"{way['elapsed_us']:,.0f}",
                    f"{way['cpu_us']:,.0f}",
                    f"{way['mb_per_s']:,.0f}",
                    f"{way['calls']:,}",
                    ratio,
                    cpu,
                )
            )
    titles = ("size", "way", "us", "cpu us", "MB/s", "calls", "time x", "cpu x")
    _table(console, titles, "><>>>>>>", rows)
    for text in measured["meaning"]:
        print_wrapped(console, text, 2, first=2)
