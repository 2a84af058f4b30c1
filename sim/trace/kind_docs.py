"""What each kind of event says, and its arguments: the reference for people and for viewers.

An argument listed here may be missing where it does not apply; one that is not listed does not
occur. Two rules hold for all kinds: ``fault`` names the fault that made the event happen, and
``note`` names the machine's own word for it where one kind covers several
(``sim.trace.kinds.NOTE_KINDS``).

Left out: the kinds themselves (``sim.trace.kinds``).
"""

from __future__ import annotations

from typing import Final

from attrs import field, frozen

from sim.trace.kinds import Kind

__all__ = ["COMMON_ARGS", "KINDS", "KindDoc"]


@frozen
class KindDoc:
    """What a kind says, and its arguments by name."""

    text: str
    args: dict[str, str] = field(factory=dict)


COMMON_ARGS: Final[dict[str, str]] = {
    "fault": "id of the fault that made this happen",
    "note": "the machine's own word for it, where that is not the kind's",
}
"""Arguments that an event of any kind may have."""

_PARTITION = "topic and partition, as orders-0"
_BASE = "offset of the first record"
_NEXT = "offset behind the last record: the new log end"
_EPOCH = "leader epoch"
_EPOCHS = "epochs of its records by their batches, each with its first offset, as far as known"
_FILE = "path below the node's directory"
_TO = "name of the node it is for"
_FROM = "name of the node it comes from"
_TYPE = "class name of the message"
_ID = "correlation id: a response has its request's"
_SENT = "number of the event with which the message was sent"
_CODE = "code of the error"
_DETAIL = "what exactly, for people"
_MESSAGE = {"from": _FROM, "to": _TO, "type": _TYPE, "id": _ID, "sent": _SENT}
_BROKER = {"broker": "name of the broker"}
_CLIENT = {"client": "name of the client"}
_ACKS = "0, 1 or -1 for all"
_OUTCOME = {
    "operation": "the producer's number for it",
    "partition": _PARTITION,
    "acks": _ACKS,
    "error": "code of the last attempt's error, if it had one",
}
_RECORDS = {
    "partition": _PARTITION,
    "base_offset": "offset of the first record, if known",
    "count": "how many records",
    "ids": "ids of the records",
}

