"""What concerns several tables of a document: names twice, times out of order, impossible steps.

A step is impossible where that can be seen without running: a node that is down already crashes,
a fault is healed that nobody began, or twice. Where the order of steps, or who is meant, is known
at run time only, nothing is said here; nor where ``when_impossible = "skip"`` passes over them.

Left out: what one table alone says.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from sim.scenario.actions import HEALABLE
from sim.scenario.cluster_keys import ClusterKeys
from sim.scenario.durations import duration_us, show_duration
from sim.scenario.fault_base import DiskFault, Fault
from sim.scenario.fault_nodes import (
    AtRestFault,
    CrashFault,
    CrashLoopFault,
    DiskGoneFault,
    FailpointFault,
    FillFault,
    PauseFault,
    ReadOnlyFault,
)
from sim.scenario.liveness import impossible_steps
from sim.scenario.model import Liveness, Step, Workload
from sim.scenario.names import RESERVED, Names, slug
from sim.scenario.problems import Path, Refusal, guess, seen

__all__ = ["liveness_problems", "whole_problems"]

_SERVER: Final = re.compile(r"b[0-9]+|c1", re.ASCII)
_KEYWORDS: Final = frozenset({"True", "False", "None", "and", "or", "not", "in", "is", "if", "len"})


def whole_problems(
    document: Mapping[str, Any],
    names: Names,
    cluster: ClusterKeys | None,
    faults: Sequence[Fault],
    steps: Sequence[Step],
) -> list[Refusal]:
    """All of it.

    Args:
        faults, steps: those that could be read.
    """
    found: list[Refusal] = []
    found += _twice(document)
    found += _clients(document)
    found += _times(document)
    found += _step_order(document, names)
    found += _heals(document, names)
    found += _topics(document)
    found += _modes(cluster, faults)
    is_certain = not _skips(document) and not any(isinstance(each, _ENDS) for each in faults)
    if is_certain and len(steps) == len(_tables(document, "step")):
        found += impossible_steps(steps)
    return found


def liveness_problems(liveness: Liveness, workloads: Sequence[Workload]) -> list[Refusal]:
    """Throughput needs somebody who writes, also behind the end of the run."""
    if not liveness.metastability:
        return []
    at: Path = ("liveness", "metastability")
    if liveness.demand == "unavailable":
        text = 'metastability goes with demand = "converge"'
        return [Refusal(text, at=at, hint="leave one of them out")]
    if any(_writes_on(each) for each in workloads):
        return []
    text = "metastability needs a [[workload]] of a producer without stop, and with answers"
    hint = 'kind = "producer", acks = "all" or "1", and no stop'
    return [Refusal(text, at=at, hint=hint)]


def _writes_on(workload: Workload) -> bool:
    return workload.kind == "producer" and workload.stop_us is None and workload.acks != "0"


_ENDS: Final = (
    CrashFault,
    CrashLoopFault,
    FailpointFault,
    # A broker gives up where its disk does.
    AtRestFault,
    DiskFault,
    DiskGoneFault,
    FillFault,
    PauseFault,
    ReadOnlyFault,
)
"""Faults that may end or pause a process: nobody knows beforehand which steps are possible."""


def _tables(document: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = document.get(key)
    if not isinstance(value, list):
        return []
    return [each if isinstance(each, dict) else {} for each in value]


def _skips(document: Mapping[str, Any]) -> bool:
    return document.get("when_impossible") == "skip"


def _time(value: object) -> int | None:
    """A time, or None where it is none: that is told elsewhere."""
    try:
        return duration_us(value)
    except Refusal:
        return None


# Names -------------------------------------------------------------------------------------------


def _twice(document: Mapping[str, Any]) -> list[Refusal]:
    found: list[Refusal] = []
    same: Callable[[str], str] = str
    for what, places, key in (
        ("topic", (("topic", "name"),), same),
        ("variant", (("variant", "name"),), slug),
        ("id", (("fault", "id"), ("step", "id")), same),
    ):
        known: dict[str, str] = {}
        for table, field in places:
            for at, each in enumerate(_tables(document, table)):
                name = each.get(field)
                if not isinstance(name, str):
                    continue
                if key(name) in known:
                    other = known[key(name)]
                    text = f"{what} {seen(name)} is there twice: {other} has it already"
                    found.append(Refusal(text, at=(table, at, field)))
                else:
                    known[key(name)] = f"{table} {at + 1}"
    for at, each in enumerate(_tables(document, "step")):
        if each.get("id") == "all":
            found.append(Refusal('"all" is no id: heal = "all" heals all', at=("step", at, "id")))
    for at, each in enumerate(_tables(document, "fault")):
        if each.get("id") == "all":
            found.append(Refusal('"all" is no id: heal = "all" heals all', at=("fault", at, "id")))
    return found


def _clients(document: Mapping[str, Any]) -> list[Refusal]:
    """A client is one thing: a workload, a producer or a consumer of steps."""
    found: list[Refusal] = []
    known: dict[str, tuple[str, str]] = {}

    def use(name: object, kind: str, where: str, at: Path) -> None:
        if not isinstance(name, str):
            return
        if name in RESERVED or name in _KEYWORDS or _SERVER.fullmatch(name):
            hint = 'call it "p1", "k1" or the like'
            found.append(Refusal(f"{seen(name)} is no name for a client", at=at, hint=hint))
            return
        first = known.setdefault(name, (kind, where))
        if first[0] != kind or (where.startswith("workload") and first[1] != where):
            text = f"{seen(name)} is the {first[0]} of {first[1]} already"
            found.append(Refusal(text, at=at, hint="give one of them another name"))

    for at, each in enumerate(_tables(document, "workload")):
        use(
            each.get("name"),
            f"{each.get('kind')} workload",
            f"workload {at + 1}",
            _at("workload", at, "name"),
        )
    for at, step in enumerate(_tables(document, "step")):
        for action, kind, default in (("produce", "producer", "p1"), ("consume", "consumer", "k1")):
            table = step.get(action)
            if isinstance(table, dict):
                path = _at("step", at, action, *(["client"] if "client" in table else []))
                use(table.get("client", default), kind, f"step {at + 1}", path)
    return found


def _at(*parts: str | int) -> Path:
    return parts


def _topics(document: Mapping[str, Any]) -> list[Refusal]:
    """Topics that are created where they are, or deleted where they are not."""
    found: list[Refusal] = []
    names = [each.get("name") for each in _tables(document, "topic")]
    there = {each for each in names if isinstance(each, str)}
    steps = _tables(document, "step")
    if _skips(document) or any("after" in each for each in steps):
        return found
    for at, step in enumerate(steps):
        made = step.get("create_topic")
        name = made.get("name") if isinstance(made, dict) else None
        if isinstance(name, str):
            if name in there:
                text = f"topic {seen(name)} is there already"
                hint = "delete it first"
                found.append(Refusal(text, at=("step", at, "create_topic", "name"), hint=hint))
            there.add(name)
        gone = step.get("delete_topic")
        name = gone.get("name") if isinstance(gone, dict) else gone
        if isinstance(name, str):
            if name not in there and any(
                isinstance(each.get("create_topic"), dict)
                and each["create_topic"].get("name") == name
                for each in steps
            ):
                text = f"topic {seen(name)} is not there yet"
                found.append(Refusal(text, at=("step", at, "delete_topic")))
            there.discard(name)
    return found


# Times -------------------------------------------------------------------------------------------


def _times(document: Mapping[str, Any]) -> list[Refusal]:
    """Nothing happens behind the end."""
    until = _time(document.get("until"))
    if until is None:
        return []
    found = []
    for key, fields in (
        ("step", ("at",)),
        ("fault", ("start",)),
        ("workload", ("start",)),
        ("expect", ("at", "from", "to", "after")),
    ):
        for at, each in enumerate(_tables(document, key)):
            for field in fields:
                moment = _time(each.get(field))
                if moment is not None and moment > until:
                    text = f"{seen(each[field])} is beyond the end of the run"
                    hint = f"until is {show_duration(until)}"
                    found.append(Refusal(text, at=(key, at, field), hint=hint))
    return found


def _step_order(document: Mapping[str, Any], names: Names) -> list[Refusal]:
    found: list[Refusal] = []
    last, last_number = 0, 0
    for at, step in enumerate(_tables(document, "step")):
        if "at" in step and "after" in step:
            text = '"at" and "after" exclude each other'
            hint = "leave one of them out"
            found.append(Refusal(text, at=("step", at, "after"), is_key=True, hint=hint))
        if "delay" in step and "after" not in step:
            text = '"delay" goes with "after"'
            found.append(Refusal(text, at=("step", at, "delay"), is_key=True))
        moment = _time(step.get("at"))
        if moment is not None:
            if moment < last:
                text = f"{seen(step['at'])} is before step {last_number}, at {show_duration(last)}"
                hint = "steps stand in the order of their times"
                found.append(Refusal(text, at=("step", at, "at"), hint=hint))
            else:
                last, last_number = moment, at + 1
        after = step.get("after")
        if isinstance(after, str) and names.steps.get(after, 0) > at:
            number = names.steps[after]
            text = (
                f"step {number} ({seen(after)}) comes later"
                if number > at + 1
                else "a step does not come after itself"
            )
            found.append(Refusal(text, at=("step", at, "after")))
        start = step.get("start")
        disk = start.get("disk") if isinstance(start, dict) else None
        if isinstance(disk, str) and disk.startswith("image:"):
            number = names.steps.get(disk.removeprefix("image:"), 0)
            if number > at:
                text = f"step {number} is not done then"
                found.append(Refusal(text, at=("step", at, "start", "disk")))
    return found


# Faults ------------------------------------------------------------------------------------------


def _heals(document: Mapping[str, Any], names: Names) -> list[Refusal]:
    """A heal names a fault that has begun and is not healed."""
    found: list[Refusal] = []
    healed: dict[str, int] = {}
    steps = _tables(document, "step")
    is_ordered = not _skips(document) and not any("after" in each for each in steps)
    known = sorted({*(i for i, a in names.actions.items() if a in HEALABLE), *names.faults})
    for at, step in enumerate(steps):
        if "heal" not in step:
            continue
        value = step["heal"]
        path: Path = ("step", at, "heal")
        if isinstance(value, dict):
            value, path = value.get("id"), (*path, "id")
        listed = value if isinstance(value, list) else [value]
        for index, each in enumerate(listed):
            place = (*path, index) if isinstance(value, list) else path
            if not isinstance(each, str):
                continue
            if each == "all":
                if isinstance(value, list) and len(value) > 1:
                    found.append(Refusal('"all" stands alone', at=place))
                healed |= dict.fromkeys([i for i in known if names.steps.get(i, 0) <= at], at + 1)
                continue
            problem = _heal_problem(each, at, names, known, healed if is_ordered else {})
            if problem is not None:
                found.append(problem.below(*place))
            else:
                healed[each] = at + 1
    return found


def _heal_problem(
    name: str, at: int, names: Names, known: Sequence[str], healed: Mapping[str, int]
) -> Refusal | None:
    if name in names.faults:
        return None
    number = names.steps.get(name)
    if number is None:
        return Refusal(
            f"there is no fault {seen(name)}", hint=guess(name, known), allowed=[*known, "all"]
        )
    if names.actions[name] not in HEALABLE:
        text = (
            f"step {number} ({seen(name)}) begins no fault: {names.actions[name]} cannot be healed"
        )
        hint = "write start" if names.actions[name] in ("crash", "shutdown") else ""
        return Refusal(text, hint=hint, allowed=[*known, "all"])
    if number > at:
        return Refusal(f"step {number} ({seen(name)}) begins this fault later")
    if name in healed:
        return Refusal(f"step {healed[name]} has healed it already")
    return None


def _modes(cluster: ClusterKeys | None, faults: Sequence[Fault]) -> list[Refusal]:
    """Kinds of faults that need something of the cluster."""
    if cluster is None:
        return []
    found = []
    for each in faults:
        text = hint = ""
        if each.KIND in ("duplicate", "reorder") and cluster.network != "datagram":
            text = f"streams {each.KIND} nothing"
            hint = 'write network = "datagram" in [cluster]'
        if each.KIND == "write-back-fail" and cluster.writeback is None:
            text = "the kernel writes nothing back here"
            hint = 'write writeback = ["1s", "5s"] in [cluster]'
        if text:
            found.append(Refusal(text, at=("fault", each.number - 1, "kind"), hint=hint))
    return found
