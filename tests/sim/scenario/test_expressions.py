"""Expressions mean what Python's would, and nothing that Python would do can be asked for.

Method: random expressions of the grammar against Python's own ``eval`` over the same callables, a
table of texts that are refused with the column and what is said, and hostile texts.
"""

# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import contextlib
import copy
import sys
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sim.scenario.expressions import EXPRESSION_CHARS_MAX, Expression, expression
from sim.scenario.names import Names, PartitionName
from sim.scenario.observables import OBSERVABLES
from sim.scenario.problems import Refusal, Refusals

NAMES = Names(
    brokers=3,
    clients={"p1": "producer", "k1": "consumer"},
    topics={"orders": 2, "a.b-c": 1},
)


def read(text: object) -> Expression:
    return expression(text, NAMES)


def refusals(text: object) -> list[Refusal]:
    with pytest.raises(Refusals) as caught:
        read(text)
    return caught.value.found


# The twin ----------------------------------------------------------------------------------------


class World:
    """Fixed answers for every observable, by its arguments."""

    def __init__(self, seed: int) -> None:
        self.seed = seed

    def answer(self, name: str, *arguments: object) -> Any:
        number = sum(map(ord, f"{name}{[str(each) for each in arguments]}")) * (self.seed + 3) % 7
        return {
            "int": number,
            "bool": number % 2 == 0,
            "node": [None, "b1", "b2", "b3"][number % 4],
            "nodes": {"b1", "b2", "b3"} - {f"b{number}"},
            "text": [None, "m0", "m1"][number % 3],
        }[OBSERVABLES[name].result]

    def env(self) -> dict[str, Any]:
        def bind(name: str) -> Any:
            return lambda *arguments: self.answer(name, *arguments)

        return {name: bind(name) for name in OBSERVABLES}


INTS = st.sampled_from(
    ["0", "1", "5", "hw('orders-0')", "hw('orders-1', b2)", "acked('orders-0')", "lost('acked')"]
)
SIZES = st.sampled_from(["len(isr('orders-0'))", "len({b1, b2})", "truncated('orders-0', b1)"])
NODES = st.sampled_from(["b1", "b2", "leader('orders-0')", "'b3'", "None"])
SETS = st.sampled_from(["{b1}", "{b1, b2, b3}", "{'b2'}", "isr('orders-1')", "elr('orders-0')"])
TEXTS = st.sampled_from(["record('orders-0', b1, 0)", "record('orders-0', b2, 3)"])
NUMBERS = st.recursive(
    INTS | SIZES,
    lambda inner: (
        st.builds("({} {} {})".format, inner, st.sampled_from(["+", "-", "*"]), inner)
        | st.builds("-{}".format, inner)
    ),
    max_leaves=4,
)
ORDER = st.sampled_from(["==", "!=", "<", "<=", ">", ">="])
SAME = st.sampled_from(["==", "!="])
IN = st.sampled_from(["in", "not in"])
FLAGS = st.recursive(
    st.builds("{} {} {}".format, NUMBERS, ORDER, NUMBERS)
    | st.builds("{} {} {} {} {}".format, NUMBERS, ORDER, NUMBERS, ORDER, NUMBERS)
    | st.builds("leader('orders-0') {} {}".format, SAME, NODES)
    | st.builds("{} {} {}".format, NODES, IN, SETS)
    | st.builds("{} {} {}".format, SETS, SAME, SETS)
    | st.builds("{} {} {}".format, TEXTS, SAME, st.sampled_from(["'m0'", "None"]) | TEXTS)
    | st.builds("{} {} None".format, TEXTS, st.sampled_from(["is", "is not"]))
    | st.builds("hw('orders-0') {} {{0, 1, 2}}".format, IN)
    | st.sampled_from(["same_log('orders-0', b1, b2, b3)", "alive(c1)", "True", "False"]),
    lambda inner: (
        st.builds("({} and {})".format, inner, inner)
        | st.builds("({} or {} or {})".format, inner, inner, inner)
        | st.builds("not {}".format, inner)
    ),
    max_leaves=5,
)


