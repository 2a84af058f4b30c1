"""Errors of the storage package: what can go wrong with a log, and whose fault it is.

Rules:

* Everything raised on purpose derives from :class:`StorageError` and carries a ``code`` (upper
  snake case of the class name), so that a protocol layer can map it without parsing text.
* A message names the thing, the value seen and the value allowed.
* The caller's mistakes (:class:`InvalidConfig`, :class:`InvalidRecord`, :class:`UnexpectedOffset`,
  ...), the disk's failures (:class:`DiskError`) and damaged bytes (:class:`CorruptData`) are
  different branches and are never converted into one another.

Left out: bugs of this package are ``AssertionError``; a simulated power cut is a
``BaseException`` of the simulator and passes through storage untouched.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

__all__ = [
    "AccessDenied",
    "BatchTooLarge",
    "CorruptBatch",
    "CorruptCheckpoint",
    "CorruptData",
    "CorruptIndex",
    "CorruptLog",
    "DiskError",
    "DiskFull",
    "DiskReadOnly",
    "FileExists",
    "FileMissing",
    "ForeignFile",
    "FsyncFailed",
    "InvalidConfig",
    "InvalidProducerEpoch",
    "InvalidRecord",
    "LockHeld",
    "LogClosed",
    "LogOffline",
    "NotRegularFile",
    "NotTruncatable",
    "OffsetOutOfRange",
    "OutOfOrderSequence",
    "StaleLeaderEpoch",
    "StorageError",
    "UnexpectedOffset",
]


class StorageError(Exception):
    """Root of every error that this package raises on purpose."""

    code: ClassVar[str] = "STORAGE_ERROR"

    def __init_subclass__(cls) -> None:
        cls.code = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", cls.__name__).upper()

    def __reduce__(self) -> tuple[Any, ...]:
        # Python would call the class with the finished message; a log that failed keeps its error,
        # and is copied with it.
        return _again, (type(self), self.args, self.__dict__)


def _again(kind: type[StorageError], args: tuple[Any, ...], attributes: dict[str, Any]) -> object:
    error = kind.__new__(kind, *args)
    error.__dict__.update(attributes)
    return error


# The caller's mistakes -------------------------------------------------------------------------


class InvalidConfig(StorageError, ValueError):
    """A configuration value is outside its range, or two values contradict each other."""


class InvalidRecord(StorageError, ValueError):
    """A record or batch cannot be encoded: wrong type, value out of range, or empty."""


class BatchTooLarge(StorageError):
    """A frame is larger than ``max_batch_bytes`` (the whole frame counts)."""

    def __init__(self, size_bytes: int, max_batch_bytes: int) -> None:
        super().__init__(f"batch of {size_bytes} bytes, max_batch_bytes is {max_batch_bytes}")
        self.size_bytes = size_bytes
        self.max_batch_bytes = max_batch_bytes


class OffsetOutOfRange(StorageError):
    """A read at ``requested``, outside ``start`` to ``end`` (the log end itself may be asked)."""

    def __init__(self, requested: int, start: int, end: int) -> None:
        super().__init__(f"offset {requested} is outside {start}..{end}")
        self.requested = requested
        self.start = start
        self.end = end


class UnexpectedOffset(StorageError):
    """An assigned batch does not continue the log: its base offset is not the log end offset."""

    def __init__(self, expected: int, seen: int, why: str = "") -> None:
        super().__init__(f"batch base offset {seen}, expected {expected}{why}")
        self.expected = expected
        self.seen = seen


class StaleLeaderEpoch(StorageError):
    """A batch or a promotion carries a leader epoch below one that the log already has."""

    def __init__(self, seen: int, latest: int) -> None:
        super().__init__(f"leader epoch {seen} is below the log's latest epoch {latest}")
        self.seen = seen
        self.latest = latest


class InvalidProducerEpoch(StorageError):
    """A client's batch carries a producer epoch below the one that the log knows: a zombie's."""

    def __init__(self, producer_id: int, seen: int, current: int) -> None:
        super().__init__(f"producer {producer_id}: epoch {seen}, the log knows epoch {current}")
        self.producer_id = producer_id
        self.seen = seen
        self.current = current


class OutOfOrderSequence(StorageError):
    """A client's batch is neither the producer's next one nor one of its last five.

    ``seen`` is its first sequence, ``expected`` the one sequence that would have been accepted.
    """

    def __init__(self, producer_id: int, producer_epoch: int, seen: int, expected: int) -> None:
        super().__init__(
            f"producer {producer_id} epoch {producer_epoch}: sequence {seen}, expected {expected}"
        )
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.seen = seen
        self.expected = expected


class NotTruncatable(StorageError):
    """A truncation target lies inside a batch, or below the log start offset."""

    def __init__(self, target: int, why: str) -> None:
        super().__init__(f"cannot truncate to offset {target}: {why}")
        self.target = target


class ForeignFile(StorageError):
    """A file in a log directory has a segment's suffix but cannot be one: nothing is opened."""

    def __init__(self, path: Path, why: str) -> None:
        super().__init__(f"{path}: {why}")
        self.path = path


