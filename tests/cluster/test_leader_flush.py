"""``flush.messages``: nothing counts as stored here before it is synced (DECISIONS 2.9)."""

from __future__ import annotations

import pytest

from cluster.config import BrokerConfig
from cluster.effects import Fsync
from cluster.errors import ErrorCode
from cluster.records import ConfigRecord
from cluster.truncation import TruncationMode
from storage.memdisk import MemDisk
from tests.cluster.leader_tools import Solo
from tests.cluster.scripted import ORDERS, Cluster
from tests.storage.faults import FaultDisk

FLUSH_1 = {"flush.messages": "1"}


def held(solo: Solo | Cluster) -> int:
    return sum(isinstance(effect, Fsync) for _, effect in solo.router.held)


def do_flushes(solo: Solo, *numbers: int) -> None:
    """Complete held flushes, in the order given (all by default)."""
    flushes = [h for h in solo.router.held if isinstance(h[1], Fsync)]
    for number in numbers or range(len(flushes)):
        effect = flushes[number][1]
        assert isinstance(effect, Fsync)
        solo.router.held = [h for h in solo.router.held if h[1] is not effect]
        solo.router.call("b1", "on_synced", effect.token)
    solo.router.settle()


def holding(**options: object) -> Solo:
    solo = Solo(topic=FLUSH_1, **options)  # type: ignore[arg-type]
    solo.router.holds_fsync = True
    return solo


def test_d29_acks_1_waits_for_the_leaders_flush() -> None:
    solo = holding()
    numbers = [solo.produce("b1", b"x", acks=1) for _ in range(2)]
    assert [solo.acked(n) for n in numbers] == [None, None]
    do_flushes(solo, 0)
    assert [solo.acked(n) for n in numbers] == [(ErrorCode.NONE, 0), None]
    do_flushes(solo)
    assert solo.acked(numbers[1]) == (ErrorCode.NONE, 1)


def test_d29_a_later_flush_does_not_stand_for_an_earlier_one() -> None:
    solo = holding()
    numbers = [solo.produce("b1", b"x", acks=1) for _ in range(3)]
    do_flushes(solo, 2)
    assert [solo.acked(n) for n in numbers] == [None] * 3
    do_flushes(solo, 0)
    assert [solo.acked(n) is not None for n in numbers] == [True, False, False]
    do_flushes(solo)
    assert all(solo.acked(n) for n in numbers)


def test_d29_the_high_watermark_waits_for_the_leaders_own_flush() -> None:
    solo = holding()
    number = solo.produce("b1", b"x")
    solo.replicate()
    assert (solo.hw, solo.acked(number)) == (0, None)
    do_flushes(solo)
    assert (solo.hw, solo.acked(number)) == (1, (ErrorCode.NONE, 0))


def test_d29_a_leader_that_stops_behind_the_append_does_not_count_itself() -> None:
    solo = holding()
    solo.router.yields["b1"] = ("produce-appended",)
    number = solo.produce("b1", b"x")
    solo.replicate()
    assert (solo.leo_now, solo.hw) == (1, 0)
    solo.router.resume()
    solo.router.settle()
    assert (solo.hw, solo.acked(number)) == (0, None)
    do_flushes(solo)
    assert (solo.hw, solo.acked(number)) == (1, (ErrorCode.NONE, 0))


def test_d29_a_sole_member_commits_with_its_flush() -> None:
    solo = holding(replicas=("b1",))
    number = solo.produce("b1", b"x")
    assert (solo.hw, solo.acked(number)) == (0, None)
    do_flushes(solo)
    assert (solo.hw, solo.acked(number)) == (1, (ErrorCode.NONE, 0))


def test_d29_followers_may_read_what_the_leader_has_not_synced() -> None:
    solo = holding()
    solo.produce("b1", b"x", acks=1)
    answer = solo.fetch_as("b2", 0)
    assert answer is not None
    assert answer.records


