"""The directory of one broker: its lock, its partition logs, and what is kept for all of them.

Files in the directory itself, text ones in Kafka's container (``storage.checkpoints``):

``.lock``
    exclusive while the directory is open.
``.kafka_cleanshutdown``
    JSON: version, broker epoch, and per partition the seal of its segments. Removed durably before
    anything is loaded, written last at ``close``. A partition whose seal does not match counts as
    uncleanly closed, alone.
``boundaries``
    ``topic partition`` and the fields of a boundary entry (``storage.state``).
``recovery-point-offset-checkpoint``, ``log-start-offset-checkpoint``,
``replication-offset-checkpoint``, ``cleaner-offset-checkpoint``
    ``topic partition offset``: end of the durable part, log start, high watermark, and where
    compaction has not been yet. The last is lowered before a truncation, like the boundary.

Each partition has a directory ``TOPIC-PARTITION`` with its segments, its epoch file and
``partition.metadata``. Checkpoints are written when asked for; nothing runs in the background.

Left out: several directories for one broker, and the meaning of the high watermark.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from attrs import evolve

from storage.batch import OFFSET_END
from storage.checkpoints import (
    parse_int,
    read_entries,
    read_small,
    remove_if_there,
    replace_file,
    write_entries,
)
from storage.codec import Codec
from storage.config import INT32_MAX, LogConfig, LogRules
from storage.disk import Disk, DiskLock, FileKind, OsDisk
from storage.errors import CorruptCheckpoint, CorruptLog, DiskError, InvalidConfig, LogClosed
from storage.listing import LOCK_FILE
from storage.log_durability import Work
from storage.mkb1 import MKB1
from storage.opening import ensure_directory, salvage_files
from storage.partition_log import PartitionLog
from storage.recovery import Verify
from storage.state import (
    BOUNDARIES_FILE,
    Boundary,
    LogState,
    Seal,
    load_json,
    parse_state,
    state_fields,
)

__all__ = ["LogDir", "TopicPartition"]

MARKER_FILE = ".kafka_cleanshutdown"
MARKER_VERSION = 0
RECOVERY_POINT_FILE = "recovery-point-offset-checkpoint"
LOG_START_FILE = "log-start-offset-checkpoint"
HIGH_WATERMARK_FILE = "replication-offset-checkpoint"
CLEANER_FILE = "cleaner-offset-checkpoint"
METADATA_FILE = "partition.metadata"
DELETE_SUFFIX = "-delete"
REMOVE_DIRECTORY = "remove-directory"

_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}\Z", re.ASCII)
DIRECTORY_PATTERN = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})\Z", re.ASCII)
_TOPIC_ID = re.compile(r"[A-Za-z0-9_-]{22}\Z", re.ASCII)
METADATA_PATTERN = re.compile(r"version: 0\ntopic_id: ([A-Za-z0-9_-]{22})\n?\Z", re.ASCII)


class TopicPartition(NamedTuple):
    """A partition's name."""

    topic: str
    partition: int

    def __deepcopy__(self, memo: object) -> TopicPartition:
        return self

    @property
    def directory_name(self) -> str:
        """``TOPIC-PARTITION``."""
        return f"{self.topic}-{self.partition}"

    @classmethod
    def checked(cls, topic: str, partition: int) -> TopicPartition:
        """A name by Kafka's rules, or ``InvalidConfig``."""
        if not _TOPIC.match(topic) or topic in (".", ".."):
            raise InvalidConfig(f"topic is {topic[:80]!r}, allowed are 1 to 249 of A-Za-z0-9._-")
        if not 0 <= partition <= INT32_MAX:
            raise InvalidConfig(f"partition is {partition}, allowed is 0..{INT32_MAX}")
        return cls(topic, partition)


