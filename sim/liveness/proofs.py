"""Proofs that something missing cannot come: their kinds, and what each says of what is missing.

Left out: how they are found (``sim.liveness.recoverability``, ``sim.liveness.damage_proofs``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from sim.liveness.predicates import Missing
from sim.liveness.snapshot import Culprit

__all__ = ["KINDS", "Impossible"]

KINDS: Final[dict[str, str]] = {
    "no-controller": "the controller is down for good",
    "cannot-live": "a broker of the core cannot run: its disk is full, or damaged",
    "no-electable": "everybody who may lead is gone or damaged, and unclean election is off",
    "quarantined-everywhere": "all logs of a partition are in quarantine",
    "leader-outside": "the lead is with a broker outside the core that others do not reach",
    "zombie-outside": "a broker outside the core, cut off, takes itself for a leader that it was",
    "leader-damaged": "a leader has bytes that nobody can read, and does not know",
    "answers-fail": "a leader fails to answer, since it has to for a file that was cut short, too",
    "follower-damaged": "a follower has failed on bytes of its own that nobody can read",
    "follower-misled": "a follower has failed on an answer, or a request, that was garbled",
    "role-refused": "a replica cannot take its role, since bytes of its log cannot be read",
    "isr-behind-damage": "damage keeps so many from the end that too few are left for acks=all",
    "isr-circles": "damage makes a follower leave the ISR and join it again, without end",
    "asked-is-gone": "an operator asks a broker that is gone",
    "asked-for-gone": "an operator asks for replicas on brokers that are gone",
    "min-isr-unreachable": "too few replicas can ever be in sync for acks=all",
    "quarantined": "a log is damaged in a way that cannot be salvaged",
    "reassignment-stuck": "a replica that a reassignment leads to is gone, or damage holds it back",
}
"""By kind: what is proven."""

_OF_WHOLE_PARTITION: Final = frozenset({"no-electable", "quarantined-everywhere", "leader-outside"})
_OF_CLIENTS: Final = frozenset({"writes-answered", "operations-ended", "readers-drained"})
_OF_READERS: Final = frozenset({"readers-drained", "isr-complete", "logs-equal"})
_OF_FAILED: Final = frozenset({"replicas-sound", "isr-complete", "logs-equal"})
_OF_NODE: Final = frozenset({"brokers-run", "brokers-unfenced", "metadata-applied"})


class Impossible(NamedTuple):
    """One proof.

    Attributes:
        kind: of ``KINDS``.
        partition, node: what it is about; empty for none.
        text: the proof in words, without its culprits.
        is_certain: there is nothing to wait for. A fault that stays with a broker outside the core
            may be light, and clients may find out about a zombie.
    """

    kind: str
    partition: str
    node: str
    text: str
    culprits: tuple[Culprit, ...]
    is_certain: bool = True

    def explains(self, found: Iterable[Missing]) -> bool:
        """Whether something is unavailable by it: it covers what is missing, or writes fail."""
        return self.kind == "min-isr-unreachable" or any(map(self.covers, found))

    def covers(self, each: Missing) -> bool:
        """Whether it says why this is missing."""
        if self.kind == "no-controller":
            return True
        if self.kind in ("asked-is-gone", "asked-for-gone"):
            return each.predicate == "operations-ended" and (each.partition, each.node) == (
                "",
                self.node,
            )
        if self.kind == "cannot-live":
            return each.node == self.node and each.predicate in _OF_NODE
        if each.partition != self.partition:
            return False
        if self.kind == "min-isr-unreachable":
            return each.predicate == "operations-ended"
        if self.kind == "zombie-outside":
            return each.predicate in _OF_CLIENTS
        if self.kind in ("leader-damaged", "answers-fail"):
            return each.node == self.node and each.predicate in _OF_READERS
        if self.kind == "isr-behind-damage":
            return each.predicate in ("writes-answered", "operations-ended")
        if self.kind == "isr-circles":
            # Of a leader's own log nothing is unequal but how much of it is committed.
            is_held = each.predicate == "logs-equal" and each.node == self.node
            return each.predicate == "epochs-stable" or is_held
        if self.kind == "role-refused":
            return not self.node or (each.node == self.node and each.predicate in _OF_FAILED)
        if self.kind in ("follower-damaged", "follower-misled"):
            return each.node == self.node and each.predicate in _OF_FAILED
        if self.kind == "quarantined":
            return each.predicate == "replicas-sound" and each.node == self.node
        if self.kind == "reassignment-stuck":
            return each.predicate in ("no-reassignment", "operations-ended")
        return self.kind in _OF_WHOLE_PARTITION

    def __str__(self) -> str:
        by = "; ".join(map(str, self.culprits))
        return f"{self.text}: {by}" if by else self.text
