"""Connections over the death and return of processes: who gets a frame, who hears of an end.

Method: two or three nodes that write down what reaches them (``tests.sim.networks``); each test
plays one history and compares what the nodes got and heard, in order.
"""

from __future__ import annotations

from copy import deepcopy

import pytest

from sim.draws import Draws
from sim.network_rules import Clog, Cut, Limit, Loss
from sim.schedulers import Seeded
from sim.trace.kinds import Kind
from tests.sim.networks import Net, fetched, heartbeat

MS = 1_000


def test_messages_arrive_in_the_order_in_which_they_were_sent() -> None:
    net = Net.new(jitter_mean_us=5_000)
    for number in range(50):
        net.send("b1", "b2", number)
    net.run()
    assert net.got("b2") == list(range(50))
    assert not net.heard()


def test_send_is_traced_with_its_cause_and_cited_by_the_arrival() -> None:
    net = Net.new()
    first = net.trace.emit(0, "b1", Kind.SEND, (), {})
    net.network.send("b1", "b2", heartbeat(7), departs_us=0, cause=(first,))
    net.run()
    sent = net.trace.events[1]
    assert (sent.t_us, sent.node, sent.kind, sent.cause) == (0, "b1", Kind.SEND, (first,))
    assert sent.args == {"to": "b2", "type": "BrokerHeartbeatRequest", "id": 7}
    assert [(src, number, event) for _, _, src, number, event in net.hosts.got] == [("b1", 7, 2)]


def test_a_node_does_not_send_to_itself() -> None:
    with pytest.raises(ValueError, match="'b1' sends to itself"):
        Net.new().send("b1", "b1", 1)


# Leaving -----------------------------------------------------------------------------------------


def test_frames_leave_in_the_order_of_their_times_not_of_the_calls() -> None:
    """A lane that waits for its disk does not keep back what another lane sends (hazard B-46)."""
    net = Net.new()
    net.send("b1", "b2", 1, departs_us=2_000_000)
    net.send("b1", "b2", 2, departs_us=10)
    net.send("b1", "b2", 3)
    net.run()
    assert net.got("b2") == [3, 2, 1]
    assert net.times("b2")[2] < 2_000
    assert net.times("b2")[1] > 2_000_000


@pytest.mark.parametrize("seed", range(5))
def test_frames_that_leave_at_one_time_keep_their_order_under_any_scheduler(seed: int) -> None:
    net = Net.new(scheduler=Seeded(Draws(seed)))
    for number in range(20):
        net.send("b1", "b2", number if number % 3 else fetched(number), departs_us=100)
    net.run()
    assert net.got("b2") == list(range(20))


def test_a_time_that_has_passed_is_now() -> None:
    net = Net.new()
    net.run(1_000)
    net.send("b1", "b2", fetched(1), departs_us=1_000)
    net.send("b1", "b2", fetched(2), departs_us=500)
    net.send("b1", "b2", 3)
    net.run()
    assert net.got("b2") == [1, 2, 3]


def test_a_fetch_response_is_read_when_it_leaves() -> None:
    net = Net.new()
    net.send("b1", "b2", fetched(1), departs_us=500)
    net.run(499)
    assert not net.kinds(Kind.TRANSMIT)
    net.run()
    (event,) = net.kinds(Kind.TRANSMIT)
    assert (event.t_us, event.node, event.cause) == (500, "b1", (1,))
    assert net.hosts.got[0][4] == event.n
    assert "x" * 50 in repr(net.hosts.messages[0])


def test_what_was_truncated_before_it_left_resets_the_connection() -> None:
    net = Net.new()
    net.send("b1", "b2", fetched(1), departs_us=500)
    net.hosts.has_bytes = False
    net.run()
    assert net.got("b2") == []
    assert net.whys() == [("unread", None)]
    assert sorted(net.heard()) == [("b1", "b2"), ("b2", "b1")]
    assert {at for at, *_ in net.hosts.heard} == {500}


# Death and return --------------------------------------------------------------------------------


def test_what_had_left_arrives_then_the_peer_hears_of_the_end() -> None:
    net = Net.new(jitter_mean_us=5_000)
    for number in range(10):
        net.send("b1", "b2", number)
    net.die("b1")
    net.run()
    assert net.hosts.log["b2"] == [*range(10), "b1"]
    assert net.hosts.heard[0][3] == 11, "the event of the crash is the cause"


