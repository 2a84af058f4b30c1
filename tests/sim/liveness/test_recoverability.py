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
GARBLED = Culprit("a request of b2, or the answer, was garbled on its way", 61)
CUT = Culprit("a fault (Cut) stays with b1", 31, "gray")
ASKED = Wait(client="admin", what="request", at="b1", text="DeleteRecordsRequest")
CREATING = Wait(
    client="admin", what="request", at="c1", text="CreateTopicsRequest", needs=((1, ("b1", "b2")),)
)
SPREADING = evolve(CREATING, needs=((2, ALL),))
FENCED = lost() | {"is_fenced": True}
UNFIT: dict[str, Any] = {
    "role": "waiting",
    "leader": None,
    "leader_epoch": -1,
    "refused": 88,
    "damages": ((4, 5),),
    "culprit": BITS,
}
# Nothing is committed behind the damage, so whoever cannot get over it may join the ISR.
CIRCLING: dict[str, Any] = {
    "logs": {
        "b1": {"damages": ((4, 5),), "culprit": BITS, "high_watermark": 4},
        "b2": {"end": 4, "high_watermark": 4},
        "b3": {"end": 4, "high_watermark": 4},
    },
    "probe": "waiting",
    "epoch_changed_us": 99_000_000,
}

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
        {"logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}}, "read_end": 4},
        [BITS],
    ),
    (
        "follower-damaged",
        {"logs": {"b2": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"}}},
        [BITS],
    ),
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b2": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"},
                "b3": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"},
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
                "b1": {"damages": ((4, 5),), "culprit": BITS},
                "b2": {"end": 4},
                "b3": {"end": 4},
            },
            "probe": "rejected",
        },
        [BITS],
    ),
    # They are past the first damage, and not past the second.
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b1": {"damages": ((3, 4), (4, 5)), "culprit": BITS},
                "b2": {"end": 4},
                "b3": {"end": 4},
            },
            "probe": "rejected",
        },
        [BITS],
    ),
    (
        "leader-damaged",
        {"logs": {"b1": {"damages": ((3, 4), (7, 9)), "culprit": BITS}}, "read_end": 7},
        [BITS],
    ),
    # A header is damaged, so nobody finds what is behind it.
    (
        "leader-damaged",
        {
            "logs": {"b1": {"damages": ((4, 5),), "hidden": ((5, 9),), "culprit": BITS}},
            "read_end": 8,
        },
        [BITS],
    ),
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b1": {"damages": ((3, 4),), "hidden": ((4, 20),), "culprit": BITS},
                "b2": {"end": 4},
                "b3": {"end": 4},
            },
            "probe": "rejected",
        },
        [BITS],
    ),
    (
        "isr-behind-damage",
        {"isr": ("b1",), "logs": {"b2": UNFIT, "b3": UNFIT}, "probe": "rejected"},
        [BITS],
    ),
    (
        "follower-misled",
        {"logs": {"b2": {"misled": 61, "culprit": GARBLED, "fetch": "failed"}}},
        [GARBLED],
    ),
    (
        "isr-behind-damage",
        {
            "isr": ("b1",),
            "logs": {
                "b2": {"misled": 61, "culprit": GARBLED, "fetch": "failed"},
                "b3": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"},
            },
            "probe": "rejected",
        },
        [GARBLED, BITS],
    ),
    ("role-refused", {"isr": ("b1", "b2"), "logs": {"b3": UNFIT}}, [BITS]),
    ("role-refused", {"is_led": False, "logs": {"b1": UNFIT}}, [BITS]),
    ("isr-behind-damage", {**CIRCLING, "isr": ("b1",)}, [BITS]),
    ("isr-behind-damage", {**CIRCLING, "isr": ALL}, [BITS]),
    ("isr-circles", {**CIRCLING, "isr": ("b1",)}, [BITS]),
    ("isr-circles", {**CIRCLING, "isr": ALL}, [BITS]),
    # Whoever is in is to be put out, though nothing has moved for long.
    ("isr-circles", {**CIRCLING, "isr": ALL, "epoch_changed_us": 0}, [BITS]),
    ("asked-is-gone", {"nodes": {"b1": lost()}, "waits": (ASKED,)}, [CRASH]),
    (
        "asked-is-gone",
        {"nodes": {"b1": {"status": "down", "is_gone": True, "culprit": FULL}}, "waits": (ASKED,)},
        [FULL],
    ),
    (
        "asked-for-gone",
        {"nodes": {"b1": FENCED, "b2": FENCED}, "waits": (CREATING, SPREADING)},
        [CRASH],
    ),
    # The position lies within the batch.
    (
        "leader-damaged",
        {"logs": {"b1": {"damages": ((4, 8),), "culprit": BITS}}, "read_end": 5},
        [BITS],
    ),
    (
        "min-isr-unreachable",
        {"isr": ("b3",), "leader": "b3", "nodes": {"b1": lost(), "b2": lost(POWER)}},
        [CRASH, POWER],
    ),
    ("quarantined", {"logs": {"b2": quarantined(is_salvageable=False)}}, [BITS]),
    ("reassignment-stuck", {"adding": ("b3",), "nodes": {"b3": lost()}}, [CRASH]),
    (
        "reassignment-stuck",
        {
            "isr": ("b1", "b2"),
            "adding": ("b3",),
            "logs": {"b1": {"damages": ((4, 8),), "culprit": BITS}, "b3": {"start": 5, "end": 5}},
        },
        [BITS],
    ),
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
    ("leader-damaged", {"logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}}, "read_end": 5}),
    ("leader-damaged", {"logs": {"b2": {"damages": ((4, 5),), "culprit": BITS}}, "read_end": 4}),
    # The index has an entry behind the damaged header, or the header is whole.
    (
        "leader-damaged",
        {
            "logs": {"b1": {"damages": ((4, 5),), "hidden": ((5, 9),), "culprit": BITS}},
            "read_end": 9,
        },
    ),
    ("leader-damaged", {"logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}}, "read_end": 8}),
    # It has never failed to take its role, has it by now, is sound, or there is none to take.
    ("role-refused", {"isr": ("b1", "b2"), "logs": {"b3": UNFIT | {"refused": 0}}}),
    ("role-refused", {"isr": ("b1", "b2"), "logs": {"b3": UNFIT | {"leader_epoch": 0}}}),
    ("role-refused", {"isr": ("b1", "b2"), "logs": {"b3": UNFIT | {"damages": ()}}}),
    ("role-refused", {"isr": ("b1", "b2"), "leader": None, "logs": {"b3": UNFIT}}),
    (
        "isr-behind-damage",
        {"isr": ("b1",), "logs": {"b2": UNFIT, "b3": UNFIT | {"refused": 0}}},
    ),
    # It does not know of the damage, or has failed without any.
    ("follower-damaged", {"logs": {"b2": {"damages": ((4, 5),), "culprit": BITS}}}),
    ("follower-damaged", {"logs": {"b2": {"fetch": "failed"}}}),
    # It has not failed, or is in use again, or nothing was garbled.
    ("follower-misled", {"logs": {"b2": {"misled": 61, "culprit": GARBLED}}}),
    ("follower-misled", {"logs": {"b2": {"fetch": "failed"}}}),
    # One that is past the damage is enough, whoever else is in sync.
    (
        "isr-behind-damage",
        {"isr": ("b1",), "logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}, "b2": {"end": 4}}},
    ),
    (
        "isr-behind-damage",
        {"logs": {"b1": {"damages": ((4, 5),), "culprit": BITS}, "b2": {"end": 4}}},
    ),
    # What is committed lies behind the damage: they stay out, though they were put out just now.
    (
        "isr-circles",
        {
            "isr": ("b1",),
            "epoch_changed_us": 99_000_000,
            "logs": {
                "b1": {"damages": ((4, 5),), "culprit": BITS},
                "b2": {"end": 4},
                "b3": {"end": 4},
            },
        },
    ),
    # They have been out for longer than a session.
    ("isr-circles", {**CIRCLING, "isr": ("b1",), "epoch_changed_us": 90_000_000}),
    # They have no role, and so do not fetch.
    ("isr-circles", {"logs": {"b2": UNFIT, "b3": UNFIT}}),
    # They have failed.
    (
        "isr-circles",
        {
            "isr": ("b1",),
            "logs": {
                "b2": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"},
                "b3": {"damages": ((4, 5),), "culprit": BITS, "fetch": "failed"},
            },
        },
    ),
    ("asked-is-gone", {"nodes": {"b1": {"status": "down", "culprit": CRASH}}, "waits": (ASKED,)}),
    ("asked-is-gone", {"nodes": {"b2": lost()}, "waits": (ASKED,)}),
    # One of them is left, or comes back, or could be active for all that is known.
    ("asked-for-gone", {"nodes": {"b1": FENCED}, "waits": (CREATING, SPREADING)}),
    (
        "asked-for-gone",
        {"nodes": {"b1": FENCED, "b2": FENCED | {"is_gone": False}}, "waits": (CREATING,)},
    ),
    ("asked-for-gone", {"nodes": {"b1": FENCED, "b2": lost()}, "waits": (CREATING,)}),
    # Something else is asked for, which nothing is in the way of.
    (
        "asked-for-gone",
        {"nodes": {"b1": FENCED, "b2": FENCED}, "waits": (CREATING, evolve(ASKED, at="c1"))},
    ),
    ("min-isr-unreachable", {"isr": ("b2", "b3"), "leader": "b2", "nodes": {"b1": lost()}}),
    ("quarantined", {"logs": {"b2": quarantined()}}),
    ("reassignment-stuck", {"adding": ("b3",), "nodes": {"b3": {"status": "down"}}}),
    # It is past the damage, or is on its way out.
    (
        "reassignment-stuck",
        {
            "adding": ("b3",),
            "logs": {"b1": {"damages": ((4, 8),), "culprit": BITS}, "b3": {"end": 8}},
        },
    ),
    (
        "reassignment-stuck",
        {
            "adding": ("b3",),
            "removing": ("b2",),
            "logs": {"b1": {"damages": ((4, 8),), "culprit": BITS}, "b2": {"end": 4}},
        },
    ),
]


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
