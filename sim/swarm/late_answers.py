"""Drawn sequences in which a follower's fetch is answered late, when something else is so.

Left out: logs that fork (``sim.swarm.diverging``).
"""

from __future__ import annotations

from typing import Final

from sim.swarm.choosing import Choices
from sim.swarm.diverging import has_three, move, three
from sim.swarm.plan import Kind, Plan, topic_of
from sim.swarm.sequences import LAG_MS, cut_off, end, is_replicated, replicated, write

__all__ = ["LATE_KINDS"]

_ANSWERS: Final = ["FetchResponse", "OffsetsForLeaderEpochResponse"]
_WEIGHT: Final = 1
_HARD: Final = 3
"""For what few clusters are made for."""
_READ: Final = "read"
_DELETED: Final = "deleted"
_STUFFING: Final = "stuffing"
"""Topics that these sequences make."""


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


def _read_when_it_leaves(plan: Plan, choices: Choices) -> None:
    """An answer waits for room on the wire, and what it refers to is written anew meanwhile.

    Its leader follows by then, and has cut what it had alone; who asked has not heard of that.
    """
    place, leader, second, third, others = three(plan, choices, replicated(plan))
    start_ms = plan.moment(choices)
    stuck_ms = start_ms + choices.pick((900, 1_000))
    end_ms = stuck_ms + 1_500
    if not plan.claim(_STUFFING):
        return
    config = dict(plan.topics[topic_of(place)])
    made = {"name": _STUFFING, "replicas": [[third, leader]], "config": config}
    plan.step(start_ms, "create_topic", made)
    slow = {"bytes_per_s": choices.pick((100, 70)), "buffer_bytes": 100}
    plan.fault("limit", {"from": leader, "to": third}, (stuck_ms, end_ms), **slow)
    unheard = {"from": "c1", "to": third}
    plan.fault("cut", unheard, (stuck_ms, end_ms), only=["MetadataFetchResponse"])
    for each in (second, *others):
        cut_off(plan, each, leader, (stuck_ms - 50, stuck_ms + 250))
    sent = {"count": 1, "acks": "1", "timeout": "3s"}
    # The leader's next fetch takes the room.
    stuffed = sent | {"to": f"{_STUFFING}-0", "client": "w4"}
    plan.step(stuck_ms + 10, "produce", stuffed)
    plan.step(stuck_ms + 60, "produce", sent | {"to": place, "client": "w2"})
    turn_ms = stuck_ms + 100
    move(plan, place, turn_ms, (second, leader, third, *others))
    plan.step(turn_ms + choices.pick((150, 250)), "produce", sent | {"to": place, "client": "w3"})
    end(plan, end_ms)


def _deleted_while_it_is_read(plan: Plan, choices: Choices) -> None:
    """A leader has read of two logs for a follower that is behind, and answers seconds later.

    There was room for records of one, and meanwhile the other is deleted past the follower's end.
    """
    like = choices.pick(replicated(plan))
    leader, *others = plan.places[like]
    start_ms = plan.moment(choices)
    behind_ms = start_ms + 700
    back_ms = behind_ms + choices.pick(LAG_MS)
    end_ms = back_ms + 3_500
    if not plan.take(leader, start_ms, end_ms) or not plan.claim(_READ, _DELETED):
        return
    config = {"min.insync.replicas": 1, "segment.bytes": 300, "index.interval.bytes": 60}
    for topic in (_READ, _DELETED):
        made = {"name": topic, "replicas": [plan.places[like]], "config": config}
        plan.step(start_ms, "create_topic", made)
        sent = {"to": f"{topic}-0", "count": 12, "batch": 1, "acks": "1", "client": "w2"}
        plan.step(back_ms - 900, "produce", sent | {"timeout": "3s"})
    for other in others:
        cut_off(plan, other, leader, (behind_ms, back_ms))
    asks_ms = min(int(plan.cluster.keys["config"].get("request.timeout.ms", 30_000)), 3_000)
    keys = {"point": "fetch-read", "action": "yield", "duration": f"{asks_ms - 100}ms"}
    plan.fault("failpoint", leader, (back_ms - 20, end_ms), **keys)
    short = {"topic": _DELETED, "set": {"retention.bytes": 1}}
    plan.step(back_ms + choices.pick((asks_ms // 2, 100)), "config", short)
    end(plan, end_ms)


def _has_little_room(plan: Plan) -> bool:
    config = plan.cluster.keys.get("config", {})
    is_soon = config.get("log.retention.check.interval.ms", 60_000) < 1_000
    return is_replicated(plan) and is_soon and "replica.fetch.response.max.bytes" in config


LATE_KINDS: Final = (
    Kind(
        "answer of an earlier epoch", _answer_of_an_earlier_epoch, needs=has_three, weight=_WEIGHT
    ),
    Kind("answer to who leads", _answer_to_who_leads, needs=is_replicated, weight=_WEIGHT),
    Kind("read when it leaves", _read_when_it_leaves, needs=has_three, weight=_WEIGHT),
    Kind(
        "deleted while it is read",
        _deleted_while_it_is_read,
        ("calm", "kills"),
        _has_little_room,
        weight=_HARD,
    ),
)
