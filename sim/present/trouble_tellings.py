"""Faults and errors in words: what machines call by short names of their own.

A name that nobody has written words for is told as it is, with spaces.

Left out: crashes, elections, cuts (``sim.present.tellings``, ``sim.present.protocol_tellings``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.present.args import text
from sim.present.history import Fault
from sim.present.protocol_tellings import Said
from sim.present.story import Happening, Story
from sim.present.words import duration, listed, name, target_words

__all__ = ["corruption", "disk_error", "error", "fault_words"]

_DISK_FAULTS: Final = {
    "error": "calls fail",
    "split-write": "a write is cut in two",
    "lost-write": "a write is called done and does not happen",
    "misdirected-write": "a write lands in another place",
    "fsync-fail": "a sync fails, and what was not written is called clean",
    "fsync-lie": "syncs are called done and write nothing",
    "fsync-read-only": "a sync fails, and the file system becomes read-only",
    "late-enospc": "no room is left when data is written back",
    "gone": "no call succeeds any more",
    "read-only": "nothing can be written",
    "short-read": "reads give less than was asked for",
    "write-back-fail": "what the kernel writes back later does not arrive",
}
_CALLS: Final = {
    "write_at": "a write to",
    "append": "an append to",
    "read_at": "a read of",
    "read_into": "a read of",
    "complete_fsync": "a sync of",
    "fsync_dir": "a sync of the directory",
    "write_back": "the write-back of",
    "truncate": "the cut of",
    "rename": "the renaming of",
    "unlink": "the removal of",
}
_FAULTS: Final = {
    "DiskStall": "the disk hangs at",
    "DiskSlow": "the disk is slow at",
    "DiskFill": "the disk is full at",
    "HostPause": "all stands still at",
    "SlowCpu": "the processor is slow at",
    "BackgroundHold": "background work waits at",
    "ClockStep": "the clock is moved at",
    "ClockDrift": "the clock drifts at",
    "ClockFreeze": "the clock stands still at",
}
_ERRORS: Final = {
    "append-error": "cannot append",
    "compaction-error": "cannot compact",
    "config-ignored": "ignores a setting",
    "controller-failed": "fails as controller",
    "corrupt-response": "gets a damaged answer",
    "halt": "stops itself",
    "metadata-malformed": "gets metadata that it cannot read",
    "metadata-work-failed": "cannot do what the metadata asks for",
    "mismatched-response": "gets an answer that it has not asked for",
    "not-salvaged": "cannot salvage its damaged log",
    "read-error": "cannot read",
    "registration-lost": "is no longer registered",
    "registration-refused": "is not registered by the controller",
    "replication-error": "cannot append what it fetched",
    "request-dropped": "drops a request",
    "role-error": "cannot take its role",
    "upkeep-error": "cannot tidy up its log",
}


# Faults ------------------------------------------------------------------------------------------


def fault_words(fault: Fault) -> str:
    """What a fault does, and to whom."""
    args = fault.args
    inner = args.get("fault")
    where = target_words(fault.target)
    if fault.kind == "DiskCallFault" and isinstance(inner, dict):
        what = text(inner, "kind") or "?"
        words = _DISK_FAULTS.get(what, name(what))
        path = text(inner, "path")
        return f"on the disk of {where} {words}" + (f" ({name(path)})" if path else "")
    only = args.get("only")
    details = []
    if isinstance(only, list) and only:
        details.append("only " + listed(name(each) for each in only))
    details += [
        _detail(key, each)
        for key, each in args.items()
        if key != "only" and type(each) in (int, str) and each not in (0, "", "drop")
    ]
    more = f" ({', '.join(details)})" if details else ""
    return f"{_FAULTS.get(fault.kind) or _spaced(fault.kind)} {where}{more}".strip()


def _detail(key: str, value: Any) -> str:
    """A parameter: ``by_us=2000000`` as ``by 2s``."""
    if key.endswith("_us") and type(value) is int:
        return f"{_plain(key[:-3])} {duration(value)}"
    return f"{_plain(key)} {name(value)}"


def _plain(key: str) -> str:
    return name(key).replace("_", " ")


def _spaced(kind: str) -> str:
    """``CrashLoop`` as ``crash loop``."""
    found = "".join(f" {each.lower()}" if each.isupper() else each for each in name(kind))
    return found.strip()


def disk_error(story: Story, group: list[Happening]) -> Said:
    """A fault struck a call of the disk."""
    args = group[0].data
    call, file = text(args, "operation") or "?", name(text(args, "file"))
    what, fault = text(args, "error"), text(args, "fault")
    found = f"{name(group[0].node)}: {_CALLS.get(call, name(call) + ' of')} {file} "
    found += f"fails: {_code(what)}" if what or not fault else f"is struck by {name(fault)}"
    return found, "bad", 1, "disk error"


def corruption(story: Story, group: list[Happening]) -> Said:
    """Bits were changed."""
    args = group[0].data
    what = text(args, "file") or text(args, "type") or "a message"
    return f"bits of {name(what)} are changed", "fault", 1, "corruption"


# Errors ------------------------------------------------------------------------------------------


def error(story: Story, group: list[Happening]) -> Said:
    """A machine met an error."""
    args = group[0].data
    note = text(args, "note") or "error"
    if note == "replica-failed":
        leader = f" from {name(args['leader'])}" if text(args, "leader") else ""
        place = name(group[0].partition)
        found = f"{name(group[0].node)} is refused, and copies no more of {place}{leader} for now"
        return found, "bad", 1, "error"
    code = text(args, "error") or text(args, "why") or text(args, "detail") or ""
    place = f" of {name(group[0].partition)}" if group[0].partition else ""
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    words = _ERRORS.get(note, f"meets {name(note)}")
    why = f": {_code(code)}" if code else ""
    return f"{name(group[0].node)} {words}{place}{why}{more}", "bad", 1, "error"


def _code(code: object) -> str:
    """``FSYNC_FAILED`` as ``fsync failed``; anything that is no code as it is."""
    found = name(code)
    return found.replace("_", " ").lower() if found.isupper() else found
