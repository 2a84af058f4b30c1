"""What is exported: a part of a trace, and lines with what must be said about them.

Left out: the formats.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import takewhile

from attrs import frozen

from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["ExportError", "Exported", "Selection", "ascii_text"]


class ExportError(Exception):
    """A trace does not fit into a format; the text names the value seen and those allowed."""


@frozen
class Exported:
    """Lines without their newlines, to be taken once, and notices for people about them."""

    lines: Iterator[str]
    notices: tuple[str, ...] = ()


@frozen(kw_only=True)
class Selection:
    """Which events.

    Attributes:
        first, last: numbers of events, both included; None for up to the end.
        nodes, kinds: only of these; all where empty.
    """

    first: int = 1
    last: int | None = None
    nodes: tuple[str, ...] = ()
    kinds: tuple[Kind, ...] = ()

    @property
    def is_whole(self) -> bool:
        return self == Selection()

    def has(self, n: int, node: str, kind: Kind) -> bool:
        """Whether an event is wanted."""
        if n < self.first or (self.last is not None and n > self.last):
            return False
        return (not self.nodes or node in self.nodes) and (not self.kinds or kind in self.kinds)

    def of(self, events: Iterable[Event]) -> Iterator[Event]:
        """The wanted ones; no event behind the last one is asked for."""
        inside = takewhile(lambda event: self.last is None or event.n <= self.last, events)
        return (event for event in inside if self.has(event.n, event.node, event.kind))


_ASCII = str.maketrans({"→": "->", "⇒": "=>", "←": "<-", "…": "..."})


def ascii_text(text: str) -> str:
    """Text that was escaped already, in ASCII."""
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode("ascii")
