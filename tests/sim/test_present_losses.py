"""What is told of losses, on traces written by hand: one case a rule."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.cli.report_losses import print_losses
from sim.present.losses import LossTold, standing, told_losses
from sim.present.spans import Triple, common, joined, without
from sim.present.story import Story
from sim.trace.kinds import Kind
from tests.sim.stories import printed, renamed_events, renamed_text
from tests.sim.test_present_fates import FILE, PART, Script

CUT_OFF = {"rule": "nobody else had them", "licence": "L0", "at": "serving"}


def lose(script: Script, *spans: Triple, culprits: list[int], **more: Any) -> int:
    """A judge says so."""
    args = {
        **PART,
        **CUT_OFF,
        "spans": [list(each) for each in spans],
        "count": sum(end - base for _, base, end in spans),
        "leader": "b",
        "leader_epoch": 1,
        "culprits": culprits,
        "copies": [["a", "held", 0], ["b", "never-held", 0]],
        **more,
    }
    return script.put("world", Kind.LOSS, **args)


def alone(*, count: int = 2, acks: int | None = 1) -> tuple[Script, int, int]:
    """a alone has records, and is killed; b leads. Returns the crash and the election, too."""
    script = Script("c", "a", "b", "k")
    script.elect("a", 0, ["a", "b"], ["a", "b"])
    for offset in range(count):
        script.append("a", offset, offset + 1)
        if acks is not None:
            script.ack("k", "a", offset, acks)
    crash = script.put("a", Kind.CRASH, how="process")
    return script, crash, script.elect("b", 1, ["b"], ["a", "b"])


def texts(told: LossTold) -> list[str]:
    return [each.text for each in told.links]


def test_one_loss_is_told_once_in_the_order_of_time() -> None:
    script, crash, election = alone()
    loss = lose(script, (0, 0, 2), culprits=[crash, election])
    (told,) = told_losses(script.story())
    assert told.head == ("L0 (acks=1 promises no more): 2 records of t-0, offsets 0..1 of epoch 0")
    assert told.rule == "Because nobody else had them. Its causes are marked with *."
    assert texts(told) == [
        "a, leader of epoch 0, appended the records from #7 (0.007s) on.",
        (
            "Offsets 0..1 ('v0', 'v1') were acknowledged to k by a at #10 to #15 (0.015s), acks=1. "
            "a alone had them then: with acks=1 a leader answers as soon as its own log has a "
            "record, before any follower has it."
        ),
        f"a was killed at #{crash} (0.016s) and has not come back; its disk kept them.",
        (
            f"c made b leader with epoch 1 at #{election} (0.017s). b did not have them; it was in "
            "the ISR (a and b), so the election counts as clean."
        ),
        "Of the replicas only a still had them then, and was dead.",
        f"b, leader of epoch 1, served without them from #{loss} (0.018s) on.",
        "At the end a, which is dead, still has them.",
    ]
    assert [each.n for each in told.links if each.is_cited] == [crash, election]


def test_losses_of_one_licence_and_one_cause_are_one_paragraph() -> None:
    script, crash, election = alone(count=6)
    for offset in (0, 1, 3, 5):
        lose(script, (0, offset, offset + 1), culprits=[crash, election])
    other = lose(script, (0, 4, 5), culprits=[crash], licence="L1", rule="x")
    first, second = told_losses(script.story())
    assert "4 records of t-0, offsets 0..1 of epoch 0, offset 3 of epoch 0 and" in first.head
    assert len(first.covers) == 4
    assert second.covers == (other,)
    assert sum("was killed" in each for each in texts(first)) == 1
    assert sum("made b leader" in each for each in texts(first)) == 1


def test_partitions_whose_leaders_one_event_chose_have_one_cause() -> None:
    script, crash, _ = alone()
    fence = script.put("c", Kind.TIMER, key="x")
    elected = [
        script.put("c", Kind.ELECT, fence, partition=each, leader="b", leader_epoch=2, isr=["b"])
        for each in ("t-0", "t-1")
    ]
    script.put("a", Kind.APPEND, partition="t-1", base_offset=0, next_offset=1, leader_epoch=0)
    lose(script, (0, 0, 2), culprits=[crash, elected[0]])
    lose(script, (0, 0, 1), culprits=[crash, elected[1]], partition="t-1")
    (told,) = told_losses(script.story())
    assert "2 records of t-0, offsets 0..1 of epoch 0; 1 record of t-1, offset 0" in told.head


def test_a_culprit_that_the_tale_does_not_tell_is_told_in_its_place() -> None:
    script = Script("c", "a", "b", "k")
    fault = script.put("world", Kind.FAULT, id="f", kind="Cut", target=[["a", "b"]], args={})
    script.append("a", 0, 1)
    script.ack("k", "a", 0)
    lose(script, (0, 0, 1), culprits=[fault])
    (told,) = told_losses(script.story())
    assert texts(told)[0] == f"At #{fault} (0.00{fault}s) fault f begins: cut a→b."
    assert told.links[0].is_cited


def test_ranges_of_other_fates_are_named_where_they_differ() -> None:
    script = Script("c", "a", "b", "d", "k")
    script.append("a", 0, 1)
    script.append("a", 1, 2)
    script.copy("b", "a", 0, 1)
    for offset in (0, 1):
        script.ack("k", "a", offset, -1)
    script.put("a", Kind.TRUNCATE, **PART, offset=0, log_end=2)
    cut = script.put("b", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    lose(script, (0, 0, 2), culprits=[cut])
    (told,) = told_losses(script.story())
    text = "\n".join(texts(told))
    assert "a, leader of epoch 0, appended the records from" in text
    assert "; b copied offset 0." in text
    assert f"b truncated offset 0 at #{cut}" in text
    assert "a truncated the records at" in text
    assert "b never got offset 1." in text
    assert text.endswith("At the end no log has them.")


# Records that nobody had acknowledged ------------------------------------------------------


def test_a_record_that_was_only_committed_has_a_tale_too() -> None:
    script, crash, election = alone(acks=None)
    script.put("a", Kind.HW, **PART, high_watermark=0)
    committed = script.put("a", Kind.HW, **PART, high_watermark=2)
    lose(script, (0, 0, 2), culprits=[crash, election], is_committed=True)
    (told,) = told_losses(script.story())
    assert (
        "Nobody was told that the records were written, but they were committed on a, whose high "
        f"watermark was above them at #{committed} (0.0{committed}s)."
    ) in texts(told)
    assert any("made b leader" in each for each in texts(told))


def test_a_record_that_was_only_read_has_a_tale_too() -> None:
    script, crash, election = alone(acks=None)
    script.put("r", Kind.POLL, **PART, offset=1, leader_epoch=3, value="other")
    read = script.put("r", Kind.POLL, **PART, offset=1, leader_epoch=0, value="v1")
    lose(script, (0, 0, 2), culprits=[crash, election])
    (told,) = told_losses(script.story())
    assert any(f"but r had read from them at #{read} " in each for each in texts(told))


# Disks -------------------------------------------------------------------------------------


def test_a_disk_that_lied_is_called_a_liar() -> None:
    script = Script("a", "k")
    script.append("a", 0, 1)
    script.ack("k", "a", 0, -1)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=0, size=10, how="lost")
    more = {"licence": "L4", "copies": [["a", "lied", crash]]}
    lose(script, (0, 0, 1), culprits=[crash], **more)
    (told,) = told_losses(script.story())
    assert any("and its disk had called it synced, which was a lie." in t for t in texts(told))
    assert "nothing had synced" not in " ".join(texts(told))


@pytest.mark.parametrize("fate", ["damaged", "unaccounted"])
def test_a_copy_that_is_spoilt_is_no_copy_at_the_end(fate: str) -> None:
    script = Script("a", "k")
    bad = script.append("a", 0, 1)
    script.ack("k", "a", 0, -1)
    script.put("a", Kind.CRASH, how="process")
    lose(script, (0, 0, 1), culprits=[bad], at="nowhere", copies=[["a", fate, bad]])
    (told,) = told_losses(script.story())
    text = " ".join(texts(told))
    assert text.endswith("At the end no log has it.")
    assert "still has it" not in text
    assert "its disk kept it" not in text
    words = {"damaged": "a has the record damaged"}
    assert words.get(fate, "a had the record, and the ledger does not know") in text


def test_an_older_disk_is_told_with_when_it_came() -> None:
    script = Script("a", "k")
    script.append("a", 0, 1)
    script.ack("k", "a", 0, -1)
    script.put("a", Kind.CRASH, how="process")
    step = script.put("world", Kind.STEP, id="back", step="start", args={"node": ["a"]})
    start = script.put("a", Kind.START, step, incarnation=1, disk="image/a")
    script.put("a", Kind.RECOVER, start, **PART, role="waiting", log_start=0, log_end=0)
    lose(script, (0, 0, 1), culprits=[step], copies=[["a", "replaced", step]])
    (told,) = told_losses(script.story())
    (link,) = [each for each in told.links if each.is_cited]
    assert link.text == (
        f"a came back at #{start} (0.0{start:02d}s) on an older image of its disk, which did not "
        "have the record."
    )
    assert "its disk kept it" not in " ".join(texts(told))


# What stands -------------------------------------------------------------------------------


def test_what_a_later_leader_had_back_is_not_lost() -> None:
    script, crash, election = alone(count=3)
    lose(script, (0, 0, 3), culprits=[crash, election])
    script.put("a", Kind.START, incarnation=1)
    opened = {**PART, "role": "waiting", "log_start": 0, "log_end": 2, "epochs": [[0, 0]]}
    script.put("a", Kind.RECOVER, **opened)
    assert [spans for _, spans in standing(script.story())] == [[(0, 0, 3)]]
    script.put("a", Kind.ROLE, **PART, role="leader", leader_epoch=2, leader="a", log_end=2)
    assert [spans for _, spans in standing(script.story())] == [[(0, 2, 3)]]
    again = lose(script, (0, 1, 2), culprits=[crash])
    assert [(loss.n, spans) for loss, spans in standing(script.story())][-1] == (again, [(0, 1, 2)])


triples = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 20), st.integers(1, 6)).map(
        lambda each: (each[0], each[1], each[1] + each[2])
    ),
    max_size=6,
)


@given(triples, triples)
def test_ranges_are_sets_of_records(ones: list[Triple], others: list[Triple]) -> None:
    def flat(spans: list[Triple]) -> set[tuple[int, int]]:
        return {(epoch, at) for epoch, base, end in spans for at in range(base, end)}

    assert flat(joined(ones)) == flat(ones)
    assert flat(without(ones, others)) == flat(ones) - flat(others)
    assert flat(common(ones, others)) == flat(ones) & flat(others)
    neat = joined(ones)
    assert all(a[:1] != b[:1] or a[2] < b[1] for a, b in pairwise(neat))


# Printing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [40, 80, 100])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    script, crash, election = alone(count=9)
    lose(script, (0, 0, 9), culprits=[crash, election])
    told = told_losses(script.story())
    text = printed(print_losses, told, {"L0": True}, width=width)
    assert all(len(line) <= width for line in text.split("\n"))
    assert text.startswith("  covered: L0 (acks=1 promises no")
    assert "    * a was killed" in text


def test_whether_a_loss_is_covered_is_said_only_where_somebody_judged() -> None:
    script, crash, _ = alone()
    lose(script, (0, 0, 2), culprits=[crash])
    told = told_losses(script.story())
    assert printed(print_losses, told, {}).startswith("  NOT COVERED: L0")
    assert printed(print_losses, told).startswith("  L0 (")


def test_other_names_give_the_same_tale_with_other_names() -> None:
    script, crash, election = alone()
    lose(script, (0, 0, 2), culprits=[crash, election])
    names = {"a": "x1", "b": "y1", "c": "z1", "k": "w1", "t-0": "u-0"}
    before = "\n".join(texts(told_losses(script.story())[0]))
    events = renamed_events(script.events, names)
    after = "\n".join(texts(told_losses(Story(None, events))[0]))
    # The article and a node of that name are one word.
    assert renamed_text(before.replace(" a leader", " one leader"), {**names, "u": "u"}) == (
        after.replace(" a leader", " one leader").replace(" a record", " x1 record")
    )
