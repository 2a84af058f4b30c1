"""The codec itself, on classes made for it: each annotation, and what peers may do to it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple, Optional

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st

from cluster.messages import MESSAGES
from cluster.wire import MalformedMessage, Registry
from tests.cluster.values import naive_bytes, plainest, strategy


class Colour(Enum):
    """Travels by its place, not by its value."""

    RED = 30
    BLUE = 10


class Numbered(Enum):
    """Travels by its number."""

    LOW = -3
    HIGH = 32_000

    @property
    def number(self) -> int:
        return int(self.value)


class Point(NamedTuple):
    x: int
    label: str = "p"


@frozen
class Inner:
    points: tuple[Point, ...]
    blob: bytes


@frozen
class Everything:
    integer: int
    flag: bool
    text: str
    blob: bytes
    colour: Colour
    numbered: Numbered
    maybe: int | None
    perhaps: Optional[Point]  # noqa: UP045 - the older spelling of the same
    several: tuple[tuple[str, ...], ...]
    inner: Inner


@frozen
class Text:
    text: str


@frozen
class Sequence:
    points: tuple[Point, ...]


ALL: Registry[Any] = Registry((Everything, Text, Sequence))


def refusal(plain: object) -> str:
    with pytest.raises(MalformedMessage) as caught:
        ALL.from_dict(plain)
    return str(caught.value)


@given(strategy(Everything))
def test_every_annotation_goes_there_and_back(value: Everything) -> None:
    encoded = ALL.encode(value)
    assert encoded == b"\0\0" + naive_bytes(Everything, value)
    assert ALL.decode(encoded) == value
    assert ALL.from_dict(ALL.to_dict(value)) == value


def test_enums_travel_by_number_where_they_have_one_and_else_by_place() -> None:
    value = plainest(Everything)
    assert naive_bytes(Colour, Colour.BLUE) == b"\0\1"
    assert naive_bytes(Numbered, Numbered.LOW) == b"\xff\xfd"
    assert ALL.to_dict(value)["colour"] == "BLUE"
    assert b"\0\1\x7d\0" in ALL.encode(value)


def test_the_dict_form_is_plain() -> None:
    assert ALL.to_dict(plainest(Everything)) == {
        "type": "Everything",
        "integer": 7,
        "flag": True,
        "text": "b1",
        "blob": "0102",
        "colour": "BLUE",
        "numbered": "HIGH",
        "maybe": 7,
        "perhaps": {"x": 7, "label": "b1"},
        "several": [["b1", "b1"], ["b1", "b1"]],
        "inner": {"points": [{"x": 7, "label": "b1"}] * 2, "blob": "0102"},
    }


@pytest.mark.parametrize(
    "annotation",
    [float, list, dict[str, int], tuple[int, str], int | str, int | str | None, Mapping, object],
)
def test_an_annotation_without_a_place_in_messages_is_refused_at_once(annotation: Any) -> None:
    kind = frozen(type("Odd", (), {"__annotations__": {"field": annotation}}))
    with pytest.raises(TypeError, match="has no place in a message"):
        Registry((kind,))


# Bytes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "cut short after 0 bytes"),
        (b"\0", "cut short after 1 bytes"),
        (b"\0\3", r"number of the class is 3, allowed is 0\.\.2"),
        (b"\0\1", "cut short after 2 bytes"),
        (b"\0\1\0\0\0\5abcd", "length at byte 2 is 5, allowed is up to 4"),
        (b"\0\1\0\0\0\2\xff\xfe", "text at byte 2 is b'.xff.xfe', allowed is UTF-8"),
        (b"\0\1\0\0\0\3\xed\xa0\x80", "text at byte 2 .* allowed is UTF-8"),
        (b"\0\1\0\0\0\1ab", "length is 8, allowed is 7: bytes trail"),
        (b"\0\2\0\0\0\5abcd", "count at byte 2 is 5, allowed is up to 4"),
        (b"\0\2\0\0\0\4abcd", "cut short after 10 bytes"),
        (b"\0\0" + b"\0" * 8 + b"\2", "byte 10 is 2, allowed is 0 or 1"),
    ],
)
def test_malformed_bytes_are_explained(data: bytes, said: str) -> None:
    with pytest.raises(MalformedMessage, match=said):
        ALL.decode(data)


def test_an_enum_number_without_a_member_is_malformed() -> None:
    start = b"\0\0" + b"\0" * 8 + b"\1" + b"\0" * 8
    with pytest.raises(MalformedMessage, match=r"Colour at byte 19 is 2, allowed is \[0, 1\]"):
        ALL.decode(start + b"\0\2")
    with pytest.raises(MalformedMessage, match=r"Numbered at byte 21 is 0, allowed is \[-3, 3"):
        ALL.decode(start + b"\0\0\0\0")


@pytest.mark.parametrize("size", [0, 100, 20_000])
def test_a_lying_count_or_length_allocates_no_more_than_the_bytes_that_are_there(
    size: int,
) -> None:
    rest = b"\0" * size
    lies = [b"\0\1\xff\xff\xff\xff", b"\0\2\xff\xff\xff\xff", b"\0\2" + size.to_bytes(4, "big")]
    for number in range(len(MESSAGES.classes)):
        lies.append(number.to_bytes(2, "big") + b"\0" * 8 + b"\xff\xff\xff\xff")
    for at, lie in enumerate(lies):
        registry: Registry[Any] = ALL if at < 3 else MESSAGES
        tracemalloc.start()
        try:
            registry.decode(lie + rest)
        except MalformedMessage:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        assert peak < 20_000 + 40 * size, lie


@given(st.binary(max_size=120))
def test_random_bytes_give_a_value_or_are_malformed(data: bytes) -> None:
    for number in (0, 1, 2):
        encoded = bytes([0, number]) + data
        try:
            value = ALL.decode(encoded)
        except MalformedMessage:
            continue
        assert ALL.encode(value) == encoded


# Dicts -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [None, 1, [], {}, (), "Nothing", "text", b"Text", True])
def test_a_type_that_is_no_name_is_malformed(name: object) -> None:
    said = refusal({"type": name, "text": "x"})
    assert said.startswith("type is ")
    assert said.endswith("allowed is Everything, Sequence, Text")


@pytest.mark.parametrize("plain", [None, 1, "x", [], b"", [{"type": "Text", "text": ""}]])
def test_what_is_no_object_is_malformed(plain: object) -> None:
    assert refusal(plain).startswith("message is ")


def test_missing_and_unknown_keys_are_named() -> None:
    assert refusal({}) == "type is None, allowed is Everything, Sequence, Text"
    assert refusal({"type": "Text"}) == "Text misses text, allowed are text"
    assert refusal({"type": "Text", "text": "", "b": 1}) == "Text has 'b', allowed are text"
    assert refusal({"type": "Text", 1: "", None: 2}) == (
        "Text misses text and has 1, None, allowed are text"
    )
    many = {"type": "Text", "text": "", **dict.fromkeys("abcde", 1)}
    assert refusal(many) == "Text has 'a', 'b', 'c', ..., allowed are text"


def test_a_nested_place_is_named_by_its_path() -> None:
    points = [{"x": 1, "label": "a"}, {"x": 1, "label": 2}]
    said = refusal({"type": "Sequence", "points": points})
    assert said == "Sequence.points[1].label is 2, allowed is text"
    assert refusal({"type": "Sequence", "points": [[1, "a"]]}) == (
        "Sequence.points[0] is a list of 2, allowed is an object with x, label"
    )
    assert refusal({"type": "Sequence", "points": "ab"}) == (
        "Sequence.points is 'ab', allowed is a list"
    )


def test_what_stands_for_another_kind_is_malformed() -> None:
    good = ALL.to_dict(plainest(Everything))
    for name, value, said in [
        ("integer", True, "is True, allowed is an integer of 64 bits"),
        ("integer", 7.0, "is 7.0, allowed is an integer of 64 bits"),
        ("integer", 2**63, f"is {2**63}, allowed is an integer of 64 bits"),
        ("integer", -(2**63) - 1, f"is {-(2**63) - 1}, allowed is an integer of 64 bits"),
        ("integer", 10**5_000, "is of 16610 bits, allowed is an integer of 64 bits"),
        ("flag", 1, "is 1, allowed is true or false"),
        ("blob", "0g", "is '0g', allowed is hexadecimal text"),
        ("blob", b"00", "is b'00', allowed is hexadecimal text"),
        ("text", "\ud800", "is '\\ud800', allowed is text that UTF-8 can hold"),
        ("text", b"a" * 50, f"is b'{'a' * 40}'..., allowed is text"),
        ("colour", "GREEN", "is 'GREEN', allowed is RED, BLUE"),
        ("colour", 30, "is 30, allowed is RED, BLUE"),
        ("numbered", [], "is a list of 0, allowed is LOW, HIGH"),
        ("maybe", "1", "is '1', allowed is an integer of 64 bits"),
        ("perhaps", object(), "is a object, allowed is an object with x, label"),
    ]:
        assert refusal({**good, name: value}) == f"Everything.{name} {said}"


def test_integers_have_all_of_64_bits() -> None:
    for value in (2**63 - 1, -(2**63)):
        plain = {"type": "Sequence", "points": [{"x": value, "label": ""}]}
        assert ALL.decode(ALL.encode(ALL.from_dict(plain))) == Sequence((Point(value, ""),))


def test_a_dict_nested_beyond_any_measure_is_malformed_like_another() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    assert refusal({"type": "Text", "text": deep}).startswith("Text.text is a list of 1,")
    assert refusal({"type": "Sequence", "points": deep}).startswith("Sequence.points[0] is a list")
    assert refusal({"type": deep}).startswith("type is a list")
    assert refusal(deep).startswith("message is a list")


def test_from_dict_leaves_its_argument_as_it_was() -> None:
    plain = ALL.to_dict(plainest(Everything))
    before = repr(plain)
    ALL.from_dict(plain)
    assert repr(plain) == before
