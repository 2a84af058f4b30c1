"""Events in columns: one line an event, one column a node.

Columns are made for a selection: around an event, of some nodes, of some kinds. The rows come one
by one, so that a long trace need not be in memory twice.

Left out: widths and colours (``sim.present.text``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Final

from attrs import frozen

from sim.present.describing import describe
from sim.present.story import Story
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["LEGEND", "Columns", "Row", "Selection", "columns"]

GLYPHS: Final = {"up": "|", "paused": "=", "down": "x", "off": "x", "stopped": "-", "never": " "}
LEGEND: Final = (
    "| runs, = stands still, x dead or without power, - stopped, > the event asked for; "
    "→ sends, ⇒ transmits, ← receives; [id] the fault that did it"
)


@frozen(kw_only=True)
class Selection:
    """Which events.

    Attributes:
        around: the number of an event; None for the whole trace.
        context: so many events before and behind it.
        nodes, kinds: only of these; all where empty.
    """

    around: int | None = None
    context: int = 12
    nodes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    def takes(self, event: Event) -> bool:
        """Whether an event is of the nodes and kinds wanted, or the one asked for."""
        if event.n == self.around:
            return True
        if self.kinds and event.kind not in self.kinds:
            return False
        return not self.nodes or event.node in self.nodes


@frozen
class Row:
    """One event.

    Attributes:
        column: of its node; -1 where the node has none.
        glyphs: what each column's node does at this moment.
        is_wanted: whether it is the event asked for.
    """

    n: int
    t_us: int
    node: str
    kind: Kind
    column: int
    glyphs: tuple[str, ...]
    text: str
    is_wanted: bool = False


@frozen
class Columns:
    """The names of the columns, and the rows, which can be taken once."""

    nodes: tuple[str, ...]
    rows: Iterator[Row]


def columns(story: Story, selection: Selection, events: Iterable[Event]) -> Columns:
    """The selected events of a trace, which are given in order (again)."""
    nodes = tuple(
        name
        for name, node in story.nodes.items()
        if len(node.statuses) and (not selection.nodes or name in selection.nodes)
    )
    return Columns(nodes, _rows(story, selection, nodes, events))


def _rows(
    story: Story, selection: Selection, nodes: tuple[str, ...], events: Iterable[Event]
) -> Iterator[Row]:
    places = {name: column for column, name in enumerate(nodes)}
    for event in _selected(selection, events):
        glyphs = tuple(GLYPHS.get(story.status(name, event.n), "|") for name in nodes)
        yield Row(
            event.n,
            event.t_us,
            event.node,
            event.kind,
            places.get(event.node, -1),
            glyphs,
            describe(event),
            event.n == selection.around,
        )


def _selected(selection: Selection, events: Iterable[Event]) -> Iterator[Event]:
    if selection.around is None:
        yield from filter(selection.takes, events)
        return
    before: deque[Event] = deque(maxlen=max(0, selection.context))
    behind = -1
    for event in events:
        if not selection.takes(event):
            continue
        if event.n < selection.around:
            before.append(event)
            continue
        if behind < 0:
            yield from before
            behind = 0
        if event.n > selection.around:
            behind += 1
            if behind > selection.context:
                return
        yield event
    if behind < 0:
        yield from before
