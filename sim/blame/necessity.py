"""The necessity test of licences (FAULTS D.4): were the culprits of a loss needed for it?

A licence names culprits. The run is made again without the parts that these go back to; all draws
are keyed, so everything else is as it was. A loss is then

* ``confirmed``: what was acknowledged there too is not lost;
* ``overdetermined``: it is lost all the same, under another licence, or by other parts;
* ``never-acknowledged``: none of it was acknowledged there, which proves nothing;
* ``refuted``: it is lost all the same, and nothing else explains that: the licence was wrong, or
  the ledger is, so its verdict is UNEXPLAINED;
* ``untested``: no step or fault of the scenario can be left out for it, as for retention.

Of a loss whose records fared differently the worst counts, in the order refuted, overdetermined,
confirmed.

One run for each distinct set of parts, and one with all of them where there is none yet.

Left out: which licence a loss has (``sim.checks``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from attrs import frozen

from sim.blame.counterfactual import Fate, Range, Replay, Replays, fates
from sim.blame.culprits import Culprits
from sim.blame.parts import Part
from sim.checks.ledger import Loss
from sim.running.interpreter import EVENTS_MAX
from sim.scenario.model import Scenario

__all__ = ["LICENCES", "Necessity", "NotTheSame", "Trial", "cited_parts", "necessity"]

LICENCES: Final = ("L0", "L1", "L2", "L3", "L4")
_BY_CONFIG: Final = "L3"
"""Retention and compaction need no step."""


class NotTheSame(Exception):
    """The run cannot be made again: the same scenario and seed gave other events."""


@frozen
class Trial:
    """One loss.

    Attributes:
        loss: as the ledger has it.
        parts: names of those that were left out.
        is_coarse: the culprits go back to none of them, so all that had begun were left out.
        outcome: see the module.
        ranges: what became of its records.
        others: names of the parts by which they were lost instead.
    """

    loss: Loss
    parts: tuple[str, ...]
    is_coarse: bool
    outcome: str
    ranges: tuple[Range, ...] = ()
    others: tuple[str, ...] = ()

    @property
    def licence(self) -> str:
        """What the loss is judged as behind the test."""
        return "UNEXPLAINED" if self.outcome == "refuted" else self.loss.licence

    def plain(self) -> dict[str, Any]:
        return {
            "event": self.loss.event,
            "partition": self.loss.partition,
            "spans": [list(span) for span in self.loss.spans],
            "licence": self.licence,
            "claimed": self.loss.licence,
            "outcome": self.outcome,
            "without": list(self.parts),
            "is_coarse": self.is_coarse,
            "ranges": [each.plain() for each in self.ranges],
            "others": list(self.others),
        }

    def __str__(self) -> str:
        parts = ", ".join(self.parts) or "nothing"
        return f"{self.loss.licence} at #{self.loss.event} without {parts}: {self.outcome}"


@frozen
class Necessity:
    """What came of the test.

    Attributes:
        tested: one for each loss with a licence, in their order.
        runs: how many runs it took beside the first.
    """

    tested: tuple[Trial, ...]
    runs: int

    @property
    def refuted(self) -> tuple[Trial, ...]:
        return tuple(each for each in self.tested if each.outcome == "refuted")

    def plain(self) -> dict[str, Any]:
        return {"runs": self.runs, "losses": [each.plain() for each in self.tested]}


def necessity(
    scenario: Scenario,
    seed: int | None = None,
    losses: Sequence[Loss] | None = None,
    *,
    digest: str | None = None,
    events_max: int = EVENTS_MAX,
    base: Replay | None = None,
) -> Necessity:
    """Test the culprits of losses.

    Args:
        scenario: as it ran, variant and overrides applied.
        seed: instead of the scenario's own.
        losses: of that run; by default those of the run that is made here. Those without a licence
            L0 to L4 are left out.
        digest: of that run, to compare when it is made again.
        base: that run itself, which is not made again then; it keeps its events.

    Raises:
        NotTheSame: the run gives another digest now.
    """
    licensed = None if losses is None else [each for each in losses if each.licence in LICENCES]
    if licensed == []:
        return Necessity((), 0)
    replays = Replays(scenario, seed, events_max=events_max, base=base)
    if digest is not None and digest != replays.base.result.digest:
        now = replays.base.result.digest
        raise NotTheSame(f"the run's digest was {digest}, made again it is {now}")
    if licensed is None:
        licensed = [each for each in replays.base.facts.losses() if each.licence in LICENCES]
    return _Test(replays).of(licensed)


def cited_parts(replays: Replays, culprits: Culprits, loss: Loss) -> tuple[tuple[Part, ...], bool]:
    """The parts that a loss goes back to; all that had begun by then, and True, if none is known.

    A loss that names no culprits goes back to its own event, and to the fate of the leader's copy.
    """
    found = culprits.behind(loss.culprits or (loss.event, loss.cause))
    if found or loss.licence == _BY_CONFIG:
        return found, False
    return replays.begun_by(replays.time_us(loss.event)), True


class _Test:
    """One test under way; a run without some parts is made once."""

    def __init__(self, replays: Replays) -> None:
        self._replays = replays
        self._culprits = Culprits(replays.base.events, replays.parts)

    def of(self, losses: Sequence[Loss]) -> Necessity:
        by_parts: dict[tuple[Part, ...], list[int]] = {}
        coarse: set[int] = set()
        for at, loss in enumerate(losses):
            parts, is_coarse = cited_parts(self._replays, self._culprits, loss)
            by_parts.setdefault(parts, []).append(at)
            if is_coarse:
                coarse.add(at)
        tested: dict[int, Trial] = {}
        for parts, places in by_parts.items():
            wanted = [losses[at] for at in places]
            for at, found in zip(places, self._without(parts, wanted), strict=True):
                tested[at] = found if at not in coarse else _coarse(found)
        return Necessity(tuple(tested[at] for at in range(len(losses))), self._replays.count)

    def _without(self, parts: tuple[Part, ...], losses: Sequence[Loss]) -> list[Trial]:
        names = tuple(each.name for each in parts)
        if not parts:
            return [Trial(loss, names, False, "untested") for loss in losses]
        base = self._replays.base
        other = self._replays.without(parts)
        found = [fates(base, other, loss) for loss in losses]
        return [
            self._tested(loss, names, ranges, other)
            for loss, ranges in zip(losses, found, strict=True)
        ]

    def _tested(
        self, loss: Loss, names: tuple[str, ...], ranges: tuple[Range, ...], other: Replay
    ) -> Trial:
        lost = [each for each in ranges if each.fate is Fate.LOST]
        if not lost:
            is_saved = any(each.fate is Fate.SURVIVES for each in ranges)
            outcome = "confirmed" if is_saved else "never-acknowledged"
            return Trial(loss, names, False, outcome, ranges)
        culprits = Culprits(other.events, self._replays.parts)
        others: dict[str, None] = {}
        outcome = "overdetermined"
        for each in lost:
            parts = [part.name for part in culprits.behind(each.by) if part.name not in names]
            others.update(dict.fromkeys(parts))
            if not _explains(loss, each.loss, parts):
                outcome = "refuted"
        return Trial(loss, names, False, outcome, ranges, tuple(others))


def _explains(loss: Loss, again: Loss | None, parts: Sequence[str]) -> bool:
    """Whether a loss in the run without the culprits has an explanation of its own."""
    if again is None:
        return bool(parts)
    if again.licence == _BY_CONFIG and again.how == "deleted" and again.at != "deleting":
        return True
    if again.licence in LICENCES and again.licence != loss.licence:
        return True
    return again.licence in (*LICENCES, "") and bool(parts)


def _coarse(tested: Trial) -> Trial:
    return Trial(tested.loss, tested.parts, True, tested.outcome, tested.ranges, tested.others)
