"""Processes that run worlds, each with a hash seed of its own.

    with Pool(2) as pool:
        pool.give("world", job, tag)
        tag, answer, by = pool.take()

A signal of the terminal reaches the parent alone. A worker that dies is replaced, and its job's
answer says so; one that is left behind ends with its input.

Left out: what is done (``tests.hunt.worker``).
"""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from tests.hunt.worker import do

__all__ = ["InProcess", "Pool"]

_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_CHUNK_BYTES: Final = 1 << 16


@define(eq=False)
class InProcess:
    """Does jobs here, when they are taken. ``does`` can be another one for tests."""

    does: Callable[[str, Mapping[str, Any]], dict[str, Any]] = do
    _given: list[tuple[str, Mapping[str, Any], Any]] = field(factory=list)

    def room(self, avoid: int | None = None) -> bool:
        return not self._given

    def give(self, duty: str, job: Mapping[str, Any], tag: Any, avoid: int | None = None) -> None:
        self._given.append((duty, job, tag))

    def take(self, timeout_s: float | None = None) -> tuple[Any, dict[str, Any], int] | None:
        if not self._given:
            return None
        duty, job, tag = self._given.pop(0)
        return tag, self.does(duty, job), 0


@define(eq=False)
class _Worker:
    process: subprocess.Popen[bytes]
    tag: Any = None
    is_busy: bool = False
    data: bytes = b""


class Pool:
    """So many jobs at a time, by at least two processes, of which each has its own hash seed."""

    def __init__(self, processes: int) -> None:
        if processes < 1:
            raise ValueError(f"processes is {processes}, allowed is 1 or more")
        self._at_a_time = processes
        self._selector = selectors.DefaultSelector()
        self._workers: list[_Worker] = []
        for number in range(max(2, processes)):
            self._workers.append(self._start(number))

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._workers:
            worker.process.kill()
            worker.process.wait()
            _close(worker)
        self._selector.close()

    def _start(self, number: int) -> _Worker:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.hunt.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=_ROOT,
            env={**os.environ, "PYTHONHASHSEED": str(number + 1)},
            start_new_session=True,
        )
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, number)
        return _Worker(process)

    def _free(self, avoid: int | None) -> int | None:
        if sum(each.is_busy for each in self._workers) >= self._at_a_time:
            return None
        free = [n for n, each in enumerate(self._workers) if not each.is_busy and n != avoid]
        return free[0] if free else None

    def room(self, avoid: int | None = None) -> bool:
        return self._free(avoid) is not None

    def give(self, duty: str, job: Mapping[str, Any], tag: Any, avoid: int | None = None) -> None:
        number = self._free(avoid)
        assert number is not None, "asked without room"
        worker = self._workers[number]
        worker.tag, worker.is_busy = tag, True
        assert worker.process.stdin is not None
        # One that has died says so in ``take``.
        with suppress(BrokenPipeError):
            worker.process.stdin.write(json.dumps([duty, job]).encode() + b"\n")
            worker.process.stdin.flush()

    def take(self, timeout_s: float | None = None) -> tuple[Any, dict[str, Any], int] | None:
        while any(each.is_busy for each in self._workers):
            ready = self._selector.select(timeout_s)
            if not ready:
                return None
            for key, _ in ready:
                answer = self._read(key.data)
                if answer is not None:
                    return answer
        return None

    def _read(self, number: int) -> tuple[Any, dict[str, Any], int] | None:
        """What one worker has sent, if that is all of it."""
        worker = self._workers[number]
        assert worker.process.stdout is not None
        data = os.read(worker.process.stdout.fileno(), _CHUNK_BYTES)
        if not data:
            status = worker.process.wait()
            self._selector.unregister(worker.process.stdout)
            _close(worker)
            self._workers[number] = self._start(number)
            return (worker.tag, {"died": status}, number) if worker.is_busy else None
        worker.data += data
        if not worker.data.endswith(b"\n"):
            return None
        answer = json.loads(worker.data)
        worker.data, worker.is_busy = b"", False
        return worker.tag, answer, number


def _close(worker: _Worker) -> None:
    for pipe in (worker.process.stdin, worker.process.stdout):
        if pipe is not None:
            with suppress(BrokenPipeError):
                pipe.close()
