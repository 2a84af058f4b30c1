"""A view as one JSON document, written piece by piece.

A class becomes an object with its fields in order, a stream an array, a path its text, and the
bytes of a key or value base64. The document is ASCII, so nothing in it can steer a terminal.

Left out: what the fields mean (``storage.inspection.views``).
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator
from json import JSONEncoder
from pathlib import Path
from typing import Any

import attrs

from storage.inspection.views import SCHEMA, View

__all__ = ["write_json"]

Write = Callable[[str], object]


def write_json(view: View, write: Write, exit_status: Callable[[], int]) -> None:
    """Write the document. ``exit_status`` is asked when every stream was read."""
    write(f'{{"schema":{SCHEMA}')
    for name in _names(view):
        write(f',\n"{name}":')
        _write_value(getattr(view, name), write)
    write(f',\n"is_healthy":{_text(view.is_healthy)},\n"exit_status":{exit_status()}}}\n')


def _names(value: Any) -> tuple[str, ...]:
    """The fields of an object; what kind of view or row it is comes first."""
    kind = type(value)
    names = _NAMES.get(kind)
    if names is None:
        plain = [field.name for field in attrs.fields(kind)]
        first = [name for name in plain if name in ("kind", "row")]
        names = _NAMES[kind] = tuple(dict.fromkeys([*first, *plain]))
    return names


_NAMES: dict[type[Any], tuple[str, ...]] = {}
"""What ``_names`` found, by class: it is asked for every row."""


def _write_value(value: Any, write: Write) -> None:
    """A value that may be a stream, or have one among its fields."""
    if isinstance(value, Iterator):
        separator = "[\n"
        for item in value:
            write(separator)
            _write_value(item, write)
            separator = ",\n"
        write("[]" if separator == "[\n" else "\n]")
    elif attrs.has(type(value)) and _has_stream(value):
        separator = "{"
        for name in _names(value):
            write(f'{separator}"{name}":')
            _write_value(getattr(value, name), write)
            separator = ","
        write("}")
    else:
        write(_text(value))


def _has_stream(value: Any) -> bool:
    return any(isinstance(getattr(value, name), Iterator) for name in _names(value))


def _plain(value: Any) -> Any:
    """What JSON has for a value that it does not know."""
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, bytes):
        return b64encode(value).decode()
    return {name: getattr(value, name) for name in _names(value)}


_encode = JSONEncoder(separators=(",", ":"), default=_plain).encode


def _text(value: Any) -> str:
    # JSON leaves DEL alone; inside a string, the only place where it can be, an escape means it.
    return _encode(value).replace("\x7f", "\\u007f")
