"""Crash proof of an operation: cut the power at each of its disk calls, go on from every image.

A ``Case`` prepares a log, then performs one operation. ``prove`` runs the operation once to count
its disk calls; then, for each call, it runs it with a fuse there and reopens the log from every
distinct image of that crash. ``judge`` says what must hold:

* the log opens: every image is legal, so there is nothing to refuse;
* every record that was durable before the cut is there, unless the operation was to remove it;
* every record that is there was written at its offset, in its epoch, by this history;
* offsets are contiguous, apart from holes that compaction declared, and the whole log reads;
* indexes, epochs and boundary agree with the log: a second open finds nothing to change;
* the boundary is not ahead of the log, and an append works;
* a second power cut while the log opens is no worse: the same holds from there.

Left out: real files; ``tests/sim`` shows that both backings give the same images.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from attrs import define, field

from sim.disk_images import Image
from sim.disk_names import NamesMode
from sim.disks import PowerCut, SimDisk
from sim.draws import Draws
from storage import LogConfig, LogRecord, PartitionLog, Record, RecordBatch
from storage.errors import CorruptLog, StorageError
from storage.memdisk import MemDisk
from storage.recovery import Verify

__all__ = ["Case", "Finding", "History", "Tally", "prove"]

DIRECTORY = Path("orders-0")
SECOND_CUTS = 3

HistoryKey = tuple[Any, ...]


@define
class History:
    """What was ever written, and what was durable.

    Attributes:
        written: per offset every record (value, epoch) that an append stored there.
        durable: offsets below this were durable at some time, unless removed since.
        start: offsets below this may be gone: deleted, or below the log start.
        holes: offsets that compaction may take.
        refuses: the log may refuse for damage in what was durable; salvage is under way.
    """

    written: dict[int, set[tuple[bytes | None, int]]] = field(factory=dict)
    durable: int = 0
    start: int = 0
    holes: set[int] = field(factory=set)
    refuses: bool = False

    def note(self, log: PartitionLog, values: list[bytes | None]) -> None:
        """One append of ``values`` is about to be made to ``log``."""
        for at, value in enumerate(values):
            self.written.setdefault(log.leo + at, set()).add((value, log.leader_epoch))

    def note_durable(self, log: PartitionLog) -> None:
        """Everything below the log's boundary is durable."""
        self.durable = log.boundary.end_offset

    def key(self) -> HistoryKey:
        """Everything that ``judge`` looks at, comparable."""
        written = tuple(
            (offset, frozenset(self.written[offset])) for offset in sorted(self.written)
        )
        return written, self.durable, self.start, frozenset(self.holes), self.refuses


@define(frozen=True)
class Finding:
    """A crash after which something did not hold."""

    case: str
    call: str
    image: str
    what: str


@define
class Tally:
    """What a proof visited.

    Attributes:
        calls: disk calls that the operation makes, in both metadata modes together.
        cuts: power cuts inside it.
        images: distinct images that were gone on from.
        second_cuts: power cuts inside the opening from an image.
        seen: what was gone on from: digest of the image and what the history knew then. The same
            image at another call is not judged again: reopening depends on nothing else.
        findings: what did not hold.
    """

    case: str
    calls: int = 0
    cuts: int = 0
    images: int = 0
    second_cuts: int = 0
    seen: set[tuple[str, HistoryKey]] = field(factory=set)
    findings: list[Finding] = field(factory=list)


@define
class Case:
    """One operation on one prepared log.

    Attributes:
        name: for reports.
        config: of the log.
        prepare: build the log up to the operation; the disk is a plain one then.
        operate: the operation, which may be cut at any call; it tells ``History`` first what it is
            about to write, or what it is about to remove (by lowering ``durable``).
    """

    name: str
    prepare: Callable[[PartitionLog, History], PartitionLog]
    operate: Callable[[PartitionLog | None, History, SimDisk], Any]
    config: LogConfig = field(factory=lambda: LogConfig(segment_max_bytes=400))
    opens: bool = False


def append(
    log: PartitionLog, history: History, *values: bytes | None, key: bytes | None = None
) -> None:
    """Append one batch and tell the history first."""
    history.note(log, list(values))
    log.append(RecordBatch.unassigned([Record(key, v, 1_000 + log.leo) for v in values]))


