"""Leaving faults and steps out, with whatever depends on them, and the rest at its time.

Who came behind something that is gone, by ``after`` or by standing behind it, keeps the moment that
it had in the last run: a step does not come early because one in front of it is gone.

Left out: which ones (``sim.shrinking.dropping``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any, Final, TypeVar

from sim.running.without import Moments
from sim.scenario.durations import show_duration
from sim.shrinking.tables import Document, action_of, tables

__all__ = ["chunks_removed", "without"]

_T = TypeVar("_T")
_MS_US: Final = 1_000


def chunks_removed(items: Sequence[_T], attempt: Callable[[list[_T]], bool]) -> None:
    """Delta debugging: all, halves, quarters, ... and single ones, the last ones first.

    Args:
        attempt: tries without these; whether they are gone now.
    """
    left = list(items)
    size = len(left)
    while size and left:
        end = len(left)
        while end > 0:
            first = max(0, end - size)
            if attempt(left[first:end]):
                del left[first:end]
            end = first
        if size == 1:
            return
        size = (size + 1) // 2


def without(
    document: Document,
    moments: Moments,
    *,
    faults: frozenset[str] = frozenset(),
    steps: frozenset[str] = frozenset(),
    keeps: str = "",
) -> Document:
    """A copy without faults and steps, by their ids.

    Args:
        moments: of a run of the document.
        keeps: the identity's name of an expectation that stays, whatever it depends on.
    """
    found = deepcopy(document)
    gone = set(faults) | set(steps)
    while True:
        before = len(gone)
        for step in tables(found, "step"):
            if step.get("id") not in gone and _is_idle(step, gone):
                gone.add(step.get("id", ""))
        if len(gone) == before:
            break
    gone.discard("")
    if "fault" in found:
        found["fault"] = [each for each in found["fault"] if each["id"] not in gone]
    kept: list[dict[str, Any]] = []
    is_behind_gone = False
    for at, step in enumerate(tables(found, "step")):
        if step.get("id") in gone or ("id" not in step and _is_idle(step, gone)):
            is_behind_gone = True
            continue
        _heal_the_rest(step, gone)
        follows = "at" not in step and "after" not in step
        if step.get("after") in gone or (follows and is_behind_gone):
            moment_us = moments.steps.get(at + 1)
            if moment_us is None:
                is_behind_gone = True  # It never began, and nobody knows when it would.
                continue
            _pin(step, moment_us)
        kept.append(step)
        is_behind_gone = False
    if "step" in found:
        found["step"] = kept
    if "expect" in found:
        found["expect"] = [
            each
            for each in found["expect"]
            if each.get("after") not in gone
            or (keeps and keeps.partition(": ")[2] in each.values())
        ]
    return found


def _pin(step: dict[str, Any], moment_us: int) -> None:
    for key in ("after", "delay"):
        step.pop(key, None)
    # It began behind all that happened at that moment, and steps with a time come first.
    at = show_duration(moment_us + 1 if moment_us % _MS_US else moment_us)
    rest = dict(step)
    step.clear()
    if "id" in rest:
        step["id"] = rest.pop("id")
    step["at"] = at
    step.update(rest)


def _healed(step: dict[str, Any]) -> list[str]:
    value = step.get("heal", [])
    value = value.get("id", []) if isinstance(value, dict) else value
    return [value] if isinstance(value, str) else list(value)


def _is_idle(step: dict[str, Any], gone: set[str]) -> bool:
    """Whether nothing is left for a step to do."""
    if action_of(step) == "heal":
        return all(each in gone for each in _healed(step))
    return False


def _heal_the_rest(step: dict[str, Any], gone: set[str]) -> None:
    if action_of(step) == "heal" and any(each in gone for each in _healed(step)):
        left = [each for each in _healed(step) if each not in gone]
        step["heal"] = left[0] if len(left) == 1 else left
    start = step.get("start")
    if isinstance(start, dict) and str(start.get("disk", "")).removeprefix("image:") in gone:
        del start["disk"]
