"""From a frame that leaves to its arrival on the timeline: latency, order, and rules on the way.

``Launcher`` gives every frame a time of arrival behind the one before it on the link, unless a
rule drops it, holds it, or makes it late. It also keeps the rules, and lets go what they held.

Rules are looked at when a frame leaves (here) and again when it arrives (``sim.network``). What is
on the timeline already is never searched for.

Left out: connections and arrivals (``sim.network``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final

from attrs import define, field

from sim.draws import Draws
from sim.latency import NetworkConfig
from sim.links import Active, Connection, Doom, Frame, Link
from sim.network_hosts import Emits
from sim.network_rules import (
    MILLION,
    Clog,
    Cut,
    Duplicate,
    Loss,
    Reorder,
    Rule,
    Slow,
)
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind

__all__ = ["LOSSES_MAX", "RETRY_US", "Launcher", "holds", "is_sent_again", "next_retry_us"]

RETRY_US: Final = 200_000
"""What is lost is sent again after so long, then after twice as long, and so on."""
LOSSES_MAX: Final = 6
"""So many losses of one frame, and its connection fails."""
DRAWS_A_FRAME: Final = 64
"""A rule may draw so many times for a frame."""


def holds(rule: Rule) -> bool:
    """Whether what it strikes waits for its end."""
    return isinstance(rule, Clog) or (isinstance(rule, Cut) and rule.in_flight == "hold")


def is_sent_again(rule: Rule) -> bool:
    """Whether what it holds is in the sender's host, not in the network."""
    return isinstance(rule, Cut) and rule.backoff_cap_us > 0


