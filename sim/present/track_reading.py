"""The pass over a trace that keeps what ``Tracks`` needs besides the story.

Left out: what it means (``sim.present.story``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final, NamedTuple

from sim.present.args import flag, number, text
from sim.present.expects import Expect
from sim.present.history import Series
from sim.present.lives import Lives
from sim.trace.kinds import Kind
from sim.trace.lines import Change, Event, encode

__all__ = ["Fields", "Message", "Offsets", "Timer", "TrackReading"]

Fields = dict[str, Series[Any]]
Offsets = dict[tuple[str, str], list[tuple[int, int]]]
"""By node and partition: an offset, and the event with which it came."""

_LOG: Final = ".log"
_INDEX: Final = ".index"
_ENTRY_BYTES: Final = 8
_SHOWN_MAX: Final = 80


class Message(NamedTuple):
    """A message from one node to another, or a second copy of one.

    ``n`` is the event with which it was sent, or doubled.
    """

    n: int
    sender: str
    to: str
    type: str


class Timer(NamedTuple):
    """A timer that a node set with event ``n``, and that came due with event ``due``."""

    n: int
    due: int
    node: str
    key: str


class TrackReading:
    """One pass.

    Attributes:
        fates: how a message ended, and by which fault, by its number in ``messages``.
        segments, index_entries: where a log got a new segment (its base offset), and an entry in
            an offset index (the base offset of its batch, or of the first of several batches that
            were copied in one write).
        new_indexes: where a log's offset index was begun, or written anew: base offset of the
            segment, the event, and how many entries were written.
        has_changes: whether any event tells of changes.
        is_cut: whether the trace has more events than were read.
        contradiction: the first change that does not fit what was before, as a sentence.
    """

    def __init__(self) -> None:
        self.fields: Fields = {}
        self.messages: Lives[Message] = Lives()
        self.fates: dict[int, tuple[str, str | None]] = {}
        self.expects: dict[str, Expect] = {}
        self.segments: Offsets = {}
        self.index_entries: Offsets = {}
        self.new_indexes: dict[tuple[str, str], list[tuple[int, int, int]]] = {}
        self.has_changes = False
        self.is_cut = False
        self.contradiction: str | None = None
        self._sent: dict[int, int] = {}
        self._timers: list[Timer] = []
        self._writes: dict[tuple[str, str], list[tuple[str, int]]] = {}

    def pass_on(self, events: Iterable[Event], events_max: int) -> Iterator[Event]:
        """Take in each event, and give it on; at most so many."""
        rest = iter(events)
        for event in islice(rest, events_max):
            self._take(event)
            yield event
        self.is_cut = next(rest, None) is not None

    def timers(self) -> Lives[Timer]:
        """The timers, by the event with which each was set."""
        found: Lives[Timer] = Lives()
        for timer in sorted(self._timers):
            found.add(timer.n, timer, timer.due)
        return found

    def _take(self, event: Event) -> None:
        if event.changes:
            self.has_changes = True
            for change in event.changes:
                self._change(event.n, change)
        take = _TAKERS.get(event.kind)
        if take is not None:
            take(self, event)

    def _change(self, n: int, change: Change) -> None:
        path, old, new = change
        series = self.fields.get(path)
        if series is None:
            series = self.fields[path] = Series()
        if series.last != old and self.contradiction is None:
            seen, said = _shown(series.last), _shown(old)
            self.contradiction = (
                f"The trace contradicts itself at event {n}: {encode(path)[:_SHOWN_MAX]} is {seen},"
                f" and the event changes it from {said}."
            )
        series.put(n, new)

    # Messages and timers -------------------------------------------------------------------------

    def _send(self, event: Event) -> None:
        args = event.args
        sender, to = text(args, "from") or event.node, text(args, "to") or "?"
        message = Message(event.n, sender, to, text(args, "type") or "?")
        self._sent[event.n] = self.messages.add(event.n, message)

    def _arrive(self, event: Event) -> None:
        fate = "delivered" if event.kind is Kind.DELIVER else "dropped"
        known = self._message_of(event)
        if known is not None and known not in self.fates:
            self.messages.end(known, event.n)
            self.fates[known] = fate, text(event.args, "fault")

    def _go_on(self, event: Event) -> None:
        """What follows names this event as its cause, not the one with which it was sent."""
        known = self._message_of(event)
        if known is not None:
            self._sent[event.n] = known

    def _duplicate(self, event: Event) -> None:
        """A second copy is under way, and arrives or is lost on its own."""
        known = self._message_of(event)
        if known is not None:
            copy = self.messages.things[known]._replace(n=event.n)
            self._sent[event.n] = self.messages.add(event.n, copy)

    def _message_of(self, event: Event) -> int | None:
        """The number of the message that an event goes on with."""
        for n in (number(event.args, "sent"), *event.cause):
            found = self._sent.get(n)
            if found is not None:
                return found
        return None

    def _timer(self, event: Event) -> None:
        begin = event.cause[0] if event.cause else 0
        key = text(event.args, "key") or "?"
        self._timers.append(Timer(begin, event.n, event.node, key))

    # Files ---------------------------------------------------------------------------------------

    def _write(self, event: Event) -> None:
        file = (text(event.args, "file") or "").removeprefix("/")
        if not file.endswith((_LOG, _INDEX)):
            return
        log = event.node, file.partition("/")[0]
        position = number(event.args, "position", 0)
        self._writes.setdefault(log, []).append((file, position))
        if file.endswith(_INDEX) and not position:
            count = number(event.args, "size", 0) // _ENTRY_BYTES
            self.new_indexes.setdefault(log, []).append((_base_of(file), event.n, count))

    def _recover(self, event: Event) -> None:
        self._writes.pop((event.node, text(event.args, "partition") or "?"), None)

    def _append(self, event: Event) -> None:
        """Where the records went, and which of their batches have index entries."""
        partition = text(event.args, "partition") or "?"
        log = event.node, partition
        base = number(event.args, "base_offset")
        for file, position in self._writes.pop(log, ()):
            if file.endswith(_INDEX):
                # Of several batches in one write nobody tells for which one the entry is.
                self.index_entries.setdefault(log, []).append((base, event.n))
            elif position == 0 and _base_of(file) >= 0:
                self.segments.setdefault(log, []).append((_base_of(file), event.n))

    def _expect(self, event: Event) -> None:
        args = event.args
        id_ = text(args, "id") or "?"
        known = self.expects.get(id_)
        if known is None:
            form, words = text(args, "form") or "?", text(args, "text") or "?"
            known = self.expects[id_] = Expect(id_, form, words)
        holds = flag(args, "holds")
        known.holds.put(event.n, holds)
        if flag(args, "judged"):
            known.judged, known.verdict = event.n, holds


def _base_of(file: str) -> int:
    """The base offset in the name of a segment's file; -1 if it has none."""
    stem = file.rpartition("/")[2].partition(".")[0]
    return int(stem) if stem.isascii() and stem.isdigit() else -1


def _shown(value: object) -> str:
    return "absent" if value is None else encode(value)[:_SHOWN_MAX]


_TAKERS: Final = {
    Kind.SEND: TrackReading._send,
    Kind.TRANSMIT: TrackReading._go_on,
    Kind.HOLD: TrackReading._go_on,
    Kind.DELAY: TrackReading._go_on,
    Kind.CORRUPT: TrackReading._go_on,
    Kind.DUPLICATE: TrackReading._duplicate,
    Kind.DELIVER: TrackReading._arrive,
    Kind.DROP: TrackReading._arrive,
    Kind.TIMER: TrackReading._timer,
    Kind.WRITE: TrackReading._write,
    Kind.APPEND: TrackReading._append,
    Kind.REPLICATE: TrackReading._append,
    Kind.RECOVER: TrackReading._recover,
    Kind.EXPECT: TrackReading._expect,
}
