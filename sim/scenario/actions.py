"""Actions: what a step does, one frozen class for each, with its keys, defaults and checks.

``ACTIONS`` is the closed table. Docstrings are what ``explain`` shows.

Left out: doing it (``sim.running``), and when.
"""

from __future__ import annotations

from typing import ClassVar, Final

from attrs import frozen

from sim.network_rules import IN_FLIGHT
from sim.scenario.action_base import Action
from sim.scenario.action_kinds import (
    COUNT_MAX,
    IMAGES,
    ONLY,
    DiskKind,
    FailpointKind,
    OffsetKind,
    nodes,
)
from sim.scenario.durations import UNITS_US
from sim.scenario.expressions import Expression
from sim.scenario.kinds import (
    ID,
    Choice,
    Condition,
    Duration,
    Flag,
    Integer,
    ListOf,
    Text,
    item,
)
from sim.scenario.name_kinds import PartitionKind, SelectorKind, TargetKind
from sim.scenario.names import PartitionName
from sim.scenario.operator_actions import (
    Config,
    Corrupt,
    CreateTopic,
    DeleteRecords,
    DeleteTopic,
    Elect,
    Fill,
    Reassign,
    Slow,
)
from sim.scenario.problems import Refusal, seen
from sim.scenario.selectors import Selector

__all__ = [
    "ACTIONS",
    "HEALABLE",
    "Action",
    "Config",
    "Consume",
    "Corrupt",
    "Crash",
    "CreateTopic",
    "Cut",
    "DeleteRecords",
    "DeleteTopic",
    "Elect",
    "Fill",
    "Flush",
    "Heal",
    "Partition",
    "Pause",
    "Produce",
    "Reassign",
    "Resume",
    "Settle",
    "Shutdown",
    "Slow",
    "Start",
    "Wait",
]

_MS: Final = UNITS_US["ms"]


# Clients -----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Produce(Action):
    """Send records. Done when the outcome of each is known.

    ``to`` may name a topic without a number: then keys and batches decide on the partition.
    ``count`` sends that many records with values of their own; ``values`` and ``keys`` together
    must be as many.
    """

    NAME: ClassVar[str] = "produce"
    to: tuple[str, int | None] = item(TargetKind(), "partition, or topic")
    count: int | None = item(Integer(1, COUNT_MAX), "how many records", default=None)
    values: tuple[str, ...] | None = item(ListOf(Text()), "values of the records", default=None)
    keys: tuple[str, ...] | None = item(ListOf(Text()), "keys of the records", default=None)
    acks: str = item(
        Choice(("all", "1", "0")), "who must have a record before it is acknowledged", default="all"
    )
    batch: int = item(Integer(1, COUNT_MAX), "records in one batch, at most", default=1)
    timeout_us: int = item(
        Duration(_MS, multiple_us=_MS),
        "until an outcome is given up",
        default=30 * UNITS_US["s"],
    )
    client: str = item(ID, "who sends", default="p1")
    idempotence: bool | None = item(
        Flag(), "true with acks all, else false, if it is not there", default=None
    )

    @property
    def is_idempotent(self) -> bool:
        return self.acks == "all" if self.idempotence is None else self.idempotence

    @property
    def size(self) -> int:
        """How many records it sends."""
        return self.count or len(self.values or self.keys or ())

    def check(self) -> list[Refusal]:
        found = []
        if self.count is None and self.values is None and self.keys is None:
            found.append(Refusal("it sends nothing", hint="write count, values or keys"))
        for key in ("values", "keys"):
            if self.count is not None and getattr(self, key) is not None:
                text = f'"count" and "{key}" exclude each other'
                found.append(Refusal(text, at=("count",), is_key=True))
        if self.values and self.keys and len(self.values) != len(self.keys):
            text = f"there are {len(self.values)} values and {len(self.keys)} keys"
            found.append(Refusal(text, at=("keys",), hint="write one key a value"))
        if self.idempotence and self.acks != "all":
            text = f'idempotence needs acks = "all", not "{self.acks}"'
            found.append(Refusal(text, at=("idempotence",), hint="leave one of them out"))
        return found


@frozen(kw_only=True)
class Consume(Action):
    """Read records. Done when ``count`` of them are read.

    A client that has read from this partition goes on from there, unless ``offset`` is a number or
    ``latest``.
    """

    NAME: ClassVar[str] = "consume"
    source: PartitionName = item(PartitionKind(), "partition", key="from")
    offset: str | int = item(OffsetKind(), "where to begin", default="earliest")
    count: int = item(Integer(1, COUNT_MAX), "how many records")
    client: str = item(ID, "who reads", default="k1")
    reset: str = item(
        Choice(("earliest", "latest", "none")),
        "where to go on when the position is gone",
        default="earliest",
    )
    group: str | None = item(ID, "under which name positions are kept", default=None)
    isolation: str = item(
        Choice(("read_uncommitted", "read_committed")),
        "whether records of open transactions are read",
        default="read_uncommitted",
    )


@frozen(kw_only=True)
class Settle(Action):
    """Wait until every live replica has the leader's log end and high watermark, at most so long.

    Past the limit the run ends, naming who lags.
    """

    NAME: ClassVar[str] = "settle"
    SHORT: ClassVar[str] = "within"
    within_us: int = item(Duration(1), "the limit")


@frozen(kw_only=True)
class Wait(Action):
    """Wait until an expression holds; the step's ``within`` is the limit (60s)."""

    NAME: ClassVar[str] = "wait"
    SHORT: ClassVar[str] = "that"
    that: Expression = item(Condition(), "what must hold")


