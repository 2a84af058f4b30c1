"""The controller: one node that decides, keeps a durable log of it, and tells what is durable.

Rules:

* A handler decides on an image that has every earlier decision, durable or not. Its decisions are
  one batch of the metadata log, appended when the handler ends.
* Nothing is told before the log is durable up to where it ended when the answer was found, whether
  the answer is of a change or of the state (DECISIONS 2.2; guard ``commit-after-fsync``). Answers
  leave in the order in which they were found.
* A metadata fetch waits until something is committed behind its offset; each node has one, and a
  newer one replaces it. Whoever is below the log's start, or ahead of its end (it heard what a
  crash took back), gets a snapshot.
* Requests that change something count once and in their order: one whose correlation id is not
  above the last of its kind from that sender is dropped. After a restart the controller does not
  know these ids.
* A request in the name of a broker comes from that broker, or is refused.
* While ``parked_requests_max`` answers wait for the disk, further requests are dropped; their
  senders ask again.
* An append, flush or read of the log that fails ends the controller, as it ends Kafka's: what is
  not durable stays unsaid, the machine notes ``controller-failed``, puts ``Stopped``, and does
  nothing more. A damaged log is an error of ``on_start`` (``CorruptLog``, ``CorruptCheckpoint``).

Left out: the rules of each decision (``broker_control``, ``partition_control``, ``topic_admin``,
``client_services``).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cluster import client_services, partition_control, topic_admin
from cluster import messages_control as control
from cluster.broker_control import BrokerControl
from cluster.client_services import ProducerIds
from cluster.config import ControllerConfig, TopicConfig
from cluster.controller_state import ControllerState
from cluster.effects import Effects, TimerKey
from cluster.errors import ErrorCode
from cluster.guards import Guards
from cluster.machine import Machine
from cluster.message import Message
from cluster.metadata import MetadataImage
from cluster.metadata_log import MetadataLog
from cluster.names import Now, TopicIdPartition
from cluster.records import METADATA_RECORDS
from storage.disk import Disk
from storage.errors import StorageError
from storage.log_durability import FlushToken, Work

__all__ = ["Controller"]

_FETCH_RECORDS_MAX: Final = 10_000
_ONCE: Final = (
    control.BrokerRegistrationRequest,
    control.BrokerHeartbeatRequest,
    control.AlterPartitionRequest,
    control.OffsetCommitRequest,
    control.CreateTopicsRequest,
    control.DeleteTopicsRequest,
    control.AlterConfigsRequest,
    control.ElectLeadersRequest,
    control.AlterPartitionReassignmentsRequest,
)
"""What a late copy could undo. The epochs of an AlterPartition do not tell whether its leader has
given it up: a refusal changes none.
"""


class Controller(Machine):
    """See the module."""

    def __init__(
        self,
        name: str,
        config: ControllerConfig,
        disk: Disk,
        path: Path,
        *,
        guards: Guards = Guards(),  # noqa: B008 - frozen
        incarnation: int = 0,
        default_topic_config: TopicConfig = TopicConfig(),  # noqa: B008 - frozen
    ) -> None:
        """Nothing is read before ``on_start``.

        Args:
            path: directory of the metadata log.
            incarnation: how often the node was started before; for traces only, since the
                controller sends no requests.
            default_topic_config: of topics that set nothing.
        """
        self.name = name
        self.incarnation = incarnation
        self._config = config
        self._disk = disk
        self._path = path
        self._guards = guards
        self._state = ControllerState(config, guards, default_topic_config)
        self._brokers = BrokerControl(self._state)
        self._producer_ids = ProducerIds(self._state)
        self._log: MetadataLog | None = None
        self._answers: deque[tuple[int, str, Message]] = deque()
        self._fetches: dict[str, control.MetadataFetchRequest] = {}
        self._seen: dict[tuple[str, str], int] = {}
        self._shown: tuple[dict[str, Any], dict[str, Any]] = ({}, {})

    @property
    def image(self) -> MetadataImage:
        """Everything decided, durable or not; to read, not to change."""
        return self._state.image

    @property
    def committed_image(self) -> MetadataImage:
        """What may be told; to read, not to change. Empty while the controller does not run."""
        return MetadataImage() if self._log is None else self._log.committed

    @property
    def is_running(self) -> bool:
        """Started, and neither stopped nor failed."""
        return self._log is not None

    # Handlers ----------------------------------------------------------------------------------

    def on_start(self, now: Now, fx: Effects) -> None:
        """Replay the log; every session starts anew (PROTOCOL A16)."""
        log = MetadataLog(
            self._disk,
            self._path,
            self._config.log,
            guards=self._guards,
            snapshot_records=self._config.metadata_snapshot_records,
        )
        self._log = log
        self._state.image = log.current()
        self._brokers.start(now, fx)
        self._arm("preferred", self._config.leader_imbalance_check_interval_ms, now, fx)
        self._arm("unclean", self._config.unclean_leader_election_interval_ms, now, fx)
        partition_control.repair(self._state)
        fx.note("controller-started", records=log.end_offset, committed=log.committed_end)
        self._finish(now, fx)

    def on_message(self, now: Now, src: str, message: Message, fx: Effects) -> None:
        if self._log is None:
            return
        if isinstance(message, control.MetadataFetchRequest):
            self._on_metadata_fetch(src, message, fx)
        else:
            is_late = self._is_late_copy(src, message)
            if is_late or len(self._answers) >= self._config.parked_requests_max:
                why = "late copy" if is_late else "too many wait for the disk"
                fx.note("request-dropped", sender=src, request=type(message).__name__, why=why)
                return
            answer = self._answer(now, src, message, fx)
            if answer is not None:
                self._answers.append((self._state.image.end_offset, src, answer))
        self._finish(now, fx)

    def on_timer(self, now: Now, key: TimerKey, fx: Effects) -> None:
        if self._log is None:
            return
        match key:
            case ("session", _):
                self._brokers.expire(now, fx)
            case ("preferred",):
                partition_control.balance_leaders(self._state)
                self._arm("preferred", self._config.leader_imbalance_check_interval_ms, now, fx)
            case ("unclean",):
                partition_control.elect_leaderless(self._state, only_unclean=True)
                self._arm("unclean", self._config.unclean_leader_election_interval_ms, now, fx)
            case _:
                return
        self._finish(now, fx)

    def on_synced(self, now: Now, token: FlushToken, fx: Effects) -> None:
        if self._log is None:
            return
        try:
            self._log.complete_flush(token)
        except StorageError as error:
            self._fail(error, fx)
            return
        self._finish(now, fx)

    def on_background(
        self, now: Now, partition: TopicIdPartition | None, work: Work, fx: Effects
    ) -> None:
        """Work of the log; a failure that leaves the log usable costs nothing but a note."""
        if self._log is None:
            return
        try:
            self._log.run(work)
        except StorageError as error:
            if not self._log.is_usable:
                self._fail(error, fx)
                return
            fx.note("metadata-work-failed", work=work.kind, error=error.code)
        self._finish(now, fx)

    def on_disconnected(self, now: Now, peer: str, fx: Effects) -> None:
        """Nobody is left to answer; the peer asks anew."""
        self._fetches.pop(peer, None)

    def on_stop(self, now: Now, fx: Effects) -> None:
        """Make everything durable, say what is left to say, and close."""
        log = self._log
        if log is not None:
            try:
                log.flush()
                self._tell(log, fx)
                log.close()
            except StorageError as error:
                self._fail(error, fx)
                return
            self._log = None
        fx.stopped()

    # Answers -----------------------------------------------------------------------------------

    def _is_late_copy(self, src: str, message: Message) -> bool:
        if not isinstance(message, _ONCE):
            return False
        kind = (src, type(message).__name__)
        if message.correlation_id <= self._seen.get(kind, -1):
            return True
        self._seen[kind] = message.correlation_id
        return False

    def _answer(self, now: Now, src: str, message: Message, fx: Effects) -> Message | None:
        """The answer to a request; None to what is none, or not for a controller."""
        state, request_id = self._state, message.correlation_id
        match message:
            case control.BrokerRegistrationRequest():
                if src != message.broker_id:
                    return control.BrokerRegistrationResponse(request_id, ErrorCode.INVALID_REQUEST)
                return self._brokers.register(now, message, fx)
            case control.BrokerHeartbeatRequest():
                if src != message.broker_id:
                    return control.BrokerHeartbeatResponse(request_id, ErrorCode.INVALID_REQUEST)
                return self._brokers.heartbeat(now, message, fx)
            case control.AlterPartitionRequest():
                error = self._brokers.check_epoch(message.broker_id, message.broker_epoch)
                if src != message.broker_id:
                    error = ErrorCode.INVALID_REQUEST
                if error is not ErrorCode.NONE:
                    return control.AlterPartitionResponse(request_id, error)
                return partition_control.alter_partitions(state, message)
            case control.InitProducerIdRequest():
                return self._producer_ids.init(message)
            case control.OffsetCommitRequest():
                return client_services.commit_offsets(state, message)
            case control.OffsetFetchRequest():
                return client_services.fetch_offsets(state, message)
            case control.CreateTopicsRequest():
                return topic_admin.create_topics(state, message)
            case control.DeleteTopicsRequest():
                return topic_admin.delete_topics(state, message)
            case control.AlterConfigsRequest():
                return topic_admin.alter_configs(state, message)
            case control.ElectLeadersRequest():
                return topic_admin.elect_leaders(state, message)
            case control.AlterPartitionReassignmentsRequest():
                return topic_admin.reassign_partitions(state, message)
        return None

    def _on_metadata_fetch(
        self, src: str, request: control.MetadataFetchRequest, fx: Effects
    ) -> None:
        parked = self._fetches.get(src)
        if parked is not None and parked.correlation_id >= request.correlation_id:
            return
        if parked is None and len(self._fetches) >= self._config.parked_requests_max:
            offset = request.fetch_offset
            fx.reply(
                src,
                control.MetadataFetchResponse(request.correlation_id, offset, offset, False, ()),
            )
            return
        # Answered in its handler's end, if there is something to answer.
        self._fetches[src] = request

    def _fetched(
        self, log: MetadataLog, request: control.MetadataFetchRequest
    ) -> control.MetadataFetchResponse | None:
        """What is committed behind the offset, None where nothing is."""
        offset, request_id = request.fetch_offset, request.correlation_id
        if log.start_offset <= offset <= log.end_offset:
            if offset >= log.committed_end:
                return None
            records = log.read(offset, _FETCH_RECORDS_MAX)
            return control.MetadataFetchResponse(
                request_id, offset, offset + len(records), False, records
            )
        values = tuple(METADATA_RECORDS.encode(each) for each in log.committed.to_records())
        return control.MetadataFetchResponse(request_id, 0, log.committed_end, True, values)

    # The end of a handler ----------------------------------------------------------------------

    def _finish(self, now: Now, fx: Effects) -> None:
        """Append what was decided, see to its flush, tell what is durable."""
        log = self._log
        assert log is not None
        batch, self._state.batch = self._state.batch, []
        self._note_elections(fx)
        try:
            if batch:
                log.append(batch, max(now.wall_ms, 0))
            token = log.begin_flush()
            if token is not None:
                fx.fsync(token)
            fx.background(None, log.take_pending())
            self._tell(log, fx)
        except StorageError as error:
            self._fail(error, fx)

    def _note_elections(self, fx: Effects) -> None:
        """``unclean`` is a leader from outside ISR and ELR, the last known leader included."""
        for before, after in self._state.elections:
            leader = after.leader
            is_outside = leader is not None and leader not in (*before.isr, *before.elr)
            fx.note(
                "leader-elected",
                partition=str(after.partition),
                leader=leader,
                leader_epoch=after.leader_epoch,
                isr=after.isr,
                old_leader=before.leader,
                old_isr=before.isr,
                unclean=is_outside,
                last_known=is_outside and leader in before.last_known_elr and not after.elr,
            )
        self._state.elections.clear()

    def _tell(self, log: MetadataLog, fx: Effects) -> None:
        committed_end = log.committed_end
        while self._answers and self._answers[0][0] <= committed_end:
            _, to, answer = self._answers.popleft()
            fx.reply(to, answer)
        for src in list(self._fetches):
            response = self._fetched(log, self._fetches[src])
            if response is not None:
                del self._fetches[src]
                fx.reply(src, response)

    def _arm(self, key: str, interval_ms: int, now: Now, fx: Effects) -> None:
        if interval_ms > 0:
            fx.arm((key,), now.mono_us + interval_ms * 1_000)

    def _fail(self, error: StorageError, fx: Effects) -> None:
        """It can decide nothing more: what is not durable is never told."""
        if self._log is not None:
            self._log.abandon()
            self._log = None
        self._answers.clear()
        self._fetches.clear()
        fx.note("controller-failed", error=error.code)
        fx.stopped()

    # Looking at it -----------------------------------------------------------------------------

    def fields(self) -> Mapping[str, Any]:
        """Everything decided, durable or not; ``committed_end`` says how much of it is.

        While nothing changes it is the same object.
        """
        log = self._log
        ends: dict[str, Any] = {
            "is_running": log is not None,
            "committed_end": None if log is None else log.committed_end,
            "log_end": None if log is None else log.end_offset,
            "log_start": None if log is None else log.start_offset,
        }
        if self._shown[0] != ends:
            self._shown = (ends, {**ends, **self._shown_image()})
        return self._shown[1]

    def _shown_image(self) -> dict[str, Any]:
        image = self._state.image
        found: dict[str, Any] = {}
        for broker_id in sorted(image.brokers):
            broker = image.brokers[broker_id]
            found[f"{broker_id}/broker_epoch"] = broker.broker_epoch
            found[f"{broker_id}/fenced"] = broker.is_fenced
            found[f"{broker_id}/in_controlled_shutdown"] = broker.in_controlled_shutdown
            found[f"{broker_id}/damaged"] = tuple(str(each) for each in broker.damaged_partitions)
        for record in image.partitions():
            name = str(record.partition)
            found[f"{name}/leader"] = record.leader
            found[f"{name}/leader_epoch"] = record.leader_epoch
            found[f"{name}/partition_epoch"] = record.partition_epoch
            found[f"{name}/isr"] = record.isr
            found[f"{name}/elr"] = record.elr
            found[f"{name}/last_known_elr"] = record.last_known_elr
            found[f"{name}/replicas"] = record.replicas
            found[f"{name}/adding"] = record.adding_replicas
            found[f"{name}/removing"] = record.removing_replicas
            found[f"{name}/recovery"] = record.leader_recovery_state.name
        return found
