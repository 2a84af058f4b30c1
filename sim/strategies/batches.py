"""Record batches of every legal kind, for tests of storage.

Left out: batches that are not legal; these are bytes (``tests/storage`` has such).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from hypothesis import strategies as st

from storage.batch import ControlType, Header, Record, RecordBatch

__all__ = ["batches"]

_EPOCH_MAX: Final = 2**31 - 1
_OFFSET_MAX: Final = 2**63 - 2
_KINDS: Final = ("dense", "holes", "marker", "emptied")


def batches(
    *, kinds: Sequence[str] = _KINDS, records_max: int = 4, versions: Sequence[int] = (2, 1)
) -> st.SearchStrategy[RecordBatch]:
    """Batches as a log has them: with offsets and an epoch.

    Args:
        kinds: ``dense`` (as a producer sent it), ``holes`` (compaction took some records),
            ``marker`` (the end of a transaction), ``emptied`` (compaction took all records). The
            first is the simplest.
        records_max: records in one batch, at most; 1 or more.
        versions: of the frame, 1 and 2.

    Raises:
        ValueError: an argument is none of these.
    """
    for what, values, allowed in (("kind", kinds, _KINDS), ("version", versions, (1, 2))):
        for value in values:
            if value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise ValueError(f"{what} is {value!r}, allowed are {listed}")
        if not values:
            raise ValueError(f"there is no {what}, at least one is needed")
    if records_max.__class__ is not int or records_max < 1:
        raise ValueError(f"records_max is {records_max!r}, allowed is 1 or more")
    return _batches(tuple(kinds), records_max, tuple(versions))


@st.composite
def _batches(
    draw: st.DrawFn, kinds: tuple[str, ...], records_max: int, versions: tuple[int, ...]
) -> RecordBatch:
    kind, version = draw(st.sampled_from(kinds)), draw(st.sampled_from(versions))
    if version == 1 and kind == "emptied":
        # A frame of version 1 has at least one record.
        kind = "holes"
    producer: dict[str, Any] = {
        "producer_id": draw(_integers(64)),
        "producer_epoch": draw(_integers(32)),
        "base_sequence": draw(_integers(32)),
        "leader_epoch": draw(st.integers(0, 3) | st.integers(0, _EPOCH_MAX)),
        "format_version": version,
    }
    if kind == "marker":
        return RecordBatch(
            (),
            (),
            0,
            base_offset=draw(_offsets(0)),
            transactional_id=draw(_texts(1)),
            control=draw(st.sampled_from(ControlType)),
            marker_timestamp_ms=draw(_integers(64)) if version == 2 else -1,
            **producer,
        )
    count = 0 if kind == "emptied" else draw(st.integers(1, records_max))
    records = [draw(_records()) for _ in range(count)]
    deltas, last = list(range(count)), count - 1
    if kind != "dense":
        steps = [draw(st.integers(1, 3) | st.integers(1, 2**28 // records_max)) for _ in records]
        deltas = [sum(steps[: number + 1]) - 1 for number in range(count)]
        last = (deltas[-1] if deltas else 0) + draw(st.integers(0, 2) | st.integers(0, 2**29))
    return RecordBatch(
        tuple(records),
        tuple(deltas),
        last,
        base_offset=draw(_offsets(last)),
        transactional_id=draw(st.none() | _texts(1)),
        **producer,
    )


def _records() -> st.SearchStrategy[Record]:
    headers = st.lists(st.builds(Header, _texts(), st.none() | st.binary(max_size=4)), max_size=3)
    return st.builds(
        Record,
        key=st.none() | st.binary(max_size=6),
        value=st.none() | st.binary(max_size=12),
        timestamp_ms=_integers(64),
        headers=st.just(()) | headers.map(tuple),
    )


def _integers(bits: int) -> st.SearchStrategy[int]:
    """Signed integers of a width, small ones often."""
    edge = 1 << (bits - 1)
    return st.integers(-1, 3) | st.integers(-edge, edge - 1)


def _texts(min_size: int = 0) -> st.SearchStrategy[str]:
    """Text that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=6)


def _offsets(last_delta: int) -> st.SearchStrategy[int]:
    """Base offsets at which a batch still ends at or below 2^63-1."""
    return st.integers(0, 3) | st.integers(0, _OFFSET_MAX - last_delta)
