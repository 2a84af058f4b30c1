"""Moving about in a trace: the same moves under the same names in every face.

A move that finds nothing leaves the stepper where it is, and says so.

Left out: showing (``sim.present.step_view``), and reading keys.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import Final

from attrs import frozen

from sim.present.describing import describe
from sim.present.step_view import Mark, View, marks, view
from sim.present.tracks import Tracks

__all__ = ["KEYS", "Key", "NoSuchMove", "Stepper"]

SEARCH_STEP: Final = 500


class NoSuchMove(Exception):
    """There is nothing to go to; the text says what there is."""


@frozen
class Key:
    """A key or word, what it takes, and what it does."""

    key: str
    argument: str
    text: str


KEYS: Final = (
    Key("n", "[COUNT]", "next event"),
    Key("p", "[COUNT]", "previous event"),
    Key("N", "[NODE]", "next event of the same node, or of another one"),
    Key("P", "[NODE]", "previous event of the same node, or of another one"),
    Key("g", "EVENT|TIME", "go to an event (812, start, end) or a time (3.5s)"),
    Key("v", "", "next broken rule, lost record or failed expectation; V the one before"),
    Key("f", "", "next fault: one begins, ends, or a node falls; F the one before"),
    Key("/", "TEXT", "next event with this text; / alone: again"),
    Key("w", "[EVENT]", "why: the causes, back to a step or a fault"),
    Key("d", "", "only what changed, or everything"),
    Key("c", "TRACE", "compare with another run: the first event that differs"),
    Key("?", "", "these keys"),
    Key("q", "", "quit"),
)
"""The keys that every face has."""


class Stepper:
    """A place in a trace.

    Attributes:
        tracks: the trace.
        n: the event behind which the state is shown; 0 is the empty beginning.
        node: whose events ``N`` and ``P`` go to; empty for that of the event shown.
        text: what ``/`` looks for.
    """

    def __init__(self, tracks: Tracks) -> None:
        self.tracks = tracks
        self.node = ""
        self.text = ""
        self.marks: Sequence[Mark] = marks(tracks)
        self._by_node: dict[str, list[int]] = {}
        for number, brief in enumerate(tracks.story.briefs, 1):
            self._by_node.setdefault(brief.node, []).append(number)
        self.n = self._opening()

    def _opening(self) -> int:
        """Where people want to begin: at the first broken rule or loss, else at the first failed
        expectation, which is often judged long after what it is about, else at the end.
        """
        story = self.tracks.story
        wrong = [each.n for each in story.findings] + [each.n for each in story.losses]
        wrong = wrong or [mark.n for mark in self.marks if mark.what == "violation"]
        return min(wrong, default=self.tracks.last)

    @property
    def view(self) -> View:
        """The step that is shown."""
        return view(self.tracks, self.n)

    @property
    def nodes(self) -> list[str]:
        """The nodes that have events."""
        return list(self._by_node)

    def next(self, count: int = 1) -> None:
        """So many events further; negative: back. It stops at either end.

        Raises:
            NoSuchMove: it is at that end already.
        """
        to = max(0, min(self.n + count, self.tracks.last))
        if to == self.n and count:
            end = "last event" if count > 0 else "beginning"
            raise NoSuchMove(f"This is the {end}.")
        self.n = to

    def next_of(self, node: str = "", *, is_back: bool = False) -> None:
        """The next event of a node, or the one before; of the node of this event if none is named.

        Raises:
            NoSuchMove: there is no such node, or no more of its events.
        """
        if not node:
            node = self.node or self._node_here()
        if node not in self._by_node:
            known = ", ".join(self._by_node)
            raise NoSuchMove(f'There is no node "{node}" with events. There are {known}.')
        which = "before" if is_back else "behind"
        numbers = self._by_node[node]
        self._go_on(numbers, f"no event of {node} {which} this one", is_back=is_back)
        self.node = node

    def _node_here(self) -> str:
        brief = self.tracks.story.brief(self.n)
        return next(iter(self._by_node), "") if brief is None else brief.node

    def go(self, n: int) -> None:
        """To an event.

        Raises:
            NoSuchMove: there is none of that number.
        """
        if not 0 <= n <= self.tracks.last:
            raise NoSuchMove(f"There is no event {n}. There are 0 (the beginning) to {self.last}.")
        self.n = n

    def go_to_time(self, t_us: int) -> None:
        """To the last event that is not later than a time in µs; the beginning before the first."""
        briefs = self.tracks.story.briefs
        self.n = bisect_right(briefs, t_us, key=lambda brief: brief.t_us)

    def next_mark(self, *whats: str, is_back: bool = False) -> None:
        """The next event that is known for something of these, or the one before.

        Raises:
            NoSuchMove: there is none.
        """
        numbers = sorted({mark.n for mark in self.marks if mark.what in whats})
        which = "before" if is_back else "behind"
        text = f"no {' or '.join(whats)} {which} this event; the trace has {len(numbers)}"
        self._go_on(numbers, text, is_back=is_back)

    def search(self, text: str = "", *, is_back: bool = False) -> None:
        """The next event whose node, kind or words have a text in them, without regard to case.

        Raises:
            NoSuchMove: there is none, or no text was ever given.
        """
        for _ in self.searching(text, is_back=is_back):
            pass

    def searching(self, text: str = "", *, is_back: bool = False) -> Iterator[int]:
        """The same in steps, for a face that must not stand still: events looked at so far.

        Raises:
            NoSuchMove: there is none, or no text was ever given.
        """
        wanted = text or self.text
        if not wanted:
            raise NoSuchMove("/ needs a text to look for")
        self.text = wanted
        wanted = wanted.casefold()
        last = self.last
        numbers = range(self.n - 1, 0, -1) if is_back else range(self.n + 1, last + 1)
        for count, n in enumerate(numbers, 1):
            if self._has(n, wanted):
                self.n = n
                return
            if not count % SEARCH_STEP:
                yield count
        which = "before" if is_back else "behind"
        raise NoSuchMove(f'no event {which} this one has "{self.text}" in it')

    def _has(self, n: int, wanted: str) -> bool:
        event = self.tracks.event(n)
        line = f"{event.node} {event.kind.value} {describe(event)}"
        return wanted in line.casefold()

    @property
    def last(self) -> int:
        """Number of the last event."""
        return self.tracks.last

    def _go_on(self, numbers: Sequence[int], nothing: str, *, is_back: bool) -> None:
        at = bisect_left(numbers, self.n) - 1 if is_back else bisect_right(numbers, self.n)
        if not 0 <= at < len(numbers):
            raise NoSuchMove(f"There is {nothing}.")
        self.n = numbers[at]
