"""What fault tables have in common: id, target, start and end; links as targets.

Left out: the kinds (``sim.scenario.fault_links``, ``sim.scenario.fault_nodes``).
"""

from __future__ import annotations

from typing import Any, ClassVar, Final

from attrs import field, frozen

from sim.disk_faults import FAULT_KINDS as CALLS
from sim.network_rules import MESSAGE_NAMES
from sim.scenario.action_kinds import COUNT_MAX
from sim.scenario.durations import duration_us
from sim.scenario.expressions import Expression, expression
from sim.scenario.kinds import (
    ID,
    Choice,
    Condition,
    Duration,
    Flag,
    Integer,
    ListOf,
    Reader,
    Text,
    item,
    no_such_key,
)
from sim.scenario.name_kinds import SelectorKind
from sim.scenario.problems import Refusal, Refusals
from sim.scenario.selectors import Selector

__all__ = [
    "DISK_CALLS",
    "MILLION",
    "WORK_KINDS",
    "DiskFault",
    "Fault",
    "LinkFault",
    "Links",
    "LinksKind",
    "NodeFault",
    "When",
    "WhenKind",
    "ppm_of",
    "times_of",
]

MILLION: Final = 1_000_000
WORK_KINDS: Final = (
    "delete",
    "epochs",
    "flush",
    "persist",
    "prune",
    "remove-directory",
    "snapshot",
)
DISK_CALLS: Final = tuple(sorted(CALLS["error"]))


@frozen
class When:
    """A time, or the first moment at which an expression holds; exactly one of both."""

    at_us: int | None = None
    that: Expression | None = None


@frozen
class WhenKind:
    """A time of virtual time, or ``{ when = "EXPR" }``."""

    def read(self, value: object, reader: Reader) -> When:
        if not isinstance(value, dict):
            return When(at_us=duration_us(value))
        for key in value:
            if key != "when":
                raise no_such_key(key, ["when"])
        if "when" not in value:
            raise Refusal('there is no "when"', hint='write { when = "EXPRESSION" }')
        try:
            return When(that=expression(value["when"], reader.names))
        except Refusals as refusals:
            raise Refusals([each.below("when") for each in refusals.found]) from None

    def schema(self) -> dict[str, Any]:
        when = {"when": Condition().schema()}
        table = {
            "type": "object",
            "properties": when,
            "required": ["when"],
            "additionalProperties": False,
        }
        return {"anyOf": [Duration().schema(), table]}

    def show(self, value: Any) -> Any:
        return None


@frozen
class Links:
    """Directed links: from each of ``sources`` to each of ``targets``; None for every node."""

    sources: tuple[Selector, ...] | None
    targets: tuple[Selector, ...] | None
    both: bool = False


@frozen
class LinksKind:
    """A node or a list of them (all their links), ``"*"``, or ``{ from, to, both }``."""

    def read(self, value: object, reader: Reader) -> Links:
        nodes = ListOf(SelectorKind(servers_only=False), high=100, takes_one=True)
        if value == "*":
            return Links(None, None)
        if not isinstance(value, dict):
            return Links(nodes.read(value, reader), None, both=True)
        refused: list[Refusal] = [
            no_such_key(key, ["from", "to", "both"])
            for key in value
            if key not in ("from", "to", "both")
        ]
        ends: dict[str, tuple[Selector, ...] | None] = {}
        for key in ("from", "to"):
            try:
                each = value.get(key, "*")
                ends[key] = None if each == "*" else nodes.read(each, reader)
            except Refusal as refusal:
                refused.append(refusal.below(key))
            except Refusals as refusals:
                refused += [each.below(key) for each in refusals.found]
        both = False
        try:
            both = Flag().read(value.get("both", False), reader)
        except Refusal as refusal:
            refused.append(refusal.below("both"))
        if refused:
            raise Refusals(refused)
        return Links(ends["from"], ends["to"], both)

    def schema(self) -> dict[str, Any]:
        one = {"type": "string"}
        nodes = {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}
        table = {
            "type": "object",
            "properties": {"from": nodes, "to": nodes, "both": {"type": "boolean"}},
            "additionalProperties": False,
        }
        return {"anyOf": [*nodes["anyOf"], table]}

    def show(self, value: Any) -> Any:
        return None


@frozen(kw_only=True)
class Fault:
    """What all kinds have.

    Attributes:
        KIND: as files spell it.
        number: of the table, from 1.
        line: of the file; 0 where it is none.
    """

    KIND: ClassVar[str] = ""
    id: str = item(ID, "how traces and heal name it")
    start: When = item(WhenKind(), "when it strikes")
    end: When | None = item(WhenKind(), "when it is over; else never", default=None)
    number: int = field(default=0, init=False)
    line: int = field(default=0, init=False, eq=False)

    def check(self) -> list[Refusal]:
        """What is wrong between its keys."""
        start, end = self.start.at_us, None if self.end is None else self.end.at_us
        if start is not None and end is not None and end < start:
            return [Refusal("it ends before it starts", at=("end",))]
        return []


def times_of(default: int | None = 1) -> Any:
    return item(Integer(1, COUNT_MAX), "strikes at most; else for ever", default=default)


def ppm_of(doc: str = "so many of a million are struck", default: Any = MILLION) -> Any:
    return item(Integer(1, MILLION), doc, default=default)


@frozen(kw_only=True)
class LinkFault(Fault):
    """A fault of links."""

    target: Links = item(LinksKind(), "a node (all its links), or { from, to, both }")
    only: tuple[str, ...] = item(
        ListOf(Choice(MESSAGE_NAMES), high=100, what="message names"),
        "messages: Fetch, FetchRequest, ...; else all",
        default=(),
    )


@frozen(kw_only=True)
class NodeFault(Fault):
    """A fault of brokers and the controller."""

    target: tuple[Selector, ...] = item(
        ListOf(SelectorKind(), high=100, takes_one=True, is_distinct=True, what="nodes"),
        "which nodes",
    )


@frozen(kw_only=True)
class DiskFault(NodeFault):
    """A fault of calls of a disk."""

    path: str = item(Text(), "suffix of the path that is struck; else every path", default="")
    skip: int = item(Integer(0, COUNT_MAX), "so many calls pass before the first strike", default=0)
    times: int | None = times_of()
