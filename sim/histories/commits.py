"""commit-regression, commit-beyond-end: the committed offsets of a session only rise.

A session's commits may fall where it was moved in between.

Left out: where the next session of a group begins, of which consumers are told nothing; two members
of a group at a time, each of which commits what it likes.
"""

from __future__ import annotations

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Found, Witness
from sim.histories.evidence import Evidence
from sim.histories.values import MOVES, Poll, Signal

__all__ = ["commits"]


def commits(evidence: Evidence, found: Found) -> None:
    """Both."""
    _regressions(evidence, found)
    _beyond(evidence, found)


def _regressions(evidence: Evidence, found: Found) -> None:
    for (_, _, topic, number), stream in evidence.streams.items():
        before: Signal | None = None
        for each in stream:
            if isinstance(each, Poll):
                continue
            if each.kind in MOVES:
                before = None
            elif each.kind == "committed":
                if before is not None and each.offset < before.offset:
                    detail = (
                        f"{each.client} committed offset {before.offset} for group "
                        f"{each.group!r}, and later {each.offset}"
                    )
                    both = _witness(before), _witness(each)
                    found.report("commit-regression", f"{topic}-{number}", both, detail)
                before = each


def _beyond(evidence: Evidence, found: Found) -> None:
    ends = _ends(evidence)
    for (_, _, topic, number), stream in evidence.streams.items():
        for each in stream:
            if not isinstance(each, Signal) or each.kind != "committed":
                continue
            end = ends.get((topic, number), 0)
            if each.offset > end:
                detail = (
                    f"{each.client} committed offset {each.offset} for group {each.group!r}, and "
                    f"nobody ever saw a record at or behind offset {end}"
                )
                places = [place for place in evidence.sightings if _name(place) == (topic, number)]
                holds = [reason for place in places for reason in evidence.reasons(place, end)]
                where = f"{topic}-{number}"
                found.report("commit-beyond-end", where, (_witness(each),), detail, holds)


def _ends(evidence: Evidence) -> dict[tuple[str, int], int]:
    """Behind the last record that anybody saw, or where a reader was told that it is."""
    ends: dict[tuple[str, int], int] = {}
    for place, at_place in evidence.sightings.items():
        name = _name(place)
        ends[name] = max(ends.get(name, 0), max(at_place) + 1)
    for (_, _, topic, number), stream in evidence.streams.items():
        for each in stream:
            if isinstance(each, Signal) and each.kind in MOVES:
                ends[topic, number] = max(ends.get((topic, number), 0), each.offset)
    return ends


def _name(place: TopicIdPartition) -> tuple[str, int]:
    return place.topic, place.partition


def _witness(signal: Signal) -> Witness:
    what = f"group {signal.group}"
    return Witness(signal.client, "committed", signal.offset, what, signal.event, signal.t_us)
