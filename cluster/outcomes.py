"""How a produced record's operation ends (FAULTS D.1), and why one cannot even begin."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from cluster.errors import ErrorCode
from cluster.names import NO_OFFSET, TopicIdPartition

__all__ = ["BufferFull", "Outcome", "OutcomeKind", "ProducerStopped"]


class BufferFull(Exception):
    """``buffer_max_records`` operations have no outcome yet. Send again when some have."""


class ProducerStopped(Exception):
    """The producer was told to stop and takes no more records."""


class OutcomeKind(Enum):
    """What became of an operation.

    ACKED: the leader answered without an error. A promise only under acks -1.
    REJECTED: the record is not in the log and never will be by this operation.
    UNKNOWN: it may be there, or come to be there, or not.
    """

    ACKED = "acked"
    REJECTED = "rejected"
    UNKNOWN = "unknown"


class Outcome(NamedTuple):
    """The end of one operation.

    Attributes:
        operation: what ``Producer.send`` returned.
        partition: None where topic or partition never became known.
        offset: of the record, -1 unless it is acknowledged.
        error_code: of the last attempt, NONE if it had no error; REQUEST_TIMED_OUT where there was
            no attempt, or the last one has no answer.
    """

    operation: int
    kind: OutcomeKind
    partition: TopicIdPartition | None
    offset: int = NO_OFFSET
    error_code: ErrorCode = ErrorCode.NONE

    def __deepcopy__(self, memo: object) -> Outcome:
        return self
