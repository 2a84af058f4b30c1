"""Any message, in any state, from anybody: what must hold all the same (C.4: I4, I9, I14, I20).

A broker is led through roles, restarts, failpoints and held flushes, while messages of every class
arrive: stale, duplicated, reordered, of other lives, about what does not exist, with offsets that
lie and frames that are damaged. After each step:

* no handler has raised;
* log start <= high watermark <= log end, durable end <= log end, epochs rise;
* a leader's high watermark and log end never fall within its epoch, and its bytes stay;
* only a produce, its leader's awaited answer, or the controller's word changes a log;
* an acknowledgement of acks=all is never ahead of the high watermark;
* the role is what the metadata says.
"""

from __future__ import annotations

from typing import Any

from attrs import evolve
from hypothesis import given, note, settings
from hypothesis import strategies as st

from cluster.effects import Effects
from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.messages_control import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    MetadataFetchResponse,
)
from cluster.messages_data import (
    DeleteRecordsRequest,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    ProduceRequest,
    ProduceResponse,
)
from cluster.records import ConfigRecord, RemoveTopicRecord, TopicRecord
from storage.mkb1 import decode_batch
from tests.cluster.any_message import NODES, any_message, message_of
from tests.cluster.leader_tools import MEMBERS, Solo, batch
from tests.cluster.scripted import ORDERS, TOPIC_ID

POINTS = ("produce-appended", "fetch-read", "hw-advanced", "isr-change-sent", "metadata-applied")
ISRS = (MEMBERS, ("b1",), ("b1", "b2"), ("b2", "b3"), ("b2",))
REQUESTS = (
    ProduceRequest,
    FetchRequest,
    ListOffsetsRequest,
    OffsetsForLeaderEpochRequest,
    DeleteRecordsRequest,
)

