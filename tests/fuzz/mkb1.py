"""Coverage-guided fuzzing of the MKB1 decoder: ``python -m tests.fuzz.mkb1 [seconds]``.

Needs ``atheris``, which is no dependency of this project: ``pip install atheris``. Each input is
tried as it is, and with a frame header put in front so that the CRC never hides the decoder. A
finding is an exception from ``check``; libFuzzer then writes the input to ``crash-...`` in the
current directory and exits with a status other than 0.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from inspect import isfunction
from pathlib import Path
from tempfile import TemporaryDirectory

from attrs import evolve

from storage import Header, Record, RecordBatch, mkb1
from storage.errors import CorruptBatch
from storage.mkb1 import MKB1, decode_batch, encode_batch
from tests.storage import naive_mkb1 as naive
from tests.storage.batches import commit, emptied

SECONDS = 60
USAGE = "usage: python -m tests.fuzz.mkb1 [seconds]"
MISSING = "atheris is not installed: pip install atheris (CPython on Linux or macOS)"


def check(data: bytes) -> None:
    """Decode ``data`` as it is and as a payload; raise ``AssertionError`` for a wrong outcome."""
    check_frame(data)
    check_frame(naive.framed(data))


def check_frame(frame: bytes) -> None:
    try:
        expected = naive.to_batch(naive.decode(frame))
    except naive.IllegalFrame:
        expected = None
    try:
        batch = decode_batch(frame)
    except CorruptBatch:
        if expected is not None and expected.next_offset < 2**63:
            raise AssertionError(f"a legal frame was refused: {frame.hex()}") from None
        return
    assert batch == expected, f"decoded {batch}, expected {expected}: {frame.hex()}"
    assert encode_batch(batch) == frame, f"encodes to other bytes: {frame.hex()}"
    facts = MKB1.check(frame, 0, len(frame), len(frame))
    assert facts[:4] == MKB1.hop(frame, 0), f"check and hop differ: {frame.hex()}"
    assert facts[4] == batch.max_timestamp_ms, f"check has another timestamp: {frame.hex()}"


def seeds() -> list[bytes]:
    """Payloads of every kind of frame, for the fuzzer to begin with."""
    record = Record(b"key", b"value", 1_000, (Header("h", None), Header("é", b"x")))
    data = RecordBatch.unassigned((record, record), transactional_id="tx").assign(7, 3)
    compacted = evolve(data, offset_deltas=(1, 4), last_offset_delta=9)
    marker = commit(timestamp_ms=5).assign(9, 3)
    kinds = [data, compacted, marker, emptied(3, 4)]
    kinds += [evolve(data, format_version=1), evolve(commit().assign(9, 3), format_version=1)]
    return [encode_batch(batch)[12:] for batch in kinds]


def main(arguments: Sequence[str]) -> int:
    """Fuzz for some seconds. Does not return where atheris runs: libFuzzer ends the process."""
    if len(arguments) > 1 or not all(argument.isdecimal() for argument in arguments):
        print(USAGE, file=sys.stderr)
        return 2
    try:
        import atheris
    except ImportError:
        print(MISSING, file=sys.stderr)
        return 2
    seconds = int(arguments[0]) if arguments else SECONDS
    for part in (*vars(mkb1).values(), *vars(mkb1.Mkb1Codec).values()):
        if isfunction(part) and part.__module__ == mkb1.__name__:
            atheris.instrument_func(part)
    with TemporaryDirectory() as corpus:
        for number, payload in enumerate(seeds()):
            (Path(corpus) / f"seed-{number}").write_bytes(payload)
        options = [f"-max_total_time={seconds}", "-max_len=400", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *options, corpus], check)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
