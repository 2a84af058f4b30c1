"""The whole question: what of a scenario is to blame for a violation or a loss of its run.

``targets`` finds what there is to ask about, ``blame`` answers.

Left out: printing (``sim.cli.blame``), reading runs.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve, frozen

from sim.blame.counterfactual import BudgetEnded, Replays
from sim.blame.culprits import Culprits
from sim.blame.necessity import cited_parts
from sim.blame.parts import Part
from sim.blame.search import Found, Loosened, Target, loosened, search
from sim.blame.slices import Line, slice_of, story_of, target_words
from sim.present.story import Story
from sim.present.trouble_tellings import fault_words
from sim.running.verdicts import ALIASES
from sim.trace.kinds import Kind

__all__ = ["Blame", "Blamed", "NoTarget", "blame", "target_of"]


class NoTarget(Exception):
    """There is nothing of that kind to ask about; says what there is.

    Attributes:
        is_asked: whether somebody named it.
    """

    def __init__(self, text: str, *, is_asked: bool) -> None:
        super().__init__(text)
        self.is_asked = is_asked


@frozen
class Blamed:
    """A part, with what it did.

    Attributes:
        event: with which it began; 0 where it left no event.
        t_us: when, from time 0.
        text: its step or fault in words.
    """

    part: Part
    event: int
    t_us: int
    text: str

    def plain(self) -> dict[str, Any]:
        return {
            "name": self.part.name,
            "what": self.part.what,
            "step": self.part.step or None,
            "event": self.event or None,
            "t_us": self.t_us,
            "text": self.text,
        }


@frozen
class Blame:
    """The answer.

    Attributes:
        target: what was asked about; ``words`` says it.
        cited: the parts that it goes back to.
        found: the search; ``parts`` and ``alone`` in words.
        loosened: rules that are off, and whether it happens with them on.
        lines: how the one led to the other.
        runs: how many it took.
    """

    target: Target
    words: str
    cited: tuple[str, ...]
    found: Found
    parts: tuple[Blamed, ...]
    alone: tuple[Blamed, ...]
    loosened: tuple[Loosened, ...]
    lines: tuple[Line, ...]
    runs: int

    @property
    def is_complete(self) -> bool:
        """Whether everything was tried within the budget."""
        return self.found.is_complete and self.found.status != "inconclusive"

    def plain(self) -> dict[str, Any]:
        violation = self.target.violation
        return {
            "target": {
                "kind": "loss" if violation is None else "violation",
                "event": self.target.event,
                "text": self.words,
                "violation": None if violation is None else violation.plain(),
                "losses": [loss.plain() for loss in self.target.losses],
            },
            "status": self.found.status,
            "is_smallest": self.found.is_smallest,
            "is_complete": self.is_complete,
            "cited": list(self.cited),
            "parts": [each.plain() for each in self.parts],
            "enough_alone": [each.plain() for each in self.alone],
            "rules_off": [
                {"what": each.what, "with_it_on": str(each.answer)} for each in self.loosened
            ],
            "passed_over": [
                {"step": each.step or None, "t_us": each.t_us, "text": each.text}
                for each in self.found.passed_over
            ],
            "slice": [each.plain() for each in self.lines],
            "runs": self.runs,
        }


def target_of(
    replays: Replays, *, violation: str | None = None, partition: str | None = None
) -> Target:
    """What is asked about.

    Args:
        violation: name or number of an invariant, or a name that stands for several.
        partition: the first loss of it. By default the first violation that failed the run, else
            the first loss that lasted, else the first loss or violation.

    Raises:
        NoTarget: there is no such thing in the run.
    """
    violations, losses = replays.base.violations, replays.base.facts.losses()
    if violation is not None:
        names = {violation, *ALIASES.get(violation, ())}
        for each in violations:
            if names & {each.check, each.number}:
                return Target(each.event, violation=each)
        there = ", ".join(dict.fromkeys(each.check for each in violations)) or "none"
        raise NoTarget(f'"{violation}" is not violated; violated are: {there}', is_asked=True)
    if partition is None:
        for broken in replays.base.result.verdict.broken:
            first = broken.first
            if first is not None and not broken.is_expected and not broken.is_excused:
                return Target(first.event, violation=first)
    else:
        known = [each for each in losses if each.partition == partition]
        if not known:
            there = ", ".join(dict.fromkeys(each.partition for each in losses)) or "none"
            text = f'"{partition}" has lost nothing; partitions with losses: {there}'
            raise NoTarget(text, is_asked=True)
        losses = known
    lasting = [each for each in losses if replays.base.is_final(each)]
    for loss in [*lasting, *losses]:
        same = [x for x in losses if (x.event, x.partition) == (loss.event, loss.partition)]
        return Target(loss.event, losses=tuple(same))
    for each in violations:
        return Target(each.event, violation=each)
    raise NoTarget("no rule is broken and no record is lost in this run", is_asked=False)


def blame(replays: Replays, target: Target) -> Blame:
    """Answer; ``replays.runs_max`` is the budget."""
    events = replays.base.events
    culprits = Culprits(events, replays.parts)
    if target.violation is None:
        cited: dict[Part, None] = {}
        for loss in target.losses:
            parts, is_coarse = cited_parts(replays, culprits, loss)
            cited.update(dict.fromkeys(() if is_coarse else parts))
    else:
        numbers = (*target.violation.causes, target.event)
        cited = dict.fromkeys(culprits.behind(numbers))
    rules, is_cut_short = _rules(replays, target)
    found = search(replays, target, cited)
    if is_cut_short:
        found = evolve(found, is_complete=False)
    story = story_of(replays)
    begun = {each.name: _blamed(replays, story, culprits, each) for each in replays.parts}
    told = found.parts or tuple(cited)
    return Blame(
        target,
        target_words(target),
        tuple(each.name for each in cited),
        found,
        tuple(begun[each.name] for each in found.parts),
        tuple(begun[each.name] for each in found.alone),
        rules,
        slice_of(story, events, culprits, dict.fromkeys((*told, *found.alone)), target),
        replays.count,
    )


def _rules(replays: Replays, target: Target) -> tuple[tuple[Loosened, ...], bool]:
    """The rules that are off; and whether the budget ended before all were tried."""
    try:
        return loosened(replays, target), False
    except BudgetEnded:
        return (), True


def _blamed(replays: Replays, story: Story, culprits: Culprits, part: Part) -> Blamed:
    at_us = replays.begun_us(part)
    first = 0 if at_us is None else _first_event(replays, culprits, part)
    known = story.steps.get(part.name.removeprefix("step ")) if part.step else None
    fault = next(
        (each for key, each in story.faults.items() if key.partition("/")[0] == part.key), None
    )
    text = part.what
    if known is not None:
        text = known.text
    elif fault is not None:
        text = fault_words(fault)
    return Blamed(part, first, at_us or 0, text)


def _first_event(replays: Replays, culprits: Culprits, part: Part) -> int:
    kinds = (Kind.STEP,) if part.step else (Kind.FAULT,)
    for event in replays.base.events:
        if event.kind in kinds and culprits.part_of(event.n) == part:
            return event.n
    return 0
