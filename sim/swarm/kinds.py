"""The table of all kinds of faults and disturbing steps that scenarios are drawn with.

Left out: the kinds (``links``, ``nodes``, ``disks``, ``people``, ``sequences``, ``behind``,
``lives``, ``asking``).
"""

from __future__ import annotations

from typing import Final

from sim.swarm.asking import ASKING_KINDS
from sim.swarm.behind import BEHIND_KINDS
from sim.swarm.disks import DISK_KINDS
from sim.swarm.diverging import DIVERGING_KINDS
from sim.swarm.late_answers import LATE_KINDS
from sim.swarm.links import LINK_KINDS
from sim.swarm.lives import LIVES_KINDS
from sim.swarm.nodes import NODE_KINDS
from sim.swarm.people import PEOPLE_KINDS
from sim.swarm.plan import Kind
from sim.swarm.sequences import SEQUENCE_KINDS

__all__ = ["KINDS", "SEQUENCES"]

_ALONE: Final = (*LINK_KINDS, *NODE_KINDS, *DISK_KINDS, *PEOPLE_KINDS)
SEQUENCES: Final = (
    *SEQUENCE_KINDS,
    *BEHIND_KINDS,
    *DIVERGING_KINDS,
    *LATE_KINDS,
    *LIVES_KINDS,
    *ASKING_KINDS,
)
"""Those that bring about a state by several faults and steps, and go by time-outs."""
_ALL: Final = (*_ALONE, *SEQUENCES)
KINDS: Final[dict[str, Kind]] = {each.name: each for each in _ALL}
"""By name."""
