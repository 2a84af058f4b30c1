"""How connections end, and how the ends get to know.

See ``sim.network`` for the model.

Left out: what a frame finds when it arrives (``sim.network``).
"""

from __future__ import annotations

from attrs import define

from sim.departures import Departures
from sim.launching import Launcher
from sim.links import Active, Connection, Frame, Link
from sim.network_hosts import NetworkHosts
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

__all__ = ["Endings"]


@define(eq=False)
class Endings:
    """See the module."""

    _timeline: Timeline
    _hosts: NetworkHosts
    _launcher: Launcher
    _departures: Departures

    def send_end(
        self, link: Link, connection: Connection, cause: int, departs_us: int | None
    ) -> None:
        """Tell ``link.dst``, behind all that the connection carries there."""
        if connection.has_ended[link.reverse.side] or connection.is_told[link.reverse.side]:
            return
        now_us = self._timeline.now_us
        waiting = [at for at, _, frame in link.waiting if frame.connection is connection]
        at_us = max(now_us, departs_us or 0, *waiting)
        frame = self._launcher.end(link, connection, cause, at_us)
        if at_us > now_us or waiting:
            self._departures.wait(link, frame, now_us)
        else:
            self._launcher.launch(link, frame)

    def answer_end(self, link: Link, connection: Connection, cause: int) -> None:
        """Tell the source of a frame that its connection is no more."""
        self.send_end(link.reverse, connection, cause, None)

    def reset(
        self,
        link: Link,
        connection: Connection,
        event: int,
        by: Active | None,
        half_open: str | None = None,
    ) -> None:
        """It fails now; ``half_open`` names the end that does not hear of it."""
        connection.is_broken = True
        connection.cause, connection.by = event, by
        for way in (link, link.reverse):
            connection.launched[way.side] = way.launched
            side = way.reverse.side
            if way.dst != half_open and not connection.has_ended[side]:
                connection.is_told[side] = True
                self.hear_at(self._timeline.now_us, way, connection, event)

    def hear_at(self, at_us: int, way: Link, connection: Connection, cause: int) -> None:
        """``way.dst`` hears of the end at a time, over no link."""
        self._timeline.at(at_us, EventClass.DELIVERY, way.origin, self.hear, way, connection, cause)

    def hear(self, link: Link, connection: Connection, cause: int) -> None:
        """The news of an end have reached ``link.dst``."""
        side = link.reverse.side
        connection.is_told[side] = False
        if not connection.has_ended[side]:
            up_to = link.connections.index(connection) + 1
            self.end_all(link, link.connections[:up_to], cause)

    def end_all(self, link: Link, connections: list[Connection], cause: int) -> bool:
        """These have ended for ``link.dst``; returns whether its process heard of it, once."""
        side = link.reverse.side
        running = self._hosts.incarnation(link.dst)  # -1 owns no connection
        ended = [each for each in connections if not each.has_ended[side]]
        for each in ended:
            link.end(each, side)
        if all(each.incarnations[side] != running for each in ended):
            return False
        self._hosts.disconnected(link.dst, link.src, cause)
        return True

    def fail(self, link: Link, frame: Frame, active: Active) -> None:
        """All transmissions of a frame were lost."""
        connection = frame.connection
        event = self._launcher.drop(link, frame, link.src, "loss", active)
        if connection.is_broken:
            return
        if connection.has_ended[link.side]:
            # Nobody is left to reset it, but what follows cannot arrive without this frame.
            connection.is_broken, connection.cause, connection.by = True, event, active
            return
        event = self._launcher.tell(Kind.RESET, link, frame, link.src, active, event, why="loss")
        self.reset(link, connection, event, active)