@given(FLAGS, st.integers(0, 50))
@settings(max_examples=300, deadline=None)
def test_it_means_what_python_would_mean(text: str, seed: int) -> None:
    world = World(seed)
    python: dict[str, Any] = {name: name for name in ("b1", "b2", "b3", "c1")}
    for name in OBSERVABLES:

        def call(*given: Any, _name: str = name) -> Any:
            kinds = [each.kind for each in OBSERVABLES[_name].arguments]
            named = [
                PartitionName(each[:-2], int(each[-1]))
                if kinds[min(at, len(kinds) - 1)] == "partition"
                else each
                for at, each in enumerate(given)
            ]
            return world.answer(_name, *named)

        python[name] = call
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = eval(text, {"__builtins__": {"len": len}}, python)
    found = read(text)
    assert found.evaluate(world.env()) is bool(wanted)
    for shown, value in found.values(world.env()):
        assert shown in text
        assert value == eval(shown, {"__builtins__": {}}, python)


def test_calls_get_partitions_as_names_and_values_say_what_they_said() -> None:
    found = read("hw('a.b-c-0') == 3 and hw('a.b-c-0') < 4 and leader('orders-1') == b2")
    assert [(each.name, each.arguments) for each in found.calls] == [
        ("hw", (PartitionName("a.b-c", 0),)),
        ("leader", (PartitionName("orders", 1),)),
    ]
    env = {"hw": lambda partition: 3, "leader": lambda partition: None}
    assert found.values(env) == [("hw('a.b-c-0')", 3), ("leader('orders-1')", None)]
    assert not found.evaluate(env)


def test_and_and_or_stop_where_they_are_decided() -> None:
    asked: list[str] = []

    def ask(name: str, value: object) -> Any:
        return lambda *arguments: asked.append(name) or value

    env = {"hw": ask("hw", 1), "leo": ask("leo", 2)}
    assert not read("hw('orders-0') == 2 and leo('orders-0') == 2").evaluate(env)
    assert read("hw('orders-0') == 1 or leo('orders-0') == 2").evaluate(env)
    assert asked == ["hw", "hw"]


def test_order_with_an_absent_number_is_false() -> None:
    assert not read("hw('orders-0') < 5").evaluate({"hw": lambda partition: None})
    assert not read("hw('orders-0') >= 5").evaluate({"hw": lambda partition: None})


def test_copies_of_a_world_share_expressions() -> None:
    found = read("hw('orders-0') == 1")
    assert copy.deepcopy(found) is found
    assert found == read("hw('orders-0') == 1")
    assert (str(found), repr(found)) == (found.text, "Expression(\"hw('orders-0') == 1\")")


# What is refused ---------------------------------------------------------------------------------

