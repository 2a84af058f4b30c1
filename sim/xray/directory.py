"""The files of a log's directory, and of the broker's above it: structure, purpose, life cycle.

``directory_table`` gives plain data, a row a file that is there, then a row a kind that is not::

    {"file": text|null, "where": "log"|"broker", "size_bytes": N|null,
     "type": text, "structure": text, "purpose": text, "life": text,
     "modelled": "modelled"|"not modelled"|"Kafka only"|"Leaderfall only"|"unknown",
     "note": text|null}

Left out: what is in them.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from attrs import frozen

from storage.disk import FileKind
from storage.errors import DiskError
from storage.inspection.known import LOG_DIR_FILES, is_in_log_dir
from storage.read_only import ReadOnlyDisk

__all__ = ["directory_table"]

_FILES_MAX: Final = 500


@frozen
class _Kind:
    """What is to be said of files with one kind of name."""

    pattern: str
    type: str
    structure: str
    purpose: str
    life: str
    modelled: str = "modelled"
    absent: str | None = None


_LOG: Final = (
    _Kind(
        r"[0-9]{20}\.log",
        "data",
        "batches back to back; each has a header with length, checksum, offset, epoch, producer",
        "the records themselves; the only file that nothing can replace",
        "appended until segment.bytes or segment.ms, then closed; retention renames it, deletion "
        "follows",
    ),
    _Kind(
        r"[0-9]{20}\.index",
        "offset index",
        "8 bytes an entry: 4 offset relative to the name, 4 byte position",
        "leads from an offset to the byte where reading begins",
        "an entry every index.interval.bytes of log; rebuilt from the log when missing or wrong",
    ),
    _Kind(
        r"[0-9]{20}\.timeindex",
        "time index",
        "12 bytes an entry: 8 timestamp ms, 4 offset relative to the name",
        "look-up by time (offsetsForTimes), and retention by age",
        "an entry beside an offset entry where the time rose, one more at the roll; rebuilt like "
        "the other",
    ),
    _Kind(
        r"[0-9]{20}\.snapshot",
        "producer snapshot",
        "checksum, then a row a producer: id, epoch, last sequences and offsets",
        "tells a producer's retry from a new batch without reading the whole log again",
        "written at a roll and a clean close; the newest and one a segment are kept",
        absent="no producer with an id has written, or no segment rolled since",
    ),
    _Kind(
        r"[0-9]{20}\.txnindex",
        "aborted transactions",
        "34 bytes an entry: version, producer id, first and last offset, last stable offset",
        "lets readers with read_committed leave aborted records out",
        "an entry when a transaction is aborted; goes with its segment",
        "not modelled",
        absent="transactions' read side is not modelled",
    ),
    _Kind(
        r"leader-epoch-checkpoint",
        "epochs",
        "text: version, number of rows, then epoch and start offset a row",
        "finds where two replicas' logs part, so that a follower cuts at the right place",
        "a row before the first batch of an epoch; cut with the log's ends",
    ),
    _Kind(
        r"partition\.metadata",
        "topic id",
        "text: version, topic_id",
        "tells a topic from another of the same name that was deleted",
        "written once, when the log is created",
    ),
    _Kind(
        r"boundary",
        "durable boundary",
        "text: one row with segment, bytes, end offset, checksum",
        "says how much was synced: damage below it is data loss, above it a torn tail",
        "replaced behind each flush",
        "Leaderfall only",
    ),
    _Kind(
        r"seal",
        "seal",
        "JSON: a row a segment, with sizes and a checksum",
        "a clean close: nothing need be walked on open",
        "written on close, removed on open",
        "Leaderfall only",
    ),
    _Kind(
        r"\.lock",
        "lock",
        "empty",
        "one process at a time",
        "stays; held while a process has the log open",
    ),
    _Kind(
        r"quorum-state|[0-9]{20}-[0-9]{10}\.checkpoint|bootstrap\.checkpoint",
        "KRaft",
        "Kafka's own",
        "the metadata quorum's vote and snapshots",
        "Kafka's controllers keep it",
        "Kafka only",
    ),
    _Kind(
        r".*\.(deleted|cleaned|swap)",
        "left-over",
        "as the file whose name it begins with",
        "a step of deletion or compaction that was under way",
        "removed, or put in place, on open",
    ),
    _Kind(
        r".*\.tmp",
        "left-over",
        "as the file whose name it begins with",
        "a small file that was being replaced",
        "removed on open",
    ),
)
_BROKER: Final = (
    _Kind(
        r"replication-offset-checkpoint",
        "high watermarks",
        "text: topic, partition, offset a row",
        "where a restarted broker believes its high watermarks to be, until it hears better",
        "replaced every replica.high.watermark.checkpoint.interval.ms",
        absent="not written yet",
    ),
    _Kind(
        r"log-start-offset-checkpoint",
        "log starts",
        "text: topic, partition, offset a row",
        "what deleteRecords or retention hid, though the segment is still there",
        "replaced when a log start rises above its segment",
        absent="no log start was raised",
    ),
    _Kind(
        r"recovery-point-offset-checkpoint",
        "recovery points",
        "text: topic, partition, offset a row",
        "Kafka's idea of what was flushed: recovery begins there",
        "replaced behind flushes",
        absent="not written yet",
    ),
    _Kind(
        r"cleaner-offset-checkpoint",
        "compaction",
        "text: topic, partition, offset a row",
        "where compaction has not been yet",
        "replaced behind each pass",
        absent="nothing was compacted",
    ),
    _Kind(
        r"boundaries",
        "durable boundaries",
        "text: a row a partition, with segment, bytes, end offset, checksum",
        "says how much was synced: damage below it is data loss, above it a torn tail",
        "replaced behind each flush",
        "Leaderfall only",
    ),
    _Kind(
        r"\.kafka_cleanshutdown",
        "clean shutdown",
        "JSON: version, broker epoch; here with the logs' seals, too",
        "the broker went in order: no log need be recovered",
        "written on the way out, removed on start",
        absent="the broker runs, or did not go in order",
    ),
    _Kind(
        r"meta\.properties",
        "identity",
        "text: cluster id, node id",
        "keeps a disk from being used by another broker",
        "written once",
        "Kafka only",
    ),
)
_OTHER: Final = _Kind(
    "", "unknown", "-", "nothing that a log's directory is known to have", "-", "unknown"
)


def directory_table(
    disk: ReadOnlyDisk, directory: Path, names: list[str], notices: list[str]
) -> list[dict[str, Any]]:
    """A row a file, and a row a kind of file that is not there; see the module."""
    rows = [_row(disk, directory, each, "log", _LOG) for each in sorted(names)[:_FILES_MAX]]
    if len(names) > _FILES_MAX:
        notices.append(f"the directory's table leaves out {len(names) - _FILES_MAX} files")
    rows.sort(key=lambda each: (_order(each["file"]), each["file"]))
    rows += _absent(names, "log", _LOG)
    try:
        if is_in_log_dir(disk, directory):
            above = directory.absolute().parent
            inside = disk.listdir(above)
            known = [each for each in sorted(inside) if each in LOG_DIR_FILES]
            rows += [_row(disk, above, each, "broker", _BROKER) for each in known]
            rows += _absent(inside, "broker", _BROKER)
    except DiskError as error:
        notices.append(f"the broker's directory cannot be read: {error}")
    return rows


def _kind_of(name: str, kinds: tuple[_Kind, ...]) -> _Kind:
    for kind in kinds:
        if re.fullmatch(kind.pattern, name, re.ASCII | re.DOTALL):
            return kind
    return _OTHER


def _order(name: str) -> int:
    kind = _kind_of(name, _LOG)
    return len(_LOG) if kind is _OTHER else _LOG.index(kind)


def _row(
    disk: ReadOnlyDisk, directory: Path, name: str, where: str, kinds: tuple[_Kind, ...]
) -> dict[str, Any]:
    kind = _kind_of(name, kinds)
    size: int | None = None
    note = None
    try:
        stat = disk.stat(directory / name)
        if stat.kind is FileKind.FILE:
            size = stat.size_bytes
        else:
            note = f"no regular file but a {stat.kind.value}: not followed, not opened"
    except DiskError as error:
        note = str(error)
    return _plain(name, where, size, kind, note)


def _absent(names: list[str], where: str, kinds: tuple[_Kind, ...]) -> list[dict[str, Any]]:
    return [
        _plain(None, where, None, kind, kind.absent)
        for kind in kinds
        if kind.absent is not None
        and not any(re.fullmatch(kind.pattern, each, re.ASCII | re.DOTALL) for each in names)
    ]


def _plain(
    name: str | None, where: str, size: int | None, kind: _Kind, note: str | None
) -> dict[str, Any]:
    return {
        "file": name,
        "where": where,
        "size_bytes": size,
        "type": kind.type,
        "structure": kind.structure,
        "purpose": kind.purpose,
        "life": kind.life,
        "modelled": kind.modelled,
        "note": note,
    }
