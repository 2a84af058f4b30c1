"""One machine in a test's hand: virtual time, its timers, and everything that it sent.

Nothing is delivered unless the test does it, so a message is lost by not being answered.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from cluster.effects import Arm, Disarm, Effects, Send, Stopped, TimerKey
from cluster.machine import Machine
from cluster.message import Message
from cluster.names import Now

M = TypeVar("M", bound=Message)


class Driver:
    """See the module.

    Attributes:
        now_us: monotonic and wall clock alike.
        sent: (to, request), oldest first, until the test takes them.
        timers: when each is due.
    """

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.now_us = 0
        self.sent: list[tuple[str, Message]] = []
        self.timers: dict[TimerKey, int] = {}
        self.is_stopped = False
        self.call(machine.on_start)

    @property
    def now(self) -> Now:
        return Now(self.now_us, self.now_us)

    def call(self, handler: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Run a method that takes ``now`` first and ``fx`` second or last."""
        fx = Effects()
        names = handler.__code__.co_varnames  # type: ignore[attr-defined]
        if names.index("fx") == 2:
            result = handler(self.now, fx, *args, **kwargs)
        else:
            result = handler(self.now, *args, fx=fx, **kwargs)
        for effect in fx.drain():
            match effect:
                case Send(to, message):
                    self.sent.append((to, message))
                case Arm(key, at_us):
                    self.timers[key] = at_us
                case Disarm(key):
                    self.timers.pop(key, None)
                case Stopped():
                    self.is_stopped = True
        return result

    # Time --------------------------------------------------------------------------------------

    def advance(self, *, us: int = 0, ms: int = 0) -> None:
        """Let time pass, with the timers that fall into it."""
        end_us = self.now_us + us + ms * 1_000
        fired = 0
        while self.timers:
            key = min(self.timers, key=lambda each: (self.timers[each], str(each)))
            if self.timers[key] > end_us:
                break
            self.now_us = max(self.now_us, self.timers.pop(key))
            self.call(self.machine.on_timer, key)
            fired += 1
            assert fired < 100_000, "timers never come to rest"
        self.now_us = end_us

    # Messages ----------------------------------------------------------------------------------

    def take(self, kind: type[M]) -> list[tuple[str, M]]:
        """The requests of a kind that were sent, oldest first; they are the test's now."""
        found = [(to, message) for to, message in self.sent if isinstance(message, kind)]
        self.sent = [each for each in self.sent if not isinstance(each[1], kind)]
        return found

    def take_one(self, kind: type[M]) -> tuple[str, M]:
        """The only request of its kind that was sent."""
        found = self.take(kind)
        assert len(found) == 1, found
        return found[0]

    def answer(self, src: str, message: Message) -> None:
        self.call(self.machine.on_message, src, message)

    def disconnect(self, peer: str) -> None:
        self.call(self.machine.on_disconnected, peer)
