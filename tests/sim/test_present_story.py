"""A story holds what the world held: compared with the logs, the fold and the machines themselves.

The truth is not the story's own: ``view().records`` reads the bytes of the logs, and the changes of
a trace of level ``full`` are the machines' fields.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim import faults
from sim.network_rules import Cut
from sim.plans import Planned, schedule
from sim.present.history import How, Series
from sim.present.moments import moment
from sim.present.story import Story
from sim.trace.fold import Fold
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.world import World
from tests.sim import stories
from tests.sim.worlds import SECOND_US, events, led_world

RUNS = {"acks1": stories.acks1, "power_loss": stories.power_loss, "unclean": stories.unclean}
IMAGES = ("lost", "kept", "drawn")


def disturbed(seed: int, *, level: str = "full", image: str = "lost", turns: int = 40) -> World:
    """Crashes of both kinds, a partition, and records all the time: three in each of the turns."""
    topic = {"min.insync.replicas": "1", "unclean.leader.election.enable": "true"}
    world, cluster = led_world(seed, level=level, topic=topic)
    plan = [
        Planned(
            faults.Crash(id="f-one", node="b1", how="power", image=image), 4_000_000, 9_000_000
        ),
        Planned(Cut(id="f-cut", edges=(("b1", "b2"), ("b2", "b1"))), 3_500_000, 15_000_000),
        Planned(faults.Crash(id="f-two", node="b2", how="process"), 18_000_000, 22_000_000),
        Planned(
            faults.Crash(id="f-three", node="b3", how="power", image=image), 19_000_000, 30_000_000
        ),
    ]
    schedule(world, plan)
    for turn in range(turns):
        cluster.produce(
            "orders",
            3,
            acks=(1, "all")[turn % 2],
            timeout_us=5 * SECOND_US,
            client=f"p{1 + turn % 2}",
        )
        world.run_for(SECOND_US)
    return world


def assert_logs_are_those_of(story: Story, world: World) -> None:
    now = moment(story)
    for partition in now.partitions:
        for replica in partition.replicas:
            records = world.view().records(replica.node, "orders")
            told = [
                (offset, span.epoch)
                for span in replica.spans
                for offset in range(span.base, span.end)
            ]
            assert told == [(r.offset, r.leader_epoch) for r in records], replica.node


@pytest.mark.parametrize("name", RUNS)
def test_the_logs_of_a_story_are_the_logs_of_the_world(name: str) -> None:
    world = RUNS[name]()
    story = stories.story_of(world)
    assert list(story.partitions) == ["orders-0"]
    assert_logs_are_those_of(story, world)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10_000), image=st.sampled_from(IMAGES), turns=st.integers(5, 32))
@example(seed=9, image="drawn", turns=30).via("records that were truncated are there again")
def test_the_logs_of_a_disturbed_world_are_told_as_they_are(
    seed: int, image: str, turns: int
) -> None:
    world = disturbed(seed, level="events", image=image, turns=turns)
    for node in ("b1", "b2", "b3"):
        if world.view().status(node) == "off":
            world.start(node)
    # Behind the last crash of the plan: where a batch was torn, only a start tells.
    world.run_until(max(world.now_us, 30 * SECOND_US) + 2 * SECOND_US)
    assert {world.view().status(node) for node in ("b1", "b2", "b3")} == {"running"}
    assert_logs_are_those_of(stories.story_of(world), world)


@pytest.mark.parametrize(
    ("seed", "turns"), [pytest.param(2, 17, id="the-bytes"), pytest.param(1712, 7, id="the-size")]
)
def test_what_a_truncation_took_and_is_there_again_is_told_while_the_node_is_off(
    seed: int, turns: int
) -> None:
    world = disturbed(seed, level="events", image="drawn", turns=turns)
    world.run_until(20 * SECOND_US)
    assert world.view().status("b3") == "off"
    assert any(event.args["how"] == "lost" for event in events(world, Kind.LOST, node="b3"))
    assert_logs_are_those_of(stories.story_of(world), world)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_state_at_every_event_is_that_of_the_fold(seed: int) -> None:
    """Behind the last event of each handler: its first one carries all of its changes."""
    events = disturbed(seed).trace.events()
    story, fold = Story(None, events), Fold()
    compared = 0
    for event, following in zip(events, [*events[1:], None], strict=True):
        fold.forward(event)
        if following is not None and following.cause[:1] in (event.cause[:1], (event.n,)):
            continue
        now = moment(story, event.n)
        for partition in now.partitions:
            for replica in partition.replicas:
                path = f"{replica.node}/{partition.name}"
                if f"{path}/log_end_offset" not in fold.state:
                    continue
                assert replica.log_end == fold.state[f"{path}/log_end_offset"], (event, path)
                assert replica.high_watermark == fold.state[f"{path}/high_watermark"], event
                compared += 1
    assert compared > 500


def test_the_state_of_a_prefix_is_the_state_at_its_end() -> None:
    events = disturbed(3, level="events").trace.events()
    story = Story(None, events)
    for n in range(1, len(events), 97):
        before, now = moment(Story(None, events[:n])), moment(story, n)
        assert before.partitions == now.partitions
        assert before.faults == now.faults
        assert all(now.statuses[node] == status for node, status in before.statuses.items())


def test_an_acknowledgement_knows_its_record() -> None:
    story = stories.story_of(stories.acks1())
    acks = {ack.offset: ack for ack in story.partitions["orders-0"].acks}
    assert len(acks) == 15
    assert {acks[offset].value for offset in range(10, 15)} == {f"p1-{n}" for n in range(10, 15)}
    assert {(ack.by, ack.epoch, ack.acks, ack.client) for ack in acks.values()} == {
        ("b1", 0, 1, "p1")
    }


def test_what_a_power_loss_took_is_known_before_the_node_comes_back() -> None:
    world = stories.power_loss()
    events = world.trace.events()
    crash = next(e for e in events if e.kind is Kind.CRASH and e.node == "b2")
    story = Story(None, [event for event in events if event.n <= crash.n + 5])
    replica = story.partitions["orders-0"].replicas["b2"]
    (cut,) = replica.cuts
    assert (cut.how, cut.base, cut.end, cut.n) == (How.POWER, 1, 2, crash.n)
    (gone,) = [piece for piece in replica.pieces if piece.cut is cut]
    assert story.bytes.synced("b2", gone) == 0
    kept = replica.alive[0]
    assert kept.base == 0
    assert story.bytes.synced("b2", kept) > 0


def test_arguments_from_outside_are_not_believed() -> None:
    """Every event of a run, with one argument gone or of another type, is still told."""
    events = disturbed(4, level="events").trace.events()
    kinds = {event.kind for event in events}
    assert len(kinds) > 25
    wrong: tuple[Any, ...] = (None, "x", -7, [], {"a": 1}, True, 1 << 70, [["b1"], 3])
    for turn, value in enumerate(wrong):
        strange = [
            event._replace(
                args={
                    key: value if (event.n + at) % 3 == turn % 3 else each
                    for at, (key, each) in enumerate(event.args.items())
                }
            )
            for event in events
        ]
        told = Story(None, strange)
        from sim.present.losses import told_losses
        from sim.present.strips import strips
        from sim.present.tales import Tale
        from sim.present.timeline import timeline

        timeline(told)
        strips(told)
        told_losses(told)
        for records in stories.lost(told)[:5]:
            Tale(told, records).chain()


def test_a_series_gives_the_value_behind_an_event() -> None:
    series: Series[str] = Series()
    for n, value in ((3, "a"), (5, "a"), (7, "b"), (7, "c")):
        series.put(n, value)
    assert [series.at(n) for n in (2, 3, 6, 7, 9)] == [None, "a", "a", "c", "c"]
    assert [series.since(n) for n in (2, 6, 9)] == [0, 3, 7]


def test_an_empty_trace_is_an_empty_story() -> None:
    story = Story(None, [])
    assert moment(story).partitions == ()
    assert story.last_n == story.end_us == 0
    event = Event(1, 5, "n1", Kind.START, (), {"incarnation": 0})
    assert moment(Story(None, [event])).statuses == {"n1": "up"}
