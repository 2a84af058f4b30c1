"""What a log remembers apart from its segments: durable boundary, log start, declared gaps, seal.

The durable boundary names bytes and offsets that an fsync of the log and its directory covered. It
is raised only after that fsync returned, and lowered durably before anything that shortens the log.
Damage below it is corruption, damage behind it a torn write (``storage.recovery``).

``StateStore`` is where the state lives. A log on its own keeps a file ``boundary`` in its directory
(Kafka's container with one entry of six fields: segment base, size in bytes, end offset, log start
offset, end of declared gaps, CRC-32 of those before it; a log with producers has ``producers_from``
before the CRC) and, while cleanly closed, a file ``seal``. ``storage.log_dir`` keeps the same for
all logs of a broker, and the cleaned offset too; a log on its own forgets that, and its next
compaction looks at everything.

Left out: when the boundary moves (``storage.partition_log``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

from attrs import frozen

from storage.checkpoints import (
    parse_int,
    read_entries,
    read_small,
    remove_if_there,
    replace_file,
    write_entries,
)
from storage.config import LogRules
from storage.disk import Disk
from storage.errors import CorruptCheckpoint, DiskError
from storage.values import Value

__all__ = [
    "BOUNDARIES_FILE",
    "BOUNDARY_FILE",
    "SEAL_FILE",
    "Boundary",
    "FileStateStore",
    "LogState",
    "Seal",
    "SegmentSeal",
    "StateStore",
]

BOUNDARY_FILE = "boundary"
BOUNDARIES_FILE = "boundaries"
SEAL_FILE = "seal"
SEAL_VERSION = 1


@frozen(order=False)
class Boundary(Value):
    """Everything up to ``size_bytes`` of the segment ``segment_base`` is durable.

    ``end_offset`` is the offset behind the last batch that this covers.
    """

    segment_base: int
    size_bytes: int
    end_offset: int


@frozen
class LogState(Value):
    """The remembered state of one log.

    Attributes:
        boundary: None where it is unknown: the file is missing or cannot be read. Everything may
            have been durable then, so damage with whole batches behind it refuses.
        log_start_offset: the lowest offset that readers may ask for; None where unknown.
        gaps_end: below this offset batches may be missing inside a segment: compaction, here or on
            the leader, declared them gone.
        warnings: what could not be read, for the report.
        cleaned_offset: below it compaction has been: of each key at most one settled record is
            left there. Too low costs work, too high would bring deleted values back.
        producers_from: no batch below this offset names a producer; None if none below the
            boundary does. It is what tells a log that needs no producer snapshot from one that
            lost them.
    """

    boundary: Boundary | None
    log_start_offset: int | None = 0
    gaps_end: int = 0
    warnings: tuple[str, ...] = ()
    cleaned_offset: int = 0
    producers_from: int | None = None


@frozen
class SegmentSeal(Value):
    """A segment as it was when the log was closed. ``last_position`` is -1 for an empty one."""

    base_offset: int
    size_bytes: int
    next_offset: int
    last_position: int
    max_timestamp_ms: int


@frozen
class Seal(Value):
    """The log as it was when it was closed; without a match, the close does not count as clean."""

    segments: tuple[SegmentSeal, ...]

    def to_json(self) -> list[list[int]]:
        """Rows of the five integers of each segment, and a last row with their CRC-32."""
        rows = [
            [s.base_offset, s.size_bytes, s.next_offset, s.last_position, s.max_timestamp_ms]
            for s in self.segments
        ]
        return [*rows, [crc32(json.dumps(rows).encode())]]

    @classmethod
    def from_json(cls, rows: Any) -> Seal | None:
        """The seal, or None where ``rows`` is not what ``to_json`` gives."""
        if not isinstance(rows, list) or not rows:
            return None
        *rows, check = rows
        if check != [crc32(json.dumps(rows).encode())]:
            return None
        seals = []
        for row in rows:
            if not isinstance(row, list) or len(row) != 5:
                return None
            if not all(type(value) is int for value in row):
                return None
            seals.append(SegmentSeal(*row))
        return cls(tuple(seals))


class StateStore(Protocol):
    """Where one log's state is kept. ``save`` and ``save_seal`` return once it is durable."""

    def load(self, *, is_new: bool) -> LogState:
        """The saved state; ``is_new`` where the log has no segment and may not have one yet."""

    def save(self, state: LogState) -> None:
        """Make ``state`` durable (warnings aside)."""

    def take_seal(self) -> Seal | None:
        """The clean-close seal, durably removed before this returns."""

    def save_seal(self, seal: Seal) -> None:
        """Keep the seal of a clean close."""


