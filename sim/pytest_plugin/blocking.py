"""A cluster for plain functions: each verb lets the world go on until it is done.

The verbs have the names, units (seconds of virtual time) and errors that scripts have, so a test
reads the same in both forms but for ``await``. What came of them does as well: a test in both forms
has one digest.

    def test_failover(cluster):
        cluster.create_topic("orders", replicas=3)
        cluster.produce("orders", 5)
        cluster.crash("leader:orders-0")
        cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")

Left out: several users at once, which need scripts (``sim.pytest_plugin.awaited``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from cluster.consumer_events import PolledRecord
from cluster.outcomes import Outcome
from sim.pending import Pending, VerbFailed
from sim.pytest_plugin.nodes import Strikes, told_here
from sim.script_options import (
    MICROSECONDS,
    ConsumeOptions,
    ProduceOptions,
    check_options,
    us,
    us_or_ever,
)
from sim.scripts import WITHIN_S
from sim.views import View

__all__ = ["BlockingCluster"]

_T = TypeVar("_T")


class BlockingCluster(Strikes):
    """See the module, and ``sim.scripts.ScriptCluster`` for what each verb takes.

    Nodes may be selectors (``leader:orders-0``, ``followers:orders-0``, ``isr:orders-0``,
    ``controller``, ``one``, ``minority``, ``majority``, ``all``) where they are struck.
    """

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.world.now_us / MICROSECONDS

    @property
    def view(self) -> View:
        """The cluster as it is."""
        return self.world.view()

    # Time ----------------------------------------------------------------------------------------

    def sleep(self, seconds: float) -> None:
        """Let virtual time pass."""
        self.world.run_for(us("seconds", seconds))

    advance = sleep

    @told_here
    def wait_for(self, holds: Callable[[], object], within: float = WITHIN_S) -> None:
        """Let virtual time pass until a condition holds.

        Raises:
            VerbFailed: it does not, within so many seconds.
        """
        if not callable(holds):
            raise TypeError(f"holds is {holds!r}, allowed is a function: lambda: ...")
        within_us = us_or_ever("within", within)
        if not self._until(lambda: bool(holds()), within_us):
            name = getattr(getattr(holds, "__code__", None), "co_firstlineno", None)
            which = "the condition" if name is None else f"the condition of line {name}"
            raise VerbFailed(f"{which} does not hold after {within:g} s")

    def _until(self, holds: Callable[[], bool], within_us: int | None) -> bool:
        if within_us is not None:
            return self.world.run_until_true(holds, within_us)
        while not holds():
            if not self.world.step():
                return holds()
        return True

    def _done(self, pending: Pending[_T], within_us: int | None) -> _T:
        if within_us is not None:
            return pending.wait(within_us)
        self._until(pending.is_done, None)
        return pending.result()

    def _asked_for(self, verb: str, *args: Any, **options: Any) -> None:
        pending: Pending[object] = getattr(self.verbs, verb)(*args, **options)
        self._done(pending, round(WITHIN_S * MICROSECONDS))

    # Topics and the operator ---------------------------------------------------------------------

    @told_here
    def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        assignments: Sequence[Sequence[str]] = (),
        config: Mapping[str, str] | None = None,
    ) -> None:
        """Create a topic; returns when every partition is led."""
        self._asked_for(
            "create_topic",
            name,
            partitions=partitions,
            replicas=replicas,
            assignments=assignments,
            config=config,
        )

    @told_here
    def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        self._asked_for("delete_topic", name)

    @told_here
    def configure(self, name: str, values: Mapping[str, str | None]) -> None:
        """Change the configuration of a topic or broker; None stands for the default."""
        self._asked_for("configure", name, values)

    @told_here
    def elect(
        self, topic: str, partition: int = 0, *, to: str | None = None, kind: str | None = None
    ) -> None:
        """Ask for an election; returns when the controller has decided it."""
        to = None if to is None else self.one(to)
        self._asked_for("elect", topic, partition, to=to, kind=kind)

    @told_here
    def reassign(
        self, topic: str, partition: int = 0, *, replicas: Sequence[str] | None = None
    ) -> None:
        """Give a partition other replicas; returns when the controller has taken note."""
        self._asked_for("reassign", topic, partition, replicas=replicas)

    @told_here
    def delete_records(self, topic: str, partition: int = 0, *, before: int = -1) -> None:
        """Delete what is below an offset; -1 stands for the high watermark."""
        self._asked_for("delete_records", topic, partition, before=before)

    # Records -------------------------------------------------------------------------------------

    @told_here
    def produce(
        self, topic: str, values: int | Sequence[str | bytes], **options: Unpack[ProduceOptions]
    ) -> list[Outcome]:
        """Send records; returns one outcome for each, in their order, when all are known."""
        check_options("produce", options, ProduceOptions)
        more: dict[str, Any] = {**options}
        timeout_us = us("timeout", more.pop("timeout", 30.0))
        pending = self.verbs.produce(topic, values, timeout_us=timeout_us, **more)
        return self._done(pending, timeout_us + round(WITHIN_S * MICROSECONDS))

    @told_here
    def consume(
        self,
        topic: str,
        count: int,
        *,
        within: float = WITHIN_S,
        **options: Unpack[ConsumeOptions],
    ) -> list[PolledRecord]:
        """Read so many records of one partition, in order."""
        check_options("consume", options, ConsumeOptions)
        within_us = us_or_ever("within", within)
        return self._done(self.verbs.consume(topic, count, **options), within_us)

    @told_here
    def shutdown(self, name: str | None, within: float = WITHIN_S) -> None:
        """Stop a process in order; returns when it is gone."""
        within_us = us_or_ever("within", within)
        for pending in [self.verbs.shutdown(each) for each in self.nodes(name)]:
            self._done(pending, within_us)
