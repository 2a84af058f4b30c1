"""Messages and metadata records as bytes and as plain dicts, derived from their classes.

A schema is compiled once per class from its annotations. What may stand there: ``bool``, ``int``
(64 bits, signed), ``str``, ``bytes``, enums, ``X | None``, ``tuple[X, ...]``, named tuples, and
attrs classes of the same.

Bytes, big-endian: an int is ``q``, a bool and the presence of an optional value one byte, an enum
its number as ``h``; text (UTF-8), bytes and tuples have a length ``I`` first; a class is its
fields in order. A registered class is written with its number ``H`` before it. Decoding builds
nothing that the bytes that are there do not justify.

Dicts have strings for keys, enums by name, bytes in hexadecimal: what JSON can hold.

Left out: which classes there are (``cluster.messages``, ``cluster.metadata``).
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from enum import Enum
from struct import Struct
from types import NoneType, UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from attrs import fields as attrs_fields
from attrs import frozen, has

__all__ = ["MalformedMessage", "Registry"]

_Q, _I, _H, _h = Struct(">q"), Struct(">I"), Struct(">H"), Struct(">h")
_T = TypeVar("_T")


class MalformedMessage(ValueError):
    """Bytes or a dict that no message gives. Says where, what was seen and what is allowed."""


@frozen
class _Codec:
    """How one annotation is written and read.

    ``write(value, parts)`` appends bytes; ``read(data, position)`` gives value and next position;
    ``to_plain(value)`` and ``from_plain(value, where)`` are the dict form.
    """

    write: Callable[[Any, list[bytes]], None]
    read: Callable[[bytes, int], tuple[Any, int]]
    to_plain: Callable[[Any], Any]
    from_plain: Callable[[Any, str], Any]


def _shown(value: object) -> str:
    """Short, whatever it is: ``repr`` of what a peer sent may be long, deep, or an error."""
    if value is None or isinstance(value, bool | float):
        return repr(value)
    if isinstance(value, int):
        return repr(value) if value.bit_length() <= 64 else f"of {value.bit_length()} bits"
    if isinstance(value, str | bytes):
        return repr(value[:40]) + ("..." if len(value) > 40 else "")
    if isinstance(value, list | tuple | dict):
        return f"a {type(value).__name__} of {len(value)}"
    return f"a {type(value).__name__}"


def _refuse(where: str, seen: object, allowed: str) -> MalformedMessage:
    return MalformedMessage(f"{where} is {_shown(seen)}, allowed is {allowed}")


def _checked(kind: type, allowed: str) -> Callable[[Any, str], Any]:
    def check(value: Any, where: str) -> Any:
        if value.__class__ is not kind:
            raise _refuse(where, value, allowed)
        return value

    return check


# Single values ---------------------------------------------------------------------------------


def _int_from_plain(value: Any, where: str) -> int:
    if value.__class__ is not int or not -(2**63) <= value < 2**63:
        raise _refuse(where, value, "an integer of 64 bits")
    return int(value)


def _read_bool(data: bytes, position: int) -> tuple[bool, int]:
    value = data[position]
    if value > 1:
        raise _refuse(f"byte {position}", value, "0 or 1")
    return value == 1, position + 1


def _read_block(data: bytes, position: int) -> tuple[bytes, int]:
    start = position + 4
    end = start + _I.unpack_from(data, position)[0]
    if end > len(data):
        raise _refuse(f"length at byte {position}", end - start, f"up to {len(data) - start}")
    return data[start:end], end


def _write_block(block: bytes, parts: list[bytes]) -> None:
    parts.append(_I.pack(len(block)))
    parts.append(block)


def _read_text(data: bytes, position: int) -> tuple[str, int]:
    block, end = _read_block(data, position)
    try:
        return block.decode(), end
    except UnicodeDecodeError as error:
        raise _refuse(f"text at byte {position}", block[:20], "UTF-8") from error


def _text_from_plain(value: Any, where: str) -> str:
    text: str = _checked(str, "text")(value, where)
    try:
        text.encode()
    except UnicodeEncodeError as error:  # half of a surrogate pair, which JSON can hold
        raise _refuse(where, value, "text that UTF-8 can hold") from error
    return text


def _bytes_from_plain(value: Any, where: str) -> bytes:
    try:
        return bytes.fromhex(_checked(str, "hexadecimal text")(value, where))
    except ValueError as error:
        raise _refuse(where, value, "hexadecimal text") from error


_INT = _Codec(
    lambda value, parts: parts.append(_Q.pack(value)),
    lambda data, position: (_Q.unpack_from(data, position)[0], position + 8),
    lambda value: value,
    _int_from_plain,
)
_BOOL = _Codec(
    lambda value, parts: parts.append(b"\x01" if value else b"\x00"),
    _read_bool,
    lambda value: value,
    _checked(bool, "true or false"),
)
_TEXT = _Codec(
    lambda value, parts: _write_block(value.encode(), parts),
    _read_text,
    lambda value: value,
    _text_from_plain,
)
_BYTES = _Codec(_write_block, _read_block, lambda value: value.hex(), _bytes_from_plain)
_SINGLE: dict[type, _Codec] = {int: _INT, bool: _BOOL, str: _TEXT, bytes: _BYTES}


def _enum(kind: type[Enum]) -> _Codec:
    """By ``number`` where members have one, else by their place in the class."""
    numbers = {member: getattr(member, "number", at) for at, member in enumerate(kind)}
    members = {number: member for member, number in numbers.items()}
    names = ", ".join(member.name for member in kind)

    def read(data: bytes, position: int) -> tuple[Enum, int]:
        number = _h.unpack_from(data, position)[0]
        if number not in members:
            raise _refuse(f"{kind.__name__} at byte {position}", number, str(sorted(members)))
        return members[number], position + 2

    def from_plain(value: Any, where: str) -> Enum:
        if value.__class__ is not str or value not in kind.__members__:
            raise _refuse(where, value, names)
        return kind[value]

    return _Codec(
        lambda value, parts: parts.append(_h.pack(numbers[value])),
        read,
        lambda value: value.name,
        from_plain,
    )


# Compound values -------------------------------------------------------------------------------


def _optional(inner: _Codec) -> _Codec:
    def write(value: Any, parts: list[bytes]) -> None:
        parts.append(b"\x00" if value is None else b"\x01")
        if value is not None:
            inner.write(value, parts)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        is_there, position = _read_bool(data, position)
        return inner.read(data, position) if is_there else (None, position)

    return _Codec(
        write,
        read,
        lambda value: None if value is None else inner.to_plain(value),
        lambda value, where: None if value is None else inner.from_plain(value, where),
    )


def _sequence(inner: _Codec) -> _Codec:
    def write(value: Any, parts: list[bytes]) -> None:
        parts.append(_I.pack(len(value)))
        for each in value:
            inner.write(each, parts)

    def read(data: bytes, position: int) -> tuple[tuple[Any, ...], int]:
        count = _I.unpack_from(data, position)[0]
        position += 4
        found = []
        # Every element takes a byte at least, so a lying count runs into the end of the bytes.
        if count > len(data) - position:
            raise _refuse(f"count at byte {position - 4}", count, f"up to {len(data) - position}")
        for _ in range(count):
            each, position = inner.read(data, position)
            found.append(each)
        return tuple(found), position

    def from_plain(value: Any, where: str) -> tuple[Any, ...]:
        if not isinstance(value, list | tuple):
            raise _refuse(where, value, "a list")
        return tuple(inner.from_plain(each, f"{where}[{at}]") for at, each in enumerate(value))

    return _Codec(write, read, lambda value: [inner.to_plain(each) for each in value], from_plain)


def _wrong_keys(where: str, seen: dict[Any, Any], names: tuple[str, ...]) -> MalformedMessage:
    missing = [name for name in names if name not in seen]
    unknown = [_shown(key) for key in seen if key not in names]
    found = [f"misses {', '.join(missing)}"] if missing else []
    if unknown:
        found.append(f"has {', '.join(unknown[:3])}{', ...' if len(unknown) > 3 else ''}")
    return MalformedMessage(f"{where} {' and '.join(found)}, allowed are {', '.join(names)}")


def _record(kind: type, names: tuple[str, ...], codecs: tuple[_Codec, ...]) -> _Codec:
    pairs = tuple(zip(names, codecs, strict=True))
    wanted = frozenset(names)

    def write(value: Any, parts: list[bytes]) -> None:
        for name, codec in pairs:
            codec.write(getattr(value, name), parts)

    def read(data: bytes, position: int) -> tuple[Any, int]:
        values = []
        for codec in codecs:
            value, position = codec.read(data, position)
            values.append(value)
        return kind(*values), position

    def from_plain(value: Any, where: str) -> Any:
        if not isinstance(value, dict):
            raise _refuse(where, value, f"an object with {', '.join(names)}")
        if value.keys() != wanted:
            raise _wrong_keys(where, value, names)
        return kind(*(codec.from_plain(value[name], f"{where}.{name}") for name, codec in pairs))

    return _Codec(
        write,
        read,
        lambda value: {name: codec.to_plain(getattr(value, name)) for name, codec in pairs},
        from_plain,
    )


def _compile(annotation: Any) -> _Codec:
    origin, args = get_origin(annotation), get_args(annotation)
    if annotation in _SINGLE:
        return _SINGLE[annotation]
    if origin in (Union, UnionType) and len(args) == 2 and NoneType in args:
        return _optional(_compile(args[0] if args[1] is NoneType else args[1]))
    if origin is tuple and len(args) == 2 and args[1] is Ellipsis:
        return _sequence(_compile(args[0]))
    if isinstance(annotation, type):
        if issubclass(annotation, Enum):
            return _enum(annotation)
        names: tuple[str, ...] | None = getattr(annotation, "_fields", None)
        if has(annotation):
            names = tuple(field.name for field in attrs_fields(annotation))
        if names is not None:
            hints = get_type_hints(annotation)
            return _record(annotation, names, tuple(_compile(hints[name]) for name in names))
    raise TypeError(f"{annotation!r} has no place in a message")


# The registry ----------------------------------------------------------------------------------


class Registry(Generic[_T]):
    """Classes of one family by number, which is part of the format: append, never reorder."""

    def __init__(self, classes: tuple[type[_T], ...]) -> None:
        self._classes = classes
        self._codecs = tuple(_compile(each) for each in classes)
        self._numbers = {each: number for number, each in enumerate(classes)}
        self._names = {each.__name__: number for number, each in enumerate(classes)}

    @property
    def classes(self) -> tuple[type[_T], ...]:
        """In the order of their numbers."""
        return self._classes

    def encode(self, value: _T) -> bytes:
        """The bytes of an instance of a registered class."""
        number = self._numbers[type(value)]
        parts = [_H.pack(number)]
        self._codecs[number].write(value, parts)
        return b"".join(parts)

    def decode(self, data: bytes) -> _T:
        """The value; all of ``data`` belongs to it.

        Raises:
            MalformedMessage: anything at all is wrong with the bytes.
        """
        try:
            number = _H.unpack_from(data, 0)[0]
            if number >= len(self._classes):
                raise _refuse("number of the class", number, f"0..{len(self._classes) - 1}")
            value, position = self._codecs[number].read(data, 2)
        except (struct.error, IndexError) as error:
            raise MalformedMessage(f"cut short after {len(data)} bytes") from error
        if position != len(data):
            raise _refuse("length", len(data), f"{position}: bytes trail")
        found: _T = value
        return found

    def to_dict(self, value: _T) -> dict[str, Any]:
        """``{"type": class name, ...fields}``."""
        number = self._numbers[type(value)]
        return {"type": type(value).__name__, **self._codecs[number].to_plain(value)}

    def from_dict(self, plain: Any) -> _T:
        """The value that ``to_dict`` gave this for.

        Raises:
            MalformedMessage: a field is missing, unknown, or of another type.
        """
        if not isinstance(plain, dict):
            raise _refuse("message", plain, "an object")
        rest = dict(plain)
        name = rest.pop("type", None)
        if name.__class__ is not str or name not in self._names:
            raise _refuse("type", name, ", ".join(sorted(self._names)))
        found: _T = self._codecs[self._names[name]].from_plain(rest, name)
        return found
