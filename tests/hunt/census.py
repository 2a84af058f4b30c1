"""What a world has shown of ``tests.hunt.sights``, taken down while it runs.

A census is told of each batch of events before it is digested, and of each handler by a judge that
judges as always. It changes nothing: digests are the same with and without it. What happens while a
world recovers counts, but for faults, which are over by then.

    census = Census(scenario)
    with census.looking_on():
        examine(scenario, on_world=census.on_world)
    census.mask()

Left out: what must be seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from cluster.broker import Broker
from cluster.effects import Note, Reply, Send
from cluster.errors import ErrorCode
from cluster.messages_control import ElectionType, ElectLeadersRequest
from cluster.messages_data import ListOffsetsResponse, OffsetsForLeaderEpochResponse
from cluster.replica import Quarantined
from sim.checks.judge import Judge
from sim.process import Process, Task
from sim.running import staging
from sim.scenario.model import Scenario
from sim.trace.kinds import Kind
from sim.world import World
from storage.errors import CorruptLog, DiskError, StorageError
from storage.recovery import OpenReport
from tests.hunt.codes import codes_in
from tests.hunt.effects import FaultEffects
from tests.hunt.sights import BY_NAME, mask_of

__all__ = ["Census", "refusal_of"]

_LICENCES: Final = frozenset(name for group, name in BY_NAME if group == "licence")


class Census:
    """See the module. For one run of one scenario."""

    def __init__(self, scenario: Scenario) -> None:
        self._effects = FaultEffects({each.id: each.KIND for each in scenario.faults})
        self._seen: set[tuple[str, str]] = set()
        self._codes: set[ErrorCode] = set()
        self._world: World | None = None

    def mask(self) -> int:
        """What was seen so far."""
        faults = {("fault", kind) for kind in self._effects.seen}
        codes = {("code", code.name) for code in self._codes if code is not ErrorCode.NONE}
        return mask_of(self._seen | faults | codes)

    @contextmanager
    def looking_on(self) -> Iterator[None]:
        """Worlds that are made meanwhile have judges that tell this census of handlers."""
        made = type("CountingJudge", (_CountingJudge,), {"census": self})
        with mock.patch.object(staging, "Judge", made):
            yield

    def on_world(self, world: World) -> None:
        """Look on at a world, the first of this census; others are runs for comparison."""
        if self._world is None:
            self._world = world
            world.trace.on_batch = self.on_batch

    def is_of(self, world: World) -> bool:
        """Whether it is the world that counts."""
        return world is self._world

    # Events ------------------------------------------------------------------------------------

    def on_batch(self, batch: Sequence[tuple[Any, ...]]) -> None:
        """The next events."""
        effects = self._effects
        watched = effects.watched
        for number, t_us, node, kind, cause, args in batch:
            if "fault" in args:
                effects.on_named(kind, args["fault"])
            if watched and node in watched:
                effects.on_event(t_us, node, kind, cause)
            if kind is Kind.FAULT:
                effects.on_fault(number, t_us, args)
            elif kind is Kind.HEAL:
                effects.on_heal(number, args["id"])
            elif kind is Kind.BACKGROUND:
                if effects.is_waiting_for_work:
                    effects.on_work(cause)
            elif kind is Kind.LOSS:
                if args["licence"] in _LICENCES:
                    self._seen.add(("licence", args["licence"]))

    # Handlers ----------------------------------------------------------------------------------

    def on_handled(self, process: Process, task: Task, effects: Sequence[Any]) -> None:
        """A handler has put these effects."""
        for effect in effects:
            made = effect.__class__
            if made is Reply or made is Send:
                self._codes.update(codes_in(effect.message))
            elif made is Note:
                take = _NOTES.get(effect.kind)
                if take is not None:
                    self._seen.update(
                        (take[0], name) for name in take[1](task, dict(effect.args)) if name
                    )
        if task.kind is Kind.START and isinstance(process.machine, Broker):
            for replica in process.machine.core.replicas.values():
                if isinstance(replica.role, Quarantined):
                    self._seen.add(("recovery", refusal_of(replica.role.error)))
                elif replica.log is not None:
                    found = _recoveries(replica.log.report)
                    self._seen.update(("recovery", name) for name in found)

    def on_code(self, code: ErrorCode) -> None:
        """A client was told of an error."""
        self._codes.add(code)


class _CountingJudge(Judge):
    """Judges as always, and tells the census of its class.

    Its copies do, too: whether a world recovers is seen in a copy, in which old leaders come back.
    """

    census: Census

    def __init__(self, world: World, *, is_paranoid: bool = False) -> None:
        super().__init__(world, is_paranoid=is_paranoid)
        self._counts = self.census.is_of(world)

    def on_handled(self, process: Process, number: int, task: Task, effects: Sequence[Any]) -> None:
        super().on_handled(process, number, task, effects)
        if self._counts:
            self.census.on_handled(process, task, effects)

    def on_outcome(self, node: str, outcome: Any, acks: int, number: int) -> None:
        super().on_outcome(node, outcome, acks, number)
        if self._counts:
            self.census.on_code(outcome.error_code)

    def on_position(self, node: str, event: Any, number: int) -> None:
        super().on_position(node, event, number)
        code = getattr(event, "error_code", None)
        if code is not None and self._counts:
            self.census.on_code(code)


# Notes -------------------------------------------------------------------------------------------


def _message(task: Task) -> Any:
    """What the handler was given; None if it was no message."""
    return task.values[1] if task.kind is Kind.DELIVER else None


def _election(task: Task, args: dict[str, Any]) -> Iterator[str]:
    leader, asked = args["leader"], _message(task)
    if leader is None:
        yield "nobody"
        return
    is_in_isr = leader in args["old_isr"]
    if args["last_known"]:
        yield "last known leader"
    elif isinstance(asked, ElectLeadersRequest):
        if asked.election_type is ElectionType.PREFERRED:
            yield "preferred, asked for"
        elif asked.to is not None:
            yield "unclean, forced" if args["unclean"] else "named by an operator, of the ISR"
        elif args["unclean"]:
            yield "unclean, asked for"
    elif task.kind is Kind.TIMER and task.values[0] == ("preferred",):
        yield "preferred, by itself"
    elif args["unclean"]:
        yield "unclean, as configured"
    if leader == args["old_leader"]:
        yield "the same leader again"
    elif is_in_isr:
        yield "of the ISR"
    elif not args["unclean"]:
        yield "of the ELR"


def _truncation(task: Task, args: dict[str, Any]) -> Iterator[str]:
    message = _message(task)
    if args["offset"] == args["log_end"]:
        return
    if isinstance(message, ListOffsetsResponse):
        yield "log ends behind the leader's"
    elif isinstance(message, OffsetsForLeaderEpochResponse):
        yield "by an epoch that was asked for"
    elif "leader_epoch" not in args or message is None or args["leader_epoch"] < 0:
        is_asked = message is not None and args.get("leader_epoch", 0) < 0
        yield "epoch unknown to the leader" if is_asked else "to the high watermark"
    elif args["end_offset"] < 0:
        yield "epoch unknown to the leader"
    elif args["offset"] == args["end_offset"]:
        yield "diverging epoch, to the leader's end of it"
    else:
        yield "diverging epoch, to the own end of it"


def _restart(task: Task, args: dict[str, Any]) -> Iterator[str]:
    if isinstance(_message(task), ListOffsetsResponse):
        yield "log ends before the leader's start"
    else:
        yield "log cannot begin inside a batch"


def _salvage(task: Task, args: dict[str, Any]) -> Iterator[str]:
    yield "cut of a damaged log to its good prefix"


def _metadata_log(task: Task, args: dict[str, Any]) -> Iterator[str]:
    if args["records"]:
        yield "metadata log"


_NOTES: Final[dict[str, tuple[str, Any]]] = {
    "leader-elected": ("election", _election),
    "truncate": ("truncation", _truncation),
    "restart-at": ("truncation", _restart),
    "salvage": ("truncation", _salvage),
    "controller-started": ("recovery", _metadata_log),
}
"""Note, the group of what it shows, and which of it."""


# Recovery ----------------------------------------------------------------------------------------


def _recoveries(report: OpenReport) -> Iterator[str]:
    if report.is_clean:
        yield "clean"
    elif not (report.cuts or report.dropped or report.rebuilt or report.removed):
        yield "not clean, nothing to do"
    if report.cuts:
        yield "tail cut"
    if any(cut.whole_ranges for cut in report.cuts):
        yield "tail cut, whole batches behind it"
    if report.dropped:
        yield "later segments dropped"
    if report.rebuilt:
        yield "derived files rebuilt"
    if report.removed:
        yield "left-over files removed"
    if report.swapped:
        yield "compaction finished"
    if report.warnings:
        yield "unreadable file passed over"


def refusal_of(error: StorageError) -> str:
    """The name of the sight that a refusal to open is."""
    if isinstance(error, DiskError):
        return "refused: the disk fails"
    if not isinstance(error, CorruptLog):
        return "refused: foreign file"
    for words, name in _REFUSALS:
        if words in error.reason:
            return name
    return "refused: damaged frame"


_REFUSALS: Final[tuple[tuple[str, str], ...]] = (
    ("was durable", "refused: ends below the durable boundary"),
    ("below its start", "refused: ends below its start"),
    ("overlaps", "refused: a segment is missing or misnamed"),
    ("offset in its name", "refused: a segment is missing or misnamed"),
    ("missing", "refused: a segment is missing or misnamed"),
)
