"""Drawn sequences: several faults and steps of one story, which chance would not put in a row.

Each is a rule like any other, and what it draws is plain faults and steps, of which any may be left
out.

Left out: what strikes alone, and followers that are left behind (``sim.swarm.behind``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices
from sim.swarm.plan import Kind, Plan

__all__ = [
    "FENCED_MS",
    "LAG_MS",
    "SEQUENCE_KINDS",
    "cut_off",
    "end",
    "is_replicated",
    "replicated",
    "write",
]

LAG_MS: Final = (2_500, 4_000, 6_500)
"""So long a follower fetches nothing; time-outs of lag are 1,100 to 3,000 ms."""
_TAIL_MS: Final = 600
FENCED_MS: Final = 2_800
"""Behind this a broker that is gone is fenced."""


def _lonely_leader_dies(plan: Plan, choices: Choices) -> None:
    """Followers fall behind, the leader alone goes on and dies; who leads next has less."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    start_ms = plan.moment(choices)
    gone_ms = start_ms + choices.pick(LAG_MS)
    back_ms = gone_ms + FENCED_MS + choices.pick((200, 1_500))
    if not plan.take(leader, gone_ms, back_ms):
        return
    for other in others:
        target = {"from": other, "to": leader}
        plan.fault("cut", target, (start_ms, gone_ms), only=["Fetch"])
    acks = choices.pick(("1", "all"))
    write(plan, choices, place, gone_ms - choices.pick((100, 600)), acks)
    how = choices.pick(("process", "power"))
    plan.fault("crash", leader, (gone_ms, back_ms), how=how)
    elect: dict[str, Any] = {"partition": place, "kind": "unclean"}
    way = choices.pick(("nobody", "asked", "named", "forced"))
    if way == "named":
        elect["to"] = choices.pick(others)
    if way == "forced":
        elect["force"] = True
    if way != "nobody":
        plan.step(gone_ms + FENCED_MS, "elect", elect)
    write(plan, choices, place, gone_ms + FENCED_MS + choices.pick((50, 400)), acks)
    plan.end_ms = max(plan.end_ms, back_ms + choices.pick((500, 2_000)))


def _back_to_the_preferred(plan: Plan, choices: Choices) -> None:
    """The first replica dies, comes back, and is elected again."""
    place = choices.pick(replicated(plan))
    leader = plan.places[place][0]
    gone_ms = plan.moment(choices)
    back_ms = gone_ms + choices.pick((300, FENCED_MS))
    if leader not in plan.victims or not plan.take(leader, gone_ms, back_ms):
        return
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    at_ms = back_ms + choices.pick((-100, 50, 2_000))
    plan.step(at_ms, "elect", {"partition": place, "kind": "preferred"})
    plan.end_ms = max(plan.end_ms, at_ms + 600)


def _all_die(plan: Plan, choices: Choices) -> None:
    """Every replica loses its power, and they come back in some order."""
    place = choices.pick(sorted(plan.places))
    gone_ms = plan.moment(choices)
    last_ms = gone_ms
    for node in plan.places[place]:
        back_ms = gone_ms + choices.pick((400, 1_500, 3_500, 5_500))
        if plan.take(node, gone_ms, back_ms):
            plan.fault("crash", node, (gone_ms, back_ms), how=choices.pick(("power", "process")))
            last_ms = max(last_ms, back_ms)
        gone_ms += choices.pick((0, 50, 2_000))
    if choices.chance(50):
        # Once everybody is fenced, and perhaps nobody is back.
        elect: dict[str, Any] = {"partition": place, "kind": "unclean"}
        elect |= choices.pick(({}, {"to": plan.places[place][0]}))
        last_ms = max(last_ms, gone_ms + choices.pick((1_500, FENCED_MS)))
        plan.step(last_ms, "elect", elect)
    write(plan, choices, place, last_ms + choices.pick((0, 500)), choices.pick(("all", "1")))
    plan.end_ms = max(plan.end_ms, last_ms + 1_000)


def _elected_ahead(plan: Plan, choices: Choices) -> None:
    """Who leads next has more than the high watermark, which rises late."""
    place = choices.pick([each for each in replicated(plan) if len(plan.places[each]) > 2])
    leader, _, slow, *_ = plan.places[place]
    start_ms = plan.moment(choices)
    gone_ms, back_ms = start_ms + 400, start_ms + 400 + FENCED_MS + choices.pick((400, 1_500))
    if leader not in plan.victims or not plan.take(leader, gone_ms, back_ms):
        return
    away = {"from": slow, "to": [each for each in plan.names if each != slow]}
    plan.fault("cut", away, (start_ms, back_ms), only=["Fetch"])
    write(plan, choices, place, start_ms + 100, "1")
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    plan.end_ms = max(plan.end_ms, back_ms + 600)


def write(plan: Plan, choices: Choices, place: str, at_ms: int, acks: str) -> None:
    keys = {"to": place, "count": choices.pick((1, 3, 8)), "acks": acks, "client": "w2"}
    plan.step(max(at_ms, 0), "produce", keys | {"batch": choices.pick((1, 4)), "timeout": "3s"})


def end(plan: Plan, at_ms: int) -> None:
    """The run goes on for a while behind a time."""
    plan.end_ms = max(plan.end_ms, at_ms + _TAIL_MS)


def cut_off(plan: Plan, follower: str, leader: str, when: tuple[int, int]) -> None:
    """A follower fetches nothing."""
    plan.fault("cut", {"from": follower, "to": leader}, when, only=["Fetch"])


def replicated(plan: Plan) -> list[str]:
    return sorted(place for place, replicas in plan.places.items() if len(replicas) > 1)


def is_replicated(plan: Plan) -> bool:
    return bool(replicated(plan))


SEQUENCE_KINDS: Final = (
    Kind("lonely leader dies", _lonely_leader_dies, grounds=(), needs=is_replicated, weight=3),
    Kind(
        "back to the preferred",
        _back_to_the_preferred,
        grounds=("kills", "flush", "elr"),
        needs=is_replicated,
        weight=2,
    ),
    Kind(
        "elected ahead",
        _elected_ahead,
        grounds=("kills", "flush", "elr"),
        needs=lambda plan: any(len(each) > 2 for each in plan.places.values()),
        weight=2,
    ),
    Kind("all die", _all_die, grounds=(), weight=2),
)
