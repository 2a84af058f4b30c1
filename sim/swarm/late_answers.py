"""Drawn sequences in which a follower's fetch is answered late, when another epoch holds.

Left out: logs that fork (``sim.swarm.diverging``).
"""

from __future__ import annotations

from typing import Final

from sim.swarm.choosing import Choices
from sim.swarm.diverging import has_three, move, three
from sim.swarm.plan import Kind, Plan
from sim.swarm.sequences import cut_off, end, is_replicated, replicated, write

__all__ = ["LATE_KINDS"]

_ANSWERS: Final = ["FetchResponse", "OffsetsForLeaderEpochResponse"]
_WEIGHT: Final = 1


def _answer_of_an_earlier_epoch(plan: Plan, choices: Choices) -> None:
    """The lead goes away and comes back, while an answer of the first epoch is on its way."""
    place, leader, second, third, others = three(plan, choices, replicated(plan))
    start_ms = plan.moment(choices)
    heard_ms = start_ms + choices.pick((500, 700))
    plan.fault("clog", {"from": leader, "to": third}, (start_ms, heard_ms), only=_ANSWERS)
    for each in (second, *others):
        if choices.chance(70):
            cut_off(plan, each, leader, (start_ms, start_ms + 150))
        cut_off(plan, third, each, (start_ms, heard_ms))
    write(plan, choices, place, start_ms + 50, "1")
    move(plan, place, start_ms + 150, (second, leader, third, *others))
    move(plan, place, start_ms + 300, (leader, second, third, *others))
    write(plan, choices, place, start_ms + choices.pick((400, 800)), choices.pick(("1", "all")))
    end(plan, heard_ms)


def _answer_to_who_leads(plan: Plan, choices: Choices) -> None:
    """A follower asks the leader, and leads when the answer comes."""
    place = choices.pick(replicated(plan))
    first, *others = plan.places[place]
    second = choices.pick(others)
    others = [each for each in others if each != second]
    start_ms = plan.moment(choices)
    heard_ms = start_ms + choices.pick((600, 750))
    plan.fault("clog", {"from": second, "to": first}, (start_ms, heard_ms), only=_ANSWERS)
    move(plan, place, start_ms + 50, (second, first, *others))
    move(plan, place, start_ms + 250, (first, second, *others))
    write(plan, choices, place, start_ms + 400, choices.pick(("all", "1")))
    end(plan, heard_ms)


LATE_KINDS: Final = (
    Kind(
        "answer of an earlier epoch", _answer_of_an_earlier_epoch, needs=has_three, weight=_WEIGHT
    ),
    Kind("answer to who leads", _answer_to_who_leads, needs=is_replicated, weight=_WEIGHT),
)
