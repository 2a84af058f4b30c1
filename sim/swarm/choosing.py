"""Where drawn scenarios get their choices from: a few kinds of choice, and who makes them.

A generator asks a ``Choices`` and nobody else, so the same one makes a scenario of a seed
(``KeyedChoices``) and of what a property tester tries (``sim.strategies``). The first value of a
choice is always the simplest: the lowest number, the first of a list, False, no element. Who
shrinks goes there.

Left out: what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Protocol, TypeVar

from sim.draws import Draws

__all__ = ["PERCENT", "Choices", "KeyedChoices", "rates", "sample"]

PERCENT: Final = 100
_WEIGHTS: Final = (1, 2, 4, 8)

T = TypeVar("T")


class Choices(Protocol):
    """Who makes choices."""

    def integer(self, low: int, high: int) -> int:
        """A number, both ends included; ``low`` is 0 or more, and the simplest."""

    def pick(self, values: Sequence[T]) -> T:
        """One of them; the first is the simplest. Values may be there several times."""

    def chance(self, percent: int) -> bool:
        """True in about so many of a hundred cases; False is the simplest."""

    def several(self, low: int, high: int, one: Callable[[Choices], T]) -> list[T]:
        """So many of what ``one`` draws; few are the simplest. Any of them may be left out."""

    def part(self, one: Callable[[Choices], T]) -> T:
        """What ``one`` draws, as a part that can be made simple on its own."""

    def swarm(self, values: Sequence[T]) -> Sequence[T]:
        """Those of some kinds that are on in this case, heavier ones several times (FAULTS C.0)."""


class KeyedChoices:
    """Choices that are a function of a seed.

    Args:
        seed: 0 to 2^64-1.
        purpose: other purposes give unrelated choices.
    """

    def __init__(self, seed: int, purpose: str) -> None:
        self._stream = Draws(seed).stream("swarm", purpose)
        self._count = 0

    def _below(self, limit: int) -> int:
        self._count += 1
        return self._stream.below(limit, self._count)

    def integer(self, low: int, high: int) -> int:
        return low + self._below(high - low + 1)

    def pick(self, values: Sequence[T]) -> T:
        return values[self._below(len(values))]

    def chance(self, percent: int) -> bool:
        return self._below(PERCENT) < percent

    def several(self, low: int, high: int, one: Callable[[Choices], T]) -> list[T]:
        """How many is log-uniform: few are as likely as many."""
        doublings = self._below((high - low).bit_length() + 1)
        count = low + self._below(min(high - low, (1 << doublings) - 1) + 1)
        return [one(self) for _ in range(count)]

    def part(self, one: Callable[[Choices], T]) -> T:
        return one(self)

    def swarm(self, values: Sequence[T]) -> Sequence[T]:
        """Each is off with one chance in two; weights of the others are log-uniform."""
        found: list[T] = []
        for each in values:
            if self._below(2):
                found += [each] * _WEIGHTS[self._below(len(_WEIGHTS))]
        return found or [self.pick(values)]


def rates(low: int, high: int) -> tuple[int, ...]:
    """Numbers from ``low`` to ``high`` that are evenly far apart on a logarithmic scale.

    They go up by 1, 2, 5, 10, ..., so that picking one of them is drawing log-uniformly.
    """
    found, decade = [], 1
    while decade <= high:
        found += [decade * each for each in (1, 2, 5) if low <= decade * each <= high]
        decade *= 10
    return tuple(found)


def sample(choices: Choices, values: Sequence[T], count: int) -> list[T]:
    """So many different ones, in a drawn order; simplest are the first ones, in theirs."""
    left, found = list(values), []
    for _ in range(count):
        found.append(left.pop(choices.integer(0, len(left) - 1)))
    return found
