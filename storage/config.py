"""Configuration of one partition log: every limit, with its unit in its name.

Left out: retention, whose limits are arguments of each run, and everything that concerns leaders or
replication.
"""

from __future__ import annotations

from typing import Any

from attrs import Attribute, field, frozen

from storage.errors import InvalidConfig
from storage.values import Value

__all__ = ["CompactionPolicy", "LogConfig", "LogRules"]

INT32_MAX = 2**31 - 1
INDEX_ENTRY_BYTES_MAX = 12
READ_LIMIT_BYTES_MIN = 16 << 20


def _between(low: int, high: int) -> Any:
    def check(instance: object, attribute: Attribute[int], value: object) -> None:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise InvalidConfig(f"{attribute.name} is {value!r}, allowed is {low}..{high}")

    return check


def _is_bool(instance: object, attribute: Attribute[bool], value: object) -> None:
    if not isinstance(value, bool):
        raise InvalidConfig(f"{attribute.name} is {value!r}, allowed is True or False")


@frozen(kw_only=True)
class LogRules(Value):
    """Guards inside storage, all on. Switching one off brings a historical defect back.

    Attributes:
        verify_epochs_at_open: compare the epoch file with the batch headers on open; off, a stale
            entry that survived a crash is believed (hazard B-H1).
        cut_epochs_at_end: a truncation at or past the log end still drops the epoch entries from
            there on; off is KAFKA-10706, a follower that truncates for ever (hazard B-10).
        undefined_epoch_is_undefined: a request for an unknown epoch is answered "undefined"; off,
            it is answered with the log end (KAFKA-6857, hazard B-07).
        answer_below_oldest_epoch: a request below the oldest known epoch is answered with that
            epoch and the first start; off, it is undefined (KAFKA-7415, hazard B-06).
        fsync_before_rename: a checkpoint is synced before it gets its name; off, a power loss can
            leave an empty file (KAFKA-16541, hazards B-13 and B-59).
        lower_boundary_first: whatever shortens the log lowers the durable boundary before it does;
            off, a crash in between looks like lost data.
        boundary_after_fsync: only a completed fsync raises the durable boundary; off, it trusts
            unsynced bytes (KAFKA-10101, hazard B-56).
        remove_marker_before_load: the clean-shutdown marker goes before anything is read; off, a
            crash while loading leaves a marker that lies (KAFKA-10471, hazard B-57).
        duplicates_before_order: a producer's retry is looked for before its sequence is called out
            of order; off, it is refused, and the client sends it again as new (hazard B-52).
        judge_appends_only: what a leader sends and what is replayed is noted and not judged; off, a
            follower that begins in the middle of a producer's sequences takes nothing more, and a
            log with an older epoch behind a newer one does not open (KAFKA-6003, KAFKA-9144,
            hazards B-51 and B-53).
        marker_times_count: a transaction marker is a sign of life of its producer; off, one that
            was fenced while it was idle is forgotten, and its old epoch is accepted again
            (KAFKA-9144, hazard B-53).
        drop_snapshots_above: a truncation removes the producer snapshots behind its target; off,
            they are believed once the log is that long again, whatever it holds then.
    """

    verify_epochs_at_open: bool = field(default=True, validator=_is_bool)
    cut_epochs_at_end: bool = field(default=True, validator=_is_bool)
    undefined_epoch_is_undefined: bool = field(default=True, validator=_is_bool)
    answer_below_oldest_epoch: bool = field(default=True, validator=_is_bool)
    fsync_before_rename: bool = field(default=True, validator=_is_bool)
    lower_boundary_first: bool = field(default=True, validator=_is_bool)
    boundary_after_fsync: bool = field(default=True, validator=_is_bool)
    remove_marker_before_load: bool = field(default=True, validator=_is_bool)
    duplicates_before_order: bool = field(default=True, validator=_is_bool)
    judge_appends_only: bool = field(default=True, validator=_is_bool)
    marker_times_count: bool = field(default=True, validator=_is_bool)
    drop_snapshots_above: bool = field(default=True, validator=_is_bool)


@frozen(kw_only=True)
class LogConfig(Value):
    """Limits of one log. A value outside its range is ``InvalidConfig``, which is a ``ValueError``.

    Attributes:
        segment_max_bytes: a segment rolls before it would pass this size; a larger single batch
            still goes into an empty segment. 1 to 2^31-1. Kafka: ``segment.bytes``.
        segment_max_age_ms: a segment with data rolls when the newest timestamp is this far from
            its first batch's. 1 to 2^63-1. Kafka: ``segment.ms``.
        index_interval_bytes: distance between two index entries. 1 to 2^31-1. Kafka:
            ``index.interval.bytes``.
        index_max_bytes: a segment rolls when one of its indexes has no room for a further entry.
            12 to 2^31-1. Kafka: ``segment.index.bytes``.
        max_batch_bytes: size of a whole frame that is appended or replicated. 60 to 2^31-1. What
            is in the log already may have up to 16 MiB, whatever this says now.
        open_files_max: how many closed segments keep an open file. 1 to 65,536.
        producer_expiry_ms: a producer that was idle for this long may be forgotten. 1 to 2^63-1.
            Kafka: ``producer.id.expiration.ms``.
        rules: guards inside storage.
    """

    segment_max_bytes: int = field(default=1 << 30, validator=_between(1, INT32_MAX))
    segment_max_age_ms: int = field(default=7 * 24 * 3_600_000, validator=_between(1, 2**63 - 1))
    index_interval_bytes: int = field(default=4_096, validator=_between(1, INT32_MAX))
    index_max_bytes: int = field(
        default=10 << 20, validator=_between(INDEX_ENTRY_BYTES_MAX, INT32_MAX)
    )
    max_batch_bytes: int = field(default=16 << 20, validator=_between(60, INT32_MAX))
    open_files_max: int = field(default=16, validator=_between(1, 65_536))
    producer_expiry_ms: int = field(default=24 * 3_600_000, validator=_between(1, 2**63 - 1))
    rules: LogRules = field(factory=LogRules)

    @property
    def read_limit_bytes(self) -> int:
        """The largest frame that reading and recovery take for possible."""
        return max(self.max_batch_bytes, READ_LIMIT_BYTES_MIN)

    @rules.validator
    def _check_rules(self, attribute: Attribute[LogRules], value: object) -> None:
        if not isinstance(value, LogRules):
            raise InvalidConfig(f"rules is {value!r}, allowed is a LogRules")


@frozen(kw_only=True)
class CompactionPolicy(Value):
    """Limits of one compaction pass.

    Attributes:
        delete_retention_ms: how long a tombstone stays, counted from its own timestamp (-1, none,
            counts as a time long past). 0 to 2^63-1. Kafka: ``delete.retention.ms``.
        keys_max: how many different keys are mapped at once. 1 to 2^31-1.
        key_bytes_max: how many bytes these keys have together. 1 to 2^40. A key costs about 110
            bytes of memory besides. Kafka: ``log.cleaner.dedupe.buffer.size``.
    """

    delete_retention_ms: int = field(default=24 * 3_600_000, validator=_between(0, 2**63 - 1))
    keys_max: int = field(default=1_000_000, validator=_between(1, INT32_MAX))
    key_bytes_max: int = field(default=128 << 20, validator=_between(1, 2**40))
