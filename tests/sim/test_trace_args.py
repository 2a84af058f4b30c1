"""Every argument of every event that a disturbed world emits is documented."""

from __future__ import annotations

from collections import defaultdict

from sim import faults
from sim.disk_faults import DiskFault
from sim.network_rules import Corrupt, Cut, Edge, Limit, Loss, Refuse, ResetOn, Rule
from sim.plans import Planned, schedule
from sim.trace.kind_docs import COMMON_ARGS, KINDS
from sim.trace.kinds import Kind
from tests.sim.worlds import SECOND_US, led_world

EDGES: tuple[Edge, ...] = (("b1", "b2"), ("b2", "b1"), ("b1", "b3"), ("p1", "b1"), ("b1", "p1"))
FAULTS: tuple[Rule | faults.HostFault, ...] = (
    Loss(id="loss", edges=EDGES, ppm=200_000),
    Cut(id="hold", edges=EDGES, in_flight="hold", backoff_cap_us=SECOND_US),
    ResetOn(id="reset", edges=EDGES, times=5, when="after"),
    Corrupt(id="corrupt", edges=EDGES, times=5, bits=3),
    Limit(id="limit", edges=EDGES, bytes_per_s=20_000, buffer_bytes=2_000),
    Cut(id="cut", edges=EDGES),
    faults.Crash(id="crash", node="b2", how="power", image="drawn"),
    faults.CrashLoop(id="loop", node="b3", calls=(3, 10)),
    Refuse(id="refuse", edges=EDGES),
    faults.DiskCallFault(id="fsync", node="b2", fault=DiskFault(id="fsync", kind="fsync-fail")),
)


def test_every_argument_is_documented() -> None:
    world, cluster = led_world(level="events")
    plan = [
        Planned(fault, (4 + 6 * at) * SECOND_US, (9 + 6 * at) * SECOND_US)
        for at, fault in enumerate(FAULTS)
    ]
    schedule(world, plan)
    for _ in range(130):
        cluster.produce("orders", 3, timeout_us=5 * SECOND_US)
        world.run_for(SECOND_US // 2)
    cluster.consume("orders", 20)
    cluster.elect("orders")
    cluster.configure("orders", {"retention.ms": "1000"})
    world.shutdown("b1")
    world.run_for(20 * SECOND_US)
    seen: dict[Kind, set[str]] = defaultdict(set)
    for event in world.trace.events():
        seen[event.kind].update(event.args)
    undocumented = {
        kind.value: sorted(args - KINDS[kind].args.keys() - COMMON_ARGS.keys())
        for kind, args in seen.items()
        if args - KINDS[kind].args.keys() - COMMON_ARGS.keys()
    }
    assert not undocumented
    # The run has shown a good part of what there is.
    assert len(seen) > 35, sorted(seen)
