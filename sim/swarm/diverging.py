"""Drawn sequences in which the lead goes round, and logs fork behind somebody's back.

An operator moves the lead to a replica that has less and back again, or the second leader goes. Who
hears nothing of it meanwhile, or hears of the newest state only, has a log or an opinion of an
epoch that is over. Nobody is elected uncleanly, so nothing that is committed is lost. In the last
one a replica begins anew, behind records that are deleted.

Left out: answers that come late (``sim.swarm.late_answers``), followers that are left behind
(``sim.swarm.behind``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices
from sim.swarm.frame import ANYTHING
from sim.swarm.nodes import MORTAL
from sim.swarm.plan import Kind, Plan, topic_of
from sim.swarm.sequences import FENCED_MS, cut_off, end, is_replicated, replicated, write

__all__ = [
    "DIVERGING_KINDS",
    "has_three",
    "lag_ms",
    "make_room",
    "move",
    "out_of_sync_ms",
    "stall",
    "three",
]

_WEIGHT: Final = 1
_RARE: Final = 3
"""Of those that need three replicas and room, which few clusters have."""
_LAG: Final = "replica.lag.time.max.ms"
_LAG_MS: Final = 3_000
_FETCHED: Final = ["FetchResponse"]


def move(plan: Plan, place: str, at_ms: int, order: tuple[str, ...]) -> None:
    """An operator makes the first of an order of the replicas the leader, if it is in sync."""
    plan.step(at_ms, "reassign", {"partition": place, "replicas": list(order)})
    plan.step(at_ms, "elect", {"partition": place, "kind": "preferred"})


def stall(plan: Plan, follower: str, leader: str, when: tuple[int, int]) -> None:
    """A follower's fetches arrive all at the end, so it goes on at once then."""
    plan.fault("clog", {"from": follower, "to": leader}, when, only=["FetchRequest"])


def lag_ms(plan: Plan) -> int:
    """How long a follower may be behind before it is out of sync, in ms."""
    return int(plan.cluster.keys.get("config", {}).get(_LAG, _LAG_MS))


def out_of_sync_ms(plan: Plan) -> int:
    """Behind this a follower that fetches nothing is out of sync: leaders look twice in a lag."""
    return lag_ms(plan) * 3 // 2 + 150


def has_room(plan: Plan) -> bool:
    return bool(roomy(plan))


def _has_roomy_three(plan: Plan) -> bool:
    return any(len(plan.places[each]) > 2 for each in roomy(plan))


def has_three(plan: Plan) -> bool:
    return any(len(each) > 2 for each in plan.places.values())


def roomy(plan: Plan) -> list[str]:
    """Partitions in which something is committed with one replica out of sync, too.

    Where anything may happen that can be had by ``make_room``.
    """
    places = replicated(plan)
    return [each for each in places if plan.ground == ANYTHING or _has_room(plan, each)]


def _renewable(plan: Plan) -> list[str]:
    """Partitions of which another broker may become a replica, or one leave and come back."""
    return [
        place
        for place in replicated(plan)
        if plan.ground == ANYTHING or len(plan.places[place]) < plan.cluster.brokers
    ]


def make_room(plan: Plan, place: str, at_ms: int) -> None:
    """One in sync is enough from now on, if two or more were asked for that leave no room."""
    if plan.ground == ANYTHING and not _has_room(plan, place):
        only_one = {"topic": topic_of(place), "set": {"min.insync.replicas": 1}}
        plan.step(at_ms, "config", only_one)


def _has_room(plan: Plan, place: str) -> bool:
    least = int(plan.topics[topic_of(place)].get("min.insync.replicas", 1))
    return least < len(plan.places[place])


def three(
    plan: Plan, choices: Choices, places: list[str]
) -> tuple[str, str, str, str, tuple[str, ...]]:
    """A partition, its leader, two followers in some order, and the other replicas."""
    place = choices.pick([each for each in places if len(plan.places[each]) > 2])
    leader, *others = plan.places[place]
    second = choices.pick(others)
    others.remove(second)
    third = choices.pick(others)
    others.remove(third)
    return place, leader, second, third, tuple(others)


def _unheard_turn(plan: Plan, choices: Choices) -> None:
    """The lead goes to who has less and comes back, and somebody hears of the end of it only.

    The third replica has a record that the second has not. If the third is deaf it keeps that
    record; if the leader is, it believes that the third still has it.
    """
    place, leader, second, third, others = three(plan, choices, roomy(plan))
    start_ms = plan.moment(choices)
    make_room(plan, place, start_ms)
    is_mortal = plan.ground in (*MORTAL, ANYTHING)
    asks = plan.cluster.keys.get("truncation") == "kip-279"
    # A follower that tells its last epoch with each fetch is found out.
    deaf = choices.pick((leader, third, third if asks else leader)) if is_mortal else third
    gone_ms = start_ms + 900
    # While who leads second is in sync, nothing more can be committed by mistake.
    is_gone = deaf == leader
    turn_ms = gone_ms + (FENCED_MS if is_gone else 300)
    if is_gone and (second not in plan.victims or not plan.take(second, gone_ms, turn_ms + 400)):
        return
    for each in (second, *others):
        cut_off(plan, each, leader, (start_ms, start_ms + 500))
    write(plan, choices, place, start_ms + 50, choices.pick(("1", "all")))
    plan.fault("metadata-lag", deaf, (start_ms + 400, turn_ms), skip=True)
    move(plan, place, start_ms + 500, (second, leader, third, *others))
    if is_gone:
        plan.fault("crash", second, (gone_ms, turn_ms + 400), how="process")
    else:
        move(plan, place, gone_ms, (leader, second, third, *others))
    write(plan, choices, place, gone_ms + 150, "1")
    write(plan, choices, place, turn_ms + choices.pick((200, 500)), choices.pick(("1", "all")))
    end(plan, turn_ms + 500)


