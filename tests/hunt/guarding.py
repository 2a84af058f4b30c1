"""Guards: how many worlds it takes to miss each rule of the protocol.

A guard is missed by a world in which something is wrong without it that is not with it. One that no
world misses within its budget lacks a check, a fault or a condition that the generator draws; that
fails the hunt for guards. A few are out of reach, each for a reason that is told, and hunted only
if they are named. The worlds of a guard are those of the generator, half of them unrestricted, in
order, so how many it takes is a number that can be compared.

Left out: what each guard is for (``cluster.guards``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from attrs import define, field

from cluster.guards import GUARDS
from sim.scenario.writing import scenario_text
from sim.shrinking.tables import size_of
from tests.hunt.lines import Lines
from tests.hunt.pace import Pace
from tests.hunt.tables import table
from tests.hunt.workers import Workers
from tests.hunt.worlds import ENVELOPES, Job, draw, parse, run

__all__ = ["BUDGET", "OUT_OF_REACH", "GuardHunt", "job_of", "tried"]

BUDGET: Final = 500
"""So many worlds are tried without a guard."""
OUT_OF_REACH: Final[Mapping[str, str]] = {
    "broker-epoch": "what a process has sent comes before the next one registers, or not at all",
    "fetch-offset-match": "nobody cuts a log while its fetch is under way and its epoch stays",
    "full-truncation-only-below-start": "a follower that overlaps is told where to cut",
    "isr-is-assigned": "a leader that does not know its replicas is of an older partition epoch",
    "marker-times-count": "no cluster writes transactions",
    "undefined-epoch-is-undefined": "a log has an entry for each epoch of its batches",
}
"""Why no drawn world misses a guard; tests of one machine or of the log do (``tests/cluster``,
``tests/storage``)."""
_SIZES: Final = ("faults", "steps", "records", "brokers")


def job_of(guard: str, number: int, first: int) -> Job:
    """The world of a number, from 0, without a guard."""
    envelope = ENVELOPES[number % len(ENVELOPES)]
    return Job(first + number, envelope, guard=guard, is_strict=True)


def tried(job: Mapping[str, Any]) -> dict[str, Any]:
    """Run a world without a guard and, if something is wrong, with it: the duty of a worker.

    Returns:
        The line of the run without it, of whose ``found`` is left what the other does not have.
    """
    answer = run(Job(**job))
    if answer["found"]:
        guarded = run(Job(**{**job, "guard": None}))
        known = {(kind, name) for kind, name, _ in guarded["found"]}
        answer["found"] = [each for each in answer["found"] if (each[0], each[1]) not in known]
        answer["cpu_ms"] += guarded["cpu_ms"]
    return answer


@define(eq=False)
class GuardHunt:
    """See the module.

    Attributes:
        lines: one for each world, and one for what was made small.
        folder: of the scenario files, one for each guard.
        guards: ids, of those that are hunted for.
        shrinks: whether finds are made small.
    """

    lines: Lines
    folder: Path
    workers: Workers
    guards: Sequence[str] = tuple(each.id for each in GUARDS)
    budget: int = BUDGET
    first: int = 0
    shrinks: bool = False
    tell: Callable[[str], None] = lambda text: None
    found: dict[str, dict[str, Any]] = field(factory=dict)
    small: dict[str, dict[str, Any]] = field(factory=dict)
    _next: dict[str, int] = field(factory=dict)
    _cpu_ms: int = 0
    _pace: Pace = field(factory=Pace)

    def run(self) -> list[str]:
        """Go on until each guard was missed or its budget is used; the guards never missed."""
        for line in self.lines.found:
            self._take_down(line)
        waiting = [each for each in self.guards if self._duty(each) is not None]
        under_way = 0
        while waiting or under_way:
            if waiting and self.workers.room():
                guard = waiting.pop(0)
                duty, job = self._duty(guard) or ("", {})
                self.workers.give(duty, job, guard)
                under_way += 1
                continue
            taken = self.workers.take(self._pace.every_s)
            if taken is None:
                continue
            guard, answer, _ = taken
            under_way -= 1
            self._end(guard, answer)
            if self._duty(guard) is not None:
                waiting.append(guard)
        return [each for each in self.guards if each not in self.found]

    def _duty(self, guard: str) -> tuple[str, dict[str, Any]] | None:
        """What is to be done next for a guard; None where nothing is."""
        line = self.found.get(guard)
        if line is None:
            number = self._next.get(guard, 0)
            if number >= self.budget:
                return None
            return "guard", job_of(guard, number, self.first).plain()
        if not self.shrinks or guard in self.small:
            return None
        kind, name, _ = line["found"][0]
        path = str(self.folder / f"{guard}.toml")
        return "shrink", {"path": path, "kind": kind, "name": name, "is_strict": True}

    def _end(self, guard: str, answer: dict[str, Any]) -> None:
        """A job of a guard is done."""
        if guard in self.found:
            line: dict[str, Any] = {"guard": guard, "small": {"why": "died", **answer}}
            if "text" in answer:
                path = self.folder / f"{guard}.small.toml"
                path.write_text(answer.pop("text"), encoding="utf-8")
                line = {"guard": guard, "small": answer}
        else:
            number = self._next.get(guard, 0)
            job = job_of(guard, number, self.first)
            found, cpu_ms = answer.get("found", []), answer.get("cpu_ms", 0)
            line = {
                "guard": guard,
                "n": number,
                "seed": job.seed,
                "envelope": job.envelope,
                "found": found,
                "cpu_ms": cpu_ms,
            }
            if found:
                document = draw(job)
                line["size"] = size_of(parse(document)).plain()
                self.folder.mkdir(parents=True, exist_ok=True)
                path = self.folder / f"{guard}.toml"
                path.write_text(scenario_text(document), encoding="utf-8")
        self.lines.append(line)
        self._take_down(line)
        if not self._pace.is_due():
            return
        missed = f"{len(self.found)} of {len(self.guards)} guards missed"
        self.tell(f"{missed}, {guard}: {self._next[guard]} worlds")

    def _take_down(self, line: Mapping[str, Any]) -> None:
        guard = line["guard"]
        if "small" in line:
            self.small[guard] = line["small"]
            return
        self._next[guard] = line["n"] + 1
        self._cpu_ms += line["cpu_ms"]
        if line["found"]:
            self.found[guard] = dict(line)

    def table(self) -> str:
        """Each guard, worlds until it was missed, what fired, and how large the case is."""
        rows = []
        for guard in self.guards:
            line = self.found.get(guard)
            if line is None:
                tried = self._next.get(guard, 0)
                rows.append((guard, "-", f"never missed in {tried} worlds", *("" for _ in _SIZES)))
                continue
            fired = ", ".join(f"{kind} {name}" for kind, name, _ in line["found"])
            size = self.small.get(guard, {}).get("size") or line["size"]
            sizes = (str(size[name]) for name in _SIZES)
            rows.append((guard, str(line["n"] + 1), fired[:90], *sizes))
        return table(("guard", "worlds", "what fired", *_SIZES), rows)
