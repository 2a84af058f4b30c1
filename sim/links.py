"""What the network remembers: connections, directed links, and the frames on them.

See ``sim.network`` for the model of connections. Here is the state, and the few changes of it that
must keep it consistent.

Left out: time, draws, rules and whoever sends (``sim.network``).
"""

from __future__ import annotations

from collections import deque
from typing import Final, NamedTuple

from attrs import define, field

from cluster.message import Message
from sim.draws import Draws, Stream
from sim.latency import Latency
from sim.network_rules import Rule
from storage.values import Copied

__all__ = ["UNOWNED", "Active", "Connection", "Doom", "Frame", "Link", "LinkView"]


UNOWNED: Final = -2
"""Instead of an incarnation. It is not what hosts say of a node where no process runs, -1."""


@define(eq=False)
class Connection(Copied):
    """One connection between two nodes. Lists have an element for each side: see ``Link.side``.

    Attributes:
        incarnations: of the processes at its ends; ``UNOWNED``: none ran there when it was
            opened, and nothing has arrived or left there since.
        has_ended: the node has closed it or heard of its end, or its process is gone.
        is_told: the news of its end are under way to that side.
        is_broken: it was reset: nothing that is under way on it will be delivered.
        launched: how many frames each side had launched when it was reset.
        by: the rule that reset or refused it, if one did.
        cause: event number of what reset it.
        opened_us: when.
        lost_us: when the first of its frames reached a host without power; -1 for never.
        is_dialled: it was opened to a host without power, and nobody there knows of it.
    """

    incarnations: list[int]
    has_ended: list[bool] = field(factory=lambda: [False, False])
    is_told: list[bool] = field(factory=lambda: [False, False])
    is_broken: bool = False
    launched: list[int] = field(factory=lambda: [0, 0])
    by: Active | None = None
    cause: int = 0
    opened_us: int = 0
    lost_us: int = -1
    is_dialled: bool = False


class Frame:
    """What travels.

    Attributes:
        message: None for the news that the connection has ended.
        event: number of its send or transmit event; of the end: of what ended it, 0 for nothing.
        ordinal: keys its draws: how many the source had sent on the link before.
        place: its place in the order in which frames were launched; they arrive in it.
        departs_us: when it was to leave; of one that has: when the wire has taken it.
        late_us: what the wire and losses put it off by.
        wire_us: when the wire of a limited link has taken it; 0 where there is no limit.
        due_us: when it is to arrive if nothing holds it.
    """

    __slots__ = (
        "connection",
        "departs_us",
        "due_us",
        "event",
        "late_us",
        "message",
        "ordinal",
        "place",
        "wire_us",
    )

    def __init__(
        self,
        connection: Connection,
        message: Message | None,
        event: int,
        ordinal: int,
        departs_us: int,
    ) -> None:
        self.connection = connection
        self.message = message
        self.event = event
        self.ordinal = ordinal
        self.departs_us = departs_us
        self.place = 0
        self.late_us = 0
        self.wire_us = 0
        self.due_us = 0

    def copy(self) -> Frame:
        """The same once more."""
        other = Frame(self.connection, self.message, self.event, self.ordinal, self.departs_us)
        other.place, other.due_us = self.place, self.due_us
        return other

    @property
    def type_name(self) -> str:
        """The class of the message."""
        return "End" if self.message is None else type(self.message).__name__


@define(eq=False)
class Active:
    """A rule that is active, or was while something that it marked is still under way.

    Attributes:
        names: of the classes that it strikes, None for all.
        cause: events that its effects go back to.
        strikes: how often it has struck.
        held_since_us: by link, when it began to hold something.
    """

    rule: Rule
    names: frozenset[str] | None
    cause: tuple[int, ...]
    strikes: int = 0
    held_since_us: dict[tuple[str, str], int] = field(factory=dict)
    _streams: dict[tuple[str, str], Stream] = field(factory=dict)

    def strikes_frame(self, frame: Frame) -> bool:
        """Whether it is meant for such frames."""
        return self.names is None or frame.type_name in self.names

    def stream(self, draws: Draws, link: Link) -> Stream:
        """Its draws on a link."""
        key = (link.src, link.dst)
        stream = self._streams.get(key)
        if stream is None:
            stream = self._streams[key] = draws.stream("network-rule", self.rule.id, *key)
        return stream