REFUSED = [
    ("lost('acked') = 5", 14, 1, "'=' compares nothing; write '=='", ""),
    ("hw(partition='orders-0') == 1", 12, 1, "'=' compares nothing; write '=='", ""),
    ("alive(b1) && alive(b2)", 10, 2, "'&&' is unknown; write 'and'", ""),
    ("alive(b1) || alive(b2)", 10, 2, "'||' is unknown; write 'or'", ""),
    ("lost('acked') <> 5", 14, 2, "'<>' is unknown; write '!='", ""),
    ("leadr('orders-0') == b1", 0, 5, 'unknown observable "leadr"', 'did you mean "leader"?'),
    ("leader('order-0') == b1", 7, 9, 'there is no partition "order-0"', 'did you mean "orders-0"?'),
    ("leader('orders-2') == b1", 7, 10, "orders has 2 partitions", "leader(partition)"),
    ("leader('orders') == b1", 7, 8, '"orders" names no partition', 'write topic and number: "orders-0"'),
    ("leader(orders) == b1", 7, 6, '"orders" names no partition', "write 'orders-0'"),
    ("leader('orders-0') == b4", 22, 2, 'there is no node "b4"', ""),
    ("leader('orders-0') == 'b4'", 22, 4, "a node never equals a text", ""),
    ("hw('orders-0', p1) == 1", 15, 2, 'there is no broker "p1"', ""),
    ("position('orders-0', p1) == 1", 21, 2, 'there is no consumer "p1"', ""),
    ("lost('akced') == 0", 5, 7, '"akced" is no promise', 'did you mean "acked"?'),
    ("lost(acked) == 0", 5, 5, '"acked" is no promise', "write 'acked', in quotes"),
    ("hw() == 1", 0, 4, "hw has 0 arguments", "hw(partition[, node]) -> int"),
    ("leader('orders-0', b1) == b1", 0, 22, "leader has 2 arguments", "leader(partition) -> node or None"),
    ("hw == 1", 0, 2, '"hw" is asked with arguments', "hw(partition[, node]) -> int"),
    ("hw('orders-0') == '10'", 18, 4, "a number never equals a text", ""),
    ("hw('orders-0') == True", 18, 4, "a number never equals true or false", ""),
    ("hw('orders-0') is 10", 18, 2, "'is' is for None only", ""),
    ("hw('orders-0') < None", 17, 4, "'<' compares numbers", ""),
    ("leader('orders-0') < b2", 21, 2, "'<' compares numbers", ""),
    ("leader('orders-0') in b1", 22, 2, "a node has no members", "write a set: {b1, b2}"),
    ("leader('orders-0') in [b1, b2]", 22, 8, "a list is not allowed here", "write a set: {b1, b2}"),
    ("leader('orders-0') in {b1, 3}", 27, 1, "a number is no member of this set", ""),
    ("isr('orders-0') == {}", 19, 2, "{} is no set", "for the empty set write len"),
    ("hw('orders-0')", 0, 14, "the expression is a number, not true or false", "compare it"),
    ("b1", 0, 2, "the expression is a node", ""),
    ("not hw('orders-0')", 4, 14, "this is a number, not true or false", ""),
    ("hw('orders-0') + 'x' == 1", 17, 3, "this is a text, not a number", ""),
    ("hw('orders-0') / 2 == 1", 0, 18, "only + - * calculate", ""),
    ("hw('orders-0') ** 9 == 1", 0, 19, "only + - * calculate", ""),
    ("hw('orders-0') == 1.5", 18, 3, "1.5 is no integer", ""),
    ("hw('orders-0') == 9223372036854775808", 18, 19, "the number is too large", ""),
    ("alive(b1) == true", 13, 4, '"true" is unknown', "write True"),
    ("leader('orders-0') == null", 22, 4, '"null" is unknown', "write None"),
    ("record('orders-0', b1, -1) is None", 23, 2, "offset is no fixed value here", ""),
    ("record('orders-0', b1, b2) is None", 23, 2, '"b2" is no offset', ""),
    ("alive(leader('orders-0'))", 6, 18, "node is no fixed value here", ""),
    ("(lambda: True)()", 1, 12, "a function cannot be called", ""),
    ("__import__('os').system('x')", 0, 23, "a look into something cannot be called", ""),
    ("__import__('os')", 0, 10, 'unknown observable "__import__"', ""),
    ("hw.__class__", 0, 12, "a look into something is not allowed here", ""),
    ("'x'[0] == 'x'", 0, 6, "a subscript is not allowed here", ""),
    ("[x for x in {b1}] == 1", 0, 17, "a loop is not allowed here", ""),
    ("f'{b1}' == 'b1'", 0, 7, "a text with f is not allowed here", ""),
    ("b'x' == 'x'", 0, 4, "only texts and integers stand for themselves", ""),
    ("u'x' == 'x'", 0, 4, "only texts and integers stand for themselves", ""),
    ("... == 1", 0, 3, "only texts and integers stand for themselves", ""),
    ("alive(*{b1})", 6, 5, "node is no fixed value here", ""),
    ("alive(**{b1: 1})", 8, 7, "arguments have no names here", ""),
    ("alive(b1) if alive(b2) else True", 0, 32, "a choice is not allowed here", ""),
    ("alive(b1) @ 2 == 1", 0, 13, "only + - * calculate", ""),
    ("alive(b1", 5, 1, "this cannot be read", ""),
    ("alive(b1) alive(b2)", 10, 1, "this cannot be read", ""),
    ("1if alive(b1) else 0", 0, 1, "this cannot be read", ""),
    ("alive(b1) # always", 10, 1, "the character # has no meaning here", ""),
    ("alive(b1); alive(b2)", 9, 1, "the character ; has no meaning here", ""),
    ("ａlive(b1)", 0, 1, "the character ａ (U+FF41) has no meaning outside of quotes", ""),
    ("аlive(b1)", 0, 1, "the character а (U+0430) has no meaning outside of quotes", ""),
    ("alive(b1)\u202e", 9, 1, "the character U+202E has no meaning outside of quotes", ""),
    ("", 0, 0, "the expression is empty", ""),
    ("  \n ", 0, 0, "the expression is empty", ""),
    (5, 0, 0, "5 is no expression", ""),
    (True, 0, 0, "true is no expression", "write it in quotes"),
    (["x"], 0, 0, "a list of 1 is no expression", ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "offset", "width", "wanted", "hint"), REFUSED)
