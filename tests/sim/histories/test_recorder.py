"""A recorder has what clients were told, goes with copies of its world, and changes nothing."""

from __future__ import annotations

import pytest

from sim.histories.checking import check
from sim.histories.recorder import Recorder
from sim.histories.values import Poll, Signal
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World
from tests.sim.checks.judged import SECOND_US, Stage
from tests.sim.histories.drained import Drained, drain


def stage() -> Stage:
    found = Stage(records=0)
    found.world.kernel.recorder = Recorder()
    return found


def test_operations_are_in_the_order_of_invocation_with_their_events() -> None:
    made = stage()
    made.cluster.produce("orders", ["a", "b"], acks=1).wait()
    made.cluster.produce("orders", ["c"], acks=0).wait()
    history = Recorder.of(made.world).history()
    assert [each.value for each in history.operations] == [b"a", b"b", b"c"]
    assert [each.acks for each in history.operations] == [1, 1, 0]
    # With acks 0 the end is told before the call returns.
    ends = [history.ends[each.id] for each in history.operations]
    assert [(each.kind, each.offset >= 0) for each in ends] == [
        ("ok", True),
        ("ok", True),
        ("info", False),
    ]
    events = {each.n: each for each in made.world.trace.events()}
    for operation, end in zip(history.operations, ends, strict=True):
        assert operation.value is not None
        assert events[operation.event].kind == Kind.PRODUCE
        assert events[operation.event].args["value"] == operation.value.decode()
        assert events[operation.event].t_us == operation.t_us
        assert events[end.event].kind == (Kind.ACK if end.kind == "ok" else Kind.UNKNOWN)
        assert events[end.event].args["operation"] == operation.number


def test_a_refused_operation_is_a_definite_fail() -> None:
    made = stage()
    made.cluster.produce("orders", 1, partition=7, timeout_us=2 * SECOND_US)
    made.world.run_for(5 * SECOND_US)
    history = Recorder.of(made.world).history()
    (end,) = history.ends.values()
    assert (end.kind, end.place, end.error) == ("fail", None, "UNKNOWN_TOPIC_OR_PARTITION")


def test_a_client_that_was_started_again_is_another_session() -> None:
    made = stage()
    made.cluster.produce("orders", ["a"]).wait()
    made.cluster.consume("orders", 1).wait()
    for name in ("p1", "k1"):
        made.world.crash(name, "process")
        made.world.start(name)
    made.cluster.produce("orders", ["b"]).wait()
    made.cluster.consume("orders", 2).wait()
    history = Recorder.of(made.world).history()
    assert [each.id for each in history.operations] == [("p1", 0, 0), ("p1", 1, 0)]
    assert len(history.ends) == 2
    polls = [(each.session, each.offset) for each in history.readings if isinstance(each, Poll)]
    assert polls == [(0, 0), (1, 0), (1, 1)]
    assert check(history, is_drained=True) == []


def test_seeks_and_resets_stand_before_what_they_lead_to() -> None:
    made = stage()
    made.cluster.produce("orders", 3).wait()
    made.cluster.consume("orders", 3).wait()
    made.cluster.consume("orders", 2, offset=1).wait()
    readings = Recorder.of(made.world).history().readings
    assert [
        (each.kind if isinstance(each, Signal) else "poll", each.offset) for each in readings
    ] == [
        ("assigned", -1),
        ("reset", 0),
        ("poll", 0),
        ("poll", 1),
        ("poll", 2),
        ("sought", 1),
        ("poll", 1),
        ("poll", 2),
    ]
    assert check(Recorder.of(made.world).history(), is_drained=True) == []


def test_a_copied_world_goes_on_with_a_recorder_of_its_own() -> None:
    made = stage()
    made.cluster.produce("orders", 3).wait()
    twin = made.world.copy()
    assert drain(twin, Cluster(twin)) == []
    assert len([e for e in Recorder.of(twin).history().readings if isinstance(e, Poll)]) == 3
    assert Recorder.of(made.world).history().readings == ()
    assert Recorder.of(twin) is not Recorder.of(made.world)
    with pytest.raises(ValueError, match="no recorder"):
        Recorder.of(World(seed=1))


def test_with_and_without_a_recorder_a_run_is_the_same() -> None:
    with_one, without = Drained(3), Drained(3)
    without.world.kernel.recorder = None
    for each in (with_one, without):
        each.run(faults=6, span_s=15)
    assert Recorder.of(with_one.world).history().operations
    assert with_one.world.trace.digest() == without.world.trace.digest()
    assert with_one.world.state_key() == without.world.state_key()
