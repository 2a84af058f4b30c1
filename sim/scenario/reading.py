"""Reading scenario files: ``read_scenario(path)`` and ``parse_scenario(text, file)``.

Both return a ``Scenario`` that is right in everything that can be known before it runs, with every
variant tried, or raise ``ScenarioError`` with all problems of the file. A run further asks
``unwired(scenario)`` for what is right but cannot be carried out yet.

Left out: applying variants and ``--set`` (``sim.scenario.effective``).
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path as FilePath
from typing import Any, Final

from sim.scenario.documents import Source, check_document, try_variants
from sim.scenario.model import Scenario
from sim.scenario.places import DEPTH_MAX, Places, TooDeep
from sim.scenario.problems import Problem, ScenarioError

__all__ = ["FILE_BYTES_MAX", "parse_scenario", "read_scenario"]

FILE_BYTES_MAX: Final = 1_000_000
_PLACE: Final = re.compile(r" \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)\Z")
_UNQUOTED: Final = re.compile(
    r"""[^#"']*=\s*([A-Za-z_][\w.:-]*|[0-9][\w.]*[A-Za-z][\w.]*)\s*(#.*)?"""
)
_DIGITS: Final = re.compile(r"[0-9_]{400,}")
_PARTS_MAX: Final = 500
_KEY_PIECES: Final = re.compile(r"""[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*'|[ \t]+|\s|.""")


def read_scenario(path: FilePath | str) -> Scenario:
    """Read and check a file.

    Raises:
        ScenarioError: the file cannot be read, or is wrong.
    """
    file = str(path)
    place = FilePath(path)
    try:
        if place.is_dir():
            raise _refuse(file, "is a folder, not a scenario file")
        if place.exists() and not place.is_file():
            raise _refuse(file, "is no regular file")
        with place.open("rb") as stream:
            data = stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise _refuse(file, "there is no such file") from None
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise _refuse(file, f"cannot be read: {said}") from None
    if len(data) > FILE_BYTES_MAX:
        raise _refuse(file, f"is larger than {FILE_BYTES_MAX:,} bytes; no scenario is")
    return parse_scenario(_decode(data, file), file)


def _decode(data: bytes, file: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line = before.count(b"\n") + 1
        column = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
        shown = data.split(b"\n")[line - 1].decode("utf-8", "replace")
        if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
            raise _refuse(file, "is UTF-16 text; save it as UTF-8") from None
        if b"\0" in data:
            raise _refuse(file, "is no text") from None
        text = f"is no UTF-8 text: byte 0x{data[error.start]:02x}"
        problem = Problem(file, line, column, 1, "", text, source=shown.rstrip("\r"))
        raise ScenarioError([problem]) from None


def parse_scenario(text: str, file: str = "scenario") -> Scenario:
    """Check the text of a file.

    Args:
        file: what messages call it.

    Raises:
        ScenarioError: it is wrong; all problems at once, but a text that is no TOML has only one.
    """
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    # Text that did not come from a file may be as large, and may hold halves of characters.
    if len(text) > FILE_BYTES_MAX:
        raise _refuse(file, f"is larger than {FILE_BYTES_MAX:,} characters; no scenario is")
    if not text.strip():
        raise _refuse(file, "is empty", hint="leaderfall new writes a template")
    if "\0" in text:
        raise _refuse(file, "is no text")
    _check_keys(text, file)
    document = _load(text, file)
    try:
        places = Places(text)
    except TooDeep as error:
        raise _too_deep(text, error.at, file) from None
    source = Source(file, text, places)
    scenario = check_document(document, source)
    try_variants(scenario, source)
    return scenario


def _check_keys(text: str, file: str) -> None:
    """Refuse keys of very many parts, for which ``tomllib`` takes quadratic time."""
    if text.count(".") < _PARTS_MAX:
        return
    run, was_dot = 0, False
    for match in _KEY_PIECES.finditer(text):
        piece = match[0]
        if piece == ".":
            run, was_dot = 0 if was_dot else run + 1, True
            if run > _PARTS_MAX:
                raise _too_deep(text, match.start(), file)
        elif not was_dot and not piece.isspace():
            run = 0
        elif not piece.isspace() or "\n" in piece:
            was_dot = False
            run = 0 if "\n" in piece else run


def _load(text: str, file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ScenarioError([_syntax(text, file, str(error))]) from None
    except RecursionError:
        raise _too_deep(text, _deepest(text), file) from None
    except ValueError:
        # int() refuses thousands of digits, datetime a 30th of February; neither says where.
        match = _DIGITS.search(text)
        if match is None:
            raise _refuse(file, "has a value that is none, such as a date out of range") from None
        line, column = _line_of(text, match.start())
        said = "the number has too many digits"
        problem = Problem(file, line, column, 1, "", said, source=text.split("\n")[line - 1])
        raise ScenarioError([problem]) from None


def _syntax(text: str, file: str, message: str) -> Problem:
    """What ``tomllib`` says, with the line and what is most often meant."""
    lines = text.split("\n")
    match = _PLACE.search(message)
    said = message[: match.start()] if match else message
    if match and match[1]:
        line, column = int(match[1]), int(match[2])
    else:
        line = max((at for at, each in enumerate(lines, 1) if each.strip()), default=1)
        column = len(lines[line - 1]) + 1
        said += " at the end of the file"
    line = min(line, len(lines))
    source = lines[line - 1]
    hint = ""
    unquoted = _UNQUOTED.match(source)
    if "Cannot overwrite" in said or "Cannot declare" in said or "Duplicate" in said:
        said = f"{said}: it is there twice"
        if not source.strip() or column <= 1:
            line, source = max(1, line - 1), lines[max(0, line - 2)]
        column = len(source) - len(source.lstrip()) + 1
        hint = "a key or table stands once; [[step]] begins another step"
    elif unquoted and unquoted[1] not in ("true", "false", "inf", "nan"):
        column = unquoted.start(1) + 1
        hint = f'texts stand in quotes: "{unquoted[1]}"'
    elif source.rstrip().endswith(("{", ",")) and "{" in source:
        hint = "a table in { } stands on one line"
    return Problem(file, line, max(1, column), 1, "", f"this is no TOML: {said}", hint, (), source)


def _deepest(text: str) -> int:
    """Where brackets are open that are too many; quotes are not looked at."""
    depth = 0
    for match in re.finditer(r"[\[\]{}]", text):
        depth += 1 if match[0] in "[{" else -1
        if depth > DEPTH_MAX:
            return match.start()
    return 0


def _too_deep(text: str, at: int, file: str) -> ScenarioError:
    line, column = _line_of(text, at)
    said = f"nested deeper than {DEPTH_MAX}"
    return ScenarioError(
        [Problem(file, line, column, 1, "", said, source=text.split("\n")[line - 1])]
    )


def _line_of(text: str, at: int) -> tuple[int, int]:
    before = text[:at]
    return before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1


def _refuse(file: str, text: str, hint: str = "") -> ScenarioError:
    return ScenarioError([Problem(file, 0, 0, 1, "", text, hint)])
