"""Drawn sequences of brokers' lives that overlap, and of what a power loss leaves of decisions.

What one life has said is heard in the next one, a proposal arrives when it is stale, a change is
told or begun and not yet on the disk.

Left out: followers that fall behind (``sim.swarm.behind``), clients (``sim.swarm.asking``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.behind import elect
from sim.swarm.choosing import Choices
from sim.swarm.nodes import MORTAL
from sim.swarm.plan import Kind, Plan, topic_of
from sim.swarm.sequences import FENCED_MS, LAG_MS, cut_off, end, is_replicated, replicated, write

__all__ = ["LIVES_KINDS"]

_WEIGHT: Final = 1
_HARD: Final = 2
"""For those of which few reach the state that they are for."""
_COMPACTED: Final = "compacted"
"""A topic that one of the sequences makes."""


def _pair(plan: Plan, choices: Choices) -> tuple[str, str, str, list[str]]:
    """A place, its leader, one of the others, and those that are left."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    other = choices.pick(others)
    return place, leader, other, [each for each in others if each != other]


# What an earlier life has said -------------------------------------------------------------------


def _fetch_of_an_earlier_life(plan: Plan, choices: Choices) -> None:
    """A fetch is under way while its sender dies, and comes when the next life is registered."""
    _, leader, other, _ = _pair(plan, choices)
    start_ms = plan.moment(choices)
    gone_ms = start_ms + choices.pick((600, 1_100))
    back_ms = gone_ms + choices.pick((FENCED_MS, 300))
    heard_ms = back_ms + choices.pick((1_200, 2_000, 3_000))
    if other not in plan.victims or not plan.take(other, gone_ms, back_ms):
        return
    plan.fault("clog", {"from": other, "to": leader}, (start_ms, heard_ms))
    plan.fault("crash", other, (gone_ms, back_ms), how="process")
    end(plan, heard_ms)


def _asked_in_by_an_earlier_life(plan: Plan, choices: Choices) -> None:
    """A follower is asked into the ISR, loses its disk, and is heard to be in when it has none."""
    place, leader, other, _ = _pair(plan, choices)
    start_ms = plan.moment(choices)
    heals_ms = start_ms + choices.pick(LAG_MS)
    gone_ms = heals_ms + choices.pick((700, 1_200))
    back_ms = gone_ms + FENCED_MS
    heard_ms = back_ms + choices.pick((1_200, 600))
    if not plan.take(other, gone_ms, back_ms):
        return
    write(plan, choices, place, max(start_ms - 100, 0), "1")
    cut_off(plan, other, leader, (start_ms, heals_ms))
    # Before that it has left; from here on it is asked in.
    asked = {"from": leader, "to": "c1"}
    plan.fault("clog", asked, (heals_ms - 50, heard_ms), only=["AlterPartition"])
    plan.fault("crash", other, (gone_ms, None), how="process")
    plan.step(back_ms, "start", {"node": other, "disk": choices.pick(("wiped", "wiped", "same"))})
    cut_off(plan, other, leader, (gone_ms, heard_ms + 300))
    end(plan, heard_ms + 300)


def _asked_in_before_it_left(plan: Plan, choices: Choices) -> None:
    """A proposal of the ISR is under way while one of its members is fenced, and falls behind."""
    place, leader, late, others = _pair(plan, choices)
    member = choices.pick(others or [late])
    start_ms = plan.moment(choices)
    heals_ms = start_ms + choices.pick(LAG_MS)
    silent_ms = heals_ms + choices.pick((400, 900))
    fenced_ms = silent_ms + FENCED_MS
    heard_ms = fenced_ms + choices.pick((900, 600))
    cut_off(plan, late, leader, (start_ms, heals_ms))
    asked = {"from": leader, "to": "c1"}
    plan.fault("clog", asked, (heals_ms - 50, heard_ms), only=["AlterPartition"])
    silent = {"from": member, "to": "c1"}
    plan.fault("cut", silent, (silent_ms, fenced_ms), only=["BrokerHeartbeat"])
    cut_off(plan, member, leader, (silent_ms, heard_ms + 300))
    write(plan, choices, place, silent_ms + 200, choices.pick(("1", "all")))
    write(plan, choices, place, fenced_ms - 200, "1")
    end(plan, heard_ms + 300)


# What is not on the disk yet ---------------------------------------------------------------------