def test_what_had_not_left_is_gone_and_does_not_put_the_end_off() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.send("b1", "b2", 2, departs_us=5_000_000)
    net.run(100)
    net.die("b1")
    net.run()
    assert net.hosts.log["b2"] == [1, "b1"]
    assert net.hosts.heard[0][0] < 2_000
    assert net.whys() == [("unsent", None)]


def test_a_process_that_dies_a_little_later_has_sent_what_left_until_then() -> None:
    net = Net.new()
    net.send("b1", "b2", 1, departs_us=50)
    net.send("b1", "b2", 2, departs_us=90)
    net.die("b1", died_us=60)
    net.run()
    assert net.hosts.log["b2"] == [1, "b1"]


def test_a_response_that_was_not_read_dies_with_its_process() -> None:
    net = Net.new()
    net.send("b1", "b2", fetched(1))
    net.die("b1")
    net.run()
    assert net.hosts.log["b2"] == ["b1"]


def test_a_frame_for_a_process_that_died_is_not_given_to_the_next() -> None:
    net = Net.new()
    net.send("b2", "b1", 1)
    net.run()
    net.send("b1", "b2", 2)
    net.die("b2", is_silent=True)
    net.start("b2")
    net.run()
    assert net.hosts.log == {"b1": [1, "b2"]}
    assert net.whys() == [("restarted", None)]


def test_a_frame_for_a_process_that_died_meets_a_reset() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.die("b2")
    net.run()
    assert net.hosts.log == {"b1": ["b2"]}
    assert net.whys() == [("no-process", None)]


def test_a_connection_to_nobody_is_refused() -> None:
    net = Net.new()
    net.die("b2")
    net.send("b1", "b2", 1)
    net.run()
    assert net.hosts.log == {"b1": ["b2"]}
    assert net.hosts.heard[0][3] == net.kinds(Kind.DROP)[0].n


@pytest.mark.parametrize("speaks", [True, False])
def test_a_connection_to_nobody_belongs_to_whom_its_first_frame_finds(*, speaks: bool) -> None:
    net = Net.new()
    net.die("b2")
    net.send("b1", "b2", 1)
    net.start("b2")
    if speaks:
        net.send("b2", "b1", 2)
    net.run()
    assert net.hosts.log == ({"b1": [2], "b2": [1]} if speaks else {"b2": [1]})


def test_whoever_sends_first_on_a_connection_to_nobody_owns_it() -> None:
    """The process that started then died before the frame came: the next one does not get it."""
    net = Net.new(base_min_us=5_000, base_max_us=5_000, jitter_mean_us=0)
    net.die("b2")
    net.send("b1", "b2", 1)
    net.start("b2")
    net.send("b2", "b1", 2)
    net.run(100)
    net.die("b2", is_silent=True)
    net.start("b2")
    net.run()
    assert net.hosts.log == {"b1": [2, "b2"]}


def test_the_end_of_an_older_connection_does_not_touch_a_newer_one() -> None:
    """b2 dies and returns; its new process is heard before the old one's end could come late."""
    net = Net.new()
    net.send("b1", "b2", 1)
    net.run()
    net.add(Clog(id="c", edges=(("b2", "b1"),)))
    net.die("b2")
    net.start("b2")
    net.send("b2", "b1", 2)
    net.run()
    assert net.hosts.log == {"b2": [1]}
    net.network.remove("c")
    net.run()
    assert net.hosts.log["b1"] == ["b2", 2]
    net.send("b1", "b2", 3)
    net.run()
    assert net.hosts.log["b2"] == [1, 3]
    assert net.heard() == [("b1", "b2")]


def test_a_newer_connection_tells_of_the_end_of_one_that_nobody_spoke_of() -> None:
    """Power loss and return: the first frame of the new process is heard behind the end."""
    net = Net.new()
    net.send("b1", "b2", 1)
    net.run()
    net.die("b2", is_silent=True)
    net.start("b2")
    net.send("b2", "b1", 2)
    net.run()
    assert net.hosts.log["b1"] == ["b2", 2]
    net.send("b1", "b2", 3)
    net.run()
    assert net.hosts.log["b2"] == [1, 3]


