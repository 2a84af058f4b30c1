"""Events of logs, read into a story: opened, appended, copied, cut, synced.

Left out: what a log does with them (``sim.present.logs``).
"""

from __future__ import annotations

from typing import Final

from sim.present.args import integer, number, pairs, text
from sim.present.history import How, Replica, Role
from sim.present.reading_state import Reader, ReadingState
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["READERS"]


def _recover(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        state.story.node(event.node).is_controller = True
        return
    args = event.args
    state.unseen.get(event.node, set()).discard(replica.partition)
    role = text(args, "role") or "waiting"
    replica.roles.put(event.n, Role(event.n, role, -1, None, None))
    state.tell(event.n, "recover", event.node, replica.partition, args)
    cut_before = state.shortened.pop((event.node, replica.partition), None)
    end = number(args, "log_end")
    if cut_before is not None and end >= 0 and not integer(args, "cut_bytes"):
        # Its process died before it could say that it had truncated.
        cause = cut_before.cause[0] if cut_before.cause else 0
        for cut in state.logs.shorten(replica, event.n, end, How.TRUNCATED, cause):
            state.tell(event.n, "cut", event.node, replica.partition, cut)
    kind, by = state.what_took(event.node)
    _found(state, replica, event, kind, by)


def _found(state: ReadingState, replica: Replica, event: Event, how: How, by: int) -> None:
    """A log was opened, and the event says what is in it."""
    args = event.args
    start, end = number(args, "log_start", 0), number(args, "log_end")
    if end < 0:
        return
    epochs = pairs(args, "epochs")
    for cut in state.logs.found(replica, event.n, start, end, how, epochs, by):
        state.tell(event.n, "cut", event.node, replica.partition, cut)
    high_watermark = number(args, "high_watermark")
    if high_watermark >= 0:
        replica.high_watermarks.put(event.n, high_watermark)


def _append(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is not None:
        state.logs.extend(replica, event, How.APPENDED, None)
        state.tell(event.n, "append", event.node, replica.partition, event.args)


def _replicate(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        return
    cause = state.story.brief(event.cause[0]) if event.cause else None
    source = None if cause is None else cause.peer
    known = state.story.partition(replica.partition).replicas.get(source or "")
    state.logs.extend(replica, event, How.COPIED, known, source)
    state.tell(event.n, "copy", event.node, replica.partition, event.args)


def _truncate(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        return
    state.shortened.pop((event.node, replica.partition), None)
    args = event.args
    offset = number(args, "offset", 0)
    if offset < (replica.log_starts.last or 0):
        replica.log_starts.put(event.n, offset)
    ended = (number(args, "leader_epoch"), number(args, "end_offset"))
    by = event.cause[0] if event.cause else 0
    before = integer(args, "high_watermark")
    for cut in state.logs.shorten(replica, event.n, offset, How.TRUNCATED, by, ended, before):
        state.tell(event.n, "cut", event.node, replica.partition, cut)


def _restart_at(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        return
    by = event.cause[0] if event.cause else 0
    for cut in state.logs.empty(replica, event.n, How.RESTARTED, by):
        state.tell(event.n, "cut", event.node, replica.partition, cut)
    offset = number(event.args, "offset", 0)
    replica.log_starts.put(event.n, offset)
    replica.log_ends.put(event.n, offset)
    replica.high_watermarks.put(event.n, offset)


def _log_start(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is not None:
        offset = number(event.args, "log_start_offset", 0)
        for cut in state.logs.raise_start(replica, event.n, offset):
            state.tell(event.n, "cut", event.node, replica.partition, cut)


def _delete(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is not None:
        for cut in state.logs.empty(replica, event.n, How.DELETED, event.n):
            state.tell(event.n, "cut", event.node, replica.partition, cut)
        replica.roles.put(event.n, Role(event.n, "deleted", -1, None, None))
        _forget(state, replica, event.n)


def _forget(state: ReadingState, replica: Replica, n: int) -> None:
    """Where a leader deletes its replica, its topic is deleted; a controller's fields know."""
    state.deleted.add((replica.node, replica.partition))
    partition = state.story.partition(replica.partition)
    now = partition.leaders.last
    if replica.partition not in state.ruled and now is not None and now[0] == replica.node:
        partition.leaders.put(n, (None, -1))
        partition.isrs.put(n, ())


def _salvage(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        return
    state.tell(event.n, "salvage", event.node, replica.partition, event.args)
    _found(state, replica, event, How.DAMAGED, event.n)


def _quarantine(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is not None:
        replica.roles.put(event.n, Role(event.n, "quarantined", -1, None, None))
        state.tell(event.n, "quarantine", event.node, replica.partition, event.args)


def _high_watermark(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is not None:
        replica.high_watermarks.put(event.n, number(event.args, "high_watermark", 0))
        state.tell(event.n, "hw", event.node, replica.partition, event.args)


def _disk(state: ReadingState, event: Event) -> None:
    file = text(event.args, "file") or ""
    if text(event.args, "operation") == "truncate" and file.endswith(".log"):
        state.shortened[event.node, file.strip("/").partition("/")[0]] = event


def _write(state: ReadingState, event: Event) -> None:
    state.story.bytes.write(event)


def _fsync(state: ReadingState, event: Event) -> None:
    state.story.bytes.fsync(event)


READERS: Final[dict[Kind, Reader]] = {
    Kind.RECOVER: _recover,
    Kind.APPEND: _append,
    Kind.REPLICATE: _replicate,
    Kind.TRUNCATE: _truncate,
    Kind.RESTART_AT: _restart_at,
    Kind.LOG_START: _log_start,
    Kind.DELETE: _delete,
    Kind.SALVAGE: _salvage,
    Kind.QUARANTINE: _quarantine,
    Kind.HW: _high_watermark,
    Kind.DISK: _disk,
    Kind.WRITE: _write,
    Kind.FSYNC: _fsync,
}
