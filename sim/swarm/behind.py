"""Drawn sequences in which a replica is left behind, or hears and says things late.

Each brings about a state of which one path of the protocol is for, and which single faults hardly
ever reach: a log that starts behind a follower's end, two epochs that overlap, a member that is
fenced before its leader knows.

Left out: elections of who has less (``sim.swarm.sequences``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices
from sim.swarm.diverging import out_of_sync_ms
from sim.swarm.frame import ANYTHING
from sim.swarm.nodes import MORTAL
from sim.swarm.plan import Kind, Plan, topic_of
from sim.swarm.sequences import FENCED_MS, LAG_MS, cut_off, end, is_replicated, replicated, write

__all__ = ["BEHIND_KINDS", "elect"]

_WEIGHT: Final = 2


def _below_the_start(plan: Plan, choices: Choices) -> None:
    """The leader's log is deleted past the end of a follower's, mostly inside a batch."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    follower, start_ms = choices.pick(others), plan.moment(choices)
    back_ms = start_ms + choices.pick(LAG_MS)
    is_wiped = plan.ground == ANYTHING and choices.chance(40)
    if not is_wiped:
        cut_off(plan, follower, leader, (start_ms, back_ms))
    elif plan.take(follower, start_ms, back_ms):
        plan.fault("crash", follower, (start_ms, None), how="process")
        plan.step(back_ms, "start", {"node": follower, "disk": "wiped"})
    for late_ms in (1_200, 500):
        write(plan, choices, place, back_ms - late_ms, choices.pick(("all", "1")))
    before = choices.pick((2, 6, 11, 18, 30, -1))
    plan.step(back_ms - 150, "delete_records", {"partition": place, "before": before})
    end(plan, back_ms)


def _asked_in_while_fenced(plan: Plan, choices: Choices) -> None:
    """A follower is fenced, and its leader, which hears late of it, proposes it for the ISR."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    follower, start_ms = choices.pick(others), plan.moment(choices)
    back_ms = start_ms + 4_200
    cut_off(plan, follower, leader, (start_ms, back_ms))
    silent = {"from": follower, "to": "c1"}
    until_ms = back_ms + choices.pick((400, 1_400))
    plan.fault("cut", silent, (start_ms + 1_500, until_ms), only=["BrokerHeartbeat"])
    late: dict[str, Any] = choices.pick(({"records": 1}, {"records": 3}))
    plan.fault("metadata-lag", leader, (start_ms + 1_500, until_ms + 300), **late)
    write(plan, choices, place, back_ms - 300, "1")
    end(plan, until_ms)


def _shrinks_meanwhile(plan: Plan, choices: Choices) -> None:
    """While a leader is about to answer, all others fall out of its ISR."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    start_ms = plan.moment(choices)
    end_ms = start_ms + 4_500
    if not plan.take(leader, start_ms, end_ms):
        return
    point = choices.pick(("hw-advanced", "produce-appended"))
    keys = {"point": point, "action": "yield", "duration": "4s"}
    plan.fault("failpoint", leader, (start_ms, end_ms), **keys)
    written = {"to": place, "count": 1, "acks": "all", "client": "w3", "timeout": "9s"}
    plan.step(start_ms + 50, "produce", written)
    for other in others:
        cut_off(plan, other, leader, (start_ms + choices.pick((150, 70)), end_ms - 200))
    end(plan, end_ms)


def _batch_of_an_earlier_epoch(plan: Plan, choices: Choices) -> None:
    """A batch that its producer has given up arrives when the leader leads again, behind others."""
    place = choices.pick(replicated(plan))
    leader, start_ms = plan.places[place][0], plan.moment(choices)
    deposed_ms, back_ms = start_ms + 400, start_ms + 3_400
    again_ms = back_ms + 1_900
    heard_ms = again_ms + choices.pick((600, 1_500))
    sent = {"to": place, "count": 2, "acks": "all", "client": "w4", "timeout": "1500ms"}
    plan.fault("clog", {"from": "w4", "to": leader}, (start_ms + 200, heard_ms), only=["Produce"])
    plan.fault("cut", {"from": leader, "to": "c1"}, (deposed_ms, back_ms))
    plan.step(again_ms, "elect", {"partition": place})
    for at_ms in (start_ms, start_ms + 500, back_ms, back_ms + 800, again_ms + 300, heard_ms):
        plan.step(at_ms, "produce", sent)
    end(plan, heard_ms)


