"""A part of a trace as rows of a sequence diagram: messages between nodes, and notes over them.

Such a diagram holds few rows. Unless the caller names another place, the part is the one around
the first loss or broken rule, or else behind the first step; ``notice`` says what is missing. Kinds
that tell of work within a node (timers, disk calls, ...) are rows if they are asked for by name.

A message is one row where it is delivered or lost; where that is no row any more, it stands where
it was sent.

Left out: the languages (``sim.exports.mermaid``, ``plantuml``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

from sim.exports.selection import Selection
from sim.present.args import text
from sim.present.describing import describe
from sim.present.story import Story
from sim.present.words import name, seconds
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["ROWS_MAX", "Row", "Sequence", "sequence"]

ROWS_MAX: Final = 200
"""Mermaid fails from some 280 to 500 edges on."""
_BEFORE: Final = 140
_NODES_MAX: Final = 40
_TEXT_MAX: Final = 100
_QUIET: Final = frozenset(
    {
        Kind.TIMER,
        Kind.WRITE,
        Kind.FSYNC,
        Kind.SYNCED,
        Kind.DISK,
        Kind.BACKGROUND,
        Kind.CHECKPOINT,
        Kind.METADATA,
        Kind.DISCONNECT,
        Kind.TRANSMIT,
        Kind.HOLD,
        Kind.DELAY,
        Kind.DUPLICATE,
    }
)
_ENDS: Final = (Kind.DELIVER, Kind.DROP)
_MOVES: Final = (Kind.TRANSMIT, Kind.HOLD, Kind.DELAY, Kind.DUPLICATE, Kind.CORRUPT)


@frozen
class Row:
    """A message if ``to`` is a node, else a note.

    Attributes:
        node: over which the note is, or who sends.
        how: ``delivered``, ``lost`` or ``sent`` for a message, ``note`` else.
        text: escaped for people and cut; signs that a language cannot have are still in it.
    """

    n: int
    node: str
    to: str | None
    how: str
    text: str


@frozen
class Sequence:
    """Rows, who is in them, and what is missing; ``notice`` is empty where nothing is."""

    title: str
    nodes: tuple[str, ...]
    rows: tuple[Row, ...]
    notice: str


def sequence(title: str, events: Iterable[Event], story: Story, selection: Selection) -> Sequence:
    """The part that is wanted, ``ROWS_MAX`` rows of it at the most."""
    ends = _ends(story, selection)
    numbers = list(_places(story, selection, frozenset(ends.values())))
    first, last = _window(story, selection, numbers)
    wanted = numbers[first:last]
    rows: list[Row] = []
    nodes: dict[str, None] = {}
    left_out: dict[str, None] = {}
    if wanted:
        chosen = set(wanted)
        for event in events:
            if event.n > wanted[-1]:
                break
            row = _row(event, ends) if event.n in chosen else None
            if row is None:
                continue
            new = [each for each in (row.node, row.to) if each is not None and each not in nodes]
            if len(nodes) + len(set(new)) > _NODES_MAX:
                left_out.update(dict.fromkeys(new))
                continue
            nodes.update(dict.fromkeys(new))
            rows.append(row)
    order = {node: at for at, node in enumerate(story.nodes)}
    known = sorted(nodes, key=lambda each: order.get(each, len(order)))
    notice = _notice(numbers, first, last, len(left_out))
    return Sequence(title, tuple(known), tuple(rows), notice)


def _notice(numbers: list[int], first: int, last: int, left_out: int) -> str:
    parts = []
    if last - first < len(numbers):
        shown = f"events {numbers[first]} to {numbers[last - 1]}"
        parts.append(
            f"cut: rows {first + 1} to {last} of {len(numbers)} are shown, {shown}; "
            "--from and --to choose others"
        )
    if left_out:
        parts.append(f"cut: {left_out} nodes are left out, {_NODES_MAX} are shown")
    return "; ".join(parts) if parts else "" if numbers else "no event is of this selection"


def _places(story: Story, selection: Selection, ended: frozenset[int]) -> Iterator[int]:
    """Numbers of the events that are rows."""
    for n, brief in enumerate(story.briefs, 1):
        if not selection.has(n, brief.node, brief.kind):
            continue
        if brief.kind is Kind.SEND and n in ended:
            continue
        if brief.kind not in _QUIET or brief.kind in selection.kinds:
            yield n


def _ends(story: Story, selection: Selection) -> dict[int, int]:
    """Of deliveries and losses the event with which their message was sent."""
    sent: dict[int, int] = {}
    ends: dict[int, int] = {}
    for n, brief in enumerate(story.briefs, 1):
        if brief.kind is Kind.SEND:
            sent[n] = n
            continue
        source = next((sent[each] for each in brief.cause if each in sent), None)
        if source is None:
            continue
        if brief.kind in _ENDS:
            if selection.has(n, brief.node, brief.kind):
                ends[n] = source
        elif brief.kind in _MOVES:
            sent[n] = source
    return ends


def _window(story: Story, selection: Selection, numbers: list[int]) -> tuple[int, int]:
    """The first row, and the one behind the last."""
    if len(numbers) <= ROWS_MAX:
        return 0, len(numbers)
    if selection.first > 1 or selection.last is not None:
        return 0, ROWS_MAX
    troubles = [each.n for each in story.losses] + [each.n for each in story.findings]
    if troubles:
        before = sum(n <= min(troubles) for n in numbers)
        first = max(0, before - _BEFORE)
    else:
        steps = (step.begin for step in story.steps.values())
        begun = next((n for n in steps if story.time_us(n) >= 0), 1)
        first = sum(n < begun for n in numbers)
    first = min(first, len(numbers) - ROWS_MAX)
    return first, first + ROWS_MAX


def _row(event: Event, ends: dict[int, int]) -> Row | None:
    kind, args = event.kind, event.args
    what = name(text(args, "type") or "message")
    if kind is Kind.SEND:
        return _message(event, event.node, text(args, "to"), "sent", f"{what} (under way)")
    if kind in _ENDS:
        source, to = text(args, "from"), text(args, "to")
        source = event.node if source is None else source
        to = event.node if kind is Kind.DELIVER else to
        sent = f", sent {ends[event.n]}" if event.n in ends else ""
        if kind is Kind.DELIVER:
            return _message(event, source, to, "delivered", f"{what}{sent}")
        why = name(text(args, "why") or "?")
        return _message(event, source, to, "lost", f"{what}{sent}, lost: {why}")
    return Row(event.n, event.node, None, "note", _cut(f"{_head(event)} {describe(event)}"))


def _message(event: Event, node: str, to: str | None, how: str, words: str) -> Row:
    if to is None:
        return Row(event.n, node, None, "note", _cut(f"{_head(event)} {how}: {words}"))
    return Row(event.n, node, to, how, _cut(f"{_head(event)} {words}"))


def _head(event: Event) -> str:
    return f"{event.n} {seconds(event.t_us)}"


def _cut(found: str) -> str:
    return found if len(found) <= _TEXT_MAX else found[: _TEXT_MAX - 1] + "…"
