"""Brokers and clients that hear of metadata late: answers wait outside their processes.

A broker pulls the metadata log from the controller (DECISIONS 2.13). While it lags by so many
records it is given of each answer only what lies so far behind the newest committed record; it
pulls again, and the rest waits until more is committed. While it skips it is given nothing, and at
the end the newest state as one snapshot: the versions between it never sees.

A client asks brokers. It is given an answer when what that says is so many records old, or with
``skip`` at the end; it goes on with what it knew, and may ask again meanwhile.

Left out: when it begins and ends (``sim.plans``). A snapshot cannot be divided: it waits whole.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, evolve, field

from cluster.message import Message
from cluster.messages_control import MetadataFetchResponse
from cluster.messages_data import MetadataResponse
from cluster.records import METADATA_RECORDS
from sim.hosts import Host
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.views import View

__all__ = ["MetadataLags"]

Told = MetadataFetchResponse | MetadataResponse


def _end_of(message: Told) -> int:
    """The metadata offset that it goes up to."""
    if isinstance(message, MetadataResponse):
        return message.metadata_offset
    return message.end_offset


@define(eq=False)
class _Kept:
    """An answer that waits.

    Attributes:
        event: that put it under way, or that says that it waits.
        incarnation: of the process that it is for.
        is_told: whether the trace says that it waits.
    """

    src: str
    message: Told
    event: int
    incarnation: int
    is_told: bool = False


@define(eq=False)
class MetadataLags:
    """See the module.

    Attributes:
        lags: by node and fault, how many records behind it is; None where it skips.
    """

    _hosts: Mapping[str, Host]
    lags: dict[str, dict[str, int | None]] = field(factory=dict)
    _kept: dict[str, _Kept] = field(factory=dict)

    def begin(self, node: str, fault_id: str, records: int | None) -> None:
        """A broker hears of metadata so many records late, or nothing at all."""
        self.lags.setdefault(node, {})[fault_id] = records

    def end(self, node: str, fault_id: str, number: int) -> None:
        """One reason is over, with event ``number``; with the last of them it hears everything."""
        lag = self.lags[node].pop(fault_id)
        if self.lags[node]:
            self._look_soon(node)
            return
        del self.lags[node]
        kept = self._kept.pop(node, None)
        if kept is not None:
            message = kept.message
            if lag is None and isinstance(message, MetadataFetchResponse):
                message = self._newest(message)
            self._deliver(node, kept, message, number)

    def take(self, node: str, src: str, message: Message, sent: int) -> bool:
        """A message has arrived; returns whether it is kept here, in part or for a while."""
        process = self._hosts[node].process
        if node not in self.lags or process is None or not isinstance(message, Told):
            return False
        if isinstance(message, MetadataFetchResponse) and not message.records:
            return False
        old = self._kept.pop(node, None)
        if old is not None:
            self._tell(node, old, Kind.DROP, why="superseded")
        self._kept[node] = _Kept(src, message, sent, process.incarnation)
        self._look(node)
        return True

    def on_committed(self) -> None:
        """The controller has done something: there may be more that is old enough."""
        for node in self._kept:
            self._look_soon(node)

    def _look_soon(self, node: str) -> None:
        timeline = self._hosts[node].kernel.timeline
        origin = f"metadata:{node}"
        timeline.at(timeline.now_us, EventClass.DELIVERY, origin, self._look, node)

    def _look(self, node: str) -> None:
        """Give a broker what it may have by now."""
        kept = self._kept.get(node)
        if kept is None or node not in self.lags:
            return
        process = self._hosts[node].process
        if process is None or process.incarnation != kept.incarnation:
            del self._kept[node]
            self._tell(node, kept, Kind.DROP, why="no-process")
            return
        message, shown = kept.message, self._shown(node, kept.message)
        part = _part_of(message, shown)
        if shown >= _end_of(message):
            del self._kept[node]
            self._deliver(node, kept, message)
        elif part is not None:
            del self._kept[node]
            self._tell(node, kept, Kind.HOLD, records=_records_of(message) - _records_of(part))
            self._deliver(node, kept, part)
        elif not kept.is_told:
            self._tell(node, kept, Kind.HOLD, records=_records_of(message))
            kept.is_told = True

    def _shown(self, node: str, message: Told) -> int:
        """The metadata offset that a node may know by now, -1 for none."""
        lags = self.lags[node].values()
        newest = max(View(self._hosts).image().end_offset, _end_of(message))
        return min(-1 if lag is None else newest - lag for lag in lags)

    def _newest(self, message: MetadataFetchResponse) -> MetadataFetchResponse:
        """The newest state as a snapshot, in the place of an answer."""
        image = View(self._hosts).image()
        if image.end_offset <= message.end_offset and not message.is_snapshot:
            # Its records are all that is new: they are one change, too.
            return message
        records = tuple(METADATA_RECORDS.encode(each) for each in image.to_records())
        end = image.end_offset
        return evolve(message, base_offset=0, end_offset=end, is_snapshot=True, records=records)

    def _deliver(self, node: str, kept: _Kept, message: Told, *causes: int) -> None:
        process = self._hosts[node].process
        if process is None or process.incarnation != kept.incarnation:
            return
        event = kept.event
        if causes:
            event = self._tell(node, kept, Kind.DELAY, causes=causes)
        process.deliver(kept.src, message, event)

    def _tell(
        self, node: str, kept: _Kept, kind: Kind, *, causes: tuple[int, ...] = (), **more: object
    ) -> int:
        """Say what becomes of an answer, and through which fault; returns the event's number."""
        host = self._hosts[node]
        lags = self.lags.get(node, {})
        args = {
            "from": kept.src,
            "to": node,
            "type": type(kept.message).__name__,
            "id": kept.message.correlation_id,
            **more,
        }
        cause = {kept.event, *causes}
        if lags:
            slowest = min(lags, key=lambda each: (lags[each] is not None, -(lags[each] or 0)))
            args["fault"] = slowest
            cause.add(host.begun[slowest])
        kept.event = host.tell(kind, tuple(sorted(cause)), args)
        return kept.event


def _records_of(message: Told) -> int:
    """How many records of metadata it has; of an answer to a client nobody counts them."""
    return len(message.records) if isinstance(message, MetadataFetchResponse) else 0


def _part_of(message: Told, shown: int) -> MetadataFetchResponse | None:
    """The records up to an offset; None where there are none, or it cannot be divided."""
    if isinstance(message, MetadataResponse) or message.is_snapshot:
        return None
    if shown <= message.base_offset:
        return None
    count = shown - message.base_offset
    return evolve(message, end_offset=shown, records=message.records[:count])
