"""Reading events into a story.

Left out: what each kind says (``node_events``, ``log_events``, ``protocol_events`` and
``scenario_events`` beside this module), and fields (``told_fields``).
"""

from __future__ import annotations

from typing import Final

from sim.present import log_events, node_events, protocol_events, scenario_events
from sim.present.args import text
from sim.present.reading_state import Reader, ReadingState
from sim.present.story_data import Brief, StoryData
from sim.present.told_fields import ToldFields
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
_READERS: Final[dict[Kind, Reader]] = {
    **node_events.READERS,
    **log_events.READERS,
    **protocol_events.READERS,
    **scenario_events.READERS,
}


class Reading:
    """One pass over a trace, into ``story``.

    Attributes:
        story: what has been read so far.
    """

    def __init__(self, story: StoryData) -> None:
        self.story = story
        self._state = ReadingState(story)
        self._fields = ToldFields(self._state)

    def take(self, event: Event) -> None:
        """Take in the next event."""
        n, t_us, node, kind, cause, args, _ = event
        self._fields.before(event)
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
            read(self._state, event)
        elif kind in _TOLD:
            self._state.tell(n, _TOLD[kind], node, text(args, "partition"), args)
            if kind in (Kind.FENCE, Kind.UNFENCE) and cause:
                told = self.story.happenings[-1]
                self.story.fencings.setdefault(cause, []).append(told)
        self._fields.take(event)

    def finish(self) -> None:
        """There is no event more."""
        self._fields.end(len(self.story.briefs))
