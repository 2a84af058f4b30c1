"""Copies, counts and elections that once were told wrongly: one case a rule, and one real run."""

from __future__ import annotations

from typing import Any

import pytest

from sim.present.chains import chain
from sim.present.history import How
from sim.present.moments import Span
from sim.present.timeline import timeline
from sim.trace.kinds import Kind
from tests.sim import stories
from tests.sim.test_present_fates import PART, Script, lines

OPENED = {**PART, "role": "waiting", "log_start": 0}


def test_a_log_of_several_epochs_that_is_whole_has_lost_nothing() -> None:
    script = Script("a")
    for epoch, base in ((0, 0), (1, 4), (4, 6)):
        script.append("a", base, base + 4 if epoch == 0 else base + 2, epoch)
    script.put("a", Kind.CRASH, how="power")
    start = script.put("a", Kind.START, incarnation=1)
    epochs = [[0, 0], [1, 4], [4, 6]]
    script.put("a", Kind.RECOVER, start, **OPENED, log_end=8, epochs=epochs)
    assert script.story().partitions["t-0"].replicas["a"].cuts == []
    assert script.spans("a") == (Span(0, 4, 0), Span(4, 6, 1), Span(6, 8, 4))
    assert "loses offsets" not in lines(script)


@pytest.mark.parametrize("is_told", [True, False])
def test_what_only_a_start_finds_gone_is_put_down_to_the_power_loss_before(is_told: bool) -> None:
    script = Script("a")
    script.append("a", 0, 4)
    crash = script.put("a", Kind.CRASH, how="power")
    if is_told:
        failed = script.put("a", Kind.START, incarnation=1)
        script.put("a", Kind.CRASH, failed, how="start-failed", detail="no room")
    start = script.put("a", Kind.START, incarnation=2)
    script.put("a", Kind.RECOVER, start, **OPENED, log_end=3)
    (cut,) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.how, cut.by, cut.base, cut.end) == (How.POWER, crash, 3, 4)
    assert f"a loses offset 3 of t-0, since the power loss at #{crash}" in lines(script)
    assert "#0" not in lines(script)


def test_a_whole_log_is_not_told_as_lost_in_a_run_over_an_epoch_boundary() -> None:
    story = stories.story_of(stories.epoch_boundary())
    text = "\n".join(each.text for each in timeline(story))
    assert "b1 loses power" in text
    assert "its log of orders-0 has offsets 0..14" in text
    assert "loses offsets" not in text
    assert story.partitions["orders-0"].replicas["b1"].cuts == []


# Older disks -------------------------------------------------------------------------------------


def test_an_older_disk_lacks_what_came_later() -> None:
    script = Script("a", "k")
    script.append("a", 0, 2)
    script.append("a", 2, 4)
    script.ack("k", "a", 2)
    script.put("a", Kind.CRASH, how="process")
    start = script.put("a", Kind.START, incarnation=1, disk="image/a")
    script.put("a", Kind.RECOVER, start, **OPENED, log_end=2)
    (cut,) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.how, cut.by, cut.base, cut.end) == (How.OLDER, start, 2, 4)
    text = lines(script)
    assert "a starts again on an older image of its disk (image/a)" in text
    assert "that disk of a is older, and lacks offsets 2..3 of t-0 (1 acked)" in text
    assert "recovery" not in text


def test_a_log_that_an_older_disk_does_not_have_is_missing_from_it() -> None:
    script = Script("a")
    script.append("a", 0, 2)
    script.put("a", Kind.CRASH, how="power")
    start = script.put("a", Kind.START, incarnation=1, disk="image/a")
    script.put("a", Kind.REGISTER, start, broker_epoch=7)
    (cut,) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.how, cut.by) == (How.OLDER, start)


def test_a_start_on_the_same_disk_later_is_no_older_disk() -> None:
    script = Script("a")
    script.append("a", 0, 2)
    script.put("a", Kind.CRASH, how="process")
    start = script.put("a", Kind.START, incarnation=1, disk="image/a")
    script.put("a", Kind.RECOVER, start, **OPENED, log_end=2)
    crash = script.put("a", Kind.CRASH, how="power")
    start = script.put("a", Kind.START, incarnation=2, disk="same")
    script.put("a", Kind.RECOVER, start, **OPENED, log_end=1)
    (cut,) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.how, cut.by) == (How.POWER, crash)


def test_a_wiped_disk_is_told_as_empty() -> None:
    script = Script("a")
    script.append("a", 0, 2)
    script.put("a", Kind.CRASH, how="process")
    script.put("a", Kind.START, incarnation=1, disk="wiped")
    assert "a starts again on an empty disk" in lines(script)


# Counts ------------------------------------------------------------------------------------------


def replaced(*, acks: int) -> Script:
    """An unacknowledged record of epoch 0 at offset 0, and another one there, acknowledged."""
    script = Script("c", "a", "b", "k")
    script.append("a", 0, 1)
    script.put("a", Kind.CRASH, how="process")
    script.elect("b", 1, ["b"], ["a", "b"])
    script.append("b", 0, 1, 1)
    script.ack("k", "b", 0, acks=acks)
    script.put("a", Kind.START, incarnation=1)
    script.put("a", Kind.RECOVER, **OPENED, log_end=1, epochs=[[0, 0]])
    return script


