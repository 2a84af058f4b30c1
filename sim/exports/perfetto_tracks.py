"""What lasts in a story, for Perfetto: intervals between two events, and values over time.

Left out: events, which are points (``sim.exports.perfetto``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import Any

from attrs import frozen

from sim.exports.selection import Selection
from sim.present.history import FOREVER, Replica, Role
from sim.present.story import Story
from sim.present.words import name, sentence

__all__ = ["SCENARIO", "Interval", "counters", "intervals"]

SCENARIO = "scenario"
"""The process of steps and faults, if no node has that name; then it is that node's."""


@frozen
class Interval:
    """From one event to another, in one lane of a node.

    Attributes:
        what: ``status``, ``role``, ``isr``, ``fault`` or ``step``.
        text: already escaped.
    """

    node: str
    lane: str
    what: str
    text: str
    begin: int
    end: int


def intervals(story: Story, selection: Selection) -> Iterator[Interval]:
    """All that touch the part that is wanted, cut to it. Kinds of events do not matter."""
    last = story.last_n if selection.last is None else min(selection.last, story.last_n)
    for each in _all(story):
        begin, end = max(each.begin, selection.first), min(each.end, last)
        is_wanted = not selection.nodes or each.node in selection.nodes or each.node == SCENARIO
        if is_wanted and begin <= end:
            yield Interval(each.node, each.lane, each.what, each.text, begin, end)


def _all(story: Story) -> Iterator[Interval]:
    for known in story.nodes.values():
        for text, begin, end in _spells(known.statuses, story.last_n):
            yield Interval(known.name, "status", "status", text, begin, end)
    for partition in story.partitions.values():
        shown = name(partition.name)
        for node, replica in story.replicas(partition.name):
            roles = ((n, _role_words(role)) for n, role in replica.roles)
            for text, begin, end in _spells(roles, story.last_n):
                yield Interval(node, f"role {shown}", "role", text, begin, end)
        for node in _names(partition.isrs):
            member = ((n, "in the ISR" if node in isr else "") for n, isr in partition.isrs)
            for text, begin, end in _spells(member, story.last_n):
                if text:
                    yield Interval(node, f"ISR {shown}", "isr", text, begin, end)
    yield from _lanes(story)


def _role_words(role: Role) -> str:
    return name(role.name) + ("" if role.leader_epoch < 0 else f" e{role.leader_epoch}")


def _names(isrs: Iterable[tuple[int, tuple[str, ...]]]) -> list[str]:
    return list(dict.fromkeys(node for _, isr in isrs for node in isr))


def _spells(values: Iterable[tuple[int, str]], last: int) -> Iterator[tuple[str, int, int]]:
    """Each value from the event with which it came to the one with which another came."""
    held: tuple[int, str] | None = None
    for n, value in values:
        if held is not None and held[1] == value:
            continue
        if held is not None:
            yield held[1], held[0], n
        held = n, value
    if held is not None:
        yield held[1], held[0], last


def _lanes(story: Story) -> Iterator[Interval]:
    """Steps and faults, those that overlap in different lanes."""
    last = story.last_n
    steps = [("step", each.begin, each.end, sentence(each.text)) for each in story.steps.values()]
    faults = [
        ("fault", each.begin, each.end, f"{name(each.id)}: {name(each.kind)}")
        for each in story.faults.values()
    ]
    for found in (steps, faults):
        free: list[tuple[int, int]] = []
        lanes = 0
        for what, begin, end, text in sorted(found, key=lambda each: each[1]):
            until = last if end is None else end
            if free and free[0][0] <= begin:
                lane = heappop(free)[1]
            else:
                lanes += 1
                lane = lanes
            heappush(free, (until, lane))
            yield Interval(SCENARIO, f"{what}s {lane}", what, text, begin, until)


def counters(story: Story, selection: Selection) -> Iterator[tuple[str, str, int, Any]]:
    """Node, name of the counter, event, value; of the part that is wanted."""
    last = story.last_n if selection.last is None else selection.last
    for partition in story.partitions.values():
        for node, replica in story.replicas(partition.name):
            if selection.nodes and node not in selection.nodes:
                continue
            shown = name(partition.name)
            for what, values in (
                (f"LEO {shown}", _log_ends(replica)),
                (f"HW {shown}", list(replica.high_watermarks)),
            ):
                for n, value in _within(values, selection.first, last):
                    yield node, what, n, value


def _within(values: list[tuple[int, int]], first: int, last: int) -> Iterator[tuple[int, int]]:
    """The values of a part; the one that it begins with comes at its first event."""
    before: int | None = None
    for n, value in values:
        if n < first:
            before = value
            continue
        if before is not None and n > first:
            yield first, before
        before = None
        if n > last:
            return
        yield n, value
    if before is not None:
        yield first, before


def _log_ends(replica: Replica) -> list[tuple[int, int]]:
    """The log end whenever it changed: the end of the last part that is there."""
    came = sorted(replica.pieces, key=lambda piece: piece.n)
    numbers = {piece.n for piece in came} | {n for n, _ in replica.log_ends}
    numbers |= {piece.until for piece in came if piece.until != FOREVER}
    alive: list[tuple[int, int]] = []
    found: list[tuple[int, int]] = []
    at = 0
    for n in sorted(numbers):
        while at < len(came) and came[at].n <= n:
            heappush(alive, (-came[at].end, came[at].until))
            at += 1
        while alive and alive[0][1] <= n:
            heappop(alive)
        end = -alive[0][0] if alive else replica.log_ends.at(n) or 0
        if not found or found[-1][1] != end:
            found.append((n, end))
    return found
