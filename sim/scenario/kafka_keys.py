"""Kafka's configuration names in scenario files, and the fields that they set.

``[cluster] config`` takes those of brokers and controller, with Kafka's broker-wide defaults of
topics; a topic's ``config`` takes those of topics (``cluster.config.TopicConfig.from_kafka``).
Values may be written as integers, booleans or texts, as Kafka itself reads texts only.

Left out: limits that concern several values (``sim.scenario.build``).
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from attrs import Attribute, fields

from cluster.config import BrokerConfig, ControllerConfig, TopicConfig
from sim.scenario.problems import Refusal, guess, seen
from storage.errors import InvalidConfig

__all__ = [
    "BROKER_KEYS",
    "CLUSTER_KEYS",
    "TOPIC_KEYS",
    "ClusterKey",
    "cluster_value",
    "topic_value",
]

_LONG_MAX: Final = 2**63 - 1
_DIGITS_MAX: Final = 19


class ClusterKey(NamedTuple):
    """Where a key of ``[cluster] config`` goes.

    Attributes:
        broker, controller: fields of the two configurations; empty where it has none.
        topic: the key of topics whose default it is; empty for none.
        scale: what the number is multiplied with.
        doc: for ``explain``.
    """

    broker: str = ""
    controller: str = ""
    topic: str = ""
    scale: int = 1
    doc: str = ""


CLUSTER_KEYS: Final[dict[str, ClusterKey]] = {
    "broker.heartbeat.interval.ms": ClusterKey(
        "broker_heartbeat_interval_ms",
        "broker_heartbeat_interval_ms",
        doc="from one heartbeat's answer to the next heartbeat",
    ),
    "broker.session.timeout.ms": ClusterKey(
        "broker_session_timeout_ms",
        "broker_session_timeout_ms",
        doc="a broker that is silent for longer is fenced",
    ),
    "controlled.shutdown.timeout.ms": ClusterKey(
        "controlled_shutdown_timeout_ms",
        doc="a stopping broker that hears of no controller is gone after this",
    ),
    "leader.imbalance.check.interval.seconds": ClusterKey(
        controller="leader_imbalance_check_interval_ms",
        scale=1_000,
        doc="preferred leaders are put back so often; 0 for never",
    ),
    "log.cleaner.backoff.ms": ClusterKey(
        "log_cleaner_backoff_ms", doc="compaction looks for work so often"
    ),
    "log.cleaner.delete.retention.ms": ClusterKey(
        topic="delete.retention.ms", doc="how long compaction keeps tombstones"
    ),
    "log.cleanup.policy": ClusterKey(topic="cleanup.policy", doc="delete, compact or both"),
    "log.flush.interval.messages": ClusterKey(
        topic="flush.messages", doc="records after which a log is synced; 1 is flush before ack"
    ),
    "log.flush.offset.checkpoint.interval.ms": ClusterKey(
        "flush_offset_checkpoint_interval_ms", doc="recovery points are written so often"
    ),
    "log.index.interval.bytes": ClusterKey(
        topic="index.interval.bytes", doc="bytes between two index entries"
    ),
    "log.index.size.max.bytes": ClusterKey(
        topic="segment.index.bytes", doc="a segment rolls when an index is this large"
    ),
    "log.retention.bytes": ClusterKey(topic="retention.bytes", doc="-1 for no limit"),
    "log.retention.check.interval.ms": ClusterKey(
        "log_retention_check_interval_ms", doc="retention looks for work so often"
    ),
    "log.retention.ms": ClusterKey(topic="retention.ms", doc="-1 for no limit"),
    "log.roll.ms": ClusterKey(topic="segment.ms", doc="a segment rolls at this age"),
    "log.segment.bytes": ClusterKey(topic="segment.bytes", doc="a segment rolls at this size"),
    "message.max.bytes": ClusterKey(topic="max.message.bytes", doc="the largest batch"),
    "min.insync.replicas": ClusterKey(
        topic="min.insync.replicas", doc="acks=all is refused with fewer in-sync replicas"
    ),
    "producer.id.expiration.ms": ClusterKey(
        "producer_id_expiration_ms", doc="a log forgets a producer that is silent for longer"
    ),
    "replica.fetch.backoff.ms": ClusterKey(
        "replica_fetch_backoff_ms", doc="a follower's pause after an error"
    ),
    "replica.fetch.max.bytes": ClusterKey(
        "replica_fetch_max_bytes", doc="of one partition in one response"
    ),
    "replica.fetch.response.max.bytes": ClusterKey(
        "replica_fetch_response_max_bytes", doc="of one response"
    ),
    "replica.fetch.wait.max.ms": ClusterKey(
        "replica_fetch_wait_max_ms", doc="how long a leader keeps a fetch with nothing to return"
    ),
    "replica.high.watermark.checkpoint.interval.ms": ClusterKey(
        "checkpoint_interval_ms", doc="high watermarks are written so often"
    ),
    "replica.lag.time.max.ms": ClusterKey(
        "replica_lag_time_max_ms", doc="a follower that is behind for longer leaves the ISR"
    ),
    "request.timeout.ms": ClusterKey(
        "request_timeout_ms", doc="how long a request between brokers waits for its answer"
    ),
    "unclean.leader.election.enable": ClusterKey(
        topic="unclean.leader.election.enable",
        doc="whether a replica outside the ISR may lead when nobody else can",
    ),
    "unclean.leader.election.interval.ms": ClusterKey(
        controller="unclean_leader_election_interval_ms",
        doc="leaderless partitions that may elect uncleanly are looked for so often",
    ),
}
"""What ``[cluster] config`` takes."""

TOPIC_KEYS: Final[tuple[str, ...]] = tuple(
    sorted(
        {
            "cleanup.policy",
            *(
                each.name.replace("_", ".")
                for each in fields(TopicConfig)
                if not each.name.startswith("cleanup_")
            ),
        }
    )
)
"""What a topic's ``config`` takes."""

