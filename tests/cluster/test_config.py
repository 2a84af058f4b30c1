"""Configuration: defaults, ranges, contradictions, and Kafka's spelling of a topic's."""

from __future__ import annotations

from typing import Any

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cluster.config import (
    BrokerConfig,
    ConsumerConfig,
    ControllerConfig,
    ProducerConfig,
    TopicConfig,
)
from cluster.truncation import TruncationMode
from storage.config import CompactionPolicy, LogConfig, LogRules
from storage.errors import InvalidConfig

INT, LONG = 2**31 - 1, 2**63 - 1
CLASSES: list[type] = [BrokerConfig, ControllerConfig, TopicConfig, ProducerConfig, ConsumerConfig]
FIELDS = [(kind, field.name, field.default) for kind in CLASSES for field in attrs.fields(kind)]
# Class, name, least and greatest value; every numeric field is here.
RANGES: list[tuple[type, str, int, int]] = [
    (BrokerConfig, "broker_heartbeat_interval_ms", 1, LONG),
    (BrokerConfig, "broker_session_timeout_ms", 1, LONG),
    (BrokerConfig, "replica_lag_time_max_ms", 1, LONG),
    (BrokerConfig, "replica_fetch_wait_max_ms", 1, LONG),
    (BrokerConfig, "replica_fetch_backoff_ms", 1, LONG),
    (BrokerConfig, "replica_fetch_max_bytes", 1, INT),
    (BrokerConfig, "replica_fetch_response_max_bytes", 1, INT),
    (BrokerConfig, "request_timeout_ms", 1, LONG),
    (BrokerConfig, "checkpoint_interval_ms", 1, LONG),
    (BrokerConfig, "flush_offset_checkpoint_interval_ms", 1, LONG),
    (BrokerConfig, "log_retention_check_interval_ms", 1, LONG),
    (BrokerConfig, "log_cleaner_backoff_ms", 1, LONG),
    (BrokerConfig, "controlled_shutdown_timeout_ms", 1, LONG),
    (BrokerConfig, "producer_id_expiration_ms", 1, LONG),
    (BrokerConfig, "parked_requests_max", 1, INT),
    (ControllerConfig, "broker_session_timeout_ms", 1, LONG),
    (ControllerConfig, "broker_heartbeat_interval_ms", 1, LONG),
    (ControllerConfig, "leader_imbalance_check_interval_ms", 0, LONG),
    (ControllerConfig, "unclean_leader_election_interval_ms", 1, LONG),
    (ControllerConfig, "metadata_snapshot_records", 0, INT),
    (ControllerConfig, "parked_requests_max", 1, INT),
    (TopicConfig, "min_insync_replicas", 1, INT),
    (TopicConfig, "flush_messages", 1, LONG),
    (TopicConfig, "segment_bytes", 1, INT),
    (TopicConfig, "segment_ms", 1, LONG),
    (TopicConfig, "segment_index_bytes", 12, INT),
    (TopicConfig, "index_interval_bytes", 1, INT),
    (TopicConfig, "max_message_bytes", 60, INT),
    (TopicConfig, "retention_bytes", -1, LONG),
    (TopicConfig, "retention_ms", -1, LONG),
    (TopicConfig, "delete_retention_ms", 0, LONG),
    (ProducerConfig, "acks", -1, 1),
    (ProducerConfig, "max_in_flight_requests_per_connection", 1, INT),
    (ProducerConfig, "batch_max_records", 1, INT),
    (ProducerConfig, "batch_max_bytes", 1, INT),
    (ProducerConfig, "linger_ms", 0, LONG),
    (ProducerConfig, "request_timeout_ms", 1, LONG),
    (ProducerConfig, "delivery_timeout_ms", 1, LONG),
    (ProducerConfig, "retry_backoff_ms", 1, LONG),
    (ProducerConfig, "retry_backoff_max_ms", 1, LONG),
    (ProducerConfig, "metadata_max_age_ms", 1, LONG),
    (ProducerConfig, "buffer_max_records", 1, INT),
    (ConsumerConfig, "max_poll_records", 1, INT),
    (ConsumerConfig, "fetch_max_wait_ms", 0, LONG),
    (ConsumerConfig, "fetch_min_bytes", 1, INT),
    (ConsumerConfig, "fetch_max_bytes", 1, INT),
    (ConsumerConfig, "max_partition_fetch_bytes", 1, INT),
    (ConsumerConfig, "fetch_buffer_records", 1, INT),
    (ConsumerConfig, "request_timeout_ms", 1, LONG),
    (ConsumerConfig, "retry_backoff_ms", 1, LONG),
    (ConsumerConfig, "metadata_max_age_ms", 1, LONG),
]
# What else must change for a value at the end of its range to contradict nothing.
COMPANIONS: dict[tuple[type, str, int], dict[str, Any]] = {
    (BrokerConfig, "broker_heartbeat_interval_ms", LONG): {},
    (BrokerConfig, "broker_session_timeout_ms", 1): {},
    (BrokerConfig, "replica_lag_time_max_ms", 1): {},
    (BrokerConfig, "replica_fetch_wait_max_ms", LONG): {},
    (BrokerConfig, "request_timeout_ms", 1): {},
    (ControllerConfig, "broker_heartbeat_interval_ms", LONG): {},
    (ControllerConfig, "broker_session_timeout_ms", 1): {},
    (ProducerConfig, "acks", 1): {"enable_idempotence": False},
    (ProducerConfig, "max_in_flight_requests_per_connection", INT): {"enable_idempotence": False},
    (ProducerConfig, "linger_ms", LONG): {},
    (ProducerConfig, "request_timeout_ms", LONG): {},
    (ProducerConfig, "delivery_timeout_ms", 1): {},
    (ConsumerConfig, "fetch_max_wait_ms", LONG): {},
    (ConsumerConfig, "request_timeout_ms", 1): {},
}