def next_retry_us(since_us: int, now_us: int, cap_us: int) -> int:
    """When a sender tries again, at ``now_us`` or after, that has tried since ``since_us``."""
    at_us, delay_us = since_us, RETRY_US
    while delay_us < cap_us:
        at_us += delay_us
        if at_us >= now_us:
            return at_us
        delay_us *= 2
    return at_us + max(1, -(-(now_us - at_us) // cap_us)) * cap_us


@define(eq=False)
class Launcher:
    """See the module.

    Attributes:
        arrive: called when the next frame of a link is due.
        arrive_loose: called when a frame is due that keeps no order.
        fail: called when a rule's losses make a connection fail.
        active: the rules, in the order in which they were added.
    """

    _timeline: Timeline
    _draws: Draws
    _trace: Emits
    _mode: str
    arrive: Callable[[Link], None]
    arrive_loose: Callable[[Link, Frame], None]
    fail: Callable[[Link, Frame, Active], None]
    active: list[Active] = field(factory=list)

    # Leaving -----------------------------------------------------------------------------------

    def launch(self, link: Link, frame: Frame) -> None:
        """A frame leaves now."""
        link.launched += 1
        frame.place = link.launched
        if not link.is_plain or frame.message is None:
            self._launch_slow(link, frame)
            return
        due_us = self._timeline.now_us + link.latency.of_frame(frame.ordinal)
        if due_us <= link.last_us:
            due_us = link.last_us + 1
        link.last_us = frame.due_us = due_us
        link.flying.append(frame)
        self._timeline.at(due_us, EventClass.DELIVERY, link.origin, self.arrive, link)

    @staticmethod
    def end(link: Link, connection: Connection, cause: int, departs_us: int) -> Frame:
        """The news, for ``link.dst``, that a connection has ended."""
        frame = Frame(connection, None, cause, link.ended, departs_us)
        link.ended += 1
        connection.is_told[link.reverse.side] = True
        return frame

    def _launch_slow(self, link: Link, frame: Frame) -> None:
        rules = [active for active in link.rules if active.strikes_frame(frame)]
        for active in rules:
            if isinstance(active.rule, Cut) and active.rule.in_flight != "hold":
                active.strikes += 1
                self.drop(link, frame, link.src, "cut", active)
                return
        if frame.message is None:
            latency_us = link.latency.of_end(frame.ordinal)
        else:
            latency_us = link.latency.of_frame(frame.ordinal)
        latency_us = self._slowed(rules, latency_us)
        if frame.message is not None and self._is_lost(link, frame, rules):
            return
        self._fly(link, frame, rules, latency_us)

    @staticmethod
    def _slowed(rules: list[Active], latency_us: int) -> int:
        for active in rules:
            if isinstance(active.rule, Slow):
                latency_us = latency_us * active.rule.factor_ppm // MILLION + active.rule.addend_us
        return latency_us

    def _is_lost(self, link: Link, frame: Frame, rules: list[Active]) -> bool:
        """Whether losses end the frame's way; else they may have put its time of arrival off."""
        for active in rules:
            rule = active.rule
            if not isinstance(rule, Loss):
                continue
            stream, key = active.stream(self._draws, link), frame.ordinal * DRAWS_A_FRAME
            losses = 0
            while losses < LOSSES_MAX and stream.chance(rule.ppm, key + losses):
                losses += 1
                if self._mode == "datagram":
                    active.strikes += 1
                    self.drop(link, frame, link.src, "loss", active)
                    return True
            if not losses:
                continue
            active.strikes += 1
            delay_us = RETRY_US * ((1 << losses) - 1)
            frame.event = self.tell(
                Kind.DELAY, link, frame, link.src, active, by_us=delay_us, lost=losses
            )
            frame.late_us += delay_us
            if losses == LOSSES_MAX:
                # What was sent behind it waits for it, and will find the connection broken.
                at_us = max(link.last_us + 1, self._timeline.now_us + frame.late_us)
                link.last_us = at_us
                self._timeline.at(
                    at_us, EventClass.DELIVERY, link.origin, self.fail, link, frame, active
                )
                return True
        return False

    def _fly(self, link: Link, frame: Frame, rules: list[Active], latency_us: int) -> None:
        frame.departs_us = self._timeline.now_us + frame.late_us
        due_us = frame.departs_us + latency_us
        if frame.message is not None and self._mode == "datagram":
            self._double(link, frame, rules)
            later_us = self._later_us(link, frame, rules)
            if later_us is not None:
                frame.due_us = due_us + later_us
                self._fly_loose(link, frame)
                return
        if due_us <= link.last_us:
            due_us = link.last_us + 1
        link.last_us = frame.due_us = due_us
        for active in rules:
            if holds(active.rule):
                self.hold(link, frame, link.src, active)
                return
        link.flying.append(frame)
        self._timeline.at(due_us, EventClass.DELIVERY, link.origin, self.arrive, link)

    def _fly_loose(self, link: Link, frame: Frame) -> None:
        link.loose += 1
        self._timeline.at(
            frame.due_us, EventClass.DELIVERY, link.origin, self.arrive_loose, link, frame
        )

    def _double(self, link: Link, frame: Frame, rules: list[Active]) -> None:
        for active in rules:
            rule = active.rule
            if isinstance(rule, Duplicate) and self._chance(active, rule.ppm, link, frame):
                active.strikes += 1
                copy = frame.copy()
                copy.event = self.tell(Kind.DUPLICATE, link, frame, link.src, active)
                latency_us = self._slowed(rules, link.latency.of_copy(frame.ordinal))
                copy.due_us = self._timeline.now_us + latency_us + frame.late_us
                self._fly_loose(link, copy)

    def _later_us(self, link: Link, frame: Frame, rules: list[Active]) -> int | None:
        for active in rules:
            rule = active.rule
            if isinstance(rule, Reorder) and self._chance(active, rule.ppm, link, frame):
                active.strikes += 1
                key = frame.ordinal * DRAWS_A_FRAME + 1
                later_us = 1 + active.stream(self._draws, link).below(rule.up_to_us, key)
                frame.event = self.tell(Kind.DELAY, link, frame, link.src, active, by_us=later_us)
                return later_us
        return None

    def _chance(self, active: Active, ppm: int, link: Link, frame: Frame) -> bool:
        stream = active.stream(self._draws, link)
        return stream.chance(ppm, frame.ordinal * DRAWS_A_FRAME)

    # Rules -------------------------------------------------------------------------------------

    def add(self, rule: Rule, config: NetworkConfig, cause: tuple[int, ...]) -> Active:
        """See ``Network.add``."""
        if isinstance(rule, Duplicate | Reorder) and config.mode != "datagram":
            raise rule.refuse("mode of the network", repr(config.mode), "datagram")
        if any(active.rule.id == rule.id for active in self.active):
            raise rule.refuse("id", repr(rule.id), "one that no active rule has")
        active = Active(rule, rule.names(), cause)
        self.active.append(active)
        return active

    def doom(self, links: Iterable[Link], active: Active) -> None:
        """What is under way on links that are cut will not arrive."""
        for link in links:
            if active in link.rules and (link.flying or link.loose or link.held):
                link.dooms.append(Doom(link.launched, active))
                link.set_plain()

    def hold(self, link: Link, frame: Frame, node: str, active: Active) -> None:
        """Keep a frame until the end of a rule."""
        active.strikes += 1
        active.held_since_us.setdefault((link.src, link.dst), self._timeline.now_us)
        frame.event = self.tell(Kind.HOLD, link, frame, node, active)
        link.held.append((active, frame))

    def release(self, link: Link, active: Active) -> None:
        """A rule has ended: what it held arrives, at its end or at the next retransmission."""
        since_us = active.held_since_us.pop((link.src, link.dst), None)
        frames = [frame for by, frame in link.held if by is active]
        if since_us is None or not frames:
            return
        at_us = self._timeline.now_us
        if isinstance(active.rule, Cut) and active.rule.backoff_cap_us:
            at_us = next_retry_us(since_us, at_us, active.rule.backoff_cap_us)
        link.held = [(by, frame) for by, frame in link.held if by is not active]
        for frame in sorted(frames, key=lambda frame: frame.place):
            frame.due_us = at_us = max(at_us, frame.due_us)
            self._timeline.at(at_us, EventClass.DELIVERY, link.origin, self.arrive, link)
            at_us += 1
        link.last_us = max(link.last_us, at_us - 1)
        link.put_back(frames)

    # The trace ---------------------------------------------------------------------------------

    def drop(
        self,
        link: Link,
        frame: Frame,
        node: str,
        why: str,
        by: Active | None = None,
        *causes: int,
    ) -> int:
        """A frame will never arrive; returns the number of the event that says so."""
        if frame.message is None:
            frame.connection.is_told[link.reverse.side] = False
        return self.tell(Kind.DROP, link, frame, node, by, *causes, why=why)

    def tell(
        self,
        kind: Kind,
        link: Link,
        frame: Frame,
        node: str,
        by: Active | None,
        *causes: int,
        **more: Any,
    ) -> int:
        """Something happened to a frame; returns the event's number."""
        args: dict[str, Any] = {"from": link.src, "to": link.dst, "type": frame.type_name}
        if frame.message is not None:
            args["id"] = frame.message.correlation_id
        args.update(more)
        cause = [number for number in (frame.event, *causes) if number]
        if by is not None:
            args["fault"] = by.rule.id
            cause += by.cause
        return self._trace.emit(self._timeline.now_us, node, kind, sorted(set(cause)), args)
