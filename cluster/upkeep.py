"""What a broker does by the clock: checkpoints, retention, compaction, forgetting producers (A23).

Retention and compaction go no further than the high watermark. Files are renamed here; removing
them is pending work of the log.

Left out: when a log flushes what nobody waits for (pending work of ``storage``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.leading import Leading
from cluster.names import Now
from cluster.replica import Replica
from storage.compaction import compact
from storage.errors import DiskError, LogOffline, StorageError
from storage.log_dir import TopicPartition

__all__ = ["Upkeep"]


class Upkeep:
    """The periodic work of one broker."""

    def __init__(self, core: BrokerCore, leading: Leading) -> None:
        self._core = core
        self._leading = leading
        config = core.config
        self._tasks: dict[str, tuple[int, Callable[[Now, Effects], None]]] = {
            "checkpoint-hw": (config.checkpoint_interval_ms, self._checkpoint_high_watermarks),
            "checkpoint-offsets": (
                config.flush_offset_checkpoint_interval_ms,
                self._checkpoint_offsets,
            ),
            "isr-shrink": (max(1, config.replica_lag_time_max_ms // 2), self._shrink),
            "retention": (config.log_retention_check_interval_ms, self._retain),
            "compaction": (config.log_cleaner_backoff_ms, self._compact),
            "expire-producers": (config.log_retention_check_interval_ms, self._expire),
        }

    def start(self, now: Now, fx: Effects) -> None:
        """Arm the timers. The lag is judged by the clock of ``Now.timer_clock``."""
        for kind in self._tasks:
            self._arm(now, kind, fx)

    def _arm(self, now: Now, kind: str, fx: Effects) -> None:
        interval_us = self._tasks[kind][0] * 1_000
        if kind == "isr-shrink":
            fx.arm((kind,), now.timer_us + interval_us, now.timer_clock)
        else:
            fx.arm((kind,), now.mono_us + interval_us)

    def on_timer(self, now: Now, kind: str, fx: Effects) -> bool:
        """A timer of this part is due; returns whether it was one."""
        if kind not in self._tasks:
            return False
        try:
            self._tasks[kind][1](now, fx)
        except (DiskError, LogOffline) as error:
            self._core.halt(error, fx)
            return True
        except StorageError as error:
            fx.note("upkeep-error", task=kind, error=error.code, detail=str(error))
        self._arm(now, kind, fx)
        return True

    def _logs(self) -> list[Replica]:
        replicas = self._core.replicas
        return [
            replicas[partition]
            for partition in sorted(replicas)
            if replicas[partition].log is not None
        ]

    # Checkpoints -------------------------------------------------------------------------------

    def high_watermarks(self) -> dict[TopicPartition, int]:
        """Of the replicas that are open."""
        return {
            TopicPartition(replica.partition.topic, replica.partition.partition): (
                replica.high_watermark
            )
            for replica in self._logs()
        }

    def _checkpoint_high_watermarks(self, now: Now, fx: Effects) -> None:
        self._core.log_dir.write_high_watermarks(
            self.high_watermarks(), keep_others=self._core.guards.merge_hw_checkpoint
        )
        fx.note("checkpoint", file="replication-offset-checkpoint")

    def _checkpoint_offsets(self, now: Now, fx: Effects) -> None:
        self._core.log_dir.write_recovery_points()
        self._core.log_dir.write_log_starts()
        fx.note("checkpoint", file="recovery-point-offset-checkpoint")

    # ISR ---------------------------------------------------------------------------------------

    def _shrink(self, now: Now, fx: Effects) -> None:
        for replica in self._logs():
            self._leading.shrink(now, replica, fx)

    # Old data ----------------------------------------------------------------------------------

    def _retain(self, now: Now, fx: Effects) -> None:
        for replica in self._logs():
            config, log = replica.config, replica.opened
            limit = replica.high_watermark if self._core.guards.retention_below_hw else log.leo
            has_limits = config.cleanup_delete
            gone = log.delete_old_segments(
                limit,
                retention_bytes=_limit(config.retention_bytes) if has_limits else None,
                retention_ms=_limit(config.retention_ms) if has_limits else None,
                now_ms=now.wall_ms,
            )
            if gone:
                replica.clamp_high_watermark()
                fx.note(
                    "retention",
                    partition=str(replica.partition),
                    log_start_offset=log.log_start_offset,
                )
            self._core.give_out_work(replica, fx)

    def _compact(self, now: Now, fx: Effects) -> None:
        for replica in self._logs():
            if not replica.config.cleanup_compact:
                continue
            log = replica.opened
            limit = replica.high_watermark if self._core.guards.compaction_below_hw else log.leo
            try:
                result = compact(
                    log,
                    limit,
                    now_ms=now.wall_ms,
                    policy=replica.config.compaction_policy(),
                )
            except (DiskError, LogOffline):
                raise
            except StorageError as error:
                fx.note("compaction-error", partition=str(replica.partition), error=error.code)
                self._core.give_out_work(replica, fx)
                continue
            if result.segments_before:
                fx.note(
                    "compaction",
                    partition=str(replica.partition),
                    cleaned_offset=result.cleaned_offset,
                )
            self._core.give_out_work(replica, fx)

    def _expire(self, now: Now, fx: Effects) -> None:
        for replica in self._logs():
            gone = replica.opened.expire_producers(now.wall_ms)
            if gone:
                fx.note("expire-producers", partition=str(replica.partition), producers=gone)


def _limit(value: int) -> int | None:
    """A topic's -1 is no limit."""
    return None if value < 0 else value
