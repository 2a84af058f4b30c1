"""Producer snapshots: the documented bytes, any bytes at all, and the files of a directory.

Hostile bytes carry a right checksum wherever that is possible: a wrong one hides every other check.
"""

from __future__ import annotations

import re
from pathlib import Path
from struct import pack
from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import producer_snapshots
from storage.errors import CorruptCheckpoint, DiskError, FsyncFailed
from storage.memdisk import MemDisk
from storage.producer_snapshots import SnapshotFiles, decode_snapshot, encode_snapshot
from storage.producer_state import ProducerBatch, ProducerEntry
from tests.storage.faults import Call, FaultDisk

README = (Path(__file__).parents[2] / "storage" / "README.md").read_text()
PATH = Path("/log/00000000000000000102.snapshot")
LAST = 2**31 - 1
EXAMPLE = {
    7: ProducerEntry(
        0,
        1_001,
        (ProducerBatch(LAST - 1, 1, 96, 99, 1_000), ProducerBatch(2, 3, 100, 101, 1_001)),
    ),
    42: ProducerEntry(1, 2_000, ()),
}


def sealed(body: bytes, version: int = 1) -> bytes:
    """A snapshot file with this body and the checksum that belongs to it."""
    return pack(">HI", version, crc32(body)) + body


def head(count: int, offset: int = 102) -> bytes:
    return pack(">qI", offset, count)


def producer(batches: int = 0, *, number: int = 7, epoch: int = 0, time: int = 5) -> bytes:
    return pack(">qiqB", number, epoch, time, batches)


def batch(first: int = 0, base: int = 10, delta: int = 0, time: int = 5) -> bytes:
    return pack(">iqiq", first, base, delta, time)


def refusal(data: bytes, offset: int = 102) -> str:
    with pytest.raises(CorruptCheckpoint) as caught:
        decode_snapshot(PATH, data, offset)
    assert (caught.value.path, caught.value.line) == (PATH, 0)
    return caught.value.reason


# Bytes -----------------------------------------------------------------------------------------


def test_snapshot_in_readme_decodes_to_what_it_says() -> None:
    (block,) = re.findall(r"```snapshot\n(.*?)```", README, re.DOTALL)
    data = bytes.fromhex("".join(block.split()))
    assert decode_snapshot(PATH, data, 102) == EXAMPLE
    assert encode_snapshot(102, EXAMPLE) == data


def test_equal_states_give_equal_bytes() -> None:
    backwards = dict(reversed(EXAMPLE.items()))
    assert encode_snapshot(102, backwards) == encode_snapshot(102, EXAMPLE)


def test_no_producer_is_18_bytes_and_five_batches_are_141() -> None:
    assert len(encode_snapshot(0, {})) == 18
    assert decode_snapshot(PATH, encode_snapshot(0, {}), 0) == {}
    five = tuple(ProducerBatch(n, n, n, n, -1) for n in range(5))
    data = encode_snapshot(5, {0: ProducerEntry(LAST, -1, five)})
    assert len(data) == 18 + 141
    assert decode_snapshot(PATH, data, 5) == {0: ProducerEntry(LAST, -1, five)}


@st.composite
def states(draw: st.DrawFn) -> tuple[int, dict[int, ProducerEntry]]:
    """An offset, and producers whose batches lie below it."""
    times = st.integers(-1, 2**63 - 1)
    entries, end = {}, 0
    for producer_id in draw(st.sets(st.integers(0, 2**63 - 1), max_size=4)):
        batches, offset = [], draw(st.integers(0, 2**62))
        for _ in range(draw(st.integers(0, 5))):
            delta, first = draw(st.integers(0, LAST)), draw(st.integers(0, LAST))
            last = (first + delta) % 2**31
            batches.append(ProducerBatch(first, last, offset, offset + delta, draw(times)))
            offset += delta + 1 + draw(st.integers(0, 3))
        end = max([end, *(one.last_offset + 1 for one in batches)])
        epoch = draw(st.integers(0, LAST))
        entries[producer_id] = ProducerEntry(epoch, draw(times), tuple(batches))
    return draw(st.integers(end, 2**63 - 1)), entries


@given(states())
def test_every_state_survives_the_round_trip(state: tuple[int, dict[int, ProducerEntry]]) -> None:
    offset, entries = state
    assert decode_snapshot(PATH, encode_snapshot(offset, entries), offset) == entries


