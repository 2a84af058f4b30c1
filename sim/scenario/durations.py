"""Durations and times: text with a unit, ``"250ms" "3.5s" "2m"``; inside, integer microseconds.

A number may have a point (``3.5s``); what is finer than a microsecond is refused. Left out: bare
numbers, signs other than of clock offsets, several units in one text.
"""

from __future__ import annotations

import re
from typing import Final

from sim.scenario.problems import Refusal, seen

__all__ = ["DURATION_MAX_US", "UNITS_US", "duration_us", "show_duration"]

UNITS_US: Final = {"us": 1, "ms": 1_000, "s": 1_000_000, "m": 60_000_000, "h": 3_600_000_000}
DURATION_MAX_US: Final = 24 * UNITS_US["h"]
"""A day of virtual time is the most that a file may say anywhere."""

_FORM: Final = re.compile(r"(-?)([0-9]{1,12})(?:\.([0-9]{1,9}))?(us|ms|s|m|h)", re.ASCII)
_ALLOWED: Final = 'write a number and a unit: "250ms", "3.5s", "2m" (us, ms, s, m, h)'


def duration_us(value: object, *, low_us: int = 0, high_us: int = DURATION_MAX_US) -> int:
    """Microseconds of a duration as files spell it.

    Raises:
        Refusal: it is no text of that form, finer than a microsecond, or outside the limits.
    """
    if not isinstance(value, str):
        hint = _ALLOWED
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 100_000:
            hint = f'numbers need a unit and quotes: "{value}s"'
        raise Refusal(f"{seen(value)} is no duration", hint=hint)
    match = _FORM.fullmatch(value)
    if match is None:
        raise Refusal(f"{seen(value)} is no duration", hint=_ALLOWED)
    sign, whole, part, unit = match.groups()
    digits = part or ""
    divisor: int = 10 ** len(digits)
    scaled, rest = divmod(int(whole + digits) * UNITS_US[unit], divisor)
    if rest:
        raise Refusal(f"{seen(value)} is finer than a microsecond", hint="time is in microseconds")
    found = -scaled if sign else scaled
    if not low_us <= found <= high_us:
        allowed = f"{show_duration(low_us)} to {show_duration(high_us)}"
        raise Refusal(f"{seen(value)} is out of range", hint=f"allowed is {allowed}")
    return found


def show_duration(value_us: int) -> str:
    """The shortest text that ``duration_us`` reads back: ``3.5s``, ``250ms``, ``0s``."""
    if value_us < 0:
        return "-" + show_duration(-value_us)
    for unit in ("h", "m"):
        if value_us and value_us % UNITS_US[unit] == 0:
            return f"{value_us // UNITS_US[unit]}{unit}"
    for unit in ("s", "ms"):
        whole, rest = divmod(value_us, UNITS_US[unit])
        if whole or not value_us:
            digits = f"{rest:0{len(str(UNITS_US[unit])) - 1}d}".rstrip("0")
            return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"
    return f"{value_us}us"
