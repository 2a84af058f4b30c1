"""Times: windows shorter and apart, conditions as times, times round, and no time in between.

Left out: the end of the run (``sim.shrinking.horizon``).
"""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Final

from sim.scenario.durations import show_duration
from sim.shrinking.leaves import Path, at_path, key_paths, put, removed
from sim.shrinking.tables import Document, tables, time_of
from sim.shrinking.trials import Trials

__all__ = [
    "close_gaps",
    "round_times",
    "shorter_windows",
    "simple_durations",
    "times_for_conditions",
]

_MS_US: Final = 1_000
_S_US: Final = 1_000_000
_GRIDS_US: Final = (_S_US, 100 * _MS_US, 10 * _MS_US, _MS_US)
_LATER_MAX_US: Final = 100 * _MS_US
_LENGTHS_US: Final = (_MS_US, 10 * _MS_US, 100 * _MS_US, _S_US, 10 * _S_US)
_POINTS: Final = {
    "step": ("at",),
    "fault": ("start", "end"),
    "workload": ("start", "stop"),
    "expect": ("at", "from", "to", "after"),
}
"""Keys that may be times, by table."""
_SPANS: Final = frozenset(
    {"by", "delay", "duration", "hangs", "backoff_cap", "period", "restart_after", "up_to"}
)
"""Keys that are lengths of time."""


def _value(trials: Trials, path: Path) -> Any:
    try:
        return at_path(trials.document, path)
    except LookupError:
        return None


def _points(document: Document) -> list[tuple[Path, int]]:
    """All times of the document but its end."""
    found: list[tuple[Path, int]] = []
    for key, names in _POINTS.items():
        for at, table in enumerate(tables(document, key)):
            for name in names:
                t_us = time_of(table.get(name))
                if t_us is not None:
                    found.append(((key, at, name), t_us))
    return found


# Windows -----------------------------------------------------------------------------------------


def times_for_conditions(trials: Trials) -> None:
    """A fault that waits for a condition: the time at which that held instead."""
    for at, fault in enumerate(tables(trials.document, "fault")):
        for key in ("start", "end"):
            known = trials.moments.faults if key == "start" else trials.moments.ends
            if isinstance(fault.get(key), dict) and fault["id"] in known:
                t_us = known[fault["id"]]
                t_us += 1 if t_us % _MS_US else 0  # Conditions are looked at behind what happens.
                trials.attempt(put(trials.document, ("fault", at, key), show_duration(t_us)))


def shorter_windows(trials: Trials) -> None:
    """Faults and workloads: as short as they may be, over before others begin, or without end."""
    for key, (first, last) in (("fault", ("start", "end")), ("workload", ("start", "stop"))):
        for at in range(len(tables(trials.document, key))):
            _shorter_window(trials, (key, at), first, last)


def _shorter_window(trials: Trials, path: Path, first: str, last: str) -> None:
    table = at_path(trials.document, path)
    start_us, end_us = time_of(table.get(first, "0s")), time_of(table.get(last))
    until_us = trials.scenario.until_us
    if start_us is None or isinstance(table.get(last), dict):
        return
    length_us = (until_us if end_us is None else min(end_us, until_us)) - start_us
    if (
        end_us is not None
        and end_us >= until_us
        and trials.attempt(removed(trials.document, (*path, last)))
    ):
        return
    if end_us is None and path[0] == "fault":
        return  # A fault without an end is as simple as it gets.
    others = sorted(
        {
            t_us
            for other, t_us in _points(trials.document)
            if other[:2] != path and start_us < t_us < start_us + length_us
        }
    )
    lengths = [*_LENGTHS_US, *(each - start_us for each in others), length_us // 2]
    for each in sorted(lengths):
        if _MS_US <= each < length_us and trials.attempt(
            put(trials.document, (*path, last), show_duration(start_us + each))
        ):
            return


def simple_durations(trials: Trials) -> None:
    """Lengths and shifts of faults, and delays of steps: the smallest round ones that do."""
    for path in key_paths(trials.document):
        value = _value(trials, path)
        now_us = time_of(value) if path[-1] in _SPANS and path[0] != "cluster" else None
        if not now_us:
            continue
        sign = -1 if now_us < 0 else 1
        for each in (0, *_LENGTHS_US):
            if each < abs(now_us) and trials.attempt(
                put(trials.document, path, show_duration(sign * each))
            ):
                break


# Moments -----------------------------------------------------------------------------------------


def round_times(trials: Trials) -> None:
    """Each time on the coarsest grid that will do; later only by little, and no window longer."""
    for path, _ in _points(trials.document):
        now_us = time_of(_value(trials, path))
        if now_us is not None and path[0] != "expect":
            _round(trials, path, now_us)
    now_us = trials.scenario.until_us
    if now_us % _LATER_MAX_US and not trials.goal.is_about_the_end:
        above_us = -(-now_us // _LATER_MAX_US) * _LATER_MAX_US
        trials.attempt(put(trials.document, ("until",), show_duration(above_us)))


def _round(trials: Trials, path: Path, now_us: int) -> None:
    is_end = path[-1] in ("end", "stop")
    for grid_us in _GRIDS_US:
        if now_us % grid_us == 0:
            return
        below_us = now_us // grid_us * grid_us
        if trials.attempt(put(trials.document, path, show_duration(below_us))):
            return
        above_us = below_us + grid_us
        if (
            grid_us <= _LATER_MAX_US
            and not is_end
            and trials.attempt(put(trials.document, path, show_duration(above_us)))
        ):
            return


def close_gaps(trials: Trials) -> None:
    """Everything behind a moment at which nothing begins or ends: earlier, and the end too."""
    moments = sorted({0, *(t_us for _, t_us in _points(trials.document))})
    moments.append(trials.scenario.until_us)
    for at in range(len(moments) - 1, 0, -1):
        gap_us = moments[at] - moments[at - 1]
        for left_us in (100 * _MS_US, _S_US, gap_us // 2 // _S_US * _S_US):
            if 0 < left_us < gap_us and (at < len(moments) - 1 or not _is_end_fixed(trials)):
                shift_us = gap_us - left_us
                if trials.attempt(_shifted(trials.document, moments[at], shift_us)):
                    moments[at:] = [each - shift_us for each in moments[at:]]
                    break


def _is_end_fixed(trials: Trials) -> bool:
    return trials.goal.is_about_the_end


def _shifted(document: Document, from_us: int, by_us: int) -> Document:
    """All times from one on so much earlier."""
    found = deepcopy(document)
    for path, t_us in _points(document):
        if t_us >= from_us:
            at_path(found, path[:-1])[path[-1]] = show_duration(t_us - by_us)
    found["until"] = show_duration((time_of(document["until"]) or 0) - by_us)
    return found
