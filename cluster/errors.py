"""Error codes of the protocol, and the error that a bug of ours raises.

Three families stay apart: codes travel in responses and say what the protocol made of a request;
``StorageError`` is what a disk or a log did; ``ProtocolBug`` and ``AssertionError`` are defects of
this package. Numbers and names are Kafka's (class Errors).

Left out: which code a rule answers with (each rule's own module).
"""

from __future__ import annotations

from enum import Enum
from typing import Final

__all__ = ["DEFINITE_ON_FIRST_ATTEMPT", "ErrorCode", "ProtocolBug"]


class ProtocolBug(AssertionError):
    """A state machine is in a state that its own rules exclude."""


class ErrorCode(Enum):
    """A code, whether the same request may succeed later, and whether nothing was done.

    Attributes:
        number: Kafka's.
        is_retriable: a client tries again, after it has asked for new metadata.
        is_definite: of a produce: the batch was not appended and never will be by this request
            (FAULTS D.1). What is not definite may have been done.
    """

    NONE = (0, False, False)
    UNKNOWN_SERVER_ERROR = (-1, False, False)
    OFFSET_OUT_OF_RANGE = (1, False, False)
    CORRUPT_MESSAGE = (2, True, True)
    UNKNOWN_TOPIC_OR_PARTITION = (3, True, True)
    LEADER_NOT_AVAILABLE = (5, True, True)
    NOT_LEADER_OR_FOLLOWER = (6, True, False)
    REQUEST_TIMED_OUT = (7, True, False)
    MESSAGE_TOO_LARGE = (10, False, True)
    NETWORK_EXCEPTION = (13, True, False)
    INVALID_TOPIC_EXCEPTION = (17, False, True)
    NOT_ENOUGH_REPLICAS = (19, True, True)
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = (20, True, False)
    INVALID_REQUIRED_ACKS = (21, False, True)
    TOPIC_ALREADY_EXISTS = (36, False, False)
    INVALID_PARTITIONS = (37, False, False)
    INVALID_REPLICATION_FACTOR = (38, False, False)
    INVALID_REPLICA_ASSIGNMENT = (39, False, False)
    INVALID_CONFIG = (40, False, False)
    NOT_CONTROLLER = (41, True, False)
    INVALID_REQUEST = (42, False, True)
    OUT_OF_ORDER_SEQUENCE_NUMBER = (45, False, False)
    INVALID_PRODUCER_EPOCH = (47, False, False)
    OPERATION_NOT_ATTEMPTED = (55, False, False)
    KAFKA_STORAGE_ERROR = (56, True, False)
    FENCED_LEADER_EPOCH = (74, True, False)
    UNKNOWN_LEADER_EPOCH = (75, True, False)
    STALE_BROKER_EPOCH = (77, False, False)
    OFFSET_NOT_AVAILABLE = (78, True, False)
    PREFERRED_LEADER_NOT_AVAILABLE = (80, False, False)
    ELIGIBLE_LEADERS_NOT_AVAILABLE = (83, False, False)
    ELECTION_NOT_NEEDED = (84, False, False)
    NO_REASSIGNMENT_IN_PROGRESS = (85, False, False)
    INVALID_RECORD = (87, False, True)
    INVALID_UPDATE_VERSION = (95, False, False)
    UNKNOWN_TOPIC_ID = (100, True, True)
    DUPLICATE_BROKER_REGISTRATION = (101, False, False)
    BROKER_ID_NOT_REGISTERED = (102, False, False)
    INCONSISTENT_TOPIC_ID = (103, True, False)
    INELIGIBLE_REPLICA = (107, False, False)
    NEW_LEADER_ELECTED = (108, False, False)

    def __init__(self, number: int, is_retriable: bool, is_definite: bool) -> None:
        self.number = number
        self.is_retriable = is_retriable
        self.is_definite = is_definite


DEFINITE_ON_FIRST_ATTEMPT: Final = frozenset(
    {ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER}
)
"""Definite where no earlier attempt of the same batch can have been appended (FAULTS D.1)."""
