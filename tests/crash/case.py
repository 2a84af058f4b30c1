"""One operation of the crash proof, and how its log is opened."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from attrs import define, field

from sim.disks import SimDisk
from storage import LogConfig, PartitionLog
from storage.recovery import Verify
from tests.crash.history import History

__all__ = ["DIRECTORY", "LARGE", "Case", "open_log"]

DIRECTORY = Path("orders-0")
LARGE = 3
"""``Case.one_in`` of cases with so many images that all of them take too long."""


def open_log(disk: SimDisk, config: LogConfig, verify: Verify = "all") -> PartitionLog:
    """Open the log of a proof, alone in its directory."""
    return PartitionLog.open(DIRECTORY, config, disk=disk, verify=verify)


def nothing_more(log: PartitionLog, history: History) -> str | None:
    """The check of a log on its own."""
    return None


@define
class Case:
    """One operation on one prepared log.

    Attributes:
        name: for reports.
        prepare: build the log up to the operation; the disk is a plain one then.
        operate: the operation, which may be cut at any call; it tells ``History`` first what it is
            about to write, or what it is about to remove.
        config: of the log.
        opens: the operation begins with the disk alone: the process that prepared it is gone.
        open: how the log is opened, again and again.
        check: what must hold besides, of a log that was just opened.
        one_in: go on from one in so many images, drawn; 1 for every one of them.
    """

    name: str
    prepare: Callable[[PartitionLog, History], PartitionLog]
    operate: Callable[[PartitionLog | None, History, SimDisk], Any]
    config: LogConfig = field(factory=lambda: LogConfig(segment_max_bytes=400))
    opens: bool = False
    open: Callable[[SimDisk, LogConfig, Verify], PartitionLog] = open_log
    check: Callable[[PartitionLog, History], str | None] = nothing_more
    one_in: int = 1