# Processes ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Crash(Action):
    """End a process without warning. Done at once, or with ``at_failpoint`` at the hit.

    ``process`` keeps the page cache; ``power`` takes what the image says: ``lost`` everything that
    is not synced, ``kept`` nothing, ``drawn`` something drawn, or a crash mode by name.
    """

    NAME: ClassVar[str] = "crash"
    nodes: tuple[Selector, ...] = nodes("who")
    how: str = item(Choice(("process", "power")), "what ends", default="process")
    image: str = item(Choice(IMAGES), "what a power loss leaves", default="lost")
    at_failpoint: str | None = item(FailpointKind(), "wait for this point", default=None)
    hit: int = item(Integer(1, COUNT_MAX), "at which time there", default=1)

    def check(self) -> list[Refusal]:
        found = []
        if self.image != "lost" and self.how != "power":
            text = 'an image is what a power loss leaves; how is "process"'
            found.append(Refusal(text, at=("image",), hint='write how = "power"'))
        if self.hit != 1 and self.at_failpoint is None:
            found.append(Refusal("hit counts arrivals at at_failpoint", at=("hit",), is_key=True))
        if self.at_failpoint is not None and len(self.nodes) > 1:
            found.append(Refusal("at_failpoint waits for one node", at=("node",)))
        return found


@frozen(kw_only=True)
class Start(Action):
    """Start a process where none runs, on its disk, a wiped one, or an older state of its own.

    ``of:b2`` is a copy of what the disk of b2 has now.
    """

    NAME: ClassVar[str] = "start"
    SHORT: ClassVar[str] = "node"
    nodes: tuple[Selector, ...] = nodes("who")
    disk: str = item(DiskKind(), "on which disk", default="same")


@frozen(kw_only=True)
class Shutdown(Action):
    """A controlled shutdown. Done when the process is gone."""

    NAME: ClassVar[str] = "shutdown"
    SHORT: ClassVar[str] = "node"
    nodes: tuple[Selector, ...] = nodes("who")


@frozen(kw_only=True)
class Pause(Action):
    """A process handles nothing until ``resume``; its clocks run on."""

    NAME: ClassVar[str] = "pause"
    SHORT: ClassVar[str] = "node"
    nodes: tuple[Selector, ...] = nodes("who", servers_only=False)


@frozen(kw_only=True)
class Resume(Action):
    """A paused process goes on."""

    NAME: ClassVar[str] = "resume"
    SHORT: ClassVar[str] = "node"
    nodes: tuple[Selector, ...] = nodes("who", servers_only=False)


@frozen(kw_only=True)
class Flush(Action):
    """Sync every log of these brokers, as if their kernel had written everything back."""

    NAME: ClassVar[str] = "flush"
    SHORT: ClassVar[str] = "node"
    nodes: tuple[Selector, ...] = nodes("who")


# The network -------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Cut(Action):
    """Cut links. The step's ``id`` is what ``heal`` knows it by.

    ``in_flight``: with ``drop``, what is under way and what is sent meanwhile is never delivered;
    ``hold`` delivers all of it after healing; ``deliver`` spares only what is under way.
    """

    NAME: ClassVar[str] = "cut"
    sources: tuple[Selector, ...] = item(
        ListOf(SelectorKind(servers_only=False), high=100, takes_one=True, is_distinct=True),
        "whose messages",
        key="from",
    )
    targets: tuple[Selector, ...] = item(
        ListOf(SelectorKind(servers_only=False), high=100, takes_one=True, is_distinct=True),
        "to whom",
        key="to",
    )
    only: tuple[str, ...] = item(ONLY, "messages: Fetch, FetchRequest, ...; else all", default=())
    both: bool = item(Flag(), "the way back too", default=False)
    in_flight: str = item(Choice(IN_FLIGHT), "what becomes of messages", default="drop")


@frozen(kw_only=True)
class Partition(Action):
    """Cut all links between groups of nodes; who is in no group keeps all links."""

    NAME: ClassVar[str] = "partition"
    SHORT: ClassVar[str] = "groups"
    groups: tuple[tuple[Selector, ...], ...] = item(
        ListOf(
            ListOf(SelectorKind(servers_only=False), high=200, is_distinct=True, what="nodes"),
            low=2,
            high=100,
            what="groups",
        ),
        "lists of nodes",
    )
    in_flight: str = item(Choice(IN_FLIGHT), "what becomes of messages", default="drop")

    def check(self) -> list[Refusal]:
        found, known = [], set()
        for at, group in enumerate(self.groups):
            for inner, each in enumerate(group):
                if str(each) in known:
                    text = f"{seen(str(each))} is in two groups"
                    found.append(Refusal(text, at=("groups", at, inner)))
                known.add(str(each))
        return found


@frozen(kw_only=True)
class Heal(Action):
    """End faults by their ids: of ``cut``, ``partition``, ``slow``, ``fill`` and ``[[fault]]``.

    ``"all"`` ends every fault that is active.
    """

    NAME: ClassVar[str] = "heal"
    SHORT: ClassVar[str] = "id"
    ids: tuple[str, ...] = item(
        ListOf(ID, high=1_000, takes_one=True, is_distinct=True, what="ids"), "which", key="id"
    )

    @property
    def is_all(self) -> bool:
        return self.ids == ("all",)


ACTIONS: Final[dict[str, type[Action]]] = {
    each.NAME: each
    for each in (
        Produce,
        Consume,
        Settle,
        Wait,
        Crash,
        Start,
        Shutdown,
        Cut,
        Partition,
        Heal,
        Pause,
        Resume,
        Flush,
        Elect,
        Reassign,
        Config,
        DeleteRecords,
        CreateTopic,
        DeleteTopic,
        Slow,
        Corrupt,
        Fill,
    )
}
"""Key of a step, and class."""
HEALABLE: Final = frozenset({"cut", "partition", "slow", "fill"})
"""Actions that begin a fault, which the step's id names."""
