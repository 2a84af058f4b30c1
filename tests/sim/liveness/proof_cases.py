"""Snapshots in which something is impossible, with its culprits, and some in which it can come."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from sim.liveness.snapshot import Culprit, Wait
from tests.sim.liveness.plain import ALL, BITS, CRASH, lost, quarantined

__all__ = ["ASKED", "CIRCLING", "CUT", "POSSIBLE", "POWER", "PROVEN", "UNFIT"]

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
