"""Checking a whole document: each table on its own, then what concerns several of them.

Everything is looked at, whatever else is wrong; a table that cannot be read is left out of what
comes behind, and what it declares counts as known, so that one mistake is told once.

Left out: getting a document out of a file (``sim.scenario.reading``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeVar

from attrs import define, evolve, field, fields, frozen

from sim.scenario.actions import ACTIONS, Action
from sim.scenario.build import config_problem
from sim.scenario.cluster_keys import ClusterKeys
from sim.scenario.fault_kinds import FAULT_KINDS, Fault
from sim.scenario.kinds import key_of, no_such_key
from sim.scenario.model import (
    Expect,
    ExpectKeys,
    Head,
    Liveness,
    Scenario,
    Step,
    StepKeys,
    Sweep,
    Topic,
    Variant,
    Workload,
)
from sim.scenario.names import gather
from sim.scenario.paths import Applied, apply_paths
from sim.scenario.places import Places
from sim.scenario.problems import (
    REFUSALS_MAX,
    Path,
    Problem,
    Refusal,
    Refusals,
    ScenarioError,
    guess,
    seen,
)
from sim.scenario.structuring import Structurer
from sim.scenario.wholes import liveness_problems, whole_problems

__all__ = ["Source", "check_document", "one_table", "try_variants"]

_T = TypeVar("_T")
_LISTS: Final[tuple[str, ...]] = ("topic", "variant", "workload", "fault", "step", "expect")
_HEAD: Final = {key_of(each) for each in fields(Head)}
_TOP: Final = (*_HEAD, "cluster", "liveness", "sweep", *_LISTS)
_TABLES_MAX: Final = 2_000
_VARIED_MAX: Final = 50_000
"""Tables of a file times its variants: each variant is tried on all of them."""
_STRUCTURER: Final = Structurer()
"""One for all documents, one at a time: cattrs compiles a function for each class it meets."""


@frozen
class Source:
    """Where a document comes from.

    Attributes:
        file: as messages call it.
        applied: values that come from elsewhere: from a variant or the command line.
        note: is added to where a problem is.
    """

    file: str
    text: str
    places: Places
    applied: tuple[Applied, ...] = ()
    note: str = ""

    def problem(self, refusal: Refusal, document: Mapping[str, Any]) -> Problem:
        """A refusal with its place."""
        for each in reversed(self.applied):
            if refusal.at[: len(each.at)] == each.at:
                return self._elsewhere(refusal, each, document)
        places = self.places
        place = places.key(refusal.at) if refusal.is_key else places.value(refusal.at)
        column, width = place.column, place.width
        if refusal.width and place.inside >= 0 and not refusal.is_key:
            column, width = column + place.inside + refusal.offset, refusal.width
        line = places.lines[place.line - 1]
        where = _where(refusal.at, document) + self.note
        return Problem(
            self.file,
            place.line,
            column,
            width,
            where,
            refusal.text,
            refusal.hint,
            refusal.allowed,
            line,
        )

    def _elsewhere(
        self, refusal: Refusal, applied: Applied, document: Mapping[str, Any]
    ) -> Problem:
        if applied.source is None:
            file = f"--set {applied.path}"
            return Problem(file, 0, 0, 1, "", refusal.text, refusal.hint, refusal.allowed)
        at = (*applied.source, *refusal.at[len(applied.at) :])
        place = self.places.value(at)
        line = self.places.lines[place.line - 1]
        return Problem(
            self.file,
            place.line,
            place.column,
            place.width,
            _where(applied.source, document),
            f"{applied.path}: {refusal.text}",
            refusal.hint,
            refusal.allowed,
            line,
        )


@define
class _Check:
    """One document while it is checked."""

    document: dict[str, Any]
    structurer: Structurer
    refused: list[Refusal] = field(factory=list)

    def table(self, value: object, cls: type[_T], at: Path) -> _T | None:
        """An instance, or None and refusals."""
        found: _T | None = self.attempt(lambda: self.structurer.table(value, cls), at)
        return found

    def attempt(self, read: Callable[[], _T], at: Path) -> _T | None:
        try:
            return read()
        except Refusal as refusal:
            self.refused.append(refusal.below(*at))
        except Refusals as refusals:
            self.refused += [each.below(*at) for each in refusals.found]
        return None

    def refuse(self, text: str, at: Path, **more: Any) -> None:
        self.refused.append(Refusal(text, at=at, **more))

    def tables(self, key: str, read: Callable[[dict[str, Any], int], _T | None]) -> tuple[_T, ...]:
        """All tables of a list that can be read."""
        value = self.document.get(key, [])
        if not isinstance(value, list):
            hint = f"write [[{key}]] above it" if isinstance(value, dict) else ""
            self.refuse(f'"{key}" is {seen(value)}, not a list of tables', (key,), hint=hint)
            return ()
        found = []
        for at, each in enumerate(value):
            if len(self.refused) >= REFUSALS_MAX:
                break
            if not isinstance(each, dict):
                self.refuse(f"{seen(each)} is no table", (key, at), hint=f"write [[{key}]]")
                continue
            one = read(each, at)
            if one is not None:
                found.append(one)
        return tuple(found)


def check_document(document: dict[str, Any], source: Source) -> Scenario:
    """A scenario of plain tables.

    Raises:
        ScenarioError: all that is wrong with it.
    """
    many = [key for key in _LISTS if len(_as_list(document.get(key))) > _TABLES_MAX]
    if many:
        text = f"there are more than {_TABLES_MAX} of them"
        refused = [Refusal(text, at=(key,), is_key=True) for key in many]
        raise ScenarioError([source.problem(each, document) for each in refused])
    variants_count = len(_as_list(document.get("variant")))
    tables_count = sum(len(_as_list(document.get(key))) for key in _LISTS)
    if variants_count * tables_count > _VARIED_MAX:
        text = f"there are {variants_count} of them, for {tables_count} tables"
        hint = f"allowed are {_VARIED_MAX // tables_count} for so many"
        refusal = Refusal(text, hint=hint, at=("variant",), is_key=True)
        raise ScenarioError([source.problem(refusal, document)])
    _STRUCTURER.names = gather(document)
    check = _Check(document, _STRUCTURER)
    for key in [key for key in document if key not in _TOP][:REFUSALS_MAX]:
        refusal = no_such_key(key, _TOP)
        if key in ("steps", "topics", "variants", "workloads", "faults", "expects"):
            refusal.hint = f"write [[{key[:-1]}]]"
        check.refused.append(refusal)
    head = check.table({k: v for k, v in document.items() if k in _HEAD}, Head, ())
    cluster = check.table(document.get("cluster", {}), ClusterKeys, ("cluster",))
    lines = source.places

    def line(key: str, at: int) -> int:
        return lines.key((key, at)).line

    def step(table: dict[str, Any], at: int) -> Step | None:
        return _step(check, table, at, line("step", at))

    def expect(table: dict[str, Any], at: int) -> Expect | None:
        return _expect(check, table, at, line("expect", at))

    def fault(table: dict[str, Any], at: int) -> Fault | None:
        return _fault(check, table, at, line("fault", at))

    def plain(key: str, cls: type[_T]) -> tuple[_T, ...]:
        return check.tables(key, lambda table, at: check.table(table, cls, (key, at)))

    topics, variants = plain("topic", Topic), plain("variant", Variant)
    workloads = plain("workload", Workload)
    faults = check.tables("fault", fault)
    steps = check.tables("step", step)
    expects = check.tables("expect", expect)
    liveness, sweep = None, None
    if "liveness" in document:
        liveness = check.table(document["liveness"], Liveness, ("liveness",))
        if liveness is not None:
            check.refused += liveness_problems(liveness, workloads)
    if "sweep" in document:
        sweep = check.table(document["sweep"], Sweep, ("sweep",))
    check.refused += whole_problems(document, check.structurer.names, cluster, faults, steps)
    if cluster is not None:
        check.refused += config_problem(cluster, topics)
    if check.refused or head is None or cluster is None:
        raise ScenarioError([source.problem(each, document) for each in check.refused])
    return Scenario(
        schema=head.schema,
        name=head.name,
        title=head.title,
        until_us=head.until_us,
        seed=head.seed,
        cluster=cluster,
        topics=topics,
        variants=variants,
        workloads=workloads,
        faults=faults,
        steps=steps,
        expects=expects,
        sweep=sweep,
        liveness=liveness,
        boot_us=head.boot_us,
        when_impossible=head.when_impossible,
        file=source.file,
        text=source.text,
        document=document,
    )


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else []


def one_table(document: dict[str, Any], key: str, structurer: Structurer) -> Step | Fault:
    """The last table of a list, ``step`` or ``fault``, of a document that is growing.

    What is wrong between it and the others is found when the whole is checked.

    Args:
        structurer: used for one table after the other.

    Raises:
        ScenarioError: what is wrong with it alone.
    """
    structurer.names = gather(document)
    check = _Check(document, structurer)
    at = len(document[key]) - 1
    read = _step if key == "step" else _fault
    found = read(check, document[key][at], at, 0)
    if found is None:
        problems = [
            Problem("", 0, 0, 1, _where(each.at, document), each.text, each.hint, each.allowed)
            for each in check.refused
        ]
        raise ScenarioError(problems)
    return found


def try_variants(scenario: Scenario, source: Source) -> None:
    """Apply every variant once.

    Raises:
        ScenarioError: what is wrong with any of them.
    """
    problems = []
    for at, variant in enumerate(scenario.variants):
        try:
            document, applied = apply_paths(
                scenario.document, variant.set.items(), ("variant", at, "set")
            )
            note = f' (in variant "{variant.name}")'
            check_document(document, evolve(source, applied=applied, note=note))
        except Refusals as refusals:
            problems += [source.problem(each, scenario.document) for each in refusals.found]
        except ScenarioError as error:
            problems += error.problems
    if problems:
        raise ScenarioError(problems)


# One table ---------------------------------------------------------------------------------------


def _step(check: _Check, table: dict[str, Any], at: int, line: int) -> Step | None:
    given = [key for key in table if key in ACTIONS]
    own = sorted(key_of(each) for each in fields(StepKeys))
    unknown = [key for key in table if key not in own and key not in ACTIONS]
    before = len(check.refused)
    if unknown and not given:
        for key in unknown:
            check.refuse(
                f"unknown action {seen(key)}",
                ("step", at, key),
                hint=guess(key, [*ACTIONS, *own]),
                allowed=sorted(ACTIONS),
                is_key=True,
            )
    elif not given:
        hint = "a step has one action"
        check.refuse("there is no action", ("step", at), hint=hint, allowed=sorted(ACTIONS))
    if given:
        for key in unknown:
            check.refused.append(no_such_key(key, [*own, *ACTIONS], ("step", at)))
    for key in given[1:]:
        text = f'"{given[0]}" and "{key}" are two actions'
        hint = "write [[step]] between them"
        check.refuse(text, ("step", at, key), hint=hint, is_key=True)
    keys = check.table({k: v for k, v in table.items() if k in own}, StepKeys, ("step", at))
    action: Action | None = None
    for key in given:
        found = check.table(table[key], ACTIONS[key], ("step", at, key))
        action = action or found
    if len(check.refused) > before or keys is None or action is None:
        return None
    limit = keys.within_us
    if action.NAME == "wait":
        limit = 60_000_000 if limit is None else limit
    elif limit is not None:
        hint = 'settle = "2s" has its limit itself' if action.NAME == "settle" else ""
        check.refuse('"within" goes with wait', ("step", at, "within"), hint=hint, is_key=True)
    elif action.NAME == "settle":
        limit = getattr(action, "within_us")  # noqa: B009 - of this one
    return Step(
        number=at + 1,
        id=keys.id,
        at_us=keys.at_us,
        after=keys.after,
        delay_us=keys.delay_us,
        within_us=limit,
        action=action,
        line=line,
    )


def _fault(check: _Check, table: dict[str, Any], at: int, line: int) -> Fault | None:
    kind = table.get("kind")
    cls = FAULT_KINDS.get(kind) if isinstance(kind, str) else None
    if cls is None:
        path: Path = ("fault", at, "kind") if "kind" in table else ("fault", at)
        text = f"unknown kind of fault {seen(kind)}" if "kind" in table else 'there is no "kind"'
        check.refuse(text, path, hint=guess(kind, FAULT_KINDS), allowed=sorted(FAULT_KINDS))
        return None
    rest = {key: value for key, value in table.items() if key != "kind"}
    found = check.table(rest, cls, ("fault", at))
    if found is not None:
        object.__setattr__(found, "number", at + 1)
        object.__setattr__(found, "line", line)
    return found


def _expect(check: _Check, table: dict[str, Any], at: int, line: int) -> Expect | None:
    keys = check.table(table, ExpectKeys, ("expect", at))
    if keys is None:
        return None
    form = keys.form
    after = keys.after
    return Expect(
        number=at + 1,
        form=form,
        that=keys.that if form == "at" else getattr(keys, form) if form in _THAT else None,
        at_us=keys.at_us,
        after=after if isinstance(after, str) else None,
        after_us=after if isinstance(after, int) else None,
        within_us=keys.within_us,
        from_us=keys.from_us,
        to_us=keys.to_us,
        variants=keys.variants,
        because=keys.because,
        breaks=keys.breaks,
        allow=keys.allow,
        line=line,
    )


_THAT: Final = ("eventually", "always", "at_end", "sometimes")


# Where -------------------------------------------------------------------------------------------


def _where(at: Path, document: Mapping[str, Any]) -> str:
    """``step 3, at 3.5s`` for a path into it."""
    if not at:
        return ""
    top = at[0]
    if len(at) < 2 or top not in _LISTS or not isinstance(at[1], int):
        return f"[{top}]" if top in ("cluster", "liveness", "sweep") else ""
    try:
        table = document[str(top)][at[1]]
    except (KeyError, IndexError, TypeError):
        table = {}
    found = f"{top} {at[1] + 1}"
    if not isinstance(table, dict):
        return found
    name = table.get("id", table.get("name"))
    if isinstance(name, str) and top != "expect":
        found += f" {seen(name)}"
    moment = table.get("at")
    if isinstance(moment, str) and top == "step":
        found += f", at {seen(moment)[1:-1]}"
    return found