def _dies_compacting(plan: Plan, choices: Choices) -> None:
    """A process ends between two renames of a compaction."""
    topic = choices.pick(_compacted(plan))
    place = choices.pick([each for each in sorted(plan.places) if _is_of(each, topic)])
    nodes = [each for each in plan.places[place] if each in plan.victims]
    start_ms = plan.moment(choices)
    end_ms = start_ms + 2_500
    if not nodes:
        return
    node = choices.pick(nodes)
    if not plan.take(node, start_ms, end_ms):
        return
    for late_ms in (50, 250, 450):
        keys = {"to": place, "count": 8, "batch": 1, "acks": "all", "client": "w2"}
        plan.step(start_ms + late_ms, "produce", keys | {"timeout": "3s"})
    point = choices.pick(("disk:rename:.swap", "disk:rename:.log", "disk:fsync_dir:"))
    keys = {"point": point, "hit": choices.pick((1, 2, 3)), "action": "process"}
    plan.fault("failpoint", node, (start_ms, end_ms), **keys)
    plan.step(end_ms, "start", {"node": node})
    end(plan, end_ms)


# Where anything may happen -----------------------------------------------------------------------


def _led_by_turns(plan: Plan, choices: Choices) -> None:
    """Who has less leads and writes, then who has more leads again, without having heard of it."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    second, start_ms = choices.pick(others), plan.moment(choices)
    gone_ms = start_ms + choices.pick(LAG_MS)
    turn_ms = gone_ms + FENCED_MS
    back_ms = turn_ms + choices.pick((300, 900))
    if not plan.take(leader, gone_ms, back_ms):
        return
    for other in others:
        cut_off(plan, other, leader, (start_ms, gone_ms))
    write(plan, choices, place, gone_ms - choices.pick((100, 600)), "1")
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    elect(plan, place, turn_ms, second)
    write(plan, choices, place, turn_ms + 150, "1")
    again_ms = back_ms + choices.pick((900, 1_600))
    cut_off(plan, leader, second, (turn_ms, again_ms + 200))
    elect(plan, place, again_ms, leader)
    write(plan, choices, place, again_ms + choices.pick((50, 400)), "1")
    end(plan, again_ms + 600)


def _deleted_past_a_fork(plan: Plan, choices: Choices) -> None:
    """Who led in between with less has records of its own, and the log is deleted past its end."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    second, start_ms = choices.pick(others), plan.moment(choices)
    turn_ms = start_ms + out_of_sync_ms(plan)
    again_ms, back_ms = turn_ms + 900, turn_ms + 2_400
    only_one = {"topic": topic_of(place), "set": {"min.insync.replicas": 1}}
    plan.step(start_ms, "config", only_one)
    cut_off(plan, second, leader, (start_ms, back_ms))
    for late_ms in (50, 250):
        step = {"to": place, "count": 8, "acks": "1", "client": "w2", "timeout": "3s"}
        plan.step(start_ms + late_ms, "produce", step)
    for each in (leader, *others):
        if each != second:
            cut_off(plan, each, second, (turn_ms, again_ms + 100))
    elect(plan, place, turn_ms, second)
    write(plan, choices, place, turn_ms + 200, "1")
    elect(plan, place, again_ms, leader)
    write(plan, choices, place, again_ms + 300, "1")
    before = choices.pick((4, 7, 10, 14, 20))
    plan.step(back_ms - 400, "delete_records", {"partition": place, "before": before})
    end(plan, back_ms)


