"""Scripts: ``async def main(cluster)`` drives a cluster in virtual time.

    async def main(cluster):
        await cluster.create_topic("orders", replicas=3)
        await cluster.produce("orders", 5)
        cluster.crash(cluster.view.leader("orders"))
        await cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")

    run(main, ClusterConfig(brokers=3), seed=7)

Verbs that take time are awaited; cancelling one leaves what it began under way, as a client that
is no longer listened to. The rules of scripts are those of ``sim.baton``.

Left out: judging a run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

from cluster.consumer_events import PolledRecord
from cluster.outcomes import Outcome
from sim import baton
from sim.cluster_config import ClusterConfig
from sim.pending import Pending, VerbFailed
from sim.schedulers import Scheduler
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.views import View
from sim.world import World

__all__ = ["ScriptCluster", "run"]

_T = TypeVar("_T")
_MICROSECONDS: Final = 1_000_000
WITHIN_S: Final = 60.0


class ScriptCluster:
    """The verbs of ``sim.verbs.Cluster``, for scripts; times are in seconds of virtual time.

    Attributes:
        world: for whatever has no verb.
        verbs: what this class awaits.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.verbs = Cluster(world)

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.world.now_us / _MICROSECONDS

    @property
    def view(self) -> View:
        """The cluster as it is."""
        return self.world.view()

    # Time ----------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass; with 0 everything else of this moment goes first."""
        await baton.sleep_us(round(seconds * _MICROSECONDS))

    async def wait_for(self, holds: Callable[[], object], within: float = WITHIN_S) -> None:
        """Wait until a condition holds.

        Raises:
            VerbFailed: it does not, within so many seconds.
        """
        if not await baton.wait_for(holds, round(within * _MICROSECONDS)):
            raise VerbFailed(f"{_name_of(holds)} does not hold after {within:g} s")

    def nursery(self) -> baton.Nursery:
        """Starts further scripts: ``async with cluster.nursery() as nursery``."""
        return baton.nursery()

    async def _done(self, pending: Pending[_T], within: float | None = WITHIN_S) -> _T:
        within_us = None if within is None else round(within * _MICROSECONDS)
        if not await baton.wait_for(pending.is_done, within_us):
            raise VerbFailed(f"{pending.what} is not done after {within:g} s")
        return pending.result()

    # Topics and the operator ---------------------------------------------------------------------

    async def create_topic(
        self,
        name: str,
        *,
        partitions: int = 1,
        replicas: int | None = None,
        assignments: Sequence[Sequence[str]] = (),
        config: Mapping[str, str] | None = None,
    ) -> None:
        """As ``Cluster.create_topic``: returns when every partition is led."""
        pending = self.verbs.create_topic(
            name, partitions=partitions, replicas=replicas, assignments=assignments, config=config
        )
        await self._done(pending)

    async def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        await self._done(self.verbs.delete_topic(name))

    async def configure(self, name: str, values: Mapping[str, str | None]) -> None:
        """Change the configuration of a topic or broker."""
        await self._done(self.verbs.configure(name, values))

    async def elect(
        self, topic: str, partition: int = 0, *, to: str | None = None, kind: str = "preferred"
    ) -> None:
        """Ask for an election."""
        await self._done(self.verbs.elect(topic, partition, to=to, kind=kind))

    async def reassign(
        self, topic: str, partition: int = 0, *, replicas: Sequence[str] | None = None
    ) -> None:
        """Give a partition other replicas; returns when the controller has taken note."""
        await self._done(self.verbs.reassign(topic, partition, replicas=replicas))

    async def delete_records(self, topic: str, partition: int = 0, *, before: int = -1) -> None:
        """Delete what is below an offset."""
        await self._done(self.verbs.delete_records(topic, partition, before=before))

    # Records -------------------------------------------------------------------------------------

    async def produce(
        self, topic: str, values: int | Sequence[str | bytes], **options: Any
    ) -> list[Outcome]:
        """As ``Cluster.produce``: returns when every outcome is known, which it is in the end."""
        return await self._done(self.verbs.produce(topic, values, **options), None)

    async def consume(
        self, topic: str, count: int, *, within: float = WITHIN_S, **options: Any
    ) -> list[PolledRecord]:
        """As ``Cluster.consume``: returns the records.

        Raises:
            VerbFailed: there are not so many within so many seconds.
        """
        return await self._done(self.verbs.consume(topic, count, **options), within)

    # Faults --------------------------------------------------------------------------------------

    def crash(self, name: str | None, how: str = "process", *, image: str = "lost") -> None:
        """As ``World.crash``."""
        self.world.crash(str(name), how, image=image)

    def start(self, name: str, *, disk: str = "same") -> None:
        """As ``World.start``."""
        self.world.start(name, disk=disk)

    async def shutdown(self, name: str, within: float = WITHIN_S) -> None:
        """Stop a process in order; returns when it is gone."""
        self.world.shutdown(name)
        await self.wait_for(lambda: not self.world.host(name).is_running, within)

    def pause(self, name: str) -> None:
        """As ``World.pause``."""
        self.world.pause(name)

    def resume(self, name: str) -> None:
        """As ``World.resume``."""
        self.world.resume(name)

    def cut(self, src: str, dst: str, **options: Any) -> str:
        """As ``Cluster.cut``."""
        return self.verbs.cut(src, dst, **options)

    def partition(self, *groups: Sequence[str], **options: Any) -> str:
        """As ``Cluster.partition``."""
        return self.verbs.partition(*groups, **options)

    def heal(self, fault_id: str = "all") -> None:
        """As ``Cluster.heal``."""
        self.verbs.heal(fault_id)


def run(
    main: Callable[[ScriptCluster], Awaitable[_T]],
    config: ClusterConfig | None = None,
    *,
    seed: int = 0,
    scheduler: Scheduler | None = None,
    root: Path | None = None,
    trace: Trace | None = None,
) -> _T:
    """Run a script in a world of its own; returns what it returns. See ``World`` and ``baton``."""
    world = World(config, seed=seed, scheduler=scheduler, root=root, trace=trace)
    return baton.run_script(world, main, ScriptCluster(world))


def _name_of(holds: Callable[[], object]) -> str:
    code = getattr(holds, "__code__", None)
    if code is None:
        return "the condition"
    return f"the condition at {Path(code.co_filename).name}:{code.co_firstlineno}"
