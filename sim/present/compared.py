"""A trace that is to be compared, and what reading it gives.

Left out: files, and comparing (``sim.present.comparing``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from attrs import frozen

from sim.present.aligning import Alignment, Keys, align
from sim.present.story import Story
from sim.trace.lines import Event, Footer, Header

__all__ = ["Compared", "Fetch", "Source", "read"]

Fetch = Callable[[int, int | None], Iterable[Event]]
"""The events from one number to another, both included; None for all that follow."""


@frozen
class Source:
    """A trace; ``fetch`` is called several times, and ``name`` is for people."""

    name: str
    header: Header
    fetch: Fetch
    footer: Footer | None


@frozen
class Compared:
    """A trace that was read."""

    source: Source
    story: Story
    keys: Keys

    @property
    def last_n(self) -> int:
        return self.story.last_n

    def events(self, first: int, last: int) -> list[Event]:
        """Events from one number to another, both included."""
        if last < first:
            return []
        return list(self.source.fetch(max(1, first), last))

    def event(self, n: int | None) -> Event | None:
        """The event of a number; None for none."""
        found = [] if n is None or n < 1 else self.events(n, n)
        return found[0] if found else None


def read(a: Source, b: Source) -> tuple[Compared, Compared, Alignment]:
    """Both traces, and which events of them correspond."""
    table: dict[str, int] = {}
    one, other = _read(a, table), _read(b, table)
    return one, other, align(one.keys, other.keys)


def _read(source: Source, table: dict[str, int]) -> Compared:
    keys = Keys(table)
    story = Story(source.header, keys.reading(source.fetch(1, None)), source.footer)
    return Compared(source, story, keys)
