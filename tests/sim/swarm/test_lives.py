"""Sequences of brokers' lives: each needs the rule that it is for."""

from __future__ import annotations

import pytest

from tests.sim.swarm.sequence_cases import assert_needed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "guard", "name"),
    [
        ("asked in by an earlier life", "member-broker-epoch", "hw-valid"),
        ("asked in before it left", "partition-epoch", "epoch-fencing"),
        ("fetch of an earlier life", "fetch-broker-epoch", "epoch-fencing"),
        ("decides and forgets", "commit-after-fsync", "one-leader-per-epoch"),
        ("loses power cutting", "lower-boundary-first", "recovery-sound"),
        ("epochs of an earlier past", "verify-epochs-at-open", "epoch-cache-matches-log"),
        ("cut behind a snapshot", "drop-snapshots-above", "idempotence"),
        ("compacts what is not committed", "compaction-below-hw", "committed-durability"),
    ],
)
def test_a_sequence_misses_the_rule_that_it_needs(kind: str, guard: str, name: str) -> None:
    assert_needed(kind, guard, name)
