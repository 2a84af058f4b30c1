"""What leaves a state machine: effects, put in causal order into a collector.

A machine calls its logs directly; everything else that it wants done is one of these values. The
caller drains the collector after each handler and does them in order. An effect holds data only,
so a world with effects under way can be copied.

Left out: carrying them out (package ``sim``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen

from cluster.messages import Message
from cluster.names import Clock, TopicIdPartition
from storage.log_durability import FlushToken, Work

__all__ = [
    "Arm",
    "Background",
    "Disarm",
    "Disconnect",
    "Effect",
    "Effects",
    "Fsync",
    "Note",
    "Reply",
    "Send",
    "Stopped",
    "TimerKey",
    "Yield",
]

TimerKey = tuple[str | int | TopicIdPartition, ...]
"""A timer's name; the first part says what it is for. Arming a key again replaces its deadline."""


@frozen
class Send:
    """A request to another node, over the connection to it."""

    to: str
    message: Message


@frozen
class Reply:
    """The answer to the request of ``message.correlation_id`` that ``to`` sent."""

    to: str
    message: Message


@frozen
class Arm:
    """Call ``on_timer`` with ``key`` when ``clock`` reaches ``at_us``."""

    key: TimerKey
    at_us: int
    clock: Clock = "mono"


@frozen
class Disarm:
    """Forget the timer ``key``, if it is armed."""

    key: TimerKey


@frozen
class Fsync:
    """Wait for the disk, then call ``on_synced`` with ``token``, which completes the flush."""

    token: FlushToken


@frozen
class Background:
    """Work that is due behind a call: give it back through ``on_background``, some time later.

    ``partition`` says whose log it is of; None for the machine's own.
    """

    partition: TopicIdPartition | None
    work: Work


@frozen
class Yield:
    """The handler stops at a named failpoint; ``on_resume`` with the same values goes on."""

    point: str
    args: tuple[Any, ...]


@frozen
class Disconnect:
    """Close the connection to a node: an error that no response can carry (acks 0)."""

    peer: str


@frozen
class Stopped:
    """A controlled shutdown is done: the machine will do nothing more."""


@frozen
class Note:
    """Something worth a line in the trace; changes nothing. ``args`` are plain values."""

    kind: str
    args: tuple[tuple[str, Any], ...]


Effect = Send | Reply | Arm | Disarm | Fsync | Background | Yield | Disconnect | Stopped | Note


class Effects:
    """The collector that a handler writes to.

    What is put behind ``Stopped`` is dropped: a machine that halts in the middle of a handler tells
    nobody anything any more.

    Attributes:
        yields: the failpoints at which a handler is to stop; elsewhere it runs through.
    """

    __slots__ = ("_effects", "_is_stopped", "_stops", "yields")

    def __init__(self, *, yields: Iterable[str] = ()) -> None:
        self._effects: list[Effect] = []
        self._stops: list[Effect] = []
        self._is_stopped = False
        self.yields = frozenset(yields)

    def _put(self, effect: Effect) -> None:
        if not self._is_stopped:
            self._effects.append(effect)

    def send(self, to: str, message: Message) -> None:
        self._put(Send(to, message))

    def reply(self, to: str, message: Message) -> None:
        self._put(Reply(to, message))

    def arm(self, key: TimerKey, at_us: int, clock: Clock = "mono") -> None:
        self._put(Arm(key, at_us, clock))

    def disarm(self, key: TimerKey) -> None:
        self._put(Disarm(key))

    def fsync(self, token: FlushToken) -> None:
        self._put(Fsync(token))

    def background(self, partition: TopicIdPartition | None, work: Iterable[Work]) -> None:
        for each in work:
            self._put(Background(partition, each))

    def disconnect(self, peer: str) -> None:
        self._put(Disconnect(peer))

    def stopped(self) -> None:
        self._put(Stopped())
        self._is_stopped = True

    def note(self, kind: str, **args: Any) -> None:
        self._put(Note(kind, tuple(args.items())))

    def stops_at(self, point: str, *args: Any) -> bool:
        """Whether the handler is to stop here; then its caller returns at once.

        Where it is not, the handler calls what ``on_resume`` would have called. What the handler
        has to do apart from that is done first: its ``Yield`` comes last.
        """
        if point not in self.yields:
            return False
        self._stops.append(Yield(point, args))
        return True

    def drain(self) -> list[Effect]:
        """All effects so far, in order; the collector is empty again."""
        effects = self._effects
        if self._stops and not self._is_stopped:
            effects += self._stops
        self._effects, self._stops, self._is_stopped = [], [], False
        return effects
