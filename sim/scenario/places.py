"""Where the keys and values of a TOML document stand in its text.

``tomllib`` tells positions of syntax errors only. ``Places`` goes over a text that ``tomllib`` has
accepted and notes line, column and width of every key and value by its path, also in inline
tables, arrays over several lines, dotted and quoted keys.

Left out: what the values mean, and texts that are no TOML.
"""

from __future__ import annotations

import re
import tomllib
from typing import Final

from attrs import frozen

from sim.scenario.problems import Path

__all__ = ["DEPTH_MAX", "Place", "Places", "TooDeep", "is_shallow"]

DEPTH_MAX: Final = 24
_BLANK: Final = re.compile(r"[ \t]*")
_FILLER: Final = re.compile(r"(?:[ \t\r\n]+|#[^\n]*)*")
_BARE_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")
_STRINGS: Final = (
    re.compile(r'"""(?:[^\\"]|\\.|"(?!""))*"{3,5}', re.DOTALL),
    re.compile(r"'''(?:[^']|'(?!''))*'{3,5}", re.DOTALL),
    re.compile(r'"(?:[^"\\\n]|\\.)*"'),
    re.compile(r"'[^'\n]*'"),
)
_SCALAR: Final = re.compile(r"[^,\]}#\n]*")


class TooDeep(ValueError):
    """Tables or lists within each other beyond ``DEPTH_MAX``.

    Attributes:
        at: where the one too many begins, in characters of the text.
    """

    def __init__(self, at: int) -> None:
        super().__init__(f"nested deeper than {DEPTH_MAX}")
        self.at = at


@frozen
class Place:
    """A span of a document.

    Attributes:
        line, column: from 1.
        width: in characters, on its first line; at least 1.
        inside: how many characters of a text's quotes stand before its first character, or -1
            where positions in the text are not positions in the file (escapes, several lines).
    """

    line: int
    column: int
    width: int
    inside: int = -1


def is_shallow(value: object) -> bool:
    """Whether a plain value is nested no deeper than a document may be."""
    level = [value]
    for _ in range(DEPTH_MAX):
        below: list[object] = []
        for each in level:
            if isinstance(each, dict):
                below += each.values()
            elif isinstance(each, list):
                below += each
        if not below:
            return True
        level = below
    return False


