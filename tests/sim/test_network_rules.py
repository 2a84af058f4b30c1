"""Every kind of rule has its effect, says so in the trace, and refuses values that cannot be.

That taking a rule out leaves all other draws as they were is in
``tests.sim.test_network_properties``.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.messages import MESSAGES
from cluster.names import ADMIN
from sim.launching import next_retry_us
from sim.network_rules import (
    RULES,
    Clog,
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
)
from sim.strikes import flip
from sim.trace.kinds import Kind
from tests.sim.networks import Net, commit, fetch, fetched, heartbeat, metadata, produce, produced

ONE_WAY: tuple[Edge, ...] = (("b1", "b2"),)
BOTH: tuple[Edge, ...] = (("b1", "b2"), ("b2", "b1"))
SECOND = 1_000_000


def fixed(**config: Any) -> Net:
    """A network in which every frame takes 1 ms."""
    return Net.new(base_min_us=1_000, base_max_us=1_000, jitter_mean_us=0, **config)


# Cut and clog ------------------------------------------------------------------------------------


def test_cut_drop_drops_what_is_under_way_and_what_is_sent_meanwhile() -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.run(500)
    net.add(Cut(id="f", edges=ONE_WAY))
    net.send("b1", "b2", 2)
    net.send("b2", "b1", 3)
    net.run(600)
    net.network.remove("f")
    net.send("b1", "b2", 4)
    net.run()
    assert net.hosts.log == {"b1": [3], "b2": [4]}
    assert net.whys() == [("cut", "f"), ("cut", "f")]
    assert not net.heard()


def test_cut_deliver_spares_what_is_under_way() -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.run(500)
    net.add(Cut(id="f", edges=ONE_WAY, in_flight="deliver"))
    net.send("b1", "b2", 2)
    net.run()
    assert net.got("b2") == [1]
    assert net.whys() == [("cut", "f")]


def test_cut_drops_what_another_cut_holds() -> None:
    net = fixed()
    net.add(Cut(id="hold", edges=ONE_WAY, in_flight="hold"))
    net.send("b1", "b2", 1)
    net.run(10_000)
    net.add(Cut(id="drop", edges=ONE_WAY))
    net.network.remove("drop")
    net.send("b1", "b2", 2)
    net.run(20_000)
    net.network.remove("hold")
    net.run()
    assert net.got("b2") == [2]
    assert net.whys() == [("cut", "drop")]


def test_a_cut_keeps_the_news_of_an_end_back_too() -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.run()
    net.add(Cut(id="f", edges=(("b2", "b1"),)))
    net.die("b2")
    net.run()
    assert not net.heard()
    net.send("b1", "b2", 2)
    net.run()
    assert not net.heard(), "the answer is cut, too"
    net.network.remove("f")
    net.send("b1", "b2", 3)
    net.run()
    assert net.heard() == [("b1", "b2")]


@pytest.mark.parametrize(
    "rule", [Cut(id="f", edges=ONE_WAY, in_flight="hold"), Clog(id="f", edges=ONE_WAY)]
)
def test_what_is_held_arrives_at_the_end_in_order(rule: Rule) -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.run(500)
    net.add(rule)
    net.send("b1", "b2", 2)
    net.run(5_000)
    net.send("b1", "b2", 3, departs_us=5_000)
    view = net.network.links()[0]
    assert (view.rules, view.held) == (("f",), (("f", 4), ("f", 3), ("f", 6)))
    assert (view.waiting, view.under_way) == ((), ())
    net.run(5_500)
    net.network.remove("f")
    net.send("b1", "b2", 4, departs_us=5_500)
    net.run()
    assert net.times("b2") == {1: 5_500, 2: 5_501, 3: 6_000, 4: 6_500}
    assert [event.args["fault"] for event in net.kinds(Kind.HOLD)] == ["f"] * 3


def test_held_frames_arrive_at_the_next_retransmission() -> None:
    net = fixed()
    net.add(Cut(id="f", edges=ONE_WAY, in_flight="hold", backoff_cap_us=120 * SECOND))
    net.send("b1", "b2", 1)
    net.run(700_000)
    net.network.remove("f")
    net.send("b1", "b2", 2, departs_us=700_000)
    net.run()
    assert net.times("b2") == {1: 1_400_000, 2: 1_400_001}


@pytest.mark.parametrize(
    ("now_us", "cap_us", "expected"),
    [
        (0, 120 * SECOND, 200_000),
        (200_000, 120 * SECOND, 200_000),
        (200_001, 120 * SECOND, 600_000),
        (600_001, 120 * SECOND, 1_400_000),
        (0, 50_000, 50_000),
        (50_001, 50_000, 100_000),
        (3_600 * SECOND, 1, 3_600 * SECOND),
        (1_400_001, 300_000, 1_700_000),
    ],
)
def test_retransmissions_come_at_doubled_distances_up_to_a_cap(
    now_us: int, cap_us: int, expected: int
) -> None:
    assert next_retry_us(0, now_us, cap_us) == expected


def test_frames_that_are_under_way_wait_for_those_that_were_held_before_them() -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.add(Slow(id="slow", edges=ONE_WAY, addend_us=9_000))
    net.send("b1", "b2", 2)
    net.add(Cut(id="f", edges=ONE_WAY, in_flight="hold", backoff_cap_us=50_000))
    net.run(2_000)
    net.network.remove("f")
    net.run()
    assert net.got("b2") == [1, 2]
    assert net.times("b2")[1] == 51_000


def test_only_names_the_messages_that_are_struck() -> None:
    for only, expected in (
        (frozenset({"Fetch"}), [1]),
        (frozenset({"FetchResponse"}), [1, 2]),
        (frozenset({"BrokerHeartbeatRequest", "FetchRequest"}), [3]),
    ):
        net = fixed()
        net.add(Cut(id="f", edges=(("*", "b2"),), only=only))
        net.send("b1", "b2", heartbeat(1))
        net.send("b1", "b2", fetch(2))
        net.send("b1", "b2", fetched(3))
        net.run()
        assert net.got("b2") == expected, only


def test_a_wildcard_stands_for_every_node() -> None:
    net = fixed()
    net.send("b1", "b3", 1)
    net.run()
    net.add(Cut(id="f", edges=isolate_edges(["b3"], is_outbound=False)))
    for number, (src, dst) in enumerate((("b1", "b3"), ("b2", "b3"), ("b3", "b2"))):
        net.send(src, dst, 10 + number)
    net.run()
    assert net.hosts.log == {"b2": [12], "b3": [1]}


# Slow and loss -----------------------------------------------------------------------------------


def test_slow_multiplies_and_adds() -> None:
    net = fixed()
    net.add(Slow(id="f", edges=ONE_WAY, factor_ppm=3_000_000, addend_us=7))
    net.send("b1", "b2", 1)
    net.send("b2", "b1", 2)
    net.run()
    assert (net.times("b2")[1], net.times("b1")[2]) == (3_007, 1_000)


def test_loss_in_a_stream_delays_and_what_follows_waits() -> None:
    net = fixed()
    net.add(Loss(id="f", edges=ONE_WAY, ppm=300_000))
    for number in range(200):
        net.send("b1", "b2", number)
    net.run()
    assert net.got("b2") == list(range(200))
    delays = net.kinds(Kind.DELAY)
    assert 30 < len(delays) < 90
    assert {(e.args["lost"], e.args["by_us"]) for e in delays} >= {(1, 200_000), (2, 600_000)}
    assert all(e.args["fault"] == "f" for e in delays)
    first = delays[0].args["id"]
    assert net.times("b2")[first] >= 201_000
    assert net.times("b2")[first + 1] > net.times("b2")[first]


def test_loss_of_everything_ends_the_connection() -> None:
    net = fixed()
    net.add(Loss(id="f", edges=ONE_WAY, ppm=1_000_000))
    net.send("b1", "b2", 1)
    net.send("b1", "b2", 2)
    net.run()
    assert net.got("b2") == []
    assert sorted(net.heard()) == [("b1", "b2"), ("b2", "b1")]
    assert {at for at, *_ in net.hosts.heard} == {12_600_000}
    (event,) = net.kinds(Kind.RESET)
    assert event.args["fault"] == "f"


def test_loss_of_datagrams_is_final_and_hits_only_them() -> None:
    net = fixed(mode="datagram")
    net.add(Loss(id="f", edges=ONE_WAY, ppm=300_000))
    for number in range(200):
        net.send("b1", "b2", number)
    net.run()
    assert 110 < len(net.got("b2")) < 170
    assert max(net.times("b2").values()) < 2_000
    assert net.network.strikes("f") == len(net.whys()) == 200 - len(net.got("b2"))
    assert set(net.whys()) == {("loss", "f")}


# Resets ------------------------------------------------------------------------------------------


def test_reset_before_drops_the_request() -> None:
    net = fixed()
    net.add(ResetOn(id="f", edges=ONE_WAY, only=frozenset({"Produce"})))
    net.send("b1", "b2", metadata(1))
    net.send("b1", "b2", produce(2))
    net.send("b1", "b2", metadata(3))
    net.run()
    assert net.hosts.log == {"b2": [1, "b1"], "b1": ["b2"]}
    net.send("b1", "b2", produce(4))
    net.run()
    assert net.got("b2") == [1, 4], "it strikes once"
    (event,) = net.kinds(Kind.RESET)
    assert event.args == {
        "from": "b1",
        "to": "b2",
        "type": "ProduceRequest",
        "id": 2,
        "why": "before",
        "fault": "f",
    }
    assert event.node == "b2"
    assert set(net.whys()) == {("reset", "f")}


def test_reset_after_drops_the_response() -> None:
    net = fixed()
    net.add(ResetOn(id="f", edges=ONE_WAY, only=frozenset({"ProduceRequest"}), when="after"))
    net.send("b1", "b2", produce(1))
    net.run()
    assert net.hosts.log == {"b2": [1]}
    net.send("b2", "b1", produced(1))
    net.run()
    assert net.hosts.log == {"b2": [1, "b1"], "b1": ["b2"]}


def test_reset_leaves_a_half_open_end_in_the_dark() -> None:
    net = fixed()
    net.add(ResetOn(id="f", edges=ONE_WAY, half_open="b1"))
    net.send("b1", "b2", 1)
    net.run()
    assert net.kinds(Kind.RESET)[0].args["half_open"] == "b1"
    assert net.heard() == [("b2", "b1")]
    net.send("b1", "b2", 2)
    net.run()
    assert net.heard() == [("b2", "b1"), ("b1", "b2")]


def test_reset_strikes_so_many_and_no_more() -> None:
    net = fixed()
    net.add(ResetOn(id="f", edges=ONE_WAY, ppm=500_000, times=3))
    for number in range(40):
        net.send("b1", "b2", number)
        net.run()
    assert len(net.kinds(Kind.RESET)) == net.network.strikes("f") == 3
    assert len(net.got("b2")) == 37
    assert net.got("b2")[0] < net.kinds(Kind.RESET)[-1].args["id"], "not each one was struck"


def test_refuse_fails_new_connections_and_spares_old_ones() -> None:
    net = fixed()
    net.send("b1", "b2", 1)
    net.add(Refuse(id="f", edges=(("*", "b2"),)))
    net.send("b1", "b2", 2)
    net.send("b3", "b2", 3)
    net.run()
    assert net.hosts.log == {"b2": [1, 2], "b3": ["b2"]}
    assert net.hosts.heard[0][0] == 2_000
    assert net.whys() == [("refused", "f")]
    net.send("b2", "b3", 4)
    net.run()
    assert net.got("b3") == [4], "the other way round it connects"


def test_refuse_may_hang() -> None:
    net = fixed()
    net.add(Refuse(id="f", edges=ONE_WAY, hangs_us=5 * SECOND))
    net.send("b1", "b2", 1)
    net.run()
    assert net.hosts.heard == [(5 * SECOND, "b1", "b2", 1)]
    net.network.remove("f")
    net.send("b1", "b2", 2)
    net.run()
    assert net.got("b2") == [2]


# Limits ------------------------------------------------------------------------------------------


def test_limit_takes_time_for_each_byte() -> None:
    net = fixed()
    size = len(MESSAGES.encode(heartbeat(1)))
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=size * 1_000))
    for number in range(3):
        net.send("b1", "b2", number)
    net.run()
    assert net.times("b2") == {0: 2_000, 1: 3_000, 2: 4_000}
    assert not net.kinds(Kind.TRANSMIT), "the buffer took them at once"


def test_a_full_buffer_puts_the_reading_of_a_response_off() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1_000, buffer_bytes=300))
    net.send("b1", "b2", fetched(1, size_bytes=200))
    net.send("b1", "b2", fetched(2, size_bytes=200))
    net.run(100_000)
    assert net.network.links()[0].waiting == (2,)
    net.run()
    one, two = net.kinds(Kind.TRANSMIT)
    assert one.t_us == 0
    assert "fault" not in one.args
    assert two.t_us > 200_000
    assert (two.args["fault"], two.args["by_us"]) == ("f", two.t_us)
    assert net.got("b2") == [1, 2]


def test_a_frame_larger_than_the_buffer_goes_when_it_is_empty() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1_000, buffer_bytes=10))
    net.send("b1", "b2", 1)
    net.send("b1", "b2", 2)
    net.run()
    assert net.got("b2") == [1, 2]


def test_what_waits_for_room_dies_with_its_process() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1_000, buffer_bytes=50))
    for number in range(5):
        net.send("b1", "b2", number)
    net.run(1)
    net.die("b1")
    net.run()
    assert net.hosts.log == {"b2": [0, "b1"]}


def test_the_end_of_a_limit_lets_all_leave() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1, buffer_bytes=10))
    for number in range(5):
        net.send("b1", "b2", number)
    net.run(SECOND)
    assert len(net.network.links()[0].waiting) == 4
    net.network.remove("f")
    net.run(SECOND)
    assert len(net.network.links()[0].under_way) == 5
    net.send("b1", "b2", 5)
    net.run()
    assert net.got("b2") == list(range(6))


def test_the_end_of_a_limit_frees_what_the_wire_had_not_taken() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1))
    for number in range(3):
        net.send("b1", "b2", number)
    net.run(SECOND)
    assert net.got("b2") == []
    net.network.remove("f")
    net.send("b1", "b2", 3)
    net.run()
    assert net.times("b2") == {0: 1_001_000, 1: 1_001_001, 2: 1_001_002, 3: 1_001_003}


def test_a_limit_that_ends_beside_another_frees_nothing() -> None:
    net = fixed()
    net.add(Limit(id="f", edges=ONE_WAY, bytes_per_s=1_000))
    net.add(Limit(id="g", edges=ONE_WAY, bytes_per_s=1_000))
    size = len(MESSAGES.encode(heartbeat(1)))
    net.send("b1", "b2", 1)
    net.run(10)
    net.network.remove("f")
    net.run()
    assert net.times("b2") == {1: size * 1_000 + 1_000}


# Corruption, duplicates, order -------------------------------------------------------------------


def test_corrupt_flips_bits_that_the_receiver_sees() -> None:
    changed = 0
    for seed in range(20):
        net = Net.new(seed)
        net.add(Corrupt(id="f", edges=ONE_WAY))
        message = produce(1, records=b"r" * 4_000)
        net.send("b1", "b2", message)
        net.send("b1", "b2", heartbeat(2))
        net.run()
        (event,) = net.kinds(Kind.CORRUPT)
        assert (event.args["fault"], event.args["bits"]) == ("f", 1)
        if event.args["is_readable"]:
            changed += 1
            seen = MESSAGES.encode(net.hosts.messages[0])
            assert flip(seen, event.args["positions"]) == MESSAGES.encode(message)
            assert net.hosts.got[0][4] == event.n
            assert net.got("b2")[1:] == [2]
        else:
            assert net.whys()[0] == ("unreadable", "f")
            assert sorted(net.heard()) == [("b1", "b2"), ("b2", "b1")]
    assert changed > 10


def test_corrupt_of_what_cannot_be_read_resets_the_connection() -> None:
    unread = 0
    for seed in range(60):
        net = Net.new(seed)
        net.add(Corrupt(id="f", edges=ONE_WAY, bits=8))
        net.send("b1", "b2", commit(1))
        net.run()
        (event,) = net.kinds(Kind.CORRUPT)
        assert len(set(event.args["positions"])) == event.args["bits"] == 8
        if not event.args["is_readable"]:
            unread += 1
            assert net.whys() == [("unreadable", "f")]
            assert sorted(net.heard()) == [("b1", "b2"), ("b2", "b1")]
            assert not net.got("b2")
    assert unread > 10


def test_duplicates_arrive_twice() -> None:
    net = Net.new(mode="datagram")
    net.add(Duplicate(id="f", edges=ONE_WAY, ppm=500_000))
    for number in range(100):
        net.send("b1", "b2", number)
    net.run()
    twice = [e.args["id"] for e in net.kinds(Kind.DUPLICATE)]
    assert 30 < len(twice) < 70
    assert sorted(net.got("b2")) == sorted([*range(100), *twice])
    assert all(e.args["fault"] == "f" for e in net.kinds(Kind.DUPLICATE))


def test_a_copy_is_as_slow_as_its_link() -> None:
    net = fixed(mode="datagram")
    net.add(Duplicate(id="f", edges=ONE_WAY, ppm=1_000_000))
    net.add(Slow(id="slow", edges=ONE_WAY, factor_ppm=3_000_000))
    net.send("b1", "b2", 1)
    net.run()
    assert [at for at, *_ in net.hosts.got] == [3_000, 3_000]


def test_reordered_frames_are_overtaken() -> None:
    net = fixed(mode="datagram")
    net.add(Reorder(id="f", edges=ONE_WAY, ppm=200_000, up_to_us=5_000))
    for number in range(100):
        net.send("b1", "b2", number)
    net.run()
    late = {e.args["id"]: e.args["by_us"] for e in net.kinds(Kind.DELAY)}
    assert 8 < len(late) < 35
    assert set(net.got("b2")) == set(range(100))
    assert [n for n in net.got("b2") if n not in late] == [n for n in range(100) if n not in late]
    assert all(net.times("b2")[n] == 1_000 + late[n] for n in late)
    assert max(late.values()) > 2_000


# Links that are spared ---------------------------------------------------------------------------


def test_the_operators_links_are_never_struck_and_take_no_time() -> None:
    net = Net.new()
    net.add(Cut(id="f", edges=(("*", "*"),)))
    net.send(ADMIN, "c1", 1)
    net.run()
    assert net.hosts.got[0][:4] == (0, "c1", ADMIN, 1)


@pytest.mark.parametrize(
    ("clients", "is_struck", "is_instant"),
    [("same", True, False), ("immune", False, False), ("zero-latency", True, True)],
)
def test_clients_may_be_spared(clients: str, *, is_struck: bool, is_instant: bool) -> None:
    net = fixed(clients=clients)
    net.network.add_client("p1")
    net.send("p1", "b1", 1)
    net.run()
    assert net.times("b1")[1] == (0 if is_instant else 1_000)
    net.add(Cut(id="f", edges=(("*", "*"),)))
    net.send("p1", "b1", 2)
    net.send("b2", "b1", 3)
    net.run()
    assert net.got("b1") == ([1] if is_struck else [1, 2])


def test_a_client_is_made_known_before_it_speaks() -> None:
    net = Net.new()
    net.send("p1", "b1", 1)
    with pytest.raises(ValueError, match="'p1' has links already"):
        net.network.add_client("p1")


# Rules come and go -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rule", [Duplicate(id="f", edges=BOTH, ppm=1), Reorder(id="f", edges=BOTH, ppm=1, up_to_us=1)]
)
def test_a_stream_neither_doubles_nor_reorders(rule: Rule) -> None:
    name = type(rule).__name__
    message = f"mode of the network of {name} 'f' is 'stream', allowed: datagram"
    with pytest.raises(ValueError, match=message):
        Net.new().add(rule)


def test_ids_of_active_rules_differ() -> None:
    net = Net.new()
    net.add(Clog(id="f", edges=BOTH))
    with pytest.raises(ValueError, match="id of Clog 'f' is 'f', allowed: one that no active"):
        net.add(Clog(id="f", edges=BOTH))
    net.network.remove("f")
    net.add(Clog(id="f", edges=BOTH))


def test_a_rule_that_is_not_active_cannot_end() -> None:
    net = Net.new()
    with pytest.raises(ValueError, match="rule is 'f', active are: none"):
        net.network.remove("f")
    net.add(Clog(id="g", edges=BOTH))
    with pytest.raises(ValueError, match="rule is 'f', active are: 'g'"):
        net.network.remove("f")


def test_effects_cite_the_events_that_the_rule_goes_back_to() -> None:
    net = Net.new()
    fault = net.trace.emit(0, "", Kind.RESET, (), {})
    net.network.add(Cut(id="f", edges=ONE_WAY), cause=(fault,))
    net.send("b1", "b2", 1)
    (drop,) = net.kinds(Kind.DROP)
    assert drop.cause == (fault, 2)


def test_every_kind_of_rule_is_listed() -> None:
    assert set(RULES) == set(Rule.__subclasses__())
