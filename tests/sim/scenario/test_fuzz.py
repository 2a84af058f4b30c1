"""Whatever a file holds, reading it gives a scenario or a ScenarioError that can be shown.

Method: the shipped files with values, keys, characters and whole lines exchanged, repeated or cut,
and texts of the grammar's own words in any order.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from tests.sim.scenario.texts import EXAMPLES, example

TEXTS = [example(path) for path in EXAMPLES]
VALUES = (
    '"3"',
    "3",
    "-1",
    "1.5",
    "inf",
    "nan",
    "true",
    "[]",
    "[[]]",
    "{}",
    '""',
    '"b1"',
    '"leader:orders-0"',
    '"leader:"',
    '"orders-0"',
    '"orders-9"',
    '"1s"',
    '"99h"',
    '"\\u202e"',
    "1979-05-27T07:32:00Z",
    "07:32:00",
    "9223372036854775808",
    "0x" + "f" * 300,
    '{ a = { b = [1, "x"] } }',
    '["b1", "b1", 3]',
    "'''\n'''",
    "\"leader('orders-0') == b1\"",
    '"a.b"',
    '"((((((((((((((((((((((((1))))))))))))))))))))))))"',
)
PIECE = re.compile(r'"[^"\n]*"|[A-Za-z0-9_.-]+|\S|\s+')
KEYS = sorted({piece for text in TEXTS for piece in PIECE.findall(text) if piece.isidentifier()})


def outcome(text: str) -> Scenario | ScenarioError:
    try:
        return parse_scenario(text, "x.toml")
    except ScenarioError as error:
        return error


def check(text: str) -> None:
    found = outcome(text)
    if isinstance(found, ScenarioError):
        for line in found.lines():
            assert line.isprintable()
            assert len(line) < 1_000
        for problem in found.problems:
            assert problem.text
            assert problem.line == 0 or problem.column >= 1
            assert problem.line <= text.count("\n") + 1
    else:
        for variant in (None, *(each.name for each in found.variants)):
            assert effective(found, variant).variant == variant


@given(
    st.sampled_from(TEXTS),
    st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from(VALUES) | st.sampled_from(KEYS)),
        min_size=1,
        max_size=3,
    ),
)
@settings(max_examples=60, deadline=None)
def test_other_words_in_an_example(text: str, changes: list[tuple[int, str]]) -> None:
    pieces = PIECE.findall(text)
    for at, value in changes:
        pieces[at % len(pieces)] = value
    check("".join(pieces))


@given(st.sampled_from(TEXTS), st.integers(0, 3_000), st.integers(0, 40), st.text(max_size=4))
@settings(max_examples=60, deadline=None)
def test_other_characters_in_an_example(text: str, at: int, length: int, other: str) -> None:
    at %= len(text)
    check(text[:at] + other + text[at + length :])


@given(
    st.lists(st.sampled_from([*VALUES, *KEYS, "=", "=", "\n", "\n", ".", ",", "[[step]]\n"])),
)
@settings(max_examples=60, deadline=None)
def test_words_in_any_order(pieces: list[str]) -> None:
    check(" ".join(pieces))


@pytest.mark.slow
@given(st.sampled_from(TEXTS), st.data())
@settings(max_examples=400, deadline=None)
def test_values_at_every_place(text: str, data: st.DataObject) -> None:
    whole, part = r'= *("[^"\n]*"|\[.*\]|\{.*\}|[0-9]+)', r'("[^"\n]*"|[0-9]+|\[[^][\n]*\])'
    pattern = data.draw(st.sampled_from([whole, part]))
    match = data.draw(st.sampled_from(list(re.finditer(pattern, text))))
    value = data.draw(st.sampled_from(VALUES))
    check(text[: match.start(1)] + value + text[match.end(1) :])
