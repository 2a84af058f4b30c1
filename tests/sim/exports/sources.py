"""Traces to export: real runs, and one of hostile text.

Left out: what is expected of an export.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sim.exports.selection import Exported, Selection
from sim.present.story import Story
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Header

__all__ = ["EVIL", "Export", "exported", "hostile", "hostile_header"]

Export = Callable[[Header, Iterable[Event], Story, Selection], Exported]

EVIL = (
    '\x1b[31m;#35; %%{init:{}}%% <b onclick="x">`$$a$$`\\n end\r\nnote over P9: \u202e'
    "ﬂ°°59¶ß -->> __u__ //i// [[x]] %getenv(A) !include $v ~~ .. == \ud800 é 😀"
)
_NAMES = (EVIL, EVIL + "2", "constructor", "__proto__", "end", "a b", "a_b", "", "P1")


def hostile_header() -> Header:
    return Header(EVIL, EVIL, EVIL, 1, {EVIL: EVIL}, _NAMES, [])


def hostile() -> list[Event]:
    """Starts, messages of all fates, and findings, each with text that no format can have."""
    found: list[Event] = []

    def add(node: str, kind: Kind, *cause: int, **args: object) -> int:
        found.append(Event(len(found) + 1, -7 + len(found), node, kind, cause, args))
        return len(found)

    for name in _NAMES:
        add(name, Kind.START, role=EVIL)
    for at, name in enumerate(_NAMES):
        to = _NAMES[(at + 1) % len(_NAMES)]
        sent = add(name, Kind.SEND, at + 1, to=to, type=EVIL)
        add(to, Kind.DELIVER, sent, **{"from": name}, type=EVIL)
        lost = add(name, Kind.SEND, at + 1, to=to, type="wrap:")
        add(name, Kind.DROP, lost, **{"from": name}, to=to, type="#", why=EVIL)
        add(name, Kind.SEND, at + 1, to="nobody else", type=EVIL)
        add(name, Kind.CHECK, sent, check=EVIL, partition=EVIL, detail=EVIL, evidence=[EVIL])
        add(name, Kind.APPEND, sent, partition=EVIL, base_offset=at, next_offset=at + 1)
    return found


def exported(
    export: Export,
    events: list[Event],
    header: Header,
    selection: Selection | None = None,
) -> tuple[list[str], tuple[str, ...]]:
    """The lines and the notices; each line is ASCII and one line."""
    story = Story(header, events)
    made = export(header, events, story, Selection() if selection is None else selection)
    lines = list(made.lines)
    for line in lines:
        assert line.isascii()
        assert line == "" or line.isprintable()
    return lines, made.notices
