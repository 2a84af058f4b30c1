"""A script: a task of trio that runs only while it holds the baton.

The coroutine of a script is driven by a gate. What the coroutine awaits goes through to trio as it
is; when trio lets the task go on, the gate first waits for the baton. So whatever wakes scripts, an
event, a channel, a deadline or a cancellation of many at once, and in whatever order trio does it,
they go on one at a time in the order of the timeline.

Left out: handing over the baton (``sim.baton_run``).
"""

from __future__ import annotations

import types
from collections.abc import Awaitable, Callable, Coroutine, Generator
from typing import Any, Final, NoReturn, Protocol

import trio
from attrs import define, field

from sim.baton_errors import BatonError
from sim.baton_frames import awaited
from sim.timeline import Token

__all__ = ["Holder", "Script", "Wait", "body", "call"]

_KILLS_MAX: Final = 1_000


class Holder(Protocol):
    """What a gate asks of the run."""

    def arrive(self, script: Script) -> None:
        """The script may go on and waits for the baton."""

    def ended(self, script: Script) -> None:
        """The script has ended."""

    def waits_for_real(self, script: Script, what: str) -> None:
        """The script waits for something outside the world."""


@define(eq=False)
class Wait:
    """One wait of a script for the world.

    Attributes:
        predicate: what is waited for; None for a time.
        result: whether the predicate held.
        error: what the predicate raised.
        raise_cancel: raises the cancellation that ended the wait.
    """

    predicate: Callable[[], object] | None = None
    result: bool = True
    error: Exception | None = None
    raise_cancel: Callable[[], NoReturn] | None = None


@define(eq=False)
class Script:
    """One simulated task.

    Attributes:
        number: from 1, in the order of starting; the main script is 1.
        origin: of its wake-ups on the timeline. Padded, since origins are compared as text.
        wait: what it waits for where that is the world's; None at the gate and in trio's waits.
        wake: the entry that gives it the baton, once it is due.
        timer: the entry that ends its wait by time.
        forced: raised in its coroutine when it goes on next.
        last_turns: how often it got the baton since the run failed.
        is_given_up: it does not go on any more.
    """

    number: int
    name: str
    holder: Holder
    origin: str = field(init=False)
    task: trio.lowlevel.Task | None = None
    coroutine: Coroutine[Any, Any, object] | None = None
    has_baton: bool = False
    wait: Wait | None = None
    wake: Token | None = None
    timer: Token | None = None
    forced: BatonError | None = None
    last_turns: int = 0
    is_given_up: bool = False

    def __attrs_post_init__(self) -> None:
        self.origin = f"script:{self.number:04d}"

    def __str__(self) -> str:
        return f"script {self.number} {self.name!r}"


async def body(
    script: Script, function: Callable[..., Awaitable[object]], args: tuple[object, ...]
) -> object:
    """The coroutine of a script's task."""
    script.coroutine = call(function, args)
    try:
        return await _gate(script, script.coroutine)
    finally:
        script.coroutine = None
        script.holder.ended(script)


async def call(function: Callable[..., Awaitable[object]], args: tuple[object, ...]) -> object:
    """Await what a user hands over as a script.

    Raises:
        TypeError: it is not async.
    """
    awaitable = function(*args)
    if not isinstance(awaitable, Awaitable):
        raise TypeError(
            f"a script is an async function, to be awaited, and this one returned {awaitable!r:.60}"
        )
    return await awaitable


@types.coroutine
def _gate(script: Script, coroutine: Coroutine[Any, Any, object]) -> Generator[Any, Any, object]:
    """Drive a coroutine, but only with the baton."""
    value: Any = None
    error: BaseException | None = None
    while True:
        if not script.has_baton:
            script.holder.arrive(script)
            yield from trio.lowlevel.wait_task_rescheduled(_keep).__await__()
        if script.is_given_up:
            _kill(coroutine)
            return None
        if script.forced is not None:
            error, script.forced = script.forced, None
        try:
            trap = coroutine.send(value) if error is None else coroutine.throw(error)
        except StopIteration as stop:
            return stop.value
        finally:
            script.has_baton = False
            error = None
        if script.wait is None:
            found = awaited(coroutine)
            if found.is_real:
                script.holder.waits_for_real(script, str(found))
        try:
            value = yield trap
        except GeneratorExit:
            raise
        except BaseException as exc:  # noqa: BLE001  trio throws where it knows no trap
            error = exc


class _GivenUp(BaseException):
    """Ends a coroutine that nothing else ends."""


def _kill(coroutine: Coroutine[Any, Any, object]) -> None:
    """End a coroutine that may wait once more in each block that it leaves.

    Not by ``close``: that takes one such wait for a refusal, and leaves what awaits it half done.
    """
    for _ in range(_KILLS_MAX):
        try:
            coroutine.throw(_GivenUp())
        except BaseException:  # noqa: BLE001  nobody is there to hear of it
            return


def _keep(raise_cancel: Callable[[], NoReturn]) -> trio.lowlevel.Abort:
    """A cancellation does not take a script out of the line: it hears of it at its next wait."""
    return trio.lowlevel.Abort.FAILED