class Doom(NamedTuple):
    """Frames up to a place that will not arrive, since a link was cut."""

    place: int
    by: Active


class LinkView(NamedTuple):
    """What a viewer sees of one direction.

    Attributes:
        rules: ids of the rules that are active on it.
        waiting: event numbers of messages that have not left.
        under_way: event numbers of messages that have, in the order in which they will arrive.
        held: rule and event number of the messages that a rule holds.
    """

    src: str
    dst: str
    rules: tuple[str, ...]
    waiting: tuple[int, ...]
    under_way: tuple[int, ...]
    held: tuple[tuple[str, int], ...]


@define(eq=False, repr=False)
class Link(Copied):
    """One direction between two nodes.

    Attributes:
        side: of the source in the lists of a connection: 0 for the lesser name, 1 for the other.
        reverse: the other direction.
        connections: of both directions, oldest first; none that has ended on both sides.
        connection: the one that the source uses: the oldest that has not ended for it, if any.
        sent, ended: how many frames, and ends of connections, it was given.
        launched: how many frames have left.
        last_us: when the latest of them is to arrive.
        waiting: a heap of frames that have not left: (departs_us, queued, frame).
        queued: how many were put there.
        flying: frames under way, in their order. Each has an entry on the timeline, but an entry
            takes the first that is there: so order never depends on how entries are ordered.
        loose: how many are under way that keep no order.
        held: frames that a rule holds.
        dooms: see ``Doom``.
        rules: those that are active here, in the order in which they were added.
        is_plain: neither a rule nor a doom is to be looked at.
        is_immune: no rule is ever active here.
        buffer: of a limited link: when each frame in the send buffer has left it, and its size.
        busy_us: until when the wire of a limited link is taken.
        wake_us: when the link looks again for room in its buffer.
    """

    src: str
    dst: str
    side: int
    latency: Latency
    connections: list[Connection]
    is_immune: bool
    origin: str = field(init=False)
    reverse: Link = field(init=False)
    connection: Connection | None = None
    sent: int = 0
    ended: int = 0
    launched: int = 0
    last_us: int = -1
    waiting: list[tuple[int, int, Frame]] = field(factory=list)
    queued: int = 0
    flying: deque[Frame] = field(factory=deque)
    loose: int = 0
    held: list[tuple[Active, Frame]] = field(factory=list)
    dooms: list[Doom] = field(factory=list)
    rules: tuple[Active, ...] = ()
    is_plain: bool = True
    buffer: deque[tuple[int, int]] = field(factory=deque)
    busy_us: int = 0
    wake_us: int = -1

    def __attrs_post_init__(self) -> None:
        self.origin = f"link:{self.src}>{self.dst}"

    def refresh(self) -> None:
        """Choose the connection that the source uses."""
        self.connection = next((c for c in self.connections if not c.has_ended[self.side]), None)

    def end(self, connection: Connection, side: int) -> None:
        """A side is done with a connection."""
        connection.has_ended[side] = True
        if all(connection.has_ended) and connection in self.connections:
            self.connections.remove(connection)
        self.refresh()
        self.reverse.refresh()

    def set_rules(self, active: list[Active]) -> None:
        """Take over those of the active rules that cover this link."""
        if not self.is_immune:
            self.rules = tuple(a for a in active if a.rule.covers(self.src, self.dst))
        self.set_plain()

    def set_plain(self) -> None:
        """Dooms whose frames are gone are forgotten."""
        if self.dooms and not self.flying and not self.loose and not self.held:
            self.dooms.clear()
        self.is_plain = not self.rules and not self.dooms

    def put_back(self, frames: list[Frame]) -> None:
        """Frames that were held are under way again, each at its place."""
        self.flying = deque(sorted((*self.flying, *frames), key=lambda frame: frame.place))

    def view(self) -> LinkView:
        """What a viewer sees of it."""
        held = sorted(self.held, key=lambda each: each[1].place)
        return LinkView(
            self.src,
            self.dst,
            tuple(active.rule.id for active in self.rules),
            tuple(each.event for _, _, each in sorted(self.waiting) if each.message is not None),
            tuple(each.event for each in self.flying if each.message is not None),
            tuple((by.rule.id, each.event) for by, each in held if each.message is not None),
        )
