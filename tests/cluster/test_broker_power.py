"""Power cuts inside a broker's handlers: what was acknowledged as synced is there afterwards.

A sole member with ``flush.messages`` 1 works through a script; the power goes off inside each of
its disk calls in turn. From each image that the cut may leave another process starts: no handler
raises, nothing is in quarantine, and every record whose acknowledgement had left is there (C.4 I1,
I14, I17, A21). A kill of the process at each call leaves that and everything else written.
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from cluster.broker import Broker
from cluster.config import BrokerConfig
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.names import Now
from cluster.records import ConfigRecord
from sim.disk_names import NamesMode
from sim.disks import PowerCut, ProcessKill
from storage.disk import Disk
from tests.cluster.leader_tools import Solo
from tests.cluster.scripted import ORDERS
from tests.sim.disks import Bench, files

FLUSH_1 = {"flush.messages": "1", "index.interval.bytes": "1"}
IMAGES = 6


class Worker:
    """A broker on a simulated disk, and the values whose acknowledgement has left it."""

    def __init__(self, mode: NamesMode, topic: dict[str, str]) -> None:
        self.bench = Bench(mode)
        self.solo = Solo(disk=self.bench.disk, topic=topic, replicas=("b1",))  # type: ignore[arg-type]
        self.acked: list[bytes] = []
        self.tried: list[bytes] = []

    def produce(self, value: bytes) -> None:
        self.tried.append(value)
        number = self.solo.produce("b1", value, producer=(7, 0, len(self.tried) - 1))
        assert self.solo.acked(number) == (ErrorCode.NONE, len(self.tried) - 1)
        self.acked.append(value)

    def work(self) -> None:
        self.produce(b"a")
        self.produce(b"b")
        self.solo.lead("b1", epoch=3)
        self.produce(b"c")
        self.solo.router.run_for(60_000)
        self.solo.decide(ConfigRecord(True, "orders", "segment.bytes", "150"))
        self.produce(b"d")
        self.produce(b"e")
        self.solo.lead(None, ("b1",))
        self.solo.lead("b1", ("b1",))
        self.produce(b"f")
        self.solo.router.call("b1", "on_stop")
        self.solo.router.settle()

    def crash(self, fuse: int, *, kills: bool) -> bool:
        """Work until the fuse blows; False if the work is done before."""
        self.bench.disk.arm_fuse(fuse, kills=kills)
        try:
            self.work()
        except (PowerCut, ProcessKill):
            return True
        self.bench.disk.disarm_fuse()
        return False


def judge(disk: Disk, acked: list[bytes], tried: list[bytes]) -> None:
    broker = Broker("b1", BrokerConfig(), disk, Path("/b1"), incarnation=1)
    broker.on_start(Now(10**9, 10**9), Effects())
    replica = broker.core.replicas[ORDERS]
    assert replica.role.name == "waiting", replica.role
    log = replica.opened
    held = [record.value for record in log.fetch(log.log_start_offset, 100)]
    assert held[: len(acked)] == acked
    assert held == tried[: len(held)]
    assert 0 <= log.log_start_offset <= replica.high_watermark <= log.leo
    epochs = [epoch for epoch, _ in log.epochs.entries]
    assert epochs == sorted(set(epochs))
    broker.core.log_dir.abandon()


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["posix", "ext4"])
def test_a21_a_power_cut_at_any_call_keeps_what_was_acknowledged_as_synced(
    mode: NamesMode,
) -> None:
    seen: set[tuple[object, ...]] = set()
    fuse = 0
    while True:
        fuse += 1
        worker = Worker(mode, FLUSH_1)
        if not worker.crash(fuse, kills=False):
            break
        for image in islice(worker.bench.disk.images(), IMAGES):
            disk = worker.bench.cut(image)[0]
            key = (tuple(files(disk).items()), len(worker.acked))
            if key not in seen:
                seen.add(key)
                judge(disk, worker.acked, worker.tried)
    assert fuse > 100
    assert len(seen) > 100


@pytest.mark.slow
def test_a21_a_kill_at_any_call_keeps_everything_acknowledged() -> None:
    fuse = 0
    while True:
        fuse += 1
        worker = Worker("posix", {"index.interval.bytes": "1"})
        if not worker.crash(fuse, kills=True):
            break
        worker.bench.disk.kill()
        judge(worker.bench.disk, worker.acked, worker.tried)
    assert fuse > 50


def test_a21_without_flush_messages_a_power_cut_may_take_what_was_acknowledged() -> None:
    """No acknowledgement waits for an fsync by default: durability comes from replication."""
    worker = Worker("posix", {})
    worker.produce(b"a")
    worker.produce(b"b")
    losses = 0
    for image in worker.bench.disk.images():
        try:
            judge(worker.bench.cut(image)[0], worker.acked, worker.tried)
        except AssertionError:
            losses += 1
    assert losses > 0