class Places:
    """See the module.

    Attributes:
        lines: the text's lines.
    """

    def __init__(self, text: str) -> None:
        """Args: ``text`` is TOML that ``tomllib`` reads, with line ends ``\\n``.

        Raises:
            TooDeep: something is nested too deeply.
        """
        self.lines = text.split("\n")
        self._text = text
        self._starts = _line_starts(text)
        self._line = 0
        self._keys: dict[Path, Place] = {}
        self._values: dict[Path, Place] = {}
        self._counts: dict[Path, int] = {}
        self._scan()

    def key(self, path: Path) -> Place:
        """The place of a key, or of the nearest thing above it."""
        return self._find(path, self._keys, self._values)

    def value(self, path: Path) -> Place:
        """The place of a value, or of the nearest thing above it."""
        return self._find(path, self._values, self._keys)

    def _find(self, path: Path, first: dict[Path, Place], second: dict[Path, Place]) -> Place:
        found = first.get(path) or second.get(path)
        while found is None and path:
            path = path[:-1]
            found = first.get(path) or second.get(path)
        return found or Place(1, 1, 1)

    # The walk ------------------------------------------------------------------------------------

    def _scan(self) -> None:
        text, at = self._text, 0
        table: Path = ()
        while (at := _skip(_FILLER, text, at)) < len(text):
            if text[at] == "[":
                is_list = text.startswith("[[", at)
                parts, at = self._dotted(at + (2 if is_list else 1))
                table = self._header(parts, is_list=is_list)
                at += 2 if is_list else 1
            else:
                at = self._pair(at, table, 0)

    def _header(self, parts: list[tuple[str, Place]], *, is_list: bool) -> Path:
        path: Path = ()
        for number, (name, place) in enumerate(parts):
            path = (*path, name)
            self._keys.setdefault(path, place)
            if number > DEPTH_MAX:
                raise TooDeep(self._starts[place.line - 1])
            is_last = number + 1 == len(parts)
            if is_last and is_list:
                self._counts[path] = self._counts.get(path, 0) + 1
            if path in self._counts:
                path = (*path, self._counts[path] - 1)
                self._keys.setdefault(path, place)
        return path

    def _pair(self, at: int, table: Path, depth: int) -> int:
        parts, at = self._dotted(at)
        path = table
        for name, place in parts:
            path = (*path, name)
            self._keys.setdefault(path, place)
            if len(path) > DEPTH_MAX:
                raise TooDeep(at)
        return self._value(_skip(_BLANK, self._text, at + 1), path, depth)

    def _dotted(self, at: int) -> tuple[list[tuple[str, Place]], int]:
        """The parts of a key, and where what follows it (``=`` or ``]``) stands."""
        parts = []
        while True:
            at = _skip(_BLANK, self._text, at)
            match = _BARE_KEY.match(self._text, at)
            end = match.end() if match else _string_end(self._text, at)
            raw = self._text[at:end]
            name = raw if match else _unquoted(raw)
            parts.append((name, self._place(at, end)))
            at = _skip(_BLANK, self._text, end)
            if self._text[at : at + 1] != ".":
                return parts, at
            at += 1

    def _value(self, at: int, path: Path, depth: int) -> int:
        text = self._text
        if depth > DEPTH_MAX:
            raise TooDeep(at)
        if text[at] == "[":
            end = self._list(at + 1, path, depth + 1)
        elif text[at] == "{":
            end = self._table(at + 1, path, depth + 1)
        elif text[at] in "\"'":
            end = _string_end(text, at)
        else:
            end = at + len(_SCALAR.match(text, at)[0].rstrip())  # type: ignore[index]
        self._values[path] = self._place(at, end)
        return end

    def _list(self, at: int, path: Path, depth: int) -> int:
        index = 0
        while self._text[at := _skip(_FILLER, self._text, at)] != "]":
            at = self._value(at, (*path, index), depth)
            at = _skip(_FILLER, self._text, at)
            at += self._text[at] == ","
            index += 1
        return at + 1

    def _table(self, at: int, path: Path, depth: int) -> int:
        while self._text[at := _skip(_FILLER, self._text, at)] != "}":
            at = self._pair(at, path, depth)
            at = _skip(_FILLER, self._text, at)
            at += self._text[at] == ","
        return at + 1

    def _place(self, at: int, end: int) -> Place:
        # Things are met in the order of the text, but a value is noted behind what is in it.
        starts, line = self._starts, self._line
        while line + 1 < len(starts) and starts[line + 1] <= at:
            line += 1
        while starts[line] > at:
            line -= 1
        self._line = line
        raw = self._text[at:end]
        width = len(raw.split("\n", 1)[0])
        plain = raw[:1] in ('"', "'") and raw[:3] not in ('"""', "'''") and "\\" not in raw
        inside = 1 if plain else -1
        return Place(line + 1, at - starts[line] + 1, max(1, width), inside)


def _line_starts(text: str) -> list[int]:
    starts = [0]
    for line in text.split("\n")[:-1]:
        starts.append(starts[-1] + len(line) + 1)
    return starts


def _skip(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return match.end() if match else at


def _string_end(text: str, at: int) -> int:
    for pattern in _STRINGS:
        match = pattern.match(text, at)
        if match:
            return match.end()
    raise AssertionError(f"no text in quotes at {at}, and tomllib has accepted it")


def _unquoted(raw: str) -> str:
    """A quoted key's name."""
    if raw[0] == "'" or "\\" not in raw:
        return raw[1:-1]
    (name,) = tomllib.loads(f"key = {raw}").values()
    return str(name)