def open_log(disk: SimDisk, config: LogConfig, verify: Verify = "all") -> PartitionLog:
    """Open the log of a proof."""
    return PartitionLog.open(DIRECTORY, config, disk=disk, verify=verify)


def prove(
    case: Case, *, verify: Verify = "all", second_every: int = 10, stops_at_finding: bool = False
) -> Tally:
    """Cut ``case`` at every call in both metadata modes and judge every image; see the module.

    Args:
        verify: how the log is reopened.
        second_every: one image in so many is cut again while it opens; 0 for none.
        stops_at_finding: one finding is enough.
    """
    tally = Tally(case.name)
    for names_mode in ("posix", "ext4"):
        disk, _, history, log = _prepared(case, names_mode)
        start = disk.call_count
        case.operate(log, history, disk)
        calls = disk.call_count - start
        tally.calls += calls
        for call in range(1, calls + 1):
            _cut_at(case, names_mode, call, tally, verify, second_every)
            if stops_at_finding and tally.findings:
                return tally
    return tally


def _prepared(
    case: Case, names_mode: NamesMode
) -> tuple[SimDisk, MemDisk, History, PartitionLog | None]:
    backing = MemDisk()
    disk = SimDisk(backing, Path("b1"), Draws(1), names_mode=names_mode)
    history = History()
    log: PartitionLog | None = case.prepare(open_log(disk, case.config), history)
    if case.opens:
        log = None
        disk.kill()
    return disk, backing, history, log


def _cut_at(
    case: Case,
    names_mode: NamesMode,
    call: int,
    tally: Tally,
    verify: Verify,
    second_every: int,
) -> None:
    disk, backing, history, log = _prepared(case, names_mode)
    disk.arm_fuse(call)
    try:
        case.operate(log, history, disk)
    except PowerCut:
        tally.cuts += 1
    else:
        raise AssertionError(f"{case.name}: the fuse at call {call} did not blow")
    for image, after in _images(disk, backing):
        known = (after.digest(), history.key())
        if known in tally.seen:
            continue
        tally.seen.add(known)
        tally.images += 1
        problem = judge(after, case.config, history, verify)
        if problem is None and second_every and tally.images % second_every == 0:
            problem = _cut_again(disk, backing, image, case.config, history, tally)
        if problem is not None:
            tally.findings.append(Finding(case.name, f"{names_mode} {call}", image.label, problem))


def _images(disk: SimDisk, backing: MemDisk) -> Iterator[tuple[Image, SimDisk]]:
    """Each enumerated image of a crash, on a disk of its own."""
    for image in disk.images():
        after = disk.copy(backing.copy())
        after.power_cut(image)
        yield image, after


def _cut_again(
    disk: SimDisk,
    backing: MemDisk,
    image: Image,
    config: LogConfig,
    history: History,
    tally: Tally,
) -> str | None:
    """Cut the power while the log opens from an image, at a few calls spread over the opening."""
    if history.refuses:
        return None
    probe = disk.copy(backing.copy())
    probe.power_cut(image)
    start = probe.call_count
    open_log(probe, config).abandon()
    calls = probe.call_count - start
    for number in range(SECOND_CUTS):
        call = 1 + (number * 7919 + tally.images) % calls
        after = disk.copy(backing.copy())
        after.power_cut(image)
        after.arm_fuse(call)
        try:
            open_log(after, config)
        except PowerCut:
            after.power_cut()
            tally.second_cuts += 1
            problem = judge(after, config, history, "all")
            if problem is not None:
                return f"after a second cut at call {call} of opening: {problem}"
    return None


