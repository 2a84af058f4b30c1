"""Events of kind ``loss``, read without believing them: what is malformed is left out.

Left out: words (``sim.present.losses``).
"""

from __future__ import annotations

from sim.present.args import flag, integer, number, text
from sim.present.history import Loss
from sim.trace.lines import Event

__all__ = ["read_loss"]


def read_loss(event: Event) -> Loss:
    """A loss as an event has it."""
    args = event.args
    return Loss(
        n=event.n,
        partition=text(args, "partition") or "?",
        spans=_triples(args.get("spans")),
        count=number(args, "count", 0),
        licence=text(args, "licence") or "",
        rule=text(args, "rule") or "",
        at=text(args, "at") or "",
        leader=text(args, "leader") or "",
        leader_epoch=integer(args, "leader_epoch"),
        how=text(args, "how") or "",
        is_committed=flag(args, "is_committed"),
        culprits=_numbers(args.get("culprits")),
        copies=_copies(args.get("copies")),
    )


def _triples(found: object) -> tuple[tuple[int, int, int], ...]:
    if not isinstance(found, list | tuple):
        return ()
    return tuple(
        (each[0], each[1], each[2])
        for each in found
        if isinstance(each, list | tuple)
        and [type(part) for part in each] == [int] * 3
        and each[1] < each[2]
    )


def _numbers(found: object) -> tuple[int, ...]:
    if not isinstance(found, list | tuple):
        return ()
    return tuple(each for each in found if type(each) is int)


def _copies(found: object) -> tuple[tuple[str, str, int], ...]:
    if not isinstance(found, list | tuple):
        return ()
    return tuple(
        (each[0], each[1], each[2])
        for each in found
        if isinstance(each, list | tuple) and [type(part) for part in each] == [str, str, int]
    )
