"""Histories that once broke an invariant, as short as they could be made.

Each was found by ``tests.cluster.whole_search`` or ``test_whole_history`` and stands for a defect
that is mended. ``finish`` heals everything and judges.
"""

from __future__ import annotations

from tests.cluster.whole_end import finish
from tests.cluster.whole_world import Setup, World


def judge(setup: Setup, *script: tuple) -> World:
    world = World(setup)
    world.replay(script)
    finish(world)
    return world


def topic(**values: str) -> tuple[tuple[str, str], ...]:
    return tuple((name.replace("_", "."), value) for name, value in values.items())


def test_batches_hidden_by_a_deletion_do_not_stand_in_the_way_of_an_older_epoch() -> None:
    """An unclean leader's records of epoch 0 follow on hidden ones of epoch 1."""
    judge(
        Setup(
            topic=topic(unclean_leader_election_enable="true", min_insync_replicas="2"), elr=True
        ),
        ("isolate", "b1"),
        ("send", "p1", 0, 1),
        ("wait", 600),
        ("send", "p3", 0, 3),
        ("wait", 10_000),
        ("delete", 0, 2),
        ("stop", "b2"),
        ("stop", "b3"),
    )


def test_another_minimum_leaves_the_last_leader_known() -> None:
    """ISR and ELR are empty then, and nobody else could ever lead."""
    judge(
        Setup(topic=topic(min_insync_replicas="2"), copies=2, elr=True),
        ("kill", "b1"),
        ("kill", "b2"),
        ("wait", 16_000),
        ("min_isr", 1),
    )