def test_every_cut_is_refused() -> None:
    data = encode_snapshot(102, EXAMPLE)
    for size in range(len(data)):
        refusal(data[:size])


def test_every_cut_with_a_right_checksum_is_refused() -> None:
    body = encode_snapshot(102, EXAMPLE)[6:]
    for size in range(len(body)):
        refusal(sealed(body[:size]))


def test_every_flipped_bit_is_refused() -> None:
    data = encode_snapshot(102, EXAMPLE)
    for bit in range(8 * len(data)):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        refusal(bytes(changed))


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"", "0 bytes are no whole header"),
        (sealed(head(0), version=2), "version 2, allowed is 1"),
        (b"\0\1\0\0\0\0" + head(0), "checksum 0 does not match"),
        (sealed(head(0, offset=101)), "made at offset 101"),
        (sealed(head(0) + b"\0"), "1 bytes behind the last producer"),
        (sealed(head(2**32 - 1)), "4294967295 producers in 18 bytes"),
        (sealed(head(1) + producer(5)), "5 batches pass the end at byte 39"),
        (sealed(head(1) + producer(6) + 6 * batch()), "producer 7 after -1: .* 6 batches"),
        (sealed(head(1) + producer(number=-1)), "producer -1 after -1"),
        (sealed(head(2) + producer() + producer()), "producer 7 after 7"),
        (sealed(head(2) + producer() + producer(number=6)), "producer 6 after 7"),
        (sealed(head(1) + producer(epoch=-1)), "epoch -1"),
        (sealed(head(1) + producer(time=-2)), "time -2"),
        (sealed(head(1) + producer(1) + batch(first=-1)), "sequence -1"),
        (sealed(head(1) + producer(1) + batch(base=-1)), "offset -1"),
        (sealed(head(1) + producer(1) + batch(delta=-1)), r"offset 10 \+ -1"),
        (sealed(head(1) + producer(1) + batch(time=-2)), "time -2"),
        (sealed(head(1) + producer(1) + batch(base=102)), r"offset 102 \+ 0"),
        (sealed(head(1) + producer(1) + batch(base=101, delta=1)), r"offset 101 \+ 1"),
        (sealed(head(1) + producer(2) + batch(delta=4) + batch(base=14)), r"offset 14 \+ 0"),
        (sealed(head(1) + producer(2) + batch() + batch()), r"batch at byte 63: sequence 0"),
    ],
)
def test_what_no_snapshot_can_hold_is_refused_by_name(data: bytes, reason: str) -> None:
    assert re.match(rf".*{reason}", refusal(data))


@given(st.binary(max_size=200), st.integers(0, 2**63 - 1))
def test_any_bytes_give_a_state_or_a_refusal(data: bytes, offset: int) -> None:
    for candidate in (data, sealed(data), sealed(pack(">q", offset) + data)):
        try:
            entries = decode_snapshot(PATH, candidate, offset)
        except CorruptCheckpoint:
            continue
        assert encode_snapshot(offset, entries) == candidate


@given(
    st.lists(
        st.tuples(st.integers(0, 83), st.sampled_from([0, 1, 5, 6, 127, 128, 255])), max_size=4
    )
)
def test_changed_fields_give_a_state_or_a_refusal(changes: list[tuple[int, int]]) -> None:
    body = bytearray(encode_snapshot(102, EXAMPLE)[6:])
    for at, value in changes:
        body[18 + at] = value
    try:
        entries = decode_snapshot(PATH, sealed(bytes(body)), 102)
    except CorruptCheckpoint:
        return
    assert encode_snapshot(102, entries) == sealed(bytes(body))


# Files -----------------------------------------------------------------------------------------


@pytest.fixture
def disk() -> FaultDisk:
    disk = FaultDisk(MemDisk())
    disk.mkdir(PATH.parent)
    return disk


def names(disk: FaultDisk) -> list[str]:
    return disk.inner.listdir(PATH.parent)


def test_what_is_written_is_loaded(disk: FaultDisk) -> None:
    files = SnapshotFiles(disk, PATH.parent)
    assert files.path(102) == PATH
    assert files.write(102, EXAMPLE)
    assert files.write(102, {})
    assert files.load(102) == {}
    assert files.write(102, EXAMPLE)
    assert files.load(102) == EXAMPLE
    assert files.offsets == (102,)
    assert names(disk) == [PATH.name]


