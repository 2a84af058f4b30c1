"""Which steps are impossible because of what earlier steps did to a node.

The steps are gone through in their order, as far as that and the nodes meant are certain; a node of
which nothing is known passes.

Left out: everything that depends on what happens while running.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.scenario.actions import Action, Corrupt, Crash, Fill, Pause, Resume, Shutdown, Start
from sim.scenario.model import Step
from sim.scenario.problems import Refusal

__all__ = ["impossible_steps"]

_UNKNOWN: Final = "unknown"


def impossible_steps(steps: Sequence[Step]) -> list[Refusal]:
    """Crashes of what is down, starts of what runs, and the like."""
    found: list[Refusal] = []
    states: dict[str, str] = {}
    others = "running"
    for step in steps:
        action = step.action
        if isinstance(action, (Corrupt, Fill)):
            # A broker halts when its disk fails it; which, and when, is not known here.
            return found
        if not isinstance(action, (Crash, Pause, Resume, Shutdown, Start)):
            continue
        if step.after is not None:
            # It may run at any time, between any of those that follow.
            return found
        for at, each in enumerate(action.nodes):
            if each.kind not in ("node", "controller"):
                states, others = {}, _UNKNOWN
                continue
            name = each.node or "c1"
            state = states.get(name, others)
            text = _problem(action, name, state)
            if text:
                path = ("step", step.number - 1, action.NAME, "node", at)
                found.append(Refusal(text, at=path))
            states[name] = _next(action, state)
    return found


def _problem(action: Action, name: str, state: str) -> str:
    if state == _UNKNOWN:
        return ""
    match action:
        case Crash(how="power"):
            return f"{name} is off already" if state == "off" else ""
        case Crash() | Shutdown():
            return f"{name} is down already" if state in ("down", "off") else ""
        case Start():
            return f"{name} runs already" if state in ("running", "paused") else ""
        case Pause():
            return f"{name} is {state} already" if state != "running" else ""
        case Resume():
            return f"{name} is {state}, not paused" if state != "paused" else ""
    return ""


def _next(action: Action, state: str) -> str:
    match action:
        case Crash(at_failpoint=str()) | Shutdown():
            return _UNKNOWN
        case Crash(how="power"):
            return "off"
        case Crash():
            return "down"
        case Pause():
            return "paused"
        case _:
            return "running"
