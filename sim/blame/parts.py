"""The parts of a scenario that can be left out: its faults, and the steps that disturb.

A part is known by its id, or as ``step 3``. Steps of clients, waits and ``flush`` are no parts, and
neither is what only ends a disturbance: ``heal``, ``start`` on the same disk, ``resume``. Without
the disturbance these find nothing to do, and are passed over (``sim.running.without``). A ``start``
on another disk is a part; without it the node starts on its own disk.

Left out: guards and configuration, which belong to the cluster, not to what happens to it.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from typing import Final

from attrs import frozen

from sim.running.without import Moments, Without
from sim.scenario import actions
from sim.scenario.model import Scenario, Step

__all__ = ["UNDOING", "Part", "PartUnknown", "named", "parts_of", "without"]

_DISTURBING: Final = (
    actions.Config,
    actions.Corrupt,
    actions.Crash,
    actions.Cut,
    actions.DeleteRecords,
    actions.DeleteTopic,
    actions.Elect,
    actions.Fill,
    actions.Partition,
    actions.Pause,
    actions.Reassign,
    actions.Shutdown,
    actions.Slow,
)
UNDOING: Final = (actions.Heal, actions.Resume, actions.Start)
"""What ends a disturbance, and has nothing to do where there was none."""


class PartUnknown(Exception):
    """There is no part of that name; says which there are."""


@frozen
class Part:
    """One of them.

    Attributes:
        name: its id, or ``step 3``.
        what: the step's action, or the kind of the fault.
        step: number of the step; 0 for a fault.
        key: by what the trace knows the faults that it begins.
    """

    name: str
    what: str
    step: int
    key: str

    @property
    def is_fault(self) -> bool:
        return self.step == 0


def parts_of(scenario: Scenario) -> tuple[Part, ...]:
    """All of them: faults first, each kind in the order of the file."""
    faults = [Part(each.id, each.KIND, 0, each.id) for each in scenario.faults]
    steps = [
        Part(each.id or f"step {each.number}", each.action.NAME, each.number, each.fault_id)
        for each in scenario.steps
        if _disturbs(each)
    ]
    return (*faults, *steps)


def _disturbs(step: Step) -> bool:
    if isinstance(step.action, actions.Start):
        return step.action.disk != "same"
    return isinstance(step.action, _DISTURBING)


def named(parts: Iterable[Part], name: str) -> Part:
    """The part of a name.

    Raises:
        PartUnknown: there is none.
    """
    known = {each.name: each for each in parts}
    if name not in known:
        near = get_close_matches(name, known, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else ""
        raise PartUnknown(f'there is no part "{name}", there are {", ".join(known)}{hint}')
    return known[name]


def without(moments: Moments, parts: Iterable[Part]) -> Without:
    """What a run leaves out.

    Args:
        moments: of the run with all of them.
    """
    listed = list(parts)
    return Without(
        moments,
        frozenset(each.step for each in listed if not each.is_fault),
        frozenset(each.key for each in listed if each.is_fault),
    )
