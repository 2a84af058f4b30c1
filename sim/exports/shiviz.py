"""A log for ShiViz: two lines an event, with a vector clock.

The first line of the file is the regular expression with which ShiViz reads it, the second one,
which would tell several executions apart, is empty. In that expression a group has no parentheses
inside: ShiViz rewrites groups by regular expressions of its own, which do not count.

One event happens before another if it is among its causes, or theirs, or in front of it at the same
node. Events that are not wanted hand on what they know and have no time of their own, so that what
is left is ordered as in the whole trace.

Left out: times (ShiViz draws order alone; the sidebar shows them).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from sim.exports.selection import Exported, ExportError, Selection, ascii_text
from sim.present.describing import describe
from sim.present.story import Story
from sim.trace.lines import Event, Header, encode

__all__ = ["NODES_MAX", "PARSER", "shiviz"]

PARSER: Final = (
    r"#(?<number>\d+) (?<time>\S+) (?<kind>\S+) (?<event>.*)\n(?<host>\S+) (?<clock>\{.*\})"
)
"""What ShiViz is to read the log with: the first line of the file."""
NODES_MAX: Final = 200
"""Nodes in one log; each of them can be in each clock."""
_MANY: Final = 5_000
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
_OF_JAVASCRIPT: Final = frozenset(
    "constructor hasOwnProperty isPrototypeOf propertyIsEnumerable toLocaleString toString "
    "valueOf __proto__ __defineGetter__ __defineSetter__ __lookupGetter__ __lookupSetter__".split()
)
"""Names that an object of JavaScript has already; ShiViz looks hosts up in such objects."""

_Clock = tuple[int, ...]


def shiviz(header: Header, events: Iterable[Event], story: Story, selection: Selection) -> Exported:
    """The log.

    Raises:
        ExportError: there are more than ``NODES_MAX`` nodes.
    """
    names: dict[str, int] = {}
    count = 0
    for n, brief in enumerate(story.briefs, 1):
        if selection.has(n, brief.node, brief.kind):
            count += 1
            names.setdefault(brief.node, len(names))
    if len(names) > NODES_MAX:
        raise ExportError(
            f"the events are of {len(names)} nodes, ShiViz gets at most {NODES_MAX}: "
            "--node selects some"
        )
    notices = []
    if not count:
        notices.append("no event is of this selection: ShiViz refuses an empty log")
    if count > _MANY:
        notices.append(f"{count} events: ShiViz is slow beyond some {_MANY}; --from and --to cut")
    return Exported(_lines(events, selection, names), tuple(notices))


def _lines(events: Iterable[Event], selection: Selection, names: dict[str, int]) -> Iterator[str]:
    yield PARSER
    yield ""
    hosts = _hosts(list(names))
    quoted = [encode([host])[1:-1] for host in hosts]
    nothing: _Clock = (0,) * len(hosts)
    known: list[_Clock] = [nothing]
    at_node: dict[str, _Clock] = {}
    for event in events:
        if selection.last is not None and event.n > selection.last:
            break
        clock = at_node.get(event.node, nothing)
        for cause in event.cause:
            theirs = known[cause]
            if theirs is not clock:
                clock = tuple(map(max, clock, theirs))
        is_wanted = selection.has(event.n, event.node, event.kind)
        if is_wanted:
            own = names[event.node]
            clock = (*clock[:own], clock[own] + 1, *clock[own + 1 :])
            times = ",".join(f"{quoted[host]}:{time}" for host, time in enumerate(clock) if time)
            text = ascii_text(describe(event))
            seconds = f"{event.t_us / 1_000_000:.6f}s" if abs(event.t_us) < 1 << 50 else "-"
            yield f"#{event.n} {seconds} {event.kind.value} {text}"
            yield f"{hosts[own]} {{{times}}}"
        at_node[event.node] = clock
        known.append(clock)


def _hosts(names: list[str]) -> list[str]:
    """Names that ShiViz can have, each another one."""
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        host = _UNSAFE.sub("_", name)[:60] or "_"
        host = f"node-{host}" if host in _OF_JAVASCRIPT else host
        base, again = host, 2
        while host in taken:
            host, again = f"{base}~{again}", again + 1
        taken.add(host)
        found.append(host)
    return found
