"""Chrome trace events as JSON, for ui.perfetto.dev.

Each node is a process, and so is what the scenario and the judges did. Its threads are messages
(slices of 1 us, bound by flows), events (instants), status, and of a broker the role and the
membership in the ISR in each partition. Faults and steps are slices, in as many lanes as overlap
demands. Log end (LEO) and high watermark (HW) of each replica are counters.

Perfetto takes no negative times (google/perfetto#107): if the trace begins at one, as booting
does, all times are shifted, so that it begins at 0. ``otherData`` says by how much, and each event
has its own time in ``args.t_us``. A flow binds to the slice on top of its thread, so it stands
right behind it. Threads are numbered through, since Perfetto names them by their number alone.

Left out: changes of fields other than these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from sim.exports.perfetto_tracks import Interval, counters, intervals
from sim.exports.selection import Exported, ExportError, Selection, ascii_text
from sim.present.args import text
from sim.present.describing import describe
from sim.present.story import Story
from sim.present.words import name
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Header, encode

__all__ = ["TIME_MAX_US", "perfetto"]

TIME_MAX_US: Final = 9_000_000_000_000_000
"""Perfetto counts nanoseconds in 64 bits with a sign."""
_MESSAGES: Final = frozenset({Kind.SEND, Kind.TRANSMIT, Kind.DELIVER, Kind.DROP})
_CAUSES_MAX: Final = 8
_NODES_MAX: Final = 10_000


def perfetto(
    header: Header, events: Iterable[Event], story: Story, selection: Selection
) -> Exported:
    """The document, one trace event a line.

    Raises:
        ExportError: a time is beyond ``TIME_MAX_US`` behind the first one.
    """
    times = [brief.t_us for brief in story.briefs]
    shift_us = max(0, -min(times, default=0))
    if times and max(times) + shift_us > TIME_MAX_US:
        raise ExportError(
            f"the events' times are from {min(times)} to {max(times)} us, "
            f"Perfetto takes spans of at most {TIME_MAX_US} us"
        )
    notices = [f"all times are shifted by {shift_us} us, to begin at 0"] if shift_us else []
    writer = _Writer(story, selection, shift_us, _flows(story, selection))
    return Exported(_lines(header, events, writer), tuple(notices))


def _lines(header: Header, events: Iterable[Event], writer: _Writer) -> Iterator[str]:
    yield '{"displayTimeUnit":"ms","traceEvents":['
    between = ""
    for each in writer.all(events):
        yield between + encode(each)
        between = ","
    other = {
        "leaderfall": header.version,
        "scenario": None if header.scenario is None else name(header.scenario),
        "variant": None if header.variant is None else name(header.variant),
        "seed": header.seed,
        "shift_us": writer.shift_us,
    }
    yield f'],"otherData":{encode(other)}}}'


@frozen
class _Flows:
    """By event: the flow it belongs to, if both of its ends are exported."""

    of: dict[int, int]


def _flows(story: Story, selection: Selection) -> _Flows:
    """A flow is named by the event with which its message was sent."""
    flow: dict[int, int] = {}
    ended: set[int] = set()
    for n, brief in enumerate(story.briefs, 1):
        is_wanted = selection.has(n, brief.node, brief.kind)
        if brief.kind is Kind.SEND:
            if is_wanted:
                flow[n] = n
            continue
        source = next((flow[each] for each in brief.cause if each in flow), None)
        if source is None or brief.kind not in _PASSED_ON:
            continue
        flow[n] = source
        if is_wanted and brief.kind in (Kind.DELIVER, Kind.DROP):
            ended.add(source)
    return _Flows({n: source for n, source in flow.items() if source in ended})


_PASSED_ON: Final = _MESSAGES | {Kind.HOLD, Kind.DELAY, Kind.DUPLICATE, Kind.CORRUPT}


@define
class _Writer:
    """Trace events, and the numbers of the processes and threads that they name."""

    story: Story
    selection: Selection
    shift_us: int
    flows: _Flows
    _pids: dict[str, int] = field(factory=dict)
    _tids: dict[tuple[str, str], int] = field(factory=dict)
    _named: list[dict[str, Any]] = field(factory=list)

    def all(self, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
        for made in self._made(events):
            yield from self._named
            self._named.clear()
            yield made

    def _made(self, events: Iterable[Event]) -> Iterator[dict[str, Any]]:
        for interval in intervals(self.story, self.selection):
            yield self._slice(interval)
        for node, what, n, value in counters(self.story, self.selection):
            yield {
                "ph": "C",
                "name": what,
                "pid": self._pid(node),
                "tid": self._tid(node, "events"),
                "ts": self._ts(self.story.time_us(n)),
                "args": {"value": value},
            }
        for event in self.selection.of(events):
            yield from self._event(event)

    def _event(self, event: Event) -> Iterator[dict[str, Any]]:
        is_message = event.kind in _MESSAGES
        made: dict[str, Any] = {
            "ph": "X" if is_message else "i",
            "name": _name(event),
            "cat": event.kind.value,
            "pid": self._pid(event.node),
            "tid": self._tid(event.node, "messages" if is_message else "events"),
            "ts": self._ts(event.t_us),
        }
        made |= {"dur": 1} if is_message else {"s": "t"}
        made["args"] = {"n": event.n, "t_us": event.t_us, "text": ascii_text(describe(event))}
        if event.cause:
            made["args"]["cause"] = list(event.cause[:_CAUSES_MAX])
        yield made
        flow = self.flows.of.get(event.n) if is_message else None
        if flow is not None:
            phase = {Kind.SEND: "s", Kind.TRANSMIT: "t"}.get(event.kind, "f")
            bound = {"ph": phase, "name": "message", "cat": "message", "id": flow}
            bound |= {key: made[key] for key in ("pid", "tid", "ts")}
            yield bound | ({"bp": "e"} if phase == "f" else {})

    def _slice(self, interval: Interval) -> dict[str, Any]:
        begin, end = self.story.time_us(interval.begin), self.story.time_us(interval.end)
        return {
            "ph": "X",
            "name": ascii_text(interval.text),
            "cat": interval.what,
            "pid": self._pid(interval.node),
            "tid": self._tid(interval.node, interval.lane),
            "ts": self._ts(begin),
            "dur": max(0, end - begin),
            "args": {"n": interval.begin, "until": interval.end},
        }

    def _ts(self, t_us: int) -> int:
        return t_us + self.shift_us

    def _pid(self, node: str) -> int:
        known = self._pids.get(node)
        if known is None:
            known = self._pids[node] = len(self._pids) + 1
            self._name("process_name", known, known, ascii_text(name(node)))
        return known

    def _tid(self, node: str, thread: str) -> int:
        known = self._tids.get((node, thread))
        if known is None:
            pid = self._pid(node)
            # Apart from the processes' numbers: a thread of that number would be the main one.
            known = self._tids[node, thread] = 1_000_000 + len(self._tids)
            self._name("thread_name", pid, known, ascii_text(name(thread)))
        return known

    def _name(self, what: str, pid: int, tid: int, text_: str) -> None:
        said = {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": text_ or "-"}}
        self._named.append(said)


def _name(event: Event) -> str:
    if event.kind in _MESSAGES:
        what = ascii_text(name(text(event.args, "type") or "message"))
        return what if event.kind is not Kind.DROP else f"{what} lost"
    return ascii_text(describe(event))[:100] or event.kind.value