def test_an_acknowledgement_counts_for_the_record_of_its_epoch_only() -> None:
    script = replaced(acks=-1)
    script.put("a", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    script.elect("a", 2, ["a"], ["a", "b"])
    text = lines(script)
    assert "a truncates offset 0 of t-0\n" in text
    assert "a lacks offset 0 (1 acked), which only b has" in text


def test_a_leader_that_lacks_another_record_of_that_offset_lacks_no_acknowledged_one() -> None:
    script = replaced(acks=-1)
    script.elect("b", 2, ["b"], ["a", "b"])
    assert "b lacks offset 0, which only a has" in lines(script)


def test_who_asked_for_no_answer_was_told_nothing() -> None:
    script = replaced(acks=0)
    script.put("b", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    assert "b truncates offset 0 of t-0" in lines(script)
    assert "(1 acked)" not in lines(script)


# Elections ---------------------------------------------------------------------------------------


def elected(
    leader: str, *, old_isr: list[str], unclean: bool, elr: list[str], known: list[str]
) -> str:
    """The line of an election, in a trace that shows the ELR."""
    script = Script("c", "a", "b")
    script.elect("a", 0, ["a"], ["a"])
    changes: tuple[Any, ...] = (("c/t-0/elr", [], elr), ("c/t-0/last_known_elr", [], known))
    script.put("c", Kind.TIMER, key="x")
    script.events[-1] = script.events[-1]._replace(changes=changes)
    heard = script.put("c", Kind.DELIVER, type="BrokerHeartbeat", **{"from": "a"})
    changes = (("c/t-0/elr", elr, []), ("c/t-0/last_known_elr", known, []))
    script.events[-1] = script.events[-1]._replace(changes=changes)
    args = {"leader": leader, "leader_epoch": 1, "isr": [leader], "old_isr": old_isr}
    script.put("c", Kind.ELECT, heard, **PART, **args, unclean=unclean)
    return next(each for each in lines(script).split("\n") if "epoch 1" in each)


def test_elections_are_told_by_where_the_leader_is_from() -> None:
    isr = elected("a", old_isr=["a", "b"], unclean=False, elr=[], known=[])
    assert "epoch 1, from the ISR, ISR now a" in isr
    elr = elected("b", old_isr=[], unclean=False, elr=["b"], known=["a"])
    assert "epoch 1, from the eligible replicas (ELR), since the ISR is empty, ISR now b" in elr
    last = elected("a", old_isr=[], unclean=True, elr=[], known=["a"])
    assert "epoch 1, as the last leader known, since ISR and ELR are empty, ISR now a" in last
    assert "unclean" not in last
    other = elected("b", old_isr=[], unclean=True, elr=[], known=["a"])
    assert "although the ISR is empty, and it is not in the ELR (unclean)" in other
    # Somebody is eligible, so who led last is no exception.
    eligible = elected("a", old_isr=[], unclean=True, elr=["b"], known=["a"])
    assert "(unclean)" in eligible
    outside = elected("b", old_isr=["a"], unclean=True, elr=[], known=[])
    assert "although it is not in the ISR (unclean)" in outside


def test_nobody_leads_for_a_reason() -> None:
    script = Script("c", "a", "b")
    script.put("c", Kind.TIMER, key="x")
    script.events[-1] = script.events[-1]._replace(changes=(("c/t-0/elr", [], ["a", "b"]),))
    gone = {"leader": None, "leader_epoch": 1, "isr": [], "old_isr": ["a"]}
    script.put("c", Kind.ELECT, **PART, **gone, unclean=False)
    text = lines(script)
    assert "t-0 has no leader: its ISR is empty, and nobody of its ELR (a, b) may lead now" in text


# Truncations -------------------------------------------------------------------------------------


def truncated(offset: int, high_watermark: int, *, leader_end: int = 3) -> str:
    """The tale of a record that a follower cut without having asked for an epoch."""
    script = Script("a", "b", "k")
    script.append("a", 0, leader_end)
    script.append("b", 0, 5)
    heard = script.put("b", Kind.DELIVER, type="FetchResponse", **{"from": "a"})
    args = {"offset": offset, "log_end": 5, "high_watermark": high_watermark}
    cut = script.put("b", Kind.TRUNCATE, heard, **PART, **args)
    return " ".join(each.text for each in chain(script.story(), cut).sentences)


def test_a_cut_to_the_high_watermark_is_one_only_where_that_was() -> None:
    assert "without asking: it cut to its own high watermark, 3." in truncated(3, 3)
    told = truncated(3, 5)
    assert "after an answer of its leader a, whose log ended there." in told
    assert "high watermark" not in told
    assert "after an answer of its leader a." in truncated(3, 5, leader_end=2)
