"""Keyed draws: every random choice is a pure function of the seed and of what it is for.

``draw(stream, ids...)`` has no state, so a choice does not depend on which others were made before
it: taking one fault out of a run leaves every other draw as it was. The ids end in an ordinal that
the caller counts per entity (the n-th fsync of disk b1).

Left out: distributions beyond those used here, and any global generator.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

__all__ = ["Draws", "Stream"]

_BITS = 64


class Draws:
    """The draws of one seed (0 to 2^64-1)."""

    __slots__ = ("_base", "seed")

    def __init__(self, seed: int) -> None:
        if not 0 <= seed < 1 << _BITS:
            raise ValueError(f"seed is {seed}, allowed is 0..2^64-1")
        self.seed = seed
        self._base = blake2b(seed.to_bytes(8, "big"), digest_size=8, person=b"leaderfall draw")

    def __deepcopy__(self, memo: object) -> Draws:
        # Nothing ever changes it, and a hash state can only be copied by its own method.
        return self

    def bits(self, stream: str, *ids: int | str) -> int:
        """64 bits for ``stream`` and ``ids``; other arguments give unrelated bits."""
        state = self._base.copy()
        state.update(_canonical(stream, ids))
        return int.from_bytes(state.digest(), "big")

    def stream(self, stream: str, *ids: int | str) -> Stream:
        """The draws of ``stream`` and ``ids`` with one ordinal more, at less cost."""
        state = self._base.copy()
        state.update(_canonical(stream, ids))
        return Stream(state)

    def below(self, limit: int, stream: str, *ids: int | str) -> int:
        """A number from 0 to ``limit - 1``; ``limit`` is 1 to 2^32, so the bias is below 2^-32."""
        if not 1 <= limit <= 1 << 32:
            raise ValueError(f"limit is {limit}, allowed is 1..2^32")
        return (self.bits(stream, *ids) * limit) >> _BITS

    def chance(self, parts_per_million: int, stream: str, *ids: int | str) -> bool:
        """True in so many of a million cases."""
        return self.below(1_000_000, stream, *ids) < parts_per_million

    def weighted(self, weights: Sequence[int], stream: str, *ids: int | str) -> int:
        """An index into ``weights``, each as likely as its weight."""
        left = self.below(sum(weights), stream, *ids)
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        raise AssertionError("unreachable: the weights were summed above")

    def noise(self, size: int, stream: str, *ids: int | str) -> bytes:
        """``size`` bytes that look like nothing."""
        state = self._base.copy()
        state.update(_canonical(stream, ids))
        key = state.digest()
        blocks = -(-size // 64)
        parts = (blake2b(n.to_bytes(8, "big"), key=key).digest() for n in range(blocks))
        return b"".join(parts)[:size]


class Stream:
    """Draws that differ in their last id only: ``Draws.stream("x", "b1").bits(7)`` is
    ``Draws.bits("x", "b1", 7)``.
    """

    __slots__ = ("_state",)

    def __init__(self, state: blake2b) -> None:
        self._state = state

    def bits(self, ordinal: int) -> int:
        """64 bits for an ordinal."""
        state = self._state.copy()
        state.update(b"i%d;" % ordinal)
        return int.from_bytes(state.digest(), "big")

    def below(self, limit: int, ordinal: int) -> int:
        """A number from 0 to ``limit - 1``; ``limit`` is 1 to 2^32."""
        state = self._state.copy()
        state.update(b"i%d;" % ordinal)
        return (int.from_bytes(state.digest(), "big") * limit) >> _BITS

    def chance(self, parts_per_million: int, ordinal: int) -> bool:
        """True in so many of a million cases."""
        return self.below(1_000_000, ordinal) < parts_per_million

    def __deepcopy__(self, memo: object) -> Stream:
        # Nothing ever changes it, and a hash state can only be copied by its own method.
        return self


def _canonical(stream: str, ids: tuple[int | str, ...]) -> bytes:
    """An encoding in which no two argument lists are alike."""
    parts = [f"{len(stream)}:{stream}"]
    for value in ids:
        parts.append(f"i{value};" if isinstance(value, int) else f"s{len(value)}:{value}")
    return "".join(parts).encode()
