"""Drawn steps of people: of the operator, and single reads and writes.

Left out: clients that go on (``sim.swarm.clients``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices, sample
from sim.swarm.plan import Kind, Plan, topic_of

__all__ = ["PEOPLE_KINDS"]


# Clients -----------------------------------------------------------------------------------------


def _produce(plan: Plan, choices: Choices) -> None:
    acks = choices.pick(("all", "all", "1", "0"))
    keys: dict[str, Any] = {"to": plan.place(choices), "count": choices.pick((1, 3, 8))}
    keys |= {"acks": acks, "batch": choices.pick((1, 4)), "client": "w1", "timeout": "3s"}
    plan.step(plan.moment(choices), "produce", keys)


def _consume(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = {"from": plan.place(choices), "count": choices.pick((1, 5))}
    keys |= {"offset": choices.pick(("earliest", "latest", 2)), "client": "r1"}
    if choices.chance(30):
        keys["group"] = "g3"
    plan.step(plan.moment(choices), "consume", keys)


def _settle(plan: Plan, choices: Choices) -> None:
    plan.step(plan.moment(choices), "settle", choices.pick(("300ms", "1s")))


def _flush(plan: Plan, choices: Choices) -> None:
    plan.step(plan.moment(choices), "flush", plan.broker(choices))


# Operators ---------------------------------------------------------------------------------------


def _elect(plan: Plan, choices: Choices) -> None:
    plan.step(plan.moment(choices), "elect", {"partition": plan.place(choices)})


def _unclean(plan: Plan, choices: Choices) -> None:
    place, at_ms = plan.place(choices), plan.moment(choices)
    elect = {"partition": place, "kind": "unclean"}
    who = choices.pick(("somebody", "named", "forced"))
    if who == "named":
        elect["to"] = choices.pick(plan.places[place])
    plan.step(at_ms, "elect", elect | ({"force": True} if who == "forced" else {}))


def _reassign(plan: Plan, choices: Choices) -> None:
    place, at_ms = plan.place(choices), plan.moment(choices)
    now = len(plan.places[place])
    count = now if plan.is_recoverable else choices.integer(1, plan.cluster.brokers)
    replicas = sample(choices, plan.names, count)
    plan.step(at_ms, "reassign", {"partition": place, "replicas": replicas})
    if choices.chance(30):
        later = min(at_ms + choices.pick((50, 200)), plan.end_ms)
        plan.step(later, "reassign", {"partition": place, "cancel": True})


def _cancel(plan: Plan, choices: Choices) -> None:
    cancel = {"partition": plan.place(choices), "cancel": True}
    plan.step(plan.moment(choices), "reassign", cancel)


def _topic_config(plan: Plan, choices: Choices) -> None:
    place, at_ms = plan.place(choices), plan.moment(choices)
    factor = len(plan.places[place])
    key = choices.pick(("min.insync.replicas", "unclean.leader.election.enable", "retention.bytes"))
    value: Any = {
        "min.insync.replicas": choices.integer(1, factor),
        "unclean.leader.election.enable": True,
        "retention.bytes": 600,
    }[key]
    plan.step(at_ms, "config", {"topic": topic_of(place), "set": {key: value}})


def _harmless_config(plan: Plan, choices: Choices) -> None:
    """Of a topic or a broker, without a bearing on what is promised."""
    if choices.chance(50):
        place = plan.place(choices)
        values: dict[str, Any] = choices.pick(
            ({"segment.bytes": 400}, {"max.message.bytes": 150}, {"retention.bytes": 1_000})
        )
        plan.step(plan.moment(choices), "config", {"topic": topic_of(place), "set": values})
        return
    values = choices.pick(({"replica.lag.time.max.ms": 1_200}, {"request.timeout.ms": 900}))
    plan.step(plan.moment(choices), "config", {"node": plan.broker(choices), "set": values})


def _delete_records(plan: Plan, choices: Choices) -> None:
    before = choices.pick((1, 3, 12, -1))
    deleted = {"partition": plan.place(choices), "before": before}
    plan.step(plan.moment(choices), "delete_records", deleted)


def _recreate(plan: Plan, choices: Choices) -> None:
    """A topic is deleted and made again with the same replicas and configuration."""
    topic = topic_of(plan.place(choices))
    start_ms, end_ms = plan.window(choices)
    if topic in plan.gone:
        return
    plan.gone.add(topic)
    lists = [plan.places[each] for each in sorted(plan.places) if topic_of(each) == topic]
    plan.step(start_ms, "delete_topic", topic)
    made = {"name": topic, "replicas": lists, "config": dict(plan.topics[topic])}
    plan.step(end_ms, "create_topic", made)
    if choices.chance(30):
        # Somebody else wants it, too.
        again_ms = end_ms + choices.pick((50, 600))
        plan.step(again_ms, "create_topic", made)
        plan.end_ms = max(plan.end_ms, again_ms + 200)


PEOPLE_KINDS: Final = (
    Kind("step produce", _produce),
    Kind("step consume", _consume),
    Kind("step settle", _settle),
    Kind("step flush", _flush),
    Kind("step elect", _elect),
    Kind("unclean election", _unclean, grounds=()),
    Kind("step reassign", _reassign),
    Kind("cancelled reassignment", _cancel),
    Kind("step config", _harmless_config),
    Kind("dangerous config", _topic_config, grounds=()),
    Kind("step delete_records", _delete_records),
    Kind("recreated topic", _recreate),
)
