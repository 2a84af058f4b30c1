"""The storage bench: what the log of one partition costs, against codecs, disk calls and CRCs.

Files are made below the system's temporary directory (``TMPDIR``), which should be a real disk, and
removed at the end. Encode and append have their budgets on ``RecordBatch`` values made beforehand;
the rows "with RecordBatch.unassigned" make them in the timed part too.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.bench.measure import Scale
from tests.bench.peers import INSTALL, PEER_NAMES, find_peers
from tests.bench.report import Report
from tests.bench.storage_codec import run_codec
from tests.bench.storage_data import Folders
from tests.bench.storage_memory import run_memory
from tests.bench.storage_read import run_fetch, run_open, run_scan
from tests.bench.storage_write import run_append, run_replicate, run_truncate

__all__ = ["facts", "run"]


def facts() -> dict[str, Any]:
    """The versions of what is compared with; None is not installed."""
    peers = find_peers()
    return {name: peers[name].version if name in peers else None for name in PEER_NAMES}


def run(scale: Scale, report: Report) -> None:
    """Measure everything, section by section."""
    peers = find_peers()
    missing = [name for name in PEER_NAMES if name not in peers]
    if missing:
        report.note(f"Not installed, so not compared: {', '.join(missing)}. Install: {INSTALL}")
    report.note("A ratio is speed: 2x is twice as fast as the reference.")
    with TemporaryDirectory(prefix="leaderfall-bench-") as directory:
        folders = Folders(Path(directory))
        run_codec(scale, report, peers)
        run_append(scale, report, peers, folders)
        run_replicate(scale, report, folders)
        run_truncate(scale, report, folders)
        run_scan(scale, report, folders)
        run_fetch(scale, report, folders)
        run_open(scale, report, folders)
        run_memory(scale, report, folders)
