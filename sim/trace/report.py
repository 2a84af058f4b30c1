"""Text for people about differences of traces.

Every value is shown as JSON in ASCII, so nothing from a trace reaches a terminal as it is.

Left out: stepping and views (later packages).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from sim.trace.diff import Difference, FileDifference, Unlike
from sim.trace.lines import Event, encode

__all__ = ["describe", "report_difference"]

_SHOWN_MAX: Final = 200
_UNLIKE_MAX: Final = 20


def describe(event: Event) -> str:
    """One line: number, time in seconds, node, kind, arguments and causes."""
    parts = [f"{event.n:>8}", f"{event.t_us // 1_000_000}.{event.t_us % 1_000_000:06}"]
    parts += [_word(event.node), str(event.kind)]
    parts += [f"{_word(key)}={_shown(value)}" for key, value in event.args.items()]
    if event.cause:
        parts.append("<- " + ", ".join(map(str, event.cause)))
    return "  ".join(parts[:2]) + "  " + " ".join(parts[2:])


def report_difference(found: FileDifference, name_a: str, name_b: str) -> str:
    """What ``diff`` prints, several lines."""
    lines = [f"A: {_shown(name_a)}", f"B: {_shown(name_b)}"]
    if found.header:
        lines += ["The headers differ:", *_unlikes(found.header)]
    if found.events is not None:
        lines += _events(found.events)
    elif found.changes is not None:
        event, unlike = found.changes
        lines.append(f"The events are the same. What event {event.n} changed differs:")
        lines += [describe(event), "What differs:", *_unlikes(unlike)]
    elif found.footer:
        lines += ["The events are the same. The ends differ:", *_unlikes(found.footer)]
    else:
        lines.append("The events are the same.")
    return "\n".join(lines)


def _events(found: Difference) -> Iterator[str]:
    if found.a is None and found.b is None:
        last = "the end" if found.last is None else f"event {found.last}"
        yield f"They differ first between event {found.n} and {last}; the events were not kept."
        return
    seen = found.a or found.b
    assert seen is not None
    if found.a is None or found.b is None:
        which = "A" if found.a is None else "B"
        yield f"{which} ends behind event {found.n - 1}, where the other goes on."
    else:
        yield f"They differ first in event {found.n}."
    if found.before:
        yield "In front of it:"
        yield from map(describe, found.before)
    for name, event in (("A:", found.a), ("B:", found.b)):
        yield name
        yield describe(event) if event is not None else "  nothing"
    if found.unlike:
        yield "What differs:"
        yield from _unlikes(found.unlike)
    if found.causes:
        yield "What led to it:"
        yield from map(describe, found.causes)


def _unlikes(found: tuple[Unlike, ...]) -> Iterator[str]:
    for path, a, b in found[:_UNLIKE_MAX]:
        yield f"  {_word(path)}: {_shown(a)} in A, {_shown(b)} in B"
    if len(found) > _UNLIKE_MAX:
        yield f"  and {len(found) - _UNLIKE_MAX} more"


def _shown(value: Any) -> str:
    text = encode(dict(value) if isinstance(value, Mapping) else value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."


def _word(text: str) -> str:
    """A name without quotes, where it has nothing odd in it."""
    return text if text.isascii() and text.isprintable() and text else encode(text)
