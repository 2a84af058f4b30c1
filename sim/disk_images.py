"""Which image a power loss leaves: drawn from one of seven modes, or enumerated.

An image says per operation which of its bytes and whether its size arrived, and which pending name
operations did. What a completed sync or write-back covered is in every image. Source: FAULTS C.5.4
and C.6.

Left out: bytes (``sim.disk_files``), and carrying an image out (``sim.disks``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from attrs import Factory, evolve, frozen

from sim.disk_files import (
    PAGE_BYTES,
    SECTOR_BYTES,
    FileOp,
    FileState,
    Reached,
    clip_to_page,
    join_ranges,
    pages_of,
)
from sim.disk_names import Names, NamesMode
from sim.draws import Draws

__all__ = ["CRASH_MODES", "Image", "draw_image", "enumerate_images"]

CRASH_MODES: Final[dict[str, int]] = {
    "lost": 15,
    "kept": 15,
    "file-prefix": 20,
    "disk-prefix": 15,
    "sector-subset": 20,
    "torn": 10,
    "garbage": 5,
}
"""Crash modes and their default weights."""

BOTH_NAMES_PPM: Final = 50_000

Files = Mapping[int, FileState]
FileReached = dict[int, Reached]
ReachedMap = dict[int, FileReached]
"""Per inode, per operation."""


@frozen
class Image:
    """One legal outcome of a power loss.

    Attributes:
        label: what it is, for people: the mode, or the rule of the enumeration with its operation.
        reached: per inode and operation what arrived.
        names: serials of the name operations that arrived.
        both: of these, renames that left the old name as well.
        fill: what shows where a size arrived without its data (``sim.disk_files.render``).
        overlays: per inode, bytes that a write in progress garbled.
    """

    label: str
    reached: ReachedMap
    names: frozenset[int]
    both: frozenset[int] = frozenset()
    fill: bytes | None = None
    overlays: dict[int, tuple[int, bytes]] = Factory(dict)


def whole(op: FileOp) -> Reached:
    """All of an operation."""
    return Reached(((op.position, op.end),) if op.data is not None else (), True)


def with_forced(files: Files, chosen: ReachedMap) -> ReachedMap:
    """``chosen`` and what is on the platter anyway, without what no fsync will ever write."""
    result: ReachedMap = {}
    for number, state in files.items():
        parts = result[number] = {}
        mine = chosen.get(number, {})
        for op in state.ops:
            forced = state.forced(op)
            part = mine.get(op.serial, Reached())
            mine_ranges = part.ranges
            if state.phantoms:
                mine_ranges = without_pages(mine_ranges, state.phantoms)
            ranges = tuple(join_ranges([*mine_ranges, *forced.ranges]))
            parts[op.serial] = Reached(ranges, part.size or forced.size)
    return result


def without_pages(
    ranges: Iterable[tuple[int, int]], pages: Collection[int]
) -> tuple[tuple[int, int], ...]:
    """The parts of byte ranges that lie outside the pages."""
    kept = []
    for a, b in ranges:
        for page in pages_of(a, b):
            if page not in pages:
                kept.append((max(a, page * PAGE_BYTES), min(b, (page + 1) * PAGE_BYTES)))
    return tuple(join_ranges(kept))


def prefix(files: Files, up_to: Mapping[int, int]) -> ReachedMap:
    """Every operation up to a serial per inode."""
    return {
        number: {op.serial: whole(op) for op in state.ops if op.serial <= up_to.get(number, 0)}
        for number, state in files.items()
    }


def draw_image(
    files: Files,
    names: Names,
    names_mode: NamesMode,
    draws: Draws,
    ids: tuple[int | str, ...],
    *,
    mode: str | None = None,
    weights: Mapping[str, int] = CRASH_MODES,
    in_progress: int | None = None,
    noise: bool = False,
) -> Image:
    """Draw an image.

    Args:
        ids: what makes this crash this crash: disk, ordinal.
        mode: one of ``CRASH_MODES``; drawn by ``weights`` if None.
        in_progress: serial of the operation that the power cut interrupted.
        noise: sizes without data may show noise instead of zeros (data=writeback file systems).
    """
    if mode is None:
        kinds = list(weights)
        mode = kinds[draws.weighted([weights[kind] for kind in kinds], "crash-mode", *ids)]
    if mode not in CRASH_MODES:
        raise ValueError(f"crash mode is {mode!r}, allowed: {', '.join(CRASH_MODES)}")
    order = sorted([op.serial for op in _ops(files)] + [op.serial for op in names.ops])
    last = order[-1] if order else 0
    if mode == "lost":
        return _image(mode, files, names, names_mode, {}, ())
    if mode == "kept":
        everything = prefix(files, dict.fromkeys(files, last))
        return _image(mode, files, names, names_mode, everything, (op.serial for op in names.ops))
    if mode == "disk-prefix":
        at = draws.below(len(order) + 1, "crash-cut", *ids)
        cut = order[at - 1] if at else 0
        kept = prefix(files, dict.fromkeys(files, cut))
        arrived = (op.serial for op in names.ops if op.serial <= cut)
        return _image(mode, files, names, names_mode, kept, arrived)
    if mode == "file-prefix":
        cuts = {}
        for number, state in files.items():
            at = draws.below(len(state.ops) + 1, "crash-cut", *ids, number)
            cuts[number] = state.ops[at - 1].serial if at else 0
        chosen = prefix(files, cuts)
        fill = None
    else:
        chosen = {n: _pages(state, draws, (*ids, n)) for n, state in files.items()}
        fill = _draw_fill(draws, ids, noise=noise)
    image = _image(mode, files, names, names_mode, chosen, _draw_names(names, draws, ids), fill)
    if names_mode == "posix":
        image = evolve(image, both=_draw_both(names, image.names, draws, ids))
    if mode in ("torn", "garbage") and in_progress is not None:
        image = _tear(image, files, in_progress, draws, ids, garble=mode == "garbage")
    return image


def _ops(files: Files) -> Iterator[FileOp]:
    for state in files.values():
        yield from state.ops


def _image(
    label: str,
    files: Files,
    names: Names,
    names_mode: NamesMode,
    chosen: ReachedMap,
    arrived: Iterable[int],
    fill: bytes | None = None,
) -> Image:
    legal = names.legal(frozenset(arrived), names_mode)
    return Image(label, with_forced(files, chosen), frozenset(legal), fill=fill)


def _draw_names(names: Names, draws: Draws, ids: tuple[int | str, ...]) -> list[int]:
    """In ``ext4`` mode the first one missing ends the prefix, so a long one is kept as often."""
    cut = draws.below(len(names.ops) + 1, "crash-names", *ids)
    is_prefix = draws.chance(500_000, "crash-names-prefix", *ids)
    return [
        op.serial
        for at, op in enumerate(names.ops)
        if (at < cut if is_prefix else draws.chance(500_000, "crash-name", *ids, op.serial))
    ]


def _draw_both(
    names: Names, arrived: frozenset[int], draws: Draws, ids: tuple[int | str, ...]
) -> frozenset[int]:
    return frozenset(
        op.serial
        for op in names.ops
        if op.kind == "rename"
        and op.serial in arrived
        and draws.chance(BOTH_NAMES_PPM, "crash-both", *ids, op.serial)
    )


def _draw_fill(draws: Draws, ids: tuple[int | str, ...], *, noise: bool) -> bytes | None:
    kind = draws.below(3 if noise else 2, "crash-fill", *ids)
    if kind == 0:
        return None
    return b"" if kind == 1 else draws.noise(SECTOR_BYTES, "crash-noise", *ids)


def _pages(state: FileState, draws: Draws, ids: tuple[int | str, ...]) -> FileReached:
    """Every dirty page at a version of its own; the size at a version of its own."""
    by_page: dict[int, list[FileOp]] = {}
    for op in state.ops:
        if op.data is not None:
            for page in pages_of(op.position, op.end):
                if state.floor_of(page) < op.serial:
                    by_page.setdefault(page, []).append(op)
    ranges: dict[int, list[tuple[int, int]]] = {}
    for page, ops in by_page.items():
        version = draws.below(len(ops) + 1, "crash-page", *ids, page)
        for op in ops[:version]:
            part = clip_to_page(op, page)
            if part is not None:
                ranges.setdefault(op.serial, []).append(part)
    sizes = draws.below(len(state.ops) + 1, "crash-size", *ids)
    return {
        op.serial: Reached(tuple(join_ranges(ranges.get(op.serial, []))), at < sizes)
        for at, op in enumerate(state.ops)
    }


def _tear(
    image: Image,
    files: Files,
    serial: int,
    draws: Draws,
    ids: tuple[int | str, ...],
    *,
    garble: bool,
) -> Image:
    """Let the interrupted write end at any byte; ``garble`` spoils the sector where it does."""
    for number, state in files.items():
        for op in state.ops:
            if op.serial != serial or not op.data:
                continue
            cut = op.position + draws.below(len(op.data) + 1, "crash-tear", *ids)
            forced = state.forced(op)
            ranges = join_ranges([(op.position, cut), *forced.ranges])
            size = image.reached[number][serial].size
            parts = {**image.reached[number], serial: Reached(tuple(ranges), size)}
            overlays = {}
            if garble:
                start = max(cut // SECTOR_BYTES * SECTOR_BYTES, op.position)
                length = min(SECTOR_BYTES, op.end - start)
                zeros = draws.chance(500_000, "crash-garble-kind", *ids)
                spoilt = bytes(length) if zeros else draws.noise(length, "crash-garble", *ids)
                overlays = {number: (start, spoilt)}
            reached = {**image.reached, number: parts}
            return evolve(image, reached=reached, overlays=overlays)
    return image


def enumerate_images(
    files: Files, names: Names, names_mode: NamesMode, *, in_progress: int | None = None
) -> Iterator[Image]:
    """The images of FAULTS C.6, in a fixed order; some may render to the same bytes.

    With n undecided operations: the n + 1 prefixes; for each operation all but it, and it alone;
    every sector-border prefix of the last and of each multi-sector write; for each append its size
    without its data. Besides those of C.6, for each file with several operations all but these: a
    file whose pages are written back late, beside another that is only right together with them.
    """
    data = {op.serial: (number, op) for number, state in files.items() for op in state.ops}
    order = sorted([*data, *(op.serial for op in names.ops)])

    def image(label: str, serials: Iterable[int], **more: ReachedMap | bytes | None) -> Image:
        chosen: ReachedMap = {}
        taken = frozenset(serials)
        for serial in sorted(taken):
            if serial in data:
                number, op = data[serial]
                chosen.setdefault(number, {})[serial] = whole(op)
        extra = more.get("partly")
        for number, parts in extra.items() if isinstance(extra, dict) else ():
            chosen.setdefault(number, {}).update(parts)
        fill = more.get("fill")
        assert fill is None or isinstance(fill, bytes)
        return _image(label, files, names, names_mode, chosen, taken, fill)

    for count in range(len(order) + 1):
        yield image(f"prefix of {count}", order[:count])
    for number, state in files.items():
        mine = {op.serial for op in state.ops}
        if len(mine) > 1:
            yield image(f"nothing of file {number}", [s for s in order if s not in mine], fill=b"")
    for at, serial in enumerate(order):
        yield image(f"all but {serial}", [s for s in order if s != serial], fill=b"")
        yield image(f"only {serial}", [serial], fill=b"")
        if serial not in data:
            continue
        number, op = data[serial]
        if op.data is None:
            continue
        before = order[:at]
        is_last = serial in (order[-1], in_progress)
        if is_last or len(op.data) > SECTOR_BYTES:
            for border in _sector_borders(op):
                part = Reached(((op.position, border),), True)
                partly: ReachedMap = {number: {serial: part}}
                label = f"{serial} up to byte {border}"
                yield image(label, before, partly=partly)
                yield image(f"{label}, size first", before, partly=partly, fill=b"")
        if op.end > op.old_size:
            bare: ReachedMap = {number: {serial: Reached((), True)}}
            yield image(f"size of {serial} without data", before, partly=bare, fill=b"")


def _sector_borders(op: FileOp) -> range:
    first = (op.position // SECTOR_BYTES + 1) * SECTOR_BYTES
    return range(first, op.end, SECTOR_BYTES)


assert PAGE_BYTES % SECTOR_BYTES == 0
