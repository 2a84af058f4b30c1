"""What open would know of a log before it looks at a segment: boundary, log start, seal, lock.

A log on its own keeps it in its directory, a broker's log in the broker's directory
(``storage.log_dir``). Both are read here as open reads them, except that nothing is taken: the seal
stays, the marker stays, the lock is only asked about.

Left out: segments, and the verdict (``storage.inspection.partitions``).
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Final

from attrs import define, evolve, field, frozen

from storage.checkpoints import read_small
from storage.config import INT32_MAX, LogRules
from storage.disk import Disk, FileKind, LockState
from storage.errors import CorruptCheckpoint, DiskError, FileMissing
from storage.inspection.files import (
    BOUNDARIES,
    BOUNDARY,
    CHUNK_BYTES,
    OFFSETS,
    TextKind,
    read_json,
    text_problem,
    text_rows,
)
from storage.inspection.views import Problem
from storage.listing import LOCK_FILE
from storage.log_dir import (
    CLEANER_FILE,
    DIRECTORY_PATTERN,
    HIGH_WATERMARK_FILE,
    LOG_START_FILE,
    MARKER_FILE,
    MARKER_VERSION,
    METADATA_FILE,
    METADATA_PATTERN,
    RECOVERY_POINT_FILE,
)
from storage.read_only import ReadOnlyDisk
from storage.state import (
    BOUNDARIES_FILE,
    BOUNDARY_FILE,
    SEAL_FILE,
    SEAL_VERSION,
    Boundary,
    FileStateStore,
    LogState,
    Seal,
)

__all__ = [
    "LOG_DIR_FILES",
    "BrokerState",
    "Known",
    "known_state",
    "lock_of",
    "lock_on",
    "read_broker_state",
    "topic_id_of",
]

OFFSET_FILES: Final = (RECOVERY_POINT_FILE, LOG_START_FILE, HIGH_WATERMARK_FILE, CLEANER_FILE)
BOUNDARIES_MAX: Final = 200_000
LOG_DIR_FILES: Final = frozenset({MARKER_FILE, BOUNDARIES_FILE, *OFFSET_FILES, "meta.properties"})

_Key = tuple[str, int]


@frozen
class Known:
    """What open would know of one log.

    Attributes:
        kept: ``here``, ``log directory`` or ``nowhere``.
        seal: of the last close, None without a readable one.
        has_seal: a seal is there, readable or not.
        problems: files that cannot be read and should be.
    """

    kept: str
    state: LogState
    seal: Seal | None
    has_seal: bool
    lock: LockState
    high_watermark: int | None = None
    problems: tuple[Problem, ...] = ()


@define
class BrokerState:
    """What a broker's directory keeps for the logs that were asked for.

    Attributes:
        states: boundary and the like; None where ``boundaries`` is there and cannot be read.
        counts: entries of each text file, None where it cannot be read.
        marker: ``there``, ``none`` or ``unreadable``.
    """

    lock: LockState
    states: dict[_Key, LogState] | None = None
    log_starts: dict[_Key, int] = field(factory=dict)
    high_watermarks: dict[_Key, int] = field(factory=dict)
    cleaned: dict[_Key, int] = field(factory=dict)
    seals: dict[str, Seal] = field(factory=dict)
    marker: str = "none"
    broker_epoch: int | None = None
    counts: dict[str, int | None] = field(factory=dict)
    problems: list[Problem] = field(factory=list)


def lock_of(disk: ReadOnlyDisk, directory: Path) -> LockState:
    """Who holds the lock in ``directory``; "not held" where there is no lock file."""
    try:
        return disk.lock_state(directory / LOCK_FILE)
    except DiskError:
        return LockState(None)


def lock_on(disk: ReadOnlyDisk, directory: Path) -> LockState:
    """Who has the log in ``directory`` open, by its own lock or by its broker's."""
    is_brokers = is_in_log_dir(disk, directory)
    return lock_of(disk, directory.absolute().parent if is_brokers else directory)


def topic_id_of(disk: Disk, directory: Path) -> tuple[str | None, Problem | None]:
    """The id in ``partition.metadata``, and what is wrong with that file."""
    try:
        data = read_small(disk, directory / METADATA_FILE, CHUNK_BYTES)
    except CorruptCheckpoint as error:
        return None, text_problem(error)
    except DiskError as error:
        return None, Problem(METADATA_FILE, f"cannot be read: {error}")
    match = METADATA_PATTERN.match((data or b"").decode(errors="replace"))
    if data is None or match is not None:
        return (match[1] if match else None), None
    return None, Problem(METADATA_FILE, "does not hold a topic id")