def test_nothing_is_synced_before_it_is_asked_for_and_then_once(disk: FaultDisk) -> None:
    files = SnapshotFiles(disk, PATH.parent)
    for offset in (10, 20, 30):
        files.write(offset, {})
    assert "fsync" not in disk.operations()
    assert files.sync(20)
    assert [call.name for call in disk.calls if call.operation == "fsync"] == [
        files.path(10).name,
        files.path(20).name,
    ]
    assert not files.sync(20)
    assert [files.is_durable(offset) for offset in (10, 20, 30, 40)] == [True, True, False, False]


def test_files_found_after_a_crash_are_not_taken_for_durable(disk: FaultDisk) -> None:
    assert not SnapshotFiles(disk, PATH.parent, [10]).is_durable(10)
    assert SnapshotFiles(disk, PATH.parent, [10], is_synced=True).is_durable(10)


def test_a_missing_file_is_corrupt_to_load_and_nothing_to_sync(disk: FaultDisk) -> None:
    files = SnapshotFiles(disk, PATH.parent, [102])
    with pytest.raises(CorruptCheckpoint, match="missing"):
        files.load(102)
    assert files.sync(200)
    assert files.offsets == ()


@pytest.mark.parametrize("operation", ["open", "truncate", "write_at"])
def test_a_failed_write_is_no_error_and_the_file_stays_known(
    disk: FaultDisk, operation: str
) -> None:
    files = SnapshotFiles(disk, PATH.parent)
    disk.fail(operation, partial_bytes=20 if operation == "write_at" else 0)
    assert not files.write(102, EXAMPLE)
    assert files.offsets == (102,)
    with pytest.raises(CorruptCheckpoint):
        files.load(102)
    assert files.write(102, EXAMPLE)
    assert files.load(102) == EXAMPLE


def test_a_state_that_is_too_large_is_not_written(
    disk: FaultDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = SnapshotFiles(disk, PATH.parent)
    monkeypatch.setattr(producer_snapshots, "SNAPSHOT_MAX_BYTES", 108)
    assert files.write(102, EXAMPLE)
    monkeypatch.setattr(producer_snapshots, "SNAPSHOT_MAX_BYTES", 107)
    assert not files.write(103, EXAMPLE)
    assert names(disk) == [PATH.name]
    with pytest.raises(CorruptCheckpoint, match="108 bytes, at most 107"):
        files.load(102)


def test_dropping_is_durable_and_a_file_that_stays_is_still_known(disk: FaultDisk) -> None:
    files = SnapshotFiles(disk, PATH.parent)
    for offset in (10, 20, 30):
        files.write(offset, {})
    disk.calls.clear()
    assert files.drop_above(10) == (files.path(20).name, files.path(30).name)
    assert [call[:2] for call in disk.calls] == [
        ("unlink", files.path(20).name),
        ("unlink", files.path(30).name),
        ("fsync_dir", "log"),
    ]
    assert files.offsets == (10,)
    disk.calls.clear()
    assert files.drop_above(10) == ()
    assert disk.calls == []
    for operation, error in (("unlink", DiskError), ("fsync_dir", FsyncFailed)):
        disk.fail(operation)
        with pytest.raises(error):
            files.drop_above(0)
        assert files.offsets == (10,)
    assert files.drop_above(0) == (files.path(10).name,)
    assert Call("unlink", files.path(10).name) in disk.calls


@pytest.mark.parametrize(
    ("durable", "bases", "superfluous"),
    [
        ([], [], ()),
        ([10], [], ()),
        ([10, 20, 30], [0, 10, 20, 30], ()),
        ([10, 20, 30], [0, 20, 30], (10,)),
        ([10, 20, 25], [0, 10, 20], ()),
        ([10, 20, 23, 25], [0, 10, 20], (23,)),
        ([10, 20, 25], [], (10, 20)),
        ([10, 20, 25], [20], (10,)),
    ],
)
def test_which_files_others_stand_in_for(
    disk: FaultDisk, durable: list[int], bases: list[int], superfluous: tuple[int, ...]
) -> None:
    files = SnapshotFiles(disk, PATH.parent, durable, is_synced=True)
    assert files.superfluous(bases) == superfluous


def test_what_is_not_durable_stands_in_for_nothing(disk: FaultDisk) -> None:
    files = SnapshotFiles(disk, PATH.parent, [10, 20], is_synced=True)
    files.write(30, {})
    files.write(40, {})
    assert files.superfluous([]) == (10,)
    files.sync(40)
    assert files.superfluous([]) == (10, 20, 30)
