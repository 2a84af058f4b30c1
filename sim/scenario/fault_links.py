"""Kinds of faults of links, as ``[[fault]]`` tables have them (FAULTS C.1).

Left out: carrying them out (``sim.network_rules``).
"""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from sim.network_rules import IN_FLIGHT
from sim.scenario.action_kinds import BYTES_MAX, COUNT_MAX
from sim.scenario.durations import UNITS_US
from sim.scenario.fault_base import (
    MILLION,
    Fault,
    LinkFault,
    NodeFault,
    ppm_of,
    times_of,
)
from sim.scenario.kinds import Choice, Duration, Flag, Integer, ListOf, item
from sim.scenario.name_kinds import SelectorKind
from sim.scenario.problems import Refusal
from sim.scenario.selectors import Selector

__all__ = [
    "ClogFault",
    "CorruptFault",
    "CutFault",
    "DuplicateFault",
    "FlapFault",
    "LimitFault",
    "LossFault",
    "MetadataLagFault",
    "PartitionFault",
    "RefuseFault",
    "ReorderFault",
    "ResetFault",
    "SwizzleFault",
]

_MS: Final = UNITS_US["ms"]


@frozen(kw_only=True)
class CutFault(LinkFault):
    """Nothing passes."""

    KIND: ClassVar[str] = "cut"
    in_flight: str = item(Choice(IN_FLIGHT), "what becomes of messages", default="drop")
    backoff_cap_us: int = item(
        Duration(), "with hold: messages arrive at a retransmission, no rarer than this", default=0
    )

    def check(self) -> list[Refusal]:
        found = super().check()
        if self.backoff_cap_us and self.in_flight != "hold":
            text = 'backoff_cap goes with in_flight = "hold"'
            found.append(Refusal(text, at=("backoff_cap",), is_key=True))
        return found


@frozen(kw_only=True)
class PartitionFault(Fault):
    """All links between groups of nodes are cut; who is in no group keeps all links."""

    KIND: ClassVar[str] = "partition"
    target: tuple[tuple[Selector, ...], ...] = item(
        ListOf(
            ListOf(SelectorKind(servers_only=False), high=200, what="nodes"),
            low=2,
            high=100,
            what="groups",
        ),
        "groups of nodes",
    )
    in_flight: str = item(Choice(IN_FLIGHT), "what becomes of messages", default="drop")


@frozen(kw_only=True)
class ClogFault(LinkFault):
    """Everything waits until the end, and then arrives in order."""

    KIND: ClassVar[str] = "clog"


@frozen(kw_only=True)
class LossFault(LinkFault):
    """Transmissions are lost, and repeated later where links are streams."""

    KIND: ClassVar[str] = "loss"
    ppm: int = ppm_of("so many of a million transmissions")


@frozen(kw_only=True)
class ResetFault(LinkFault):
    """The connection fails when a request arrives (``before`` it is applied) or its response."""

    KIND: ClassVar[str] = "reset"
    moment: str = item(
        Choice(("before", "after")), "before the request is applied, or after", default="before"
    )
    ppm: int = ppm_of()
    times: int | None = times_of()
    half_open: Selector | None = item(
        SelectorKind(is_single=True, servers_only=False), "the end that hears nothing", default=None
    )


@frozen(kw_only=True)
class RefuseFault(LinkFault):
    """New connections fail, at once or after ``hangs``; those that there are go on."""

    KIND: ClassVar[str] = "refuse"
    hangs_us: int = item(Duration(), "how long the source waits in vain", default=0)

    def check(self) -> list[Refusal]:
        return super().check() + _no_only(self)


@frozen(kw_only=True)
class LimitFault(LinkFault):
    """Bandwidth, and a send buffer."""

    KIND: ClassVar[str] = "limit"
    bytes_per_s: int = item(Integer(1, BYTES_MAX), "bandwidth")
    buffer_bytes: int = item(Integer(1, BYTES_MAX), "what waits in front of it", default=1 << 18)

    def check(self) -> list[Refusal]:
        return super().check() + _no_only(self)


@frozen(kw_only=True)
class CorruptFault(LinkFault):
    """Bits of a frame are flipped behind all checksums of the transport.

    Batches have checksums of their own. What is still a message otherwise is believed, so what it
    asks or says may break an invariant: of a cluster that is struck so, nothing is promised.
    """

    KIND: ClassVar[str] = "corrupt"
    bits: int = item(Integer(1, 32), "how many", default=1)
    ppm: int = ppm_of()
    times: int | None = times_of()


@frozen(kw_only=True)
class DuplicateFault(LinkFault):
    """A second copy arrives at a time of its own; needs network = "datagram"."""

    KIND: ClassVar[str] = "duplicate"
    ppm: int = ppm_of()


@frozen(kw_only=True)
class ReorderFault(LinkFault):
    """Messages arrive later, and others overtake them; needs network = "datagram"."""

    KIND: ClassVar[str] = "reorder"
    ppm: int = ppm_of()
    up_to_us: int = item(Duration(1, 1 << 31), "how much later")


@frozen(kw_only=True)
class FlapFault(LinkFault):
    """Links are cut and whole by turns."""

    KIND: ClassVar[str] = "flap"
    period_us: int = item(Duration(_MS), "one turn of both")
    duty_ppm: int = ppm_of("so many millionths of it the links are cut", 500_000)
    in_flight: str = item(Choice(IN_FLIGHT), "what becomes of messages", default="drop")

    def check(self) -> list[Refusal]:
        found = super().check()
        if self.duty_ppm == MILLION:
            text = "links that are never whole do not flap"
            found.append(Refusal(text, at=("duty_ppm",), hint='write kind = "cut"'))
        return found


@frozen(kw_only=True)
class SwizzleFault(NodeFault):
    """Half of the nodes, drawn, are clogged one by one and then released in another order.

    Of an odd number it is the larger half. When the last is released nothing more happens; at the
    end all are.
    """

    KIND: ClassVar[str] = "swizzle"
    period_us: int = item(Duration(_MS), "between two of them")

    def check(self) -> list[Refusal]:
        found = super().check()
        if len(self.target) == 1 and self.target[0].is_single:
            text = "there is no half of one node"
            found.append(Refusal(text, at=("target",), hint="name two or more"))
        return found


@frozen(kw_only=True)
class MetadataLagFault(NodeFault):
    """A broker or client hears of metadata so many records late, or goes straight to the newest.

    A broker is given the records of the metadata log one by one, so many behind the newest; with
    ``skip`` nothing until the end, and then the newest state as one change. A client is given an
    answer when that is so old, or with ``skip`` at the end.
    """

    KIND: ClassVar[str] = "metadata-lag"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("records", "skip"),)
    target: tuple[Selector, ...] = item(
        ListOf(
            SelectorKind(servers_only=False),
            high=100,
            takes_one=True,
            is_distinct=True,
            what="nodes",
        ),
        "which brokers or clients",
    )
    records: int | None = item(Integer(1, COUNT_MAX), "how far behind", default=None)
    skip: bool = item(Flag(), "nothing meanwhile, then the newest at once", default=False)

    def check(self) -> list[Refusal]:
        found = super().check()
        if self.records is None and not self.skip:
            found.append(Refusal("it changes nothing", at=("skip",), hint="write records"))
        for at, each in enumerate(self.target):
            if each.kind == "controller":
                text = "the controller asks for no metadata"
                hint = "write a broker or client"
                found.append(Refusal(text, at=("target", at), hint=hint))
        return found


def _no_only(fault: LinkFault) -> list[Refusal]:
    if not fault.only:
        return []
    return [Refusal("it strikes all messages of a link", at=("only",), is_key=True)]
