"""What all hosts of one world share.

Left out: the hosts (``sim.hosts``) and how they are put together (``sim.world``).
"""

from __future__ import annotations

from attrs import define, field

from sim.cluster_config import ClusterConfig
from sim.draws import Draws
from sim.network import Network
from sim.timeline import Timeline
from sim.trace.writer import Trace

__all__ = ["Kernel"]


@define(eq=False)
class Kernel:
    """Time, chance, the trace, the network and the configuration of one world."""

    config: ClusterConfig
    timeline: Timeline
    draws: Draws
    trace: Trace
    network: Network = field(init=False)
