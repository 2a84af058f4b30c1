"""Record batches for tests: short makers, and Hypothesis strategies for every legal kind."""

from __future__ import annotations

from hypothesis import strategies as st

from storage.batch import ControlType, Header, Record, RecordBatch

INT32_MAX = 2**31 - 1


def one(
    value: bytes | None = b"v", timestamp_ms: int = 0, *, key: bytes | None = None
) -> RecordBatch:
    """A batch of one record, unassigned."""
    return RecordBatch.unassigned((Record(key, value, timestamp_ms),))


def many(count: int, value: bytes = b"v", timestamp_ms: int = 0) -> RecordBatch:
    """A batch of ``count`` equal records, unassigned."""
    return RecordBatch.unassigned([Record(None, value, timestamp_ms)] * count)


def commit(transactional_id: str = "tx-1", timestamp_ms: int = -1) -> RecordBatch:
    """A commit marker, unassigned."""
    return RecordBatch.control_marker(
        ControlType.COMMIT,
        transactional_id=transactional_id,
        producer_id=42,
        producer_epoch=0,
        timestamp_ms=timestamp_ms,
    )


def emptied(base_offset: int, count: int, leader_epoch: int = 0) -> RecordBatch:
    """What compaction leaves of a batch whose records all went."""
    return RecordBatch((), (), count - 1, base_offset, leader_epoch)


def integers_of(bits: int) -> st.SearchStrategy[int]:
    """Signed integers of a width, small ones often."""
    edge = 1 << (bits - 1)
    return st.integers(-1, 3) | st.integers(-edge, edge - 1)


def texts(min_size: int = 0) -> st.SearchStrategy[str]:
    """Text that UTF-8 can hold."""
    return st.text(st.characters(exclude_categories=["Cs"]), min_size=min_size, max_size=6)


HEADERS = st.lists(st.builds(Header, texts(), st.none() | st.binary(max_size=4)), max_size=3).map(
    tuple
)
RECORDS = st.builds(
    Record,
    key=st.none() | st.binary(max_size=6),
    value=st.none() | st.binary(max_size=12),
    timestamp_ms=integers_of(64),
    headers=st.just(()) | HEADERS,
)
EPOCHS = st.integers(0, 3) | st.integers(0, INT32_MAX)


@st.composite
def batches(draw: st.DrawFn, versions: tuple[int, ...] = (1, 2)) -> RecordBatch:
    """Assigned batches: dense, with holes, emptied, transactional, markers; both versions."""
    version = draw(st.sampled_from(versions))
    kind = draw(st.sampled_from(["dense", "holes", "marker", "emptied"]))
    producer = {
        "producer_id": draw(integers_of(64)),
        "producer_epoch": draw(integers_of(32)),
        "leader_epoch": draw(EPOCHS),
        "format_version": version,
    }
    if kind == "marker":
        return RecordBatch(
            (),
            (),
            0,
            base_offset=draw(base_offsets(0)),
            base_sequence=draw(integers_of(32)),
            transactional_id=draw(texts(1)),
            control=draw(st.sampled_from(ControlType)),
            marker_timestamp_ms=draw(integers_of(64)) if version == 2 else -1,
            **producer,
        )
    records: list[Record] = []
    if kind != "emptied" or version == 1:
        records = draw(st.lists(RECORDS, min_size=1, max_size=4))
    deltas = list(range(len(records)))
    last = len(records) - 1
    if kind == "holes" or not records:
        step = st.integers(1, 3) | st.integers(1, 2**28)
        steps = [draw(step) for _ in records]
        deltas = [sum(steps[: number + 1]) - 1 for number in range(len(steps))]
        last = (deltas[-1] if deltas else 0) + draw(st.integers(0, 2) | st.integers(0, 2**29))
    return RecordBatch(
        tuple(records),
        tuple(deltas),
        last,
        base_offset=draw(base_offsets(last)),
        base_sequence=draw(integers_of(32)),
        transactional_id=draw(st.none() | texts(1)),
        **producer,
    )


def base_offsets(last_delta: int) -> st.SearchStrategy[int]:
    """Offsets at which a batch still ends at or below 2^63-1."""
    return st.integers(0, 3) | st.integers(0, 2**63 - 2 - last_delta)
