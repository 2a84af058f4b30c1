"""What users do to a cluster, what comes of it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from cluster.names import CONTROLLER
from cluster.outcomes import Outcome
from sim.pending import VerbFailed
from sim.trace.kinds import Kind
from sim.verbs import Cluster
from sim.world import World, WorldError
from tests.sim.worlds import SECOND_US, events, led_world, new_world, of_fault, values_of

Verb = Callable[[Cluster], Any]


def kinds_of(outcomes: list[Outcome]) -> list[str]:
    return [outcome.kind.value for outcome in outcomes]


# Producing ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("acks", "kind", "offsets"), [("all", "acked", [0, 1, 2]), (1, "acked", [0, 1, 2]), (0, "", [])]
)
def test_outcomes_by_acks(acks: Any, kind: str, offsets: list[int]) -> None:
    world, cluster = led_world()
    outcomes = cluster.produce("orders", 3, acks=acks).wait()
    if acks == 0:
        assert {outcome.offset for outcome in outcomes} == {-1}
        assert set(kinds_of(outcomes)) == {"unknown"}
        world.run_for(SECOND_US)
    else:
        assert kinds_of(outcomes) == [kind] * 3
        assert [outcome.offset for outcome in outcomes] == offsets
    world.run_for(SECOND_US)
    assert values_of(world, "b1") == [b"p1-0", b"p1-1", b"p1-2"]
    told = events(world, Kind.ACK, Kind.UNKNOWN, node="p1")
    assert [each.args["operation"] for each in told] == [0, 1, 2]
    assert {each.args["acks"] for each in told} == {{"all": -1}.get(acks, acks)}
    assert [each.args["value"] for each in events(world, Kind.PRODUCE)] == ["p1-0", "p1-1", "p1-2"]


@pytest.mark.parametrize("acks", ["all", "1", "0", 1, 0, -1])
def test_acks_may_be_spelled_as_kafka_does(acks: int | str) -> None:
    _, cluster = led_world()
    assert len(cluster.produce("orders", 1, acks=acks).wait()) == 1


def test_values_keys_and_batches() -> None:
    world, cluster = led_world()
    cluster.produce("orders", ["a", b"\xff"], keys=["k", b"\x00"]).wait()
    cluster.produce("orders", 7, batch=3).wait()
    records = world.view().records("b1", "orders")
    assert [(record.key, record.value) for record in records[:2]] == [
        (b"k", b"a"),
        (b"\x00", b"\xff"),
    ]
    assert [record.value for record in records[2:]] == [b"p1-%d" % number for number in range(7)]
    appends = events(world, Kind.APPEND, node="b1")
    assert len(appends) < 9
    assert [each.args["value"] for each in events(world, Kind.PRODUCE)][:2] == ["a", "ff"]


@pytest.mark.parametrize("seed", range(4))
def test_what_is_sent_at_one_instant_leaves_in_the_order_of_the_calls(seed: int) -> None:
    """Each call has a cost of its own, and none overtakes another on the client's connection."""
    world, cluster = led_world(seed)
    cluster.produce("orders", ["first"], acks=1).wait()
    values = [f"v{number}".encode() for number in range(8)]
    for each in [cluster.produce("orders", [value], acks=1) for value in values]:
        each.wait()
    assert values_of(world, "b1") == [b"first", *values]


def test_a_key_always_goes_to_one_partition_and_all_are_used() -> None:
    _, cluster = led_world()
    cluster.create_topic("wide", partitions=3).wait()
    keys = [f"key-{number % 10}" for number in range(30)]
    outcomes = cluster.produce("wide", 30, keys=keys, partition=None).wait()
    places: dict[str, set[str]] = {}
    for key, outcome in zip(keys, outcomes, strict=True):
        places.setdefault(key, set()).add(str(outcome.partition))
    assert all(len(found) == 1 for found in places.values())
    assert len({place for found in places.values() for place in found}) == 3


def test_numbers_go_on_over_clients_of_one_name() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 2).wait()
    cluster.produce("orders", 2, acks=1).wait()
    cluster.produce("orders", 1).wait()
    cluster.produce("orders", 1, client="other").wait()
    assert list(world.producers) == ["p1", "p1.2", "other"]
    assert values_of(world, "b1") == [b"p1-0", b"p1-1", b"p1-2", b"p1-3", b"p1-4", b"other-0"]


