"""Durations, names, selectors, slowness, and how values and problems are shown."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.scenario.durations import DURATION_MAX_US, duration_us, show_duration
from sim.scenario.fault_nodes import SlowFault
from sim.scenario.names import (
    Names,
    PartitionName,
    checked_id,
    checked_name,
    checked_title,
    checked_topic,
    partition_name,
    slug,
)
from sim.scenario.problems import Problem, Refusal, ScenarioError, escaped, guess, seen
from sim.scenario.selectors import SELECTORS, Selector, selector
from tests.sim.scenario.texts import read

NAMES = Names(brokers=3, clients={"p1": "producer"}, topics={"orders": 1, "a-1": 2})


# Durations ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0s", 0),
        ("1us", 1),
        ("250ms", 250_000),
        ("3.5s", 3_500_000),
        ("0.000001s", 1),
        ("1.50s", 1_500_000),
        ("2m", 120_000_000),
        ("1.5h", 5_400_000_000),
        ("24h", DURATION_MAX_US),
        ("007s", 7_000_000),
    ],
)
def test_durations(text: str, wanted: int) -> None:
    assert duration_us(text) == wanted


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (3, 'numbers need a unit and quotes: "3s"'),
        (3.5, "write a number and a unit"),
        (True, "write a number and a unit"),
        ("3", "write a number and a unit"),
        ("3 s", "write a number and a unit"),
        (" 3s", "write a number and a unit"),
        ("3s\n", "write a number and a unit"),
        ("-3s", "allowed is 0s to 24h"),
        ("3sec", "write a number and a unit"),
        ("1e3s", "write a number and a unit"),
        (".5s", "write a number and a unit"),
        ("5.s", "write a number and a unit"),
        ("1m30s", "write a number and a unit"),
        ("٣s", "write a number and a unit"),
        ("9" * 5_000 + "s", "write a number and a unit"),
        ("0.5us", "time is in microseconds"),
        ("0.0000001s", "time is in microseconds"),
        ("25h", "allowed is 0s to 24h"),
        ("", "write a number and a unit"),
        ([], "write a number and a unit"),
        ({}, "write a number and a unit"),
    ],
)
def test_what_is_no_duration(value: object, said: str) -> None:
    with pytest.raises(Refusal) as caught:
        duration_us(value)
    assert caught.value.hint.startswith(said)


@given(st.integers(-DURATION_MAX_US, DURATION_MAX_US))
def test_a_shown_duration_is_read_back(value_us: int) -> None:
    shown = show_duration(value_us)
    assert duration_us(shown, low_us=-DURATION_MAX_US) == value_us


def test_durations_are_shown_short() -> None:
    shown = [show_duration(each) for each in (0, 1, 250_000, 3_500_000, 120_000_000, 90_000_000)]
    assert shown == ["0s", "1us", "250ms", "3.5s", "2m", "90s"]


# Names -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["orders", "a.b_c-d", "0", "x" * 249, "..."])
def test_topics_that_kafka_takes(name: str) -> None:
    assert checked_topic(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "a/b",
        "a\\b",
        "a b",
        "x" * 250,
        "ordérs",
        "оrders",
        "a\n",
        "a\0",
        3,
        None,
    ],
)
def test_topics_that_would_leave_their_directory_or_are_none(name: object) -> None:
    with pytest.raises(Refusal):
        checked_topic(name)


def test_a_look_alike_is_named() -> None:
    for check in (checked_topic, checked_id, checked_name):
        with pytest.raises(Refusal) as caught:
            check("оrders")  # the first letter is Cyrillic
        assert "U+043E (cyrillic small letter o)" in caught.value.hint


@pytest.mark.parametrize("name", ["1a", "a b", "a.b", "", "-a", "a" * 65, "é", 3, True])
def test_what_is_no_id(name: object) -> None:
    with pytest.raises(Refusal):
        checked_id(name)


@pytest.mark.parametrize(
    "name", ["", " a", "a/b", "..", ".a", "a\n", "con", "NUL.txt", "a" * 101, 1]
)
def test_what_is_no_name_of_a_folder(name: object) -> None:
    with pytest.raises(Refusal):
        checked_name(name)


@given(st.from_regex(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}", fullmatch=True))
def test_a_slug_is_one_safe_folder(name: str) -> None:
    found = slug(name)
    assert found
    assert set(found) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")
    assert found[0] not in ".-"
    assert slug(found) == found


def test_slugs() -> None:
    assert [slug(each) for each in ("unclean on", "KIP 101", "a -- b", "x.")] == [
        "unclean-on",
        "kip-101",
        "a----b",
        "x",
    ]


def test_titles_have_one_line_that_can_be_shown() -> None:
    assert checked_title("äöü, “quotes” — 漢字") == "äöü, “quotes” — 漢字"
    for text in ("a\nb", "\x1b[31mred", "a\u202eb", "a\x00", "\u200bx", "x" * 301, "\t"):
        with pytest.raises(Refusal):
            checked_title(text)


def test_partitions() -> None:
    assert NAMES.partition("orders-0") == PartitionName("orders", 0)
    assert NAMES.partition("a-1-1") == PartitionName("a-1", 1)
    assert str(partition_name("a-1-1")) == "a-1-1"
    for text in ("orders", "orders-", "orders-01", "orders--1", "-0", "orders-0\n", 3, ""):
        with pytest.raises(Refusal):
            NAMES.partition(text)
    with pytest.raises(Refusal) as caught:
        NAMES.partition("orders-1")
    assert caught.value.text.endswith("orders has one partition")


# Selectors ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted", "is_single"),
    [
        ("b1", Selector("node", node="b1"), True),
        ("c1", Selector("node", node="c1"), True),
        ("p1", Selector("node", node="p1"), True),
        ("leader:orders-0", Selector("leader", partition=PartitionName("orders", 0)), True),
        ("followers:a-1-1", Selector("followers", partition=PartitionName("a-1", 1)), False),
        ("isr:orders-0", Selector("isr", partition=PartitionName("orders", 0)), False),
        ("controller", Selector("controller"), True),
        ("one", Selector("one"), True),
        ("minority", Selector("minority"), False),
        ("majority", Selector("majority"), False),
        ("all", Selector("all"), False),
    ],
)
def test_selectors(text: str, wanted: Selector, is_single: bool) -> None:
    found = selector(text, NAMES)
    assert (found, str(found), found.is_single) == (wanted, text, is_single)


def test_every_selector_is_documented() -> None:
    forms = {form.partition(":")[0] for form in SELECTORS}
    assert forms == {
        "b1",
        "leader",
        "followers",
        "isr",
        "controller",
        "one",
        "minority",
        "majority",
        "all",
    }


@pytest.mark.parametrize(
    ("text", "said", "hint"),
    [
        ("b4", 'there is no node "b4"', "brokers are b1 to b3"),
        ("b0", 'there is no node "b0"', "brokers are b1 to b3"),
        ("leadr:orders-0", 'unknown selector "leadr:orders-0"', 'did you mean "leader"?'),
        ("leader:order-0", 'there is no partition "order-0"', 'did you mean "orders-0"?'),
        ("leader", '"leader" of which partition?', 'write "leader:orders-0"'),
        ("admin", '"admin" is the operator, whom nothing strikes', ""),
        ("majorty", 'there is no node "majorty"', 'did you mean "majority"?'),
        ("B1", 'there is no node "B1"', 'did you mean "b1"?'),
        ("", 'there is no node ""', ""),
        (3, "3 is no node or selector", 'write it in quotes: "b1"'),
        (["b1"], "a list of 1 is no node or selector", ""),
    ],
)
def test_what_is_no_selector(text: object, said: str, hint: str) -> None:
    with pytest.raises(Refusal) as caught:
        selector(text, NAMES)
    assert caught.value.text == said
    assert caught.value.hint.startswith(hint)


# Slowness ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "factor_ppm", "addend_us"),
    [("10", 10_000_000, 0), ('"1.5x"', 1_500_000, 0), ('"20ms"', 1_000_000, 20_000)],
)
def test_slowness(value: str, factor_ppm: int, addend_us: int) -> None:
    fault = f'[[fault]]\nid = "f"\nkind = "slow"\ntarget = "b1"\nstart = "1s"\ndisk = {value}\n'
    (found,) = read(fault).faults
    assert isinstance(found, SlowFault)
    assert found.disk is not None
    assert (found.disk.factor_ppm, found.disk.addend_us) == (factor_ppm, addend_us)


# Showing -----------------------------------------------------------------------------------------


def test_values_are_shown_short_and_harmless() -> None:
    assert seen("a\x1b[31m\u202e") == '"a\\x1b[31m\\u202e"'
    assert seen("x" * 100) == '"' + "x" * 57 + '..."'
    assert [seen(each) for each in (True, 3, 2**70, 1.5, [], [1], {}, {"a": 1})] == [
        "true",
        "3",
        "a number of more than 64 bits",
        "1.5",
        "an empty list",
        "a list of 1",
        "an empty table",
        "a table",
    ]


def test_escapes_by_size() -> None:
    assert escaped("\0\x7f\x9f\u2028\U000e0001 ok") == "\\x00\\x7f\\x9f\\u2028\\U000e0001 ok"


def test_guesses() -> None:
    assert guess("krash", ["crash", "start"]) == 'did you mean "crash"?'
    assert guess("CRASH", ["crash", "start"]) == 'did you mean "crash"?'
    assert guess("xyz", ["crash", "start"]) == ""
    assert guess(3, ["crash"]) == ""
    assert guess("k" * 100_000, ["crash"]) == ""


def test_a_report_as_the_reference_has_it() -> None:
    source = 'krash = { node = "leader:orders-0", how = "process" }'
    one = Problem(
        "scenarios/acks1.toml", 27, 1, 5, "step 3, at 3.5s", 'unknown action "krash"',
        'did you mean "crash"?', ("crash", "cut"), source,
    )  # fmt: skip
    two = Problem(
        "scenarios/acks1.toml", 44, 25, 1, "expect 2", "'=' compares nothing; write '=='",
        source="at_end = \"lost('acked') = 5\"",
    )  # fmt: skip
    error = ScenarioError([two, one, two])
    assert str(error).split("\n") == [
        'scenarios/acks1.toml:27  step 3, at 3.5s: unknown action "krash"',
        '   27 | krash = { node = "leader:orders-0", how = "process" }',
        '      | ^^^^^ did you mean "crash"?',
        "      | allowed: crash, cut",
        "scenarios/acks1.toml:44  expect 2: '=' compares nothing; write '=='",
        "   44 | at_end = \"lost('acked') = 5\"",
        "      |                         ^",
        "2 problems, nothing was run (exit 2)",
    ]
    assert pickle.loads(pickle.dumps(error)).problems == error.problems


def test_allowed_values_are_told_once_and_long_lists_are_cut() -> None:
    words = tuple(f"word-{number}" for number in range(100))
    many = [Problem("x", at, 1, 1, "", "no", "", words, "x") for at in range(1, 100)]
    lines = ScenarioError(many).lines()
    assert sum("allowed:" in line for line in lines) == 1
    assert any(line.endswith("...") for line in lines)
    assert "... and 49 more" in lines
    assert all(len(line) <= 100 for line in lines)


def test_a_long_line_is_shown_around_the_column() -> None:
    source = "a" * 5_000 + "WRONG" + "b" * 5_000
    problem = Problem("x", 1, 5_001, 5, "", "no", source=source)
    _, shown, carets = problem.lines()
    assert len(shown) < 130
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "WRONG"


def test_carets_stand_under_what_is_escaped() -> None:
    problem = Problem("x", 1, 4, 2, "", "no", source="\x1b\ta\u202ebc")
    _, shown, carets = problem.lines()
    assert shown[carets.index("^") : carets.rindex("^") + 1] == "\\u202eb"
