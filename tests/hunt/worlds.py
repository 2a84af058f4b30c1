"""One world of a hunt: drawn, run, judged by what its envelope promises, and made into one line.

A world is a job, which says which one and what is done with it; its answer is plain JSON, so that
both can pass between processes.

Left out: which worlds there are (``tests.hunt.plan``), processes, files.
"""

from __future__ import annotations

import resource
import signal
from collections.abc import Callable, Iterator, Mapping
from time import process_time
from types import FrameType
from typing import Any, Final

from attrs import asdict, frozen

from sim.blame import loss_tests
from sim.running.findings import Examined, Finding, examine
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.swarm import drawn
from tests.hunt.census import Census

__all__ = [
    "ENVELOPES",
    "EVENTS_MAX",
    "Job",
    "WorldHangs",
    "draw",
    "failures",
    "parse",
    "run",
    "run_again",
]

ENVELOPES: Final = ("recoverable", "unrestricted")
EVENTS_MAX: Final = 600_000
_TEXT_CHARS: Final = 500
_CORES: Final = ("all", "drawn")
_HANGS_S: Final = 600
"""A world that takes so long of the wall's time hangs; the slowest ones take seconds."""


class WorldHangs(Exception):
    """A world that does not end; its traceback says where it was."""


@frozen
class Job:
    """Which world, and how.

    Attributes:
        seed, envelope: of the generator.
        guard: the rule of the protocol that is off, by its id; None for none.
        is_strict: what the world excuses is told, too, as for ``findings``.
    """

    seed: int
    envelope: str
    guard: str | None = None
    is_strict: bool = False

    def plain(self) -> dict[str, Any]:
        return asdict(self)


def draw(job: Job) -> dict[str, Any]:
    """The document of a job's world.

    The generator asks nothing of the liveness of an unrestricted world; the hunt wants to know
    whether it is stuck.
    """
    guards = {} if job.guard is None else {job.guard: False}
    document = drawn(job.seed, job.envelope, guards=guards)
    core = _CORES[job.seed % len(_CORES)]
    document.setdefault("liveness", {"within": "60s", "core": core})
    return document


def parse(document: Mapping[str, Any]) -> Scenario:
    """The scenario of a document."""
    return effective(parse_scenario(scenario_text(dict(document))), None, ())


def failures(examined: Examined, envelope: str) -> list[Finding]:
    """What is wrong with a world, by what its envelope promises.

    ``recoverable``: every finding; any loss but of what was acknowledged under acks=1 and never
    committed; and a cluster that has not recovered. ``unrestricted``: broken invariants, losses
    that are illegal or unexplained, oracle faults, defects, and a cluster that is stuck.
    """
    if envelope == "unrestricted":
        return [each for each in examined.findings if _is_bad_anywhere(each)]
    found = list(examined.findings)
    known = {each.identity for each in found}
    found += [each for each in _promises(examined) if each.identity not in known]
    return found


def _is_bad_anywhere(finding: Finding) -> bool:
    match finding.kind:
        case "invariant" | "anomaly" | "oracle" | "defect":
            return True
        case "loss":
            return finding.name in ("ILLEGAL", "UNEXPLAINED")
        case "liveness":
            return finding.name == "stuck"
    return False


def _promises(examined: Examined) -> Iterator[Finding]:
    """What a recoverable world promises beyond its own expectations."""
    result = examined.result
    if result is None:
        return
    for lost in result.verdict.lost:
        committed = sum(loss.records for loss, _ in lost.losses if loss.is_committed)
        if committed or lost.licence != "L0":
            text = f"{lost.records} records lost: {lost.licence}, {committed} of them committed"
            yield Finding("loss", lost.licence, text)
    if result.failure is None and result.liveness is not None:
        if result.liveness.word != "converged":
            yield Finding("liveness", result.liveness.word, f"cluster is {result.liveness.word}")


def run(job: Job) -> dict[str, Any]:
    """Run a job's world; the answer is its line without its place in the hunt.

    Keys of the answer: ``word`` (of the verdict, or what ended the run), ``live``, ``events``,
    ``digest``, ``seen`` (a mask in hexadecimal), ``skipped`` (how much could not act), ``found``
    (kind, name and text of each failure), ``cpu_ms`` and ``rss_kb``, which are no part of the
    world.
    """
    began_s = process_time()
    seen, examined = 0, None
    try:
        scenario = parse(draw(job))
    except Exception as error:  # noqa: BLE001 - a generator that fails is a find, too
        where = f"{type(error).__name__} in the generator"
        found = [Finding("defect", where, str(error))]
    else:
        census = Census(scenario)
        with _Alarm(), census.looking_on():
            examined = _examined(scenario, job, on_world=census.on_world)
        seen = census.mask()
        found = failures(examined, job.envelope)
    result = None if examined is None else examined.result
    live = result.liveness if result is not None else None
    return {
        "word": "defect" if examined is None else _word(examined),
        "live": "" if live is None else live.word,
        "events": 0 if result is None else result.trace.count,
        "digest": "" if result is None else result.digest,
        "seen": f"{seen:x}",
        "skipped": 0 if result is None else len(result.passed_over),
        "found": [[each.kind, each.name, each.text[:_TEXT_CHARS]] for each in found],
        "cpu_ms": int((process_time() - began_s) * 1000),
        "rss_kb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,
    }


def run_again(job: Job) -> dict[str, Any]:
    """The digest of a job's world, to compare; without a census, and without tests of losses."""
    with _Alarm():
        result = _examined(parse(draw(job)), job, tests_losses=None, keeps_lines=False).result
    return {"digest": "" if result is None else result.digest}


def _examined(scenario: Scenario, job: Job, **options: Any) -> Examined:
    options = {"tests_losses": loss_tests.tested_as_kept, "keeps_lines": True, **options}
    # An older truncation that is drawn excuses nothing.
    is_strict = job.is_strict or job.guard is None
    return examine(scenario, is_strict=is_strict, level="digest", events_max=EVENTS_MAX, **options)


def _word(examined: Examined) -> str:
    if examined.result is None:
        return examined.findings[0].kind
    return examined.result.verdict.word


class _Alarm:
    """Raises ``WorldHangs`` in the main thread if the block takes too long.

    It rings again and again: what is raised in a callback of the garbage collector (Hypothesis has
    one) or in a ``__del__`` ends nothing.
    """

    def __enter__(self) -> None:
        self._before: Callable[[int, FrameType | None], Any] | int | None
        self._before = signal.signal(signal.SIGALRM, _ring)
        signal.setitimer(signal.ITIMER_REAL, _HANGS_S, _HANGS_S)

    def __exit__(self, *_: object) -> None:
        try:
            signal.signal(signal.SIGALRM, signal.SIG_IGN)
        finally:  # What rings only now ends the block, and the ringing all the same.
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)


def _ring(number: int, frame: FrameType | None) -> None:
    raise WorldHangs(f"no end after {_HANGS_S} s of the wall's time")