class FileStateStore:
    """The state of a log on its own, in its own directory."""

    def __init__(self, disk: Disk, directory: Path, rules: LogRules) -> None:
        self._disk = disk
        self._directory = directory
        self._rules = rules

    def load(self, *, is_new: bool) -> LogState:
        path = self._directory / BOUNDARY_FILE
        try:
            entries = read_entries(self._disk, path, fields=6, optional=1)
            if entries is not None:
                return _parse(path, entries)
        except (CorruptCheckpoint, DiskError) as error:
            return LogState(None, None, warnings=(f"boundary unknown: {error}",))
        if is_new:
            return LogState(Boundary(0, 0, 0))
        return LogState(None, None, warnings=(f"boundary unknown: {path} is missing",))

    def save(self, state: LogState) -> None:
        path = self._directory / BOUNDARY_FILE
        fsync = self._rules.fsync_before_rename
        write_entries(self._disk, path, [state_fields(state)], fsync=fsync)

    def take_seal(self) -> Seal | None:
        path = self._directory / SEAL_FILE
        try:
            data = read_small(self._disk, path)
        except (CorruptCheckpoint, DiskError):
            data = b""
        if data is None:
            return None
        if self._rules.remove_marker_before_load:
            remove_if_there(self._disk, path)
            self._disk.fsync_dir(self._directory)
        found = load_json(data)
        if not isinstance(found, dict) or found.get("version") != SEAL_VERSION:
            return None
        return Seal.from_json(found.get("segments"))

    def save_seal(self, seal: Seal) -> None:
        content = {"version": SEAL_VERSION, "segments": seal.to_json()}
        data = json.dumps(content, separators=(",", ":")).encode()
        fsync = self._rules.fsync_before_rename
        replace_file(self._disk, self._directory / SEAL_FILE, data, fsync=fsync)


def checksum(fields: list[int]) -> int:
    """CRC-32 of a boundary entry's numbers as they are written."""
    return crc32(" ".join(map(str, fields)).encode())


def load_json(data: bytes) -> Any:
    """The value, or None for anything that is not JSON."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def state_fields(state: LogState) -> list[int]:
    """The numbers of a boundary entry, the checksum last (warnings are left out)."""
    boundary = state.boundary
    assert boundary is not None, "an unknown boundary is settled before it is saved"
    fields = [
        boundary.segment_base,
        boundary.size_bytes,
        boundary.end_offset,
        state.log_start_offset or 0,
        state.gaps_end,
    ]
    if state.producers_from is not None:
        fields.append(state.producers_from)
    return [*fields, checksum(fields)]


def parse_state(path: Path, line: int, fields: list[str]) -> LogState:
    """The state from six or seven fields of text. Raises ``CorruptCheckpoint``."""
    *numbers, crc = [parse_int(path, line, text) for text in fields]
    if checksum(numbers) != crc:
        raise CorruptCheckpoint(path, line, f"checksum {crc} does not match")
    if min(numbers) < 0:
        raise CorruptCheckpoint(path, line, f"negative number in {fields}")
    base, size, end, log_start, gaps_end, *producers = numbers
    return LogState(
        Boundary(base, size, end),
        log_start,
        gaps_end,
        producers_from=producers[0] if producers else None,
    )


def _parse(path: Path, entries: list[list[str]]) -> LogState:
    if len(entries) != 1:
        raise CorruptCheckpoint(path, 2, f"{len(entries)} entries, expected 1")
    return parse_state(path, 3, entries[0])
