"""Changes to the older part of a log: retention, and putting compacted segments in place.

Both touch only segments before the durable boundary's own, so a power loss can take neither what
they rest on nor what they leave. Both keep an order of which every prefix opens:

* retention: the log start offset is raised durably, then files are renamed, oldest first;
* a swap: holes are declared durably, the synced output is renamed to ``.swap``, the directory is
  synced (from here on the output counts), the originals are renamed to ``.deleted``, the directory
  is synced, the output gets its final names, the directory is synced.

Left out: which segments retention deletes (``storage.retention``), what compaction writes
(``storage.compaction``), what opening makes of a swap that was interrupted (``storage.swaps``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from storage.batch import OFFSET_END
from storage.checkpoints import remove_if_there
from storage.codec import Codec
from storage.errors import DiskError
from storage.listing import CLEANED_SUFFIX, DELETED_SUFFIX, SWAP_SUFFIX, list_directory
from storage.log_epochs import EpochLog
from storage.retention import RetentionLimits, count_deletable
from storage.segment import Segment
from storage.state import SegmentSeal

__all__ = ["CleanableLog"]


class CleanableLog(EpochLog):
    """A log whose older segments may be deleted or replaced."""

    @property
    def cleaned_offset(self) -> int:
        """Where the next compaction begins to look for new keys; lowered by truncation."""
        return self._state.cleaned_offset

    @property
    def codec(self) -> Codec:
        """The frame format."""
        return self._codec

    def check_writable(self) -> None:
        """Raise ``LogClosed`` or ``LogOffline`` where the log takes no writes."""
        self._check_writable()

    @property
    def layout_version(self) -> int:
        """Rises whenever a segment is cut, dropped or replaced; not kept on disk."""
        return self._layout_version

    # Retention ---------------------------------------------------------------------------------

    def delete_old_segments(
        self,
        limit_offset: int,
        *,
        retention_bytes: int | None = None,
        retention_ms: int | None = None,
        now_ms: int | None = None,
    ) -> tuple[SegmentSeal, ...]:
        """Delete the oldest segments that the limits let go; ``storage.retention`` has the rules.

        The log start offset is durably raised to the first segment that stays before any file
        goes, and the epoch cache is cut to it. Deleting the renamed files and writing the epoch
        file are pending work.

        Args:
            limit_offset: the high watermark.
            retention_bytes: keep at least so many bytes of log; None or 0 to 2^63-1.
            retention_ms: delete what is older, in milliseconds; None or 0 to 2^63-1.
            now_ms: the wall clock; needed with ``retention_ms``.

        Returns:
            The facts of the segments that are gone, oldest first.

        Raises:
            ValueError: an argument is out of range, or the clock is missing.
            DiskError: the log start could not be written (nothing changed then), or a file could
                not be renamed (it stays part of the log, below its start, for the next call).
            LogOffline, LogClosed: the log takes no writes.
        """
        self._check_writable()
        for name, value in (
            ("limit_offset", limit_offset),
            ("retention_bytes", retention_bytes),
            ("retention_ms", retention_ms),
        ):
            if value is not None and not 0 <= value < OFFSET_END:
                raise ValueError(f"{name} is {value}, allowed is 0..2^63-1")
        if retention_ms is not None and now_ms is None:
            raise ValueError("retention_ms needs now_ms")
        facts = [segment.seal() for segment in self._segments]
        limits = RetentionLimits(
            limit_offset=limit_offset,
            boundary_base=self.boundary.segment_base,
            log_start_offset=self.log_start_offset,
            retention_bytes=retention_bytes,
            retention_ms=retention_ms,
            now_ms=now_ms,
        )
        count = count_deletable(facts, limits)
        if not count:
            return ()
        self._keep_producers_of(count)
        self._raise_log_start(facts[count].base_offset)
        self._layout_version += 1
        for _ in range(count):
            self._retire(0)
        self._note_superfluous()
        self._settle()
        return tuple(facts[:count])

    def _raise_log_start(self, offset: int) -> None:
        """Raise the log start durably, before the files below it go.

        One that was raised before is written too: that may still be pending.
        """
        state = evolve(self._state, log_start_offset=max(offset, self.log_start_offset))
        self._save_state(state)
        self._state = state
        if self._epochs.truncate_from_start(offset):
            self._add_work("epochs")

    def _retire(self, number: int) -> None:
        """Rename a segment's files, log first, and forget it; deleting them is pending work."""
        segment = self._segments[number]
        segment.release()
        names: list[str] = []
        for path in segment.paths:
            gone = path.with_name(path.name + DELETED_SUFFIX)
            self._disk.rename(path, gone)
            if not names:
                # Without its log file it is no segment any more, whatever happens to the indexes.
                del self._segments[number]
                self._directory_changes += 1
            names.append(gone.name)
        self._add_work("delete", *names)

    # Compaction --------------------------------------------------------------------------------

    def declare_gaps(self, end_offset: int) -> None:
        """Accept, durably, that batches below ``end_offset`` may be missing.

        Compaction says so before it swaps its output in, a follower before it appends what a
        compacted leader still has.
        """
        self._check_writable()
        if end_offset > self._state.gaps_end:
            if end_offset >= OFFSET_END:
                raise ValueError(f"end_offset is {end_offset}, allowed is 0..2^63-1")
            state = evolve(self._state, gaps_end=end_offset)
            self._save_state(state)
            self._state = state
            for segment in self._segments:
                segment.gaps_end = end_offset

    def remove_outputs(self) -> None:
        """Remove what an earlier compaction began to write and did not finish."""
        self._check_writable()
        listing = list_directory(self._disk, self.directory)
        for path in listing.left_over:
            if path.name.endswith(CLEANED_SUFFIX):
                remove_if_there(self._disk, path)

    def create_output(self, base_offset: int, end_offset: int) -> Segment:
        """A new segment outside the log for a compaction to write, with holes up to its end."""
        self._check_writable()
        output = Segment.create(
            self.directory,
            base_offset,
            self.config,
            disk=self._disk,
            codec=self._codec,
            suffix=CLEANED_SUFFIX,
        )
        output.gaps_end = end_offset
        return output

    def replace_segments(self, sources: Sequence[Segment], output: Segment) -> None:
        """Put ``output``, written, synced and closed, in the place of ``sources``; see the module.

        Raises:
            ValueError: ``sources`` are not consecutive closed segments before the durable
                boundary's own, or ``output`` has another range of offsets; nothing changed.
            DiskError: the holes could not be declared (nothing changed then), or the log is
                offline: open it anew, which finishes the swap or drops it.
            LogOffline, LogClosed: the log takes no writes.
        """
        self._check_writable()
        first = self._check_sources(sources, output)
        self.declare_gaps(output.next_offset)
        self._layout_version += 1
        try:
            for segment in sources:
                segment.release()
            swapped = self._rename(output.paths, CLEANED_SUFFIX, SWAP_SUFFIX)
            self._disk.fsync_dir(self.directory)
            gone = [
                self._rename(segment.paths, "", DELETED_SUFFIX, log_first=True)
                for segment in sources
            ]
            self._disk.fsync_dir(self.directory)
            self._rename(swapped, SWAP_SUFFIX, "")
            self._disk.fsync_dir(self.directory)
        except DiskError as error:
            self._failure = error
            raise
        self._adopt_output(first, len(sources), output)
        self._directory_changes += 1
        self._directory_synced = self._directory_changes
        for paths in gone:
            self._add_work("delete", *(path.name for path in paths))
        self._settle()

    def _check_sources(self, sources: Sequence[Segment], output: Segment) -> int:
        first = self._segments.index(sources[0])
        end = first + len(sources)
        if list(sources) != self._segments[first:end] or end >= len(self._segments):
            raise ValueError("sources are not consecutive closed segments of this log")
        span = (sources[0].base_offset, sources[-1].next_offset)
        if span[1] > self.boundary.segment_base:
            base = self.boundary.segment_base
            raise ValueError(f"sources end at {span[1]}, the durable boundary's segment is {base}")
        if (output.base_offset, output.next_offset) != span:
            seen = f"{output.base_offset}..{output.next_offset}"
            raise ValueError(f"output has offsets {seen}, its sources {span[0]}..{span[1]}")
        return first

    def _rename(
        self, paths: Sequence[Path], old: str, new: str, *, log_first: bool = False
    ) -> list[Path]:
        """Give files another suffix, the log file last: it is what counts on opening."""
        renamed = []
        for path in paths:
            renamed.append(path.with_name(path.name.removesuffix(old) + new))
        pairs = list(zip(paths, renamed, strict=True))
        for path, name in pairs if log_first else reversed(pairs):
            self._disk.rename(path, name)
        return renamed

    def _adopt_output(self, first: int, count: int, output: Segment) -> None:
        segment = Segment(
            self._disk,
            self.directory,
            output.base_offset,
            self.config,
            self._codec,
            gaps_end=self.gaps_end,
        )
        segment.adopt_seal(output.seal(), is_active=False)
        self._next_id += 1
        segment.creation = self._next_id
        segment.on_open(self._note_open_file)
        self._segments[first : first + count] = [segment]

    def raise_cleaned_offset(self, offset: int) -> None:
        """Note how far compaction has been; writing it down is pending work."""
        self._check_writable()
        if offset > self.cleaned_offset:
            self._state = evolve(self._state, cleaned_offset=min(offset, self._leo))
            self._add_work("persist")
            self._settle()
