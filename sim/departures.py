"""Frames that have not left: those of a later time, and those that wait for room in a buffer.

They leave in the order of their times, whatever the order in which they were sent. What a fetch
response refers to is read as it leaves (hazard B-20).

Left out: what happens to a frame from then on (``sim.launching``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush

from attrs import define

from cluster.message import Message
from cluster.messages_data import FetchResponse
from sim.launching import Launcher, is_sent_again
from sim.link_limits import limit_of, room_us, size_bytes, take_wire_us
from sim.links import Active, Connection, Frame, Link
from sim.network_hosts import NetworkHosts
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

__all__ = ["Departures", "has_references"]


def has_references(message: Message) -> bool:
    """Whether a message has to be read when it leaves."""
    if isinstance(message, FetchResponse):
        for result in message.partitions:
            if result.range_ref is not None:
                return True
    return False


@define(eq=False)
class Departures:
    """See the module.

    Attributes:
        unread: called where the bytes of a response are gone, with the event that says so.
    """

    _timeline: Timeline
    _hosts: NetworkHosts
    _launcher: Launcher
    unread: Callable[[Link, Connection, int], None]

    def wait(self, link: Link, frame: Frame, now_us: int) -> None:
        """A frame leaves at ``frame.departs_us``, or now if that has passed; not in this call."""
        at_us = frame.departs_us = max(now_us, frame.departs_us)
        heappush(link.waiting, (at_us, link.queued, frame))
        link.queued += 1
        self._timeline.at(at_us, EventClass.DELIVERY, link.origin, self.pump, link)

    def pump(self, link: Link) -> None:
        """Let those leave whose time has come, in the order of their times."""
        now_us = self._timeline.now_us
        while link.waiting and link.waiting[0][0] <= now_us:
            frame = link.waiting[0][2]
            limit = limit_of(link)
            if limit is not None and frame.message is not None:
                rate, buffer_bytes, by = limit
                size = size_bytes(frame.message)
                at_us = room_us(link, buffer_bytes, size, now_us)
                if at_us > now_us:
                    if link.wake_us != at_us:
                        link.wake_us = at_us
                        self._timeline.at(at_us, EventClass.DELIVERY, link.origin, self.pump, link)
                    return
                frame.late_us = take_wire_us(link, rate, size, now_us)
                frame.wire_us = now_us + frame.late_us
                heappop(link.waiting)
                self._transmit(link, frame, by)
            else:
                heappop(link.waiting)
                self._transmit(link, frame, None)

    def _transmit(self, link: Link, frame: Frame, limit: Active | None) -> None:
        message = frame.message
        waited_us = self._timeline.now_us - frame.departs_us
        is_late = limit is not None and waited_us > 0
        is_to_be_read = message is not None and has_references(message)
        if message is None or not (is_late or is_to_be_read):
            self._launcher.launch(link, frame)
            return
        more = {"by_us": waited_us} if is_late else {}
        by = limit if is_late else None
        if is_to_be_read:
            filled = self._hosts.transmit(link.src, message)
            if filled is None:
                event = self._launcher.drop(link, frame, link.src, "unread", by)
                # Where its process died of it, that is what the peer hears of.
                connection = frame.connection
                if not connection.has_ended[link.side] and not connection.is_broken:
                    self.unread(link, connection, event)
                return
            frame.message = filled
        frame.event = self._launcher.tell(Kind.TRANSMIT, link, frame, link.src, by, **more)
        self._launcher.launch(link, frame)

    def limit_ended(self, link: Link) -> None:
        """What a limited wire still had to take is taken now; another limit leaves it as it is."""
        if limit_of(link) is not None:
            return
        now_us = self._timeline.now_us
        sooner_us, last_us = 0, now_us
        for frame in link.flying:
            # What is behind such a frame came later for its sake, limited or not.
            sooner_us = max(sooner_us, frame.wire_us - now_us)
            if sooner_us:
                frame.departs_us = min(frame.departs_us, max(now_us, frame.departs_us - sooner_us))
                frame.due_us = max(last_us + 1, frame.due_us - sooner_us)
                self._timeline.at(
                    frame.due_us, EventClass.DELIVERY, link.origin, self._launcher.arrive, link
                )
            last_us = max(last_us, frame.due_us)
        link.buffer.clear()
        link.busy_us = 0
        link.last_us = last_us

    def take_back(
        self, link: Link, incarnation: int, cause: tuple[int, ...], *, is_silent: bool
    ) -> None:
        """A process is gone, and with it what it had not got rid of.

        What waits in its host, for the wire or to be sent again, goes with the host's power. The
        entries that such frames have on the timeline stay, and find others or nothing.
        """
        is_blocked = limit_of(link) is not None
        lost, left = [], []
        for entry in sorted(link.waiting):
            frame = entry[2]
            has_left = (
                not is_blocked
                and (frame.message is None or not has_references(frame.message))
                and self._hosts.left_before_death(link.src, incarnation, frame.departs_us)
            )
            if has_left:
                left.append(entry)
            else:
                lost.append(frame)
        link.waiting = left  # In order, so it is a heap.
        if is_silent:
            now_us = self._timeline.now_us
            lost += [f for f in link.flying if f.departs_us > now_us]
            lost += [f for by, f in link.held if is_sent_again(by.rule) or f.departs_us > now_us]
            link.flying = deque(frame for frame in link.flying if frame not in lost)
            link.held = [(by, frame) for by, frame in link.held if frame not in lost]
            link.buffer.clear()
            link.busy_us = 0
            link.last_us = max((frame.due_us for frame in link.flying), default=now_us)
        for frame in lost:
            self._launcher.drop(link, frame, link.src, "unsent", None, *cause)