def test_a_request_on_the_newer_connection_outlives_the_answer_to_the_older() -> None:
    """b1 sends to the dead process, hears the end through the new one, and sends anew: the reset
    that its first frame meets is old news.
    """
    net = Net.new(base_min_us=1_000, base_max_us=1_000, jitter_mean_us=0)
    net.send("b1", "b2", 1)
    net.run()
    net.die("b2", is_silent=True)
    net.start("b2")
    net.send("b2", "b1", 2)
    net.run(1_500)
    net.send("b1", "b2", 3)
    net.run(2_050)
    assert net.hosts.log["b1"] == ["b2", 2]
    net.send("b1", "b2", 4)
    net.run()
    assert net.hosts.log["b2"] == [1, 4]
    assert net.heard() == [("b1", "b2")]


def test_a_power_loss_is_silent_until_a_frame_reaches_the_host_with_power() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.run()
    net.die("b2", is_silent=True)
    net.send("b1", "b2", 2)
    net.run(60_000 * MS)
    assert not net.heard()
    assert net.whys() == [("no-power", None)]
    net.power("b2")
    net.run(120_000 * MS)
    assert not net.heard(), "nobody has anything to say"
    net.send("b1", "b2", 3, departs_us=net.timeline.now_us)
    net.run()
    assert net.heard() == [("b1", "b2")]
    net.start("b2")
    net.send("b1", "b2", 4)
    net.run()
    assert net.got("b2") == [1, 4]


def test_a_frame_lost_without_power_leaves_no_gap_in_the_connection() -> None:
    net = Net.new()
    net.die("b2", is_silent=True)
    net.send("b1", "b2", 1)
    net.run()
    net.start("b2")
    net.send("b1", "b2", 2)
    net.run()
    assert net.hosts.log == {"b1": ["b2"], "b2": [2]}


def test_who_dials_a_host_without_power_hears_after_the_time_out() -> None:
    net = Net.new()
    net.die("b2", is_silent=True)
    net.send("b1", "b2", 1)
    net.run(9_999 * MS)
    assert not net.heard()
    net.run(10_001 * MS)
    assert net.heard() == [("b1", "b2")]
    assert net.whys() == [("no-power", None)]


@pytest.mark.parametrize(
    ("returns_ms", "hears_ms"), [(500, 1_000), (1_500, 3_000), (6_000, 7_000), (9_500, 10_000)]
)
def test_a_dial_is_repeated_and_refused_when_power_returns(returns_ms: int, hears_ms: int) -> None:
    net = Net.new()
    net.die("b2", is_silent=True)
    net.send("b1", "b2", 1)
    net.run(returns_ms * MS)
    net.power("b2")
    net.network.power_returned("b2", 0)
    net.run((hears_ms - 1) * MS)
    assert not net.heard()
    net.run((hears_ms + 1) * MS)
    assert net.heard() == [("b1", "b2")]


@pytest.mark.parametrize(("returns_ms", "hears_ms"), [(100, 200), (1_000, 1_400), (20_000, 25_400)])
def test_what_a_host_without_power_lost_is_sent_again_when_power_returns(
    returns_ms: int, hears_ms: int
) -> None:
    """TCP sends again after 200, 400, 800 ms, ...; the host knows of no connection by then."""
    net = Net.new()
    net.send("b1", "b2", 1)
    net.run()
    net.die("b2", is_silent=True)
    begun_us = net.timeline.now_us
    net.send("b1", "b2", 2, departs_us=begun_us)
    net.run(begun_us + returns_ms * MS)
    net.power("b2")
    net.network.power_returned("b2", 0)
    net.run(begun_us + (hears_ms - 1) * MS)
    assert not net.heard()
    net.run(begun_us + (hears_ms + 2) * MS)
    assert net.heard() == [("b1", "b2")]
    net.run(begun_us + 200_000 * MS)
    assert net.heard() == [("b1", "b2")], "it hears once"


def test_other_peers_do_not_hear_of_what_does_not_concern_them() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.send("b1", "b3", 2)
    net.run()
    net.die("b2")
    net.run()
    assert net.heard() == [("b1", "b2")]