def test_what_strikes_a_client_strikes_all_of_its_name() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 1).wait()
    cluster.produce("orders", 1, acks=1).wait()
    fault = cluster.cut("p1", "b1", both=True)
    for acks, client in (("all", "p1"), (1, "p1.2"), (0, "p1.3")):
        cluster.produce("orders", 1, acks=acks)
        world.run_for(SECOND_US)
        assert client in {each.args["from"] for each in of_fault(world, fault)}
    cluster.heal(fault)
    world.run_for(60 * SECOND_US)
    written = values_of(world, "b1")
    cluster.pause("p1")
    for acks, idempotence in (("all", True), (1, None), ("all", False)):
        cluster.produce("orders", 1, acks=acks, idempotence=idempotence)
    world.run_for(SECOND_US)
    assert values_of(world, "b1") == written
    assert [each.node for each in events(world, Kind.PAUSE)] == ["p1", "p1.2", "p1.3", "p1.4"]
    cluster.resume("p1")
    world.run_for(SECOND_US)
    assert len(values_of(world, "b1")) == len(written) + 3


def test_nothing_to_send_is_done_at_once() -> None:
    world, cluster = led_world()
    now_us = world.now_us
    assert cluster.produce("orders", 0).wait() == []
    assert cluster.produce("orders", []).wait() == []
    assert world.now_us == now_us


@pytest.mark.parametrize(("topic", "partition"), [("none", 0), ("orders", 7)])
def test_what_does_not_exist_is_rejected_at_the_end_of_the_time(topic: str, partition: int) -> None:
    world, cluster = led_world()
    begun_us = world.now_us
    outcomes = cluster.produce(topic, 2, partition=partition, timeout_us=3 * SECOND_US).wait()
    assert kinds_of(outcomes) == ["rejected"] * 2
    assert {outcome.error_code.name for outcome in outcomes} == {"UNKNOWN_TOPIC_OR_PARTITION"}
    assert world.now_us == begun_us + 3 * SECOND_US
    told = events(world, Kind.REJECT)
    assert {each.args["error"] for each in told} == {"UNKNOWN_TOPIC_OR_PARTITION"}


def test_too_few_replicas_reject_and_a_lost_answer_leaves_it_open() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "3"})
    world.crash("b3")
    assert world.run_until_true(lambda: len(world.view().isr("orders")) == 2, 40 * SECOND_US)
    outcomes = cluster.produce("orders", 1, timeout_us=5 * SECOND_US).wait()
    assert kinds_of(outcomes) == ["rejected"]
    assert outcomes[0].error_code.name == "NOT_ENOUGH_REPLICAS"
    world, cluster = led_world()
    cluster.produce("orders", 1, timeout_us=5 * SECOND_US).wait()
    cluster.cut("b1", "p1", only=["Produce"])
    outcomes = cluster.produce("orders", 1, timeout_us=5 * SECOND_US).wait()
    assert kinds_of(outcomes) == ["unknown"]
    assert len(values_of(world, "b1")) == 2


