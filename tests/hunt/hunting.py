"""A hunt: worlds by number, on workers, into a file; what was found and seen is told at the end.

World ``n`` has seed ``first + n``; every sixth is unrestricted. Which worlds there are, and what
their lines say, is the same whoever runs them, and in whatever order.

Left out: the command line (``tests.hunt.__main__``), guards (``tests.hunt.guarding``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import define, field, frozen

from tests.hunt.finds import Finds, fingerprint
from tests.hunt.lines import Lines
from tests.hunt.pace import Pace
from tests.hunt.sights import SIGHTS, Sight
from tests.hunt.workers import Workers
from tests.hunt.worlds import Job, draw

__all__ = ["DEMAND_FROM", "UNRESTRICTED_EACH", "Hunt", "Summary", "job_of"]

UNRESTRICTED_EACH: Final = 6
"""One world in so many is unrestricted."""
DEMAND_FROM: Final = 20_000
"""From so many worlds on everything must have been seen."""
_DIED: Final[dict[str, Any]] = {
    "word": "died",
    "live": "",
    "events": 0,
    "digest": "",
    "seen": "0",
    "skipped": 0,
    "cpu_ms": 0,
    "rss_kb": 0,
}


def job_of(number: int, first: int) -> Job:
    """The world of a number, from 0."""
    is_unrestricted = number % UNRESTRICTED_EACH == UNRESTRICTED_EACH - 1
    return Job(first + number, "unrestricted" if is_unrestricted else "recoverable")


@frozen
class Summary:
    """What a hunt came to.

    Attributes:
        worlds: how many have a line.
        failed: how many of them have findings.
        inconclusive: how many ran out of events.
        sights: in how many worlds each sight was seen, by its number.
        cpu_s: of all of them.
    """

    worlds: int
    failed: int
    inconclusive: int
    sights: Counter[int]
    cpu_s: float

    @property
    def unseen(self) -> list[Sight]:
        """What was not seen and can be."""
        return [each for n, each in enumerate(SIGHTS) if not self.sights.get(n) and each.is_wanted]


@define(eq=False)
class Hunt:
    """See the module.

    Attributes:
        lines: where worlds are taken down; those that are there are not run again.
        worlds: how many there are to be.
        first: the seed of world 0.
        every: one world in so many is run twice, the second time by another process, with another
            hash seed; 0 for none.
        tell: told how it goes, from time to time.
    """

    lines: Lines
    finds: Finds
    workers: Workers
    worlds: int
    first: int = 0
    every: int = 50
    tell: Callable[[str], None] = lambda text: None
    _pace: Pace = field(factory=Pace)
    _done: int = 0
    _firsts: dict[int, dict[str, Any]] = field(factory=dict)
    _again: list[tuple[int, int]] = field(factory=list)
    _under_way: int = 0

    def run(self) -> Summary:
        """Run what is missing.

        Raises:
            KeyboardInterrupt: what has ended is in the file.
        """
        for line in self.lines.found:
            self.finds.again(line.get("prints", ()))
        todo = self._missing()
        following = next(todo, None)
        while following is not None or self._under_way or self._again:
            if self._again and self.workers.room(self._again[0][1]):
                number, by = self._again.pop(0)
                self._give(number, is_second=True, avoid=by)
            elif following is not None and not self._again and self.workers.room():
                self._give(following, is_second=False)
                following = next(todo, None)
            else:
                self._take()
        self._say(is_last=True)
        return self.summary()

    def summary(self) -> Summary:
        """Over all worlds in the file that are asked for."""
        sights: Counter[int] = Counter()
        found = [each for each in self.lines.found if each["n"] < self.worlds]
        for line in found:
            mask = int(line["seen"], 16)
            sights.update(n for n in range(mask.bit_length()) if mask >> n & 1)
        return Summary(
            worlds=len(found),
            failed=sum(bool(each["found"]) for each in found),
            inconclusive=sum(each["word"] == "inconclusive" for each in found),
            sights=sights,
            cpu_s=sum(each["cpu_ms"] for each in found) / 1000,
        )

    # One by one --------------------------------------------------------------------------------

    def _missing(self) -> Iterator[int]:
        there = {line["n"] for line in self.lines.found}
        return (number for number in range(self.worlds) if number not in there)

    def _is_twice(self, number: int) -> bool:
        return self.every > 0 and number % self.every == self.every - 1

    def _give(self, number: int, *, is_second: bool, avoid: int | None = None) -> None:
        job = job_of(number, self.first)
        self._under_way += 1
        duty = "again" if is_second else "world"
        self.workers.give(duty, job.plain(), (number, is_second), avoid)

    def _take(self) -> None:
        taken = self.workers.take(self._pace.every_s)
        self._say()
        if taken is None:
            return
        (number, is_second), answer, by = taken
        self._under_way -= 1
        if "died" in answer:
            text = f"the process that ran it ended with status {answer['died']}"
            answer = {**_DIED, "found": [["defect", "process died", text]]}
        elif is_second:
            answer = self._compared(number, answer)
        elif self._is_twice(number):
            self._firsts[number] = answer
            self._again.append((number, by))
            return
        self._firsts.pop(number, None)
        self._end(number, answer)

    def _compared(self, number: int, second: dict[str, Any]) -> dict[str, Any]:
        first = self._firsts[number]
        if first["digest"] != second["digest"]:
            text = f"digests {first['digest']} and {second['digest']} of two processes"
            first["found"].append(["determinism", "digests differ", text])
        first["twice"] = True
        return first

    def _end(self, number: int, answer: dict[str, Any]) -> None:
        job = job_of(number, self.first)
        line = {"n": number, "seed": job.seed, "envelope": job.envelope, **answer}
        if line["found"]:
            document = _document(job)
            line["prints"] = [fingerprint(kind, name, document) for kind, name, _ in line["found"]]
            name = f"{job.envelope}-{job.seed}"
            self.finds.add(name, document, line["found"], line["prints"])
        self.lines.append(line)
        self._done += 1

    # Telling -----------------------------------------------------------------------------------

    def _say(self, *, is_last: bool = False) -> None:
        if not self._pace.is_due() and not is_last:
            return
        there = len(self.lines.found)
        failed = sum(self.finds.counts.values())
        rate = self._done / max(self._pace.since_s(), 0.001)
        text = f"{there} of {self.worlds} worlds, {failed} findings, {rate:.1f} worlds/s"
        if rate and there < self.worlds:
            minutes = int((self.worlds - there) / rate / 60)
            text += f", {minutes // 60} h {minutes % 60:02} min to go"
        self.tell(text)


def _document(job: Job) -> dict[str, Any]:
    """Of its world; empty where the generator fails, which is the find then."""
    try:
        return draw(job)
    except Exception:  # noqa: BLE001 - it is told by the worker already
        return {}
