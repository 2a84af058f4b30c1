"""Every message and metadata record as bytes and as a dict, there and back; numbers are pinned."""

from __future__ import annotations

import json
from enum import Enum
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster import messages_control, messages_data, records
from cluster.errors import DEFINITE_ON_FIRST_ATTEMPT, ErrorCode
from cluster.message import Message
from cluster.messages import MESSAGES
from cluster.messages_control import ElectionType, InitProducerIdRequest
from cluster.messages_data import IsolationLevel
from cluster.records import METADATA_RECORDS, LeaderRecoveryState, MetadataRecord
from cluster.wire import MalformedMessage, Registry
from tests.cluster.values import field_hints, naive_bytes, plainest, strategy

REGISTRIES: list[Registry[Any]] = [MESSAGES, METADATA_RECORDS]
CLASSES = [(registry, kind) for registry in REGISTRIES for kind in registry.classes]
NAMES = [kind.__name__ for _, kind in CLASSES]

# The numbers are part of the format. Append to these tables; what is there never changes.
MESSAGE_NUMBERS = """
0 ProduceRequest
1 ProduceResponse
2 FetchRequest
3 FetchResponse
4 OffsetsForLeaderEpochRequest
5 OffsetsForLeaderEpochResponse
6 ListOffsetsRequest
7 ListOffsetsResponse
8 DeleteRecordsRequest
9 DeleteRecordsResponse
10 MetadataRequest
11 MetadataResponse
12 InitProducerIdRequest
13 InitProducerIdResponse
14 BrokerRegistrationRequest
15 BrokerRegistrationResponse
16 BrokerHeartbeatRequest
17 BrokerHeartbeatResponse
18 AlterPartitionRequest
19 AlterPartitionResponse
20 MetadataFetchRequest
21 MetadataFetchResponse
22 OffsetCommitRequest
23 OffsetCommitResponse
24 OffsetFetchRequest
25 OffsetFetchResponse
26 CreateTopicsRequest
27 CreateTopicsResponse
28 DeleteTopicsRequest
29 DeleteTopicsResponse
30 AlterConfigsRequest
31 AlterConfigsResponse
32 ElectLeadersRequest
33 ElectLeadersResponse
34 AlterPartitionReassignmentsRequest
35 AlterPartitionReassignmentsResponse
"""
RECORD_NUMBERS = """
0 BrokerRecord
1 TopicRecord
2 RemoveTopicRecord
3 PartitionRecord
4 ConfigRecord
5 ProducerIdsRecord
6 OffsetCommitRecord
"""
ERROR_NUMBERS = """
-1 UNKNOWN_SERVER_ERROR
0 NONE
1 OFFSET_OUT_OF_RANGE
2 CORRUPT_MESSAGE
3 UNKNOWN_TOPIC_OR_PARTITION
5 LEADER_NOT_AVAILABLE
6 NOT_LEADER_OR_FOLLOWER
7 REQUEST_TIMED_OUT
10 MESSAGE_TOO_LARGE
13 NETWORK_EXCEPTION
17 INVALID_TOPIC_EXCEPTION
19 NOT_ENOUGH_REPLICAS
20 NOT_ENOUGH_REPLICAS_AFTER_APPEND
21 INVALID_REQUIRED_ACKS
36 TOPIC_ALREADY_EXISTS
37 INVALID_PARTITIONS
38 INVALID_REPLICATION_FACTOR
39 INVALID_REPLICA_ASSIGNMENT
40 INVALID_CONFIG
41 NOT_CONTROLLER
42 INVALID_REQUEST
45 OUT_OF_ORDER_SEQUENCE_NUMBER
47 INVALID_PRODUCER_EPOCH
55 OPERATION_NOT_ATTEMPTED
56 KAFKA_STORAGE_ERROR
74 FENCED_LEADER_EPOCH
75 UNKNOWN_LEADER_EPOCH
77 STALE_BROKER_EPOCH
78 OFFSET_NOT_AVAILABLE
80 PREFERRED_LEADER_NOT_AVAILABLE
83 ELIGIBLE_LEADERS_NOT_AVAILABLE
84 ELECTION_NOT_NEEDED
85 NO_REASSIGNMENT_IN_PROGRESS
87 INVALID_RECORD
95 INVALID_UPDATE_VERSION
100 UNKNOWN_TOPIC_ID
101 DUPLICATE_BROKER_REGISTRATION
102 BROKER_ID_NOT_REGISTERED
103 INCONSISTENT_TOPIC_ID
107 INELIGIBLE_REPLICA
108 NEW_LEADER_ELECTED
"""
# Records lie on disks: the order of their fields is part of the format too.
RECORD_FIELDS = """
BrokerRecord broker_id incarnation_id broker_epoch is_fenced in_controlled_shutdown
    damaged_partitions
TopicRecord topic_id topic
RemoveTopicRecord topic_id topic
PartitionRecord partition replicas isr leader leader_epoch partition_epoch leader_recovery_state
    elr last_known_elr adding_replicas removing_replicas
ConfigRecord is_topic resource name value
ProducerIdsRecord next_producer_id
OffsetCommitRecord group partition offset leader_epoch
"""
# Bytes of one message and one record, and which part is which.
GOLDEN = {
    InitProducerIdRequest(1, 2, -1): "000c 0000000000000001 0000000000000002 ffffffffffffffff",
    plainest(METADATA_RECORDS.classes[6]): (
        "0006 00000002 6231 00000002 6231 00000002 6231 0000000000000007"
        "0000000000000007 0000000000000007"
    ),
}


