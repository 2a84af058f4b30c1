"""The first six rows of the licence table (FAULTS D.4): kills, nobody dies, power.

Left out: the other rows (``rows_two``), and the runs (``test_table``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import pytest

from cluster import partition_changes
from cluster.elections import Choice, Election, choose_leader
from storage import opening
from storage.recovery import Found, Plan
from tests.sim.licences.cells import Half, Row

__all__ = ["ROWS", "SAYS"]

ILLEGAL: Final = "ILLEGAL"

SAYS: Final[dict[str, dict[str, set[str]]]] = {
    "kill of leader, followers in ISR": {
        "acks1": {"L0"},
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {ILLEGAL},
    },
    "kill of everybody, any order of return": {
        "acks1": {"L0"},
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {"L1", ILLEGAL},
    },
    "partition, pause, clock only": {
        "acks1": {"L0"},
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {"L1", ILLEGAL},
    },
    "power loss of one broker, other ISR members alive": {
        "acks1": {"L0"},
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {ILLEGAL},
    },
    "power loss of the last ISR member, r acked while ISR was larger": {
        "acks1": {"L0"},
        "min-isr-1": {"L2"},
        "min-isr-2": {"L2"},
        "elr": {ILLEGAL},
        "unclean": {"L1", "L2"},
    },
    "power loss of all brokers at once": {
        "acks1": {"L0", ILLEGAL},
        "min-isr-1": {"L2", ILLEGAL},
        "min-isr-2": {"L2", ILLEGAL},
        "elr": {"L2", ILLEGAL},
        "unclean": {"L1", "L2", ILLEGAL},
    },
}
"""What FAULTS D.4 says. "If no ISR member is alive" and the like make two halves of a cell."""


def order_before_sync(patch: pytest.MonkeyPatch) -> None:
    """A controller that takes the first active replica at once where it may be an unclean one."""

    def choose(kind: Election, **about: Any) -> Choice:
        if kind is not Election.UNCLEAN:
            return choose_leader(kind, **about)
        for broker in about["replicas"]:
            if about["is_active"](broker):
                return Choice(broker, is_unclean=broker not in about["isr"])
        return Choice(None)

    patch.setattr(partition_changes, "choose_leader", choose)


def recovery_begins_anew(patch: pytest.MonkeyPatch) -> None:
    """A recovery that drops the whole log, whatever is known to be on the platter."""

    def decide(found: list[Found], boundary: object, log_start: object) -> Plan:
        return Plan((), 0)

    patch.setattr(opening, "decide", decide)


def _guarded(column: str, *, lost: int = 1) -> tuple[Half, ...]:
    return (Half(ILLEGAL, column, unguarded=f"{column}-unguarded", lost=lost),)


def _all_illegal(make: Callable[[str], tuple[Half, ...]]) -> dict[str, tuple[Half, ...]]:
    """acks=1 loses one record, and everybody else none."""
    columns = ("min-isr-1", "min-isr-2", "elr", "unclean")
    return {"acks1": (Half("L0", "acks1", 1),), **{each: make(each) for each in columns}}


def _prefix(variant: str, licence: str) -> tuple[Half, ...]:
    """One record was not synced, two were."""
    return (
        Half(licence, variant, 1),
        Half(ILLEGAL, variant, plant=recovery_begins_anew, lost=2),
    )


ROWS: Final = (
    Row("kill of leader, followers in ISR", "leader_killed", _all_illegal(_guarded)),
    Row(
        "kill of everybody, any order of return",
        "all_killed",
        {
            **_all_illegal(_guarded),
            "unclean": (
                Half("L1", "unclean", 1),
                Half(ILLEGAL, "unclean-b3-first"),
                Half(ILLEGAL, "unclean", plant=order_before_sync),
            ),
        },
    ),
    Row(
        "partition, pause, clock only",
        "nobody_dies",
        {**_all_illegal(_guarded), "unclean": (Half("L1", "unclean", 1), *_guarded("unclean"))},
    ),
    Row(
        "power loss of one broker, other ISR members alive",
        "power_of_one",
        _all_illegal(lambda column: _guarded(column, lost=3)),
        controls=("min-isr-1-one-rule", "min-isr-1-other-rule"),
    ),
    Row(
        "power loss of the last ISR member, r acked while ISR was larger",
        "power_of_last",
        {
            "acks1": (Half("L0", "acks1", 1),),
            "min-isr-1": (Half("L2", "min-isr-1", 1),),
            "min-isr-2": (Half("L2", "min-isr-2", 1),),
            "elr": _guarded("elr"),
            "unclean": (Half("L1", "unclean", 1), Half("L2", "unclean-nobody", 1)),
        },
        beside=(Half("L2", "acks1-committed", 1), Half("L2", "elr-min-isr-1", 1)),
    ),
    Row(
        "power loss of all brokers at once",
        "power_of_all",
        {
            "acks1": _prefix("acks1", "L0"),
            "min-isr-1": _prefix("min-isr-1", "L2"),
            "min-isr-2": _prefix("min-isr-2", "L2"),
            "elr": _prefix("elr", "L2"),
            "unclean": (*_prefix("unclean", "L1"), *_prefix("unclean-b1-first", "L2")),
        },
    ),
)