def test_d29_a_flush_every_two_records_begins_with_the_second() -> None:
    solo = Solo(topic={"flush.messages": "2"})
    solo.router.holds_fsync = True
    assert solo.acked(solo.produce("b1", b"x", acks=1)) == (ErrorCode.NONE, 0)
    number = solo.produce("b1", b"y", acks=1)
    assert (held(solo), solo.acked(number)) == (1, None)


def test_d29_a_waiting_acks_1_is_answered_when_leadership_is_lost() -> None:
    solo = holding()
    number = solo.produce("b1", b"x", acks=1)
    solo.lead("b2")
    assert solo.acked(number) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    do_flushes(solo)
    solo.router.run_for(60_000)
    assert len(solo.router.take("p1")) == 1


def test_d29_a_waiting_acks_1_outlives_a_reelection_and_times_out() -> None:
    solo = holding()
    number = solo.produce("b1", b"x", acks=1, timeout_ms=1_000)
    other = solo.produce("b1", b"x", acks=1)
    solo.lead("b1")
    assert solo.acked(number) is None
    solo.router.run_for(1_000)
    assert solo.acked(number) == (ErrorCode.REQUEST_TIMED_OUT, -1)
    do_flushes(solo)
    assert solo.acked(other) == (ErrorCode.NONE, 1)
    assert len(solo.router.take("p1")) == 2


def test_d29_what_a_follower_had_not_synced_does_not_count_when_it_leads() -> None:
    """The flush that it began as a follower is still under way at the promotion."""
    cluster = Cluster(2, topic=FLUSH_1)
    cluster.lead("b1")
    cluster.router.holds_fsync = True
    cluster.produce("b1", b"x", acks=1)
    cluster.router.held = [h for h in cluster.router.held if h[0] != "b1"]
    assert (cluster.leo("b2"), held(cluster)) == (1, 1)
    cluster.lead("b2", ("b2",))
    assert cluster.high_watermark("b2") == 0, "on no synced copy"
    cluster.router.do_held()
    assert cluster.high_watermark("b2") == 1


def test_d29_what_an_earlier_life_left_unsynced_is_flushed_before_it_counts() -> None:
    solo = holding(isr=("b1",))
    solo.produce("b1", b"x")
    solo.router.holds_background = True
    solo.restart()
    assert solo.replica.opened.boundary.end_offset == 0
    assert (solo.hw, held(solo)) == (0, 1)
    do_flushes(solo)
    assert (solo.hw, solo.replica.opened.boundary.end_offset) == (1, 1)


def test_d29_a_restarted_follower_fetches_on_when_its_log_is_synced() -> None:
    cluster = Cluster(2, topic=FLUSH_1)
    cluster.lead("b1")
    cluster.router.holds_fsync = cluster.router.holds_background = True
    cluster.produce("b1", b"x", acks=1)
    assert cluster.leo("b2") == 1
    cluster.kill("b2")
    cluster.start("b2")
    before = len(cluster.router.delivered)
    cluster.router.settle()
    flushes = [h for h in cluster.router.held if h[0] == "b2" and isinstance(h[1], Fsync)]
    assert len(flushes) == 1
    assert not [e for e in cluster.router.delivered[before:] if e[0] == "b2"]
    leader = cluster.broker("b1").core.replicas
    (replica,) = leader.values()
    assert replica.leading is not None
    assert replica.leading.followers["b2"].leo == 0
    cluster.router.holds_fsync = False
    cluster.router.do_held()
    cluster.router.settle()
    assert replica.leading.followers["b2"].leo == 1


def test_d29_a_deposed_leader_fetches_only_when_all_its_flushes_are_done() -> None:
    cluster = Cluster(2, topic=FLUSH_1)
    cluster.lead("b1")
    cluster.router.holds_fsync = True
    for _ in range(2):
        cluster.produce("b1", b"x", acks=1)
    mine = [effect for name, effect in cluster.router.held if name == "b1"]
    cluster.router.held.clear()
    before = len(cluster.router.delivered)
    cluster.lead("b2")
    for flush in mine:
        assert isinstance(flush, Fsync)
        sent = [e for e in cluster.router.delivered[before:] if e[:2] == ("b1", "b2")]
        assert sent == [], "it would report what is not synced"
        cluster.router.call("b1", "on_synced", flush.token)
        cluster.router.settle()
    assert [e for e in cluster.router.delivered[before:] if e[:2] == ("b1", "b2")]