REFUSED: list[tuple[Verb, type[Exception], str]] = [
    (lambda c: c.produce("orders", 1, acks="2"), WorldError, "acks is '2', allowed are 'all', 1"),
    (lambda c: c.produce("orders", -1), WorldError, "values is -1, allowed are how many"),
    (
        lambda c: c.produce("orders", 1, partition=-1),
        WorldError,
        "partition is -1, allowed is a number, 0 or more",
    ),
    (
        lambda c: c.produce("orders", 2, keys=["a"]),
        WorldError,
        "there are 1 keys, allowed are 2: one a value",
    ),
    (
        lambda c: c.produce("orders", 1, timeout_us=999),
        WorldError,
        "timeout is 999 us, allowed is 1 ms or more",
    ),
    (
        lambda c: c.produce("orders", 1, acks=1, idempotence=True),
        WorldError,
        "acks is 1, idempotence needs -1",
    ),
    (lambda c: c.produce("orders", 1, batch=0), WorldError, "batch_max_records is 0, allowed"),
    (
        lambda c: c.produce("orders", 1, client="b1"),
        WorldError,
        "client is 'b1', allowed is a name other than c1, b1",
    ),
    (lambda c: c.consume("orders", -1), WorldError, "count is -1, allowed is a number, 0"),
    (
        lambda c: c.consume("orders", 1, offset=-1),
        WorldError,
        "offset is -1, allowed is a",
    ),
    (
        lambda c: c.consume("orders", 1, partition=-1),
        WorldError,
        "partition is -1, allowed is a number, 0 or more",
    ),
    (
        lambda c: c.consume("orders", 1, reset="odd"),  # type: ignore[arg-type]
        WorldError,
        "auto_offset_reset is 'odd', allowed are earliest, latest, none",
    ),
    (
        lambda c: c.create_topic("t", replicas=4),
        WorldError,
        r"replicas is 4, allowed is 1\.\.3: one a broker",
    ),
    (lambda c: c.create_topic("t", replicas=0), WorldError, r"replicas is 0, allowed is 1\.\.3"),
    (
        lambda c: c.create_topic("t", assignments=[[]]),
        WorldError,
        r"replicas are \[\], allowed is each once of b1, b2, b3",
    ),
    (
        lambda c: c.create_topic("t", assignments=[["b1", "b1"]]),
        WorldError,
        r"replicas are \['b1', 'b1'\], allowed is each once",
    ),
    (
        lambda c: c.create_topic("t", assignments=[["b1", "b9"]]),
        WorldError,
        r"replicas are \['b1', 'b9'\], allowed is each once of b1, b2, b3",
    ),
    (
        lambda c: c.create_topic("t", assignments=[["b1"], ["b1", "b2"]]),
        WorldError,
        "assignments have 1, 2 replicas, allowed is one number for all",
    ),
    (lambda c: c.elect("orders", kind="odd"), WorldError, "kind is 'odd', allowed are preferred"),
    (
        lambda c: c.elect("orders", to="b2", kind="preferred"),
        WorldError,
        "kind is 'preferred', allowed with a leader named is unclean",
    ),
    (
        lambda c: c.create_topic("t", config={"odd": "1"}),
        WorldError,
        "'odd' is no topic config, allowed are cleanup",
    ),
    (
        lambda c: c.configure("orders", {"min.insync.replicas": "x"}),
        WorldError,
        "min.insync.replicas is 'x', allowed is an integer",
    ),
    (lambda c: c.elect("none"), WorldError, "there is no partition none-0 now"),
    (lambda c: c.reassign("orders", 7), WorldError, "there is no partition orders-7 now"),
    (lambda c: c.delete_records("none"), WorldError, "there is no partition none-0 now"),
    (lambda c: c.heal("x"), WorldError, "fault is 'x', active are all$"),
    (lambda c: c.cut("b9", "b1"), WorldError, "node is 'b9', there are c1, b1, b2, b3, admin"),
    (lambda c: c.cut("b1", "b1"), WorldError, "link is from 'b1' to itself, allowed is one to"),
    (lambda c: c.cut("b1", "b2", only=["Odd"]), ValueError, "only of Cut 'cut-1' is 'Odd', all"),
    (
        lambda c: c.cut("b1", "b2", in_flight="odd"),
        ValueError,
        "in_flight of Cut 'cut-1' is 'odd', allowed: drop, hold, deliver",
    ),
    (lambda c: c.partition(["b1"]), ValueError, "allowed are two or more, none of them empty"),
    (lambda c: c.partition(["b1"], ["b9"]), WorldError, "node is 'b9', there are c1, b1, b2"),
    (
        lambda c: c.partition(["b1"], ["b1", "b2"]),
        ValueError,
        "allowed is each node once: 'b1' is twice",
    ),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_cannot_be_says_so_and_does_nothing(number: int) -> None:
    verb, kind, text = REFUSED[number]
    world, cluster = led_world()
    key, count = world.state_key(), world.trace.count
    with pytest.raises(kind, match=text):
        verb(cluster)
    assert (world.state_key(), world.trace.count) == (key, count)


# Waiting -----------------------------------------------------------------------------------------


def test_what_is_not_done_in_time_says_what_is_known() -> None:
    _, cluster = led_world()
    for pending, text in (
        (
            cluster.produce("none", 2),
            "produce of 2 records to none is not done after 5 s: 0 of 2 outcomes are known",
        ),
        (
            cluster.consume("orders", 2),
            "consume of 2 records of orders-0 is not done after 5 s: 0 are read",
        ),
    ):
        with pytest.raises(VerbFailed, match=text):
            pending.wait(5 * SECOND_US)
        assert not pending.is_done()
        with pytest.raises(VerbFailed, match=text.replace(" after 5 s", "")):
            pending.result()


def test_results_stay() -> None:
    _, cluster = led_world()
    for pending in (
        cluster.produce("orders", 2),
        cluster.consume("orders", 2),
        cluster.create_topic("other"),
    ):
        found = pending.wait()
        assert pending.is_done()
        assert pending.result() == found == pending.wait()


def test_outcomes_that_came_before_somebody_asked_are_there() -> None:
    world, cluster = led_world()
    one, two = cluster.produce("orders", 2), cluster.produce("orders", 2)
    world.run_for(5 * SECOND_US)
    assert two.is_done()
    assert [outcome.offset for outcome in one.result() + two.result()] == [0, 1, 2, 3]


# Clients that end --------------------------------------------------------------------------------


def test_a_producer_that_was_restarted_sends_on() -> None:
    world, cluster = led_world()
    lost = cluster.produce("orders", 2)
    world.crash("p1")
    with pytest.raises(WorldError, match="p1 is down: no process runs there"):
        cluster.produce("orders", 1)
    world.run_for(60 * SECOND_US)
    world.start("p1")
    assert kinds_of(cluster.produce("orders", 2).wait()) == ["acked"] * 2
    # Outcomes of the new process do not answer for the old one.
    assert "acked" not in kinds_of(lost.result())


def test_a_consumer_that_was_restarted_reads_from_where_its_reset_says() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 6).wait()
    assert [record.offset for record in cluster.consume("orders", 4).wait()] == [0, 1, 2, 3]
    world.crash("k1")
    with pytest.raises(WorldError, match="k1 is down: no process runs there"):
        cluster.consume("orders", 1, offset=0)
    world.start("k1")
    assert [record.offset for record in cluster.consume("orders", 2).wait()] == [0, 1]
    assert [record.offset for record in cluster.consume("orders", 2).wait()] == [2, 3]


