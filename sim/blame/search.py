"""A smallest set of parts without which something does not happen.

Looked for is a set S of parts such that the run without S does not have the violation, or has the
records of the loss, acknowledged and not lost. Every member of S is needed: with any single one of
them back, and the others gone, it happens again, or it cannot be told (1-minimal, ddmin of Zeller
and Hildebrandt). A set of one or two is a smallest one. For larger ones the pairs are tried, if
they are few and as far as the budget goes; a set of three is a smallest one if all were. A part is
*enough alone* if S could be that part alone; there may be several such, and S is then the one that
the event goes back to most nearly.

First each part that had begun by then is tried alone, those first that the event goes back to; then
those together, then all that had begun by then, then all: without the first of two power cuts the
second one may take the same records. A run in which the records were never acknowledged does not
count as one without the loss. The same question gets the same answer.

Left out: operations of clients, which are no faults; parameters of faults.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from itertools import combinations
from typing import Final

from attrs import define, evolve, field, frozen

from sim.blame.counterfactual import BudgetEnded, Fate, Replay, Replays, fates
from sim.blame.parts import UNDOING, Part
from sim.checks.ledger import Loss
from sim.checks.violations import Violation
from sim.running.interpreter import Failure
from sim.scenario.cluster_keys import ClusterKeys

__all__ = ["Answer", "Found", "Loosened", "Target", "answer_of", "loosened", "search"]

RUNS_MAX: Final = 200
_PAIRS_FROM: Final = 3
_PAIRS_MAX: Final = 66


class Answer(StrEnum):
    """Whether it happens in a run without something."""

    HAPPENS = "happens"
    ABSENT = "does not happen"
    UNKNOWN = "cannot be told"


@frozen
class Target:
    """What is asked about: a violation, or the records of a loss.

    Attributes:
        losses: of one event and partition; none where it is a violation.
        event: of the first bad state.
    """

    event: int
    violation: Violation | None = None
    losses: tuple[Loss, ...] = ()


@frozen
class Loosened:
    """A rule that is off in the scenario, and whether it happens with it on."""

    what: str
    answer: Answer


@frozen
class Found:
    """What came of a search.

    Attributes:
        status: ``found``; ``unavoidable``: it happens without any of the parts; ``unknown``:
            without all of them nothing can be told, as the records are never acknowledged;
            ``inconclusive``: the budget ended before a set was found, or was minimal.
        parts: the set; what is left of it where the search is inconclusive.
        alone: parts that are enough alone.
        is_smallest: whether no smaller set does.
        is_complete: whether everything was tried that there was to try; False where the budget
            ended.
        runs: how many runs it took.
        passed_over: what could not act in the run without the set, and why; without what would
            only have ended it.
    """

    status: str
    parts: tuple[Part, ...] = ()
    alone: tuple[Part, ...] = ()
    is_smallest: bool = False
    is_complete: bool = True
    runs: int = 0
    passed_over: tuple[Failure, ...] = ()


def answer_of(base: Replay, other: Replay, target: Target) -> Answer:
    """Whether it happens in another run."""
    if target.violation is not None:
        known = target.violation
        if other.has_violation(known.check, known.partition, known.kind):
            return Answer.HAPPENS
        return Answer.ABSENT if other.has_ended else Answer.UNKNOWN
    found = {each.fate for loss in target.losses for each in fates(base, other, loss)}
    if Fate.LOST in found:
        return Answer.HAPPENS
    return Answer.ABSENT if Fate.SURVIVES in found and other.has_ended else Answer.UNKNOWN


def search(replays: Replays, target: Target, cited: Iterable[Part]) -> Found:
    """Look for it.

    Args:
        replays: with ``runs_max`` as the budget.
        cited: the parts that the event goes back to.
    """
    begun = replays.begun_by(replays.base.result.moments.end_us)
    by_then = replays.begun_by(replays.time_us(target.event))
    near = set(cited)
    # The last cause is the nearest one.
    order = [
        *(each for each in reversed(by_then) if each in near),
        *(each for each in reversed(by_then) if each not in near),
    ]
    hunt = _Hunt(replays, target)
    later = [each for each in begun if each not in order]
    try:
        found = hunt.hunt(order, [each for each in order if each in near], later)
    except BudgetEnded:
        best, alone = hunt.best, tuple(hunt.alone)
        status = "found" if len(best) == 1 else "inconclusive"
        found = Found(status, best, alone, is_smallest=len(best) == 1, is_complete=False)
    place = {each: at for at, each in enumerate(begun)}
    return evolve(
        found,
        parts=tuple(sorted(found.parts, key=lambda each: place[each])),
        runs=replays.count,
        passed_over=hunt.passed_over.get(frozenset(found.parts), ()),
    )


@define
class _Hunt:
    """One search under way; a run is made once for each set.

    Attributes:
        best: the smallest set so far.
        alone: parts that are enough alone.
        passed_over: what could not act without each set.
    """

    replays: Replays
    target: Target
    best: tuple[Part, ...] = ()
    alone: list[Part] = field(factory=list)
    passed_over: dict[frozenset[Part], tuple[Failure, ...]] = field(factory=dict)
    _known: dict[frozenset[Part], Answer] = field(factory=dict)

    def hunt(self, order: Sequence[Part], near: Sequence[Part], later: Sequence[Part]) -> Found:
        """Look among the parts that had begun by then, in their order, and those that began later.

        Without one of the latter alone everything up to then is the same.
        """
        every = [*order, *later]
        if not order:
            return Found("unavoidable")
        for part in order:
            if self._is_absent((part,)):
                self.alone.append(part)
        if self.alone:
            return Found("found", (self.alone[0],), tuple(self.alone), True)
        start = next((each for each in (near, order, every) if self._is_absent(each)), None)
        if start is None:
            happens = self._ask(every) is Answer.HAPPENS
            return Found("unavoidable" if happens else "unknown")
        self._shrink(list(start))
        is_smallest = len(self.best) < _PAIRS_FROM or self._pairs(every)
        return Found("found", self.best, (), is_smallest)

    def _pairs(self, every: Sequence[Part]) -> bool:
        """Try all pairs, unless they are too many; whether the best set is a smallest one then."""
        pairs = list(combinations(every, 2))
        if len(pairs) > _PAIRS_MAX:
            return False
        try:
            found = any(self._is_absent(each) for each in pairs)
        except BudgetEnded:
            return False
        return found or len(self.best) == _PAIRS_FROM

    def _ask(self, parts: Iterable[Part]) -> Answer:
        key = frozenset(parts)
        if key not in self._known:
            base = self.replays.base
            other = self.replays.without(each for each in self.replays.parts if each in key)
            self._known[key] = answer_of(base, other, self.target)
            self.passed_over[key] = self._notes(other)
        return self._known[key]

    def _notes(self, other: Replay) -> tuple[Failure, ...]:
        steps = {each.number: each for each in self.replays.scenario.steps}
        return tuple(
            each
            for each in other.result.passed_over
            if not each.step or not isinstance(steps[each.step].action, UNDOING)
        )

    def _is_absent(self, parts: Sequence[Part]) -> bool:
        """Whether it does not happen without these; the smallest such set is kept."""
        if not parts or self._ask(parts) is not Answer.ABSENT:
            return False
        if not self.best or len(parts) < len(self.best):
            self.best = tuple(parts)
        return True

    def _shrink(self, parts: list[Part]) -> None:
        """ddmin: smaller and smaller parts of a set, until no member can be spared."""
        pieces = 2
        while len(parts) > 1:
            size = -(-len(parts) // pieces)
            chunks = [parts[at : at + size] for at in range(0, len(parts), size)]
            tries = [*chunks, *([x for x in parts if x not in chunk] for chunk in chunks)]
            smaller = next((each for each in tries if self._is_absent(each)), None)
            if smaller is not None:
                pieces = 2 if smaller in chunks else max(2, pieces - 1)
                parts = smaller
            elif size == 1:
                return
            else:
                pieces = min(len(parts), 2 * pieces)


# Rules that are off ------------------------------------------------------------------------------


def loosened(replays: Replays, target: Target) -> tuple[Loosened, ...]:
    """The guards that are off, and an older truncation mode; whether it happens with each back.

    One run for each.

    Raises:
        BudgetEnded: there is no run left for one.
    """
    cluster = replays.scenario.cluster
    changes: list[tuple[str, ClusterKeys]] = [
        (f"guard {name}", evolve(cluster, guards={**cluster.guards, name: True}))
        for name, is_on in sorted(cluster.guards.items())
        if not is_on
    ]
    if cluster.truncation != "fetch":
        changes.append((f"truncation {cluster.truncation}", evolve(cluster, truncation="fetch")))
    found = []
    for what, changed in changes:
        scenario = evolve(replays.scenario, cluster=changed)
        other = replays.without((), scenario=scenario)
        found.append(Loosened(what, answer_of(replays.base, other, target)))
    return tuple(found)
