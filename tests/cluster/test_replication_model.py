"""Random histories of three brokers against an oracle that knows only what clients were told.

Brokers are killed and restarted (their files stay), links are held and lose what they held,
metadata comes late, leaders are elected within the ISR, handlers stop at failpoints, and time
passes. No step may lose anything:

* a record that was acked with acks -1 is at its offset, in its epoch, on each later leader;
* epochs match batches (I9), offsets are in order (I10, I14), logs that share a batch share what
  lies before it (I3), what two replicas have both committed is equal (I2), and a leader's high
  watermark never falls within its epoch (I4);
* once everything is healed all logs are equal, byte for byte, and all is committed.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

from attrs import evolve
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from cluster.config import BrokerConfig
from cluster.errors import ErrorCode
from cluster.messages_data import DeleteRecordsPartition, DeleteRecordsRequest
from cluster.records import PartitionRecord
from cluster.truncation import TruncationMode
from tests.cluster.histories import (
    History,
    committed_difference,
    is_settled,
    prefix_violation,
    raw,
    violations,
)
from tests.cluster.scripted import ORDERS

NAMES = ("b1", "b2", "b3")
PAIRS = [("b1", "b2"), ("b1", "b3"), ("b2", "b3")]
BROKERS = st.sampled_from(NAMES)
STEPS = [
    name
    for name, weight in (
        ("let_through", 16),
        ("produce", 6),
        ("elect", 4),
        ("restart", 3),
        ("tell", 2),
        ("wait", 2),
        ("go_on", 2),
        ("stop_at", 1),
        ("kill", 1),
        ("drop_from_isr", 1),
        ("silence", 1),
        ("reset", 1),
        ("hold", 1),
        ("heal", 1),
        ("depose", 1),
        ("delete_records", 1),
    )
    for _ in range(weight)
]
"""Steps as often as they are to be drawn: without many deliveries one by one, and many elections,
hardly any history reaches the states that the rules are about."""
POINTS = ("fetch-received", "fetch-read", "produce-appended", "hw-advanced", "metadata-applied")
STEPS_MS = st.sampled_from([1, 100, 500, 600, 1_100, 6_000, 20_000, 50_000])


class Sent(NamedTuple):
    """A produce with acks -1: where it went and what it carried."""

    broker: str
    epoch: int
    values: tuple[bytes, ...]


class Replication(RuleBasedStateMachine):
    """See the module; ``mode`` is the truncation mode, for subclasses to change."""

    mode = TruncationMode.FETCH

    def __init__(self) -> None:
        super().__init__()
        self.sent: dict[int, Sent] = {}
        self.acked: list[tuple[int, int, bytes]] = []
        self.led: dict[tuple[str, int, int], int] = {}
        self.count = 0
        self.unsettled: set[str] = set()

    @initialize(
        min_isr=st.sampled_from(["1", "2"]),
        segment_bytes=st.sampled_from(["300", "1000000"]),
        flush=st.sampled_from([None, "1", "3"]),
        fetch_bytes=st.sampled_from([1, 200, 1 << 20]),
        is_stepwise=st.sampled_from([True, True, True, True, False]),
        has_gaps=st.sampled_from([False, False, True]),
    )
    def begin(
        self,
        min_isr: str,
        segment_bytes: str,
        flush: str | None,
        fetch_bytes: int,
        is_stepwise: bool,
        has_gaps: bool,
    ) -> None:
        """``is_stepwise``: nothing passes between brokers but what ``let_through`` lets."""
        self.has_gaps = has_gaps
        topic = {"min.insync.replicas": min_isr, "segment.bytes": segment_bytes}
        if flush is not None:
            topic["flush.messages"] = flush
        config = BrokerConfig(truncation=self.mode, replica_fetch_max_bytes=fetch_bytes)
        self.history = History(3, config=config, topic=topic)
        self.history.lead("b1", NAMES)
        if is_stepwise:
            self.history.cut.update(frozenset(pair) for pair in PAIRS)

    # Looking -----------------------------------------------------------------------------------

    @property
    def state(self) -> PartitionRecord:
        found = self.history.controller.image.partition(ORDERS)
        assert found is not None
        return found

    def alive(self) -> list[str]:
        return [name for name in NAMES if name in self.history.router.nodes]

    def leaders(self) -> list[str]:
        """Who believes to lead: a deposed leader may not have heard."""
        return [name for name in self.with_replica() if self.history.replica(name).leading]

    def with_replica(self) -> list[str]:
        nodes: Any = self.history.router.nodes
        return [name for name in self.alive() if ORDERS in nodes[name].core.replicas]

    def take_answers(self) -> None:
        for number in list(self.sent):
            answer = self.history.acked(number)
            if answer is None:
                continue
            sent = self.sent.pop(number)
            error, base = answer
            if error is ErrorCode.NONE:
                for delta, value in enumerate(sent.values):
                    self.acked.append((base + delta, sent.epoch, value))

    # One step ----------------------------------------------------------------------------------

    @rule(data=st.data(), name=st.sampled_from(STEPS))
    def step(self, data: st.DataObject, name: str) -> None:
        """What happens next; a step that is not possible now is none."""
        getattr(self, name)(data)

    # Clients -----------------------------------------------------------------------------------

    def produce(self, data: st.DataObject) -> None:
        if not self.leaders():
            return
        broker = data.draw(st.sampled_from(self.leaders()), label="leader")
        count = data.draw(st.integers(1, 3), label="count")
        values = tuple(b"v%d" % (self.count + number) for number in range(count))
        self.count += count
        epoch = self.history.replica(broker).leader_epoch
        acks = data.draw(st.sampled_from([-1, -1, 1]), label="acks")
        number = self.history.produce(broker, *values, acks=acks)
        if acks == -1:
            self.sent[number] = Sent(broker, epoch, values)

    def delete_records(self, data: st.DataObject) -> None:
        if not self.leaders():
            return
        broker = data.draw(st.sampled_from(self.leaders()), label="leader")
        part = data.draw(st.integers(0, 4), label="part")
        request = DeleteRecordsPartition(ORDERS, self.history.high_watermark(broker) * part // 4)
        self.history.send(
            broker, DeleteRecordsRequest(self.history.number(), 1_000, (request,)), client="k1"
        )

    # Elections ---------------------------------------------------------------------------------

    def candidates(self) -> list[str]:
        return [name for name in self.state.isr if name in self.alive()]

    def elect(self, data: st.DataObject) -> None:
        """Within the ISR, as it is or without those who are dead."""
        if not self.candidates():
            return
        leader = data.draw(st.sampled_from(self.candidates()), label="leader")
        drops_dead = data.draw(st.booleans(), label="drops the dead")
        self.history.lead(leader, self.candidates() if drops_dead else self.state.isr)

    def depose(self, data: st.DataObject) -> None:
        self.history.lead(None, self.state.isr)

    def drop_from_isr(self, data: st.DataObject) -> None:
        """The controller takes a member out, as it does when it fences one."""
        others = [name for name in self.state.isr if name != self.state.leader]
        if len(self.state.isr) < 2:
            return
        name = data.draw(st.sampled_from(others), label="member")
        isr = tuple(member for member in self.state.isr if member != name)
        epoch = self.state.partition_epoch + 1
        self.history.decide(evolve(self.state, isr=isr, partition_epoch=epoch))

    # Processes ---------------------------------------------------------------------------------

    def kill(self, data: st.DataObject) -> None:
        if self.alive():
            self.history.kill(data.draw(st.sampled_from(self.alive()), label="broker"))

    def restart(self, data: st.DataObject) -> None:
        dead = [name for name in NAMES if name not in self.alive()]
        if dead:
            name = data.draw(st.sampled_from(dead), label="broker")
            self.history.start(name)
            # What its checkpoint says is committed may have been cut and written anew (I2).
            self.unsettled.add(name)

    # Links and time ----------------------------------------------------------------------------

    def hold(self, data: st.DataObject) -> None:
        self.history.cut.add(frozenset(data.draw(st.sampled_from(PAIRS), label="link")))

    def heal(self, data: st.DataObject) -> None:
        self.history.heal()

    def let_through(self, data: st.DataObject) -> None:
        """Some of what is held in one direction is delivered, the link stays as it is."""
        router = self.history.router
        if not router.kept:
            return
        ways = sorted({envelope[:2] for envelope in router.kept})
        way = data.draw(st.sampled_from(ways), label="link")
        count = data.draw(st.integers(1, 3), label="count")
        chosen = [envelope for envelope in router.kept if envelope[:2] == way][:count]
        router.kept = [each for each in router.kept if not any(each is one for one in chosen)]
        router.queue.extend(chosen)
        router.settle()

    def reset(self, data: st.DataObject) -> None:
        """A held connection is lost, with what was on it."""
        cuts = sorted(tuple(sorted(pair)) for pair in self.history.cut)
        if not cuts:
            return
        pair = data.draw(st.sampled_from(cuts), label="link")
        router = self.history.router
        router.kept = [each for each in router.kept if set(each[:2]) != set(pair)]
        for name, peer in (pair, pair[::-1]):
            if name in router.nodes:
                router.call(name, "on_disconnected", peer)
        router.settle()

    def silence(self, data: st.DataObject) -> None:
        self.history.controller.silent_to.add(data.draw(BROKERS, label="broker"))

    def tell(self, data: st.DataObject) -> None:
        self.history.tell(data.draw(BROKERS, label="broker"))

    def wait(self, data: st.DataObject) -> None:
        self.history.router.run_for(data.draw(STEPS_MS, label="ms"))

    # Failpoints --------------------------------------------------------------------------------

    def stop_at(self, data: st.DataObject) -> None:
        """Handlers stop at a failpoint; other events of their broker come before they go on."""
        if self.has_gaps:
            name = data.draw(BROKERS, label="broker")
            self.history.router.yields[name] = (data.draw(st.sampled_from(POINTS), label="point"),)

    def go_on(self, data: st.DataObject | None) -> None:
        self.history.router.yields.clear()
        self.history.router.resume()
        self.history.router.settle()

    # What must hold ----------------------------------------------------------------------------

    @invariant()
    def every_replica_is_sound(self) -> None:
        if not hasattr(self, "history"):
            return
        self.take_answers()
        names = self.with_replica()
        for name in names:
            assert not self.history.broker(name).core.is_halted, name
            assert violations(self.history.replica(name)) == [], self.draw()
        for number, name in enumerate(names):
            for other in names[number + 1 :]:
                assert prefix_violation(self.history, name, other) is None, self.draw()
        replicas = {name: self.history.replica(name) for name in names}
        self.unsettled -= {name for name in names if is_settled(name, replicas)}
        for name, other in combinations([n for n in names if n not in self.unsettled], 2):
            assert committed_difference(self.history, name, other) is None, self.draw()
        for name in self.leaders():
            key = (name, self.history.starts[name], self.history.replica(name).leader_epoch)
            high_watermark = self.history.high_watermark(name)
            assert high_watermark >= self.led.get(key, 0), f"I4: {name} {self.draw()}"
            self.led[key] = high_watermark

    @invariant()
    def the_leader_has_what_was_acked(self) -> None:
        if not hasattr(self, "history"):
            return
        leader = self.state.leader
        if leader is None or leader not in self.leaders():
            return
        if self.history.replica(leader).leader_epoch == self.state.leader_epoch:
            self.check_acked(leader)

    def check_acked(self, name: str) -> None:
        start = self.history.replica(name).opened.log_start_offset
        content = set(self.history.log(name))
        for record in self.acked:
            assert record[0] < start or record in content, f"{record} is gone: {self.draw()}"

    def draw(self) -> str:
        parts = [
            f"{name} {self.history.draw(name)} {self.history.fetch_state(name)}"
            for name in self.with_replica()
        ]
        return "; ".join([*parts, f"{self.state.leader}@{self.state.leader_epoch}"])

    def teardown(self) -> None:
        if not hasattr(self, "history"):
            return
        history = self.history
        self.go_on(None)
        for name in NAMES:
            if name not in self.alive():
                history.start(name)
        history.heal()
        history.tell()
        history.lead(self.state.isr[0], self.state.isr)
        history.router.run_for(60_000)
        leader = self.state.leader
        assert leader is not None
        number = history.produce(leader, b"last", acks=-1)
        history.router.run_for(2_000)
        answer = history.acked(number)
        assert answer is not None, self.draw()
        assert answer[0] is ErrorCode.NONE, (answer, self.draw())
        self.every_replica_is_sound()
        self.check_acked(leader)
        assert set(self.state.isr) == set(NAMES), self.draw()
        # What is deleted stays so: a new leader may begin lower than another replica.
        start = max(history.replica(name).opened.log_start_offset for name in NAMES)
        for name in NAMES:
            assert raw(history.broker(name), start) == raw(history.broker(leader), start)
            assert history.high_watermark(name) == history.leo(name), self.draw()
            if name != leader:
                assert history.fetch_state(name) == "fetching", self.draw()


class ReplicationByQuestions(Replication):
    """As today, but followers ask for the end of their epoch (``kip-279``)."""

    mode = TruncationMode.KIP_279


_COUNTS = {100: (30, 40), 5_000: (2_000, 60)}
_examples, _steps = _COUNTS.get(settings().max_examples, (settings().max_examples, 40))

TestReplication = Replication.TestCase
TestReplication.settings = settings(max_examples=_examples, stateful_step_count=_steps)
TestReplicationByQuestions = ReplicationByQuestions.TestCase
TestReplicationByQuestions.settings = settings(
    max_examples=_examples // 2, stateful_step_count=_steps
)
