"""Drawn sequences of clients that know less than is so: of topics, leaders, their batches.

Left out: what brokers make of each other (``sim.swarm.lives``, ``sim.swarm.behind``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.behind import elect
from sim.swarm.choosing import Choices
from sim.swarm.plan import Kind, Plan, topic_of
from sim.swarm.sequences import FENCED_MS, LAG_MS, cut_off, end, is_replicated, replicated, write

__all__ = ["ASKING_KINDS"]

_WEIGHT: Final = 1
_HARD: Final = 2
"""For what seldom reaches the state that it is for."""
_MANY: Final = 60
"""Records that a reader waits for; more than there will be, so it reads on."""


def _read(plan: Plan, place: str, at_ms: int, client: str) -> None:
    """A reader that goes on to the end."""
    keys: dict[str, Any] = {"from": place, "count": _MANY, "offset": "earliest", "client": client}
    plan.step(at_ms, "consume", keys)


def _made_anew_under_clients(plan: Plan, choices: Choices) -> None:
    """Clients know a late epoch of a topic, which is deleted, and begins again with the first."""
    place = choices.pick(replicated(plan))
    topic = topic_of(place)
    if topic in plan.gone:
        return
    plan.gone.add(topic)
    leader, other, *_ = plan.places[place]
    start_ms = plan.moment(choices)
    sent = {"to": place, "count": 3, "acks": "all", "client": "w8", "timeout": "3s"}
    plan.step(start_ms, "produce", sent)
    _read(plan, place, start_ms, "r8")
    at_ms = start_ms + 200
    for first in choices.pick(((other,), (other, leader))):
        # Each turn is an epoch.
        replicas = [first, *(each for each in plan.places[place] if each != first)]
        plan.step(at_ms, "reassign", {"partition": place, "replicas": replicas})
        plan.step(at_ms + 200, "elect", {"partition": place, "kind": "preferred"})
        at_ms += 500
    plan.step(at_ms, "produce", sent)
    gone_ms = at_ms + choices.pick((300, 600))
    again_ms = gone_ms + choices.pick((200, 600))
    plan.step(gone_ms, "delete_topic", topic)
    lists = [
        replicas for name, replicas in sorted(plan.places.items()) if name.startswith(f"{topic}-")
    ]
    made = {"name": topic, "replicas": lists, "config": dict(plan.topics[topic])}
    plan.step(again_ms, "create_topic", made)
    for late_ms in (300, 900):
        plan.step(again_ms + late_ms, "produce", sent)
    end(plan, again_ms + 1_500)


def _told_of_an_earlier_leader(plan: Plan, choices: Choices) -> None:
    """A leader that is one no more does not hear of it, and is one of those whom clients ask."""
    place = choices.pick(replicated(plan))
    leader, other, *_ = plan.places[place]
    start_ms = plan.moment(choices)
    turn_ms = start_ms + 250
    asks_ms = turn_ms + choices.pick((2_500, 4_600))
    end_ms = asks_ms + choices.pick((1_200, 2_000))
    write(plan, choices, place, max(start_ms - 100, 0), "all")
    unheard = {"from": "c1", "to": leader}
    plan.fault("cut", unheard, (turn_ms - 50, end_ms), only=["MetadataFetchResponse"])
    replicas = [other, *(each for each in plan.places[place] if each != other)]
    plan.step(start_ms, "reassign", {"partition": place, "replicas": replicas})
    plan.step(turn_ms, "elect", {"partition": place, "kind": "preferred"})
    _read(plan, place, choices.pick((turn_ms + 200, start_ms)), "r9")
    for at_ms in (turn_ms + 200, asks_ms - 200, asks_ms + 400, asks_ms + 900):
        write(plan, choices, place, at_ms, "1")
    # Whoever loses a connection asks who leads, one broker after the other.
    keys = {"only": ["Fetch"], "moment": "before", "ppm": choices.pick((300_000, 600_000))}
    plan.fault("reset", {"from": "r9", "to": [leader, other]}, (asks_ms, end_ms), **keys, times=8)
    end(plan, end_ms)


def _in_doubt(plan: Plan, choices: Choices) -> None:
    """A batch without an answer is given up; its leader stops with a later one in doubt."""
    place = plan.place(choices)
    leader = plan.places[place][0]
    start_ms = plan.moment(choices)
    sent = {"to": place, "count": 2, "acks": "all", "client": "w9", "timeout": "2500ms"}
    given_up_ms = start_ms + 2_500
    stops_ms = given_up_ms + choices.pick((100, -200))
    back_ms = stops_ms + choices.pick((300, 1_000))
    if leader not in plan.victims or not plan.take(leader, stops_ms, back_ms):
        return
    plan.step(max(start_ms - 600, 0), "produce", sent)
    unheard = {"from": leader, "to": "w9"}
    plan.fault("cut", unheard, (start_ms - 50, stops_ms), only=["ProduceResponse"])
    for late_ms in (0, choices.pick((2_000, 1_200))):
        plan.step(start_ms + late_ms, "produce", sent)
    if plan.ground == "calm" or choices.chance(50):
        plan.step(stops_ms, "shutdown", leader)
        plan.step(back_ms, "start", {"node": leader})
    else:
        plan.fault("crash", leader, (stops_ms, back_ms), how="process")
    for late_ms in (50, 1_700):
        plan.step(given_up_ms + late_ms, "produce", sent)
    end(plan, given_up_ms + 2_000)


def _read_by_turns(plan: Plan, choices: Choices) -> None:
    """A reader has read of who had less; who had more leads again, of another past and longer."""
    place = choices.pick(replicated(plan))
    leader, *others = plan.places[place]
    second, start_ms = choices.pick(others), plan.moment(choices)
    gone_ms = start_ms + LAG_MS[0]
    turn_ms = gone_ms + FENCED_MS
    back_ms = turn_ms + choices.pick((300, 900))
    again_ms = back_ms + choices.pick((900, 1_600))
    if not plan.take(leader, gone_ms, back_ms):
        return
    topic = topic_of(place)
    plan.step(start_ms, "config", {"topic": topic, "set": {"min.insync.replicas": 1}})
    for other in others:
        cut_off(plan, other, leader, (start_ms, gone_ms))
    for early_ms in (1_500, 900):
        sent = {"to": place, "count": 8, "batch": 4, "acks": "1", "client": "w2"}
        plan.step(gone_ms - early_ms, "produce", sent | {"timeout": "3s"})
    plan.fault("crash", leader, (gone_ms, back_ms), how="process")
    elect(plan, place, turn_ms, second)
    _read(plan, place, gone_ms + 200, "r7")
    write(plan, choices, place, turn_ms + 150, "1")
    cut_off(plan, leader, second, (turn_ms, again_ms + 200))
    elect(plan, place, again_ms, leader)
    write(plan, choices, place, again_ms + choices.pick((50, 400)), "1")
    end(plan, again_ms + 1_500)


ASKING_KINDS: Final = (
    Kind("made anew under clients", _made_anew_under_clients, needs=is_replicated, weight=_WEIGHT),
    Kind(
        "told of an earlier leader", _told_of_an_earlier_leader, needs=is_replicated, weight=_WEIGHT
    ),
    Kind("in doubt", _in_doubt, needs=lambda plan: bool(plan.victims), weight=_HARD),
    Kind("read by turns", _read_by_turns, (), is_replicated, weight=_WEIGHT),
)
