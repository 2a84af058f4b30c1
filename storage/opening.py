"""Carrying out the opening of a log: directory, state, plan, segments, epoch cache.

``storage.recovery`` says what is there and what may be done about it; this module does it, in an
order of which any prefix opens again at an allowed end: later segments from the last down, then the
cut, then the derived files. A refusal is raised before anything but the clean-close seal changed.

Left out: the open log itself (``storage.partition_log``).
"""

from __future__ import annotations

from pathlib import Path

from attrs import evolve, frozen

from storage.checkpoints import remove_if_there
from storage.codec import Codec, HopFacts
from storage.config import LogConfig
from storage.disk import Disk, FileKind
from storage.epochs import EPOCH_FILE, LeaderEpochCache, read_epochs
from storage.errors import (
    CorruptCheckpoint,
    CorruptLog,
    DiskError,
    InvalidConfig,
    NotRegularFile,
)
from storage.listing import list_directory
from storage.producer_replay import Recovered, first_producer_offset, recover_producers
from storage.producer_snapshots import SnapshotFiles
from storage.reading import frame_at
from storage.recovery import (
    OpenReport,
    Plan,
    Refusal,
    Survey,
    Surveyed,
    Verify,
    decide,
    planned_cuts,
    refusal_error,
    survey,
)
from storage.segment import Segment
from storage.state import BOUNDARIES_FILE, Boundary, LogState, StateStore
from storage.swaps import Swap, bases_after, finish_swaps, plan_swaps

__all__ = ["Opened", "open_parts", "salvage_files"]


@frozen
class Opened:
    """The parts of an open log.

    Attributes:
        state: with the effective log start offset.
        is_boundary_known: otherwise a flush is due, to find a boundary again.
        epochs_changed: the epoch file does not hold what the cache holds.
        producers, snapshots: the producer state at the log's end, and the files it is kept in.
    """

    segments: list[Segment]
    state: LogState
    is_boundary_known: bool
    epochs: LeaderEpochCache
    epochs_changed: bool
    producers: Recovered
    snapshots: SnapshotFiles
    report: OpenReport


def open_parts(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    store: StateStore,
    verify: Verify,
) -> Opened:
    """Open what is in ``directory``, or begin a new log there.

    Raises:
        CorruptLog: opening would lose or hide records; nothing was changed.
        ForeignFile, NotRegularFile: a file cannot be a segment.
        DiskError: the directory or a file cannot be read or written.
    """
    listing = list_directory(disk, directory)
    seal = store.take_seal()
    state = store.load(is_new=not (listing.bases or listing.swap_bases))
    swaps = plan_swaps(disk, directory, config, codec, listing, state)
    listing.bases = bases_after(listing.bases, swaps)
    lines, warning = _read_epoch_file(disk, directory)
    known_epoch = _newest_epoch(lines)
    found = survey(
        disk,
        directory,
        config,
        codec,
        listing=listing,
        state=state,
        seal=None if swaps else seal,
        verify=verify,
        known_epoch=known_epoch,
        swapped={swap.base_offset for swap in swaps},
    )
    try:
        return _open_found(
            disk, directory, config, codec, store, state, found, swaps, lines, warning
        )
    except BaseException:
        for surveyed in found.segments:
            surveyed.segment.close()
        raise