# Consuming ---------------------------------------------------------------------------------------


def test_offsets_of_reads() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 6).wait()

    def read(count: int, **more: Any) -> list[int]:
        return [record.offset for record in cluster.consume("orders", count, **more).wait()]

    assert read(2) == [0, 1]
    assert read(2) == [2, 3]
    assert read(2, offset=1) == [1, 2]
    assert read(1) == [3]
    assert read(0) == []
    # Beyond the end: back to where the reset says.
    assert read(2, offset=99) == [0, 1]
    assert list(world.consumers) == ["k1"]
    latest = cluster.consume("orders", 2, reset="latest")
    world.run_for(SECOND_US)
    cluster.produce("orders", 2).wait()
    assert [record.offset for record in latest.wait()] == [6, 7]
    assert list(world.consumers) == ["k1", "k1.2"]
    polls = events(world, Kind.POLL, node="k1")
    assert [each.args["offset"] for each in polls] == [0, 1, 2, 3, 1, 2, 3, 0, 1]


def test_an_offset_that_is_none_without_a_reset_is_told_and_not_read() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 2).wait()
    with pytest.raises(VerbFailed, match="is not done after 5 s: 0 are read"):
        cluster.consume("orders", 1, offset=99, reset="none").wait(5 * SECOND_US)
    assert events(world, Kind.POSITION, node="k1")


def test_reads_that_overlap_each_have_their_own_records() -> None:
    _, cluster = led_world()
    one, two = cluster.consume("orders", 2), cluster.consume("orders", 3)
    cluster.produce("orders", 5).wait()
    assert [record.offset for record in two.wait()] == [2, 3, 4]
    assert [record.offset for record in one.result()] == [0, 1]


# The operator ------------------------------------------------------------------------------------

