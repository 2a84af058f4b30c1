"""Elections, roles, ISR changes and cuts in words.

Left out: everything else that is told one by one (``sim.present.tellings``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from sim.present.facts import acked_among, acked_of, only_holders
from sim.present.history import Cut, Elected, Election, How, Role
from sim.present.story import Happening, Story
from sim.present.words import at, listed, name, these

__all__ = ["Said", "cut", "elect", "isr_change", "role"]

Said = tuple[str, str, int, str] | None
"""Text, tone, weight, and what it counts as."""


def elect(story: Story, group: list[Happening]) -> Said:
    if len(group) > 3:
        counts: dict[str, int] = {}
        for each in group:
            leader = each.data.leader
            counts["nobody" if leader is None else name(leader)] = (
                counts.get("nobody" if leader is None else name(leader), 0) + 1
            )
        chosen = listed(f"{leader} {count}" for leader, count in counts.items())
        by = name(group[0].data.by)
        return f"{by} gives {len(group)} partitions leaders: {chosen}", "plain", 2, "election"
    texts = [_one_election(story, each.data) for each in group]
    is_bad = any(each.data.is_unclean or each.data.leader is None for each in group)
    return "; ".join(texts), "bad" if is_bad else "plain", 2, "election"


_HOW_ELECTED: Final = {
    Elected.ISR: "from the ISR",
    Elected.ELR: "from the eligible replicas (ELR), since the ISR is empty",
    Elected.LAST_KNOWN: "as the last leader known, since ISR and ELR are empty",
    Elected.UNCLEAN: "although it is not in the ISR (unclean)",
}
_REASONS: Final = {
    "preferred": " (the preferred leader again)",
    "ElectLeadersRequest": ", as the operator asked",
    "AlterPartitionReassignmentsRequest": ", since its replicas are reassigned",
}
"""What elections may come from, by timer or message."""


def _one_election(story: Story, election: Election) -> str:
    by, partition = name(election.by), name(election.partition)
    if election.leader is None:
        return f"{partition} has no leader{_nobody(election)}"
    how = _HOW_ELECTED[election.kind]
    if election.kind is Elected.UNCLEAN and election.old_isr == ():
        how = "although the ISR is empty, and it is not in the ELR (unclean)"
    cause = story.brief(election.causes[0]) if election.causes else None
    how += "" if cause is None else _REASONS.get(cause.what or "", "")
    isr = "" if election.isr is None else f", ISR now {_isr(election.isr)}"
    found = (
        f"{by} makes {name(election.leader)} leader of {partition}, epoch "
        f"{election.leader_epoch}, {how}{isr}"
    )
    without = _without(story, election)
    return found + (f"; {without}" if without else "")


def _nobody(election: Election) -> str:
    if election.isr:
        return f": nobody of its ISR ({_isr(election.isr)}) may lead now"
    if election.elr:
        return f": its ISR is empty, and nobody of its ELR ({_isr(election.elr)}) may lead now"
    return ": its ISR is empty" if election.isr == () else ""


def _without(story: Story, election: Election) -> str:
    """What the new leader does not have, and others do."""
    assert election.leader is not None
    parts = []
    for spans, holders in only_holders(story, election.partition, election.leader, election.n):
        acked = acked_among(story, election.partition, spans, election.n)
        base, end = spans[0].base, spans[-1].end
        known = f" ({acked} acked)" if acked else ""
        has = "have" if len(holders) > 1 else "has"
        parts.append(f"{these(base, end)}{known}, which only {listed(map(name, holders))} {has}")
    if not parts:
        return ""
    return f"{name(election.leader)} lacks " + ", and ".join(parts)


def _isr(isr: Sequence[str]) -> str:
    return ", ".join(name(each) for each in isr)


def role(story: Story, group: list[Happening]) -> Said:
    leading = [each for each in group if each.data.name == "leader"]
    if not leading:
        return None
    node = name(leading[0].node)
    if len(leading) > 3:
        return f"{node} leads {len(leading)} partitions", "plain", 1, "new leader"
    parts = []
    for each in leading:
        role = each.data
        assert isinstance(role, Role)
        end = "" if role.log_end is None else f" from offset {role.log_end}"
        parts.append(f"{name(each.partition)}, epoch {role.leader_epoch}{end}")
    return f"{node} leads {listed(parts)}", "plain", 1, "new leader"


def isr_change(story: Story, group: list[Happening]) -> Said:
    texts = []
    is_bad = False
    for each in group:
        before, after, why_left = each.data
        joined = [node for node in after if before is not None and node not in before]
        left = [node for node in before or () if node not in after]
        is_bad = is_bad or bool(left)
        change = []
        if joined:
            change.append(f"{listed(map(name, joined))} {'join' if len(joined) > 1 else 'joins'}")
        if left:
            change.append(
                f"{listed(map(name, left))} {'leave' if len(left) > 1 else 'leaves'}{why_left}"
            )
        if before is None or change:
            why = f": {', '.join(change)}" if change else ""
            texts.append(f"ISR of {name(each.partition)} is {_isr(after)}{why}")
    if not texts:
        return None
    return "; ".join(texts), "bad" if is_bad else "good", 2, "ISR change"


_HOWS: Final = {
    How.TRUNCATED: "truncates",
    How.RESTARTED: "begins its log anew without",
    How.POWER: "loses",
    How.TORN: "cuts at recovery",
    How.WIPED: "loses with its disk",
    How.OLDER: "lacks, on an older disk,",
    How.DAMAGED: "cuts as damaged",
    How.EXPIRED: "deletes",
    How.DELETED: "deletes its replica with",
}


def cut(story: Story, group: list[Happening]) -> Said:
    texts = []
    weight = 1
    for each in group:
        cut = each.data
        assert isinstance(cut, Cut)
        acked = acked_of(story, story.replica(each.node, each.partition or "?"), cut)
        what = f"{these(cut.base, cut.end)} of {name(each.partition)}"
        known = f" ({acked} acked)" if acked and cut.how not in (How.EXPIRED, How.DELETED) else ""
        found = f"{name(each.node)} {_HOWS[cut.how]} {what}{known}"
        if cut.how is How.OLDER:
            found = f"that disk of {name(each.node)} is older, and lacks {what}{known}"
        if cut.epoch_ended is not None and cut.epoch_ended[0] >= 0:
            leader = story.brief(cut.by)
            if leader is not None and leader.peer is not None:
                epoch, end = cut.epoch_ended
                found += f": at {name(leader.peer)} epoch {epoch} ends at offset {end}"
        if cut.how is How.POWER and 0 < cut.by < cut.n:
            found += f", since the power loss at {at(cut.by)}"
        elif cut.how is How.POWER:
            found += ", not synced"
        texts.append(found)
        if cut.how not in (How.EXPIRED, How.DELETED):
            weight = 3
    return "; ".join(texts), "bad" if weight == 3 else "plain", weight, "cut of a log/cuts of logs"
