"""The founding document's experiment: roll a log, damage its tail, reopen it.

Run it with ``python -m storage.experiment``; it prints five lines and leaves nothing behind.
"""

from pathlib import Path
from tempfile import TemporaryDirectory

from storage import LogConfig, PartitionLog, Record, RecordBatch


def one(value: bytes, timestamp: int) -> RecordBatch:
    """A batch of one record."""
    return RecordBatch.unassigned((Record(None, value, timestamp),))


def main() -> None:
    """Print what rolling, repairing and reading give."""
    with TemporaryDirectory() as directory:
        root = Path(directory)
        config = LogConfig(segment_max_bytes=120, index_interval_bytes=1)
        log = PartitionLog.open(root / "events-0", config)
        for i in range(3):
            log.append(one(f"value-{i}".encode(), i))
        print("segment bases:", [s.base_offset for s in log.segments])
        print("active index:", log.active.index.entries)
        active_path = log.active.log_path
        valid_size = log.active.size_bytes
        log.close()
        with active_path.open("ab") as file:
            file.write(b"MKB1\x00\x00\x00\x20partial")
        recovered = PartitionLog.open(root / "events-0", config)
        print("recovered leo:", recovered.leo)
        print("tail repaired:", recovered.active.size_bytes == valid_size)
        print("values:", [r.value for r in recovered.fetch(0, 10)])
        recovered.close()


if __name__ == "__main__":
    main()
