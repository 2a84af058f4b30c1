"""Which lane does what (DECISIONS 2.3): a stalled disk must not silence a broker (hazard B-46)."""

from __future__ import annotations

import pytest

from cluster import messages_control as control
from cluster import messages_data as data
from cluster.effects import Arm
from cluster.lanes import Lane, lane_of_message, lane_of_timer, lane_of_work
from storage.log_durability import Work
from storage.memdisk import MemDisk
from tests.cluster.leader_tools import Solo
from tests.cluster.scripted import Cluster
from tests.storage.faults import FaultDisk


@pytest.mark.parametrize(
    ("kind", "lane"),
    [
        (data.ProduceRequest, Lane.REQUESTS),
        (data.FetchRequest, Lane.REQUESTS),
        (data.FetchResponse, Lane.FETCHERS),
        (data.OffsetsForLeaderEpochResponse, Lane.FETCHERS),
        (data.ListOffsetsResponse, Lane.FETCHERS),
        (control.MetadataFetchResponse, Lane.METADATA),
        (control.BrokerRegistrationResponse, Lane.METADATA),
        (control.BrokerHeartbeatResponse, Lane.HEARTBEAT),
        (control.AlterPartitionResponse, Lane.HEARTBEAT),
    ],
)
def test_b46_messages_have_lanes(kind: type, lane: Lane) -> None:
    message = kind.__new__(kind)
    assert lane_of_message(message) is lane


def test_b46_every_timer_of_a_broker_has_its_lane() -> None:
    cluster = Cluster(2)
    cluster.lead("b1")
    cluster.router.call("b1", "on_stop")
    seen = {key[0] for _, key in cluster.router.timers}
    solo = Solo()
    solo.produce("b1", b"x")
    solo.fetch_as("b2", 1, wait_ms=500)
    seen |= {key[0] for _, key in solo.router.timers}
    effects = solo.call("on_disconnected", "c1")
    seen |= {effect.key[0] for effect in effects if isinstance(effect, Arm)}
    lanes = {kind: lane_of_timer((kind,)) for kind in seen}
    assert lanes == {
        "produce": Lane.REQUESTS,
        "fetch": Lane.REQUESTS,
        "fetch-timeout": Lane.FETCHERS,
        "metadata-timeout": Lane.METADATA,
        "heartbeat": Lane.HEARTBEAT,
        "heartbeat-timeout": Lane.HEARTBEAT,
        "controlled-shutdown": Lane.HEARTBEAT,
        "isr-shrink": Lane.HEARTBEAT,
        "checkpoint-hw": Lane.BACKGROUND,
        "checkpoint-offsets": Lane.BACKGROUND,
        "retention": Lane.BACKGROUND,
        "compaction": Lane.BACKGROUND,
        "expire-producers": Lane.BACKGROUND,
    } | {kind: lanes[kind] for kind in seen & {"register", "alter-partition", "fetch-backoff"}}
    assert lane_of_timer(("alter-partition",)) is Lane.HEARTBEAT
    assert lane_of_timer(("delete", "k1", 3)) is Lane.REQUESTS
    assert lane_of_timer(("register",)) is Lane.METADATA


def test_b46_all_pending_work_is_the_schedulers() -> None:
    for kind in ("flush", "persist", "epochs", "delete", "snapshot", "prune", "remove-directory"):
        assert lane_of_work(Work(1, kind)) is Lane.BACKGROUND


def test_b46_heartbeats_and_isr_changes_never_ask_the_disk() -> None:
    disk = FaultDisk(MemDisk())
    solo = Solo(disk=disk)
    solo.produce("b1", b"x", acks=1)
    disk.calls.clear()
    for name, key in [(n, k) for n, k in solo.router.timers if n == "b1"]:
        if lane_of_timer(key) is Lane.HEARTBEAT and key[0] != "controlled-shutdown":
            solo.router.now_us += 60_000_000
            solo.router.call(name, "on_timer", key)
    solo.router.settle()
    assert solo.controller.alter_requests
    assert solo.isr.isr == ("b1",)
    assert disk.calls == []
