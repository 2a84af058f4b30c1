"""Encode, decode and check a batch, against the codecs of aiokafka and kafka-python."""

from __future__ import annotations

from itertools import cycle, islice

from storage.batch import RecordBatch
from storage.mkb1 import MKB1, decode_batch
from tests.bench.measure import Scale, Subject, race
from tests.bench.peers import AIOKAFKA, KAFKA_PYTHON, PEER_NAMES, Peer
from tests.bench.report import Report, at_least, rated
from tests.bench.storage_data import BATCH_BYTES_MAX, Batches, Shape, encode

__all__ = ["SHAPES", "peer_batch_bytes", "run_codec"]

SHAPES = tuple(Shape(size, records) for size in (100, 1024) for records in (1, 10, 100))
BUDGET_SHAPE = Shape(100, 100)


ENCODE = "encode from plain tuples"
DECODE = "decode with crc"
UNIT = "rec"


def peer_batch_bytes(shape: Shape) -> int:
    """The room that a peer's builder gets: more than the batch needs."""
    return 1_024 + shape.records * (shape.record_bytes + 64)


def run_codec(scale: Scale, report: Report, peers: dict[str, Peer]) -> None:
    """Races of encoders and of decoders, one for each shape."""
    for shape in SHAPES:
        _run_encode(scale, report, peers, shape)
    for shape in SHAPES:
        _run_decode(scale, report, peers, shape)


def _run_encode(scale: Scale, report: Report, peers: dict[str, Peer], shape: Shape) -> None:
    source = Batches(shape)
    batches = [source.batch() for _ in range(shape.ring)]
    records = [batch.records for batch in batches]

    def ours(count: int) -> None:
        encode_frame = MKB1.encode
        for batch in islice(cycle(batches), count):
            encode_frame(batch, 7, 3, BATCH_BYTES_MAX)

    def ours_with_batch(count: int) -> None:
        encode_frame, make = MKB1.encode, RecordBatch.unassigned
        for plain in islice(cycle(records), count):
            encode_frame(make(plain), 7, 3, BATCH_BYTES_MAX)

    size = peer_batch_bytes(shape)
    names = [name for name in PEER_NAMES if name in peers]
    for name in names:
        peers[name].encode(records[0], size)
    encoders = [Subject(peers[name].encoding(records, size)) for name in names]
    took, with_batch, *others = race(scale, Subject(ours), Subject(ours_with_batch), *encoders)
    by_name = dict(zip(names, others, strict=True))

    def add(what: str, seconds: float, name: str, *, is_budget: bool = False) -> None:
        report.add(
            rated(
                ENCODE,
                what,
                seconds,
                shape.records,
                UNIT,
                reference_s=by_name.get(name),
                of=name,
                budget=at_least(0.8) if is_budget else None,
            )
        )

    add(f"{shape}", took, AIOKAFKA, is_budget=shape == BUDGET_SHAPE)
    add(f"{shape}, with RecordBatch.unassigned", with_batch, AIOKAFKA)
    if KAFKA_PYTHON in by_name:
        add(f"{shape}", took, KAFKA_PYTHON)


def _run_decode(scale: Scale, report: Report, peers: dict[str, Peer], shape: Shape) -> None:
    source = Batches(shape)
    batches = [source.batch() for _ in range(shape.ring)]
    frames = [encode(batch) for batch in batches]
    views = [memoryview(frame) for frame in frames]

    def ours(count: int) -> None:
        for frame in islice(cycle(frames), count):
            decode_batch(frame)

    def ours_check(count: int) -> None:
        check = MKB1.check
        for view in islice(cycle(views), count):
            check(view, 0, len(view), BATCH_BYTES_MAX)

    subjects = [Subject(ours), Subject(ours_check)]
    names = [name for name in PEER_NAMES if name in peers]
    for name in names:
        peer = peers[name]
        theirs = [peer.encode(batch.records, peer_batch_bytes(shape)) for batch in batches]
        subjects.append(Subject(peer.decoding(theirs)))
        if name == AIOKAFKA:
            subjects.append(Subject(peer.checking(theirs)))
    times = iter(race(scale, *subjects))
    took, check_took = next(times), next(times)
    decoded: dict[str, float] = {}
    checked: float | None = None
    for name in names:
        decoded[name] = next(times)
        if name == AIOKAFKA:
            checked = next(times)

    def add(what: str, seconds: float, reference_s: float | None, name: str) -> None:
        report.add(
            rated(DECODE, what, seconds, shape.records, UNIT, reference_s=reference_s, of=name)
        )

    add(f"{shape}", took, decoded.get(AIOKAFKA), AIOKAFKA)
    if KAFKA_PYTHON in decoded:
        add(f"{shape}", took, decoded[KAFKA_PYTHON], KAFKA_PYTHON)
    add(f"{shape}, header and crc only", check_took, checked, AIOKAFKA)
