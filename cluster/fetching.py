"""What a leader makes of a fetch, and a follower of the response (PROTOCOL A3, A4).

Pure: both sides' positions in, a verdict out. The order of the checks is Kafka's and matters: an
epoch is judged before leadership, the log start before divergence.

Left out: reading, waiting, and what the verdict does to the leader's view of the follower.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.messages_data import EpochEndOffset
from cluster.names import NO_EPOCH, NO_OFFSET

__all__ = ["FetchVerdict", "check_epoch", "check_position", "is_expected"]


class FetchVerdict(NamedTuple):
    """What the leader answers.

    Attributes:
        error_code: NONE where the fetch is served, or diverges.
        diverging_epoch: where the follower has to cut; no records then.
    """

    error_code: ErrorCode = ErrorCode.NONE
    diverging_epoch: EpochEndOffset | None = None


_SERVED = FetchVerdict()
_OUT_OF_RANGE = FetchVerdict(ErrorCode.OFFSET_OUT_OF_RANGE)


def check_epoch(local_epoch: int, requested_epoch: int, *, is_leader: bool) -> ErrorCode:
    """First the epoch, -1 to skip it, then leadership."""
    if requested_epoch != NO_EPOCH:
        if requested_epoch < local_epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if requested_epoch > local_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
    return ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER


def check_position(
    *,
    fetch_offset: int,
    last_fetched_epoch: int,
    log_start: int,
    leo: int,
    end_offset_for: Callable[[int], tuple[int, int]],
    guards: Guards,
) -> FetchVerdict:
    """Whether the leader can serve ``fetch_offset`` to a log that ends with that epoch.

    Args:
        last_fetched_epoch: -1 for a consumer, and for a follower without any.
        end_offset_for: the leader's epoch and end at or below an epoch, (-1, -1) if undefined.
    """
    if last_fetched_epoch != NO_EPOCH:
        epoch, end = end_offset_for(last_fetched_epoch)
        if end == NO_OFFSET:
            return _OUT_OF_RANGE
        if guards.log_start_before_divergence and fetch_offset < log_start:
            return _OUT_OF_RANGE
        if epoch < last_fetched_epoch or end < fetch_offset:
            return FetchVerdict(diverging_epoch=EpochEndOffset(epoch, end))
    if not log_start <= fetch_offset <= leo:
        return _OUT_OF_RANGE
    return _SERVED


def is_expected(
    *,
    requested_offset: int,
    requested_epoch: int,
    fetch_offset: int,
    current_epoch: int,
    guards: Guards,
) -> bool:
    """Whether a response still answers what the follower would ask now; else it is dropped."""
    if guards.fetch_offset_match and requested_offset != fetch_offset:
        return False
    return requested_epoch == current_epoch or not guards.fetch_response_epoch_match