steps = st.lists(
    st.one_of(
        st.tuples(st.just("message"), st.sampled_from(NODES), any_message()),
        st.tuples(st.just("message"), st.sampled_from(NODES), message_of(*REQUESTS)),
        st.tuples(st.just("message"), st.sampled_from(NODES), message_of(*REQUESTS)),
        st.tuples(st.just("awaited"), st.integers(0, 5), any_message()),
        st.tuples(
            st.just("awaited"),
            st.integers(0, 5),
            message_of(AlterPartitionResponse, BrokerHeartbeatResponse, BrokerRegistrationResponse),
        ),
        st.tuples(st.just("again"), st.sampled_from(("", *NODES)), st.integers(0, 30)),
        st.tuples(st.just("produce"), st.sampled_from((-1, 0, 1)), st.integers(0, 2)),
        st.tuples(st.just("fetch"), st.sampled_from(("b2", "b3")), st.integers(-2, 1)),
        st.tuples(st.just("lead"), st.sampled_from(("b1", "b1", "b2", None)), st.integers(0, 4)),
        st.tuples(st.just("isr"), st.integers(0, 4), st.just(0)),
        st.tuples(st.just("broker"), st.sampled_from(("b2", "b3")), st.integers(0, 3)),
        st.tuples(st.just("config"), st.sampled_from(("1", "2", "x", None)), st.booleans()),
        st.tuples(st.just("topic"), st.booleans(), st.just(0)),
        st.tuples(st.just("timer"), st.integers(0, 30), st.integers(0, 60_000)),
        st.tuples(st.just("yields"), st.sets(st.sampled_from(POINTS)), st.just(0)),
        st.tuples(st.just("hold"), st.booleans(), st.booleans()),
        st.tuples(st.just("lost"), st.sampled_from(NODES), st.just(0)),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    min_size=4,
    max_size=25,
)


class Watch:
    """A broker, what is done to it, and what was seen of it before."""

    def __init__(self) -> None:
        self.solo = Solo()
        self.asked: dict[int, tuple[int, int]] = {}
        self.before: dict[str, Any] = {}
        self.look()

    # Steps -------------------------------------------------------------------------------------

    def do(self, step: tuple[Any, ...]) -> None:
        kind, first, second = step
        getattr(self, f"do_{kind}")(first, second)
        self.solo.router.settle()
        self.acks()
        self.check()
        self.look()

    def do_message(self, src: str, message: Message) -> None:
        if isinstance(message, FetchRequest):
            message = evolve(message, replica_id=src if src.startswith("b") else "")
        self.deliver(src, message)

    def deliver(self, src: str, message: Message) -> None:
        router = self.solo.router
        fx = Effects(yields=router.yields.get("b1", ()))
        broker = self.solo.broker("b1")
        was_leader = self.is_leader()
        held = self.log()
        broker.on_message(router.now, src, message, fx)
        if not (isinstance(message, ProduceRequest | DeleteRecordsRequest) and was_leader):
            if "b1" not in router.stopped:
                assert self.log() == held, "a message that may not write has written"
        for effect in fx.drain():
            router.carry_out("b1", effect)

    def do_awaited(self, number: int, message: Message) -> None:
        """The id that ``b1`` waits for, from whom it waits for it: but any content."""
        router = self.solo.router
        sent = [(dst, m) for src, dst, m in router.delivered if src == "b1" and dst in NODES]
        if not sent or isinstance(message, MetadataFetchResponse):
            return
        dst, request = sent[-1 - number % len(sent)]
        if isinstance(message, FetchResponse) or dst.startswith("b"):
            return
        wanted = {
            AlterPartitionRequest: AlterPartitionResponse,
            BrokerHeartbeatRequest: BrokerHeartbeatResponse,
            BrokerRegistrationRequest: BrokerRegistrationResponse,
        }.get(type(request))
        if wanted is None or not isinstance(message, wanted):
            dst = "b2"
        if isinstance(message, BrokerRegistrationResponse):
            return
        self.solo.deliver(dst, evolve(message, correlation_id=request.correlation_id))

    def do_again(self, src: str, number: int) -> None:
        """A message of before once more, from the same or from another node."""
        seen = [(s, m) for s, d, m in self.solo.router.delivered if d == "b1"]
        if seen:
            old, message = seen[-1 - number % len(seen)]
            self.deliver(src or old, message)

    def do_produce(self, acks: int, size: int) -> None:
        self.solo._numbers += 100  # ids that no drawn message has
        self.asked[self.solo._numbers + 1] = (acks, size + 1)
        self.solo.produce("b1", *[b"v"] * (size + 1), acks=acks, timeout_ms=5_000)

    def do_fetch(self, name: str, back: int) -> None:
        replica = self.replica()
        if replica is not None and replica.log is not None:
            offset = max(0, replica.opened.leo + back)
            self.solo.fetch_as(name, offset, wait_ms=500)

    def do_lead(self, leader: str | None, number: int) -> None:
        if self.solo.controller.image.partition(ORDERS) is None:
            return
        before = self.solo.controller.image.partition(ORDERS)
        assert before is not None
        self.solo.lead(leader, ISRS[number], epoch=before.leader_epoch + 1 + number % 2)

    def do_isr(self, number: int, _: int) -> None:
        if self.solo.controller.image.partition(ORDERS) is not None:
            self.solo.decide(self.solo.state(isr=ISRS[number]))

    def do_broker(self, name: str, how: int) -> None:
        if how == 0:
            self.solo.register(name, fenced=True)
        else:
            self.solo.change_broker(name, fenced=how == 1, leaving=how == 2)

    def do_config(self, value: str | None, is_flush: bool) -> None:
        name = "flush.messages" if is_flush else "min.insync.replicas"
        self.solo.decide(ConfigRecord(True, "orders", name, value))

    def do_topic(self, removes: bool, _: int) -> None:
        if removes:
            self.solo.decide(RemoveTopicRecord(TOPIC_ID, "orders"))
        elif self.solo.controller.image.partition(ORDERS) is None:
            self.solo.decide(TopicRecord(TOPIC_ID, "orders"))
            self.solo.lead("b1", MEMBERS, replicas=MEMBERS)

    def do_timer(self, number: int, later_ms: int) -> None:
        router = self.solo.router
        router.now_us += later_ms * 1_000
        keys = sorted((key for name, key in router.timers if name == "b1"), key=repr)
        if keys:
            key = keys[number % len(keys)]
            del router.timers["b1", key]
            router.call("b1", "on_timer", key)

    def do_yields(self, points: set[str], _: int) -> None:
        router = self.solo.router
        router.yields["b1"] = ()
        router.resume()
        router.yields["b1"] = tuple(sorted(points))

    def do_hold(self, fsync: bool, background: bool) -> None:
        router = self.solo.router
        router.holds_fsync, router.holds_background = fsync, background
        router.do_held()

    def do_lost(self, peer: str, _: int) -> None:
        self.solo.router.call("b1", "on_disconnected", peer)

    def do_restart(self, _: int, __: int) -> None:
        self.solo.router.inbox.clear()
        self.solo.restart()

    # What holds --------------------------------------------------------------------------------

    def replica(self) -> Any:
        return self.solo.broker("b1").core.replicas.get(ORDERS)

    def is_leader(self) -> bool:
        replica = self.replica()
        return replica is not None and replica.leading is not None

    def log(self) -> bytes:
        replica = self.replica()
        if replica is None or replica.log is None or replica.log.is_closed:
            return b""
        return b"".join(
            replica.log.read_range(base, 1 << 20)
            for base in [replica.log.log_start_offset]
            if replica.log.leo > base
        )

    def acks(self) -> None:
        """What was acknowledged with acks=all since the last look is below the high watermark."""
        replica = self.replica()
        for _, message in self.solo.router.take("p1"):
            if isinstance(message, ProduceResponse) and self.is_leader():
                asked = self.asked.get(message.correlation_id)
                (result, *_) = message.partitions or (None,)
                if asked and asked[0] == -1 and result and result.error_code is ErrorCode.NONE:
                    assert result.base_offset + asked[1] <= replica.high_watermark, "I19"

    def look(self) -> None:
        replica = self.replica()
        self.before = {"replica": replica}
        if replica is not None and replica.log is not None:
            leader = replica.leading
            self.before |= {
                "epoch": leader.leader_epoch if leader is not None else None,
                "hw": replica.high_watermark,
                "leo": replica.opened.leo,
                "start": replica.opened.log_start_offset,
                "log": self.log(),
            }

    def check(self) -> None:
        replica = self.replica()
        if replica is None or replica.log is None or "b1" in self.solo.router.stopped:
            return
        log = replica.opened
        hw, start, leo = replica.high_watermark, log.log_start_offset, log.leo
        assert 0 <= start <= hw <= leo
        assert log.boundary.end_offset <= leo
        entries = log.epochs.entries
        assert list(entries) == sorted(set(entries))
        assert len({epoch for epoch, _ in entries}) == len(entries)
        leader, before = replica.leading, self.before
        if leader is not None:
            assert log.leader_epoch == leader.leader_epoch
            assert leader.isr.maximal >= set(leader.isr.isr)
            if before["replica"] is replica and before.get("epoch") == leader.leader_epoch:
                assert hw >= before["hw"], "I4"
                assert leo >= before["leo"]
                if start == before["start"]:
                    assert self.log().startswith(before["log"])
        if not self.solo.router.stopped_at and not self.solo.router.yields.get("b1"):
            state = self.solo.broker("b1").core.image.partition(ORDERS)
            if state is not None and "b1" in state.replicas and replica.state is not None:
                wanted = "waiting" if state.leader is None else "follower"
                wanted = "leader" if state.leader == "b1" else wanted
                assert replica.role.name == wanted


@settings(max_examples=150)
@given(steps)
def test_c4_any_message_in_any_state_changes_only_what_it_may(script: list[Any]) -> None:
    watch = Watch()
    for number in range(3):
        watch.solo.produce("b1", b"%d" % number, acks=1)
    watch.solo.replicate(offset=2)
    watch.look()
    for step in script:
        note(f"{step}")
        watch.do(step)
    router = watch.solo.router
    router.yields.clear()
    router.resume()
    router.holds_fsync = router.holds_background = False
    router.do_held()
    router.settle()
    watch.look()
    held = watch.before.get("log")
    watch.solo.controller.silent_to = {"b1"}
    watch.solo.restart()
    if held is not None:
        assert watch.log() == held, "what a kill leaves is what was there"


def test_c4_the_pools_have_frames_that_a_log_takes() -> None:
    assert decode_batch(batch()).records
