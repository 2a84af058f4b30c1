"""What of a run's files was written and not synced, from the run's trace.

A trace tells each write, sync, cut and rename of a file, in order. From those follow, for the end
of the run, the byte ranges that no fsync covered: they were in the page cache alone. A crash of the
process changes nothing there; behind a power cut, or on a disk that was exchanged, all that is left
is durable.

What the kernel wrote back by itself counts as dirty still, for nobody can rely on it; so do bytes
whose sync failed, until a power cut or a new write settles them. A sync that lied is told as one of
no bytes, and makes nothing clean.

Files are created without an event, so a name is known to be durable only once a sync of the file's
own bytes, or of its directory, came behind its first write.

Left out: what a power cut would really leave, which is drawn (``sim.disk_images``), and bytes that
were cut and written anew while a sync of theirs was under way: they count as synced by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from attrs import define, field, frozen

from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.trace.reader import TraceReader

__all__ = ["FilePending", "Pending", "pending_of"]

_SYNCS: Final = frozenset({"fsync", "begin_fsync", "complete_fsync"})
_DIRECTORY_SYNC: Final = "fsync_dir"
_HEAD: Final = re.compile(rb'\{"n":[0-9]+,"t":-?[0-9]+,"node":"[^"\\]*","kind":"([a-z-]+)"')
_WANTED: Final = frozenset(
    kind.value.encode("ascii")
    for kind in (Kind.WRITE, Kind.FSYNC, Kind.DISK, Kind.DISK_ERROR, Kind.CRASH, Kind.START)
)
_INTERVAL: Final = "index.interval.bytes"
TRACE_BYTES_MAX: Final = 256 << 20
"""Reading so much takes some 5 s."""


@define
class FilePending:
    """What is pending of one file.

    Attributes:
        dirty: byte ranges that were written and not synced since, rising, apart from each other.
        stuck: ranges whose sync failed.
        size_bytes: as the trace tells it; None where it cannot be told, behind a power cut.
        is_cut: it was made shorter, and not synced since: its tail may come back.
        name: ``durable``: it or its directory was synced behind its first write, or a power cut
            left it; ``not synced`` since it was renamed; ``unknown``.
    """

    dirty: list[tuple[int, int]] = field(factory=list)
    stuck: list[tuple[int, int]] = field(factory=list)
    size_bytes: int | None = 0
    is_cut: bool = False
    name: str = "unknown"

    @property
    def ranges(self) -> list[tuple[int, int]]:
        """All that a power cut may take."""
        return joined([*self.dirty, *self.stuck])


@frozen
class Pending:
    """What is pending at the end of a run.

    Attributes:
        files: by node and path below the node's directory.
        restored: nodes whose disk was as durable as it could be at some time in the run: files
            without an event since are durable.
        why_unknown: why the trace does not tell; None where it does.
        options, topics: of the run, as its header has them.
    """

    files: dict[tuple[str, str], FilePending]
    restored: frozenset[str]
    why_unknown: str | None = None
    options: dict[str, Any] = field(factory=dict)
    topics: tuple[Any, ...] = ()

    def index_interval_of(self, topic: str) -> int | None:
        """``index.interval.bytes`` of a topic, where the run's header names it."""
        for each in self.topics:
            if isinstance(each, dict) and each.get("name") == topic:
                own = each.get("config")
                found = _size(own.get(_INTERVAL)) if isinstance(own, dict) else None
                if found is not None:
                    return found
        common = self.options.get("config")
        return _size(common.get(f"log.{_INTERVAL}")) if isinstance(common, dict) else None


def pending_of(trace: Path) -> Pending:
    """Read a run's trace once; what a very long one tells of files is not looked for.

    Raises:
        TraceError: it is no trace, or damaged.
        OSError: it cannot be read.
    """
    reader = TraceReader(trace)
    options = dict(reader.header.options)
    replay = _Replay(options.get("names_mode", "ext4") == "ext4")
    size = trace.stat().st_size
    why = None
    if size > TRACE_BYTES_MAX:
        most = TRACE_BYTES_MAX >> 20
        why = f"the run's trace has {size >> 20} MiB, and at most {most} are looked through"
    else:
        replay.read(_told(reader))
        if reader.footer is None:
            why = "the run's trace was cut short"
        elif not replay.count and reader.footer.n:
            why = "the run's trace keeps no events (--trace-level digest)"
    topics = reader.header.topics
    return Pending(
        replay.files,
        frozenset(replay.restored),
        why,
        options,
        tuple(topics) if isinstance(topics, list | tuple) else (),
    )


def _told(reader: TraceReader) -> Iterator[Event]:
    """The events that may say something of a file: the others are passed over unparsed."""
    for number, line in reader.event_lines():
        head = _HEAD.match(line)
        if head is None or head[1] in _WANTED:
            yield reader.parse_event(number, line)