def family(root: type, *modules: ModuleType) -> set[type]:
    """The subclasses of ``root`` that the modules define."""
    members = [member for module in modules for member in vars(module).values()]
    return {
        each
        for each in members
        if isinstance(each, type) and issubclass(each, root) and each is not root
    }


def table(text: str) -> list[tuple[int, str]]:
    return [(int(number), name) for number, name in map(str.split, text.strip().splitlines())]


# Numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("registry", "pinned"), [(MESSAGES, MESSAGE_NUMBERS), (METADATA_RECORDS, RECORD_NUMBERS)]
)
def test_class_numbers_never_change_and_new_ones_come_behind(
    registry: Registry[Any], pinned: str
) -> None:
    found = [(number, kind.__name__) for number, kind in enumerate(registry.classes)]
    expected = table(pinned)
    assert found[: len(expected)] == expected
    assert found == expected, "append the new class to the table of this test"


def test_fields_of_records_never_change_their_order() -> None:
    found = [" ".join([kind.__name__, *field_hints(kind)]) for kind in METADATA_RECORDS.classes]
    assert "\n".join(found) == RECORD_FIELDS.strip().replace("\n    ", " ")


def test_error_codes_have_the_numbers_of_kafka() -> None:
    found = sorted((code.number, code.name) for code in ErrorCode)
    assert found == table(ERROR_NUMBERS)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (IsolationLevel, "READ_UNCOMMITTED READ_COMMITTED"),
        (LeaderRecoveryState, "RECOVERED RECOVERING"),
        (ElectionType, "PREFERRED UNCLEAN"),
    ],
)
def test_enums_that_travel_by_their_place_keep_it(kind: type[Enum], names: str) -> None:
    assert [member.name for member in kind] == names.split()
    assert [member.value for member in kind] == list(range(len(names.split())))


@pytest.mark.parametrize("value", GOLDEN, ids=lambda value: type(value).__name__)
def test_the_bytes_are_as_they_always_were(value: Any) -> None:
    registry = MESSAGES if isinstance(value, Message) else METADATA_RECORDS
    assert registry.encode(value).hex() == GOLDEN[value].replace(" ", "")


def test_every_class_of_its_family_is_registered() -> None:
    assert set(MESSAGES.classes) == family(Message, messages_data, messages_control)
    assert set(METADATA_RECORDS.classes) == family(MetadataRecord, records)
    names = [kind.__name__ for kind in MESSAGES.classes]
    assert all(name.endswith(("Request", "Response")) for name in names)
    assert [name.replace("Request", "Response") for name in names[::2]] == names[1::2]


def test_every_message_begins_with_its_correlation_id() -> None:
    for kind in MESSAGES.classes:
        assert next(iter(field_hints(kind))) == "correlation_id"


# What a client may conclude --------------------------------------------------------------------


def test_d1_only_errors_before_the_append_are_definite() -> None:
    """FAULTS D.1: a time-out, a lost connection, not enough replicas after the append and
    NOT_LEADER_OR_FOLLOWER leave the outcome unknown, and so does a disk.
    """
    unknown = """NONE UNKNOWN_SERVER_ERROR NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT
    NETWORK_EXCEPTION NOT_ENOUGH_REPLICAS_AFTER_APPEND KAFKA_STORAGE_ERROR""".split()
    definite = """INVALID_RECORD CORRUPT_MESSAGE MESSAGE_TOO_LARGE NOT_ENOUGH_REPLICAS
    UNKNOWN_TOPIC_OR_PARTITION UNKNOWN_TOPIC_ID INVALID_REQUIRED_ACKS""".split()
    assert not [name for name in unknown if ErrorCode[name].is_definite]
    assert not [name for name in definite if not ErrorCode[name].is_definite]
    assert {code.name for code in DEFINITE_ON_FIRST_ATTEMPT} == {
        "INVALID_PRODUCER_EPOCH",
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
    }
    assert not any(code.is_definite for code in DEFINITE_ON_FIRST_ATTEMPT)


