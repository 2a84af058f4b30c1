"""The licence table: under which rule of FAULTS D.4 records were lost, if it was legal at all.

A pure decision. ``Case`` is what the ledger knows of some records that share one fate, ``judge``
reads the table from the top, and the first row that matches decides:

====== =====================================================================================
L0     acknowledged under acks=1 and never committed: the next leader did not have them
L3     an operator took every copy; or retention did, by a clock that a fault had put ahead;
       or they were deleted rightly, and a leader whose log begins anew no longer knows that
L1     the leader was elected from outside ISR and ELR, which the topic or the operator allowed
L2     power or a lost disk took the copies of all who could know: the last member of the ISR,
       or with ELR as many unclean shutdowns as ``min.insync.replicas``
L4     copies that a disk had called durable, or that were damaged, and nobody else had them
====== =====================================================================================

``ILLEGAL`` is a loss that a correct cluster does not have, ``UNEXPLAINED`` one of which the ledger
does not know how it came about: a fault of the ledger, as likely as of the cluster. No election
excuses the loss of what was on the leader's platter: that comes before L1.

Left out: how the facts come about (``sim.checks.losses``, ``sim.checks.standing``), and whether the
run without the culprit would have kept the records (``sim.blame``).
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

__all__ = ["DISK_TAKES", "ILLEGAL", "LEGAL", "MEDIA", "UNEXPLAINED", "Case", "Ruling", "judge"]

LEGAL: Final = ("L0", "L1", "L2", "L3", "L4")
ILLEGAL: Final = "ILLEGAL"
UNEXPLAINED: Final = "UNEXPLAINED"

DISK_TAKES: Final = frozenset({"power", "recovery-cut", "replaced"})
"""Fates of copies that power, recovery or another disk took, as such things do."""
MEDIA: Final = frozenset({"lied", "damaged", "salvaged"})
"""Fates of copies that a disk spoilt against its word."""
_CUTS: Final = frozenset({"truncated", "restarted"})


@frozen
class Case:
    """What is known of records that a leader does not have.

    Attributes:
        is_committed: committed, acknowledged under acks=all, or shown to anybody.
        how: by which fate the leader's copies went (``Fate.how``), or ``never-held``. Where nobody
            leads and no log has the records, the fate that explains most of the copies.
        is_nowhere: no log has the records any more.
        was_durable: the bytes were synced, and no disk had lied about that.
        election: ``clean``, ``preferred``, ``unclean``, ``unpermitted`` or ``last-known``.
        has_elr: with eligible leader replicas, as things stood when the records were promised.
        was_last: nobody else was in ISR or ELR when the controller last judged this leader.
        members_lost: so has every member of the ISR of that time: lost the records to power or a
            replaced disk.
        unclean_shutdowns: of members of ISR and ELR, since ``min_isr`` of them were last clean; a
            log in quarantine counts as one.
        min_isr: the effective one, from 1.
        has_other: another member of ISR or ELR has the records.
        all_replaced: every copy went with a disk that the operator took away.
    """

    is_committed: bool
    how: str
    is_nowhere: bool = False
    was_durable: bool = False
    election: str = "clean"
    has_elr: bool = False
    was_last: bool = False
    members_lost: bool = False
    unclean_shutdowns: int = 0
    min_isr: int = 1
    has_other: bool = False
    all_replaced: bool = False


@frozen
class Ruling:
    """What the table says.

    Attributes:
        licence: ``L0`` to ``L4``, ``ILLEGAL`` or ``UNEXPLAINED``.
        rule: the row, in words that follow "because".
        cites: what is behind it: ``election``, ``fate``, ``shutdowns``, ``disk``.
    """

    licence: str
    rule: str
    cites: tuple[str, ...] = ("election",)


def judge(case: Case) -> Ruling:
    """The first row of the table that matches."""
    if case.how == "deleted":
        text = "retention, compaction or a request had deleted them before"
        return Ruling("L3", text, ("fate",))
    if not case.is_committed:
        text = "acks=1 acknowledges what only the leader has, and it was never committed"
        return Ruling("L0", text, ("election", "fate"))
    if case.all_replaced:
        return Ruling("L3", "the operator took away every disk that had them", ("fate",))
    if case.was_durable and case.how in DISK_TAKES and case.how != "replaced":
        return Ruling(ILLEGAL, "the lost bytes were durable", ("fate",))
    if not case.is_nowhere and case.election == "unpermitted":
        return Ruling(ILLEGAL, "a replica out of sync was elected, and nothing allowed that")
    if not case.is_nowhere and case.election == "unclean":
        text = "the leader was elected from outside ISR and ELR, as the configuration or the "
        return Ruling("L1", f"{text}operator allowed", ("election",))
    if case.how in DISK_TAKES:
        return _by_disk(case)
    if case.how in MEDIA:
        return _by_media(case)
    if case.how == "removed":
        text = "its replica was deleted, and the leader has not fetched them anew since"
        return Ruling(ILLEGAL, text, ("election", "fate"))
    if case.how == "hidden":
        text = "the leader's log start hides them, and nothing has deleted them"
        return Ruling(ILLEGAL, text, ("fate", "election"))
    if case.how in _CUTS:
        return Ruling(ILLEGAL, "the leader once had them, and cut them off", ("fate", "election"))
    if case.how == "never-held":
        text = "the leader was in sync by the controller's word, and never had them"
        return Ruling(ILLEGAL, text, ("election",))
    text = f"nothing in the ledger explains a copy that is {case.how}: the oracle is incomplete"
    return Ruling(UNEXPLAINED, text, ("fate",))


def _by_disk(case: Case) -> Ruling:
    cites = ("shutdowns", "fate")
    if case.is_nowhere:
        return Ruling("L2", "every replica lost them with its power or its disk", cites)
    if case.has_elr:
        text = f"members of ISR and ELR shut down uncleanly {case.unclean_shutdowns} times, "
        limit = f"than min.insync.replicas, {case.min_isr}"
        if case.unclean_shutdowns >= case.min_isr:
            return Ruling("L2", f"{text}and ELR protects against fewer {limit}", cites)
        return Ruling(ILLEGAL, f"{text}fewer {limit}", ("fate", "election"))
    if case.was_last:
        text = "the last member of the ISR lost them with its power or its disk"
        return Ruling("L2", f"{text}, and none may lead in its place", cites)
    if case.members_lost:
        return Ruling("L2", "every member of the ISR lost them with its power or its disk", cites)
    text = "the leader lost them with its power or its disk, and was not the last that had them"
    return Ruling(ILLEGAL, text, ("fate", "election"))


def _by_media(case: Case) -> Ruling:
    if case.is_nowhere or not case.has_other:
        text = "the only copies that could count were on disks that lied about them or spoilt them"
        return Ruling("L4", text, ("fate", "disk"))
    text = "one disk spoilt its copy, and another member of ISR or ELR still has them"
    return Ruling(ILLEGAL, text, ("fate", "election"))