def refusal(kind: type, **values: Any) -> str:
    with pytest.raises(InvalidConfig) as caught:
        kind(**values)
    return str(caught.value)


# Defaults --------------------------------------------------------------------------------------


def test_a24_defaults_are_those_of_kafka() -> None:
    broker, controller, topic = BrokerConfig(), ControllerConfig(), TopicConfig()
    assert broker.replica_lag_time_max_ms == 30_000
    assert broker.replica_fetch_wait_max_ms == 500
    assert broker.replica_fetch_backoff_ms == 1_000
    assert broker.checkpoint_interval_ms == 5_000
    assert broker.flush_offset_checkpoint_interval_ms == 60_000
    assert broker.log_retention_check_interval_ms == 300_000
    assert broker.producer_id_expiration_ms == 86_400_000
    for config in (broker, controller):
        assert config.broker_heartbeat_interval_ms == 2_000
        assert config.broker_session_timeout_ms == 9_000
        assert config.eligible_leader_replicas is False
    assert controller.leader_imbalance_check_interval_ms == 300_000
    assert controller.unclean_leader_election_interval_ms == 300_000
    assert topic.min_insync_replicas == 1
    assert topic.unclean_leader_election_enable is False
    assert topic.segment_bytes == 2**30
    assert topic.segment_ms == topic.retention_ms == 7 * 86_400_000
    assert topic.index_interval_bytes == 4_096
    assert topic.segment_index_bytes == 10 * 2**20
    assert topic.flush_messages == LONG
    assert topic.retention_bytes == -1
    assert topic.delete_retention_ms == 86_400_000
    assert (topic.cleanup_delete, topic.cleanup_compact) == (True, False)
    assert broker.truncation is TruncationMode.FETCH


def test_defaults_of_clients_are_those_of_kafka() -> None:
    producer, consumer = ProducerConfig(), ConsumerConfig()
    assert (producer.acks, producer.enable_idempotence) == (-1, True)
    assert producer.max_in_flight_requests_per_connection == 5
    assert (producer.batch_max_bytes, producer.linger_ms) == (16_384, 0)
    assert (producer.request_timeout_ms, producer.delivery_timeout_ms) == (30_000, 120_000)
    assert (producer.retry_backoff_ms, producer.retry_backoff_max_ms) == (100, 1_000)
    assert producer.metadata_max_age_ms == consumer.metadata_max_age_ms == 300_000
    assert (consumer.group, consumer.auto_offset_reset) == (None, "latest")
    assert (consumer.max_poll_records, consumer.fetch_max_wait_ms) == (500, 500)
    assert (consumer.fetch_min_bytes, consumer.fetch_max_bytes) == (1, 50 * 2**20)
    assert consumer.max_partition_fetch_bytes == 2**20


