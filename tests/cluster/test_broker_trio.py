"""Three brokers, kills, moves, lagging metadata and cut links: nothing acknowledged is lost.

The controller here is a few lines: it fences who is killed, elects from the ISR alone, and takes an
ISR change only of the current epochs and of members that are alive under the broker epochs that
the proposal names. Processes are killed, disks are not: no loss is excusable. After each step the
leader's high watermark is at no member's end or below it (I5), and a leader's does not fall (I4);
at the end all logs are the same and hold what was acknowledged with acks=all (I1, I2, I12).
"""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.messages_control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    AlterPartitionResult,
)
from cluster.names import NO_BROKER_EPOCH, Now
from cluster.records import BrokerRecord, PartitionRecord
from tests.cluster.scripted import ORDERS, Cluster, ScriptedController

NAMES = ("b1", "b2", "b3")
PAIRS = tuple((a, b) for a in NAMES for b in NAMES if a != b)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("produce"), st.integers(1, 3), st.just("")),
        st.tuples(st.just("produce"), st.integers(1, 3), st.just("")),
        st.tuples(st.just("wait"), st.sampled_from((10, 400, 1_500, 50_000)), st.just("")),
        st.tuples(st.just("kill"), st.just(0), st.sampled_from(NAMES)),
        st.tuples(st.just("start"), st.just(0), st.sampled_from(NAMES)),
        st.tuples(st.just("move"), st.just(0), st.sampled_from(NAMES)),
        st.tuples(st.just("lag"), st.booleans(), st.sampled_from(NAMES)),
        st.tuples(st.just("cut"), st.booleans(), st.sampled_from(PAIRS)),
    ),
    min_size=5,
    max_size=40,
)


class StrictController(ScriptedController):
    """Takes members that are active, under their registered broker epochs (A14)."""

    def _alter(self, now: Now, src: str, message: AlterPartitionRequest, fx: Effects) -> None:
        for change in message.partitions:
            for name, epoch in change.new_isr:
                is_current = epoch in (NO_BROKER_EPOCH, self.image.broker_epoch(name))
                if not (self.image.is_active(name) and is_current):
                    error = ErrorCode.INELIGIBLE_REPLICA
                    results = tuple(
                        AlterPartitionResult(each.partition, error) for each in message.partitions
                    )
                    number = message.correlation_id
                    fx.reply(src, AlterPartitionResponse(number, ErrorCode.NONE, results))
                    return
        super()._alter(now, src, message, fx)


