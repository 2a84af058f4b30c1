"""No history makes a check raise, and each finds what the naive twin finds.

Method: random histories, most of them garbage, over few values, offsets and epochs, so that all of
it collides; ``tests.sim.histories.naive`` looks at every pair.
"""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.names import TopicIdPartition
from sim.histories.anomalies import LEGAL, Conditions
from sim.histories.checking import check, measure
from sim.histories.values import End, Excuse, History, Operation, Poll, Signal
from tests.sim.histories.naive import MOVING, Naive

PLACES = [
    TopicIdPartition("A" * 22, "orders", 0),
    TopicIdPartition("B" * 22, "orders", 0),
    TopicIdPartition("A" * 22, "orders", 1),
]
OFFSETS = st.integers(-1, 6)
EPOCHS = st.integers(-1, 2)
VALUES = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f", None])
CLIENTS = st.sampled_from(["x", "y"])
SESSIONS = st.integers(0, 1)
WHERE = st.sampled_from([0, 0, 0, 1, 2]).map(PLACES.__getitem__)
KINDS = st.sampled_from([*MOVING, "corrupt", "commit-failed", *["committed"] * 6])


@st.composite
def histories(draw: st.DrawFn) -> History:
    operations, readings, ends = [], [], {}
    event = t_us = 0
    for number in range(draw(st.integers(0, 8))):
        event, t_us = event + 1, t_us + draw(st.integers(0, 1))
        who = draw(CLIENTS), draw(SESSIONS), number
        flags = draw(st.sampled_from([-1, 1])), draw(st.booleans()), draw(st.integers(1, 2))
        what = "orders", draw(st.sampled_from([None, 0])), None, draw(VALUES)
        operation = Operation(*who, *what, *flags, event, t_us)
        operations.append(operation)
        kind = draw(st.sampled_from(["ok", "ok", "ok", "fail", "info", None]))
        if kind is not None:
            place = draw(st.one_of(WHERE, WHERE, WHERE, st.none()))
            ends[operation.id] = End(
                kind, place, draw(OFFSETS), "NONE", draw(st.integers(0, 40)), 0
            )
    for number in range(draw(st.integers(0, 12))):
        # In order or not, twice or not: whatever it is, it is looked at.
        at = draw(st.integers(0, 40)), number
        who = draw(CLIENTS), draw(SESSIONS)
        if draw(st.integers(0, 2)):
            poll, place = draw(st.integers(0, 3)), draw(WHERE)
            what = place, draw(OFFSETS), draw(EPOCHS), None, draw(VALUES)
            readings.append(Poll(*who, poll, *what, *at))
        else:
            partition = draw(st.sampled_from([0, 0, 1]))
            readings.append(Signal(*who, draw(KINDS), "orders", partition, draw(OFFSETS), "g", *at))
    return History(tuple(operations), ends, tuple(readings))


EXCUSES = st.lists(
    st.builds(
        Excuse,
        st.sampled_from([PLACES[0], *PLACES]),
        EPOCHS,
        OFFSETS,
        OFFSETS,
        st.integers(0, 40),
    ),
    max_size=4,
)
CONDITIONS = st.builds(
    Conditions,
    compacted=st.sampled_from([frozenset(), frozenset(), frozenset({"A" * 22})]),
    log_starts=st.sampled_from([{}, {}, {PLACES[0]: 2}, {PLACES[1]: 2}]),
    gone=st.sampled_from([frozenset(), frozenset(), frozenset({"B" * 22})]),
    taken_again=st.sampled_from([{}, {}, {PLACES[0]: [(1, 2)]}, {PLACES[1]: [(0, 1), (3, 9)]}]),
    taken_ahead=st.sampled_from([{}, {}, {PLACES[0]: [(0, 1)]}, {PLACES[1]: [(2, 5)]}]),
    unavailable=st.sampled_from([frozenset(), frozenset(), frozenset({"orders-0"})]),
    has_flipped_bits=st.sampled_from([False] * 9 + [True]),
    guards_off=st.sampled_from([frozenset(), frozenset(), frozenset({"duplicate"})]),
)


def test_checks_find_what_the_twin_finds_and_every_anomaly_comes_up() -> None:
    seen: dict[str, int] = {}

    @settings(max_examples=600, deadline=None)
    @given(histories(), EXCUSES, CONDITIONS, st.booleans())
    def compare(
        history: History, excused: list[Excuse], conditions: Conditions, is_drained: bool
    ) -> None:
        found = check(history, is_drained=is_drained, excused=excused, conditions=conditions)
        keys = {(each.name, each.partition, each.legal) for each in found}
        assert len(keys) == len(found)
        assert keys == Naive(history, excused, conditions, is_drained).found
        for each in found:
            assert each.count >= 1
            assert each.witnesses
            assert each.plain()["detail"] == each.detail
            seen[each.name] = seen.get(each.name, 0) + 1
        assert all(lag.lag_us >= 0 for lag in measure(history))

    compare()
    assert set(seen) == set(LEGAL), seen
