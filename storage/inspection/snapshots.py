"""Looking at producer snapshots: what a file holds, what is wrong with it, and which one open uses.

A file is read with bounded memory, twice: once to judge it, once while it is shown. It is judged by
the checks of ``storage.producer_snapshots``; what these refuse is shown as it stands, and reading
goes on behind it as long as the bytes tell where the next producer begins.

Left out: what the producers mean (``storage.producer_state``).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from struct import Struct
from typing import Any, Final
from zlib import crc32

from attrs import define, field, frozen

from storage.config import INT32_MAX
from storage.disk import Disk, DiskFile
from storage.errors import CorruptCheckpoint, DiskError
from storage.inspection.audits import COMPLAINTS_MAX
from storage.inspection.views import FileView, Options, Problem
from storage.producer_snapshots import (
    BATCH,
    HEAD,
    HEADER_BYTES,
    PREFIX,
    PRODUCER,
    PRODUCER_BYTES_MAX,
    SNAPSHOT_MAX_BYTES,
    SNAPSHOT_SUFFIX,
    VERSION,
    decode_producer,
)
from storage.read_only import opened

__all__ = ["SnapshotsFound", "describe_snapshot", "judge_snapshots", "snapshot_names"]

CHUNK_BYTES: Final = 1 << 16
COLUMNS: Final = ("producer_id", "producer_epoch", "timestamp_ms", "batches", "problem")
KAFKA_NOTE: Final = "a producer snapshot of Kafka's own, not decoded"
_NAME: Final = re.compile(r"[0-9]{20}\.snapshot\Z", re.ASCII)
_KAFKA_HEAD: Final = Struct(">HII")
_KAFKA_ENTRY_BYTES: Final = 46
_KAFKA_EMPTY_CRC: Final = 0x48674BC7
"""CRC-32C of the four bytes that say "no producers"."""


def snapshot_names(names: Iterable[str], ignored: Collection[str]) -> tuple[str, ...]:
    """Those of ``names`` that are snapshots; open ignores what has such a name and is none."""
    return tuple(name for name in names if _NAME.match(name) and name not in ignored)


# One file --------------------------------------------------------------------------------------


@define
class _Judged:
    """What is known of a file's header, and what is wrong with the file.

    Attributes:
        end: where reading ends; nothing behind it can be shown.
        facts: as ``FileView`` has them.
        problems: in the order of the file, the checksum first.
        count, offset: as the header says.
        row_count: how many producers there are to show.
    """

    path: Path
    end: int = 0
    facts: dict[str, int | str | None] = field(factory=dict)
    problems: list[Problem] = field(factory=list)
    count: int = 0
    offset: int = 0
    row_count: int = 0
    is_kafka: bool = False

    def blame(self, reason: str, position: int | None = None) -> None:
        """Note what is wrong, and where."""
        self.problems.append(Problem(self.path.name, reason, position))


def describe_snapshot(disk: Disk, path: Path, offset: int, options: Options) -> FileView:
    """A snapshot: its header, and each producer with its batches.

    Args:
        offset: the one in the file's name.

    Raises:
        DiskError: it cannot be read.
    """
    view = FileView(path, "producer-snapshot", disk.stat(path).size_bytes)
    found = _judge(disk, path, offset)
    if found.is_kafka:
        view.notes.append(KAFKA_NOTE)
        return view
    view.facts, view.problems, view.row_count = found.facts, found.problems, found.row_count
    view.columns = COLUMNS
    shown = found.row_count if options.count is None else min(found.row_count, options.count)
    view.rows = islice(_shown(disk, found, view.late_problems), shown)
    return view


def _judge(disk: Disk, path: Path, offset: int) -> _Judged:
    """Read a file once and say what is wrong with it: nothing, exactly if open can use it."""
    found = _Judged(path)
    with opened(disk, path) as file:
        found.end = file.size()
        head = file.read_at(0, min(HEADER_BYTES, found.end))
        if found.end > SNAPSHOT_MAX_BYTES:
            found.blame(f"{found.end} bytes, at most {SNAPSHOT_MAX_BYTES} are read")
            return found
        if _is_kafkas(head, found.end):
            found.is_kafka = True
            return found
        if len(head) < HEADER_BYTES:
            found.blame(f"{found.end} bytes are no whole header", 0)
            return found
        _judge_header(file, found, head, offset)
        if found.end:
            _judge_producers(file, found)
    return found


def _is_kafkas(head: bytes, size_bytes: int) -> bool:
    """If a file has the shape of Kafka's, whose number of entries is where ours has an offset."""
    if len(head) < _KAFKA_HEAD.size:
        return False
    version, crc, count = _KAFKA_HEAD.unpack_from(head)
    is_whole = size_bytes == _KAFKA_HEAD.size + count * _KAFKA_ENTRY_BYTES
    return bool(version == 1 and is_whole and (count > 0 or crc == _KAFKA_EMPTY_CRC))


def _judge_header(file: DiskFile, found: _Judged, head: bytes, offset: int) -> None:
    version, crc = PREFIX.unpack_from(head)
    found.offset, found.count = HEAD.unpack_from(head, PREFIX.size)
    is_right = _checksum(file, found.end) == crc
    found.facts = {
        "version": version,
        "offset": found.offset,
        "producer_count": found.count,
        "checksum": "matches" if is_right else "does not match",
    }
    if version != VERSION:
        found.blame(f"version {version}, allowed is {VERSION}", 0)
        if not is_right:
            # Nothing says that what follows has a layout that is known here.
            found.facts = {"version": version}
            found.end = 0
            return
    if not is_right:
        found.blame(f"checksum {crc} does not match", 2)
    if found.offset != offset:
        found.blame(f"made at offset {found.offset}", PREFIX.size)