BROKER_KEYS: Final[tuple[str, ...]] = tuple(
    sorted(key for key, known in CLUSTER_KEYS.items() if known.broker)
)
"""What the file of one broker takes."""


def kafka_text(value: object) -> str:
    """A value as Kafka spells it.

    Raises:
        Refusal: it is neither integer, boolean nor text.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        if value.bit_length() > 64:
            raise Refusal(f"{seen(value)} is out of range", hint=f"allowed is up to {_LONG_MAX}")
        return str(value)
    if isinstance(value, str) and len(value) <= 255:
        return value
    raise Refusal(f"{seen(value)} is no value", hint="write an integer, true, false or a text")


def topic_value(key: str, value: object) -> str:
    """A value of a topic's ``config``, checked, as Kafka spells it.

    Raises:
        Refusal: the key is unknown, or the value is not of its kind.
    """
    if key not in TOPIC_KEYS:
        raise _unknown(key, TOPIC_KEYS, "topic")
    text = kafka_text(value)
    try:
        TopicConfig.from_kafka({key: text})
    except InvalidConfig as error:
        raise Refusal(f"{seen(value)} is refused", hint=_kafka_words(str(error))) from None
    return text


def cluster_value(key: str, value: object) -> int | str:
    """A value of ``[cluster] config``, checked: a number for a field, a text for topics.

    Raises:
        Refusal: the key is unknown, or the value is not of its kind.
    """
    known = CLUSTER_KEYS.get(key)
    if known is None:
        raise _unknown(key, CLUSTER_KEYS, "cluster")
    if known.topic:
        return topic_value(known.topic, value)
    text = kafka_text(value)
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _DIGITS_MAX):
        raise Refusal(f"{seen(value)} is no integer", hint="write a whole number")
    number = int(text) * known.scale
    for cls, name in ((BrokerConfig, known.broker), (ControllerConfig, known.controller)):
        if name:
            try:
                _validate(cls, name, number)
            except InvalidConfig as error:
                raise Refusal(f"{seen(value)} is refused", hint=_kafka_words(str(error))) from None
    return number


def _validate(cls: Any, name: str, value: object) -> None:
    """Ask the field's own validator, without what concerns several fields."""
    attribute: Attribute[Any] = getattr(fields(cls), name)
    if attribute.validator is not None:
        attribute.validator(None, attribute, value)


def _unknown(key: str, allowed: Any, what: str) -> Refusal:
    text = f"unknown {what} config {seen(key)}"
    hint = guess(key, allowed)
    if key not in CLUSTER_KEYS and key not in TOPIC_KEYS:
        pass
    elif what == "topic":
        hint = "this one stands in [cluster] config"
    elif not hint or key in TOPIC_KEYS:
        hint = "this one stands in a topic's config"
    return Refusal(text, hint=hint, allowed=sorted(allowed), is_key=True)


def _kafka_words(text: str) -> str:
    """A message of the configuration in the words of files: fields by their Kafka names."""
    for key, known in CLUSTER_KEYS.items():
        for name in (known.broker, known.controller):
            if name:
                text = text.replace(name, key)
    for key in TOPIC_KEYS:
        text = text.replace(key.replace(".", "_"), key)
    return text


kafka_words = _kafka_words
