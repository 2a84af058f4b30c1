"""Any message from anyone in any order, with crashes: what must always hold of a controller.

After every step: I8 and what A16, A17 say of every state; epochs never fall; no handler raised;
what nodes were told is a prefix of what the controller has committed, whatever was fetched when.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cluster import messages_control as control
from cluster.config import ControllerConfig, TopicConfig
from cluster.guards import Guards
from cluster.message import Message
from cluster.messages import MESSAGES
from cluster.metadata import MetadataImage
from cluster.names import TopicIdPartition
from cluster.records import LeaderRecoveryState
from storage.memdisk import MemDisk
from tests.cluster.controllers import Rig, apply_fetched, check_well_formed
from tests.storage.sync_disk import Inode, SyncDisk

BROKERS = ("b1", "b2", "b3", "b4")
NODES = (*BROKERS, "admin", "x")
TOPICS = ("orders", "cars", "a/b")
OBSERVERS = ("o1", "o2")
CONFIGS = (
    ("min.insync.replicas", "1"),
    ("min.insync.replicas", "2"),
    ("min.insync.replicas", None),
    ("unclean.leader.election.enable", "true"),
    ("unclean.leader.election.enable", "false"),
    ("nonsense", "1"),
)

brokers = st.sampled_from((*BROKERS, "nobody"))
# Lies are rare: a run of nothing but refusals shows little.
drift = st.sampled_from((0, 0, 0, 0, 0, 0, -1, 1))
recovery_states = st.sampled_from((*(LeaderRecoveryState.RECOVERED,) * 5, *LeaderRecoveryState))
members = st.lists(st.sampled_from(BROKERS), max_size=4).map(tuple)


class ControllerMachine(RuleBasedStateMachine):
    guards = Guards()

    @initialize(
        elr=st.booleans(),
        min_isr=st.integers(1, 3),
        snapshot=st.sampled_from((0, 7)),
        holds=st.booleans(),
    )
    def start(self, elr: bool, min_isr: int, snapshot: int, holds: bool) -> None:
        self.elr = elr
        self.disk = SyncDisk(MemDisk())
        self.rig = Rig(
            self.disk,
            config=ControllerConfig(
                eligible_leader_replicas=elr, metadata_snapshot_records=snapshot
            ),
            defaults=TopicConfig(min_insync_replicas=min_isr),
            guards=self.guards,
        )
        self.lives = dict.fromkeys(BROKERS, 0)
        self.images = {name: MetadataImage() for name in OBSERVERS}
        self.decided: dict[TopicIdPartition, tuple[int, int]] = {}
        self.committed: dict[TopicIdPartition, tuple[int, int]] = {}
        self.told_end = 0
        self.sent: list[tuple[str, Message]] = []
        # A state in which something can happen.
        self.rig.join(*BROKERS)
        self.rig.create("orders", ("b1", "b2", "b3"), ("b2", "b3", "b1"))
        self.rig.holds_sync = holds

    # What nodes send ---------------------------------------------------------------------------

    def send(self, src: str, kind: type[Message], **values: Any) -> None:
        request = kind(correlation_id=self.rig.take_id(src), **values)  # type: ignore[call-arg]
        assert MESSAGES.decode(MESSAGES.encode(request)) == request
        self.sent.append((src, request))
        self.rig.run("on_message", src, request)

    def partitions(self) -> list[TopicIdPartition]:
        known = [record.partition for record in self.rig.machine.image.partitions()]
        return [*known, TopicIdPartition("x" * 22, "orders", 0), TopicIdPartition("", "orders", 1)]

    def draw_partition(self, data: st.DataObject) -> TopicIdPartition:
        known = self.partitions()
        return data.draw(st.sampled_from((*known[:2], *known[:2], *known)))

    def sender(self, data: st.DataObject, broker: str) -> str:
        liar = data.draw(st.sampled_from((False,) * 9 + (True,)))
        return data.draw(st.sampled_from(NODES)) if liar else broker

    @rule(data=st.data(), broker=brokers, is_new=st.booleans(), is_clean=st.booleans())
    def register(self, data: st.DataObject, broker: str, is_new: bool, is_clean: bool) -> None:
        if is_new and broker in self.lives:
            self.lives[broker] += 1
        epoch = self.rig.machine.image.broker_epoch(broker)
        self.send(
            self.sender(data, broker),
            control.BrokerRegistrationRequest,
            broker_id=broker,
            incarnation_id=f"i{self.lives.get(broker, 0)}",
            previous_broker_epoch=epoch if is_clean else -1,
            damaged_partitions=self.damage(data),
        )

    def damage(self, data: st.DataObject) -> tuple[TopicIdPartition, ...]:
        if not data.draw(st.sampled_from((False, False, False, True))):
            return ()
        return tuple(data.draw(st.lists(st.sampled_from(self.partitions()), max_size=2)))

    @rule(data=st.data(), broker=brokers, off=drift, lag=st.sampled_from((0, 0, 0, 3, -9)))
    def heartbeat(self, data: st.DataObject, broker: str, off: int, lag: int) -> None:
        wants = data.draw(st.sampled_from(("", "", "", "", "fence", "leave")))
        self.send(
            self.sender(data, broker),
            control.BrokerHeartbeatRequest,
            broker_id=broker,
            broker_epoch=self.rig.machine.image.broker_epoch(broker) + off,
            current_metadata_offset=self.rig.machine.image.end_offset - lag,
            want_fence=wants == "fence",
            want_shut_down=wants == "leave",
            damaged_partitions=self.damage(data),
        )

    @rule(data=st.data(), isr=members, leader_off=drift, partition_off=drift, off=drift)
    def alter_partition(
        self,
        data: st.DataObject,
        isr: tuple[str, ...],
        leader_off: int,
        partition_off: int,
        off: int,
    ) -> None:
        image = self.rig.machine.image
        partition = self.draw_partition(data)
        record = image.partition(partition)
        sender = record.leader if record is not None and record.leader else "b1"
        shape = data.draw(st.sampled_from(("replicas", "everybody", "with sender", "any")))
        if shape == "replicas" and record is not None:
            isr = record.replicas
        elif shape == "everybody":
            isr = BROKERS
        elif shape == "with sender":
            isr = (sender, *(each for each in isr if each != sender))
        state = data.draw(recovery_states)
        proposal = control.AlterPartition(
            partition,
            (record.leader_epoch if record else 0) + leader_off,
            (record.partition_epoch if record else 0) + partition_off,
            tuple(control.BrokerState(each, image.broker_epoch(each) + off) for each in isr),
            state,
        )
        self.send(
            self.sender(data, sender),
            control.AlterPartitionRequest,
            broker_id=sender,
            broker_epoch=image.broker_epoch(sender),
            partitions=(proposal,),
        )

    @rule(topic=st.sampled_from(TOPICS), count=st.integers(-1, 2), factor=st.integers(0, 4))
    def create(self, topic: str, count: int, factor: int) -> None:
        wanted = control.CreateTopicsTopic(topic, count, factor)
        self.send("admin", control.CreateTopicsRequest, topics=(wanted,))

    @rule(topic=st.sampled_from(TOPICS), assignments=st.lists(members, max_size=2).map(tuple))
    def create_assigned(self, topic: str, assignments: tuple[tuple[str, ...], ...]) -> None:
        wanted = control.CreateTopicsTopic(topic, assignments=assignments)
        self.send("admin", control.CreateTopicsRequest, topics=(wanted,))

    @rule(topic=st.sampled_from(TOPICS), really=st.sampled_from((False, False, True)))
    def delete(self, topic: str, really: bool) -> None:
        if really or topic != "orders":
            self.send("admin", control.DeleteTopicsRequest, topics=(topic,))

    @rule(topic=st.sampled_from(TOPICS), config=st.sampled_from(CONFIGS), is_topic=drift)
    def configure(self, topic: str, config: tuple[str, str | None], is_topic: int) -> None:
        change = control.ConfigChange(is_topic == 0, topic, *config)
        self.send("admin", control.AlterConfigsRequest, changes=(change,))

    @rule(data=st.data(), kind=st.sampled_from(control.ElectionType), to=brokers)
    def elect(self, data: st.DataObject, kind: control.ElectionType, to: str) -> None:
        self.send(
            "admin",
            control.ElectLeadersRequest,
            election_type=kind,
            partitions=(self.draw_partition(data),),
            to=data.draw(st.sampled_from((None, None, to))),
        )

    @rule(data=st.data(), replicas=members, cancels=st.sampled_from((False, False, True)))
    def reassign(self, data: st.DataObject, replicas: tuple[str, ...], cancels: bool) -> None:
        wanted = control.Reassignment(self.draw_partition(data), None if cancels else replicas)
        self.send("admin", control.AlterPartitionReassignmentsRequest, partitions=(wanted,))

    @rule(data=st.data(), offset=st.integers(-1, 9), producer_id=st.integers(-1, 2_000))
    def use(self, data: st.DataObject, offset: int, producer_id: int) -> None:
        partition = self.draw_partition(data)
        commit = control.OffsetCommitPartition(partition, offset)
        self.send("x", control.OffsetCommitRequest, group="g", partitions=(commit,))
        self.send("x", control.OffsetFetchRequest, group="g", partitions=(partition,))
        self.send(
            "x", control.InitProducerIdRequest, producer_id=producer_id, producer_epoch=offset
        )

    @rule(data=st.data(), src=st.sampled_from(NODES))
    def send_again(self, data: st.DataObject, src: str) -> None:
        """A copy of anything that was sent, from whom it was sent or from somebody else."""
        if self.sent:
            sender, request = data.draw(st.sampled_from(self.sent[-20:]))
            self.rig.run("on_message", data.draw(st.sampled_from((sender, sender, src))), request)

    @rule(offset=st.integers(-5, 60), src=st.sampled_from(NODES))
    def fetch_anywhere(self, offset: int, src: str) -> None:
        self.send(src, control.MetadataFetchRequest, broker_id=src, fetch_offset=offset)

    # Time, disk, crashes -----------------------------------------------------------------------

    @rule(ms=st.sampled_from((1, 1_000, 5_000, 9_000, 300_000)))
    def wait(self, ms: int) -> None:
        self.rig.advance(ms)

    @rule(silent=st.sets(st.sampled_from(BROKERS), max_size=2), returns=st.booleans())
    def others_live(self, silent: set[str], returns: bool) -> None:
        """Some go silent until they are fenced; all others send heartbeats, and may come back."""
        for _ in range(6):
            for broker, record in sorted(self.rig.machine.image.brokers.items()):
                if broker not in silent and (returns or not record.is_fenced):
                    self.send(
                        broker,
                        control.BrokerHeartbeatRequest,
                        broker_id=broker,
                        broker_epoch=record.broker_epoch,
                        current_metadata_offset=self.rig.machine.image.end_offset,
                    )
            self.rig.advance(2_000)

    @rule()
    def sync(self) -> None:
        self.rig.sync()

    @precondition(lambda self: self.rig.tokens or self.rig.works)
    @rule(data=st.data())
    def sync_one(self, data: st.DataObject) -> None:
        queue = data.draw(st.sampled_from([q for q in (self.rig.tokens, self.rig.works) if q]))
        if queue is self.rig.tokens:
            self.rig.run("on_synced", queue.pop(0))
        else:
            self.rig.run("on_background", None, queue.pop(0))

    @rule(is_power_cut=st.booleans(), is_stopped=st.sampled_from((False, False, True)))
    def restart(self, is_power_cut: bool, is_stopped: bool) -> None:
        if is_stopped:
            self.rig.run("on_stop")
            assert self.rig.is_stopped
        self.hear()
        self.disk = (_after_power_cut if is_power_cut else _after_process_end)(self.disk)
        self.rig = self.rig.again(self.disk, holds_sync=self.rig.holds_sync)
        self.decided = dict(self.committed)

    # What nodes hear ---------------------------------------------------------------------------

    @rule(observer=st.sampled_from(OBSERVERS))
    def observe(self, observer: str) -> None:
        offset = self.images[observer].end_offset
        self.send(observer, control.MetadataFetchRequest, broker_id=observer, fetch_offset=offset)

    @rule(observer=st.sampled_from(OBSERVERS))
    def observer_restarts(self, observer: str) -> None:
        self.images[observer] = MetadataImage()

    def hear(self) -> None:
        for to, message in self.rig.replies:
            assert MESSAGES.decode(MESSAGES.encode(message)) == message
            if to in OBSERVERS and isinstance(message, control.MetadataFetchResponse):
                image = self.images[to]
                if message.is_snapshot or message.base_offset == image.end_offset:
                    self.images[to] = apply_fetched(image, message)
        self.rig.replies.clear()

    # What must hold ----------------------------------------------------------------------------

    @invariant()
    def well_formed(self) -> None:
        if not hasattr(self, "rig"):
            return
        check_well_formed(self.rig.machine.image, elr=self.elr)
        check_well_formed(self.rig.machine.committed_image, elr=self.elr)
        assert self.rig.machine.is_running

    @invariant()
    def epochs_never_fall(self) -> None:
        if not hasattr(self, "rig"):
            return
        for image, known in (
            (self.rig.machine.image, self.decided),
            (self.rig.machine.committed_image, self.committed),
        ):
            if known is self.committed and image.end_offset < self.told_end:
                # A life begins with what it knows to be durable; more of it was told before.
                continue
            for record in image.partitions():
                now = (record.leader_epoch, record.partition_epoch)
                before = known.get(record.partition, (0, 0))
                assert now[0] >= before[0], record
                assert now[1] >= before[1], record
                assert now[0] - before[0] <= now[1] - before[1], record
                known[record.partition] = now
        self.told_end = max(self.told_end, self.rig.machine.committed_image.end_offset)

    @invariant()
    def observers_have_what_is_committed(self) -> None:
        if not hasattr(self, "rig"):
            return
        self.hear()
        committed = self.rig.machine.committed_image
        for image in self.images.values():
            # After a restart the end may be told before, and committed only after the first flush.
            if image.end_offset == committed.end_offset:
                assert image.to_records() == committed.to_records()

    def teardown(self) -> None:
        """In the end every node can catch up, from wherever it is."""
        if not hasattr(self, "rig"):
            return
        self.rig.holds_sync = False
        self.rig.sync()
        for observer in OBSERVERS:
            self.hear()
            if self.images[observer].end_offset < self.rig.machine.image.end_offset:
                self.observe(observer)
                self.hear()
            image = self.images[observer]
            assert image.end_offset == self.rig.machine.image.end_offset
            assert image.to_records() == self.rig.machine.image.to_records()


def _after_power_cut(before: SyncDisk) -> SyncDisk:
    """The disk of the next life: what is there is durable."""
    disk = SyncDisk(before.image())
    for path in before._durable:
        disk._live[path] = disk._durable[path] = Inode(disk.content(path))
    return disk


def _after_process_end(before: SyncDisk) -> SyncDisk:
    """Everything is there, and as durable as before."""
    assert isinstance(before.inner, MemDisk)
    disk = SyncDisk(before.inner.copy())
    disk._live = {path: Inode(inode.synced) for path, inode in before._live.items()}
    for path, inode in before._durable.items():
        is_same = before._live.get(path) is inode
        disk._durable[path] = disk._live[path] if is_same else Inode(inode.synced)
    return disk


TestController = ControllerMachine.TestCase
TestController.settings = settings(max_examples=60, stateful_step_count=40)


# What it is worth ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "guards",
    [
        pytest.param(Guards(fenced_stays_out=False), id="fenced-stays-out", marks=pytest.mark.slow),
        pytest.param(Guards(isr_is_assigned=False), id="isr-is-assigned"),
        pytest.param(Guards(elect_only_active=False), id="elect-only-active"),
        pytest.param(
            Guards(commit_after_fsync=False), id="commit-after-fsync", marks=pytest.mark.slow
        ),
    ],
)
def test_i8_i20_without_a_guard_the_machine_finds_the_harm(guards: Guards) -> None:
    class Mutant(ControllerMachine):
        pass

    Mutant.guards = guards
    with pytest.raises((AssertionError, ExceptionGroup)):
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            Mutant,
            settings=settings(
                # What is drawn depends on the modules that are loaded by then, whose constants
                # Hypothesis takes: 400 were not always enough.
                max_examples=2_000,
                stateful_step_count=60,
                phases=(Phase.generate,),
                report_multiple_bugs=False,
                print_blob=False,
            ),
        )
