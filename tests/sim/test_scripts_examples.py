"""Programs as users write them: measuring a failover, a zombie leader, a rolling restart.

Method: each is written from the docstrings of ``sim.scripts`` alone; the tests look at what they
find out, which is known from the protocol.
"""

from __future__ import annotations

import trio

from sim.scripts import ClusterConfig, OutcomeKind, ScriptCluster, run

# How long does a failover take? ------------------------------------------------------------------


async def failover_s(cluster: ScriptCluster) -> float:
    """From the leader's death to the next record that is acknowledged."""
    await cluster.create_topic("orders", replicas=3)
    await cluster.produce("orders", 10)
    leader = cluster.view.leader("orders")
    await cluster.sleep(1)
    begin = cluster.now
    cluster.crash(leader)
    (outcome,) = await cluster.produce("orders", 1)
    assert outcome.kind is OutcomeKind.ACKED
    assert cluster.view.leader("orders") != leader
    return cluster.now - begin


def test_a_failover_takes_about_a_session() -> None:
    found = [run(failover_s, ClusterConfig(brokers=3), seed=seed) for seed in range(6)]
    assert all(6 < seconds < 12 for seconds in found)
    assert len(set(found)) > 3


# What does a zombie leader do? -------------------------------------------------------------------


async def zombie(cluster: ScriptCluster) -> dict[str, list[str]]:
    """A leader that is cut off from the others, but not from clients, takes records with acks 1."""
    await cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]])
    await cluster.produce("orders", ["before"])
    fault = cluster.partition(["b1"], ["b2", "b3", "c1"])
    lost = await cluster.produce("orders", ["zombie-1", "zombie-2"], acks=1, client="old")
    assert [outcome.kind for outcome in lost] == [OutcomeKind.ACKED] * 2
    # A client that asked the old leader turns to the new one after 30 s, when it has no answer.
    (during,) = await cluster.produce("orders", ["during"], timeout=60)
    assert during.kind is OutcomeKind.ACKED
    assert cluster.view.leader("orders") == "b2"
    assert cluster.view.log_end("b1", "orders") > 1
    cluster.heal(fault)
    await cluster.wait_for(lambda: len(cluster.view.isr("orders")) == 3)
    return {
        name: [(record.value or b"").decode() for record in cluster.view.records(name, "orders")]
        for name in cluster.view.running()
    }


def test_a_zombie_leader_loses_what_it_took_alone() -> None:
    logs = run(zombie, seed=3)
    assert logs == {name: ["before", "during"] for name in ("b1", "b2", "b3")}


# Does a rolling restart lose anything? -----------------------------------------------------------


async def rolling_restart(cluster: ScriptCluster) -> tuple[int, int, list[str]]:
    """Every broker is restarted under load: records acknowledged, records read, leaders seen."""
    await cluster.create_topic("orders", replicas=3, config={"min.insync.replicas": "2"})
    acked: list[int] = []
    leaders: list[str] = []

    async def load() -> None:
        while True:
            for outcome in await cluster.produce("orders", 5, batch=5):
                assert outcome.kind is OutcomeKind.ACKED
                acked.append(outcome.offset)
            await cluster.sleep(0.2)

    async with cluster.nursery() as nursery:
        nursery.start_soon(load)
        for broker in cluster.view.running():
            await cluster.shutdown(broker)
            leaders.append(cluster.view.leader("orders") or "none")
            cluster.start(broker)
            await cluster.wait_for(lambda: len(cluster.view.isr("orders")) == 3)
        nursery.cancel_scope.cancel()
    with trio.fail_after(30):
        records = await cluster.consume("orders", len(acked))
    assert acked == [record.offset for record in records]
    return len(acked), len({record.value for record in records}), leaders


def test_a_rolling_restart_loses_nothing() -> None:
    acked, read, leaders = run(rolling_restart, seed=11)
    assert acked == read > 50
    assert leaders[0] == "b2"
    assert "none" not in leaders
