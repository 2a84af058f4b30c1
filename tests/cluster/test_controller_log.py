"""The metadata log: durable before told, restarts, snapshots, fetches, failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster import messages_control as control
from cluster.config import ControllerConfig
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.metadata import MetadataImage
from cluster.metadata_log import SNAPSHOT_FILE
from storage.config import LogConfig
from storage.errors import CorruptCheckpoint, CorruptData, CorruptLog
from storage.memdisk import MemDisk
from tests.cluster.controllers import PATH, Rig, apply_fetched, check_well_formed, shape
from tests.storage.faults import FaultDisk
from tests.storage.sync_disk import SyncDisk


def fetch(rig: Rig, offset: int, broker: str = "b1") -> Any:
    return rig.ask(broker, control.MetadataFetchRequest, broker_id=broker, fetch_offset=offset)


def content(disk: MemDisk, path: Path) -> bytes:
    file = disk.open(path, write=False)
    try:
        return file.read_at(0, file.size())
    finally:
        file.close()


def rewrite(disk: MemDisk, path: Path, data: bytes) -> None:
    file = disk.open(path, create=True)
    file.truncate(0)
    file.write_at(0, data)
    file.close()


# Told once durable -----------------------------------------------------------------------------


@pytest.mark.parametrize("is_on", [True, False])
def test_2_2_nothing_is_told_before_it_is_durable(is_on: bool) -> None:
    disk = SyncDisk(MemDisk())
    rig = Rig(disk, holds_sync=True, guards=Guards(commit_after_fsync=is_on))
    rig.sync()
    answer = rig.register("b1")
    assert (answer is None) is is_on
    told = fetch(rig, 0, "b2")
    assert (told is None) is is_on
    # A power cut now: what was told must be what the next life has.
    after = rig.again(disk.image(), guards=Guards(), holds_sync=False)
    assert after.machine.image.end_offset == 0
    other = after.register("b2")
    if not is_on:
        # The harm: two registrations with one broker epoch, and a broker ahead of the controller.
        assert other.broker_epoch == answer.broker_epoch
        assert told.end_offset > 0


def test_2_2_answers_leave_in_order_when_the_disk_has_them() -> None:
    rig = Rig(holds_sync=True)
    rig.sync()
    rig.register("b1")
    rig.register("b2")
    rig.heartbeat("b3")
    rig.ask("c", control.OffsetFetchRequest, group="g", partitions=())
    assert rig.replies == []
    rig.run("on_synced", rig.tokens.pop(0))
    # One flush at a time: the second registration came behind the first one's.
    assert [to for to, _ in rig.replies] == ["b1"]
    rig.sync()
    assert [to for to, _ in rig.replies] == ["b1", "b2", "b3", "c"]


def test_2_2_an_answer_of_the_state_waits_for_what_it_rests_on() -> None:
    rig = Rig(holds_sync=True)
    rig.sync()
    rig.register("b1")
    # Refused because of a record that a power cut could still take.
    assert rig.register("b1", "i2") is None
    rig.sync()
    codes = [message.error_code for _, message in rig.replies]  # type: ignore[attr-defined]
    assert codes == [ErrorCode.NONE, ErrorCode.DUPLICATE_BROKER_REGISTRATION]


def test_2_2_too_many_answers_that_wait_are_not_given() -> None:
    rig = Rig(holds_sync=True, config=ControllerConfig(parked_requests_max=1))
    rig.register("b1")
    rig.register("b2")
    assert rig.notes[-1] == "request-dropped"
    assert list(rig.machine.image.brokers) == ["b1"]
    rig.holds_sync = False
    rig.sync()
    assert rig.register("b2").error_code is ErrorCode.NONE


def test_2_2_a_handlers_decisions_are_one_batch() -> None:
    rig = Rig()
    rig.join("b1", "b2", "b3")
    rig.create("orders", ("b1", "b2"), ("b2", "b3"), ("b3", "b1"))
    ends = _batch_ends(rig)
    assert ends[-1] - ends[-2] == 4


def _batch_ends(rig: Rig) -> list[int]:
    log = rig.machine._log
    assert log is not None
    return [batch.next_offset for batch in log._log.all_batches()]


def test_2_2_a_batch_that_would_be_too_large_is_split() -> None:
    rig = Rig(config=ControllerConfig(log=LogConfig(max_batch_bytes=60)))
    rig.join("b1", "b2", "b3")
    before = len(_batch_ends(rig))
    wanted = control.CreateTopicsTopic("orders", 8_000, 3)
    answer = rig.ask("admin", control.CreateTopicsRequest, topics=(wanted,))
    assert answer.topics[0].error_code is ErrorCode.NONE
    assert len(_batch_ends(rig)) - before == 2
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    assert again.machine.image.to_records() == rig.machine.image.to_records()


def test_2_2_an_fsync_that_nobody_waits_for_is_passed_over() -> None:
    rig = Rig(holds_sync=True)
    rig.register("b1")
    token = rig.tokens[0]
    rig.sync()
    said = len(rig.replies)
    rig.register("b2")
    rig.run("on_synced", token)
    assert len(rig.replies) == said
    assert rig.machine.is_running


# Restarts --------------------------------------------------------------------------------------


def busy(disk: Any = None, **kwargs: Any) -> tuple[Rig, Any]:
    rig = Rig(disk, **kwargs)
    rig.join("b1", "b2", "b3")
    partition = rig.create("orders", ("b1", "b2", "b3"))[0]
    rig.silence("b1")
    return rig, partition


def test_a16_a_controller_that_comes_back_has_everything_and_restarts_all_sessions() -> None:
    rig, partition = busy()
    again = rig.again(rig.disk.copy(), mono_us=5)  # type: ignore[attr-defined]
    assert again.machine.image.to_records() == rig.machine.image.to_records()
    sessions = {key: at for key, at in again.timers.items() if key[0] == "session"}
    assert sessions == {("session", "b2"): 9_000_005, ("session", "b3"): 9_000_005}
    again.silence("b2")
    record = again.partition(partition)
    assert (record.leader, record.leader_epoch) == ("b3", 2)


def test_a16_a_broker_that_was_fenced_when_the_controller_fell_may_register_at_once() -> None:
    rig, _ = busy()
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    assert again.register("b1", "i2").error_code is ErrorCode.NONE
    assert again.register("b2", "i2").error_code is ErrorCode.DUPLICATE_BROKER_REGISTRATION


def test_a16_a_leaving_broker_gets_its_leave_after_a_restart() -> None:
    rig, _ = busy()
    rig.heartbeat("b2", want_shut_down=True)
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    assert not again.heartbeat("b2", want_shut_down=True).should_shut_down
    again.heartbeat("b3")
    assert again.heartbeat("b2", want_shut_down=True).should_shut_down


@pytest.mark.parametrize("is_power_cut", [True, False])
def test_2_2_a_decision_that_is_not_durable_was_never_told(is_power_cut: bool) -> None:
    disk = SyncDisk(MemDisk())
    rig, partition = busy(disk)
    told = rig.machine.image.copy()
    rig.holds_sync = True
    said = len(rig.replies)
    rig.heartbeat("b2", want_fence=True)
    assert rig.partition(partition).leader == "b3"
    assert len(rig.replies) == said
    next_disk = disk.image() if is_power_cut else disk.inner.copy()  # type: ignore[attr-defined]
    again = rig.again(next_disk)
    expected = told if is_power_cut else rig.machine.image
    assert again.machine.image.to_records() == expected.to_records()
    assert again.machine.committed_image.end_offset == again.machine.image.end_offset


def test_2_2_what_a_process_crash_left_is_flushed_before_it_is_told() -> None:
    disk = SyncDisk(MemDisk())
    rig = Rig(disk, holds_sync=True)
    rig.register("b1")
    again = rig.again(disk.inner.copy(), holds_sync=True)  # type: ignore[attr-defined]
    assert fetch(again, 0) is None
    again.sync()
    _, response = again.replies[-1]
    assert response.end_offset == 1  # type: ignore[attr-defined]


def test_2_2_a_clean_stop_makes_everything_durable_and_says_it() -> None:
    disk = SyncDisk(MemDisk())
    rig = Rig(disk, holds_sync=True)
    rig.register("b1")
    fetch(rig, 0, "b9")
    rig.run("on_stop")
    assert rig.is_stopped
    assert [to for to, _ in rig.replies] == ["b1", "b9"]
    assert not rig.machine.is_running
    assert rig.register("b2") is None
    assert list(rig.again(disk.image()).machine.image.brokers) == ["b1"]


def test_a16_a_split_decision_is_repaired_at_start() -> None:
    rig, partition = busy()
    record = rig.machine.image.brokers["b2"]
    log = rig.machine._log
    assert log is not None
    # The first half of a decision, as a crash between two batches would leave it.
    log.append([type(record)("b2", "i1", record.broker_epoch, True, False)], 0)
    again = rig.again(rig.disk.copy())  # type: ignore[attr-defined]
    assert shape(again.partition(partition)) == ("b3", ("b3",), ())
    check_well_formed(again.machine.image, elr=False)


# Damage and failures ---------------------------------------------------------------------------


def test_2_2_a_damaged_metadata_log_refuses_to_start() -> None:
    rig, _ = busy()
    rig.run("on_stop")
    disk = rig.disk.copy()  # type: ignore[attr-defined]
    path = PATH / "00000000000000000000.log"
    data = bytearray(content(disk, path))
    data[60] ^= 1
    rewrite(disk, path, bytes(data))
    rewrite(disk, PATH / "seal", b"")
    with pytest.raises(CorruptData):
        rig.again(disk)


def test_2_2_bytes_that_are_no_metadata_record_refuse_to_start() -> None:
    from storage.batch import Record, RecordBatch
    from storage.partition_log import PartitionLog

    disk = MemDisk()
    log = PartitionLog.open(PATH, disk=disk)
    log.append(RecordBatch.unassigned([Record(None, b"\xff\xff", 0)]))
    log.close()
    with pytest.raises(CorruptLog, match="record 0"):
        Rig(disk)
    # The files were released.
    PartitionLog.open(PATH, disk=disk).close()


@pytest.mark.parametrize("operation", ["write_at", "fsync"])
def test_2_2_a_disk_that_fails_ends_the_controller_in_silence(operation: str) -> None:
    disk = FaultDisk(MemDisk())
    rig, _ = busy(disk)
    said = len(rig.replies)
    disk.fail(operation, suffix=".log")
    assert rig.register("b4") is None
    assert rig.is_stopped
    assert rig.notes[-1] == "controller-failed"
    assert len(rig.replies) == said
    assert rig.heartbeat("b2") is None
    rig.advance(60_000)
    assert len(rig.replies) == said
    assert rig.machine.fields()["is_running"] is False


def test_2_2_background_work_that_fails_costs_a_note_only() -> None:
    disk = FaultDisk(MemDisk())
    rig = Rig(disk)
    disk.fail("rename", suffix="boundary")
    rig.register("b1")
    assert "metadata-work-failed" in rig.notes
    assert rig.register("b2").error_code is ErrorCode.NONE


# Metadata fetches ------------------------------------------------------------------------------


def test_2_13_a_fetch_waits_for_something_behind_its_offset() -> None:
    rig = Rig()
    assert fetch(rig, 0) is None
    rig.register("b1")
    response = rig.replies[-1][1]
    assert isinstance(response, control.MetadataFetchResponse)
    assert (response.base_offset, response.end_offset, response.is_snapshot) == (0, 1, False)
    image = apply_fetched(MetadataImage(), response)
    assert image.to_records() == rig.machine.image.to_records()


def test_2_13_each_node_has_one_fetch_and_the_newest_counts() -> None:
    rig = Rig()
    first = control.MetadataFetchRequest(rig.take_id("b1"), "b1", 0)
    rig.run("on_message", "b1", first)
    second = control.MetadataFetchRequest(rig.take_id("b1"), "b1", 0)
    rig.run("on_message", "b1", second)
    rig.run("on_message", "b1", first)
    rig.register("b2")
    fetched = [
        message.correlation_id
        for _, message in rig.replies
        if isinstance(message, control.MetadataFetchResponse)
    ]
    assert fetched == [second.correlation_id]


def test_2_13_a_fetch_beyond_the_bound_is_answered_empty() -> None:
    rig = Rig(config=ControllerConfig(parked_requests_max=1))
    assert fetch(rig, 0, "b1") is None
    assert fetch(rig, 0, "b2").records == ()
    assert fetch(rig, 0, "b1") is None


def test_2_13_a_fetch_of_a_node_that_is_gone_is_forgotten() -> None:
    rig = Rig()
    fetch(rig, 0)
    rig.run("on_disconnected", "b1")
    rig.register("b2")
    assert [to for to, _ in rig.replies] == ["b2"]


@pytest.mark.parametrize("offset", [-5, 10**9])
def test_2_13_an_offset_that_the_log_does_not_have_gets_a_snapshot(offset: int) -> None:
    rig, _ = busy()
    response = fetch(rig, offset)
    assert response.is_snapshot
    image = apply_fetched(MetadataImage(), response)
    assert image.to_records() == rig.machine.image.to_records()
    assert image.end_offset == rig.machine.image.end_offset


# Snapshots -------------------------------------------------------------------------------------

SNAPSHOTS = ControllerConfig(metadata_snapshot_records=5)


def test_2_13_the_log_is_cut_behind_a_durable_snapshot() -> None:
    disk = SyncDisk(MemDisk())
    rig, partition = busy(disk, config=SNAPSHOTS)
    fields = rig.machine.fields()
    assert 0 < fields["log_start"] <= fields["committed_end"]
    response = fetch(rig, 0)
    assert response.is_snapshot
    image = apply_fetched(MetadataImage(), response)
    assert image.end_offset == rig.machine.image.end_offset
    assert image.to_records() == rig.machine.image.to_records()
    for image_of in (disk.image(), disk.inner.copy()):  # type: ignore[attr-defined]
        again = rig.again(image_of)
        assert again.machine.image.to_records() == rig.machine.image.to_records()
        again.silence("b2")
        assert again.partition(partition).leader_epoch == 2


def test_2_13_a_fetch_at_the_cut_gets_records_and_below_it_a_snapshot() -> None:
    rig, _ = busy(config=SNAPSHOTS)
    start = rig.machine.fields()["log_start"]
    rig.register("b4")
    if rig.machine.fields()["log_start"] == start:
        assert not fetch(rig, start, "b8").is_snapshot
    assert fetch(rig, start - 1, "b9").is_snapshot


def test_2_13_old_segments_of_the_log_go() -> None:
    rig = Rig(config=SNAPSHOTS)
    for number in range(40):
        rig.register(f"b{number}")
    segments = [name for name in rig.disk.listdir(PATH) if name.endswith(".log")]
    assert len(segments) <= 3
    assert min(segments) > "00000000000000000030.log"


def test_2_13_a_cut_at_any_moment_of_a_snapshot_loses_nothing() -> None:
    """A power cut behind each durable step: copies of what is durable at every fsync."""
    images: list[MemDisk] = []

    class Watched(SyncDisk):
        def fsync_dir(self, path: Path) -> None:
            super().fsync_dir(path)
            images.append(self.image())

    rig, _ = busy(Watched(MemDisk()), config=SNAPSHOTS)
    assert len(images) > 10
    known = 0
    for image in images:
        if image.stat(PATH).kind.name == "MISSING":
            continue
        again = rig.again(image)
        assert again.machine.image.end_offset >= known
        known = again.machine.image.end_offset
        check_well_formed(again.machine.image, elr=False)


@pytest.mark.parametrize("change", ["missing", "flipped", "short", "version"])
def test_2_13_a_snapshot_that_cannot_be_read_refuses_to_start(change: str) -> None:
    rig, _ = busy(config=SNAPSHOTS)
    disk = rig.disk.copy()  # type: ignore[attr-defined]
    path = PATH / SNAPSHOT_FILE
    data = content(disk, path)
    if change == "missing":
        disk.unlink(path)
    else:
        changed = {
            "flipped": data[:30] + bytes([data[30] ^ 1]) + data[31:],
            "short": data[:3],
            "version": b"LFMS\0\0\0\2" + data[8:],
        }
        rewrite(disk, path, changed[change])
    with pytest.raises(CorruptLog if change == "missing" else CorruptCheckpoint):
        rig.again(disk)


def test_2_13_a_snapshot_ahead_of_the_log_refuses_to_start() -> None:
    rig, _ = busy(config=SNAPSHOTS)
    snapshot = content(rig.disk, PATH / SNAPSHOT_FILE)  # type: ignore[arg-type]
    disk = MemDisk()
    Rig(disk).run("on_stop")
    rewrite(disk, PATH / SNAPSHOT_FILE, snapshot)
    with pytest.raises(CorruptCheckpoint, match="it ends at"):
        rig.again(disk)


@pytest.mark.parametrize("is_on", [True, False])
def test_a9_a_snapshot_is_synced_before_it_gets_its_name(is_on: bool) -> None:
    disk = SyncDisk(MemDisk())
    rig, _ = busy(disk, config=SNAPSHOTS, guards=Guards(fsync_before_rename=is_on))
    image = disk.image()
    # Without the guard a power cut leaves the name and no bytes, and the log is cut already.
    assert (content(image, PATH / SNAPSHOT_FILE) != b"") is is_on
    if is_on:
        assert rig.again(image).machine.image.to_records() == rig.machine.image.to_records()
    else:
        with pytest.raises(CorruptCheckpoint):
            rig.again(image)


# What others see -------------------------------------------------------------------------------


def test_2_15_fields_say_what_was_decided_and_how_much_of_it_is_durable() -> None:
    rig, _ = busy()
    fields = rig.machine.fields()
    assert fields["orders-0/leader"] == "b2"
    assert fields["orders-0/isr"] == ("b2", "b3")
    assert (fields["orders-0/leader_epoch"], fields["orders-0/partition_epoch"]) == (1, 1)
    assert (fields["b1/fenced"], fields["b2/fenced"]) == (True, False)
    assert fields["b2/broker_epoch"] == rig.epochs["b2"]
    assert fields["committed_end"] == fields["log_end"] == rig.machine.image.end_offset
    assert rig.machine.fields() is fields
    rig.holds_sync = True
    rig.heartbeat("b2", want_fence=True)
    later = rig.machine.fields()
    assert later["orders-0/leader"] == "b3"
    assert later["committed_end"] < later["log_end"]


def test_2_15_elections_are_noted_as_clean_or_unclean() -> None:
    rig, partition = busy()
    assert rig.notes.count("leader-elected") == 1
    rig.elect(partition, "UNCLEAN", "b3")
    assert rig.notes.count("leader-elected") == 2


def test_2_0_what_is_no_request_for_a_controller_is_passed_over() -> None:
    rig, _ = busy()
    before = rig.machine.fields()
    said = len(rig.replies)
    rig.run("on_message", "b1", control.BrokerHeartbeatResponse(1, ErrorCode.NONE))
    rig.run("on_timer", ("nothing",))
    rig.run("on_disconnected", "nobody")
    assert rig.machine.fields() == before
    assert len(rig.replies) == said


def test_2_0_before_its_start_and_after_its_stop_it_does_nothing() -> None:
    rig = Rig(starts=False)
    assert rig.register("b1") is None
    rig.run("on_stop")
    rig.run("on_timer", ("unclean",))
    assert rig.machine.fields()["is_running"] is False
