"""The messages between nodes: one frozen class for one meaning, fields as Kafka names them.

Every request has a ``correlation_id`` that its sender never uses again, over restarts too; the
response carries the same. Bytes and dicts come from the classes (``cluster.wire``).

Parts of a message that concern one partition are named tuples (``...Partition``,
``...PartitionResult``). Requests and responses between clients and brokers stand in
``cluster.messages_data``, those that the controller answers in ``cluster.messages_control``; this
module has their root, and the registry of all of them.
"""

from __future__ import annotations

from typing import Final

from cluster import messages_control as control
from cluster import messages_data as data
from cluster.message import Message
from cluster.wire import Registry

__all__ = ["MESSAGES", "Message"]

MESSAGES: Final[Registry[Message]] = Registry(
    (
        data.ProduceRequest,
        data.ProduceResponse,
        data.FetchRequest,
        data.FetchResponse,
        data.OffsetsForLeaderEpochRequest,
        data.OffsetsForLeaderEpochResponse,
        data.ListOffsetsRequest,
        data.ListOffsetsResponse,
        data.DeleteRecordsRequest,
        data.DeleteRecordsResponse,
        data.MetadataRequest,
        data.MetadataResponse,
        control.InitProducerIdRequest,
        control.InitProducerIdResponse,
        control.BrokerRegistrationRequest,
        control.BrokerRegistrationResponse,
        control.BrokerHeartbeatRequest,
        control.BrokerHeartbeatResponse,
        control.AlterPartitionRequest,
        control.AlterPartitionResponse,
        control.MetadataFetchRequest,
        control.MetadataFetchResponse,
        control.OffsetCommitRequest,
        control.OffsetCommitResponse,
        control.OffsetFetchRequest,
        control.OffsetFetchResponse,
        control.CreateTopicsRequest,
        control.CreateTopicsResponse,
        control.DeleteTopicsRequest,
        control.DeleteTopicsResponse,
        control.AlterConfigsRequest,
        control.AlterConfigsResponse,
        control.ElectLeadersRequest,
        control.ElectLeadersResponse,
        control.AlterPartitionReassignmentsRequest,
        control.AlterPartitionReassignmentsResponse,
    )
)
"""Numbers are the order here: append, never reorder."""