def _open_found(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    store: StateStore,
    state: LogState,
    found: Survey,
    swaps: tuple[Swap, ...],
    lines: list[tuple[int, int]] | None,
    warnings: tuple[str, ...],
) -> Opened:
    log_start = state.log_start_offset
    plan = decide([s.found for s in found.segments], state.boundary, log_start)
    if isinstance(plan, Refusal):
        raise refusal_error(plan, directory, found.segments)
    placed, removed = _place_outputs(disk, directory, config, codec, found, swaps, state.gaps_end)
    listing = found.listing
    for path in listing.left_over:
        # First: a new segment may get the name of an index without a log.
        remove_if_there(disk, path)
    kept = found.segments[plan.skip : plan.keep]
    for number, surveyed in enumerate(kept):
        _adopt(disk, surveyed, is_active=number == len(kept) - 1)
    segments = [surveyed.segment for surveyed in kept]
    if not segments:
        _cut(disk, found, plan)
        segments = [_begin(disk, directory, config, codec, store, state)]
    start = max(log_start or 0, segments[0].base_offset)
    boundary = state.boundary
    if boundary is None or plan.keep == 0:
        boundary = Boundary(segments[0].base_offset, 0, segments[0].base_offset)
    cleaned_offset = min(state.cleaned_offset, boundary.end_offset)
    settled = evolve(
        state, boundary=boundary, log_start_offset=start, cleaned_offset=cleaned_offset
    )
    # Deriving epochs and replaying producers may meet damage that was trusted so far: before
    # anything is cut.
    epochs, changed, note = _settle_epochs(lines, segments, found, settled, config)
    snapshots = SnapshotFiles(disk, directory, listing.snapshots, is_synced=found.is_clean)
    producers = recover_producers(
        snapshots,
        segments,
        first_producer_offset(state, segments[0].base_offset),
        config.rules,
    )
    settled = evolve(settled, producers_from=producers.first)
    if plan.keep:
        _cut(disk, found, plan)
    if found.segments and not found.is_clean:
        # A process that died may have removed names or cut the tail, but not durably so.
        disk.fsync_dir(directory)
        segments[-1].undurable_cut = segments[-1].writes
    rebuilt = [name for segment in segments for name in segment.rebuilt]
    if changed and listing.bases:
        rebuilt.append(EPOCH_FILE)
    removed += [path.name for path in listing.left_over]
    report = OpenReport(
        is_clean=found.is_clean,
        cuts=planned_cuts(plan, found.segments, start),
        epochs=_known_epochs(kept, epochs, segments[-1].next_offset, config),
        dropped=tuple(s.segment.log_path.name for s in found.outside(plan)),
        rebuilt=tuple(rebuilt),
        removed=(*removed, *producers.removed),
        swapped=tuple(placed),
        ignored=tuple(listing.ignored),
        warnings=(*state.warnings, *warnings, *note, *producers.warnings),
    )
    is_known = state.boundary is not None
    return Opened(segments, settled, is_known, epochs, changed, producers, snapshots, report)


def ensure_directory(disk: Disk, directory: Path) -> None:
    """Create a log directory durably; refuse anything else that bears its name."""
    kind = disk.stat(directory).kind
    if kind is FileKind.MISSING:
        disk.mkdir(directory)
        disk.fsync_dir(directory.parent)
    elif kind is not FileKind.DIRECTORY:
        raise NotRegularFile("open", directory, "ENOTDIR", f"a log cannot be a {kind.value}")


def refuse_log_dir_member(disk: Disk, directory: Path) -> None:
    """Raise ``InvalidConfig`` for a log that a ``LogDir`` keeps the state of."""
    if disk.stat(directory.parent / BOUNDARIES_FILE).kind is not FileKind.MISSING:
        raise InvalidConfig(f"{directory} belongs to a LogDir, open it through that")


def _begin(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    store: StateStore,
    state: LogState,
) -> Segment:
    """The first segment of a log. The boundary is durable before it, so that its absence tells."""
    start = state.log_start_offset or 0
    begun = evolve(state, boundary=Boundary(start, 0, start), log_start_offset=start)
    store.save(begun)
    segment = Segment.create(directory, start, config, disk=disk, codec=codec)
    # What was declared missing before a salvage may be missing in what is copied anew.
    segment.gaps_end = state.gaps_end
    return segment


def _place_outputs(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    found: Survey,
    swaps: tuple[Swap, ...],
    gaps_end: int,
) -> tuple[list[str], list[str]]:
    """Finish or drop outputs of compaction; what was surveyed under another name gets its own."""
    if not found.listing.swap_bases:
        return [], []
    placed, removed = finish_swaps(disk, directory, config, codec, found.listing, swaps)
    done = {swap.base_offset for swap in swaps}
    for surveyed in found.segments:
        base = surveyed.segment.base_offset
        if base in done:
            surveyed.segment.close()
            surveyed.segment = Segment(disk, directory, base, config, codec, gaps_end=gaps_end)
    return placed, removed


def _cut(disk: Disk, found: Survey, plan: Plan) -> None:
    """Drop segments from the last down, then cut the tails of those that stay."""
    for surveyed in reversed(found.outside(plan)):
        surveyed.segment.close()
        for path in surveyed.segment.paths:
            remove_if_there(disk, path)
    for number in reversed(plan.cut):
        surveyed = found.segments[number]
        if surveyed.found.end_position < surveyed.found.file_size_bytes:
            surveyed.segment.file().truncate(surveyed.found.end_position)


