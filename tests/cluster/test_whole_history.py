"""Random histories of whole clusters, every machine real, checked after every step.

``tests.cluster.whole_watch`` has what must hold at every moment, ``tests.cluster.whole_end`` what
must hold once everything is healed. Two machines: processes that are killed and keep their files,
and hosts that lose power on simulated disks, within the limits of FAULTS D.4 or without promises.

``python -m tests.cluster.whole_search`` draws the same steps faster, by seed.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from cluster.truncation import TruncationMode
from tests.cluster.whole_end import finish
from tests.cluster.whole_search import CONFIGS, MODES, POINTS, TOPICS, WAITS_MS, may_change_min_isr
from tests.cluster.whole_world import BROKERS, PRODUCERS, Setup, World

NODES = ("c1", *BROKERS)
PARTITIONS = st.integers(0, 1)
KINDS: dict[str, Literal["mem", "ext4", "posix"]] = {"ext4": "ext4", "posix": "posix"}


class Histories(RuleBasedStateMachine):
    """Steps of ``World``; subclasses say on which disks it runs."""

    world: World
    is_broken = False
    may_lose_power: ClassVar[bool] = False

    def begin(self, data: st.DataObject, topic: dict[str, str], **more: Any) -> None:
        common = {
            "brokers": data.draw(st.sampled_from((4, 3)), label="brokers"),
            "partitions": data.draw(st.sampled_from((1, 2)), label="partitions"),
            "truncation": data.draw(
                st.sampled_from((TruncationMode.FETCH, TruncationMode.KIP_279)), label="truncation"
            ),
            "fetch_bytes": data.draw(st.sampled_from((1 << 20, 200, 1)), label="fetch_bytes"),
            "snapshot_records": data.draw(st.sampled_from((0, 5)), label="snapshot_records"),
        }
        self.is_broken = True
        self.world = World(Setup(topic=tuple(topic.items()), **{**common, **more}))
        if data.draw(st.booleans(), label="is_stepwise"):
            self.world.do("stepwise")
        self.is_broken = False

    def do(self, *step: Any) -> None:
        # What breaks a step is not broken a second time by the end.
        self.is_broken = True
        self.world.do(*step)
        self.is_broken = False

    def teardown(self) -> None:
        if hasattr(self, "world") and not self.is_broken:
            finish(self.world)

    # Drawing -----------------------------------------------------------------------------------

    def node(self, data: st.DataObject, *, also: tuple[str, ...] = ()) -> str:
        """A broker, the leader as often as all others."""
        state = self.world.state()
        leader = [state.leader] if state is not None and state.leader is not None else []
        choices = [*leader, *self.world.names, *also]
        return data.draw(st.sampled_from(choices), label="node")

    def down(self) -> list[str]:
        return [name for name in ("c1", *self.world.names) if not self.world.is_up(name)]

    def ways(self) -> list[tuple[str, str]]:
        return sorted({each[:2] for each in self.world.net.kept})

    def waiting(self) -> list[str]:
        return sorted({name for name, _ in self.world.net.held})

    # Clients and time --------------------------------------------------------------------------

    @rule(producer=st.sampled_from(tuple(PRODUCERS)), partition=PARTITIONS, count=st.integers(1, 3))
    def send(self, producer: str, partition: int, count: int) -> None:
        self.do("send", producer, partition, count)

    @rule(producer=st.sampled_from(("p1", "p3", "p4")), duration_ms=st.sampled_from(WAITS_MS))
    def send_and_wait(self, producer: str, duration_ms: int) -> None:
        self.do("send", producer, 0, 1)
        self.do("wait", duration_ms)

    @rule(duration_ms=st.sampled_from(WAITS_MS))
    def wait(self, duration_ms: int) -> None:
        self.do("wait", duration_ms)

    # Processes ---------------------------------------------------------------------------------

    @rule(data=st.data())
    def kill(self, data: st.DataObject) -> None:
        self.do("kill", self.node(data, also=("c1",)))

    @rule(data=st.data())
    def kill_and_wait(self, data: st.DataObject) -> None:
        """Long enough for the session to end."""
        self.do("kill", self.node(data))
        self.do("wait", 10_000)

    @precondition(lambda self: self.down())
    @rule(data=st.data())
    def start(self, data: st.DataObject) -> None:
        self.do("start", data.draw(st.sampled_from(self.down()), label="node"))

    @rule(data=st.data())
    def stop(self, data: st.DataObject) -> None:
        self.do("stop", self.node(data))

    @precondition(lambda self: self.may_lose_power)
    @rule(data=st.data(), mode=st.sampled_from(MODES))
    def lose_power(self, data: st.DataObject, mode: str) -> None:
        self.do("power", self.node(data, also=("c1",)), mode)

    @precondition(lambda self: self.may_lose_power)
    @rule(
        data=st.data(), calls=st.sampled_from((1, 2, 3, 5, 8, 13, 30)), mode=st.sampled_from(MODES)
    )
    def lose_power_soon(self, data: st.DataObject, calls: int, mode: str) -> None:
        """Inside a call of the disk."""
        self.do("fuse", self.node(data, also=("c1",)), calls, mode)

    # Links and disks ---------------------------------------------------------------------------

    @rule(data=st.data(), other=st.sampled_from((*NODES, "p1", "p3", "k1")), both=st.booleans())
    def hold(self, data: st.DataObject, other: str, both: bool) -> None:
        name = self.node(data)
        if name != other:
            self.do("cut" if both else "hold", name, other)

    @rule(data=st.data())
    def isolate(self, data: st.DataObject) -> None:
        self.do("isolate", self.node(data))

    @precondition(lambda self: self.ways())
    @rule(data=st.data(), count=st.integers(1, 3))
    def let(self, data: st.DataObject, count: int) -> None:
        self.do("let", *data.draw(st.sampled_from(self.ways()), label="way"), count)

    @precondition(lambda self: self.ways())
    @rule(data=st.data())
    def let_two_through(self, data: st.DataObject) -> None:
        for _ in range(2):
            if self.ways():
                self.do("let", *data.draw(st.sampled_from(self.ways()), label="way"), 1)

    @precondition(lambda self: self.ways())
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        self.do("release", *data.draw(st.sampled_from(self.ways()), label="way"))

    @precondition(lambda self: self.world.net.held_ways)
    @rule()
    def heal(self) -> None:
        self.do("heal")

    @precondition(lambda self: self.ways())
    @rule(data=st.data())
    def reset(self, data: st.DataObject) -> None:
        self.do("reset", *data.draw(st.sampled_from(self.ways()), label="way"))

    @rule(data=st.data(), kind=st.sampled_from(("fsync", "background")))
    def slow(self, data: st.DataObject, kind: str) -> None:
        self.do("slow", self.node(data, also=("c1",)), kind)

    @precondition(lambda self: self.waiting())
    @rule(data=st.data(), count=st.integers(1, 3), for_good=st.booleans())
    def work(self, data: st.DataObject, count: int, for_good: bool) -> None:
        name = data.draw(st.sampled_from(self.waiting()), label="node")
        self.do(*(("fast", name) if for_good else ("work", name, count)))

    @rule(data=st.data(), point=st.sampled_from(POINTS))
    def stop_at(self, data: st.DataObject, point: str) -> None:
        self.do("yield", self.node(data), point)

    @precondition(lambda self: self.world.net.yields)
    @rule()
    def go_on(self) -> None:
        self.do("resume")

    # The operator ------------------------------------------------------------------------------

    @rule()
    def prefer(self) -> None:
        self.do("prefer")

    @rule(data=st.data(), partition=PARTITIONS, count=st.integers(0, 3))
    def reassign(self, data: st.DataObject, partition: int, count: int) -> None:
        """One replica is the fewest; none takes a reassignment back."""
        wanted = data.draw(st.permutations(self.world.names), label="replicas")[:count]
        self.do("reassign", partition, " ".join(wanted) if count > 1 else "")

    @rule(partition=PARTITIONS, quarters=st.integers(0, 4))
    def delete(self, partition: int, quarters: int) -> None:
        self.do("delete", partition, quarters)

    @precondition(lambda self: may_change_min_isr(self.world))
    @rule(value=st.integers(1, 2))
    def min_isr(self, value: int) -> None:
        self.do("min_isr", value)

    @rule(change=st.sampled_from(CONFIGS))
    def configure(self, change: tuple[str, str]) -> None:
        self.do("config", *change)

    @rule(really=st.integers(0, 3))
    def recreate(self, really: int) -> None:
        if really == 3:
            self.do("recreate")


class Kills(Histories):
    """Files survive what happens to processes."""

    @initialize(
        data=st.data(),
        topic=st.sampled_from(TOPICS),
        min_isr=st.sampled_from("21"),
        copies=st.sampled_from((3, 2)),
        elr=st.booleans(),
    )
    def set_up(
        self, data: st.DataObject, topic: dict[str, str], min_isr: str, copies: int, elr: bool
    ) -> None:
        topic = {**topic, "min.insync.replicas": min_isr}
        self.begin(data, topic, copies=copies, elr=elr)


class PowerCuts(Histories):
    """What was not synced may be lost, and what is promised all the same must not.

    ``flush``: every copy is synced before it counts. ``elr``: at most one unclean end at a time.
    ``anything``: nothing is promised, and the logs must agree in the end.
    """

    may_lose_power = True

    @initialize(
        data=st.data(),
        segment_bytes=st.sampled_from(("1000000", "300")),
        disk=st.sampled_from(tuple(KINDS)),
        promise=st.sampled_from(("flush", "elr", "anything")),
        min_isr=st.sampled_from("21"),
    )
    def set_up(
        self, data: st.DataObject, segment_bytes: str, disk: str, promise: str, min_isr: str
    ) -> None:
        topic = {"segment.bytes": segment_bytes, "min.insync.replicas": min_isr}
        if promise == "flush":
            topic["flush.messages"] = "1"
        if promise == "elr":
            topic["min.insync.replicas"] = "2"
        self.begin(
            data,
            topic,
            disk=KINDS[disk],
            elr=promise == "elr" or data.draw(st.booleans(), label="elr"),
            is_bounded=promise != "anything",
        )


_COUNTS = {100: (40, 40), 5_000: (2_000, 50)}
_examples, _steps = _COUNTS.get(settings().max_examples, (settings().max_examples, 40))

TestKills = Kills.TestCase
TestKills.settings = settings(max_examples=_examples, stateful_step_count=_steps)
TestPowerCuts = PowerCuts.TestCase
TestPowerCuts.settings = settings(max_examples=_examples, stateful_step_count=_steps)
