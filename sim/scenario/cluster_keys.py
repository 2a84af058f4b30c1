"""``[cluster]``: how many brokers, how they are configured, what their hosts are like.

Left out: making a world's configuration of it (``sim.scenario.build``).
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from sim.disk_names import NamesMode
from sim.latency import CLIENTS, MODES
from sim.scenario.durations import DURATION_MAX_US
from sim.scenario.kafka_keys import CLUSTER_KEYS, cluster_value
from sim.scenario.kinds import (
    Choice,
    Duration,
    DurationRange,
    Flag,
    Integer,
    MapOf,
    Nested,
    Reader,
    item,
)
from sim.scenario.model_kinds import (
    GUARD_IDS,
    guard_pair,
)
from sim.scenario.names import (
    BROKERS_MAX,
)
from sim.scenario.problems import Refusal, guess, seen

__all__ = ["NAMES_MODES", "TRUNCATIONS", "Clock", "ClusterKeys", "Disk", "Latency"]

_PPM: Final = 1_000_000
_LATENCY_MAX_US: Final = 1 << 31
NAMES_MODES: Final[tuple[NamesMode, ...]] = ("ext4", "posix")
TRUNCATIONS: Final = ("fetch", "kip-279", "kip-101", "high-watermark")


@frozen(kw_only=True)
class Latency:
    """How long messages travel."""

    base: tuple[int, int] = item(
        DurationRange(), "the constant of each link is drawn from this range", default=(200, 600)
    )
    jitter_us: int = item(Duration(0, _LATENCY_MAX_US), "mean of what is added", default=50)
    tail_ppm: int = item(Integer(0, _PPM), "so many of a million take much longer", default=0)
    tail_us: int = item(Duration(0, _LATENCY_MAX_US), "by up to so much", default=0)
    clients: str = item(
        Choice(CLIENTS), "links of clients: the same, immune to faults, instant", default="same"
    )


@frozen(kw_only=True)
class Disk:
    """How fast and large the disks are."""

    fsync: tuple[int, int] = item(
        DurationRange(), "a sync takes a time drawn from this range", default=(500, 3_000)
    )
    tail_ppm: int = item(Integer(0, _PPM), "so many of a million take much longer", default=0)
    tail_us: int = item(Duration(), "by up to so much", default=0)
    call_us: int = item(Duration(), "what each read and write costs", default=0)
    names_us: int = item(Duration(), "what each change of names costs", default=5)
    bytes_per_us: int = item(
        Integer(1, 1_000_000), "read or written in 1us", default=2_000, key="bytes_per_us"
    )
    capacity: int | None = item(Integer(1, 2**50), "bytes; else no limit", default=None)
    auto_da_alloc: bool = item(
        Flag(), "renaming over a file writes its bytes back (ext4)", default=False
    )


@frozen(kw_only=True)
class Clock:
    """The clocks of one node at the beginning."""

    offset_us: int = item(Duration(-DURATION_MAX_US), "of the wall clock", default=0)
    wall_ppm: int = item(Integer(1 - _PPM, _PPM), "drift of the wall clock", default=0)
    mono_ppm: int = item(Integer(1 - _PPM, _PPM), "drift of the monotonic clock", default=0)
    jitter_ppm: int = item(
        Integer(0, 100_000), "timers are late by up to so many millionths", default=0
    )


def _config_pair(key: str, value: object, reader: Reader) -> tuple[str, int | str]:
    return key, cluster_value(key, value)


def _clock_pair(key: str, value: object, reader: Reader) -> tuple[str, Clock]:
    if key != "c1" and not reader.names.is_broker(key):
        known = (*reader.names.broker_names, "c1")
        hint = guess(key, known)
        raise Refusal(f"there is no server {seen(key)}", hint=hint, allowed=known, is_key=True)
    clock: Clock = reader.table(value, Clock)
    return key, clock


@frozen(kw_only=True)
class ClusterKeys:
    """``[cluster]``: how many brokers, how they are configured, what their hosts are like."""

    brokers: int = item(Integer(1, BROKERS_MAX), "how many: b1, b2, ...", default=3)
    config: dict[str, int | str] = item(
        MapOf(_config_pair, {"type": ["integer", "boolean", "string"]}, tuple(CLUSTER_KEYS)),
        "of brokers and controller, by Kafka's names",
        factory=dict,
    )
    truncation: str = item(
        Choice(TRUNCATIONS), "how followers find where to cut", default=TRUNCATIONS[0]
    )
    eligible_leader_replicas: bool = item(Flag(), "ELR (KIP-966)", default=False)
    guards: dict[str, bool] = item(
        MapOf(guard_pair, {"type": "boolean"}, GUARD_IDS),
        "rules of the protocol that are switched off",
        factory=dict,
    )
    metadata_snapshot_records: int = item(
        Integer(0, 1_000_000), "the metadata log is cut behind a snapshot; 0 for never", default=0
    )
    writeback: tuple[int, int] | None = item(
        DurationRange(word="off"),
        'when the kernel writes back what nobody syncs, as ["5s", "30s"]; "off" for never',
        default=None,
    )
    names_mode: str = item(
        Choice(NAMES_MODES),
        "which sync makes names durable: any (ext4), or the directory's (posix)",
        default="ext4",
    )
    network: str = item(
        Choice(MODES), "links are streams (TCP), or lose and double frames", default="stream"
    )
    latency: Latency = item(Nested(Latency), "of messages", factory=Latency)
    disk: Disk = item(Nested(Disk), "of every node", factory=Disk)
    cpu: tuple[int, int] = item(DurationRange(), "time of one handler", default=(5, 50))
    background: tuple[int, int] = item(
        DurationRange(), "delay of background work", default=(1_000, 20_000)
    )
    scheduler: str = item(
        Choice(("fifo", "seeded", "pct")), "the order of what happens at one time", default="fifo"
    )
    timer_clock: str = item(
        Choice(("wall", "mono")),
        "of the timers that Kafka has on the wall clock; mono is safe where clocks step",
        default="wall",
    )
    clocks: dict[str, Clock] = item(
        MapOf(_clock_pair, {"$ref": "#/$defs/Clock"}), "by node", factory=dict
    )
