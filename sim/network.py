"""The network: frames between nodes, connections and their ends, and the rules that disturb them.

**Connections.** Machines hear only ``on_disconnected(peer)``, so there is one logical connection
between two nodes, in both directions; the first frame opens it, without a handshake. It belongs to
the two processes that ran then. Either side may know that it has ended before the other does, and
then a second one is opened beside it. These rules keep the two apart:

* A side sends on the oldest connection that has not ended for it, and opens a new one if it has
  none. So the end that it hears of is always that of the connection that its requests are on.
* A frame that arrives on a newer connection tells the receiver of the end of an older one first.
* A frame is handed only to the process that its connection belongs to. Whoever else gets it
  answers with an end (a TCP reset). Where no process ran when the connection was opened, it
  belongs to the one that the first frame finds.
* Each direction is first in, first out, over all connections; ends stand in the same line, so
  what was sent before an end arrives before it.

**Ends.** *Close*: the peer hears behind what is under way to it; whoever closes hears nothing.
*A process ends*: the same; of what it had sent, what had left stays under way, the rest is gone.
*Power loss*: what was to be sent again is gone, too, and the peer hears nothing, until a frame of
its own reaches the host while that has power again. *Reset*: both ends hear at once, and what is
under way is lost; half-open: one of them hears only when its next frame has reached the other.
*A cut* that drops ends nothing: whoever misses an answer times out and asks again.

**Leaving.** A message leaves at ``departs_us``. A fetch response is read then (hazard B-20), by an
entry of its own on the timeline; on a limited link that waits for room in the send buffer.

**Arriving.** The host is called from entries of the timeline only, one call an entry, never from
inside ``send`` and the like. It writes the events ``deliver`` and ``disconnect`` itself, when the
machine takes them.

Left out: other handshakes, and keep-alive.
"""

from __future__ import annotations

from collections.abc import Set

from attrs import define, field

from cluster.message import Message
from cluster.names import ADMIN
from sim.departures import Departures, has_references
from sim.draws import Draws
from sim.endings import Endings
from sim.latency import Latency, NetworkConfig
from sim.launching import Launcher, holds
from sim.link_limits import limit_of
from sim.links import UNOWNED, Active, Connection, Frame, Link, LinkView
from sim.network_hosts import Emits, NetworkHosts
from sim.network_rules import Cut, Limit, Refuse, Rule
from sim.strikes import Strikes
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

__all__ = ["Emits", "LinkView", "Network", "NetworkConfig", "NetworkHosts"]