def _emptied_and_behind(plan: Plan, choices: Choices) -> None:
    """A follower has thrown its log away for the leader's start, and the next leader has less."""
    place = choices.pick([each for each in replicated(plan) if len(plan.places[each]) > 2])
    leader, follower, second, *others = plan.places[place]
    start_ms = plan.moment(choices)
    empty_ms = start_ms + 4_500
    gone_ms = empty_ms + choices.pick((40, 300))
    turn_ms = gone_ms + FENCED_MS
    if not plan.take(leader, gone_ms, turn_ms + 500):
        return
    topic = topic_of(place)
    plan.step(start_ms, "config", {"topic": topic, "set": {"min.insync.replicas": 1}})
    cut_off(plan, follower, leader, (start_ms, empty_ms))
    for other in (second, *others):
        cut_off(plan, other, leader, (start_ms, gone_ms + 100))
    write(plan, choices, place, start_ms + 300, "1")
    plan.step(empty_ms - 200, "delete_records", {"partition": place, "before": -1})
    plan.fault("crash", leader, (gone_ms, turn_ms + 500), how="process")
    elect(plan, place, turn_ms, second)
    end(plan, turn_ms + 500)


def _deleted_before_it_is_synced(plan: Plan, choices: Choices) -> None:
    """Records are deleted that are in no file yet, and the power goes."""
    place, at_ms = plan.place(choices), plan.moment(choices)
    nodes = [each for each in plan.places[place] if each in plan.victims]
    gone_ms = at_ms + choices.pick((300, 450))
    back_ms = gone_ms + choices.pick((300, FENCED_MS))
    if not nodes:
        return
    node = choices.pick(nodes)
    if not plan.take(node, gone_ms, back_ms):
        return
    write(plan, choices, place, at_ms, choices.pick(("1", "all")))
    plan.step(at_ms + 150, "delete_records", {"partition": place, "before": -1})
    plan.fault("crash", node, (gone_ms, back_ms), how="power", image="lost")
    end(plan, back_ms)


def elect(plan: Plan, place: str, at_ms: int, to: str) -> None:
    plan.step(at_ms, "elect", {"partition": place, "kind": "unclean", "to": to})


def _is_of(place: str, topic: str) -> bool:
    return topic_of(place) == topic


def _compacted(plan: Plan) -> list[str]:
    return [
        topic
        for topic, config in sorted(plan.topics.items())
        if "compact" in config.get("cleanup.policy", "")
    ]


def _compacts_soon(plan: Plan) -> bool:
    backoff = plan.cluster.keys.get("config", {}).get("log.cleaner.backoff.ms", 15_000)
    return bool(plan.victims and _compacted(plan)) and int(backoff) < 1_000


def _has_three(plan: Plan) -> bool:
    return any(len(each) > 2 for each in plan.places.values())


def _has_victims(plan: Plan) -> bool:
    return bool(plan.victims)


BEHIND_KINDS: Final = (
    Kind("below the start", _below_the_start, needs=is_replicated, weight=_WEIGHT),
    Kind("asked in while fenced", _asked_in_while_fenced, needs=is_replicated, weight=_WEIGHT),
    Kind("shrinks meanwhile", _shrinks_meanwhile, needs=is_replicated, weight=_WEIGHT),
    Kind("batch of an earlier epoch", _batch_of_an_earlier_epoch, needs=is_replicated),
    Kind("dies compacting", _dies_compacting, MORTAL, _compacts_soon, weight=_WEIGHT),
    Kind("led by turns", _led_by_turns, (), is_replicated, weight=_WEIGHT),
    Kind("deleted past a fork", _deleted_past_a_fork, (), is_replicated, weight=_WEIGHT),
    Kind("emptied and behind", _emptied_and_behind, (), _has_three, weight=_WEIGHT),
    Kind("deleted before it is synced", _deleted_before_it_is_synced, (), _has_victims),
)
