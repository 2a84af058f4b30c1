"""What a broker directory keeps for all its logs: boundaries, checkpoints, names and topic ids."""

from __future__ import annotations

import pytest

from storage import LogConfig
from storage.errors import CorruptLog, DiskError, InvalidConfig
from storage.log_dir import TopicPartition
from storage.memdisk import MemDisk
from storage.state import checksum
from tests.storage.batches import one
from tests.storage.faults import FaultDisk
from tests.storage.test_log_dir import (
    ORDERS,
    PAYMENTS,
    ROOT,
    crash,
    filled,
    get,
    get_bytes,
    open_dir,
    put,
)

ID = "AAAAAAAAAAAAAAAAAAAAAQ"


@pytest.fixture
def disk() -> FaultDisk:
    return FaultDisk(MemDisk())


# Boundaries ------------------------------------------------------------------------------------


def test_boundaries_are_kafkas_container_with_six_fields_behind_the_name(disk: FaultDisk) -> None:
    """A log start above the durable end is flushed up to before it is written."""
    log_dir = open_dir(disk)
    log = filled(log_dir)
    log.flush()
    payments = filled(log_dir, "payments", 2)
    payments.raise_log_start_offset(1)
    payments.declare_gaps(9)
    size = log.size_bytes
    assert get(disk, "boundaries").splitlines() == [
        "0",
        "2",
        f"orders 0 0 {size} 3 0 0 {checksum([0, size, 3, 0, 0])}",
        f"payments 2 0 {size} 3 1 9 {checksum([0, size, 3, 1, 9])}",
    ]


def test_boundary_survives_a_crash(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log = filled(log_dir)
    log.flush()
    log.append(one())
    boundary = log.boundary
    crash(log_dir)
    log = open_dir(disk).open_log("orders", 0)
    assert (log.boundary, log.leo) == (boundary, 4)


@pytest.mark.parametrize("damage", ["missing", "0\n1\norders 0 0 1 1 0 0 1\n", "0\n1\norders 0\n"])
def test_without_boundaries_everything_may_have_been_durable(disk: FaultDisk, damage: str) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).flush()
    crash(log_dir)
    if damage == "missing":
        disk.unlink(ROOT / "boundaries")
    else:
        put(disk, "boundaries", damage)
    path = "orders-0/00000000000000000000.log"
    data = bytearray(get_bytes(disk, path))
    data[20] ^= 1
    put(disk, path, bytes(data))
    log_dir = open_dir(disk)
    with pytest.raises(CorruptLog):
        log_dir.open_log("orders", 0, verify="all")
    assert (log_dir.warnings != []) == (damage != "missing")


