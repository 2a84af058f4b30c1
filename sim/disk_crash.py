"""Carrying out an image: the backing's files become what the power cut left.

First every file's bytes, then the names: files that moved wait in the graveyard while directories
go and come. Afterwards everything visible is durable. Left out: choosing the image.
"""

from __future__ import annotations

from pathlib import Path

from attrs import define, field, frozen

from sim.disk_faults import DiskFault
from sim.disk_files import (
    FileOp,
    FileState,
    Reached,
    join_ranges,
    render,
    what_shows,
)
from sim.disk_images import Image
from sim.disk_names import DIRECTORY, FILE, Names
from storage.disk import Disk, DiskFile
from storage.values import Copied

__all__ = ["FileLoss", "Inode", "Manifest", "carry_out"]


@frozen
class FileLoss:
    """What a power cut did to one file.

    Attributes:
        path: where the file was; empty for one without a name.
        pending_ops: operations that were not durable.
        lost: byte ranges that were written and did not arrive.
        out_of_order: ranges that arrived although an earlier operation on the file did not.
        torn: ranges of writes of which only a part arrived.
        tail_back: range of a cut-off tail that came back, or None.
        tail_bytes: its beginning, as far as its bytes had arrived: what follows may be anything.
        size: the file's size before and after.
    """

    path: str
    pending_ops: int
    lost: tuple[tuple[int, int], ...]
    out_of_order: tuple[tuple[int, int], ...]
    torn: tuple[tuple[int, int], ...]
    tail_back: tuple[int, int] | None
    tail_bytes: tuple[int, int] | None
    size: tuple[int, int]


@frozen
class Manifest:
    """What a power cut left: the image's label, per file what was lost, and which names changed."""

    label: str
    files: tuple[FileLoss, ...] = ()
    names_lost: tuple[str, ...] = ()
    names_back: tuple[str, ...] = ()

    @property
    def lost_anything(self) -> bool:
        """Whether a process could tell the image from what it saw before."""
        return bool(self.names_lost or self.names_back or any(f.lost for f in self.files))


@define
class Inode(Copied):
    """A file of the simulated disk and where the backing keeps it.

    Attributes:
        bad_sectors: sectors that cannot be read, and through which fault.
    """

    state: FileState
    location: Path
    handle: DiskFile | None = None
    opens: int = 0
    bad_sectors: dict[int, DiskFault | None] = field(factory=dict)


def carry_out(
    backing: Disk,
    root: Path,
    graveyard: Path,
    names: Names,
    inodes: dict[int, Inode],
    image: Image,
) -> Manifest:
    """Rewrite the backing to ``image``; changes ``names`` and ``inodes`` to match.

    No handle of the backing may be open.
    """
    before = {number: path for path, number in names.paths()}
    losses = []
    for number in sorted(inodes):
        inode = inodes[number]
        if inode.state.ops:
            losses.append(_rewrite(backing, inode, image, number, before.get(number)))
        inode.state = FileState(number, inode.state.size)
    names.settle(image.names, image.both)
    _rename_all(backing, root, graveyard, names, inodes)
    after = dict(names.paths())
    was = {path: number for number, path in before.items()}
    return Manifest(
        image.label,
        tuple(losses),
        tuple(sorted(str(path) for path in was if path not in after)),
        tuple(sorted(str(path) for path in after if path not in was)),
    )


def _rewrite(backing: Disk, inode: Inode, image: Image, number: int, path: Path | None) -> FileLoss:
    """Bring one file's bytes to the image."""
    state = inode.state
    reached = image.reached.get(number, {})
    start = state.window_start()
    file = backing.open(inode.location)
    try:
        visible = file.read_at(start, max(state.size - start, 0))
        window = render(state, state.base_window(visible, start), start, reached, fill=image.fill)
        overlay = image.overlays.get(number)
        if overlay is not None:
            at, spoilt = overlay[0] - start, overlay[1]
            spoilt = spoilt[: max(len(window) - at, 0)]
            window[at : at + len(spoilt)] = spoilt
        before = state.size
        if window != visible:
            file.write_at(start, bytes(window))
            file.truncate(start + len(window))
    finally:
        file.close()
    state.size = start + len(window)
    return _loss(state.ops, reached, str(path) if path else "", (before, state.size))