# Ranges ----------------------------------------------------------------------------------------


def test_every_number_of_every_configuration_has_a_range_here() -> None:
    numbers = {(kind, name) for kind, name, default in FIELDS if type(default) is int}
    assert numbers == {(kind, name) for kind, name, _, _ in RANGES}


@pytest.mark.parametrize(("kind", "name", "low", "high"), RANGES)
def test_a_value_outside_its_range_is_refused_with_value_and_range(
    kind: type, name: str, low: int, high: int
) -> None:
    for wrong in (low - 1, high + 1, None, "5", 5.0, True):
        said = refusal(kind, **{name: wrong})
        assert said == f"{name} is {wrong!r}, allowed is {low}..{high}"


@pytest.mark.parametrize(("kind", "name", "low", "high"), RANGES)
def test_the_ends_of_a_range_are_allowed(kind: type, name: str, low: int, high: int) -> None:
    for value in (low, high):
        companions = COMPANIONS.get((kind, name, value))
        if companions == {}:
            said = refusal(kind, **{name: value})
            assert "it must be" in said, "within its range, but it contradicts another default"
        else:
            assert getattr(kind(**{name: value}, **(companions or {})), name) == value


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, name, default in FIELDS if type(default) is bool]
)
def test_a_flag_is_true_or_false_and_nothing_else(kind: type, name: str) -> None:
    for wrong in ("true", 1, 0, None):
        assert refusal(kind, **{name: wrong}) == f"{name} is {wrong!r}, allowed is True or False"


def test_other_kinds_are_checked_too() -> None:
    said = refusal(BrokerConfig, truncation="fetch")
    assert said.startswith("truncation is 'fetch', allowed is one of TruncationMode.FETCH, ")
    for kind in (BrokerConfig, ControllerConfig):
        assert refusal(kind, log=None) == "log is None, allowed is a LogConfig"
    assert refusal(ConsumerConfig, group=5) == "group is 5, allowed is text or None"
    assert refusal(ConsumerConfig, auto_offset_reset="newest") == (
        "auto_offset_reset is 'newest', allowed are earliest, latest, none"
    )
    assert refusal(ConsumerConfig, auto_offset_reset=[]).startswith("auto_offset_reset is [], ")
    for policy in ("earliest", "latest", "none"):
        assert ConsumerConfig(auto_offset_reset=policy, group="g").auto_offset_reset == policy


def test_every_configuration_is_frozen_and_takes_keywords_only() -> None:
    for kind in CLASSES:
        with pytest.raises(TypeError):
            kind(1)
        with pytest.raises(attrs.exceptions.FrozenInstanceError):
            setattr(kind(), attrs.fields(kind)[0].name, 1)


# Contradictions --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [BrokerConfig, ControllerConfig])
def test_a16_a_session_is_longer_than_two_heartbeats(kind: type) -> None:
    assert kind(broker_heartbeat_interval_ms=100, broker_session_timeout_ms=201)
    said = refusal(kind, broker_heartbeat_interval_ms=100, broker_session_timeout_ms=200)
    assert said == (
        "broker_session_timeout_ms is 200, it must be more than twice "
        "broker_heartbeat_interval_ms (100), or one late heartbeat fences a broker"
    )


def test_the_lag_limit_is_more_than_two_fetch_waits() -> None:
    assert BrokerConfig(replica_fetch_wait_max_ms=100, replica_lag_time_max_ms=201)
    said = refusal(BrokerConfig, replica_fetch_wait_max_ms=100, replica_lag_time_max_ms=200)
    assert said == (
        "replica_lag_time_max_ms is 200, it must be more than twice "
        "replica_fetch_wait_max_ms (100), or idle followers leave the ISR"
    )


