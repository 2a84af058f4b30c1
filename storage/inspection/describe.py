"""What a path is, and what there is to say about it: the way in to ``storage.dump``'s facts.

A directory is told by the names in it, a file by its own name, and a ``.log`` or a file without a
known name by its first bytes. Nothing is followed (links), waited for (pipes) or changed.

Left out: how it looks (``storage.inspection.text``, ``storage.inspection.as_json``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, TypeVar

from storage.batch import OFFSET_END
from storage.checkpoints import TMP_SUFFIX
from storage.disk import Disk, FileKind, LockState
from storage.epochs import EPOCH_FILE
from storage.errors import DiskError
from storage.inspection.files import (
    BOUNDARIES,
    BOUNDARY,
    EPOCHS,
    OFFSETS,
    TextKind,
    describe_marker,
    describe_metadata,
    describe_seal,
    describe_text,
)
from storage.inspection.indexes import IndexFile, describe_index
from storage.inspection.known import (
    LOG_DIR_FILES,
    OFFSET_FILES,
    BrokerState,
    is_in_log_dir,
    is_partition_name,
    known_of,
    known_state,
    lock_on,
    read_broker_state,
)
from storage.inspection.look import is_new
from storage.inspection.partitions import ATTEMPTS, describe_partition
from storage.inspection.segments import describe_segment, is_kafka_log
from storage.inspection.snapshots import describe_snapshot
from storage.inspection.views import (
    FileView,
    LogDirView,
    NothingView,
    Options,
    PartitionView,
    SegmentView,
    View,
)
from storage.listing import LOCK_FILE
from storage.log_dir import (
    MARKER_FILE,
    METADATA_FILE,
)
from storage.mkb1_header import MAGIC
from storage.read_only import ReadOnlyDisk, opened
from storage.state import BOUNDARIES_FILE, BOUNDARY_FILE, SEAL_FILE

__all__ = ["describe"]

_SEGMENT_FILE: Final = re.compile(
    r"([0-9]{20})\.(log|index|timeindex|snapshot)(\.deleted|\.cleaned|\.swap)?\Z", re.ASCII
)
_TEXT_FILES: Final[dict[str, TextKind]] = {
    EPOCH_FILE: EPOCHS,
    BOUNDARY_FILE: BOUNDARY,
    BOUNDARIES_FILE: BOUNDARIES,
    **dict.fromkeys(OFFSET_FILES, OFFSETS),
}
_ViewT = TypeVar("_ViewT", FileView, SegmentView)
_KAFKA_FILES: Final = re.compile(
    r"meta\.properties|quorum-state|[0-9]{20}\.txnindex|([0-9]{20}-[0-9]{10}|bootstrap)\.checkpoint"
)
_PARTITION_FILES: Final = frozenset({EPOCH_FILE, BOUNDARY_FILE, SEAL_FILE, METADATA_FILE})


def describe(disk: Disk, path: Path, options: Options) -> View:
    """The view of whatever ``path`` names.

    ``disk`` is only read from. What cannot be shown at all is a ``NothingView``.
    """
    reader = ReadOnlyDisk(disk)
    try:
        kind = reader.stat(path).kind
        if kind is FileKind.DIRECTORY:
            return _directory(reader, path, options)
        if kind is FileKind.FILE:
            return _file(reader, path, options)
    except DiskError as error:
        return NothingView(path, str(error))
    reasons = {
        FileKind.MISSING: "there is no such file or directory",
        FileKind.SYMLINK: "a symbolic link, which is not followed: name what it points to",
        FileKind.OTHER: "neither a file nor a directory: a pipe, a socket or a device",
    }
    return NothingView(path, reasons[kind])


# Directories -----------------------------------------------------------------------------------


def _directory(disk: ReadOnlyDisk, path: Path, options: Options) -> View:
    names = disk.listdir(path)
    is_partition = any(_SEGMENT_FILE.match(name) for name in names)
    if is_partition or not _PARTITION_FILES.isdisjoint(names) or is_in_log_dir(disk, path):
        return describe_partition(disk, path, options)
    partitions = _partitions(disk, path, names)
    if partitions or not LOG_DIR_FILES.isdisjoint(names):
        return _log_dir(disk, path, names, partitions, options)
    if not names:
        return NothingView(path, "an empty directory")
    reason = f"not the directory of a log: none of its {len(names)} names belongs to one"
    return NothingView(path, reason)


def _partitions(disk: ReadOnlyDisk, path: Path, names: list[str]) -> list[str]:
    candidates = [name for name in names if is_partition_name(name)]
    return [name for name in candidates if disk.stat(path / name).kind is FileKind.DIRECTORY]


def _log_dir(
    disk: ReadOnlyDisk, path: Path, names: list[str], partitions: list[str], options: Options
) -> LogDirView:
    broker = read_broker_state(disk, path, frozenset(partitions))
    expected = {*LOG_DIR_FILES, LOCK_FILE, *partitions}
    others = tuple(name for name in names if name not in expected)
    view = LogDirView(
        path=path,
        lock=broker.lock,
        marker=broker.marker,
        broker_epoch=broker.broker_epoch,
        checkpoints=broker.counts,
        partition_count=len(partitions),
        others=others,
        problems=broker.problems,
        notes=[],
        partitions=iter(()),
    )
    view.partitions = _each_partition(disk, broker, view, partitions, options)
    return view


def _each_partition(
    disk: ReadOnlyDisk, broker: BrokerState, view: LogDirView, names: list[str], options: Options
) -> Iterator[PartitionView]:
    for name in names:
        directory = view.path / name
        try:
            is_begun = not is_new(disk.listdir(directory))
            if is_in_log_dir(disk, directory):
                known = known_of(broker, name, is_new=not is_begun)
            else:
                known = known_state(disk, directory, is_new=not is_begun)
            partition = describe_partition(disk, directory, options, known)
        except DiskError as error:
            view.late_damaged.append(name)
            view.notes.append(f"{name}: {error}")
            continue
        yield partition
        if not partition.is_healthy:
            view.late_damaged.append(name)


# Files -----------------------------------------------------------------------------------------


def _file(disk: ReadOnlyDisk, path: Path, options: Options) -> View:
    name = path.name.removesuffix(TMP_SUFFIX)
    match = _SEGMENT_FILE.match(name)
    if match is not None and int(match[1]) < OFFSET_END:
        base_offset = int(match[1])
        if match[2] == "log":
            return _segment(disk, path, base_offset, options)
        if match[2] == "snapshot":
            return _snapshot(disk, path, base_offset, options)
        return _index(disk, path, base_offset, options)
    if name in _TEXT_FILES:
        return describe_text(disk, path, _TEXT_FILES[name], options)
    if name == SEAL_FILE:
        return describe_seal(disk, path, options)
    if name == MARKER_FILE:
        return describe_marker(disk, path, options)
    if name == METADATA_FILE:
        return describe_metadata(disk, path)
    if name == LOCK_FILE:
        return _lock(disk, path)
    if _KAFKA_FILES.fullmatch(name):
        return _plain(disk, path, "kafka-file", "a file of Kafka's own, not decoded")
    return _by_content(disk, path, options)


def _by_content(disk: ReadOnlyDisk, path: Path, options: Options) -> View:
    """A file whose name says nothing: batches are shown wherever they lie."""
    with opened(disk, path) as file:
        head = file.read_at(0, len(MAGIC))
    if head == MAGIC or name_ends_log(path):
        return _segment(disk, path, None, options)
    size = disk.stat(path).size_bytes
    what = "an empty file" if size == 0 else f"{size} bytes that begin with {head.hex(' ')}"
    return NothingView(path, f"not a file of a log: {what}")


def name_ends_log(path: Path) -> bool:
    """Whether it calls itself a log."""
    return path.name.endswith(".log")


def _segment(disk: ReadOnlyDisk, path: Path, base_offset: int | None, options: Options) -> View:
    if is_kafka_log(disk, path):
        note = "record batches in Kafka's format (magic 2), not decoded"
        return _plain(disk, path, "kafka-segment", note)
    lock = lock_on(disk, path.absolute().parent)

    def look() -> SegmentView:
        # Alone, a file cannot say which of its gaps were declared: they are shown, not judged.
        return describe_segment(
            disk, path, options, base_offset=base_offset, gaps_end=OFFSET_END, lock=lock
        )

    view = _calm(look, lock)
    if base_offset is None:
        view.notes.append("a segment's name is twenty digits: the base offset is the first batch's")
    return view


def _index(disk: ReadOnlyDisk, path: Path, base_offset: int, options: Options) -> View:
    log = path.with_name(f"{base_offset:020d}.log")
    is_there = disk.stat(log).kind is FileKind.FILE
    is_kafka = is_there and is_kafka_log(disk, log)
    directory = path.absolute().parent
    lock = lock_on(disk, directory)

    def look() -> FileView:
        index = IndexFile(path, disk.stat(path).size_bytes)
        later = (name for name in disk.listdir(directory) if name.endswith(".log"))
        return describe_index(
            disk,
            index,
            base_offset,
            options,
            log if is_there and not is_kafka else None,
            is_kafka=is_kafka,
            is_active=not any(name > log.name for name in later),
            is_live=lock.is_held is True,
        )

    return _calm(look, lock)


def _calm(look: Callable[[], _ViewT], lock: LockState) -> _ViewT:
    """A view of a file; where a process has it open and something seems wrong, look again."""
    view = look()
    for _ in range(ATTEMPTS - 1):
        if view.is_healthy or not lock.is_held:
            break
        view = look()
    return view


def _snapshot(disk: ReadOnlyDisk, path: Path, offset: int, options: Options) -> FileView:
    lock = lock_on(disk, path.absolute().parent)
    return _calm(lambda: describe_snapshot(disk, path, offset, options), lock)


def _plain(disk: ReadOnlyDisk, path: Path, kind: str, note: str) -> FileView:
    """A file of which only the kind is known."""
    return FileView(path, kind, disk.stat(path).size_bytes, notes=[note])


def _lock(disk: ReadOnlyDisk, path: Path) -> FileView:
    state = disk.lock_state(path)
    held = {True: "yes", False: "no", None: "unknown"}[state.is_held]
    view = FileView(path, "lock", disk.stat(path).size_bytes)
    view.facts = {"is_held": held, "pid": state.pid}
    return view
