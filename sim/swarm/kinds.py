"""The table of all kinds of faults and disturbing steps that scenarios are drawn with.

Left out: the kinds (``links``, ``nodes``, ``disks``, ``people``, ``sequences``, ``behind``).
"""

from __future__ import annotations

from typing import Final

from sim.swarm.behind import BEHIND_KINDS
from sim.swarm.disks import DISK_KINDS
from sim.swarm.links import LINK_KINDS
from sim.swarm.nodes import NODE_KINDS
from sim.swarm.people import PEOPLE_KINDS
from sim.swarm.plan import Kind
from sim.swarm.sequences import SEQUENCE_KINDS

__all__ = ["KINDS"]

_ALONE: Final = (*LINK_KINDS, *NODE_KINDS, *DISK_KINDS, *PEOPLE_KINDS)
_ALL: Final = (*_ALONE, *SEQUENCE_KINDS, *BEHIND_KINDS)
KINDS: Final[dict[str, Kind]] = {each.name: each for each in _ALL}
"""By name."""