def test_a_request_waits_longer_than_the_fetch_that_it_may_be() -> None:
    assert BrokerConfig(replica_fetch_wait_max_ms=100, request_timeout_ms=101)
    said = refusal(BrokerConfig, replica_fetch_wait_max_ms=100, request_timeout_ms=100)
    assert said == (
        "request_timeout_ms is 100, it must be more than replica_fetch_wait_max_ms (100), "
        "or every idle fetch times out"
    )
    assert ConsumerConfig(fetch_max_wait_ms=100, request_timeout_ms=101)
    said = refusal(ConsumerConfig, fetch_max_wait_ms=100, request_timeout_ms=100)
    assert said == (
        "request_timeout_ms is 100, it must be more than fetch_max_wait_ms (100), "
        "or every idle fetch times out"
    )


def test_a18_idempotence_needs_acks_all_and_at_most_five_in_flight() -> None:
    for acks in (0, 1):
        assert refusal(ProducerConfig, acks=acks) == f"acks is {acks}, idempotence needs -1"
        assert ProducerConfig(acks=acks, enable_idempotence=False).acks == acks
    flights = {"max_in_flight_requests_per_connection": 6}
    assert refusal(ProducerConfig, **flights) == (
        "max_in_flight_requests_per_connection is 6, idempotence allows 1..5: "
        "a log remembers five batches"
    )
    assert ProducerConfig(enable_idempotence=False, **flights)


def test_a_delivery_has_time_for_linger_and_one_request() -> None:
    times = {"linger_ms": 5, "request_timeout_ms": 10}
    assert ProducerConfig(delivery_timeout_ms=15, **times)
    assert refusal(ProducerConfig, delivery_timeout_ms=14, **times) == (
        "delivery_timeout_ms is 14, it must be linger_ms + request_timeout_ms (5 + 10) or more"
    )


# Kafka's spelling ------------------------------------------------------------------------------

KAFKA_VALUES = {
    "min.insync.replicas": ("2", "min_insync_replicas", 2),
    "unclean.leader.election.enable": ("true", "unclean_leader_election_enable", True),
    "flush.messages": ("1", "flush_messages", 1),
    "segment.bytes": ("1024", "segment_bytes", 1024),
    "segment.ms": ("5", "segment_ms", 5),
    "segment.index.bytes": ("12", "segment_index_bytes", 12),
    "index.interval.bytes": ("1", "index_interval_bytes", 1),
    "max.message.bytes": ("60", "max_message_bytes", 60),
    "retention.bytes": ("-1", "retention_bytes", -1),
    "retention.ms": ("9223372036854775807", "retention_ms", LONG),
    "delete.retention.ms": ("0", "delete_retention_ms", 0),
}


@pytest.mark.parametrize("name", KAFKA_VALUES)
def test_each_name_of_kafka_sets_its_field(name: str) -> None:
    value, field, expected = KAFKA_VALUES[name]
    assert TopicConfig.from_kafka({name: value}) == TopicConfig(**{field: expected})


def test_every_field_of_a_topic_has_a_name_of_kafka() -> None:
    named = {field for _, field, _ in KAFKA_VALUES.values()}
    rest = {field.name for field in attrs.fields(TopicConfig)} - named
    assert rest == {"cleanup_delete", "cleanup_compact"}
    assert TopicConfig.from_kafka({}) == TopicConfig()
    every = {name: value for name, (value, _, _) in KAFKA_VALUES.items()}
    assert TopicConfig.from_kafka(every) == TopicConfig(
        **{field: expected for _, field, expected in KAFKA_VALUES.values()}
    )


@pytest.mark.parametrize(
    ("policy", "delete", "compact"),
    [
        ("delete", True, False),
        ("compact", False, True),
        ("compact,delete", True, True),
        ("delete, compact", True, True),
        (" compact ", False, True),
    ],
)
def test_cleanup_policies(policy: str, delete: bool, compact: bool) -> None:
    config = TopicConfig.from_kafka({"cleanup.policy": policy})
    assert config == TopicConfig(cleanup_delete=delete, cleanup_compact=compact)


