"""The timeline against a naive twin: a list that is sorted anew for each question."""

from __future__ import annotations

from copy import deepcopy

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.draws import Draws
from sim.schedulers import Fifo, Pct, Recording, Replay, Scheduler, Seeded
from sim.timeline import EventClass, Timeline, Token

ORIGINS = ("a", "b", "c")


def nothing() -> None:
    """What entries of these tests do."""


def order_of(timeline: Timeline) -> list[tuple[int, object]]:
    found = []
    while len(timeline):
        _, values = timeline.pop()
        found.append((timeline.now_us, values[0]))
    return found


def test_class_then_origin_then_order_of_entering_decide_at_one_time() -> None:
    timeline = Timeline()
    timeline.at(5, EventClass.CHECK, "a", nothing, "check")
    timeline.at(5, EventClass.TIMER, "b", nothing, "b first")
    timeline.at(5, EventClass.TIMER, "b", nothing, "b second")
    timeline.at(5, EventClass.TIMER, "a", nothing, "a")
    timeline.at(5, EventClass.FAULT, "z", nothing, "fault")
    timeline.at(4, EventClass.CHECK, "z", nothing, "earlier")
    assert [what for _, what in order_of(timeline)] == [
        "earlier",
        "fault",
        "a",
        "b first",
        "b second",
        "check",
    ]


def test_what_is_entered_for_the_past_happens_now() -> None:
    timeline = Timeline()
    timeline.advance(100)
    timeline.at(50, EventClass.TIMER, "a", nothing, "late")
    assert order_of(timeline) == [(100, "late")]


def test_time_cannot_pass_an_entry() -> None:
    timeline = Timeline()
    timeline.at(50, EventClass.TIMER, "a", nothing, "x")
    with pytest.raises(ValueError, match="an entry is due at 50 us, before 51 us"):
        timeline.advance(51)
    timeline.advance(50)
    assert timeline.now_us == 50


Action = tuple[str, int, int, str]
ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["at", "cancel", "pop"]),
        st.integers(0, 30),
        st.integers(0, 5),
        st.sampled_from(ORIGINS),
    ),
    max_size=200,
)


def schedulers(kind: str) -> Scheduler:
    made: dict[str, Scheduler] = {
        "fifo": Fifo(),
        "seeded": Seeded(Draws(3)),
        "pct": Pct(Draws(3), depth=4, entries=60),
    }
    return made[kind]


@pytest.mark.parametrize("kind", ["fifo", "seeded", "pct"])
@given(actions=ACTIONS)
def test_entries_come_in_the_order_of_the_naive_twin(kind: str, actions: list[Action]) -> None:
    timeline, scheduler = Timeline(schedulers(kind)), schedulers(kind)
    naive: list[tuple[int, int, int, str, int]] = []
    ordinals = dict.fromkeys(ORIGINS, 0)
    tokens: dict[tuple[str, int], Token] = {}
    for what, at_us, event_class, origin in actions:
        if what == "at":
            ordinal = ordinals[origin]
            ordinals[origin] += 1
            tie = scheduler.tie(event_class, origin, ordinal)
            key = (max(at_us, timeline.now_us), event_class, tie, origin, ordinal)
            naive.append(key)
            tokens[origin, ordinal] = timeline.at(
                at_us, EventClass(event_class), origin, nothing, key
            )
        elif what == "cancel" and naive:
            victim = naive.pop(at_us % len(naive))
            timeline.cancel(tokens[victim[3:]])
        elif what == "pop" and naive:
            least = min(naive)
            naive.remove(least)
            assert timeline.next_us() == least[0]
            _, values = timeline.pop()
            assert values == (least,)
            assert timeline.now_us == least[0]
        assert len(timeline) == len(naive)
        assert [entry[6][0] for entry in timeline.entries()] == sorted(naive)


def test_cancelled_entries_are_swept_out() -> None:
    """A client that disarms a long timer for each request must not fill the memory."""
    timeline = Timeline()
    timeline.at(10, EventClass.TIMER, "keep", nothing, "kept")
    for number in range(20_000):
        timeline.cancel(timeline.at(10**9 + number, EventClass.TIMER, "a", nothing, number))
    assert len(timeline._heap) < 5_000
    assert order_of(timeline) == [(10, "kept")]


def test_the_tie_of_one_origin_does_not_depend_on_the_others() -> None:
    alone, among = Seeded(Draws(9)), Seeded(Draws(9))
    ties = [alone.tie(0, "a", n) for n in range(50)]
    mixed = []
    for n in range(50):
        among.tie(0, "b", n)
        mixed.append(among.tie(0, "a", n))
    assert ties == mixed
    assert len(set(ties)) > 40


def test_seeded_ties_reorder_what_fifo_leaves_in_order() -> None:
    orders = set()
    for seed in range(20):
        timeline = Timeline(Seeded(Draws(seed)))
        for name in ORIGINS:
            timeline.at(1, EventClass.TIMER, name, nothing, name)
        orders.add(tuple(what for _, what in order_of(timeline)))
    assert len(orders) == 6


def test_pct_demotes_an_origin_at_each_change_point() -> None:
    draws = Draws(1)
    scheduler = Pct(draws, depth=3, entries=40)
    changes = {draws.below(40, "pct-change", at) for at in range(2)}
    ties = [scheduler.tie(0, "a", n) for n in range(40)]
    assert [n for n in range(1, 40) if ties[n] != ties[n - 1]] == sorted(changes - {0})
    assert ties == sorted(ties)


def test_pct_refuses_numbers_below_one() -> None:
    with pytest.raises(ValueError, match="depth is 0, entries is 5, allowed is 1 or more"):
        Pct(Draws(0), depth=0, entries=5)


def test_a_recording_is_replayed() -> None:
    recording = Recording(Seeded(Draws(4)))
    first, second = Timeline(recording), None
    names = [f"{origin}{n}" for n in range(10) for origin in ORIGINS]
    for name in names:
        first.at(1, EventClass.TIMER, name[0], nothing, name)
    order = order_of(first)
    second = Timeline(Replay(recording.taken))
    for name in names:
        second.at(1, EventClass.TIMER, name[0], nothing, name)
    assert order_of(second) == order
    third = Timeline(Replay({}))
    for name in names:
        third.at(1, EventClass.TIMER, name[0], nothing, name)
    assert order_of(third) != order


def test_a_copy_goes_on_alone() -> None:
    timeline = Timeline(Seeded(Draws(4)))
    for number in range(30):
        timeline.at(number % 3, EventClass.TIMER, ORIGINS[number % 3], nothing, number)
    other = deepcopy(timeline)
    assert order_of(other) == order_of(deepcopy(timeline))
    assert len(timeline) == 30
