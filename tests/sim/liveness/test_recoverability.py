"""What can be proven impossible is proven, with its culprits; what could come is not."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve

from sim.liveness.predicates import missing
from sim.liveness.recoverability import KINDS, impossible, unlicensed
from sim.liveness.snapshot import Culprit, Snapshot, Wait
from tests.sim.liveness.plain import ALL, BITS, lost, snapshot
from tests.sim.liveness.proof_cases import ASKED, CIRCLING, CUT, POSSIBLE, POWER, PROVEN, UNFIT


def proofs(now: Snapshot, kind: str) -> list[Any]:
    return [each for each in impossible(now) if each.kind == kind]


def test_every_kind_is_planted_and_denied() -> None:
    # One takes two partitions, and is below.
    kinds = set(KINDS) - {"answers-fail"}
    assert {each[0] for each in PROVEN} == {each[0] for each in POSSIBLE} == kinds


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


@pytest.mark.parametrize("isr", [("b1",), ALL])
def test_an_isr_that_circles_behind_damage_is_never_certain_and_licenses_all_it_does(
    isr: tuple[str, ...],
) -> None:
    now = snapshot(**CIRCLING, isr=isr)
    found = [each for each in impossible(now) if each.kind.startswith("isr-")]
    assert [each.is_certain for each in found] == [False, False]
    now = evolve(now, is_loaded=True)
    assert {"writes-answered", "epochs-stable"} <= {each.predicate for each in missing(now)}
    assert unlicensed(missing(now), impossible(now)) == []
    other = evolve(snapshot().partitions[0], name="other-0", changed_us=99_000_000)
    left = unlicensed(missing(evolve(now, partitions=(*now.partitions, other))), impossible(now))
    assert [(each.predicate, each.partition) for each in left] == [("epochs-stable", "other-0")]


def test_an_isr_that_circles_licenses_a_high_watermark_and_no_other_bytes() -> None:
    now = snapshot(**CIRCLING, read_end=4)
    found = [each for each in missing(now) if each.predicate == "logs-equal"]
    assert {each.node for each in found} == set(ALL)
    assert unlicensed(found, impossible(now)) == []
    other = {**CIRCLING["logs"]["b2"], "end": 10, "is_same": False}
    now = snapshot(**CIRCLING | {"logs": CIRCLING["logs"] | {"b2": other}, "min_isr": 3})
    left = unlicensed(missing(now), impossible(now))
    assert ("logs-equal", "b2") in [(each.predicate, each.node) for each in left]


def test_who_asks_the_dead_is_licensed_and_who_asks_the_living_is_not() -> None:
    living = evolve(ASKED, at="b2")
    now = snapshot(nodes={"b1": lost()}, isr=("b2", "b3"), leader="b2", waits=(ASKED, living))
    left = unlicensed(missing(now), impossible(now))
    assert [(each.predicate, each.node) for each in left if each.predicate != "logs-equal"] == [
        ("operations-ended", "b2")
    ]


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
        logs = changes.get("logs", {})
        # Others may be asked, and look-ups and roles are tried again.
        may_come = logs is CIRCLING["logs"] or UNFIT in logs.values()
        may_come |= any("hidden" in each for each in logs.values())
        assert not may_come or not any(
            each.is_certain for each in proofs(snapshot(**changes), kind)
        )
        if kind not in ("leader-outside", "zombie-outside") and not may_come:
            assert all(each.is_certain for each in proofs(snapshot(**changes), kind)), kind


def test_who_has_no_role_may_have_one_yet() -> None:
    led: dict[str, Any] = {"damages": ((4, 5),), "culprit": BITS}
    unfit = UNFIT | {"end": 4}
    now = snapshot(isr=("b1",), logs={"b1": led, "b2": unfit, "b3": unfit}, probe="rejected")
    (proof,) = proofs(now, "isr-behind-damage")
    assert not proof.is_certain


@pytest.mark.parametrize(("end", "is_certain"), [(4, True), (3, False)])
def test_who_is_not_yet_at_the_damage_may_still_get_on(end: int, is_certain: bool) -> None:
    logs: dict[str, Any] = {"b1": {"damages": ((4, 5),), "culprit": BITS}, "b2": {"end": end}}
    (proof,) = proofs(snapshot(logs=logs), "leader-damaged")
    assert (proof.node, proof.is_certain) == ("b2", is_certain)


def test_where_it_depends_on_a_light_fault_a_write_may_end_either_way() -> None:
    changes: dict[str, Any] = {"nodes": {"b1": lost(), "b2": impaired()}, "leader": "b3"}
    for probe, texts in (("acked", 0), ("rejected", 0), ("unknown", 1)):
        now = snapshot(probe=probe, isr=("b2", "b3"), **changes)
        found = [each for each in missing(now) if each.predicate == "writes-answered"]
        assert len(found) == texts


def test_a_role_that_is_refused_licenses_a_follower_alone_and_a_leader_the_partition() -> None:
    now = snapshot(isr=("b1",), logs={"b2": {"end": 7}, "b3": UNFIT}, read_end=3)
    (proof,) = proofs(now, "role-refused")
    broken = next(each for each in missing(now) if each.node == "b3")
    assert proof.covers(broken)
    assert not proof.covers(broken._replace(predicate="brokers-unfenced"))
    left = unlicensed(missing(now), impossible(now))
    assert {(each.predicate, each.node) for each in left} == {
        ("isr-complete", "b2"),
        ("readers-drained", ""),
    }
    now = snapshot(is_led=False, logs={"b1": UNFIT}, probe="waiting", read_end=None)
    assert "partitions-led" in {each.predicate for each in missing(now)}
    assert unlicensed(missing(now), impossible(now)) == []


# Answers that fail as a whole ---------------------------------------------------------------------


def with_gap(
    changes: dict[str, Any] | None = None, waits: tuple[Wait, ...] = (), **of_other: Any
) -> Snapshot:
    """Where b1 leads, ``other-0`` is torn at offset 4; the reader is at 2 of ``orders-0``."""
    torn: dict[str, Any] = {"damages": ((4, 5),), "torn": ((4, 5),), "culprit": BITS}
    other: dict[str, Any] = {"name": "other-0", "read_end": 4, "logs": {"b1": torn}} | of_other
    own: dict[str, Any] = {"read_end": 2, "waits": waits} | (changes or {})
    now = snapshot(**own)
    behind = snapshot(**other).partitions
    return evolve(now, partitions=(*now.partitions, *behind))


def test_a_gap_in_one_partition_stops_the_reader_of_another() -> None:
    now = with_gap()
    (proof,) = proofs(now, "answers-fail")
    assert (proof.partition, proof.node, proof.culprits) == ("orders-0", "", (BITS,))
    assert not proof.is_certain
    assert {each.partition for each in missing(now)} == {"orders-0", "other-0"}
    assert unlicensed(missing(now), impossible(now)) == []
    # What it says is of readers alone, and of this one.
    reader = next(each for each in missing(now) if each.partition == "orders-0")
    assert proof.covers(reader)
    assert not proof.covers(reader._replace(node="k1"))
    assert not proof.covers(reader._replace(partition="third-0"))
    assert not proof.covers(reader._replace(predicate="operations-ended"))


@pytest.mark.parametrize(
    "of_other",
    [
        # Somebody else leads it.
        {
            "leader": "b2",
            "logs": {
                "b1": {"role": "follower", "leader": "b2"},
                "b2": {
                    "role": "leader",
                    "leader": None,
                    "damages": ((4, 5),),
                    "torn": ((4, 5),),
                    "culprit": BITS,
                },
            },
        },
        # The torn log is not the leader's.
        {"logs": {"b2": {"damages": ((4, 5),), "torn": ((4, 5),), "culprit": BITS}}},
        # The reader is past it, does not know where to begin, or does not read there.
        {"read_end": 5},
        {"read_end": -1},
        {"read_end": None},
        # Its bytes are there, and others than they were: that is one partition's error.
        {"logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}}},
        # Nobody serves it.
        {
            "logs": {
                "b1": {"role": "waiting", "damages": ((4, 5),), "torn": ((4, 5),), "culprit": BITS},
            }
        },
    ],
)
def test_a_gap_that_is_not_asked_for_in_the_same_request_stops_nobody(
    of_other: dict[str, Any],
) -> None:
    now = with_gap(**of_other)
    assert proofs(now, "answers-fail") == []
    left = unlicensed(missing(now), impossible(now))
    assert ("readers-drained", "orders-0") in [(each.predicate, each.partition) for each in left]


@pytest.mark.parametrize(
    ("b3_there", "is_stopped"),
    [
        ({"end": 4}, True),
        ({"end": 3}, True),
        ({"end": 10}, False),
        ({"end": 4, "fetch": "failed"}, False),
        ({"end": 4, "leader": "b2"}, False),
    ],
)
def test_a_gap_stops_the_follower_that_asks_for_it(
    b3_there: dict[str, Any], *, is_stopped: bool
) -> None:
    torn: dict[str, Any] = {"damages": ((4, 5),), "torn": ((4, 5),), "culprit": BITS}
    now = with_gap(
        {"read_end": 10, "isr": ("b1",), "logs": {"b2": {"end": 7}, "b3": {"end": 7}}},
        read_end=10,
        logs={"b1": torn, "b3": b3_there},
    )
    assert [each.node for each in proofs(now, "answers-fail")] == ["b3"] * is_stopped
    own = [each for each in missing(now) if each.partition == "orders-0"]
    left = {(each.predicate, each.node) for each in unlicensed(own, impossible(now))}
    assert ("isr-complete", "b2") in left
    assert (("isr-complete", "b3") in left) is not is_stopped


def test_a_gap_stops_a_consumer_of_both_and_no_consumer_of_one() -> None:
    def reads(client: str, partition: str, offset: int) -> Wait:
        return Wait(client=client, what="consume", partition=partition, offset=offset)

    waits = (reads("k1", "orders-0", 2), reads("k1", "other-0", 3), reads("k2", "orders-0", 2))
    now = with_gap({"read_end": 10}, waits, read_end=10)
    assert [each.node for each in proofs(now, "answers-fail")] == ["k1"]


def test_writes_wait_for_ever_for_followers_that_get_no_answers() -> None:
    torn: dict[str, Any] = {"damages": ((4, 5),), "torn": ((4, 5),), "culprit": BITS}
    behind: dict[str, Any] = {"b2": {"end": 4}, "b3": {"end": 4}}
    now = with_gap(
        {"read_end": 10, "isr": ("b1",), "probe": "rejected"}, logs={"b1": torn, **behind}
    )
    (proof,) = [each for each in proofs(now, "isr-behind-damage") if each.partition == "orders-0"]
    assert (proof.culprits, proof.is_certain) == ((BITS,), False)
    own = [each for each in missing(now) if each.partition == "orders-0"]
    assert unlicensed(own, impossible(now)) == []
    behind["b3"] = {"end": 10}
    now = with_gap({"isr": ("b1",), "probe": "rejected"}, logs={"b1": torn, **behind})
    kinds = [(each.kind, each.partition) for each in impossible(now)]
    assert ("isr-behind-damage", "orders-0") not in kinds
