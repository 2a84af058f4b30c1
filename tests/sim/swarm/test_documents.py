"""Drawn documents: what seeds give, that all of it can be run, and what envelopes keep to."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest

from sim.scenario.actions import ACTIONS
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.reading import parse_scenario
from sim.scenario.wiring import require_wired
from sim.scenario.writing import scenario_text
from sim.swarm import ENVELOPES, KINDS, Wanted, drawn
from sim.swarm.documents import plan_for
from sim.swarm.frame import Cluster
from sim.swarm.kinds import SEQUENCES
from tests.sim.swarm import rules

MANY = 1_500
ONLY_UNRESTRICTED = frozenset({"corrupt"})


@cache
def documents(envelope: str) -> list[dict[str, Any]]:
    return [drawn(seed, envelope) for seed in range(MANY)]


def kinds(document: dict[str, Any]) -> set[str]:
    return {each["kind"] for each in document["fault"]}


def actions(document: dict[str, Any]) -> set[str]:
    return {key for step in document["step"] for key in step if key in ACTIONS}


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_every_document_is_a_scenario_that_can_be_run(envelope: str) -> None:
    for document in documents(envelope)[:250]:
        scenario = parse_scenario(scenario_text(document))
        require_wired(scenario)
        assert scenario.document == {key: value for key, value in document.items() if value != []}
        assert scenario.when_impossible == "skip"


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_seeds_give_different_documents(envelope: str) -> None:
    texts = {scenario_text(each | {"name": "x", "seed": 0}) for each in documents(envelope)}
    assert len(texts) == MANY


def test_a_seed_gives_one_text_in_every_process() -> None:
    code = (
        "from sim.swarm import drawn\nfrom sim.scenario.writing import scenario_text\n"
        "for seed in range(40): print(scenario_text(drawn(seed, 'unrestricted')))"
    )
    here = "".join(f"{scenario_text(drawn(seed, 'unrestricted'))}\n" for seed in range(40))
    for hash_seed in ("0", "77"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed}
        other = subprocess.run(  # the output is compared
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True
        )
        assert other.stdout == here, other.stderr


def test_unrestricted_has_every_kind_of_fault_and_every_action() -> None:
    found = documents("unrestricted")
    assert set(FAULT_KINDS) - set().union(*map(kinds, found)) == set()
    assert set(ACTIONS) - set().union(*map(actions, found)) == set()


def test_recoverable_has_every_kind_but_flipped_bits() -> None:
    found = documents("recoverable")
    assert set(FAULT_KINDS) - set().union(*map(kinds, found)) == ONLY_UNRESTRICTED
    assert set(ACTIONS) - set().union(*map(actions, found)) == set()


@pytest.mark.parametrize("envelope", ENVELOPES)
def test_topologies_clients_and_configurations_differ(envelope: str) -> None:
    seen: Counter[tuple[str, Any]] = Counter()
    for each in documents(envelope):
        seen["brokers", each["cluster"]["brokers"]] += 1
        seen["elr", each["cluster"]["eligible_leader_replicas"]] += 1
        for topic in each["topic"]:
            config = topic["config"]
            seen["partitions", len(topic["replicas"])] += 1
            seen["factor", len(topic["replicas"][0])] += 1
            seen["least", config["min.insync.replicas"]] += 1
            seen["cleanup", config.get("cleanup.policy", "")] += 1
            seen["retention", "retention.ms" in config] += 1
        for client in each["workload"]:
            seen["kind", client["kind"]] += 1
            seen["acks", client.get("acks", "")] += 1
            seen["idempotence", client.get("idempotence", True)] += 1
            seen["group", "group" in client] += 1
    for what, values in (
        ("brokers", (1, 2, 3, 4, 5)),
        ("elr", (False, True)),
        ("partitions", (1, 2, 3, 4)),
        ("factor", (1, 2, 3)),
        ("least", (1, 2, 3)),
        ("cleanup", ("", "compact", "compact,delete")),
        ("retention", (False, True)),
        ("kind", ("producer", "consumer")),
        ("acks", ("all", "1", "0")),
        ("idempotence", (False, True)),
        ("group", (False, True)),
    ):
        for value in values:
            assert seen[what, value] > 5, (what, value)


# Envelopes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", rules.RULES)
def test_recoverable_documents_keep_every_rule(
    rule: Callable[[dict[str, Any]], Iterator[str]],
) -> None:
    for document in documents("recoverable"):
        assert list(rule(document)) == [], document["name"]


@pytest.mark.parametrize("rule", rules.RULES)
def test_unrestricted_documents_keep_none(
    rule: Callable[[dict[str, Any]], Iterator[str]],
) -> None:
    assert any(any(rule(document)) for document in documents("unrestricted"))


def test_recoverable_has_all_four_grounds_and_demands_recovery() -> None:
    grounds = Counter(each["title"] for each in documents("recoverable"))
    assert set(grounds) == {f"drawn: {each}" for each in ("calm", "kills", "flush", "elr")}
    assert min(grounds.values()) > 30
    assert all("liveness" in each for each in documents("recoverable"))
    assert not any("liveness" in each for each in documents("unrestricted"))


# What is asked for -------------------------------------------------------------------------------


def test_size_brings_more_time_and_records() -> None:
    def span(document: dict[str, Any]) -> int:
        return int(document["until"].removesuffix("ms"))

    # Sequences go by time-outs, which stay.
    sequences = {each.name for each in SEQUENCES}
    alone = [each for each in KINDS if each not in sequences]
    small = [drawn(seed, "recoverable", kinds=alone) for seed in range(60)]
    large = [drawn(seed, "recoverable", kinds=alone, size=5) for seed in range(60)]
    assert sum(map(span, large)) > 4 * sum(map(span, small))
    rates = [
        sum(each.get("rate", 0) for d in some for each in d["workload"]) for some in (small, large)
    ]
    assert rates[1] > 2 * rates[0]


def test_kinds_brokers_faults_and_guards_are_what_was_asked_for() -> None:
    for seed in range(40):
        document = drawn(
            seed,
            "unrestricted",
            brokers=4,
            faults=(2, 2),
            kinds=["pause", "clog"],
            guards={"fetch-epoch": False},
        )
        assert document["cluster"]["brokers"] == 4
        assert document["cluster"]["guards"] == {"fetch-epoch": False}
        assert kinds(document) <= {"pause", "clog"}
        assert len(document["fault"]) == 2
        assert document["step"] == []
        parse_scenario(scenario_text(document))


def test_every_kind_can_be_asked_for_alone() -> None:
    for name in KINDS:
        found = [drawn(seed, "unrestricted", kinds=[name], faults=(1, 3)) for seed in range(30)]
        assert any(each["fault"] or each["step"] for each in found) or name in (
            "duplicate",
            "reorder",
        ), name


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"envelope": "safe"}, "envelope is 'safe', allowed are 'recoverable' and 'unrestricted'"),
        ({"brokers": 0}, "brokers is (0, 0), allowed is a number or a pair (least, most) within"),
        ({"brokers": (3, 2)}, "brokers is (3, 2)"),
        ({"brokers": "3"}, "brokers is '3'"),
        ({"faults": (-1, 2)}, "faults is (-1, 2)"),
        ({"size": 0}, "size is 0, allowed is 1..100"),
        ({"guards": {"fetch-epok": False}}, "there is no guard 'fetch-epok' (did you mean"),
        ({"guards": {"fetch-epoch": 0}}, "guard 'fetch-epoch' is 0, allowed are True and False"),
        ({"kinds": ["crsh"]}, "there is no kind 'crsh' (did you mean \"crash\"?), allowed: cut"),
        ({"kinds": "crash"}, "kinds is 'crash', allowed is a list of names"),
    ],
)
def test_what_cannot_be_wanted_is_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError) as info:  # noqa: PT011 - its text is looked at
        Wanted(**values)
    assert text in str(info.value)


def test_a_sequence_makes_no_topic_that_is_there() -> None:
    topic = {"name": "read", "replicas": [["b1"]], "config": {}}
    plan = plan_for(Cluster("calm", 1, {}), [topic], 1_000)
    assert not plan.claim("read", "deleted")
    assert plan.claim("deleted")
    assert not plan.claim("deleted")
