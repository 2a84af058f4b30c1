"""What the crash proof visited, one line at the end of a run."""

from __future__ import annotations

import pytest
from attrs import define, field

from tests.crash.harness import Tally


@define
class Totals:
    """The tallies of the proofs that this run made."""

    tallies: list[Tally] = field(factory=list)

    def line(self) -> str:
        """One line for the end of the run."""
        cuts = sum(tally.cuts for tally in self.tallies)
        images = sum(tally.images for tally in self.tallies)
        left_out = sum(tally.left_out for tally in self.tallies)
        second = sum(tally.second_cuts for tally in self.tallies)
        return (
            f"crash proof: {len(self.tallies)} operations, {cuts} power cuts, {images} images "
            f"({left_out} more not drawn), {second} second cuts"
        )


TOTALS = pytest.StashKey[Totals]()


@pytest.fixture(scope="session")
def totals(request: pytest.FixtureRequest) -> Totals:
    """Where a proof leaves its tally."""
    return request.config.stash.setdefault(TOTALS, Totals())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    made = terminalreporter.config.stash.get(TOTALS, None)
    if made is not None and made.tallies:
        terminalreporter.write_line(made.line())
