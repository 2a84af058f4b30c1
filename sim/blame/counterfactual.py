"""Runs without some parts, and what became of the same records and rules in them.

A record is the same in two runs if the same step or workload sent it as its n-th; partition and
offset may differ. Of the records of a loss each was

* ``survives``: acknowledged there too, and not lost: what was left out was needed for the loss;
* ``lost-otherwise``: acknowledged there too, and lost all the same;
* ``never-acknowledged``: not acknowledged there, which proves nothing.

A violation is the same if check, partition and kind are.

Runs are in memory, and keep their events.

Left out: which parts to leave out (``sim.blame.culprits``, ``sim.blame.search``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Any

from attrs import define, evolve, field, frozen

from cluster.names import TopicIdPartition
from sim.blame.parts import Part, parts_of, without
from sim.checks.facts import Facts
from sim.checks.judge import Judge
from sim.checks.ledger import Loss
from sim.checks.ranges import Records, Span
from sim.checks.scene import Acked
from sim.checks.violations import Violation
from sim.plain import shown
from sim.running.interpreter import EVENTS_MAX
from sim.running.scenario_run import Result, run_scenario
from sim.running.without import Without
from sim.scenario.model import Scenario
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Level
from sim.world import World

__all__ = ["BudgetEnded", "Fate", "Identity", "Range", "Replay", "Replays", "fates"]

Identity = tuple[str | int, int]
"""Number of a step, or name of a workload's client; and which of its records, from 0."""


class BudgetEnded(Exception):
    """So many runs were made as were allowed."""


class Fate(StrEnum):
    """What became of a record of a loss in another run."""

    SURVIVES = "survives"
    LOST = "lost-otherwise"
    NEVER_ACKED = "never-acknowledged"


@frozen
class Range:
    """Neighbours of one fate.

    Attributes:
        epoch, start, end: of the records in the run in which they were lost.
        loss: of the other run, where they are lost there by one.
        by: events of the other run to which their being lost there goes back.
    """

    epoch: int
    start: int
    end: int
    fate: Fate
    loss: Loss | None = None
    by: tuple[int, ...] = ()

    def plain(self) -> dict[str, Any]:
        found: dict[str, Any] = {"span": [self.epoch, self.start, self.end], "fate": str(self.fate)}
        if self.fate is Fate.LOST:
            found["licence"] = "" if self.loss is None else self.loss.licence
        return found


@define(eq=False)
class Replay:
    """One run, with its judge."""

    result: Result
    facts: Facts
    violations: Sequence[Violation]
    _events: list[Event] | None = None
    _by_identity: dict[Identity, Acked] | None = None
    _lost: dict[tuple[TopicIdPartition, bool], Records] = field(factory=dict)

    @property
    def has_ended(self) -> bool:
        """Whether it came to its end, and did not run out of events."""
        failure = self.result.failure
        return failure is None or not failure.is_inconclusive

    @property
    def events(self) -> list[Event]:
        """All of them."""
        if self._events is None:
            self._events = list(self.result.trace.events())
        return self._events

    def identity(self, operation: tuple[str, int]) -> Identity:
        """What an operation of a client is in other runs too."""
        return self.result.sent.get(operation, operation)

    def acked(self, identity: Identity) -> Acked | None:
        """Where a record is that was acknowledged."""
        if self._by_identity is None:
            known = self.facts.acked_records.items()
            self._by_identity = {self.identity(key): acked for key, acked in known}
        return self._by_identity.get(identity)

    def is_lost(
        self, partition: TopicIdPartition, epoch: int, offset: int, *, ever: bool = False
    ) -> bool:
        """Whether a record is lost at the end, or ever was, though a later leader had it again."""
        key = partition, ever
        if key not in self._lost:
            self._lost[key] = self.facts.lost_of(partition, ever=ever)
        return self._lost[key].has(epoch, offset)

    def loss_of(self, acked: Acked) -> tuple[Loss | None, tuple[int, ...]]:
        """The last loss of a record, and the events behind it.

        Where no leader has shown it yet there is no loss, and the fates of the copies count.
        """
        for loss in reversed(self.facts.losses_of(acked.partition)):
            if Records(loss.spans).has(acked.epoch, acked.offset):
                return loss, loss.culprits or (loss.event, loss.cause)
        copies = self.facts.copies(str(acked.partition), acked.offset)
        return None, tuple(event for epoch, _, event in copies.values() if epoch == acked.epoch)

    def has_violation(self, check: str, partition: str, kind: str) -> bool:
        return any(
            (each.check, each.partition, each.kind) == (check, partition, kind)
            for each in self.violations
        )

    def lost_records(self, loss: Loss) -> list[tuple[Span, Identity | None]]:
        """The records of a loss one by one; None where nobody can say who sent one."""
        place = self.place_of(loss)
        if place is None:
            return []
        known = {
            (acked.epoch, acked.offset): self.identity(key)
            for key, acked in self.facts.acked_records.items()
            if acked.partition == place
        }
        found: list[tuple[Span, Identity | None]] = []
        by_value: dict[str | None, list[Identity]] | None = None
        for epoch, start, end in loss.spans:
            for offset in range(start, end):
                identity = known.get((epoch, offset))
                if identity is None:
                    by_value = self._by_value() if by_value is None else by_value
                    identity = self._sender(place, epoch, offset, by_value)
                found.append((Span(epoch, offset, offset + 1), identity))
        return found

    def is_final(self, loss: Loss) -> bool:
        """Whether any record of a loss is lost at the end."""
        place = self.place_of(loss)
        lost = Records() if place is None else self.facts.lost_of(place)
        return bool(lost.common(loss.spans))

    def place_of(self, loss: Loss) -> TopicIdPartition | None:
        """The partition of a loss; of several topics of its name the one that had it."""
        places = self.facts.places_of(loss.partition)
        for place in places:
            if any(each.event == loss.event for each in self.facts.losses_of(place)):
                return place
        return places[-1] if places else None

    def _by_value(self) -> dict[str | None, list[Identity]]:
        """Who sent which value."""
        found: dict[str | None, list[Identity]] = {}
        counts: dict[str, int] = {}
        for event in self.events:
            if event.kind is Kind.PRODUCE:
                number = counts.get(event.node, 0)
                counts[event.node] = number + 1
                operation = event.args.get("operation", number)
                key = self.identity((event.node, operation))
                found.setdefault(event.args.get("value"), []).append(key)
        return found

    def _sender(
        self,
        place: TopicIdPartition,
        epoch: int,
        offset: int,
        by_value: dict[str | None, list[Identity]],
    ) -> Identity | None:
        """Who sent a record that nobody was told of: whoever alone sent its value."""
        value = self.facts.value_of(place, epoch, offset)
        text = None if value is None else shown(value)
        senders = by_value.get(text, [])
        return senders[0] if len(senders) == 1 else None


