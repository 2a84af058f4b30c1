"""Hypothesis as who makes the choices of ``sim.swarm``.

Every element of a list is a span of its own that begins with whether it is there, so that the
shrinker takes out each one alone and all others keep their choices.

Left out: what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from hypothesis import strategies as st

from sim.swarm.choosing import PERCENT, Choices

__all__ = ["Drawing", "chosen"]

T = TypeVar("T")

_ABSENT: Final = object()
_THERE: Final = 3
"""Of one more choices an element is there in so many."""


class Drawing:
    """Choices that a test case of Hypothesis makes."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def integer(self, low: int, high: int) -> int:
        return self._draw(st.integers(low, high))

    def pick(self, values: Sequence[T]) -> T:
        return values[self._draw(st.integers(0, len(values) - 1))]

    def chance(self, percent: int) -> bool:
        return self._draw(st.integers(0, PERCENT - 1)) >= PERCENT - percent

    def several(self, low: int, high: int, one: Callable[[Choices], T]) -> list[T]:
        found = []
        for at in range(self._draw(st.integers(low, high))):
            each = self._draw(_element(one, is_sure=at < low))
            if each is not _ABSENT:
                found.append(each)
        return found

    def part(self, one: Callable[[Choices], T]) -> T:
        found: T = self._draw(chosen(one))
        return found

    def swarm(self, values: Sequence[T]) -> Sequence[T]:
        """All of them: Hypothesis varies and repeats choices itself."""
        return values


@st.composite
def chosen(draw: st.DrawFn, one: Callable[[Choices], Any]) -> Any:
    """What ``one`` draws."""
    return one(Drawing(draw))


@st.composite
def _element(draw: st.DrawFn, one: Callable[[Choices], Any], *, is_sure: bool) -> Any:
    if not is_sure and draw(st.integers(0, _THERE)) == 0:
        return _ABSENT
    return one(Drawing(draw))
