"""The process whose growth is watched: ``python -m tests.bench.sim_memory DIRECTORY MESSAGES``.

Runs the full protocol on real files in the directory until so many messages are delivered. Prints,
as JSON, the CPU time of that in nanoseconds and the peak of the resident memory in KiB, imports and
building the world included.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from time import thread_time_ns

from tests.bench.peak_memory import peak_kib
from tests.bench.sim_ours import FullProtocol

# Rolled segments are synced: what a power loss could take of them need not be remembered.
SEGMENT_BYTES = str(1 << 18)


def main() -> None:
    """Deliver the messages and print the figures."""
    subject = FullProtocol(Path(sys.argv[1]), **{"segment.bytes": SEGMENT_BYTES})
    count = int(sys.argv[2])
    subject.prepare(count)
    begin = thread_time_ns()
    subject.run(count)
    print(json.dumps({"time": thread_time_ns() - begin, "memory": peak_kib()}))


if __name__ == "__main__":
    main()
