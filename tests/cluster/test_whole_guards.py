"""A guard that is off, in a whole cluster: the invariant that its row names must fire.

So it is shown that the checks of the random histories see what they are for. Each history is as
short as could be found, and breaks nothing while the guard is on.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest
from attrs import evolve

from cluster.guards import GUARDS, Guards
from tests.cluster.whole_ledger import Broken
from tests.cluster.whole_search import run
from tests.cluster.whole_world import Script, Setup


class Case(NamedTuple):
    """A history that breaks ``invariant`` where ``guard`` is off.

    Unless the table of guards names it for that guard, ``why`` says why it is that one.
    """

    guard: str
    invariant: str
    script: Script
    setup: Setup = Setup()
    why: str = ""


def topic(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "."), value) for name, value in values.items())


def cut_off(name: str, *others: str) -> Script:
    return tuple(("cut", name, other) for other in others)


CASES = (
    Case(
        "ack-waits-for-hw",
        "I19",
        (*cut_off("b1", "b2", "b3"), ("send", "p1", 0, 1)),
        why="the answer comes when one copy is there, before anything can be lost",
    ),
    Case(
        "elect-only-active",
        "I8",
        (("kill", "b2"), ("kill", "b3"), ("wait", 10_000), ("stop", "b1")),
        Setup(elr=True),
    ),
    Case(
        "unclean-needs-permission",
        "I6",
        (
            *cut_off("b1", "b2", "b3"),
            ("send", "p4", 0, 1),
            ("wait", 16_000),
            ("send", "p1", 0, 1),
            ("kill", "b1"),
            ("wait", 10_000),
        ),
        Setup(topic=topic(min_insync_replicas="1")),
    ),
    Case(
        "commit-after-fsync",
        "I7",
        (
            ("slow", "c1", "fsync"),
            ("kill", "b1"),
            ("wait", 10_000),
            ("power", "c1", "lost"),
            ("start", "c1"),
        ),
        Setup(disk="ext4"),
    ),
    Case(
        "log-start-below-hw",
        "I14",
        (*cut_off("b1", "b2", "b3"), ("send", "p4", 0, 1), ("delete", 0, 5)),
    ),
    Case(
        "retention-below-hw",
        "I5",
        (
            *cut_off("b1", "b2"),
            *(("send", "p4", 0, 3) for _ in range(6)),
            ("wait", 12_000),
        ),
        Setup(topic=topic(segment_bytes="200", retention_bytes="300"), lag_ms=60_000),
        why="the high watermark follows the log start, past members that do not have the records",
    ),
    Case(
        "compaction-below-hw",
        "I1",
        (
            ("send", "p1", 0, 3),
            ("wait", 1_000),
            *cut_off("b1", "b2"),
            *(("send", "p4", 0, 3) for _ in range(3)),
            ("wait", 10_000),
        ),
        Setup(topic=topic(segment_bytes="200", cleanup_policy="compact"), lag_ms=60_000),
    ),
    Case(
        "fenced-stays-out",
        "I8",
        (*cut_off("c1", "b2"), ("wait", 12_000)),
    ),
    Case(
        "join-at-high-watermark",
        "I5",
        (
            *cut_off("b1", "b3"),
            ("send", "p1", 0, 1),
            ("wait", 16_000),
            ("let", "b3", "b1", 9),
            ("heal",),
        ),
    ),
    Case(
        "maximal-isr",
        "I5",
        (
            *cut_off("b1", "b3"),
            ("send", "p1", 0, 1),
            ("wait", 16_000),
            ("hold", "c1", "b1"),
            ("release", "b1", "b3"),
            ("release", "b3", "b1"),
            ("wait", 1_000),
            *cut_off("b1", "b3"),
            ("wait", 3_000),
            ("send", "p1", 0, 1),
        ),
        Setup(lag_ms=2_000),
    ),
    Case(
        "hw-freeze",
        "I6",
        (
            *cut_off("c1", "b3"),
            ("stop", "b1"),
            ("wait", 10_000),
            ("send", "p4", 0, 1),
            ("wait", 200),
            ("kill", "b2"),
            ("heal",),
            ("wait", 10_000),
        ),
        Setup(brokers=3, elr=True),
        why="what is lost then (I1) is missed first where the next leader begins",
    ),
    Case(
        "unclean-restart-leaves-isr",
        "I6",
        (
            ("send", "p1", 0, 1),
            ("stop", "b2"),
            ("stop", "b3"),
            ("power", "b1", "lost"),
            ("start", "b1"),
            ("wait", 12_000),
        ),
        Setup(disk="ext4", elr=True),
    ),
    Case(
        "boundary-after-fsync",
        "I17",
        (
            ("send", "p1", 0, 2),
            ("kill", "b1"),
            ("start", "b1"),
            ("power", "b1", "lost"),
            ("start", "b1"),
        ),
        Setup(disk="ext4", elr=True),
    ),
    Case(
        "topic-id-tells-topics",
        "I12",
        (("send", "p1", 0, 1), ("kill", "b1"), ("wait", 10_000), ("recreate",)),
    ),
    Case(
        "empty-log-takes-batch-base",
        "I12",
        (
            ("send", "p1", 0, 3),
            ("wait", 600),
            ("delete", 0, 2),
            ("reassign", 0, "b1 b2 b4"),
            ("wait", 3000),
        ),
    ),
    Case(
        "no-credit-on-divergence",
        "I13",
        (
            *cut_off("b1", "b2", "b3", "c1", "p1"),
            ("send", "p4", 0, 2),
            ("send", "p1", 0, 2),
            ("wait", 12_000),
            ("release", "c1", "b1"),
            ("release", "b1", "c1"),
            ("release", "b1", "b2"),
            ("release", "b2", "b1"),
        ),
        why="the member that was taken for more than it has is in the ISR when it truncates",
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.guard)
def test_without_its_guard_a_history_breaks(case: Case) -> None:
    assert run(case.setup, case.script) is None
    guards = Guards.from_ids({case.guard: False})
    error = run(evolve(case.setup, guards=guards), case.script)
    assert isinstance(error, Broken), error
    assert error.invariant == case.invariant, error
    (row,) = [guard for guard in GUARDS if guard.id == case.guard]
    assert case.invariant in row.invariants.split() or case.why
