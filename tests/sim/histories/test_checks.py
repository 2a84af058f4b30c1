"""Each anomaly is found where it is planted, with its two witnesses, and silent where it is legal.

Method: histories made by hand. A healthy one is silent; each test adds one contradiction to it, and
then what makes it legal, or the like that is none.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster.names import TopicIdPartition
from sim.histories import anomalies
from sim.histories.anomalies import LEGAL, SAFETY, Conditions, illegal
from sim.histories.checking import check, measure
from sim.histories.values import End, Excuse, History
from tests.sim.histories.made import PLACE, Made, lost

DELETED = TopicIdPartition("Z" * 22, "orders", 0)


def healthy(count: int = 4) -> Made:
    """Records v0 to v3, acknowledged and read at offsets 0 to 3."""
    made = Made()
    for number in range(count):
        made.acked(f"v{number}", number)
    made.told("assigned")
    made.told("reset", 0)
    made.read(*[(number, f"v{number}") for number in range(count)])
    return made


def test_a_healthy_history_is_silent() -> None:
    assert check(healthy().history(), is_drained=True) == []
    assert check(History(), is_drained=True) == []


@pytest.mark.parametrize("what", ["log start", "compaction", "loss"])
def test_what_befell_a_deleted_topic_excuses_nothing_in_another_one_of_its_name(what: str) -> None:
    made = healthy()
    made.acked("never read", 4)
    made.read((5, "behind it"))

    def illegal_where(place: TopicIdPartition) -> set[str]:
        if what == "log start":
            return made.illegal(log_starts={place: 9})
        if what == "compaction":
            return made.illegal(compacted=frozenset({place.topic_id}))
        return made.illegal(Excuse(place, -1, 0, 9, 0))

    skipped = {"lost-write", "poll-skip"}
    assert not illegal_where(PLACE) & skipped
    assert illegal_where(DELETED) >= skipped


def test_inconsistent_offsets_by_ack_and_read() -> None:
    made = healthy()
    made.acked("other", 2)
    found = made.found()["inconsistent-offsets"]
    assert (found.partition, found.legal, found.count) == ("orders-0", "", 1)
    assert [(each.how, each.value) for each in found.witnesses] == [
        ("read", "'v2'"),
        ("acked", "'other'"),
    ]
    assert found.events == tuple(each.event for each in found.witnesses)
    assert found.detail == (
        "offset 2 is 'v2' of epoch 0 as k1 read it and 'other' by its acknowledgement to p1"
    )


def test_two_operations_that_were_told_of_one_offset_are_inconsistent() -> None:
    made = Made()
    made.acked("same", 0)
    made.acked("same", 0)
    assert made.illegal() == {"inconsistent-offsets"}
    twice = Made()
    twice.acked("same", 0)
    twice.acked("same", 1)
    assert twice.illegal() == set()  # two operations, two offsets, one value


def test_inconsistent_offsets_are_legal_behind_a_loss_of_one_of_the_two_and_not_before() -> None:
    made = healthy()
    loss = made.event + 1
    made.event += 1
    made.read((2, "other"), client="k2", epoch=1)
    made.send("other", client="p9")
    assert made.illegal(lost(2, 3, loss, epoch=0)) == set()
    assert made.found(lost(2, 3, loss, epoch=0))["inconsistent-offsets"].legal == "loss"
    assert "inconsistent-offsets" in made.illegal(lost(2, 3, made.event + 1, epoch=0))
    assert "inconsistent-offsets" in made.illegal(lost(1, 2, loss, epoch=0))
    # Of the acknowledgement no epoch is known: it may be of any. Of both reads it is.
    read = healthy()
    read.operations, read.ends = [], {}
    read.read((2, "other"), client="k2", epoch=1)
    assert "inconsistent-offsets" in read.illegal(lost(2, 3, 0, epoch=7))


def test_fractured_read_when_only_the_epoch_differs() -> None:
    made = healthy()
    made.read((3, "v3"), client="k2", epoch=1)
    assert made.illegal() == {"fractured-read"}
    assert made.illegal(lost(3, 4, 5, epoch=0)) == set()
    assert made.illegal(lost(3, 4, 5, epoch=2)) == {"fractured-read"}


def test_duplicate_never_under_idempotence_but_without() -> None:
    made = healthy()
    made.read((4, "v1"))
    assert made.illegal() == {"duplicate"}
    assert [each.offset for each in made.found()["duplicate"].witnesses] == [1, 4]
    assert made.illegal(lost(1, 2, 3)) == set()
    assert made.illegal(log_starts={PLACE: 2}) == set()
    assert made.illegal(taken_again={PLACE: [(4, 5)]}) == set()
    assert made.illegal(taken_again={PLACE: [(5, 9)]}) == {"duplicate"}
    assert made.illegal(taken_again={PLACE._replace(partition=7): [(4, 5)]}) == {"duplicate"}
    assert made.illegal(taken_ahead={PLACE: [(0, 9)]}) == {"duplicate"}
    loose = Made()
    loose.acked("v", 0, idempotent=False, acks=1)
    loose.read((0, "v"), (1, "v"))
    assert loose.illegal() == set()
    assert loose.found()["duplicate"].legal == "not-idempotent"


def test_duplicate_says_nothing_of_values_that_were_sent_twice() -> None:
    made = Made()
    made.acked("v", 0)
    made.acked("v", 1)
    made.read((0, "v"), (1, "v"))
    assert made.found() == {}


def test_a_topic_created_anew_has_offsets_and_values_of_its_own() -> None:
    made = healthy()
    anew = TopicIdPartition("B" * 22, "orders", 0)
    made.told("recreated")
    made.read((0, "v1"), place=anew)
    assert made.illegal() == set()


def test_lost_write_where_a_reader_passed() -> None:
    made = healthy()
    made.acked("gone", 4)
    made.acked("v5", 5)
    assert made.illegal() == set()
    made.read((5, "v5"))
    found = made.found()
    assert set(found) == {"lost-write", "poll-skip"}
    assert [each.how for each in found["lost-write"].witnesses] == ["acked", "passed to"]
    assert made.illegal(lost(4, 5)) == set()
    assert made.illegal(compacted=frozenset({PLACE.topic_id})) == set()
    assert made.illegal(log_starts={PLACE: 5}) == set()
    assert made.illegal(log_starts={PLACE: 4}) == {"lost-write", "poll-skip"}
    made.read((4, "gone"), client="k2")
    assert made.illegal() == {"poll-skip"}  # k1 alone jumped over it


def test_lost_write_where_another_value_is_read() -> None:
    made = healthy(3)
    made.send("w")
    made.read((2, "w"), client="k2", epoch=1)
    made.readings = [each for each in made.readings if getattr(each, "value", b"") != b"v2"]
    assert made.illegal() == {"inconsistent-offsets", "lost-write"}


def test_a_reader_that_began_behind_a_record_has_not_passed_it() -> None:
    made = Made()
    made.acked("v0", 0)
    made.acked("v1", 1)
    made.told("sought", 1)
    made.read((1, "v1"))
    assert made.illegal() == set()
    assert made.illegal(is_drained=True) == {"unseen"}


def test_lost_tail_and_unseen_only_when_drained() -> None:
    made = healthy()
    made.acked("tail", 4)
    assert made.found() == {}
    assert made.illegal(is_drained=True) == {"lost-tail"}
    assert made.illegal(lost(4, 5), is_drained=True) == set()
    assert made.illegal(log_starts={PLACE: 5}, is_drained=True) == set()
    assert made.illegal(gone=frozenset({PLACE.topic_id}), is_drained=True) == set()
    unavailable = made.found(is_drained=True, unavailable=frozenset({"orders-0"}))
    assert {name: each.legal for name, each in unavailable.items()} == {"unseen": "unavailable"}


def test_acks_1_is_an_acknowledgement_too_and_unknown_is_none() -> None:
    made = healthy()
    made.acked("one", 4, acks=1, idempotent=False, client="q1")
    assert made.illegal(is_drained=True) == {"lost-tail"}
    unknown = healthy()
    (operation,) = unknown.send("maybe")
    unknown.end(operation, "info")
    unknown.send("open")
    assert unknown.illegal(is_drained=True) == set()
    unknown.read((4, "maybe"), (5, "open"))
    assert unknown.illegal(is_drained=True) == set()


def test_aborted_read_of_a_definite_fail_is_never_legal() -> None:
    made = healthy()
    (operation,) = made.send("refused")
    made.end(operation, "fail")
    assert made.illegal() == set()
    made.read((4, "refused"))
    assert made.illegal(lost(0, 9), compacted=frozenset({PLACE.topic_id})) == {"aborted-read"}
    made.send("refused")  # another operation with the value, which may well be there
    assert made.illegal() == set()


def test_phantom() -> None:
    made = healthy()
    made.read((4, "never sent"))
    assert made.illegal(lost(0, 9)) == {"phantom"}


@pytest.mark.parametrize(("is_one_poll", "name"), [(True, "int-poll-skip"), (False, "poll-skip")])
def test_poll_skips(is_one_poll: bool, name: str) -> None:
    made = healthy(6)
    k2 = [(1, "v1"), (3, "v3")]
    for poll in [k2] if is_one_poll else [[each] for each in k2]:
        made.read(*poll, client="k2")
    assert made.illegal() == {name}
    found = made.found()[name]
    assert [each.offset for each in found.witnesses] == [2, 1, 3]
    assert made.illegal(lost(2, 3)) == set()
    assert made.illegal(compacted=frozenset({PLACE.topic_id})) == set()


def test_gaps_in_which_nobody_saw_a_record_are_normal() -> None:
    made = Made()
    made.acked("v0", 0)
    made.acked("v5", 5)
    made.read((0, "v0"), (5, "v5"))
    assert made.found(is_drained=True) == {}


@pytest.mark.parametrize("kind", ["sought", "reset", "truncated", "failed", "assigned"])
def test_a_reader_that_was_moved_and_told_may_jump_and_go_back(kind: str) -> None:
    for offset in (0, 4):
        made = healthy(6)
        made.told("assigned", client="k2")
        made.read((2, "v2"), client="k2")
        made.told(kind, offset, client="k2")
        made.read((offset, f"v{offset}"), client="k2")
        gone = [lost(2, 3)] if kind == "truncated" else []
        assert made.illegal(*gone) == set()


def test_a_reset_that_names_a_position_is_held_to_it() -> None:
    made = healthy(6)
    made.told("sought", 3, client="k2")
    made.read((2, "v2"), client="k2")
    assert made.illegal() == {"nonmonotonic-poll"}
    over = healthy(6)
    over.told("reset", 1, client="k2")
    over.read((3, "v3"), client="k2")
    assert over.illegal() == {"poll-skip"}


@pytest.mark.parametrize("kind", ["corrupt", "committed", "commit-failed"])
def test_other_signals_do_not_move_a_reader(kind: str) -> None:
    made = healthy()
    made.told(kind, 0)
    made.read((1, "v1"))
    assert "nonmonotonic-poll" in made.illegal()


def test_nonmonotonic_polls_within_and_between() -> None:
    made = healthy()
    made.read((1, "v1"))
    assert made.illegal(lost(0, 9)) == {"nonmonotonic-poll"}
    assert [each.offset for each in made.found()["nonmonotonic-poll"].witnesses] == [3, 1]
    within = healthy()
    within.read((2, "v2"), (2, "v2"), client="k2")
    assert within.illegal() == {"int-nonmonotonic-poll"}


def test_stale_read() -> None:
    made = Made()
    made.acked("v0", 0)
    made.acked("v1", 1)
    made.read((0, "v0"), epoch=3)
    made.read((1, "v1"), epoch=2)
    assert made.illegal() == {"stale-read"}
    assert made.illegal(lost(0, 1, epoch=3)) == {"stale-read"}


def test_a_truncation_that_was_none() -> None:
    made = Made()
    made.acked("v0", 0)
    made.acked("v1", 1)
    made.read((0, "v0"), (1, "v1"), epoch=3)
    made.told("truncated", 1)
    assert made.illegal() == {"false-truncation"}
    assert made.illegal(lost(1, 2, epoch=3)) == set()
    assert made.illegal(lost(0, 1, epoch=3)) == {"false-truncation"}
    assert made.illegal(log_starts={PLACE: 2}) == set()


def test_a_truncation_behind_what_was_read_or_before_anything_was() -> None:
    made = Made()
    made.acked("v0", 0)
    made.told("truncated", 0)
    made.read((0, "v0"), epoch=3)
    made.told("truncated", 1)
    made.told("truncated", 0)
    assert made.illegal() == set()


def test_nonmonotonic_send_never_under_idempotence() -> None:
    made = Made()
    made.acked("first", 1)
    made.acked("second", 0)
    assert made.illegal() == {"nonmonotonic-send"}
    assert made.illegal(lost(1, 2)) == set()
    assert made.illegal(log_starts={PLACE: 1}) == set()
    assert made.illegal(taken_again={PLACE: [(1, 2)]}) == set()
    assert made.illegal(taken_ahead={PLACE: [(0, 1)]}) == set()
    assert made.illegal(taken_ahead={PLACE: [(2, 3)]}) == {"nonmonotonic-send"}
    other = Made()
    other.acked("first", 1)
    other.acked("second", 0, client="p2")
    other.acked("third", 2, session=1)
    assert other.found() == {}


def test_nonmonotonic_send_of_one_moment_is_internal() -> None:
    made = Made()
    first, second = made.send("first", "second")
    made.end(second, "ok", 0)
    made.end(first, "ok", 1)
    assert made.illegal() == {"int-nonmonotonic-send"}


def test_nonmonotonic_send_without_idempotence_needs_flights_or_doubt() -> None:
    made = Made()
    made.acked("first", 1, idempotent=False, flights=1)
    made.acked("second", 0, idempotent=False, flights=1)
    assert made.illegal() == {"nonmonotonic-send"}
    made = Made()
    made.acked("first", 1, idempotent=False, flights=2)
    made.acked("second", 0, idempotent=False, flights=2)
    assert made.found()["nonmonotonic-send"].legal == "unordered"
    made = Made()
    (first,) = made.send("first", idempotent=False, flights=1)
    made.end(first, "info")
    made.acked("second", 0, idempotent=False, flights=1)
    made.read((0, "second"), (1, "first"))
    assert made.found()["nonmonotonic-send"].legal == "unordered"


def test_a_legal_disorder_hides_no_other() -> None:
    made = Made()
    made.acked("high", 90)
    made.acked("a", 8)
    made.acked("b", 7)
    found = [
        (each.legal, each.detail)
        for each in check(made.history(), is_drained=False, excused=[lost(90, 91)])
    ]
    assert [legal for legal, _ in found] == ["", "loss"]
    assert "'a' before 'b'" in found[0][1]


def test_commits() -> None:
    made = healthy()
    made.told("committed", 3)
    made.told("committed", 2)
    assert made.illegal() == {"commit-regression"}
    assert [each.offset for each in made.found()["commit-regression"].witnesses] == [3, 2]
    moved = healthy()
    moved.told("committed", 3)
    moved.told("truncated", 2)
    moved.told("committed", 2)
    assert moved.illegal(lost(2, 4)) == set()
    beyond = healthy()
    beyond.told("committed", 4)
    assert beyond.illegal() == set()
    beyond.told("committed", 5)
    assert beyond.illegal() == {"commit-beyond-end"}
    assert beyond.illegal(compacted=frozenset({PLACE.topic_id})) == set()


def test_lag_is_measured_and_not_judged() -> None:
    made = Made()
    made.told("assigned")
    made.acked("v0", 0)
    told_us = made.ends["p1", 0, 0].t_us
    made.event += 500
    made.read((0, "v0"))
    made.event += 900
    made.told("sought", 0)
    made.read((0, "v0"))
    (lag,) = measure(made.history())
    assert (lag.client, lag.partition, lag.offset) == ("k1", "orders-0", 0)
    assert lag.lag_us == 501_000
    assert lag.event * 1_000 == told_us + 501_000
    assert check(made.history(), is_drained=True) == []


def test_flipped_bits_and_guards_that_are_off_make_legal() -> None:
    made = healthy()
    made.read((4, "v1"))
    assert made.found(has_flipped_bits=True)["duplicate"].legal == "flipped-bits"
    assert made.found(guards_off=frozenset({"duplicate"}))["duplicate"].legal == "guard-off"
    assert made.illegal(guards_off=frozenset({"phantom"})) == {"duplicate"}


def test_the_smallest_illegal_counterexample_is_first_and_others_are_counted() -> None:
    made = healthy(8)
    for offset in (2, 3):
        made.acked(f"other{offset}", offset)
    made.read((20, "phantom"))
    found = check(made.history(), is_drained=False, excused=[lost(3, 4)])
    assert found[0].name == "phantom"
    same = [(each.legal, each.count) for each in found if each.name == "inconsistent-offsets"]
    assert same == [("", 1), ("loss", 1)]
    assert illegal(found) == [each for each in found if not each.legal]
    assert found[0].plain()["witnesses"][0]["offset"] == 20


def test_the_table_knows_every_name_and_safety_leaves_out_unseen() -> None:
    assert frozenset(LEGAL) - SAFETY == {"unseen"}
    assert all(text and isinstance(reasons, tuple) for text, reasons in LEGAL.values())


def test_the_readme_has_the_table() -> None:
    text = Path(anomalies.__file__).parents[1].joinpath("README.md").read_text("utf-8")
    table = text.split("<!-- anomalies -->")[1].split("<!-- /anomalies -->")[0]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    assert [[cell.strip() for cell in row] for row in rows] == [
        [name, what, ", ".join(reasons) or "never"] for name, (what, reasons) in LEGAL.items()
    ]


def test_ends_of_operations_that_nobody_began_and_places_that_are_unknown_are_nothing() -> None:
    made = healthy()
    made.ends["nobody", 3, 7] = End("ok", PLACE, 1, "NONE", 1, 1)
    (operation,) = made.send("x")
    made.ends[operation.id] = End("ok", None, 4, "NONE", 9, 9)
    assert check(made.history(), is_drained=True, conditions=Conditions()) == []


def test_a_short_pass_within_a_long_one_hides_nothing_of_it() -> None:
    made = healthy(1)
    for number in (2, 5, 7, 10):
        made.acked(f"v{number}", number)
    made.read((0, "v0"), (10, "v10"), client="k2")
    made.read((2, "v2"), (5, "v5"), client="k3")
    found = made.found()["lost-write"]
    assert (found.count, found.witnesses[0].offset) == (1, 7)