def _asked_in_unheard(plan: Plan, choices: Choices) -> None:
    """A follower is taken into the ISR, stays away again, and the leader hears late of it."""
    place = choices.pick(roomy(plan))
    leader, *others = plan.places[place]
    follower = choices.pick(others)
    start_ms = plan.moment(choices)
    make_room(plan, place, start_ms)
    back_ms = start_ms + out_of_sync_ms(plan)
    away_ms = back_ms + choices.pick((100, 300, 700))
    heard_ms = away_ms + lag_ms(plan) + 400
    stall(plan, follower, leader, (start_ms, back_ms))
    only = ["AlterPartitionResponse", "MetadataFetchResponse"]
    plan.fault("clog", {"from": "c1", "to": leader}, (back_ms - 50, heard_ms), only=only)
    cut_off(plan, follower, leader, (away_ms, heard_ms + 100))
    write(plan, choices, place, start_ms + 100, "1")
    # The first is the answer to a fetch that came before.
    write(plan, choices, place, away_ms + 50, "1")
    write(plan, choices, place, away_ms + 250, choices.pick(("1", "all")))
    end(plan, heard_ms)


def _before_the_epochs_start(plan: Plan, choices: Choices) -> None:
    """A new leader has an old high watermark, and somebody out of sync has as much as that."""
    place, leader, second, slow, others = three(plan, choices, roomy(plan))
    start_ms = plan.moment(choices)
    make_room(plan, place, start_ms)
    turn_ms = start_ms + out_of_sync_ms(plan)
    next_ms = turn_ms + choices.pick((300, 600))
    stall(plan, slow, leader, (start_ms, turn_ms + 200))
    # The first is the answer to a fetch that came before.
    write(plan, choices, place, start_ms + 100, "1")
    write(plan, choices, place, start_ms + 300, "all")
    # By then it has all of that, and does not hear what is committed.
    cut_off(plan, second, leader, (start_ms + lag_ms(plan) - 100, turn_ms))
    plan.fault("clog", {"from": second, "to": slow}, (turn_ms, next_ms + 300), only=_FETCHED)
    for each in (leader, *others):
        cut_off(plan, each, second, (turn_ms, next_ms + 300))
    move(plan, place, turn_ms, (second, slow, leader, *others))
    move(plan, place, next_ms, (slow, second, leader, *others))
    write(plan, choices, place, next_ms + 100, choices.pick(("1", "all")))
    end(plan, next_ms + 300)


def _ends_earlier(plan: Plan, choices: Choices) -> None:
    """Somebody has read what a new leader has, and does not know yet to be committed."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    second = choices.pick(others)
    others.remove(second)
    start_ms = plan.moment(choices)
    turn_ms = start_ms + choices.pick((150, 350))
    known_ms = turn_ms + choices.pick((400, 800))
    write(plan, choices, place, start_ms, choices.pick(("1", "all")))
    unheard = {"from": leader, "to": second}
    # By then it has that, and has said so.
    plan.fault("clog", unheard, (start_ms + 60, turn_ms + 50), only=_FETCHED)
    read: dict[str, Any] = {"from": place, "offset": "earliest", "count": 1}
    plan.step(start_ms + 80, "consume", read | {"client": "r2"})
    for each in (leader, *others):
        cut_off(plan, each, second, (turn_ms, known_ms))
    move(plan, place, turn_ms, (second, leader, *others))
    for late_ms in (60, 200):
        # Who is out of range asks the leader for the end.
        read |= {"offset": 1_000_000, "reset": "latest", "client": f"r{late_ms}"}
        plan.step(turn_ms + late_ms, "consume", dict(read))
    end(plan, known_ms)


def _begins_inside_a_batch(plan: Plan, choices: Choices) -> None:
    """A replica has to begin anew where its leader's log starts, mostly inside a batch."""
    place = choices.pick(_renewable(plan))
    leader, *others = plan.places[place]
    start_ms = plan.moment(choices)
    written: dict[str, Any] = {"to": place, "count": 12, "batch": 4, "client": "w2"}
    plan.step(start_ms, "produce", written | {"acks": "all", "timeout": "3s"})
    strangers = [each for each in plan.names if each not in plan.places[place]]
    gone, *kept = [choices.pick(others), *others]
    kept.remove(gone)
    if strangers:
        kept.append(choices.pick(strangers))
    replicas = {"partition": place, "replicas": [leader, *kept]}
    plan.step(start_ms + 250, "reassign", replicas)
    before = choices.pick((2, 3, 5, 6, 7, 10, 11, 18))
    for late_ms in (200, 500):
        deleted = {"partition": place, "before": before}
        plan.step(start_ms + late_ms, "delete_records", deleted)
    if not strangers or choices.chance(30):
        plan.step(start_ms + 900, "reassign", replicas | {"replicas": [leader, *others]})
    end(plan, start_ms + 900)


DIVERGING_KINDS: Final = (
    Kind("unheard turn", _unheard_turn, needs=_has_roomy_three, weight=_RARE),
    Kind("asked in unheard", _asked_in_unheard, needs=has_room, weight=_WEIGHT),
    Kind(
        "before the epoch's start", _before_the_epochs_start, needs=_has_roomy_three, weight=_RARE
    ),
    Kind("ends earlier", _ends_earlier, needs=is_replicated, weight=_WEIGHT),
    Kind(
        "begins inside a batch",
        _begins_inside_a_batch,
        needs=lambda plan: bool(_renewable(plan)),
        weight=_WEIGHT,
    ),
)
