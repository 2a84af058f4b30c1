"""What a suspended coroutine waits for, and where: read off its chain of frames.

A wait is real when a function of trio is on the chain whose module is not one of those that wait
for other tasks or for trio's clock only. Those modules are named by functions of trio's public
interface that live in them.

Left out: awaitables that hide their coroutine in an iterator of their own: the chain ends there.
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from types import FrameType
from typing import Any, Final

import trio
import trio.testing
from attrs import frozen

__all__ = ["Awaited", "awaited"]

_VIRTUAL: Final = frozenset(
    inspect.unwrap(function).__globals__["__name__"]
    for function in (
        trio.Event.wait,
        trio.MemoryReceiveChannel.receive,
        trio.StapledStream.send_all,
        trio.abc.ReceiveChannel.__anext__,
        trio.aclose_forcefully,
        trio.lowlevel.ParkingLot.park,
        trio.lowlevel.checkpoint,
        trio.lowlevel.wait_task_rescheduled,
        trio.sleep,
        trio.testing.MemoryReceiveStream.receive_some,
        trio.testing.Sequencer.__call__,
    )
)
_GATE: Final = frozenset({"sim.baton_run", "sim.baton_tasks"})
"""What each script begins with."""


@frozen
class Awaited:
    """What is awaited, in words, and the place of the caller that awaits it."""

    what: str
    file: str
    line: int
    is_real: bool

    def __str__(self) -> str:
        return f"{self.what} at {self.file}:{self.line}"


def awaited(coroutine: object) -> Awaited:
    """What a suspended coroutine waits for.

    The place is that of the innermost caller outside of trio and the baton. Where there is none, as
    for ``start_soon(trio.sleep, 1)``, it is in the first function.
    """
    frames = [frame for frame in _frames(coroutine) if _module(frame) not in _GATE]
    callers = [at for at, frame in enumerate(frames) if not _is_machinery(frame)]
    behind = frames[callers[-1] + 1 :] if callers else frames
    frame = frames[callers[-1] if callers else 0]
    what = "an awaitable"
    if behind:
        named = [each for each in behind if "<locals>" not in each.f_code.co_qualname] or behind
        owner = "trio" if _module(named[0]).startswith("trio.") else "baton"
        what = f"{named[0].f_code.co_qualname} of {owner}"
    modules = [_module(each) for each in behind]
    is_real = any(each.startswith("trio.") and each not in _VIRTUAL for each in modules)
    return Awaited(what, frame.f_code.co_filename, frame.f_lineno, is_real)


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _is_machinery(frame: FrameType) -> bool:
    module = _module(frame)
    return module.startswith(("trio.", "sim.baton")) or module == "contextlib"


def _frames(coroutine: Any) -> Iterator[FrameType]:
    """From the outermost to the innermost, as ``trio.lowlevel.Task.iter_await_frames`` does."""
    while coroutine is not None:
        if inspect.iscoroutine(coroutine):
            frame, coroutine = coroutine.cr_frame, coroutine.cr_await
        elif inspect.isgenerator(coroutine):
            frame, coroutine = coroutine.gi_frame, coroutine.gi_yieldfrom
        elif inspect.isasyncgen(coroutine):
            frame, coroutine = coroutine.ag_frame, coroutine.ag_await
        else:
            coroutine = _wrapped(coroutine)
            continue
        if frame is not None:
            yield frame


def _wrapped(wrapper: object) -> object:
    """What ``__await__`` of a coroutine, or a step of an async generator, runs; else None."""
    for inner in gc.get_referents(wrapper):
        if inspect.iscoroutine(inner) or inspect.isasyncgen(inner):
            return inner
    return None
