"""What can be proven impossible is proven, with its culprits; what could come is not."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sim.liveness.predicates import missing
from sim.liveness.recoverability import KINDS, impossible, unlicensed
from sim.liveness.snapshot import Culprit, Snapshot, Wait
from tests.sim.liveness.plain import ALL, BITS, CRASH, lost, quarantined, snapshot

POWER = Culprit("b2 lost its power (power)", 60, "cut")
FULL = Culprit("b3 has ended by itself 3 times", 90)
CUT = Culprit("a fault (Cut) stays with b1", 31, "gray")

PROVEN: list[tuple[str, dict[str, Any], list[Culprit]]] = [
    (
        "no-controller",
        {"nodes": {"c1": {"status": "down", "is_gone": True, "culprit": CRASH}}},
        [CRASH],
    ),
    (
        "cannot-live",
        {"nodes": {"b3": {"status": "down", "is_gone": True, "is_full": True, "culprit": FULL}}},
        [FULL],
    ),
    (
        "no-electable",
        {"leader": None, "isr": ("b1",), "nodes": {"b1": lost()}, "probe": "rejected"},
        [CRASH],
    ),
    (
        "no-electable",
        {
            "leader": None,
            "isr": (),
            "elr": ("b1", "b2"),
            "nodes": {"b1": lost(), "b2": lost(POWER)},
        },
        [CRASH, POWER],
    ),
    (
        "no-electable",
        {"leader": None, "isr": (), "last_known_elr": ("b1",), "nodes": {"b1": lost()}},
        [CRASH],
    ),
    ("no-electable", {"leader": None, "isr": ("b1",), "logs": {"b1": quarantined()}}, [BITS]),
    (
        "no-electable",
        {"leader": "b1", "is_led": False, "isr": ("b1",), "nodes": {"b1": lost()}},
        [CRASH],
    ),
    (
        "no-electable",
        {
            "leader": None,
            "is_unclean_allowed": True,
            "nodes": {"b1": lost(), "b2": lost(POWER), "b3": lost(status="off")},
        },
        [CRASH, POWER],
    ),
    (
        "quarantined-everywhere",
        {"leader": None, "isr": ("b1",), "logs": {name: quarantined() for name in ALL}},
        [BITS],
    ),
    (
        "leader-outside",
        {
            "nodes": {"b1": {"is_core": False, "is_gone": True, "impaired": CUT}},
            "probe": "waiting",
        },
        [CUT],
    ),
    (
        "zombie-outside",
        {
            "leader": "b2",
            "leader_epoch": 1,
            "isr": ("b2", "b3"),
            "read_end": 4,
            "nodes": {"b1": {"is_core": False, "is_gone": True, "impaired": CUT}},
        },
        [CUT],
    ),
    (
        "leader-damaged",
        {"logs": {"b1": {"damaged_at": 4, "culprit": BITS}}, "read_end": 4},
        [BITS],
    ),
    (
        "follower-damaged",
        {"logs": {"b2": {"damaged_at": 4, "culprit": BITS, "fetch": "failed"}}},
        [BITS],
    ),
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b2": {"damaged_at": 4, "culprit": BITS, "fetch": "failed"},
                "b3": {"damaged_at": 4, "culprit": BITS, "fetch": "failed"},
            },
            "probe": "rejected",
        },
        [BITS],
    ),
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b1": {"damaged_at": 4, "culprit": BITS},
                "b2": {"end": 4},
                "b3": {"end": 4},
            },
            "probe": "rejected",
        },
        [BITS],
    ),
    (
        "min-isr-unreachable",
        {"isr": ("b3",), "leader": "b3", "nodes": {"b1": lost(), "b2": lost(POWER)}},
        [CRASH, POWER],
    ),
    ("quarantined", {"logs": {"b2": quarantined(is_salvageable=False)}}, [BITS]),
    ("reassignment-stuck", {"adding": ("b3",), "nodes": {"b3": lost()}}, [CRASH]),
]


POSSIBLE: list[tuple[str, dict[str, Any]]] = [
    ("no-controller", {"nodes": {"c1": {"status": "down"}}}),
    ("cannot-live", {"nodes": {"b3": {"status": "down"}}}),
    # A member that is down for now may lead when it is back.
    ("no-electable", {"leader": None, "isr": ("b1",), "nodes": {"b1": {"status": "down"}}}),
    ("no-electable", {"leader": None, "isr": ("b1", "b2"), "nodes": {"b1": lost()}}),
    (
        "no-electable",
        {"leader": None, "isr": ("b1",), "is_unclean_allowed": True, "nodes": {"b1": lost()}},
    ),
    # Somebody in the ELR has everything.
    ("no-electable", {"leader": None, "isr": (), "elr": ("b2",), "nodes": {"b1": lost()}}),
    # The controller has not noticed yet.
    ("no-electable", {"is_led": False, "isr": ("b1", "b2"), "nodes": {"b1": lost()}}),
    (
        "quarantined-everywhere",
        {"leader": None, "logs": {"b1": quarantined(), "b2": quarantined()}},
    ),
    # The controller will fence it.
    (
        "leader-outside",
        {"nodes": {"b1": {"is_core": False, "is_gone": True, "impaired": CUT, "is_fenced": True}}},
    ),
    ("leader-outside", {"nodes": {"b1": {"is_core": False, "is_gone": True}}}),
    # It is of the core, and will hear of its fall.
    ("zombie-outside", {"leader": "b2", "leader_epoch": 1, "read_end": 4}),
    # The reader is past it, or another has the damage.
    ("leader-damaged", {"logs": {"b1": {"damaged_at": 4, "culprit": BITS}}, "read_end": 5}),
    ("leader-damaged", {"logs": {"b2": {"damaged_at": 4, "culprit": BITS}}, "read_end": 4}),
    # It does not know of the damage, or has failed without any.
    ("follower-damaged", {"logs": {"b2": {"damaged_at": 4, "culprit": BITS}}}),
    ("follower-damaged", {"logs": {"b2": {"fetch": "failed"}}}),
    # One that is past the damage is enough; who is in sync stays so.
    (
        "isr-behind-damage",
        {"isr": ("b1",), "logs": {"b1": {"damaged_at": 4, "culprit": BITS}, "b2": {"end": 4}}},
    ),
    (
        "isr-behind-damage",
        {"logs": {"b1": {"damaged_at": 4, "culprit": BITS}, "b2": {"end": 4}, "b3": {"end": 4}}},
    ),
    ("min-isr-unreachable", {"isr": ("b2", "b3"), "leader": "b2", "nodes": {"b1": lost()}}),
    ("quarantined", {"logs": {"b2": quarantined()}}),
    ("reassignment-stuck", {"adding": ("b3",), "nodes": {"b3": {"status": "down"}}}),
]


def proofs(now: Snapshot, kind: str) -> list[Any]:
    return [each for each in impossible(now) if each.kind == kind]


def test_every_kind_is_planted_and_denied() -> None:
    assert {each[0] for each in PROVEN} == set(KINDS)
    assert {each[0] for each in POSSIBLE} == set(KINDS)


@pytest.mark.parametrize(("kind", "changes", "culprits"), PROVEN)
def test_the_impossible_is_proven(
    kind: str, changes: dict[str, Any], culprits: list[Culprit]
) -> None:
    now = snapshot(**changes)
    (proof,) = proofs(now, kind)
    assert list(proof.culprits) == culprits
    assert proof.explains(missing(now))


@pytest.mark.parametrize(("kind", "changes"), POSSIBLE)
def test_what_could_come_is_not_impossible(kind: str, changes: dict[str, Any]) -> None:
    assert proofs(snapshot(**changes), kind) == []


def test_nothing_is_impossible_in_a_healthy_cluster() -> None:
    assert impossible(snapshot()) == ()


def test_a_proof_says_who_is_to_blame() -> None:
    now = snapshot(leader=None, isr=("b2",), nodes={"b2": lost(POWER, "off")})
    (proof,) = impossible(now)
    assert str(proof) == (
        "nobody may lead orders-0: ISR {b2}, ELR {}, unclean election off: "
        "b2 lost its power (power), by 'cut' (#60)"
    )


def test_a_proof_licenses_its_partition_and_nothing_else() -> None:
    now = snapshot(leader=None, is_led=False, isr=("b1",), nodes={"b1": lost()}, read_end=None)
    other = evolve(now.partitions[0], name="other-0", isr=("b2", "b3"))
    now = evolve(now, partitions=(*now.partitions, other))
    left = unlicensed(missing(now), impossible(now))
    assert {each.partition for each in left} == {"other-0"}
    assert {each.predicate for each in left} == {"partitions-led"}


def test_too_few_for_writes_license_operations_that_wait_and_nothing_else() -> None:
    waits = (Wait(client="p1", what="produce", partition="orders-0"),)
    changes: dict[str, Any] = {"nodes": {"b2": lost(), "b3": lost()}, "isr": ("b1",)}
    now = snapshot(waits=waits, probe="rejected", **changes)
    assert unlicensed(missing(now), impossible(now)) == []
    now = snapshot(waits=waits, probe="waiting", **changes)
    left = unlicensed(missing(now), impossible(now))
    assert [each.predicate for each in left] == ["writes-answered"]


def test_a_broker_that_dies_without_a_reason_has_no_licence() -> None:
    now = snapshot(nodes={"b3": {"status": "down", "is_gone": True}})
    assert impossible(now) == ()
    assert unlicensed(missing(now), ()) == missing(now)


def impaired(culprit: Culprit = CUT, **values: Any) -> dict[str, Any]:
    """A broker that runs outside the core, with a fault."""
    return {"is_core": False, "is_gone": True, "impaired": culprit, **values}


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("no-electable", {"leader": None, "isr": ("b1",), "nodes": {"b1": impaired()}}),
        (
            "min-isr-unreachable",
            {"isr": ("b3",), "leader": "b3", "nodes": {"b1": lost(), "b2": impaired()}},
        ),
        ("reassignment-stuck", {"adding": ("b3",), "nodes": {"b3": impaired()}}),
        ("leader-outside", {"nodes": {"b1": impaired()}}),
        (
            "zombie-outside",
            {"leader": "b2", "leader_epoch": 1, "nodes": {"b1": impaired()}},
        ),
    ],
)
def test_what_rests_on_a_fault_that_may_be_light_is_not_certain(
    kind: str, changes: dict[str, Any]
) -> None:
    (proof,) = proofs(snapshot(**changes), kind)
    assert not proof.is_certain


def test_what_rests_on_the_dead_is_certain() -> None:
    for kind, changes, _ in PROVEN:
        if kind not in ("leader-outside", "zombie-outside"):
            assert all(each.is_certain for each in proofs(snapshot(**changes), kind)), kind


def test_where_it_depends_on_a_light_fault_a_write_may_end_either_way() -> None:
    changes: dict[str, Any] = {"nodes": {"b1": lost(), "b2": impaired()}, "leader": "b3"}
    for probe, texts in (("acked", 0), ("rejected", 0), ("unknown", 1)):
        now = snapshot(probe=probe, isr=("b2", "b3"), **changes)
        found = [each for each in missing(now) if each.predicate == "writes-answered"]
        assert len(found) == texts