def test_both_ends_dying_leaves_nobody_to_hear() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.send("b2", "b1", 2)
    net.die("b1")
    net.die("b2")
    net.start("b1")
    net.start("b2")
    net.run()
    assert net.hosts.log == {}
    net.send("b1", "b2", 3)
    net.run()
    assert net.hosts.log == {"b2": [3]}


# Closing and resetting ---------------------------------------------------------------------------


def test_a_peer_hears_of_a_close_behind_what_was_sent() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.send("b1", "b2", 2, departs_us=3_000)
    net.network.close("b1", "b2", (1,))
    net.run()
    assert net.hosts.log == {"b2": [1, 2, "b1"]}
    assert net.hosts.heard[0][3] == 1


def test_a_close_leaves_at_its_time() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.network.close("b1", "b2", (), departs_us=50_000)
    net.run()
    assert net.hosts.log == {"b2": [1, "b1"]}
    assert net.hosts.heard[0][0] > 50_000


def test_what_follows_a_close_is_a_new_connection() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.network.close("b1", "b2", ())
    net.send("b1", "b2", 2)
    net.send("b2", "b1", 3)
    net.run()
    assert net.hosts.log["b2"] == [1, "b1", 2]
    assert net.hosts.log.get("b1") is None, "3 was for a connection that b1 had closed"
    net.send("b2", "b1", 4)
    net.run()
    assert net.hosts.log["b1"] == [4]


def test_closing_what_is_not_open_does_nothing() -> None:
    net = Net.new()
    net.network.close("b1", "b2", ())
    net.run()
    assert not net.heard()


def test_a_process_that_closed_and_died_at_once_is_heard_of_once() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.network.close("b1", "b2", (), departs_us=50_000)
    net.die("b1")
    net.run()
    assert net.hosts.log == {"b2": [1, "b1"]}
    assert net.hosts.heard[0][0] < 50_000


def test_a_reset_discards_what_is_under_way_and_both_hear() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.send("b2", "b1", 2)
    net.network.reset("b1", "b2", fault="r")
    net.run()
    assert net.hosts.log == {"b1": ["b2"], "b2": ["b1"]}
    assert net.whys() == [("reset", None)] * 2
    (event,) = net.kinds(Kind.RESET)
    assert event.args == {"from": "b1", "to": "b2", "fault": "r"}
    assert {cause for *_, cause in net.hosts.heard} == {event.n}
    net.send("b1", "b2", 3)
    net.run()
    assert net.got("b2") == [3]


def test_half_open_hears_only_when_its_next_frame_has_arrived() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.network.reset("b1", "b2", half_open="b1")
    net.run()
    assert net.hosts.log == {"b2": ["b1"]}
    net.send("b1", "b2", 2)
    net.run()
    assert net.hosts.log == {"b2": ["b1"], "b1": ["b2"]}
    net.send("b1", "b2", 3)
    net.run()
    assert net.hosts.log["b2"] == ["b1", 3]


def test_half_open_hears_at_once_when_the_other_speaks() -> None:
    net = Net.new()
    net.send("b1", "b2", 1)
    net.run()
    net.network.reset("b1", "b2", half_open="b1")
    net.run()
    net.send("b2", "b1", 2)
    net.run()
    assert net.hosts.log["b1"] == ["b2", 2]


def test_half_open_names_one_of_the_two() -> None:
    with pytest.raises(ValueError, match="half_open is 'b3', allowed: 'b1', 'b2', None"):
        Net.new().network.reset("b1", "b2", half_open="b3")


def test_resetting_what_is_not_open_does_nothing() -> None:
    net = Net.new()
    net.network.reset("b1", "b2")
    net.run()
    assert not net.heard()
    assert not net.trace.events


# Copies ------------------------------------------------------------------------------------------


def test_a_copy_runs_on_alike_and_alone() -> None:
    net = Net.new(tail_ppm=100_000, tail_max_us=9_000)
    for number in range(30):
        net.send("b1", "b2", number, departs_us=number * 200)
        net.send("b2", "b1", fetched(100 + number), departs_us=number * 300)
    net.add(Cut(id="hold", edges=(("b1", "b2"),), in_flight="hold"))
    net.run(2_000)
    assert any(link.held for link in net.network.links())
    assert any(link.waiting for link in net.network.links())
    assert any(link.under_way for link in net.network.links())
    copy = deepcopy(net)
    for each in (copy, net):
        before = list(net.trace.events), dict(net.hosts.log)
        each.network.remove("hold")
        each.die("b2")
        each.run()
        if each is copy:
            assert (net.trace.events, net.hosts.log) == before
    assert copy.trace.events == net.trace.events
    assert copy.hosts.log == net.hosts.log
    assert copy.hosts.got == net.hosts.got
    assert len(net.got("b2")) + len(net.whys()) >= 30


