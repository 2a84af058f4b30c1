"""Stories as text on a console that the caller has made: colours, width and encoding are its own.

Everything is printed as it is, never as markup; what cannot be printed is escaped.

Left out: what is said (the other modules).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from io import StringIO
from typing import Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from sim.present.chains import Chain
from sim.present.columns import LEGEND, Columns, Row
from sim.present.file_cells import file_cells, file_words, has_files
from sim.present.losses import LossTold
from sim.present.step_view import LogFiles
from sim.present.strips import LogRow, Run, Strip
from sim.present.timeline import Line
from sim.present.words import at, name, seconds
from storage.inspection.escaping import safe

__all__ = [
    "STRIPS_LEGEND",
    "print_chain",
    "print_columns",
    "print_loss",
    "print_strips",
    "print_timeline",
    "put",
    "row_style",
    "strips_text",
    "wrapped",
]

_TONES: Final = {
    "step": "bold cyan",
    "fault": "yellow",
    "bad": "red",
    "good": "green",
    "traffic": "dim",
    "plain": "",
}
_EPOCH_STYLES: Final = ("green", "magenta", "cyan", "yellow", "blue", "bright_red")
_EPOCH_SIGNS: Final = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_NARROW: Final = 60
STRIPS_LEGEND: Final = (
    "one sign an offset, its epoch (0-9, a-z); | high watermark (HW): committed below it; "
    "] log end (LEO); ~ cut; … more of the same; ISR: replicas in sync, which may lead"
)


def put(console: Console, line: Text) -> None:
    """One line as it is; what cannot be printed is escaped."""
    line.rstrip()
    if not line.plain.isprintable():
        line.plain = safe(line.plain)
    console.print(line, highlight=False, soft_wrap=True)


def print_timeline(console: Console, lines: Iterable[Line]) -> None:
    """One line each: time, event, what happened; long ones go on below, behind the columns."""
    lines = list(lines)
    number_width = max((len(at(line.first)) for line in lines), default=2)
    time_width = max((len(seconds(line.t_us)) for line in lines), default=2)
    indent = 2 if console.width < _NARROW else time_width + number_width + 3
    for line in lines:
        head = f"{seconds(line.t_us):>{time_width}} {at(line.first):>{number_width}}  "
        style = _TONES.get(line.tone, "")
        wrapped(console, Text().append(head, "dim"), safe(line.text), style, indent)


def wrapped(console: Console, head: Text, text: str, style: str, indent: int) -> None:
    """Words behind a head, wrapped at the console's width."""
    line, room = head, max(console.width, indent + 8)
    is_empty = True
    for word in text.split(" "):
        for part in _parts(word, room - indent):
            if not is_empty and cell_len(line.plain) + 1 + cell_len(part) > room:
                put(console, line)
                line, is_empty = Text(" " * indent), True
            elif is_empty and cell_len(line.plain) + cell_len(part) > room > len(line.plain):
                if line.plain.strip():
                    put(console, line)
                    line = Text(" " * indent)
            line.append(part if is_empty else f" {part}", style=style)
            is_empty = False
    put(console, line)


def _parts(word: str, width: int) -> Iterable[str]:
    """A word that is wider than a line, in parts that are not."""
    while cell_len(word) > width:
        end = width
        while cell_len(word[:end]) > width:
            end -= 1
        yield word[:end]
        word = word[end:]
    yield word


def print_chain(console: Console, chain: Chain) -> None:
    """The summary, and the links below it."""
    wrapped(console, Text(), f"{chain.summary}.", "bold", 2)
    for sentence in chain.sentences:
        wrapped(console, Text().append("  - ", "dim"), sentence.text, "", 4)


def print_loss(console: Console, head: Text, told: LossTold) -> None:
    """A loss behind a head: what was lost, why, and its links; those that are cited are marked."""
    wrapped(console, head, told.head, "", 4)
    if told.rule:
        wrapped(console, Text("    "), told.rule, "", 4)
    for link in told.links:
        mark = Text().append("    * ", "bold") if link.is_cited else Text().append("    - ", "dim")
        wrapped(console, mark, link.text, "", 6)


# Strips ------------------------------------------------------------------------------------------


