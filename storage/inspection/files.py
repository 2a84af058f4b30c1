"""Looking at one small file: text checkpoints, boundary, seal, marker, ``partition.metadata``.

Text is read line by line, twice: once to judge the file, once while it is shown. JSON is read
whole, up to 8 MiB of it.

Left out: which file is what (``storage.inspection.describe``), segments and indexes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any, Final

from storage.checkpoints import CHECKPOINT_MAX_BYTES, parse_entries, parse_int, read_small
from storage.config import INT32_MAX
from storage.disk import Disk, DiskFile
from storage.errors import CorruptCheckpoint, DiskError
from storage.inspection.views import FileView, Options, Problem
from storage.log_dir import MARKER_VERSION, METADATA_PATTERN, parse_name
from storage.read_only import opened
from storage.state import SEAL_VERSION, Seal, SegmentSeal, load_json, parse_state

__all__ = [
    "BOUNDARIES",
    "BOUNDARY",
    "EPOCHS",
    "OFFSETS",
    "TextKind",
    "describe_marker",
    "describe_metadata",
    "describe_seal",
    "describe_text",
    "iter_lines",
    "read_json",
    "text_problem",
    "text_rows",
]

JSON_MAX_BYTES: Final = 8 << 20
LINE_MAX_BYTES: Final = 1 << 16
CHUNK_BYTES: Final = 1 << 16


# Kafka's text container ------------------------------------------------------------------------


class TextKind:
    """One kind of text file: its name for people, its columns, and how an entry becomes a row."""

    def __init__(
        self,
        kind: str,
        columns: str,
        fields: int,
        row: Callable[[Path, int, list[str]], tuple[Any, ...]],
        *,
        optional: int = 0,
    ) -> None:
        self.kind = kind
        self.columns = tuple(columns.split())
        self.fields = fields
        self.row = row
        self.optional = optional


def _epoch_row(path: Path, line: int, entry: list[str]) -> tuple[Any, ...]:
    epoch, start = (parse_int(path, line, text) for text in entry)
    if not 0 <= epoch <= INT32_MAX or start < 0:
        raise CorruptCheckpoint(path, line, f"epoch {epoch} at offset {start}")
    return epoch, start


def _offset_row(path: Path, line: int, entry: list[str]) -> tuple[Any, ...]:
    return *parse_name(path, line, entry[0], entry[1]), parse_int(path, line, entry[2])


def _boundary_row(path: Path, line: int, entry: list[str]) -> tuple[Any, ...]:
    state = parse_state(path, line, entry)
    boundary = state.boundary
    assert boundary is not None, "parsed from numbers"
    place = (boundary.segment_base, boundary.size_bytes, boundary.end_offset)
    return *place, state.log_start_offset, state.gaps_end, state.producers_from


def _boundaries_row(path: Path, line: int, entry: list[str]) -> tuple[Any, ...]:
    return *parse_name(path, line, entry[0], entry[1]), *_boundary_row(path, line, entry[2:])


_STATE_COLUMNS: Final = (
    "segment_base size_bytes end_offset log_start_offset gaps_end producers_from"
)
EPOCHS: Final = TextKind("epochs", "epoch start_offset", 2, _epoch_row)
OFFSETS: Final = TextKind("offsets", "topic partition offset", 3, _offset_row)
BOUNDARY: Final = TextKind("boundary", _STATE_COLUMNS, 6, _boundary_row, optional=1)
BOUNDARIES: Final = TextKind(
    "boundaries", f"topic partition {_STATE_COLUMNS}", 8, _boundaries_row, optional=1
)


def iter_lines(file: DiskFile) -> Iterator[str]:
    """The lines of a text file, as ``read_entries`` has them, with bounded memory.

    Raises:
        CorruptCheckpoint: not UTF-8, a line of more than 64 KiB, or more than 64 MiB in all.
        DiskError: the file cannot be read.
    """
    path, size = file.path, file.size()
    if size > CHECKPOINT_MAX_BYTES:
        raise CorruptCheckpoint(path, 0, f"{size} bytes, at most {CHECKPOINT_MAX_BYTES} are read")
    position, rest = 0, b""
    while position < size:
        chunk = file.read_at(position, min(CHUNK_BYTES, size - position))
        if not chunk:
            break
        position += len(chunk)
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield _decoded(path, line)
        if len(rest) > LINE_MAX_BYTES:
            raise CorruptCheckpoint(path, 0, f"a line of more than {LINE_MAX_BYTES} bytes")
    last = _decoded(path, rest)
    if last.strip():
        yield last


def _decoded(path: Path, line: bytes) -> str:
    try:
        return line.decode()
    except UnicodeDecodeError as error:
        raise CorruptCheckpoint(path, 0, "not UTF-8 text") from error


def text_rows(disk: Disk, path: Path, kind: TextKind) -> Iterator[tuple[Any, ...]]:
    """The entries of a text file as tuples.

    Raises:
        CorruptCheckpoint: at the line concerned; entries before it have been given by then.
        DiskError: the file cannot be read.
    """
    with opened(disk, path) as file:
        entries = parse_entries(path, iter_lines(file), kind.fields, kind.optional)
        for line, entry in enumerate(entries, 3):
            yield kind.row(path, line, entry)


def describe_text(disk: Disk, path: Path, kind: TextKind, options: Options) -> FileView:
    """A file in Kafka's container: its entries up to the first that cannot be read.

    Raises:
        DiskError: it cannot be read.
    """
    view = FileView(path, kind.kind, disk.stat(path).size_bytes, columns=kind.columns)
    before: tuple[Any, ...] | None = None
    try:
        for row in text_rows(disk, path, kind):
            view.row_count += 1
            if kind is EPOCHS and before is not None and not _rises(before, row):
                reason = f"epoch {row[0]} from offset {row[1]} does not rise"
                _note(view.problems, Problem(path.name, reason, line=view.row_count + 2))
            before = row
    except CorruptCheckpoint as error:
        view.problems.append(text_problem(error))
    if kind is BOUNDARY and view.row_count != 1 and not view.problems:
        view.problems.append(Problem(path.name, f"{view.row_count} entries, expected 1"))
    if view.size_bytes == 0:
        view.notes.append("empty: no entries")
    rows = _named(text_rows(disk, path, kind), kind.columns, path.name, view.late_problems)
    view.rows = islice(rows, view.row_count if options.count is None else options.count)
    return view


def text_problem(error: CorruptCheckpoint) -> Problem:
    """A checkpoint's error as it is shown."""
    return Problem(error.path.name, error.reason, line=error.line or None)


