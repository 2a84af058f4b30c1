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
from cluster.names import ADMIN, CONTROLLER
from cluster.records import PartitionRecord
from sim.hosts import Host
from sim.network_rules import Cut, Rule, partition_edges
from sim.pending import Asked, Consumed, Produced, ShutDown, TopicCreated
from sim.plain import shown
from sim.plans import begin, end
from sim.trace.kinds import Kind
from sim.trace.lines import EventNumber
from sim.verb_values import (
    as_bytes,
    check_config,
    check_keys,
    check_names,
    check_number,
    check_topic_config,
    check_values,
    known_partitions,
    refused_values,
)
from sim.world import World, WorldError
from storage.batch import Record

__all__ = ["Cluster"]

_WITHOUT_END = 1 << 62
ACKS = {"all": -1, "1": 1, "0": 0, 1: 1, 0: 0, -1: -1}


class Cluster:
    """The verbs, over one world.

    Attributes:
        cause: what the events of the next verbs cite.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.cause: tuple[int, ...] = ()

    # Topics and the operator ---------------------------------------------------------------------

    def ask(self, what: str, to: str, message: Message) -> Asked:
        """Send a request of the operator, again and again until it is answered."""
        return Asked(self.world, what, to, self._ask(what, to, message))

    def _ask(
        self, what: str, to: str, message: Message, passing: frozenset[ErrorCode] = frozenset()
    ) -> int:
        if self.world.hosts[ADMIN].process is None:
            # Nothing has happened in this world yet.
            self.world.run_until(0)
        number: int = self.world.call(
            ADMIN,
            Kind.STEP,
            {"step": what},
            "ask",
            to,
            message,
            passing=passing,
            cause=self.cause,
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
        check_topic_config(config or {})
        if len({len(each) for each in assignments}) > 1:
            counts = ", ".join(str(len(each)) for each in assignments)
            raise WorldError(f"assignments have {counts} replicas, allowed is one number for all")
        for each in assignments:
            check_names("replicas", each)
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
        return TopicCreated(self.world, what, CONTROLLER, number, name)

    def delete_topic(self, name: str) -> Asked:
        """Delete a topic."""
        return self.ask(f"delete topic {name}", CONTROLLER, DeleteTopicsRequest(0, (name,)))

    def configure(self, name: str, values: Mapping[str, str | None]) -> Asked:
        """Change the configuration of a topic, or of the broker of that name; None: the default."""
        is_topic = name not in self.world.config.names
        (check_topic_config if is_topic else check_config)(values)
        changes = [ConfigChange(is_topic, name, key, value) for key, value in values.items()]
        request = AlterConfigsRequest(0, tuple(changes))
        return self.ask(f"configure {name}", CONTROLLER, request)

    def elect(
        self,
        topic: str,
        partition: int = 0,
        *,
        to: str | None = None,
        kind: str | None = None,
    ) -> Asked:
        """Ask for an election.

        Args:
            to: a replica that is made leader, in sync or not: a forced, unclean election.
            kind: ``preferred`` gives the lead to the first replica, if it is in sync; ``unclean``
                gives one that is running a partition without a leader. By default ``preferred``,
                with ``to`` ``unclean``.
        """
        kinds = {each.name.lower(): each for each in ElectionType}
        kind = kind or ("preferred" if to is None else "unclean")
        if kind not in kinds:
            raise WorldError(f"kind is {kind!r}, allowed are {', '.join(kinds)}")
        record = self._partition(topic, partition)
        if to is not None:
            if kind != "unclean":
                raise WorldError(f"kind is {kind!r}, allowed with a leader named is unclean")
            if to not in record.replicas:
                raise WorldError(f"to is {to!r}, allowed are {', '.join(record.replicas)}")
        request = ElectLeadersRequest(0, kinds[kind], (record.partition,), to)
        return self.ask(f"elect {topic}-{partition}", CONTROLLER, request)

    def reassign(
        self, topic: str, partition: int = 0, *, replicas: Sequence[str] | None = None
    ) -> Asked:
        """Give a partition other replicas; None cancels a reassignment under way."""
        check_names("replicas", replicas)
        wanted = None if replicas is None else tuple(replicas)
        change = Reassignment(self._partition(topic, partition).partition, wanted)
        request = AlterPartitionReassignmentsRequest(0, (change,))
        return self.ask(f"reassign {topic}-{partition}", CONTROLLER, request)

    def delete_records(self, topic: str, partition: int = 0, *, before: int = -1) -> Asked:
        """Delete what is below an offset; -1 stands for the high watermark."""
        place = self._partition(topic, partition)
        if place.leader is None:
            raise WorldError(f"{topic}-{partition} has no leader now")
        cut = DeleteRecordsPartition(place.partition, before)
        request = DeleteRecordsRequest(0, 30_000, (cut,))
        return self.ask(f"delete records of {topic}-{partition}", place.leader, request)

    def _partition(self, topic: str, partition: int) -> PartitionRecord:
        found = self.world.view().partition(topic, partition)
        if found is None:
            known = known_partitions(self.world.view().image())
            raise WorldError(f"there is no partition {topic}-{partition} now, there are {known}")
        return found

    def shutdown(self, name: str) -> ShutDown:
        """Ask a process to stop in order; done when it is gone."""
        self.world.shutdown(name)
        return ShutDown(self.world, self.world.host(name))

    def pause(self, name: str, **args: Any) -> None:
        """A process handles nothing until ``resume``; of a client all that have its name."""
        for each in self._numbered(name) or [name]:
            self.world.pause(each, self.cause, **args)

    def resume(self, name: str) -> None:
        """A paused process goes on with all that came meanwhile."""
        for each in self._numbered(name) or [name]:
            self.world.resume(each, self.cause)

    # The network ---------------------------------------------------------------------------------

    def cut(
        self,
        src: str | Sequence[str],
        dst: str | Sequence[str],
        *,
        only: Sequence[str] = (),
        both: bool = False,
        in_flight: str = "drop",
        fault_id: str | None = None,
    ) -> str:
        """Cut the link from one node to another; returns the id by which ``heal`` knows it.

        Args:
            src, dst: a node, or several: then each link from one of these to one of those.
            only: names of messages (``Fetch``, ``FetchRequest``); all by default.
            both: the way back too.
            in_flight: what becomes of what is under way, as ``sim.network_rules.Cut`` has it.
        """
        sources = [src] if isinstance(src, str) else list(src)
        targets = [dst] if isinstance(dst, str) else list(dst)
        for name in (*sources, *targets):
            self.world.host(name)
        pairs = [(one, other) for one in sources for other in targets if one != other]
        if not pairs:
            where = ", ".join(map(repr, sources))
            raise WorldError(f"link is from {where} to itself, allowed is one to another node")
        back = [(other, one) for one, other in pairs] if both else []
        edges = tuple(dict.fromkeys([*pairs, *back]))
        check_names("only", only)
        fault_id = self._fault_id("cut", fault_id)
        with refused_values():
            rule = Cut(id=fault_id, edges=edges, only=frozenset(only), in_flight=in_flight)
        return self._begin(rule)

    def partition(
        self, *groups: Sequence[str], in_flight: str = "drop", fault_id: str | None = None
    ) -> str:
        """Cut all links between the groups; nodes in no group keep theirs. Returns an id."""
        for group in groups:
            check_names("a group", group)
        for name in [name for group in groups for name in group]:
            self.world.host(name)
        fault_id = self._fault_id("partition", fault_id)
        with refused_values():
            rule = Cut(id=fault_id, edges=partition_edges(groups), in_flight=in_flight)
        return self._begin(rule)

    def heal(self, fault_id: str = "all") -> None:
        """End a fault that is active, or all.

        Raises:
            WorldError: no such fault is active.
        """
        active = self.world.active_faults
        if fault_id != "all" and fault_id not in active:
            known = ", ".join(["all", *active])
            raise WorldError(f"fault is {fault_id!r}, active are {known}")
        for each in list(active) if fault_id == "all" else [fault_id]:
            end(self.world, each, self.cause)

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
        begin(self.world, rule.id, self.cause)
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
            timeout_us: until an outcome is given up (delivery timeout), whole milliseconds. A
                request waits for its answer as long, at most 30 s.
            idempotence: by default on with acks all, else off.
            client: who sends. With another configuration the name gets a number.
        """
        if acks not in ACKS:
            raise WorldError(f"acks is {acks!r}, allowed are 'all', 1, 0")
        check_values(values)
        if keys is not None:
            check_keys(keys, values if isinstance(values, int) else len(values))
        if partition is not None:
            check_number("partition", partition)
        timeout_ms = timeout_us // 1_000
        if timeout_ms < 1:
            raise WorldError(f"timeout is {timeout_us} us, allowed is 1 ms or more")
        with refused_values():
            config = ProducerConfig(
                acks=ACKS[acks],
                enable_idempotence=ACKS[acks] == -1 if idempotence is None else idempotence,
                batch_max_records=batch,
                delivery_timeout_ms=timeout_ms,
                request_timeout_ms=min(30_000, timeout_ms),
            )
        host = self._client(client, config)
        if isinstance(values, int):
            notes = self.world.producers
            first = sum(notes[name].generated for name in self._numbered(client) if name in notes)
            notes[host.name].generated += values
            values = [f"{client}-{number}" for number in range(first, first + values)]
        operations = []
        place = "" if partition is None else f"{topic}-{partition}"
        timestamp_ms = host.clock.now(self.world.now_us).wall_ms
        for at, value in enumerate(values):
            key = None if keys is None else as_bytes(keys[at])
            record = Record(key, as_bytes(value), timestamp_ms)
            args = {"topic": topic, "partition": partition, "value": shown(record.value)}
            args["acks"] = config.acks
            begun = EventNumber(self.world.trace.count + 1)
            operation = self.world.call(
                host.name,
                Kind.PRODUCE,
                args,
                "send",
                topic,
                record,
                partition=partition,
                cause=self.cause,
            )
            operations.append(operation)
            self.world.producers[host.name].begin(host, operation, begun, place)
            recorder = self.world.kernel.recorder
            if recorder is not None:
                recorder.on_invoked(
                    host.name,
                    host.starts - 1,
                    operation,
                    (topic, partition),
                    record,
                    config,
                    event=begun,
                    t_us=self.world.now_us,
                )
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
            offset: where to begin; by default where this client stands in the partition, else by
                ``reset``. A client that was started again stands nowhere.
        """
        check_number("count", count)
        check_number("partition", partition)
        if offset is not None:
            check_number("offset", offset)
        with refused_values():
            config = ConsumerConfig(auto_offset_reset=reset, group=group)
        host = self._client(client, config)
        args = {"topic": topic, "partition": partition, "count": count}
        place = topic, partition
        notes = self.world.consumers[host.name]
        if notes.incarnation != host.starts - 1:
            notes.incarnation, notes.assigned = host.starts - 1, ()
            notes.returned.clear()
        is_new = place not in notes.assigned
        if is_new:
            self._record(host, place, None)
            self._tell(host, args, "assign", (*notes.assigned, place))
            notes.assigned += (place,)
        if offset is not None:
            notes.returned.pop(place, None)
            args = {"topic": topic, "partition": partition, "offset": offset}
            self._record(host, place, offset)
            self._tell(host, args, "seek", topic, partition, offset)
        what = f"consume of {count} records of {topic}-{partition}"
        consumed = Consumed(self.world, what, host, place, count)
        if not is_new and offset is None and not consumed.is_done():
            # Records may have been fetched already; they are polled behind a handler.
            self._tell(host, args, "assign", notes.assigned)
        return consumed

    def follow(
        self,
        topic: str,
        partition: int | None = None,
        *,
        reset: ResetPolicy = "earliest",
        group: str | None = None,
        client: str = "k1",
    ) -> None:
        """Read whatever there is, from now on; of every partition by default."""
        image = self.world.view().image()
        topic_id = image.topic_ids.get(topic)
        if topic_id is None:
            raise WorldError(f"there is no topic {topic!r} now")
        numbers = [each.partition.partition for each in image.partitions_of(topic_id)]
        for number in numbers if partition is None else [partition]:
            self.consume(
                topic, _WITHOUT_END, partition=number, reset=reset, group=group, client=client
            )

    def _record(self, host: Host, place: tuple[str, int], offset: int | None) -> None:
        """For the history: before the consumer tells anything of it."""
        recorder = self.world.kernel.recorder
        if recorder is not None:
            event, t_us = self.world.trace.count + 1, self.world.now_us
            recorder.on_asked(host.name, host.starts - 1, place, offset, event=event, t_us=t_us)

    def _tell(self, host: Host, args: dict[str, Any], method: str, *values: Any) -> None:
        self.world.call(host.name, Kind.STEP, args, method, *values, cause=self.cause)

    def _client(self, name: str, config: ProducerConfig | ConsumerConfig) -> Host:
        """The host of a client with this configuration, started if it is new."""
        known = self._numbered(name)
        notes = self.world.producers, self.world.consumers
        for full in known:
            if any(full in each and each[full].config == config for each in notes):
                host = self.world.hosts[full]
                if host.process is None:
                    raise WorldError(f"{full} is {host.status}: no process runs there")
                return host
        is_client = not known or any(name in each for each in notes)
        full = f"{name}.{len(known) + 1}" if known and is_client else name
        if isinstance(config, ProducerConfig):
            host = self.world.add_producer(full, config)
        else:
            host = self.world.add_consumer(full, config)
        if is_client and any(self.world.hosts[each].is_paused for each in known):
            self.world.pause(full, self.cause)
        return host

    def _numbered(self, name: str) -> list[str]:
        """The hosts that have this name, with and without a number: p1, p1.2, ..."""
        found = [name] if name in self.world.hosts else []
        while found and (full := f"{name}.{len(found) + 1}") in self.world.hosts:
            found.append(full)
        return found
