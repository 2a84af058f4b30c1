"""A broker: the machine that puts logs, roles, fetchers and the controller's word together.

Its parts share one ``BrokerCore``; this module hands each message, timer and piece of work to the
part whose it is. A broker whose disk fails halts where it is (``BrokerCore.halt``), as Kafka's does
when its last log directory fails.

Left out: transactions (PROTOCOL A19), fetching from followers (KIP-392), several log directories.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from cluster.answering import Answering
from cluster.applying import Applying
from cluster.broker_core import BrokerCore
from cluster.broker_life import BrokerLife
from cluster.config import BrokerConfig, TopicConfig
from cluster.effects import Effects, TimerKey
from cluster.fetcher import Fetchers
from cluster.flushing import Flushing
from cluster.guards import Guards
from cluster.isr_changes import TIMEOUT, IsrChanges
from cluster.leading import Leading
from cluster.machine import Correlations, Machine
from cluster.message import Message
from cluster.messages_control import (
    AlterPartitionResponse,
    BrokerHeartbeatResponse,
    BrokerRegistrationResponse,
    MetadataFetchResponse,
)
from cluster.messages_data import (
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    MetadataRequest,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    RangeRef,
)
from cluster.names import CONTROLLER, Now, TopicIdPartition
from cluster.replica import Follower, Quarantined, Replica
from cluster.replicating import Replicating
from cluster.serving import Serving
from cluster.upkeep import Upkeep
from storage.disk import Disk
from storage.errors import CorruptBatch, DiskError, LogOffline, StorageError
from storage.log_dir import LogDir
from storage.log_durability import FlushToken, Work
from storage.reading import FileSlice

__all__ = ["Broker"]


class Broker(Machine):
    """One broker. ``core`` is its state, to look at.

    A subclass may have parts of its own. What these are told, and what they answer for, is what the
    class says that they replace.

    Attributes:
        replica_class: keeps one partition: its log, role and high watermark.
        leading_class: a leader's side: high watermark, acknowledgements, ISR.
        replicating_class: what a follower does with a response: truncate, append, follow.
    """

    replica_class: ClassVar[type[Replica]] = Replica
    leading_class: ClassVar[type[Leading]] = Leading
    replicating_class: ClassVar[type[Replicating]] = Replicating

    def __init__(
        self,
        name: str,
        config: BrokerConfig,
        disk: Disk,
        path: Path,
        *,
        guards: Guards | None = None,
        incarnation: int = 0,
        controller: str = CONTROLLER,
    ) -> None:
        """Nothing is read before ``on_start``.

        Args:
            path: the broker's directory; created if it is missing.
            incarnation: how often this broker was started before.
        """
        self.name = name
        self._config = config
        self._disk = disk
        self._path = path
        self._guards = guards or Guards()
        self._incarnation = incarnation
        self._controller = controller
        self.core: BrokerCore

    # Life --------------------------------------------------------------------------------------

    def on_start(self, now: Now, fx: Effects) -> None:
        """Open the directory and every log in it, then register.

        Raises:
            StorageError: the directory cannot be opened; the process cannot start.
        """
        log_dir = LogDir.open(
            self._path, disk=self._disk, rules=self._guards.log_rules(), runs_pending=False
        )
        core = BrokerCore(
            self.name,
            self._config,
            self._guards,
            self._controller,
            Correlations(self._incarnation),
            log_dir,
            replica_class=self.replica_class,
        )
        self.core = core
        self._flushing = Flushing(core)
        self._changes = IsrChanges(core)
        self._leading = self.leading_class(core, self._changes)
        self._serving = Serving(core, self._leading, self._flushing)
        self._answering = Answering(core, self._leading, self._serving)
        self._fetchers = Fetchers(core, self.replicating_class(core, self._flushing))
        self._applying = Applying(
            core, self._leading, self._fetchers, self._serving, self._answering, self._flushing
        )
        self._life = BrokerLife(
            core, self._applying, f"{self.name}.{self._incarnation}", self._finish
        )
        self._upkeep = Upkeep(core, self._leading)
        if self._guards.hw_rises_on_isr_commit:
            self._changes.on_settled = self._leading.advance
        try:
            self._open_logs(fx)
        except StorageError:
            log_dir.abandon()
            raise
        self._life.register(now, fx)
        self._upkeep.start(now, fx)

    def _open_logs(self, fx: Effects) -> None:
        """What refuses to open is in quarantine, and is named at registration (DECISIONS 2.10)."""
        log_dir = self.core.log_dir
        for name in log_dir.partitions():
            topic_id = log_dir.topic_id(*name)
            if topic_id is None:
                fx.note("stray-directory", directory=name.directory_name)
                continue
            partition = TopicIdPartition(topic_id, *name)
            replica = self.core.open_replica(partition, TopicConfig())
            self.core.replicas[partition] = replica
            self._note_opened(replica, fx)
            self.core.give_out_work(replica, fx)

    def _note_opened(self, replica: Replica, fx: Effects) -> None:
        log, role = replica.log, replica.role
        if log is None:
            assert isinstance(role, Quarantined)
            fx.note(
                "open-log",
                partition=str(replica.partition),
                role=role.name,
                error=role.error.code,
                detail=str(role.error),
            )
            return
        fx.note(
            "open-log",
            partition=str(replica.partition),
            role=role.name,
            clean=log.report.is_clean,
            log_start=log.log_start_offset,
            log_end=log.leo,
            high_watermark=replica.high_watermark,
            cut_bytes=sum(cut.size_bytes for cut in log.report.cuts),
            epochs=log.report.epochs,
        )

    def on_stop(self, now: Now, fx: Effects) -> None:
        if not self.core.is_halted:
            self._life.leave(now, fx)

    def _finish(self, now: Now, fx: Effects) -> None:
        """Flush and close everything, then the marker that says so (PROTOCOL A21)."""
        core = self.core
        try:
            core.log_dir.write_high_watermarks(self._upkeep.high_watermarks())
            core.log_dir.close(broker_epoch=self._life.last_epoch())
        except (DiskError, LogOffline) as error:
            core.halt(error, fx)
            return
        core.is_halted = True
        fx.note("stop")
        fx.stopped()

    # Messages ----------------------------------------------------------------------------------

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        if self.core.is_halted:
            return
        match message:
            case FetchResponse() | OffsetsForLeaderEpochResponse() | ListOffsetsResponse():
                fetcher = self._fetchers.get(src)
                if fetcher is not None and fetcher.awaits(message):
                    fetcher.on_response(now, message, fx)
            case AlterPartitionResponse():
                if src == self.core.controller:
                    self._changes.on_response(now, message, fx)
            case BrokerHeartbeatResponse():
                if src == self.core.controller:
                    self._life.on_beat(now, message, fx)
            case MetadataFetchResponse():
                if src == self.core.controller:
                    self._life.on_metadata(now, message, fx)
            case BrokerRegistrationResponse():
                if src == self.core.controller:
                    self._life.on_registered(now, message, fx)
            case _:
                self._on_request(now, src, message, fx)

    def _on_request(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        """A broker's listeners open when it is first unfenced; before, nobody gets through."""
        if not self.core.is_open:
            fx.disconnect(src)
            return
        match message:
            case ProduceRequest():
                self._serving.produce(now, src, message, fx)
            case FetchRequest():
                self._serving.fetch(now, src, message, fx)
            case OffsetsForLeaderEpochRequest():
                self._answering.offsets_for_epochs(src, message, fx)
            case ListOffsetsRequest():
                self._answering.list_offsets(src, message, fx)
            case DeleteRecordsRequest():
                self._answering.delete_records(now, src, message, fx)
            case MetadataRequest():
                self._answering.metadata(src, message, fx)
            case _:
                # Nothing that a broker answers: as Kafka does, close the connection.
                fx.disconnect(src)

    def read_range_ref(self, ref: RangeRef) -> bytes | None:
        """The bytes of a fetch response at the moment of its transmission.

        None where the range is gone, or was never one of this broker's: then the connection is to
        be reset (DECISIONS 2.5). What was overwritten in the meantime is what the receiver gets.
        """
        replica = self.core.replicas.get(ref.partition)
        if replica is None or replica.log is None:
            return None
        place = FileSlice(ref.segment_base, ref.position, ref.size_bytes, None, ref.creation)
        try:
            return replica.log.read_slice(place)
        except (CorruptBatch, StorageError):
            return None

    # Everything else ---------------------------------------------------------------------------

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        if self.core.is_halted:
            return
        match key:
            case ("produce", str(src), int(number)):
                self._serving.on_produce_deadline(src, number, fx)
            case ("fetch", str(src), int(number)):
                self._serving.on_fetch_deadline(src, number, fx)
            case ("delete", str(src), int(number)):
                self._answering.on_delete_deadline(src, number, fx)
            case ("fetch-timeout", str(leader)):
                fetcher = self._fetchers.get(leader)
                if fetcher is not None:
                    fetcher.on_lost(now, fx)
            case ("fetch-backoff", str(leader)):
                fetcher = self._fetchers.get(leader)
                if fetcher is not None:
                    fetcher.pump(now, fx)
            case (kind,) if kind == TIMEOUT:
                self._changes.on_timer(now, fx)
            case (str(kind),):
                if not self._life.on_timer(now, kind, fx):
                    self._upkeep.on_timer(now, kind, fx)

    def on_synced(self, now: Now, token: FlushToken, fx: Effects) -> None:
        if self.core.is_halted:
            return
        replica = self._flushing.take(token)
        if replica is None:
            return
        try:
            replica.opened.complete_flush(token)
        except ValueError:
            # The log was cut or opened anew since: nobody waits for this flush any more.
            fx.note("flush-overtaken", partition=str(replica.partition))
        except StorageError as error:
            self.core.halt(error, fx)
            return
        self._flushing.completed(replica, token)
        self._serving.on_synced(now, replica, fx)
        if not replica.flushes:
            self._fetchers.synced(now, replica.partition, fx)
        self.core.give_out_work(replica, fx)

    def on_disconnected(self, now: Now, peer: str, fx: Effects) -> None:
        if self.core.is_halted:
            return
        if peer == self.core.controller:
            self._life.on_lost(now, fx)
            self._changes.on_disconnected(now, fx)
        fetcher = self._fetchers.get(peer)
        if fetcher is not None:
            fetcher.on_lost(now, fx)
        self._serving.forget(peer)

    def on_background(
        self, now: Now, partition: TopicIdPartition | None, work: Work, fx: Effects
    ) -> None:
        if self.core.is_halted:
            return
        replica = None if partition is None else self.core.replicas.get(partition)
        try:
            if partition is None:
                self.core.log_dir.run(work)
            elif replica is not None and replica.log is not None:
                replica.log.run(work)
                self.core.give_out_work(replica, fx)
        except StorageError as error:
            self.core.halt(error, fx)

    def flush_logs(self, now: Now, fx: Effects) -> None:
        """What an operator asks for, as ``sync`` on the host: every log is durable then."""
        if self.core.is_halted:
            return
        for partition in sorted(self.core.replicas):
            replica = self.core.replicas[partition]
            if replica.log is not None:
                try:
                    replica.log.flush()
                except StorageError as error:
                    self.core.halt(error, fx)
                    return
                self.core.give_out_work(replica, fx)

    def on_resume(self, now: Now, point: str, args: tuple[Any, ...], fx: Effects) -> None:
        if self.core.is_halted:
            return
        match point, args:
            case "produce-appended", _:
                self._serving.after_append(now, fx, *args)
            case "fetch-read", _:
                self._serving.after_read(now, fx, *args)
            case "hw-advanced", (partition,):
                replica = self.core.replicas.get(partition)
                if replica is not None:
                    self._leading.after_rise(now, replica, fx)
            case "isr-change-sent", (partition,):
                replica = self.core.replicas.get(partition)
                if replica is not None:
                    self._leading.after_credit(now, replica, fx)
            case "metadata-applied", _:
                self._applying.apply(now, fx, *args)
            case "fetch-received", (leader, message):
                fetcher = self._fetchers.get(leader)
                if fetcher is not None and fetcher.awaits(message):
                    fetcher.after_receipt(now, message, fx)
            case "registered", _:
                self._life.after_registration(now, fx)

    # Looking at it -----------------------------------------------------------------------------

    def fields(self) -> Mapping[str, Any]:
        core = self.core
        found: dict[str, Any] = {
            "broker_epoch": core.broker_epoch,
            "metadata_offset": core.image.end_offset,
            "is_open": core.is_open,
            "is_halted": core.is_halted,
        }
        for partition in sorted(core.replicas):
            for name, value in self._fields_of(core.replicas[partition]).items():
                found[f"{partition}/{name}"] = value
        return found

    def _fields_of(self, replica: Replica) -> dict[str, Any]:
        found: dict[str, Any] = {
            "role": replica.role.name,
            "leader_epoch": replica.leader_epoch,
            "high_watermark": replica.high_watermark,
        }
        if replica.log is not None:
            log = replica.log
            found |= {
                "log_start_offset": log.log_start_offset,
                "log_end_offset": log.leo,
                "durable_end_offset": log.boundary.end_offset,
                "epochs": log.epochs.entries,
            }
        leader = replica.leading
        if leader is not None:
            found |= {
                "isr": leader.isr.isr,
                "isr_proposed": leader.isr.proposed,
                "leader_epoch_start": leader.leader_epoch_start,
                "parked_produces": len(leader.produces),
            }
            for name, remote in sorted(leader.followers.items()):
                found[f"follower.{name}"] = remote.leo
        elif isinstance(replica.role, Follower):
            found["leader"] = replica.role.leader
            fetch = self._fetchers.fetch_of(replica.partition)
            if fetch is not None:
                found["fetch_offset"] = fetch.fetch_offset
                found["fetch_state"] = fetch.state.value
        return found
