"""The router of whole-cluster histories: links that are held one way, disks that are slow, a watch.

``Net`` adds to ``Router`` what a history draws: a way between two nodes whose messages wait, the
loss of what waits (with the connection), flushes and background work of one node that wait, and a
watch that sees every machine right after each of its handlers.

Left out: what the watch looks for (``tests.cluster.whole_watch``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from attrs import define, field

from cluster.effects import Background, Effect, Effects, Fsync, Stopped
from cluster.message import Message
from sim.disks import PowerCut
from tests.cluster.router import Router

Way = tuple[str, str]
"""Source and destination."""


def _nothing(name: str, handler: str, args: tuple[Any, ...], effects: list[Effect]) -> None:
    return


def _no_power_cut(name: str) -> None:
    raise AssertionError(f"the power of {name} went off")


@define(eq=False)
class Net(Router):
    """See the module.

    Attributes:
        held_ways: messages on them wait in ``kept``.
        slow: nodes and kinds (``"fsync"``, ``"background"``) whose effects wait in ``held``.
        watch: told the node, the handler, its arguments and its effects, before these are carried
            out.
        on_power_cut: told the node whose power went off inside a handler.
    """

    held_ways: set[Way] = field(factory=set)
    slow: set[tuple[str, str]] = field(factory=set)
    watch: Callable[[str, str, tuple[Any, ...], list[Effect]], None] = _nothing
    on_power_cut: Callable[[str], None] = _no_power_cut

    def __attrs_post_init__(self) -> None:
        self.is_held = self._on_held_way

    def _on_held_way(self, src: str, dst: str, message: Message) -> bool:
        return (src, dst) in self.held_ways

    # Calling machines --------------------------------------------------------------------------

    def call(self, name: str, handler: str, *args: Any) -> list[Effect]:
        fx = Effects(yields=self.yields.get(name, ()))
        try:
            getattr(self.nodes[name], handler)(self.now, *args, fx)
        except PowerCut:
            # The handler never came to its end, and nothing of it leaves (DECISIONS 2.3).
            self.on_power_cut(name)
            return []
        effects = fx.drain()
        self.watch(name, handler, args, effects)
        for effect in effects:
            if name not in self.nodes:
                break
            self.carry_out(name, effect)
        return effects

    def carry_out(self, name: str, effect: Effect) -> None:
        kind = {Fsync: "fsync", Background: "background"}.get(type(effect))
        if kind is not None and (name, kind) in self.slow:
            self.held.append((name, effect))
        elif isinstance(effect, Stopped):
            # The process ends as soon as it has nothing more to do.
            self.drop(name)
        else:
            super().carry_out(name, effect)

    def transmit(self, src: str, dst: str, message: Message) -> None:
        try:
            super().transmit(src, dst, message)
        except PowerCut:
            self.on_power_cut(src)

    # Processes and links -----------------------------------------------------------------------

    def drop(self, name: str) -> None:
        """The process is gone. Behind a held way nobody hears of it before a time-out.

        What waits on the way to it goes with the connection. What it had sent stays on its way: a
        request of a process that has ended may still arrive.
        """
        if self.nodes.pop(name, None) is None:
            return
        self.gone.add(name)
        for key in [key for key in self.timers if key[0] == name]:
            del self.timers[key]
        self.queue = deque(each for each in self.queue if name not in each[:2])
        self.kept = [each for each in self.kept if each[1] != name]
        self.held = [each for each in self.held if each[0] != name]
        self.stopped_at = [each for each in self.stopped_at if each[0] != name]
        self.yields.pop(name, None)
        for other in sorted(self.nodes):
            if (name, other) not in self.held_ways:
                self.call(other, "on_disconnected", name)

    def reset(self, one: str, other: str) -> None:
        """The connection between two nodes is lost, with what waits on it in both directions."""
        self.kept = [each for each in self.kept if set(each[:2]) != {one, other}]
        for name, peer in ((one, other), (other, one)):
            if name in self.nodes:
                self.call(name, "on_disconnected", peer)
        self.settle()

    def let_through(self, src: str, dst: str, count: int) -> None:
        """Deliver the oldest messages that wait on a way; it stays held."""
        chosen = [each for each in self.kept if each[:2] == (src, dst)][:count]
        self.kept = [each for each in self.kept if not any(each is one for one in chosen)]
        self.queue.extend(chosen)
        self.settle()

    def let_go(self, *ways: Way) -> None:
        """Hold ways no more (all by default) and deliver what waits on them."""
        gone = set(ways) or set(self.held_ways)
        self.held_ways -= gone
        self.queue.extend(each for each in self.kept if each[:2] in gone)
        self.kept = [each for each in self.kept if each[:2] not in gone]
        self.settle()

    def work(self, name: str, count: int) -> None:
        """Do the oldest of a node's flushes and background work that wait."""
        chosen = [each for each in self.held if each[0] == name][:count]
        self.held = [each for each in self.held if not any(each is one for one in chosen)]
        for _, effect in chosen:
            if name in self.nodes:
                if isinstance(effect, Fsync):
                    self.call(name, "on_synced", effect.token)
                elif isinstance(effect, Background):
                    self.call(name, "on_background", effect.partition, effect.work)
        self.settle()
