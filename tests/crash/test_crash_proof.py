"""Every disk call of every operation of a log is a place where the power may fail.

What must hold after each image of each of those crashes is said in ``tests.crash.harness``. That
the judgement can fail is shown in ``test_planted_faults``.
"""

from __future__ import annotations

import pytest

from storage.recovery import Verify
from tests.crash.case import Case
from tests.crash.catalogue import CASES, case_named
from tests.crash.conftest import Totals
from tests.crash.harness import Tally, prove

UNFLUSHED = (
    "append with rolls",
    "truncate and lead anew",
    "open after a close, rewrite",
    "retention by time, work pending",
    "compact, work pending",
    "producers, truncate below a snapshot",
    "open a broker's directory, rewrite",
)

pytestmark = pytest.mark.slow


def check_proof(tally: Tally) -> None:
    """No finding, and the proof looked at something."""
    findings = tally.findings
    shown = "\n".join(f"{f.call}, image '{f.image}': {f.what}" for f in findings[:5])
    assert not findings, f"{tally.case}: {len(findings)} findings, the first:\n{shown}"
    assert tally.cuts == tally.calls > 0
    assert tally.images >= 2


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_crash_image_of_the_operation_opens_and_keeps_its_records(
    case: Case, totals: Totals
) -> None:
    tally = prove(case)
    totals.tallies.append(tally)
    check_proof(tally)


@pytest.mark.parametrize("name", UNFLUSHED)
@pytest.mark.parametrize("verify", ["unflushed"])
def test_opening_without_walking_everything_is_as_good(
    name: str, verify: Verify, totals: Totals
) -> None:
    tally = prove(case_named(name), verify=verify, second_every=0)
    totals.tallies.append(tally)
    check_proof(tally)
