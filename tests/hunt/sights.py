"""What a hunt must have seen: a closed list, so that an empty entry is noticed.

A sight is something that happened in a world: a fault had an effect, a leader was elected in some
way, a log was cut along some path. Sights have numbers, their places in the list; what a world has
seen is a mask of them. One that no world of the generator can show says why.

Left out: seeing them (``tests.hunt.census``, ``tests.hunt.effects``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from attrs import frozen

from cluster.errors import ErrorCode
from sim.checks.licences import LEGAL
from sim.scenario.fault_kinds import FAULT_KINDS

__all__ = ["BY_NAME", "GROUPS", "SIGHTS", "Sight", "mask_of", "sights_of", "unseen"]


@frozen
class Sight:
    """One entry.

    Attributes:
        group: of ``GROUPS``.
        name: unique in its group.
        never: why no world of the generator can show it; empty where one can.
        rare: why it is not asked for, though a world may show it; empty where it is.
    """

    group: str
    name: str
    never: str = ""
    rare: str = ""

    @property
    def is_wanted(self) -> bool:
        """Whether a hunt must have seen it."""
        return not (self.never or self.rare)

    @property
    def key(self) -> tuple[str, str]:
        return self.group, self.name


_OLD_MODE: Final = "only where truncation is of an older mode, which loses records by design"
_FLIPPED: Final = (
    "our clients and our operator ask for no such thing; it takes bits flipped just there"
)
_NOT_FORGETFUL: Final = (
    "the controller tells of nothing before it is synced (cluster.controller, commit_after_fsync), "
    "and no fault that is drawn takes from its disk what was"
)
_RAW_CLIENT: Final = "our clients and our operator ask for no such thing; it takes a foreign client"

_ELECTIONS: Final[dict[str, str]] = {
    "of the ISR": "",
    "the same leader again": "",
    "of the ELR": "",
    "nobody": "",
    "unclean, as configured": "",
    "unclean, asked for": "",
    "unclean, forced": "",
    "last known leader": "",
    "preferred, by itself": "",
    "preferred, asked for": "",
    "named by an operator, of the ISR": "",
}
_TRUNCATIONS: Final[dict[str, str]] = {
    "diverging epoch, to the leader's end of it": "",
    "diverging epoch, to the own end of it": "",
    "epoch unknown to the leader": _OLD_MODE,
    "log ends behind the leader's": "",
    "log ends before the leader's start": "",
    "log cannot begin inside a batch": "",
    "to the high watermark": _OLD_MODE,
    "by an epoch that was asked for": "",
    "cut of a damaged log to its good prefix": "",
}
_RECOVERIES: Final[dict[str, str]] = {
    "clean": "",
    "not clean, nothing to do": "",
    "tail cut": "",
    "tail cut, whole batches behind it": "",
    "later segments dropped": "",
    "derived files rebuilt": "",
    "left-over files removed": "",
    "compaction finished": "",
    "unreadable file passed over": "",
    "refused: damaged frame": "",
    "refused: ends below the durable boundary": "",
    "refused: a segment is missing or misnamed": "",
    "refused: ends below its start": (
        "no log start is stored behind the durable boundary (LogDurability._save_state), below "
        "which a log is refused for that"
    ),
    "refused: foreign file": "no fault puts a foreign file into a log's directory",
    "refused: the disk fails": (
        "a broker whose disk fails while it opens a log halts (BrokerCore.open_replica)"
    ),
    "metadata log": "",
}
_CODES_NEVER: Final[dict[str, str]] = {
    "UNKNOWN_SERVER_ERROR": "stands for an answer that leaves out what was asked",
    "INVALID_TOPIC_EXCEPTION": _RAW_CLIENT,
    "INVALID_PARTITIONS": _RAW_CLIENT,
    "OPERATION_NOT_ATTEMPTED": "a proposal is given up with it, which no controller of ours says",
    "INCONSISTENT_TOPIC_ID": "nobody answers with it",
    "INVALID_REPLICATION_FACTOR": (
        "a scenario's topics have their replicas named (sim.scenario.build)"
    ),
    "INVALID_CONFIG": "the operator checks what it asks for (sim.verbs, Verbs.configure)",
    "INVALID_REQUEST": _RAW_CLIENT,
    "NOT_CONTROLLER": _NOT_FORGETFUL,
    "BROKER_ID_NOT_REGISTERED": _NOT_FORGETFUL,
    "STALE_BROKER_EPOCH": (
        "what a broker said in an earlier life comes on a connection that is closed by then"
    ),
}
_CODES_RARE: Final[dict[str, str]] = {
    "INVALID_REQUIRED_ACKS": _FLIPPED,
    "INVALID_RECORD": _FLIPPED,
}


def _sights() -> Iterable[Sight]:
    for kind in FAULT_KINDS:
        yield Sight("fault", kind)
    for group, names in (
        ("election", _ELECTIONS),
        ("truncation", _TRUNCATIONS),
        ("recovery", _RECOVERIES),
    ):
        for name, never in names.items():
            yield Sight(group, name, never)
    for licence in LEGAL:
        yield Sight("licence", licence)
    for code in ErrorCode:
        if code is not ErrorCode.NONE:
            never, rare = _CODES_NEVER.get(code.name, ""), _CODES_RARE.get(code.name, "")
            yield Sight("code", code.name, never, rare)


SIGHTS: Final[tuple[Sight, ...]] = tuple(_sights())
GROUPS: Final[dict[str, str]] = {
    "fault": "faults that had an effect",
    "election": "elections",
    "truncation": "truncations",
    "recovery": "verdicts of recovery",
    "licence": "licences of losses",
    "code": "error codes of the protocol",
}
"""Group, and what its entries are."""
BY_NAME: Final[dict[tuple[str, str], int]] = {each.key: n for n, each in enumerate(SIGHTS)}
"""The number of a sight, by group and name."""


def mask_of(keys: Iterable[tuple[str, str]]) -> int:
    """What was seen, as one number.

    Raises:
        KeyError: there is no such sight.
    """
    mask = 0
    for key in keys:
        mask |= 1 << BY_NAME[key]
    return mask


def sights_of(mask: int) -> list[Sight]:
    """What a mask says was seen, in the order of the list."""
    return [each for n, each in enumerate(SIGHTS) if mask >> n & 1]


def unseen(mask: int) -> list[Sight]:
    """What was not seen and can be."""
    return [each for n, each in enumerate(SIGHTS) if not mask >> n & 1 and each.is_wanted]
