"""A broker towards its controller: from start to clean stop (PROTOCOL A16, A21, DECISIONS 2.14)."""

from __future__ import annotations

from pathlib import Path

import pytest
from attrs import evolve

from cluster.broker import Broker
from cluster.config import BrokerConfig
from cluster.effects import Arm, Disconnect, Effects, Reply, Send, Stopped
from cluster.errors import ErrorCode
from cluster.messages_control import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    MetadataFetchRequest,
    MetadataFetchResponse,
)
from cluster.messages_data import MetadataRequest
from cluster.names import Now
from cluster.records import METADATA_RECORDS, BrokerRecord, PartitionRecord, TopicRecord
from storage.errors import DiskError, LockHeld
from storage.log_dir import LogDir
from storage.memdisk import MemDisk
from tests.cluster.leader_tools import MEMBERS, Solo
from tests.cluster.scripted import ORDERS, TOPIC_ID
from tests.storage.faults import FaultDisk

INTERVAL_US = 2_000_000


class Alone:
    """A broker without anybody: the test calls handlers and looks at the effects."""

    def __init__(self, disk: MemDisk | FaultDisk | None = None, *, incarnation: int = 0) -> None:
        self.disk = disk or MemDisk()
        self.now_us = 1_000_000_000
        self.broker = Broker("b1", BrokerConfig(), self.disk, Path("/b1"), incarnation=incarnation)
        self.started = self.call("on_start")

    def call(self, handler: str, *args: object, yields: tuple[str, ...] = ()) -> list[object]:
        fx = Effects(yields=yields)
        getattr(self.broker, handler)(Now(self.now_us, self.now_us), *args, fx)
        return list(fx.drain())

    def register(self, epoch: int = 5) -> list[object]:
        number = sent(self.started, BrokerRegistrationRequest)[-1].correlation_id
        answer = BrokerRegistrationResponse(number, ErrorCode.NONE, epoch)
        return self.call("on_message", "c1", answer)


