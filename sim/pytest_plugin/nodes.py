"""Faults on nodes that are named, or meant by role: ``b1``, ``leader:orders-0``, ``minority``.

A selector is settled when the verb is called, by the controller's word then, as in scenario files.

Left out: what takes time (``sim.pytest_plugin.blocking``, ``sim.pytest_plugin.awaited``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import ParamSpec, TypeVar, Unpack

from cluster.names import ADMIN, CONTROLLER
from sim.pending import VerbFailed
from sim.running.selection import choose, choose_groups
from sim.scenario.names import Names
from sim.scenario.problems import Refusal
from sim.scenario.selectors import WORDS, Selector, selector
from sim.script_options import CutOptions, PartitionOptions, check_options, node
from sim.verbs import Cluster
from sim.world import World, WorldError

__all__ = ["Strikes", "told_here"]

_P = ParamSpec("_P")
_T = TypeVar("_T")


def told_here(verb: Callable[_P, _T]) -> Callable[_P, _T]:
    """A verb whose refusals are told at the line of the test, and not where they were found."""

    @wraps(verb)
    def told(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        __tracebackhide__ = True
        try:
            return verb(*args, **kwargs)
        except (VerbFailed, WorldError) as error:
            raise error.with_traceback(None) from error.__cause__

    return told


class Strikes:
    """The faults that strike at once.

    Attributes:
        world: for whatever has no verb.
        verbs: the cluster's.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.verbs = Cluster(world)
        self._asked = 0

    def nodes(self, name: str | None) -> list[str]:
        """The nodes that a name or selector means now, at least one.

        Raises:
            WorldError: it means nobody now, or nothing at all.
        """
        return self._chosen(node(name))

    def one(self, name: str) -> str:
        """The one node that is meant.

        Raises:
            WorldError: it is not one.
        """
        found = self._chosen(name)
        if len(found) != 1:
            raise WorldError(f"{name} is {', '.join(found)} now, allowed is one node")
        return found[0]

    @told_here
    def crash(self, name: str | None, how: str = "process", *, image: str = "lost") -> None:
        """End processes without warning."""
        for each in self.nodes(name):
            self.world.crash(each, how, image=image)

    @told_here
    def start(self, name: str | None, *, disk: str = "same") -> None:
        """Start processes where none runs; they take a while until they have joined."""
        for each in self.nodes(name):
            self.world.start(each, disk=disk)

    @told_here
    def pause(self, name: str | None) -> None:
        """Processes handle nothing until ``resume``."""
        for each in self.nodes(name):
            self.verbs.pause(each)

    @told_here
    def resume(self, name: str | None) -> None:
        """Paused processes go on with all that came meanwhile."""
        for each in self.nodes(name):
            self.verbs.resume(each)

    @told_here
    def cut(self, src: str | None, dst: str | None, **options: Unpack[CutOptions]) -> str:
        """Cut the links from some nodes to others; returns the id by which ``heal`` knows it."""
        check_options("cut", options, CutOptions)
        ends = [[self._selector(node(src))], [self._selector(node(dst))]]
        sources, targets = choose_groups(self.world, ends, self._key())
        for found, name in ((sources, src), (targets, dst)):
            if not found:
                raise WorldError(f"{name} is nobody now")
        return self.verbs.cut(sources, targets, **options)

    @told_here
    def partition(self, *groups: Sequence[str], **options: Unpack[PartitionOptions]) -> str:
        """Cut all links between groups of nodes; returns the id by which ``heal`` knows it."""
        check_options("partition", options, PartitionOptions)
        if any(isinstance(group, str) for group in groups):
            return self.verbs.partition(*groups, **options)
        selectors = [[self._selector(node(each)) for each in group] for group in groups]
        return self.verbs.partition(*choose_groups(self.world, selectors, self._key()), **options)

    @told_here
    def heal(self, fault_id: str = "all") -> None:
        """End a fault that is active, by its id, or all."""
        self.verbs.heal(fault_id)

    # Selectors -----------------------------------------------------------------------------------

    def _key(self) -> str:
        """Names this call, for what is drawn."""
        self._asked += 1
        return f"test/{self._asked}"

    def _chosen(self, name: str) -> list[str]:
        found = choose(self.world, self._selector(name), self._key())
        if not found:
            raise WorldError(f"{name} is nobody now")
        return found

    def _selector(self, name: str) -> Selector:
        if not isinstance(name, str):
            raise WorldError(f"node is {name!r}, allowed is a name or a selector")
        if name in self.world.hosts or (":" not in name and name not in WORDS):
            # What there is not is refused by the verb, as ever.
            return Selector("node", node=name)
        try:
            return selector(name, self._names())
        except Refusal as refusal:
            hint = f" ({refusal.hint})" if refusal.hint else ""
            allowed = f", allowed are {', '.join(refusal.allowed)}" if refusal.allowed else ""
            raise WorldError(f"node is {name!r}: {refusal.text}{allowed}{hint}") from None

    def _names(self) -> Names:
        image = self.world.view().image()
        servers = (*self.world.config.names, CONTROLLER, ADMIN)
        return Names(
            brokers=self.world.config.brokers,
            clients={name: "" for name in self.world.hosts if name not in servers},
            topics={
                name: len(list(image.partitions_of(image.topic_ids[name])))
                for name in sorted(image.topic_ids)
            },
        )
