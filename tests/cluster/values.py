"""Values for every annotation that a message may have, and what their bytes are by the rules.

Both walk the annotations on their own: nothing here asks ``cluster.wire``.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import attrs
from hypothesis import strategies as st

LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
_INTS = st.one_of(
    st.integers(-2, 3), st.integers(LONG_MIN, LONG_MAX), st.sampled_from([LONG_MIN, LONG_MAX])
)
_TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)
_SINGLE: dict[type, st.SearchStrategy[Any]] = {
    int: _INTS,
    bool: st.booleans(),
    str: st.one_of(st.sampled_from(["", "b1", "orders"]), _TEXTS),
    bytes: st.binary(max_size=6),
}


def field_hints(kind: type) -> dict[str, Any]:
    """Field name to annotation, in the order of the constructor."""
    hints = get_type_hints(kind)
    if attrs.has(kind):
        return {field.name: hints[field.name] for field in attrs.fields(kind)}
    return {name: hints[name] for name in kind._fields}  # type: ignore[attr-defined]


@cache
def strategy(annotation: Any) -> st.SearchStrategy[Any]:
    """Values that the annotation admits."""
    if annotation in _SINGLE:
        return _SINGLE[annotation]
    args = get_args(annotation)
    if get_origin(annotation) is tuple:
        return st.lists(strategy(args[0]), max_size=3).map(tuple)
    if NoneType in args:
        return st.one_of(st.none(), *(strategy(each) for each in args if each is not NoneType))
    if issubclass(annotation, Enum):
        return st.sampled_from(list(annotation))
    return st.builds(annotation, *(strategy(hint) for hint in field_hints(annotation).values()))


def plainest(annotation: Any) -> Any:
    """One value in which nothing is empty, to lead a test into every part of a class."""
    if annotation in _SINGLE:
        return {int: 7, bool: True, str: "b1", bytes: b"\x01\x02"}[annotation]
    args = get_args(annotation)
    if get_origin(annotation) is tuple:
        return (plainest(args[0]), plainest(args[0]))
    if NoneType in args:
        return plainest(next(each for each in args if each is not NoneType))
    if issubclass(annotation, Enum):
        return list(annotation)[-1]
    return annotation(*(plainest(hint) for hint in field_hints(annotation).values()))


def naive_bytes(annotation: Any, value: Any) -> bytes:
    """The bytes that the module's docstring of ``cluster.wire`` prescribes."""

    def block(data: bytes) -> bytes:
        return len(data).to_bytes(4, "big") + data

    if annotation is bool:
        return bytes([value])
    if annotation is int:
        return int(value).to_bytes(8, "big", signed=True)
    if annotation is str:
        return block(value.encode("utf-8"))
    if annotation is bytes:
        return block(value)
    args = get_args(annotation)
    if get_origin(annotation) is tuple:
        return len(value).to_bytes(4, "big") + b"".join(naive_bytes(args[0], v) for v in value)
    if NoneType in args:
        inner = next(each for each in args if each is not NoneType)
        return b"\0" if value is None else b"\1" + naive_bytes(inner, value)
    if issubclass(annotation, Enum):
        number = getattr(value, "number", list(annotation).index(value))
        return int(number).to_bytes(2, "big", signed=True)
    return b"".join(
        naive_bytes(hint, getattr(value, name)) for name, hint in field_hints(annotation).items()
    )