@pytest.mark.parametrize("mode", [TruncationMode.FETCH, TruncationMode.KIP_279])
def test_d29_a_flush_under_way_is_waited_for_in_the_next_epoch_too(mode: TruncationMode) -> None:
    """An old leader that follows must not report what only its page cache has."""
    cluster = Cluster(2, topic=FLUSH_1, config=BrokerConfig(truncation=mode))
    cluster.lead("b1", ("b1",))
    cluster.router.holds_fsync = True
    for value in (b"x", b"y"):
        cluster.produce("b1", value, acks=1)
    first, second = (h for h in cluster.router.held if h[0] == "b1")
    cluster.lead("b2", ("b2",))
    leader = cluster.broker("b2").core.replicas[ORDERS].leading
    assert leader is not None
    for flush in (second, first):
        assert leader.followers["b1"].leo == -1, "not all of b1's log is synced"
        cluster.router.held = [flush]
        cluster.router.do_held()
        cluster.router.settle()
    assert leader.followers["b1"].leo == cluster.leo("b2") == 1


def test_d29_a_flush_that_a_truncation_overtook_completes_for_what_is_left() -> None:
    solo = holding(isr=("b1",))
    solo.produce("b1", b"x")
    do_flushes(solo)
    solo.produce("b1", b"y")
    solo.lead("b2")
    solo.replica.truncate(1)
    solo.lead("b1", ("b1",))
    number = solo.produce("b1", b"z")
    do_flushes(solo, 0)
    assert (solo.hw, solo.acked(number)) == (1, None), "z waits for its own flush"
    do_flushes(solo)
    assert (solo.hw, solo.acked(number)) == (2, (ErrorCode.NONE, 1))


def test_d29_a_token_that_is_not_known_is_ignored() -> None:
    solo = holding()
    solo.produce("b1", b"x", acks=1)
    (flush,) = [h[1] for h in solo.router.held]
    assert isinstance(flush, Fsync)
    do_flushes(solo)
    assert solo.call("on_synced", flush.token) == []


def test_d29_a_flush_of_a_replica_that_is_gone_does_not_stand_for_one_of_its_successor() -> None:
    solo = holding(replicas=("b1",))
    solo.produce("b1", b"x", acks=1)
    solo.lead("b2", replicas=("b2",))
    solo.lead("b1", ("b1",), replicas=("b1",))
    number = solo.produce("b1", b"y", acks=1)
    do_flushes(solo, 0)
    assert solo.acked(number) is None
    do_flushes(solo)
    assert solo.acked(number) == (ErrorCode.NONE, 0)


def test_d29_turning_it_on_holds_for_the_next_append() -> None:
    solo = Solo()
    solo.router.holds_fsync = True
    assert solo.acked(solo.produce("b1", b"x", acks=1)) == (ErrorCode.NONE, 0)
    solo.decide(ConfigRecord(True, "orders", "flush.messages", "1"))
    number = solo.produce("b1", b"y", acks=1)
    assert solo.acked(number) is None
    do_flushes(solo)
    assert solo.acked(number) == (ErrorCode.NONE, 1)


def test_d29_a_failed_flush_halts_the_broker_and_nothing_is_acknowledged() -> None:
    for operation in ("begin_fsync", "fsync"):
        disk = FaultDisk(MemDisk())
        solo = Solo(topic=FLUSH_1, disk=disk, replicas=("b1",))
        disk.fail(operation, suffix=".log")
        numbers = [solo.produce("b1", b"x", acks=acks) for acks in (-1, 1)]
        assert [solo.acked(n) for n in numbers] == [None, None]
        assert solo.router.stopped == {"b1"}
        solo.router.run_for(60_000)
        assert solo.router.take("p1") == []
