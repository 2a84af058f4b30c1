"""Rules refuse values that cannot be, and say what can; helpers give the edges that they name."""

from __future__ import annotations

from typing import Any

import pytest

from sim.network_rules import (
    Corrupt,
    Cut,
    Duplicate,
    Edge,
    Limit,
    Loss,
    Refuse,
    Reorder,
    ResetOn,
    Rule,
    Slow,
    isolate_edges,
    partition_edges,
)

ONE_WAY: tuple[Edge, ...] = (("b1", "b2"),)

# Edges -------------------------------------------------------------------------------------------


def test_partition_edges_are_those_between_groups() -> None:
    edges = partition_edges([["b1"], ["b3", "b2"]])
    assert sorted(edges) == [("b1", "b2"), ("b1", "b3"), ("b2", "b1"), ("b3", "b1")]


@pytest.mark.parametrize(
    ("groups", "message"),
    [
        ([["b1"]], "two or more"),
        ([["b1"], []], "none of them empty"),
        ([["b1"], ["b2", "b1"]], "'b1' is twice"),
    ],
)
def test_partition_edges_refuse_what_is_no_partition(groups: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        partition_edges(groups)


def test_isolate_edges() -> None:
    assert isolate_edges(["b1"]) == (("b1", "*"), ("*", "b1"))
    assert isolate_edges(["b1"], is_inbound=False) == (("b1", "*"),)


# Values that cannot be ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (Cut, {"id": ""}, "id is '', allowed is a name"),
        (Cut, {"edges": ()}, r"edges of Cut 'f' is \(\), allowed: one \(source"),
        (Cut, {"edges": (("b1", ""),)}, "edges of Cut 'f' is"),
        (Cut, {"only": frozenset({"Fetsch"})}, "only of Cut 'f' is 'Fetsch', allowed: AlterC"),
        (Cut, {"in_flight": "lose"}, "in_flight of Cut 'f' is 'lose', allowed: drop, hold, deli"),
        (Cut, {"in_flight": "hold", "backoff_cap_us": -1}, "backoff_cap_us .* is -1, allowed: 0 o"),
        (Cut, {"backoff_cap_us": 5}, "backoff_cap_us .* is 5, allowed: 0 unless in_flight is 'hol"),
        (Slow, {"factor_ppm": -1}, "factor_ppm of Slow 'f' is -1, allowed: 0 or more"),
        (Slow, {"addend_us": -1}, "addend_us of Slow 'f' is -1, allowed: 0 or more"),
        (Loss, {"ppm": -1}, "ppm of Loss 'f' is -1, allowed: 0..1000000"),
        (Loss, {"ppm": 1_000_001}, "ppm of Loss 'f' is 1000001, allowed: 0..1000000"),
        (ResetOn, {"when": "during"}, "when of ResetOn 'f' is 'during', allowed: before, after"),
        (ResetOn, {"ppm": -5}, "ppm of ResetOn 'f' is -5"),
        (ResetOn, {"times": 0}, "times of ResetOn 'f' is 0, allowed: 1 or more, or None"),
        (Refuse, {"hangs_us": -1}, "hangs_us of Refuse 'f' is -1, allowed: 0 or more"),
        (Refuse, {"only": frozenset({"Fetch"})}, r"only of Refuse 'f' is \['Fetch'\], allowed: n"),
        (Limit, {"bytes_per_s": 0}, "bytes_per_s of Limit 'f' is 0, allowed: 1 or more"),
        (Limit, {"bytes_per_s": 1, "buffer_bytes": 0}, "buffer_bytes of Limit 'f' is 0"),
        (Limit, {"bytes_per_s": 1, "only": frozenset({"Fetch"})}, "only of Limit 'f' is"),
        (Corrupt, {"bits": 0}, "bits of Corrupt 'f' is 0, allowed: 1..32"),
        (Corrupt, {"bits": 33}, "bits of Corrupt 'f' is 33, allowed: 1..32"),
        (Corrupt, {"ppm": 2_000_000}, "ppm of Corrupt 'f' is 2000000"),
        (Corrupt, {"times": -1}, "times of Corrupt 'f' is -1"),
        (Duplicate, {"ppm": -1}, "ppm of Duplicate 'f' is -1"),
        (Reorder, {"ppm": -1, "up_to_us": 1}, "ppm of Reorder 'f' is -1"),
        (Reorder, {"ppm": 1, "up_to_us": 0}, "up_to_us of Reorder 'f' is 0, allowed: 1.."),
    ],
)
def test_a_rule_refuses_values_that_cannot_be(
    kind: type[Rule], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        kind(**{"id": "f", "edges": ONE_WAY, **values})
