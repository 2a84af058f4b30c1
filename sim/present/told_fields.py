"""What fields of nodes tell and no event does, read into a story: from traces of level ``full``.

A controller's fields say who leads and who is in the ISR, and so does its forgetting: a topic that
is deleted, an election that a power cut undid. A broker's fields say where its logs begin and how
far they are committed.

The first event of a handler has all of its changes. So they are compared with what the handler's
events have told when the next handler begins, and only what these have not told is added.

Left out: what events say (``sim.present.log_events`` and ``protocol_events``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from sim.present.history import Partition, Replica, Role, Series
from sim.present.reading_state import ReadingState
from sim.trace.lines import Change, Event

__all__ = ["ToldFields"]

_STATUS: Final = "/status"
_ONLY_CONTROLLERS: Final = "partition_epoch"
_OF_CONTROLLERS: Final = ("leader", "leader_epoch", "isr")
_OF_LOGS: Final = ("role", "log_start_offset", "log_end_offset", "high_watermark")

_Place = tuple[str, str]


class ToldFields:
    """Fields as they are, and those that the handler under way has changed."""

    def __init__(self, state: ReadingState) -> None:
        self._state = state
        self._ruled: dict[_Place, dict[str, Any]] = {}
        self._changed: dict[_Place, dict[str, Any]] = {}
        self._rulings: dict[_Place, None] = {}
        self._first = 0

    def before(self, event: Event) -> None:
        """The next event; what is left to say of a handler is said when the next one begins."""
        if not self._changed and not self._rulings:
            return
        is_later = event.t_us != self._state.story.time_us(self._first)
        if is_later or event.cause[:1] != (self._first,):
            self.end(event.n - 1)

    def take(self, event: Event) -> None:
        """Take in the changes that an event has."""
        if not event.changes:
            return
        if self._changed or self._rulings:
            self.end(event.n - 1)
        self._first = event.n
        ended = {
            path.removesuffix(_STATUS)
            for path, _, new in event.changes
            if path.endswith(_STATUS) and new != "running"
        }
        told = list(_of_partitions(event.changes))
        for node, name, field, new in told:
            if field == _ONLY_CONTROLLERS and new is not None:
                self._ruled.setdefault((node, name), {})
                self._state.ruled.add(name)
        for node, name, field, new in told:
            if new is not None or node not in ended:
                # What a node that has ended knows no more is as it was.
                self._take(event.n, (node, name), field, new)

    def _take(self, n: int, place: _Place, field: str, new: Any) -> None:
        node, name = place
        story = self._state.story
        if field in ("elr", "last_known_elr") and (new is None or isinstance(new, list | tuple)):
            partition = story.partition(name)
            series = partition.elrs if field == "elr" else partition.last_known
            series.put(n, _names(new))
        elif place in self._ruled and field in _OF_CONTROLLERS:
            self._ruled[place][field] = new
            self._rulings[place] = None
        elif field in _OF_LOGS and new is not None and self._is_broker(node):
            self._changed.setdefault(place, {})[field] = new
            if field == "high_watermark" and type(new) is int:
                story.replica(node, name).high_watermarks.put(n, new)

    def end(self, n: int) -> None:
        """Say what the handler's events have not said; event ``n`` is its last one."""
        story = self._state.story
        for place in self._rulings:
            self._rule(story.partition(place[1]), self._ruled[place], n)
        for (node, name), fields in self._changed.items():
            self._correct(story.replica(node, name), fields, n)
        self._rulings.clear()
        self._changed.clear()

    def _rule(self, partition: Partition, fields: dict[str, Any], n: int) -> None:
        leader, epoch = fields.get("leader"), fields.get("leader_epoch")
        known = (
            leader if type(leader) is str else None,
            epoch if type(epoch) is int else -1,
        )
        self._put(partition.leaders, known, n)
        self._put(partition.isrs, _names(fields.get("isr")), n)

    def _correct(self, replica: Replica, fields: dict[str, Any], n: int) -> None:
        role, start = fields.get("role"), fields.get("log_start_offset")
        now = replica.roles.last
        if type(role) is str and (now is None or now.name != role):
            self._put(replica.roles, Role(n, role, -1, None, None), n)
        if type(start) is int and start != (replica.log_starts.last or 0):
            for cut in self._state.logs.raise_start(replica, n, start):
                self._state.tell(n, "cut", replica.node, replica.partition, cut)
        end, high_watermark = fields.get("log_end_offset"), fields.get("high_watermark")
        if type(end) is int and replica.log_ends.last is None:
            replica.log_ends.put(n, end)
        if type(high_watermark) is int:
            replica.high_watermarks.put(n, high_watermark)

    def _put(self, series: Series[Any], value: Any, n: int) -> None:
        """From the handler's first event on, unless one of its events has said something else."""
        if series.last != value:
            series.put(self._first if series.since(n) < self._first else n, value)

    def _is_broker(self, name: str) -> bool:
        """Consumers know of high watermarks, too."""
        header, node = self._state.story.header, self._state.story.nodes.get(name)
        return (header is not None and name in header.nodes) or (
            node is not None and node.is_broker
        )


def _of_partitions(changes: Sequence[Change]) -> Iterable[tuple[str, str, str, Any]]:
    """Node, partition, field and new value of those changes that are of a partition's fields."""
    for path, _, new in changes:
        parts = path.split("/")
        if len(parts) == 3:
            yield parts[0], parts[1], parts[2], new


def _names(found: Any) -> tuple[str, ...]:
    if not isinstance(found, list | tuple):
        return ()
    return tuple(each for each in found if type(each) is str)