def test_errors_that_pass_are_retriable_and_those_of_the_request_are_not() -> None:
    retriable = """CORRUPT_MESSAGE UNKNOWN_TOPIC_OR_PARTITION LEADER_NOT_AVAILABLE
    NOT_LEADER_OR_FOLLOWER REQUEST_TIMED_OUT NETWORK_EXCEPTION NOT_ENOUGH_REPLICAS
    NOT_ENOUGH_REPLICAS_AFTER_APPEND NOT_CONTROLLER KAFKA_STORAGE_ERROR FENCED_LEADER_EPOCH
    UNKNOWN_LEADER_EPOCH OFFSET_NOT_AVAILABLE UNKNOWN_TOPIC_ID INCONSISTENT_TOPIC_ID""".split()
    assert [code.name for code in ErrorCode if code.is_retriable] == retriable


# There and back --------------------------------------------------------------------------------


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_any_value_comes_back_from_its_bytes_and_from_its_dict(
    registry: Registry[Any], kind: type, data: st.DataObject
) -> None:
    value = data.draw(strategy(kind))
    encoded = registry.encode(value)
    assert encoded == registry.classes.index(kind).to_bytes(2, "big") + naive_bytes(kind, value)
    decoded = registry.decode(encoded)
    assert decoded == value
    assert type(decoded) is kind
    assert hash(decoded) == hash(value)
    plain = registry.to_dict(value)
    assert plain["type"] == kind.__name__
    assert registry.from_dict(plain) == value
    again = registry.from_dict(json.loads(json.dumps(plain)))
    assert again == value
    assert registry.encode(again) == encoded


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
@settings(max_examples=20)
@given(data=st.data())
def test_two_values_are_equal_exactly_if_their_bytes_are(
    registry: Registry[Any], kind: type, data: st.DataObject
) -> None:
    one, two = data.draw(strategy(kind)), data.draw(strategy(kind))
    assert (one == two) is (registry.encode(one) == registry.encode(two))
    assert (one == two) is (registry.to_dict(one) == registry.to_dict(two))


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_a_dict_holds_nothing_but_what_json_has(registry: Registry[Any], kind: type) -> None:
    def check(plain: object) -> None:
        if isinstance(plain, dict):
            assert all(type(key) is str for key in plain)
            for each in plain.values():
                check(each)
        elif isinstance(plain, list):
            for each in plain:
                check(each)
        else:
            assert plain is None or type(plain) in (str, int, bool), plain

    check(registry.to_dict(plainest(kind)))


# Hostile bytes ---------------------------------------------------------------------------------


def check_hostile(registry: Registry[Any], data: bytes) -> None:
    """A value or MalformedMessage; a value's bytes are the ones it was read from."""
    try:
        value = registry.decode(data)
    except MalformedMessage as error:
        said = str(error)
    else:
        said = ""
        assert registry.encode(value) == data
    assert len(said) < 2_000


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_bytes_cut_anywhere_or_followed_by_others_are_malformed(
    registry: Registry[Any], kind: type
) -> None:
    encoded = registry.encode(plainest(kind))
    for size in range(len(encoded)):
        with pytest.raises(MalformedMessage):
            registry.decode(encoded[:size])
    with pytest.raises(MalformedMessage, match="trail"):
        registry.decode(encoded + b"\0")


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_any_flipped_bit_gives_a_value_or_is_malformed(registry: Registry[Any], kind: type) -> None:
    encoded = registry.encode(plainest(kind))
    for at in range(len(encoded)):
        for bit in range(8):
            check_hostile(
                registry, encoded[:at] + bytes([encoded[at] ^ (1 << bit)]) + encoded[at + 1 :]
            )


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_any_four_bytes_as_the_largest_lengths_give_a_value_or_are_malformed(
    registry: Registry[Any], kind: type
) -> None:
    encoded = registry.encode(plainest(kind))
    for at in range(2, len(encoded) - 3):
        for lie in (b"\xff\xff\xff\xff", b"\x7f\xff\xff\xff", b"\0\0\0\0", b"\0\0\0\1"):
            check_hostile(registry, encoded[:at] + lie + encoded[at + 4 :])