def _checksum(file: DiskFile, end: int) -> int:
    """CRC-32 of everything that a snapshot's checksum covers."""
    crc, position = 0, PREFIX.size
    while position < end:
        chunk = file.read_at(position, min(CHUNK_BYTES, end - position))
        if not chunk:
            break
        crc = crc32(chunk, crc)
        position += len(chunk)
    return crc


def _judge_producers(file: DiskFile, found: _Judged) -> None:
    position, number, wrong = HEADER_BYTES, 0, 0
    for at, row, behind in _producers(file, found):
        number += 1
        position = behind
        if row["problem"] is not None:
            found.blame(str(row["problem"]), at)
            wrong += 1
    found.row_count = number
    if wrong:
        return
    if number < found.count:
        found.blame(f"{found.count} producers in {found.end} bytes", position)
    elif position != found.end:
        found.blame(f"{found.end - position} bytes behind the last producer", position)


def _producers(file: DiskFile, found: _Judged) -> Iterator[tuple[int, dict[str, Any], int]]:
    """Each producer: where it begins, its row, and where it ends. Ends where none can be told."""
    position, start, buffer = HEADER_BYTES, HEADER_BYTES, b""
    previous, wrong = -1, 0
    for _ in range(found.count):
        at = position - start
        if at + PRODUCER_BYTES_MAX > len(buffer) and start + len(buffer) < found.end:
            start, at = position, 0
            buffer = file.read_at(start, min(CHUNK_BYTES, found.end - start))
        if at + PRODUCER.size > len(buffer):
            return
        row, batch_count = _row(buffer, at)
        end = at + PRODUCER.size + batch_count * BATCH.size
        try:
            previous, _, end = decode_producer(
                found.path, buffer, at, previous, found.offset, start=start
            )
        except CorruptCheckpoint as error:
            row["problem"] = error.reason
            wrong += 1
        yield position, row, start + min(end, len(buffer))
        if batch_count != len(row["batches"]) or wrong == COMPLAINTS_MAX:
            return
        position = start + end


def _row(buffer: bytes, at: int) -> tuple[dict[str, Any], int]:
    """A producer as it stands there with the batches that are whole, and how many it says it has.

    More than five are none: no producer has them, so their number is not one.
    """
    producer_id, epoch, timestamp_ms, count = PRODUCER.unpack_from(buffer, at)
    batches = []
    if PRODUCER.size + count * BATCH.size <= PRODUCER_BYTES_MAX:
        at += PRODUCER.size
        whole = (len(buffer) - at) // BATCH.size
        places = range(at, at + min(count, whole) * BATCH.size, BATCH.size)
        batches = [_batch(*BATCH.unpack_from(buffer, place)) for place in places]
    values = (producer_id, epoch, timestamp_ms, batches, None)
    return dict(zip(COLUMNS, values, strict=True)), count


def _batch(first: int, base: int, delta: int, timestamp_ms: int) -> dict[str, int]:
    return {
        "first_sequence": first,
        "last_sequence": (first + delta) & INT32_MAX,
        "base_offset": base,
        "next_offset": base + delta + 1,
        "timestamp_ms": timestamp_ms,
    }


def _shown(disk: Disk, found: _Judged, problems: list[Problem]) -> Iterator[dict[str, Any]]:
    try:
        with opened(disk, found.path) as file:
            for _, row, _ in _producers(file, found):
                yield row
    except DiskError as error:
        problems.append(Problem(found.path.name, f"changed while it was read: {error}"))


# Those of a partition --------------------------------------------------------------------------


@frozen
class SnapshotsFound:
    """The snapshots of a log, judged.

    Attributes:
        used: name of the one that open would begin with, None if it would replay without one.
        removed: names of those that open would remove, in its order.
        problems: what is wrong with the files, used or not.
        notes: what is worth saying besides.
    """

    used: str | None
    removed: tuple[str, ...]
    problems: tuple[Problem, ...]
    notes: tuple[str, ...]


def judge_snapshots(
    disk: Disk, directory: Path, offsets: Sequence[int], log: range, *, attempts: int
) -> SnapshotsFound:
    """What open would do about snapshots: it takes the newest that is good, within the log.

    Those that it tried before that one go, and those that are not within the log. What is wrong
    with an older one, which it leaves alone, is told too.

    Args:
        offsets: of the files, rising.
        log: from the first segment's base to the log's end, both included.
        attempts: how often a bad file is looked at, where a process may be writing it.
    """
    used: str | None = None
    tried: list[str] = []
    problems: list[Problem] = []
    notes: list[str] = []
    for offset in reversed([offset for offset in offsets if offset in log]):
        name = f"{offset:020d}{SNAPSHOT_SUFFIX}"
        found = None
        for _ in range(attempts):
            found = _judge_or_blame(disk, directory / name, offset)
            if not found.problems and not found.is_kafka:
                break
        assert found is not None, "there is at least one attempt"
        problems += found.problems
        if found.is_kafka:
            notes.append(f"{name}: {KAFKA_NOTE}")
        if used is None:
            if found.problems or found.is_kafka:
                tried.append(name)
            else:
                used = name
    strays = [f"{offset:020d}{SNAPSHOT_SUFFIX}" for offset in offsets if offset not in log]
    return SnapshotsFound(used, (*tried, *strays), tuple(problems), tuple(notes))


def _judge_or_blame(disk: Disk, path: Path, offset: int) -> _Judged:
    try:
        return _judge(disk, path, offset)
    except DiskError as error:
        found = _Judged(path)
        found.blame(f"cannot be read: {error}")
        return found
