"""``ClusterMachine``: rules with which Hypothesis drives a live cluster, clients and faults.

    class TestOrders(ClusterMachine):
        topics = ({"name": "orders", "config": {"min.insync.replicas": 2}},)

    TestOrders = TestOrders.TestCase

A subclass adds rules of its own with ``hypothesis.stateful.rule``, and takes one of these away by
setting its name to None.

In the envelope ``recoverable`` nobody is disturbed between a power cut and the moment at which all
replicas are in sync again; damage and disks that lie are for ``unrestricted``.

Left out: what is recorded, judged and saved (``sim.testing.recorded``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from sim.testing.recorded import RecordedMachine

__all__ = ["ClusterMachine"]

_MS: Final = 1_000
_WAITS_MS: Final = (100, 500, 1_000, 3_000, 12_000)
_THEN_MS: Final = (20, 1_000, 12_000)
"""The last one is behind the end of a session, and of the election that follows it."""
_COUNT_MAX: Final = 5
_OFFSET_MAX: Final = 10
_DISK_FAULTS: Final = ("fsync-lie", "fsync-fail", "lost-write")


def _one_of(those: Callable[[Any], Sequence[Any]]) -> st.SearchStrategy[Any]:
    """One of what the machine has now."""
    return st.runner().flatmap(lambda machine: st.sampled_from(list(those(machine))))


_PARTITION: Final = _one_of(lambda machine: machine.partitions)
_THEN: Final = st.sampled_from(_THEN_MS)
_NODE: Final = _one_of(lambda machine: machine.nodes)
_RUNNING: Final = _one_of(lambda machine: machine.leaders_first("running", "paused"))
_AWAKE: Final = _one_of(lambda machine: machine.leaders_first("running"))
_DOWN: Final = _one_of(lambda machine: machine.with_status("paused", "down", "off"))
_SIDE: Final = st.runner().flatmap(
    lambda machine: st.lists(
        st.sampled_from(machine.nodes), min_size=1, max_size=machine.brokers, unique=True
    ).map(sorted)
)


class ClusterMachine(RecordedMachine):
    """See the module; attributes are those of ``RecordedMachine``."""

    def __init__(self) -> None:
        super().__init__()
        self._is_cut = False

    @property
    def is_fragile(self) -> bool:
        """Whether a power cut is not made good yet, in an envelope in which that counts."""
        if self._is_cut and self.is_whole:
            self._is_cut = False
        return self._is_cut

    @property
    def may_disturb(self) -> bool:
        """Whether another fault may begin."""
        return self.envelope != "recoverable" or not self.is_fragile

    def leaders_first(self, *words: str) -> list[str]:
        """The brokers of such a status; who leads a partition comes first."""
        led = [each.leader for each in self.view.image().partitions()]
        return sorted(self.with_status(*words), key=lambda name: (name not in led, name))

    # Clients -------------------------------------------------------------------------------------

    @precondition(lambda self: self.partitions)
    @rule(
        partition=_PARTITION, count=st.integers(1, _COUNT_MAX), acks=st.sampled_from(["all", "1"])
    )
    def produce(self, partition: str, count: int, acks: str) -> None:
        """Records are sent."""
        self.act("produce", to=partition, count=count, acks=acks, client=f"p{acks}")

    @precondition(lambda self: self.partitions)
    @rule(partition=_PARTITION, count=st.integers(1, _COUNT_MAX))
    def consume(self, partition: str, count: int) -> None:
        """A reader asks for so many more records."""
        self.act("consume", from_=partition, count=count)

    # Time ----------------------------------------------------------------------------------------

    @rule(ms=st.sampled_from(_WAITS_MS))
    def advance(self, ms: int) -> None:
        """Time passes."""
        self.go_on(ms * _MS)

    @precondition(lambda self: self.liveness is not None)
    @rule()
    def recover(self) -> None:
        """Should all faults end now, the cluster recovers; the case goes on as it was."""
        self.must_recover()

    # Processes -----------------------------------------------------------------------------------

    @precondition(lambda self: self.may_disturb and self.with_status("running", "paused"))
    @rule(node=_RUNNING, then_ms=_THEN)
    def crash(self, node: str, then_ms: int) -> None:
        """A process ends; its disk keeps what it wrote."""
        self.act("crash", then_ms * _MS, node=node)

    @precondition(lambda self: self.with_status("running", "paused"))
    @precondition(lambda self: self.envelope != "recoverable" or self.is_whole)
    @rule(node=_RUNNING, image=st.sampled_from(["lost", "kept", "drawn"]), then_ms=_THEN)
    def power_cut(self, node: str, image: str, then_ms: int) -> None:
        """A host loses its power, and its disk what was not synced."""
        self._is_cut = True
        self.act("crash", then_ms * _MS, node=node, how="power", image=image)

    @precondition(lambda self: self.with_status("paused", "down", "off"))
    @rule(node=_DOWN, then_ms=_THEN)
    def start(self, node: str, then_ms: int) -> None:
        """A process is started again, on its disk; one that stood still goes on."""
        is_paused = self.view.status(node) == "paused"
        self.act("resume" if is_paused else "start", then_ms * _MS, short=node)

    @precondition(lambda self: self.may_disturb and self.with_status("running"))
    @rule(node=_AWAKE, then_ms=_THEN)
    def pause(self, node: str, then_ms: int) -> None:
        """A process stands still; its clocks run on."""
        self.act("pause", then_ms * _MS, short=node)

    # The network ---------------------------------------------------------------------------------

    @precondition(lambda self: self.may_disturb)
    @rule(
        side=_SIDE,
        in_flight=st.sampled_from(["drop", "hold"]),
        has_controller=st.booleans(),
        then_ms=_THEN,
    )
    def partition_network(
        self, side: list[str], in_flight: str, has_controller: bool, then_ms: int
    ) -> None:
        """Some brokers lose the others, and with these the controller or not."""
        these = [*side, *(["c1"] if has_controller else [])]
        others = [name for name in (*self.nodes, "c1") if name not in these]
        if others:
            self.act("partition", then_ms * _MS, groups=[these, others], in_flight=in_flight)

    @precondition(lambda self: self.may_disturb and self.partitions)
    @rule(partition=_PARTITION, then_ms=_THEN)
    def isolate_leader(self, partition: str, then_ms: int) -> None:
        """A leader loses its followers, and neither the controller nor clients."""
        pair = {"from_": f"leader:{partition}", "to": f"followers:{partition}"}
        self.act("cut", then_ms * _MS, **pair, both=True)

    @precondition(lambda self: self.active_faults)
    @rule()
    def heal(self) -> None:
        """All faults of links and hosts are over."""
        self.act("heal", short="all")

    # The operator --------------------------------------------------------------------------------

    @precondition(lambda self: self.partitions)
    @rule(partition=_PARTITION, is_forced=st.booleans())
    def elect(self, partition: str, is_forced: bool) -> None:
        """The preferred replica shall lead; or any other, in sync or not, where anything goes."""
        if is_forced and self.envelope != "recoverable":
            self.act("elect", partition=partition, kind="unclean", force=True)
        else:
            self.act("elect", partition=partition)

    @precondition(lambda self: self.partitions)
    @rule(partition=_PARTITION)
    def delete_records(self, partition: str) -> None:
        """Everything below the high watermark is deleted."""
        self.act("delete_records", partition=partition, before=-1)

    # Disks ---------------------------------------------------------------------------------------

    @precondition(lambda self: self.may_disturb)
    @rule(node=_NODE, factor=st.sampled_from([10, 100, 1_000]))
    def slow_disk(self, node: str, factor: int) -> None:
        """Every call of a disk takes longer."""
        self.act("slow", node=node, disk=factor)

    @precondition(lambda self: self.envelope != "recoverable" and self.partitions)
    @rule(node=_NODE, partition=_PARTITION, offset=st.integers(0, _OFFSET_MAX))
    def corrupt(self, node: str, partition: str, offset: int) -> None:
        """A bit of one copy of a record flips on the disk."""
        self.act("corrupt", node=node, partition=partition, offset=offset)

    @precondition(lambda self: self.envelope != "recoverable")
    @rule(node=_NODE, kind=st.sampled_from(_DISK_FAULTS))
    def fail_disk(self, node: str, kind: str) -> None:
        """The next sync or write of a disk fails, or lies."""
        self.strike(kind, target=node)
