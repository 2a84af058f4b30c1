"""Names and plain values that every part of the cluster shares.

A node is named by a string: brokers ``b1..bn``, the controller ``c1``, clients as their scenario
names them, the operator ``admin``. Kafka numbers its brokers; names make traces readable.

Left out: messages (``cluster.messages``) and what nodes know of each other (``cluster.metadata``).
"""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

__all__ = [
    "ADMIN",
    "CONTROLLER",
    "EARLIEST_TIMESTAMP",
    "LATEST_TIMESTAMP",
    "NO_BROKER_EPOCH",
    "NO_EPOCH",
    "NO_OFFSET",
    "Clock",
    "Now",
    "TopicIdPartition",
]

ADMIN: Final = "admin"
CONTROLLER: Final = "c1"
NO_EPOCH: Final = -1
"""An epoch that is undefined or unknown."""
NO_OFFSET: Final = -1
"""An offset that is undefined or unknown."""
NO_BROKER_EPOCH: Final = -1
"""A broker epoch that is not given; checks of broker epochs are skipped for it (KIP-903)."""
LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2


Clock = Literal["mono", "wall"]
"""Of a host. The monotonic one never goes back; the wall clock may step."""


class Now(NamedTuple):
    """Both clocks of one host, in integer microseconds.

    Attributes:
        mono_us: monotonic clock; never goes back.
        wall_us: wall clock; may step.
        timer_clock: which of them the timers follow that Kafka has on the wall clock: those of
            clients, fetchers, requests to the controller, and the lag of replicas (FAULTS C.3).
            ``mono`` is the safe choice, which Kafka does not offer.
    """

    mono_us: int
    wall_us: int
    timer_clock: Clock = "wall"

    @property
    def timer_us(self) -> int:
        """What ``timer_clock`` shows."""
        return self.wall_us if self.timer_clock == "wall" else self.mono_us

    @property
    def wall_ms(self) -> int:
        """The wall clock as record timestamps have it."""
        return self.wall_us // 1_000


class TopicIdPartition(NamedTuple):
    """One partition of one topic, and not of another topic that bore the name before or after.

    Attributes:
        topic_id: 22 characters of URL-safe base64.
        topic: its name.
        partition: 0 to 2^31-1.
    """

    topic_id: str
    topic: str
    partition: int

    def __deepcopy__(self, memo: object) -> TopicIdPartition:
        return self

    def __str__(self) -> str:
        """``orders-0``, as its directory is named."""
        return f"{self.topic}-{self.partition}"
