"""Which partition a record goes to: the one of its key, or one for a whole batch, then the next.

Records with equal keys go to one partition while the topic keeps its size: crc32 of the key, modulo
the number of partitions (Kafka takes murmur2). Records without a key stay with one partition until
its batch is full or sent, then go to the next that has a leader (KIP-480, here round robin instead
of at random).

Left out: waiting for a topic's metadata (``cluster.producer``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from zlib import crc32

from cluster.client_metadata import LeaderAndEpoch

__all__ = ["Partitioner"]


class Partitioner:
    """See the module."""

    __slots__ = ("_sticky",)

    def __init__(self) -> None:
        self._sticky: dict[str, int] = {}

    def choose(
        self,
        topic: str,
        key: bytes | None,
        partitions: Sequence[LeaderAndEpoch],
        *,
        has_room: Callable[[int], bool],
    ) -> int:
        """The number of one of ``partitions``.

        Args:
            partitions: all of the topic, by number, one at least.
            has_room: whether a batch that is not yet sent takes one more record, by number.
        """
        if key is not None:
            return partitions[crc32(key) % len(partitions)].partition.partition
        led = [each.partition.partition for each in partitions if each.leader is not None]
        numbers = led or [each.partition.partition for each in partitions]
        last = self._sticky.get(topic)
        if last is None or last not in numbers or not has_room(last):
            behind = [number for number in numbers if last is not None and number > last]
            last = self._sticky[topic] = behind[0] if behind else numbers[0]
        return last