class Trio:
    """The cluster, and what was acknowledged."""

    def __init__(self, topic: dict[str, str]) -> None:
        self.cluster = Cluster(3, topic=topic)
        self.cluster.controller.__class__ = StrictController
        self.router, self.controller = self.cluster.router, self.cluster.controller
        self.cluster.lead("b1")
        self.router.is_held = lambda src, dst, message: (src, dst) in self.cuts
        self.cuts: set[tuple[str, str]] = set()
        self.dead: dict[str, int] = {}
        self.asked: dict[int, tuple[str, bytes]] = {}
        self.acked: dict[int, bytes] = {}
        self.highest: dict[tuple[str, int], int] = {}
        self._values = 0

    @property
    def state(self) -> PartitionRecord:
        state = self.controller.image.partition(ORDERS)
        assert state is not None
        return state

    def change(self, leader: str | None, isr: tuple[str, ...]) -> None:
        state = self.state
        epoch = state.leader_epoch + (leader != state.leader)
        new = evolve(state, leader=leader, isr=isr, leader_epoch=epoch)
        if new != state:
            self.cluster.decide(evolve(new, partition_epoch=state.partition_epoch + 1))

    def fence(self, name: str) -> None:
        old = self.controller.image.brokers[name]
        self.cluster.decide(BrokerRecord(name, old.incarnation_id, old.broker_epoch, True, False))

    # Steps -------------------------------------------------------------------------------------

    def do(self, kind: str, first: Any, second: Any) -> None:
        getattr(self, f"do_{kind}")(first, second)
        self.take_answers()
        self.check()

    def do_produce(self, count: int, _: str) -> None:
        leader = self.state.leader
        if leader is None or leader in self.dead:
            return
        for _ in range(count):
            self._values += 1
            value = b"%d" % self._values
            self.asked[self.cluster.produce(leader, value, timeout_ms=600_000)] = leader, value

    def do_wait(self, duration_ms: int, _: str) -> None:
        self.router.run_for(duration_ms)

    def do_kill(self, _: int, name: str) -> None:
        if name in self.dead:
            return
        self.dead[name] = self.cluster.leo(name)
        self.cluster.kill(name)
        self.fence(name)
        isr = tuple(each for each in self.state.isr if each != name) or (name,)
        leader = self.state.leader
        if leader == name:
            leader = next((each for each in isr if each not in self.dead), None)
        self.change(leader, isr)

    def do_start(self, _: int, name: str) -> None:
        if name not in self.dead:
            return
        self.controller.silent_to.discard(name)
        self.cluster.start(name)
        del self.dead[name]
        if self.state.leader is None and name in self.state.isr:
            self.change(name, self.state.isr)

    def do_move(self, _: int, name: str) -> None:
        if name in self.state.isr and name not in self.dead:
            self.change(name, self.state.isr)

    def do_lag(self, lags: bool, name: str) -> None:
        if lags:
            self.controller.silent_to.add(name)
        else:
            self.controller.silent_to.discard(name)
            self.cluster.hand_out()

    def do_cut(self, cuts: bool, pair: tuple[str, str]) -> None:
        """What is held is lost: the connection breaks."""
        if cuts:
            self.cuts.add(pair)
        elif pair in self.cuts:
            self.cuts.discard(pair)
            self.router.kept = [e for e in self.router.kept if e[:2] != pair]
            for name, peer in (pair, pair[::-1]):
                if name not in self.dead:
                    self.router.call(name, "on_disconnected", peer)
            self.router.settle()

    # What holds --------------------------------------------------------------------------------

    def take_answers(self) -> None:
        for number in list(self.asked):
            answer = self.cluster.acked(number)
            if answer is not None:
                _, value = self.asked.pop(number)
                if answer[0] is ErrorCode.NONE:
                    assert answer[1] not in self.acked, "two records at one offset"
                    self.acked[answer[1]] = value
        self.router.inbox.clear()

    def check(self) -> None:
        state = self.state
        leader = state.leader
        if leader is None or leader in self.dead:
            return
        replica = self.cluster.broker(leader).core.replicas.get(ORDERS)
        if replica is None or replica.leading is None:
            return
        epoch = replica.leading.leader_epoch
        if epoch != state.leader_epoch:
            return
        hw = replica.high_watermark
        for member in state.isr:
            end = self.dead[member] if member in self.dead else self.cluster.leo(member)
            assert hw <= end, f"I5: {leader} {hw} {member} {end}"
        assert hw >= self.highest.get((leader, epoch), 0), "I4"
        self.highest[leader, epoch] = hw

    def heal(self) -> None:
        for pair in sorted(self.cuts):
            self.do_cut(False, pair)
        for name in NAMES:
            self.do_lag(False, name)
            self.do_start(0, name)
        if self.state.leader is None:
            self.change(self.state.isr[0], self.state.isr)
        self.router.run_for(90_000)
        self.take_answers()


@settings(max_examples=60)
@given(steps, st.sampled_from(({}, {"min.insync.replicas": "2"}, {"flush.messages": "1"})))
def test_c4_nothing_acknowledged_is_lost_to_kills_moves_lag_and_cuts(
    script: list[Any], topic: dict[str, str]
) -> None:
    trio = Trio(topic)
    for step in script:
        note(f"{step}")
        trio.do(*step)
    trio.heal()
    logs = [trio.cluster.log(name) for name in NAMES]
    held = {offset: value for offset, _, value in logs[0]}
    for offset, value in trio.acked.items():
        assert held.get(offset) == value, "I1"
    assert logs[0] == logs[1] == logs[2], "I2, I12"
    ends = {trio.cluster.high_watermark(name) for name in NAMES}
    assert ends == {len(logs[0])}, "I12"
    assert set(trio.state.isr) == set(NAMES)
