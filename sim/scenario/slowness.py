"""How much slower: a factor (``10``, ``"1.5x"``) or a duration that is added (``"20ms"``).

Left out: of what.
"""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import frozen

from sim.scenario.durations import duration_us, show_duration
from sim.scenario.kinds import Reader
from sim.scenario.problems import Refusal, seen

__all__ = ["Slowness", "SlownessKind"]

_PPM: Final = 1_000_000
_FACTOR_MAX: Final = 1_000_000
_FACTOR: Final = re.compile(r"([0-9]{1,7})(?:\.([0-9]{1,6}))?x", re.ASCII)


@frozen
class Slowness:
    """A factor in millionths, and what is added."""

    factor_ppm: int = _PPM
    addend_us: int = 0


@frozen
class SlownessKind:
    """See the module."""

    takes_addend: bool = True

    def read(self, value: object, reader: Reader) -> Slowness:
        factor = _factor_ppm(value)
        if factor is not None:
            if not 0 < factor <= _FACTOR_MAX * _PPM:
                raise Refusal(
                    f"{seen(value)} is out of range", hint=f"allowed is up to {_FACTOR_MAX}"
                )
            return Slowness(factor_ppm=factor)
        if not isinstance(value, str) or not self.takes_addend:
            more = ' or a duration to add: "20ms"' if self.takes_addend else ""
            raise Refusal(f"{seen(value)} is no factor", hint=f'write a factor: 10, "1.5x"{more}')
        try:
            return Slowness(addend_us=duration_us(value))
        except Refusal:
            hint = 'write a factor: 10, "1.5x", or a duration to add: "20ms"'
            raise Refusal(f"{seen(value)} is neither factor nor duration", hint=hint) from None

    def schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string"}]}

    def show(self, value: Any) -> Any:
        if value is None or value.addend_us:
            return value and show_duration(value.addend_us)
        return value.factor_ppm // _PPM


def _factor_ppm(value: object) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value * _PPM
    match = _FACTOR.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        return None
    return int(match[1]) * _PPM + int((match[2] or "").ljust(6, "0"))
