"""Violations, and the table of checks: the names of the invariants of PROTOCOL C.4.

Left out: how each is found, which stands in the module of its name.
"""

from __future__ import annotations

from typing import Any, Final

from attrs import field, frozen

__all__ = ["CHECKS", "Violation"]

CHECKS: Final[dict[str, tuple[str, str]]] = {
    "committed-durability": ("I1", "what is committed or acknowledged stays where it is"),
    "committed-log-matching": ("I2", "two logs agree below both their high watermarks"),
    "epoch-prefix": ("I3", "logs with the same batch of an epoch agree on everything before it"),
    "leader-hw-monotonic": ("I4", "a leader's high watermark never falls within its epoch"),
    "hw-valid": ("I5", "every member of the ISR has all that is below the high watermark"),
    "leader-completeness": ("I6", "a leader that was elected cleanly has all that is committed"),
    "one-leader-per-epoch": ("I7", "one broker appends under an epoch; epochs only grow"),
    "isr-well-formed": ("I8", "the controller's word on a partition makes sense"),
    "epoch-cache-matches-log": ("I9", "the epochs that a log knows are those of its batches"),
    "offsets-increase": ("I10", "batches stand in order, each in the segment it belongs to"),
    "consistent-read": ("I11", "what a consumer read was committed, and never changes"),
    "progress": ("I12", "with all faults over, everything is replicated and acknowledged"),
    "truncation-floor": ("I13", "no member of the ISR cuts what is committed"),
    "offset-order": ("I14", "log start, high watermark and log end stand in order"),
    "idempotence": ("I15", "no sequence of a producer is there twice, and none is skipped"),
    "recovery-sound": ("I17", "recovery keeps what was durable, and invents nothing"),
    "quorum-superset": ("I18", "a leader counts with every member that the controller has"),
    "ack-honours-min-isr": ("I19", "min.insync.replicas held what is acknowledged"),
    "epoch-fencing": ("I20", "what is of an older epoch has no effect"),
}
"""By id: the number in PROTOCOL C.4, and the rule in words."""


@frozen
class Violation:
    """A rule was broken, for the first time in this way at this partition.

    Attributes:
        check: id of the invariant, a key of ``CHECKS``.
        partition: as ``orders-0``; empty where it is not about one.
        kind: which way it was broken; check, partition and kind are the violation's identity.
        event: number of the trace event in which it came about.
        told: number of the event of kind ``check`` that says so.
        evidence: the values seen, plain.
        causes: earlier events that led to it, ``event`` among them.
    """

    check: str
    partition: str
    kind: str
    event: int
    told: int
    detail: str
    evidence: dict[str, Any] = field(factory=dict)
    causes: tuple[int, ...] = ()

    @property
    def number(self) -> str:
        """The invariant's number in PROTOCOL C.4."""
        return CHECKS[self.check][0]

    def plain(self) -> dict[str, Any]:
        """As the trace's footer has it."""
        return {
            "check": self.check,
            "number": self.number,
            "partition": self.partition,
            "kind": self.kind,
            "event": self.event,
            "detail": self.detail,
            "evidence": self.evidence,
            "causes": list(self.causes),
        }

    def __str__(self) -> str:
        where = f" {self.partition}" if self.partition else ""
        return f"{self.check} ({self.number}){where} {self.kind} at #{self.event}: {self.detail}"
