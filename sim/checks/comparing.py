"""Comparing the logs of two replicas, record by record where a glance does not do.

Two logs whose last batches are one object agree on everything before. Where they are not one, the
records are compared; logs that turn out equal share their batches from then on.

Left out: what has to agree (``committed_log_matching``, ``epoch_prefix``).
"""

from __future__ import annotations

from sim.checks.history import Batch, records_of
from sim.checks.ledger import Ledger, Place
from sim.checks.ranges import Span

__all__ = ["difference", "first_other", "shared_end"]


def difference(one: Place, other: Place, low: int, limit: int) -> int | None:
    """The lowest offset from ``low`` to before ``limit`` that both have, and have differently."""
    ours, theirs = one.mirror, other.mirror
    left, right = ours.last_before(limit), theirs.last_before(limit)
    if left is None or right is None:
        return None
    if left is right or _agree(one, other, limit):
        return None
    start = max(low, one.start, other.start)
    found = records_of(ours.between(start, limit), start)
    others = records_of(theirs.between(start, limit), start)
    for offset in sorted(found):
        if offset >= limit or _is_damaged(one, offset) or _is_damaged(other, offset):
            continue
        if others.get(offset, found[offset]) != found[offset]:
            return offset
    _share(one, other, limit)
    return None


def _agree(one: Place, other: Place, limit: int) -> bool:
    """Whether the shorter one's last batch below a limit is the other's too."""
    left, right = one.mirror.last_before(limit), other.mirror.last_before(limit)
    if left is None or right is None:
        return True
    if left.base > right.base:
        one, other, left, right = other, one, right, left
    return other.mirror.holds(left)


def _is_damaged(place: Place, offset: int) -> bool:
    if not place.mirror.damaged:
        return False
    batch = place.mirror.at(offset)
    return batch is not None and batch.base in place.mirror.damaged


def _share(one: Place, other: Place, limit: int) -> None:
    """Equal batches become one object, so that the next glance does."""
    theirs = other.mirror
    for place, batch in enumerate(one.mirror.batches):
        if batch.base >= limit:
            break
        twin = theirs.at(batch.base)
        if twin is not None and twin is not batch and twin.data == batch.data:
            one.mirror.batches[place] = twin


def shared_end(one: Place, other: Place) -> int:
    """The end of the last batch that both have by epoch and offset, 0 where there is none."""
    theirs = other.mirror
    for batch in reversed(one.mirror.batches):
        twin = theirs.at(batch.base)
        if twin is not None and twin.base == batch.base and twin.epoch == batch.epoch:
            return batch.next
    return 0


def first_other(place: Place, tip: Batch, ledger: Ledger) -> int | None:
    """The lowest offset at which a log has another batch than the past that ends in ``tip``.

    Batches that it does not have at all, damaged ones, and deleted ones do not count.
    """
    lowest, mirror = None, place.mirror
    each: Batch | None = tip
    while each is not None and each.next > place.start:
        own = mirror.at(each.base)
        is_deleted = not any(ledger.uncleared([Span(each.epoch, each.base, each.next)]))
        if own is each or is_deleted:
            break
        if own is not None and own.data != each.data and own.base not in mirror.damaged:
            lowest = each.base
        each = each.parent
    return lowest
