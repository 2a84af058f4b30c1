"""A cluster under a state machine of Hypothesis: live, judged at every step, and recorded.

Each rule takes steps by ``act``, ``strike`` and ``go_on``. They are recorded as a scenario
(``sim.running.live``), so a failing case is a file that runs from the command line with the same
events. Whatever breaks a rule of the protocol, or loses records in a way that is not allowed, fails
the test inside the rule at which it came about. At the end of each case all faults end, and the
cluster must recover (``sim.liveness``).

One's own checks are methods with ``hypothesis.stateful.invariant``: they see ``view``, ``facts``
and ``world``, which they only look at.

Left out: rules (``sim.testing.machine``).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from attrs import evolve
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.errors import HypothesisException
from hypothesis.stateful import RuleBasedStateMachine, initialize

from sim.checks.facts import Facts
from sim.failures import FOLDER, SavedCase, save_case
from sim.running.findings import Examined
from sim.running.live import Live
from sim.running.verdicts import is_loose
from sim.scenario.durations import DURATION_MAX_US
from sim.scenario.model import Liveness, Scenario
from sim.scenario.names import LICENCES
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.testing.coverage import tell
from sim.testing.failing import case_name, failure, is_last
from sim.views import View
from sim.world import World

__all__ = ["ENVELOPES", "MachineError", "RecordedMachine"]

ENVELOPES: Final[dict[str, tuple[str, ...]]] = {
    "recoverable": ("L0", "L3"),
    "unrestricted": tuple(LICENCES),
}
"""What rules may do (FAULTS C.0), and the licences of losses that are allowed then."""

_SALT_MAX: Final = 255
"""Seeds do not get smaller in any sense, so there is nothing to gain by trying many of them."""
_HEAD: Final = {"schema": 1, "until": "24h", "when_impossible": "skip"}
_TABLES: Final = ("cluster", "guards", "liveness")


class MachineError(ValueError):
    """An attribute of a machine's class cannot be; says which, and what is allowed."""