def _rises(before: tuple[Any, ...], row: tuple[Any, ...]) -> bool:
    return bool(row[0] > before[0] and row[1] > before[1])


def _note(problems: list[Problem], problem: Problem) -> None:
    if len(problems) < 1_000:
        problems.append(problem)


def _named(
    rows: Iterator[tuple[Any, ...]],
    columns: tuple[str, ...],
    name: str,
    problems: list[Problem],
) -> Iterator[dict[str, Any]]:
    """Rows by column. An error that was noted before ends them; a new one is late."""
    try:
        for row in rows:
            yield dict(zip(columns, row, strict=True))
    except CorruptCheckpoint:
        return
    except DiskError as error:
        problems.append(Problem(name, f"changed while it was read: {error}"))


# JSON and metadata -----------------------------------------------------------------------------


def read_json(disk: Disk, path: Path) -> Any:
    """The value in a small JSON file, None for anything else.

    Raises:
        CorruptCheckpoint: more than 8 MiB.
        DiskError: the file is missing or cannot be read.
    """
    return load_json(read_small(disk, path, JSON_MAX_BYTES) or b"")


_SEAL_COLUMNS: Final = ("base_offset", "size_bytes", "next_offset", "last_position")


def _seal_rows(seals: dict[str, Seal]) -> Iterator[dict[str, Any]]:
    for name, seal in seals.items():
        for segment in seal.segments:
            yield {"partition": name, **_seal_row(segment)}


def _seal_row(segment: SegmentSeal) -> dict[str, Any]:
    row = {column: getattr(segment, column) for column in _SEAL_COLUMNS}
    return {**row, "max_timestamp_ms": segment.max_timestamp_ms}


def describe_seal(disk: Disk, path: Path, options: Options) -> FileView:
    """The clean-close seal of a log on its own."""
    columns = (*_SEAL_COLUMNS, "max_timestamp_ms")
    view = FileView(path, "seal", disk.stat(path).size_bytes, columns=columns)
    try:
        content = read_json(disk, path)
    except CorruptCheckpoint as error:
        view.problems.append(text_problem(error))
        return view
    version = content.get("version") if isinstance(content, dict) else None
    seal = Seal.from_json(content.get("segments")) if version == SEAL_VERSION else None
    if seal is None:
        view.problems.append(Problem(path.name, "not a seal: the close does not count as clean"))
        return view
    view.facts["version"] = SEAL_VERSION
    view.row_count = len(seal.segments)
    view.rows = islice(map(_seal_row, seal.segments), options.count)
    return view


def describe_marker(disk: Disk, path: Path, options: Options) -> FileView:
    """The clean-shutdown marker of a broker's directory."""
    columns = ("partition", *_SEAL_COLUMNS, "max_timestamp_ms")
    view = FileView(path, "marker", disk.stat(path).size_bytes, columns=columns)
    if view.size_bytes == 0:
        view.notes.append("empty, as Kafka's brokers before broker epochs left it")
        return view
    try:
        content = read_json(disk, path)
    except CorruptCheckpoint as error:
        view.problems.append(text_problem(error))
        return view
    if not isinstance(content, dict) or content.get("version") != MARKER_VERSION:
        view.problems.append(Problem(path.name, "not a marker: no close counts as clean"))
        return view
    epoch = content.get("brokerEpoch")
    view.facts["version"] = MARKER_VERSION
    view.facts["broker_epoch"] = epoch if type(epoch) is int else None
    rows = content.get("seals")
    seals = {}
    for name, value in rows.items() if isinstance(rows, dict) else ():
        seal = Seal.from_json(value)
        if seal is None:
            _note(view.problems, Problem(path.name, f"the seal of {name[:300]} is none"))
        else:
            seals[name] = seal
    view.row_count = sum(len(seal.segments) for seal in seals.values())
    view.rows = islice(_seal_rows(seals), options.count)
    return view


def describe_metadata(disk: Disk, path: Path) -> FileView:
    """``partition.metadata``."""
    view = FileView(path, "metadata", disk.stat(path).size_bytes)
    try:
        data = read_small(disk, path, CHUNK_BYTES) or b""
    except CorruptCheckpoint as error:
        view.problems.append(text_problem(error))
        return view
    match = METADATA_PATTERN.match(data.decode(errors="replace"))
    if match is None:
        reason = "not the two lines 'version: 0' and 'topic_id: ' with 22 of A-Za-z0-9_-"
        view.problems.append(Problem(path.name, reason))
    else:
        view.facts = {"version": 0, "topic_id": match[1]}
    return view
