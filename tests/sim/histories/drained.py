"""Worlds whose clients' histories are kept, and whose logs are read to their ends."""

from __future__ import annotations

from sim.checks.judge import Judge
from sim.histories.anomalies import Anomaly
from sim.histories.recorder import Recorder
from sim.running.agreement import Disagreement, anomalies_of, disagreements
from sim.verbs import Cluster
from sim.world import World
from tests.sim.checks.fault_plans import Judged

SECOND_US = 1_000_000


def drain(world: World, cluster: Cluster, *, client: str = "final") -> list[str]:
    """Read every partition from its start to its leader's high watermark.

    Returns the partitions that could not be read to there.
    """
    view, left = world.view(), []
    for record in list(view.image().partitions()):
        topic, number = record.partition.topic, record.partition.partition
        leader = view.leader(topic, number)
        replica = view.replica(leader, topic, number) if leader else None
        if replica is None or replica.log is None or replica.leading is None:
            left.append(f"{topic}-{number}")
            continue
        count = replica.high_watermark - replica.log.log_start_offset
        if count <= 0:
            continue
        pending = cluster.consume(topic, count, partition=number, client=client)
        if not world.run_until_true(pending.is_done, 60 * SECOND_US):
            left.append(f"{topic}-{number}")
    return left


def judgement(
    world: World, judge: Judge, *, is_drained: bool, unavailable: list[str]
) -> tuple[list[Anomaly], list[Disagreement]]:
    """What both layers say in the end."""
    judge.finish()
    found = anomalies_of(world, judge, is_drained=is_drained, unavailable=unavailable)
    return found, disagreements(world, judge, found, is_drained=is_drained)


class Drained(Judged):
    """A drawn world with a history, whose logs are read in the end."""

    def __init__(self, seed: int, *, power: bool = True) -> None:
        super().__init__(seed, power=power)
        self.world.kernel.recorder = Recorder()

    def judgement(
        self, *, faults: int = 12, span_s: int = 30
    ) -> tuple[list[Anomaly], list[Disagreement]]:
        """Run, settle, drain; what both layers say."""
        self.run(faults=faults, span_s=span_s)
        self.settle()
        left = drain(self.world, self.cluster)
        return judgement(self.world, self.judge, is_drained=True, unavailable=left)
