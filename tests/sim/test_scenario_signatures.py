"""No two scenario files of the project tell the same: what strikes, under which rule, what comes.

The signature of a variant is (what strikes: kinds of faults and of steps that disturb; the rule:
what it breaks, under which licences it loses, which guards are off and which older way of cutting
logs is on; the verdict). That of a file is the set of its variants' signatures.

Left out: configuration, order and times, in which two files of one signature may differ.
"""

from __future__ import annotations

from itertools import combinations
from typing import NamedTuple

import pytest

from sim.running.verdicts import PROMISES
from sim.scenario.actions import Action, Crash, Start
from sim.scenario.effective import effective
from sim.scenario.fault_base import Fault
from sim.scenario.fault_nodes import CrashFault, CrashLoopFault
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario, read_scenario
from sim.scenario_files import scenario_files

QUIET = frozenset(
    {
        "consume",
        "create_topic",
        "flush",
        "heal",
        "produce",
        "resume",
        "settle",
        "wait",
    }
)
"""Steps that disturb nothing."""


class Signature(NamedTuple):
    """Of one variant."""

    strikes: frozenset[str]
    rule: frozenset[str]
    verdict: str


def _of_step(action: Action) -> str | None:
    if isinstance(action, Crash):
        return f"crash {action.how}"
    if isinstance(action, Start):
        disk = action.disk.partition(":")[0]
        return None if disk == "same" else f"start {disk}"
    return None if action.NAME in QUIET else action.NAME


def _of_fault(fault: Fault) -> str:
    is_crash = isinstance(fault, (CrashFault, CrashLoopFault))
    return f"{fault.KIND} {fault.how}" if is_crash else fault.KIND


def _verdict(breaks: set[str], licences: set[str]) -> str:
    """What the run must come to: an invariant is broken, records are lost, or neither."""
    if breaks - set(PROMISES):
        return "broken"
    return "lost" if breaks or licences else "kept"


def signature_of(scenario: Scenario) -> Signature:
    """Of a scenario to which a variant has been applied."""
    strikes = {_of_step(step.action) for step in scenario.steps} - {None}
    strikes |= {_of_fault(fault) for fault in scenario.faults}
    expects = [each for each in scenario.expects if each.applies_to(scenario.variant)]
    breaks = {name for each in expects for name in each.breaks}
    licences = {each.licence for expect in expects for each in expect.allow}
    cluster = scenario.cluster
    off = {f"without {guard}" for guard, is_on in cluster.guards.items() if not is_on}
    if cluster.truncation != "fetch":
        off.add(f"truncation {cluster.truncation}")
    return Signature(
        frozenset(each for each in strikes if each),
        frozenset(breaks | licences | off),
        _verdict(breaks, licences),
    )


def signatures_of(scenario: Scenario) -> frozenset[Signature]:
    """Of a file as it was read."""
    variants = [each.name for each in scenario.variants] or [None]
    return frozenset(signature_of(effective(scenario, each, ())) for each in variants)


def alike(files: dict[str, Scenario]) -> list[str]:
    """Pairs of names that share a signature, in words."""
    found = {name: signatures_of(each) for name, each in files.items()}
    return [
        f"{one} and {other} tell the same: {_words(found[one])}"
        for one, other in combinations(found, 2)
        if found[one] == found[other]
    ]


def _words(signatures: frozenset[Signature]) -> str:
    told = (
        f"{' + '.join(sorted(each.strikes)) or 'nothing'} under "
        f"{', '.join(sorted(each.rule)) or 'no rule'}: {each.verdict}"
        for each in signatures
    )
    return "; ".join(sorted(told))


def test_no_two_files_tell_the_same() -> None:
    files = {name: read_scenario(path) for name, path in scenario_files().items()}
    assert len(files) >= 10
    assert alike(files) == []


# The check itself ----------------------------------------------------------------------------

BASE = """
schema = 1
name   = "x"
until  = "20s"

[cluster]
brokers = 3

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"]]

[[step]]
at    = "1s"
crash = { node = "b1", how = "process" }
"""
LATER = '\n[[step]]\nat = "9s"\nsettle = "1s"\n\n[[expect]]\nat_end = "not alive(b1)"\n'
STALL = '\n[[fault]]\nid = "s"\nkind = "stall"\ntarget = "b1"\nstart = "1s"\nduration = "2s"\n'


def _read(text: str) -> Scenario:
    return parse_scenario(text, "x.toml")


def test_times_names_and_more_expectations_make_no_other_story() -> None:
    files = {"a": _read(BASE), "b": _read(BASE.replace('= "b1"', '= "b2"').replace('"1s"', '"2s"'))}
    files["c"] = _read(BASE + LATER)
    assert [each.partition(" tell")[0] for each in alike(files)] == [
        "a and b",
        "a and c",
        "b and c",
    ]
    assert alike(files)[0].endswith("tell the same: crash process under no rule: kept")


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("process", "power"),
        BASE + STALL,
        BASE + '\n[[step]]\nat = "9s"\nstart = { node = "b1", disk = "wiped" }\n',
        BASE + '\n[[expect]]\nbreaks = "hw-valid"\n',
        BASE + '\n[[expect]]\nallow = ["L2"]\n',
        BASE.replace("brokers = 3", 'brokers = 3\ntruncation = "kip-101"'),
        BASE.replace("brokers = 3", "brokers = 3\nguards = { hw-freeze = false }"),
        BASE
        + '\n[[variant]]\nname = "one"\nset = { "cluster.guards.hw-freeze" = false }\n'
        + '\n[[variant]]\nname = "two"\nset = { "cluster.guards.hw-freeze" = true }\n',
    ],
)
def test_what_strikes_and_what_rule_is_off_make_another(text: str) -> None:
    assert alike({"a": _read(BASE), "b": _read(text)}) == []


def test_what_holds_in_one_variant_only_counts_there() -> None:
    variants = '\n[[variant]]\nname = "one"\nset = {}\n\n[[variant]]\nname = "two"\nset = {}\n'
    expect = '\n[[expect]]\nvariant = "two"\nbreaks = "acked-records-survive"\n'
    found = signatures_of(_read(BASE + variants + expect))
    assert sorted(each.verdict for each in found) == ["kept", "lost"]
    assert [each.rule for each in found if each.verdict == "kept"] == [frozenset()]
