"""Reading events into a story.

Left out: what each kind says (``node_events``, ``log_events``, ``protocol_events`` and
``scenario_events`` beside this module).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from sim.present import log_events, node_events, protocol_events, scenario_events
from sim.present.args import text
from sim.present.reading_state import Reader, ReadingState
from sim.present.story_data import Brief, StoryData
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
            read(self._state, event)
        elif kind in _TOLD:
            self._state.tell(n, _TOLD[kind], node, text(args, "partition"), args)
            if kind in (Kind.FENCE, Kind.UNFENCE) and cause:
                told = self.story.happenings[-1]
                self.story.fencings.setdefault(cause, []).append(told)
        for path, _, new in changes:
            if path.endswith("/high_watermark") and type(new) is int:
                parts = path.split("/")
                if len(parts) == 3 and self._is_broker(parts[0]):
                    self.story.replica(parts[0], parts[1]).high_watermarks.put(n, new)
            elif path.endswith("elr") and isinstance(new, list | tuple):
                self._take_elr(n, path.split("/"), new)

    def _take_elr(self, n: int, parts: list[str], new: Sequence[Any]) -> None:
        """A controller shows who is eligible to lead where the ISR is empty."""
        if len(parts) == 3 and parts[2] in ("elr", "last_known_elr"):
            partition = self.story.partition(parts[1])
            series = partition.elrs if parts[2] == "elr" else partition.last_known
            series.put(n, tuple(each for each in new if type(each) is str))

    def _is_broker(self, name: str) -> bool:
        """Consumers know of high watermarks, too."""
        header, node = self.story.header, self.story.nodes.get(name)
        return (header is not None and name in header.nodes) or (
            node is not None and node.is_broker
        )
