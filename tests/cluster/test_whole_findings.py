"""Histories that once broke an invariant, as short as they could be made.

Each was found by ``tests.cluster.whole_search`` or ``test_whole_history`` and stands for a defect
that is mended. ``finish`` heals everything and judges.
"""

from __future__ import annotations

from cluster.truncation import TruncationMode
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


# Histories that the checks once called broken, and that are not -------------------------------


def test_fetch_of_a_life_that_lost_power_may_bring_it_into_the_isr_until_it_registers() -> None:
    """Its member counts as lossy until then; with its registration it leaves as an unclean one."""
    judge(
        Setup(
            disk="ext4",
            brokers=3,
            partitions=2,
            topic=topic(min_insync_replicas="2"),
            elr=True,
            truncation=TruncationMode.KIP_279,
            fetch_bytes=200,
            lag_ms=10_000,
            is_bounded=True,
        ),
        ("hold", "b3", "b2"),
        ("send", "p4", 1, 3),
        ("wait", 16_000),
        ("fuse", "b3", 2, "lost"),
        ("kill", "c1"),
        ("wait", 25_000),
    )


def test_cut_of_a_follower_that_was_elected_uncleanly_and_has_not_heard_of_it() -> None:
    """The history is not clean from the election on, whoever knows of it."""
    judge(
        Setup(
            topic=topic(unclean_leader_election_enable="true", min_insync_replicas="1"),
            brokers=3,
            partitions=2,
            copies=2,
            fetch_bytes=1,
            snapshot_records=5,
            lag_ms=10_000,
            is_bounded=True,
        ),
        ("stepwise",),
        ("send", "p5", 1, 3),
        ("kill", "b2"),
        ("start", "b2"),
        ("send", "p1", 1, 2),
        ("wait", 25_000),
        ("kill", "c1"),
        ("start", "c1"),
        ("stop", "b3"),
    )
