"""A lossless in-memory router: machines, their timers and disks, and a clock that tests move.

It carries out effects in the order in which they were put, delivers messages in the order in which
they were sent (``hold`` keeps those of a link back), completes flushes and background work at once
unless a test takes them itself, and reads range references when a response is transmitted. It is
no simulator: no latency, no faults, one clock for all.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from attrs import define, evolve, field

from cluster.broker import Broker
from cluster.effects import (
    Arm,
    Background,
    Disarm,
    Disconnect,
    Effect,
    Effects,
    Fsync,
    Note,
    Reply,
    Send,
    Stopped,
    TimerKey,
    Yield,
)
from cluster.machine import Machine
from cluster.message import Message
from cluster.messages_data import FetchResponse
from cluster.names import Now

Envelope = tuple[str, str, Message]
"""Source, destination, message."""

START_US = 1_000_000_000


@define(eq=False)
class Router:
    """Nodes by name, and what is under way between them.

    Attributes:
        now_us: both clocks of every node.
        queue: messages under way, oldest first.
        notes: everything noted: node, kind, arguments.
        inbox: messages to nodes that are no machines, as a test's own clients are.
        holds_fsync, holds_background: keep these effects in ``held`` instead of doing them.
        yields: failpoints at which handlers stop, by node; stopped ones are in ``stopped_at``.
    """

    nodes: dict[str, Machine] = field(factory=dict)
    now_us: int = START_US
    queue: deque[Envelope] = field(factory=deque)
    timers: dict[tuple[str, TimerKey], int] = field(factory=dict)
    notes: list[tuple[str, str, dict[str, Any]]] = field(factory=list)
    inbox: dict[str, list[tuple[str, Message]]] = field(factory=dict)
    stopped: set[str] = field(factory=set)
    gone: set[str] = field(factory=set)
    held: list[tuple[str, Effect]] = field(factory=list)
    holds_fsync: bool = False
    holds_background: bool = False
    yields: dict[str, tuple[str, ...]] = field(factory=dict)
    stopped_at: list[tuple[str, Yield]] = field(factory=list)
    is_held: Callable[[str, str, Message], bool] = lambda src, dst, message: False
    kept: list[Envelope] = field(factory=list)
    is_unread: Callable[[str, str, Message], bool] = lambda src, dst, message: False
    unread: list[Envelope] = field(factory=list)
    delivered: list[Envelope] = field(factory=list)
    disconnected: list[tuple[str, str]] = field(factory=list)

    # Calling machines --------------------------------------------------------------------------

    @property
    def now(self) -> Now:
        return Now(self.now_us, self.now_us)

    def call(self, name: str, handler: str, *args: Any) -> list[Effect]:
        """Call a handler of a node and carry its effects out; returns them."""
        fx = Effects(yields=self.yields.get(name, ()))
        getattr(self.nodes[name], handler)(self.now, *args, fx)
        effects = fx.drain()
        for effect in effects:
            self.carry_out(name, effect)
        return effects

    def start(self, name: str, machine: Machine) -> None:
        """Put a machine in the place of ``name``; an earlier one is forgotten with its timers."""
        self.drop(name)
        self.nodes[name] = machine
        self.gone.discard(name)
        self.stopped.discard(name)
        self.call(name, "on_start")

    def drop(self, name: str) -> None:
        """The process is gone; messages to it and from it under way are, too."""
        if self.nodes.pop(name, None) is not None:
            self.gone.add(name)
        for key in [key for key in self.timers if key[0] == name]:
            del self.timers[key]
        self.queue = deque(e for e in self.queue if name not in e[:2])
        self.held = [h for h in self.held if h[0] != name]
        self.stopped_at = [s for s in self.stopped_at if s[0] != name]
        for other in sorted(self.nodes):
            self.call(other, "on_disconnected", name)

    # Effects -----------------------------------------------------------------------------------

    def carry_out(self, name: str, effect: Effect) -> None:
        match effect:
            case Send(to, message) | Reply(to, message):
                self.transmit(name, to, message)
            case Arm(key, at_us, _):
                self.timers[name, key] = at_us
            case Disarm(key):
                self.timers.pop((name, key), None)
            case Fsync(token):
                if self.holds_fsync:
                    self.held.append((name, effect))
                else:
                    self.call(name, "on_synced", token)
            case Background(partition, work):
                if self.holds_background:
                    self.held.append((name, effect))
                else:
                    self.call(name, "on_background", partition, work)
            case Note(kind, args):
                self.notes.append((name, kind, dict(args)))
            case Yield():
                self.stopped_at.append((name, effect))
            case Disconnect(peer):
                self.disconnected.append((name, peer))
                if peer in self.nodes:
                    self.call(peer, "on_disconnected", name)
            case Stopped():
                self.stopped.add(name)

    def transmit(self, src: str, dst: str, message: Message) -> None:
        """Read what a response refers to, now, then put it under way.

        What ``is_unread`` names waits in front of that, as in a full socket buffer.
        """
        if self.is_unread(src, dst, message):
            self.unread.append((src, dst, message))
            return
        if isinstance(message, FetchResponse):
            broker = self.nodes[src]
            assert isinstance(broker, Broker)
            filled = []
            for result in message.partitions:
                if result.range_ref is not None:
                    data = broker.read_range_ref(result.range_ref)
                    if data is None:
                        return
                    result = result._replace(records=data, range_ref=None)
                filled.append(result)
            message = evolve(message, partitions=tuple(filled))
        if self.is_held(src, dst, message):
            self.kept.append((src, dst, message))
        else:
            self.queue.append((src, dst, message))

    def resume(self) -> None:
        """Let every handler that stopped at a failpoint go on."""
        while self.stopped_at:
            name, effect = self.stopped_at.pop(0)
            self.call(name, "on_resume", effect.point, effect.args)

    def do_held(self) -> None:
        """Do the flushes and the background work that were kept back."""
        held, self.held = self.held, []
        for name, effect in held:
            if isinstance(effect, Fsync):
                self.call(name, "on_synced", effect.token)
            elif isinstance(effect, Background):
                self.call(name, "on_background", effect.partition, effect.work)

    def release(self) -> None:
        """Deliver what was held on links, after what is under way."""
        kept, self.kept = self.kept, []
        self.queue.extend(kept)

    def read_out(self) -> None:
        """Transmit what waited in front of its reading; bytes are what they are by now."""
        unread, self.unread = self.unread, []
        self.is_unread = lambda src, dst, message: False
        for envelope in unread:
            self.transmit(*envelope)

    # Running -----------------------------------------------------------------------------------

    def deliver(self) -> None:
        """Deliver the oldest message."""
        src, dst, message = self.queue.popleft()
        self.delivered.append((src, dst, message))
        if dst in self.nodes:
            if dst not in self.stopped:
                self.call(dst, "on_message", src, message)
        elif dst in self.gone:
            # Nobody listens there: the connection is refused.
            if src in self.nodes:
                self.call(src, "on_disconnected", dst)
        else:
            self.inbox.setdefault(dst, []).append((src, message))

    def deliver_up_to(self, limit: int) -> None:
        """Deliver so many messages, or until nothing is under way: where it may never end."""
        for _ in range(min(limit, 10_000)):
            if self.queue:
                self.deliver()

    def settle(self, limit: int = 10_000) -> None:
        """Deliver until nothing is under way; no time passes."""
        for _ in range(limit):
            if not self.queue:
                return
            self.deliver()
        raise AssertionError(f"still {len(self.queue)} messages under way after {limit}")

    def run_for(self, duration_ms: int) -> None:
        """Let time pass: timers fire in order, messages are delivered as soon as they are sent."""
        end_us = self.now_us + duration_ms * 1_000
        self.settle()
        while True:
            due = min(self.timers.items(), key=lambda item: (item[1], item[0]), default=None)
            if due is None or due[1] > end_us:
                break
            (name, key), at_us = due
            del self.timers[name, key]
            self.now_us = max(self.now_us, at_us)
            if name not in self.stopped:
                self.call(name, "on_timer", key)
            self.settle()
        self.now_us = end_us

    def noted(self, kind: str, node: str | None = None) -> list[dict[str, Any]]:
        """The arguments of every note of a kind."""
        return [args for name, seen, args in self.notes if seen == kind and node in (None, name)]

    def take(self, client: str) -> list[tuple[str, Message]]:
        """What a test's own client has received since the last call."""
        return self.inbox.pop(client, [])


def send_all(router: Router, src: str, dst: str, messages: Iterable[Message]) -> None:
    """Put a client's requests under way."""
    for message in messages:
        router.queue.append((src, dst, message))
