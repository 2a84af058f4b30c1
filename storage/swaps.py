"""Outputs of compaction that a crash left behind: which are finished on opening, and how.

Compaction writes ``BASE.log.cleaned`` with its indexes, syncs them, and renames them to ``.swap``,
the log file last; from the sync of the directory on, the output counts and its originals go. So a
``.log.swap`` is either complete or was never needed. Even so it is believed only where it proves
itself:

* every byte of it is walked, and holes lie below ``gaps_end``;
* it begins where a segment begins or the one before it ends;
* it ends where the next remaining segment begins or, without one, where its originals end;
* no ``.cleaned`` file lies at or below its base: then it is part of an incomplete set (Kafka).

Otherwise it is dropped and the originals stay. (One that lost whole frames and happens to end where
an original begins is finished as what it is: the compaction of the originals before that. Nothing
is lost by it, for what it lacks is still there.)

Deciding reads only; the verdict on the log is made as if the accepted outputs were in place
already. Source: STORAGE.md E.2, rows 48 to 53.

Left out: making the outputs (``storage.compaction``, ``storage.log_cleaning``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from attrs import frozen

from storage.batch import OFFSET_END
from storage.checkpoints import remove_if_there
from storage.codec import Codec
from storage.config import LogConfig
from storage.disk import Disk
from storage.listing import SWAP_SUFFIX, Listing
from storage.scan import SegmentScan
from storage.segment import Segment
from storage.state import LogState

__all__ = ["Swap", "bases_after", "finish_swaps", "plan_swaps"]


@frozen
class Swap:
    """An output to put in place, and the bases of the originals that are still there."""

    base_offset: int
    next_offset: int
    replaces: tuple[int, ...]


def plan_swaps(
    disk: Disk, directory: Path, config: LogConfig, codec: Codec, listing: Listing, state: LogState
) -> tuple[Swap, ...]:
    """The outputs in a directory that are to be finished, by rising base; all others go.

    Raises:
        DiskError: a file cannot be read.
    """
    # Where the state is unknown, the verdict refuses what has holes; until then nothing may go.
    gaps_end = state.gaps_end if state.boundary is not None else OFFSET_END
    files = _Files(disk, directory, config, codec, gaps_end)
    incomplete_from = min(listing.cleaned_bases, default=None)
    bases = list(listing.bases)
    swaps: list[Swap] = []
    for base in sorted(listing.swap_bases):
        if incomplete_from is not None and incomplete_from <= base:
            continue
        scan = files.scan(base, SWAP_SUFFIX)
        if scan.fault is not None or scan.end_position == 0:
            continue
        swap = Swap(base, scan.next_offset, tuple(b for b in bases if base <= b < scan.next_offset))
        if _begins_right(files, swap, bases, swaps) and _ends_right(files, swap, bases):
            swaps.append(swap)
            bases = bases_after(bases, [swap])
    return tuple(swaps)


def bases_after(bases: list[int], swaps: Sequence[Swap]) -> list[int]:
    """The base offsets of the segments once ``swaps`` are in place."""
    gone = {base for swap in swaps for base in swap.replaces}
    return sorted({*bases} - gone | {swap.base_offset for swap in swaps})


def finish_swaps(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    listing: Listing,
    swaps: Sequence[Swap],
) -> tuple[list[str], list[str]]:
    """Put ``swaps`` in place and remove the other outputs; names of both, durably done.

    Their indexes are left over and go with the rest: opening derives them from what was walked.

    The removal of an output that does not count is synced before anything else: were it to come
    back after a later crash, it could fit in again. The output's own name is synced before its
    originals go: a process may have given it right before it died. Originals are gone durably
    before the output takes their name.
    """
    done = {swap.base_offset for swap in swaps}
    removed: list[str] = []
    for base in listing.swap_bases:
        if base not in done:
            path = Segment(disk, directory, base, config, codec, suffix=SWAP_SUFFIX).log_path
            remove_if_there(disk, path)
            removed.append(path.name)
    if swaps:
        disk.fsync_dir(directory)
    for swap in swaps:
        # Its own base too: an index may be there still where the original's log file is gone.
        for base in sorted({swap.base_offset, *swap.replaces}):
            for path in Segment(disk, directory, base, config, codec).paths:
                remove_if_there(disk, path)
    disk.fsync_dir(directory)
    placed: list[str] = []
    for swap in swaps:
        output = Segment(disk, directory, swap.base_offset, config, codec, suffix=SWAP_SUFFIX)
        final = Segment(disk, directory, swap.base_offset, config, codec)
        disk.rename(output.log_path, final.log_path)
        placed.append(final.log_path.name)
    if placed:
        disk.fsync_dir(directory)
    return placed, removed


@frozen
class _Files:
    """Where to scan files, and with which rules."""

    disk: Disk
    directory: Path
    config: LogConfig
    codec: Codec
    gaps_end: int

    def scan(self, base: int, suffix: str = "") -> SegmentScan:
        segment = Segment(
            self.disk,
            self.directory,
            base,
            self.config,
            self.codec,
            gaps_end=self.gaps_end,
            suffix=suffix,
        )
        try:
            return segment.scan()
        finally:
            segment.close()


def _begins_right(files: _Files, swap: Swap, bases: list[int], done: list[Swap]) -> bool:
    if swap.base_offset in bases:
        return True
    before = max((base for base in bases if base < swap.base_offset), default=None)
    if before is None:
        return True
    suffix = SWAP_SUFFIX if any(other.base_offset == before for other in done) else ""
    return files.scan(before, suffix).next_offset == swap.base_offset


def _ends_right(files: _Files, swap: Swap, bases: list[int]) -> bool:
    after = min((base for base in bases if base >= swap.next_offset), default=None)
    if after is not None:
        return after == swap.next_offset
    if not swap.replaces:
        return True
    return files.scan(swap.replaces[-1]).next_offset == swap.next_offset