ANSWERS: list[tuple[Verb, str]] = [
    (lambda c: c.create_topic("orders"), "create topic orders: orders TOPIC_ALREADY_EXISTS"),
    (lambda c: c.create_topic(""), "create topic : INVALID_TOPIC_EXCEPTION"),
    (lambda c: c.create_topic("a/b"), "create topic a/b: a/b INVALID_TOPIC_EXCEPTION"),
    (lambda c: c.create_topic("a" * 250), "INVALID_TOPIC_EXCEPTION"),
    (lambda c: c.create_topic("t", partitions=0), "create topic t: t INVALID_PARTITIONS"),
    (lambda c: c.delete_topic("none"), "delete topic none: none UNKNOWN_TOPIC_OR_PARTITION"),
    (lambda c: c.elect("orders"), "elect orders-0: orders-0 ELECTION_NOT_NEEDED"),
    (lambda c: c.elect("orders", kind="unclean"), "elect orders-0: orders-0 ELECTION_NOT_NEEDED"),
    (lambda c: c.reassign("orders"), "reassign orders-0: orders-0 NO_REASSIGNMENT_IN_PROGRESS"),
    (
        lambda c: c.reassign("orders", replicas=["b9"]),
        "reassign orders-0: orders-0 INVALID_REPLICA_ASSIGNMENT",
    ),
    (
        lambda c: c.reassign("orders", replicas=[]),
        "reassign orders-0: orders-0 INVALID_REPLICA_ASSIGNMENT",
    ),
    (
        lambda c: c.delete_records("orders", before=99),
        "delete records of orders-0: orders-0 OFFSET_OUT_OF_RANGE",
    ),
    (
        lambda c: c.configure("none", {"min.insync.replicas": "1"}),
        "configure none: topic 'none' is unknown UNKNOWN_TOPIC_OR_PARTITION",
    ),
    (
        lambda c: c.configure("b1", {"odd": "1"}),
        "configure b1: 'odd' is no broker config, there are none INVALID_CONFIG",
    ),
]


@pytest.mark.parametrize("number", range(len(ANSWERS)))
def test_what_the_cluster_refuses_is_said(number: int) -> None:
    verb, text = ANSWERS[number]
    world, cluster = led_world()
    begun_us = world.now_us
    pending = verb(cluster)
    with pytest.raises(VerbFailed, match=text):
        pending.wait()
    assert world.now_us - begun_us < SECOND_US
    with pytest.raises(VerbFailed, match=text):
        pending.result()


def test_what_the_operator_can_do() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "1"})
    cluster.produce("orders", 6).wait()
    world.run_for(SECOND_US)
    cluster.delete_records("orders", before=4).wait()
    assert [record.offset for record in world.view().records("b1", "orders")] == [4, 5]
    cluster.configure("orders", {"min.insync.replicas": "3"}).wait()
    world.run_for(SECOND_US)
    cluster.reassign("orders", replicas=["b3", "b2"]).wait()
    world.run_for(5 * SECOND_US)
    assert set(world.view().isr("orders")) == {"b2", "b3"}
    assert world.view().replica("b1", "orders") is None
    cluster.configure("orders", {"min.insync.replicas": None}).wait()
    cluster.delete_records("orders").wait()
    world.run_for(SECOND_US)
    assert world.view().records("b3", "orders") == []
    cluster.delete_topic("orders").wait()
    world.run_for(5 * SECOND_US)
    assert world.view().partition("orders") is None
    cluster.create_topic("orders").wait()
    cluster.produce("orders", 1).wait()


def test_preferred_and_forced_elections() -> None:
    world, cluster = led_world()
    world.crash("b1")
    assert world.run_until_true(lambda: world.view().leader("orders") == "b2", 30 * SECOND_US)
    world.start("b1")
    world.run_for(10 * SECOND_US)
    cluster.elect("orders").wait()
    world.run_for(SECOND_US)
    assert world.view().leader("orders") == "b1"
    for name in ("b1", "b2", "b3"):
        world.crash(name)
        world.run_for(10 * SECOND_US)
    assert world.view().leader("orders") is None
    world.start("b2")
    world.run_for(10 * SECOND_US)
    cluster.elect("orders", kind="unclean", to="b2").wait()
    world.run_for(SECOND_US)
    assert world.view().leader("orders") == "b2"
    with pytest.raises(WorldError, match="there is no partition orders-1 now"):
        cluster.delete_records("orders", 1)


def test_records_of_a_partition_without_a_leader_are_not_deleted() -> None:
    world, cluster = led_world()
    for name in ("b1", "b2", "b3"):
        world.crash(name)
        world.run_for(10 * SECOND_US)
    with pytest.raises(WorldError, match="orders-0 has no leader now"):
        cluster.delete_records("orders")


