"""How connections end, and how the ends get to know.

See ``sim.network`` for the model.

Left out: what a frame finds when it arrives (``sim.network``).
"""

from __future__ import annotations

from typing import Final

from attrs import define

from sim.departures import Departures
from sim.launching import Launcher
from sim.links import Active, Connection, Frame, Link
from sim.network_hosts import NetworkHosts
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

__all__ = ["Endings"]

RETRANSMIT_PAUSE_US: Final = 200_000
"""TCP sends what is not acknowledged again after this, then after twice as long, and so on."""
DIAL_PAUSE_US: Final = 1_000_000
"""The same of the first packet of a connection."""


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

    def repeat(self, link: Link, connection: Connection, cause: int) -> None:
        """``link.dst`` has power again: frames that were lost there come again, and are refused."""
        is_waiting = connection.is_dialled or connection.lost_us >= 0
        if not is_waiting or connection.is_broken or connection.has_ended[link.side]:
            return
        first_us = connection.opened_us if connection.is_dialled else connection.lost_us
        pause_us = DIAL_PAUSE_US if connection.is_dialled else RETRANSMIT_PAUSE_US
        at_us = first_us
        while at_us < self._timeline.now_us:
            at_us += pause_us
            pause_us *= 2
        self.hear_at(at_us, link.reverse, connection, cause)

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
