"""Ranges of records as (leader epoch, first offset, end), and what is in some and not in others.

Left out: whose ranges they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

__all__ = ["Triple", "common", "joined", "without"]

Triple = tuple[int, int, int]
"""Leader epoch, first offset, end."""


def joined(spans: Iterable[Triple]) -> list[Triple]:
    """The same records in as few ranges as there can be, by epoch and offset."""
    found: list[Triple] = []
    for epoch, base, end in sorted(spans):
        if found and found[-1][0] == epoch and base <= found[-1][2]:
            found[-1] = epoch, found[-1][1], max(end, found[-1][2])
        elif base < end:
            found.append((epoch, base, end))
    return found


def without(spans: Iterable[Triple], gone: Sequence[Triple]) -> list[Triple]:
    """What is in some ranges and in none of the others."""
    left = joined(spans)
    for epoch, base, end in gone:
        parts = []
        for each in left:
            if each[0] != epoch or each[2] <= base or end <= each[1]:
                parts.append(each)
                continue
            parts += [(epoch, each[1], base)] if each[1] < base else []
            parts += [(epoch, end, each[2])] if end < each[2] else []
        left = parts
    return left


def common(spans: Iterable[Triple], others: Sequence[Triple]) -> list[Triple]:
    """What is in both."""
    spans = joined(spans)
    return without(spans, without(spans, others))