class RecordedMachine(RuleBasedStateMachine):
    """See the module. Class attributes say what runs; a subclass sets them.

    Attributes:
        brokers: how many, from 1.
        topics: tables of ``[[topic]]``, as scenario files have them; at least one.
        cluster: the table ``[cluster]``: ``config`` with Kafka's keys, ``truncation``, ...
        guards: guards that are off, by name: ``{"hw-freeze": False}``.
        envelope: ``recoverable``: rules do only what a correct cluster survives without losing a
            record that it acknowledged with acks=all; ``unrestricted``: anything.
        allow: licences of losses that are no failure; None for those of the envelope.
        replica: a broker class instead of ``cluster.broker.Broker``, at the top of a module that
            the command line can import.
        liveness: the table ``[liveness]`` that is asked at the end; None for not at all.
        pace_us: how long the world goes on behind each step.
        folder: where failing cases go, below it one folder for each test.
        case: the case's name; empty for that of the test.
    """

    brokers: ClassVar[int] = 3
    topics: ClassVar[Sequence[Mapping[str, Any]]] = ({"name": "orders"},)
    cluster: ClassVar[Mapping[str, Any]] = {}
    guards: ClassVar[Mapping[str, bool]] = {}
    envelope: ClassVar[str] = "recoverable"
    allow: ClassVar[Sequence[str] | None] = None
    replica: ClassVar[Callable[..., Any] | None] = None
    liveness: ClassVar[Mapping[str, Any] | None] = {}
    pace_us: ClassVar[int] = 20_000
    folder: ClassVar[Path | str] = FOLDER
    case: ClassVar[str] = ""

    def __init__(self) -> None:
        """Nothing runs yet.

        Raises:
            MachineError: an attribute of the class cannot be.
        """
        super().__init__()
        self._base = base_of(type(self))
        self._live: Live | None = None
        self._is_told = False
        self._ids = 0

    @initialize(salt=st.integers(0, _SALT_MAX))
    def boot(self, salt: int) -> None:
        """The cluster comes up; ``salt`` is the seed of everything that is drawn in it."""
        if self._live is None:
            self._start(salt)

    def _start(self, salt: int) -> Live:
        self._live = _booted(type(self), self._base, salt)
        self._look()
        return self._live

    # What is there -------------------------------------------------------------------------------

    @property
    def live(self) -> Live:
        """The run so far. Initializing rules come in any order: the first that asks boots it."""
        return self._start(0) if self._live is None else self._live

    @property
    def world(self) -> World:
        """To look at; what changes it behind the rules' back is in no scenario."""
        return self.live.stage.world

    @property
    def view(self) -> View:
        """Leaders, ISRs, logs as they are now."""
        return self.world.view()

    @property
    def facts(self) -> Facts:
        """What was acknowledged, committed and lost so far."""
        return self.live.stage.judge.facts

    @property
    def nodes(self) -> tuple[str, ...]:
        """The brokers' names."""
        return tuple(f"b{number}" for number in range(1, self.brokers + 1))

    def with_status(self, *words: str) -> list[str]:
        """The brokers that are ``running``, ``paused``, ``down`` or ``off``."""
        return [name for name in self.nodes if self.view.status(name) in words]

    @property
    def partitions(self) -> list[str]:
        """Those that there are: ``orders-0``, ..."""
        return [str(record.partition) for record in self.view.image().partitions()]

    @property
    def active_faults(self) -> list[str]:
        """Ids of faults of links and hosts that ``heal`` can end."""
        return list(self.live.stage.beside.acting.begun)

    @property
    def is_whole(self) -> bool:
        """Whether no fault is active, every broker runs, and every replica is in sync."""
        if self.active_faults or len(self.with_status("running")) < self.brokers:
            return False
        records = list(self.view.image().partitions())
        return all(each.leader and set(each.isr) == set(each.replicas) for each in records)

    # What rules do -------------------------------------------------------------------------------

    def act(self, action: str, then_us: int | None = None, **keys: Any) -> str:
        """Take a step, as scenario files spell it: ``act("crash", node="b1", how="power")``.

        Args:
            action: key of a step; one of the key ``short`` alone gives the action's short form.
            then_us: how long the world goes on behind it; ``pace_us`` by default.
            keys: of the action. What is named like a word of Python has a ``_`` behind it.

        Returns:
            The step's id, by which ``heal`` knows a fault that it began.

        Raises:
            ScenarioFailed: something broke by it.
            ScenarioError: there is no such step.
            ValueError: ``then_us`` is no time from 0 to 24 hours.
        """
        self._ids += 1
        id_ = f"s{self._ids}"
        table = {key.removesuffix("_"): value for key, value in keys.items()}
        value = table["short"] if set(table) == {"short"} else table
        rest_us = _duration(self.pace_us if then_us is None else then_us)
        self.live.step({"id": id_, action: value})
        self._look()
        self.go_on(rest_us)
        return id_

    def strike(self, kind: str, then_us: int | None = None, **keys: Any) -> str:
        """A fault begins, a kind of ``[[fault]]``: ``strike("fsync-lie", target="b1")``.

        Args, returns and raises as ``act``.
        """
        table = {key.removesuffix("_"): value for key, value in keys.items()}
        rest_us = _duration(self.pace_us if then_us is None else then_us)
        for key in ("id", "start"):
            if key in table:
                raise ValueError(f"{key} is {table[key]!r}, but strike gives a fault its {key}")
        id_ = self.live.fault({"kind": kind, **table})
        self._look()
        self.go_on(rest_us)
        return id_

    def go_on(self, duration_us: int) -> None:
        """Time passes.

        Raises:
            ScenarioFailed: something broke meanwhile.
            ValueError: the time is none from 0 to 24 hours.
        """
        self.live.go_on(_duration(duration_us))
        self._look()

    def must_recover(self) -> None:
        """Fail where the cluster would not recover, if all faults ended now; the run goes on.

        That is asked at the end of each case, too; but Hypothesis makes a case shorter that fails
        in a rule, and keeps the length of one that fails at its end.

        Raises:
            ScenarioFailed: it would not.
        """
        liveness = self._base.liveness
        if liveness is not None and not self.live.would_recover(liveness):
            self._judge(self.live, liveness)

    # What came of it -----------------------------------------------------------------------------

    def _look(self) -> None:
        """Fail where something is wrong by now."""
        live = self._live
        if live is not None and live.is_over:
            # It ends here: whether the cluster would have recovered is another question.
            self._judge(live, None)

    def _judge(self, live: Live, liveness: Liveness | None) -> None:
        self._is_told = True
        examined = live.conclude(liveness=liveness)
        result = examined.result
        words = [] if result is None or result.liveness is None else [result.liveness.word]
        tell(live.stage.world.trace, *(f"liveness: {each}" for each in words))
        if examined.findings:
            raise failure(
                examined.findings,
                self._name(),
                lambda name: self._save(live, examined, name),
                is_behind=liveness is not None,
            ) from examined.error

    def _save(self, live: Live, examined: Examined, name: str) -> SavedCase:
        scenario = live.scenario(None if examined.result is None else live.stage.scenario.liveness)
        return save_case(
            scenario,
            name=name,
            folder=self.folder,
            examined=examined,
            is_strict=is_loose(scenario),
        )

    def _name(self) -> str:
        return self.case or case_name(type(self).__qualname__)

    def teardown(self) -> None:
        """The case is over: faults end, and the cluster must recover.

        Where a rule, or a check of the test's own, has failed already, the case is saved.

        Raises:
            ScenarioFailed: it does not recover.
        """
        live, error = self._live, sys.exc_info()[1]
        if live is None or self._is_told:
            return
        if error is None:
            self._judge(live, self._base.liveness)
        elif is_last() and _is_of_the_test(error):
            self._is_told = True
            saved = self._save(live, live.conclude(), self._name())
            said = f"{type(error).__name__}, which only the test knows of"
            note(f"{said}; the run up to there: {saved.replay}")
            note("\n".join(saved.message().splitlines()[1:]))


