"""Everything that open would read of one log, read once, with recovery's own verdict on it.

``survey`` reads the segments and ``decide`` judges, both as open calls them with ``verify="all"``.

A log that a process has open changes while it is read: ``has_moved`` tells whether it did.

Left out: what the derived files hold, and putting it into a view
(``storage.inspection.partitions``).
"""

from __future__ import annotations

import re
from itertools import islice
from pathlib import Path
from typing import Final

from attrs import define, evolve, field

from storage.checkpoints import read_small
from storage.config import INT32_MAX, LogConfig
from storage.epochs import EPOCH_FILE
from storage.errors import CorruptCheckpoint, DiskError, FileMissing, StorageError
from storage.inspection.files import CHUNK_BYTES, EPOCHS, text_problem, text_rows
from storage.inspection.known import Known, known_state
from storage.inspection.views import Options, Problem
from storage.listing import Listing, list_directory
from storage.mkb1 import MKB1
from storage.opening import refuse_log_dir_member
from storage.read_only import ReadOnlyDisk
from storage.recovery import Plan, Refusal, Survey, Surveyed, Verify, decide, survey
from storage.segment_indexes import INDEX_SUFFIX, TIME_INDEX_SUFFIX
from storage.swaps import Swap, bases_after, plan_swaps

__all__ = ["SEGMENT_NAME", "Look", "has_moved", "is_new", "look_at"]

EPOCHS_MAX: Final = 100_000
SEGMENT_NAME: Final = re.compile(r"[0-9]{20}\.log\Z", re.ASCII)
_ANY_SEGMENT: Final = re.compile(r"[0-9]{20}\.log(\.swap)?\Z", re.ASCII)


Outline = tuple[list[str], list[int], bytes | None]


@define
class Look:
    """What was found.

    Attributes:
        before: an outline of the log, from before anything else was read.
        known: what is kept beside the segments.
        names: in the directory.
        index_sizes: of the index files, before the log was read.
        epochs: the epoch file's entries, None where there are none to believe.
        swaps, dropped_swaps: outputs of compaction to put in place, and those to remove.
        is_clean: the seal of the last close matches.
        is_trusted: the seal hides what is bad from an open that trusts it.
        answer: recovery's, None where ``error`` came before it.
        is_disturbed: a file changed between two readings of it.
    """

    directory: Path
    before: Outline
    known: Known
    epochs: list[tuple[int, int]] | None
    is_epoch_file_there: bool
    names: list[str] = field(factory=list)
    index_sizes: dict[str, int] = field(factory=dict)
    listing: Listing = field(factory=Listing)
    swaps: tuple[Swap, ...] = ()
    dropped_swaps: set[int] = field(factory=set)
    segments: list[Surveyed] = field(factory=list)
    is_clean: bool = False
    is_trusted: bool = False
    answer: Plan | Refusal | None = None
    error: StorageError | None = None
    is_disturbed: bool = False
    problems: list[Problem] = field(factory=list)
    notes: list[str] = field(factory=list)

    @property
    def is_live(self) -> bool:
        """Whether a process has the log open."""
        return self.known.lock.is_held is True

    @property
    def is_suspicious(self) -> bool:
        """Whether another look might turn out better."""
        return self.is_bad or self.is_disturbed or bool(self.problems)

    @property
    def is_bad(self) -> bool:
        """Whether open would refuse or cut."""
        if isinstance(self.answer, Plan):
            return bool(self.answer.cut) or len(self.kept) < len(self.segments)
        return self.error is not None or self.answer is not None

    @property
    def kept(self) -> list[Surveyed]:
        """The segments that open would keep; all where it refuses."""
        answer = self.answer
        if isinstance(answer, Plan):
            return self.segments[answer.skip : answer.keep]
        return self.segments

    @property
    def log_start(self) -> int:
        """The log start offset that open would settle on."""
        first = self.kept[0].found.base_offset if self.kept else 0
        return max(self.known.state.log_start_offset or 0, first)

    @property
    def first_offset(self) -> int:
        """The base offset of the first segment that open would keep, or begin."""
        return self.kept[0].found.base_offset if self.kept else self.log_start

    @property
    def log_end(self) -> int:
        """The log end offset that open would find, were it to keep what it keeps."""
        return self.kept[-1].found.next_offset if self.kept else self.log_start

    @property
    def counted(self) -> range:
        """The numbers of the segments whose good parts belong to the log beyond doubt."""
        answer = self.answer
        if isinstance(answer, Plan):
            return range(answer.skip, answer.keep)
        if answer is None or answer.number < 0:
            return range(0)
        is_its_own = self.segments[answer.number].found.end_position == answer.position
        return range(answer.number + is_its_own)

    @property
    def swapped(self) -> set[int]:
        """Base offsets of the outputs of compaction that open would put in place."""
        return {swap.base_offset for swap in self.swaps}


