"""What operators ask for: topics, configuration, elections, reassignments.

Rules:

* An operator repeats a request until it is answered. A repeated CreateTopics whose first answer was
  lost answers TOPIC_ALREADY_EXISTS with the id of the topic that is there, a repeated DeleteTopics
  UNKNOWN_TOPIC_OR_PARTITION, a repeated ElectLeaders ELECTION_NOT_NEEDED; configurations and
  reassignments say what shall hold, and are answered alike.
* Names are checked as storage checks them. One request makes 10,000 partitions at most (Kafka:
  MAX_PARTITIONS_PER_BATCH).
* A reassignment is done when all wanted replicas are in the ISR. (KRaft asks it of the added ones
  only, and so lets a reassignment that only takes replicas away end with some out of sync.)
* No broker configuration is known to the controller: all are refused. With ELR Kafka refuses
  ``min.insync.replicas`` of a broker too (KAFKA-16540).

Left out: what a change makes of a partition (``cluster.partition_changes``).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from hashlib import blake2b
from typing import Final

from attrs import evolve

from cluster.config import TopicConfig
from cluster.controller_state import ControllerState
from cluster.elections import Election
from cluster.errors import ErrorCode
from cluster.messages_control import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ConfigChange,
    CreateTopicsRequest,
    CreateTopicsResponse,
    CreateTopicsTopic,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectionType,
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionError,
    Reassignment,
    TopicError,
)
from cluster.names import TopicIdPartition
from cluster.partition_changes import cancelled, next_record, reassigned, strands
from cluster.records import (
    ConfigRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from storage.errors import InvalidConfig
from storage.log_dir import TopicPartition

__all__ = [
    "PARTITIONS_MAX",
    "alter_configs",
    "create_topics",
    "delete_topics",
    "elect_leaders",
    "reassign_partitions",
    "topic_id_of",
]

PARTITIONS_MAX: Final = 10_000
_CONFIG_CHARS_MAX: Final = 255


# Topics ----------------------------------------------------------------------------------------


def topic_id_of(topic: str, offset: int) -> str:
    """22 characters that no other topic has: from its name and its record's metadata offset."""
    digest = blake2b(f"{offset} {topic}".encode(), digest_size=16).digest()
    return urlsafe_b64encode(digest).decode().rstrip("=")


def create_topics(state: ControllerState, request: CreateTopicsRequest) -> CreateTopicsResponse:
    """One by one, in order; one topic's refusal does not touch the others."""
    results = []
    room = PARTITIONS_MAX
    for topic in request.topics:
        result, made = _create(state, topic, room)
        room -= made
        results.append(result)
    return CreateTopicsResponse(request.correlation_id, tuple(results))


def _create(state: ControllerState, wanted: CreateTopicsTopic, room: int) -> tuple[TopicError, int]:
    name = wanted.topic
    if not _is_topic_name(name):
        return TopicError(name, ErrorCode.INVALID_TOPIC_EXCEPTION), 0
    existing = state.image.topic_ids.get(name)
    if existing is not None:
        return TopicError(name, ErrorCode.TOPIC_ALREADY_EXISTS, existing), 0
    configs = _configs_of(wanted)
    if configs is None:
        return TopicError(name, ErrorCode.INVALID_CONFIG), 0
    count = len(wanted.assignments) or wanted.num_partitions
    if not 0 < count <= room:
        return TopicError(name, ErrorCode.INVALID_PARTITIONS), 0
    if wanted.assignments:
        error = _check_assignments(state, wanted.assignments)
        assignments = wanted.assignments
    else:
        error, assignments = _spread(state, count, wanted.replication_factor)
    if error is not ErrorCode.NONE:
        return TopicError(name, error), 0
    topic_id = topic_id_of(name, state.image.end_offset)
    state.decide(TopicRecord(topic_id, name))
    for key in sorted(configs):
        state.decide(ConfigRecord(True, name, key, configs[key]))
    for number, replicas in enumerate(assignments):
        isr = tuple(broker for broker in replicas if state.image.is_active(broker))
        partition = TopicIdPartition(topic_id, name, number)
        state.decide(PartitionRecord(partition, replicas, isr, isr[0], 0, 0))
    return TopicError(name, ErrorCode.NONE, topic_id), len(assignments)