def judge(disk: SimDisk, config: LogConfig, history: History, verify: Verify) -> str | None:
    """What does not hold after reopening the log, or None; see the module."""
    try:
        log = open_log(disk, config, verify)
    except CorruptLog as error:
        if not history.refuses:
            return f"does not open: {error}"
        log = PartitionLog.salvage(DIRECTORY, error, config, disk=disk)
    except StorageError as error:
        return f"does not open: {type(error).__name__}: {error}"
    problem = _judge_content(log, history) or _judge_indexes(log)
    if problem is not None:
        return problem
    if log.boundary.end_offset > log.leo:
        return f"boundary {log.boundary} is ahead of the log end {log.leo}"
    try:
        log.append(RecordBatch.unassigned([Record(None, b"after", 9_000)]))
        end, entries = log.leo, log.epochs.entries
        indexes = [(s.index.entries, s.time_index.entries) for s in log.segments]
    except StorageError as error:
        return f"no append after reopening: {error}"
    log.abandon()
    return _judge_second_open(disk, config, verify, end, entries, indexes)


def _judge_second_open(
    disk: SimDisk,
    config: LogConfig,
    verify: Verify,
    end: int,
    epochs: object,
    indexes: list[tuple[object, object]],
) -> str | None:
    """Walking everything finds what the first open found."""
    again = open_log(disk, config, "all")
    report = again.report
    rebuilt = [name for name in report.rebuilt if not _may_be_rebuilt(name, verify)]
    if report.cuts or rebuilt or report.dropped:
        return f"a second open changes things: {report}"
    if again.leo != end or again.epochs.entries != epochs:
        return f"a second open differs: {again.leo}, {again.epochs.entries}"
    for segment, (offsets, times) in zip(again.segments, indexes, strict=True):
        if segment.index.entries != offsets:
            return "offset indexes differ from a rebuild"
        if segment.time_index.entries != times and verify == "all":
            return "time indexes differ from a rebuild"
    again.abandon()
    return None


def _may_be_rebuilt(name: str, verify: Verify) -> bool:
    """Entries of a time index at the segment's first offset say nothing, so a walk from an index
    entry on does not miss or mind one: a size without its data looks like that.
    """
    return verify == "unflushed" and name.endswith(".timeindex")


def _judge_content(log: PartitionLog, history: History) -> str | None:
    try:
        records = log.fetch(log.log_start_offset, 1_000_000)
    except StorageError as error:
        return f"does not read: {error}"
    problem = _judge_records(records, history) or _judge_epochs(log)
    if problem is not None:
        return problem
    present = {record.offset for record in records}
    for offset in range(max(log.log_start_offset, history.start), history.durable):
        if offset not in present and offset not in history.holes:
            return f"offset {offset} was durable (below {history.durable}) and is gone"
    expected = log.log_start_offset
    for batch in log.all_batches():
        assert batch.base_offset is not None
        if batch.base_offset > expected and expected >= log.gaps_end:
            return f"hole from {expected} to {batch.base_offset}"
        expected = batch.next_offset
    if log.log_start_offset > max(history.start, history.durable):
        return f"log start {log.log_start_offset} is above {history.start}"
    return None


def _judge_records(records: list[LogRecord], history: History) -> str | None:
    for record in records:
        known = history.written.get(record.offset, set())
        if (record.value, record.leader_epoch) not in known:
            return f"record {record} was never written"
    return None


def _judge_indexes(log: PartitionLog) -> str | None:
    """The indexes against a walk over each segment."""
    for segment in log.segments:
        scan = segment.scan()
        keys = [segment.base_offset + key for key in scan.offsets]
        expected = list(zip(keys, scan.positions, strict=True))
        if list(segment.index.entries) != expected:
            found = segment.index.entries
            return f"index of segment {segment.base_offset} is {found}, the log says {expected}"
    return None


def _judge_epochs(log: PartitionLog) -> str | None:
    """The epoch cache against the batch headers, without looking at how storage compares them."""
    starts: list[tuple[int, int]] = []
    for batch in log.all_batches():
        assert batch.base_offset is not None
        if not starts or batch.leader_epoch != starts[-1][0]:
            starts.append((batch.leader_epoch, max(batch.base_offset, log.log_start_offset)))
    entries = [entry for entry in log.epochs.entries if entry[1] < log.leo]
    if log.gaps_end == 0 and entries != starts:
        return f"epoch entries {entries}, batches say {starts}"
    for epoch, start in starts:
        if log.epochs.epoch_for_offset(start) != epoch:
            return f"epoch of offset {start} is {epoch}, the cache {entries} differs"
    return None
