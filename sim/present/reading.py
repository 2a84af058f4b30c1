"""Reading events into a story.

Left out: what a log does with them (``sim.present.logs``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from sim.present.args import flag, integer, names, number, pairs, text
from sim.present.history import Ack, Election, Fault, Finding, How, Loss, Replica, Role, Step
from sim.present.logs import Logs
from sim.present.story_data import Brief, Happening, StoryData
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["Reading"]

_PEERS: Final = {
    Kind.SEND: "to",
    Kind.TRANSMIT: "to",
    Kind.DELIVER: "from",
    Kind.DISCONNECT: "peer",
}
_WHATS: Final = {
    Kind.SEND: "type",
    Kind.TRANSMIT: "type",
    Kind.DELIVER: "type",
    Kind.TIMER: "key",
    Kind.BACKGROUND: "work",
}
_TOLD: Final = {
    Kind.SHUTDOWN: "shutdown",
    Kind.FAILPOINT: "failpoint",
    Kind.CORRUPT: "corrupt",
    Kind.DISK_ERROR: "disk-error",
    Kind.ERROR: "error",
    Kind.FENCE: "fence",
    Kind.UNFENCE: "unfence",
    Kind.LEAVE: "leave",
    Kind.REJECT: "reject",
    Kind.UNKNOWN: "unknown",
    Kind.POLL: "poll",
    Kind.POSITION: "position",
    Kind.EXPECT: "expect",
    Kind.SCRIPT: "script",
    Kind.COMPACT: "compact",
}
"""Events that are told as they are."""


class Reading:
    """One pass over a trace, into ``story``.

    Attributes:
        story: what has been read so far.
    """

    def __init__(self, story: StoryData) -> None:
        self.story = story
        self._logs = Logs(story.bytes)
        self._values: dict[int, Any] = {}
        self._asked: dict[str, tuple[str, tuple[str, ...], Kind]] = {}
        self._crashes: dict[str, tuple[int, str]] = {}
        self._unseen: dict[str, set[str]] = {}
        # Log files that were cut, by node and partition, until an event says why.
        self._shortened: dict[tuple[str, str], Event] = {}

    def take(self, event: Event) -> None:
        """Take in the next event."""
        n, t_us, node, kind, cause, args, changes = event
        peer, what = _PEERS.get(kind), _WHATS.get(kind)
        self.story.briefs.append(
            Brief(
                t_us,
                node,
                kind,
                cause,
                None if peer is None else text(args, peer),
                None if what is None else text(args, what),
            )
        )
        fault = args.get("fault")
        if type(fault) is str and fault in self.story.faults:
            self.story.faults[fault].strikes += 1
            if kind is Kind.DROP:
                self.story.drops.append(
                    (n, str(args.get("from")), str(args.get("to")), str(args.get("type")), fault)
                )
        read = _READERS.get(kind)
        if read is not None:
            read(self, event)
        elif kind in _TOLD:
            self._tell(n, _TOLD[kind], node, text(args, "partition"), args)
            if kind in (Kind.FENCE, Kind.UNFENCE) and cause:
                told = self.story.happenings[-1]
                self.story.fencings.setdefault(cause, []).append(told)
        for path, _, new in changes:
            if path.endswith("/high_watermark") and type(new) is int:
                parts = path.split("/")
                if len(parts) == 3 and self._is_broker(parts[0]):
                    self.story.replica(parts[0], parts[1]).high_watermarks.put(n, new)

    def _is_broker(self, name: str) -> bool:
        """Consumers know of high watermarks, too."""
        header, node = self.story.header, self.story.nodes.get(name)
        return (header is not None and name in header.nodes) or (
            node is not None and node.is_broker
        )

    def _tell(
        self, n: int, what: str, node: str, partition: str | None = None, data: Any = None
    ) -> None:
        self.story.happenings.append(Happening(n, what, node, partition, data))

    # Nodes ---------------------------------------------------------------------------------------

    def _start(self, event: Event) -> None:
        node = self.story.node(event.node)
        node.starts += 1
        node.statuses.put(event.n, "up")
        held = [
            replica
            for partition in self.story.partitions.values()
            if (replica := partition.replicas.get(event.node)) is not None and replica.alive
        ]
        if text(event.args, "disk") == "wiped":
            for replica in held:
                self._logs.empty(replica, event.n, How.WIPED, event.n)
            held = []
        self._unseen[event.node] = {replica.partition for replica in held}
        self._tell(event.n, "start", event.node, None, event.args)

    def _crash(self, event: Event) -> None:
        how = text(event.args, "how") or "process"
        self.story.node(event.node).statuses.put(event.n, "off" if how == "power" else "down")
        self._crashes[event.node] = event.n, how
        for key, cut in list(self._shortened.items()):
            if key[0] == event.node and cut.cause[-1:] != event.cause[-1:]:
                del self._shortened[key]
        self._tell(event.n, "crash", event.node, None, event.args)

    def _stop(self, event: Event) -> None:
        self.story.node(event.node).statuses.put(event.n, "stopped")
        self._crashes[event.node] = event.n, "stop"
        self._tell(event.n, "stop", event.node, None, event.args)

    def _pause(self, event: Event) -> None:
        self.story.node(event.node).statuses.put(event.n, "paused")
        self._tell(event.n, "pause", event.node, None, event.args)

    def _resume(self, event: Event) -> None:
        self.story.node(event.node).statuses.put(event.n, "up")
        self._tell(event.n, "resume", event.node, None, event.args)

    def _lost(self, event: Event) -> None:
        crash = event.cause[0] if event.cause else event.n
        for partition in self.story.partitions.values():
            replica = partition.replicas.get(event.node)
            if replica is not None:
                lost = self._logs.lose_bytes(replica, crash, event.args)
                if lost is not None:
                    self._tell(event.n, "cut", event.node, partition.name, lost)
                self._logs.bring_back(replica, crash, event.args)

    def _register(self, event: Event) -> None:
        """A broker that has registered has opened all logs that it found."""
        if "broker" in event.args:
            self.story.node(event.node).is_controller = True
            return
        node = self.story.node(event.node)
        node.is_broker = True
        crash, how = self._crashes.get(event.node, (0, ""))
        unseen = self._unseen.pop(event.node, set())
        for name in [each for each in self.story.partitions if each in unseen]:
            replica = self.story.replica(event.node, name)
            for cut in self._logs.empty(
                replica, event.n, How.POWER if how == "power" else How.WIPED, crash
            ):
                self._tell(event.n, "cut", event.node, name, cut)

    # Logs ----------------------------------------------------------------------------------------

    def _of(self, event: Event) -> Replica | None:
        name = text(event.args, "partition")
        return None if name is None else self.story.replica(event.node, name)

    def _recover(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            self.story.node(event.node).is_controller = True
            return
        args = event.args
        self._unseen.get(event.node, set()).discard(replica.partition)
        role = text(args, "role") or "waiting"
        replica.roles.put(event.n, Role(event.n, role, -1, None, None))
        self._tell(event.n, "recover", event.node, replica.partition, args)
        _, how = self._crashes.get(event.node, (0, ""))
        kind = How.POWER if how == "power" else How.TORN
        cut_before = self._shortened.pop((event.node, replica.partition), None)
        end = number(args, "log_end")
        if cut_before is not None and end >= 0 and not integer(args, "cut_bytes"):
            # Its process died before it could say that it had truncated.
            cause = cut_before.cause[0] if cut_before.cause else 0
            for cut in self._logs.shorten(replica, event.n, end, How.TRUNCATED, cause):
                self._tell(event.n, "cut", event.node, replica.partition, cut)
        self._found(replica, event, kind)

    def _found(self, replica: Replica, event: Event, how: How) -> None:
        """A log was opened, and the event says what is in it."""
        args = event.args
        start, end = number(args, "log_start", 0), number(args, "log_end")
        if end < 0:
            return
        epochs = pairs(args, "epochs")
        for cut in self._logs.found(replica, event.n, start, end, how, epochs):
            self._tell(event.n, "cut", event.node, replica.partition, cut)
        high_watermark = number(args, "high_watermark")
        if high_watermark >= 0:
            replica.high_watermarks.put(event.n, high_watermark)

    def _append(self, event: Event) -> None:
        replica = self._of(event)
        if replica is not None:
            self._logs.extend(replica, event, How.APPENDED, None)
            self._tell(event.n, "append", event.node, replica.partition, event.args)

    def _replicate(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            return
        cause = self.story.brief(event.cause[0]) if event.cause else None
        source = None if cause is None else cause.peer
        known = self.story.partition(replica.partition).replicas.get(source or "")
        self._logs.extend(replica, event, How.COPIED, known, source)
        self._tell(event.n, "copy", event.node, replica.partition, event.args)

    def _truncate(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            return
        self._shortened.pop((event.node, replica.partition), None)
        args = event.args
        ended = (number(args, "leader_epoch"), number(args, "end_offset"))
        by = event.cause[0] if event.cause else 0
        before = integer(args, "high_watermark")
        for cut in self._logs.shorten(
            replica, event.n, number(args, "offset", 0), How.TRUNCATED, by, ended, before
        ):
            self._tell(event.n, "cut", event.node, replica.partition, cut)

    def _restart_at(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            return
        by = event.cause[0] if event.cause else 0
        for cut in self._logs.empty(replica, event.n, How.RESTARTED, by):
            self._tell(event.n, "cut", event.node, replica.partition, cut)
        offset = number(event.args, "offset", 0)
        replica.log_starts.put(event.n, offset)
        replica.log_ends.put(event.n, offset)

    def _log_start(self, event: Event) -> None:
        replica = self._of(event)
        if replica is not None:
            offset = number(event.args, "log_start_offset", 0)
            for cut in self._logs.raise_start(replica, event.n, offset):
                self._tell(event.n, "cut", event.node, replica.partition, cut)

    def _delete(self, event: Event) -> None:
        replica = self._of(event)
        if replica is not None:
            for cut in self._logs.empty(replica, event.n, How.DELETED, event.n):
                self._tell(event.n, "cut", event.node, replica.partition, cut)
            replica.roles.put(event.n, Role(event.n, "deleted", -1, None, None))

    def _salvage(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            return
        self._tell(event.n, "salvage", event.node, replica.partition, event.args)
        self._found(replica, event, How.DAMAGED)

    def _quarantine(self, event: Event) -> None:
        replica = self._of(event)
        if replica is not None:
            replica.roles.put(event.n, Role(event.n, "quarantined", -1, None, None))
            self._tell(event.n, "quarantine", event.node, replica.partition, event.args)

    def _high_watermark(self, event: Event) -> None:
        replica = self._of(event)
        if replica is not None:
            replica.high_watermarks.put(event.n, number(event.args, "high_watermark", 0))
            self._tell(event.n, "hw", event.node, replica.partition, event.args)

    # The protocol --------------------------------------------------------------------------------

    def _elect(self, event: Event) -> None:
        name = text(event.args, "partition")
        if name is None:
            return
        args, partition = event.args, self.story.partition(name)
        self.story.node(event.node).is_controller = True
        isr = names(args, "isr")
        election = Election(
            event.n,
            event.node,
            name,
            text(args, "leader"),
            number(args, "leader_epoch"),
            flag(args, "unclean"),
            isr,
            text(args, "old_leader"),
            names(args, "old_isr"),
            event.cause,
        )
        partition.elections.append(election)
        partition.leaders.put(event.n, (election.leader, election.leader_epoch))
        if isr is not None:
            partition.isrs.put(event.n, isr)
        self._tell(event.n, "elect", event.node, name, election)

    def _role(self, event: Event) -> None:
        replica = self._of(event)
        if replica is None:
            return
        args, partition = event.args, self.story.partition(replica.partition)
        epoch = number(args, "leader_epoch")
        log_end = number(args, "log_end")
        role = Role(
            event.n,
            text(args, "role") or "?",
            epoch,
            text(args, "leader"),
            log_end if log_end >= 0 else None,
        )
        replica.roles.put(event.n, role)
        now = partition.leaders.last
        if role.name == "leader" and (now is None or now[1] < epoch):
            partition.leaders.put(event.n, (event.node, epoch))
        isr = names(args, "isr")
        if isr and (partition.isrs.last is None or (now is not None and now[1] < epoch)):
            partition.isrs.put(event.n, isr)
        self._tell(event.n, "role", event.node, replica.partition, role)

    def _isr(self, event: Event) -> None:
        name, isr = text(event.args, "partition"), names(event.args, "isr")
        if name is None or isr is None:
            return
        isrs = self.story.partition(name).isrs
        before = isrs.last
        isrs.put(event.n, isr)
        cause = self.story.brief(event.cause[0]) if event.cause else None
        asked = self._asked.get(name)
        why = ""
        if cause is not None and asked is not None and (asked[0], asked[1]) == (event.node, isr):
            why = " (too far behind)" if asked[2] is Kind.TIMER else ""
        self._tell(event.n, "isr", event.node, name, (before, isr, why))

    def _isr_proposed(self, event: Event) -> None:
        name, isr = text(event.args, "partition"), names(event.args, "isr")
        cause = self.story.brief(event.cause[0]) if event.cause else None
        if name is not None and isr is not None and cause is not None:
            self._asked[name] = event.node, isr, cause.kind

    # Clients -------------------------------------------------------------------------------------

    def _produce(self, event: Event) -> None:
        self.story.node(event.node).is_client = True
        self._values[event.n] = event.args.get("value")
        topic, place = text(event.args, "topic") or "?", event.args.get("partition")
        name = topic if type(place) is not int else f"{topic}-{place}"
        self._tell(event.n, "sent", event.node, name, event.args)

    def _ack(self, event: Event) -> None:
        self.story.node(event.node).is_client = True
        name = text(event.args, "partition")
        if name is None:
            return
        partition = self.story.partition(name)
        begun = next((each for each in event.cause if each in self._values), 0)
        heard = self.story.brief(event.cause[0]) if event.cause else None
        by = heard.peer if heard is not None and heard.kind is Kind.DELIVER else None
        offset = number(event.args, "offset")
        epoch = None
        if by is not None and by in partition.replicas:
            # The answer may have been under way while the record went.
            sent = heard.cause[0] if heard is not None and heard.cause else 0
            held = partition.replicas[by].had(offset, None, sent)
            epoch = held.epoch if held else self._logs.epoch_of(partition.replicas[by], offset)
        acks = number(event.args, "acks", 1)
        value = self._values.get(begun)
        ack = Ack(event.n, event.node, name, offset, acks, value, begun, by, epoch)
        partition.acks.append(ack)
        self._tell(event.n, "ack", event.node, name, ack)

    # The scenario and its judges -----------------------------------------------------------------

    def _step(self, event: Event) -> None:
        args = event.args
        id_ = str(args.get("id", f"#{event.n}"))
        if flag(args, "done"):
            if id_ in self.story.steps:
                self.story.steps[id_].end = event.n
            return
        cause = self.story.brief(event.cause[0]) if event.cause else None
        if "id" not in args and cause is not None and cause.kind is Kind.STEP:
            return  # A step of the scenario tells of it.
        shown = args.get("args")
        told = dict(shown) if isinstance(shown, dict) else {}
        told |= {key: args[key] for key in ("topic", "partition", "offset", "count") if key in args}
        if number(told, "count", 0) >= _WITHOUT_END:
            del told["count"]
        words = [text(args, "step") or "client"]
        words += [("" if key == "that" else f"{key}=") + _shown(told[key]) for key in told]
        step = Step(id_, " ".join(words), event.n)
        self.story.steps[id_] = step
        self._tell(event.n, "step", event.node, None, step)

    def _fault(self, event: Event) -> None:
        args = event.args
        id_ = str(args.get("id", f"#{event.n}"))
        kind = text(args, "kind") or "fault"
        shown = args.get("args")
        details = dict(shown) if isinstance(shown, dict) else {}
        fault = Fault(id_, kind, args.get("target"), details, event.node, event.n)
        self.story.faults[id_] = fault
        self._tell(event.n, "fault", event.node, None, fault)

    def _heal(self, event: Event) -> None:
        fault = self.story.faults.get(str(event.args.get("id")))
        if fault is not None:
            fault.end = event.n
            self._tell(event.n, "heal", event.node, None, fault)

    def _check(self, event: Event) -> None:
        args = event.args
        finding = Finding(
            event.n,
            text(args, "check") or "?",
            text(args, "partition"),
            text(args, "kind") or "",
            text(args, "detail") or "",
            args.get("evidence"),
            event.cause,
        )
        self.story.findings.append(finding)
        self._tell(event.n, "check", event.node, finding.partition, finding)

    def _loss(self, event: Event) -> None:
        args = event.args
        base = number(args, "base_offset", number(args, "offset"))
        loss = Loss(
            event.n,
            text(args, "partition") or "?",
            base,
            base + max(1, number(args, "count", 1)),
            text(args, "licence") or "",
            str(args.get("culprit", "")),
        )
        self.story.losses.append(loss)
        self._tell(event.n, "loss", event.node, loss.partition, loss)

    def _disk(self, event: Event) -> None:
        file = text(event.args, "file") or ""
        if text(event.args, "operation") == "truncate" and file.endswith(".log"):
            self._shortened[event.node, file.strip("/").partition("/")[0]] = event

    def _write(self, event: Event) -> None:
        self.story.bytes.write(event)

    def _fsync(self, event: Event) -> None:
        self.story.bytes.fsync(event)


_WITHOUT_END: Final = 1 << 60
"""A consumer that wants so many records reads whatever there is."""


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ",".join(f"{key}={_shown(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        if len(value) == 1 and not isinstance(value[0], list | tuple):
            return _shown(value[0])
        return "[" + ", ".join(_shown(each) for each in value) + "]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


_READERS: Final[dict[Kind, Callable[[Reading, Event], None]]] = {
    Kind.START: Reading._start,
    Kind.CRASH: Reading._crash,
    Kind.STOP: Reading._stop,
    Kind.PAUSE: Reading._pause,
    Kind.RESUME: Reading._resume,
    Kind.LOST: Reading._lost,
    Kind.REGISTER: Reading._register,
    Kind.RECOVER: Reading._recover,
    Kind.APPEND: Reading._append,
    Kind.REPLICATE: Reading._replicate,
    Kind.TRUNCATE: Reading._truncate,
    Kind.RESTART_AT: Reading._restart_at,
    Kind.LOG_START: Reading._log_start,
    Kind.DELETE: Reading._delete,
    Kind.SALVAGE: Reading._salvage,
    Kind.QUARANTINE: Reading._quarantine,
    Kind.HW: Reading._high_watermark,
    Kind.ELECT: Reading._elect,
    Kind.ROLE: Reading._role,
    Kind.ISR: Reading._isr,
    Kind.ISR_PROPOSED: Reading._isr_proposed,
    Kind.PRODUCE: Reading._produce,
    Kind.ACK: Reading._ack,
    Kind.STEP: Reading._step,
    Kind.FAULT: Reading._fault,
    Kind.HEAL: Reading._heal,
    Kind.CHECK: Reading._check,
    Kind.LOSS: Reading._loss,
    Kind.DISK: Reading._disk,
    Kind.WRITE: Reading._write,
    Kind.FSYNC: Reading._fsync,
}