def _is_topic_name(name: str) -> bool:
    try:
        TopicPartition.checked(name, 0)
    except InvalidConfig:
        return False
    return True


def _configs_of(wanted: CreateTopicsTopic) -> dict[str, str] | None:
    """As a mapping, None where they are no valid configuration."""
    values: dict[str, str] = {}
    for pair in wanted.configs:
        if len(pair) != 2 or pair[0] in values or len(pair[1]) > _CONFIG_CHARS_MAX:
            return None
        values[pair[0]] = pair[1]
    try:
        TopicConfig.from_kafka(values)
    except InvalidConfig:
        return None
    return values


def _check_assignments(
    state: ControllerState, assignments: tuple[tuple[str, ...], ...]
) -> ErrorCode:
    """Registered brokers, each once, as many everywhere, and one of them active."""
    for replicas in assignments:
        is_valid = _is_valid_assignment(state, replicas)
        if not is_valid or len(replicas) != len(assignments[0]):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        if not any(state.image.is_active(broker) for broker in replicas):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    return ErrorCode.NONE


def _is_valid_assignment(state: ControllerState, replicas: tuple[str, ...]) -> bool:
    is_known = all(broker in state.image.brokers for broker in replicas)
    return bool(replicas) and is_known and len(set(replicas)) == len(replicas)


def _spread(
    state: ControllerState, count: int, replication_factor: int
) -> tuple[ErrorCode, tuple[tuple[str, ...], ...]]:
    """Round robin over the active brokers by name; each topic begins one further on."""
    brokers = [name for name in sorted(state.image.brokers) if state.image.is_active(name)]
    if not 0 < replication_factor <= len(brokers):
        return ErrorCode.INVALID_REPLICATION_FACTOR, ()
    start = len(state.image.topic_ids)
    return ErrorCode.NONE, tuple(
        tuple(
            brokers[(start + number + place) % len(brokers)] for place in range(replication_factor)
        )
        for number in range(count)
    )