def print_strips(
    console: Console,
    strips: Iterable[Strip],
    *,
    files: Iterable[LogFiles] = (),
    has_legend: bool = True,
) -> None:
    """Each partition's logs, each with its files if they are given; a legend unless not wanted."""
    shown = False
    known = {(each.partition, each.node): each for each in files}
    for strip in strips:
        _print_strip(console, strip, known)
        shown = True
    if shown and has_legend:
        wrapped(console, Text(), STRIPS_LEGEND, "dim", 2)


def strips_text(strips: Iterable[Strip], *, width: int = 100) -> str:
    """The same without colours, as text of lines that are so wide."""
    stream = StringIO()
    console = Console(file=stream, width=width, color_system=None, legacy_windows=False)
    print_strips(console, strips)
    return stream.getvalue()


def _print_strip(console: Console, strip: Strip, files: Mapping[tuple[str, str], LogFiles]) -> None:
    leader = "no leader" if strip.leader is None else f"leader {name(strip.leader)}"
    isr = "" if strip.isr is None else f", ISR {', '.join(map(name, strip.isr)) or 'empty'}"
    epoch = "" if strip.leader_epoch < 0 else f", epoch {strip.leader_epoch}"
    head = f"{name(strip.partition)}: {leader}{epoch}{isr}"
    wrapped(console, Text(), head, "bold", 2)
    labels = [_label(row) for row in strip.rows]
    cut_labels = [f"  {at(cut.n)}" for row in strip.rows for cut in row.cuts]
    left = max((cell_len(each) for each in (*labels, *cut_labels)), default=0) + 1
    left = min(left, max(8, console.width // 3))
    right = max((len(_right(row)) for row in strip.rows), default=0)
    is_narrow = console.width - left - right < 16
    room = max(4, console.width - left - (1 if is_narrow else right + 2))
    widths = _widths(strip, room)
    put(console, Text(" " * left + _scale(strip, widths, console.width - left), style="dim"))
    for label, row in zip(labels, strip.rows, strict=True):
        line = Text().append(_fit(label, left), "bold" if row.role == "leader" else "")
        line.append_text(_cells(row.cells, strip.runs, widths, row))
        if is_narrow:
            put(console, line)
            wrapped(console, Text("  "), _right(row), "", 4)
        else:
            line.append("  " + _right(row), style="red" if row.is_diverging else "")
            put(console, line)
        known = files.get((strip.partition, row.node))
        if known is not None and has_files(known):
            line = Text(_fit("  files", left), style="dim")
            line.append_text(file_cells(known, row, strip.runs, widths))
            line.append("" if is_narrow else f"  {file_words(known)}", style="dim")
            line.truncate(console.width)
            put(console, line)
        for cut in row.cuts:
            line = Text(_fit(f"  {at(cut.n)}", left), style="red")
            line.append_text(_cells(cut.cells, strip.runs, widths, None))
            tail = f"{safe(cut.text)}"
            if cell_len(line.plain) + 2 + cell_len(tail) <= console.width:
                line.append(f"  {tail}", style="red")
                put(console, line)
            else:
                put(console, line)
                wrapped(console, Text(" " * min(left, 4)), tail, "red", min(left, 4))


def _label(row: LogRow) -> str:
    word = row.role if row.status == "up" else row.status
    return f"{name(row.node)} {word}"


def _right(row: LogRow) -> str:
    high_watermark = "" if row.high_watermark is None else f"HW {row.high_watermark}, "
    start = f"from {row.log_start}, " if row.log_start else ""
    diverging = ", differs from the leader" if row.is_diverging else ""
    return f"{start}{high_watermark}LEO {row.log_end}{diverging}"


def _fit(text: str, width: int) -> str:
    while cell_len(text) > width - 1:
        text = text[:-2] + "…"
    return text + " " * (width - cell_len(text))


def _widths(strip: Strip, room: int) -> list[int]:
    """How many signs each run has: all of its offsets, or as many as there is room for."""
    sizes = [run.end - run.base for run in strip.runs]
    room -= 2 * (len(sizes) + 1)  # Marks behind each run, and in front of the first.
    low, high = 1, max(sizes, default=1)
    while low < high:
        middle = (low + high + 1) // 2
        if sum(min(size, middle) for size in sizes) <= room:
            low = middle
        else:
            high = middle - 1
    return [min(size, low) for size in sizes]


def _scale(strip: Strip, widths: Sequence[int], room: int) -> str:
    """The offsets at which runs begin, where there is room for them."""
    text = ""
    position = 2
    for run, width in zip(strip.runs, widths, strict=True):
        if len(text) <= position - (1 if text else 0):
            text = text.ljust(position) + str(run.base)
        position += width + 2
    if strip.runs and len(text) < position - 1:
        text = text.ljust(position) + str(strip.runs[-1].end)
    return text[:room]


def _cells(
    cells: Sequence[int | None], runs: Sequence[Run], widths: Sequence[int], row: LogRow | None
) -> Text:
    found = Text()
    found.append_text(_marks(row, runs[0].base) if runs else Text())
    for epoch, run, width in zip(cells, runs, widths, strict=True):
        found.append_text(_run_text(epoch, run, width, is_cut=row is None))
        found.append_text(_marks(row, run.end))
    return found


def _marks(row: LogRow | None, offset: int) -> Text:
    """High watermark and log end, if they are at this offset."""
    found = Text().append("|" if row is not None and row.high_watermark == offset else " ", "bold")
    found.append("]" if row is not None and row.log_end == offset else " ", style="bold")
    return found


def _run_text(epoch: int | None, run: Run, width: int, *, is_cut: bool) -> Text:
    if epoch is None:
        return Text(" " * width)
    sign = "?" if epoch < 0 else _EPOCH_SIGNS[epoch] if epoch < len(_EPOCH_SIGNS) else "+"
    text = ("~" if is_cut else sign) * width
    if width < run.end - run.base or run.is_left_out:
        middle = width // 2
        text = text[:middle] + "…" + text[middle + 1 :]
    style = "red" if is_cut else "" if epoch < 0 else _EPOCH_STYLES[epoch % len(_EPOCH_STYLES)]
    return Text(text, style=style)


# Columns -----------------------------------------------------------------------------------------


def print_columns(console: Console, columns: Columns) -> None:
    """One line an event. Where there is no room for columns, the node's name stands in the line."""
    names = [name(node) for node in columns.nodes]
    left = 19 if console.width < _NARROW else 21
    step = _step(console.width, left, names)
    if step:
        head = Text(" " * left + "".join(_fit(each, step) for each in names), style="bold")
        head.truncate(console.width)
        head.rstrip()
        put(console, head)
    has_rows = False
    for row in columns.rows:
        has_rows = True
        if step:
            put(console, _row_text(row, left, step, console.width))
        else:
            mark = ">" if row.is_wanted else " "
            head = Text().append(f"{mark}{at(row.n)} {seconds(row.t_us)} ", "dim")
            wrapped(console, head, f"{name(row.node)}: {row.text}", row_style(row), 4)
    if not has_rows:
        put(console, Text("no event is of this selection"))
    elif step:
        wrapped(console, Text(), LEGEND, "dim", 2)


def _step(width: int, left: int, names: Sequence[str]) -> int:
    """How wide a column is; 0 where there is no room for them."""
    room = width - left - 30
    if not names or room < 3 * (len(names) - 1) or width < _NARROW:
        return 0
    widest = max(cell_len(each) for each in names) + 2
    return max(3, min(room // max(1, len(names) - 1), max(4, widest)))


def _row_text(row: Row, left: int, step: int, width: int) -> Text:
    mark = ">" if row.is_wanted else " "
    line = Text().append(f"{mark}{at(row.n):>8} {seconds(row.t_us):>9}".ljust(left), "dim")
    words = safe(row.text) if row.column >= 0 else f"{name(row.node)}: {safe(row.text)}"
    own = max(0, row.column)
    for column, glyph in enumerate(row.glyphs):
        start = left + column * step
        if column == own:
            line.append(words, style=row_style(row))
        elif cell_len(line.plain) <= start:
            line.append(" " * (start - cell_len(line.plain)) + glyph, style="dim")
        line.append(" " * max(1, start + step - cell_len(line.plain)))
    line.truncate(width, overflow="ellipsis")
    line.rstrip()
    return line


def row_style(row: Row) -> str:
    """How an event looks among others."""
    if row.is_wanted:
        return "reverse"
    return _KIND_STYLES.get(row.kind.value, "")


_KIND_STYLES: Final = {
    "step": "bold cyan",
    "fault": "yellow",
    "heal": "yellow",
    "drop": "yellow",
    "crash": "red",
    "lost": "red",
    "truncate": "red",
    "check": "bold red",
    "loss": "bold red",
    "elect": "bold",
    "role": "bold",
    "ack": "green",
    "append": "green",
    "replicate": "green",
}
