"""The words and tables that every text view is made of.

Left out: which words go where (``storage.inspection.text`` and its neighbours).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Final

from storage.disk import LockState
from storage.inspection.escaping import plain, safe
from storage.inspection.views import Damage, Problem
from storage.scan import GoodRange

__all__ = [
    "SHOWN_MAX",
    "Cells",
    "Line",
    "after_blank",
    "counted",
    "damage_lines",
    "epoch_range",
    "facts",
    "lock_words",
    "name",
    "name_list",
    "note_lines",
    "offset_range",
    "offset_words",
    "problem_lines",
    "range_words",
    "table",
]

PREVIEW_ROWS: Final = 200
WIDTH_MAX: Final = 64
SHOWN_MAX: Final = 20
"""How many of a kind are listed before "and more"."""
TEXT_MAX: Final = 300

# Tables ----------------------------------------------------------------------------------------

Cells = tuple[str, ...]
Line = Cells | str


def table(titles: Cells, sides: str, rows: Iterable[Line]) -> Iterator[str]:
    """Rows under titles; ``sides`` has ``<`` or ``>`` for each column. Strings pass as they are."""
    source = iter(rows)
    head = list(islice(source, PREVIEW_ROWS))
    if not head:
        return
    widths = [0] * len(titles)
    for line in (titles, *head):
        _widen(widths, line)
    layout = _layout(widths, sides)
    for line in chain([titles], head, source):
        if isinstance(line, str):
            yield line
            continue
        if _widen(widths, line):
            layout = _layout(widths, sides)
        yield layout(*line).rstrip()


def _layout(widths: list[int], sides: str) -> Callable[..., str]:
    columns = zip(sides, widths, strict=True)
    return "  ".join(f"{{:{side}{width}}}" for side, width in columns).format


def _widen(widths: list[int], line: Line) -> bool:
    """Make room for a row; returns whether that took any. What is very long just sticks out."""
    if isinstance(line, str):
        return False
    before = widths[:]
    cells = zip(before, line, strict=True)
    widths[:] = [max(width, min(len(cell), WIDTH_MAX)) for width, cell in cells]
    return widths != before


def after_blank(lines: Iterator[str]) -> Iterator[str]:
    """The lines behind an empty one, or nothing where there are none."""
    for number, line in enumerate(lines):
        if number == 0:
            yield ""
        yield line


def facts(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    pairs = list(pairs)
    width = max((len(name) for name, _ in pairs), default=0)
    for name, value in pairs:
        yield f"{name:<{width}}  {value}"


def counted(number: int, what: str) -> str:
    plural = what[:-1] + "ies" if what.endswith("y") else what + ("es" if what[-1] in "xh" else "s")
    return f"{number} {what if number == 1 else plural}"


def offset_range(base: int, end: int | None) -> str:
    """A half-open range as people say it: both ends included."""
    if end is None:
        return "?"
    return "-" if end <= base else str(base) if end == base + 1 else f"{base}..{end - 1}"


def epoch_range(first: int, last: int) -> str:
    return "-" if last < 0 else str(last) if first == last else f"{first}..{last}"


def name(text: str) -> str:
    return plain(text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "...")


def name_list(names: Iterable[str]) -> str:
    names = list(names)
    rest = f" and {len(names) - SHOWN_MAX} more" if len(names) > SHOWN_MAX else ""
    return ", ".join(map(name, names[:SHOWN_MAX])) + rest


# Problems --------------------------------------------------------------------------------------


def _problem(problem: Problem) -> str:
    where = ""
    if problem.position is not None:
        where = f" at byte {problem.position}"
    elif problem.line is not None:
        where = f" in line {problem.line}"
    return f"{name(problem.file)}{where}: {safe(problem.reason)}"


def problem_lines(problems: list[Problem]) -> Iterator[str]:
    for problem in problems[:SHOWN_MAX]:
        yield f"  {_problem(problem)}"
    if len(problems) > SHOWN_MAX:
        yield f"  and {len(problems) - SHOWN_MAX} more"


def damage_lines(damage: Damage) -> Iterator[str]:
    yield f"  {damage.file} at byte {damage.position}: {safe(damage.reason)}"
    if damage.is_unfinished:
        yield "    the log is open: most likely this batch is being written right now"
    before = f"below offset {damage.last_good_offset}" if damage.position else "nothing"
    yield f"    whole before it: {before}"
    if not damage.whole_ranges:
        size = counted(damage.size_bytes, "byte")
        yield f"    whole from there on: nothing in this file ({size})"
    for number, found in enumerate(damage.whole_ranges):
        if number == SHOWN_MAX:
            yield f"                         and {len(damage.whole_ranges) - SHOWN_MAX} more ranges"
            break
        title = "    whole from there on:" if number == 0 else " " * 24
        yield f"{title} {range_words(found)}"
    if damage.has_more_ranges:
        yield "                         and more behind these"


def range_words(found: GoodRange) -> str:
    """Offsets and place of whole batches."""
    end = found.position + found.size_bytes
    return f"{offset_words(found)} at bytes {found.position} to {end}"


def offset_words(found: GoodRange) -> str:
    """The offsets of whole batches."""
    word = "offsets" if found.next_offset - found.base_offset > 1 else "offset"
    return f"{word} {offset_range(found.base_offset, found.next_offset)}"


def note_lines(notes: list[str]) -> Iterator[str]:
    for note in notes[:SHOWN_MAX]:
        yield f"note: {safe(note)}"
    if len(notes) > SHOWN_MAX:
        yield f"note: and {len(notes) - SHOWN_MAX} more"


def lock_words(lock: LockState) -> str:
    if lock.is_held is None:
        return "unknown"
    if not lock.is_held:
        return "no"
    who = f"by process {lock.pid}" if lock.pid is not None else "by a process"
    return f"open {who}; what follows may have changed since"
