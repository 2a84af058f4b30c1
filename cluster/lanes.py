"""Which lane of a host does what: one queue each, so that a stalled disk blocks only its callers.

A broker whose disk hangs in a produce goes on sending heartbeats, and its leaders go on shrinking
their ISRs (hazard B-46): both are of a lane that asks the disk only for what a committed change of
an ISR lets waiting consumers read, and at the very end of a stop. The world gives each event to the
lane named here and charges disk time to it.

Left out: queues and times (package ``sim``).
"""

from __future__ import annotations

from enum import StrEnum

from cluster import messages_control as control
from cluster import messages_data as data
from cluster.message import Message
from storage.log_durability import Work

__all__ = ["Lane", "lane_of_message", "lane_of_timer", "lane_of_work"]


class Lane(StrEnum):
    """Kafka's request handlers, replica fetchers, metadata loader, channels to the controller
    (heartbeats and ISR changes), schedulers.
    """

    REQUESTS = "requests"
    FETCHERS = "fetchers"
    METADATA = "metadata"
    HEARTBEAT = "heartbeat"
    BACKGROUND = "background"


_MESSAGES: dict[type[Message], Lane] = {
    data.FetchResponse: Lane.FETCHERS,
    data.OffsetsForLeaderEpochResponse: Lane.FETCHERS,
    data.ListOffsetsResponse: Lane.FETCHERS,
    control.MetadataFetchResponse: Lane.METADATA,
    control.BrokerRegistrationResponse: Lane.METADATA,
    control.BrokerHeartbeatRequest: Lane.HEARTBEAT,
    control.BrokerHeartbeatResponse: Lane.HEARTBEAT,
    control.AlterPartitionResponse: Lane.HEARTBEAT,
}
_TIMERS: dict[str, Lane] = {
    "fetch-backoff": Lane.FETCHERS,
    "fetch-timeout": Lane.FETCHERS,
    "metadata-timeout": Lane.METADATA,
    "register": Lane.METADATA,
    "heartbeat": Lane.HEARTBEAT,
    "heartbeat-timeout": Lane.HEARTBEAT,
    "controlled-shutdown": Lane.HEARTBEAT,
    "session": Lane.HEARTBEAT,
    "alter-partition": Lane.HEARTBEAT,
    "isr-shrink": Lane.HEARTBEAT,
    "checkpoint-hw": Lane.BACKGROUND,
    "checkpoint-offsets": Lane.BACKGROUND,
    "retention": Lane.BACKGROUND,
    "compaction": Lane.BACKGROUND,
    "expire-producers": Lane.BACKGROUND,
}


def lane_of_message(message: Message) -> Lane:
    """The lane that handles it; requests are the request handlers' unless named above."""
    return _MESSAGES.get(type(message), Lane.REQUESTS)


def lane_of_timer(key: tuple[object, ...]) -> Lane:
    """By the first part of a timer's key; ``fetch`` is a request that waits at a leader."""
    return _TIMERS.get(str(key[0]), Lane.REQUESTS)


def lane_of_work(work: Work) -> Lane:
    """Of whatever kind: Kafka's schedulers flush, write and delete behind everybody's back."""
    return Lane.BACKGROUND
