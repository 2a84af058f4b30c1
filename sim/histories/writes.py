"""lost-write, lost-tail, unseen, aborted-read, phantom: what was written is what is read.

An acknowledged record was *read* if anybody read its value at its offset. It was *passed* if a
reader went from below its offset to behind it, or read another value there. Gaps are normal: only
offsets that were acknowledged count.

lost-tail and unseen are judged where the final readers have reached the ends of all logs.

Left out: what was only sent.
"""

from __future__ import annotations

from collections.abc import Iterator

from cluster.names import TopicIdPartition
from sim.histories.anomalies import Found, Reason, Witness
from sim.histories.evidence import Evidence, Sighting, shown
from sim.histories.passing import Passes

__all__ = ["aborted_read", "lost_writes", "phantom"]


def lost_writes(evidence: Evidence, passes: Passes, found: Found, *, is_drained: bool) -> None:
    """lost-write, lost-tail and unseen."""
    for place, at_place in evidence.sightings.items():
        read_end = max((offset for offset, each in at_place.items() if _reads(each)), default=-1)
        for offset, sightings in at_place.items():
            for acked in _unread(sightings):
                holds = evidence.reasons(place, offset)
                passed = passes.over(place, offset) or _other_read(sightings, acked)
                if passed is not None:
                    said = f"{passed.who} passed offset {offset}"
                    _report(found, "lost-write", place, acked, (passed,), said, holds)
                elif not is_drained:
                    continue
                elif offset > read_end and Reason.UNAVAILABLE not in holds:
                    said = f"the last offset read is {read_end}" if read_end >= 0 else "none is"
                    _report(found, "lost-tail", place, acked, (), said, holds)
                else:
                    said = "no reader came by"
                    _report(found, "unseen", place, acked, (), said, holds)


def _report(
    found: Found,
    name: str,
    place: TopicIdPartition,
    acked: Sighting,
    others: tuple[Witness, ...],
    said: str,
    holds: list[Reason],
) -> None:
    detail = (
        f"{shown(acked.content[2])} was acknowledged to {acked.who} at offset {acked.offset} and "
        f"never read: {said}"
    )
    found.report(name, str(place), (acked.witness, *others), detail, holds)


def _reads(sightings: list[Sighting]) -> bool:
    return any(each.operation is None for each in sightings)


def _unread(sightings: list[Sighting]) -> Iterator[Sighting]:
    """Acknowledgements of one offset whose value nobody read there."""
    read = {each.content for each in sightings if each.operation is None}
    for each in sightings:
        if each.operation is not None and each.content not in read:
            yield each


def _other_read(sightings: list[Sighting], acked: Sighting) -> Witness | None:
    """A read of another value there."""
    for each in sightings:
        if each.operation is None and each.content != acked.content:
            return each.witness
    return None


def aborted_read(evidence: Evidence, found: Found) -> None:
    """A value is read of which every operation has failed for good (G1a)."""
    for place, each in _read_contents(evidence):
        senders = evidence.senders.get(each.content, [])
        ends = [evidence.end(operation) for operation in senders]
        failed = [end for end in ends if end is not None and end.kind == "fail"]
        if not senders or len(failed) < len(senders):
            continue
        value, client = shown(each.content[2]), senders[0].client
        witness = Witness(client, "failed", -1, value, failed[0].event, failed[0].t_us)
        detail = (
            f"{value} was refused to {client} with {failed[0].error}, and {each.who} read it at "
            f"offset {each.offset}"
        )
        found.report("aborted-read", str(place), (witness, each.witness), detail)


def phantom(evidence: Evidence, found: Found) -> None:
    """A value is read that nobody has sent."""
    for place, each in _read_contents(evidence):
        if each.content not in evidence.senders:
            detail = (
                f"{each.who} read {shown(each.content[2])} at offset {each.offset}, which nobody "
                "has sent"
            )
            found.report("phantom", str(place), (each.witness,), detail)


def _read_contents(evidence: Evidence) -> Iterator[tuple[TopicIdPartition, Sighting]]:
    for place, at_place in evidence.sightings.items():
        for sightings in at_place.values():
            for each in sightings:
                if each.operation is None:
                    yield place, each
