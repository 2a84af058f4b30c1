"""Segments and index entries over time: each is there as long as the records that it is for.

An index that is rebuilt at recovery has the entries that it had if it has as many; otherwise only
the first one is known, which stands for the segment's base offset.

Left out: files that have no records.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from sim.present.history import FOREVER, Cut, How
from sim.present.story import Story
from sim.present.track_reading import Offsets

__all__ = ["OffsetLife", "index_lives_of", "lives_of"]

Log = tuple[str, str]


class OffsetLife(NamedTuple):
    """An offset that means something behind events ``begin`` to ``end``, the latter excluded."""

    offset: int
    begin: int
    end: int


def lives_of(story: Story, births: Offsets) -> dict[Log, list[OffsetLife]]:
    """The lives, by node and partition, in the order in which they begin.

    An offset goes with the records at it; what is deleted at the log start goes by segments, so an
    offset stays until the next one is not above the new log start.
    """
    found = {}
    for (node, partition), born in births.items():
        known = story.partitions.get(partition)
        replica = None if known is None else known.replicas.get(node)
        if replica is not None:
            found[node, partition] = _lives(born, replica.cuts)
    return found


def index_lives_of(
    story: Story,
    births: Offsets,
    segments: Mapping[Log, Sequence[OffsetLife]],
    new_indexes: Mapping[Log, Sequence[tuple[int, int, int]]],
) -> dict[Log, list[OffsetLife]]:
    """The same for index entries, which go, too, where their index is written anew."""
    found = lives_of(story, births)
    for log, lives in found.items():
        bases = sorted({each.offset for each in segments.get(log, ())})
        for base, n, count in new_indexes.get(log, ()):
            at = bisect_right(bases, base)
            end = bases[at] if at < len(bases) else FOREVER
            old = [
                i
                for i, each in enumerate(lives)
                if base <= each.offset < end and each.begin < n < each.end
            ]
            if not old or len(old) == count:
                continue
            ends = lives[old[0]].end
            for i in old:
                lives[i] = lives[i]._replace(end=n)
            if count:
                lives.append(OffsetLife(base, n, ends))
    return found


def _lives(births: Sequence[tuple[int, int]], cuts: Sequence[Cut]) -> list[OffsetLife]:
    offsets = sorted({offset for offset, _ in births})
    following = dict(pairwise(offsets))
    numbers = [cut.n for cut in cuts]
    ends: dict[int, int] = {}
    found = []
    for offset, begin in births:
        if begin < ends.get(offset, 0):
            continue
        end = FOREVER
        for cut in cuts[bisect_right(numbers, begin) :]:
            if _is_gone(offset, following.get(offset), cut):
                end = cut.n
                break
        ends[offset] = end
        found.append(OffsetLife(offset, begin, end))
    return found


def _is_gone(offset: int, following: int | None, cut: Cut) -> bool:
    if cut.how is How.EXPIRED:
        return following is not None and following <= cut.end
    return cut.base <= offset < cut.end
