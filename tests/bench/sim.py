"""The sim bench: how much of a bare heap loop the simulated world leaves.

The reference is a heap with 64 queued callbacks, each of which enters itself again: what any
simulator's loop comes down to. Beside it, in the same process, run other projects' simulators
(``tests.bench.sim_peers``) and ours (``tests.bench.sim_ours``):

* the kernel alone: timeline, keyed latencies, FIFO links, digest, a write to the node's simulated
  disk and an empty check for each delivered message, the disk in memory or on real files;
* what the kernel consists of, part by part;
* the full protocol: three brokers, three replicas, an acks=all producer that goes on sending;
  beside it the machines alone, as ``tests.bench.cluster`` runs them: a world can only add to that;
* small worlds, from nothing to 400 delivered messages;
* growth: ten times the events against one time, in time and in memory.

All count delivered messages, callbacks for the heap, in CPU time of one thread.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from heapq import heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench import sim_memory
from tests.bench.cluster import DELIVERIES, Produces
from tests.bench.measure import CPU, Scale, Subject, race
from tests.bench.report import (
    Budget,
    Figure,
    Report,
    Row,
    above,
    at_least,
    below,
    rated,
    timed,
)
from tests.bench.sim_ours import (
    Deliveries,
    FullProtocol,
    KernelAlone,
    SmallWorlds,
    kernel_parts,
)
from tests.bench.sim_peers import SIMULATORS, Simulator, find_simulator

__all__ = ["HeapLoop", "facts", "run"]

IN_FLIGHT = 64
DELAY_US = 400
# A simulator starts anew in each turn: a turn is long, so that this does not count.
TURN_FACTOR = 50

KERNEL = at_least(0.08)
PROTOCOL = at_least(0.01)
WORLDS = above(30, "worlds/s")
TIME_GROWTH = below(11, "x")
MEMORY_GROWTH = below(1.2, "x")
WORLD_MESSAGES = 400
ROOT = Path(__file__).resolve().parents[2]


def facts() -> dict[str, Any]:
    """The versions of the other simulators, None for one that is absent."""
    found = {name: find_simulator(name, IN_FLIGHT) for name in SIMULATORS}
    return {
        name: one.version if isinstance(one, Simulator) else None for name, one in found.items()
    }


class HeapLoop:
    """Callbacks that wait in a heap; each enters itself again when it is run."""

    def __init__(self, queued: int) -> None:
        number = queued

        def again(at_us: int) -> None:
            nonlocal number
            number += 1
            heappush(heap, (at_us + DELAY_US, number, again))

        self.heap = heap = [(n, n, again) for n in range(queued)]

    def run(self, count: int) -> None:
        """Run so many of them."""
        heap = self.heap
        for _ in range(count):
            at_us, _, callback = heappop(heap)
            callback(at_us)


def run(scale: Scale, report: Report) -> None:
    """Measure everything, section by section."""
    report.note(f"The reference is a heap loop with {IN_FLIGHT} queued callbacks.")
    report.note("Figures are of CPU time. Those of the group 'others' are of other projects.")
    scale = replace(scale, turn_s=scale.turn_s * TURN_FACTOR)
    for name in SIMULATORS:
        found = find_simulator(name, IN_FLIGHT)
        if isinstance(found, str):
            report.add(Row("others", f"messages, {name}", None, absent=found))
        else:
            what = f"messages, {name} {found.version}"
            _against_heap(scale, report, "others", what, Subject(found.run))
    with TemporaryDirectory(prefix="leaderfall-bench-") as directory:
        for what, folder in (("disk in memory", None), ("disk on files", Path(directory))):
            make = partial(KernelAlone, IN_FLIGHT, folder)
            _ours(scale, report, "kernel", f"messages, digest, {what}", KERNEL, make)
    _parts(scale, report)
    machines = Produces()
    took, reference = race(
        scale, Subject(machines.run, machines.prepare), Subject(HeapLoop(IN_FLIGHT).run), clock=CPU
    )
    what = "messages, machines alone: no time, network or trace"
    per_message = took / DELIVERIES
    report.add(
        rated("full protocol", what, per_message, 1, "msg", reference_s=reference, of="heap loop")
    )
    what = "messages, 3 brokers, RF 3, acks=all, digest"
    _ours(scale, report, "full protocol", what, PROTOCOL, FullProtocol)
    _worlds(scale, report)
    _growth(scale, report)


def _against_heap(
    scale: Scale,
    report: Report,
    group: str,
    what: str,
    subject: Subject,
    budget: Budget | None = None,
) -> None:
    heap = Subject(HeapLoop(IN_FLIGHT).run)
    took, reference = race(scale, subject, heap, clock=CPU)
    row = rated(group, what, took, 1, "msg", reference_s=reference, of="heap loop", budget=budget)
    report.add(row)


def _ours(
    scale: Scale,
    report: Report,
    group: str,
    what: str,
    budget: Budget,
    make: Callable[[], Deliveries],
) -> None:
    subject = make()
    _against_heap(scale, report, group, what, Subject(subject.run, subject.prepare), budget)


def _parts(scale: Scale, report: Report) -> None:
    """What one of each costs; the reference is one callback of the heap loop."""
    parts = kernel_parts(IN_FLIGHT)
    *costs, reference = race(scale, *parts.values(), Subject(HeapLoop(IN_FLIGHT).run), clock=CPU)
    for what, took in zip(parts, costs, strict=True):
        report.add(timed("kernel parts", what, took, reference_s=reference, of="heap loop"))


def _worlds(scale: Scale, report: Report) -> None:
    what = f"worlds of {WORLD_MESSAGES} messages, digest"
    (took,) = race(scale, Subject(SmallWorlds(WORLD_MESSAGES).run), clock=CPU)
    report.add(Row("small worlds", what, Figure(1 / took, "worlds/s"), budget=WORLDS))


def _growth(scale: Scale, report: Report) -> None:
    """Each size in a process of its own, so that a peak of memory is its own."""
    few, many = scale.sim_messages, 10 * scale.sim_messages
    rows = (("time", "s", 1e-9, TIME_GROWTH), ("memory", "MiB", 1 / 1024, MEMORY_GROWTH))
    whats = [f"{measure}, {many:,} messages against {few:,}" for measure, *_ in rows]
    small, large = _watch(few), _watch(many)
    for what, (measure, unit, factor, budget) in zip(whats, rows, strict=True):
        reference = Figure(small[measure] * factor, unit, f"for {few:,}")
        grown = Figure(large[measure] / small[measure], "x")
        report.add(Row("growth", what, grown, reference, None, budget))


def _watch(count: int) -> dict[str, int]:
    """CPU time (ns) and peak memory (KiB) of so many messages, on real files."""
    with TemporaryDirectory(prefix="leaderfall-bench-") as directory:
        command = [sys.executable, "-m", sim_memory.__name__, directory, str(count)]
        result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    found: dict[str, int] = json.loads(result.stdout)
    return found
