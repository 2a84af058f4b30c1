"""The kinds of event in a trace: a closed list, and the kind of each note of the machines.

An event says what happened at one node at one moment. What each kind says, and its arguments, stand
in ``sim.trace.kind_docs``.

Left out: how events are written (``sim.trace.lines``), and what follows from them.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Final

__all__ = ["NOTE_KINDS", "Kind", "of_note"]


class Kind(StrEnum):
    """What an event is; ``sim.trace.kind_docs.KINDS`` says what each one means."""

    # What the scenario does.
    STEP = "step"
    FAULT = "fault"
    HEAL = "heal"
    FAILPOINT = "failpoint"
    SCRIPT = "script"
    # Processes and hosts.
    START = "start"
    CRASH = "crash"
    SHUTDOWN = "shutdown"
    STOP = "stop"
    PAUSE = "pause"
    RESUME = "resume"
    LOST = "lost"
    TIMER = "timer"
    # The network.
    SEND = "send"
    TRANSMIT = "transmit"
    DELIVER = "deliver"
    DROP = "drop"
    HOLD = "hold"
    DELAY = "delay"
    DUPLICATE = "duplicate"
    CORRUPT = "corrupt"
    RESET = "reset"
    REFUSE = "refuse"
    DISCONNECT = "disconnect"
    # The disk.
    WRITE = "write"
    FSYNC = "fsync"
    SYNCED = "synced"
    DISK = "disk"
    DISK_ERROR = "disk-error"
    BACKGROUND = "background"
    CHECKPOINT = "checkpoint"
    # A replica's log.
    RECOVER = "recover"
    QUARANTINE = "quarantine"
    SALVAGE = "salvage"
    APPEND = "append"
    REPLICATE = "replicate"
    TRUNCATE = "truncate"
    RESTART_AT = "restart-at"
    ROLL = "roll"
    LOG_START = "log-start"
    COMPACT = "compact"
    EXPIRE = "expire"
    DELETE = "delete"
    # The protocol.
    HW = "hw"
    ISR_PROPOSED = "isr-proposed"
    ISR = "isr"
    ELECT = "elect"
    ROLE = "role"
    METADATA = "metadata"
    REGISTER = "register"
    FENCE = "fence"
    UNFENCE = "unfence"
    OPEN = "open"
    LEAVE = "leave"
    CLOSE = "close"
    ERROR = "error"
    NOTE = "note"
    # Clients.
    PRODUCE = "produce"
    ACK = "ack"
    REJECT = "reject"
    UNKNOWN = "unknown"
    POLL = "poll"
    POSITION = "position"
    COMMIT = "commit"
    # Judgement.
    CHECK = "check"
    EXPECT = "expect"
    LOSS = "loss"


NOTE_KINDS: Final[dict[str, Kind]] = {
    "append": Kind.APPEND,
    "append-error": Kind.ERROR,
    "broker-fenced": Kind.FENCE,
    "broker-leaving": Kind.LEAVE,
    "broker-registered": Kind.REGISTER,
    "broker-unfenced": Kind.UNFENCE,
    "checkpoint": Kind.CHECKPOINT,
    "compaction": Kind.COMPACT,
    "compaction-error": Kind.ERROR,
    "config-ignored": Kind.ERROR,
    "controller-failed": Kind.ERROR,
    "controller-started": Kind.RECOVER,
    "corrupt-response": Kind.ERROR,
    "delete-replica": Kind.DELETE,
    "expire-producers": Kind.EXPIRE,
    "flush-overtaken": Kind.NOTE,
    "halt": Kind.ERROR,
    "hw": Kind.HW,
    "isr": Kind.ISR,
    "isr-proposed": Kind.ISR_PROPOSED,
    "leader-elected": Kind.ELECT,
    "log-start": Kind.LOG_START,
    "metadata": Kind.METADATA,
    "metadata-malformed": Kind.ERROR,
    "metadata-work-failed": Kind.ERROR,
    "mismatched-response": Kind.ERROR,
    "not-salvaged": Kind.ERROR,
    "open": Kind.OPEN,
    "open-log": Kind.RECOVER,
    "quarantined-leader": Kind.QUARANTINE,
    "read-error": Kind.ERROR,
    "register": Kind.REGISTER,
    "registration-lost": Kind.ERROR,
    "registration-refused": Kind.ERROR,
    "replica-failed": Kind.ERROR,
    "replicate": Kind.REPLICATE,
    "replication-error": Kind.ERROR,
    "request-dropped": Kind.ERROR,
    "restart-at": Kind.RESTART_AT,
    "retention": Kind.LOG_START,
    "role": Kind.ROLE,
    "role-error": Kind.ERROR,
    "salvage": Kind.SALVAGE,
    "stop": Kind.CLOSE,
    "stray-directory": Kind.NOTE,
    "truncate": Kind.TRUNCATE,
    "upkeep-error": Kind.ERROR,
}
"""The kind of each note of the machines in package ``cluster``; the test reads their sources."""


def of_note(note: str, args: dict[str, Any]) -> tuple[Kind, dict[str, Any]]:
    """The kind and the arguments of a machine's note; ``args`` become the event's.

    Where the kind is not called as the note is, the argument ``note`` says what it was. A note that
    the table does not know, of a user's own machine, is of kind ``note``.
    """
    kind = NOTE_KINDS.get(note, Kind.NOTE)
    if kind != note:
        args["note"] = note
    return kind, args