KINDS: Final[dict[Kind, KindDoc]] = {
    Kind.STEP: KindDoc(
        "a step of the scenario begins, or is done",
        {
            "id": "id of the step, or its number",
            "step": "name of the step",
            "args": "its parameters, with selectors resolved",
            "topic": "name of the topic",
            "partition": "number of the partition",
            "offset": "where",
            "count": "how many records",
            "done": "true where it is done",
        },
    ),
    Kind.FAULT: KindDoc(
        "a fault begins, or strikes once",
        {
            "id": "id of the fault",
            "kind": "kind of the fault",
            "target": "what it strikes: a node, an edge, a file",
            "args": "its parameters, as drawn",
        },
    ),
    Kind.HEAL: KindDoc("a fault is over", {"id": "id of the fault", "kind": "kind of the fault"}),
    Kind.FAILPOINT: KindDoc(
        "a handler has reached a failpoint at which something was to happen",
        {
            "point": "id of the failpoint",
            "hit": "how often it was reached, from 1",
            "action": "what happens: crash, power, pause, yield",
        },
    ),
    Kind.SCRIPT: KindDoc(
        "a user's script goes on, or ends",
        {"script": "its name", "why": "what it waited for", "error": "what it ended with"},
    ),
    Kind.START: KindDoc(
        "a process begins",
        {
            "incarnation": "how many processes ran here before",
            "role": "broker, controller, producer or consumer",
            "disk": "the disk it begins on: same, wiped, or an older image",
        },
    ),
    Kind.CRASH: KindDoc(
        "a process ends in the middle of what it did",
        {
            "how": "process, power, or start-failed where a process could not begin",
            "error": _CODE,
            "detail": _DETAIL,
            "incarnation": "which process of this node",
            "image": "what the disk lost: lost, kept, drawn, or a mode",
            "why": "what ended it",
        },
    ),
    Kind.SHUTDOWN: KindDoc("a process is asked to end in order"),
    Kind.STOP: KindDoc(
        "a process ends by itself", {"incarnation": "which process of this node", "why": _DETAIL}
    ),
    Kind.PAUSE: KindDoc("a process stands still; its host goes on"),
    Kind.RESUME: KindDoc(
        "a process that stood still goes on, or a handler behind a failpoint",
        {"point": "id of the failpoint"},
    ),
    Kind.LOST: KindDoc(
        "a crash took this from a disk",
        {
            "file": _FILE,
            "position": "first byte that differs now",
            "size": "how many bytes",
            "how": "lost, torn, tail-back (a cut tail that is there again), name, name-back",
        },
    ),
    Kind.TIMER: KindDoc(
        "a timer is due", {"key": "the timer's name, with all its parts", "clock": "mono or wall"}
    ),
    Kind.SEND: KindDoc("a message is handed to the network", dict(_MESSAGE)),
    Kind.TRANSMIT: KindDoc(
        "a message leaves its host, behind what stood in front of it; a fetch response is read now",
        {
            **_MESSAGE,
            "size": "bytes of records in it",
            "by_us": "how long it waited for room in the send buffer",
        },
    ),
    Kind.DELIVER: KindDoc("a message reaches a machine", dict(_MESSAGE)),
    Kind.DROP: KindDoc(
        "a message is lost under way", {**_MESSAGE, "why": "what became of its connection"}
    ),
    Kind.HOLD: KindDoc("a message waits for a link to heal", {**_MESSAGE, "why": _DETAIL}),
    Kind.DELAY: KindDoc(
        "a message comes later than it would have",
        {**_MESSAGE, "by_us": "by how much", "lost": "how many transmissions were lost"},
    ),
    Kind.DUPLICATE: KindDoc("a message arrives twice", dict(_MESSAGE)),
    Kind.CORRUPT: KindDoc(
        "bits of a message, or of a file at rest, are changed",
        {
            **_MESSAGE,
            "partition": _PARTITION,
            "file": _FILE,
            "position": "first byte",
            "size": "how many bytes",
            "bits": "how many bits",
            "positions": "the bits, counted from the start of the message",
            "is_readable": "whether it is still a message",
            "how": "flip, zero or truncate",
        },
    ),
    Kind.RESET: KindDoc(
        "a connection breaks",
        {
            **_MESSAGE,
            "peer": "the other end",
            "half_open": "the end that hears nothing",
            "why": _DETAIL,
        },
    ),
    Kind.REFUSE: KindDoc(
        "a connection is not made", {**_MESSAGE, "peer": "the other end", "why": _DETAIL}
    ),
    Kind.DISCONNECT: KindDoc(
        "a machine closes its connection to a peer, or hears that it is gone",
        {"peer": "the other end", "why": _DETAIL},
    ),
    Kind.WRITE: KindDoc(
        "bytes are written to a file; they are dirty until an fsync",
        {"file": _FILE, "position": "first byte", "size": "how many bytes", "lane": "who waits"},
    ),
    Kind.FSYNC: KindDoc(
        "a file's bytes, or a directory's names, are durable now",
        {
            "file": _FILE,
            "position": "first byte that was dirty",
            "size": "how many bytes from there",
            "took_us": "how long it took",
            "lane": "who waited",
        },
    ),
    Kind.SYNCED: KindDoc("a machine hears that a flush which it asked for is done"),
    Kind.DISK: KindDoc(
        "any other call of the disk",
        {
            "operation": "name of the call",
            "file": _FILE,
            "position": "first byte",
            "size": "how many bytes",
            "lane": "who waits",
        },
    ),
    Kind.DISK_ERROR: KindDoc(
        "a fault strikes a call of the disk",
        {"operation": "name of the call", "file": _FILE},
    ),
    Kind.BACKGROUND: KindDoc(
        "work that was due behind a call is done",
        {"work": "kind of the work", "partition": _PARTITION, "id": "its number within that log"},
    ),
    Kind.CHECKPOINT: KindDoc("a checkpoint file is written", {"file": _FILE}),
    Kind.RECOVER: KindDoc(
        "a log is opened, what a crash left of it read",
        {
            "partition": _PARTITION,
            "role": "how it is hosted",
            "clean": "whether it was closed in order",
            "log_start": "its first offset",
            "log_end": "its end",
            "high_watermark": "the high watermark that its checkpoint knows",
            "cut_bytes": "bytes of a torn tail that were cut",
            "epochs": _EPOCHS,
            "error": "code of the error with which it refused to open: it is in quarantine",
            "detail": _DETAIL,
            "records": "records of the metadata log",
            "committed": "end of those that are committed",
        },
    ),
    Kind.QUARANTINE: KindDoc(
        "a log is damaged below its durable boundary, and does not open",
        {"partition": _PARTITION, "error": _CODE, "detail": _DETAIL},
    ),
    Kind.SALVAGE: KindDoc(
        "a damaged log is cut to its good prefix",
        {
            "partition": _PARTITION,
            "log_start": "its first offset",
            "log_end": "its end",
            "high_watermark": "the high watermark that its checkpoint knows",
            "epochs": _EPOCHS,
        },
    ),
    Kind.APPEND: KindDoc(
        "a leader appends a batch",
        {
            "partition": _PARTITION,
            "base_offset": _BASE,
            "next_offset": _NEXT,
            "leader_epoch": _EPOCH,
            "client": "name of the producer's node",
            "acks": _ACKS,
        },
    ),
    Kind.REPLICATE: KindDoc(
        "a follower appends what it fetched",
        {
            "partition": _PARTITION,
            "base_offset": _BASE,
            "next_offset": _NEXT,
            "leader_epoch": "epoch of the last batch",
        },
    ),
    Kind.TRUNCATE: KindDoc(
        "a log loses its end",
        {
            "partition": _PARTITION,
            "offset": "the new log end",
            "log_end": "the old log end",
            "high_watermark": "high watermark before",
            "leader_epoch": "epoch that the leader answered, -1 if it was not asked",
            "end_offset": "where that epoch ends at the leader, -1 if unknown",
        },
    ),
    Kind.RESTART_AT: KindDoc(
        "a log is emptied and begins at another offset: the leader has nothing older",
        {
            "partition": _PARTITION,
            "offset": "where it begins",
            "log_end": "the old log end",
            "high_watermark": "high watermark before",
        },
    ),
    Kind.ROLL: KindDoc(
        "a log begins a new segment",
        {"partition": _PARTITION, "base_offset": "base offset of the segment"},
    ),
    Kind.LOG_START: KindDoc(
        "records at the start of a log are deleted",
        {"partition": _PARTITION, "log_start_offset": "the first offset that is left"},
    ),
    Kind.COMPACT: KindDoc(
        "a log is compacted",
        {"partition": _PARTITION, "cleaned_offset": "end of what is compacted"},
    ),
    Kind.EXPIRE: KindDoc(
        "a log forgets producers that have been silent",
        {"partition": _PARTITION, "producers": "how many, or which"},
    ),
    Kind.DELETE: KindDoc("a replica is deleted", {"partition": _PARTITION}),
    Kind.HW: KindDoc(
        "a leader's high watermark rises",
        {"partition": _PARTITION, "high_watermark": "the first offset that is not committed"},
    ),
    Kind.ISR_PROPOSED: KindDoc(
        "a leader asks for another ISR",
        {"partition": _PARTITION, "isr": "names of the members that it asks for"},
    ),
    Kind.ISR: KindDoc(
        "a leader learns that its ISR was changed",
        {"partition": _PARTITION, "isr": "names of the members"},
    ),
    Kind.ELECT: KindDoc(
        "the controller elects a leader, or nobody",
        {
            "partition": _PARTITION,
            "leader": "its name, or null",
            "leader_epoch": _EPOCH,
            "isr": "names of the members from now on",
            "old_leader": "the leader before, or null",
            "old_isr": "names of the members before",
            "unclean": "whether it comes from outside ISR and ELR",
            "last_known": "whether it was the last leader known, with ISR and ELR empty",
        },
    ),
    Kind.ROLE: KindDoc(
        "a replica takes a role",
        {
            "partition": _PARTITION,
            "role": "name of the role",
            "leader_epoch": _EPOCH,
            "leader": "name of the leader, or null",
            "isr": "names of the members",
            "log_end": "the end of the replica's log",
        },
    ),
    Kind.METADATA: KindDoc(
        "a broker has new metadata", {"end_offset": "end of the metadata that it has"}
    ),
    Kind.REGISTER: KindDoc(
        "a broker is registered: at the broker, and at the controller",
        {
            **_BROKER,
            "broker_epoch": "the broker's epoch",
            "epoch": "the broker's epoch",
            "clean": "whether it says that it had stopped in order",
        },
    ),
    Kind.FENCE: KindDoc("the controller fences a broker", dict(_BROKER)),
    Kind.UNFENCE: KindDoc("the controller lets a broker take part", dict(_BROKER)),
    Kind.OPEN: KindDoc("a broker begins to serve clients"),
    Kind.LEAVE: KindDoc("the controller takes a broker's leaderships away", dict(_BROKER)),
    Kind.CLOSE: KindDoc("a broker has closed its logs in order"),
    Kind.ERROR: KindDoc(
        "a machine meets an error",
        {
            "error": _CODE,
            "detail": _DETAIL,
            "why": _DETAIL,
            "partition": _PARTITION,
            "topic": "name of the topic",
            "offset": "where",
            "sender": _FROM,
            "leader": "name of the leader",
            "request": _TYPE,
            "type": _TYPE,
            "task": "name of the task",
            "work": "kind of the work",
        },
    ),
    Kind.NOTE: KindDoc(
        "anything else that a machine says; its arguments are its own",
        {"partition": _PARTITION, "directory": "name of the directory"},
    ),
    Kind.PRODUCE: KindDoc(
        "an application hands a record to its producer",
        {
            "topic": "name of the topic",
            "partition": "its number, or null where the producer chooses",
            "value": "of the record; in hexadecimal where it is no text",
            "operation": "the producer's number for it",
            "acks": _ACKS,
        },
    ),
    Kind.ACK: KindDoc(
        "a record is acknowledged", {**_OUTCOME, "offset": "its offset, -1 if it was not told"}
    ),
    Kind.REJECT: KindDoc("a record is surely not written", dict(_OUTCOME)),
    Kind.UNKNOWN: KindDoc("a record may be written or not: nobody can tell", dict(_OUTCOME)),
    Kind.POLL: KindDoc(
        "a consumer hands a record to its application",
        {
            "partition": _PARTITION,
            "offset": "its offset",
            "leader_epoch": "epoch of the leader that wrote it",
            "value": "of the record",
        },
    ),
    Kind.POSITION: KindDoc(
        "a consumer says what it cannot say by records",
        {
            "event": "class name in cluster.consumer_events",
            "partition": _PARTITION,
            "offset": "the position",
            "leader_epoch": _EPOCH,
            "from_offset": "the position before",
            "to_offset": "the position behind",
            "diverging_epoch": "the newest epoch that the leader shares",
            "diverging_offset": "where both part",
            "old_topic_id": "of the topic that bore the name before",
            "error_code": _CODE,
            "reason": _DETAIL,
            "total": "how often",
        },
    ),
    Kind.COMMIT: KindDoc(
        "a group's offset is committed",
        {**_CLIENT, "group": "name of the group", "partition": _PARTITION, "offset": "the offset"},
    ),
    Kind.CHECK: KindDoc(
        "a check finds a rule broken",
        {
            "check": "name of the check",
            "partition": _PARTITION,
            "kind": "which way it is broken",
            "detail": _DETAIL,
            "evidence": "the values seen",
        },
    ),
    Kind.EXPECT: KindDoc(
        "an expectation of the scenario holds now, or no longer, or is judged",
        {
            "id": "its id or number",
            "form": "at, eventually, always or at_end",
            "text": "the expression",
            "holds": "true or false",
            "judged": "true where it is final",
        },
    ),
    Kind.LOSS: KindDoc(
        "records that were promised are lost: a leader serves without them, or no log has them",
        {
            "partition": _PARTITION,
            "spans": "which: leader epoch, first offset, offset behind the last, of each range",
            "count": "how many records",
            "at": "serving, leading, acknowledging, deleting or nowhere",
            "leader": "who leads without them",
            "leader_epoch": _EPOCH,
            "is_committed": "whether they were committed, or acknowledged under acks=all",
            "is_unclean": "whether the leader was elected from outside ISR and ELR",
            "how": "what became of the leader's copies",
            "licence": "L0 to L4, ILLEGAL or UNEXPLAINED",
            "rule": "why, in words",
            "culprits": "numbers of the events that are behind it",
            "copies": "of the first of them: node, fate, event",
        },
    ),
}
"""Every kind; the test demands that none is missing."""
