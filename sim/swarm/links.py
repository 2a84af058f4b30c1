"""Drawn faults of links, and of what brokers and clients hear of metadata.

Left out: slow links (``sim.swarm.nodes``, with slow disks and CPUs).
"""

from __future__ import annotations

from typing import Any, Final

from sim.scenario.fault_base import MILLION
from sim.swarm.choosing import Choices, rates, sample
from sim.swarm.plan import Kind, Plan

__all__ = ["LINK_KINDS"]

_ONLY: Final[tuple[tuple[str, ...], ...]] = (
    (),
    (),
    ("Fetch",),
    ("FetchResponse",),
    ("FetchRequest",),
    ("BrokerHeartbeat",),
    ("AlterPartition",),
    ("MetadataFetchResponse",),
    ("Produce",),
    ("ProduceResponse",),
)
_IN_FLIGHT: Final = ("drop", "hold", "deliver")
_PERIODS_MS: Final = (60, 200, 600)


def _ends(plan: Plan, choices: Choices) -> Any:
    """Which links: one way or both between two, all of a node, or of a role."""
    node = plan.server(choices)
    shape = choices.pick(("one way", "one way", "both ways", "away", "all", "role"))
    if shape == "role":
        return plan.role(choices)
    if shape == "all":
        return node
    others = [each for each in [*plan.names, "c1"] if each != node]
    if shape == "away":
        return {"from": node, "to": others}
    return {"from": node, "to": choices.pick(others), "both": shape == "both ways"}


def _only(choices: Choices) -> dict[str, Any]:
    only = choices.pick(_ONLY)
    return {"only": list(only)} if only else {}


def _groups(plan: Plan, choices: Choices) -> list[list[str]]:
    """Two groups; who is in neither reaches both."""
    nodes = [*plan.names, "c1"]
    first = sample(choices, nodes, choices.integer(1, max(1, len(nodes) // 2)))
    others = [each for each in nodes if each not in first]
    bridge = choices.integer(0, 1) if len(others) > 1 else 0
    return [first, others[: len(others) - bridge]]


def _cut(plan: Plan, choices: Choices) -> None:
    keys = _only(choices) | {"in_flight": choices.pick(_IN_FLIGHT)}
    if keys["in_flight"] == "hold":
        keys["backoff_cap"] = choices.pick(("0ms", "400ms"))
    plan.fault("cut", _ends(plan, choices), plan.window(choices), **keys)


def _partition(plan: Plan, choices: Choices) -> None:
    groups = _groups(plan, choices)
    in_flight = choices.pick(_IN_FLIGHT)
    plan.fault("partition", groups, plan.window(choices), in_flight=in_flight)


def _clog(plan: Plan, choices: Choices) -> None:
    plan.fault("clog", _ends(plan, choices), plan.window(choices), **_only(choices))


def _loss(plan: Plan, choices: Choices) -> None:
    keys = _only(choices) | {"ppm": choices.pick(rates(20_000, 500_000))}
    plan.fault("loss", _ends(plan, choices), plan.window(choices), **keys)


def _reset(plan: Plan, choices: Choices) -> None:
    keys = _only(choices) | {
        "moment": choices.pick(("before", "after")),
        "ppm": choices.pick((MILLION, *rates(5_000, 200_000))),
        "times": choices.pick((1, 3, 20)),
    }
    if choices.chance(30):
        keys["half_open"] = plan.broker(choices)
    plan.fault("reset", _ends(plan, choices), plan.window(choices), **keys)


def _refuse(plan: Plan, choices: Choices) -> None:
    hangs = choices.pick(("0ms", "300ms"))
    plan.fault("refuse", _ends(plan, choices), plan.window(choices), hangs=hangs)


def _limit(plan: Plan, choices: Choices) -> None:
    rate = choices.pick((50_000, 20_000, 5_000, 1_000))
    keys = {"bytes_per_s": rate, "buffer_bytes": choices.pick((16_384, 2_000, 500, 200))}
    plan.fault("limit", _ends(plan, choices), plan.window(choices), **keys)


def _corrupt(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = {"only": [choices.pick(("Produce", "Produce", "FetchResponse"))]}
    keys |= {"ppm": choices.pick(rates(20_000, 500_000)), "times": 3, "bits": choices.pick((1, 3))}
    plan.fault("corrupt", plan.server(choices), plan.window(choices), **keys)


def _duplicate(plan: Plan, choices: Choices) -> None:
    ppm = choices.pick(rates(20_000, 500_000))
    plan.fault("duplicate", _links(plan, choices), plan.window(choices), ppm=ppm)


def _reorder(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = {"ppm": choices.pick(rates(20_000, 500_000))}
    keys["up_to"] = choices.pick(("5ms", "40ms"))
    plan.fault("reorder", _links(plan, choices), plan.window(choices), **keys)


def _links(plan: Plan, choices: Choices) -> Any:
    return choices.pick(("*", plan.names[0], plan.names[-1]))


def _flap(plan: Plan, choices: Choices) -> None:
    keys = _only(choices) | {
        "period": f"{choices.pick(_PERIODS_MS)}ms",
        "in_flight": choices.pick(_IN_FLIGHT),
    }
    plan.fault("flap", _ends(plan, choices), plan.window(choices), **keys)


def _swizzle(plan: Plan, choices: Choices) -> None:
    period = f"{choices.pick(_PERIODS_MS)}ms"
    plan.fault("swizzle", "all", plan.window(choices), period=period)


def _metadata_lag(plan: Plan, choices: Choices) -> None:
    node = choices.pick([*plan.names, *plan.clients])
    keys: dict[str, Any] = choices.pick(
        ({"records": 1}, {"records": 3}, {"records": 12}, {"skip": True})
    )
    plan.fault("metadata-lag", node, plan.window(choices), **keys)


# Steps -------------------------------------------------------------------------------------------


def _cut_step(plan: Plan, choices: Choices) -> None:
    start_ms, end_ms = plan.window(choices)
    node = plan.server(choices)
    others = [each for each in [*plan.names, "c1"] if each != node]
    cut = {"from": node, "to": choices.pick(others), "both": choices.chance(50)}
    known_as = plan.step(start_ms, "cut", cut | _only(choices))
    plan.step(end_ms, "heal", choices.pick((known_as, known_as, "all")))


def _partition_step(plan: Plan, choices: Choices) -> None:
    start_ms, end_ms = plan.window(choices)
    partition = {"groups": _groups(plan, choices), "in_flight": choices.pick(_IN_FLIGHT)}
    plan.step(end_ms, "heal", plan.step(start_ms, "partition", partition))


def _is_datagram(plan: Plan) -> bool:
    return plan.cluster.keys.get("network") == "datagram"


LINK_KINDS: Final = (
    Kind("cut", _cut),
    Kind("partition", _partition),
    Kind("clog", _clog),
    Kind("loss", _loss),
    Kind("reset", _reset),
    Kind("refuse", _refuse),
    Kind("limit", _limit),
    # Bits that are flipped behind the checksums of the transport may be believed.
    Kind("corrupt", _corrupt, grounds=(), weight=3),
    Kind("duplicate", _duplicate, needs=_is_datagram, weight=3),
    Kind("reorder", _reorder, needs=_is_datagram, weight=3),
    Kind("flap", _flap),
    Kind("swizzle", _swizzle, needs=lambda plan: plan.cluster.brokers > 1),
    Kind("metadata-lag", _metadata_lag),
    Kind("step cut", _cut_step),
    Kind("step partition", _partition_step),
)
