"""The world of one test, under a judge, with its trace in a file.

What fails a test: an invariant that its mark does not name in ``breaks``; a name there that was not
violated; a loss that no licence makes legal; layers of judgement that disagree. Losses that are
legal fail nothing: whether a test accepts them is its own business.

Left out: saving what a failing test leaves (``sim.pytest_plugin.reports``).
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from sim.checks.judge import Judge
from sim.checks.licences import LEGAL
from sim.histories.recorder import Recorder
from sim.pytest_plugin.settings import Settings
from sim.running.agreement import anomalies_of, disagreements
from sim.running.coverage import PROMISES, lost_by_licence
from sim.scenario.names import ALIASES
from sim.trace.lines import Header, Level
from sim.trace.writer import Trace
from sim.version import leaderfall_version
from sim.world import World

__all__ = ["TestWorld"]


class TestWorld:
    """See the module.

    Attributes:
        seed, settings: as given.
        world, judge: the judge is None where the mark says so.
        wrong: what is wrong with the run so far, one line each; empty before ``look``.
    """

    __test__ = False

    def __init__(self, settings: Settings, seed: int, name: str, path: Path | None) -> None:
        """Nothing has happened yet.

        Args:
            name: of the test, for the head of the trace.
            path: of the trace, which must not exist; None for no file.
        """
        self.settings = settings
        self.seed = seed
        self.wrong: list[str] = []
        header = Header(
            version=leaderfall_version(),
            scenario=name,
            variant=None,
            seed=seed,
            options=settings.options,
            nodes=("c1", *settings.config.names),
            topics=[],
        )
        level = Level.FULL if path is not None else Level.DIGEST
        self.trace = Trace(level, path=path, header=header)
        self.world = World(
            settings.config, seed=seed, scheduler=settings.scheduler(seed), trace=self.trace
        )
        self.judge = Judge(self.world) if settings.judges else None
        if self.judge is not None:
            self.world.kernel.recorder = Recorder()
        self._looked_at = -1

    def look(self, *, is_cut_short: bool = False) -> list[str]:
        """Judge the run up to now; returns what is wrong that was not before.

        Args:
            is_cut_short: the test has not come to its end, so nothing is missing yet.
        """
        if self.judge is None or self.trace.count == self._looked_at or not self.trace.count:
            return []
        known = set(self.wrong)
        found = self._judged(self.judge, is_cut_short)
        self._looked_at = self.trace.count
        new = [each for each in found if each not in known]
        self.wrong += new
        return new

    def close(self, verdict: str) -> None:
        """The test is over. ``verdict`` is ``passed`` or ``failed``."""
        if self.trace.footer is not None:
            return
        violations = [] if self.judge is None else [each.plain() for each in self.judge.violations]
        losses = [] if self.judge is None else [each.plain() for each in self.judge.facts.losses()]
        with suppress(OSError):
            self.trace.close(verdict, violations, losses)

    # Judging -------------------------------------------------------------------------------------

    def _judged(self, judge: Judge, is_cut_short: bool) -> list[str]:
        judge.finish()
        wanted = self.settings.breaks
        allowed = {each for name in wanted for each in ALIASES.get(name, (name,))}
        found = [str(each) for each in judge.violations if each.check not in allowed]
        lost = lost_by_licence(judge, {})
        covers = {"committed-durability", *PROMISES} & set(wanted)
        for each in lost:
            if each.licence in LEGAL or (covers and self.settings.is_loose):
                continue
            records = "1 record was" if each.records == 1 else f"{each.records} records were"
            rules = "; ".join(dict.fromkeys(loss.rule for loss, _ in each.losses))
            found.append(f"{records} lost, {each.licence}: {rules}")
        broken = {each.check for each in judge.violations}
        broken |= {name for name, word in PROMISES.items() if judge.facts.lost(word)}
        for name in () if is_cut_short else wanted:
            if not broken.intersection(ALIASES.get(name, (name,))):
                found.append(f"breaks: {name} was not violated")
        anomalies = anomalies_of(self.world, judge, is_drained=False)
        faults = disagreements(self.world, judge, anomalies, is_drained=False)
        found += [f"a defect of Leaderfall's judgement: {each}" for each in faults]
        return found