# A log on its own ------------------------------------------------------------------------------


def is_in_log_dir(disk: Disk, directory: Path) -> bool:
    """Whether a partition's directory belongs to a broker's directory, by the files around it."""
    absolute = directory.absolute()
    if not is_partition_name(absolute.name):
        return False
    parent = absolute.parent
    if disk.stat(parent / BOUNDARIES_FILE).kind is not FileKind.MISSING:
        return True
    own = (BOUNDARY_FILE, SEAL_FILE, LOCK_FILE)
    if any(disk.stat(directory / name).kind is FileKind.FILE for name in own):
        return False
    names = (*LOG_DIR_FILES, LOCK_FILE)
    return any(disk.stat(parent / name).kind is FileKind.FILE for name in names)


def is_partition_name(name: str) -> bool:
    """Whether a directory of a broker with this name is a partition's, as ``LogDir`` sees it."""
    match = DIRECTORY_PATTERN.match(name)
    return match is not None and int(match[2]) <= INT32_MAX and match[1] not in (".", "..")


def known_state(disk: ReadOnlyDisk, directory: Path, *, is_new: bool) -> Known:
    """What open would know of the log in ``directory``.

    Args:
        is_new: there is no segment.

    Raises:
        DiskError: the directory or the one above it cannot be searched.
    """
    if is_in_log_dir(disk, directory):
        parent = directory.absolute().parent
        broker = read_broker_state(disk, parent, {directory.absolute().name})
        return known_of(broker, directory.absolute().name, is_new=is_new)
    path = directory / BOUNDARY_FILE
    problems: tuple[Problem, ...] = ()
    if disk.stat(path).size_bytes > CHUNK_BYTES:
        # Open says "more than one entry" of it, having read it all.
        state = LogState(None, None)
    else:
        state = FileStateStore(disk, directory, LogRules()).load(is_new=is_new)
    is_there = disk.stat(path).kind is not FileKind.MISSING
    if state.boundary is None and is_there:
        problems = (_boundary_problem(disk, path),)
    seal, has_seal = _own_seal(disk, directory)
    kept = "here" if is_there or has_seal else "nowhere"
    return Known(kept, state, seal, has_seal, lock_of(disk, directory), None, problems)


def _boundary_problem(disk: Disk, path: Path) -> Problem:
    count = 0
    try:
        for _ in text_rows(disk, path, BOUNDARY):
            count += 1
    except CorruptCheckpoint as error:
        return text_problem(error)
    except DiskError as error:
        return Problem(path.name, f"cannot be read: {error}")
    return Problem(path.name, f"{count} entries, expected 1")


def _own_seal(disk: Disk, directory: Path) -> tuple[Seal | None, bool]:
    try:
        content = read_json(disk, directory / SEAL_FILE)
    except FileMissing:
        return None, False
    except (CorruptCheckpoint, DiskError):
        return None, True
    if not isinstance(content, dict) or content.get("version") != SEAL_VERSION:
        return None, disk.stat(directory / SEAL_FILE).kind is not FileKind.MISSING
    return Seal.from_json(content.get("segments")), True


# A broker's log --------------------------------------------------------------------------------


def read_broker_state(disk: ReadOnlyDisk, path: Path, names: Collection[str]) -> BrokerState:
    """What the directory of a broker keeps for the partitions whose directories are ``names``.

    Others' entries are counted and not kept. Raises ``DiskError`` only where nothing can be read.
    """
    broker = BrokerState(lock_of(disk, path))
    _read_marker(disk, path / MARKER_FILE, broker, names)
    broker.states = _read_states(disk, path / BOUNDARIES_FILE, broker, names)
    broker.log_starts = _read_offsets(disk, path / LOG_START_FILE, broker, names) or {}
    broker.high_watermarks = _read_offsets(disk, path / HIGH_WATERMARK_FILE, broker, names) or {}
    broker.cleaned = _read_offsets(disk, path / CLEANER_FILE, broker, names) or {}
    _read_offsets(disk, path / RECOVERY_POINT_FILE, broker, ())
    return broker


