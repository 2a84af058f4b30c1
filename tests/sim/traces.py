"""Traces for the tests of package ``sim.trace``: drawn ones, and long ones made by a rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from sim.trace.kinds import Kind
from sim.trace.lines import Change, Header, Level
from sim.trace.writer import Trace

__all__ = ["HEADER", "Raw", "made", "raws", "replay"]

HEADER = Header(
    "0.1.0", "leader_crash", "acks-all", 7, {"acks": "all", "brokers": 3}, ("b1", "b2"), {"o": 1}
)

Raw = tuple[int, str, Kind, tuple[int, ...], dict[str, Any], list[Change]]
"""Time, node, kind, causes, arguments and changes of one event."""

_PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4),
    lambda below: (
        st.lists(below, max_size=3)
        | st.lists(below, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=3), below, max_size=3)
    ),
    max_leaves=4,
)
_PATHS = st.sampled_from(["b1/orders-0/leo", "b1/orders-0/hw", "b2/role", "b2/é"])


@st.composite
def raws(draw: st.DrawFn, *, max_size: int = 12) -> list[Raw]:
    """Events whose changes fit each other, as a world would emit them."""
    state: dict[str, Any] = {}
    found: list[Raw] = []
    for n in range(1, draw(st.integers(0, max_size)) + 1):
        changes: list[Change] = []
        for path in draw(st.lists(_PATHS, max_size=2)):
            new = draw(_PLAIN)
            changes.append((path, state.get(path), new))
            state[path] = new
        cause = draw(st.lists(st.integers(1, n - 1), max_size=2)) if n > 1 else []
        found.append(
            (
                draw(st.integers(0, 1 << 40)),
                draw(st.sampled_from(["b1", "b2", "c1", 'q"\n'])),
                draw(st.sampled_from(list(Kind))),
                tuple(cause),
                draw(st.dictionaries(st.text(max_size=4), _PLAIN, max_size=3)),
                changes,
            )
        )
    return found


def made(count: int, *, start: int = 1) -> Iterator[Raw]:
    """Events by a rule: each is caused by the one in front of it."""
    for n in range(start, count + 1):
        cause = (n - 1,) if n > 1 else ()
        args = {"partition": f"orders-{n % 3}", "base_offset": n, "next_offset": n + 1}
        changes: list[Change] = [("b1/orders-0/leo", n - 1 or None, n)]
        yield n * 100, f"b{n % 3}", Kind.APPEND, cause, args, changes


def replay(
    events: Iterable[Raw],
    level: Level | str = Level.FULL,
    path: Path | None = None,
    *,
    check_every: int = 1_000,
    keeps_lines: bool = False,
    verdict: str | None = "pass",
) -> Trace:
    """A trace of the events; not closed without a verdict."""
    trace = Trace(level, path=path, header=HEADER, check_every=check_every, keeps_lines=keeps_lines)
    for t_us, node, kind, cause, args, changes in events:
        n = trace.emit(t_us, node, kind, cause, args)
        trace.attach(n, changes)
    if verdict is not None:
        trace.close(verdict, [{"check": "hw-valid", "n": 3}], ["L0"])
    return trace
