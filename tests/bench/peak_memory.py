"""The process whose memory is watched: ``python -m tests.bench.peak_memory DIRECTORY``.

Prints, as JSON, the peak of the resident memory in KiB when it began, when ``storage`` was
imported and when the log was open, and the log's end offset. Nothing is synced.
"""

import json
import sys
from pathlib import Path


def peak_kib() -> int:
    """The largest resident size so far.

    From /proc: ``ru_maxrss`` begins with the size of the process that started this one.
    """
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1])
    raise RuntimeError("/proc/self/status has no VmHWM")


def main() -> None:
    """Open the log and print the figures."""
    before = peak_kib()
    # Imported here: they belong to what is measured.
    from storage.partition_log import PartitionLog
    from tests.bench.unsynced import UnsyncedDisk

    imported = peak_kib()
    log = PartitionLog.open(Path(sys.argv[1]), verify="all", disk=UnsyncedDisk())
    after = peak_kib()
    found = {"before": before, "imported": imported, "after": after, "end_offset": log.leo}
    log.abandon()
    print(json.dumps(found))


if __name__ == "__main__":
    main()