def test_a_refusal_has_its_place(
    text: object, offset: int, width: int, wanted: str, hint: str
) -> None:
    first = refusals(text)[0]
    assert wanted in first.text
    assert (first.offset, first.width) == (offset, width)
    assert first.hint.startswith(hint)


def test_all_mistakes_are_told() -> None:
    found = refusals("leadr('orders-0') == b1 and hw('orders-0') == '10' or x.y")
    assert [each.text for each in found] == [
        'unknown observable "leadr"',
        "a number never equals a text",
        "a look into something is not allowed here",
    ]


def test_one_mistake_is_told_once() -> None:
    assert len(refusals("leadr('orders-0') == hw('orders-0') + 1 and True")) == 1


def test_columns_count_characters_behind_blanks_lines_and_wide_letters() -> None:
    text = "  record('orders-0', b1, 0) == 'äöü€'\n  and hw('orders-0') == 'x'"
    (found,) = refusals(text)
    assert text[found.offset : found.offset + found.width] == "'x'"


@pytest.mark.parametrize(
    "text",
    [
        "(" * 300 + "True" + ")" * 300,
        "-" * 900 + "1 == 1",
        "not " * 200 + "True",
        " and ".join(["True"] * 160),
        "1 == " + "+".join(["1"] * 400),
        "1 == " + "9" * 900,
        "'" + "a" * 2_000 + "' == 'a'",
        "True" + " " * EXPRESSION_CHARS_MAX,
        "\0",
        "True\0",
        "'\\x41' == 'A'",
        "\udc80",
        "'\udc80' == 'x'",
    ],
)
def test_hostile_texts_are_refused_or_harmless(text: str) -> None:
    limit = sys.getrecursionlimit()
    with contextlib.suppress(Refusals):
        read(text)
    assert sys.getrecursionlimit() == limit


def test_depth_and_length_are_refused() -> None:
    assert "too deep" in refusals("not " * 21 + "True")[0].text
    long = " and ".join(["b1==b1"] * 70)
    assert "too many parts" in refusals(long)[0].text
    assert read(" and ".join(["b1==b1"] * 60)).evaluate({}) is True
    assert "has 1001 characters" in refusals("T" * 1_001)[0].text
    assert read("not " * 19 + "True").evaluate({}) is False


# The table ---------------------------------------------------------------------------------------


def test_every_observable_can_be_asked_and_says_what_it_does() -> None:
    examples = {
        "partition": "'orders-0'",
        "broker": "b1",
        "node": "c1",
        "client": "k1",
        "number": "3",
    }
    for name, known in OBSERVABLES.items():
        assert known.name == name
        assert known.doc[0].isupper()
        assert not known.doc.endswith(".")
        assert known.signature.startswith(f"{name}(")
        given_ = [
            repr(each.words[0]) if each.kind == "word" else examples[each.kind]
            for each in known.arguments
        ]
        for count in range(known.least, len(given_) + 1):
            call = f"{name}({', '.join(given_[:count])})"
            wanted = {
                "int": "== 1",
                "bool": "== True",
                "node": "is None",
                "nodes": "== {b1}",
                "text": "is None",
            }
            assert len(read(f"{call} {wanted[known.result]}").calls) == 1


def test_signatures() -> None:
    assert OBSERVABLES["same_log"].signature == "same_log(partition, node, node, ...) -> bool"
    assert OBSERVABLES["lost"].signature == "lost(promise[, partition]) -> int"
    assert OBSERVABLES["isr"].signature == "isr(partition) -> set of nodes"
