"""Losses by licence, and whether the scenario covers them.

A loss under a licence is covered by ``allow``, or by a promise that ``breaks`` names and the loss
breaks. One that is illegal or unexplained fails the run, unless ``breaks`` names
``committed-durability`` or a promise and a guard is off or the truncation mode is an older one
(DECISIONS 3). Records that a later leader had back do not count.

A licence needs its culprits: where the run without them was made and loses the records all the
same, with nothing else to explain it, the loss is unexplained, whatever its licence says.

Left out: broken invariants, expectations (``sim.running.verdicts``); making runs without something
(``sim.blame``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final

from attrs import evolve, frozen

from sim.checks.judge import Judge
from sim.checks.ledger import Loss
from sim.checks.licences import LEGAL
from sim.running.expectations import Expectation

__all__ = ["PROMISES", "Lost", "Tested", "coverage", "lost_by_licence"]

PROMISES: Final = {
    "acked-records-survive": "acked",
    "committed-records-survive": "committed",
    "exposed-records-survive": "exposed",
}
"""A promise, and the word under which its losses are counted."""


Standing = tuple[Loss, int, tuple[str, ...]]
"""A loss, how many of its records stay lost, and of which kinds these are."""


@frozen
class Tested:
    """What the run without the culprits of a loss has shown (``sim.blame.necessity``).

    Attributes:
        outcome: ``confirmed``, ``overdetermined``, ``never-acknowledged``, ``refuted`` or
            ``untested``.
        parts: names of the steps and faults that were left out.
        others: names of those by which the records were lost instead.
    """

    outcome: str
    parts: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@frozen
class Lost:
    """What was lost under one licence.

    Attributes:
        licence: ``L0`` to ``L4``, ``ILLEGAL`` or ``UNEXPLAINED``.
        records: how many, without those that a later leader had back.
        promises: those of ``PROMISES`` that these losses break.
        losses: the loss events, each with the promises that it breaks.
        is_covered: by ``allow``, or by a promise in ``breaks``.
    """

    licence: str
    records: int
    promises: tuple[str, ...]
    losses: tuple[tuple[Loss, tuple[str, ...]], ...]
    is_covered: bool = False


def lost_by_licence(
    judge: Judge, tested: Mapping[int, Tested], more: Iterable[Standing] = ()
) -> list[Lost]:
    """The losses that stand at the end, by licence, in the order of the table.

    Args:
        tested: by the number of the event that tells of the loss.
        more: losses behind the end of the run, which nobody has tested.
    """
    found: dict[str, list[Standing]] = {}
    known = [(each, tested.get(each[0].told)) for each in judge.facts.standing_losses()]
    for (loss, records, kinds), test in (*known, *((each, None) for each in more)):
        promises = tuple(name for name, kind in PROMISES.items() if kind in kinds)
        if test is not None and test.outcome == "refuted":
            without = " and ".join(test.parts) or "nothing"
            rule = f"the run without {without} loses them all the same, so {loss.licence} is wrong"
            loss = evolve(loss, licence="UNEXPLAINED", rule=rule)
        found.setdefault(loss.licence, []).append((loss, records, promises))
    return [
        Lost(
            licence,
            sum(records for _, records, _ in each),
            tuple(name for name in PROMISES if any(name in names for _, _, names in each)),
            tuple((loss, names) for loss, _, names in each),
        )
        for licence, each in sorted(found.items(), key=lambda item: _place(item[0]))
    ]


def coverage(
    found: Iterable[Lost],
    expectations: Iterable[Expectation],
    wanted: Collection[str],
    *,
    is_loose: bool,
) -> tuple[list[Lost], list[str]]:
    """The losses with whether they are covered, and what is wrong with them, in words.

    Args:
        wanted: names in ``breaks``.
        is_loose: a guard is off, or the truncation mode is an older one.
    """
    allowed = [one for each in expectations for one in each.expect.allow]
    found = list(found)
    counts = {each.licence: each.records for each in found}
    wrong = [
        f"allow {one} does not hold: {counts.get(one.licence, 0)} records were lost under it"
        for one in allowed
        if not one.holds(counts.get(one.licence, 0))
    ]
    done = []
    for each in found:
        if each.licence in LEGAL:
            is_covered = any(one.licence == each.licence for one in allowed)
            is_covered |= all(set(names) & set(wanted) for _, names in each.losses)
        else:
            names = {"committed-durability", *PROMISES}
            is_covered = is_loose and bool(names & set(wanted))
        if not is_covered:
            wrong.append(_uncovered(each))
        done.append(evolve(each, is_covered=is_covered))
    return done, wrong


def _uncovered(each: Lost) -> str:
    records = "1 record was" if each.records == 1 else f"{each.records} records were"
    rules = list(dict.fromkeys(loss.rule for loss, _ in each.losses))
    more = f" (and {len(rules) - 1} more reasons)" if len(rules) > 1 else ""
    if each.licence in LEGAL:
        text = "neither allow nor a promise in breaks covers it"
        hint = f"to accept it: allow = {{ {each.licence} = {each.records} }}"
        return f"{records} lost under {each.licence}, and {text}: {rules[0]}{more} ({hint})"
    return f"{records} lost, {each.licence}: {rules[0]}{more}"


def _place(licence: str) -> int:
    order = (*LEGAL, "ILLEGAL", "UNEXPLAINED")
    return order.index(licence)