def test_new_partition_beside_unreadable_boundaries_can_be_begun(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    put(disk, "boundaries", "damaged")
    log_dir.close()
    log_dir = open_dir(disk)
    assert filled(log_dir, "payments", 2).leo == 3


def test_refused_log_can_be_salvaged_in_its_directory(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).flush()
    log_dir.close()
    path = "orders-0/00000000000000000000.log"
    data = bytearray(get_bytes(disk, path))
    data[-1] ^= 1
    put(disk, path, bytes(data))
    log_dir = open_dir(disk)
    with pytest.raises(CorruptLog) as caught:
        log_dir.open_log("orders", 0)
    log = log_dir.open_log("orders", 0, salvaging=caught.value)
    assert (log.leo, log.boundary.end_offset) == (2, 2)
    log.append(one())
    log_dir.close()
    assert open_dir(disk).open_log("orders", 0).leo == 3


# Checkpoints -----------------------------------------------------------------------------------


def test_checkpoints_are_kafkas_text(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log = filled(log_dir)
    filled(log_dir, "payments", 2)
    log.flush()
    log.raise_log_start_offset(2)
    log_dir.write_recovery_points()
    log_dir.write_log_starts()
    log_dir.write_high_watermarks({PAYMENTS: 1, ORDERS: 3})
    recovery, starts, marks = (
        get(disk, name)
        for name in (
            "recovery-point-offset-checkpoint",
            "log-start-offset-checkpoint",
            "replication-offset-checkpoint",
        )
    )
    assert recovery == "0\n2\norders 0 3\npayments 2 0\n"
    assert starts == "0\n2\norders 0 2\npayments 2 0\n"
    assert marks == "0\n2\norders 0 3\npayments 2 1\n"


def test_high_watermarks_not_named_keep_what_they_had(disk: FaultDisk) -> None:
    """KAFKA-769, 851, 858, 1647: written before every partition is known, it zeroed the others."""
    log_dir = open_dir(disk)
    log_dir.write_high_watermarks({ORDERS: 3, PAYMENTS: 7})
    log_dir.close()
    log_dir = open_dir(disk)
    assert log_dir.high_watermarks == {ORDERS: 3, PAYMENTS: 7}
    log_dir.write_high_watermarks({ORDERS: 4})
    log_dir.write_high_watermarks({})
    assert get(disk, "replication-offset-checkpoint") == "0\n2\norders 0 4\npayments 2 7\n"
    assert log_dir.high_watermarks == {ORDERS: 4, PAYMENTS: 7}


def test_high_watermark_that_could_not_be_written_is_not_remembered(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log_dir.write_high_watermarks({ORDERS: 3})
    disk.fail("rename")
    with pytest.raises(DiskError):
        log_dir.write_high_watermarks({ORDERS: 9})
    assert log_dir.high_watermarks == {ORDERS: 3}


def test_log_starts_of_logs_that_are_not_open_are_kept(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir).raise_log_start_offset(2)
    log_dir.close()
    log_dir = open_dir(disk)
    filled(log_dir, "payments", 2)
    log_dir.write_log_starts()
    assert get(disk, "log-start-offset-checkpoint") == "0\n2\norders 0 2\npayments 2 0\n"


def test_log_start_checkpoint_counts_on_open(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close()
    put(disk, "log-start-offset-checkpoint", "0\n1\norders 0 2\n")
    assert open_dir(disk).open_log("orders", 0).log_start_offset == 2


def test_log_start_checkpoint_is_lowered_before_the_log_is_cut(disk: FaultDisk) -> None:
    """A crash in between would leave a log start behind the log's end."""
    log_dir = open_dir(disk)
    log = filled(log_dir, count=5)
    log.flush()
    log.raise_log_start_offset(4)
    log_dir.write_log_starts()
    disk.calls.clear()
    log.truncate_to(2)
    names = [(call.operation, call.name) for call in disk.calls]
    lowered = names.index(("rename", "log-start-offset-checkpoint.tmp"))
    saved = names.index(("rename", "boundaries.tmp"))
    cut = names.index(("truncate", "00000000000000000000.log"))
    assert lowered < saved < cut
    assert get(disk, "log-start-offset-checkpoint") == "0\n1\norders 0 2\n"


@pytest.mark.parametrize("name", ["replication-offset-checkpoint", "log-start-offset-checkpoint"])
@pytest.mark.parametrize("text", ["1\n0\n", "0\n1\norders 0\n", "0\n1\norders x 5\n", "\xff"])
def test_unreadable_checkpoint_is_a_warning_and_empty(
    disk: FaultDisk, name: str, text: str
) -> None:
    log_dir = open_dir(disk)
    filled(log_dir)
    log_dir.close()
    put(disk, name, text.encode("latin-1"))
    log_dir = open_dir(disk)
    assert len(log_dir.warnings) == 1
    assert name in log_dir.warnings[0]
    assert log_dir.high_watermarks == {}
    assert log_dir.open_log("orders", 0).log_start_offset == 0


# Names and ids ---------------------------------------------------------------------------------


@pytest.mark.parametrize("topic", ["", ".", "..", "a/b", "a b", "é", "a\n", "a" * 250])
def test_topic_names_outside_kafkas_rules_are_refused(disk: FaultDisk, topic: str) -> None:
    log_dir = open_dir(disk)
    before = disk.listdir(ROOT)
    with pytest.raises(InvalidConfig, match="topic is"):
        log_dir.open_log(topic, 0)
    assert disk.listdir(ROOT) == before


@pytest.mark.parametrize("partition", [-1, 2**31])
def test_partitions_outside_31_bits_are_refused(disk: FaultDisk, partition: int) -> None:
    with pytest.raises(InvalidConfig, match=f"partition is {partition}"):
        open_dir(disk).open_log("orders", partition)


def test_longest_name_and_largest_partition_are_allowed() -> None:
    name = TopicPartition.checked("a" * 249, 2**31 - 1)
    assert name.directory_name == "a" * 249 + "-2147483647"


def test_partitions_are_the_directories_with_such_names(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    names = ["b-1-10", "b-1-9", "a.b_c-0", "orders-00", "orders-x", "orders", "-0", "x-2147483648"]
    for name in names:
        disk.mkdir(ROOT / name)
    put(disk, "file-0", "")
    found = [("a.b_c", 0), ("b-1", 9), ("b-1", 10)]
    assert log_dir.partitions() == found


def test_every_listed_partition_can_be_opened(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    for name in (".-0", "..-0", "orders-0", "...-1"):
        disk.mkdir(ROOT / name)
    for topic, partition in log_dir.partitions():
        log_dir.open_log(topic, partition)


def test_topic_id_is_kept_in_kafkas_partition_metadata(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    log_dir.open_log("orders", 0, topic_id=ID)
    assert get(disk, "orders-0/partition.metadata") == f"version: 0\ntopic_id: {ID}"
    assert log_dir.topic_id("orders", 0) == ID
    log_dir.close()
    log_dir = open_dir(disk)
    log_dir.open_log("orders", 0, topic_id=ID)
    assert log_dir.topic_id("orders", 0) == ID


def test_directory_of_another_topic_id_is_refused(disk: FaultDisk) -> None:
    """A topic that was deleted and created again must not get the old one's records."""
    log_dir = open_dir(disk)
    log_dir.open_log("orders", 0, topic_id=ID)
    log_dir.close()
    log_dir = open_dir(disk)
    with pytest.raises(InvalidConfig, match=f"belongs to topic id {ID}"):
        log_dir.open_log("orders", 0, topic_id="B" * 22)
    log_dir.open_log("orders", 0, topic_id=ID)


@pytest.mark.parametrize("topic_id", ["", "A" * 21, "A" * 23, "A" * 21 + "=", "A" * 21 + "\n"])
def test_topic_id_that_is_none_is_refused(disk: FaultDisk, topic_id: str) -> None:
    with pytest.raises(InvalidConfig, match="topic_id is"):
        open_dir(disk).open_log("orders", 0, topic_id=topic_id)


def test_topic_id_of_an_unknown_or_damaged_partition_is_none(disk: FaultDisk) -> None:
    log_dir = open_dir(disk)
    assert log_dir.topic_id("orders", 0) is None
    log_dir.open_log("orders", 0)
    for text in (b"", b"\xff", b"version: 1\ntopic_id: " + ID.encode(), b"version: 0\n"):
        put(disk, "orders-0/partition.metadata", text)
        assert log_dir.topic_id("orders", 0) is None


def test_log_of_the_directory_takes_its_config(disk: FaultDisk) -> None:
    config = LogConfig(segment_max_bytes=100)
    log = open_dir(disk).open_log("orders", 0, config, leader_epoch=5)
    assert (log.config, log.leader_epoch) == (config, 5)
