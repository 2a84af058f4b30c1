"""Parsing the lines of a trace, which may come from anywhere.

Every line is checked in full: keys, types, ranges, kinds. What is wrong raises ``Malformed``, which
names the value seen and the values allowed; the reader adds file and line. A line is ASCII, its
numbers are integers, and its JSON is at most ``DEPTH_MAX`` deep.

Left out: what several lines say together, as the order of events (``sim.trace.reader``).
"""

from __future__ import annotations

import json
from typing import Any, Final, NoReturn

from sim.trace.kinds import Kind
from sim.trace.lines import FORMAT_VERSION, Change, Check, Event, Footer, Header

__all__ = ["DEPTH_MAX", "Line", "Malformed", "parse"]

DEPTH_MAX: Final = 64
"""How deep the JSON of a line may be nested."""
_SHOWN_MAX = 60

Line = Header | Event | Check | Footer


class Malformed(Exception):
    """A line is not one of a trace; the text names the value seen and the values allowed."""


def parse(line: bytes) -> Line:
    """The line, which ends in a newline or not.

    Raises:
        Malformed: it is not one of a trace.
    """
    plain = _load(line)
    if "n" in plain:
        return _event(plain)
    if "check" in plain:
        _demand_keys(plain, _CHECK_KEYS)
        _demand_hex(plain, "digest", "sum")
        return Check(_count(plain, "check", 1), plain["digest"])
    if "end" in plain:
        return _footer(plain)
    if "leaderfall" in plain:
        return _header(plain)
    raise Malformed(
        f"the line is {_shown(plain)}, allowed are a header (leaderfall), an event (n), "
        "a check point (check) and a footer (end)"
    )


def _refuse_number(text: str) -> NoReturn:
    raise Malformed(f"a number is {text[:_SHOWN_MAX]}, allowed are integers")


_DECODER = json.JSONDecoder(parse_float=_refuse_number, parse_constant=_refuse_number)


