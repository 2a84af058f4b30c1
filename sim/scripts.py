"""Scripts: ``async def main(cluster)`` drives a cluster in virtual time.

    from sim.scripts import ClusterConfig, OutcomeKind, run

    async def main(cluster):
        await cluster.create_topic("orders", replicas=3)
        outcomes = await cluster.produce("orders", 5)
        assert all(outcome.kind is OutcomeKind.ACKED for outcome in outcomes)
        cluster.crash(cluster.view.leader("orders"))
        await cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")
        cluster.start("b1")
        return [record.value for record in await cluster.consume("orders", 5)]

    values = run(main, ClusterConfig(brokers=3), seed=7)

Await what takes time: sleep, wait_for, produce, consume, shutdown, and what the operator asks for
(create_topic, elect, ...). Faults strike at once and are not awaited: crash, start, pause, resume,
cut, partition, heal. Nodes are ``b1``, ``b2``, ... (brokers), ``c1`` (controller), and clients by
the names that they are given (``p1`` produces, ``k1`` consumes, if none is).

Cancelling a verb, as ``trio.move_on_after`` does, leaves what it began under way, like a client
that is no longer listened to; so does a verb that fails because its time is over. Only consume
gives back the records that it had read: the client's next one has them.

Several scripts: ``async with cluster.nursery() as nursery: nursery.start_soon(writer, cluster)``;
it takes no named arguments, ``functools.partial`` does. What else scripts may and must not do
stands in ``sim.baton``.

Errors: ``VerbFailed`` (refused, or not done in time), ``WorldError`` (cannot be done as the world
is), ``sim.baton_errors`` (mistakes of the script), and what a machine raises, with a note that says
where and when. A record that is refused raises nothing: see the outcomes of ``produce``.

Left out: judging a run.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, Unpack

import trio

from cluster.consumer_events import PolledRecord
from cluster.outcomes import Outcome, OutcomeKind
from sim import baton
from sim.cluster_config import ClusterConfig
from sim.pending import Pending, VerbFailed
from sim.schedulers import Scheduler
from sim.script_options import (
    MICROSECONDS,
    ConsumeOptions,
    CutOptions,
    PartitionOptions,
    ProduceOptions,
    check_options,
    node,
    us,
    us_or_ever,
)
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.views import View
from sim.world import World, WorldError

__all__ = [
    "ClusterConfig",
    "OutcomeKind",
    "ScriptCluster",
    "VerbFailed",
    "WorldError",
    "run",
    "run_in",
]

_T = TypeVar("_T")
WITHIN_S: Final = 60.0


class ScriptCluster:
    """The verbs of ``sim.verbs.Cluster``, for scripts; times are in seconds of virtual time.

    Attributes:
        world: for whatever has no verb. It must not be stepped by a script.
        verbs: what this class awaits.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.verbs = Cluster(world)

    @property
    def now(self) -> float:
        """Virtual time in seconds."""
        return self.world.now_us / MICROSECONDS

    @property
    def view(self) -> View:
        """The cluster as it is."""
        return self.world.view()

    # Time ----------------------------------------------------------------------------------------

    async def sleep(self, seconds: float) -> None:
        """Let virtual time pass; with 0 the scripts that are due now go first."""
        sleep_us = us("seconds", seconds)
        self._check_here("sleep")
        await baton.sleep_us(sleep_us)

    async def wait_for(self, holds: Callable[[], object], within: float = WITHIN_S) -> None:
        """Wait until a condition holds.

        Args:
            holds: a function without arguments, as ``lambda: cluster.view.leader("t") == "b2"``.
                It must not change the world, and is asked after each event.
            within: ``math.inf`` for ever.

        Raises:
            VerbFailed: it does not, within so many seconds.
        """
        if not callable(holds):
            raise TypeError(f"holds is {holds!r}, allowed is a function: lambda: ...")
        within_us = us_or_ever("within", within)
        self._check_here("wait_for")
        if not await baton.wait_for(holds, within_us):
            raise VerbFailed(f"{_name_of(holds)} does not hold after {within:g} s")

    def nursery(self) -> baton.Nursery:
        """Starts further scripts: ``async with cluster.nursery() as nursery``."""
        return baton.nursery()

    def _check_here(self, verb: str) -> None:
        """A script of this world calls."""
        if baton.world_of(verb) is not self.world:
            raise baton.Misuse(
                f"{verb} is called on the cluster of another world than the one that this script "
                "runs in: each world is driven by a run of its own"
            )

    async def _done(self, pending: Pending[_T], within_us: int | None) -> _T:
        try:
            is_done = await baton.wait_for(pending.is_done, within_us)
        except trio.Cancelled:
            pending.give_up()
            raise
        if not is_done:
            assert within_us is not None
            raise pending.late(within_us)
        return pending.result()

    async def _asked(self, verb: str, *args: Any, **options: Any) -> None:
        self._check_here(verb)
        pending: Pending[object] = getattr(self.verbs, verb)(*args, **options)
        await self._done(pending, round(WITHIN_S * MICROSECONDS))

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
        """Create a topic; returns when every partition is led.

        Args:
            replicas: of each partition; by default 3, or as many as there are brokers.
            assignments: the replicas of each partition by name, preferred leader first, as
                ``[["b1", "b2", "b3"]]``; instead of ``partitions`` and ``replicas``.
            config: as Kafka spells it: ``{"min.insync.replicas": "2"}``.
        """
        await self._asked(
            "create_topic",
            name,
            partitions=partitions,
            replicas=replicas,
            assignments=assignments,
            config=config,
        )

    async def delete_topic(self, name: str) -> None:
        """Delete a topic."""
        await self._asked("delete_topic", name)

    async def configure(self, name: str, values: Mapping[str, str | None]) -> None:
        """Change the configuration of a topic or broker; None stands for the default."""
        await self._asked("configure", name, values)

    async def elect(
        self, topic: str, partition: int = 0, *, to: str | None = None, kind: str | None = None
    ) -> None:
        """Ask for an election; returns when the controller has decided it.

        Args:
            to: a replica that is made leader, in sync or not: a forced, unclean election.
            kind: ``preferred`` (the default without ``to``): the first replica leads again, if it
                is in sync; ``unclean``: a partition that nobody leads is led by who is there.

        Raises:
            VerbFailed: it is not needed, or nobody can be elected.
        """
        await self._asked("elect", topic, partition, to=to, kind=kind)

    async def reassign(
        self, topic: str, partition: int = 0, *, replicas: Sequence[str] | None = None
    ) -> None:
        """Give a partition other replicas; returns when the controller has taken note.

        Without ``replicas`` a reassignment under way is cancelled.
        """
        await self._asked("reassign", topic, partition, replicas=replicas)

    async def delete_records(self, topic: str, partition: int = 0, *, before: int = -1) -> None:
        """Delete what is below an offset; -1 stands for the high watermark."""
        await self._asked("delete_records", topic, partition, before=before)

    # Records -------------------------------------------------------------------------------------

    async def produce(
        self, topic: str, values: int | Sequence[str | bytes], **options: Unpack[ProduceOptions]
    ) -> list[Outcome]:
        """Send records; returns one outcome for each, in their order, when all are known.

        Args:
            values: the records' values, or how many: then they are ``CLIENT-NUMBER``, each once.
            acks: ``"all"`` (the default), 1 or 0.
            partition: 0 by default; None leaves the choice to keys and batches.
            keys: one for each value.
            batch: records in one batch, at most; 1 by default.
            timeout: seconds until an outcome is given up, 30 by default; whole milliseconds. A
                request waits for its answer as long, at most 30 s: only with a longer timeout
                does a client turn from a leader that is silent to the next one.
            idempotence: by default on with acks all, else off.
            client: who sends, ``p1`` by default. It is started when it is first named; with other
                options of a producer (acks, batch, timeout, idempotence) it is another one, whose
                name gets a number: ``p1.2``.

        Raises:
            VerbFailed: outcomes are not known a minute after the timeout, as of a paused client.
        """
        self._check_here("produce")
        check_options("produce", options, ProduceOptions)
        more: dict[str, Any] = {**options}
        timeout_us = us("timeout", more.pop("timeout", 30.0))
        pending = self.verbs.produce(topic, values, timeout_us=timeout_us, **more)
        return await self._done(pending, timeout_us + round(WITHIN_S * MICROSECONDS))

    async def consume(
        self,
        topic: str,
        count: int,
        *,
        within: float = WITHIN_S,
        **options: Unpack[ConsumeOptions],
    ) -> list[PolledRecord]:
        """Read so many records of one partition, in order.

        Args:
            partition: 0 by default.
            offset: where to begin; by default where this client stands, else by ``reset``.
            reset: ``earliest`` (the default), ``latest`` or ``none``.
            group: under which positions are committed; none by default.
            client: who reads, ``k1`` by default; named as in ``produce``.

        Raises:
            VerbFailed: there are not so many within so many seconds.
        """
        self._check_here("consume")
        check_options("consume", options, ConsumeOptions)
        within_us = us_or_ever("within", within)
        return await self._done(self.verbs.consume(topic, count, **options), within_us)

    # Faults --------------------------------------------------------------------------------------

    def crash(self, name: str | None, how: str = "process", *, image: str = "lost") -> None:
        """End a process without warning.

        Args:
            how: ``process`` keeps the page cache, ``power`` takes what the image says.
            image: of the disk behind a power loss: ``lost``, ``kept``, ``drawn`` or a crash mode.
        """
        self.world.crash(node(name), how, image=image)

    def start(self, name: str | None, *, disk: str = "same") -> None:
        """Start a process where none runs; it takes a while until it has joined.

        Args:
            disk: ``same``, ``wiped``, or the name of a copy that ``world.copy_disk`` made.
        """
        self.world.start(node(name), disk=disk)

    async def shutdown(self, name: str | None, within: float = WITHIN_S) -> None:
        """Stop a process in order; returns when it is gone.

        Raises:
            VerbFailed: it is not, within so many seconds.
        """
        self._check_here("shutdown")
        within_us = us_or_ever("within", within)
        await self._done(self.verbs.shutdown(node(name)), within_us)

    def pause(self, name: str | None) -> None:
        """A process handles nothing until ``resume``: a long garbage collection."""
        self.verbs.pause(node(name))

    def resume(self, name: str | None) -> None:
        """A paused process goes on with all that came meanwhile."""
        self.verbs.resume(node(name))

    def cut(self, src: str | None, dst: str | None, **options: Unpack[CutOptions]) -> str:
        """Cut the link from one node to another; returns the id by which ``heal`` knows it.

        Args:
            only: names of messages (``["Fetch"]``, ``["FetchRequest"]``); all by default.
            both: the way back too.
            in_flight: what becomes of what is under way: ``drop``, ``hold`` or ``deliver``.
            fault_id: an id of your own.
        """
        check_options("cut", options, CutOptions)
        return self.verbs.cut(node(src), node(dst), **options)

    def partition(self, *groups: Sequence[str], **options: Unpack[PartitionOptions]) -> str:
        """Cut all links between groups of nodes, as ``partition(["b1"], ["b2", "b3", "c1"])``.

        Nodes in no group keep their links, so clients reach all. Returns an id; options as in
        ``cut``.
        """
        check_options("partition", options, PartitionOptions)
        return self.verbs.partition(*groups, **options)

    def heal(self, fault_id: str = "all") -> None:
        """End a fault that is active, by its id, or all."""
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
    """Run a script in a world of its own; returns what it returns.

    Args:
        seed, scheduler, root, trace: as ``World`` has them. ``cluster.world.trace.digest()`` names
            what has happened; ``Trace("events", keeps_lines=True)`` keeps it.
    """
    world = World(config, seed=seed, scheduler=scheduler, root=root, trace=trace)
    return run_in(world, main)


def run_in(world: World, main: Callable[[ScriptCluster], Awaitable[_T]]) -> _T:
    """Run a script in a world, from where it is; the world is there behind it."""
    return baton.run_script(world, main, ScriptCluster(world))


def _name_of(holds: Callable[[], object]) -> str:
    code = getattr(holds, "__code__", None)
    if code is None:
        return "the condition"
    return f"the condition at {Path(code.co_filename).name}:{code.co_firstlineno}"