class LogDir:
    """An open broker directory. Made by ``open``.

    Attributes:
        path: the directory.
        warnings: what could not be read while opening, in words.
        previous_broker_epoch: from the clean-shutdown marker, -1 if it named none; None without a
            marker: the broker did not stop cleanly.
    """

    def __init__(
        self, path: Path, disk: Disk, rules: LogRules, lock: DiskLock, runs_pending: bool
    ) -> None:
        self.path = path
        self.warnings: list[str] = []
        self._disk = disk
        self._rules = rules
        self._lock = lock
        self._runs_pending = runs_pending
        self._is_open = True
        self._logs: dict[TopicPartition, PartitionLog] = {}
        self._seals: dict[TopicPartition, Seal] = {}
        self._states: dict[TopicPartition, LogState] | None = {}
        self._log_starts: dict[TopicPartition, int] = {}
        self._high_watermarks: dict[TopicPartition, int] = {}
        self._cleaned: dict[TopicPartition, int] = {}
        self.previous_broker_epoch: int | None = None
        self._deletions = self._openings = 0
        self._lines: dict[TopicPartition, tuple[LogState, str]] = {}

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        disk: Disk | None = None,
        rules: LogRules | None = None,
        runs_pending: bool = True,
    ) -> LogDir:
        """Lock a broker's directory (created if missing) and read what is kept for all its logs.

        Args:
            runs_pending: whether its logs run their pending work at once; otherwise whoever owns
                them takes it from each log.

        Raises:
            LockHeld: the directory is open already.
            DiskError: it cannot be read or written.
        """
        disk = disk or OsDisk()
        ensure_directory(disk, path)
        lock = disk.lock(path / LOCK_FILE)
        try:
            opened = cls(path, disk, rules or LogRules(), lock, runs_pending)
            opened._take_marker()
            opened._states = opened._read_boundaries()
            opened._log_starts = opened._read_offsets(LOG_START_FILE)
            opened._high_watermarks = opened._read_offsets(HIGH_WATERMARK_FILE)
            opened._cleaned = opened._read_offsets(CLEANER_FILE)
            opened._remove_doomed()
        except BaseException:
            lock.release()
            raise
        return opened

    def partitions(self) -> list[TopicPartition]:
        """The partitions that have a directory here, sorted by name."""
        found = []
        for name in self._disk.listdir(self.path):
            match = DIRECTORY_PATTERN.match(name)
            if match is None or int(match[2]) > INT32_MAX or match[1] in (".", ".."):
                continue
            if self._disk.stat(self.path / name).kind is FileKind.DIRECTORY:
                found.append(TopicPartition(match[1], int(match[2])))
        return sorted(found)

    @property
    def logs(self) -> Mapping[TopicPartition, PartitionLog]:
        """The logs that are open."""
        return dict(self._logs)

    def open_log(
        self,
        topic: str,
        partition: int,
        config: LogConfig | None = None,
        *,
        topic_id: str | None = None,
        leader_epoch: int = 0,
        verify: Verify = "unflushed",
        codec: Codec = MKB1,
        salvaging: CorruptLog | None = None,
    ) -> PartitionLog:
        """Open a partition's log, or begin it.

        Args:
            topic_id: 22 characters of URL-safe base64; kept in ``partition.metadata``.
            salvaging: the error with which the log refused before: keep its good prefix.

        Raises:
            InvalidConfig: a name or id is malformed, the log is open already, or the directory
                belongs to a topic of another id.
            StorageError: as ``PartitionLog.open``.
        """
        self._check_open()
        name = TopicPartition.checked(topic, partition)
        open_log = self._logs.get(name)
        if open_log is not None:
            if open_log.failure is None and not open_log.is_closed:
                raise InvalidConfig(f"log {name.directory_name} is open already")
            open_log.abandon()
            del self._logs[name]
        directory = self.path / name.directory_name
        ensure_directory(self._disk, directory)
        self._settle_topic_id(directory, topic_id)
        store = _DirectoryStore(self, name)
        if salvaging is not None:
            salvage_files(self._disk, directory, config or LogConfig(), codec, store, salvaging)
        log = PartitionLog.open(
            directory,
            config,
            leader_epoch=leader_epoch,
            verify=verify,
            disk=self._disk,
            codec=codec,
            store=store,
            runs_pending=self._runs_pending,
            first_id=self._openings << 32,
        )
        self._openings += 1
        self._logs[name] = log
        return log

    def delete_log(self, topic: str, partition: int) -> Work:
        """Forget a partition: its log is closed and its directory gets another name.

        What is kept of it elsewhere goes first, durably: a new log of that name must not find a
        boundary that it does not have. A crash before the renaming leaves a log whose boundary is
        unknown, one after it a directory that the next ``open`` removes.

        Returns:
            What is left to do, for ``run``: removing the files.

        Raises:
            DiskError: something could not be written; call it again.
        """
        self._check_open()
        name = TopicPartition.checked(topic, partition)
        log = self._logs.pop(name, None)
        if log is not None:
            log.abandon()
        self._seals.pop(name, None)
        self._forget_state(name)
        directory = self.path / name.directory_name
        doomed = f"{name.directory_name}{DELETE_SUFFIX}"
        if self._disk.stat(directory).kind is FileKind.DIRECTORY:
            number = 0
            while self._disk.stat(self.path / doomed).kind is not FileKind.MISSING:
                number += 1
                doomed = f"{name.directory_name}.{number}{DELETE_SUFFIX}"
            self._disk.rename(directory, self.path / doomed)
            self._disk.fsync_dir(self.path)
        self._deletions += 1
        return Work(self._deletions, REMOVE_DIRECTORY, (doomed,))

    def run(self, work: Work) -> None:
        """Perform what ``delete_log`` left to do. Raises ``DiskError``."""
        self._check_open()
        if work.kind != REMOVE_DIRECTORY:
            raise ValueError(f"work kind is {work.kind!r}, allowed: {REMOVE_DIRECTORY}")
        self._remove_directory(work.args[0])

    def _forget_state(self, name: TopicPartition) -> None:
        for kept, file in (
            (self._log_starts, LOG_START_FILE),
            (self._cleaned, CLEANER_FILE),
            (self._high_watermarks, HIGH_WATERMARK_FILE),
        ):
            if name in kept:
                del kept[name]
                self._write_offsets(file, kept)
        states = dict(self._states or {})
        if states.pop(name, None) is not None:
            self._write_boundaries(states)
        self._lines.pop(name, None)

    def _remove_directory(self, name: str) -> None:
        path = self.path / name
        if self._disk.stat(path).kind is FileKind.DIRECTORY:
            for child in self._disk.listdir(path):
                remove_if_there(self._disk, path / child)
            self._disk.rmdir(path)

    def _remove_doomed(self) -> None:
        """Finish deletions that an earlier process began."""
        for name in self._disk.listdir(self.path):
            if name.endswith(DELETE_SUFFIX):
                try:
                    self._remove_directory(name)
                except DiskError as error:
                    self.warnings.append(f"not removed: {error}")

    def topic_id(self, topic: str, partition: int) -> str | None:
        """The topic id in ``partition.metadata``, None without a readable one."""
        directory = self.path / TopicPartition.checked(topic, partition).directory_name
        try:
            data = read_small(self._disk, directory / METADATA_FILE)
        except (CorruptCheckpoint, DiskError):
            return None
        match = METADATA_PATTERN.match((data or b"").decode(errors="replace"))
        return match[1] if match else None

    def _settle_topic_id(self, directory: Path, topic_id: str | None) -> None:
        if topic_id is None:
            return
        if not _TOPIC_ID.match(topic_id):
            raise InvalidConfig(f"topic_id is {topic_id[:40]!r}, allowed are 22 of A-Za-z0-9_-")
        path = directory / METADATA_FILE
        data = read_small(self._disk, path)
        match = METADATA_PATTERN.match((data or b"").decode(errors="replace"))
        if match is not None and match[1] != topic_id:
            raise InvalidConfig(f"{directory} belongs to topic id {match[1]}, not {topic_id}")
        if match is None:
            content = f"version: 0\ntopic_id: {topic_id}"
            fsync = self._rules.fsync_before_rename
            replace_file(self._disk, path, content.encode(), fsync=fsync)

    # Checkpoints -------------------------------------------------------------------------------

    @property
    def high_watermarks(self) -> Mapping[TopicPartition, int]:
        """High watermarks as last read or written."""
        return dict(self._high_watermarks)

    def write_high_watermarks(
        self, offsets: Mapping[TopicPartition, int], *, keep_others: bool = True
    ) -> None:
        """Write ``replication-offset-checkpoint``; partitions not named keep what they had.

        Keeping them matters: a checkpoint written before every partition is known must not zero
        the others (KAFKA-769, 851, 858, 1647). ``keep_others=False`` is that defect.
        """
        self._check_open()
        merged = {**self._high_watermarks, **offsets} if keep_others else dict(offsets)
        self._write_offsets(HIGH_WATERMARK_FILE, merged)
        self._high_watermarks = merged

    def write_recovery_points(self) -> None:
        """Write ``recovery-point-offset-checkpoint``: the durable end of every known log.

        The file is for people and for Kafka's tools; recovery itself goes by ``boundaries``.
        """
        self._check_open()
        points = {
            name: state.boundary.end_offset
            for name, state in (self._states or {}).items()
            if state.boundary is not None
        }
        self._write_offsets(RECOVERY_POINT_FILE, points)

    def write_log_starts(self) -> None:
        """Write ``log-start-offset-checkpoint`` from the open logs; others keep what they had."""
        self._check_open()
        starts = {
            name: min(log.log_start_offset, log.boundary.end_offset)
            for name, log in self._logs.items()
        }
        self._log_starts = {**self._log_starts, **starts}
        self._write_offsets(LOG_START_FILE, self._log_starts)

    def _write_offsets(self, name: str, offsets: Mapping[TopicPartition, int]) -> None:
        for key, offset in offsets.items():
            TopicPartition.checked(*key)
            if offset.__class__ is not int or not 0 <= offset < OFFSET_END:
                raise InvalidConfig(f"offset of {key} is {offset!r}, allowed is 0..2^63-1")
        entries = [(key.topic, key.partition, offsets[key]) for key in sorted(offsets)]
        write_entries(self._disk, self.path / name, entries, fsync=self._rules.fsync_before_rename)

    def _read_offsets(self, name: str) -> dict[TopicPartition, int]:
        """An offset checkpoint; one that cannot be read is a warning, and empty."""
        path = self.path / name
        try:
            entries = read_entries(self._disk, path, fields=3) or []
            return {
                parse_name(path, line, topic, partition): max(0, parse_int(path, line, offset))
                for line, (topic, partition, offset) in enumerate(entries, 3)
            }
        except (CorruptCheckpoint, DiskError) as error:
            self.warnings.append(f"offsets unknown: {error}")
            return {}

    # Boundaries and marker ---------------------------------------------------------------------

    def _read_boundaries(self) -> dict[TopicPartition, LogState] | None:
        """States by partition; None where the file is there and cannot be read."""
        path = self.path / BOUNDARIES_FILE
        try:
            entries = read_entries(self._disk, path, fields=8, optional=1) or []
            states: dict[TopicPartition, LogState] = {}
            for line, entry in enumerate(entries, 3):
                name = parse_name(path, line, entry[0], entry[1])
                if name in states:
                    raise CorruptCheckpoint(path, line, f"{name.directory_name} stands twice")
                states[name] = parse_state(path, line, entry[2:])
            return states
        except (CorruptCheckpoint, DiskError) as error:
            self.warnings.append(f"boundaries unknown: {error}")
            return None

    def _state_of(self, name: TopicPartition, *, is_new: bool) -> LogState:
        start = self._log_starts.get(name, 0)
        known = None if self._states is None else self._states.get(name)
        if known is not None:
            return evolve(
                known,
                log_start_offset=max(start, known.log_start_offset or 0),
                cleaned_offset=self._cleaned.get(name, 0),
            )
        if is_new:
            return LogState(Boundary(start, 0, start), start)
        warning = f"boundary of {name.directory_name} unknown"
        return LogState(None, start if name in self._log_starts else None, warnings=(warning,))

    def _save_state(self, name: TopicPartition, state: LogState) -> None:
        assert state.boundary is not None
        states = dict(self._states or {})
        states[name] = evolve(state, warnings=())
        if self._log_starts.get(name, 0) > (state.log_start_offset or 0):
            # First, or a crash in between would leave a log start behind the log's end.
            starts = {**self._log_starts, name: state.log_start_offset or 0}
            self._write_offsets(LOG_START_FILE, starts)
            self._log_starts = starts
        if self._cleaned.get(name, 0) != state.cleaned_offset:
            # First too: new records at old offsets must never count as cleaned (KAFKA-3330).
            cleaned = {**self._cleaned, name: state.cleaned_offset}
            self._write_offsets(CLEANER_FILE, cleaned)
            self._cleaned = cleaned
        self._write_boundaries(states)

    def _write_boundaries(self, states: dict[TopicPartition, LogState]) -> None:
        entries = [(self._line(key, states[key]),) for key in sorted(states)]
        path = self.path / BOUNDARIES_FILE
        write_entries(self._disk, path, entries, fsync=self._rules.fsync_before_rename)
        self._states = states

    def _line(self, name: TopicPartition, state: LogState) -> str:
        """A line of ``boundaries``; one boundary rises at a time, so the others are kept."""
        known = self._lines.get(name)
        if known is None or known[0] is not state:
            text = " ".join(map(str, [*name, *state_fields(state)]))
            known = self._lines[name] = (state, text)
        return known[1]

    def _take_marker(self) -> None:
        path = self.path / MARKER_FILE
        try:
            data = read_small(self._disk, path)
        except (CorruptCheckpoint, DiskError) as error:
            data = b""
            self.warnings.append(f"clean-shutdown marker ignored: {error}")
        if data is None:
            return
        if self._rules.remove_marker_before_load:
            remove_if_there(self._disk, path)
            self._disk.fsync_dir(self.path)
        content = load_json(data)
        if not isinstance(content, dict) or content.get("version") != MARKER_VERSION:
            return
        epoch = content.get("brokerEpoch")
        self.previous_broker_epoch = epoch if type(epoch) is int else -1
        seals = content.get("seals")
        for directory_name, rows in seals.items() if isinstance(seals, dict) else ():
            match = DIRECTORY_PATTERN.match(directory_name)
            seal = Seal.from_json(rows)
            if match is not None and seal is not None:
                self._seals[TopicPartition(match[1], int(match[2]))] = seal

    def close(self, *, broker_epoch: int = -1) -> None:
        """Close all logs, write the checkpoints, then the clean-shutdown marker.

        A log that is offline, or was never opened and not cleanly closed before, gets no seal.

        Raises:
            DiskError: something could not be made durable; there is no marker then.
        """
        if not self._is_open:
            return
        try:
            first_error: DiskError | None = None
            for _, log in sorted(self._logs.items()):
                try:
                    log.close()
                except DiskError as error:
                    first_error = first_error or error
            self.write_log_starts()
            self.write_recovery_points()
            if first_error is not None:
                raise first_error
            self._write_marker(broker_epoch)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release files and locks and write nothing, as the end of the process would."""
        self._is_open = False
        for log in self._logs.values():
            log.abandon()
        self._lock.release()

    def _write_marker(self, broker_epoch: int) -> None:
        seals = {name.directory_name: seal.to_json() for name, seal in sorted(self._seals.items())}
        content = {"version": MARKER_VERSION, "brokerEpoch": broker_epoch, "seals": seals}
        data = json.dumps(content, separators=(",", ":")).encode()
        fsync = self._rules.fsync_before_rename
        replace_file(self._disk, self.path / MARKER_FILE, data, fsync=fsync)

    def _check_open(self) -> None:
        if not self._is_open:
            raise LogClosed(f"log directory {self.path} is closed")


def parse_name(path: Path, line: int, topic: str, partition: str) -> TopicPartition:
    """The name in two fields of a checkpoint. Raises ``CorruptCheckpoint``."""
    number = parse_int(path, line, partition)
    try:
        return TopicPartition.checked(topic, number)
    except InvalidConfig as error:
        raise CorruptCheckpoint(path, line, str(error)) from error


class _DirectoryStore:
    """``StateStore`` of one partition in its ``LogDir``."""

    def __init__(self, log_dir: LogDir, name: TopicPartition) -> None:
        self._log_dir = log_dir
        self._name = name

    def load(self, *, is_new: bool) -> LogState:
        return self._log_dir._state_of(self._name, is_new=is_new)

    def save(self, state: LogState) -> None:
        self._log_dir._save_state(self._name, state)

    def take_seal(self) -> Seal | None:
        return self._log_dir._seals.pop(self._name, None)

    def save_seal(self, seal: Seal) -> None:
        self._log_dir._seals[self._name] = seal
