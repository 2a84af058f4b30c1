"""One simulated file: what is visible, what is on the platter, and every image a crash may leave.

The visible bytes are in the backing disk. What is not durable is a list of operations with enough
to undo them. An image of a crash says, per operation, which of its bytes and whether its size
reached the platter; ``render`` turns that into bytes. All crash modes and all enumerated images are
such descriptions.

Rules (FAULTS C.5): pages of 4 KiB reach the platter on their own and in any order; the size is
metadata with a history of its own; a shrinking that did not arrive brings the old tail back, and
bytes written after it mix with that tail only inside the block where the cut lies, because blocks
behind it are freed by the cut and not reused before it is durable.

Left out: which image is drawn (``sim.disk_images``), names (``sim.disk_names``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from attrs import Factory, define, evolve, frozen

__all__ = ["PAGE_BYTES", "SECTOR_BYTES", "FileOp", "FileState", "Reached", "render", "what_shows"]

PAGE_BYTES = 4_096
SECTOR_BYTES = 512


class FileOp(NamedTuple):
    """One write or truncation that is not durable as a whole.

    Attributes:
        serial: its place in the order of all operations of the disk.
        position: where it wrote; for a truncation the new size.
        data: what it wrote; None for a truncation.
        old: the bytes that it replaced or cut off.
        old_size: the file's size before it.
    """

    serial: int
    position: int
    data: bytes | None
    old: bytes
    old_size: int

    def __deepcopy__(self, memo: object) -> FileOp:
        return self

    @property
    def end(self) -> int:
        """Behind the last byte written; for a truncation the new size."""
        return self.position + (len(self.data) if self.data is not None else 0)


@frozen
class Reached:
    """What of one operation is on the platter.

    Attributes:
        ranges: byte ranges of the file, half-open, of what it wrote.
        size: whether its effect on the size is.
    """

    ranges: tuple[tuple[int, int], ...] = ()
    size: bool = False


@define
class FileState:
    """The durability of one inode.

    Attributes:
        number: the inode.
        size: visible size in bytes.
        ops: operations not yet durable as a whole, oldest first.
        floor: every operation up to this serial is on the platter, except in ``floors``.
        floors: pages whose floor differs: page number to serial.
        size_floor: the size after the operation with this serial is on the platter.
        phantoms: pages that a failed fsync marked clean: no later fsync writes them.
        undo_bytes: memory that ``ops`` hold.
    """

    number: int
    size: int = 0
    ops: list[FileOp] = Factory(list)
    floor: int = 0
    floors: dict[int, int] = Factory(dict)
    size_floor: int = 0
    phantoms: set[int] = Factory(set)
    undo_bytes: int = 0

    def note_write(self, serial: int, position: int, data: bytes, old: bytes) -> None:
        """Remember a write that the backing has stored already."""
        self.ops.append(FileOp(serial, position, data, old, self.size))
        self.undo_bytes += len(data) + len(old)
        if position + len(data) > self.size:
            self.size = position + len(data)
        if self.phantoms:
            self.phantoms.difference_update(pages_of(position, position + len(data)))

    def note_truncate(self, serial: int, size: int, old: bytes) -> None:
        """Remember a truncation; ``old`` is the tail that it cut off."""
        self.ops.append(FileOp(serial, size, None, old, self.size))
        self.undo_bytes += len(old)
        self.size = size

    def copy(self) -> FileState:
        """An independent copy; the operations themselves are shared values."""
        return evolve(
            self,
            ops=list(self.ops),
            floors=dict(self.floors),
            phantoms=set(self.phantoms),
        )

    def __deepcopy__(self, memo: object) -> FileState:
        return self.copy()

    def floor_of(self, page: int) -> int:
        """Serial up to which a page is on the platter."""
        return self.floors.get(page, self.floor)

    def dirty_pages(self, up_to: int) -> list[int]:
        """Pages with bytes of operations up to ``up_to`` that are not on the platter, rising."""
        dirty = set()
        for op in self.ops:
            if op.serial > up_to:
                break
            if op.data is not None:
                for page in pages_of(op.position, op.end):
                    if self.floor_of(page) < op.serial:
                        dirty.add(page)
        return sorted(dirty)

    def pending_span(self, up_to: int) -> tuple[int, int]:
        """From the first to behind the last byte that a sync up to ``up_to`` writes."""
        low, high = self.size, 0
        for op in self.ops:
            if op.serial > up_to:
                break
            if op.data is None or op.serial <= self.floor:
                continue
            if not self.floors and not self.phantoms:
                low, high = min(low, op.position), max(high, op.end)
                continue
            for page in pages_of(op.position, op.end):
                part = clip_to_page(op, page)
                if part and self.floor_of(page) < op.serial and page not in self.phantoms:
                    low, high = min(low, part[0]), max(high, part[1])
        high = min(high, self.size)
        return (low, high) if low < high else (0, 0)

    def pages_without_block(self, up_to: int) -> list[int]:
        """Of the dirty pages those behind the durable end, which need a new block, rising."""
        kept = self.size
        for op in self.ops:
            if op.serial > self.size_floor:
                kept = min(kept, op.old_size, op.position if op.data is None else op.old_size)
        blocks = -(-kept // PAGE_BYTES)
        return [page for page in self.dirty_pages(up_to) if page >= blocks]

    def sync(self, up_to: int) -> None:
        """Everything up to ``up_to`` is on the platter now, phantom pages excepted."""
        if up_to <= self.floor and not self.floors:
            return
        kept = {page: self.floor_of(page) for page in sorted(self.phantoms)}
        later = {page: at for page, at in self.floors.items() if at > up_to}
        self.floor = max(self.floor, up_to)
        self.floors = {**later, **kept}
        self.size_floor = max(self.size_floor, up_to)
        self._trim()

    def write_back(self, pages: list[int], up_to: int) -> None:
        """The named pages are on the platter up to ``up_to``: background write-back."""
        for page in pages:
            if page not in self.phantoms and self.floor_of(page) < up_to:
                self.floors[page] = up_to

    def _trim(self) -> None:
        """Forget operations that are on the platter with all their bytes."""
        durable = self.floor
        if self.floors:
            durable = min(durable, *self.floors.values())
        count = 0
        while count < len(self.ops) and self.ops[count].serial <= durable:
            op = self.ops[count]
            self.undo_bytes -= len(op.old) + (len(op.data) if op.data is not None else 0)
            count += 1
        del self.ops[:count]
        if not self.ops:
            self.floors = {}

    def forced(self, op: FileOp) -> Reached:
        """What of ``op`` is on the platter for certain."""
        has_size = op.serial <= self.size_floor
        if op.data is None:
            return Reached((), has_size)
        ranges = [
            clipped
            for page in pages_of(op.position, op.end)
            if self.floor_of(page) >= op.serial and (clipped := clip_to_page(op, page))
        ]
        return Reached(tuple(join_ranges(ranges)), has_size)

    def base_window(self, visible: bytes, start: int) -> bytearray:
        """Content from ``start`` on before the first of ``ops``, from the visible bytes there."""
        window = bytearray(visible)
        for op in reversed(self.ops):
            at = op.position - start
            if op.data is None:
                del window[at:]
                window += op.old
            else:
                window[at : at + len(op.old)] = op.old
            del window[max(op.old_size - start, 0) :]
            if len(window) < op.old_size - start:
                window += bytes(op.old_size - start - len(window))
        return window

    def window_start(self) -> int:
        """The lowest byte that any operation may have touched, down to a page border."""
        lowest = min(min(op.position, op.old_size) for op in self.ops)
        return lowest // PAGE_BYTES * PAGE_BYTES


def render(
    state: FileState,
    base: bytearray,
    start: int,
    reached: Mapping[int, Reached],
    *,
    fill: bytes | None = None,
) -> bytearray:
    """The window of an image: ``base`` with what ``reached`` names of each operation.

    Args:
        base: the window before the first operation; changed in place and returned.
        start: file position of the window.
        reached: by serial; operations not named did not arrive.
        fill: what bytes show whose size arrived and whose data did not: None cuts the file there
            (size never ahead of data), ``b""`` shows zeros, other bytes are repeated (noise).
    """
    size = start + len(base)
    written = [(start, start + len(base))]
    shown = what_shows(state.ops, reached)
    floor_size = size
    for op in state.ops:
        if op.serial <= state.size_floor:
            floor_size = op.position if op.data is None else max(floor_size, op.end)
        part = shown[op.serial]
        if op.data is None:
            if part.size:
                written = [(a, min(b, op.position)) for a, b in written if a < op.position]
                written.append((size, op.position))
                size = op.position
                _resize(base, start, size)
            continue
        for a, b in part.ranges:
            _grow(base, start, b)
            base[a - start : b - start] = op.data[a - op.position : b - op.position]
            written.append((a, b))
        if part.size:
            written.append((op.old_size, op.position))
            size = max(size, op.end)
    _settle_size(base, start, size, floor_size, written, fill)
    return base


def what_shows(ops: list[FileOp], reached: Mapping[int, Reached]) -> dict[int, Reached]:
    """What of each operation a reader of the image meets, by serial.

    The size is one field, so a cut on the platter includes the earlier ones. Behind the block of a
    cut that is lost, nothing that was written later shows.
    """
    cuts = [op.serial for op in ops if op.data is None]
    cut_floor = max((n for n in cuts if n in reached and reached[n].size), default=-1)
    border: int | None = None
    shown = {}
    for op in ops:
        part = reached.get(op.serial, Reached())
        if op.data is None:
            is_there = part.size or op.serial <= cut_floor
            shown[op.serial] = Reached((), is_there)
            if not is_there and op.position < op.old_size:
                block_end = -(-op.position // PAGE_BYTES) * PAGE_BYTES
                border = block_end if border is None else min(border, block_end)
        elif border is None:
            shown[op.serial] = part
        else:
            ranges = [(a, min(b, border)) for a, b in part.ranges if a < border]
            shown[op.serial] = Reached(tuple(ranges), part.size)
    return shown


def _grow(window: bytearray, start: int, end: int) -> None:
    if start + len(window) < end:
        window += bytes(end - start - len(window))


def _resize(window: bytearray, start: int, size: int) -> None:
    del window[max(size - start, 0) :]
    if len(window) < size - start:
        window += bytes(size - start - len(window))


def _settle_size(
    window: bytearray,
    start: int,
    size: int,
    floor_size: int,
    written: list[tuple[int, int]],
    fill: bytes | None,
) -> None:
    """Bring the window to ``size``: bytes that were never written are cut, zeros or ``fill``.

    A size that is on the platter for certain stays: behind a failed fsync it may lack its data.
    """
    if fill is None:
        covered = start
        for a, b in join_ranges(written):
            if a > covered:
                break
            covered = max(covered, b)
        _resize(window, start, max(min(size, covered), min(size, floor_size)))
        fill = b""
        size = start + len(window)
    _resize(window, start, size)
    at = start
    for a, b in [*join_ranges(written), (size, size)]:
        gap = min(a, size) - at
        if gap > 0:
            noise = (fill * (gap // len(fill) + 1))[:gap] if fill else bytes(gap)
            window[at - start : at - start + gap] = noise
        at = max(at, b)


def pages_of(start: int, end: int) -> range:
    """Page numbers that the byte range touches."""
    return range(start // PAGE_BYTES, -(-end // PAGE_BYTES)) if end > start else range(0)


def clip_to_page(op: FileOp, page: int) -> tuple[int, int] | None:
    """The part of a write inside a page, None if there is none."""
    a = max(op.position, page * PAGE_BYTES)
    b = min(op.end, (page + 1) * PAGE_BYTES)
    return (a, b) if a < b else None


def join_ranges(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Sorted, with touching and overlapping ones joined."""
    joined: list[tuple[int, int]] = []
    for a, b in sorted(ranges):
        if a >= b:
            continue
        if joined and a <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(b, joined[-1][1]))
        else:
            joined.append((a, b))
    return joined
