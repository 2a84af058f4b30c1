"""Every failpoint that a leader has, with a change, a truncation or a kill in between (FAULTS C.2).

At each a handler stops; what it had seen before may not hold any more when ``on_resume`` goes on.
"""

from __future__ import annotations

import pytest

from cluster.effects import Yield
from cluster.errors import ErrorCode
from cluster.failpoints import FAILPOINTS
from cluster.records import ConfigRecord, RemoveTopicRecord
from tests.cluster.leader_tools import MEMBERS, Solo
from tests.cluster.scripted import ORDERS, TOPIC_ID

LEADERS = ("produce-appended", "fetch-read", "hw-advanced", "isr-change-sent", "metadata-applied")
CHANGES = ("follower", "truncated", "again", "nobody", "deleted", "killed")


def stopping(point: str, **options: object) -> Solo:
    solo = Solo(**options)  # type: ignore[arg-type]
    solo.router.yields["b1"] = (point,)
    return solo


def go_on(solo: Solo) -> None:
    solo.router.yields.clear()
    solo.router.resume()
    solo.router.settle()


def points(solo: Solo) -> list[str]:
    return [effect.point for _, effect in solo.router.stopped_at]


def reach(solo: Solo, point: str) -> int:
    """Make ``b1`` stop at a point; returns the number of a produce that is under way."""
    number = solo.produce("b1", b"x")
    if point == "hw-advanced":
        solo.replicate()
    elif point == "fetch-read":
        solo.fetch_as("b2", 1)
    elif point == "isr-change-sent":
        solo.controller.accepts_isr = False
        solo.fetch_as("b3", 1)
    elif point == "metadata-applied":
        solo.decide(solo.state())
    assert points(solo) == [point]
    return number


def test_c2_every_point_is_known_and_reached_by_a_leader_or_a_follower() -> None:
    assert {*LEADERS, "registered", "fetch-received"} == set(FAILPOINTS)


@pytest.mark.parametrize("point", LEADERS)
def test_c2_going_on_leads_where_running_through_leads(point: str) -> None:
    isr = ("b1", "b2") if point == "isr-change-sent" else MEMBERS
    stopped, through = stopping(point, isr=isr), Solo(isr=isr)
    numbers = [reach(stopped, point)]
    through.router.yields["b1"] = (point,)
    through.router.resume()
    numbers.append(reach(through, point))
    for solo in (stopped, through):
        go_on(solo)
        solo.replicate()
        if solo.controller.alter_requests:
            solo.answer_alter()
    assert stopped.broker("b1").fields() == through.broker("b1").fields()
    assert stopped.acked(numbers[0]) == through.acked(numbers[1]) == (ErrorCode.NONE, 0)


@pytest.mark.parametrize("point", LEADERS)
@pytest.mark.parametrize(
    "change", ["follower", "truncated", "again", "nobody", "deleted", "killed"]
)
def test_c2_what_is_in_between_is_noticed(point: str, change: str) -> None:
    """Never an acknowledgement of what is not there; never a raised handler."""
    isr = ("b1", "b2") if point == "isr-change-sent" else MEMBERS
    solo = stopping(point, isr=isr)
    number = reach(solo, point)
    hw = solo.hw
    solo.router.yields.clear()
    waiting, solo.router.stopped_at = solo.router.stopped_at, []
    if change == "killed":
        solo.kill()
        solo.start("b1")
    elif change == "nobody":
        solo.lead(None)
    elif change == "deleted":
        solo.decide(RemoveTopicRecord(TOPIC_ID, "orders"))
    else:
        solo.lead("b2", ("b2",))
        if change != "follower":
            solo.replica.truncate(0)
        if change == "again":
            solo.lead("b1", MEMBERS)
    if change != "killed":
        solo.router.stopped_at = waiting
        go_on(solo)
    answer = solo.acked(number)
    assert answer is None or answer[0] is not ErrorCode.NONE
    if ORDERS in solo.broker("b1").core.replicas:
        replica = solo.replica
        log = replica.opened
        assert log.log_start_offset <= replica.high_watermark <= log.leo
        assert replica.high_watermark <= max(hw, 0)
    solo.router.run_for(31_000)
    assert len(solo.router.take("p1")) == (0 if change == "killed" else 1)


def test_c2_produce_appended_then_lost_cut_and_won_again_is_not_acknowledged() -> None:
    """Another batch stands at its offset by then, and is committed."""
    solo = stopping("produce-appended", isr=("b1",))
    number = solo.produce("b1", b"mine")
    solo.router.yields.clear()
    waiting, solo.router.stopped_at = solo.router.stopped_at, []
    solo.lead("b2", ("b2",))
    solo.replica.truncate(0)
    solo.lead("b1", ("b1",))
    solo.produce("b1", b"other", client="p2")
    assert solo.hw == 1
    solo.router.stopped_at = waiting
    go_on(solo)
    assert solo.acked(number) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)
    assert solo.log("b1") == [(0, 2, b"other")]


