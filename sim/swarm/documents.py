"""Whole drawn scenarios: cluster, topics, clients and what strikes them, as a document.

``sim.scenario.writing.scenario_text`` makes the file of it, so that a seed is never the only handle
on a case.

Left out: who makes the choices (``sim.swarm.choosing``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sim.scenario.names import LICENCES
from sim.swarm.choosing import Choices, KeyedChoices
from sim.swarm.clients import draw_workloads
from sim.swarm.clusters import draw_cluster, draw_topics
from sim.swarm.frame import Cluster
from sim.swarm.kinds import KINDS
from sim.swarm.plan import Kind, Plan, draw_plan, victims_of
from sim.swarm.wanted import Wanted

__all__ = ["draw_document", "draw_faults", "drawn", "plan_for", "struck"]

_SPANS_MS: Final = (1_000, 2_000, 3_500)
_TAIL_MS: Final = 600
_REPAIR_MS: Final = 150
_BOOT: Final = "2s"
"""With the slowest links and disks that are drawn all leaders lead behind 1.5 s, as a rule."""
_SEED_MAX: Final = 255
_FAULTS: Final = (1, 10)


def drawn(
    seed: int, envelope: str = "recoverable", *, size: int = 1, **wanted: Any
) -> dict[str, Any]:
    """A scenario as a function of a seed.

    Args:
        seed: 0 to 2^64-1; each gives another one.
        envelope, size, wanted: as ``sim.swarm.wanted.Wanted`` has them; but at least one fault and
            at most ten, if ``faults`` is not given.

    Returns:
        A document; ``sim.scenario.writing.scenario_text`` makes the file of it.

    Raises:
        ValueError: something wanted is out of range; says what is allowed.
    """
    asked = Wanted(envelope=envelope, size=size, **({"faults": _FAULTS} | wanted))
    choices = KeyedChoices(seed, envelope)
    name = f"{envelope}-{seed}"
    return draw_document(choices, asked, name=name, seed=seed & ((1 << 63) - 1))


def draw_document(
    choices: Choices, wanted: Wanted, *, name: str = "drawn", seed: int | None = None
) -> dict[str, Any]:
    """A scenario of what is chosen.

    Args:
        seed: of the scenario; None to have a small one drawn.
    """
    cluster = choices.part(lambda inner: draw_cluster(inner, wanted))
    topics = choices.part(lambda inner: draw_topics(inner, cluster))
    span_ms = choices.pick(_SPANS_MS) * wanted.size
    clients = choices.part(lambda inner: draw_workloads(inner, topics, span_ms, wanted.size))
    names = [each["name"] for each in clients]
    plan = draw_faults(choices, wanted, cluster, topics, span_ms, names)
    if seed is None:
        seed = choices.integer(0, _SEED_MAX)
    document: dict[str, Any] = {
        "schema": 1,
        "name": name,
        "title": f"drawn: {cluster.ground}",
        "until": f"{plan.end_ms}ms",
        "boot": _BOOT,
        "seed": seed,
        "when_impossible": "skip",
        "cluster": cluster.keys,
    }
    if wanted.is_recoverable:
        document["liveness"] = {"within": "60s", "core": "all"}
    document |= {"topic": topics, "workload": clients, **struck(plan)}
    allowed = ["L0"] if wanted.is_recoverable else list(LICENCES)
    return document | {"expect": [{"allow": allowed}]}


def plan_for(cluster: Cluster, topics: list[dict[str, Any]], span_ms: int) -> Plan:
    """An empty plan."""
    places = {
        f"{topic['name']}-{at}": list(replicas)
        for topic in topics
        for at, replicas in enumerate(topic["replicas"])
    }
    configs = {topic["name"]: topic["config"] for topic in topics}
    retains = any("retention.ms" in each for each in configs.values())
    end_ms = span_ms + _TAIL_MS
    return Plan(cluster, places, configs, cluster.names, span_ms, end_ms, has_exact_clocks=retains)


def draw_faults(
    choices: Choices,
    wanted: Wanted,
    cluster: Cluster,
    topics: list[dict[str, Any]],
    span_ms: int,
    clients: Sequence[str],
) -> Plan:
    """What strikes a cluster and its clients."""
    plan = plan_for(cluster, topics, span_ms)
    plan.clients = clients
    plan.victims = choices.part(lambda inner: victims_of(inner, cluster, topics))
    draw_plan(plan, choices, _kinds(wanted), *wanted.faults)
    return plan


def _kinds(wanted: Wanted) -> list[Kind]:
    return [KINDS[name] for name in (KINDS if wanted.kinds is None else wanted.kinds)]


def struck(plan: Plan) -> dict[str, Any]:
    """Faults, and steps in the order of their times."""
    faults, steps = list(plan.faults), []
    for node, how in sorted(plan.repairs.items()):
        start_ms = plan.span_ms + _REPAIR_MS
        times = {"start": f"{start_ms}ms", "end": f"{start_ms + _REPAIR_MS}ms"}
        repair = {"id": f"repair-{node}", "kind": "crash", "target": node, **times, "how": how}
        faults.append(repair)
    for _, step in sorted(plan.steps, key=lambda each: each[0]):
        stopped = step.get("shutdown")
        if plan.is_recoverable and stopped in plan.fragile:
            # A disk that fails may leave behind a shutdown that only looks clean.
            step = {"at": step["at"], "id": step["id"], "crash": {"node": stopped}}
        steps.append(step)
    return {"fault": faults, "step": steps}
