"""Text that cannot steer a terminal: bytes, names and times as people read them.

Everything that comes from a file passes through here before it is printed. What stays as it is can
be printed (``str.isprintable``: no control, format, surrogate or private character); the rest
becomes an escape, and a backslash two of them, so that what was there can be told from what is
shown.
"""

from __future__ import annotations

from typing import Final

__all__ = ["plain", "quoted", "safe", "utc"]

_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_DAY_MS: Final = 86_400_000
_YEAR_10000_MS: Final = 253_402_300_800_000


def plain(text: str) -> str:
    """A name or other text from a file, escaped where need be."""
    return safe(text.replace("\\", "\\\\"))


def safe(text: str) -> str:
    """A message of ours: the same, but its backslashes stay, since they may be escapes already."""
    return text if text.isprintable() else "".join(map(_escaped, text))


def quoted(data: bytes) -> str:
    """Bytes in double quotes: as UTF-8 where they are, else ASCII and ``\\xNN``."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = data.decode("ascii", errors="surrogateescape")
    return '"' + plain(text).replace('"', '\\"') + '"'


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is no UTF-8, in a file name or a value
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x20 or code == 0x7F:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def utc(timestamp_ms: int) -> str:
    """A timestamp in milliseconds since 1970 as ISO 8601 in UTC; ``-`` for -1, which means none.

    A number outside the years 1970 to 9999 is shown as it is. (No ``datetime``: storage knows no
    clock, and this needs none.)
    """
    if timestamp_ms == -1:
        return "-"
    if not 0 <= timestamp_ms < _YEAR_10000_MS:
        return str(timestamp_ms)
    days, rest_ms = divmod(timestamp_ms, _DAY_MS)
    year, month, day = _civil(days)
    seconds, ms = divmod(rest_ms, 1_000)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    return f"{year:04d}-{month:02d}-{day:02d}T{hour:02d}:{minute:02d}:{second:02d}.{ms:03d}Z"


def _civil(days: int) -> tuple[int, int, int]:
    """Year, month and day of a number of days since 1970-01-01.

    Counted in eras of 400 years that begin on a first of March, so that a leap day comes last.
    """
    era, day_of_era = divmod(days + 719_468, 146_097)
    leaps = day_of_era // 1_460 - day_of_era // 36_524 + day_of_era // 146_096
    year_of_era = (day_of_era - leaps) // 365
    day_of_year = day_of_era - (365 * year_of_era + year_of_era // 4 - year_of_era // 100)
    shifted = (5 * day_of_year + 2) // 153
    day = day_of_year - (153 * shifted + 2) // 5 + 1
    month = shifted + 3 if shifted < 10 else shifted - 9
    return era * 400 + year_of_era + (month <= 2), month, day
