"""The durability of a log: flushes, the durable boundary, pending work, closing, going offline.

The durable boundary is raised only by a completed flush, and lowered on disk before anything
shortens the log. Nothing happens in the background: what Kafka does there is plain data that
``take_pending`` hands over and ``run`` performs. A log opened on its own runs it at once.

Left out: what is written and cut (``storage.partition_log``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attrs import evolve, frozen

from storage.batch import OFFSET_END
from storage.checkpoints import remove_if_there
from storage.disk import DiskLock
from storage.epochs import write_epochs
from storage.errors import DiskError, FsyncFailed, LogClosed, LogOffline
from storage.log_producers import ProducerLog
from storage.opening import Opened
from storage.reading import locate
from storage.segment import Segment
from storage.state import Boundary, LogState, Seal, StateStore
from storage.values import Value

__all__ = ["DurableLog", "FlushToken", "Work"]


@frozen
class Work(Value):
    """Work that is due behind a call, as data: ``PartitionLog.run`` performs it.

    Kinds: ``flush`` (args: the offset up to which), ``persist`` (the durable boundary and log
    start, after a flush where the start is above the boundary), ``epochs`` (the epoch file),
    ``delete`` (args: names of renamed files), ``snapshot`` (the producer state, which took a long
    replay to find), ``prune`` (producer snapshots that newer ones stand in for).
    """

    id: int
    kind: str
    args: tuple[Any, ...] = ()


@frozen
class FlushToken(Value):
    """What a flush covers, fixed when it began; plain data."""

    id: int
    directory: Path
    boundary: Boundary
    files: tuple[tuple[int, int, tuple[int, int, int], int], ...]
    directory_changes: int


class DurableLog(ProducerLog):
    """What makes a log durable, and what ends its service."""

    _store: StateStore
    _lock: DiskLock | None
    _runs_pending: bool
    _next_id: int

    def _start(self, opened: Opened) -> None:
        """Begin with what opening left to do."""
        self._pending: dict[tuple[Any, ...], Work] = {}
        self._flushes: dict[int, tuple[FlushToken, int]] = {}
        self._directory_changes = 1
        self._directory_synced = 0
        self._layout_version = 0
        self._saved_log_start = self.log_start_offset
        self._mark_unsynced()
        if opened.epochs_changed:
            self._add_work("epochs")
        if opened.producers.was_long:
            self._add_work("snapshot")
        if not opened.is_boundary_known:
            self._add_work("flush", self._leo)
            self._add_work("persist")
        if not self.config.rules.boundary_after_fsync:
            self._raise_boundary(self._boundary_now())
        self._settle()

    def _mark_unsynced(self) -> None:
        """A flush must cover what an unclean open found above the boundary."""
        boundary = self.boundary
        if boundary.end_offset < self._leo:
            for segment in self._segments:
                if segment.base_offset >= boundary.segment_base:
                    segment.writes += 1

    # Flushing ---------------------------------------------------------------------------------

    def begin_flush(self, up_to: int | None = None) -> FlushToken:
        """Fix what ``complete_flush`` makes durable: log, indexes, directory, up to now.

        Args:
            up_to: only segments that end at or below this offset; all by default.
        """
        self._check_writable()
        covered = self._segments
        boundary = self._boundary_now()
        if up_to is not None and up_to < self._leo:
            covered = [s for s in self._segments if s.next_offset <= up_to]
            last = covered[-1] if covered else None
            boundary = self.boundary
            if last is not None:
                boundary = Boundary(last.base_offset, last.size_bytes, last.next_offset)
        files = tuple(
            (segment.base_offset, segment.creation, segment.begin_fsync(), segment.writes)
            for segment in covered
            if segment.writes != segment.synced_writes or segment.undurable_cut is not None
        )
        self._next_id += 1
        changes = self._directory_changes
        token = FlushToken(self._next_id, self.directory, boundary, files, changes)
        self._flushes[token.id] = (token, OFFSET_END)
        return token

    def complete_flush(self, token: FlushToken) -> None:
        """Make durable what ``token`` covers and raise the durable boundary.

        Raises:
            FsyncFailed: the log is offline then: a retry proves nothing, open it anew.
            ValueError: the token was completed before, or is not of this log.
        """
        self._complete(token)
        self._settle()

    def _complete(self, token: FlushToken) -> None:
        """``complete_flush`` without the work that it leads to."""
        self._check_writable()
        known, ceiling = self._flushes.get(token.id, (None, 0))
        if known != token:
            raise ValueError(f"flush {token.id} is not outstanding on {self.directory}")
        del self._flushes[token.id]
        by_base = {segment.base_offset: segment for segment in self._segments}
        try:
            for base, creation, tokens, writes in token.files:
                segment = by_base.get(base)
                if segment is not None and segment.creation == creation:
                    segment.complete_fsync(tokens, writes)
                    segment.synced_writes = writes
            has_synced = self._snapshots.sync(token.boundary.end_offset)
            if token.directory_changes > self._directory_synced:
                self._disk.fsync_dir(self.directory)
                self._directory_synced = token.directory_changes
        except DiskError as error:
            self._failure = error
            raise
        boundary = token.boundary
        if ceiling < boundary.end_offset:
            segment = self._segments[self._segment_number(ceiling)]
            boundary = Boundary(segment.base_offset, locate(segment, ceiling), ceiling)
        self._raise_boundary(boundary)
        if has_synced:
            self._note_superfluous()

    def _sync_cut(self, segment: Segment) -> None:
        if segment.undurable_cut is not None:
            try:
                segment.file().fsync()
            except DiskError as error:
                self._failure = error
                raise
            segment.undurable_cut = None

    def flush(self) -> None:
        """Make everything appended so far durable. Raises as ``complete_flush`` does."""
        self.complete_flush(self.begin_flush())

    def _boundary_now(self) -> Boundary:
        return Boundary(self._active.base_offset, self._active.size_bytes, self._leo)

    def _raise_boundary(self, boundary: Boundary) -> None:
        if boundary.end_offset > self.boundary.end_offset:
            self._state = evolve(self._state, boundary=boundary)
            self._add_work("persist")

    def close(self) -> None:
        """Flush, do what is pending, leave a clean-close seal, and release files and lock.

        An offline log is only released. A second call does nothing.
        """
        if self._is_closed:
            return
        try:
            if self._failure is None:
                self._complete(self.begin_flush())
                if self._take_snapshot():
                    # Behind the log's own flush: a snapshot must not outlive what it is of.
                    self._directory_changes += 1
                    self._complete(self.begin_flush())
                self.run_pending()
                self._store.save_seal(Seal(tuple(s.seal() for s in self._segments)))
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Release files and lock and write nothing, as the end of the process would."""
        self._is_closed = True
        for segment in self._segments:
            segment.close()
        if self._lock is not None:
            self._lock.release()

    def _lower(self, boundary: Boundary, *, min_start: int) -> None:
        """Lower boundary, log start, cleaned offset and outstanding flushes before bytes go.

        All of it is durable when this returns.
        """
        end = boundary.end_offset
        self._layout_version += 1
        for token, ceiling in list(self._flushes.values()):
            self._flushes[token.id] = (token, min(ceiling, end, min_start))
        state = self._state
        if self.boundary.end_offset > end:
            state = evolve(state, boundary=boundary)
        if self.log_start_offset > min_start:
            state = evolve(state, log_start_offset=min_start)
        if state.cleaned_offset > end:
            state = evolve(state, cleaned_offset=end)
        if state == self._state:
            return
        self._state = state
        if self.config.rules.lower_boundary_first:
            self._save_state()
        else:
            self._add_work("persist")

    def _save_state(self, state: LogState | None = None) -> None:
        """Save the state, with a log start that a power loss cannot leave behind the log's end."""
        state = state or self._state
        assert state.boundary is not None
        start = min(state.log_start_offset or 0, state.boundary.end_offset)
        self._store.save(evolve(state, log_start_offset=start))
        self._saved_log_start = start
        if start < (state.log_start_offset or 0):
            self._add_work("persist")

    def _persist(self) -> None:
        """Save the state, after a flush where the log start is above the durable end."""
        if self.log_start_offset > self.boundary.end_offset:
            self._complete(self.begin_flush())
        self._save_state()

    def _write_epochs(self) -> None:
        """Write the epoch file, which must not be cut to a log start that a crash takes back."""
        if self._saved_log_start < self.log_start_offset:
            self._persist()
        write_epochs(self._disk, self.directory, self._epochs, self.config.rules)

    # Pending work ------------------------------------------------------------------------------

    @property
    def has_pending(self) -> bool:
        """Whether work is due."""
        return bool(self._pending)

    def take_pending(self) -> tuple[Work, ...]:
        """Hand over the work that is due; the caller sees to it that ``run`` gets each."""
        work = tuple(self._pending.values())
        self._pending.clear()
        return work

    def run(self, work: Work) -> None:
        """Perform one piece of work. What time has overtaken does nothing.

        Raises:
            DiskError: it failed; after ``FsyncFailed`` the log is offline.
        """
        self._check_writable()
        try:
            if work.kind == "flush":
                self._complete(self.begin_flush(up_to=work.args[0]))
            elif work.kind == "persist":
                self._persist()
            elif work.kind == "epochs":
                self._write_epochs()
            elif work.kind == "delete":
                for name in work.args:
                    remove_if_there(self._disk, self.directory / name)
            elif work.kind == "snapshot":
                # Else a power loss could bring a cut tail back that the snapshot does not know.
                self._sync_cut(self._active)
                self._directory_changes += self._take_snapshot()
            elif work.kind == "prune":
                self._snapshots.drop(self._superfluous_snapshots())
            else:
                allowed = "flush persist epochs delete snapshot prune"
                raise ValueError(f"work kind is {work.kind!r}, allowed: {allowed}")
        except DiskError as error:
            self._note_failure(error)
            raise

    def run_pending(self) -> None:
        """Perform all pending work, including what it leads to."""
        while self._pending:
            key, work = next(iter(self._pending.items()))
            self.run(work)
            del self._pending[key]

    def _add_work(self, kind: str, *args: Any) -> None:
        key = (kind, *args)
        if key not in self._pending:
            self._next_id += 1
            self._pending[key] = Work(self._next_id, kind, args)

    def _note_superfluous(self) -> None:
        if self._superfluous_snapshots():
            self._add_work("prune")

    def _settle(self) -> None:
        """Run pending work at once, on a log that does so.

        The call that led here has succeeded, so a failure waits: the work stays pending for the
        next ``flush`` or ``close``, and after a failed fsync the log is offline.
        """
        if not self._runs_pending:
            return
        try:
            self.run_pending()
        except DiskError:
            return

    # Refusing ----------------------------------------------------------------------------------

    def _check_writable(self) -> None:
        if self._failure is not None or self._is_closed:
            self._refuse_write()

    def _refuse_write(self) -> None:
        if self._is_closed:
            raise LogClosed(f"log {self.directory} is closed")
        assert self._failure is not None
        raise LogOffline(self.directory, self._failure) from self._failure

    def _note_failure(self, error: DiskError) -> None:
        if isinstance(error, FsyncFailed):
            self._failure = error
