"""Timing several things against each other on a machine that does other work too.

Rules:

* What is compared runs in one race: rounds in which each subject gets one short turn, in an order
  that rotates, so that a busy moment hits them all.
* A subject's figure is its best turn: other work only ever adds time. A ratio is one of bests.
* A turn is long enough for the clock and short enough to pass uninterrupted now and then
  (``turn_s``, if one operation allows). The cyclic garbage collector rests meanwhile, and preparing
  a turn is not timed.
* Time is wall time. CPU time leaves out waiting for the disk too, but some virtual machines count
  it short under load, so it is no clock for ratios.

Left out: what is measured, and what the figures mean (``tests.bench.report``).
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter, thread_time

__all__ = ["CPU", "FULL", "QUICK", "TINY", "WALL", "Clock", "Scale", "Subject", "race"]

ROUNDS_MIN = 3

Clock = Callable[[], float]
WALL: Clock = perf_counter
CPU: Clock = thread_time


@dataclass(frozen=True)
class Scale:
    """How much work a bench does.

    Attributes:
        subject_s: wall time for each subject of a race, preparation included.
        turn_s: length of one turn.
        log_bytes: size of a log that is scanned, fetched from or replicated.
        memory_bytes: size of a log whose opening is watched for memory.
        segments: how many segments the log has whose opening is timed.
        batches: how many batches the log has that is truncated.
        sim_messages: messages delivered in the smaller of two worlds that show growth.
        worlds: how many drawn worlds of each envelope are run.
    """

    name: str
    subject_s: float
    turn_s: float
    log_bytes: int
    memory_bytes: int
    segments: int
    batches: int
    sim_messages: int
    worlds: int


FULL = Scale("full", 0.75, 0.001, 32 << 20, 1 << 30, 1_000, 3_000, 20_000, 20)
QUICK = Scale("quick", 0.045, 0.001, 8 << 20, 128 << 20, 1_000, 3_000, 4_000, 5)
TINY = Scale("tiny", 0.0, 0.0, 64 << 10, 1 << 20, 5, 20, 200, 1)


@dataclass(frozen=True)
class Subject:
    """One side of a race.

    Attributes:
        run: perform so many operations; this is timed.
        prepare: called before each ``run`` with the same number, not timed.
        operations_max: the most operations a turn may have; 0 is no limit.
    """

    run: Callable[[int], object]
    prepare: Callable[[int], object] | None = None
    operations_max: int = 0


def race(scale: Scale, *subjects: Subject, clock: Clock = WALL) -> list[float]:
    """Seconds that one operation took each subject in its best turn."""
    counts = [_operations(scale, subject, clock) for subject in subjects]
    best = [float("inf")] * len(subjects)
    numbers = range(len(subjects))
    gc.collect()
    deadline = perf_counter() + scale.subject_s * len(subjects)
    rounds = 0
    while rounds < ROUNDS_MIN or perf_counter() < deadline:
        for turn in numbers:
            number = (turn + rounds) % len(subjects)
            took = _turn(subjects[number], counts[number], clock)
            best[number] = min(best[number], took / counts[number])
        rounds += 1
    return best


def _operations(scale: Scale, subject: Subject, clock: Clock) -> int:
    """How many operations fill a turn."""
    count = 1
    while count != subject.operations_max:
        # The best of three: an interruption must not pass for a turn that is full.
        took = min(_turn(subject, count, clock) for _ in range(3))
        limit = subject.operations_max or count * 10
        if took >= scale.turn_s * 0.7:
            break
        wanted = count * scale.turn_s / took if took > 0 else limit
        count = min(max(int(wanted), count + 1), count * 10, limit)
    return count


def _turn(subject: Subject, count: int, clock: Clock) -> float:
    if subject.prepare is not None:
        subject.prepare(count)
    run = subject.run
    gc.disable()
    try:
        begin = clock()
        run(count)
        return clock() - begin
    finally:
        gc.enable()
