"""Swarm: whole scenarios drawn from a seed, or from what a property tester chooses.

``drawn(seed, envelope)`` gives a document, which is a scenario file. Each seed has a cluster,
topics, clients and faults of its own, with most kinds of faults switched off (FAULTS C.0).

Left out: running them (``sim.running``), and Hypothesis (``sim.strategies``).
"""

from __future__ import annotations

from sim.swarm.choosing import Choices, KeyedChoices
from sim.swarm.documents import draw_document, drawn
from sim.swarm.frame import ENVELOPES
from sim.swarm.kinds import KINDS
from sim.swarm.wanted import Wanted

__all__ = ["ENVELOPES", "KINDS", "Choices", "KeyedChoices", "Wanted", "draw_document", "drawn"]
