"""A cluster for async tests: the one of scripts, where selectors name nodes, too.

Faults strike at once, as in scripts; their results may be awaited all the same, so that every verb
of a test reads alike: ``await cluster.crash("leader:orders-0")``.

Left out: running such tests (``sim.pytest_plugin.scripted``).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any, Unpack

from sim.pytest_plugin.nodes import Strikes
from sim.script_options import CutOptions, PartitionOptions, us_or_ever
from sim.scripts import WITHIN_S, ScriptCluster
from sim.world import World

__all__ = ["AwaitedCluster", "Done", "FaultId"]


class Done:
    """What has been done already; awaiting it takes no time."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


class FaultId(str):
    """The id of a fault that is active already; awaiting it gives itself and takes no time."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, str]:
        yield from ()
        return str(self)


class AwaitedCluster(ScriptCluster):
    """See the module, and ``sim.scripts.ScriptCluster`` for what each verb takes."""

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._strikes = Strikes(world)

    async def advance(self, seconds: float) -> None:
        """Let virtual time pass, as ``sleep`` does."""
        await self.sleep(seconds)

    async def elect(
        self, topic: str, partition: int = 0, *, to: str | None = None, kind: str | None = None
    ) -> None:
        """Ask for an election; returns when the controller has decided it."""
        to = None if to is None else self._strikes.one(to)
        await super().elect(topic, partition, to=to, kind=kind)

    async def shutdown(self, name: str | None, within: float = WITHIN_S) -> None:
        """Stop processes in order; returns when they are gone."""
        self._check_here("shutdown")
        within_us = us_or_ever("within", within)
        for pending in [self.verbs.shutdown(each) for each in self._strikes.nodes(name)]:
            await self._done(pending, within_us)

    # Faults, which may be awaited -----------------------------------------------------------------

    def crash(  # type: ignore[override]
        self, name: str | None, how: str = "process", *, image: str = "lost"
    ) -> Done:
        """End processes without warning."""
        self._strikes.crash(name, how, image=image)
        return Done()

    def start(self, name: str | None, *, disk: str = "same") -> Done:  # type: ignore[override]
        """Start processes where none runs."""
        self._strikes.start(name, disk=disk)
        return Done()

    def pause(self, name: str | None) -> Done:  # type: ignore[override]
        """Processes handle nothing until ``resume``."""
        self._strikes.pause(name)
        return Done()

    def resume(self, name: str | None) -> Done:  # type: ignore[override]
        """Paused processes go on with all that came meanwhile."""
        self._strikes.resume(name)
        return Done()

    def cut(self, src: str | None, dst: str | None, **options: Unpack[CutOptions]) -> FaultId:
        """Cut the links from some nodes to others; returns the id by which ``heal`` knows it."""
        return FaultId(self._strikes.cut(src, dst, **options))

    def partition(self, *groups: Sequence[str], **options: Unpack[PartitionOptions]) -> FaultId:
        """Cut all links between groups of nodes; returns the id by which ``heal`` knows it."""
        return FaultId(self._strikes.partition(*groups, **options))

    def heal(self, fault_id: str = "all") -> Done:  # type: ignore[override]
        """End a fault that is active, by its id, or all."""
        self._strikes.heal(fault_id)
        return Done()
