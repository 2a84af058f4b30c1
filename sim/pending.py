"""What takes virtual time: it says when it is done, and then what came of it.

Left out: beginning it (``sim.verbs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Generic, TypeVar

from cluster.consumer_events import PolledRecord
from cluster.errors import ErrorCode
from cluster.message import Message
from cluster.names import ADMIN
from cluster.outcomes import Outcome, OutcomeKind
from sim.hosts import Host
from sim.operators import Operator, errors_of
from sim.world import World, WorldError

__all__ = ["Asked", "Consumed", "Pending", "Produced", "ShutDown", "TopicCreated", "VerbFailed"]

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
            VerbFailed: it was refused, or is not done.
        """
        if not self.is_done():
            state = self.state()
            raise VerbFailed(f"{self.what} is not done{': ' if state else ''}{state}")
        return self._found()

    def _found(self) -> _T:
        """What came of it, once it is done."""
        raise NotImplementedError

    def state(self) -> str:
        """How far it is, in words, for who waits in vain."""
        return ""

    def give_up(self) -> None:
        """Nobody waits for it any more. What it began goes on."""

    def late(self, within_us: int) -> VerbFailed:
        """It is not done after so long: give up. Returns what to raise."""
        state = self.state()
        self.give_up()
        after = f"{self.what} is not done after {within_us / 1e6:g} s"
        return VerbFailed(f"{after}: {state}" if state else after)

    def wait(self, within_us: int = WAIT_US) -> _T:
        """Let the world go on until this is done.

        Raises:
            VerbFailed: it was refused, or is not done in time.
        """
        if not self.world.run_until_true(self.is_done, within_us):
            raise self.late(within_us)
        return self.result()


class Asked(Pending[Message]):
    """A request of the operator, until it is answered."""

    def __init__(self, world: World, what: str, to: str, number: int) -> None:
        super().__init__(world, what)
        self._to = to
        self._number = number

    def state(self) -> str:
        status = f"{self._to} is {self.world.host(self._to).status}"
        refusal = _operator(self.world).refusals.get(self._number)
        return status if refusal is None else f"{status}, {', '.join(_errors(refusal))}"

    def is_done(self) -> bool:
        return self._number in _operator(self.world).answers

    def _found(self) -> Message:
        answer = _operator(self.world).answers[self._number]
        errors = _errors(answer)
        if errors:
            raise VerbFailed(f"{self.what}: {', '.join(errors)}")
        return answer


class TopicCreated(Asked):
    """A topic that is being created, until every partition has a leader that leads."""

    def __init__(self, world: World, what: str, to: str, number: int, topic: str) -> None:
        super().__init__(world, what, to, number)
        self._topic = topic

    def state(self) -> str:
        if super().is_done():
            return f"not every partition of {self._topic} has a leader that leads"
        return super().state()

    def is_done(self) -> bool:
        if not super().is_done():
            return False
        answer = _operator(self.world).answers[self._number]
        return bool(_errors(answer)) or self.world.view().is_led(self._topic)


class Produced(Pending[list[Outcome]]):
    """Records under way, until the outcome of each is known."""

    def __init__(self, world: World, what: str, host: Host, operations: Sequence[int]) -> None:
        super().__init__(world, what)
        self._host = host
        self._incarnation = host.starts - 1
        self._keys = [(self._incarnation, operation) for operation in operations]
        self._outcomes = world.producers[host.name].claim(self._keys)

    @property
    def operations(self) -> list[tuple[str, int]]:
        """Client and operation of each record, in their order."""
        return [(self._host.name, operation) for _, operation in self._keys]

    def is_done(self) -> bool:
        return len(self._outcomes) == len(self._keys) or self._has_ended()

    def _has_ended(self) -> bool:
        """Whether the client's process is gone, and its outcomes with it."""
        process = self._host.process
        return process is None or process.incarnation != self._incarnation

    def state(self) -> str:
        known = f"{len(self._outcomes)} of {len(self._keys)} outcomes are known"
        return f"{known}, {self._host.name} is {self._host.status}"

    def _found(self) -> list[Outcome]:
        """One outcome for each record, in their order; none raises.

        Those that a client took with it when it ended are unknown.
        """
        return [
            self._outcomes.get(key)
            or Outcome(key[1], OutcomeKind.UNKNOWN, None, error_code=ErrorCode.REQUEST_TIMED_OUT)
            for key in self._keys
        ]


class Consumed(Pending[list[PolledRecord]]):
    """A consumer that reads, until it has as many records as were asked for."""

    def __init__(
        self, world: World, what: str, host: Host, place: tuple[str, int], count: int
    ) -> None:
        super().__init__(world, what)
        self._host = host
        self._notes = world.consumers[host.name]
        self._reading = self._notes.begin(place, count)

    def is_done(self) -> bool:
        return not self._reading.missing

    def give_up(self) -> None:
        """What it has read so far is there for the client's next one."""
        self._notes.give_up(self._reading)

    def state(self) -> str:
        topic, number = self._reading.place
        read = f"{len(self._reading.records)} are read"
        if self._host.status != "running":
            return f"{read}, {self._host.name} is {self._host.status}"
        if self.world.view().partition(topic, number) is None:
            return f"{read}, there is no partition {topic}-{number} now"
        return read

    def _found(self) -> list[PolledRecord]:
        return list(self._reading.records)


class ShutDown(Pending[None]):
    """A process that stops in order, until it is gone."""

    def __init__(self, world: World, host: Host) -> None:
        super().__init__(world, f"shutdown of {host.name}")
        self._host = host
        self._starts = host.starts

    def is_done(self) -> bool:
        return self._host.process is None or self._host.starts != self._starts

    def state(self) -> str:
        return f"it is {self._host.status}"

    def _found(self) -> None:
        """Nothing comes of it."""


def _operator(world: World) -> Operator:
    process = world.hosts[ADMIN].process
    if process is None or not isinstance(process.machine, Operator):
        raise WorldError(f"{ADMIN} is {world.hosts[ADMIN].status}")
    return process.machine


def _errors(answer: Message) -> list[str]:
    """What went wrong, and where."""
    return [f"{whose} {code.name}".strip() for whose, code in errors_of(answer) if code.number]
