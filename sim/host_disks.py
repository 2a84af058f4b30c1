"""The disk of one host with what surrounds it: a device that takes time, a kernel that writes back.

Left out: the files and what a power loss makes of them (``sim.disks``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import define, field

from sim.disk_crash import Manifest
from sim.disk_speed import DiskQueue
from sim.disks import SimDisk
from sim.draws import Stream
from sim.kernel import Kernel
from sim.timeline import EventClass
from sim.trace.kinds import Kind

__all__ = ["HostDisk", "losses_of"]

_DIRTYING = frozenset({"append", "rename", "truncate", "unlink", "write_at"})


@define(eq=False)
class HostDisk:
    """See the module.

    Attributes:
        queue: what calls cost.
        images: what a fuse that cuts the power leaves of the files, by fault.
        full_at: limits of the disk's size by fault.
    """

    kernel: Kernel
    name: str
    files: SimDisk
    queue: DiskQueue
    images: dict[str, str] = field(factory=dict)
    full_at: dict[str, int] = field(factory=dict)
    _delays: Stream = field(init=False)
    _write_backs: int = 0
    _is_planned: bool = False

    def __attrs_post_init__(self) -> None:
        self._delays = self.kernel.draws.stream("write-back-delay", self.name)

    # Room --------------------------------------------------------------------------------------

    def fill(self, fault_id: str, free_bytes: int) -> None:
        """Leave so much room, until ``empty``."""
        self.full_at[fault_id] = self.files.used_bytes() + free_bytes
        self._limit()

    def empty(self, fault_id: str) -> None:
        """The room that ``fill`` took is there again."""
        self.full_at.pop(fault_id, None)
        self._limit()

    def full_by(self) -> str | None:
        """The fault that leaves the least room; None where it is the disk's own size."""
        by = min(self.full_at, key=lambda fault_id: self.full_at[fault_id], default=None)
        return by if by and self.full_at[by] == self.files.capacity_bytes else None

    def _limit(self) -> None:
        limits = list(self.full_at.values())
        if self.kernel.config.disk.capacity_bytes is not None:
            limits.append(self.kernel.config.disk.capacity_bytes)
        self.files.capacity_bytes = min(limits, default=None)

    # Write-back --------------------------------------------------------------------------------

    def note_call(self, operation: str) -> None:
        """A call was made: the kernel writes dirty pages back some time after the first of them."""
        delay_us = self.kernel.config.disk.writeback_us
        if delay_us is None or self._is_planned or operation not in _DIRTYING:
            return
        self._is_planned = True
        self._write_backs += 1
        low, high = delay_us
        wait_us = low + self._delays.below(high - low + 1, self._write_backs)
        timeline = self.kernel.timeline
        origin = f"disk:{self.name}"
        timeline.at(timeline.now_us + wait_us, EventClass.DISK, origin, self._write_back)

    def _write_back(self) -> None:
        self._is_planned = False
        if self.files.is_powered and self.files.write_back():
            kernel = self.kernel
            args = {"work": "write-back"}
            kernel.trace.emit(kernel.timeline.now_us, self.name, Kind.BACKGROUND, (), args)


def losses_of(manifest: Manifest) -> Iterator[Mapping[str, Any]]:
    """What a power cut took, as the events of kind ``lost`` have it."""
    for each in manifest.files:
        for how, spans in (("lost", each.lost), ("torn", each.torn)):
            for start, end in spans:
                yield {"file": each.path, "position": start, "size": end - start, "how": how}
        if each.tail_bytes is not None:
            start, end = each.tail_bytes
            yield {"file": each.path, "position": start, "size": end - start, "how": "tail-back"}
    for how, names in (("name", manifest.names_lost), ("name-back", manifest.names_back)):
        for name in names:
            yield {"file": name, "how": how}
