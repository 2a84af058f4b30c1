"""Async tests in virtual time: a test that asks for ``scripted_cluster`` is run as a script.

The test and its async fixtures are one script of a run of ``sim.baton``, in the world that the
fixture has made; pytest-trio, which would run them in a loop of its own, hands the item over. Sync
fixtures, parametrization and marks are pytest's as ever. Of pytest-trio there are async fixtures,
with and without ``yield``, and ``nursery``, which starts scripts here. Fixtures are set up one by
one, in the order of the test's arguments, and end in the opposite one.

Left out: clocks and instruments of the test's own, which are refused: the world has the clock.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Any

import pytest
import trio

from sim import baton
from sim.pytest_plugin.awaited import AwaitedCluster

__all__ = ["refusal", "run_test"]

_ADVICE = (
    "write a plain test that calls sim.scripts.run(main, config, seed=...) "
    "with an async def main(cluster) inside"
)


def refusal(function: object, fixture: str) -> str:
    """Why a test cannot have a fixture; empty if it can."""
    name = getattr(function, "__name__", "the test")
    if getattr(function, "is_hypothesis_test", False):
        return (
            f"{name} is a test of Hypothesis, whose examples would share one {fixture}, "
            f"each going on where the last one stopped: {_ADVICE}"
        )
    if fixture == "scripted_cluster" and not inspect.iscoroutinefunction(function):
        return f"{name} is no async function, and scripted_cluster is for those: use cluster"
    return ""


def run_test(
    function: Callable[..., Awaitable[object]],
    arguments: Mapping[str, Any],
    cluster: AwaitedCluster,
) -> None:
    """Run an async test as a script, with its fixtures.

    Args:
        arguments: its fixtures' values, those of pytest-trio not set up yet.

    Raises:
        BaseException: whatever the test or a fixture raises; what lies above them on the stack is
            taken off the traceback.
    """
    __tracebackhide__ = True
    _check(arguments)
    try:
        baton.run_script(cluster.world, _main, function, arguments)
    except BaseException as error:  # noqa: BLE001  it goes on as it is
        raise error.with_traceback(_from_user(error.__traceback__)) from error.__cause__


def _check(arguments: Mapping[str, Any]) -> None:
    """Nothing of the test's own counts time."""
    for name, value in arguments.items():
        if isinstance(value, trio.abc.Clock | trio.abc.Instrument):
            raise pytest.fail.Exception(
                f"the fixture {name} is a clock or instrument of trio, and a test with "
                "scripted_cluster has the world's: leave it out, trio.sleep and trio.move_on_after "
                "count virtual time here",
                pytrace=False,
            )


def _from_user(traceback: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame that is neither ours nor trio's; all where none is."""
    found = traceback
    while found is not None:
        module = str(found.tb_frame.f_globals.get("__name__", ""))
        if not module.startswith(("sim.baton", __name__, "trio.", "contextlib")):
            return found
        found = found.tb_next
    return traceback


# The script --------------------------------------------------------------------------------------


async def _main(function: Callable[..., Awaitable[object]], arguments: Mapping[str, Any]) -> None:
    async with AsyncExitStack() as stack:
        values = await _resolved(stack, arguments, {})
        await function(**values)


async def _resolved(
    stack: AsyncExitStack, arguments: Mapping[str, Any], known: dict[Any, Any]
) -> dict[str, Any]:
    """The arguments with async fixtures set up, each once; they end with the stack."""
    found = {}
    for name, value in arguments.items():
        if _is_placeholder(value):
            if value not in known:
                known[value] = await _set_up(stack, name, value, known)
            value = known[value]
            if _is_nursery(value):
                value = await stack.enter_async_context(_Nursery())
        found[name] = value
    return found


async def _set_up(stack: AsyncExitStack, name: str, fixture: Any, known: dict[Any, Any]) -> Any:
    values = await _resolved(stack, fixture._pytest_kwargs, known)
    made: Any = fixture._func(**values)
    if isinstance(made, AsyncGenerator):
        value = await anext(made)
        stack.push_async_exit(_Ending(name, made))
        return value
    if isinstance(made, Generator):
        value = next(made)
        stack.push_async_exit(_Ending(name, made))
        return value
    return await made if inspect.isawaitable(made) else made


class _Ending:
    """Lets a fixture that has yielded go on to its end."""

    def __init__(
        self, name: str, generator: AsyncGenerator[Any, Any] | Generator[Any, Any, Any]
    ) -> None:
        self._name = name
        self._generator = generator

    async def __aenter__(self) -> None:
        """Nothing: the fixture is set up already."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Tests that fail are no business of fixtures; what cancelled the test may be theirs."""
        cancelled = error if error is not None and _is_cancelled(error) else None
        going_on = self._generator
        try:
            if isinstance(going_on, AsyncGenerator):
                await (anext(going_on) if cancelled is None else going_on.athrow(cancelled))
            elif cancelled is None:
                next(going_on)
            else:
                going_on.throw(cancelled)
        except (StopAsyncIteration, StopIteration):
            if cancelled is not None:
                raise RuntimeError(f"the fixture {self._name} cancelled the test") from None
            return
        raise RuntimeError(f"the fixture {self._name} yields twice, allowed is once")


class _Nursery(baton.Nursery):
    """The fixture ``nursery``: what it started is cancelled when the test is over."""

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool | None:
        self.cancel_scope.cancel()
        if error is not None and not _is_cancelled(error):
            # The test's own failure stays what it is, not one of a group.
            await super().__aexit__(None, None, None)
            return False
        return await super().__aexit__(kind, error, traceback)


def _is_cancelled(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return error.split(trio.Cancelled)[1] is None
    return isinstance(error, trio.Cancelled)


def _of_pytest_trio(name: str) -> Any:
    """A class of pytest-trio, if that is there."""
    return getattr(sys.modules.get("pytest_trio.plugin"), name, None)


def _is_placeholder(value: object) -> bool:
    """Whether it is a fixture of pytest-trio that waits to be set up in the loop."""
    kind = _of_pytest_trio("TrioFixture")
    return kind is not None and isinstance(value, kind)


def _is_nursery(value: object) -> bool:
    kind = _of_pytest_trio("NURSERY_FIXTURE_PLACEHOLDER")
    return kind is not None and value is kind
