"""A scenario as checked data: frozen, complete, with defaults filled in.

``sim.scenario.reading`` makes it of a file. Times are integer microseconds of virtual time; steps
and expectations are numbered from 1 in the order of the file, and know their lines.

Left out: running it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Final

from attrs import field, frozen

from sim.scenario.action_kinds import ASSIGNMENTS, TOPIC_CONFIG, check_assignments
from sim.scenario.actions import Action
from sim.scenario.brief import brief
from sim.scenario.cluster_keys import ClusterKeys
from sim.scenario.expressions import Expression
from sim.scenario.fault_kinds import Fault
from sim.scenario.kinds import (
    ID,
    NAME,
    TITLE,
    TOPIC_NAME,
    Choice,
    Condition,
    Duration,
    Flag,
    Integer,
    ListOf,
    item,
)
from sim.scenario.model_kinds import (
    AfterKind,
    Allowance,
    AllowKind,
    RateKind,
    SeedsKind,
    SetKind,
    VariantsKind,
)
from sim.scenario.name_kinds import TargetKind
from sim.scenario.names import (
    PARTITIONS_MAX,
    VERDICT_NAMES,
    slug,
)
from sim.scenario.problems import Refusal

__all__ = [
    "BOOT_US",
    "EXPECT_FORMS",
    "Allowance",
    "Expect",
    "Head",
    "Liveness",
    "Scenario",
    "Step",
    "Sweep",
    "Topic",
    "Variant",
    "Workload",
]

# Topics, variants, workloads ---------------------------------------------------------------------


@frozen(kw_only=True)
class Topic:
    """``[[topic]]``: there from the beginning."""

    name: str = item(TOPIC_NAME, "its name")
    replicas: tuple[tuple[str, ...], ...] | None = item(
        ASSIGNMENTS, "one list of brokers a partition, preferred leader first", default=None
    )
    partitions: int = item(Integer(1, PARTITIONS_MAX), "how many, without replicas", default=1)
    replication: int | None = item(
        Integer(1, 100), "replicas of each, without replicas; 3 or as many as brokers", default=None
    )
    config: dict[str, str] = item(TOPIC_CONFIG, "by Kafka's names", factory=dict)

    def check(self) -> list[Refusal]:
        return check_assignments(self)


@frozen(kw_only=True)
class Variant:
    """``[[variant]]``: the same scenario with some values changed.

    Attributes:
        set: value by path (``sim.scenario.effective``).
    """

    name: str = item(NAME, "its name")
    set: dict[str, Any] = item(SetKind(), "values by path", factory=dict)

    @property
    def slug(self) -> str:
        """Its folder."""
        return slug(self.name)


@frozen(kw_only=True)
class Workload:
    """``[[workload]]``: a producer or consumer that runs beside the steps.

    Attributes:
        interval_us: one record so often (key ``rate``).
        stop_us: None for the end of the run.
    """

    name: str = item(ID, "the client's name")
    kind: str = item(Choice(("producer", "consumer")), "what it does")
    topic: tuple[str, int | None] = item(TargetKind(), "topic, or one partition")
    interval_us: int | None = item(
        RateKind(), 'records: 50 a second, or "5/m"', default=None, key="rate"
    )
    acks: str = item(Choice(("all", "1", "0")), "as in produce", default="all")
    idempotence: bool | None = item(Flag(), "as in produce", default=None)
    record_bytes: int = item(Integer(1, 1_000_000), "size of a value", default=100)
    batch: int = item(Integer(1, 100_000), "records in one batch, at most", default=1)
    keys: int = item(Integer(0, 1_000_000), "so many different keys; 0 for none", default=0)
    group: str | None = item(ID, "as in consume", default=None)
    reset: str = item(Choice(("earliest", "latest", "none")), "as in consume", default="earliest")
    start_us: int = item(Duration(), "when it begins", default=0)
    stop_us: int | None = item(Duration(), "when it stops; else never", default=None)

    @property
    def is_idempotent(self) -> bool:
        return self.acks == "all" if self.idempotence is None else self.idempotence

    def check(self) -> list[Refusal]:
        found = []
        if self.stop_us is not None and self.stop_us < self.start_us:
            found.append(Refusal("it stops before it starts", at=("stop",)))
        if self.kind == "producer" and self.interval_us is None:
            found.append(Refusal('a producer needs a "rate"', hint="rate = 50, records a second"))
        if self.idempotence and self.acks != "all":
            text = f'idempotence needs acks = "all", not "{self.acks}"'
            found.append(Refusal(text, at=("idempotence",), hint="leave one of them out"))
        defaults = {"idempotence": None, "batch": 1, "keys": 0, "acks": "all", "record_bytes": 100}
        others = {"group": None, "reset": "earliest"} if self.kind == "producer" else defaults
        if self.kind == "consumer" and self.interval_us is not None:
            found.append(Refusal("a consumer reads what there is", at=("rate",), is_key=True))
        for key, default in others.items():
            if getattr(self, key) != default:
                text = f"a {self.kind} has no {key}"
                found.append(Refusal(text, at=(key,), is_key=True))
        return found


@frozen(kw_only=True)
class Sweep:
    """``[sweep]``: read, and reported as not evaluated until sweeps exist."""

    seeds: tuple[int, int] = item(SeedsKind(), 'both included: "0..199"')


@frozen(kw_only=True)
class Liveness:
    """``[liveness]``: whether the cluster recovers behind the run, once its faults are over."""

    within_us: int = item(
        Duration(1), "how long that may take, beside the longest time-out", default=60_000_000
    )
    core: str = item(
        Choice(("all", "drawn")), "who is healed; faults of others stay for ever", default="all"
    )
    demand: str = item(
        Choice(("converge", "unavailable")),
        "unavailable: it must be proven that nobody can recover",
        default="converge",
    )
    metastability: bool = item(
        Flag(), "compare the throughput behind that with a run without faults", default=False
    )


# Steps -------------------------------------------------------------------------------------------


@frozen(kw_only=True)
class StepKeys:
    """What a step has beside its action.

    Without ``at`` and ``after`` it runs when the step before it is done.
    """

    at_us: int | None = item(Duration(), "the time", default=None)
    after: str | None = item(AfterKind(), "the step or fault of that id is done", default=None)
    delay_us: int = item(Duration(), "so long behind that", default=0)
    id: str | None = item(ID, "how others name it", default=None)
    within_us: int | None = item(Duration(1), "limit of wait (60s)", default=None)


@frozen(kw_only=True)
class Step:
    """One step.

    Attributes:
        number: from 1.
        id: as given; ``fault_id`` is what the world knows its fault by.
        at_us: its time, or None: then ``after`` and ``delay_us``, or the step before it is done.
        within_us: limit of ``wait`` and ``settle``; None for others.
        action: one of ``sim.scenario.actions``.
    """

    number: int
    id: str | None
    at_us: int | None
    after: str | None
    delay_us: int
    within_us: int | None
    action: Action
    line: int = field(default=0, eq=False)

    @property
    def fault_id(self) -> str:
        """The id of a fault that it begins."""
        return self.id or f"{self.action.NAME}@{self.number}"


# Expectations ------------------------------------------------------------------------------------

EXPECT_FORMS: Final[dict[str, str]] = {
    "at": "true at that time, after all that happens then",
    "eventually": "true at some moment of the window",
    "always": "true at every moment of the window",
    "at_end": "true at the end of the run",
    "breaks": "each of these invariants and promises is violated at least once",
    "allow": "losses under these licences are accepted",
    "sometimes": "true in one run of a sweep at least",
}
"""Key and meaning, for ``explain``."""

_NAMES: Final = ListOf(Choice(VERDICT_NAMES), high=50, takes_one=True, is_distinct=True)


@frozen(kw_only=True)
class ExpectKeys:
    """``[[expect]]``: exactly one of the forms, and what belongs to it."""

    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (tuple(EXPECT_FORMS),)
    at_us: int | None = item(Duration(), "the time of `that`", default=None)
    that: Expression | None = item(Condition(), "what holds at `at`", default=None)
    eventually: Expression | None = item(Condition(), "what comes to hold", default=None)
    always: Expression | None = item(Condition(), "what holds all the time", default=None)
    at_end: Expression | None = item(Condition(), "what holds at the end", default=None)
    sometimes: Expression | None = item(Condition(), "what holds in one run", default=None)
    breaks: tuple[str, ...] = item(_NAMES, "what is violated", default=())
    allow: tuple[Allowance, ...] = item(
        AllowKind(),
        'licences of losses: ["L0"], any number; { L0 = 5, L2 = ">=1", L4 = "<=3" }, so many',
        default=(),
    )
    after: str | int | None = item(
        AfterKind(takes_time=True), "id of a step or fault, or a time", default=None
    )
    within_us: int | None = item(Duration(1), "length of the window", default=None)
    from_us: int | None = item(Duration(), "begin of the window", default=None)
    to_us: int | None = item(Duration(), "end of the window", default=None)
    variants: tuple[str, ...] = item(
        VariantsKind(), "only in these variants", default=(), key="variant"
    )
    because: str = item(TITLE, "why, for the report", default="")

    BELONGS: ClassVar[dict[str, tuple[str, ...]]] = {
        "that": ("at",),
        "after": ("eventually", "always"),
        "within": ("eventually", "always"),
        "from": ("always", "eventually"),
        "to": ("always", "eventually"),
    }

    @property
    def form(self) -> str:
        """Which of the forms it is."""
        if self.at_us is not None:
            return "at"
        for form in EXPECT_FORMS:
            if form != "at" and getattr(self, form) not in (None, ()):
                return form
        return "allow"

    def check(self) -> list[Refusal]:
        found = []
        for key, forms in self.BELONGS.items():
            value = getattr(
                self, {"within": "within_us", "from": "from_us", "to": "to_us"}.get(key, key)
            )
            if value is not None and self.form not in forms:
                text = f'"{key}" goes with {" or ".join(forms)}, not with {self.form}'
                found.append(Refusal(text, at=(key,), is_key=True))
        if self.form == "at" and self.that is None:
            found.append(Refusal('there is no "that"', hint='at = "3s" needs that = "..."'))
        for early, late in (("after", "from"), ("within", "to")):
            keys = {"from": self.from_us, "to": self.to_us, "within": self.within_us}
            first = self.after if early == "after" else keys[early]
            if first is not None and keys[late] is not None:
                text = f'"{late}" and "{early}" exclude each other'
                found.append(Refusal(text, at=(late,), is_key=True, hint="leave one of them out"))
        if self.from_us is not None and self.to_us is not None and self.to_us < self.from_us:
            found.append(Refusal("the window ends before it begins", at=("to",)))
        return found


@frozen(kw_only=True)
class Expect:
    """One expectation.

    Attributes:
        number: from 1.
        form: one of ``EXPECT_FORMS``.
        that: of ``at``, ``eventually``, ``always``, ``at_end``, ``sometimes``; else None.
        at_us: of ``at``.
        after: the window begins when the step is done, or the fault begins, that has this id.
        after_us, from_us: it begins at this time. ``from_us`` is for what files call ``from``.
        within_us: it is so long. None: it ends at ``to_us`` or with the run.
        to_us: it ends then.
        variants: those that it holds for; empty for all.
        breaks: names of invariants and promises.
        allow: licences.
        line: of the file; 0 where it is none.
    """

    number: int
    form: str
    that: Expression | None = None
    at_us: int | None = None
    after: str | None = None
    after_us: int | None = None
    within_us: int | None = None
    from_us: int | None = None
    to_us: int | None = None
    variants: tuple[str, ...] = ()
    because: str = ""
    breaks: tuple[str, ...] = ()
    allow: tuple[Allowance, ...] = ()
    line: int = field(default=0, eq=False)

    def applies_to(self, variant: str | None) -> bool:
        """Whether it is judged in a run of that variant."""
        return not self.variants or variant in self.variants


# The whole ---------------------------------------------------------------------------------------

BOOT_US: Final = 10_000_000
"""By default."""


@frozen(kw_only=True)
class Head:
    """What stands at the top of a file."""

    schema: int = item(Integer(1, 1), "of this format: 1")
    name: str = item(NAME, "its name, and its folder's")
    title: str = item(TITLE, "one line of what it is about", default="")
    until_us: int = item(Duration(1), "how long it runs")
    seed: int = item(Integer(0, 2**63 - 1), "of every draw", default=0)
    boot_us: int = item(
        Duration(1), "how long the cluster has to come up before time 0", default=BOOT_US
    )
    when_impossible: str = item(
        Choice(("fail", "skip")),
        "what a step or fault that cannot act does to the run: end it, or be passed over",
        default="fail",
    )


@frozen(kw_only=True, repr=False)
class Scenario:
    """A whole scenario.

    Attributes:
        until_us: the run ends then.
        boot_us: so long before time 0 the cluster begins to come up.
        when_impossible: ``fail`` or ``skip``, of steps and faults that cannot act.
        variants: all of the file; ``variant`` is the one that has been applied, None for none.
        overrides: what the command line set, by path.
        expects: all of the file, or those of ``variant`` once one is applied.
        file: as the user named it.
        text: of the file.
        document: the plain tables, with everything applied that is applied; do not change it.
        make_broker: makes the brokers' machines, as ``sim.cluster_config.BrokerFactory``; ours by
            default. No file says it: who runs a scenario does, by ``evolve``.
    """

    schema: int
    name: str
    title: str
    until_us: int
    seed: int
    cluster: ClusterKeys
    topics: tuple[Topic, ...]
    variants: tuple[Variant, ...]
    workloads: tuple[Workload, ...]
    faults: tuple[Fault, ...]
    steps: tuple[Step, ...]
    expects: tuple[Expect, ...]
    sweep: Sweep | None = None
    liveness: Liveness | None = None
    boot_us: int = BOOT_US
    when_impossible: str = "fail"
    variant: str | None = None
    overrides: tuple[tuple[str, Any], ...] = ()
    file: str = field(default="", eq=False)
    text: str = field(default="", eq=False)
    document: dict[str, Any] = field(factory=dict, eq=False)
    make_broker: Callable[..., Any] | None = field(default=None, eq=False)

    def __repr__(self) -> str:
        return brief(self.document, self.seed)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """What IPython and Hypothesis print, who would go through the fields of any attrs class."""
        printer.text(repr(self))

    def __deepcopy__(self, memo: object) -> Scenario:
        return self

    @property
    def slug(self) -> str:
        """Its folder."""
        return slug(self.name)
