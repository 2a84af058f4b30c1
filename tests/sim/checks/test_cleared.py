"""What leaders have deleted, against a twin that asks about each record."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from cluster.names import TopicIdPartition
from sim.checks.ledger import Ledger
from sim.checks.ranges import Span

EPOCHS = st.integers(0, 4)
OFFSETS = st.integers(0, 12)


def spans() -> st.SearchStrategy[Span]:
    made = st.tuples(EPOCHS, OFFSETS, st.integers(1, 5))
    return made.map(lambda each: Span(each[0], each[1], each[1] + each[2]))


@given(st.dictionaries(EPOCHS, OFFSETS, max_size=3), st.lists(spans(), max_size=4))
@example({1: 7}, [Span(2, 1, 9)])  # Written anew behind the deletion.
@example({3: 5}, [Span(0, 1, 9)])
def test_what_was_written_below_a_log_start_by_then_is_cleared(
    cleared: dict[int, int], records: list[Span]
) -> None:
    ledger = Ledger(TopicIdPartition("t", "id", 0), cleared=cleared)
    left = [
        (epoch, offset)
        for epoch, start, end in records
        for offset in range(start, end)
        if not any(epoch <= until and offset < at for until, at in cleared.items())
    ]
    found = list(ledger.uncleared(records))
    assert [(each.epoch, at) for each in found for at in range(each.start, each.end)] == left
    assert all(each.start < each.end for each in found)
