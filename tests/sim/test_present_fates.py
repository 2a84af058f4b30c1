"""What became of records, on traces written by hand: one case a rule.

Each trace has the events that its case is about, and no others.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from sim.present.chains import chain
from sim.present.fates import Records, copies, records_of
from sim.present.history import How
from sim.present.moments import Span, moment
from sim.present.story import Story
from sim.present.tallies import Ranges
from sim.present.timeline import timeline
from sim.present.words import name, value
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from tests.sim import stories
from tests.sim.stories import lost
from tests.sim.test_present_story import IMAGES, disturbed

PART = {"partition": "t-0"}
FILE = "/t-0/00000000000000000000.log"


class Script:
    """Events under way, numbered; a node's writes are 10 bytes a record."""

    def __init__(self, *nodes: str) -> None:
        self.events: list[Event] = []
        for node in nodes:
            self.put(node, Kind.START, incarnation=0)

    def put(self, node: str, kind: Kind, /, *causes: int, **args: Any) -> int:
        n = len(self.events) + 1
        self.events.append(Event(n, n * 1_000, node, kind, causes, args))
        return n

    def append(self, node: str, base: int, end: int, epoch: int = 0) -> int:
        size = 10 * (end - base)
        self.put(node, Kind.WRITE, file=FILE, position=10 * base, size=size)
        args = {"base_offset": base, "next_offset": end, "leader_epoch": epoch}
        return self.put(node, Kind.APPEND, **PART, **args)

    def copy(self, node: str, source: str, base: int, end: int, epoch: int = 0) -> int:
        heard = self.put(node, Kind.DELIVER, type="FetchResponse", **{"from": source})
        self.put(node, Kind.WRITE, file=FILE, position=10 * base, size=10 * (end - base))
        args = {"base_offset": base, "next_offset": end, "leader_epoch": epoch}
        return self.put(node, Kind.REPLICATE, heard, **PART, **args)

    def ack(self, client: str, leader: str, offset: int, acks: int = 1) -> int:
        sent = self.put(client, Kind.PRODUCE, topic="t", value=f"v{offset}", partition=0)
        heard = self.put(client, Kind.DELIVER, type="ProduceResponse", **{"from": leader})
        return self.put(client, Kind.ACK, heard, sent, **PART, offset=offset, acks=acks)

    def elect(self, leader: str, epoch: int, isr: list[str], old: list[str]) -> int:
        return self.put(
            "c",
            Kind.ELECT,
            **PART,
            leader=leader,
            leader_epoch=epoch,
            isr=isr,
            old_isr=old,
            unclean=leader not in old,
        )

    def story(self) -> Story:
        return Story(None, self.events)

    def spans(self, node: str) -> tuple[Span, ...]:
        (partition,) = moment(self.story()).partitions
        return next(each.spans for each in partition.replicas if each.node == node)


def test_a_copy_has_the_epochs_of_the_log_that_it_comes_from() -> None:
    script = Script("a", "b")
    script.append("a", 0, 3, 0)
    script.append("a", 3, 5, 2)
    script.append("a", 5, 6, 7)
    script.copy("b", "a", 1, 6, 7)
    assert script.spans("b") == (Span(1, 3, 0), Span(3, 5, 2), Span(5, 6, 7))


def test_the_first_byte_that_is_lost_says_how_much_of_the_log_is() -> None:
    script = Script("a")
    script.append("a", 0, 4)
    script.append("a", 4, 8)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=60, size=20, how="lost")
    script.put("a", Kind.LOST, crash, file="t-0/0.index", position=0, size=20, how="lost")
    assert script.spans("a") == (Span(0, 6, 0),)
    script.put("a", Kind.LOST, crash, file="u-0" + FILE[4:], position=0, size=80, how="lost")
    assert script.spans("a") == (Span(0, 6, 0),)
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=20, size=20, how="torn")
    (cut, other) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.n, cut.how, cut.base, cut.end) == (crash, How.POWER, 6, 8)
    assert (other.base, other.end) == (2, 6)


