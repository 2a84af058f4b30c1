"""All checks over one history.

    anomalies = check(recorder.history(), is_drained=False, excused=excuses, conditions=conditions)

The work grows with the number of records times its logarithm. No history makes a check raise.

Left out: transactions (G0 to G2, precommitted reads, sends between those of a transaction).
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.histories import commits, offsets, polls, sends, writes
from sim.histories.anomalies import Anomaly, Conditions, Found
from sim.histories.evidence import Evidence
from sim.histories.lag import Lag, lags
from sim.histories.passing import Passes
from sim.histories.values import Excuse, History

__all__ = ["check", "measure"]

_NOTHING = Conditions()


def check(
    history: History,
    *,
    is_drained: bool,
    excused: Iterable[Excuse] = (),
    conditions: Conditions = _NOTHING,
) -> list[Anomaly]:
    """What contradicts itself in a history, illegal anomalies first.

    Args:
        is_drained: readers have gone on to the ends of all logs that can be read, with nothing
            under way; without that what was not read yet is nothing to wonder at.
        excused: records that may be gone.
        conditions: what else makes anomalies legal.
    """
    evidence = Evidence(history, excused, conditions)
    found = Found(conditions)
    offsets.inconsistent_offsets(evidence, found)
    offsets.fractured_read(evidence, found)
    offsets.duplicate(evidence, found)
    writes.lost_writes(evidence, Passes(evidence), found, is_drained=is_drained)
    writes.aborted_read(evidence, found)
    writes.phantom(evidence, found)
    polls.poll_skip(evidence, found)
    polls.nonmonotonic_poll(evidence, found)
    polls.stale_read(evidence, found)
    polls.false_truncation(evidence, found)
    sends.nonmonotonic_send(evidence, found)
    commits.commits(evidence, found)
    return found.all()


def measure(history: History) -> list[Lag]:
    """How long acknowledged records were hidden from each reader."""
    return lags(Evidence(history, (), _NOTHING))