@pytest.mark.parametrize("policy", ["", ",", "keep", "delete,", "Delete", "compact;delete"])
def test_a_cleanup_policy_that_is_none_names_the_value_and_all_that_are(policy: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TopicConfig.from_kafka({"cleanup.policy": policy})
    assert str(caught.value) == (
        f"cleanup.policy is {policy!r}, allowed is 'delete', 'compact' or 'compact,delete'"
    )


@pytest.mark.parametrize(
    "name",
    [
        "",
        "min_insync_replicas",
        "min.insync_replicas",
        "cleanup.delete",
        "cleanup",
        "x",
        "Segment.bytes",
        "segment.bytes ",
    ],
)
def test_a_name_that_no_topic_has_is_named_with_all_that_it_has(name: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TopicConfig.from_kafka({name: "1"})
    allowed = ", ".join(sorted([*KAFKA_VALUES, "cleanup.policy"]))
    assert str(caught.value) == f"{name!r} is no topic config, allowed are {allowed}"


@pytest.mark.parametrize(
    "value", ["", "-", "--1", "two", "1_000", " 1", "1 ", "+1", "1.0", "0x10", "٣", "²", "9" * 20]
)
def test_a_number_that_is_no_decimal_is_refused(value: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TopicConfig.from_kafka({"segment.bytes": value})
    assert str(caught.value) == f"segment.bytes is {value!r}, allowed is an integer in decimal"


@pytest.mark.parametrize("value", ["", "True", "yes", "1", " true"])
def test_a_flag_of_kafka_is_true_or_false_in_lower_case(value: str) -> None:
    with pytest.raises(InvalidConfig) as caught:
        TopicConfig.from_kafka({"unclean.leader.election.enable": value})
    assert str(caught.value) == (
        f"unclean.leader.election.enable is {value!r}, allowed is 'true' or 'false'"
    )
    assert not TopicConfig.from_kafka(
        {"unclean.leader.election.enable": "false"}
    ).unclean_leader_election_enable


def test_a_value_out_of_range_is_refused_with_value_and_range() -> None:
    with pytest.raises(InvalidConfig, match=r"min_insync_replicas is 0, allowed is 1\.\.2147"):
        TopicConfig.from_kafka({"min.insync.replicas": "0"})
    with pytest.raises(InvalidConfig, match=r"retention_ms is 9{19}, allowed is -1\.\."):
        TopicConfig.from_kafka({"retention.ms": "9" * 19})


@given(
    st.dictionaries(
        st.one_of(st.sampled_from([*KAFKA_VALUES, "cleanup.policy"]), st.text(max_size=80)),
        st.one_of(st.integers().map(str), st.sampled_from(["true", "compact"]), st.text()),
        max_size=3,
    )
)
def test_any_names_and_values_give_a_configuration_or_a_short_refusal(
    values: dict[str, str],
) -> None:
    try:
        TopicConfig.from_kafka(values)
    except InvalidConfig as error:
        said = str(error)
    else:
        return
    assert len(said) < 1_500


# The log's -------------------------------------------------------------------------------------


def test_a_log_of_a_topic_gets_the_topics_limits_and_the_brokers_rest() -> None:
    base = LogConfig(open_files_max=3, max_batch_bytes=100, rules=LogRules())
    broker = BrokerConfig(log=base, producer_id_expiration_ms=107)
    rules = LogRules(cut_epochs_at_end=False)
    topic = TopicConfig(
        segment_bytes=101,
        segment_ms=102,
        segment_index_bytes=103,
        index_interval_bytes=104,
        max_message_bytes=105,
        delete_retention_ms=106,
    )
    assert topic.log_config(broker, rules) == LogConfig(
        segment_max_bytes=101,
        segment_max_age_ms=102,
        index_max_bytes=103,
        index_interval_bytes=104,
        max_batch_bytes=105,
        open_files_max=3,
        producer_expiry_ms=107,
        rules=rules,
    )
    assert topic.compaction_policy() == CompactionPolicy(delete_retention_ms=106)


def test_every_limit_that_a_topic_allows_is_one_that_a_log_allows() -> None:
    for kind, name, low, high in RANGES:
        if kind is TopicConfig:
            for value in (low, high):
                topic = TopicConfig(**{name: value})
                assert topic.log_config(BrokerConfig(), LogRules())
                assert topic.compaction_policy()