def _decides_and_forgets(plan: Plan, choices: Choices) -> None:
    """The controller's disk is slow, it decides something, and loses its power."""
    place, leader, other, _ = _pair(plan, choices)
    start_ms = plan.moment(choices)
    what = choices.pick(("stops", "config", "falls behind"))
    decides_ms = start_ms + 100
    if what == "stops":
        if not plan.take(leader, decides_ms, decides_ms + FENCED_MS):
            return
        plan.step(decides_ms, "shutdown", leader)
        plan.step(decides_ms + FENCED_MS, "start", {"node": leader})
    elif what == "falls behind":
        cut_off(plan, other, leader, (start_ms, start_ms + LAG_MS[0]))
        decides_ms = start_ms + choices.pick((1_150, 1_550, 1_800))
    else:
        keys = {"topic": topic_of(place), "set": {"segment.bytes": 1_000}}
        plan.step(decides_ms, "config", keys)
    gone_ms = decides_ms + choices.pick((100, 250, 400))
    back_ms = gone_ms + choices.pick((500, 1_000))
    if plan.take("c1", gone_ms, back_ms):
        plan.fault("slow", "c1", (start_ms, gone_ms), disk=choices.pick(("200ms", "400ms")))
        plan.fault("crash", "c1", (gone_ms, back_ms), how="power", image="lost")
    end(plan, max(back_ms, decides_ms + FENCED_MS))


def _loses_power_cutting(plan: Plan, choices: Choices) -> None:
    """Who has led alone comes back, cuts what others do not have, and the power goes meanwhile."""
    place, leader, other, others = _pair(plan, choices)
    start_ms = plan.moment(choices)
    gone_ms = start_ms + choices.pick((600, 900))
    back_ms = gone_ms + FENCED_MS
    dies_ms, up_ms = back_ms + 1_200, back_ms + 1_500
    if leader not in plan.victims or not plan.take(leader, gone_ms, up_ms):
        return
    for each in (other, *others):
        cut_off(plan, each, leader, (start_ms, gone_ms))
    for late_ms in (50, 150, 250):
        write(plan, choices, place, start_ms + late_ms, choices.pick(("1", "all")))
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    write(plan, choices, place, back_ms - 100, choices.pick(("all", "1")))
    # What it will cut is on the disk.
    plan.step(start_ms + 350, "flush", leader)
    if choices.chance(70):
        point = choices.pick(("disk:write_at:.log", "disk:begin_fsync:.log", "disk:truncate:.log"))
        keys: dict[str, Any] = {"point": point, "hit": choices.pick((1, 1, 2)), "action": "power"}
        plan.fault("failpoint", leader, (back_ms, dies_ms), **keys, image="kept")
        plan.step(up_ms, "start", {"node": leader})
    else:
        image = choices.pick(("kept", "lost", "disk-prefix"))
        keys = {"how": "power", "image": image}
        dies_ms = back_ms + choices.pick((100, 200, 400, 900))
        plan.fault("crash", leader, (dies_ms, up_ms), **keys)
    end(plan, up_ms)


def _epochs_of_an_earlier_past(plan: Plan, choices: Choices) -> None:
    """Who has led cuts its own records, and dies before its list of epochs is written."""
    place, leader, second, others = _pair(plan, choices)
    start_ms = plan.moment(choices)
    gone_ms = start_ms + LAG_MS[0]
    turn_ms = gone_ms + FENCED_MS
    back_ms = turn_ms + 500
    again_ms = back_ms + choices.pick((900, 1_300))
    dies_ms = again_ms + choices.pick((1_600, 2_400))
    up_ms = dies_ms + choices.pick((200, 900))
    if not plan.take(leader, gone_ms, back_ms) or not plan.take(second, dies_ms, up_ms):
        return
    topic = topic_of(place)
    plan.step(start_ms, "config", {"topic": topic, "set": {"min.insync.replicas": 1}})
    for each in (second, *others):
        cut_off(plan, each, leader, (start_ms, gone_ms))
    for early_ms in (1_100, 500):
        write(plan, choices, place, gone_ms - early_ms, "1")
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    elect(plan, place, turn_ms, second)
    write(plan, choices, place, turn_ms + 150, "1")
    cut_off(plan, leader, second, (turn_ms, again_ms + 200))
    elect(plan, place, again_ms, leader)
    plan.fault("background-hold", second, (again_ms - 50, dies_ms), work=["epochs"])
    plan.fault("crash", second, (dies_ms, up_ms), how=choices.pick(("process", "power")))
    end(plan, up_ms)


