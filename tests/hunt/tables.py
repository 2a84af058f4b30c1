"""The tables that a hunt ends with: what was seen, what was found.

Left out: whether that is enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tests.hunt.finds import Finds
from tests.hunt.sights import GROUPS, SIGHTS

__all__ = ["coverage", "found", "table"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Columns as wide as their widest cell; what is a number stands on the right."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[n]) for line in lines) for n in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if cell.isdigit() else cell.ljust(width)
            for cell, width in zip(line, widths, strict=True)
        ).rstrip()
        for line in lines
    )


def coverage(counts: Mapping[int, int]) -> str:
    """Each sight, and in how many worlds it was seen.

    Args:
        counts: by the number of the sight.
    """
    rows = []
    for number, sight in enumerate(SIGHTS):
        count = counts.get(number, 0)
        note = sight.never and f"never: {sight.never}"
        if count and sight.never:
            note = f"SEEN, though said to be never: {sight.never}"
        elif sight.rare:
            note = f"not asked for: {sight.rare}"
        elif not count and not sight.never:
            note = "NOT SEEN"
        rows.append((GROUPS[sight.group], sight.name, str(count), note))
    return table(("what", "which", "worlds", ""), rows)


def found(finds: Finds) -> str:
    """Each fingerprint, most frequent first."""
    rows = [(str(count), name) for name, count in finds.counts.most_common()]
    return table(("worlds", "finding: faults"), rows)
