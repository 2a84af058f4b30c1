"""Which 4 KiB pages of each file were durable, and which were in the page cache alone.

``page_maps`` gives plain data::

    {
     "page_bytes": 4096,
     "known": bool, "why_unknown": text|null,      without a run's trace nothing is known
     "states": [{"state", "meaning", "kill", "power"}, ...],          a legend, in words
     "files": [{
        "file": text, "size_bytes": N, "pages": N,
        "runs": [[first_page, end_page, state], ...],      state: "clean"|"dirty"|"unknown"
        "dirty": [[start, end], ...],                      the very bytes
        "name": "durable"|"not synced"|"unknown",
        "is_cut": bool,                   made shorter and not synced since: the tail may come back
        "note": text|null}, ...],
     "kill": {"lost_bytes": 0, "log_end": N|null, "text": text},
     "power": {"lost_bytes": N|null, "log_end": N|null, "text": text}}

Of a power cut, "lost" is what may be lost: the disk is free to have written some of it.
``log_end`` is the offset below which every batch survives for sure.

Left out: pages that the kernel dropped from memory ("evicted"). A trace does not tell, and it
changes nothing but the time that a read takes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from sim.xray.pending import FilePending, Pending
from storage.disk import FileKind
from storage.errors import DiskError
from storage.read_only import ReadOnlyDisk

__all__ = ["PAGE_BYTES", "page_maps"]

PAGE_BYTES: Final = 4096
_FILES_MAX: Final = 2_000
_STATES: Final = (
    {
        "state": "clean",
        "meaning": "an fsync came behind its last write: memory and disk agree",
        "kill": "kept",
        "power": "kept",
    },
    {
        "state": "dirty",
        "meaning": "some of it was written and not synced since: it may be in memory alone",
        "kill": "kept: the page cache is the kernel's, and outlives the process",
        "power": "may be lost, as a whole or in parts",
    },
    {
        "state": "unknown",
        "meaning": "no trace tells, or it does not explain the file as it is",
        "kill": "kept",
        "power": "unknown",
    },
)
_KILL: Final = (
    "A process that is killed loses nothing that it wrote: the bytes are in the kernel's page "
    "cache. The next process reads them as if nothing had happened."
)


def page_maps(
    disk: ReadOnlyDisk,
    directory: Path,
    names: list[str],
    segments: list[dict[str, Any]],
    pending: Pending | None,
    place: tuple[str, str] | None = None,
) -> dict[str, Any]:
    """The map of every file in a directory; see the module.

    Args:
        place: whose the directory is, and its path below that node's.
    """
    why = "there is no trace of a run beside this directory" if place is None else None
    if pending is None or place is None:
        why = why or "there is no trace of a run beside this directory"
        pending = None
    elif pending.why_unknown is not None:
        why, pending = pending.why_unknown, None
    files = []
    for name in sorted(names)[:_FILES_MAX]:
        try:
            stat = disk.stat(directory / name)
        except DiskError:
            continue
        if stat.kind is not FileKind.FILE:
            continue
        file, is_known = None, False
        if pending is not None and place is not None:
            path = f"{place[1]}/{name}" if place[1] else name
            file = pending.files.get((place[0], path))
            is_known = file is not None or place[0] in pending.restored
        files.append(_map(name, stat.size_bytes, file, is_known=is_known))
    return {
        "page_bytes": PAGE_BYTES,
        "known": pending is not None,
        "why_unknown": why,
        "states": [dict(each) for each in _STATES],
        "files": files,
        "kill": {"lost_bytes": 0, "log_end": _log_end(segments), "text": _KILL},
        "power": _power(files, segments),
    }


def _map(name: str, size: int, file: FilePending | None, *, is_known: bool) -> dict[str, Any]:
    pages = -(-size // PAGE_BYTES)
    plain: dict[str, Any] = {"file": name, "size_bytes": size, "pages": pages}
    note = None
    if is_known and file is not None and file.size_bytes not in (None, size):
        note = f"the trace ends with {file.size_bytes} bytes, the file has {size}"
        is_known = False
    if not is_known:
        runs = [[0, pages, "unknown"]] if pages else []
        return plain | {"runs": runs, "dirty": [], "name": "unknown", "is_cut": False, "note": note}
    dirty = [(start, min(end, size)) for start, end in (file.ranges if file else [])]
    dirty = [each for each in dirty if each[0] < each[1]]
    return plain | {
        "runs": _runs(pages, dirty),
        "dirty": [list(each) for each in dirty],
        "name": "durable" if file is None else file.name,
        "is_cut": file is not None and file.is_cut,
        "note": note,
    }


def _runs(pages: int, dirty: list[tuple[int, int]]) -> list[list[Any]]:
    """Pages in runs of one state; a page with one dirty byte is dirty."""
    runs: list[list[Any]] = []
    at = 0
    for start, end in dirty:
        first, stop = max(start // PAGE_BYTES, at), -(-end // PAGE_BYTES)
        if first > at:
            runs.append([at, first, "clean"])
        if stop > first:
            if runs and runs[-1][2] == "dirty":
                runs[-1][1] = stop
            else:
                runs.append([first, stop, "dirty"])
        at = max(at, stop)
    if at < pages:
        runs.append([at, pages, "clean"])
    return runs


def _log_end(segments: list[dict[str, Any]]) -> int | None:
    return segments[-1]["next_offset"] if segments else None


def _power(files: list[dict[str, Any]], segments: list[dict[str, Any]]) -> dict[str, Any]:
    """What a power cut may take."""
    by_name = {each["file"]: each for each in files}
    maps = [by_name.get(each["file"]) for each in segments]
    if any(each is None or _is_unknown(each) for each in maps):
        text = "What a power cut would take is unknown: no trace tells what was synced."
        return {"lost_bytes": None, "log_end": None, "text": text}
    lost = sum(end - start for each in files for start, end in each["dirty"])
    end, is_sure = _log_end(segments), True
    for segment, found in zip(segments, maps, strict=True):
        assert found is not None
        if found["name"] == "not synced" and segment["batch_count"]:
            end, is_sure = segment["base_offset"], True
        elif found["dirty"]:
            end, is_sure = _surviving(segment, found["dirty"][0][0])
        else:
            continue
        break
    text = f"A power cut takes nothing of the log's bytes: all below offset {end} is synced."
    if lost:
        safe = f"the log {'below' if is_sure else 'at least below'} offset {end} is safe"
        if not segments or end == segments[0]["base_offset"]:
            safe = "nothing of the log is safe"
        text = f"A power cut may take up to {lost} bytes that were not synced: {safe}."
    if any(each["name"] == "not synced" for each in maps if each):
        text += (
            " A segment was renamed and its directory not synced since: the name may go, and the "
            "whole file with it."
        )
    if any(each["name"] == "unknown" and each["size_bytes"] for each in maps if each):
        text += " Whether a segment's name is durable the trace does not tell."
    if any(each["is_cut"] for each in maps if each):
        text += " A cut tail was not synced: it may come back."
    return {"lost_bytes": lost, "log_end": end, "text": text}


def _is_unknown(found: dict[str, Any]) -> bool:
    return bool(found["size_bytes"]) and any(each[2] == "unknown" for each in found["runs"])


def _surviving(segment: dict[str, Any], dirty_from: int) -> tuple[int, bool]:
    """The offset behind the last batch that ends before a byte, and whether that is all of them."""
    end, is_sure = segment["base_offset"], segment["listed"][0] == 0
    for row in segment["batches"]:
        if row[0] + row[1] > dirty_from:
            return end, is_sure
        end = row[3]
    return end, is_sure and segment["listed"][1] >= segment["good_bytes"]