class Replays:
    """All runs of one scenario and seed that a question takes.

    Attributes:
        parts: of the scenario.
        base: the run with all of them.
        count: runs without something, so far.
        runs_max: how many there may be.
    """

    def __init__(
        self,
        scenario: Scenario,
        seed: int | None = None,
        *,
        events_max: int = EVENTS_MAX,
        runs_max: int | None = None,
        base: Replay | None = None,
    ) -> None:
        self.scenario = scenario
        self.seed = scenario.seed if seed is None else seed
        self.parts = parts_of(scenario)
        self.events_max = events_max
        self.runs_max = runs_max
        self.count = 0
        self.base = self._run(scenario, None) if base is None else base

    def without(
        self,
        parts: Iterable[Part],
        *,
        scenario: Scenario | None = None,
    ) -> Replay:
        """A run without some parts.

        Args:
            scenario: the same one with another cluster.

        Raises:
            BudgetEnded: there were ``runs_max`` of them already.
        """
        if self.runs_max is not None and self.count >= self.runs_max:
            raise BudgetEnded(f"{self.runs_max} runs were made")
        self.count += 1
        left_out = without(self.base.result.moments, parts)
        return self._run(scenario or self.scenario, left_out)

    def _run(self, scenario: Scenario, left_out: Without | None) -> Replay:
        worlds: list[World] = []
        result = run_scenario(
            scenario,
            seed=self.seed,
            level=Level.DIGEST,
            keeps_lines=True,
            events_max=self.events_max,
            on_world=worlds.append,
            without=left_out,
        )
        judge = Judge.of(worlds[0])
        return Replay(result, judge.facts, tuple(judge.violations))

    def begun_us(self, part: Part) -> int | None:
        """When a part began, from time 0; None where it never did."""
        moments = self.base.result.moments
        return moments.faults.get(part.key) if part.is_fault else moments.steps.get(part.step)

    def begun_by(self, t_us: int) -> tuple[Part, ...]:
        """The parts that had begun by a time from time 0, in the order of their beginning."""
        known = [(self.begun_us(part), part) for part in self.parts]
        begun = [(at_us, part) for at_us, part in known if at_us is not None and at_us <= t_us]
        return tuple(part for _, part in sorted(begun, key=lambda each: each[0]))

    def time_us(self, event: int) -> int:
        """When an event of the base was, from time 0."""
        return self.base.events[event - 1].t_us if 0 < event <= len(self.base.events) else 0


def fates(base: Replay, other: Replay, loss: Loss) -> tuple[Range, ...]:
    """What became in another run of the records of a loss of ``base``.

    A record that ``base`` has again at the end counts as lost in the other run if it ever was.
    """
    found: list[Range] = []
    place = base.place_of(loss)
    for span, identity in base.lost_records(loss):
        acked = None if identity is None else other.acked(identity)
        fate = Fate.NEVER_ACKED
        again: Loss | None = None
        by: tuple[int, ...] = ()
        if acked is not None and place is not None:
            is_back = not base.is_lost(place, span.epoch, span.start)
            is_lost = other.is_lost(acked.partition, acked.epoch, acked.offset, ever=is_back)
            fate = Fate.LOST if is_lost else Fate.SURVIVES
            if is_lost:
                again, by = other.loss_of(acked)
        new = Range(*span, fate, again, by)
        last = found[-1] if found else None
        if last is not None and evolve(last, start=span.start, end=span.end) == new:
            if (last.epoch, last.end) == (span.epoch, span.start):
                found[-1] = evolve(last, end=span.end)
                continue
        found.append(new)
    return tuple(found)
