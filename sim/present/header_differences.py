"""What two runs were told to do differently, as their headers say.

Left out: the steps of a scenario, which are events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from sim.present.words import name
from sim.trace.lines import Header, encode

__all__ = ["DIFFERENCES_MAX", "HeaderDifference", "header_differences"]

DIFFERENCES_MAX: Final = 200
_VALUE_MAX: Final = 200
_PLAIN: Final = ("scenario", "variant", "seed", "version")


@frozen
class HeaderDifference:
    """One value.

    Attributes:
        path: as ``options.config.request.timeout.ms``.
        what: ``scenario``, ``variant``, ``seed``, ``version``, ``guard``, ``config``, ``option``,
            ``node`` or ``topic``.
        a, b: the values as JSON, at most ``_VALUE_MAX`` characters of it; None where absent.
    """

    path: str
    what: str
    a: str | None
    b: str | None

    @property
    def text(self) -> str:
        """As people read it, escaped."""
        return (
            f"{name(self.path)}: {_shown(self.a, self.what)} in A, {_shown(self.b, self.what)} in B"
        )


def _shown(value: str | None, what: str) -> str:
    if value in (None, "null"):
        # A header names only guards that are off.
        return "on" if what == "guard" else "absent"
    if what == "guard" and value in ("true", "false"):
        return "on" if value == "true" else "off"
    return name(value.strip('"'))


def header_differences(a: Header, b: Header) -> list[HeaderDifference]:
    """At most ``DIFFERENCES_MAX`` of them."""
    found: list[HeaderDifference] = []
    for each in _all(a, b):
        found.append(each)
        if len(found) == DIFFERENCES_MAX:
            break
    return found


def _all(a: Header, b: Header) -> Iterator[HeaderDifference]:
    for key in _PLAIN:
        yield from _unlike(key, key, getattr(a, key), getattr(b, key))
    yield from _unlike("options", "option", a.options, b.options)
    yield from _unlike("nodes", "node", list(a.nodes), list(b.nodes))
    yield from _unlike("topics", "topic", a.topics, b.topics)


def _unlike(path: str, what: str, a: Any, b: Any) -> Iterator[HeaderDifference]:
    """What differs below a path. A stack, not a recursion, though a header is not deep."""
    waiting = [(path, what, a, b)]
    while waiting:
        path, what, a, b = waiting.pop()
        a, b = _filled(a, b), _filled(b, a)
        if _is_map(a) and _is_map(b):
            keys = [*a, *(key for key in b if key not in a)]
            below = [(key, a.get(key, _ABSENT), b.get(key, _ABSENT)) for key in keys]
        elif _is_list(a) and _is_list(b) and len(a) == len(b) and path != "nodes":
            below = [
                (str(at), one, other) for at, (one, other) in enumerate(zip(a, b, strict=True))
            ]
        else:
            one, other = _value(a), _value(b)
            if one != other:
                yield HeaderDifference(path, what, _cut(one), _cut(other))
            continue
        waiting += reversed(
            [(f"{path}.{key}", _what(path, key, what), one, other) for key, one, other in below]
        )


_ABSENT: Final = object()


def _filled(value: object, other: object) -> object:
    """An empty table where the other side has one and this one none."""
    return {} if value is _ABSENT and _is_map(other) and other else value


def _is_map(value: object) -> bool:
    return isinstance(value, Mapping)


def _is_list(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _what(path: str, key: str, what: str) -> str:
    if path == "options":
        return {"guards": "guard", "config": "config"}.get(key, what)
    return what


def _value(value: Any) -> str | None:
    return None if value is _ABSENT else encode([value])[1:-1]


def _cut(text: str | None) -> str | None:
    if text is None or len(text) <= _VALUE_MAX:
        return text
    return text[: _VALUE_MAX - 1] + "…"
