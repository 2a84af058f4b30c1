"""The log of one partition: an ordered sequence of batches in segment files.

A leader calls ``append``, which assigns offsets and epoch; a follower calls
``append_replica_batch`` with batches that a leader assigned. Both end in one write to the active
segment. Reading is in ``storage.log_reader``, flushing and pending work in
``storage.log_durability``, retention and the swaps of compaction in ``storage.log_cleaning``; this
module has what changes the log's end.

Left out: leaders, high watermark, who may read what (package ``cluster``); time, which comes in as
an argument.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from attrs import evolve

from storage.batch import OFFSET_END, RecordBatch
from storage.checkpoints import remove_if_there
from storage.codec import Codec, FrameFacts
from storage.config import INT32_MAX, LogConfig
from storage.disk import Disk, DiskLock, OsDisk
from storage.epochs import LeaderEpochCache
from storage.errors import (
    CorruptIndex,
    CorruptLog,
    DiskError,
    InvalidConfig,
    InvalidRecord,
    NotTruncatable,
    OffsetOutOfRange,
    StaleLeaderEpoch,
    StorageError,
)
from storage.listing import LOCK_FILE
from storage.log_cleaning import CleanableLog
from storage.mkb1 import MKB1
from storage.opening import (
    Opened,
    ensure_directory,
    open_parts,
    refuse_log_dir_member,
    salvage_files,
)
from storage.reading import locate, read
from storage.recovery import Verify
from storage.replica_frames import check_frames, group_frames
from storage.segment import Segment
from storage.state import Boundary, FileStateStore, StateStore

__all__ = ["Appended", "PartitionLog"]


class Appended(NamedTuple):
    """What an append stored: offsets ``base_offset`` to ``next_offset`` (exclusive).

    For a producer's retry these say where the batch stands already, and ``leader_epoch`` is that
    of the batch, -1 where the log no longer knows it.
    """

    base_offset: int
    next_offset: int
    leader_epoch: int
    size_bytes: int

    @property
    def is_duplicate(self) -> bool:
        """Whether the batch was in the log before, so that nothing was written."""
        return self.size_bytes == 0


class PartitionLog(CleanableLog):
    """See the module. Made by ``open`` or ``salvage``.

    Attributes:
        directory, config: as given to ``open``.
        leader_epoch: the epoch that ``append`` stamps.
        report: what opening found and did.
    """

    def __init__(
        self,
        directory: Path,
        config: LogConfig,
        disk: Disk,
        codec: Codec,
        store: StateStore,
        opened: Opened,
        *,
        leader_epoch: int,
        runs_pending: bool,
        first_id: int,
        lock: DiskLock | None,
    ) -> None:
        super().__init__(directory, config, disk, codec, opened)
        self._encode = codec.encode
        self._store = store
        self._lock = lock
        self._runs_pending = runs_pending
        self._next_id = first_id
        self._note_latest_epoch()
        self.leader_epoch = max(leader_epoch, self._latest_epoch)
        self._start(opened)

    @classmethod
    def open(
        cls,
        directory: Path,
        config: LogConfig | None = None,
        *,
        leader_epoch: int = 0,
        verify: Verify = "unflushed",
        disk: Disk | None = None,
        codec: Codec = MKB1,
        store: StateStore | None = None,
        runs_pending: bool | None = None,
        first_id: int = 0,
    ) -> PartitionLog:
        """Open the log in ``directory``, or begin one there.

        Args:
            leader_epoch: the lowest epoch that ``append`` stamps; the log's newest wins.
            verify: ``unflushed`` walks only what lies above the durable boundary and trusts a
                matching clean-close seal below it; ``all`` walks every byte.
            store: where boundary, log start and seal are kept. Without one the log keeps them in
                its directory and locks that.
            runs_pending: whether pending work runs at once; by default where there is no ``store``.
            first_id: ids of flushes, work and segments are above it; tells a log from one that was
                in the same directory before.

        Raises:
            CorruptLog: opening would lose or hide records; ``salvage`` keeps the good prefix.
            ForeignFile, NotRegularFile: a file has a segment's suffix and cannot be one.
            LockHeld: another log or process has the directory open.
            DiskError: the directory cannot be read or written.
        """
        config = config or LogConfig()
        disk = disk or OsDisk()
        if verify not in ("unflushed", "all"):
            raise ValueError(f"verify is {verify!r}, allowed is 'unflushed' or 'all'")
        if not 0 <= leader_epoch <= INT32_MAX:
            raise ValueError(f"leader_epoch is {leader_epoch}, allowed is 0..{INT32_MAX}")
        ensure_directory(disk, directory)
        if store is None:
            refuse_log_dir_member(disk, directory)
        lock = disk.lock(directory / LOCK_FILE) if store is None else None
        try:
            used = store or FileStateStore(disk, directory, config.rules)
            opened = open_parts(disk, directory, config, codec, used, verify)
            return cls(
                directory,
                config,
                disk,
                codec,
                used,
                opened,
                leader_epoch=leader_epoch,
                runs_pending=store is None if runs_pending is None else runs_pending,
                first_id=first_id,
                lock=lock,
            )
        except BaseException:
            if lock is not None:
                lock.release()
            raise

    @classmethod
    def salvage(
        cls,
        directory: Path,
        error: CorruptLog,
        config: LogConfig | None = None,
        *,
        leader_epoch: int = 0,
        disk: Disk | None = None,
        codec: Codec = MKB1,
    ) -> PartitionLog:
        """Open a log that refused, keeping the prefix below ``error.last_good_offset``.

        Everything behind it is given up; where there is no good prefix, the log is empty at its
        start offset. Nothing else shortens a refused log. ``LogDir.open_log`` does the same for its
        own logs. Arguments and errors as in ``open``; every byte that stays is walked.
        """
        config = config or LogConfig()
        disk = disk or OsDisk()
        refuse_log_dir_member(disk, directory)
        lock = disk.lock(directory / LOCK_FILE)
        try:
            store = FileStateStore(disk, directory, config.rules)
            salvage_files(disk, directory, config, codec, store, error)
        finally:
            lock.release()
        return cls.open(
            directory, config, leader_epoch=leader_epoch, verify="all", disk=disk, codec=codec
        )

    # Writing -----------------------------------------------------------------------------------

    def append(self, batch: RecordBatch, *, now_ms: int | None = None) -> Appended:
        """Store a batch at the log's end, with the next offset and this log's ``leader_epoch``.

        Offset and epoch that ``batch`` already has are not looked at. An epoch's first batch writes
        the epoch file, synchronously, before the batch. A batch that names a producer is judged by
        what the log knows of it; one that the log has already is answered and not stored.

        Args:
            now_ms: wall clock, for rolling by age where batches carry no timestamp.

        Raises:
            InvalidRecord: the batch cannot be stored; only compaction stores an empty one.
            InvalidProducerEpoch, OutOfOrderSequence: it does not follow its producer's last one.
            BatchTooLarge: the frame exceeds ``max_batch_bytes``.
            StaleLeaderEpoch: ``leader_epoch`` was set below the log's newest epoch.
            DiskError: nothing of the batch is left in the log; try again, or see ``failure``.
            LogOffline, LogClosed: the log takes no writes.
        """
        if self._failure is not None or self._is_closed:
            self._refuse_write()
        base_offset, epoch = self._leo, self.leader_epoch
        if epoch < self._latest_epoch:
            raise StaleLeaderEpoch(epoch, self._latest_epoch)
        if not batch.records and batch.control is None:
            raise InvalidRecord("a data batch has at least one record, this one has none")
        next_offset = base_offset + batch.last_offset_delta + 1
        if next_offset >= OFFSET_END:
            raise InvalidRecord(f"base_offset is {base_offset}: the batch would pass 2^63-1")
        frame, timestamp_ms = self._encode(batch, base_offset, epoch, self.config.max_batch_bytes)
        size = len(frame)
        facts = None
        if batch.producer_id >= 0:
            facts, stored = self._judge(frame)
            if stored is not None:
                epoch = self._epochs.epoch_for_offset(stored.base_offset)
                return Appended(stored.base_offset, stored.next_offset, epoch, 0)
        if now_ms is not None:
            self._note_clock(now_ms)
        if self._active.must_roll(size, next_offset, timestamp_ms, now_ms):
            self._roll(now_ms)
        if epoch != self._assigned_epoch:
            self._assign_epochs([(epoch, base_offset)])
        try:
            self._active.append_frame(frame, base_offset, next_offset, timestamp_ms)
        except (DiskError, CorruptIndex) as error:
            self._undo_append(error)
            raise
        self._leo = next_offset
        if facts is not None:
            self._note_producer(facts)
        if self._pending:
            self._settle()
        return Appended(base_offset, next_offset, epoch, size)

    def append_replica_batch(
        self, data: RecordBatch | bytes | bytearray | memoryview, *, now_ms: int | None = None
    ) -> Appended:
        """Store what a leader assigned: a batch, one raw frame, or a run of raw frames.

        Raw bytes are stored unchanged after magic, CRC, continuity and epoch were checked, all of
        them before the first is written. A run ends up as its frames one by one would. What a
        producer says, and how large a frame is, is not judged: the leader did that.

        Raises:
            UnexpectedOffset: a base offset is not the log end; upward gaps are for offsets below
                ``gaps_end``.
            StaleLeaderEpoch: a frame's epoch is below the log's newest.
            CorruptBatch: a frame is damaged or cut short.
            InvalidRecord, BatchTooLarge: a ``RecordBatch`` is unassigned or cannot be stored.
            DiskError: as for ``append``; of a run that spans segments, frames before a roll stay.
            LogOffline, LogClosed: the log takes no writes.
        """
        if self._failure is not None or self._is_closed:
            self._refuse_write()
        if isinstance(data, RecordBatch):
            data = self._assigned_frame(data)
        view = memoryview(data).cast("B")
        frames, producers = check_frames(
            view,
            self._codec,
            self.config.read_limit_bytes,
            log_end=self._leo,
            latest_epoch=self._latest_epoch,
            gaps_end=self._state.gaps_end,
        )
        if producers and not self.config.rules.judge_appends_only:
            self._judge_run(view, producers)
        if now_ms is not None:
            self._note_clock(now_ms)
        first_offset = self._leo
        at = number = 0
        while number < len(frames):
            size, _, next_offset, _, timestamp_ms = frames[number]
            if self._active.must_roll(size, next_offset, timestamp_ms, now_ms):
                self._roll(now_ms)
            end, size = group_frames(self._active, frames, number, now_ms)
            self._write_group(view[at : at + size], frames[number:end])
            at += size
            number = end
            if producers:
                producers = self._note_producers(view, producers, at)
        if self._pending:
            self._settle()
        return Appended(max(first_offset, frames[0][1]), self._leo, frames[-1][3], len(view))

    def _assigned_frame(self, batch: RecordBatch) -> bytes:
        if batch.base_offset is None:
            raise InvalidRecord("an unassigned batch cannot be replicated: append assigns offsets")
        limit = self.config.max_batch_bytes
        return self._encode(batch, batch.base_offset, batch.leader_epoch, limit)[0]

    def _write_group(self, data: memoryview, frames: list[FrameFacts]) -> None:
        latest = self._assigned_epoch
        if frames[-1][3] != latest:
            rises = []
            for _, base, _, epoch, _ in frames:
                if epoch != latest:
                    rises.append((epoch, base))
                    latest = epoch
            self._assign_epochs(rises)
        try:
            self._active.append_frames(data, frames)
        except (DiskError, CorruptIndex) as error:
            self._undo_append(error)
            raise
        self._leo = frames[-1][2]

    def roll(self, *, now_ms: int | None = None) -> Segment:
        """Begin a new segment; nothing happens if the active one is empty.

        The old segment's flush is pending work. Raises as ``append`` does.
        """
        self._check_writable()
        if self._active.has_data:
            self._roll(now_ms)
            self._settle()
        return self._active

    def _roll(self, now_ms: int | None) -> None:
        old = self._active
        # Else a power loss could bring the cut tail back over the new segment's offsets.
        self._sync_cut(old)
        self._take_snapshot()
        try:
            fresh = self._new_segment(self._leo)
            old.finish()
        except DiskError:
            self._remove_segment_files(self._leo)
            raise
        fresh.created_ms = now_ms
        self._directory_changes += 1
        self._segments.append(fresh)
        self._active = fresh
        old.on_open(self._note_open_file)
        self._note_open_file(old)
        self._add_work("flush", self._leo)

    def _remove_segment_files(self, base_offset: int) -> None:
        """A segment that could not be begun must not stay: the old one goes on over its offsets."""
        stem = Segment(self._disk, self.directory, base_offset, self.config, self._codec)
        try:
            for path in reversed(stem.paths):
                remove_if_there(self._disk, path)
        except DiskError as error:
            self._failure = error

    def _new_segment(self, base_offset: int) -> Segment:
        segment = Segment.create(
            self.directory, base_offset, self.config, disk=self._disk, codec=self._codec
        )
        segment.gaps_end = self.gaps_end
        self._next_id += 1
        segment.creation = self._next_id
        return segment

    def _note_clock(self, now_ms: int) -> None:
        if self._active.created_ms is None and self._active.expires_ms == OFFSET_END:
            self._active.created_ms = now_ms

    def _undo_append(self, error: StorageError) -> None:
        """Bring the files back to the log's end; go offline where that fails too."""
        try:
            self._active.undo_append()
            if isinstance(error, CorruptIndex):
                self._active.rebuild_indexes()
        except StorageError:
            self._failure = error
        self._cut_epochs(self._leo + 1)

    def reconfigure(self, config: LogConfig) -> None:
        """Take other limits from now on; what is written stays as it is.

        Raises:
            InvalidConfig: ``config.rules`` differ; they hold from open to close.
        """
        if config == self.config:
            return
        if config.rules != self.config.rules:
            raise InvalidConfig("rules cannot change while the log is open")
        self.config = config
        for segment in self._segments:
            segment.reconfigure(config)

    # Shortening --------------------------------------------------------------------------------

    def truncate_to(self, target: int) -> None:
        """Make ``target`` the log's end: everything from there on goes, in place.

        At or behind the log's end no data goes, but epoch entries from the end on do
        (KAFKA-10706). Below the first segment it is ``truncate_fully_and_start_at``. The durable
        boundary is lowered first, and producer snapshots behind ``target`` go; then later segments
        go, last to first, then the tail of the one that holds ``target``, its indexes, and the
        epochs. Epoch file and deletion are pending work.

        Raises:
            NotTruncatable: ``target`` lies inside a batch; nothing changed.
            ValueError: ``target`` is negative.
            DiskError, CorruptLog: the log is offline then.
            LogOffline, LogClosed: the log takes no writes.
        """
        self._check_writable()
        if target < 0:
            raise ValueError(f"target is {target}, allowed is 0 or more")
        if target >= self._leo:
            if self.config.rules.cut_epochs_at_end:
                self._cut_epochs(self._leo)
                self._settle()
            return
        if target < self._segments[0].base_offset:
            self.truncate_fully_and_start_at(target)
            return
        number = self._segment_number(target)
        segment = self._segments[number]
        position = locate(segment, target)
        good_end = self._end_before(segment, position, target)
        measured = segment.measure(position, good_end)
        try:
            self._lower(Boundary(segment.base_offset, position, good_end), min_start=target)
            self._drop_snapshots_above(target)
            if number + 1 < len(self._segments):
                self._drop_segments(number + 1)
                # Else a power loss could bring their names back over offsets that are reused.
                self._disk.fsync_dir(self.directory)
            segment.truncate_to(position, good_end, measured)
            self._active = segment
            self._leo = good_end
            self._cut_epochs(target)
            self._bridge_hole(target)
            if self._reload_producers():
                self._add_work("snapshot")
        except StorageError as error:
            self._failure = error
            raise
        self._settle()

    def _end_before(self, segment: Segment, position: int, target: int) -> int:
        """The end of the batch before ``position``; below ``target`` only where a hole is."""
        if position < segment.size_bytes:
            base = self._codec.hop(read(segment, position, self._codec.hop_bytes), 0)[1]
            if base < target:
                raise NotTruncatable(target, f"it lies inside the batch that begins at {base}")
        if target > self._state.gaps_end:
            return target
        scan = segment.scan(segment.resume_point(target), stop_at=position)
        return scan.next_offset

    def _bridge_hole(self, target: int) -> None:
        """Keep the log's end at ``target`` where compaction left no batch that ends there.

        Empty batches stand for the missing offsets, one an epoch, so that the end and the epochs
        survive a restart and the next segment follows without a gap. Below the log start the cache
        knows of no epoch: there, the one of the batch before the hole goes on.
        """
        if target == self._leo:
            return
        epoch = max(self._last_batch_epoch(), 0)
        visible = max(self._leo, self.log_start_offset)
        if visible < target and self._epochs.epoch_for_offset(visible) < 0:
            entries = ((epoch, visible), *self._epochs.entries)
            self._epochs = LeaderEpochCache(entries, rules=self.config.rules)
            self._write_epochs()
        starts = [start for _, start in self._epochs.entries if self._leo < start < target]
        for end in (*starts, target):
            base_offset = self._leo
            epoch = max(epoch, self._epochs.epoch_for_offset(base_offset))
            batch = RecordBatch((), (), end - base_offset - 1, base_offset, epoch)
            self._active.append(batch)
            self._leo = end
        self._note_latest_epoch()

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything and go on, empty, at ``offset``: a follower that must begin anew.

        Raises as ``truncate_to`` does.
        """
        self._check_writable()
        if not 0 <= offset < OFFSET_END:
            raise ValueError(f"offset is {offset}, allowed is 0..2^63-1")
        # At or below the log start: a crash from here on leaves a log that begins anew there.
        low = min(self._segments[0].base_offset, offset)
        try:
            self._lower(Boundary(low, 0, low), min_start=low)
            self._drop_snapshots_above(-1)
            self._forget_producers()
            self._drop_segments(0)
            self._disk.fsync_dir(self.directory)
            self._state = evolve(
                self._state,
                boundary=Boundary(offset, 0, offset),
                log_start_offset=offset,
                cleaned_offset=min(offset, self._state.cleaned_offset),
            )
            self._save_state()
            self._active = self._new_segment(offset)
        except StorageError as error:
            self._failure = error
            raise
        self._segments = [self._active]
        self._directory_changes += 1
        self._leo = offset
        self._cut_epochs(0)
        self._settle()

    def _drop_segments(self, first: int) -> None:
        """Rename the segments from number ``first`` on, last to first; deletion is pending."""
        for number in range(len(self._segments) - 1, first - 1, -1):
            self._retire(number)

    def raise_log_start_offset(self, offset: int) -> None:
        """Hide everything below ``offset``; what is hidden stays on disk until retention.

        Raises:
            OffsetOutOfRange: not between the current start and the log's end.
        """
        self._check_writable()
        if not self.log_start_offset <= offset <= self._leo:
            raise OffsetOutOfRange(offset, self.log_start_offset, self._leo)
        if offset == self.log_start_offset:
            return
        self._state = evolve(self._state, log_start_offset=offset)
        self._add_work("persist")
        if self._epochs.truncate_from_start(offset):
            self._add_work("epochs")
        self._settle()
