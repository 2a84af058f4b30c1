"""What is wrong with a scenario file, and how it is told: all of it at once, each with its place.

A ``Refusal`` is raised where one value is looked at and knows no place; ``Problem`` has place and
source line. Text of the file is shown escaped and cut, whatever is in it.

Left out: finding places (``sim.scenario.places``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Final

from attrs import field, frozen

__all__ = [
    "REFUSALS_MAX",
    "Path",
    "Problem",
    "Refusal",
    "Refusals",
    "ScenarioError",
    "escaped",
    "guess",
    "seen",
]

Path = tuple[str | int, ...]
"""Keys and indexes from the top of a document: ``("step", 2, "crash", "node")``."""

PROBLEMS_SHOWN: Final = 50
REFUSALS_MAX: Final = 100
"""Of one table or list; who has more mistakes than that is told of these first."""
_SEEN_CHARS: Final = 60
_LINE_CHARS: Final = 110
_ALLOWED_SHOWN: Final = 40
_ALLOWED_SHOWN_WITH_GUESS: Final = 12
_LONG_CHARS: Final = 100
_INT_BITS: Final = 64


def escaped(text: str) -> str:
    r"""One line of text in which nothing moves a terminal's cursor: ``\x1b``, ``\u202e``."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else _escape(ord(each)) for each in text)


def _escape(code: int) -> str:
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def seen(value: object) -> str:
    """A value of a file as a message shows it; short, whatever it is."""
    if isinstance(value, str):
        cut = value if len(value) <= _SEEN_CHARS else value[: _SEEN_CHARS - 3] + "..."
        return '"' + escaped(cut) + '"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value) if value.bit_length() <= _INT_BITS else "a number of more than 64 bits"
    if isinstance(value, float):
        return f"{value!r}"
    if isinstance(value, list):
        return f"a list of {len(value)}" if value else "an empty list"
    if isinstance(value, dict):
        return "a table" if value else "an empty table"
    # What programs give; files have dates.
    kind = type(value).__name__
    if kind in ("date", "time", "datetime"):
        return "a date or time"
    return "None" if value is None else f"an object of {kind}"


def guess(word: object, allowed: Iterable[str]) -> str:
    """``did you mean "crash"?``, or nothing."""
    if not isinstance(word, str) or len(word) > _SEEN_CHARS:
        return ""
    known = list(allowed)
    by_lower = {each.lower(): each for each in reversed(known)}
    found = get_close_matches(word.lower(), by_lower, n=1, cutoff=0.6)
    return f"did you mean {seen(by_lower[found[0]])}?" if found else ""


class Refusal(ValueError):
    """One value cannot stand.

    Attributes:
        text: what is wrong: the thing, the value seen.
        hint: what to write instead; may be empty.
        allowed: the values that could stand there, if they can be listed.
        at: path from the value that was looked at to the one that is wrong.
        offset, width: the wrong part of a text, in characters; width 0 for all of it.
        is_key: the key is wrong, not its value.
    """

    def __init__(
        self,
        text: str,
        *,
        hint: str = "",
        allowed: Iterable[str] = (),
        at: Path = (),
        offset: int = 0,
        width: int = 0,
        is_key: bool = False,
    ) -> None:
        super().__init__(text)
        self.text = text
        self.hint = hint
        self.allowed = tuple(allowed)
        self.at = at
        self.offset = offset
        self.width = width
        self.is_key = is_key

    def below(self, *path: str | int) -> Refusal:
        """The same, seen from further up."""
        self.at = (*path, *self.at)
        return self


class Refusals(ValueError):
    """Several, of one table or list."""

    def __init__(self, found: Sequence[Refusal]) -> None:
        self.found = list(found[:REFUSALS_MAX])
        super().__init__("; ".join(each.text for each in self.found))


@frozen
class Problem:
    """One mistake and its place.

    Attributes:
        file: as the user named it, or ``--set PATH``.
        line, column: from 1; line 0 where there is none (the file cannot be read, ``--set``).
        width: of what the caret marks, in characters, at least 1.
        where: ``step 3, at 3.5s``; may be empty.
        text: what is wrong.
        hint: what to do about it; may be empty.
        allowed: what could stand there, if that can be listed.
        source: the line of the file.
    """

    file: str
    line: int
    column: int
    width: int
    where: str
    text: str
    hint: str = ""
    allowed: tuple[str, ...] = ()
    source: str = field(default="", repr=False)

    def lines(self, *, shows_allowed: bool = True) -> list[str]:
        """As the report has it: the place and the text, the source line, carets with the hint."""
        place = f"{self.file}:{self.line}" if self.line else self.file
        where = f"{self.where}: " if self.where else ""
        found = [escaped(f"{place}  {where}{self.text}")]
        margin = " " * 6
        if self.line and self.source:
            shown, column = _window(self.source, self.column)
            marked = escaped(shown[column - 1 : column - 1 + self.width])
            carets = "^" * max(1, min(len(marked), _LINE_CHARS))
            found.append(f"{self.line:>5} | {escaped(shown)}")
            blanks = " " * len(escaped(shown[: column - 1]))
            found.append(f"{margin}| {blanks}{carets} {escaped(self.hint)}".rstrip())
        elif self.hint:
            found.append(f"{margin}| {escaped(self.hint)}")
        if self.allowed and shows_allowed:
            is_guessed = self.hint.startswith("did you mean")
            most = _ALLOWED_SHOWN_WITH_GUESS if is_guessed else _ALLOWED_SHOWN
            found += _allowed_lines(margin, self.allowed, most)
        return found


def _window(source: str, column: int) -> tuple[str, int]:
    """The part of a long line that has the column, and the column in it."""
    source = source.replace("\t", " ")
    if len(source) <= _LINE_CHARS:
        return source, column
    start = max(0, min(column - 1 - _LINE_CHARS // 2, len(source) - _LINE_CHARS))
    return source[start : start + _LINE_CHARS], column - start


def _allowed_lines(margin: str, allowed: tuple[str, ...], most: int) -> list[str]:
    words = [*allowed[:most], *(["..."] if len(allowed) > most else [])]
    found, line = [], f"{margin}| allowed:"
    for at, word in enumerate(words):
        piece = f" {escaped(word)}" + ("," if at + 1 < len(words) else "")
        if len(line) + len(piece) > _LONG_CHARS:
            found.append(line)
            line = f"{margin}|  "
        line += piece
    return [*found, line]


class ScenarioError(Exception):
    """A scenario file, or what was set on the command line, is wrong; nothing was run.

    Attributes:
        problems: all of them, in the order of the file; never empty.
    """

    def __init__(self, problems: Sequence[Problem]) -> None:
        assert problems, "an error without a problem"
        ordered = dict.fromkeys(problems)
        self.problems = sorted(ordered, key=lambda each: (each.file, each.line, each.column))
        super().__init__("\n".join(self.lines()))

    def __reduce__(self) -> tuple[type[ScenarioError], tuple[list[Problem]]]:
        return type(self), (self.problems,)

    def lines(self) -> list[str]:
        """The whole report, with the summary last."""
        found: list[str] = []
        told: set[tuple[str, ...]] = set()
        for problem in self.problems[:PROBLEMS_SHOWN]:
            found += problem.lines(shows_allowed=problem.allowed not in told)
            told.add(problem.allowed)
        more = len(self.problems) - PROBLEMS_SHOWN
        if more > 0:
            found.append(f"... and {more} more")
        count = len(self.problems)
        found.append(f"{count} problem{'s' if count > 1 else ''}, nothing was run (exit 2)")
        return found
