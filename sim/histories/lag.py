"""How long acknowledged records were hidden from readers: measured, and never judged.

A record is hidden from a reader from its acknowledgement, or from when the reader was assigned the
partition, if that is later, until it is handed over for the first time.

Left out: records that a reader never gets (``sim.histories.writes``).
"""

from __future__ import annotations

from typing import NamedTuple

from cluster.names import TopicIdPartition
from sim.histories.evidence import Evidence, Reader
from sim.histories.values import Poll

__all__ = ["Lag", "lags"]


class Lag(NamedTuple):
    """The longest time for which a record was hidden from one reader.

    Attributes:
        partition: as ``orders-0``.
        offset: of the record.
        lag_us: virtual microseconds.
        event: in which it was handed over.
    """

    client: str
    session: int
    partition: str
    offset: int
    lag_us: int
    event: int


def lags(evidence: Evidence) -> list[Lag]:
    """Of every reader that was handed an acknowledged record, by client, session and partition."""
    acked = _acked(evidence)
    found: dict[Reader, Lag] = {}
    for reader in sorted(evidence.streams):
        client, session, topic, number = reader
        stream = evidence.streams[reader]
        begin_us = stream[0].t_us
        seen: set[tuple[TopicIdPartition, int]] = set()
        for each in stream:
            if not isinstance(each, Poll) or (each.place, each.offset) in seen:
                continue
            seen.add((each.place, each.offset))
            told_us = acked.get((each.place, each.offset))
            if told_us is None or told_us > each.t_us:
                continue
            lag_us = each.t_us - max(told_us, begin_us)
            known = found.get(reader)
            if known is None or lag_us > known.lag_us:
                where = f"{topic}-{number}"
                found[reader] = Lag(client, session, where, each.offset, lag_us, each.event)
    return list(found.values())


def _acked(evidence: Evidence) -> dict[tuple[TopicIdPartition, int], int]:
    """When each offset was acknowledged first."""
    return {
        (place, offset): min(told)
        for place, at_place in evidence.sightings.items()
        for offset, sightings in at_place.items()
        if (told := [each.t_us for each in sightings if each.operation is not None])
    }
