"""What rules do to a frame that would be handed to its receiver: resets, and flipped bits.

Left out: what a reset means for the connection (``sim.network``).
"""

from __future__ import annotations

from attrs import define, field

from cluster.messages import MESSAGES
from cluster.wire import MalformedMessage
from sim.draws import Draws
from sim.launching import DRAWS_A_FRAME, Launcher
from sim.links import Active, Frame, Link
from sim.network_rules import Corrupt, ResetOn
from sim.trace.kinds import Kind

__all__ = ["Strikes", "Struck", "flip"]

Struck = tuple[int, Active, str | None]
"""The connection is to be reset: event number, rule, and the end that is not to hear of it."""


def flip(data: bytes, positions: list[int]) -> bytes:
    """``data`` with the bits at these positions flipped; bit 0 is the highest of the first byte."""
    flipped = bytearray(data)
    for position in positions:
        flipped[position >> 3] ^= 0x80 >> (position & 7)
    return bytes(flipped)


@define(eq=False)
class Strikes:
    """See the module.

    Attributes:
        garbled: the events at which bits were flipped in what its receiver could still read.
    """

    _draws: Draws
    _launcher: Launcher
    garbled: set[int] = field(factory=set)

    def strike(self, link: Link, frame: Frame) -> Struck | None:
        """Let the rules of a link strike a frame; it may be another message then."""
        for active in link.rules:
            rule = active.rule
            if not isinstance(rule, ResetOn | Corrupt) or not active.strikes_frame(frame):
                continue
            if rule.times is not None and active.strikes >= rule.times:
                continue
            stream = active.stream(self._draws, link)
            if not stream.chance(rule.ppm, frame.ordinal * DRAWS_A_FRAME):
                continue
            active.strikes += 1
            if isinstance(rule, Corrupt):
                struck = self._corrupt(link, frame, active, rule)
                if struck is not None:
                    return struck
            else:
                more = {} if rule.half_open is None else {"half_open": rule.half_open}
                event = self._launcher.tell(
                    Kind.RESET, link, frame, link.dst, active, why=rule.when, **more
                )
                self._launcher.drop(link, frame, link.dst, "reset", active, event)
                return event, active, rule.half_open
        return None

    def _corrupt(self, link: Link, frame: Frame, active: Active, rule: Corrupt) -> Struck | None:
        assert frame.message is not None
        data = MESSAGES.encode(frame.message)
        stream, size = active.stream(self._draws, link), len(data) * 8
        positions: list[int] = []
        for draw in range(1, min(rule.bits, size) + 1):
            position = stream.bits(frame.ordinal * DRAWS_A_FRAME + draw) * size >> 64
            while position in positions:
                position = (position + 1) % size
            positions.append(position)
        try:
            message = MESSAGES.decode(flip(data, positions))
        except MalformedMessage:
            message = None
        event = self._launcher.tell(
            Kind.CORRUPT,
            link,
            frame,
            link.dst,
            active,
            bits=len(positions),
            positions=sorted(positions),
            is_readable=message is not None,
        )
        if message is None:
            self._launcher.drop(link, frame, link.dst, "unreadable", active, event)
            return event, active, None
        self.garbled.add(event)
        frame.message, frame.event = message, event
        return None
