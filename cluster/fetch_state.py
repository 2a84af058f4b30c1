"""Where the copy of one partition stands on a follower.

Left out: what moves it on (``cluster.fetcher``, ``cluster.replicating``).
"""

from __future__ import annotations

from enum import Enum

from attrs import define

from cluster.names import NO_EPOCH, NO_OFFSET

__all__ = ["FetchState", "PartitionFetch", "Step"]


class FetchState(Enum):
    """What a partition asks its leader next."""

    FETCHING = "fetching"
    TRUNCATING = "truncating"
    LATEST = "latest"
    EARLIEST = "earliest"
    SYNCING = "syncing"
    FAILED = "failed"


@define(eq=False)
class PartitionFetch:
    """Where the copy of one partition stands.

    Attributes:
        leader_epoch: the epoch that was current when it was added.
        fetch_offset: from where the next fetch reads.
        last_fetched_epoch: of the last batch in the log, -1 for none (truncate-on-fetch only).
        not_before_us: monotonic clock; it rests until then, after an error.
        leader_end: what the leader said of its end, while its start is asked for.
    """

    leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int = NO_EPOCH
    state: FetchState = FetchState.FETCHING
    not_before_us: int = 0
    leader_end: int = NO_OFFSET


class Step(Enum):
    """What a response led to, for one partition."""

    DONE = "done"
    DROPPED = "dropped"
    RETRY_LATER = "retry later"
    FAILED = "failed"
