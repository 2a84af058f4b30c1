"""The leader-epoch cache: which epoch began at which offset.

Entries rise strictly in epoch and in start offset. The rules are those of Kafka's
LeaderEpochFileCache (PROTOCOL A8): the last writer wins, a question about an epoch is answered
from the entries alone. ``storage.partition_log`` writes the file; this class does no I/O.

Left out: deciding where a follower truncates (the cluster's truncation rules).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from pathlib import Path

from storage.checkpoints import parse_int, read_entries, write_entries
from storage.config import INT32_MAX, LogRules
from storage.disk import Disk
from storage.errors import CorruptCheckpoint

__all__ = ["EPOCH_FILE", "UNDEFINED", "LeaderEpochCache", "read_epochs", "write_epochs"]

EPOCH_FILE = "leader-epoch-checkpoint"
UNDEFINED = -1
"""Answer for an epoch or an end offset that the entries say nothing about."""


class LeaderEpochCache:
    """Epoch to start offset, in memory."""

    __slots__ = ("_epochs", "_rules", "_starts")

    def __init__(
        self, entries: Iterable[tuple[int, int]] = (), *, rules: LogRules | None = None
    ) -> None:
        """Entries are replayed through ``assign``, as Kafka does with a file's lines."""
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self._rules = rules or LogRules()
        for epoch, start in entries:
            self.assign(epoch, start)

    @property
    def entries(self) -> tuple[tuple[int, int], ...]:
        """``(epoch, start offset)``, oldest first."""
        return tuple(zip(self._epochs, self._starts, strict=True))

    @property
    def latest(self) -> int:
        """The newest epoch, or -1."""
        return self._epochs[-1] if self._epochs else UNDEFINED

    @property
    def previous(self) -> int:
        """The second newest epoch, or -1."""
        return self._epochs[-2] if len(self._epochs) > 1 else UNDEFINED

    def assign(self, epoch: int, start: int) -> bool:
        """Note that ``epoch`` begins at offset ``start``; returns whether anything changed.

        Nothing happens for the newest epoch at or behind its start. Otherwise entries that
        contradict the new one (epoch or start at or above it) go first.

        Raises:
            ValueError: epoch or start is negative.
        """
        if epoch < 0 or start < 0:
            raise ValueError(f"epoch {epoch} at offset {start}: both must be 0 or more")
        epochs, starts = self._epochs, self._starts
        if epochs and epoch == epochs[-1] and start >= starts[-1]:
            return False
        while epochs and (epochs[-1] >= epoch or starts[-1] >= start):
            epochs.pop()
            starts.pop()
        epochs.append(epoch)
        starts.append(start)
        return True

    def end_offset_for(self, epoch: int, log_end: int) -> tuple[int, int]:
        """The epoch at or below ``epoch`` that the log has, and the offset where it ends.

        The newest epoch ends at ``log_end``. An epoch above every entry, and -1, are undefined:
        (-1, -1). One below the oldest is echoed with the oldest start (KAFKA-7415).
        """
        undefined = (UNDEFINED, UNDEFINED)
        if not self._rules.undefined_epoch_is_undefined and (
            epoch == UNDEFINED or epoch > self.latest
        ):
            return (epoch, log_end)
        if epoch == UNDEFINED or epoch > self.latest:
            return undefined
        if epoch == self.latest:
            return (epoch, log_end)
        after = bisect_right(self._epochs, epoch)
        end = self._starts[after]
        if after == 0:
            return (epoch, end) if self._rules.answer_below_oldest_epoch else undefined
        return (self._epochs[after - 1], end)

    def epoch_for_offset(self, offset: int) -> int:
        """The epoch of the last entry that starts at or before ``offset``, or -1."""
        found = bisect_right(self._starts, offset)
        return self._epochs[found - 1] if found else UNDEFINED

    def truncate_from_end(self, offset: int) -> bool:
        """Drop entries that start at or behind ``offset``; returns whether there were any."""
        before = len(self._starts)
        if offset >= 0:
            while self._starts and self._starts[-1] >= offset:
                self._starts.pop()
                self._epochs.pop()
        return len(self._starts) != before

    def truncate_from_start(self, offset: int) -> bool:
        """Drop what ended before ``offset``; the epoch that spans it starts there now."""
        dropped = bisect_right(self._starts, offset)
        if dropped == 0 or (dropped == 1 and self._starts[0] == offset):
            return False
        epoch = self._epochs[dropped - 1]
        self._epochs[:dropped] = [epoch]
        self._starts[:dropped] = [offset]
        return True


def write_epochs(disk: Disk, directory: Path, cache: LeaderEpochCache, rules: LogRules) -> None:
    """Write ``leader-epoch-checkpoint``: one ``epoch start`` line an entry."""
    write_entries(disk, directory / EPOCH_FILE, cache.entries, fsync=rules.fsync_before_rename)


def read_epochs(disk: Disk, directory: Path) -> list[tuple[int, int]] | None:
    """The file's lines as they stand, None where it is missing.

    Raises:
        CorruptCheckpoint: the file is malformed or has a negative number.
    """
    path = directory / EPOCH_FILE
    entries = read_entries(disk, path, fields=2)
    if entries is None:
        return None
    result = []
    for number, (epoch, start) in enumerate(entries, 3):
        pair = (parse_int(path, number, epoch), parse_int(path, number, start))
        if not 0 <= pair[0] <= INT32_MAX or pair[1] < 0:
            raise CorruptCheckpoint(path, number, f"epoch {pair[0]} at offset {pair[1]}")
        result.append(pair)
    return result