def _load(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("ascii")
        plain, end = _DECODER.raw_decode(text)
    except UnicodeDecodeError as error:
        raise Malformed(
            f"byte {error.start} is 0x{line[error.start]:02x}, allowed is ASCII"
        ) from None
    except RecursionError:
        raise Malformed(f"the JSON is too deep, at most {DEPTH_MAX} levels are allowed") from None
    except ValueError as error:
        raise Malformed(f"not JSON: {error}"[:200]) from None
    if text[end:] not in ("\n", ""):
        raise Malformed(f"behind the JSON is {_shown(text[end:])}, allowed is a newline")
    if type(plain) is not dict:
        raise Malformed(f"the line is {_shown(plain)}, allowed is a JSON object")
    if text.count("[") + text.count("{") > DEPTH_MAX:
        _demand_depth(plain)
    return plain


def _demand_depth(plain: dict[str, Any]) -> None:
    level: list[Any] = [plain]
    depth = 0
    while level:
        depth += 1
        if depth > DEPTH_MAX:
            raise Malformed(f"the JSON is too deep, at most {DEPTH_MAX} levels are allowed")
        values = (each.values() if isinstance(each, dict) else each for each in level)
        level = [below for each in values for below in each if isinstance(below, dict | list)]


_EVENT_KEYS = ("n", "t", "node", "kind", "cause", "args", "set")
_EVENT_KEY_SET = frozenset(_EVENT_KEYS)
_CHECK_KEYS = ("check", "digest", "sum")
_FOOTER_KEYS = ("end", "verdict", "digest", "violations", "losses", "sum")
_HEADER_KEYS = (
    "leaderfall",
    "version",
    "scenario",
    "variant",
    "seed",
    "options",
    "nodes",
    "topics",
)
_KINDS = {str(kind): kind for kind in Kind}
_NOTHING: tuple[Any, ...] = ()
_HEX = frozenset("0123456789abcdef")


def _event(plain: dict[str, Any]) -> Event:
    if not plain.keys() <= _EVENT_KEY_SET:
        unknown = sorted(plain.keys() - _EVENT_KEY_SET)[0]
        raise Malformed(f"key {_shown(unknown)}, allowed are {', '.join(_EVENT_KEYS)}")
    get = plain.get
    n, t_us, node, args = plain["n"], get("t"), get("node"), get("args")
    if type(n) is not int or n < 1:
        raise _wrong("n", n, "an integer from 1")
    if type(t_us) is not int:
        raise _wrong("t", t_us, "an integer")
    if type(node) is not str:
        raise _wrong("node", node, "a string")
    name = get("kind")
    kind = _KINDS.get(name) if type(name) is str else None
    if kind is None:
        raise _wrong("kind", name, "one of " + ", ".join(_KINDS))
    cause = get("cause", _NOTHING)
    if cause is not _NOTHING:
        if type(cause) is not list or not cause:
            raise _wrong("cause", cause, "a list of event numbers")
        for each in cause:
            if type(each) is not int or not 0 < each < n:
                raise _wrong("cause", each, f"a number from 1 to {n - 1}")
    if args is None:
        args = {}
    elif type(args) is not dict or not args:
        raise _wrong("args", args, "an object with members")
    changes = get("set", _NOTHING)
    if changes is not _NOTHING:
        changes = _changes(changes)
    return Event(n, t_us, node, kind, tuple(cause), args, changes)


def _changes(plain: object) -> tuple[Change, ...]:
    if type(plain) is not list or not plain:
        raise _wrong("set", plain, "a list of changes [path, old, new]")
    for change in plain:
        if type(change) is not list or len(change) != 3 or type(change[0]) is not str:
            raise _wrong("set", change, "a change [path, old, new]")
    return tuple((path, old, new) for path, old, new in plain)


def _header(plain: dict[str, Any]) -> Header:
    if plain["leaderfall"] != FORMAT_VERSION or type(plain["leaderfall"]) is not int:
        raise _wrong("leaderfall", plain["leaderfall"], f"{FORMAT_VERSION}, the trace's format")
    _demand_keys(plain, _HEADER_KEYS)
    for key in ("version", "scenario", "variant"):
        value = plain[key]
        if type(value) is not str and (key == "version" or value is not None):
            raise _wrong(key, value, "a string")
    if type(plain["options"]) is not dict:
        raise _wrong("options", plain["options"], "an object")
    nodes = plain["nodes"]
    if type(nodes) is not list or any(type(node) is not str for node in nodes):
        raise _wrong("nodes", nodes, "a list of strings")
    if type(plain["topics"]) not in (dict, list):
        raise _wrong("topics", plain["topics"], "an object or a list")
    return Header(
        plain["version"],
        plain["scenario"],
        plain["variant"],
        _count(plain, "seed"),
        plain["options"],
        tuple(nodes),
        plain["topics"],
    )


def _footer(plain: dict[str, Any]) -> Footer:
    _demand_keys(plain, _FOOTER_KEYS)
    if type(plain["verdict"]) is not str:
        raise _wrong("verdict", plain["verdict"], "a string")
    for key in ("violations", "losses"):
        if type(plain[key]) is not list:
            raise _wrong(key, plain[key], "a list")
    _demand_hex(plain, "digest", "sum")
    violations, losses = tuple(plain["violations"]), tuple(plain["losses"])
    return Footer(_count(plain, "end"), plain["verdict"], plain["digest"], violations, losses)


def _demand_keys(plain: dict[str, Any], keys: tuple[str, ...]) -> None:
    if tuple(plain) != keys:
        raise Malformed(f"the keys are {_shown(list(plain))}, allowed are {', '.join(keys)}")


def _count(plain: dict[str, Any], key: str, least: int = 0) -> int:
    value = plain[key]
    if type(value) is not int or value < least:
        raise _wrong(key, value, f"an integer from {least}")
    return value


def _demand_hex(plain: dict[str, Any], *keys: str) -> None:
    for key in keys:
        value = plain[key]
        if type(value) is not str or len(value) != 32 or not set(value) <= _HEX:
            raise _wrong(key, value, "32 hex digits")


def _wrong(key: str, value: object, allowed: str) -> Malformed:
    return Malformed(f"{key} is {_shown(value)}, allowed is {allowed}")


def _shown(value: object) -> str:
    text = json.dumps(value)
    return text if len(text) <= _SHOWN_MAX else text[:_SHOWN_MAX] + "..."