def test_the_name_of_a_directory_is_lost_with_all_that_is_in_it() -> None:
    script = Script("a")
    script.append("a", 0, 4)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file="t-0", how="name")
    assert script.spans("a") == ()


def test_what_a_start_finds_is_what_there_is() -> None:
    script = Script("a")
    script.append("a", 0, 4, 1)
    script.append("a", 4, 8, 3)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=0, size=80, how="lost")
    start = script.put("a", Kind.START, incarnation=1)
    script.put("a", Kind.RECOVER, start, **PART, role="waiting", log_start=1, log_end=6)
    assert script.spans("a") == (Span(1, 4, 1), Span(4, 6, 3))
    assert [piece.how for piece in script.story().partitions["t-0"].replicas["a"].alive] == [
        How.FOUND,
        How.FOUND,
    ]


def test_what_a_start_finds_may_be_older_than_what_was_there_last() -> None:
    script = Script("a")
    script.append("a", 0, 4, 1)
    script.append("a", 4, 6, 2)
    script.put("a", Kind.TRUNCATE, **PART, offset=3, log_end=6)
    script.append("a", 3, 5, 4)
    script.put("a", Kind.CRASH, how="power")
    start = script.put("a", Kind.START, incarnation=1)
    opened = {**PART, "role": "waiting", "log_start": 0, "log_end": 7}
    found = script.put("a", Kind.RECOVER, start, **opened, epochs=[[1, 0], [2, 4], [4, 6]])
    assert script.spans("a") == (Span(0, 4, 1), Span(4, 6, 2), Span(6, 7, 4))
    replica = script.story().partitions["t-0"].replicas["a"]
    (_, cut) = replica.cuts
    assert (cut.n, cut.how, cut.base, cut.end) == (found, How.POWER, 3, 5)
    assert [piece.place is None for piece in replica.alive] == [False, False, False, True]


def test_a_tail_that_is_there_again_is_that_of_the_truncation() -> None:
    script = Script("a")
    script.append("a", 0, 4, 1)
    script.append("a", 4, 6, 2)
    script.put("a", Kind.TRUNCATE, **PART, offset=4, log_end=6)
    script.append("a", 4, 8, 3)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=40, size=40, how="lost")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=40, size=20, how="tail-back")
    assert script.spans("a") == (Span(0, 4, 1), Span(4, 6, 2))


def test_a_salvaged_log_is_what_there_is() -> None:
    script = Script("a")
    script.append("a", 0, 4, 1)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=0, size=20, how="lost")
    start = script.put("a", Kind.START, incarnation=1)
    script.put("a", Kind.RECOVER, start, **PART, role="quarantined", error="corrupt")
    script.put("a", Kind.SALVAGE, **PART, log_start=0, log_end=3, epochs=[[1, 0]])
    assert script.spans("a") == (Span(0, 3, 1),)


def test_a_log_that_no_start_finds_is_gone() -> None:
    script = Script("a")
    script.append("a", 0, 4)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.START, incarnation=1)
    assert script.spans("a") == (Span(0, 4, 0),)
    script.put("a", Kind.REGISTER, broker_epoch=7)
    assert script.spans("a") == ()
    (cut,) = script.story().partitions["t-0"].replicas["a"].cuts
    assert (cut.how, cut.by) == (How.POWER, crash)


def test_a_wiped_disk_has_no_log() -> None:
    script = Script("a")
    script.append("a", 0, 4)
    script.put("a", Kind.CRASH, how="process")
    script.put("a", Kind.START, incarnation=1, disk="wiped")
    assert script.spans("a") == ()