def known_of(broker: BrokerState, name: str, *, is_new: bool) -> Known:
    """What open would know of one of the broker's logs, as ``LogDir.open_log`` finds it."""
    match = DIRECTORY_PATTERN.match(name)
    assert match is not None, f"{name!r} is not the directory of a partition"
    key = (match[1], int(match[2]))
    start = broker.log_starts.get(key, 0)
    known = None if broker.states is None else broker.states.get(key)
    if known is not None:
        state = evolve(
            known,
            log_start_offset=max(start, known.log_start_offset or 0),
            cleaned_offset=broker.cleaned.get(key, 0),
        )
    elif is_new:
        state = LogState(Boundary(start, 0, start), start)
    else:
        state = LogState(None, start if key in broker.log_starts else None)
    seal = broker.seals.get(name)
    mark = broker.high_watermarks.get(key)
    return Known("log directory", state, seal, seal is not None, broker.lock, mark)


def _read_states(
    disk: Disk, path: Path, broker: BrokerState, names: Collection[str]
) -> dict[_Key, LogState] | None:
    states: dict[_Key, LogState] = {}
    seen: set[_Key] = set()
    for row in (rows := _Rows(disk, path, BOUNDARIES, broker)):
        topic, partition, base, size, end, log_start, gaps_end, producers_from = row
        if (topic, partition) in seen or len(seen) == BOUNDARIES_MAX:
            rows.fail(f"{topic}-{partition} stands twice, or there are too many")
            return None
        seen.add((topic, partition))
        if f"{topic}-{partition}" in names:
            boundary = Boundary(base, size, end)
            states[topic, partition] = LogState(
                boundary, log_start, gaps_end, producers_from=producers_from
            )
    return None if rows.is_unreadable else states


def _read_offsets(
    disk: Disk, path: Path, broker: BrokerState, names: Collection[str]
) -> dict[_Key, int] | None:
    offsets: dict[_Key, int] = {}
    for topic, partition, offset in (rows := _Rows(disk, path, OFFSETS, broker)):
        if f"{topic}-{partition}" in names:
            offsets[topic, partition] = max(0, offset)
    return None if rows.is_unreadable else offsets


class _Rows:
    """The rows of a text file; counts them, and notes what is wrong instead of raising it."""

    def __init__(self, disk: Disk, path: Path, kind: TextKind, broker: BrokerState) -> None:
        self.is_unreadable = False
        self._rows = text_rows(disk, path, kind)
        self._name = path.name
        self._broker = broker
        self._count = 0

    def __iter__(self) -> _Rows:
        return self

    def __next__(self) -> tuple[Any, ...]:
        try:
            row = next(self._rows)
        except StopIteration:
            self._broker.counts[self._name] = self._count
            raise
        except FileMissing:
            raise StopIteration from None
        except CorruptCheckpoint as error:
            self._fail(text_problem(error))
            raise StopIteration from None
        except DiskError as error:
            self._fail(Problem(self._name, f"cannot be read: {error}"))
            raise StopIteration from None
        self._count += 1
        return row

    def fail(self, reason: str) -> None:
        """Give the file up at the row that was given last."""
        self._fail(Problem(self._name, reason, line=self._count + 2))

    def _fail(self, problem: Problem) -> None:
        self.is_unreadable = True
        self._broker.counts[self._name] = None
        self._broker.problems.append(problem)


def _read_marker(disk: Disk, path: Path, broker: BrokerState, names: Collection[str]) -> None:
    stat = disk.stat(path)
    if stat.kind is FileKind.MISSING:
        return
    broker.marker = "there"
    if stat.kind is FileKind.FILE and stat.size_bytes == 0:
        return
    try:
        content = read_json(disk, path)
    except (CorruptCheckpoint, DiskError) as error:
        broker.marker = "unreadable"
        broker.problems.append(Problem(path.name, f"cannot be read: {error}"))
        return
    if not isinstance(content, dict) or content.get("version") != MARKER_VERSION:
        broker.marker = "unreadable"
        broker.problems.append(Problem(path.name, "is not a clean-shutdown marker"))
        return
    epoch = content.get("brokerEpoch")
    broker.broker_epoch = epoch if type(epoch) is int else None
    rows = content.get("seals")
    for name, value in rows.items() if isinstance(rows, dict) else ():
        seal = Seal.from_json(value)
        if name in names and seal is not None:
            broker.seals[name] = seal
