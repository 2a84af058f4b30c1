"""How metadata becomes roles: a broker applies records to its image, then to its replicas.

Between the two lies the failpoint ``metadata-applied``. Replicas that are gone go first, then
leaderships are taken, then followers begin to fetch (PROTOCOL A2). A record with an older partition
epoch is ignored; one of the same leader epoch changes the ISR and nothing else.

A broker that comes up pulls the log from its beginning. What it says of the past is no reason to
lead, to delete or to salvage: the replicas follow from the broker's own registration on.

Left out: getting the records (``cluster.broker_life``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cluster.answering import Answering
from cluster.broker_core import BrokerCore
from cluster.config import TopicConfig
from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.fetch_state import FetchState
from cluster.fetcher import Fetchers
from cluster.flushing import Flushing
from cluster.isr import IsrState
from cluster.leading import Leading
from cluster.metadata import MetadataImage
from cluster.names import Now, TopicIdPartition
from cluster.records import (
    BrokerRecord,
    ConfigRecord,
    LeaderRecoveryState,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
)
from cluster.replica import Event, Follower, Leader, Quarantined, Replica, Waiting
from cluster.serving import Serving
from storage.errors import DiskError, InvalidConfig, LogOffline, StaleLeaderEpoch, StorageError

__all__ = ["Applying"]


class Applying:
    """The metadata of one broker, and what it makes of its replicas."""

    def __init__(
        self,
        core: BrokerCore,
        leading: Leading,
        fetchers: Fetchers,
        serving: Serving,
        answering: Answering,
        flushing: Flushing,
    ) -> None:
        self._core = core
        self._leading = leading
        self._fetchers = fetchers
        self._serving = serving
        self._answering = answering
        self._flushing = flushing
        self._touched: set[TopicIdPartition] = set()
        self._is_loaded = False

    # The image ---------------------------------------------------------------------------------

    def take_records(self, now: Now, records: Iterable[MetadataRecord], fx: Effects) -> None:
        """Apply records in order, then what they changed."""
        image = self._core.image
        touched: set[TopicIdPartition] = set()
        has_brokers = False
        for record in records:
            match record:
                case PartitionRecord(partition=partition):
                    touched.add(partition)
                case RemoveTopicRecord(topic_id=topic_id):
                    touched.update(state.partition for state in image.partitions_of(topic_id))
                case ConfigRecord(is_topic=True, resource=topic):
                    states = image.partitions_of(image.topic_ids.get(topic, ""))
                    touched.update(state.partition for state in states)
                case BrokerRecord():
                    has_brokers = True
            image.apply(record)
        self._changed(now, touched, has_brokers, fx)

    def take_snapshot(self, now: Now, image: MetadataImage, fx: Effects) -> None:
        """Skip to a whole image: one change, however many records lie between."""
        before = {state.partition: state for state in self._core.image.partitions()}
        after = {state.partition: state for state in image.partitions()}
        touched = {
            partition
            for partition in {*before, *after, *self._core.replicas}
            if before.get(partition) is not after.get(partition)
        }
        self._core.image = image
        self._changed(now, touched, True, fx)

    def _changed(
        self, now: Now, touched: set[TopicIdPartition], has_brokers: bool, fx: Effects
    ) -> None:
        image = self._core.image
        fx.note("metadata", end_offset=image.end_offset)
        if not self._is_loaded:
            self._touched |= touched
            if not image.end_offset > self._core.broker_epoch:
                return
            self._is_loaded = True
            # A topic may have been deleted while this broker was down (hazard B-50).
            strays = {p for p in self._core.replicas if image.partition(p) is None}
            touched, self._touched = self._touched | strays, set()
            has_brokers = True
        partitions = tuple(sorted(touched))
        if not fx.stops_at("metadata-applied", partitions, has_brokers):
            self.apply(now, fx, partitions, has_brokers)

    # Replicas ----------------------------------------------------------------------------------

    def apply(
        self, now: Now, fx: Effects, partitions: tuple[TopicIdPartition, ...], has_brokers: bool
    ) -> None:
        """Give the replicas the roles that the image says."""
        name, image = self._core.name, self._core.image
        leads, follows = [], []
        for partition in partitions:
            state = image.partition(partition)
            if state is None or name not in state.replicas:
                self._step(self._remove, now, partition, fx)
            elif state.leader == name:
                leads.append(state)
            else:
                follows.append(state)
        for state in leads:
            self._step(self._lead, now, state, fx)
        for state in follows:
            self._step(self._follow, now, state, fx)
        if self._core.is_halted:
            return
        if has_brokers:
            for partition in sorted(self._core.replicas):
                self._leading.advance(now, self._core.replicas[partition], fx)
                self._leading.settle_deletes(self._core.replicas[partition], fx)
        for partition in partitions:
            replica = self._core.replicas.get(partition)
            if replica is not None:
                self._core.give_out_work(replica, fx)
        self._fetchers.pump(now, fx)
        self._core.applied_offset = max(self._core.applied_offset, image.end_offset)

    def _step(self, action: Callable[..., None], *args: object) -> None:
        """One replica's change; a disk that fails halts the broker, other errors are its own."""
        _, about, fx = args
        assert isinstance(fx, Effects)
        if self._core.is_halted:
            return
        try:
            action(*args)
        except (DiskError, LogOffline) as error:
            self._core.halt(error, fx)
        except StorageError as error:
            partition = about.partition if isinstance(about, PartitionRecord) else about
            fx.note("role-error", partition=str(partition), error=error.code, detail=str(error))

    def _remove(self, now: Now, partition: TopicIdPartition, fx: Effects) -> None:
        """The replica is not wanted here any more: its files go."""
        replica = self._core.replicas.pop(partition, None)
        if replica is None:
            return
        self._fetchers.remove(partition)
        self._flushing.forget(partition)
        self._fail_requests(replica, fx)
        if isinstance(replica.role, Leader):
            self._serving.wake(now, partition, fx, replicas=True, consumers=True)
        work = self._core.log_dir.delete_log(partition.topic, partition.partition)
        fx.background(None, (work,))
        fx.note("delete-replica", partition=str(partition))

    def _replica(self, now: Now, state: PartitionRecord, fx: Effects) -> Replica:
        """The replica, begun if it is new here, with its topic's configuration.

        A configuration that does not hold changes nothing.
        """
        partition = state.partition
        replica = self._core.replicas.get(partition)
        values = self._core.image.config(is_topic=True, resource=partition.topic)
        try:
            config = TopicConfig.from_kafka(values)
        except InvalidConfig as error:
            config = TopicConfig() if replica is None else replica.config
            fx.note("config-ignored", topic=partition.topic, detail=str(error))
        if replica is None:
            stranger = self._core.log_dir.topic_id(partition.topic, partition.partition)
            if stranger not in (None, partition.topic_id):
                # A topic of the same name was deleted while this broker was down (hazard B-50).
                self._remove_stranger(now, partition, fx)
            replica = self._core.open_replica(partition, config)
            self._core.replicas[partition] = replica
        replica.config = config
        if replica.log is not None:
            replica.log.reconfigure(
                config.log_config(self._core.config, self._core.guards.log_rules())
            )
        return replica

    def _remove_stranger(self, now: Now, partition: TopicIdPartition, fx: Effects) -> None:
        for other in sorted(self._core.replicas):
            if other[1:] == partition[1:]:
                self._remove(now, other, fx)
                return
        work = self._core.log_dir.delete_log(partition.topic, partition.partition)
        fx.background(None, (work,))

    # Roles -------------------------------------------------------------------------------------

    def _lead(self, now: Now, state: PartitionRecord, fx: Effects) -> None:
        replica = self._replica(now, state, fx)
        if state.partition_epoch < replica.partition_epoch:
            return
        if isinstance(replica.role, Quarantined):
            if not (self._is_forced(state.partition) and self._salvage(replica, fx)):
                replica.state = state
                fx.note("quarantined-leader", partition=str(state.partition))
                return
        leader = replica.leading
        is_recovering = state.leader_recovery_state is LeaderRecoveryState.RECOVERING
        is_bumped = leader is None or state.leader_epoch > leader.leader_epoch
        if leader is not None and not is_bumped and self._core.guards.act_only_on_bumped_epoch:
            replica.state = state
            self._leading.adopt(leader, state.replicas)
            if state.partition_epoch >= leader.isr.partition_epoch:
                leader.is_recovering = is_recovering
            self._leading.take_isr(replica, leader, state, fx)
            if self._core.guards.hw_rises_on_isr_commit:
                self._leading.advance(now, replica, fx)
            return
        self._fetchers.remove(state.partition)
        log = replica.opened
        if self._core.guards.assign_epoch_on_promotion:
            log.become_leader(state.leader_epoch)
        elif log.epochs.latest > state.leader_epoch:
            raise StaleLeaderEpoch(state.leader_epoch, log.epochs.latest)
        else:
            log.leader_epoch = state.leader_epoch
        role = Leader(
            state.leader_epoch,
            log.leo,
            IsrState(state.isr, state.partition_epoch),
            self._leading.followers_of(now, replica, state.replicas, state.isr, state.leader_epoch),
            is_recovering=is_recovering,
        )
        if leader is not None:
            role.produces, role.deletes = leader.produces, leader.deletes
            role.synced_produces = leader.synced_produces
        replica.move(Event.LEAD, role)
        replica.state = state
        replica.clamp_high_watermark()
        self._note_role(replica, fx)
        self._flushing.after_append(replica, fx)
        self._serving.wake(now, state.partition, fx, replicas=True, consumers=True)
        self._leading.advance(now, replica, fx)
        self._leading.shrink(now, replica, fx)

    def _follow(self, now: Now, state: PartitionRecord, fx: Effects) -> None:
        replica = self._replica(now, state, fx)
        if state.partition_epoch < replica.partition_epoch:
            return
        if isinstance(replica.role, Quarantined):
            if self._core.name in state.isr or self._core.name in state.elr:
                replica.state = state
                return
            if not self._salvage(replica, fx):
                replica.state = state
                return
        is_bumped = state.leader_epoch > replica.leader_epoch
        was = replica.role
        if state.leader is None:
            self._stop_following(now, replica, state, fx)
            return
        same_leader = isinstance(was, Follower) and was.leader == state.leader
        if same_leader and not is_bumped and replica.state is not None:
            replica.state = state
            return
        if same_leader and not self._core.guards.truncate_on_every_bump:
            fetch = self._fetchers.fetch_of(state.partition)
            if fetch is not None:
                replica.state = state
                fetch.leader_epoch = state.leader_epoch
                if fetch.state is FetchState.FAILED:
                    fetch.state = FetchState.FETCHING
                replica.role = Follower(state.leader, state.leader_epoch)
                return
        self._fail_requests(replica, fx)
        if self._core.guards.cut_epochs_at_end:
            replica.opened.become_follower()
        # Not before: where this fails, metadata of the same epoch must not pass as known (B-47).
        replica.state = state
        replica.move(Event.FOLLOW, Follower(state.leader, state.leader_epoch))
        self._note_role(replica, fx)
        if isinstance(was, Leader):
            self._serving.wake(now, state.partition, fx, replicas=True, consumers=True)
        self._fetchers.add(replica, state.leader, state.leader_epoch, fx)
        fetch = self._fetchers.fetch_of(state.partition)
        self._flushing.after_append(replica, fx)
        if replica.flushes and fetch is not None and fetch.state is FetchState.FETCHING:
            # What an earlier life or role left unsynced must not be reported as stored.
            fetch.state = FetchState.SYNCING

    def _stop_following(
        self, now: Now, replica: Replica, state: PartitionRecord, fx: Effects
    ) -> None:
        """Nobody leads: serve nothing and fetch nothing until somebody does."""
        was = replica.role
        self._fail_requests(replica, fx)
        self._fetchers.remove(state.partition)
        replica.state = state
        replica.move(Event.WAIT, Waiting())
        if not isinstance(was, Waiting):
            self._note_role(replica, fx)
        if isinstance(was, Leader):
            self._serving.wake(now, state.partition, fx, replicas=True, consumers=True)

    def _fail_requests(self, replica: Replica, fx: Effects) -> None:
        self._leading.fail_waiting(replica, ErrorCode.NOT_LEADER_OR_FOLLOWER, fx)
        self._answering.fail_deletes(replica, fx)

    def _is_forced(self, partition: TopicIdPartition) -> bool:
        """Named leader by a controller that knows of the damage: an operator wants what is left."""
        broker = self._core.image.brokers.get(self._core.name)
        return broker is not None and partition in broker.damaged_partitions

    def _salvage(self, replica: Replica, fx: Effects) -> bool:
        """Nobody counts on this copy any more, or an operator forced it to lead: keep its good
        prefix (DECISIONS 2.10).

        Returns whether it opens now; what is in the way may be more than a damaged log.
        """
        role = replica.role
        assert isinstance(role, Quarantined)
        opened = self._core.open_replica(replica.partition, replica.config, salvaging=role.error)
        if isinstance(opened.role, Quarantined):
            role.error = opened.role.error
            fx.note("not-salvaged", partition=str(replica.partition), error=role.error.code)
            return False
        replica.log = opened.log
        replica.high_watermark = opened.high_watermark
        replica.unflushed_from = opened.unflushed_from
        replica.move(Event.SALVAGE, Waiting())
        log = replica.opened
        fx.note(
            "salvage",
            partition=str(replica.partition),
            log_start=log.log_start_offset,
            log_end=log.leo,
            high_watermark=opened.high_watermark,
            epochs=log.report.epochs,
        )
        return True

    def _note_role(self, replica: Replica, fx: Effects) -> None:
        state = replica.state
        fx.note(
            "role",
            partition=str(replica.partition),
            role=replica.role.name,
            leader_epoch=replica.leader_epoch,
            leader=None if state is None else state.leader,
            isr=() if state is None else state.isr,
            log_end=None if replica.log is None else replica.log.leo,
        )