def _loss(
    ops: list[FileOp], reached: dict[int, Reached], path: str, size: tuple[int, int]
) -> FileLoss:
    lost: list[tuple[int, int]] = []
    early: list[tuple[int, int]] = []
    torn: list[tuple[int, int]] = []
    tail: tuple[int, int] | None = None
    tail_bytes: tuple[int, int] | None = None
    is_missing = False
    shown = what_shows(ops, reached)
    for op in ops:
        part = shown[op.serial]
        if op.data is None:
            if not part.size and op.position < op.old_size:
                tail = (op.position, op.old_size)
                holes = (max(a, op.position) for a, b in lost if b > op.position)
                end = min([op.old_size, *holes])
                tail_bytes = (op.position, end) if op.position < end else None
                is_missing = True
            continue
        ranges = [(a, min(b, size[1])) for a, b in part.ranges if a < size[1]]
        missing = _gaps(op, ranges)
        lost.extend(missing)
        if missing and ranges:
            torn.append((op.position, op.end))
        if is_missing:
            early.extend(ranges)
        is_missing = is_missing or bool(missing)
    return FileLoss(
        path,
        len(ops),
        tuple(join_ranges(lost)),
        tuple(join_ranges(early)),
        tuple(join_ranges(torn)),
        tail,
        tail_bytes,
        size,
    )


def _gaps(op: FileOp, ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    gaps = []
    at = op.position
    for a, b in join_ranges(ranges):
        if a > at:
            gaps.append((at, a))
        at = max(at, b)
    if at < op.end:
        gaps.append((at, op.end))
    return gaps


def _rename_all(
    backing: Disk, root: Path, graveyard: Path, names: Names, inodes: dict[int, Inode]
) -> None:
    """Make the backing's names those of the settled tree."""
    wanted: dict[int, Path] = {}
    copies: list[tuple[Path, int]] = []
    directories = []
    for path, number in names.paths():
        if names.kinds[number] == DIRECTORY:
            directories.append(root / path)
        elif number in wanted:
            copies.append((path, number))
        else:
            wanted[number] = root / path
    for number in sorted(inodes):
        inode = inodes[number]
        if number not in wanted:
            backing.unlink(inode.location)
            del inodes[number]
        elif inode.location != wanted[number] and inode.location.parent != graveyard:
            grave = graveyard / str(number)
            backing.rename(inode.location, grave)
            inode.location = grave
    present = _directories(backing, root)
    gone = present - set(directories)
    for directory in sorted(gone, key=lambda path: (-len(path.parts), path)):
        backing.rmdir(directory)
    for directory in directories:
        if directory not in present:
            backing.mkdir(directory)
    for number, path in wanted.items():
        inode = inodes[number]
        if inode.location != path:
            backing.rename(inode.location, path)
            inode.location = path
    for path, number in copies:
        _copy(backing, root, names, inodes, path, number)


def _copy(
    backing: Disk, root: Path, names: Names, inodes: dict[int, Inode], path: Path, number: int
) -> None:
    """Give a second name of an inode an inode of its own: the backing has no hard links."""
    source = backing.open(inodes[number].location, write=False)
    target = backing.open(root / path, create=True)
    try:
        target.write_at(0, source.read_at(0, inodes[number].state.size))
    finally:
        source.close()
        target.close()
    fresh = names.new_inode(FILE)
    inodes[fresh] = Inode(FileState(fresh, inodes[number].state.size), root / path)
    parent = names.find(path.parts[:-1])
    assert parent is not None
    names.visible[parent][path.parts[-1]] = fresh
    names.durable[parent][path.parts[-1]] = fresh


def _directories(backing: Disk, root: Path) -> set[Path]:
    found = set()
    stack = [root]
    while stack:
        directory = stack.pop()
        for name in backing.listdir(directory):
            path = directory / name
            if backing.stat(path).kind.value == DIRECTORY:
                found.add(path)
                stack.append(path)
    return found
