"""Every key and value of a document stands where ``Places`` says.

Method: documents in which the text at a value's place, read alone, is that value; the same over
drawn documents in every notation; and places looked for by hand.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenario.places import DEPTH_MAX, Places, TooDeep, is_shallow
from sim.scenario.problems import Path
from tests.sim.scenario.texts import EXAMPLES, example

NASTY = '''
top = 1 # [not] = a "table"
"quoted key" = 'a # b'
"esc\\u0061ped" = "x"
a.b . "c.d" = 2
text = """
[not.a.table]
x = 1 """
other = \'\'\'
"""
\'\'\'
quotes = """a"b""c"""""
empty = ""
dates = [1979-05-27 07:32:00, 1979-05-27]
list = [
  1, # one ]
  "two, ]",
  [3,
   [4]],
  { five = 5, "six" = { seven = [7] } },
]
inline = { a.b = 1, c = "}" }
[table]
x = 0x1F
  [table.sub]
  y = inf
[[list-of]]
z = 1
[[list-of]]
z = 2
[list-of.below]
w = true
[[list-of.deep]]
v = 1
[[list-of.deep]]
v = -2
["a b".'c']
u = 1e3
'''


def leaves(value: Any, path: Path = ()) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for key, each in value.items():
            yield from leaves(each, (*path, key))
    elif isinstance(value, list) and value:
        for at, each in enumerate(value):
            yield from leaves(each, (*path, at))
    else:
        yield path, value


def check(text: str) -> int:
    document = tomllib.loads(text)
    places = Places(text)
    lines = text.split("\n")
    count = 0
    for path, value in leaves(document):
        place = places._values[path]
        line = lines[place.line - 1]
        raw = line[place.column - 1 : place.column - 1 + place.width]
        if raw[:3] in ('"""', "'''"):
            assert isinstance(value, str)
        elif isinstance(value, (list, dict)):
            assert raw[0] in "[{"
        else:
            assert tomllib.loads(f"x = {raw}")["x"] == value
            if place.inside >= 0:
                assert raw[place.inside : place.inside + len(value)] == value
        count += 1
    return count


def test_every_value_stands_at_its_place() -> None:
    assert check(NASTY) == len(list(leaves(tomllib.loads(NASTY)))) == 26


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_in_the_shipped_files_too(path: Any) -> None:
    assert check(example(path)) > 30


def at(text: str, path: Path) -> tuple[int, int, str]:
    place = Places(text).key(path)
    line = text.split("\n")[place.line - 1]
    return place.line, place.column, line[place.column - 1 : place.column - 1 + place.width]


def test_keys() -> None:
    assert at(NASTY, ("top",)) == (2, 1, "top")
    assert at(NASTY, ("quoted key",)) == (3, 1, '"quoted key"')
    assert at(NASTY, ("escaped",)) == (4, 1, '"esc\\u0061ped"')
    assert at(NASTY, ("a", "b")) == (5, 3, "b")
    assert at(NASTY, ("a", "b", "c.d")) == (5, 7, '"c.d"')
    assert at(NASTY, ("list", 3, "six", "seven")) == (20, 25, "seven")
    assert at(NASTY, ("table", "sub", "y")) == (26, 3, "y")
    assert at(NASTY, ("table", "sub")) == (25, 10, "sub")
    assert at(NASTY, ("list-of", 1)) == (29, 3, "list-of")
    assert at(NASTY, ("list-of", 1, "z")) == (30, 1, "z")
    assert at(NASTY, ("list-of", 1, "deep", 1, "v")) == (36, 1, "v")


def test_what_is_not_there_stands_where_it_should_be() -> None:
    assert at(NASTY, ("table", "sub", "nothing", "here")) == (25, 10, "sub")
    assert at(NASTY, ("list-of", 1, "none")) == (29, 3, "list-of")
    assert at(NASTY, ("nothing",)) == (1, 1, "")


WORDS = st.text("ab", min_size=1, max_size=3)
SCALARS = st.integers(-9, 9) | st.booleans() | st.text("ab\"'\\#]}[{,.=\n\té", max_size=5)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=6,
)


def written(value: Any, draw: Any) -> str:
    """A value in some notation."""
    blank = lambda: draw(st.sampled_from(["", " ", "  "]))  # noqa: E731
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        if not set(value) & set("'\n\t") and draw(st.booleans()):
            return f"'{value}'"
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        quoted = quoted.replace("\n", "\\n").replace("\t", "\\t")
        return f'"{quoted}"'
    if isinstance(value, list):
        gap = draw(st.sampled_from(["", " ", "\n", "# ]\n"]))
        return (
            "[" + gap + f"{blank()},{gap}".join(written(each, draw) for each in value) + gap + "]"
        )
    pairs = [f"{key}{blank()}={blank()}{written(each, draw)}" for key, each in value.items()]
    return "{" + blank() + ", ".join(pairs) + blank() + "}"


@given(st.lists(st.tuples(WORDS, VALUES), min_size=1, max_size=6), st.data())
@settings(max_examples=200, deadline=None)
def test_drawn_documents(pairs: list[tuple[str, Any]], data: st.DataObject) -> None:
    lines: list[str] = []
    known: set[str] = set()
    for name, value in pairs:
        where = data.draw(st.sampled_from(["", "[[x]]", "[y]", "[z.y]"]))
        if where and not (where != "[[x]]" and where in known):
            lines.append(where)
            known.clear() if where == "[[x]]" else None
            known.add(where)
        key = f"k{len(lines)}{name}"
        lines.append(f"  {key} = {written(value, data.draw)} # {name}")
    text = "\n".join(lines) + "\n"
    try:
        tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return
    check(text)


def test_depth() -> None:
    Places("x = " + "[" * DEPTH_MAX + "]" * DEPTH_MAX)
    for text in (
        "x = " + "[" * 40 + "]" * 40,
        "x = " + "{a=" * 40 + "1" + "}" * 40,
        ".".join("a" * 40) + " = 1",
        "[" + ".".join("a" * 40) + "]",
    ):
        tomllib.loads(text)
        with pytest.raises(TooDeep):
            Places(text)
        assert not is_shallow(tomllib.loads(text))
    assert is_shallow(tomllib.loads(NASTY))
