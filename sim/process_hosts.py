"""What a process asks of the host that it runs on.

Left out: the host (``sim.hosts``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from cluster.effects import Yield
from cluster.lanes import Lane
from cluster.names import TopicIdPartition
from sim.clocks import HostClock
from sim.failpoints import Failpoints
from sim.host_disks import HostDisk
from sim.kernel import Kernel
from storage.errors import StorageError
from storage.log_durability import Work

__all__ = ["ProcessHost"]


class ProcessHost(Protocol):
    """See the module. Methods that take ``number`` are told the event behind the call.

    Attributes:
        adapter: called behind each handler with the process and the handler's event.
    """

    name: str
    kernel: Kernel
    clock: HostClock
    disk: HostDisk | None
    failpoints: Failpoints
    adapter: Callable[[Any, int], None] | None

    def cpu_us(self) -> int:
        """CPU time of the next handler."""

    def background_us(self) -> int:
        """How long the next piece of background work waits."""

    @property
    def jitters(self) -> Mapping[str, object]:
        """What makes timers late, by fault."""

    def lateness(self, wait_us: int) -> tuple[int, tuple[int, ...]]:
        """How much later than it should the next timer is, and the events behind that."""

    def show(self, number: int) -> None:
        """Attach to event ``number``, the last one, what viewers see changed."""

    def cause_of(self, fault_id: str, number: int) -> tuple[int, ...]:
        """What to cite for an effect of a fault inside the handler of an event."""

    def on_cut(self, end: BaseException, number: int) -> None:
        """A fuse blew inside a handler."""

    def on_failed_start(self, error: StorageError, number: int) -> None:
        """``on_start`` could not open the directory."""

    def on_stopped(self, number: int) -> None:
        """The machine has stopped."""

    def on_failpoint(self, lane: Lane, after_us: int, stop: Yield, number: int) -> None:
        """A handler has stopped at a failpoint, so much after it began."""

    def holds_back(self, partition: TopicIdPartition | None, work: Work, number: int) -> bool:
        """Whether a fault keeps a piece of background work, which waits then."""
