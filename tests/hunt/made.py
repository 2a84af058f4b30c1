"""Worlds that are made up for tests of the hunt: answers without runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field

from tests.hunt.finds import Finds
from tests.hunt.hunting import Hunt
from tests.hunt.lines import Lines

HEADER = {"hunt": 1, "code": "c"}


def answer(job: Mapping[str, Any], *found: tuple[str, str, str], seen: int = 0) -> dict[str, Any]:
    """What a worker says of a world."""
    return {
        "word": "failed" if found else "passed",
        "live": "converged",
        "events": 7,
        "digest": f"{job['envelope']}-{job['seed']}",
        "seen": f"{seen:x}",
        "skipped": 0,
        "found": [list(each) for each in found],
        "cpu_ms": 1,
        "rss_kb": 1,
    }


def passes(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Nothing is wrong."""
    return answer(job)


@define(eq=False)
class Backwards:
    """Does so many jobs at a time, and the last one given is done first."""

    does: Callable[[str, Mapping[str, Any]], dict[str, Any]] = passes
    at_a_time: int = 3
    given: list[tuple[str, Mapping[str, Any], Any]] = field(factory=list)
    avoided: list[int | None] = field(factory=list)

    def room(self, avoid: int | None = None) -> bool:
        return len(self.given) < self.at_a_time

    def give(self, duty: str, job: Mapping[str, Any], tag: Any, avoid: int | None = None) -> None:
        self.given.append((duty, job, tag))
        self.avoided.append(avoid)

    def take(self, timeout_s: float | None = None) -> tuple[Any, dict[str, Any], int] | None:
        duty, job, tag = self.given.pop()
        return tag, self.does(duty, job), len(self.given)


def hunted(folder: Path, worlds: int, workers: Any, **options: Any) -> tuple[Hunt, list[Any]]:
    """A hunt that has run, and its lines."""
    with Lines(folder / "worlds.jsonl", HEADER) as lines:
        hunt = Hunt(lines, Finds(folder / "finds"), workers, worlds, **{"every": 0, **options})
        hunt.run()
    return hunt, lines.found