def delete_topics(state: ControllerState, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """By name; logs go when the brokers hear of it."""
    results = []
    for topic in request.topics:
        topic_id = state.image.topic_ids.get(topic)
        if topic_id is None:
            results.append(TopicError(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        state.decide(RemoveTopicRecord(topic_id, topic))
        results.append(TopicError(topic, ErrorCode.NONE, topic_id))
    return DeleteTopicsResponse(request.correlation_id, tuple(results))


# Configuration ---------------------------------------------------------------------------------


def alter_configs(state: ControllerState, request: AlterConfigsRequest) -> AlterConfigsResponse:
    """All changes or none. Another ``min.insync.replicas`` clears the ELR (PROTOCOL A17).

    With ELR it raises the partition epochs too, so that a leader which has not heard of it changes
    no ISR: whom it left behind would be eligible, and miss what it then commits alone.
    """
    values: dict[str, dict[str, str]] = {}
    for change in request.changes:
        error, message = _check_config(state, change, values)
        if error is not ErrorCode.NONE:
            return AlterConfigsResponse(request.correlation_id, error, message)
    before = {topic: state.min_isr(topic) for topic in values}
    for change in request.changes:
        old = state.image.config(is_topic=True, resource=change.resource).get(change.name)
        if old != change.value:
            state.decide(ConfigRecord(True, change.resource, change.name, change.value))
    for topic in sorted(values):
        if state.min_isr(topic) != before[topic]:
            _clear_elr(state, topic)
    return AlterConfigsResponse(request.correlation_id, ErrorCode.NONE)


def _check_config(
    state: ControllerState, change: ConfigChange, values: dict[str, dict[str, str]]
) -> tuple[ErrorCode, str]:
    """Whether a change is valid behind those before it, which ``values`` has by topic."""
    if not change.is_topic:
        return ErrorCode.INVALID_CONFIG, f"{change.name!r} is no broker config, there are none"
    topic = change.resource
    if topic not in state.image.topic_ids:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"topic {topic!r} is unknown"
    if change.value is not None and len(change.value) > _CONFIG_CHARS_MAX:
        return ErrorCode.INVALID_CONFIG, f"{change.name!r} is longer than {_CONFIG_CHARS_MAX}"
    if topic not in values:
        values[topic] = dict(state.image.config(is_topic=True, resource=topic))
    try:
        # A name that is taken away must be one too.
        TopicConfig.from_kafka({change.name: change.value or _any_value(change.name)})
        if change.value is None:
            values[topic].pop(change.name, None)
        else:
            values[topic][change.name] = change.value
        TopicConfig.from_kafka(values[topic])
    except InvalidConfig as error:
        return ErrorCode.INVALID_CONFIG, str(error)
    return ErrorCode.NONE, ""


def _any_value(name: str) -> str:
    """A value that is valid for every config of the kind that ``name`` is of, if it is one."""
    if name == "cleanup.policy":
        return "delete"
    return "false" if name.endswith(".enable") else "1000"


def _clear_elr(state: ControllerState, topic: str) -> None:
    """An empty ISR commits nothing by whatever minimum: whoever may lead then still may."""
    for record in list(state.image.partitions_of(state.image.topic_ids[topic])):
        if not record.isr:
            continue
        if state.config.eligible_leader_replicas or record.elr or record.last_known_elr:
            after = evolve(
                record, elr=(), last_known_elr=(), partition_epoch=record.partition_epoch + 1
            )
            state.decide(after)


# Elections -------------------------------------------------------------------------------------


def elect_leaders(state: ControllerState, request: ElectLeadersRequest) -> ElectLeadersResponse:
    """Preferred, unclean, or forced upon a replica, which may lead already lost or damaged data."""
    results = []
    for partition in request.partitions:
        record, error = state.find(partition)
        if record is not None:
            error = _elect(state, request, record)
        results.append(PartitionError(partition, error))
    return ElectLeadersResponse(request.correlation_id, tuple(results))


def _elect(
    state: ControllerState, request: ElectLeadersRequest, record: PartitionRecord
) -> ErrorCode:
    if request.to is not None:
        return _force(state, request.election_type, record, request.to)
    circumstances = state.circumstances(record)
    if request.election_type is ElectionType.PREFERRED:
        preferred = record.replicas[0]
        if record.leader == preferred:
            return ErrorCode.ELECTION_NOT_NEEDED
        after = next_record(record, circumstances, election=Election.PREFERRED)
        if after.leader != preferred:
            return ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    else:
        if record.leader is not None:
            return ErrorCode.ELECTION_NOT_NEEDED
        after = next_record(record, circumstances, election=Election.UNCLEAN)
        if after.leader is None:
            return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    state.decide_change(record, after)
    return ErrorCode.NONE


def _force(
    state: ControllerState, kind: ElectionType, record: PartitionRecord, to: str
) -> ErrorCode:
    """Another leader deposes the present one. A damaged log does not keep it from being named."""
    if kind is not ElectionType.UNCLEAN:
        return ErrorCode.INVALID_REQUEST
    if record.leader == to:
        return ErrorCode.ELECTION_NOT_NEEDED
    if to not in record.replicas or not state.image.is_active(to):
        return ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
    after = next_record(record, state.circumstances(record), to=to)
    state.decide_change(record, after)
    return ErrorCode.NONE


# Reassignment ----------------------------------------------------------------------------------


def reassign_partitions(
    state: ControllerState, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    """Grow, move, shrink or cancel; a new target replaces the one under way."""
    results = []
    for wanted in request.partitions:
        record, error = state.find(wanted.partition)
        if record is not None:
            error = _reassign(state, wanted, record)
        results.append(PartitionError(wanted.partition, error))
    return AlterPartitionReassignmentsResponse(request.correlation_id, tuple(results))


def _reassign(state: ControllerState, wanted: Reassignment, record: PartitionRecord) -> ErrorCode:
    if wanted.replicas is None:
        if not record.adding_replicas and not record.removing_replicas:
            return ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
        assignment = cancelled(record)
    else:
        if not _is_valid_assignment(state, wanted.replicas):
            return ErrorCode.INVALID_REPLICA_ASSIGNMENT
        assignment = reassigned(record, wanted.replicas)
    if strands(record, assignment):
        # It would take an unclean election to go on.
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    after = next_record(
        record,
        state.circumstances(record),
        assignment=assignment,
        election=state.election(record.partition.topic),
    )
    state.decide_change(record, after)
    return ErrorCode.NONE
