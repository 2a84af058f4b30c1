"""Folding changes forward and back: a naive twin applies them from the beginning each time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.trace.fold import Fold, FoldError
from sim.trace.kinds import Kind
from sim.trace.lines import Change, Event
from tests.sim.traces import Raw, raws, replay


def event(n: int, *changes: Change) -> Event:
    return Event(n, 0, "b1", Kind.HW, (), {}, changes)


def naive_state(events: list[Event], n: int) -> dict[str, Any]:
    state = {path: new for each in events[:n] for path, _, new in each.changes}
    return {path: new for path, new in state.items() if new is not None}


@given(raws(), st.lists(st.integers(0, 30), max_size=6))
def test_the_state_is_the_same_from_either_direction(events: list[Raw], stops: list[int]) -> None:
    read = replay(events, keeps_lines=True).events()
    fold = Fold()
    for stop in (*stops, len(read), 0):
        fold.go(min(stop, len(read)), read)
        assert fold.n == min(stop, len(read))
        assert fold.state == naive_state(read, fold.n)
    assert fold.state == {}


def test_a_path_may_change_twice_in_one_event() -> None:
    fold, events = Fold(), [event(1, ("a", None, 1), ("a", 1, 2))]
    fold.go(1, events)
    assert fold.state == {"a": 2}
    fold.go(0, events)
    assert fold.state == {}


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ([("a", 2, 3)], 'event 2: "a" is 1, the change needs 2'),
        ([("a", None, 3)], 'event 2: "a" is 1, the change needs absent'),
        ([("a", True, 3)], 'event 2: "a" is 1, the change needs true'),
        ([("a", 1, 2), ("a", 2, 3), ("b", 1, 2)], 'event 2: "b" is absent, the change needs 1'),
        ([("b", 1, 2)], 'event 2: "b" is absent, the change needs 1'),
        ([("a", 1, None), ("b", None, 1), ("\x1b", 1, 2)], r'event 2: "\\u001b" is absent'),
    ],
)
def test_a_change_that_does_not_fit_is_named_and_changes_nothing(
    changes: list[Change], what: str
) -> None:
    fold = Fold()
    fold.forward(event(1, ("a", None, 1)))
    with pytest.raises(FoldError, match=what) as caught:
        fold.forward(event(2, *changes))
    assert (fold.n, fold.state) == (1, {"a": 1})
    assert (caught.value.n, caught.value.path) == (2, changes[-1][0])


def test_going_back_demands_the_new_value() -> None:
    fold = Fold()
    fold.forward(event(1, ("a", None, [1])))
    with pytest.raises(FoldError, match='event 1: "a" is \\[1\\], the change needs \\[true\\]'):
        fold.back(event(1, ("a", None, [True])))
    fold.back(event(1, ("a", None, (1,))))
    assert fold.state == {}


def test_events_come_in_their_order() -> None:
    fold = Fold()
    fold.forward(event(1))
    with pytest.raises(ValueError, match="event 3, the next one is 2"):
        fold.forward(event(3))
    with pytest.raises(ValueError, match="event 2, the one applied last is 1"):
        fold.back(event(2))
    with pytest.raises(ValueError, match=r"allowed is 0\.\.1"):
        fold.go(2, [event(1)])
