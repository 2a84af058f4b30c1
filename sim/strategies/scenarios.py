"""Strategies for whole scenarios and for their parts; ``scenario_of`` puts parts together.

Left out: record batches (``sim.strategies.batches``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from hypothesis import strategies as st

from sim.scenario.durations import duration_us
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.problems import Refusal
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import scenario_text
from sim.strategies.choosing import chosen
from sim.swarm import parts
from sim.swarm.choosing import Choices
from sim.swarm.documents import draw_document
from sim.swarm.wanted import Wanted

__all__ = ["cluster_configs", "fault_plans", "scenario_of", "scenarios", "workloads"]

Table = dict[str, Any]
Whole = Mapping[str, Any] | Scenario

_HEAD: Final = {"schema": 1, "name": "drawn"}
_MS: Final = 1_000


def scenarios(
    envelope: str = "recoverable",
    *,
    brokers: int | tuple[int, int] = (1, 5),
    faults: int | tuple[int, int] = (0, 6),
    kinds: Sequence[str] | None = None,
    guards: Mapping[str, bool] | None = None,
    size: int = 1,
) -> st.SearchStrategy[Scenario]:
    """Whole scenarios: cluster, topics, clients, faults and steps.

    The simplest is one broker, one topic of one partition, one producer, and no fault.

    Args:
        envelope: ``recoverable``: a correct cluster loses nothing that it promised with acks=all
            and is whole again once the faults are over; losses under acks=1 are allowed, and
            ``[liveness]`` is demanded. ``unrestricted``: anything may happen, and any licence
            excuses a loss.
        brokers: least and most, 1 to 100; one number for both.
        faults: least and most faults and disturbing steps, 0 to 100; one number for both. A kind
            may bring a second step, as a crash brings a start.
        kinds: only these kinds of faults and steps, by their names in ``sim.swarm.KINDS``:
            mostly those of ``[[fault]]``, and ``step`` and the name of an action.
        guards: rules of the protocol that are switched off, by their names in files, as
            ``{"retention-below-hw": False}``: to see a test fail.
        size: 1 to 100; records, time and faults grow with it. 1 is some 200 messages.

    Returns:
        Scenarios that are checked, with text and document; what cannot act is passed over.

    Raises:
        ValueError: an argument is out of range or unknown; names it and what is allowed.
    """
    wanted = Wanted(
        envelope=envelope, brokers=brokers, faults=faults, kinds=kinds, guards=guards, size=size
    )
    # Parsed while it is drawn, so that Hypothesis shows the scenario and not the call that made it.
    return chosen(lambda choices: _parsed(draw_document(choices, wanted)))


def cluster_configs(
    envelope: str = "recoverable",
    *,
    brokers: int | tuple[int, int] = (1, 5),
    guards: Mapping[str, bool] | None = None,
) -> st.SearchStrategy[Table]:
    """A cluster and its topics: tables ``cluster`` and ``topic``. Arguments as for ``scenarios``.

    In ``recoverable`` unclean election is off, and there is a ground on which somebody may die,
    or nobody will (``sim.swarm.frame``): ``fault_plans`` sees by the tables which.
    """
    wanted = Wanted(envelope=envelope, brokers=brokers, guards=guards)
    return chosen(lambda choices: parts.cluster_tables(choices, wanted))


def workloads(of: Whole | None = None, *, lasts: str = "2s") -> st.SearchStrategy[Table]:
    """Producers and consumers that go on beside the steps: table ``workload``.

    Args:
        of: a scenario, or tables with the topics that they use; by default three brokers and one
            topic ``t1`` with three replicas.
        lasts: a time as in files, ``"2s"``: about how long producers write.

    Raises:
        ValueError: there is no topic, or the time is none.
    """
    tables, span_ms = parts.tables_of(_tables(of)), _milliseconds("lasts", lasts)
    return chosen(lambda choices: parts.workload_tables(choices, tables, span_ms))


def fault_plans(
    envelope: str = "recoverable",
    *,
    of: Whole | None = None,
    faults: int | tuple[int, int] = (0, 6),
    kinds: Sequence[str] | None = None,
    lasts: str = "2s",
) -> st.SearchStrategy[Table]:
    """Faults and disturbing steps for a cluster: ``fault``, ``step`` and ``until``.

    Args:
        envelope, faults, kinds: as for ``scenarios``. In ``recoverable`` only those faults come
            that the cluster survives: with eligible leader replicas and a minimum ISR of two or
            more, few brokers lose anything; where every topic has ``flush.messages = 1``, power
            may fail; without both, processes may be killed.
        of: a scenario or tables with cluster and topics, as for ``workloads``.
        lasts: a time as in files, in which faults begin.

    Raises:
        ValueError: an argument is unknown, or a topic of ``of`` allows unclean election in
            ``recoverable``.
    """
    wanted = Wanted(envelope=envelope, faults=faults, kinds=kinds)
    tables, span_ms = parts.tables_of(_tables(of)), _milliseconds("lasts", lasts)
    grounds = parts.grounds_of(tables, wanted)

    def draw(choices: Choices) -> Table:
        return parts.fault_tables(choices, wanted, tables, grounds, span_ms)

    return chosen(draw)


def scenario_of(*tables: Whole, **head: Any) -> Scenario:
    """One scenario of several tables.

    Lists are put together, and steps by their times; of other keys the last one given counts, and
    of ``until`` the latest. What cannot act is passed over, unless ``when_impossible`` says
    otherwise.

    Args:
        tables: scenarios, documents, or parts of documents.
        head: further keys of the top, as ``seed=7`` or ``liveness={}``; these count most.

    Raises:
        ValueError: steps without ``at`` come from one of several tables with steps; or something
            given is no table.
        ScenarioError: the whole is no scenario; says what is wrong with it.
    """
    found: Table = dict(_HEAD)
    for each in tables:
        for key, value in _tables(each).items():
            if isinstance(value, list):
                found[key] = _merged(key, found.get(key, []), value)
            elif key == "until" and key in found:
                found[key] = max(found[key], value, key=lambda text: _microseconds("until", text))
            else:
                found[key] = value
    return _parsed({"until": "3s", "when_impossible": "skip", **found, **head})


def _merged(key: str, first: list[Any], second: list[Any]) -> list[Any]:
    if key != "step" or not first or not second:
        return [*first, *second]
    steps = [*first, *second]
    for each in steps:
        if not isinstance(each, Mapping):
            raise ValueError(f"a step is {each!r}, allowed is a table")
        if "at" not in each:
            raise ValueError(f"steps of several tables need times, this one has no at: {each!r}")
    return sorted(steps, key=lambda each: _microseconds("at", each["at"]))


def _tables(whole: Whole | None) -> Mapping[str, Any]:
    if whole is None:
        return parts.PLAIN
    if not isinstance(whole, Scenario | Mapping):
        raise ValueError(f"tables are {whole!r}, allowed are a scenario and a document of one")
    return whole.document if isinstance(whole, Scenario) else whole


def _microseconds(what: str, text: Any) -> int:
    try:
        return duration_us(text)
    except Refusal as refusal:
        raise ValueError(f"{what} is {text!r}: {refusal.text}") from None


def _milliseconds(what: str, text: str) -> int:
    found = _microseconds(what, text) // _MS
    if found < parts.SPAN_MIN_MS:
        raise ValueError(f"{what} is {text!r}, allowed is {parts.SPAN_MIN_MS}ms or more")
    return found


def _parsed(document: Mapping[str, Any]) -> Scenario:
    """By its text, so that every case is a file."""
    return effective(parse_scenario(scenario_text(dict(document)), "drawn"))
