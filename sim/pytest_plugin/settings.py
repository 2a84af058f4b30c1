"""What ``@pytest.mark.leaderfall`` says: how the world is made, and what it is expected to break.

    @pytest.mark.leaderfall(brokers=5, seed=7, config={"unclean.leader.election.enable": True})
    @pytest.mark.leaderfall(guards={"fetch-epoch": False}, breaks=["epoch-prefix"])
    @pytest.mark.leaderfall(ClusterConfig(make_broker=MyBroker))

The keys are those of ``[cluster]`` in scenario files, with ``seed``, ``breaks`` and ``judge``.
Marks of a class or module are under those of the function, key by key.

Left out: which tests have the mark.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from sim.cluster_config import ClusterConfig
from sim.pytest_plugin.seeds import checked_seed
from sim.scenario.build import cluster_config, options_of, scheduler_of
from sim.scenario.model import Scenario
from sim.scenario.names import INVARIANTS, PROMISES, VERDICT_NAMES
from sim.scenario.problems import Problem, ScenarioError, guess
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.schedulers import Scheduler

__all__ = ["MarkError", "Settings", "settings_of"]

_OWN: Final = ("seed", "breaks", "judge")
_LISTED_MAX: Final = 20


class MarkError(ValueError):
    """A mark says what cannot be; nothing was run."""


@frozen(kw_only=True)
class Settings:
    """What a test's marks say.

    Attributes:
        config: of the world.
        scenario: from whose ``[cluster]`` it was made; None where the test gave it whole.
        seed: None where no mark says one.
        breaks: invariants and promises that must be violated; all others must not.
        judges: whether anybody looks on.
    """

    config: ClusterConfig = field(factory=ClusterConfig)
    scenario: Scenario | None = None
    seed: int | None = None
    breaks: tuple[str, ...] = ()
    judges: bool = True

    def scheduler(self, seed: int) -> Scheduler | None:
        """A new one, as it decides in a world of that seed."""
        return None if self.scenario is None else scheduler_of(self.scenario, seed)

    @property
    def options(self) -> dict[str, Any]:
        """Plain, for the head of a trace."""
        if self.scenario is None:
            return {"brokers": self.config.brokers}
        return options_of(self.scenario)

    @property
    def is_loose(self) -> bool:
        """Whether a guard is off, or the truncation mode is an older one."""
        from cluster.guards import Guards
        from cluster.truncation import TruncationMode

        is_older = self.config.broker.truncation is not TruncationMode("fetch")
        return is_older or self.config.guards != Guards()


def settings_of(marks: Iterable[tuple[tuple[Any, ...], Mapping[str, Any]]]) -> Settings:
    """What marks say, by their positional and named arguments, the innermost first.

    Raises:
        MarkError: they say what cannot be.
    """
    whole: ClusterConfig | None = None
    keys: dict[str, Any] = {}
    for given, named in reversed(list(marks)):
        if len(given) > 1 or (given and not isinstance(given[0], ClusterConfig)):
            raise MarkError(
                f"it was given {', '.join(map(repr, given))}, allowed is one ClusterConfig"
            )
        whole = given[0] if given else whole
        keys |= named
    own = {key: keys.pop(key) for key in _OWN if key in keys}
    if whole is not None and keys:
        raise MarkError(f"it has a ClusterConfig and {', '.join(keys)}, allowed is one of both")
    scenario = None if whole is not None else _scenario(keys)
    return Settings(
        config=whole
        if scenario is None and whole is not None
        else cluster_config(_known(scenario)),
        scenario=scenario,
        seed=_seed(own.get("seed")),
        breaks=_breaks(own.get("breaks", ())),
        judges=_flag("judge", own.get("judge", True)),
    )


def _known(scenario: Scenario | None) -> Scenario:
    assert scenario is not None
    return scenario


def _scenario(keys: Mapping[str, Any]) -> Scenario:
    cluster = {key: _plain(value) for key, value in keys.items()}
    if isinstance(cluster.get("guards"), dict):
        guards = cluster["guards"]
        cluster["guards"] = {str(key).replace("_", "-"): on for key, on in guards.items()}
    document = {"schema": 1, "name": "test", "until": "1s", "cluster": cluster}
    try:
        text = scenario_text(document)
    except (TypeError, ValueError) as error:
        raise MarkError(f"it has a value that no scenario file can have: {error}") from None
    try:
        return parse_scenario(text, "mark")
    except ScenarioError as error:
        raise MarkError("\n".join(map(_told, error.problems))) from None


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _told(problem: Problem) -> str:
    where = f"{problem.where}: " if problem.where else ""
    hint = f" ({problem.hint})" if problem.hint else ""
    known = [*problem.allowed, *(_OWN if "brokers" in problem.allowed else ())]
    if len(known) > _LISTED_MAX and problem.hint.startswith("did you mean"):
        known = [*known[:_LISTED_MAX], "..."]
    allowed = f", allowed are {', '.join(known)}" if known else ""
    return f"{where}{problem.text}{hint}{allowed}"


def _seed(value: object) -> int | None:
    if value is None:
        return None
    try:
        return checked_seed(value)
    except ValueError as error:
        raise MarkError(str(error)) from None


def _flag(name: str, value: object) -> bool:
    if type(value) is not bool:
        raise MarkError(f"{name} is {value!r}, allowed is True or False")
    return value


def _breaks(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise MarkError(f"breaks is {value!r}, allowed is a list of names")
    known = {**INVARIANTS, **PROMISES}
    for name in value:
        if name not in VERDICT_NAMES:
            hint = guess(name, known)
            more = f" ({hint})" if hint else ""
            allowed = ", ".join(VERDICT_NAMES)
            raise MarkError(f"breaks has {name!r}, allowed are {allowed}{more}")
    return tuple(value)
