"""Kinds of values: how one key's value is read, and what its JSON Schema is.

Classes of the model declare their keys with ``item(kind, doc, ...)``; ``sim.scenario.structuring``
makes cattrs hooks of that, and ``sim.scenario.schema`` the schema, so both come from one place.
Nothing is coerced: ``"3"`` is no integer, ``true`` is none, ``1.0`` is none.

Left out: keys and tables.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol

from attrs import NOTHING, Attribute, field, frozen

from sim.scenario.durations import DURATION_MAX_US, duration_us, show_duration
from sim.scenario.expressions import EXPRESSION_CHARS_MAX, Expression, expression
from sim.scenario.names import (
    Names,
    checked_id,
    checked_name,
    checked_title,
    checked_topic,
)
from sim.scenario.problems import REFUSALS_MAX, Path, Refusal, Refusals, guess, seen

__all__ = ["Kind", "Plain", "Reader", "doc_of", "item", "key_of", "kind_of"]

_INT64_MAX: Final = 2**63 - 1
_TEXT_CHARS: Final = 10_000
_DURATION_PATTERN: Final = r"^[0-9]{1,12}(\.[0-9]{1,9})?(us|ms|s|m|h)$"


class Reader(Protocol):
    """What a kind may ask for while it reads."""

    names: Names

    def table(self, value: object, cls: type) -> Any:
        """An instance of a class of the model.

        Raises:
            Refusals: everything that is wrong with the value.
        """


class Kind(Protocol):
    """How a value is read."""

    def read(self, value: object, reader: Reader) -> Any:
        """The value as the model has it.

        Raises:
            Refusal: it cannot stand.
            Refusals: several parts of it cannot.
        """

    def schema(self) -> dict[str, Any]:
        """Its JSON Schema."""

    def show(self, value: Any) -> Any:
        """A value of the model as files spell it, for defaults in the schema."""


def item(
    kind: Kind, doc: str, *, default: Any = NOTHING, factory: Any = None, key: str | None = None
) -> Any:
    """One key of a table.

    Args:
        default: where the key is missing; without one it must be there.
        key: as files spell it; by default the attribute's name without a unit.
    """
    metadata = {"kind": kind, "doc": doc, "key": key}
    if factory is not None:
        return field(factory=factory, metadata=metadata)
    return field(default=default, metadata=metadata)


def kind_of(attribute: Attribute[Any]) -> Kind:
    kind: Kind = attribute.metadata["kind"]
    return kind


def key_of(attribute: Attribute[Any]) -> str:
    """The key of an attribute, as files spell it."""
    return attribute.metadata["key"] or attribute.name.removesuffix("_us")


def doc_of(attribute: Attribute[Any]) -> str:
    return str(attribute.metadata["doc"])


@frozen
class Plain:
    """A kind whose values files spell as the model has them."""

    def show(self, value: Any) -> Any:
        return list(value) if isinstance(value, tuple) else value


@frozen
class Integer(Plain):
    """A whole number within limits."""

    low: int = 0
    high: int = _INT64_MAX

    def read(self, value: object, reader: Reader) -> int:
        if not isinstance(value, int) or isinstance(value, bool):
            raise Refusal(f"{seen(value)} is no integer", hint=_integer_hint(value))
        if not self.low <= value <= self.high:
            raise Refusal(
                f"{seen(value)} is out of range", hint=f"allowed is {self.low}..{self.high}"
            )
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "integer", "minimum": self.low, "maximum": self.high}


def _integer_hint(value: object) -> str:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        return f"write {value} without quotes"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return f"write {int(value)}"
    return "write a whole number"


@frozen
class Flag(Plain):
    """True or false."""

    def read(self, value: object, reader: Reader) -> bool:
        if not isinstance(value, bool):
            raise Refusal(f"{seen(value)} is neither true nor false", hint="write true or false")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "boolean"}


@frozen
class Choice(Plain):
    """One of some words."""

    words: tuple[str, ...]

    def read(self, value: object, reader: Reader) -> str:
        if not isinstance(value, str) or value not in self.words:
            hint = guess(value, self.words)
            if isinstance(value, int) and str(value) in self.words:
                hint = f'write "{value}", in quotes'
            raise Refusal(f"unknown value {seen(value)}", hint=hint, allowed=self.words)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "enum": list(self.words)}


@frozen
class Duration(Plain):
    """A duration or a time, in microseconds."""

    low_us: int = 0
    high_us: int = DURATION_MAX_US
    multiple_us: int = 1

    def read(self, value: object, reader: Reader) -> int:
        found = duration_us(value, low_us=self.low_us, high_us=self.high_us)
        if found % self.multiple_us:
            hint = f"allowed are multiples of {show_duration(self.multiple_us)}"
            raise Refusal(f"{seen(value)} is too fine", hint=hint)
        return found

    def schema(self) -> dict[str, Any]:
        pattern = _DURATION_PATTERN
        return {"type": "string", "pattern": pattern if self.low_us >= 0 else "^-?" + pattern[1:]}

    def show(self, value: Any) -> Any:
        return value if value is None else show_duration(value)


@frozen
class DurationRange(Plain):
    """``["500us", "3ms"]``, both included, or one duration for both; microseconds."""

    word: str = ""
    """A word that stands for None."""

    def read(self, value: object, reader: Reader) -> tuple[int, int] | None:
        if self.word and value == self.word:
            return None
        other = f' or "{self.word}"' if self.word else ""
        if isinstance(value, str):
            only = duration_us(value)
            return only, only
        if not isinstance(value, list) or len(value) != 2:
            hint = f'write a duration, or a range: ["1ms", "5ms"]{other}'
            raise Refusal(f"{seen(value)} is no range of durations", hint=hint)
        low, high = _each(value, lambda each: duration_us(each))
        if low > high:
            raise Refusal("the range is upside down", hint=f'write ["{value[1]}", "{value[0]}"]')
        return low, high

    def schema(self) -> dict[str, Any]:
        one = {"type": "string", "pattern": _DURATION_PATTERN}
        forms: list[dict[str, Any]] = [
            one,
            {"type": "array", "items": one, "minItems": 2, "maxItems": 2},
        ]
        return {"anyOf": forms + ([{"const": self.word}] if self.word else [])}

    def show(self, value: Any) -> Any:
        return self.word if value is None else [show_duration(each) for each in value]


@frozen
class Checked(Plain):
    """A text for which a function is asked."""

    check: Callable[[object], str]
    pattern: str = ""

    def read(self, value: object, reader: Reader) -> str:
        return self.check(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", **({"pattern": self.pattern} if self.pattern else {})}


ID: Final = Checked(checked_id, "^[A-Za-z][A-Za-z0-9_-]{0,63}$")
NAME: Final = Checked(checked_name, "^[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}$")
TITLE: Final = Checked(checked_title)
TOPIC_NAME: Final = Checked(checked_topic, "^[A-Za-z0-9._-]{1,249}$")


@frozen
class Text(Plain):
    """Any text, such as the value of a record."""

    def read(self, value: object, reader: Reader) -> str:
        if not isinstance(value, str):
            raise Refusal(f"{seen(value)} is no text", hint="write it in quotes")
        if len(value) > _TEXT_CHARS:
            raise Refusal("the text is too long", hint=f"allowed are {_TEXT_CHARS} characters")
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": _TEXT_CHARS}


@frozen
class Condition(Plain):
    """An expression."""

    def read(self, value: object, reader: Reader) -> Expression:
        return expression(value, reader.names)

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "maxLength": EXPRESSION_CHARS_MAX}


@frozen
class ListOf(Plain):
    """A list of values of one kind; with ``takes_one``, also a value alone."""

    kind: Kind
    low: int = 1
    high: int = 10_000
    takes_one: bool = False
    is_distinct: bool = False
    what: str = "values"

    def read(self, value: object, reader: Reader) -> tuple[Any, ...]:
        if not isinstance(value, list):
            if self.takes_one:
                return (self.kind.read(value, reader),)
            raise Refusal(f"{seen(value)} is no list of {self.what}", hint="write [...]")
        if not self.low <= len(value) <= self.high:
            allowed = f"{self.low} to {self.high}" if self.low != self.high else f"{self.low}"
            raise Refusal(f"{seen(value)}", hint=f"allowed are {allowed} {self.what}")
        found = _each(value, lambda each: self.kind.read(each, reader))
        if self.is_distinct:
            known: set[str] = set()
            for at, each in enumerate(value):
                if str(each) in known:
                    raise Refusal(f"{seen(each)} is there twice", at=(at,))
                known.add(str(each))
        return found

    def schema(self) -> dict[str, Any]:
        one = self.kind.schema()
        many = {"type": "array", "items": one, "minItems": self.low, "maxItems": self.high}
        return {"anyOf": [one, many]} if self.takes_one else many


@frozen
class MapOf(Plain):
    """A table whose keys are checked one by one: frozen pairs, in the order of the file.

    Attributes:
        check: from key and value to the pair as the model has it.
        keys: all that there are, where that is known.
    """

    check: Callable[[str, object, Reader], tuple[str, Any]]
    values: Mapping[str, Any]
    keys: tuple[str, ...] = ()

    def read(self, value: object, reader: Reader) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refusal(f"{seen(value)} is no table", hint="write { key = value }")
        found: dict[str, Any] = {}
        refused: list[Refusal] = []
        for key, each in value.items():
            if len(refused) >= REFUSALS_MAX:
                break
            try:
                name, read = self.check(key, each, reader)
                found[name] = read
            except Refusal as refusal:
                refused.append(refusal.below(key))
            except Refusals as refusals:
                refused += [refusal.below(key) for refusal in refusals.found]
        if refused:
            raise Refusals(refused)
        return found

    def schema(self) -> dict[str, Any]:
        if self.keys:
            properties = {key: dict(self.values) for key in self.keys}
            return {"type": "object", "properties": properties, "additionalProperties": False}
        return {"type": "object", "additionalProperties": dict(self.values)}


@frozen
class Nested(Plain):
    """A table of its own class."""

    cls: type

    def read(self, value: object, reader: Reader) -> Any:
        return reader.table(value, self.cls)

    def schema(self) -> dict[str, Any]:
        return {"$ref": f"#/$defs/{self.cls.__name__}"}

    def show(self, value: Any) -> Any:
        return None


def _each(values: Iterable[object], read: Callable[[object], Any]) -> tuple[Any, ...]:
    """Read all members, or tell all that cannot be read."""
    found: list[Any] = []
    refused: list[Refusal] = []
    for at, value in enumerate(values):
        if len(refused) >= REFUSALS_MAX:
            break
        try:
            found.append(read(value))
        except Refusal as refusal:
            refused.append(refusal.below(at))
        except Refusals as refusals:
            refused += [each.below(at) for each in refusals.found]
    if refused:
        raise Refusals(refused)
    return tuple(found)


def no_such_key(key: str, allowed: Iterable[str], at: Path = ()) -> Refusal:
    """A key that a table does not have."""
    known = sorted(allowed)
    return Refusal(
        f"unknown key {seen(key)}",
        hint=guess(key, known),
        allowed=known,
        at=(*at, key),
        is_key=True,
    )
