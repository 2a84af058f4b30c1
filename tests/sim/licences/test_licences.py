"""``judge`` against a naive twin, over every combination of what it is told.

The twin is FAULTS D.4 said once more in another form: each verdict with all that must be so, in no
order. Then each condition of ``judge`` is turned round, and the twin notices.

Left out: how the facts come about (``test_table``, ``test_standing``).
"""

from __future__ import annotations

import ast
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from types import ModuleType
from typing import Any, Final

import pytest
from attrs import fields

from sim.checks import licences
from sim.checks.licences import Case, judge

TAKEN: Final = ("power", "recovery-cut")
SPOILT: Final = ("lied", "damaged", "salvaged")
CUT: Final = ("truncated", "restarted")
STRANGE: Final = ("unfinished", "overwritten", "vanished", "unaccounted")
HOWS: Final = (
    "never-held",
    "replaced",
    "deleted",
    "removed",
    "hidden",
    *TAKEN,
    *SPOILT,
    *CUT,
    *STRANGE,
)
ELECTIONS: Final = ("clean", "preferred", "unclean", "unpermitted", "last-known", "none")
BOTH: Final = (False, True)
VALUES: Final[dict[str, Iterable[Any]]] = {
    "is_committed": BOTH,
    "how": HOWS,
    "is_nowhere": BOTH,
    "was_durable": BOTH,
    "election": ELECTIONS,
    "has_elr": BOTH,
    "was_last": BOTH,
    "members_lost": BOTH,
    "unclean_shutdowns": range(3),
    "min_isr": (1, 2),
    "has_other": BOTH,
    "all_replaced": BOTH,
}


def small_cases() -> Iterator[Case]:
    assert list(VALUES) == [each.name for each in fields(Case)]
    return (Case(*each) for each in itertools.product(*VALUES.values()))


def twin(case: Case) -> str:
    """The one verdict of which all holds."""
    is_deleted = case.how == "deleted"
    owed = case.is_committed and not case.all_replaced and not is_deleted
    on_platter = case.was_durable and case.how in TAKEN
    led = owed and not on_platter and not case.is_nowhere
    by_vote = led and case.election in ("unclean", "unpermitted")
    rest = owed and not by_vote and not on_platter
    by_disk = rest and case.how in (*TAKEN, "replaced")
    enough = case.unclean_shutdowns >= case.min_isr
    nobody_knows = case.is_nowhere or (
        enough if case.has_elr else case.was_last or case.members_lost
    )
    spoilt = rest and case.how in SPOILT
    only = case.is_nowhere or not case.has_other
    says = {
        "L0": not case.is_committed and not is_deleted,
        "L1": by_vote and case.election == "unclean",
        "L2": by_disk and nobody_knows,
        "L3": is_deleted or (case.is_committed and case.all_replaced),
        "L4": spoilt and only,
        "ILLEGAL": (owed and on_platter)
        or (by_vote and case.election == "unpermitted")
        or (by_disk and not nobody_knows)
        or (spoilt and not only)
        or (rest and case.how in (*CUT, "never-held", "removed", "hidden")),
        "UNEXPLAINED": rest and case.how in STRANGE,
    }
    (verdict,) = [name for name, holds in says.items() if holds]
    return verdict


@cache
def wanted() -> tuple[tuple[Case, str], ...]:
    return tuple((case, twin(case)) for case in small_cases())


def first_other(of: Callable[[Case], Any]) -> Case | None:
    """The first case of which another licence is said."""
    return next((case for case, says in wanted() if of(case).licence != says), None)


def test_the_judge_says_what_the_twin_says() -> None:
    assert len(wanted()) == 2**8 * len(HOWS) * len(ELECTIONS) * 3 * 2
    assert {says for _, says in wanted()} == {*licences.LEGAL, "ILLEGAL", "UNEXPLAINED"}
    assert first_other(judge) is None


def test_every_ruling_has_a_reason_and_cites_something() -> None:
    rulings = {judge(case) for case, _ in wanted()}
    assert all(each.rule and each.cites for each in rulings)
    assert {name for each in rulings for name in each.cites} == {
        "election",
        "fate",
        "shutdowns",
        "disk",
    }


# Conditions turned round -------------------------------------------------------------------------

SOURCE: Final = inspect.getsource(licences)


class _Turned(ast.NodeTransformer):
    """Negates the ``which``-th operand of a condition, from 0; counts all it meets."""

    def __init__(self, which: int) -> None:
        self.which, self.seen = which, 0
        self.line = 0

    def visit_If(self, node: ast.If) -> ast.If:
        tests = node.test.values if isinstance(node.test, ast.BoolOp) else [node.test]
        for at, test in enumerate(tests):
            if self.seen == self.which:
                self.line = test.lineno
                tests[at] = ast.UnaryOp(ast.Not(), test)
            self.seen += 1
        if not isinstance(node.test, ast.BoolOp):
            node.test = tests[0]
        self.generic_visit(node)
        return node


def _count() -> int:
    counter = _Turned(-1)
    counter.visit(ast.parse(SOURCE))
    return counter.seen


@pytest.mark.parametrize("which", range(_count()))
def test_a_condition_turned_round_is_noticed(which: int) -> None:
    turned = _Turned(which)
    tree = ast.fix_missing_locations(turned.visit(ast.parse(SOURCE)))
    module = ModuleType(licences.__name__)
    exec(compile(tree, "turned", "exec"), module.__dict__)
    assert turned.line
    assert first_other(module.judge) is not None, SOURCE.splitlines()[turned.line - 1]
