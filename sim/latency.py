"""How long a frame travels: a constant of the directed link, jitter, and a rare long tail.

All in integers: ``exponential_us`` takes a logarithm from a table in fixed point, so every host
and Python gives the same microsecond. Draws are keyed by the link and by the frame's ordinal on it
(FAULTS C.0); what a rule does to the result is not known here.

Left out: rules (``sim.network_rules``), and order on a link (``sim.network``).
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from attrs import define, field, frozen

from sim.draws import Draws
from storage.values import Copied

__all__ = ["JITTER_CUT", "MODES", "Latency", "NetworkConfig", "exponential_us"]

JITTER_CUT: Final = 10
"""Jitter is never more than so many times its mean."""

MODES: Final = ("stream", "datagram")
CLIENTS: Final = ("same", "immune", "zero-latency")

_BITS: Final = 32
_FRACTION: Final = 16
_STEP_BITS: Final = 8
_LN2: Final = 45_426
"""ln 2 with 16 bits behind the point."""
_BLOCK_BITS: Final = 4
_BLOCK: Final = 1 << _BLOCK_BITS
_UNIFORM: Final = Struct(f">{_BLOCK}I")


def _log2_table() -> tuple[int, ...]:
    """log2(1 + i/256) with 16 bits behind the point, for i in 0..256, by repeated squaring."""
    table = []
    for step in range(1 << _STEP_BITS):
        value, result = ((1 << _STEP_BITS) + step) << 22, 0
        for _ in range(_FRACTION):
            value = value * value >> 30
            result <<= 1
            if value >> 31:
                value >>= 1
                result += 1
        table.append(result)
    return (*table, 1 << _FRACTION)


_LOG2: Final = _log2_table()
_FULL: Final = _BITS << _FRACTION
_MANTISSA: Final = (1 << _FRACTION) - 1


def exponential_us(mean_us: int, uniform: int) -> int:
    """An exponentially distributed number, cut at ``JITTER_CUT`` times its mean.

    Args:
        uniform: 0 to 2^32-1, each as likely.
    """
    value = uniform + 1
    whole = value.bit_length() - 1
    # The 16 bits behind the leading one: 8 choose the step, 8 the place between two steps.
    rest = (value << _FRACTION >> whole) & _MANTISSA
    at, between = rest >> _STEP_BITS, rest & 0xFF
    low = _LOG2[at]
    log2 = (whole << _FRACTION) + low + ((_LOG2[at + 1] - low) * between >> _STEP_BITS)
    jitter_us = mean_us * (_FULL - log2) * _LN2 >> 2 * _FRACTION
    most_us = mean_us * JITTER_CUT
    return jitter_us if jitter_us < most_us else most_us


@frozen(kw_only=True)
class NetworkConfig:
    """How the network is when no rule is active.

    Attributes:
        mode: ``stream``: connections that lose and double nothing, as TCP. ``datagram``: frames
            may also be lost one by one, doubled and reordered.
        base_min_us, base_max_us: the constant of each directed link is drawn from this range once.
        jitter_mean_us: of what is added to it for each frame.
        tail_ppm, tail_max_us: so many of a million frames take up to so much longer.
        clients: links of clients are the ``same`` as others, ``immune`` against rules, or have
            ``zero-latency``.
        connect_timeout_us: who connects to a host without power hears so long later that this
            failed (Kafka: ``socket.connection.setup.timeout.ms``).
    """

    mode: str = "stream"
    base_min_us: int = 200
    base_max_us: int = 600
    jitter_mean_us: int = 50
    tail_ppm: int = 0
    tail_max_us: int = 0
    clients: str = "same"
    connect_timeout_us: int = 10_000_000

    def __attrs_post_init__(self) -> None:
        for name, allowed in (("mode", MODES), ("clients", CLIENTS)):
            if getattr(self, name) not in allowed:
                raise ValueError(
                    f"{name} is {getattr(self, name)!r}, allowed: {', '.join(allowed)}"
                )
        for name, most in (
            ("base_min_us", self.base_max_us),
            ("base_max_us", 1 << 31),
            ("jitter_mean_us", 1 << 31),
            ("tail_ppm", 1_000_000),
            ("tail_max_us", 1 << 31),
            ("connect_timeout_us", 1 << 40),
        ):
            if not 0 <= getattr(self, name) <= most:
                raise ValueError(f"{name} is {getattr(self, name)}, allowed is 0..{most}")


@define(eq=False)
class Latency(Copied):
    """The latencies of one directed link.

    Attributes:
        base_us: the constant.
    """

    base_us: int
    _config: NetworkConfig
    _draws: Draws
    _names: tuple[str, str]
    _is_zero: bool
    _block: int = field(default=-1, init=False)
    _frames_us: tuple[int, ...] = field(default=(), init=False)

    @classmethod
    def of_link(
        cls, config: NetworkConfig, draws: Draws, src: str, dst: str, *, is_zero: bool
    ) -> Latency:
        """As ``config`` says, with the draws of the link; ``is_zero``: no latency at all."""
        width = config.base_max_us - config.base_min_us + 1
        base_us = config.base_min_us + draws.below(width, "link-base", src, dst)
        return cls(base_us, config, draws, (src, dst), is_zero)

    def of_frame(self, ordinal: int) -> int:
        """Of the frame that was sent as number ``ordinal`` on the link, from 0."""
        if ordinal >> _BLOCK_BITS != self._block:
            self._fill(ordinal >> _BLOCK_BITS)
        return self._frames_us[ordinal & _BLOCK - 1]

    def of_end(self, ordinal: int) -> int:
        """Of the end of a connection, which has ordinals of its own."""
        return self._single("link-end", ordinal)

    def of_copy(self, ordinal: int) -> int:
        """Of the second copy of a frame."""
        return self._single("link-copy", ordinal)

    def _fill(self, block: int) -> None:
        """Draw for the frames of a block at once, which is much faster than one by one."""
        mean_us, tail_ppm = self._config.jitter_mean_us, self._config.tail_ppm
        frames_us = [self.base_us] * _BLOCK
        for at, uniform in enumerate(self._uniform("link-frame", block) if mean_us else ()):
            frames_us[at] += exponential_us(mean_us, uniform)
        if tail_ppm:
            sizes = self._uniform("link-tail-size", block)
            for at, uniform in enumerate(self._uniform("link-tail", block)):
                if uniform * 1_000_000 >> _BITS < tail_ppm:
                    frames_us[at] += sizes[at] * (self._config.tail_max_us + 1) >> _BITS
        self._block = block
        self._frames_us = (0,) * _BLOCK if self._is_zero else tuple(frames_us)

    def _uniform(self, stream: str, block: int) -> tuple[int, ...]:
        return _UNIFORM.unpack(self._draws.noise(_UNIFORM.size, stream, *self._names, block))

    def _single(self, stream: str, ordinal: int) -> int:
        if self._is_zero:
            return 0
        bits = self._draws.bits(stream, *self._names, ordinal)
        return self.base_us + exponential_us(self._config.jitter_mean_us, bits >> _BITS)
