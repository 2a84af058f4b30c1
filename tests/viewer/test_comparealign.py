"""The rows of two runs that the page aligns: all events, once and in order, pairs side by side.

It needs node alone.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from pathlib import Path
from typing import Any

import pytest

from tests.viewer.driving import VIEWER, run_module

MODULE = VIEWER / "src" / "comparealign.js"
SCRIPT = """
const { makeRows } = await import(process.argv[1]);
const { readFileSync } = await import("node:fs");
const plain = (rows) => ({ ...rows, rowA: [...rows.rowA], rowB: [...rows.rowB] });
process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8"))
  .map(({ pairs, a, b, parting }) => plain(makeRows(pairs, a, b, parting)))));
"""
SAME, ONLY, MOVED = 0, 3, 4
Case = dict[str, Any]


def case(rng: random.Random) -> Case:
    """Two runs of some events, with pairs that mostly keep their order."""
    count_a, count_b = rng.randrange(0, 30), rng.randrange(0, 30)
    many = rng.randrange(0, min(count_a, count_b) + 1)
    ours = sorted(rng.sample(range(1, count_a + 1), many))
    theirs = sorted(rng.sample(range(1, count_b + 1), many))
    for _ in range(rng.randrange(0, 4) if many > 1 else 0):
        i, j = rng.randrange(many), rng.randrange(many)
        theirs[i], theirs[j] = theirs[j], theirs[i]
    times = [sorted(rng.randrange(100) for _ in range(count)) for count in (count_a, count_b)]
    alone_a = sorted({*range(1, count_a + 1)} - {*ours})
    alone_b = sorted({*range(1, count_b + 1)} - {*theirs})
    parting = None
    if alone_a and alone_b and rng.random() < 0.5:
        parting = {"a": rng.choice(alone_a), "b": rng.choice(alone_b)}
    pairs = {"a": ours, "b": theirs, "how": [SAME] * many}
    return {"pairs": pairs, "a": times[0], "b": times[1], "parting": parting}


def rows_of(cases: list[Case], module: Path = MODULE) -> list[Case]:
    return list(run_module(SCRIPT, module, cases))


def judge(asked: Case, rows: Case) -> None:
    """What must hold of rows, whatever the runs are."""
    partner = dict(zip(asked["pairs"]["a"], asked["pairs"]["b"], strict=True))
    a, b, how = rows["a"], rows["b"], rows["how"]
    assert rows["count"] == len(a) == len(b) == len(how)
    assert [n for n in a if n] == list(range(1, len(asked["a"]) + 1))
    assert [n for n in b if n] == list(range(1, len(asked["b"]) + 1))
    together = 0
    for row, (one, other, sign) in enumerate(zip(a, b, how, strict=True)):
        assert one or other
        assert rows["atA"][row] == max(a[: row + 1])
        assert rows["atB"][row] == max(b[: row + 1])
        assert not one or rows["rowA"][one] == row
        assert not other or rows["rowB"][other] == row
        if one and other and sign == SAME:
            assert partner[one] == other
            together += 1
        elif one and other:
            assert asked["parting"] == {"a": one, "b": other}
        else:
            has_partner = one in partner if one else other in partner.values()
            assert sign == (MOVED if has_partner else ONLY)
    assert together == _longest_rising(list(asked["pairs"]["b"]))


def _longest_rising(values: list[int]) -> int:
    tails: list[int] = []
    for value in values:
        place = bisect_left(tails, value)
        tails[place : place + 1] = [value]
    return len(tails)


def _judge_all(cases: list[Case], found: list[Case]) -> None:
    for asked, rows in zip(cases, found, strict=True):
        judge(asked, rows)


@pytest.fixture(scope="module")
def cases() -> list[Case]:
    rng = random.Random(7)
    return [case(rng) for _ in range(400)]


def test_rows_have_everything_once_and_in_order(cases: list[Case]) -> None:
    found = rows_of(cases)
    joined = 0
    for asked, rows in zip(cases, found, strict=True):
        judge(asked, rows)
        pairs = zip(rows["a"], rows["b"], rows["how"], strict=True)
        joined += any(one and other and sign == ONLY for one, other, sign in pairs)
    assert joined > 10, "no two events share a row because the runs part there"


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("if (values[tails[middle]] < values[i])", "if (values[tails[middle]] <= 5)"),
        ("alone(countA + 1, countB + 1);", ""),
        ("lastB = b[row] || lastB;", "lastB = b[row];"),
        ("? MOVED : ONLY", "? ONLY : ONLY"),
        ("nextA <= parting.a && ", ""),
    ],
)
def test_a_planted_fault_is_seen(right: str, wrong: str, cases: list[Case], tmp_path: Path) -> None:
    source = MODULE.read_text(encoding="utf-8")
    assert right in source
    module = tmp_path / "align.mjs"
    module.write_text(source.replace(right, wrong), encoding="utf-8")
    found = rows_of(cases, module)
    with pytest.raises((AssertionError, ValueError)):
        _judge_all(cases, found)
