"""Sequences of clients: each needs the rule that it is for."""

from __future__ import annotations

import pytest

from tests.sim.swarm.sequence_cases import assert_needed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "guard", "name"),
    [
        ("made anew under clients", "topic-id-tells-topics", "progress"),
        ("in doubt", "bump-epoch-only-when-idle", "duplicate"),
        ("in doubt", "duplicates-before-order", "idempotence"),
        ("told of an earlier leader", "newer-metadata-only", "false-truncation"),
        ("read by turns", "one-epoch-per-position", "stale-read"),
    ],
)
def test_a_sequence_misses_the_rule_that_it_needs(kind: str, guard: str, name: str) -> None:
    assert_needed(kind, guard, name)
