"""Crash proof of an operation: cut the power at each of its disk calls, go on from every image.

A ``Case`` prepares a log, then performs one operation. ``prove`` runs the operation once to count
its disk calls; then, for each call, it runs it with a fuse there and reopens the log from every
distinct image of that crash. ``tests.crash.judge`` says what must hold:

* the log opens: every image is legal, so there is nothing to refuse;
* every record that was durable before the cut is there, unless the operation was to remove it: by
  truncation, below a raised log start, or by compaction, which leaves the latest of each key;
* every record that is there was written at its offset, in its epoch, by this history;
* what was removed durably, by retention or compaction, does not come back;
* offsets are contiguous, apart from holes that compaction declared, and the whole log reads;
* indexes, epochs, producers and boundary agree with the log: a second open finds nothing to change;
* the boundary is not ahead of the log, and an append works;
* a second power cut while the log opens is no worse: the same holds from there.

Left out: real files; ``tests/sim`` shows that both backings give the same images.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path

from attrs import define, field

from sim.disk_files import Reached
from sim.disk_images import Image, whole
from sim.disk_names import NamesMode
from sim.disks import PowerCut, SimDisk
from sim.draws import Draws
from storage import PartitionLog
from storage.memdisk import MemDisk
from storage.recovery import Verify
from tests.crash.case import Case
from tests.crash.history import History, HistoryKey
from tests.crash.judge import judge

__all__ = ["Finding", "Tally", "prove"]

SECOND_CUTS = 3
DRAWS = Draws(1)


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
        left_out: images that were not even carried out, of a case that draws them; some may be the
            same.
        second_cuts: power cuts inside the opening from an image.
        seen: what was gone on from: digest of the image and what the history knew then. The same
            image at another call is not judged again: reopening depends on nothing else.
        findings: what did not hold.
    """

    case: str
    calls: int = 0
    cuts: int = 0
    images: int = 0
    left_out: int = 0
    second_cuts: int = 0
    seen: set[tuple[str, HistoryKey]] = field(factory=set)
    findings: list[Finding] = field(factory=list)


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
        known = _Known()
        for call in range(1, calls + 1):
            _cut_at(case, names_mode, call, tally, known, verify, second_every)
            if stops_at_finding and tally.findings:
                return tally
    return tally


def _prepared(
    case: Case, names_mode: NamesMode
) -> tuple[SimDisk, MemDisk, History, PartitionLog | None]:
    backing = MemDisk()
    disk = SimDisk(backing, Path("b1"), DRAWS, names_mode=names_mode)
    history = History()
    log: PartitionLog | None = case.prepare(case.open(disk, case.config, "all"), history)
    if case.opens:
        log = None
        disk.kill()
    return disk, backing, history, log


def _cut_at(
    case: Case,
    names_mode: NamesMode,
    call: int,
    tally: Tally,
    known: _Known,
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
    more = history.key()
    for image in _images(disk, more, known):
        if DRAWS.below(case.one_in, "crash-proof", case.name, names_mode, call, image.label):
            tally.left_out += 1
            continue
        after = disk.copy(backing.copy())
        after.power_cut(image)
        found = (after.digest(), more)
        if found in tally.seen:
            continue
        tally.seen.add(found)
        tally.images += 1
        problem = judge(after, case, history, verify)
        if problem is None and second_every and tally.images % second_every == 0:
            problem = _cut_again(disk, backing, image, case, history, tally)
        if problem is not None:
            tally.findings.append(Finding(case.name, f"{names_mode} {call}", image.label, problem))


def _images(disk: SimDisk, more: HistoryKey, known: _Known) -> Iterator[Image]:
    """Each enumerated image of a crash of which not the same arrived as of an earlier one."""
    durable = known.note(disk)
    for image in disk.images():
        key = (known.arrived(durable, disk, image), image.both, image.fill, more)
        if key not in known.images:
            known.images.add(key)
            yield image


@define
class _Known:
    """Images by what arrived, so that one that an earlier call led to need not be carried out.

    The runs of one case do the same up to the cut, so an operation bears the same serial in each,
    and what arrived of which operation is all that an image depends on. What is no longer pending
    arrived. Only saves time: ``Tally.seen`` knows images by their bytes.

    Attributes:
        whole: every operation on a file or a name so far, by inode (-1 for names) and serial, as it
            looks when all of it arrived.
        numbers: short for operations with what arrived of them.
        images: what arrived, per image.
    """

    whole: dict[tuple[int, int], Reached] = field(factory=dict)
    numbers: dict[Hashable, int] = field(factory=dict)
    images: set[Hashable] = field(factory=set)

    def note(self, disk: SimDisk) -> frozenset[int]:
        """Look at what is pending at a crash; returns the operations that are not, any more."""
        pending = {(-1, op.serial): Reached((), True) for op in disk.names.ops}
        for number, inode in disk.inodes.items():
            assert not inode.state.phantoms, "a failed fsync needs the bytes to be looked at"
            pending.update({(number, op.serial): whole(op) for op in inode.state.ops})
        self.whole.update(pending)
        return frozenset(
            self._number(place, part) for place, part in self.whole.items() if place not in pending
        )

    def arrived(self, durable: frozenset[int], disk: SimDisk, image: Image) -> frozenset[int]:
        """The operations of which something arrived, and how much."""
        parts = [self._number((-1, serial), Reached((), True)) for serial in image.names]
        nothing = Reached()
        for number in disk.inodes:
            for serial, part in image.reached.get(number, {}).items():
                if part != nothing:
                    parts.append(self._number((number, serial), part))
        return durable.union(parts)

    def _number(self, place: tuple[int, int], part: Reached) -> int:
        key = (place, part.ranges, part.size)
        return self.numbers.setdefault(key, len(self.numbers))


def _cut_again(
    disk: SimDisk,
    backing: MemDisk,
    image: Image,
    case: Case,
    history: History,
    tally: Tally,
) -> str | None:
    """Cut the power while the log opens from an image, at a few calls spread over the opening."""
    if history.refuses:
        return None
    probe = disk.copy(backing.copy())
    probe.power_cut(image)
    start = probe.call_count
    case.open(probe, case.config, "all")
    calls = probe.call_count - start
    for number in range(SECOND_CUTS):
        call = 1 + (number * 7919 + tally.images) % calls
        after = disk.copy(backing.copy())
        after.power_cut(image)
        after.arm_fuse(call)
        try:
            case.open(after, case.config, "all")
        except PowerCut:
            after.power_cut()
            tally.second_cuts += 1
            problem = judge(after, case, history, "all")
            if problem is not None:
                return f"after a second cut at call {call} of opening: {problem}"
    return None