def test_c2_fetch_read_then_a_missed_epoch_gives_no_credit() -> None:
    """Hazard B-H9 through the gap: the position is of an epoch that was overtaken twice."""
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b2")
    solo.router.yields["b1"] = ("fetch-read",)
    solo.fetch_as("b3", 1)
    waiting, solo.router.stopped_at = solo.router.stopped_at, []
    solo.router.yields.clear()
    solo.lead("b1", epoch=2)
    solo.router.stopped_at = waiting
    go_on(solo)
    assert solo.leader.followers["b3"].leo == -1
    (answer,) = solo.fetched("b3")
    assert answer.error_code is ErrorCode.FENCED_LEADER_EPOCH


def test_c2_fetch_read_then_a_new_life_of_the_follower_gives_no_credit() -> None:
    """KAFKA-15221: eligibility, position and broker epoch are of one moment."""
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b2")
    solo.router.yields["b1"] = ("fetch-read",)
    solo.fetch_as("b3", 1)
    solo.register("b3")
    go_on(solo)
    assert (solo.hw, solo.leader.followers["b3"].leo) == (0, -1)
    (answer,) = solo.fetched("b3")
    assert answer.error_code is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_c2_hw_advanced_then_acknowledgements_come_with_going_on() -> None:
    solo = stopping("hw-advanced")
    number = solo.produce("b1", b"x")
    assert solo.consume(0, wait_ms=60_000) is None
    solo.replicate()
    assert (solo.hw, solo.acked(number), solo.fetched("k1")) == (1, None, [])
    go_on(solo)
    assert solo.acked(number) == (ErrorCode.NONE, 0)
    assert len(solo.fetched("k1")) == 1


def test_c2_isr_change_sent_then_the_answer_comes_before_going_on() -> None:
    solo = stopping("isr-change-sent", isr=("b1", "b2"))
    number = solo.produce("b1", b"x")
    solo.replicate("b2")
    solo.fetch_as("b3", 1)
    assert solo.isr.isr == MEMBERS
    go_on(solo)
    assert solo.acked(number) == (ErrorCode.NONE, 0)


def test_c2_metadata_applied_then_more_metadata_is_followed_in_any_order() -> None:
    solo = stopping("metadata-applied")
    for leader in ("b2", "b1", "b3"):
        solo.lead(leader)
    assert points(solo) == ["metadata-applied"] * 3
    assert solo.replica.role.name == "leader"
    solo.router.stopped_at.reverse()
    go_on(solo)
    assert (solo.replica.role.name, solo.replica.leader_epoch) == ("follower", 3)
    assert solo.broker("b1").core.applied_offset == len(solo.controller.records)


def test_c2_metadata_applied_then_requests_are_answered_by_the_old_role() -> None:
    solo = stopping("metadata-applied")
    solo.lead("b2")
    assert solo.produce_raw(b"") is ErrorCode.CORRUPT_MESSAGE
    number = solo.produce("b1", b"x")
    go_on(solo)
    assert solo.acked(number) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_c2_registered_then_nothing_is_applied_until_going_on() -> None:
    solo = Solo()
    solo.kill()
    solo.router.yields["b1"] = ("registered",)
    solo.start("b1")
    solo.router.run_for(10_000)
    core = solo.broker("b1").core
    assert (core.image.end_offset, core.is_open) == (0, False)
    assert core.broker_epoch >= 0
    go_on(solo)
    solo.router.run_for(100)
    assert core.is_open
    assert solo.replica.role.name == "leader"


def test_c2_a_yield_is_the_last_effect_of_its_handler() -> None:
    solo = Solo()
    solo.produce("b1", b"x", acks=1)
    solo.replicate("b2")
    request = solo.fetch_request(1, epoch=0, replica="b3", replica_epoch=solo.peers["b3"])
    effects = solo.call("on_message", "b3", request, yields=("hw-advanced",))
    assert isinstance(effects[-1], Yield)
    assert len(effects) > 2


def test_c2_two_partitions_of_one_change_each_stop_and_go_on() -> None:
    solo = stopping("metadata-applied")
    solo.decide(solo.state(isr=("b1",)), ConfigRecord(True, "orders", "segment.ms", "1000"))
    go_on(solo)
    assert solo.isr.isr == ("b1",)
    assert solo.replica.opened.config.segment_max_age_ms == 1_000