@define(eq=False)
class Network:
    """See the module."""

    _timeline: Timeline
    _draws: Draws
    _trace: Emits
    _hosts: NetworkHosts
    config: NetworkConfig = field(factory=NetworkConfig)
    _links: dict[tuple[str, str], Link] = field(factory=dict, init=False)
    _clients: set[str] = field(factory=set, init=False)
    _launcher: Launcher = field(init=False)
    _strikes: Strikes = field(init=False)
    _departures: Departures = field(init=False)
    _endings: Endings = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._launcher = Launcher(
            self._timeline,
            self._draws,
            self._trace,
            self.config.mode,
            self._arrive,
            self._arrive_loose,
            self._fail,
        )
        self._strikes = Strikes(self._draws, self._launcher)
        self._departures = Departures(self._timeline, self._hosts, self._launcher, self._unread)
        self._endings = Endings(self._timeline, self._hosts, self._launcher, self._departures)

    # Links -------------------------------------------------------------------------------------

    def add_client(self, name: str) -> None:
        """Say that a node is a client, before it sends or is sent anything.

        Raises:
            ValueError: it has links already.
        """
        if any(name in ends for ends in self._links):
            raise ValueError(f"{name!r} has links already, allowed are nodes that have none")
        self._clients.add(name)

    def links(self) -> tuple[LinkView, ...]:
        """Every link that was used, by its names."""
        return tuple(link.view() for _, link in sorted(self._links.items()))

    def strikes(self, rule_id: str) -> int:
        """How often an active rule has had an effect."""
        return self._active(rule_id).strikes

    @property
    def garbled(self) -> Set[int]:
        """The events at which bits were flipped in what its receiver could still read."""
        return self._strikes.garbled

    def _link(self, src: str, dst: str) -> Link:
        link = self._links.get((src, dst))
        if link is not None:
            return link
        if src == dst:
            raise ValueError(f"{src!r} sends to itself, allowed is another node")
        connections: list[Connection] = []
        one, other = (self._new_link(*ends, connections) for ends in ((src, dst), (dst, src)))
        one.reverse, other.reverse = other, one
        return one

    def _new_link(self, src: str, dst: str, connections: list[Connection]) -> Link:
        is_client = src in self._clients or dst in self._clients
        is_admin = ADMIN in (src, dst)
        is_zero = is_admin or (is_client and self.config.clients == "zero-latency")
        latency = Latency.of_link(self.config, self._draws, src, dst, is_zero=is_zero)
        is_immune = is_admin or (is_client and self.config.clients == "immune")
        link = Link(src, dst, int(src > dst), latency, connections, is_immune)
        link.set_rules(self._launcher.active)
        self._links[src, dst] = link
        return link

    # Sending -----------------------------------------------------------------------------------

    def send(
        self, src: str, dst: str, message: Message, *, departs_us: int, cause: tuple[int, ...]
    ) -> None:
        """Send a message, which leaves at ``departs_us``, or now if that has passed."""
        link = self._links.get((src, dst)) or self._link(src, dst)
        now_us = self._timeline.now_us
        event = self._trace.emit(
            now_us,
            src,
            Kind.SEND,
            cause,
            {"to": dst, "type": message.__class__.__name__, "id": message.correlation_id},
        )
        connection = link.connection or self._connect(link, event)
        if connection.incarnations[link.side] == UNOWNED:
            connection.incarnations[link.side] = self._hosts.incarnation(src)
        frame = Frame(connection, message, event, link.sent, departs_us)
        link.sent += 1
        if (
            departs_us <= now_us
            and not link.waiting
            and (link.is_plain or limit_of(link) is None)
            and not has_references(message)
        ):
            self._launcher.launch(link, frame)
        else:
            self._departures.wait(link, frame, now_us)

    def _connect(self, link: Link, event: int) -> Connection:
        near, far = link.side, link.reverse.side
        connection = Connection([UNOWNED, UNOWNED])
        connection.incarnations[near] = self._hosts.incarnation(link.src)
        peer = self._hosts.incarnation(link.dst)
        if peer >= 0:
            connection.incarnations[far] = peer
        link.connections.append(connection)
        for active in link.rules:
            if isinstance(active.rule, Refuse):
                connection.by = active
                connection.has_ended[far] = True
                if active.rule.hangs_us:
                    connection.is_told[near] = True
                    at_us = self._timeline.now_us + active.rule.hangs_us
                    self._endings.hear_at(at_us, link.reverse, connection, event)
                break
        else:
            if not self._hosts.is_powered(link.dst):
                connection.is_dialled = connection.has_ended[far] = True
                connection.is_told[near] = True
                at_us = self._timeline.now_us + self.config.connect_timeout_us
                self._endings.hear_at(at_us, link.reverse, connection, event)
        link.refresh()
        link.reverse.refresh()
        return connection

    # Arriving ----------------------------------------------------------------------------------

    def _arrive(self, link: Link) -> None:
        """The next frame of a link is due."""
        if not link.flying:
            return  # It was taken back: see ``Departures.take_back``.
        frame = link.flying[0]
        if frame.due_us > self._timeline.now_us:
            # One that was held stands in front of the one that this entry was made for.
            self._timeline.at(frame.due_us, EventClass.DELIVERY, link.origin, self._arrive, link)
            return
        link.flying.popleft()
        connection, far, message = frame.connection, link.reverse, frame.message
        if (
            link.is_plain
            and message is not None
            and far.connection is connection
            and not connection.is_broken
            and self._hosts.incarnation(link.dst) == connection.incarnations[far.side]
        ):
            self._hosts.receive(link.dst, link.src, message, frame.event)
        elif not self._is_kept(link, frame):
            self._meet(link, frame, is_loose=False)

    def _arrive_loose(self, link: Link, frame: Frame) -> None:
        link.loose -= 1
        if not self._is_kept(link, frame):
            self._meet(link, frame, is_loose=True)

    def _is_kept(self, link: Link, frame: Frame) -> bool:
        """Whether the network does not let it arrive."""
        for doom in link.dooms:
            if frame.place <= doom.place and doom.by.strikes_frame(frame):
                doom.by.strikes += 1
                self._launcher.drop(link, frame, link.dst, "cut", doom.by)
                link.set_plain()
                return True
        for active in link.rules:
            if holds(active.rule) and active.strikes_frame(frame):
                self._launcher.hold(link, frame, link.dst, active)
                return True
        link.set_plain()
        return False

    def _meet(self, link: Link, frame: Frame, *, is_loose: bool) -> None:
        """A frame has reached the host: see whom it finds there."""
        connection, message = frame.connection, frame.message
        side = link.reverse.side
        if message is None:
            self._endings.hear(link, connection, frame.event)
            return
        if connection.is_broken:
            event = self._launcher.drop(
                link, frame, link.dst, "reset", connection.by, connection.cause
            )
            if frame.place > connection.launched[link.side]:
                self._endings.answer_end(link, connection, event)
            return
        running = self._hosts.incarnation(link.dst)
        if running < 0 and not self._hosts.is_powered(link.dst):
            self._launcher.drop(link, frame, link.dst, "no-power")
            if connection.lost_us < 0:
                connection.lost_us = self._timeline.now_us
            link.end(connection, side)
            return
        if connection.incarnations[side] == UNOWNED and running >= 0:
            connection.incarnations[side] = running
        is_owner = running >= 0 and running == connection.incarnations[side]
        if connection.has_ended[side] or not is_owner:
            why = "closed" if is_owner else "no-process" if running < 0 else "restarted"
            if connection.by is not None:
                why = "refused"
                connection.by.strikes += 1
            event = self._launcher.drop(link, frame, link.dst, why, connection.by)
            link.end(connection, side)
            self._endings.answer_end(link, connection, event)
            return
        if link.reverse.connection is not connection:
            # It hears of the older one's end first; the frame comes right behind.
            older = link.connections[: link.connections.index(connection)]
            if self._endings.end_all(link, older, frame.event):
                self._put_first(link, frame, is_loose=is_loose)
                return
        struck = self._strikes.strike(link, frame)
        if struck is not None:
            event, by, half_open = struck
            self._endings.reset(link, connection, event, by, half_open)
            return
        assert frame.message is not None
        self._hosts.receive(link.dst, link.src, frame.message, frame.event)

    def _put_first(self, link: Link, frame: Frame, *, is_loose: bool) -> None:
        now_us = self._timeline.now_us
        if is_loose:
            link.loose += 1
            self._timeline.at(
                now_us, EventClass.DELIVERY, link.origin, self._arrive_loose, link, frame
            )
        else:
            link.flying.appendleft(frame)
            self._timeline.at(now_us, EventClass.DELIVERY, link.origin, self._arrive, link)

    def _fail(self, link: Link, frame: Frame, active: Active) -> None:
        self._endings.fail(link, frame, active)

    def _unread(self, link: Link, connection: Connection, event: int) -> None:
        self._endings.reset(link, connection, event, None)

    # Ends --------------------------------------------------------------------------------------

    def close(
        self, node: str, peer: str, cause: tuple[int, ...], *, departs_us: int | None = None
    ) -> None:
        """A node closes its connection; the peer hears it behind what is under way to it."""
        link = self._link(node, peer)
        connection = link.connection
        if connection is None:
            return
        link.end(connection, link.side)
        self._endings.send_end(link, connection, cause[-1] if cause else 0, departs_us)

    def process_ended(
        self, node: str, incarnation: int, cause: tuple[int, ...], *, is_silent: bool
    ) -> None:
        """A process is gone. The hosts know of it already.

        What had left stays under way; peers hear of the end behind it, unless ``is_silent``
        (power loss).
        """
        for _, link in sorted(self._links.items()):
            if link.src != node:
                continue
            self._departures.take_back(link, incarnation, cause, is_silent=is_silent)
            for connection in list(link.connections):
                if connection.incarnations[link.side] == incarnation:
                    link.end(connection, link.side)
                    if not is_silent:
                        self._endings.send_end(link, connection, cause[-1] if cause else 0, None)

    def power_returned(self, node: str, cause: int) -> None:
        """A host has power again: whoever had sent it something in vain sends it once more, and
        hears that nobody knows of the connection.
        """
        for _, link in sorted(self._links.items()):
            if link.dst == node:
                for connection in link.connections:
                    self._endings.repeat(link, connection, cause)

    def reset(
        self,
        one: str,
        other: str,
        *,
        half_open: str | None = None,
        cause: tuple[int, ...] = (),
        fault: str | None = None,
    ) -> None:
        """The connection between two nodes fails now; without one, nothing happens.

        Args:
            half_open: the one of them that hears nothing until its next frame has reached the
                other.
            fault: an id for the trace.
        """
        if half_open not in (None, one, other):
            raise ValueError(f"half_open is {half_open!r}, allowed: {one!r}, {other!r}, None")
        link = self._link(one, other)
        args: dict[str, object] = {"from": one, "to": other}
        if half_open is not None:
            args["half_open"] = half_open
        if fault is not None:
            args["fault"] = fault
        found = [c for c in link.connections if not c.is_broken]
        if found:
            event = self._trace.emit(self._timeline.now_us, one, Kind.RESET, cause, args)
            for connection in found:
                self._endings.reset(link, connection, event, None, half_open)

    # Rules -------------------------------------------------------------------------------------

    def add(self, rule: Rule, *, cause: tuple[int, ...] = ()) -> None:
        """A rule begins now.

        Args:
            cause: events that all of its effects are to cite.

        Raises:
            ValueError: its id is taken, or the network's mode has no such faults.
        """
        active = self._launcher.add(rule, self.config, cause)
        links = [link for _, link in sorted(self._links.items())]
        for link in links:
            link.set_rules(self._launcher.active)
        if isinstance(rule, Cut) and rule.in_flight == "drop":
            self._launcher.doom(links, active)

    def remove(self, rule_id: str) -> None:
        """A rule ends now, and lets go what it held.

        Raises:
            ValueError: no such rule is active.
        """
        active = self._active(rule_id)
        self._launcher.active.remove(active)
        for _, link in sorted(self._links.items()):
            if active in link.rules:
                link.set_rules(self._launcher.active)
                self._launcher.release(link, active)
                if isinstance(active.rule, Limit):
                    self._departures.limit_ended(link)
                if link.waiting:
                    self._timeline.at(
                        self._timeline.now_us,
                        EventClass.DELIVERY,
                        link.origin,
                        self._departures.pump,
                        link,
                    )

    def busy_until_us(self) -> int:
        """When the last frame will have arrived that is under way now; 0 without any."""
        return max((link.last_us for link in self._links.values() if link.flying), default=0)

    def active_rules(self) -> tuple[str, ...]:
        """Ids of the rules that are active, in the order in which they were added."""
        return tuple(active.rule.id for active in self._launcher.active)

    def _active(self, rule_id: str) -> Active:
        for active in self._launcher.active:
            if active.rule.id == rule_id:
                return active
        names = ", ".join(repr(active.rule.id) for active in self._launcher.active)
        raise ValueError(f"rule is {rule_id!r}, active are: {names or 'none'}")
