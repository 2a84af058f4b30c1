"""The metadata image against a list of records that is read again for every question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.errors import ProtocolBug
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.records import (
    METADATA_RECORDS,
    BrokerRecord,
    ConfigRecord,
    MetadataRecord,
    OffsetCommitRecord,
    PartitionRecord,
    ProducerIdsRecord,
    RemoveTopicRecord,
    TopicRecord,
)

BROKERS = ("b1", "b2")
GROUPS = ("g", "h")
CONFIGS = ("a.b", "c")
# Two topics; each may be created anew under a second id.
TOPIC_OF_ID = {"id-t1": "t", "id-t2": "t", "id-u1": "u", "id-u2": "u"}
TOPICS = ("t", "u")
PARTITIONS = [
    TopicIdPartition(topic_id, topic, number)
    for topic_id, topic in TOPIC_OF_ID.items()
    for number in (0, 1, 10)
]
RESOURCES = [(is_topic, name) for is_topic in (True, False) for name in ("", "t", "u", "b1")]


@dataclass
class NaiveImage:
    """Every answer is found by reading all records from the newest to the oldest."""

    records: list[MetadataRecord] = field(default_factory=list)

    def partition(self, partition: TopicIdPartition) -> PartitionRecord | None:
        for record in reversed(self.records):
            if isinstance(record, PartitionRecord) and record.partition == partition:
                return record
            if isinstance(record, RemoveTopicRecord) and record.topic_id == partition.topic_id:
                return None
        return None

    def topic_id(self, topic: str, upto: int | None = None) -> str | None:
        """Of a name, as it was after the first ``upto`` records."""
        found = None
        for record in self.records[:upto]:
            if isinstance(record, TopicRecord) and record.topic == topic:
                found = record.topic_id
            if isinstance(record, RemoveTopicRecord) and record.topic == topic:
                found = None if record.topic_id == found else found
        return found

    def config(self, is_topic: bool, resource: str) -> dict[str, str]:
        found: dict[str, str] = {}
        for at, record in enumerate(self.records):
            match record:
                case ConfigRecord(is_topic=kind, resource=name) if (kind, name) == (
                    is_topic,
                    resource,
                ):
                    found.pop(record.name, None)
                    if record.value is not None:
                        found[record.name] = record.value
                case RemoveTopicRecord(topic=name) if is_topic and name == resource:
                    if self.topic_id(name, at) == record.topic_id:
                        found = {}
        return found

    def committed_offset(
        self, group: str, partition: TopicIdPartition
    ) -> OffsetCommitRecord | None:
        for record in reversed(self.records):
            if isinstance(record, OffsetCommitRecord):
                if (record.group, record.partition) == (group, partition):
                    return record
            if isinstance(record, RemoveTopicRecord) and record.topic_id == partition.topic_id:
                return None
        return None

    def broker(self, name: str) -> BrokerRecord | None:
        for record in reversed(self.records):
            if isinstance(record, BrokerRecord) and record.broker_id == name:
                return record
        return None

    def next_producer_id(self) -> int:
        ids = [r.next_producer_id for r in self.records if isinstance(r, ProducerIdsRecord)]
        return ids[-1] if ids else 0


def check_equal(image: MetadataImage, naive: NaiveImage) -> None:
    for partition in PARTITIONS:
        assert image.partition(partition) == naive.partition(partition)
        for group in GROUPS:
            expected = naive.committed_offset(group, partition)
            assert image.committed_offset(group, partition) == expected
    for topic in TOPICS:
        assert image.topic_ids.get(topic) == naive.topic_id(topic)
    assert set(image.topic_ids) <= set(TOPICS)
    living = [found for each in PARTITIONS if (found := naive.partition(each))]
    order = sorted(living, key=lambda r: (r.partition.topic_id, r.partition.partition))
    assert list(image.partitions()) == order
    for topic_id in TOPIC_OF_ID:
        expected_of = [record for record in order if record.partition.topic_id == topic_id]
        assert list(image.partitions_of(topic_id)) == expected_of
    for is_topic, resource in RESOURCES:
        assert image.config(is_topic=is_topic, resource=resource) == naive.config(
            is_topic, resource
        )
    for name in (*BROKERS, "b9"):
        broker = naive.broker(name)
        assert image.brokers.get(name) == broker
        assert image.broker_epoch(name) == (broker.broker_epoch if broker else -1)
        assert image.is_active(name) is (
            broker is not None and not broker.is_fenced and not broker.in_controlled_shutdown
        )
    assert image.next_producer_id == naive.next_producer_id()


SMALL = st.integers(0, 3)
NAMES = st.sampled_from(BROKERS)
LISTS = st.lists(NAMES, max_size=2, unique=True).map(tuple)
RECORDS: st.SearchStrategy[MetadataRecord] = st.one_of(
    st.sampled_from([TopicRecord(*item) for item in TOPIC_OF_ID.items()]),
    st.sampled_from([RemoveTopicRecord(*item) for item in TOPIC_OF_ID.items()]),
    st.builds(
        PartitionRecord,
        st.sampled_from(PARTITIONS),
        LISTS,
        LISTS,
        st.none() | NAMES,
        SMALL,
        SMALL,
    ),
    st.builds(BrokerRecord, NAMES, st.just("i"), SMALL, st.booleans(), st.booleans()),
    st.sampled_from(RESOURCES).flatmap(
        lambda found: st.builds(
            ConfigRecord,
            st.just(found[0]),
            st.just(found[1]),
            st.sampled_from(CONFIGS),
            st.none() | st.sampled_from(["1", "2"]),
        )
    ),
    st.builds(ProducerIdsRecord, SMALL),
    st.builds(
        OffsetCommitRecord, st.sampled_from(GROUPS), st.sampled_from(PARTITIONS), SMALL, SMALL
    ),
)
LOGS = st.lists(RECORDS, max_size=40)


def built(records: Sequence[MetadataRecord]) -> MetadataImage:
    return MetadataImage.from_records(records, len(records))


def tip(topic_id: str, number: int = 0) -> TopicIdPartition:
    return TopicIdPartition(topic_id, TOPIC_OF_ID[topic_id], number)


def state(topic_id: str, number: int = 0, leader_epoch: int = 0) -> PartitionRecord:
    return PartitionRecord(tip(topic_id, number), BROKERS, BROKERS, "b1", leader_epoch, 0)


# Against the twin ------------------------------------------------------------------------------


@given(LOGS)
def test_an_image_answers_as_the_naive_twin_after_every_record(log: list[MetadataRecord]) -> None:
    image, naive = MetadataImage(), NaiveImage()
    check_equal(image, naive)
    for record in log:
        image.apply(record)
        naive.records.append(record)
        assert image.end_offset == len(naive.records)
    check_equal(image, naive)


@given(LOGS, st.integers(0, 1_000))
def test_a_snapshot_builds_the_same_image_at_its_end_offset(
    log: list[MetadataRecord], end_offset: int
) -> None:
    image = built(log)
    records = image.to_records()
    again = MetadataImage.from_records(records, end_offset)
    check_equal(again, NaiveImage(log))
    assert again.end_offset == end_offset
    assert again.to_records() == records
    assert len(records) == len(set(records))
    assert [METADATA_RECORDS.decode(METADATA_RECORDS.encode(each)) for each in records] == list(
        records
    )


@given(LOGS, LOGS)
def test_a_snapshot_and_what_follows_it_are_the_whole_log(
    before: list[MetadataRecord], after: list[MetadataRecord]
) -> None:
    image = MetadataImage.from_records(built(before).to_records(), len(before))
    for record in after:
        image.apply(record)
    check_equal(image, NaiveImage(before + after))
    assert image.end_offset == len(before) + len(after)
    assert image.to_records() == built(before + after).to_records()


@given(LOGS, RECORDS)
def test_a_record_applied_twice_changes_the_end_offset_alone(
    log: list[MetadataRecord], record: MetadataRecord
) -> None:
    once, twice = built([*log, record]), built([*log, record, record])
    assert twice.to_records() == once.to_records()
    assert twice.end_offset == once.end_offset + 1
    check_equal(twice, NaiveImage([*log, record]))


@given(LOGS, LOGS, LOGS)
def test_a_copy_and_its_original_change_apart(
    shared: list[MetadataRecord], ours: list[MetadataRecord], theirs: list[MetadataRecord]
) -> None:
    original = built(shared)
    copy = original.copy()
    assert copy.end_offset == original.end_offset
    check_equal(copy, NaiveImage(shared))
    for record in ours:
        original.apply(record)
    check_equal(copy, NaiveImage(shared))
    for record in theirs:
        copy.apply(record)
    check_equal(original, NaiveImage(shared + ours))
    check_equal(copy, NaiveImage(shared + theirs))
    assert (original.end_offset, copy.end_offset) == (
        len(shared + ours),
        len(shared + theirs),
    )


# Named -----------------------------------------------------------------------------------------


def test_a_deleted_topic_takes_its_partitions_configuration_and_offsets_with_it() -> None:
    image = built(
        [
            TopicRecord("id-t1", "t"),
            TopicRecord("id-u1", "u"),
            state("id-t1"),
            state("id-t1", 1),
            state("id-u1"),
            ConfigRecord(True, "t", "a.b", "1"),
            ConfigRecord(False, "t", "a.b", "2"),
            OffsetCommitRecord("g", tip("id-t1"), 5, 0),
            OffsetCommitRecord("g", tip("id-u1"), 6, 0),
        ]
    )
    image.apply(RemoveTopicRecord("id-t1", "t"))
    assert image.topic_ids == {"u": "id-u1"}
    assert list(image.partitions()) == [state("id-u1")]
    assert image.partition(tip("id-t1")) is None
    assert image.config(is_topic=True, resource="t") == {}
    assert image.config(is_topic=False, resource="t") == {"a.b": "2"}
    assert image.committed_offset("g", tip("id-t1")) is None
    assert image.committed_offset("g", tip("id-u1")) is not None


def test_a22_a_topic_created_anew_is_another_topic_though_its_epochs_are_lower() -> None:
    """Hazard B-67: the new one begins at epoch 0 under another id, and inherits nothing."""
    image = built(
        [
            TopicRecord("id-t1", "t"),
            state("id-t1", leader_epoch=7),
            ConfigRecord(True, "t", "a.b", "1"),
            OffsetCommitRecord("g", tip("id-t1"), 5, 7),
            RemoveTopicRecord("id-t1", "t"),
            TopicRecord("id-t2", "t"),
            state("id-t2", leader_epoch=0),
        ]
    )
    assert image.topic_ids == {"t": "id-t2"}
    assert image.partition(tip("id-t1")) is None
    assert image.partition(tip("id-t2")) == state("id-t2")
    assert image.config(is_topic=True, resource="t") == {}
    assert image.committed_offset("g", tip("id-t2")) is None


def test_a_removal_of_the_old_topic_that_comes_late_leaves_the_new_one_alone() -> None:
    image = built(
        [
            TopicRecord("id-t1", "t"),
            state("id-t1"),
            TopicRecord("id-t2", "t"),
            state("id-t2"),
            ConfigRecord(True, "t", "a.b", "1"),
            RemoveTopicRecord("id-t1", "t"),
        ]
    )
    assert image.topic_ids == {"t": "id-t2"}
    assert list(image.partitions()) == [state("id-t2")]
    assert image.config(is_topic=True, resource="t") == {"a.b": "1"}


def test_a_snapshot_is_in_an_order_that_every_process_has() -> None:
    log: list[MetadataRecord] = [
        OffsetCommitRecord("h", tip("id-u1"), 1, 0),
        ConfigRecord(True, "u", "c", "1"),
        ConfigRecord(True, "u", "a.b", "2"),
        ConfigRecord(False, "b1", "c", "3"),
        TopicRecord("id-u1", "u"),
        state("id-u1", 10),
        state("id-u1", 1),
        TopicRecord("id-t1", "t"),
        state("id-t1", 0),
        ProducerIdsRecord(9),
        BrokerRecord("b2", "i", 1, False, False),
        BrokerRecord("b1", "i", 2, False, False),
        OffsetCommitRecord("g", tip("id-u1"), 1, 0),
        OffsetCommitRecord("h", tip("id-t1"), 1, 0),
    ]
    expected = (
        log[11],
        log[10],
        log[7],
        log[4],
        log[8],
        log[6],
        log[5],
        log[3],
        log[2],
        log[1],
        log[9],
        log[12],
        log[13],
        log[0],
    )
    assert built(log).to_records() == expected
    assert built(log[::-1]).to_records() == expected


def test_a_configuration_taken_away_leaves_no_trace() -> None:
    image = built([ConfigRecord(True, "t", "c", "1"), ConfigRecord(True, "t", "c", None)])
    assert image.config(is_topic=True, resource="t") == {}
    assert image.to_records() == ()
    assert image.copy().to_records() == MetadataImage().to_records()


def test_what_is_no_record_is_a_bug_and_changes_nothing() -> None:
    image = MetadataImage()
    with pytest.raises(ProtocolBug, match="no such metadata record"):
        image.apply(MetadataRecord())
    assert image.end_offset == 0
