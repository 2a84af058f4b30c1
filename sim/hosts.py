"""A host: a name with a disk, clocks and, most of the time, one process.

A process kill keeps the disk's page cache; a power loss leaves a legal image of it; a clean stop
ends when the machine says so. A paused host handles nothing: what arrives waits, and is handled in
its order when the host goes on, while clocks and devices run on. A process that is started again
is a new one, over the same disk, a wiped one or an older copy.

Left out: when any of this happens (``sim.world`` and whoever drives it), the network.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from attrs import define, field

from cluster.effects import Yield
from cluster.lanes import Lane
from cluster.machine import Machine
from cluster.names import TopicIdPartition
from sim.clocks import HostClock
from sim.disk_core import ProcessKill
from sim.disk_crash import Manifest
from sim.draws import Stream
from sim.failpoints import CrashLoopPlan, Failpoint, Failpoints
from sim.host_disks import HostDisk, losses_of
from sim.kernel import Kernel
from sim.plain import plain
from sim.process import Process
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from storage.errors import StorageError
from storage.log_durability import Work

if TYPE_CHECKING:
    from pathlib import Path

    from sim.disk_faults import DiskFault

__all__ = ["Host"]


@define(eq=False)
class Host:
    """See the module.

    Attributes:
        build: makes the machine of the next process.
        process: None while none runs.
        starts: how often a process was started.
        is_on: whether the host has power.
        adapter: called behind each handler with the process and the handler's event.
        started_incompletely: why the last start failed, if it did.
    """

    name: str
    kernel: Kernel
    build: Callable[[Host], Machine]
    clock: HostClock
    is_single_lane: bool
    disk: HostDisk | None = None
    adapter: Callable[[Any, int], None] | None = None
    process: Process | None = None
    starts: int = 0
    is_on: bool = True
    failpoints: Failpoints = field(factory=Failpoints)
    cpu_factors: dict[str, int] = field(factory=dict)
    loop: CrashLoopPlan | None = None
    loop_at: int = 0
    held_work: dict[str, frozenset[str]] = field(factory=dict)
    kept_work: list[tuple[TopicIdPartition | None, Work, int]] = field(factory=list)
    failed_start: StorageError | None = None
    manifest: Manifest | None = None
    shown: dict[str, Any] = field(factory=dict)
    _cpu: Stream = field(init=False)
    _work: Stream = field(init=False)
    _jitter: Stream = field(init=False)
    _works: int = 0
    _jitters: int = 0
    _handled: int = 0

    def __attrs_post_init__(self) -> None:
        draws = self.kernel.draws
        self._cpu = draws.stream("cpu", self.name)
        self._work = draws.stream("background", self.name)
        self._jitter = draws.stream("timer-jitter", self.name)
        if self.disk is not None:
            self.disk.files.on_call = self._on_disk_call
            self.disk.files.on_strike = self._on_strike

    # Life --------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        return self.process is not None

    @property
    def is_paused(self) -> bool:
        return self.process is not None and self.process.is_paused

    @property
    def status(self) -> str:
        """``running``, ``paused``, ``down`` (no process) or ``off`` (no power)."""
        if not self.is_on:
            return "off"
        if self.process is None:
            return "down"
        return "paused" if self.is_paused else "running"

    def start(self, cause: tuple[int, ...] = (), **args: Any) -> None:
        """Start a process; the host has power from now on."""
        assert self.process is None
        self.is_on = True
        self.failed_start = None
        machine = self.build(self)
        self.process = Process(self, machine, self.starts, self.is_single_lane)
        self.starts += 1
        if self.loop is not None:
            self._arm_loop(self.loop)
        self.process.start(cause, {"incarnation": self.process.incarnation, **args})

    def stop(self, cause: tuple[int, ...] = ()) -> None:
        """Ask the process to shut down in order."""
        assert self.process is not None
        self.process.stop(cause)

    def kill(self, cause: tuple[int, ...] = (), **args: Any) -> int:
        """The process ends; what it wrote stays visible. Returns the event."""
        number = self._emit(Kind.CRASH, cause, {"how": "process", **args})
        self._end_process(number, is_silent=False)
        if self.disk is not None:
            self.disk.files.kill()
        return number

    def cut_power(self, cause: tuple[int, ...] = (), image: str = "lost", **more: Any) -> int:
        """The host loses its power, and its disk what the image says. Returns the event.

        Args:
            image: ``lost`` (everything that may be lost), ``kept``, ``drawn``, or a crash mode.
        """
        manifest = None
        if self.disk is not None:
            mode = None if image == "drawn" else image
            self.manifest = manifest = self.disk.files.power_cut(mode=mode)
        self.is_on = False
        number = self._emit(Kind.CRASH, cause, {"how": "power", "image": image, **more})
        self._end_process(number, is_silent=True)
        if manifest is not None:
            for args in losses_of(manifest):
                self._emit(Kind.LOST, (number,), dict(args))
        return number

    def on_cut(self, end: BaseException, number: int) -> None:
        """A fuse blew inside a handler."""
        if isinstance(end, ProcessKill):
            self.kill((number,))
        else:
            self.cut_power((number,), "lost" if self.disk is None else self.disk.image)

    def on_stopped(self, number: int) -> None:
        """The machine has stopped, in order or because its disk failed."""
        done = self._emit(Kind.STOP, (number,), {})
        self._end_process(done, is_silent=False)
        if self.disk is not None:
            self.disk.files.kill()

    def on_failed_start(self, error: StorageError, number: int) -> None:
        """The process could not open its directory, and has ended."""
        self.failed_start = error
        args = {"how": "start-failed", "error": error.code, "detail": str(error)}
        done = self._emit(Kind.CRASH, (number,), args)
        self._end_process(done, is_silent=False)
        if self.disk is not None:
            self.disk.files.kill()

    def _end_process(self, number: int, *, is_silent: bool) -> None:
        process, self.process = self.process, None
        self.kept_work.clear()
        if process is not None:
            process.end()
            self.show(number)
            self.kernel.network.process_ended(
                self.name, process.incarnation, (number,), is_silent=is_silent
            )
        if self.loop is not None:
            at_us = self.kernel.timeline.now_us + self.loop.restart_after_us
            self.kernel.timeline.at(
                at_us, EventClass.FAULT, f"loop:{self.name}", self._restart, self.loop, number
            )

    def _emit(self, kind: Kind, cause: tuple[int, ...], args: dict[str, Any]) -> int:
        kernel = self.kernel
        return kernel.trace.emit(kernel.timeline.now_us, self.name, kind, cause, args)

    def show(self, number: int) -> None:
        """Attach to event ``number``, the last one, how what viewers see of the host changed."""
        trace = self.kernel.trace
        if not trace.wants_changes:
            return
        fields: dict[str, Any] = {f"{self.name}/status": self.status}
        if self.process is not None:
            fields[f"{self.name}/incarnation"] = self.process.incarnation
            for key, value in self.process.machine.fields().items():
                if value is not None:
                    fields[f"{self.name}/{key}"] = plain(value)
        trace.attach(number, _changes(self.shown, fields))
        self.shown = fields

    def reclock(self) -> None:
        """The clock was changed: timers are due at other times."""
        if self.process is not None:
            self.process.reclock()

    # Pausing -----------------------------------------------------------------------------------

    def pause(self, cause: tuple[int, ...] = (), **args: Any) -> int:
        """Handle nothing until ``resume``. Returns the event."""
        assert self.process is not None
        self.process.is_paused = True
        number = self._emit(Kind.PAUSE, cause, args)
        self.show(number)
        return number

    def resume(self, cause: tuple[int, ...] = (), **args: Any) -> None:
        """Go on; what came meanwhile is handled in the order in which it came."""
        assert self.process is not None
        process = self.process
        process.is_paused = False
        self.show(self._emit(Kind.RESUME, cause, args))
        process.go_on()

    def _go_on(self, process: Process, cause: int) -> None:
        """The end of a failpoint's pause."""
        if self.process is process and self.is_paused:
            self.resume((cause,))

    # Crash loops ---------------------------------------------------------------------------------

    def begin_loop(self, loop: CrashLoopPlan, number: int) -> None:
        """End the process; further ones end while they recover (``sim.faults.CrashLoop``)."""
        self.loop, self.loop_at = loop, 0
        if loop.how == "power":
            self.cut_power((number,), loop.image, fault=loop.fault)
        elif self.is_running:
            self.kill((number,), fault=loop.fault)
        else:
            self._end_process(number, is_silent=False)

    def end_loop(self) -> None:
        """The process that is started next lives, and one that waits for its end does."""
        self.loop = None
        if self.disk is not None:
            self.disk.files.disarm_fuse()

    def _arm_loop(self, loop: CrashLoopPlan) -> None:
        assert self.disk is not None
        if self.loop_at < len(loop.calls):
            self.disk.image = loop.image
            self.disk.files.arm_fuse(loop.calls[self.loop_at], kills=loop.how == "process")
            self.loop_at += 1
        else:
            self.loop = None

    def _restart(self, loop: CrashLoopPlan, number: int) -> None:
        if self.loop is loop and self.process is None:
            self.start((number,), fault=loop.fault)

    # Failpoints and background work ------------------------------------------------------------

    def add_failpoint(self, failpoint: Failpoint) -> None:
        """Arm a failpoint; it strikes once.

        Raises:
            ValueError: the host has no disk to strike, or no failpoints.
        """
        if failpoint.is_disk_call:
            if self.disk is None:
                raise ValueError(f"{self.name} has no disk for {failpoint.point!r}")
            _, call, suffix = failpoint.point.split(":")
            self.disk.image = failpoint.image
            is_kill = failpoint.action == "process"
            self.disk.files.arm_fuse_at(call, suffix, failpoint.hit, kills=is_kill)
            return
        self.failpoints.add(failpoint)

    def on_failpoint(self, lane: Lane, after_us: int, stop: Yield, number: int) -> None:
        """A handler has stopped at a named point: go on, unless this is the hit."""
        process = self.process
        assert process is not None
        struck = self.failpoints.reach(stop.point)
        if struck is None:
            process.resume(lane, after_us, stop, number)
            return
        args = {"fault": struck.id, "point": struck.point, "hit": struck.hit}
        args["action"] = struck.action
        reached = self._emit(Kind.FAILPOINT, (number,), args)
        timeline = self.kernel.timeline
        at_us = timeline.now_us + after_us
        # Behind what the handler had put before the point, which leaves at the same time.
        origin = f"out:{self.name}"
        if struck.action in ("process", "power"):
            process.busy_until_us[lane] = at_us + 1
            timeline.at(at_us, EventClass.DISK, origin, self._strike, process, struck, reached)
            return
        if struck.action == "pause":
            self.pause((reached,))
            timeline.at(
                at_us + struck.duration_us,
                EventClass.FAULT,
                origin,
                self._go_on,
                process,
                reached,
            )
            process.resume(lane, after_us, stop, reached)
        else:
            process.resume(lane, after_us + struck.duration_us, stop, reached)

    def _strike(self, process: Process, failpoint: Failpoint, cause: int) -> None:
        if self.process is not process:
            return
        if failpoint.action == "power":
            self.cut_power((cause,), failpoint.image)
        else:
            self.kill((cause,))

    def hold_work(self, fault_id: str, kinds: frozenset[str]) -> None:
        """Background work of these kinds (all, if none is named) waits until it is let go."""
        self.held_work[fault_id] = kinds

    def let_work_go(self, fault_id: str) -> None:
        """What waits for this fault alone begins now."""
        del self.held_work[fault_id]
        kept, self.kept_work = self.kept_work, []
        if self.process is not None:
            for partition, work, number in kept:
                self.process.work_due(partition, work, number)

    def holds_back(self, partition: TopicIdPartition | None, work: Work, number: int) -> bool:
        """Whether a fault keeps a piece of work, which waits then."""
        is_held = any(not kinds or work.kind in kinds for kinds in self.held_work.values())
        if is_held:
            self.kept_work.append((partition, work, number))
        return is_held

    # What things cost --------------------------------------------------------------------------

    def cpu_us(self) -> int:
        """CPU time of the next handler."""
        low, high = self.kernel.config.cpu_us
        self._handled += 1
        cost = low if low == high else low + self._cpu.below(high - low + 1, self._handled)
        for factor_ppm in self.cpu_factors.values():
            cost = cost * factor_ppm // 1_000_000
        return cost

    def background_us(self) -> int:
        """How long a piece of background work waits."""
        low, high = self.kernel.config.background_us
        self._works += 1
        return low if low == high else low + self._work.below(high - low + 1, self._works)

    def jitter_us(self, wait_us: int) -> int:
        """How much later than it should a timer is."""
        most = wait_us * self.clock.jitter_ppm // 1_000_000
        if most <= 0:
            return 0
        self._jitters += 1
        return self._jitter.below(most + 1, self._jitters)

    def _on_disk_call(self, operation: str, path: Path, position: int, size_bytes: int) -> None:
        if self.process is not None:
            self.process.on_disk_call(operation, str(path), position, size_bytes)
        if self.disk is not None:
            self.disk.note_call(operation)

    def _on_strike(self, fault: DiskFault, operation: str, path: Path) -> None:
        if self.process is not None:
            self.process.on_strike(fault.id, operation, str(path))

    def require_disk(self) -> HostDisk:
        """The disk.

        Raises:
            ValueError: the host has none.
        """
        if self.disk is None:
            raise ValueError(f"{self.name} has no disk")
        return self.disk


def _changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """The reversible changes from one mapping of paths to another; None stands for absent."""
    changes = [(key, old.get(key), value) for key, value in new.items() if old.get(key) != value]
    changes += [(key, value, None) for key, value in old.items() if key not in new]
    return changes
