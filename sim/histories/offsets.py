"""inconsistent-offsets, fractured-read, duplicate: one offset, one record, and the other way round.

Sightings are compared with the one before them at the same offset, or of the same value: where any
two differ, two neighbours do. The loss that excuses a pair must have happened by the later one. It
need not lie behind the earlier one: a consumer hands over what it fetched before the loss, and a
producer hears late.

Left out: values that several operations sent, for duplicates.
"""

from __future__ import annotations

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Found, Reason
from sim.histories.evidence import Content, Evidence, Sighting, shown

__all__ = ["duplicate", "fractured_read", "inconsistent_offsets"]


def inconsistent_offsets(evidence: Evidence, found: Found) -> None:
    """One offset is seen with two values, or two operations are told that it is theirs."""
    for place, at_place in evidence.sightings.items():
        for offset, sightings in at_place.items():
            before: Sighting | None = None
            acked: Sighting | None = None
            for each in sightings:
                other = before if before is not None and before.content != each.content else None
                if other is None and each.operation and acked and acked.operation:
                    if acked.operation.id != each.operation.id:
                        other = acked
                if other is not None:
                    detail = f"offset {offset} is {_said(other)} and {_said(each)}"
                    _report(evidence, found, "inconsistent-offsets", place, other, each, detail)
                before = each
                acked = each if each.operation else acked


def fractured_read(evidence: Evidence, found: Found) -> None:
    """Two reads at one offset differ in value or epoch."""
    for place, at_place in evidence.sightings.items():
        for offset, sightings in at_place.items():
            before = None
            for each in sightings:
                if each.operation:
                    continue
                if before and (before.epoch, before.content) != (each.epoch, each.content):
                    detail = (
                        f"offset {offset} reads {shown(before.content[2])} of epoch "
                        f"{before.epoch} for {before.who}, and later "
                        f"{shown(each.content[2])} of epoch {each.epoch} for {each.who}"
                    )
                    _report(evidence, found, "fractured-read", place, before, each, detail)
                before = each


def duplicate(evidence: Evidence, found: Found) -> None:
    """A value that was sent once is seen at two offsets of one topic."""
    last: dict[tuple[str, Content], Sighting] = {}
    for each in evidence.in_order:
        operation = evidence.only_sender(each.content)
        if operation is None:
            continue
        key = each.place.topic_id, each.content
        before = last.get(key)
        last[key] = each
        if before is None or (before.place, before.offset) == (each.place, each.offset):
            continue
        where = "" if before.place == each.place else f" of {before.place}"
        detail = (
            f"{shown(each.content[2])} was sent once, and is at offset {before.offset}{where} "
            f"and at offset {each.offset}"
        )
        holds = [] if operation.is_idempotent else [Reason.NOT_IDEMPOTENT]
        if Reason.DELETED in evidence.reasons(before.place, min(before.offset, each.offset)):
            holds.append(Reason.DELETED)
        if any(Reason.FORGOTTEN in evidence.reasons(*at[:2]) for at in (before, each)):
            holds.append(Reason.FORGOTTEN)
        _report(evidence, found, "duplicate", each.place, before, each, detail, *holds)


def _said(sighting: Sighting) -> str:
    value = shown(sighting.content[2])
    if sighting.operation is not None:
        return f"{value} by its acknowledgement to {sighting.who}"
    return f"{value} of epoch {sighting.epoch} as {sighting.who} read it"


def _report(
    evidence: Evidence,
    found: Found,
    name: str,
    place: TopicIdPartition,
    one: Sighting,
    other: Sighting,
    detail: str,
    *holds: Reason,
) -> None:
    event = max(one.event, other.event)
    is_lost = any(evidence.lost_by(each, event) for each in (one, other))
    known = (*holds, Reason.LOSS) if is_lost else holds
    found.report(name, str(place), (one.witness, other.witness), detail, known)
