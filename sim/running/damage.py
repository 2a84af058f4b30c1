"""Damage to a log on disk: what bit rot, a bad sector or an operator's hand leaves.

It strikes the platter and what is read alike, behind every process's back.

Left out: faults of disk calls (``sim.disk_faults``).
"""

from __future__ import annotations

from pathlib import Path

from sim.disk_files import PAGE_BYTES
from sim.scenario.actions import Corrupt
from sim.scenario.fault_nodes import AtRestFault
from sim.trace.kinds import Kind
from sim.world import World
from storage.errors import CorruptBatch
from storage.mkb1_header import FRAME, peek_header

__all__ = ["NothingThere", "damage", "drawn_at_rest"]


class NothingThere(ValueError):
    """There is no such file, byte or record; says what there is."""


def damage(world: World, node: str, action: Corrupt, fault_id: str, cause: tuple[int, ...]) -> None:
    """Carry the damage out.

    Raises:
        NothingThere: the place is not there.
    """
    disk = world.host(node).require_disk().files
    directory = Path("/") / str(action.partition)
    if action.file is not None and action.byte is not None:
        path, position, size = directory / action.file, action.byte, 1
        content = _content(world, node, path)
        if position >= len(content):
            raise NothingThere(f"{path} of {node} has {len(content)} bytes, byte is {position}")
    else:
        assert action.offset is not None
        path, position, size = _find(world, node, directory, action.offset)
    if action.how == "flip":
        # The last byte of a frame is of its records, which the checksum covers.
        disk.flip_bit(path, position + size - 1)
        bits = 1
    elif action.how == "zero":
        disk.overwrite(path, position, bytes(size))
        bits = 8 * size
    else:
        disk.shorten(path, position)
        bits = 0
    args = {
        "fault": fault_id,
        "partition": str(action.partition),
        "file": str(path),
        "position": position,
        "size": size,
        "bits": bits,
        "how": action.how,
    }
    world.trace.emit(world.now_us, node, Kind.CORRUPT, cause, args)
    if world.kernel.observer is not None:
        world.kernel.observer.on_damaged(node)


def _content(world: World, node: str, path: Path) -> bytes:
    disk = world.host(node).require_disk().files
    for found, number in disk.names.paths():
        if Path("/") / found == path and number in disk.inodes:
            return disk.content_of(number)
    raise NothingThere(f"{node} has no file {path}")


def _find(world: World, node: str, directory: Path, offset: int) -> tuple[Path, int, int]:
    """File, position and size of the frame that has a record."""
    disk = world.host(node).require_disk().files
    for found, _ in disk.names.paths():
        path = Path("/") / found
        if path.parent != directory or path.suffix != ".log":
            continue
        content, position = _content(world, node, path), 0
        while position + FRAME.size <= len(content):
            size = FRAME.size + FRAME.unpack_from(content, position)[1]
            try:
                header = peek_header(content[position : position + size])
            except CorruptBatch:
                # Nobody finds a record behind damage.
                break
            if header.base_offset <= offset < header.next_offset:
                return path, position, size
            position += size
    raise NothingThere(f"{node} has no record at offset {offset} of {directory.name}")


# At rest -----------------------------------------------------------------------------------------


def drawn_at_rest(world: World, node: str, fault: AtRestFault, fault_id: str) -> tuple[Path, int]:
    """A file and a byte of it that a fault strikes: drawn by its id from what it names.

    Only pages that are clean are at rest: others will be written over from memory.

    Raises:
        NothingThere: there is no such place, or it is not at rest.
    """
    directory = Path("/") / str(fault.partition)
    if fault.offset is not None:
        path, position, size = _find(world, node, directory, fault.offset)
        spans = [(path, position, position + size)]
    elif fault.file is not None:
        path = directory / fault.file
        size = len(_content(world, node, path))
        if fault.byte is not None and fault.byte >= size:
            raise NothingThere(f"{path} of {node} has {size} bytes, byte is {fault.byte}")
        spans = [(path, 0, size) if fault.byte is None else (path, fault.byte, fault.byte + 1)]
    else:
        logs = [each for each in _files(world, node, directory) if each.suffix == ".log"]
        spans = [(each, 0, len(_content(world, node, each))) for each in logs]
    clean = [part for span in spans for part in _clean(world, node, *span)]
    at = sum(end - start for _, start, end in clean)
    if not at:
        what = ", ".join(f"{path.name} {start}..{end}" for path, start, end in spans) or "nothing"
        raise NothingThere(
            f"nothing of {fault.partition} is at rest on {node} there ({what}): it is empty, or "
            "has not been written back; a step flush does that"
        )
    at = world.draws.below(at, "at-rest", fault_id)
    for path, start, end in clean:
        if at < end - start:
            return path, start + at
        at -= end - start
    raise AssertionError("a draw is below its limit")


def _files(world: World, node: str, directory: Path) -> list[Path]:
    disk = world.host(node).require_disk().files
    paths = [Path("/") / found for found, number in disk.names.paths() if number in disk.inodes]
    return sorted(path for path in paths if path.parent == directory)


def _clean(
    world: World, node: str, path: Path, start: int, end: int
) -> list[tuple[Path, int, int]]:
    """The parts of a span that lie in clean pages."""
    disk = world.host(node).require_disk().files
    number = disk.names.find(path.parts[1:])
    assert number is not None
    state = disk.inodes[number].state
    dirty = {*state.dirty_pages(disk.serial), *state.phantoms}
    pages = range(start // PAGE_BYTES, -(-end // PAGE_BYTES))
    return [
        (path, max(start, page * PAGE_BYTES), min(end, (page + 1) * PAGE_BYTES))
        for page in pages
        if page not in dirty
    ]