def look_at(disk: ReadOnlyDisk, directory: Path, options: Options, known: Known | None) -> Look:
    """Look once.

    Args:
        known: what its broker's directory keeps for it, where that was read already.

    Raises:
        DiskError: the directory cannot be listed.
    """
    before = _outline(disk, directory)
    known = known or known_state(disk, directory, is_new=is_new(before[0]))
    problems = list(known.problems)
    lines, is_there = _read_epochs(disk, directory, problems)
    look = Look(directory, before, known, lines, is_there, problems=problems)
    try:
        if known.kept != "log directory":
            refuse_log_dir_member(disk, directory.absolute())
        look.listing = listing = list_directory(disk, directory)
        look.swaps = plan_swaps(disk, directory, _coarse(options), MKB1, listing, look.known.state)
        look.dropped_swaps = {*listing.swap_bases} - look.swapped
        listing.bases = bases_after(listing.bases, look.swaps)
    except StorageError as error:
        look.error = error
    # Between the names of the segments and their content: whatever an index says now is in the log
    # when that is read, and a segment that was listed has had its indexes made.
    look.names = disk.listdir(directory)
    look.index_sizes = {
        name: disk.stat(directory / name).size_bytes
        for name in look.names
        if name.endswith((INDEX_SUFFIX, TIME_INDEX_SUFFIX))
    }
    if look.error is None:
        _judge(disk, look, options)
    if look.is_live:
        # An epoch is in the file before it is in the log, so the file must be read behind the log.
        look.problems = list(known.problems)
        look.epochs, look.is_epoch_file_there = _read_epochs(disk, directory, look.problems)
    return look


def has_moved(disk: ReadOnlyDisk, look: Look) -> bool:
    """Whether the log is another one than when the look began.

    Raises:
        DiskError: the directory cannot be listed any more.
    """
    outline = _outline(disk, look.directory)
    now = known_state(disk, look.directory, is_new=is_new(outline[0]))
    is_same = (now.state, now.seal) == (look.known.state, look.known.seal)
    return outline != look.before or not is_same


def is_new(names: list[str]) -> bool:
    """Whether a directory with these names has no segment, and no output of compaction."""
    return not any(_ANY_SEGMENT.match(name) for name in names)


def _outline(disk: ReadOnlyDisk, directory: Path) -> Outline:
    """What changes when a log does: names, sizes, and the epochs."""
    names = disk.listdir(directory)
    sizes = [disk.stat(directory / name).size_bytes for name in names]
    try:
        epochs = read_small(disk, directory / EPOCH_FILE, CHUNK_BYTES)
    except (CorruptCheckpoint, DiskError):
        epochs = None
    return names, sizes, epochs


def _judge(disk: ReadOnlyDisk, look: Look, options: Options) -> None:
    try:
        found = _survey(disk, look, options, "all")
        look.segments, look.is_clean = found.segments, found.is_clean
        look.answer = _decide(found, look.known)
        if look.is_clean and look.is_bad:
            # With a seal that matches, this reads next to nothing.
            trusting = _decide(_survey(disk, look, options, "unflushed"), look.known)
            look.is_trusted = trusting == Plan((), len(look.segments))
    except StorageError as error:
        look.error = error


def _survey(disk: ReadOnlyDisk, look: Look, options: Options, verify: Verify) -> Survey:
    return survey(
        disk,
        look.directory,
        _coarse(options),
        MKB1,
        listing=look.listing,
        state=look.known.state,
        seal=None if look.swaps else look.known.seal,
        verify=verify,
        known_epoch=max((epoch for epoch, _ in look.epochs or ()), default=-1),
        swapped=look.swapped,
    )


def _coarse(options: Options) -> LogConfig:
    """The configuration for scans: of the index entries that they collect, nothing is needed."""
    return evolve(options.config, index_interval_bytes=INT32_MAX)


def _decide(found: Survey, known: Known) -> Plan | Refusal:
    state = known.state
    return decide([s.found for s in found.segments], state.boundary, state.log_start_offset)


def _read_epochs(
    disk: ReadOnlyDisk, directory: Path, problems: list[Problem]
) -> tuple[list[tuple[int, int]] | None, bool]:
    """The epoch file's lines, None where there are none to believe, and whether it is there."""
    try:
        rows = text_rows(disk, directory / EPOCH_FILE, EPOCHS)
        lines = [(epoch, start) for epoch, start in islice(rows, EPOCHS_MAX + 1)]
    except FileMissing:
        return None, False
    except CorruptCheckpoint as error:
        problems.append(text_problem(error))
        return None, True
    except DiskError as error:
        problems.append(Problem(EPOCH_FILE, f"cannot be read: {error}"))
        return None, True
    if len(lines) > EPOCHS_MAX:
        problems.append(Problem(EPOCH_FILE, f"more than {EPOCHS_MAX} entries, not compared"))
        return None, True
    return lines, True
