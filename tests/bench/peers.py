"""The codecs of other projects that ours is compared with, where they are installed.

Both have the interface of ``kafka.record``: a builder that takes one record after another, and a
batch that checks its CRC and yields its records.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import cycle, islice
from typing import Any

from storage.batch import Record

__all__ = ["AIOKAFKA", "INSTALL", "KAFKA_PYTHON", "PEER_NAMES", "Peer", "PlainRecord", "find_peers"]

INSTALL = 'pip install -e ".[bench]"'
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python"
PEER_NAMES = (AIOKAFKA, KAFKA_PYTHON)

# name: module. aiokafka's package would fall back to pure Python in silence; its C codec cannot.
_MODULES = {
    AIOKAFKA: "aiokafka.record._crecords",
    KAFKA_PYTHON: "kafka.record.default_records",
}
_MAGIC = 2

# Key, value, timestamp ms, headers; no headers are passed on.
PlainRecord = Record | tuple[bytes | None, bytes | None, int, tuple[()]]


@dataclass(frozen=True)
class Peer:
    """One installed codec. The methods return functions that perform so many operations."""

    name: str
    version: str
    builder: Any
    batch: Any

    def encoding(
        self, batches: Sequence[Sequence[PlainRecord]], size_bytes: int
    ) -> Callable[[int], None]:
        """Encode the batches in turn, uncompressed."""
        make = self.builder
        no_headers: list[tuple[str, bytes]] = []

        def run(count: int) -> None:
            for records in islice(cycle(batches), count):
                builder = make(_MAGIC, 0, 0, -1, -1, -1, size_bytes)
                append = builder.append
                for offset, (key, value, timestamp_ms, _) in enumerate(records):
                    append(offset, timestamp_ms, key, value, no_headers)
                builder.build()

        return run

    def encode(self, records: Sequence[PlainRecord], size_bytes: int) -> bytes:
        """The bytes of one batch; all its records must have fitted."""
        builder = self.builder(_MAGIC, 0, 0, -1, -1, -1, size_bytes)
        for offset, (key, value, timestamp_ms, _) in enumerate(records):
            if builder.append(offset, timestamp_ms, key, value, []) is None:
                raise ValueError(f"{self.name} took {offset} of {len(records)} records")
        return bytes(builder.build())

    def decoding(self, frames: Sequence[bytes]) -> Callable[[int], None]:
        """Check the CRC of the frames in turn and make a list of each one's records."""
        make = self.batch

        def run(count: int) -> None:
            for frame in islice(cycle(frames), count):
                batch = make(frame)
                batch.validate_crc()
                list(batch)

        return run

    def checking(self, frames: Sequence[bytes]) -> Callable[[int], None]:
        """Read the header and check the CRC of the frames in turn."""
        make = self.batch

        def run(count: int) -> None:
            for frame in islice(cycle(frames), count):
                make(frame).validate_crc()

        return run


def find_peers() -> dict[str, Peer]:
    """The peers that are installed, by name."""
    found = {}
    for name, module_name in _MODULES.items():
        try:
            with warnings.catch_warnings():
                # What others import with a deprecated call is not ours to judge.
                warnings.simplefilter("ignore", DeprecationWarning)
                module = importlib.import_module(module_name)
        except ImportError:
            continue
        found[name] = Peer(
            name, version(name), module.DefaultRecordBatchBuilder, module.DefaultRecordBatch
        )
    return found