@settings(max_examples=300)
@given(st.sampled_from(CLASSES), st.binary(max_size=200))
def test_random_bytes_behind_a_number_give_a_value_or_are_malformed(
    case: tuple[Registry[Any], type], rest: bytes
) -> None:
    registry, kind = case
    check_hostile(registry, rest)
    check_hostile(registry, registry.classes.index(kind).to_bytes(2, "big") + rest)


@settings(max_examples=200)
@given(st.data())
def test_spliced_bytes_give_a_value_or_are_malformed(data: st.DataObject) -> None:
    registry, kind = data.draw(st.sampled_from(CLASSES))
    other_registry, other = data.draw(st.sampled_from(CLASSES))
    first = registry.encode(data.draw(strategy(kind)))
    second = other_registry.encode(data.draw(strategy(other)))
    cut, join = data.draw(st.integers(0, len(first))), data.draw(st.integers(0, len(second)))
    check_hostile(registry, first[:cut] + second[join:])


@pytest.mark.parametrize("registry", REGISTRIES)
def test_a_number_without_a_class_is_malformed(registry: Registry[Any]) -> None:
    with pytest.raises(MalformedMessage, match=rf"allowed is 0\.\.{len(registry.classes) - 1}$"):
        registry.decode(len(registry.classes).to_bytes(2, "big") + b"\0" * 100)


# Hostile dicts ---------------------------------------------------------------------------------

JUNK = [None, True, 1.5, 2**63, -(2**63) - 1, 10**5_000, "zz", "\ud800", [], [[]], {}, {"x": 1}, ()]


def places(plain: Any, at: str) -> list[tuple[str, list[Any]]]:
    """Every place in a dict form as the error names it, with the keys that lead there."""
    found: list[tuple[str, list[Any]]] = [(at, [])]
    if isinstance(plain, dict):
        for key, value in plain.items():
            if not (at == "" and key == "type"):
                found += [(place, [key, *path]) for place, path in places(value, f"{at}.{key}")]
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            found += [(place, [index, *path]) for place, path in places(value, f"{at}[{index}]")]
    return found


def replaced(plain: Any, path: list[Any], junk: Any) -> Any:
    if not path:
        return junk
    copy = dict(plain) if isinstance(plain, dict) else list(plain)
    copy[path[0]] = replaced(plain[path[0]], path[1:], junk)
    return copy


def inside(plain: Any, path: list[Any]) -> Any:
    return inside(plain[path[0]], path[1:]) if path else plain


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_junk_at_any_place_of_a_dict_gives_a_value_or_names_the_place(
    registry: Registry[Any], kind: type
) -> None:
    plain = registry.to_dict(plainest(kind))
    refused = 0
    found = [(place, path) for place, path in places(plain, "") if path]
    for place, path in found:
        for junk in JUNK:
            hostile = replaced(plain, path, junk)
            try:
                value = registry.from_dict(hostile)
            except MalformedMessage as error:
                said = str(error)
            else:
                assert registry.decode(registry.encode(value)) == value
                continue
            refused += 1
            where = f"{kind.__name__}{place}"
            assert said.startswith((f"{where} ", f"{where}[0]")), (place, junk)
            assert "allowed" in said
            assert len(said) < 2_000
    assert refused >= len(found) * (len(JUNK) - 3)


@pytest.mark.parametrize(("registry", "kind"), CLASSES, ids=NAMES)
def test_missing_and_unknown_keys_are_named_with_their_place(
    registry: Registry[Any], kind: type
) -> None:
    plain = registry.to_dict(plainest(kind))
    seen = 0
    for place, path in places(plain, ""):
        object_there = inside(plain, path)
        if not isinstance(object_there, dict):
            continue
        where = f"{kind.__name__}{place}"
        for key in object_there:
            if key == "type" and not path:
                continue
            less = {name: value for name, value in object_there.items() if name != key}
            with pytest.raises(MalformedMessage) as missing:
                registry.from_dict(replaced(plain, path, less))
            assert str(missing.value).startswith(f"{where} misses {key}, allowed are ")
            seen += 1
        with pytest.raises(MalformedMessage) as unknown:
            registry.from_dict(replaced(plain, path, {**object_there, "colour": 1}))
        assert str(unknown.value).startswith(f"{where} has 'colour', allowed are ")
    assert seen >= len(field_hints(kind))
