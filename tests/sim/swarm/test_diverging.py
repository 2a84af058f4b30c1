"""Sequences in which the lead goes round: each needs the rule that it is for.

Left out: what documents keep to (``test_documents``), and how often the hunt draws them.
"""

from __future__ import annotations

import pytest

from tests.sim.swarm.sequence_cases import assert_needed

BY_QUESTIONS = "kip-279"
"""In this mode followers ask where to cut, and do not tell their last epoch with each fetch."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "guard", "name", "mode"),
    [
        ("unheard turn", "keep-leo-only-if-no-epoch-missed", "hw-valid", ""),
        ("unheard turn", "truncate-on-every-bump", "epoch-prefix", BY_QUESTIONS),
        ("asked in unheard", "maximal-isr", "hw-valid", ""),
        ("before the epoch's start", "epoch-start-rule", "leader-completeness", ""),
        ("ends earlier", "offset-not-available", "consistent-read", ""),
        ("begins inside a batch", "empty-log-takes-batch-base", "progress", ""),
        ("deleted past a fork", "log-start-before-divergence", "truncation-floor", ""),
        ("answer of an earlier epoch", "fetch-response-epoch-match", "epoch-fencing", ""),
        ("answer to who leads", "epoch-answer-is-current", "committed-durability", BY_QUESTIONS),
        ("read when it leaves", "batch-epoch-not-above-fetch-epoch", "epoch-fencing", ""),
        ("deleted while it is read", "sample-before-read", "progress", ""),
    ],
)
def test_a_sequence_misses_the_rule_that_it_needs(
    kind: str, guard: str, name: str, mode: str
) -> None:
    assert_needed(kind, guard, name, mode)