def _adopt(disk: Disk, surveyed: Surveyed, *, is_active: bool) -> None:
    segment = surveyed.segment
    if surveyed.scan is not None:
        segment.adopt(surveyed.scan, surveyed.resume, is_active=is_active)
        if not is_active:
            segment.release()
        return
    assert surveyed.seal is not None
    segment.adopt_seal(surveyed.seal, is_active=False)
    segment.is_active = is_active
    for path, entry_bytes in ((segment.index_path, 8), (segment.time_index_path, 12)):
        stat = disk.stat(path)
        if stat.kind is not FileKind.FILE or stat.size_bytes % entry_bytes:
            segment.rebuild_indexes()
            break
    if is_active:
        segment.adopt_seal(surveyed.seal, is_active=True)
    else:
        segment.release()


# The epoch cache -------------------------------------------------------------------------------


def _read_epoch_file(
    disk: Disk, directory: Path
) -> tuple[list[tuple[int, int]] | None, tuple[str, ...]]:
    try:
        return read_epochs(disk, directory), ()
    except (CorruptCheckpoint, DiskError) as error:
        return None, (f"epochs derived from the log: {error}",)


def _newest_epoch(lines: list[tuple[int, int]] | None) -> int:
    return max((epoch for epoch, _ in lines or ()), default=-1)


def _settle_epochs(
    lines: list[tuple[int, int]] | None,
    segments: list[Segment],
    found: Survey,
    state: LogState,
    config: LogConfig,
) -> tuple[LeaderEpochCache, bool, tuple[str, ...]]:
    """The cache that agrees with the batch headers, whether the file differs, and a warning."""
    log_end = segments[-1].next_offset
    start = state.log_start_offset or 0
    cache = LeaderEpochCache(lines or (), rules=config.rules)
    cache.truncate_from_end(log_end + 1)
    cache.truncate_from_start(start)
    is_valid = lines is not None
    if is_valid and config.rules.verify_epochs_at_open:
        is_valid = LeaderEpochCache(lines or ()).entries == tuple(lines or ())
        is_valid = is_valid and epochs_match(cache, segments, log_end, start, state.gaps_end)
    elif is_valid:
        _add_newer(cache, found)
    if not is_valid:
        at_end = [entry for entry in cache.entries if entry[1] == log_end]
        cache = _derive(segments, config)
        for epoch, offset in at_end:
            if epoch > cache.latest:
                cache.assign(epoch, offset)
        cache.truncate_from_start(start)
    changed = list(cache.entries) != (lines or [])
    is_stale = changed and not is_valid and lines is not None
    note = (f"{EPOCH_FILE} contradicted the log and was derived anew",) if is_stale else ()
    return cache, changed, note


def _add_newer(cache: LeaderEpochCache, found: Survey) -> None:
    """Kafka's recovery: only epochs above the newest entry come from the batches.

    Behind a clean close there is none, whatever else was read.
    """
    if found.is_clean:
        return
    for surveyed in found.segments:
        for epoch, offset, _ in surveyed.scan.epoch_starts if surveyed.scan else ():
            if epoch > cache.latest:
                cache.assign(epoch, offset)


def _known_epochs(
    kept: list[Surveyed], cache: LeaderEpochCache, log_end: int, config: LogConfig
) -> tuple[tuple[int, int], ...]:
    """Which epochs the records have: a cache that was not compared with them does not say."""
    if config.rules.verify_epochs_at_open:
        return tuple(entry for entry in cache.entries if entry[1] < log_end)
    known: list[tuple[int, int]] = []
    latest = -1
    for surveyed in kept:
        scan, resume = surveyed.scan, surveyed.resume
        if scan is None:
            return ()
        if resume is not None:
            known = []  # What lies before it was not read.
        known += [(epoch, offset) for epoch, offset, _ in scan.epoch_starts]
        if resume is not None and not known and scan.batches:
            known = [(latest, resume.offset)]
        latest = scan.last_epoch
    return tuple(known)


def _derive(segments: list[Segment], config: LogConfig) -> LeaderEpochCache:
    cache = LeaderEpochCache(rules=config.rules)
    for segment in segments:
        scan = segment.scan(stop_at=segment.size_bytes)
        if scan.fault is not None:
            raise segment.damage(scan)
        for epoch, offset, _ in scan.epoch_starts:
            if epoch > cache.latest:
                cache.assign(epoch, offset)
    return cache


