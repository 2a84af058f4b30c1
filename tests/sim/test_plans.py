"""Plans: faults with windows, rules of the network in a live cluster, and one fault less."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim import faults
from sim.disk_faults import DiskFault
from sim.draws import Draws, Stream
from sim.latency import NetworkConfig
from sim.network_rules import (
    RULES,
    Clog,
    Corrupt,
    Cut,
    Duplicate,
    Limit,
    Loss,
    Refuse,
    Reorder,
    ResetOn,
    Rule,
    Slow,
)
from sim.plans import Planned, begin, end, schedule
from sim.schedulers import Seeded
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.verbs import Cluster
from sim.world import World, WorldError
from tests.sim.worlds import SECOND_US, events, led_world, new_world, values_of

OF_B1 = (("b1", "*"), ("*", "b1"))
DATAGRAMS = {"network": NetworkConfig(mode="datagram")}

# Rules in a live cluster -------------------------------------------------------------------------

TOLD: list[tuple[Rule, Kind, str, dict[str, Any]]] = [
    (Cut(id="r", edges=OF_B1), Kind.DROP, "cut", {}),
    (Cut(id="r", edges=OF_B1, in_flight="deliver"), Kind.DROP, "cut", {}),
    (Cut(id="r", edges=OF_B1, in_flight="hold", backoff_cap_us=10**6), Kind.HOLD, "", {}),
    (Clog(id="r", edges=OF_B1), Kind.HOLD, "", {}),
    (Loss(id="r", edges=OF_B1, ppm=300_000), Kind.DELAY, "", {}),
    (Loss(id="r", edges=OF_B1, ppm=300_000), Kind.DROP, "loss", DATAGRAMS),
    (ResetOn(id="r", edges=OF_B1), Kind.RESET, "before", {}),
    (ResetOn(id="r", edges=OF_B1, when="after"), Kind.RESET, "after", {}),
    (Refuse(id="r", edges=OF_B1), Kind.DROP, "refused", {}),
    (Refuse(id="r", edges=OF_B1, hangs_us=100_000), Kind.DROP, "refused", {}),
    (Limit(id="r", edges=OF_B1, bytes_per_s=1_000, buffer_bytes=100), Kind.TRANSMIT, "", {}),
    (Corrupt(id="r", edges=OF_B1, times=5), Kind.CORRUPT, "", {}),
    (Duplicate(id="r", edges=OF_B1, ppm=500_000), Kind.DUPLICATE, "", DATAGRAMS),
    (Reorder(id="r", edges=OF_B1, ppm=500_000, up_to_us=5_000), Kind.DELAY, "", DATAGRAMS),
]


def names(value: Any) -> str:
    return type(value).__name__ if isinstance(value, Rule) else str(value)


@pytest.mark.parametrize(("rule", "kind", "why", "config"), TOLD, ids=names)
def test_effects_of_a_rule_name_it_and_cite_its_beginning(
    rule: Rule, kind: Kind, why: str, config: dict[str, Any]
) -> None:
    world, cluster = led_world(**config)
    now_us = world.now_us
    schedule(world, [Planned(rule, now_us, now_us + 2 * SECOND_US)])
    world.run_for(1)
    # A client that has no connection yet.
    cluster.produce("orders", 5, timeout_us=20 * SECOND_US)
    world.run_for(2 * SECOND_US)
    (begun,) = events(world, Kind.FAULT)
    (healed,) = events(world, Kind.HEAL)
    assert (begun.node, begun.t_us, begun.args["id"]) == ("world", now_us, "r")
    assert begun.args["kind"] == healed.args["kind"] == type(rule).__name__
    assert begun.args["target"] == [["b1", "*"], ["*", "b1"]]
    assert (healed.cause, healed.t_us) == ((begun.n,), now_us + 2 * SECOND_US)
    effects = [each for each in world.trace.events() if each.args.get("fault") == "r"]
    found = [each for each in effects if each.kind is kind and each.args.get("why", "") == why]
    assert found
    assert all(begun.n in each.cause for each in effects)
    assert all(now_us <= each.t_us for each in effects)
    count = world.trace.count
    world.run_for(40 * SECOND_US)
    late = [each for each in world.trace.events()[count:] if each.args.get("fault") == "r"]
    # What was held is under way to those who wait for it, and strikes nobody any more.
    assert late == []
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    cluster.produce("orders", 3).wait()
    world.run_for(SECOND_US)
    assert values_of(world, "b2") == values_of(world, "b1")


def test_a_slow_link_makes_acknowledgements_late() -> None:
    times = []
    for addend_us in (0, 20_000):
        world, cluster = led_world()
        rule = Slow(id="r", edges=(("b2", "b1"),), addend_us=addend_us)
        schedule(world, [Planned(rule, world.now_us)])
        world.run_for(1)
        begun_us = world.now_us
        cluster.produce("orders", 1).wait()
        times.append(world.now_us - begun_us)
    assert times[0] + 15_000 < times[1]


def test_every_rule_was_tried() -> None:
    assert {type(rule) for rule, *_ in TOLD} | {Slow} == set(RULES)


def test_two_cuts_overlap_and_the_link_heals_with_the_second() -> None:
    world, cluster = led_world()
    now_us = world.now_us
    plan = [
        Planned(Cut(id="one", edges=(("*", "b1"),)), now_us, now_us + 2 * SECOND_US),
        Planned(Cut(id="two", edges=(("p1", "b1"),)), now_us + SECOND_US, now_us + 4 * SECOND_US),
    ]
    schedule(world, plan)
    world.run_for(1)
    produced = cluster.produce("orders", 1, acks=1, timeout_us=60 * SECOND_US)
    world.run_until(now_us + 4 * SECOND_US - 1)
    assert not events(world, Kind.APPEND, node="b1")
    produced.wait()


# Windows -----------------------------------------------------------------------------------------

PAUSE = faults.HostPause(id="f", node="b2")
CUT = Cut(id="f", edges=(("b1", "b2"),))


@pytest.mark.parametrize("window", [(-1, None), (5, 4), (-2, -1)])
def test_windows_that_are_none(window: tuple[int, int | None]) -> None:
    with pytest.raises(ValueError, match=f"fault 'f' is from {window[0]} to {window[1]}, allowed"):
        Planned(PAUSE, *window)


@pytest.mark.parametrize("fault", [PAUSE, CUT, faults.BackgroundHold(id="f", node="b2")])
@pytest.mark.parametrize("seed", range(6))
def test_an_empty_window_begins_and_ends_in_this_order_whatever_the_ties(
    seed: int, fault: faults.Fault
) -> None:
    world = World(seed=1, scheduler=Seeded(Draws(seed)))
    schedule(world, [Planned(fault, 5, 5)])
    world.run_for(10)
    assert world.active_faults == {}
    assert world.view().status("b2") == "running"


def test_a_window_that_has_passed_begins_now() -> None:
    world, _ = led_world()
    now_us = world.now_us
    schedule(world, [Planned(PAUSE, 0, 1)])
    world.run_for(1)
    assert [each.t_us for each in events(world, Kind.FAULT, Kind.HEAL)] == [now_us, now_us]


@pytest.mark.parametrize(
    "fault", [CUT, faults.BackgroundHold(id="f", node="b2"), faults.Crash(id="f", node="b2")]
)
def test_a_fault_that_was_healed_does_not_end_again(fault: faults.Fault) -> None:
    world, cluster = led_world()
    now_us = world.now_us
    schedule(world, [Planned(fault, now_us, now_us + SECOND_US)])
    world.run_for(1)
    cluster.heal("f")
    world.run_for(2 * SECOND_US)
    assert len(events(world, Kind.HEAL)) == 1
    with pytest.raises(WorldError, match="fault is 'f', active are all"):
        cluster.heal("f")


def test_causes_that_callers_give_come_first() -> None:
    world, _ = led_world()
    step = world.trace.emit(world.now_us, "world", Kind.STEP, (), {})
    world.faults["f"] = CUT
    begun = begin(world, "f", cause=(step,))
    over = end(world, "f", cause=(step,))
    found = {each.n: each.cause for each in events(world, Kind.FAULT, Kind.HEAL)}
    assert found == {begun: (step,), over: (step, begun)}


BAD: list[tuple[list[faults.Fault], str]] = [
    ([PAUSE, CUT], "fault id 'f' is taken"),
    ([CUT, faults.HostPause(id="g", node="b9")], "node is 'b9', there are c1, b1, b2, b3, admin"),
    ([CUT, faults.DiskFill(id="g", node="admin", free_bytes=0)], "admin has no disk"),
    ([CUT, faults.CrashLoop(id="g", node="admin", calls=(1,))], "admin has no disk"),
    (
        [CUT, Reorder(id="g", edges=OF_B1, ppm=5, up_to_us=5)],
        "mode of the network of Reorder 'g' is 'stream', allowed: datagram",
    ),
    ([CUT, Duplicate(id="g", edges=OF_B1, ppm=5)], "mode of the network of Duplicate 'g'"),
]


@pytest.mark.parametrize(("plan", "text"), BAD)
def test_a_plan_with_an_error_says_so_and_enters_nothing(
    plan: list[faults.Fault], text: str
) -> None:
    world = new_world()
    entries = len(world.timeline)
    with pytest.raises(ValueError, match=text):
        schedule(world, [Planned(fault, 5) for fault in plan])
    assert len(world.timeline) == entries
    assert world.faults == {}


def test_an_id_stays_taken() -> None:
    world, cluster = led_world()
    name = cluster.cut("b1", "b2", fault_id="mine")
    cluster.heal(name)
    with pytest.raises(ValueError, match="fault id 'mine' is taken"):
        schedule(world, [Planned(Cut(id="mine", edges=OF_B1), 5)])
    with pytest.raises(WorldError, match="fault id 'mine' is taken"):
        cluster.cut("b1", "b2", fault_id="mine")
    assert (cluster.cut("b1", "b2"), cluster.partition(["b1"], ["b3"])) == ("cut-1", "partition-1")
    assert cluster.cut("b1", "b3", both=True) == "cut-2"


# One fault less ----------------------------------------------------------------------------------

Made = dict[tuple[object, ...], int | bytes]


@contextmanager
def draws_taken_down(patch: pytest.MonkeyPatch) -> Iterator[Made]:
    """Every draw that is made: stream and ids, and what came of it."""
    made: Made = {}

    class Known(Stream):
        __slots__ = ("key",)

        def bits(self, ordinal: int) -> int:
            value = Stream.bits(self, ordinal)
            made.setdefault((*self.key, ordinal), value)
            return value

        def below(self, limit: int, ordinal: int) -> int:
            self.bits(ordinal)
            return Stream.below(self, limit, ordinal)

    class Telling(Draws):
        __slots__ = ()

        def bits(self, stream: str, *ids: int | str) -> int:
            value = Draws.bits(self, stream, *ids)
            made.setdefault((stream, *ids), value)
            return value

        def stream(self, stream: str, *ids: int | str) -> Stream:
            plain = Draws.stream(self, stream, *ids)
            known = Known(plain._state)
            known.key = (stream, *ids)
            return known

        def noise(self, size: int, stream: str, *ids: int | str) -> bytes:
            value = Draws.noise(self, size, stream, *ids)
            made.setdefault(("noise", size, stream, *ids), value)
            return value

    with patch.context() as patched:
        patched.setattr("sim.world.Draws", Telling)
        yield made


def busy_run(plan: list[Planned], seed: int) -> tuple[World, Made]:
    """Three brokers that are sent records now and then for three seconds."""
    with draws_taken_down(pytest.MonkeyPatch()) as made:
        world, cluster = led_world(seed, level="events")
        begun_us = world.now_us
        schedule(
            world,
            [
                Planned(
                    each.fault,
                    begun_us + each.start_us,
                    None if each.end_us is None else begun_us + each.end_us,
                )
                for each in plan
            ],
        )
        for _ in range(10):
            world.run_for(300_000)
            cluster.produce("orders", 2, acks=1)
        world.run_for(SECOND_US)
        return world, made


def shown(each: Event) -> tuple[object, ...]:
    """An event without numbers."""
    return each.t_us, each.node, each.kind, each.args


def is_edge_of(each: Event, fault_id: str) -> bool:
    return each.kind in (Kind.FAULT, Kind.HEAL) and each.args["id"] == fault_id


def first_effect(world: World, fault: faults.Fault) -> int:
    """The number of the event at which a fault first makes a difference."""
    for each in world.trace.events():
        if each.args.get("fault") == fault.id:
            return each.n
        is_silent = not isinstance(fault, Rule | faults.DiskCallFault) or isinstance(
            fault, Slow | Limit
        )
        if is_silent and each.kind is Kind.FAULT and each.args["id"] == fault.id:
            return each.n
    return world.trace.count + 1


NODES = st.sampled_from(("b1", "b2", "b3"))
ENDS = st.sampled_from(("b1", "b2", "b3", "c1", "p1", "*"))
EDGES = st.lists(st.tuples(ENDS, ENDS), min_size=1, max_size=2).map(tuple)
PPM = st.integers(0, 400_000)


@st.composite
def drawn_faults(draw: st.DrawFn, fault_id: str) -> faults.Fault:
    edges, node, ppm = draw(EDGES), draw(NODES), draw(PPM)
    kind = draw(st.integers(0, 20))
    disk_kind = draw(st.sampled_from(("error", "lost-write", "split-write", "fsync-lie")))
    disk_fault = DiskFault(id=fault_id, kind=disk_kind, after=draw(st.integers(0, 9)))
    both: dict[str, Any] = {"id": fault_id, "edges": edges}
    of_node: dict[str, Any] = {"id": fault_id, "node": node}
    makers: list[Any] = [
        lambda: Cut(**both, in_flight=draw(st.sampled_from(("drop", "hold", "deliver")))),
        lambda: Clog(**both),
        lambda: Slow(**both, addend_us=ppm),
        lambda: Loss(**both, ppm=ppm),
        lambda: ResetOn(**both, when="before", ppm=ppm, times=None),
        lambda: ResetOn(**both, when="after", ppm=ppm, times=2),
        lambda: Refuse(**both),
        lambda: Limit(**both, bytes_per_s=ppm + 1, buffer_bytes=1_000),
        lambda: faults.Crash(**of_node),
        lambda: faults.Crash(**of_node, how="power", image="drawn"),
        lambda: faults.HostPause(**of_node),
        lambda: faults.SlowCpu(**of_node, factor_ppm=ppm * 100),
        lambda: faults.ClockStep(**of_node, by_us=ppm * 100),
        lambda: faults.ClockDrift(**of_node, mono_ppm=ppm),
        lambda: faults.DiskCallFault(**of_node, fault=disk_fault),
        lambda: faults.DiskSlow(**of_node, addend_us=ppm),
        lambda: faults.ClockStrobe(**of_node, by_us=ppm * 100, period_us=50_000),
        lambda: faults.TimerJitter(**of_node, ppm=ppm // 4 + 1),
        lambda: faults.MetadataLag(**of_node, records=draw(st.sampled_from((None, 1, 3)))),
        lambda: faults.Flap(**both, period_us=200_000, duty_ppm=ppm + 1),
        lambda: faults.Swizzle(id=fault_id, nodes=("b1", "b2", "b3"), period_us=100_000),
    ]
    fault: faults.Fault = makers[kind]()
    return fault


@st.composite
def drawn_plans(draw: st.DrawFn) -> list[Planned]:
    plan = []
    for number in range(draw(st.integers(1, 4))):
        start_us = draw(st.integers(0, 3 * SECOND_US))
        end_us = draw(st.one_of(st.none(), st.integers(0, SECOND_US).map(lambda us: us + 1)))
        fault = draw(drawn_faults(f"f{number}"))
        plan.append(Planned(fault, start_us, None if end_us is None else start_us + end_us))
    return plan


@settings(max_examples=30)
@given(plan=drawn_plans(), at=st.integers(0, 3), seed=st.integers(0, 99))
@example(
    plan=[
        Planned(faults.TimerJitter(id="f0", node="b1", ppm=100_000), 0, None),
        Planned(faults.TimerJitter(id="f1", node="b1", ppm=90_000), 100_000, None),
        Planned(faults.Swizzle(id="f2", nodes=("b1", "b2", "b3"), period_us=100_000), 0, None),
    ],
    at=0,
    seed=3,
)
@example(
    plan=[
        Planned(Loss(id="f0", edges=(("b1", "*"),), ppm=200_000), 0, None),
        Planned(ResetOn(id="f1", edges=(("*", "*"),), ppm=20_000, times=None), 0, None),
    ],
    at=1,
    seed=3,
)
@pytest.mark.slow
def test_one_fault_less_leaves_draws_and_what_came_before_it_as_they_were(
    plan: list[Planned], at: int, seed: int
) -> None:
    gone = plan[at % len(plan)]
    whole, made = busy_run(plan, seed)
    less, made_less = busy_run([each for each in plan if each is not gone], seed)
    both = made.keys() & made_less.keys()
    assert len(both) > 100
    assert {key: made[key] for key in both} == {key: made_less[key] for key in both}
    own = [key for key in made_less if gone.fault.id in key]
    assert own == []
    until = first_effect(whole, gone.fault)
    before = [
        shown(each)
        for each in whole.trace.events()
        if each.n < until and not is_edge_of(each, gone.fault.id)
    ]
    less_before = [shown(each) for each in less.trace.events()[: len(before)]]
    assert before == less_before
    if until > whole.trace.count:
        assert less.trace.count == len(before)


OTHERS: list[Rule] = [
    Loss(id="loss", edges=(("b1", "b2"), ("b2", "b1")), ppm=300_000),
    ResetOn(id="reset", edges=(("p1", "b1"),), ppm=200_000, times=None),
    Corrupt(id="corrupt", edges=(("b1", "b3"),), ppm=100_000, times=None),
]
UNRELATED: list[faults.Fault] = [
    # Followers have nothing to say to each other.
    Cut(id="gone", edges=(("b2", "b3"), ("b3", "b2"))),
    Loss(id="gone", edges=(("b2", "b3"), ("b3", "b2")), ppm=900_000),
    Limit(id="gone", edges=(("b3", "b2"),), bytes_per_s=1),
    ResetOn(id="gone", edges=(("b2", "b3"),)),
    faults.DiskSlow(id="gone", node="b2", addend_us=0),
    faults.DiskFill(id="gone", node="b2", free_bytes=10**9),
    faults.SlowCpu(id="gone", node="b3", factor_ppm=1_000_000),
    faults.ClockStrobe(id="gone", node="b3", by_us=0, period_us=10**9),
    faults.MetadataLag(id="gone", node="b3"),
    faults.Flap(id="gone", edges=(("b2", "b3"), ("b3", "b2")), period_us=10**9),
]


@pytest.mark.parametrize("fault", UNRELATED, ids=lambda fault: type(fault).__name__)
def test_the_other_faults_strike_the_same_when_an_unrelated_one_is_gone(
    fault: faults.Fault,
) -> None:
    plan = [Planned(rule, 0, 2 * SECOND_US) for rule in OTHERS]
    with_it, _ = busy_run([Planned(fault, 500_000, 2 * SECOND_US), *plan], 5)
    without, _ = busy_run(plan, 5)
    left = [
        shown(each)
        for each in with_it.trace.events()
        if not is_edge_of(each, "gone") and each.args.get("fault") != "gone"
    ]
    assert left == [shown(each) for each in without.trace.events()]
    struck = {each.args.get("fault") for each in without.trace.events()}
    assert {rule.id for rule in OTHERS} <= struck


def test_worlds_of_a_plan_are_alike_in_each_run() -> None:
    plan = [Planned(rule, 0, 2 * SECOND_US) for rule in OTHERS]
    one, made = busy_run(plan, 8)
    other, made_again = busy_run(plan, 8)
    assert one.trace.digest() == other.trace.digest()
    assert one.state_key() == other.state_key()
    assert made == made_again


def test_a_seed_is_all_that_draws_depend_on() -> None:
    """Else the tests above show little."""
    _, made = busy_run([], 1)
    _, made_else = busy_run([], 2)
    both = made.keys() & made_else.keys()
    assert len(both) > 300
    assert sum(made[key] == made_else[key] for key in both) == 0
    assert {str(key[0]) for key in made} >= {"cpu", "fsync", "background"}


def test_clusters_need_no_plan() -> None:
    world, _ = led_world()
    schedule(world, [])
    assert world.faults == {}
    Cluster(world).heal()
    assert not events(world, Kind.HEAL)