class LogClosed(StorageError):
    """The log was closed by its owner."""


class LogOffline(StorageError):
    """An earlier failure took the log offline; open it anew to go on. ``cause`` is that failure."""

    def __init__(self, directory: Path, cause: StorageError) -> None:
        super().__init__(f"log {directory} is offline: {cause}")
        self.directory = directory
        self.cause = cause


# Damaged bytes ---------------------------------------------------------------------------------


class CorruptData(StorageError):
    """Bytes on disk or on the wire are not what was written."""


class CorruptBatch(CorruptData):
    """A frame fails a check. ``reason`` is a short fixed word, the message has the figures."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail


class CorruptIndex(CorruptData):
    """An index file breaks its rules. Indexes are derived data: the log rebuilds them."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class CorruptCheckpoint(CorruptData):
    """A checkpoint file cannot be read. ``line`` counts from 1; 0 means the whole file."""

    def __init__(self, path: Path, line: int, reason: str) -> None:
        super().__init__(f"{path}:{line}: {reason}" if line else f"{path}: {reason}")
        self.path = path
        self.line = line
        self.reason = reason


class CorruptLog(CorruptData):
    """A log refuses to open, because opening it would lose or hide records.

    Nothing was changed on disk. ``PartitionLog.salvage`` is the one way to go on with the good
    prefix.

    Attributes:
        file: the damaged or missing file.
        position: byte position of the damage in ``file`` (0 where the whole file is meant).
        last_good_offset: end of the good prefix, exclusive: every batch below it is whole. The
            log start offset where there is no good prefix.
        first_good_offset: base offset of the first whole batch behind the damage, or None.
        reason: what is wrong, in words.
    """

    def __init__(
        self,
        file: Path,
        reason: str,
        *,
        position: int,
        last_good_offset: int,
        first_good_offset: int | None,
    ) -> None:
        behind = (
            "no whole batch behind it"
            if first_good_offset is None
            else f"whole batches behind it from offset {first_good_offset}"
        )
        super().__init__(
            f"{file}: {reason} at byte {position}; good up to offset {last_good_offset}; {behind}"
        )
        self.file = file
        self.position = position
        self.last_good_offset = last_good_offset
        self.first_good_offset = first_good_offset
        self.reason = reason


# The disk's failures ---------------------------------------------------------------------------


class DiskError(StorageError):
    """A disk call failed.

    Attributes:
        operation: name of the call (``write_at``, ``rename``, ...).
        path: the file or directory.
        errno_name: symbolic errno such as ``EIO``; never the host's own message text.
    """

    def __init__(self, operation: str, path: Path, errno_name: str, detail: str = "") -> None:
        super().__init__(f"{operation} {path}: {errno_name}{': ' if detail else ''}{detail}")
        self.operation = operation
        self.path = path
        self.errno_name = errno_name


class DiskFull(DiskError):
    """No space left, quota used up, or the file size limit reached."""


class DiskReadOnly(DiskError):
    """The file system, or the handle, does not take writes."""


class AccessDenied(DiskError):
    """The permissions of the file or directory forbid the call."""


class FileMissing(DiskError):
    """The path does not exist."""


class FileExists(DiskError):
    """The path exists already, or a directory is not empty."""


class NotRegularFile(DiskError):
    """A symbolic link, a directory or a device stands where a regular file or a directory must."""


class LockHeld(DiskError):
    """Another process, or another log in this one, holds the lock."""


class FsyncFailed(DiskError):
    """An fsync failed. What it covered may be gone, and a retry proves nothing (ATC'20)."""