def test_a_sync_covers_what_was_written_before_it_and_nothing_later() -> None:
    script = Script("a")
    script.append("a", 0, 4)
    synced = script.put("a", Kind.FSYNC, file=FILE, position=0, size=40)
    script.put("a", Kind.TRUNCATE, **PART, offset=2, log_end=4)
    script.append("a", 2, 4, 1)
    story = script.story()
    first, second = story.partitions["t-0"].replicas["a"].alive
    assert story.bytes.synced("a", first) == synced
    assert story.bytes.synced("a", second) == 0


def test_records_of_different_fates_are_not_one_range() -> None:
    script = Script("c", "a", "b", "k")
    script.append("a", 0, 2)
    script.copy("b", "a", 0, 1)
    script.put("b", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    for offset in (0, 1):
        script.ack("k", "a", offset)
    script.put("a", Kind.TRUNCATE, **PART, offset=0, log_end=2)
    found = lost(script.story())
    assert [(each.base, each.end, len(each.acks)) for each in found] == [(0, 1, 1), (1, 2, 1)]


@settings(max_examples=4, deadline=None)
@given(seed=st.integers(0, 10_000), image=st.sampled_from(IMAGES))
@example(seed=9, image="drawn").via(
    "an acknowledged record is lost that was truncated on b3 before"
)
def test_a_drawn_history_has_a_tale_for_each_fate(seed: int, image: str) -> None:
    """What is lost is what the clients were promised and no log has; one fate is one range."""
    world = disturbed(seed, level="events", image=image)
    story = stories.story_of(world)
    kept = {
        (record.offset, record.value)
        for node in ("b1", "b2", "b3")
        for record in world.view().records(node, "orders")
    }
    promised = {(ack.offset, ack.value) for ack in story.partitions["orders-0"].acks}
    assert len(promised) > 60
    found = lost(story)
    told = [(ack.offset, ack.value) for each in found for ack in each.acks]
    assert sorted(told) == sorted(
        (offset, value) for offset, value in promised if (offset, value.encode()) not in kept
    )
    for before, after in pairwise(found):
        if (before.end, before.epoch) == (after.base, after.epoch):
            assert fate(story, before) != fate(story, after)


def fate(story: Story, records: Records) -> list[tuple[str, int]]:
    """Who had the first of some records, and with which event each copy went."""
    return [(each.node, each.piece.until) for each in copies(story, records)]


def test_a_broken_rule_tells_of_the_records_that_its_evidence_names() -> None:
    script = Script("a", "k")
    n = script.append("a", 0, 3)
    script.ack("k", "a", 1)
    detail = "a sentence that is longer than a name may be, and that is told to its very last word"
    args = {"check": "c", "partition": "t-0", "kind": "k", "detail": detail}
    script.put("world", Kind.CHECK, n, **args, evidence={"missing": [[0, 1, 2]], "top": 3})
    story = script.story()
    (finding,) = story.findings
    told = chain(story, finding)
    assert told.summary == f"c of t-0 is broken at #{n} (0.00{n}s): {detail}"
    assert any("acknowledged to k" in sentence.text for sentence in told.sentences)
    assert not any("starts" in sentence.text for sentence in told.sentences)


def test_a_consumer_has_no_copy_though_it_knows_a_high_watermark() -> None:
    script = Script("a", "k")
    script.append("a", 0, 1)
    n = script.put("k", Kind.POSITION, **PART, to_offset=0)
    changes = (("k/t-0/high_watermark", None, 1), ("a/t-0/high_watermark", None, 1))
    script.events[-1] = script.events[-1]._replace(changes=changes)
    story = script.story()
    assert n == len(script.events)
    assert [node for node, _ in story.replicas("t-0")] == ["a"]
    assert story.replica("a", "t-0").high_watermarks.last == 1


def lines(script: Script) -> str:
    return "\n".join(each.text for each in timeline(script.story()))


def test_what_was_sent_to_a_topic_is_answered_for_a_partition() -> None:
    script = Script("a", "k")
    script.append("a", 0, 2)
    for offset in (0, 1):
        sent = script.put("k", Kind.PRODUCE, topic="t", value=f"v{offset}", acks=1)
        heard = script.put("k", Kind.DELIVER, type="ProduceResponse", **{"from": "a"})
        script.put("k", Kind.ACK, heard, sent, **PART, offset=offset, acks=1)
    script.put("k", Kind.PRODUCE, topic="t", value="v2", acks=1)
    text = lines(script)
    assert "k: 2 acked (t-0 0..1)" in text
    assert "k: 1 sent to t, no answer yet" in text


def test_an_empty_isr_leaves_the_leader_known_last() -> None:
    script = Script("c", "a", "k")
    script.append("a", 0, 1)
    script.elect("a", 0, ["a"], ["a"])
    script.ack("k", "a", 0)
    crash = script.put("a", Kind.CRASH, how="power")
    script.put("a", Kind.LOST, crash, file=FILE[1:], position=0, size=10, how="lost")
    script.put("c", Kind.ELECT, **PART, leader=None, leader_epoch=1, isr=[], old_isr=["a"])
    script.put("a", Kind.START, incarnation=1)
    script.elect("a", 2, ["a"], [])
    assert "epoch 2, as the last leader known, since ISR and ELR are empty, ISR" in lines(script)
    (records,) = lost(script.story())
    told = [each.text for each in chain(script.story(), records).sentences]
    assert any(
        "ISR and ELR were empty, so the leader known last may lead (KIP-966)" in t for t in told
    )


def test_a_consumer_without_an_end_has_no_count() -> None:
    script = Script("a", "k")
    script.put("k", Kind.STEP, topic="t", partition=0, count=1 << 62)
    assert lines(script).endswith("step consume, topic t, partition 0")


def test_an_old_record_that_was_deleted_is_not_lost() -> None:
    script = Script("a", "k")
    script.append("a", 0, 4)
    script.ack("k", "a", 0)
    script.put("a", Kind.LOG_START, **PART, log_start_offset=2)
    assert lost(script.story()) == []
    (records,) = records_of(script.story(), "t-0", 0, 1, 0)
    assert "deleted below its log start on a" in chain(script.story(), records).summary


def blamed(*, edges: tuple[str, str]) -> str:
    """The tale of a record that b never got, while a fault took messages between two nodes."""
    script = Script("c", "a", "b", "d", "k")
    script.append("a", 0, 1)
    script.copy("b", "a", 0, 1)
    fault = script.put("world", Kind.FAULT, id="f", kind="Cut", target=[list(edges)], args={})
    script.append("a", 1, 2)
    script.put(
        edges[1],
        Kind.DROP,
        fault,
        type="FetchResponse",
        fault="f",
        **{"from": edges[0], "to": edges[1]},
    )
    script.ack("k", "a", 1)
    script.put("a", Kind.CRASH, how="process")
    script.elect("b", 1, ["b"], ["a", "b"])
    (records,) = records_of(script.story(), "t-0", 1, 2, 0)
    return " ".join(each.text for each in chain(script.story(), records).sentences)


def test_only_a_fault_between_the_two_is_blamed() -> None:
    assert "b never got it: fault f kept it from fetching from a (cut a→b; since" in blamed(
        edges=("a", "b")
    )
    assert "b never got it: not fetched yet when a fell at #" in blamed(edges=("a", "d"))


def test_a_leader_without_the_records_is_told_once() -> None:
    script = Script("c", "a", "b", "k")
    script.append("a", 0, 1)
    script.copy("b", "a", 0, 0)
    script.ack("k", "a", 0)
    script.put("b", Kind.ROLE, **PART, role="follower", leader_epoch=0, leader="a")
    script.put("a", Kind.CRASH, how="process")
    first = script.elect("b", 1, ["b"], ["a", "b"])
    script.elect("b", 2, ["b"], ["b"])
    (records,) = records_of(script.story(), "t-0", 0, 1, 0)
    told = chain(script.story(), records)
    assert f"b became leader with epoch 1 at #{first} without it" in told.summary
    assert sum("made b leader" in each.text for each in told.sentences) == 1
    assert told.sentences[-1].text == "At the end a (dead) still had it."


def test_ranges_join_whatever_the_order() -> None:
    ranges = Ranges()
    for offset in (5, 4, 3, 9, 6, 1, 2):
        ranges.add(offset, offset + 1)
    assert (str(ranges), ranges.count) == ("1..6, 9", 7)


def test_names_from_outside_are_escaped_and_bounded() -> None:
    assert name("\x1b[2J") == "\\x1b[2J"
    assert len(name("x" * 1_000)) == 60
    assert value("it's \u202e") == "'it\\'s \\u202e'"
    assert value(None) == "null"


def test_a_replica_is_there_from_its_first_event_on() -> None:
    script = Script("a", "b")
    first = script.append("a", 0, 1)
    second = script.append("b", 0, 1)
    story = script.story()
    seen = {
        n: [r.node for p in moment(story, n).partitions for r in p.replicas]
        for n in (first - 1, first, second - 1, second)
    }
    assert seen == {first - 1: [], first: ["a"], second - 1: ["a"], second: ["a", "b"]}


def test_logs_that_differ_have_a_tale_for_each_record() -> None:
    script = Script("c", "a", "b", "k")
    script.append("a", 0, 1)
    script.ack("k", "a", 0)
    script.put("a", Kind.CRASH, how="process")
    script.elect("b", 1, ["b"], ["a", "b"])
    script.append("b", 0, 1, 1)
    script.ack("k", "b", 0, acks=-1)
    check = script.put(
        "world", Kind.CHECK, **PART, check="log-matching", evidence={"offset": 0}, detail="x"
    )
    told = [each.text for each in chain(script.story(), check).sentences]
    assert [each[:60] for each in told if " of t-0, acked" in each] == [
        "Offset 0 of epoch 0 of t-0, acked at #9 with acks=1, is left",
        "Offset 0 of epoch 1 of t-0, acked at #16 with acks=all, is l",
    ]
    assert (
        "At offset 0 the logs differ: a the record of epoch 0 and b the record of epoch 1." in told
    )


def test_an_answer_that_comes_late_is_of_the_record_that_was_there() -> None:
    script = Script("a", "k")
    script.append("a", 0, 1)
    sent = script.put("a", Kind.SEND, type="ProduceResponse", to="k")
    script.put("a", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    script.append("a", 0, 1, 3)
    heard = script.put("k", Kind.DELIVER, sent, type="ProduceResponse", **{"from": "a"})
    script.put("k", Kind.ACK, heard, **PART, offset=0, acks=1)
    (ack,) = script.story().partitions["t-0"].acks
    assert ack.epoch == 0
    assert [(each.base, each.epoch) for each in lost(script.story())] == [(0, 0)]


def test_a_loss_is_that_of_the_record_that_is_gone() -> None:
    script = Script("c", "a", "b", "k")
    script.append("a", 0, 1)
    script.ack("k", "a", 0)
    script.put("a", Kind.TRUNCATE, **PART, offset=0, log_end=1)
    script.append("a", 0, 1, 3)
    script.ack("k", "a", 0)
    loss = script.put("world", Kind.LOSS, **PART, spans=[[0, 0, 1]], count=1, licence="L1")
    told = chain(script.story(), loss)
    assert told.summary == f"1 record of t-0, offset 0 of epoch 0, was lost at #{loss} (0.016s)"
    text = " ".join(each.text for each in told.sentences)
    assert "acknowledged to k by a at #9 (0.009s), acks=1." in text
    assert "a truncated the record at #10 (0.010s)" in text
    assert "At the end no log has it; offset 0 is another record, of epoch 3 on a." in text
