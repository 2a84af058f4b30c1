"""The X-ray of all logs of a run, within limits, for its page.

``xray_panel`` gives plain data for ``panels.xray``; null is "none"::

    {
     "v": 1,
     "directories": [{...}, ...],     as ``sim.xray.reading`` has them, but for "path", "book" and
                                      "transfer"; "hex" is [[segment, batch, view], ...]: numbers
                                      in "segments", in its "batches", and in "views"
     "views": [{"size_bytes","format","bytes": hex digits,"is_whole",
                "fields": [[field, start, end, value], ...]}, ...],
                                      batches in hex; replicas that have the same bytes share one
     "fields": [[name, meaning], ...],
     "book": [...], "transfer": [...],         the same for all directories
     "notices": [text, ...]           what was left out
    }

Left out: what a page does with it (``sim/viewer/src/xraypanel.js``).
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from sim.trace.reader import TraceError
from sim.xray.hexview import hex_views
from sim.xray.pending import Pending, pending_of
from sim.xray.places import TRACE_NAME, Place, find_places
from sim.xray.reading import xray
from storage.disk import Disk, FileKind, OsDisk
from storage.errors import DiskError
from storage.read_only import ReadOnlyDisk

__all__ = [
    "BATCHES_MAX",
    "DIRECTORIES_MAX",
    "HEX_MAX",
    "JSON_BYTES_MAX",
    "LOG_BYTES_MAX",
    "xray_panel",
]

DIRECTORIES_MAX: Final = 24
BATCHES_MAX: Final = 60_000
"""In all directories together; a batch is about 90 bytes of JSON, and 12 compressed."""
RECORDS_MAX: Final = 120_000
HEX_MAX: Final = 20_000
"""Different ones; each is about 700 bytes of JSON, and 50 compressed."""
LOG_BYTES_MAX: Final = 256 << 20
"""So many bytes of files are read in all: every byte of a log passes a checksum."""
JSON_BYTES_MAX: Final = 16 << 20
_HEX_KEPT: Final = 50
_NOTICES_MAX: Final = 20
_SHARED: Final = ("path", "book", "transfer", "hex")


def xray_panel(
    trace: Path,
    *,
    directories_max: int = DIRECTORIES_MAX,
    batches_max: int = BATCHES_MAX,
    hex_max: int = HEX_MAX,
    log_bytes_max: int = LOG_BYTES_MAX,
    json_bytes_max: int = JSON_BYTES_MAX,
    disk: Disk | None = None,
) -> dict[str, Any] | None:
    """X-rays of the logs that lie beside a run's trace; None where none do.

    No link inside the run's folder is followed. What cannot be read becomes a notice.

    Args:
        trace: the trace; only one in the folder of its run has logs beside it.
        directories_max, batches_max, hex_max, log_bytes_max, json_bytes_max: limits for all logs
            together, 0 or more: directories, batches that are listed, batches in hex, bytes that
            are read, bytes of JSON.
    """
    used = disk or OsDisk()
    try:
        path = trace.resolve(strict=True)
        if path.name != TRACE_NAME:
            return None
        found = find_places(used, path.parent)
    except (OSError, RuntimeError, ValueError, DiskError):
        return None
    if found.kind != "run" or not found.places:
        return None
    work = _Panel(used, batches_max, hex_max, log_bytes_max, json_bytes_max)
    pending = work.pending(path)
    places = found.places[:directories_max]
    if len(places) < len(found.places) or found.is_cut_short:
        left = len(found.places) - len(places)
        work.notices.append(f"{left} of {len(found.places)} directories are left out")
    for number, place in enumerate(places):
        work.add(place, pending, len(places) - number)
    return work.plain()


class _Panel:
    """Directories as they are added, and what is left of the limits."""

    def __init__(
        self, disk: Disk, batches_max: int, hex_max: int, log_bytes_max: int, json_bytes_max: int
    ) -> None:
        self.notices: list[str] = []
        self._disk = ReadOnlyDisk(disk)
        self._batches, self._records = batches_max, RECORDS_MAX
        self._hex, self._log_bytes, self._json_bytes = hex_max, log_bytes_max, json_bytes_max
        self._directories: list[dict[str, Any]] = []
        self._views: dict[str, int] = {}
        self._fields: dict[tuple[str, str], int] = {}
        self._shared: dict[str, Any] = {"book": [], "transfer": []}

    def pending(self, trace: Path) -> Pending | None:
        try:
            return pending_of(trace)
        except (TraceError, OSError) as error:
            self.notices.append(f"what was synced is not known: {error}")
            return None

    def add(self, place: Place, pending: Pending | None, count: int) -> None:
        """Take in a directory; it may use its share of what is left for ``count`` of them."""
        try:
            size = self._size(place.directory)
            if size > self._log_bytes:
                self.notices.append(f"{place.name}: left out, its files have {size} bytes")
                return
            data = xray(
                place.directory,
                name=place.name,
                node=place.node,
                folder=place.folder,
                pending=pending,
                batches_max=self._batches // count,
                records_max=self._records // count,
                hex_max=0,
                disk=self._disk,
            )
        except DiskError as error:
            told = _without(str(error), place.directory)
            self.notices.append(f"{place.name}: cannot be read: {told}")
            return
        self._log_bytes -= size
        bare = {key: value for key, value in data.items() if key not in _SHARED}
        bare["notices"] = _few([_without(each, place.directory) for each in data["notices"]])
        length = len(json.dumps(bare, separators=(",", ":")))
        if length > self._json_bytes:
            self.notices.append(f"{place.name}: left out, its X-ray has {length} bytes")
            return
        self._json_bytes -= length
        self._batches -= sum(len(each["batches"]) for each in data["segments"])
        self._records -= sum(
            len(row[7] or ()) for each in data["segments"] for row in each["batches"]
        )
        self._shared = {key: data[key] for key in ("book", "transfer")}
        # Replicas have mostly the same bytes, so an equal share for each would be too little.
        room = max(self._hex // count, self._hex - _HEX_KEPT * (count - 1))
        bare["hex"] = self._in_hex(place.directory, data, room)
        self._directories.append(bare)

    def plain(self) -> dict[str, Any]:
        return {
            "v": 1,
            "directories": self._directories,
            "views": [json.loads(each) for each in self._views],
            "fields": [list(each) for each in self._fields],
            **self._shared,
            "notices": _few(self.notices),
        }

    def _size(self, directory: Path) -> int:
        stats = [self._disk.stat(directory / each) for each in self._disk.listdir(directory)]
        return sum(each.size_bytes for each in stats if each.kind is FileKind.FILE)

    def _in_hex(self, directory: Path, data: dict[str, Any], count: int) -> list[list[int]]:
        found = []
        for number, batch in _chosen(data["segments"], count):
            segment = data["segments"][number]
            row = segment["batches"][batch]
            alone = {"segments": [segment | {"batches": [row]}]}
            for view in hex_views(self._disk, directory, alone, row[2], 1):
                known = len(self._views)
                found.append([number, batch, self._view(view)])
                self._hex -= len(self._views) - known
        return sorted(found)

    def _view(self, view: dict[str, Any]) -> int:
        fields = []
        for each in view["fields"]:
            key = each["name"], each["meaning"]
            number = self._fields.setdefault(key, len(self._fields))
            fields.append([number, each["start"], each["end"], each["value"]])
        kept = {key: view[key] for key in ("size_bytes", "format", "bytes", "is_whole")}
        text = json.dumps(kept | {"fields": fields})
        return self._views.setdefault(text, len(self._views))


def _chosen(segments: list[dict[str, Any]], count: int) -> Iterable[tuple[int, int]]:
    """The first and last batch of each segment, then all others, the newest segments first."""
    order: dict[tuple[int, int], None] = {}
    rows = [(number, len(each["batches"])) for number, each in enumerate(segments)]
    for number, length in reversed(rows):
        if length:
            order[number, 0] = order[number, length - 1] = None
    for number, length in reversed(rows):
        if len(order) >= count:
            break
        order.update(dict.fromkeys((number, batch) for batch in range(length)))
    return list(order)[:count]


def _without(text: str, directory: Path) -> str:
    """A notice without the path: a page is passed on, and says nothing of the machine."""
    return text.replace(f"{directory}/", "").replace(str(directory), "the directory")


def _few(notices: list[str]) -> list[str]:
    if len(notices) <= _NOTICES_MAX:
        return notices
    return [*notices[:_NOTICES_MAX], f"and {len(notices) - _NOTICES_MAX} more notices"]
