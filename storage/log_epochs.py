"""The leader epochs of a log: promotion, and the epoch file in step with the batches.

An epoch is on disk before its first batch, so the file never misses one. Dropping entries is
pending work; what a crash leaves of them is found on open.

Left out: the rules of the cache itself (``storage.epochs``).
"""

from __future__ import annotations

from storage.config import INT32_MAX
from storage.epochs import LeaderEpochCache
from storage.errors import DiskError, StaleLeaderEpoch
from storage.log_durability import DurableLog
from storage.reading import read

__all__ = ["EpochLog"]


class EpochLog(DurableLog):
    """What a log knows and writes of leader epochs.

    Attributes:
        leader_epoch: the epoch that ``append`` stamps.
    """

    leader_epoch: int
    _latest_epoch: int
    _assigned_epoch: int

    def become_leader(self, epoch: int) -> None:
        """Stamp appends with ``epoch`` from now on, and note durably where it begins.

        Raises:
            StaleLeaderEpoch: below the log's newest epoch.
            DiskError: the epoch file could not be written; nothing changed.
        """
        self._check_writable()
        if epoch.__class__ is not int or not 0 <= epoch <= INT32_MAX:
            raise ValueError(f"epoch is {epoch!r}, allowed is 0..{INT32_MAX}")
        if epoch != self._assigned_epoch:
            self._assign_epochs([(epoch, self._leo)])
        self.leader_epoch = epoch

    def become_follower(self) -> None:
        """Drop epoch entries at the log's end: they are a leader's own word (PROTOCOL A8)."""
        self._check_writable()
        self._cut_epochs(self._leo)
        self._settle()

    def _assign_epochs(self, rises: list[tuple[int, int]]) -> None:
        if rises[0][0] < self._latest_epoch:
            raise StaleLeaderEpoch(rises[0][0], self._latest_epoch)
        before = self._epochs
        self._epochs = LeaderEpochCache(before.entries, rules=self.config.rules)
        for epoch, offset in rises:
            self._epochs.assign(epoch, offset)
        try:
            self._write_epochs()
        except DiskError as error:
            self._epochs = before
            self._note_failure(error)
            raise
        self._latest_epoch = self._assigned_epoch = self._epochs.latest
        self._directory_changes += 1

    def _cut_epochs(self, offset: int) -> None:
        if self._epochs.truncate_from_end(offset):
            self._add_work("epochs")
        self._note_latest_epoch()

    def _note_latest_epoch(self) -> None:
        """The cache's newest epoch, or the last batch's where the log start hides its entry."""
        self._assigned_epoch = self._epochs.latest
        self._latest_epoch = max(self._assigned_epoch, self._last_batch_epoch())

    def _last_batch_epoch(self) -> int:
        """The epoch in the header of the last batch, -1 for an empty log."""
        for segment in reversed(self._segments):
            if segment.last_position >= 0:
                head = read(segment, segment.last_position, self._codec.hop_bytes)
                return self._codec.hop(head, 0)[3]
        return -1
