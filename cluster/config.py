"""Configuration of brokers, topics, controller and clients, with Kafka's defaults (PROTOCOL A24).

Names are Kafka's in snake case with the unit last; a duration is in milliseconds, as in Kafka.
``TopicConfig.from_kafka`` reads what a topic's configuration in the metadata says. Whatever is out
of range, or contradicts another value, is ``InvalidConfig`` and says why.

Left out: limits of a log that no topic sets (``storage.config.LogConfig``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from attrs import Attribute, field, fields, frozen
from attrs.validators import optional

from cluster.truncation import TruncationMode
from storage.config import INT32_MAX, CompactionPolicy, LogConfig, LogRules
from storage.errors import InvalidConfig
from storage.values import Value

__all__ = [
    "BrokerConfig",
    "ConsumerConfig",
    "ControllerConfig",
    "ProducerConfig",
    "ResetPolicy",
    "TopicConfig",
]

_LONG_MAX = 2**63 - 1
_LONG_DIGITS = 19
ResetPolicy = str
_RESET_POLICIES: Final = ("earliest", "latest", "none")


def _between(low: int, high: int = INT32_MAX) -> Any:
    def check(instance: object, attribute: Attribute[int], value: object) -> None:
        if value.__class__ is not int or not low <= value <= high:
            raise InvalidConfig(f"{attribute.name} is {value!r}, allowed is {low}..{high}")

    return check


def _kind(kind: type, allowed: str) -> Any:
    def check(instance: object, attribute: Attribute[Any], value: object) -> None:
        if not isinstance(value, kind):
            raise InvalidConfig(f"{attribute.name} is {value!r}, allowed is {allowed}")

    return check


def _flag(default: bool) -> bool:
    value: bool = field(default=default, validator=_kind(bool, "True or False"))
    return value


def _ms(default: int, low: int = 1) -> int:
    value: int = field(default=default, validator=_between(low, _LONG_MAX))
    return value


def _count(default: int, low: int = 1, high: int = INT32_MAX) -> int:
    value: int = field(default=default, validator=_between(low, high))
    return value


def _require(holds: bool, text: str) -> None:
    if not holds:
        raise InvalidConfig(text)


@frozen(kw_only=True)
class BrokerConfig(Value):
    """How a broker behaves.

    Attributes:
        broker_heartbeat_interval_ms: from one heartbeat's answer to the next heartbeat.
        broker_session_timeout_ms: as the controller has it; longer than two intervals.
        replica_lag_time_max_ms: a member of the ISR that is behind for longer leaves it.
        replica_fetch_wait_max_ms: how long a leader keeps a fetch that has nothing to return.
        replica_fetch_backoff_ms: a follower's pause after an error.
        replica_fetch_max_bytes: of one partition in one response.
        replica_fetch_response_max_bytes: of one response.
        request_timeout_ms: how long a request waits for its answer before it is sent again.
        checkpoint_interval_ms: high watermarks are written so often.
        flush_offset_checkpoint_interval_ms: recovery points and log starts are.
        log_retention_check_interval_ms, log_cleaner_backoff_ms: retention and compaction look for
            work so often.
        controlled_shutdown_timeout_ms: a broker that hears of no controller stops after this.
        producer_id_expiration_ms: a log forgets a producer that wrote nothing for longer.
        eligible_leader_replicas: whether the cluster keeps an ELR (KIP-966).
        truncation: how followers find where to cut.
        parked_requests_max: produces and fetches that wait at once; more are answered at once.
        log: limits of every log that its topic does not set.
    """

    broker_heartbeat_interval_ms: int = _ms(2_000)
    broker_session_timeout_ms: int = _ms(9_000)
    replica_lag_time_max_ms: int = _ms(30_000)
    replica_fetch_wait_max_ms: int = _ms(500)
    replica_fetch_backoff_ms: int = _ms(1_000)
    replica_fetch_max_bytes: int = _count(1 << 20)
    replica_fetch_response_max_bytes: int = _count(10 << 20)
    request_timeout_ms: int = _ms(30_000)
    checkpoint_interval_ms: int = _ms(5_000)
    flush_offset_checkpoint_interval_ms: int = _ms(60_000)
    log_retention_check_interval_ms: int = _ms(300_000)
    log_cleaner_backoff_ms: int = _ms(15_000)
    controlled_shutdown_timeout_ms: int = _ms(30_000)
    producer_id_expiration_ms: int = _ms(24 * 3_600_000)
    eligible_leader_replicas: bool = _flag(False)
    truncation: TruncationMode = field(
        default=TruncationMode.FETCH,
        validator=_kind(TruncationMode, f"one of {', '.join(map(str, TruncationMode))}"),
    )
    parked_requests_max: int = _count(100_000)
    log: LogConfig = field(factory=LogConfig, validator=_kind(LogConfig, "a LogConfig"))

    def __attrs_post_init__(self) -> None:
        _check_session(self.broker_session_timeout_ms, self.broker_heartbeat_interval_ms)
        lag, wait = self.replica_lag_time_max_ms, self.replica_fetch_wait_max_ms
        _require(
            lag > 2 * wait,
            f"replica_lag_time_max_ms is {lag}, it must be more than twice "
            f"replica_fetch_wait_max_ms ({wait}), or idle followers leave the ISR",
        )
        timeout = self.request_timeout_ms
        _require(
            timeout > wait,
            f"request_timeout_ms is {timeout}, it must be more than replica_fetch_wait_max_ms "
            f"({wait}), or every idle fetch times out",
        )


def _check_session(session_ms: int, heartbeat_ms: int) -> None:
    _require(
        session_ms > 2 * heartbeat_ms,
        f"broker_session_timeout_ms is {session_ms}, it must be more than twice "
        f"broker_heartbeat_interval_ms ({heartbeat_ms}), or one late heartbeat fences a broker",
    )


@frozen(kw_only=True)
class ControllerConfig(Value):
    """How the controller behaves.

    Attributes:
        broker_session_timeout_ms: a broker that is silent for longer is fenced.
        broker_heartbeat_interval_ms: as the brokers have it, to check the session against.
        leader_imbalance_check_interval_ms: preferred leaders are put back so often; 0 for never.
        unclean_leader_election_interval_ms: leaderless partitions whose topic allows it are looked
            for so often; fencing the last leader does not wait for it.
        metadata_snapshot_records: the log is cut behind a snapshot after so many records; 0 for
            never. Brokers further behind get the snapshot.
        eligible_leader_replicas: as the brokers have it.
        parked_requests_max: metadata fetches that wait at once.
    """

    broker_session_timeout_ms: int = _ms(9_000)
    broker_heartbeat_interval_ms: int = _ms(2_000)
    leader_imbalance_check_interval_ms: int = _ms(300_000, low=0)
    unclean_leader_election_interval_ms: int = _ms(300_000)
    metadata_snapshot_records: int = _count(0, low=0)
    eligible_leader_replicas: bool = _flag(False)
    parked_requests_max: int = _count(10_000)
    log: LogConfig = field(factory=LogConfig, validator=_kind(LogConfig, "a LogConfig"))

    def __attrs_post_init__(self) -> None:
        _check_session(self.broker_session_timeout_ms, self.broker_heartbeat_interval_ms)


@frozen(kw_only=True)
class TopicConfig(Value):
    """What a topic's configuration says; see ``from_kafka`` for Kafka's spelling.

    Attributes:
        flush_messages: records after which a log is synced before it answers; 1 is "flush before
            ack" (DECISIONS 2.9).
        retention_bytes, retention_ms: -1 for no limit.
    """

    min_insync_replicas: int = _count(1)
    unclean_leader_election_enable: bool = _flag(False)
    flush_messages: int = field(default=_LONG_MAX, validator=_between(1, _LONG_MAX))
    segment_bytes: int = _count(1 << 30)
    segment_ms: int = _ms(7 * 24 * 3_600_000)
    segment_index_bytes: int = _count(10 << 20, low=12)
    index_interval_bytes: int = _count(4_096)
    max_message_bytes: int = _count(1_048_588, low=60)
    retention_bytes: int = field(default=-1, validator=_between(-1, _LONG_MAX))
    retention_ms: int = field(default=7 * 24 * 3_600_000, validator=_between(-1, _LONG_MAX))
    delete_retention_ms: int = field(default=24 * 3_600_000, validator=_between(0, _LONG_MAX))
    cleanup_delete: bool = _flag(True)
    cleanup_compact: bool = _flag(False)

    @classmethod
    def from_kafka(cls, values: Mapping[str, str]) -> TopicConfig:
        """From names and values as Kafka spells them (``min.insync.replicas = "2"``).

        Raises:
            InvalidConfig: a name is unknown, or a value is not of its kind; the message has the
                names allowed.
        """
        found: dict[str, Any] = {}
        for name, value in sorted(values.items()):
            if name == "cleanup.policy":
                found |= _cleanup(value)
                continue
            key = name.replace(".", "_")
            if key not in _TOPIC_KEYS or "_" in name:
                allowed = sorted(["cleanup.policy", *(k.replace("_", ".") for k in _TOPIC_KEYS)])
                raise InvalidConfig(
                    f"{name[:60]!r} is no topic config, allowed are {', '.join(allowed)}"
                )
            found[key] = _TOPIC_KEYS[key](name, value)
        return cls(**found)

    def log_config(self, broker: BrokerConfig, rules: LogRules) -> LogConfig:
        """The limits of a log of this topic; what no topic sets comes from its broker."""
        return LogConfig(
            segment_max_bytes=self.segment_bytes,
            segment_max_age_ms=self.segment_ms,
            index_interval_bytes=self.index_interval_bytes,
            index_max_bytes=self.segment_index_bytes,
            max_batch_bytes=self.max_message_bytes,
            open_files_max=broker.log.open_files_max,
            producer_expiry_ms=broker.producer_id_expiration_ms,
            rules=rules,
        )

    def compaction_policy(self) -> CompactionPolicy:
        """The limits of a compaction pass over a log of this topic."""
        return CompactionPolicy(delete_retention_ms=self.delete_retention_ms)


def _integer(name: str, value: str) -> int:
    digits = value.removeprefix("-")
    if not (digits.isascii() and digits.isdigit() and len(digits) <= _LONG_DIGITS):
        raise InvalidConfig(f"{name} is {value[:60]!r}, allowed is an integer in decimal")
    return int(value)


def _boolean(name: str, value: str) -> bool:
    if value not in ("true", "false"):
        raise InvalidConfig(f"{name} is {value[:60]!r}, allowed is 'true' or 'false'")
    return value == "true"


def _cleanup(value: str) -> dict[str, bool]:
    policies = {policy.strip() for policy in value.split(",")}
    if not policies <= {"delete", "compact"}:
        raise InvalidConfig(
            f"cleanup.policy is {value[:60]!r}, allowed is 'delete', 'compact' or 'compact,delete'"
        )
    return {"cleanup_delete": "delete" in policies, "cleanup_compact": "compact" in policies}


_TOPIC_KEYS: Final[dict[str, Callable[[str, str], int | bool]]] = {
    each.name: _boolean if each.default.__class__ is bool else _integer
    for each in fields(TopicConfig)
    if not each.name.startswith("cleanup_")
}


@frozen(kw_only=True)
class ProducerConfig(Value):
    """How a producer behaves.

    Attributes:
        acks: 0, 1, or -1 for all.
        enable_idempotence: numbers batches so that the log recognises a retry; needs acks -1.
        max_in_flight_requests_per_connection: at most 5 with idempotence.
        batch_max_records, batch_max_bytes, linger_ms: when an accumulated batch is sent.
        delivery_timeout_ms: from ``send`` to the latest outcome.
        buffer_max_records: accumulated and in flight; a send beyond is refused.
    """

    acks: int = _count(-1, low=-1, high=1)
    enable_idempotence: bool = _flag(True)
    max_in_flight_requests_per_connection: int = _count(5)
    batch_max_records: int = _count(1_000)
    batch_max_bytes: int = _count(16_384)
    linger_ms: int = _ms(0, low=0)
    request_timeout_ms: int = _ms(30_000)
    delivery_timeout_ms: int = _ms(120_000)
    retry_backoff_ms: int = _ms(100)
    retry_backoff_max_ms: int = _ms(1_000)
    metadata_max_age_ms: int = _ms(300_000)
    buffer_max_records: int = _count(100_000)

    def __attrs_post_init__(self) -> None:
        if self.enable_idempotence:
            _require(
                self.acks == -1,
                f"acks is {self.acks}, idempotence needs -1",
            )
            flights = self.max_in_flight_requests_per_connection
            _require(
                flights <= 5,
                f"max_in_flight_requests_per_connection is {flights}, idempotence allows 1..5: "
                "a log remembers five batches",
            )
        delivery, request = self.delivery_timeout_ms, self.request_timeout_ms
        _require(
            delivery >= self.linger_ms + request,
            f"delivery_timeout_ms is {delivery}, it must be linger_ms + request_timeout_ms "
            f"({self.linger_ms} + {request}) or more",
        )


@frozen(kw_only=True)
class ConsumerConfig(Value):
    """How a consumer behaves.

    Attributes:
        group: name under which positions are committed; None to commit nowhere.
        auto_offset_reset: where to begin without a position, or behind a truncation: ``earliest``,
            ``latest`` or ``none`` (an error).
        max_poll_records: of one poll.
        fetch_buffer_records: fetched and not yet polled, of one partition.
    """

    group: str | None = field(default=None, validator=optional(_kind(str, "text or None")))
    auto_offset_reset: ResetPolicy = field(default="latest")
    max_poll_records: int = _count(500)
    fetch_max_wait_ms: int = _ms(500, low=0)
    fetch_min_bytes: int = _count(1)
    fetch_max_bytes: int = _count(50 << 20)
    max_partition_fetch_bytes: int = _count(1 << 20)
    fetch_buffer_records: int = _count(5_000)
    request_timeout_ms: int = _ms(30_000)
    retry_backoff_ms: int = _ms(100)
    metadata_max_age_ms: int = _ms(300_000)

    @auto_offset_reset.validator
    def _check_reset(self, attribute: Attribute[str], value: object) -> None:
        if value not in _RESET_POLICIES:
            allowed = ", ".join(_RESET_POLICIES)
            raise InvalidConfig(f"auto_offset_reset is {value!r}, allowed are {allowed}")

    def __attrs_post_init__(self) -> None:
        timeout, wait = self.request_timeout_ms, self.fetch_max_wait_ms
        _require(
            timeout > wait,
            f"request_timeout_ms is {timeout}, it must be more than fetch_max_wait_ms ({wait}), or "
            "every idle fetch times out",
        )
