"""What users do to a cluster, in the words of their trade: create, produce, consume, elect.

A verb acts at once. What takes time is a ``Pending``: it says when it is done, and then what came
of it; ``wait`` lets the world go on until then. Scripts await the same (``sim.scripts``).

Left out: crashes and the network, which the world has itself; steps of scenario files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cluster.config import ConsumerConfig, ProducerConfig, ResetPolicy
from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_control import (
    AlterConfigsRequest,
    AlterPartitionReassignmentsRequest,
    ConfigChange,
    CreateTopicsRequest,
    CreateTopicsTopic,
    DeleteTopicsRequest,
    ElectionType,
    ElectLeadersRequest,
    Reassignment,
)
from cluster.messages_data import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
)
from cluster.names import ADMIN, CONTROLLER, TopicIdPartition
from sim.hosts import Host
from sim.network_rules import Cut, Rule, partition_edges
from sim.pending import Asked, Consumed, Produced, TopicCreated
from sim.plain import shown
from sim.plans import begin, end
from sim.trace.kinds import Kind
from sim.world import World, WorldError
from storage.batch import Record

__all__ = ["Cluster"]

ACKS = {"all": -1, "1": 1, "0": 0, 1: 1, 0: 0, -1: -1}


class Cluster:
    """The verbs, over one world."""

    def __init__(self, world: World) -> None:
        self.world = world
        self._clients: dict[tuple[str, Any], str] = {}
        self._sent: dict[str, int] = {}

    # Topics and the operator ---------------------------------------------------------------------

    def ask(self, what: str, to: str, message: Message) -> Asked:
        """Send a request of the operator, again and again until it is answered."""
        return Asked(self.world, what, self._ask(what, to, message))

    def _ask(
        self, what: str, to: str, message: Message, passing: frozenset[ErrorCode] = frozenset()
    ) -> int:
        if self.world.hosts[ADMIN].process is None:
            # Nothing has happened in this world yet.
            self.world.run_until(0)
        number: int = self.world.call(
            ADMIN, Kind.STEP, {"step": what}, "ask", to, message, passing=passing
        )
        return number

    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        assignments: Sequence[Sequence[str]] = (),
        config: Mapping[str, str] | None = None,
    ) -> TopicCreated:
        """Create a topic; done when every partition is led.

        Args:
            replicas: of each partition; by default 3, or as many as there are brokers.
            assignments: the replicas of each partition by name, preferred leader first; instead
                of ``partitions`` and ``replicas``.
            config: as Kafka spells it: ``{"min.insync.replicas": "2"}``.
        """
        brokers = self.world.config.brokers
        count = min(3, brokers) if replicas is None else replicas
        if not 1 <= count <= brokers:
            raise WorldError(f"replicas is {count}, allowed is 1..{brokers}: one a broker")
        for each in assignments:
            unknown = [replica for replica in each if replica not in self.world.config.names]
            if unknown or not each or len(set(each)) != len(each):
                allowed = ", ".join(self.world.config.names)
                raise WorldError(f"replicas are {list(each)}, allowed is each once of {allowed}")
        wanted = CreateTopicsTopic(
            name,
            len(assignments) or partitions,
            len(assignments[0]) if assignments else count,
            tuple(tuple(each) for each in assignments),
            tuple((config or {}).items()),
        )
        what = f"create topic {name}"
        # Brokers that have not registered yet will.
        passing = frozenset(
            {ErrorCode.INVALID_REPLICATION_FACTOR, ErrorCode.INVALID_REPLICA_ASSIGNMENT}
        )
        number = self._ask(what, CONTROLLER, CreateTopicsRequest(0, (wanted,)), passing)
        return TopicCreated(self.world, what, number, name)

    def delete_topic(self, name: str) -> Asked:
        """Delete a topic."""
        return self.ask(f"delete topic {name}", CONTROLLER, DeleteTopicsRequest(0, (name,)))

    def configure(self, name: str, values: Mapping[str, str | None]) -> Asked:
        """Change the configuration of a topic, or of the broker of that name; None: the default."""
        is_topic = name not in self.world.config.names
        changes = [ConfigChange(is_topic, name, key, value) for key, value in values.items()]
        request = AlterConfigsRequest(0, tuple(changes))
        return self.ask(f"configure {name}", CONTROLLER, request)

    def elect(
        self,
        topic: str,
        partition: int = 0,
        *,
        to: str | None = None,
        kind: str = "preferred",
    ) -> Asked:
        """Ask for an election: ``preferred`` or ``unclean``; ``to`` names the leader wanted."""
        kinds = {each.name.lower(): each for each in ElectionType}
        if kind not in kinds:
            raise WorldError(f"kind is {kind!r}, allowed are {', '.join(kinds)}")
        place = self._partition(topic, partition)
        request = ElectLeadersRequest(0, kinds[kind], (place,), to)
        return self.ask(f"elect {topic}-{partition}", CONTROLLER, request)

    def reassign(
        self, topic: str, partition: int = 0, *, replicas: Sequence[str] | None = None
    ) -> Asked:
        """Give a partition other replicas; None cancels a reassignment under way."""
        wanted = None if replicas is None else tuple(replicas)
        change = Reassignment(self._partition(topic, partition), wanted)
        request = AlterPartitionReassignmentsRequest(0, (change,))
        return self.ask(f"reassign {topic}-{partition}", CONTROLLER, request)

    def delete_records(self, topic: str, partition: int = 0, *, before: int = -1) -> Asked:
        """Delete what is below an offset; -1 stands for the high watermark."""
        place = self._partition(topic, partition)
        leader = self.world.view().leader(topic, partition)
        if leader is None:
            raise WorldError(f"{topic}-{partition} has no leader now")
        request = DeleteRecordsRequest(0, 30_000, (DeleteRecordsPartition(place, before),))
        return self.ask(f"delete records of {topic}-{partition}", leader, request)

    def _partition(self, topic: str, partition: int) -> TopicIdPartition:
        found = self.world.view().partition(topic, partition)
        if found is None:
            raise WorldError(f"there is no partition {topic}-{partition} now")
        return found.partition

    # The network ---------------------------------------------------------------------------------

    def cut(
        self,
        src: str,
        dst: str,
        *,
        only: Sequence[str] = (),
        both: bool = False,
        in_flight: str = "drop",
        fault_id: str | None = None,
    ) -> str:
        """Cut the link from one node to another; returns the id by which ``heal`` knows it.

        Args:
            only: names of messages (``Fetch``, ``FetchRequest``); all by default.
            both: the way back too.
            in_flight: what becomes of what is under way, as ``sim.network_rules.Cut`` has it.
        """
        edges = ((src, dst), (dst, src)) if both else ((src, dst),)
        for name in (src, dst):
            self.world.host(name)
        fault_id = self._fault_id("cut", fault_id)
        rule = Cut(id=fault_id, edges=edges, only=frozenset(only), in_flight=in_flight)
        return self._begin(rule)

    def partition(
        self, *groups: Sequence[str], in_flight: str = "drop", fault_id: str | None = None
    ) -> str:
        """Cut all links between the groups; nodes in no group keep theirs. Returns an id."""
        for name in [name for group in groups for name in group]:
            self.world.host(name)
        edges = partition_edges(groups)
        fault_id = self._fault_id("partition", fault_id)
        rule = Cut(id=fault_id, edges=edges, in_flight=in_flight)
        return self._begin(rule)

    def heal(self, fault_id: str = "all") -> None:
        """End a fault that is active, or all.

        Raises:
            WorldError: no such fault is active.
        """
        active = self.world.active_faults
        if fault_id != "all" and fault_id not in active:
            known = ", ".join(["all", *active])
            raise WorldError(f"fault is {fault_id!r}, allowed are {known}")
        for each in list(active) if fault_id == "all" else [fault_id]:
            end(self.world, each)

    def _fault_id(self, kind: str, wanted: str | None) -> str:
        if wanted is not None:
            if wanted in self.world.faults:
                raise WorldError(f"fault id {wanted!r} is taken")
            return wanted
        number = 1
        while f"{kind}-{number}" in self.world.faults:
            number += 1
        return f"{kind}-{number}"

    def _begin(self, rule: Rule) -> str:
        self.world.faults[rule.id] = rule
        begin(self.world, rule.id)
        return rule.id

    # Records -------------------------------------------------------------------------------------

    def produce(
        self,
        topic: str,
        values: int | Sequence[str | bytes],
        *,
        acks: int | str = "all",
        partition: int | None = 0,
        keys: Sequence[str | bytes] | None = None,
        batch: int = 1,
        timeout_us: int = 30_000_000,
        idempotence: bool | None = None,
        client: str = "p1",
    ) -> Produced:
        """Send records; done when the outcome of each is known.

        Args:
            values: the records' values, or how many: then they are ``CLIENT-NUMBER``, each once.
            acks: ``"all"``, 1 or 0.
            partition: None leaves the choice to keys and batches.
            batch: records in one batch, at most.
            timeout_us: until an outcome is given up (delivery timeout), whole milliseconds.
            idempotence: by default on with acks all, else off.
            client: who sends. With another configuration the name gets a number.
        """
        if acks not in ACKS:
            raise WorldError(f"acks is {acks!r}, allowed are 'all', 1, 0")
        timeout_ms = timeout_us // 1_000
        config = ProducerConfig(
            acks=ACKS[acks],
            enable_idempotence=ACKS[acks] == -1 if idempotence is None else idempotence,
            batch_max_records=batch,
            delivery_timeout_ms=timeout_ms,
            request_timeout_ms=min(30_000, timeout_ms),
        )
        host = self._client(client, config)
        if isinstance(values, int):
            first = self._sent.get(client, 0)
            self._sent[client] = first + values
            values = [f"{client}-{number}" for number in range(first, first + values)]
        if keys is not None and len(keys) != len(values):
            raise WorldError(f"there are {len(keys)} keys, allowed are {len(values)}: one a value")
        operations = []
        notes = self.world.producers[host.name]
        timestamp_ms = host.clock.now(self.world.now_us).wall_ms
        for at, value in enumerate(values):
            key = None if keys is None else _bytes(keys[at])
            record = Record(key, _bytes(value), timestamp_ms)
            args = {"topic": topic, "partition": partition, "value": shown(record.value)}
            args["acks"] = config.acks
            begun = self.world.trace.count + 1
            operation = self.world.call(
                host.name, Kind.PRODUCE, args, "send", topic, record, partition=partition
            )
            operations.append(operation)
            notes.begin(host, operation, begun)
        what = f"produce of {len(values)} records to {topic}"
        return Produced(self.world, what, host, operations)

    def consume(
        self,
        topic: str,
        count: int,
        *,
        partition: int = 0,
        offset: int | None = None,
        reset: ResetPolicy = "earliest",
        group: str | None = None,
        client: str = "k1",
    ) -> Consumed:
        """Read records in order; done when ``count`` of them are read.

        Args:
            offset: where to begin; by default where this client stands, else by ``reset``.
        """
        host = self._client(client, ConsumerConfig(auto_offset_reset=reset, group=group))
        args = {"topic": topic, "partition": partition, "count": count}
        notes = self.world.consumers[host.name]
        if (topic, partition) not in notes.assigned:
            notes.assigned += ((topic, partition),)
            self.world.call(host.name, Kind.STEP, args, "assign", notes.assigned)
        if offset is not None:
            args = {"topic": topic, "partition": partition, "offset": offset}
            self.world.call(host.name, Kind.STEP, args, "seek", topic, partition, offset)
        what = f"consume of {count} records of {topic}-{partition}"
        return Consumed(self.world, what, host, count)

    def _client(self, name: str, config: ProducerConfig | ConsumerConfig) -> Host:
        """The host of a client with this configuration, started if it is new."""
        key = name, config
        if key not in self._clients:
            number = 1 + sum(known == name for known, _ in self._clients)
            full = name if number == 1 else f"{name}.{number}"
            if isinstance(config, ProducerConfig):
                self.world.add_producer(full, config)
            else:
                self.world.add_consumer(full, config)
            self._clients[key] = full
        return self.world.hosts[self._clients[key]]


def _bytes(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