def _cut_behind_a_snapshot(plan: Plan, choices: Choices) -> None:
    """A leader rolls segments alone, cuts them when it follows, and opens its log anew."""
    place, leader, other, others = _pair(plan, choices)
    start_ms = plan.moment(choices)
    gone_ms = start_ms + choices.pick((700, 1_000))
    back_ms = gone_ms + FENCED_MS
    dies_ms = back_ms + choices.pick((900, 1_500))
    up_ms = dies_ms + 300
    if leader not in plan.victims or not plan.take(leader, gone_ms, up_ms):
        return
    topic = topic_of(place)
    plan.step(max(start_ms - 50, 0), "config", {"topic": topic, "set": {"segment.bytes": 300}})
    for each in (other, *others):
        cut_off(plan, each, leader, (start_ms, gone_ms))
    sent = {"to": place, "acks": "all", "batch": 1, "timeout": "6s", "client": "w5"}
    plan.step(start_ms + 50, "produce", sent | {"count": choices.pick((6, 10))})
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    again = sent | {"client": "w6", "count": choices.pick((10, 14, 6))}
    plan.step(back_ms - 400, "produce", again)
    plan.fault("crash", leader, (dies_ms, up_ms), how="process")
    plan.step(up_ms + 700, "elect", {"partition": place, "kind": "preferred"})
    for late_ms in (900, 1_100):
        plan.step(up_ms + late_ms, "produce", sent | {"count": 3})
    end(plan, up_ms + 1_500)


def _compacts_what_is_not_committed(plan: Plan, choices: Choices) -> None:
    """A leader writes the same keys alone, cleans, dies, is cut back, and leads again."""
    like = choices.pick(replicated(plan))
    leader, *others = plan.places[like]
    start_ms = plan.moment(choices)
    apart_ms = start_ms + 1_100
    gone_ms = apart_ms + choices.pick((1_050, 1_400))
    back_ms = gone_ms + choices.pick((FENCED_MS, 1_600))
    if leader not in plan.victims or not plan.take(leader, gone_ms, back_ms):
        return
    if not plan.claim(_COMPACTED):
        return
    config = dict(plan.topics[topic_of(like)])
    config = {key: value for key, value in config.items() if not key.startswith("retention")}
    config |= {"cleanup.policy": "compact", "segment.bytes": 300}
    made = {"name": _COMPACTED, "replicas": [plan.places[like]], "config": config}
    plan.step(start_ms, "create_topic", made)
    place = f"{_COMPACTED}-0"
    sent: dict[str, Any] = {"to": place, "batch": 3, "timeout": "5s"}
    sent |= {"keys": [f"k{number % 3}" for number in range(9)]}
    plan.step(start_ms + 400, "produce", sent | {"acks": "all", "client": "w7"})
    for each in others:
        cut_off(plan, each, leader, (apart_ms, gone_ms))
    for late_ms in (50, 150):
        plan.step(apart_ms + late_ms, "produce", sent | {"acks": "1", "client": "w8"})
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    again_ms = back_ms + choices.pick((900, 1_600))
    plan.step(again_ms, "elect", {"partition": place, "kind": "preferred"})
    end(plan, again_ms)


def _cleans_soon(plan: Plan) -> bool:
    backoff = plan.cluster.keys.get("config", {}).get("log.cleaner.backoff.ms", 15_000)
    return is_replicated(plan) and int(backoff) < 1_000


LIVES_KINDS: Final = (
    Kind("fetch of an earlier life", _fetch_of_an_earlier_life, MORTAL, is_replicated, _HARD),
    Kind(
        "asked in by an earlier life",
        _asked_in_by_an_earlier_life,
        (),
        is_replicated,
        weight=_WEIGHT,
    ),
    Kind("asked in before it left", _asked_in_before_it_left, needs=is_replicated, weight=_WEIGHT),
    Kind("decides and forgets", _decides_and_forgets, ("flush",), is_replicated, weight=_HARD),
    Kind("loses power cutting", _loses_power_cutting, ("flush",), is_replicated, weight=_HARD),
    Kind(
        "epochs of an earlier past", _epochs_of_an_earlier_past, (), is_replicated, weight=_WEIGHT
    ),
    Kind("cut behind a snapshot", _cut_behind_a_snapshot, MORTAL, is_replicated, weight=_WEIGHT),
    Kind(
        "compacts what is not committed",
        _compacts_what_is_not_committed,
        MORTAL,
        needs=_cleans_soon,
        weight=_WEIGHT,
    ),
)