# What is in the sender's host --------------------------------------------------------------------


@pytest.mark.parametrize("is_silent", [True, False])
def test_what_waits_for_the_wire_goes_with_the_power_not_with_the_process(
    *, is_silent: bool
) -> None:
    net = Net.new()
    net.add(Limit(id="f", edges=(("b1", "b2"),), bytes_per_s=1_000))
    for number in range(5):
        net.send("b1", "b2", number)
    net.run(1)
    net.die("b1", is_silent=is_silent)
    net.run()
    assert net.hosts.log.get("b2", []) == ([] if is_silent else [*range(5), "b1"])
    assert net.whys() == ([("unsent", None)] * 5 if is_silent else [])
    net.network.remove("f")
    net.start("b1")
    net.send("b1", "b2", 9)
    net.run()
    assert net.got("b2")[-1] == 9


@pytest.mark.parametrize("is_silent", [True, False])
@pytest.mark.parametrize("backoff_cap_us", [0, 1_000_000])
def test_what_is_sent_again_after_a_cut_needs_a_host_with_power(
    backoff_cap_us: int, *, is_silent: bool
) -> None:
    net = Net.new()
    edges = (("b1", "b2"),)
    net.add(Cut(id="f", edges=edges, in_flight="hold", backoff_cap_us=backoff_cap_us))
    net.send("b1", "b2", 1)
    net.run(5_000)
    net.die("b1", is_silent=is_silent)
    net.network.remove("f")
    net.run()
    expected = [1] if not (is_silent and backoff_cap_us) else []
    assert net.hosts.log.get("b2", []) == expected + ([] if is_silent else ["b1"])


def test_no_frame_arrives_early_where_one_before_it_was_taken_back() -> None:
    net = Net.new(base_min_us=1_000, base_max_us=1_000, jitter_mean_us=0)
    net.add(Loss(id="f", edges=(("b1", "b2"),), ppm=999_999))
    net.send("b1", "b2", 1)
    net.run(10)
    net.network.remove("f")
    net.die("b1", is_silent=True)
    net.start("b1")
    net.send("b1", "b2", 2, departs_us=10)
    net.run()
    assert net.times("b2") == {2: 1_010}
    assert net.whys() == [("loss", "f")]


@pytest.mark.parametrize("is_silent", [True, False])
def test_a_connection_that_failed_behind_a_dead_sender_has_no_gap(*, is_silent: bool) -> None:
    net = Net.new()
    net.add(Loss(id="f", edges=(("b1", "b2"),), ppm=1_000_000))
    net.send("b1", "b2", 1)
    net.network.remove("f")
    net.send("b1", "b2", 2)
    net.run(1_000)
    net.die("b1", is_silent=is_silent)
    net.run()
    assert net.hosts.log == ({} if is_silent else {"b2": ["b1"]})
    assert net.whys() == [("loss", "f"), ("reset", "f")]
    assert len(net.kinds(Kind.RESET)) == 1, "the crash itself"


def test_a_host_that_returns_finds_its_wire_free() -> None:
    net = Net.new()
    net.add(Limit(id="f", edges=(("b1", "b2"),), bytes_per_s=1_000, buffer_bytes=100))
    for number in range(3):
        net.send("b1", "b2", number)
    net.run(1)
    net.die("b1", is_silent=True)
    net.start("b1")
    net.send("b1", "b2", 9)
    net.run()
    assert list(net.times("b2")) == [9]
    assert net.times("b2")[9] < 60_000


def test_connections_that_are_over_are_forgotten() -> None:
    net = Net.new()
    for number in range(20):
        net.send("b1", "b2", number)
        net.network.close("b1", "b2", ())
        net.run()
    assert net.network._link("b1", "b2").connections == []