def epochs_match(
    cache: LeaderEpochCache, segments: list[Segment], log_end: int, log_start: int, gaps_end: int
) -> bool:
    """Whether the entries are what the batch headers say.

    Epochs never fall inside a log, so the first and the last batch of an entry's range prove all
    between them: two look-ups an entry. Below ``gaps_end`` an epoch may have lost all its records.
    An entry at the log end (a leader that wrote nothing yet) is right.
    """
    entries = cache.entries
    first = batch_at(segments, log_start)
    if first is not None and (not entries or entries[0][1] > max(first[1], log_start)):
        return False
    for number, (epoch, start) in enumerate(entries):
        if start >= log_end:
            continue
        end = entries[number + 1][1] if number + 1 < len(entries) else log_end
        batch = batch_at(segments, start)
        if batch is None:
            return False
        _, base, _, batch_epoch = batch
        if base != start and not (base < start == log_start) and start >= gaps_end:
            return False
        if base < start and start != log_start:
            return False
        if base >= end:
            continue
        last = batch_at(segments, end - 1)
        if batch_epoch != epoch or (last is not None and last[1] < end and last[3] != epoch):
            return False
    return True


def batch_at(segments: list[Segment], offset: int) -> HopFacts | None:
    """Header facts of the first batch that ends behind ``offset``, in whichever segment."""
    for segment in segments:
        if segment.next_offset > offset:
            batch = frame_at(segment, offset)
            if batch is not None:
                return batch
    return None


# Salvage ---------------------------------------------------------------------------------------


def salvage_files(
    disk: Disk,
    directory: Path,
    config: LogConfig,
    codec: Codec,
    store: StateStore,
    error: CorruptLog,
) -> None:
    """Shorten a refused log to the good prefix that ``error`` names.

    The verdict is found again: a log that does not refuse is left alone. Files before the refused
    one stay, and it does up to the damage. The boundary is lowered durably first; then files go
    from the last down, then the cut.

    Raises:
        InvalidConfig: ``error`` is of another log.
    """
    if error.file != directory and error.file.parent != directory:
        raise InvalidConfig(f"{error.file} is not of the log {directory}")
    listing = list_directory(disk, directory)
    state = store.load(is_new=not (listing.bases or listing.swap_bases))
    store.take_seal()
    swaps = plan_swaps(disk, directory, config, codec, listing, state)
    listing.bases = bases_after(listing.bases, swaps)
    found = survey(
        disk,
        directory,
        config,
        codec,
        listing=listing,
        state=state,
        seal=None,
        verify="all",
        known_epoch=_newest_epoch(_read_epoch_file(disk, directory)[0]),
        swapped={swap.base_offset for swap in swaps},
    )
    refusal = decide([s.found for s in found.segments], state.boundary, state.log_start_offset)
    for surveyed in found.segments:
        surveyed.segment.close()
    if isinstance(refusal, Plan):
        return
    if listing.swap_bases:
        finish_swaps(disk, directory, config, codec, listing, swaps)
    start = state.log_start_offset
    if start is None:
        start = listing.bases[0] if listing.bases else 0
    refused = listing.bases[refusal.number] if refusal.number >= 0 else -1
    is_cut = refusal.position > 0
    kept = [b for b in listing.bases if b < refused or (b == refused and is_cut)]
    segment = None
    if kept and kept[0] <= start:
        segment = Segment(disk, directory, kept[-1], config, codec, gaps_end=state.gaps_end)
        scan = segment.scan(stop_at=refusal.position if kept[-1] == refused else None)
        segment.adopt(scan, None, is_active=False)
        if segment.next_offset < start:
            segment.release()
            segment = None
    keep_up_to = segment.base_offset if segment is not None else -1
    if segment is None:
        low = Boundary(start, 0, start)
    else:
        low = Boundary(segment.base_offset, segment.size_bytes, segment.next_offset)
    first = first_producer_offset(state, start)
    if state.boundary is None or state.boundary.end_offset > low.end_offset:
        state = evolve(state, boundary=low, log_start_offset=start, producers_from=first)
    store.save(state)
    for doomed in reversed(listing.bases):
        if doomed > keep_up_to:
            for path in Segment(disk, directory, doomed, config, codec).paths:
                remove_if_there(disk, path)
    if segment is not None:
        segment.file().truncate(segment.size_bytes)
        segment.file().fsync()
        segment.release()
    disk.fsync_dir(directory)