def sent(effects: list[object], kind: type) -> list[object]:  # type: ignore[type-arg]
    return [e.message for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def heartbeats(solo: Solo) -> list[BrokerHeartbeatRequest]:
    return [m for _, _, m in solo.router.delivered if isinstance(m, BrokerHeartbeatRequest)]


def registrations(solo: Solo) -> list[BrokerRegistrationRequest]:
    found = [m for _, _, m in solo.router.delivered if isinstance(m, BrokerRegistrationRequest)]
    return [m for m in found if m.broker_id == "b1"]


def beat(**changes: object) -> BrokerHeartbeatResponse:
    return evolve(BrokerHeartbeatResponse(0, ErrorCode.NONE, True, False), **changes)


# Registration ----------------------------------------------------------------------------------


def test_a16_registration_comes_before_anything_else() -> None:
    alone = Alone()
    messages = [effect.message for effect in alone.started if isinstance(effect, Send)]
    (request,) = messages
    assert isinstance(request, BrokerRegistrationRequest)
    assert (request.broker_id, request.incarnation_id) == ("b1", "b1.0")
    assert request.previous_broker_epoch == -1
    for timer in ("heartbeat", "metadata-timeout"):
        assert not [e for e in alone.started if isinstance(e, Arm) and e.key == (timer,)]


def test_a16_it_is_asked_again_until_there_is_an_answer_under_one_incarnation() -> None:
    alone = Alone()
    for _ in range(3):
        (again,) = sent(alone.call("on_timer", ("register",)), BrokerRegistrationRequest)
        assert again.incarnation_id == "b1.0"
        assert not sent(alone.call("on_disconnected", "c1"), BrokerRegistrationRequest)
    refused = BrokerRegistrationResponse(
        again.correlation_id, ErrorCode.DUPLICATE_BROKER_REGISTRATION
    )
    effects = alone.call("on_message", "c1", refused)
    assert not [e for e in effects if isinstance(e, Send)]
    assert alone.broker.core.broker_epoch == -1
    (again,) = sent(alone.call("on_timer", ("register",)), BrokerRegistrationRequest)
    accepted = BrokerRegistrationResponse(again.correlation_id, ErrorCode.NONE, 9)
    assert not alone.call("on_message", "b2", accepted), "only the controller registers"
    assert alone.call("on_message", "c1", accepted)
    assert alone.broker.core.broker_epoch == 9


def test_a16_a_controller_slower_than_the_retries_registers_all_the_same() -> None:
    alone = Alone()
    number = sent(alone.started, BrokerRegistrationRequest)[0].correlation_id
    alone.call("on_timer", ("register",))
    late = BrokerRegistrationResponse(number, ErrorCode.NONE, 9)
    assert alone.call("on_message", "c1", late)
    assert alone.broker.core.broker_epoch == 9
    assert alone.call("on_message", "c1", late) == [], "given twice"


def test_a16_metadata_before_the_registration_is_not_taken() -> None:
    alone = Alone()
    record = METADATA_RECORDS.encode(TopicRecord(TOPIC_ID, "orders"))
    for number in (0, 1, 2):
        alone.call("on_message", "c1", MetadataFetchResponse(number, 0, 1, False, (record,)))
    assert alone.broker.core.image.end_offset == 0


def test_a16_after_the_registration_metadata_is_pulled_from_0_and_heartbeats_begin() -> None:
    alone = Alone()
    effects = alone.register()
    assert [m.fetch_offset for m in sent(effects, MetadataFetchRequest)] == [0]
    (heartbeat,) = sent(effects, BrokerHeartbeatRequest)
    assert (heartbeat.broker_epoch, heartbeat.current_metadata_offset) == (5, 0)
    assert not heartbeat.want_shut_down


def test_a16_each_start_has_its_own_incarnation_and_correlation_ids() -> None:
    first, second = Alone(), Alone(incarnation=1)
    (one,) = sent(first.started, BrokerRegistrationRequest)
    (two,) = sent(second.started, BrokerRegistrationRequest)
    assert (one.incarnation_id, two.incarnation_id) == ("b1.0", "b1.1")
    assert one.correlation_id >> 32 == 0 < two.correlation_id >> 32


# Listeners -------------------------------------------------------------------------------------


def test_a16_listeners_are_closed_until_the_first_unfencing_and_open_from_then_on() -> None:
    solo = Solo(leads=False)
    solo.controller.unfences = False
    solo.restart()
    solo.lead("b1", ("b1",), replicas=("b1",))
    assert solo.ask("b1", MetadataRequest(1, None)) is None
    assert ("b1", "k1") in solo.router.disconnected
    assert solo.leo_now == 0
    solo.controller.unfences = True
    solo.router.run_for(2_000)
    assert solo.ask("b1", MetadataRequest(2, None)) is not None
    solo.controller.unfences = False
    solo.router.run_for(4_000)
    assert solo.ask("b1", MetadataRequest(3, None)) is not None, "fenced, but open"


def test_a16_requests_that_no_broker_answers_close_the_connection() -> None:
    solo = Solo()
    solo.deliver("k1", BrokerRegistrationRequest(1, "b7", "b7.0", -1))
    assert solo.router.disconnected == [("b1", "k1")]


# Heartbeats ------------------------------------------------------------------------------------


def test_a16_the_next_heartbeat_is_an_interval_after_the_answer() -> None:
    alone = Alone()
    (heartbeat,) = sent(alone.register(), BrokerHeartbeatRequest)
    assert not sent(alone.call("on_timer", ("heartbeat",)), BrokerHeartbeatRequest)
    alone.now_us += 1_500_000
    effects = alone.call("on_message", "c1", beat(correlation_id=heartbeat.correlation_id))
    assert Arm(("heartbeat",), alone.now_us + INTERVAL_US) in effects
    assert alone.call("on_message", "c1", beat(correlation_id=heartbeat.correlation_id)) == []


def test_a16_a_heartbeat_without_answer_is_sent_again_within_the_session() -> None:
    alone = Alone()
    effects = alone.register()
    (timeout,) = [e for e in effects if isinstance(e, Arm) and e.key == ("heartbeat-timeout",)]
    assert timeout.at_us - alone.now_us < 9_000_000
    assert sent(alone.call("on_timer", ("heartbeat-timeout",)), BrokerHeartbeatRequest)


def test_a16_heartbeats_tell_what_the_replicas_follow() -> None:
    solo = Solo()
    solo.router.yields["b1"] = ("metadata-applied",)
    before = solo.broker("b1").core.applied_offset
    solo.lead("b2")
    solo.router.run_for(2_500)
    assert heartbeats(solo)[-1].current_metadata_offset == before
    solo.router.yields.clear()
    solo.router.resume()
    solo.router.run_for(2_500)
    assert heartbeats(solo)[-1].current_metadata_offset == len(solo.controller.records)


@pytest.mark.parametrize(
    "error", [ErrorCode.STALE_BROKER_EPOCH, ErrorCode.BROKER_ID_NOT_REGISTERED]
)
def test_a16_a_registration_that_is_not_known_any_more_is_made_anew(error: ErrorCode) -> None:
    alone = Alone()
    (heartbeat,) = sent(alone.register(), BrokerHeartbeatRequest)
    answer = beat(correlation_id=heartbeat.correlation_id, error_code=error)
    effects = alone.call("on_message", "c1", answer)
    (request,) = sent(effects, BrokerRegistrationRequest)
    assert request.incarnation_id == "b1.0"
    assert request.previous_broker_epoch == 5, "this process has lost nothing since"
    effects = alone.call(
        "on_message", "c1", BrokerRegistrationResponse(request.correlation_id, ErrorCode.NONE, 12)
    )
    assert alone.broker.core.broker_epoch == 12
    assert sent(effects, MetadataFetchRequest)


def test_a16_a_controller_that_is_gone_is_asked_again_in_an_interval() -> None:
    alone = Alone()
    alone.register()
    effects = alone.call("on_disconnected", "c1")
    assert not [e for e in effects if isinstance(e, Send)]
    armed = {e.key[0]: e.at_us - alone.now_us for e in effects if isinstance(e, Arm)}
    assert armed == {"metadata-timeout": INTERVAL_US, "heartbeat": INTERVAL_US}


# Metadata --------------------------------------------------------------------------------------


def test_a16_records_that_do_not_follow_on_the_image_are_dropped_and_asked_for_later() -> None:
    alone = Alone()
    (pull,) = sent(alone.register(), MetadataFetchRequest)
    record = METADATA_RECORDS.encode(TopicRecord(TOPIC_ID, "orders"))
    for base, records in ((3, (record,)), (0, ()), (0, (b"\xffgarbage",))):
        answer = MetadataFetchResponse(pull.correlation_id, base, base + 1, False, records)
        effects = alone.call("on_message", "c1", answer)
        assert not [e for e in effects if isinstance(e, Send)], "no endless loop at one instant"
        assert alone.broker.core.image.end_offset == 0
        (pull,) = sent(alone.call("on_timer", ("metadata-timeout",)), MetadataFetchRequest)


def history(*isrs: tuple[str, ...]) -> list[object]:
    """A topic, and states of its partition that b1 leads in an epoch each."""
    return [
        TopicRecord(TOPIC_ID, "orders"),
        *(PartitionRecord(ORDERS, MEMBERS, isr, "b1", n, n) for n, isr in enumerate(isrs)),
    ]


def test_a16_what_the_log_says_of_the_past_gives_no_roles() -> None:
    """Replayed in pieces, history would have b1 lead again, alone, and commit what it has."""
    alone = Alone()
    (pull,) = sent(alone.register(epoch=4), MetadataFetchRequest)
    records = [
        *history(("b1",), MEMBERS, ("b1",)),
        BrokerRecord("b1", "b1.0", 4, True, False),
        PartitionRecord(ORDERS, MEMBERS, ("b2",), "b2", 3, 3),
    ]
    for base, record in enumerate(records):
        data = (METADATA_RECORDS.encode(record),)
        answer = MetadataFetchResponse(pull.correlation_id, base, base + 1, False, data)
        effects = alone.call("on_message", "c1", answer)
        (pull,) = sent(effects, MetadataFetchRequest)
        replica = alone.broker.core.replicas.get(ORDERS)
        if base < 4:
            assert replica is None
            assert alone.broker.core.applied_offset == 0
        elif base == 4:
            assert replica is not None
            assert replica.role.name == "leader", "as of its own registration"
    assert replica is not None
    assert replica.role.name == "follower"


# Stopping --------------------------------------------------------------------------------------


def marker(disk: MemDisk) -> int | None:
    """The broker epoch of the clean-shutdown marker, None without one."""
    return LogDir.open(Path("/b1"), disk=disk.copy()).previous_broker_epoch


def test_a21_a_controlled_shutdown_waits_for_the_controller_and_leaves_a_marker() -> None:
    solo = Solo()
    solo.controller.lets_go = False
    solo.produce("b1", b"x", acks=1)
    epoch = solo.broker("b1").core.broker_epoch
    solo.router.call("b1", "on_stop")
    solo.router.settle()
    solo.router.run_for(5_000)
    assert heartbeats(solo)[-1].want_shut_down
    assert solo.router.stopped == set()
    assert solo.produce_raw(b"") is ErrorCode.CORRUPT_MESSAGE, "it serves until it may go"
    solo.controller.lets_go = True
    solo.router.run_for(2_500)
    assert solo.router.stopped == {"b1"}
    assert marker(solo.disks["b1"]) == epoch
    solo.start("b1")
    assert registrations(solo)[-1].previous_broker_epoch == epoch
    assert solo.replica.opened.report.is_clean


def test_a21_the_wish_to_stop_is_told_as_soon_as_an_answer_is_there() -> None:
    alone = Alone()
    (heartbeat,) = sent(alone.register(), BrokerHeartbeatRequest)
    assert not sent(alone.call("on_stop"), BrokerHeartbeatRequest), "one is under way"
    effects = alone.call("on_message", "c1", beat(correlation_id=heartbeat.correlation_id))
    (wish,) = sent(effects, BrokerHeartbeatRequest)
    assert wish.want_shut_down
    assert alone.call("on_stop") == [], "told once"


def test_a21_without_a_controller_it_stops_after_its_timeout() -> None:
    solo = Solo()
    epoch = solo.broker("b1").core.broker_epoch
    solo.router.is_held = lambda src, dst, message: dst == "c1"
    solo.router.call("b1", "on_stop")
    solo.router.run_for(29_900)
    assert solo.router.stopped == set()
    solo.router.run_for(200)
    assert solo.router.stopped == {"b1"}
    assert marker(solo.disks["b1"]) == epoch


def test_a21_a_broker_that_never_registered_stops_at_once_and_keeps_its_past() -> None:
    disk = MemDisk()
    LogDir.open(Path("/b1"), disk=disk).close(broker_epoch=7)
    alone = Alone(disk)
    assert alone.call("on_stop")[-1] == Stopped()
    assert marker(disk) == 7, "it has done nothing since"


def test_a21_after_a_kill_there_is_no_marker() -> None:
    solo = Solo()
    solo.restart()
    assert [r.previous_broker_epoch for r in registrations(solo)] == [-1, -1]


def test_a21_the_marker_comes_after_logs_and_checkpoints() -> None:
    disk = FaultDisk(MemDisk())
    solo = Solo(disk=disk, replicas=("b1",))
    solo.produce("b1", b"x")
    disk.calls.clear()
    solo.router.call("b1", "on_stop")
    solo.router.settle()
    renamed = [call.args for call in disk.calls if call.operation == "rename"]
    assert renamed[-1] == ".kafka_cleanshutdown"
    assert {"replication-offset-checkpoint", "recovery-point-offset-checkpoint"} <= set(renamed)
    assert "fsync" in disk.operations(".log")


@pytest.mark.parametrize("suffix", ["replication-offset-checkpoint", ".log", "cleanshutdown.tmp"])
def test_a21_a_stop_whose_disk_fails_leaves_no_marker(suffix: str) -> None:
    disk = FaultDisk(MemDisk())
    solo = Solo(disk=disk, replicas=("b1",))
    solo.produce("b1", b"x")
    disk.fail("rename" if suffix.startswith("repl") else "fsync", suffix=suffix, times=None)
    solo.router.call("b1", "on_stop")
    solo.router.settle()
    assert solo.router.stopped == {"b1"}
    assert marker(disk.inner) is None  # type: ignore[arg-type]


def test_a21_a_stopped_broker_does_nothing_more() -> None:
    solo = Solo(replicas=("b1",))
    solo.router.call("b1", "on_stop")
    solo.router.settle()
    for handler, *args in (
        ("on_message", "k1", MetadataRequest(1, None)),
        ("on_timer", ("heartbeat",)),
        ("on_disconnected", "c1"),
        ("on_stop",),
        ("on_resume", "registered", ()),
    ):
        assert solo.call(handler, *args) == []


def test_a21_a_start_that_fails_gives_the_directory_back() -> None:
    disk = FaultDisk(MemDisk())
    solo = Solo(disk=disk)
    solo.produce("b1", b"x", acks=1)
    solo.kill()
    disk = solo.disks["b1"]
    assert isinstance(disk, FaultDisk)
    disk.fail("open", suffix=".log")
    with pytest.raises(DiskError):
        Alone(disk)
    try:
        LogDir.open(Path("/b1"), disk=disk).abandon()
    except LockHeld:
        pytest.fail("the directory is still locked")


def test_a21_effects_behind_stopped_are_dropped() -> None:
    fx = Effects(yields=("hw-advanced",))
    fx.send("b2", MetadataRequest(1, None))
    assert fx.stops_at("hw-advanced")
    fx.stopped()
    fx.reply("k1", MetadataRequest(2, None))
    fx.disconnect("k1")
    effects = fx.drain()
    assert [type(e) for e in effects] == [Send, Stopped]
    fx.disconnect("k1")
    assert fx.drain() == [Disconnect("k1")]
    assert not [e for e in effects if isinstance(e, Reply)]
