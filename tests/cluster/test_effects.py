"""The collector of effects, names, lanes, failpoints, and the surface that does nothing."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import get_args

import pytest

from cluster import effects
from cluster.effects import (
    Arm,
    Background,
    Disarm,
    Disconnect,
    Effect,
    Effects,
    Fsync,
    Note,
    Reply,
    Send,
    Stopped,
    Yield,
)
from cluster.failpoints import FAILPOINTS
from cluster.lanes import Lane, lane_of_message, lane_of_timer, lane_of_work
from cluster.machine import Correlations, Machine
from cluster.messages import MESSAGES
from cluster.messages_control import OffsetFetchRequest, OffsetFetchResponse
from cluster.names import Now, TopicIdPartition
from storage.log_durability import FlushToken, Work
from storage.memdisk import MemDisk
from storage.partition_log import PartitionLog
from tests.cluster.values import plainest

TP = TopicIdPartition("id", "orders", 3)
ASK, ANSWER = OffsetFetchRequest(1, "g", (TP,)), OffsetFetchResponse(1, ())
NOW = Now(1_999, 2_999)


def token() -> FlushToken:
    return PartitionLog.open(Path("/t-0"), disk=MemDisk()).begin_flush()


# Effects ---------------------------------------------------------------------------------------


def test_effects_come_out_in_the_order_in_which_they_were_put() -> None:
    fx, flush, work = Effects(), token(), [Work(1, "flush", (5,)), Work(2, "persist")]
    fx.send("b1", ASK)
    fx.arm(("fetch", TP), 5)
    fx.arm(("session", "b2"), 6, "wall")
    fx.disarm(("fetch", TP))
    fx.fsync(flush)
    fx.background(TP, work)
    fx.background(None, [])
    fx.note("isr", partition=str(TP), size=2)
    fx.reply("k1", ANSWER)
    fx.disconnect("p1")
    fx.stopped()
    expected: list[Effect] = [
        Send("b1", ASK),
        Arm(("fetch", TP), 5, "mono"),
        Arm(("session", "b2"), 6, "wall"),
        Disarm(("fetch", TP)),
        Fsync(flush),
        Background(TP, work[0]),
        Background(TP, work[1]),
        Note("isr", (("partition", "orders-3"), ("size", 2))),
        Reply("k1", ANSWER),
        Disconnect("p1"),
        Stopped(),
    ]
    assert fx.drain() == expected
    assert fx.drain() == []


def test_what_was_drained_stays_as_it_was() -> None:
    fx = Effects()
    fx.stopped()
    first = fx.drain()
    fx.disconnect("p1")
    assert first == [Stopped()]
    assert fx.drain() == [Disconnect("p1")]


def test_a_handler_stops_only_where_it_is_asked_to() -> None:
    fx = Effects(yields=iter(["hw-advanced"]))
    assert not fx.stops_at("fetch-read", 1)
    assert fx.drain() == []
    assert fx.stops_at("hw-advanced", TP, 5)
    assert fx.drain() == [Yield("hw-advanced", (TP, 5))]
    assert fx.stops_at("hw-advanced"), "and there every time"
    assert not Effects().stops_at("hw-advanced")


def test_every_effect_is_a_value() -> None:
    kinds = get_args(Effect)
    assert {kind.__name__ for kind in kinds} <= set(effects.__all__)
    for kind in kinds:
        assert kind.__hash__ is not None
    assert hash(Background(TP, Work(1, "flush", (5,)))) == hash(
        Background(TP, Work(1, "flush", (5,)))
    )
    assert Send("b1", ASK) != Reply("b1", ASK)


# Names -----------------------------------------------------------------------------------------


def test_a_partition_is_shown_as_its_directory_and_is_not_its_namesake() -> None:
    assert str(TP) == "orders-3"
    assert TopicIdPartition("other", "orders", 3) != TP


def test_record_timestamps_are_whole_milliseconds_of_the_wall_clock() -> None:
    assert NOW.wall_ms == 2
    assert Now(0, -1).wall_ms == -1


# Lanes -----------------------------------------------------------------------------------------


def test_b46_heartbeats_have_a_lane_of_their_own() -> None:
    lanes = {kind.__name__: lane_of_message(plainest(kind)) for kind in MESSAGES.classes}
    of_lane = {lane: {name for name in lanes if lanes[name] is lane} for lane in Lane}
    assert of_lane[Lane.HEARTBEAT] == {
        "AlterPartitionResponse",
        "BrokerHeartbeatRequest",
        "BrokerHeartbeatResponse",
    }
    assert of_lane[Lane.FETCHERS] == {
        "FetchResponse",
        "ListOffsetsResponse",
        "OffsetsForLeaderEpochResponse",
    }
    assert of_lane[Lane.METADATA] == {"MetadataFetchResponse", "BrokerRegistrationResponse"}
    assert of_lane[Lane.BACKGROUND] == set()
    assert {"ProduceRequest", "FetchRequest", "AlterPartitionRequest"} <= of_lane[Lane.REQUESTS]


@pytest.mark.parametrize(
    ("key", "lane"),
    [
        (("heartbeat",), Lane.HEARTBEAT),
        (("heartbeat-timeout", 5), Lane.HEARTBEAT),
        (("session", "b1"), Lane.HEARTBEAT),
        (("fetch", "b1", 7), Lane.REQUESTS),
        (("fetch-backoff", "b1", TP), Lane.FETCHERS),
        (("fetch-timeout", 7), Lane.FETCHERS),
        (("metadata-timeout",), Lane.METADATA),
        (("register",), Lane.METADATA),
        (("checkpoint-hw",), Lane.BACKGROUND),
        (("checkpoint-offsets",), Lane.BACKGROUND),
        (("retention",), Lane.BACKGROUND),
        (("compaction",), Lane.BACKGROUND),
        (("expire-producers",), Lane.BACKGROUND),
        (("produce", TP, 1), Lane.REQUESTS),
        ((1,), Lane.REQUESTS),
    ],
)
def test_a_timer_is_of_the_lane_that_the_first_part_of_its_key_says(
    key: tuple[object, ...], lane: Lane
) -> None:
    assert lane_of_timer(key) is lane


@pytest.mark.parametrize("kind", ["flush", "persist", "epochs", "delete"])
def test_work_behind_a_call_is_the_background_lanes(kind: str) -> None:
    assert lane_of_work(Work(1, kind)) is Lane.BACKGROUND


# Failpoints, machines --------------------------------------------------------------------------


def test_every_failpoint_says_what_has_been_done_there() -> None:
    for point, what in FAILPOINTS.items():
        assert point == point.lower()
        assert " " not in point
        assert what.startswith(("the ", "an "))
    assert len(FAILPOINTS) >= 7


def test_correlation_ids_are_never_used_again_over_restarts() -> None:
    taken = [
        correlations.take()
        for correlations in map(Correlations, (0, 1, 2, 2**30))
        for _ in range(100)
    ]
    assert len(set(taken)) == len(taken)
    assert taken == sorted(taken)
    assert taken[0] > 0
    assert taken[-1] < 2**63
    assert Correlations(1).take() - Correlations(0).take() == 2**32


def test_a_machine_that_overrides_nothing_does_nothing() -> None:
    machine, fx = Machine(), Effects()
    machine.on_start(NOW, fx)
    machine.on_message(NOW, "b1", ASK, fx)
    machine.on_timer(NOW, ("fetch",), fx)
    machine.on_synced(NOW, token(), fx)
    machine.on_disconnected(NOW, "b1", fx)
    machine.on_background(NOW, TP, Work(1, "flush"), fx)
    machine.on_resume(NOW, "hw-advanced", (), fx)
    machine.on_stop(NOW, fx)
    assert fx.drain() == []
    assert machine.fields() == {}
    handlers = {name for name, _ in inspect.getmembers(Machine) if name.startswith("on_")}
    assert handlers == set(
        """on_start on_message on_timer on_synced on_disconnected on_background on_resume
        on_stop""".split()
    )
