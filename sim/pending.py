"""What takes virtual time: it says when it is done, and then what came of it.

Left out: beginning it (``sim.verbs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from cluster.consumer_events import PolledRecord
from cluster.message import Message
from cluster.names import ADMIN
from cluster.outcomes import Outcome
from sim.hosts import Host
from sim.operators import Operator, errors_of
from sim.world import World, WorldError

__all__ = ["Asked", "Consumed", "Pending", "Produced", "TopicCreated", "VerbFailed"]

_T = TypeVar("_T")
WAIT_US: Final = 60_000_000


class VerbFailed(Exception):
    """What was asked for was refused, or did not come about in time; says what and why."""


class Pending(Generic[_T]):
    """Something that takes virtual time. Subclasses say when it is done."""

    def __init__(self, world: World, what: str) -> None:
        self.world = world
        self.what = what

    def is_done(self) -> bool:
        """Whether ``result`` is there."""
        raise NotImplementedError

    def result(self) -> _T:
        """What came of it.

        Raises:
            VerbFailed: it was refused.
        """
        raise NotImplementedError

    def wait(self, within_us: int = WAIT_US) -> _T:
        """Let the world go on until this is done.

        Raises:
            VerbFailed: it was refused, or is not done in time.
        """
        if not self.world.run_until_true(self.is_done, within_us):
            raise VerbFailed(f"{self.what} is not done after {within_us / 1e6:g} s")
        return self.result()


class Asked(Pending[Message]):
    """A request of the operator, until it is answered."""

    def __init__(self, world: World, what: str, number: int) -> None:
        super().__init__(world, what)
        self._number = number

    def is_done(self) -> bool:
        return self._number in _operator(self.world).answers

    def result(self) -> Message:
        answer = _operator(self.world).answers[self._number]
        errors = _errors(answer)
        if errors:
            raise VerbFailed(f"{self.what}: {', '.join(errors)}")
        return answer


class TopicCreated(Asked):
    """A topic that is being created, until every partition has a leader that leads."""

    def __init__(self, world: World, what: str, number: int, topic: str) -> None:
        super().__init__(world, what, number)
        self._topic = topic

    def is_done(self) -> bool:
        if not super().is_done():
            return False
        answer = _operator(self.world).answers[self._number]
        return bool(_errors(answer)) or self.world.view().is_led(self._topic)


class Produced(Pending[list[Outcome]]):
    """Records under way, until the outcome of each is known."""

    def __init__(self, world: World, what: str, host: Host, operations: Sequence[int]) -> None:
        super().__init__(world, what)
        assert host.process is not None
        incarnation = host.process.incarnation
        self._keys = [(incarnation, operation) for operation in operations]
        self._outcomes = world.producers[host.name].claim(self._keys)

    def is_done(self) -> bool:
        return len(self._outcomes) == len(self._keys)

    def result(self) -> list[Outcome]:
        """One outcome for each record, in their order; none raises."""
        return [self._outcomes[key] for key in self._keys]


class Consumed(Pending[list[PolledRecord]]):
    """A consumer that reads, until it has as many records as were asked for."""

    def __init__(self, world: World, what: str, host: Host, count: int) -> None:
        super().__init__(world, what)
        self._notes = world.consumers[host.name]
        self._begin = self._notes.wanted
        self._notes.wanted = self._end = self._begin + count

    def is_done(self) -> bool:
        return len(self._notes.records) >= self._end

    def result(self) -> list[PolledRecord]:
        return self._notes.records[self._begin : self._end]


def _operator(world: World) -> Operator:
    process = world.hosts[ADMIN].process
    if process is None or not isinstance(process.machine, Operator):
        raise WorldError(f"{ADMIN} is {world.hosts[ADMIN].status}")
    return process.machine


def _errors(answer: Message) -> list[str]:
    """What went wrong, and where."""
    return [f"{whose} {code.name}".strip() for whose, code in errors_of(answer) if code.number]