class _Replay:
    """Files as the events change them."""

    def __init__(self, syncs_all_names: bool) -> None:
        self._syncs_all_names = syncs_all_names
        self._lying: set[tuple[str, str]] = set()
        self.files: dict[tuple[str, str], FilePending] = {}
        self.restored: set[str] = set()
        self.count = 0

    def read(self, events: Iterable[Event]) -> None:
        for event in events:
            self.count += 1
            self._see(event)

    def _see(self, event: Event) -> None:
        args = event.args
        if event.kind is Kind.CRASH:
            if args.get("how") == "power":
                self._restore(event.node)
            return
        if event.kind is Kind.START:
            if args.get("disk") not in (None, "same"):
                self._restore(event.node)
            return
        path = args.get("file")
        if not isinstance(path, str):
            return
        key = event.node, path.strip("/")
        start, size = _number(args, "position"), _number(args, "size")
        if event.kind is Kind.WRITE:
            self._write(key, start, start + size)
        elif event.kind is Kind.FSYNC:
            self._sync(key, start, start + size)
        elif event.kind is Kind.DISK:
            self._change(key, args.get("operation"), start, size)
        elif event.kind is Kind.DISK_ERROR:
            self._fail(key, args.get("operation"))

    def _write(self, key: tuple[str, str], start: int, end: int) -> None:
        file = self.files.setdefault(key, FilePending())
        file.dirty = joined([*file.dirty, (start, end)])
        file.stuck = without(file.stuck, start, end)
        if file.size_bytes is not None:
            file.size_bytes = max(file.size_bytes, end)

    def _sync(self, key: tuple[str, str], start: int, end: int) -> None:
        is_lie = key in self._lying and start == end
        self._lying.discard(key)
        if is_lie:
            return
        file = self.files.get(key)
        if file is not None:
            file.dirty = without(file.dirty, start, end)
            file.is_cut = False
            if file.name == "unknown" and start < end:
                file.name = "durable"
            return
        # A directory's names, or a file without bytes: the names of others tell which.
        folder = key[1] or "."
        theirs = [each for each in self.files if each[0] == key[0]]
        inside = [each for each in theirs if str(PurePosixPath(each[1]).parent) == folder]
        if inside or folder == ".":
            for each in theirs if self._syncs_all_names else inside:
                self.files[each].name = "durable"

    def _fail(self, key: tuple[str, str], operation: object) -> None:
        """A fault struck a call: a sync that failed, or that is about to lie."""
        if operation in _SYNCS or operation == _DIRECTORY_SYNC:
            self._lying.add(key)
        file = self.files.get(key)
        if file is not None and operation in _SYNCS:
            file.stuck, file.dirty = file.ranges, []

    def _change(self, key: tuple[str, str], operation: object, start: int, size: int) -> None:
        node, path = key
        if operation == "truncate":
            file = self.files.setdefault(key, FilePending())
            file.is_cut = file.is_cut or size > 0
            if not size:
                # It did not become shorter: it was made longer, or is as it was.
                if file.size_bytes is not None and start > file.size_bytes:
                    file.dirty = joined([*file.dirty, (file.size_bytes, start)])
            file.dirty = without(file.dirty, start, None)
            file.stuck = without(file.stuck, start, None)
            file.size_bytes = start if file.size_bytes is not None or size else None
        elif operation == "unlink":
            self.files.pop(key, None)
        elif operation == "rename":
            self._rename(node, path)

    def _rename(self, node: str, path: str) -> None:
        """The event names the old path alone; the names of files say how they go on."""
        moved = self.files.pop((node, path), None)
        if moved is not None:
            moved.name = "not synced"
            self.files[node, _next_name(path)] = moved
            return
        for key in [each for each in self.files if each[0] == node]:
            if key[1].startswith(f"{path}/"):
                # A directory that is renamed is about to be deleted.
                del self.files[key]

    def _restore(self, node: str) -> None:
        self.restored.add(node)
        for key in [each for each in self.files if each[0] == node]:
            self.files[key] = FilePending(size_bytes=None, name="durable")


def _next_name(path: str) -> str:
    if path.endswith(".tmp"):
        return path.removesuffix(".tmp")
    if path.endswith(".cleaned"):
        return path.removesuffix(".cleaned") + ".swap"
    if path.endswith(".swap"):
        return path.removesuffix(".swap")
    return f"{path}.deleted"


def joined(ranges: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """The same bytes as ranges that rise and neither touch nor overlap."""
    found: list[tuple[int, int]] = []
    for start, end in sorted(each for each in ranges if each[0] < each[1]):
        if found and start <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], end)
        else:
            found.append((start, end))
    return found


def without(ranges: list[tuple[int, int]], start: int, end: int | None) -> list[tuple[int, int]]:
    """The ranges but for what lies from ``start`` to ``end``, or to where they end."""
    found = []
    for low, high in ranges:
        found.append((low, min(high, start)))
        if end is not None:
            found.append((max(low, end), high))
    return joined(found)


def _number(args: Any, key: str) -> int:
    value = args.get(key)
    return value if type(value) is int and value >= 0 else 0


def _size(value: object) -> int | None:
    return value if isinstance(value, int) and 1 <= value < 2**31 else None