def _duration(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= DURATION_MAX_US:
        raise ValueError(
            f"a duration is {value!r}, allowed is a number of microseconds, 0..{DURATION_MAX_US}"
        )
    return value


def _is_of_the_test(error: BaseException) -> bool:
    """Whether it is no signal of Hypothesis or of the user."""
    return isinstance(error, Exception) and not isinstance(error, HypothesisException)


# What runs ---------------------------------------------------------------------------------------

_bases: dict[type[RecordedMachine], Scenario] = {}


def base_of(machine: type[RecordedMachine]) -> Scenario:
    """The scenario that a machine's class describes, without steps.

    Raises:
        MachineError: an attribute cannot be.
    """
    known = _bases.get(machine)
    if known is not None:
        return known
    _check(machine)
    allowed = _allowed(machine)
    document: dict[str, Any] = {
        **_HEAD,
        "name": "state-machine",
        "title": f"driven by {machine.__qualname__}"[:300],
        "cluster": {"brokers": machine.brokers, **machine.cluster},
        "topic": [dict(each) for each in machine.topics],
        "expect": [{"allow": list(allowed)}] if allowed else [],
    }
    if machine.guards:
        document["cluster"]["guards"] = dict(machine.guards)
    if machine.liveness is not None:
        document["liveness"] = dict(machine.liveness)
    try:
        found = parse_scenario(scenario_text(document))
    except ScenarioError as error:
        lines = [f"{each.where}: {each.text}" for each in error.problems]
        hints = [f" ({each.hint})" if each.hint else "" for each in error.problems]
        wrong = "; ".join(line + hint for line, hint in zip(lines, hints, strict=True))
        raise _wrong(machine, f"describes no cluster: {wrong}") from None
    found = evolve(found, make_broker=machine.replica)
    _bases[machine] = found
    return found


_newest: dict[type[RecordedMachine], tuple[int, Live]] = {}


def _booted(machine: type[RecordedMachine], base: Scenario, salt: int) -> Live:
    """A cluster that has come up.

    That takes longer than copying one, and Hypothesis tries many cases of one salt while it makes
    one smaller. Brokers that are not ours may be such as cannot be copied.
    """
    known = _newest.get(machine)
    if known is None or known[0] != salt:
        live = Live(base, seed=salt, allowed=_allowed(machine), keeps_events=True)
        if machine.replica is not None or live.is_over:
            return live
        known = _newest[machine] = salt, live
    return known[1].fork()


def _allowed(machine: type[RecordedMachine]) -> Sequence[str]:
    return ENVELOPES[machine.envelope] if machine.allow is None else machine.allow


def _check(machine: type[RecordedMachine]) -> None:
    """What a scenario file could not say better."""
    if type(machine.brokers) is not int:
        raise _wrong(machine, f"brokers is {machine.brokers!r}, allowed is an integer")
    if not isinstance(machine.topics, list | tuple) or not all(
        isinstance(each, Mapping) for each in machine.topics
    ):
        raise _wrong(machine, f"topics is {machine.topics!r}, allowed is a list of tables")
    if not machine.topics:
        raise _wrong(machine, "topics is empty, allowed is at least one table")
    for name in _TABLES:
        value = getattr(machine, name)
        if not isinstance(value, Mapping) and not (name == "liveness" and value is None):
            raise _wrong(machine, f"{name} is {value!r}, allowed is a table")
    for key in ("brokers", "guards"):
        if key in machine.cluster:
            raise _wrong(machine, f"cluster has {key!r}, which is an attribute of its own")
    if machine.envelope not in list(ENVELOPES):
        known = ", ".join(ENVELOPES)
        raise _wrong(machine, f"envelope is {machine.envelope!r}, allowed are {known}")
    allowed = () if machine.allow is None else machine.allow
    if not isinstance(allowed, list | tuple) or any(each not in LICENCES for each in allowed):
        raise _wrong(machine, f"allow is {allowed!r}, allowed is a list of {', '.join(LICENCES)}")
    if machine.replica is not None and not callable(machine.replica):
        raise _wrong(machine, f"replica is {machine.replica!r}, allowed is a broker class")
    if type(machine.pace_us) is not int or machine.pace_us < 0:
        raise _wrong(machine, f"pace_us is {machine.pace_us!r}, allowed is an integer from 0")
    if not isinstance(machine.folder, Path | str):
        raise _wrong(machine, f"folder is {machine.folder!r}, allowed is a path")
    if not isinstance(machine.case, str):
        raise _wrong(machine, f"case is {machine.case!r}, allowed is a text")


def _wrong(machine: type[RecordedMachine], text: str) -> MachineError:
    return MachineError(f"{machine.__qualname__}: {text}")