def test_a_topic_of_a_world_that_has_not_begun() -> None:
    world = new_world()
    Cluster(world).create_topic("orders", partitions=4).wait()
    image = world.view().image()
    assert len(list(image.partitions_of(image.topic_ids["orders"]))) == 4
    assert world.view().is_led("orders")


def test_the_operator_asks_until_the_controller_is_back() -> None:
    world, cluster = led_world()
    world.crash(CONTROLLER)
    pending = cluster.create_topic("late")
    count = world.trace.count
    world.run_for(10 * SECOND_US)
    asked = [each for each in events(world, Kind.SEND, node="admin") if each.n > count]
    # Each time under another number.
    assert 15 <= len(asked) <= 25
    assert len({each.args["id"] for each in asked}) == len(asked)
    assert not pending.is_done()
    world.start(CONTROLLER)
    pending.wait()
    assert world.view().is_led("late")
    world.run_for(5 * SECOND_US)
    # It asks no more, and the topic was created once.
    last = events(world, Kind.SEND, node="admin")[-1]
    assert last.t_us < world.now_us - 4 * SECOND_US


def test_what_is_refused_for_now_is_asked_again_and_told_when_time_is_up() -> None:
    world, cluster = led_world()
    world.crash("b3")
    world.run_for(20 * SECOND_US)
    pending = cluster.create_topic("other")
    text = (
        "create topic other is not done after 5 s: c1 is running, other INVALID_REPLICATION_FACTOR"
    )
    with pytest.raises(VerbFailed, match=text):
        pending.wait(5 * SECOND_US)
    world.start("b3")
    pending.wait()


# The network -------------------------------------------------------------------------------------


def test_cuts_and_partitions_heal_by_name_or_all_at_once() -> None:
    world, cluster = led_world()
    one = cluster.cut("b1", "b2", only=["Fetch"])
    two = cluster.cut("b1", "b3", both=True, fault_id="mine")
    three = cluster.partition(["b1", "b2"], ["b3", "c1"])
    assert (one, two, three) == ("cut-1", "mine", "partition-1")
    assert list(world.active_faults) == [one, two, three]
    targets = [each.args["target"] for each in events(world, Kind.FAULT)]
    assert targets[:2] == [[["b1", "b2"]], [["b1", "b3"], ["b3", "b1"]]]
    assert len(targets[2]) == 8
    cluster.heal(two)
    with pytest.raises(WorldError, match="fault is 'mine', active are all, cut-1, partition-1"):
        cluster.heal(two)
    cluster.heal()
    assert world.active_faults == {}
    assert [each.args["id"] for each in events(world, Kind.HEAL)] == [two, one, three]
    cluster.heal()
    assert len(events(world, Kind.HEAL)) == 3


def test_a_cut_has_every_link_from_one_of_these_to_one_of_those() -> None:
    world, cluster = led_world()
    cluster.cut("b1", ["b2", "b3"])
    cluster.cut(["b1", "b2"], ["b1", "b3"], both=True)
    one, two = (each.args["target"] for each in events(world, Kind.FAULT))
    assert one == [["b1", "b2"], ["b1", "b3"]]
    there = [["b1", "b3"], ["b2", "b1"], ["b2", "b3"]]
    assert two == [*there, *(each[::-1] for each in there)]
    with pytest.raises(WorldError, match="link is from 'b1', 'b1' to itself"):
        cluster.cut(["b1", "b1"], "b1")


def test_a_cut_only_stops_what_it_names() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "1"})
    cluster.cut("b1", "b2", only=["FetchResponse"])
    cluster.produce("orders", 1, acks=1).wait()
    world.run_for(SECOND_US)
    dropped = {each.args["type"] for each in events(world, Kind.DROP)}
    assert dropped == {"FetchResponse"}
    assert (len(values_of(world, "b2")), len(values_of(world, "b3"))) == (0, 1)


def test_the_world_is_the_only_memory_of_the_verbs() -> None:
    world: World
    world, cluster = led_world()
    cluster.produce("orders", 2).wait()
    again = Cluster(world)
    assert again.cut("b1", "b2") == "cut-1"
    cluster.heal("cut-1")
    assert kinds_of(again.produce("orders", 1).wait()) == ["acked"]
    assert values_of(world, "b1")[-1] == b"p1-2"
