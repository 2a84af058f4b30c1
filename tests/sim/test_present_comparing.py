"""Two traces compared: pairs, the first divergence, states, outcomes, and the plain form.

``assert_aligned`` is the twin: it demands of any alignment what the module says of it.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from attrs import evolve
from hypothesis import assume, example, given
from hypothesis import strategies as st

from sim.present.aligning import How
from sim.present.comparison_rows import rows
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Footer, Header
from tests.sim import stories
from tests.sim.comparisons import HEADER, aligned, assert_aligned, compared, ev, inserted
from tests.sim.traces import Raw, raws

NEW = ev(1, "b9", Kind.NOTE, directory="nothing like it")


def _events(drawn: list[Raw]) -> list[Event]:
    return [
        Event(n, t_us, node, kind, cause, args, tuple(changes))
        for n, (t_us, node, kind, cause, args, changes) in enumerate(drawn, 1)
    ]


@pytest.fixture(scope="module")
def run() -> list[Event]:
    return list(stories.acks1(level="full").trace.events())


# Pairs -------------------------------------------------------------------------------------------


@given(raws(max_size=30))
def test_a_trace_is_itself(drawn: list[Raw]) -> None:
    events = _events(drawn)
    found = aligned(events, events)
    assert_aligned(found, events, events)
    assert found.partner_a == list(range(len(events) + 1))
    assert set(found.how_a[1:]) <= {How.SAME}
    assert compared(events, events).is_same


@given(raws(max_size=30), raws(max_size=30))
def test_any_two_traces_are_aligned(one: list[Raw], other: list[Raw]) -> None:
    a, b = _events(one), _events(other)
    assert_aligned(aligned(a, b), a, b)


@given(raws(max_size=30), st.integers(1, 31), st.booleans())
def test_one_event_more_shifts_no_pair(drawn: list[Raw], at: int, is_in_a: bool) -> None:
    events = _events(drawn)
    at = min(at, len(events) + 1)
    more = inserted(events, at, NEW)
    if is_in_a:
        found = aligned(more, events)
        alone = [n for n, other in enumerate(found.partner_a) if n and not other]
        hows = set(found.how_b[1:])
    else:
        found = aligned(events, more)
        alone = [n for n, other in enumerate(found.partner_b) if n and not other]
        hows = set(found.how_a[1:])
    assert alone == [at]
    assert hows <= {How.SAME}


@pytest.mark.parametrize("at", [1, 40, 700, 100_000])
def test_one_event_more_in_a_real_run_is_the_divergence(run: list[Event], at: int) -> None:
    at = min(at, len(run) + 1)
    more = inserted(run, at, NEW._replace(t_us=run[min(at, len(run)) - 1].t_us))
    found = compared(run, more)
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.a, found.divergence.b) in (
        ("only-b", None, at),
        ("end-a", None, at),
    )
    assert (found.divergence.at_a, found.divergence.at_b) == (at - 1, at)
    assert all(each.states.is_same for each in found.states)


def test_a_planted_misalignment_is_noticed(run: list[Event]) -> None:
    found = aligned(run, run)
    assert_aligned(found, run, run)
    one, other = [event.n for event in run if event.kind is Kind.APPEND][:2]
    found.pair(one, other, How.SAME)
    found.pair(other, one, How.SAME)
    with pytest.raises(AssertionError):
        assert_aligned(found, run, run)
    found = aligned(run, run)
    last = len(run)
    found.partner_a[last] = found.partner_b[last] = 0
    found.how_a[last] = found.how_b[last] = How.NONE
    with pytest.raises(AssertionError):
        assert_aligned(found, run, run)


def test_what_follows_from_a_lone_event_is_alone_and_milestones_are_alike() -> None:
    a = [
        ev(1, "b1", Kind.START, incarnation=0),
        ev(2, "b1", Kind.SEND, 1, to="b2", type="Fetch", id=1),
        ev(3, "b2", Kind.DELIVER, 2, **{"from": "b1"}, type="Fetch", id=1),
        ev(4, "b2", Kind.HW, 3, partition="o-0", high_watermark=3),
    ]
    b = [
        ev(1, "b1", Kind.START, incarnation=0),
        ev(2, "b1", Kind.TIMER, 1, key="again"),
        ev(3, "b1", Kind.SEND, 2, to="b2", type="Fetch", id=8),
        ev(4, "b2", Kind.DELIVER, 3, **{"from": "b1"}, type="Fetch", id=8),
        ev(5, "b2", Kind.HW, 4, partition="o-0", high_watermark=3),
    ]
    found = aligned(a, b)
    assert_aligned(found, a, b)
    assert list(found.pairs()) == [(1, 1, How.SAME), (4, 5, How.ALIKE)]


def test_numbers_of_messages_and_steps_and_lengths_of_time_make_no_other_event() -> None:
    a = [
        ev(1, "world", Kind.STEP, id="3", step="crash"),
        ev(2, "b1", Kind.SEND, 1, to="b2", type="Fetch", id=1),
        ev(3, "b1", Kind.FSYNC, 1, file="/log", position=0, size=9, took_us=5),
        ev(4, "b1", Kind.CRASH, 1, how="power", fault="3"),
        ev(5, "world", Kind.LOSS, 4, partition="o-0", culprits=[4], copies=[["b1", "lost", 4]]),
    ]
    b = [
        ev(1, "world", Kind.STEP, id="4", step="crash"),
        ev(2, "b1", Kind.SEND, 1, to="b2", type="Fetch", id=2),
        ev(3, "b1", Kind.FSYNC, 1, file="/log", position=0, size=9, took_us=6),
        ev(4, "b1", Kind.CRASH, 1, how="power", fault="4"),
        ev(5, "world", Kind.LOSS, 4, partition="o-0", culprits=[9], copies=[["b1", "lost", 9]]),
    ]
    assert {how for _, _, how in aligned(a, b).pairs()} == {How.SAME}
    found = compared(a, b)
    assert not found.is_same
    assert found.divergence is None
    assert found.shift is not None
    assert (found.shift.what, found.shift.a) == ("length", 3)
    # A name is no number.
    named = [b[0]._replace(args={"id": "kill", "step": "crash"}), *b[1:]]
    assert aligned(a, named).how_a[1] is How.CHANGED


def test_siblings_are_paired_by_what_they_say_before_their_order() -> None:
    a = [ev(n, "b1", Kind.APPEND, partition="o-0", base_offset=n) for n in (1, 2)]
    b = [ev(1, "b1", Kind.APPEND, partition="o-0", base_offset=2)]
    assert list(aligned(a, b).pairs()) == [(2, 1, How.SAME)]
    c = [ev(n, "b1", Kind.APPEND, partition="o-0", base_offset=n + 1) for n in (1, 2)]
    assert list(aligned(a, c).pairs()) == [(1, 2, How.CHANGED), (2, 1, How.SAME)]


# Same, and shifted -------------------------------------------------------------------------------


@given(raws(max_size=20), st.data())
def test_any_other_time_node_or_judgement_is_noticed(drawn: list[Raw], data: st.DataObject) -> None:
    events = _events(drawn)
    assume(events)
    at = data.draw(st.integers(0, len(events) - 1))
    change: Callable[[Event], Event] = data.draw(
        st.sampled_from(
            [
                lambda event: event._replace(t_us=event.t_us + 1),
                lambda event: event._replace(node=event.node + "x"),
                lambda event: event._replace(args={**event.args, "extra": 1}),
                lambda event: event._replace(args={**event.args, "evidence": 99, "sent": 7}),
            ]
        )
    )
    other = [change(event) if event.n == at + 1 else event for event in events]
    assert not compared(events, other).is_same


def test_another_judgement_or_a_missing_footer_is_no_divergence_and_not_the_same(
    run: list[Event],
) -> None:
    found = compared(run, run, is_cut=(False, True))
    assert not found.is_same
    assert found.divergence is None
    assert found.shift is None


def test_another_order_is_a_shift() -> None:
    a = [ev(n, f"b{n}", Kind.START, t=0, incarnation=0) for n in (1, 2)]
    b = [ev(n, f"b{3 - n}", Kind.START, t=0, incarnation=0) for n in (1, 2)]
    found = compared(a, b)
    assert found.divergence is None
    assert found.shift is not None
    assert (found.shift.what, found.shift.a, found.shift.b) == ("order", 2, 1)
    assert not found.is_same


# Divergence --------------------------------------------------------------------------------------


@pytest.mark.parametrize("last", [0, 1, 500])
def test_a_trace_cut_short_ends_and_everything_in_front_is_the_same(
    run: list[Event], last: int
) -> None:
    found = compared(run[:last], run, is_cut=(True, False))
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.b) == ("end-a", last + 1)
    assert (found.divergence.at_a, found.divergence.at_b) == (last, last + 1)
    assert found.divergence.origin.what == "end"
    assert "parting" not in [each.what for each in found.states]
    swapped = compared(run, run[:last], is_cut=(False, True))
    assert swapped.divergence is not None
    assert (swapped.divergence.what, swapped.divergence.a) == ("end-b", last + 1)


def test_a_changed_event_says_what_differs(run: list[Event]) -> None:
    at = next(event.n for event in run if event.kind is Kind.APPEND)
    other = [
        event._replace(args={**event.args, "leader_epoch": 9}) if event.n == at else event
        for event in run
    ]
    found = compared(run, other)
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.a, found.divergence.b) == ("changed", at, at)
    assert [(each.path, each.a, each.b) for each in found.divergence.unlike] == [
        ("args.leader_epoch", str(run[at - 1].args["leader_epoch"]), "9")
    ]
    assert found.divergence.chain_a[-1].n == at
    parting = next(each for each in found.states if each.what == "parting")
    assert parting.track is not None
    assert (parting.track.what, parting.track.a, parting.track.b) == ("log", at, at)
    assert not parting.states.is_same
    assert [row.mark for row in rows(found) if row.is_divergence] == ["changed"]


@pytest.mark.parametrize(
    ("other", "what"),
    [
        (evolve(HEADER, options={"guards": {"x": False}}, seed=8), "configuration"),
        (evolve(HEADER, seed=8), "seed"),
        (evolve(HEADER, variant="v", seed=8), "variant"),
        (evolve(HEADER, version="9"), "version"),
        (HEADER, "unknown"),
    ],
)
def test_the_origin_is_what_the_headers_differ_in(other: Header, what: str) -> None:
    a = [ev(1, "b1", Kind.START), ev(2, "b1", Kind.ROLE, 1, role="leader")]
    b = [ev(1, "b1", Kind.START), ev(2, "b1", Kind.ROLE, 1, role="follower")]
    found = compared(a, b, headers=(HEADER, other))
    assert found.divergence is not None
    assert found.divergence.origin.what == what
    if what == "configuration":
        assert "options.guards.x: on in A, off in B" in found.divergence.origin.text
    early = [b[0]._replace(t_us=-5), b[1]]
    timed = compared(a, early, headers=(HEADER, other))
    assert timed.divergence is not None
    wanted = "timing" if what in ("version", "unknown") else what
    assert timed.divergence.origin.what == wanted


def test_a_step_that_only_one_has_is_the_origin() -> None:
    a = [ev(1, "b1", Kind.START), ev(2, "world", Kind.STEP, id="kill", step="crash")]
    b = [ev(1, "b1", Kind.START), ev(2, "b1", Kind.TIMER, key="x"), ev(3, "b2", Kind.START)]
    found = compared(a, b)
    assert found.divergence is not None
    assert found.divergence.what == "both"
    assert found.divergence.origin.what == "step"


def test_a_step_at_another_time_is_the_origin_of_what_comes_of_it() -> None:
    """In B the step comes late, and what b2 says meanwhile comes first."""
    a = [
        ev(1, "world", Kind.STEP, t=10, id="kill", step="crash"),
        ev(2, "b1", Kind.CRASH, 1, t=10, how="power"),
        ev(3, "b2", Kind.DISCONNECT, 2, t=20, peer="b1"),
    ]
    b = [
        ev(1, "b2", Kind.HW, t=15, partition="o-0", high_watermark=1),
        ev(2, "world", Kind.STEP, t=90, id="kill", step="crash"),
        ev(3, "b1", Kind.CRASH, 2, t=90, how="power"),
        ev(4, "b2", Kind.DISCONNECT, 3, t=95, peer="b1"),
    ]
    found = compared(a, b, headers=(HEADER, evolve(HEADER, variant="late")))
    assert found.shift is not None
    assert (found.shift.what, found.shift.a, found.shift.b) == ("time", 1, 2)
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.b) == ("only-b", 1)
    assert found.divergence.origin.what == "step"
    assert (found.divergence.origin.a, found.divergence.origin.b) == (1, 2)


def test_what_a_judge_says_is_a_divergence_only_if_there_is_no_other() -> None:
    start = ev(1, "b1", Kind.START)
    expect = Event(2, 0, "world", Kind.EXPECT, (), {"form": "always", "text": "x", "holds": True})
    a = [start, expect, ev(3, "b1", Kind.HW, 1, partition="o-0", high_watermark=1)]
    b = [start, ev(2, "b1", Kind.HW, 1, t=3_000, partition="o-0", high_watermark=2)]
    found = compared(a, b)
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.a, found.divergence.b) == ("changed", 3, 2)
    same = b[1]._replace(args=a[2].args)
    found = compared(a, [start, same])
    assert not found.is_same
    assert found.divergence is not None
    assert (found.divergence.what, found.divergence.a) == ("only-a", 2)


@given(raws(max_size=20), raws(max_size=20))
def test_a_divergence_is_the_same_from_either_side(one: list[Raw], other: list[Raw]) -> None:
    a, b = _events(one), _events(other)
    places = compared(a, b).divergence, compared(b, a).divergence
    assert (places[0] is None) == (places[1] is None)
    if places[0] is not None and places[1] is not None:
        times = [
            min(events[n - 1].t_us for events, n in pairs if n is not None)
            for pairs in (
                ((a, places[0].a), (b, places[0].b)),
                ((b, places[1].a), (a, places[1].b)),
            )
        ]
        assert times[0] == times[1] or "changed" in (places[0].what, places[1].what)


@pytest.mark.parametrize("swap", [False, True])
def test_an_early_lone_event_and_a_late_one_are_not_taken_for_one(swap: bool) -> None:
    a = [ev(1, "b1", Kind.NOTE, directory="early"), *(ev(n, f"n{n}", Kind.START) for n in (2, 3))]
    b = [ev(1, "n2", Kind.START, t=2000), ev(2, "n3", Kind.START, t=3000)]
    b.append(ev(3, "b1", Kind.NOTE, t=9000, directory="late and other", partition="o-0"))
    found = compared(*((b, a) if swap else (a, b)))
    assert found.divergence is not None
    place = found.divergence
    assert place.what == ("only-b" if swap else "only-a")
    assert ((place.at_b, place.at_a) if swap else (place.at_a, place.at_b)) == (1, 0)


def test_unrelated_and_empty_traces() -> None:
    acks1, unclean = (
        list(stories.acks1(level="full").trace.events()),
        list(stories.unclean(level="full").trace.events()),
    )
    found = compared(acks1, unclean)
    assert_aligned(found.alignment, acks1, unclean)
    assert found.divergence is not None
    assert [each.what for each in found.states] == ["divergence", "parting", "end"]
    empty = compared([], [])
    assert empty.is_same
    assert rows(empty) == []
    against = compared([], acks1)
    assert against.divergence is not None
    assert (against.divergence.what, against.divergence.b) == ("end-a", 1)
    json.dumps(against.plain())


def test_states_are_those_behind_each_event(run: list[Event]) -> None:
    """A copy that the follower never got is the first difference of replicas, and is at the end."""
    at = next(event.n for event in run if event.kind is Kind.REPLICATE)
    node = run[at - 1].node
    other = [event._replace(kind=Kind.NOTE, args={}) if event.n == at else event for event in run]
    found = compared(run, other)
    parting = next(each for each in found.states if each.what == "parting")
    assert parting.track is not None
    assert (parting.track.what, parting.track.node) == ("log", node)
    (partition,) = [each for each in parting.states.partitions if not each.is_same]
    (replica,) = [each for each in partition.replicas if each.unlike]
    assert replica.node == node
    assert replica.a is not None
    assert replica.b is not None
    assert replica.a.log_end > replica.b.log_end


def test_watermarks_count_only_where_both_traces_tell_them(run: list[Event]) -> None:
    bare = [event._replace(changes=()) for event in run]
    found = compared(run, bare)
    assert found.is_same
    assert [(each.what, each.states.is_same) for each in found.states] == [("end", True)]


# Outcome, plain form, size -----------------------------------------------------------------------


def test_losses_and_findings_that_one_has(run: list[Event]) -> None:
    n = len(run) + 1
    loss = ev(n, "world", Kind.LOSS, partition="o-0", spans=[[0, 1, 3]], count=2, licence="L0")
    said = {"check": "hw-valid", "partition": "o-0", "kind": "k", "detail": "d"}
    broken = Event(n + 1, 0, "world", Kind.CHECK, (), said)
    expect = ev(n + 2, "world", Kind.EXPECT, form="at_end", text="x == 1", holds=True, judged=True)
    fails = expect._replace(n=n + 1, args={**expect.args, "holds": False})
    found = compared([*run, loss, broken, expect], [*run, loss, fails])
    assert found.losses.both[-1] == (n, n)
    assert not found.losses.a + found.losses.b
    assert [each.n for each in found.findings.a] == [n + 1]
    assert [(each.n, each.text) for each in found.expectations.a + found.expectations.b] == [
        (n + 2, "at_end x == 1: holds"),
        (n + 1, "at_end x == 1: does not hold"),
    ]


@given(raws(max_size=20), raws(max_size=20), st.booleans())
@example([], [], False)
def test_the_plain_form_is_json_and_has_the_documented_keys(
    one: list[Raw], other: list[Raw], is_cut: bool
) -> None:
    plain = compared(_events(one), _events(other), is_cut=(is_cut, False)).plain()
    assert json.loads(json.dumps(plain)) == plain
    assert (
        list(plain)
        == (
            "v is_same a b header pairs shift divergence states losses findings expectations"
        ).split()
    )
    columns = plain["pairs"]
    assert len(columns["a"]) == len(columns["b"]) == len(columns["how"])
    assert plain["states"][-1]["what"] == "end"


@pytest.mark.slow
def test_two_traces_of_100_000_events_are_aligned() -> None:
    a = []
    for n in range(1, 100_001):
        cause = (n - 3,) if n > 3 else ()
        args = {"partition": f"o-{n % 3}", "base_offset": n, "next_offset": n + 1}
        a.append(Event(n, n, f"b{n % 3}", Kind.APPEND, cause, args))
    b = inserted(a, 70_000, NEW)
    found = compared(a, b, is_cut=(False, False))
    assert found.divergence is not None
    assert found.divergence.at_b == 70_000


def test_footers_that_differ_are_not_the_same(run: list[Event]) -> None:
    from sim.present.comparing import compare
    from tests.sim.comparisons import source

    footers = [Footer(len(run), verdict, "0" * 32) for verdict in ("passed", "failed")]
    found = compare(*(source(run, HEADER, each) for each in footers))
    assert not found.is_same
