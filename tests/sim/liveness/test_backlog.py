"""What is left to be done gets less by every step towards recovery, and by no other."""

from __future__ import annotations

from typing import Any

import pytest

from sim.liveness.backlog import backlog
from tests.sim.liveness.plain import snapshot


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"logs": {"b2": {"end": 7}}}, {"logs": {"b2": {"end": 8}}}),
        ({"logs": {"b1": {"high_watermark": 7}}}, {"logs": {"b1": {"high_watermark": 8}}}),
        ({"read_end": 3}, {"read_end": 4}),
        ({"read_end": None}, {"read_end": 1}),
        ({"busy_us": 2_000}, {"busy_us": 1_000}),
        ({"unanswered": 2}, {"unanswered": 1}),
        # A fetch that takes long to be written is a step all the same.
        ({"logs": {"b2": {"end": 7}}}, {"logs": {"b2": {"end": 8}}, "busy_us": 9_000}),
        # The leader has appended it, and nobody else has it yet.
        ({"unanswered": 1}, {"logs": {"b1": {"end": 11}}, "read_end": 10}),
    ],
)
def test_a_step_leaves_less(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert backlog(snapshot(**after)) < backlog(snapshot(**before))


def test_a_log_that_is_cut_and_one_that_grows_before_others_leave_more() -> None:
    healthy = backlog(snapshot())
    assert healthy == (0, 0)
    assert backlog(snapshot(logs={"b2": {"end": 9}})) > healthy
    assert backlog(snapshot(logs={"b1": {"end": 11}})) > healthy


def test_without_a_leader_nothing_of_a_partition_can_be_done() -> None:
    assert backlog(snapshot(leader=None, logs={"b2": {"end": 3}})) == (0, 0)
