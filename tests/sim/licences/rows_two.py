"""The last six rows of the licence table (FAULTS D.4): two holders, disks, operators, metadata.

The row of a broker "restored from a stale image, or wiped" is two here, one for each. "bit rot of
the only surviving copy" under acks 1 is L4 for what was committed, as everything is in its file;
what only one broker ever had is L0, which stands above L4 in the list of rules.

Left out: the other rows (``rows_one``), and the runs (``test_table``).
"""

from __future__ import annotations

from typing import Final

from tests.sim.licences.cells import COLUMNS, Half, Row

__all__ = ["ROWS", "SAYS"]

ILLEGAL: Final = "ILLEGAL"
_DISK: Final[dict[str, set[str]]] = {
    "acks1": {"L0"},
    "min-isr-1": {"L2", ILLEGAL},
    "min-isr-2": {"L2", ILLEGAL},
    "elr": {ILLEGAL},
    "unclean": {"L1", "L2", ILLEGAL},
}
"""``L2 if last`` is ILLEGAL where it is not the last."""

SAYS: Final[dict[str, dict[str, set[str]]]] = {
    "power loss of two of three holders, third alive and in ISR or ELR": {
        "acks1": {"L0"},
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {"L1", ILLEGAL},
    },
    "one broker wiped": _DISK,
    "one broker restored from a stale image": _DISK,
    "lying fsync or bit rot on one broker, no power loss": {
        column: {ILLEGAL} for column in COLUMNS
    },
    "bit rot of the only surviving copy": {column: {"L4"} for column in COLUMNS},
    "minISR lowered, reassignment, forced unclean election": {
        "acks1": {"L0"},
        "min-isr-1": {"L1", ILLEGAL},
        "min-isr-2": {"L1", ILLEGAL},
        "elr": {"L1", ILLEGAL},
        "unclean": {"L1"},
    },
    "KRaft metadata (fsynced by a majority)": {
        "acks1": set(),
        "min-isr-1": {ILLEGAL},
        "min-isr-2": {ILLEGAL},
        "elr": {ILLEGAL},
        "unclean": {ILLEGAL},
    },
}
"""What FAULTS D.4 says. ``L1 if forced`` is ILLEGAL where nobody forces it."""


def _guarded(column: str, lost: int) -> Half:
    return Half(ILLEGAL, column, unguarded=f"{column}-unguarded", lost=lost)


def _disk(event: str, file: str) -> Row:
    return Row(
        event,
        file,
        {
            "acks1": (Half("L0", "acks1", 1),),
            "min-isr-1": (_guarded("min-isr-1", 5), Half("L2", "min-isr-1-last", 5)),
            "min-isr-2": (_guarded("min-isr-2", 5), Half("L2", "min-isr-2-last", 5)),
            "elr": (
                Half(ILLEGAL, "elr"),
                Half(ILLEGAL, "elr-last", unguarded="elr-unguarded", lost=5),
            ),
            "unclean": (
                _guarded("unclean", 5),
                Half("L2", "unclean-last", 5),
                Half("L1", "unclean-first", 5),
            ),
        },
    )


def _forced(column: str) -> tuple[Half, ...]:
    """Nothing is lost until the operator names a leader: the same variant shows both."""
    return Half("L1", column, 3), Half(ILLEGAL, column, unguarded=f"{column}-unguarded", lost=3)


ROWS: Final = (
    Row(
        "power loss of two of three holders, third alive and in ISR or ELR",
        "two_of_three_powerless",
        {
            "acks1": (Half("L0", "acks1", 1),),
            "min-isr-1": (_guarded("min-isr-1", 5),),
            "min-isr-2": (_guarded("min-isr-2", 5),),
            "elr": (_guarded("elr", 5), Half(ILLEGAL, "elr-eligible")),
            "unclean": (_guarded("unclean", 5), Half("L1", "unclean-down", 5)),
        },
        # To leave the ISR, the third must lack something: a record that was never committed.
        beside=(Half("L0", "elr-eligible", 1),),
    ),
    _disk("one broker wiped", "disk_wiped"),
    _disk("one broker restored from a stale image", "disk_restored"),
    Row(
        "lying fsync or bit rot on one broker, no power loss",
        "one_disk_spoils",
        {column: (_guarded(column, 3),) for column in COLUMNS},
    ),
    Row(
        "bit rot of the only surviving copy",
        "only_copy_rots",
        {
            "acks1": (Half("L4", "acks1", 4),),
            "min-isr-1": (Half("L4", "min-isr-1", 4),),
            "min-isr-2": (Half("L4", "min-isr-2", 4),),
            "elr": (Half("L4", "elr", 6), Half("L4", "elr-last-known", 6)),
            "unclean": (Half("L4", "unclean", 4),),
        },
    ),
    Row(
        "minISR lowered, reassignment, forced unclean election",
        "operator_forces",
        {
            "acks1": (Half("L0", "acks1", 3),),
            "min-isr-1": _forced("min-isr-1"),
            "min-isr-2": _forced("min-isr-2"),
            "elr": _forced("elr"),
            "unclean": (Half("L1", "unclean", 3),),
        },
    ),
    Row(
        "KRaft metadata (fsynced by a majority)",
        "controller_forgets",
        {
            "acks1": (),
            **{column: (_guarded(column, 3),) for column in COLUMNS[1:]},
        },
    ),
)
