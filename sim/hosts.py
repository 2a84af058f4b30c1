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
from sim.cluster_config import ClockConfig
from sim.disk_core import ProcessKill
from sim.disk_crash import Manifest
from sim.draws import Stream
from sim.failpoints import CrashLoopPlan, Failpoint, Failpoints
from sim.host_disks import HostDisk, losses_of
from sim.kernel import Kernel
from sim.meter import Strike
from sim.plain import plain
from sim.process import Process
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.trace.lines import EventNumber
from storage.errors import StorageError
from storage.log_durability import Work

if TYPE_CHECKING:
    from pathlib import Path

    from sim.disk_faults import DiskFault

__all__ = ["Host"]


@define(eq=False)
class Jitter:
    """A fault that makes timers late: by how much, its draws, and how many timers it met."""

    ppm: int
    stream: Stream
    count: int = 0


@define(eq=False)
class Host:
    """See the module.

    Attributes:
        build: makes the machine of the next process.
        process: None while none runs.
        starts: how often a process was started.
        is_on: whether the host has power.
        adapter: called behind each handler with the process and the handler's event.
        failed_start: why the last start failed, if it did.
        begun: events at which the faults that are active on this host began, and at which
            failpoints were armed, by id.
        pauses: what keeps the process paused: ids of faults, ``""`` for a step.
        drifts, freezes: of the clock, by fault; the newest drift counts.
        strobes: whether the wall clock is off by a strobe now, by fault.
        jitters: what makes timers late, by fault.
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
    begun: dict[str, int] = field(factory=dict)
    pauses: dict[str, None] = field(factory=dict)
    drifts: dict[str, tuple[int, int]] = field(factory=dict)
    freezes: dict[str, bool] = field(factory=dict)
    strobes: dict[str, bool] = field(factory=dict)
    jitters: dict[str, Jitter] = field(factory=dict)
    held_work: dict[str, frozenset[str]] = field(factory=dict)
    kept_work: list[tuple[TopicIdPartition | None, Work, int]] = field(factory=list)
    failed_start: StorageError | None = None
    manifest: Manifest | None = None
    shown: dict[str, Any] = field(factory=dict)
    _cpu: Stream = field(init=False)
    _work: Stream = field(init=False)
    _jitter: Stream = field(init=False)
    _works: int = 0
    _late_timers: int = 0
    _handled: int = 0

    def __attrs_post_init__(self) -> None:
        draws = self.kernel.draws
        self._cpu = draws.stream("cpu", self.name)
        self._work = draws.stream("background", self.name)
        self._jitter = draws.stream("timer-jitter", self.name)
        if self.disk is not None:
            self.disk.files.on_call = self._on_disk_call
            self.disk.files.on_strike = self._on_strike
            self.disk.files.on_full = self._on_full

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
        was_off, self.is_on = not self.is_on, True
        self.failed_start = None
        begun = EventNumber(self.kernel.trace.count + 1)
        machine = self.build(self)
        self.process = Process(self, machine, self.starts, self.is_single_lane)
        self.starts += 1
        if self.loop is not None:
            self._arm_loop(self.loop)
        self.process.start(cause, {"incarnation": self.process.incarnation, **args})
        if was_off:
            self.kernel.network.power_returned(self.name, begun)

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
        self._tell_end("process", number)
        return number

    def cut_power(self, cause: tuple[int, ...] = (), image: str = "lost", **more: Any) -> int:
        """The host loses its power, and its disk what the image says. Returns the event.

        Args:
            image: ``lost`` (everything that may be lost), ``kept``, ``drawn``, or a crash mode.
        """
        manifest = None
        observer = self.kernel.observer
        if observer is not None:
            observer.before_power_cut(self.name)
        if self.disk is not None:
            mode = None if image == "drawn" else image
            self.manifest = manifest = self.disk.files.power_cut(mode=mode)
        self.is_on = False
        number = self._emit(Kind.CRASH, cause, {"how": "power", "image": image, **more})
        self._end_process(number, is_silent=True)
        if manifest is not None:
            for args in losses_of(manifest):
                self._emit(Kind.LOST, (number,), dict(args))
        self._tell_end("power", number)
        return number

    def on_cut(self, end: BaseException, number: int) -> None:
        """A fuse blew inside a handler."""
        disk = self.require_disk()
        fault = disk.files.fuses.blown
        args = {"fault": fault} if fault else {}
        cause = self.cause_of(fault, number)
        if isinstance(end, ProcessKill):
            self.kill(cause, **args)
        else:
            self.cut_power(cause, disk.images.get(fault, "lost"), **args)

    def cause_of(self, fault_id: str, number: int) -> tuple[int, ...]:
        """What to cite for an effect of a fault inside the handler of an event."""
        begun = self.begun.get(fault_id)
        return (number,) if begun is None else (begun, number)

    def on_stopped(self, number: int) -> None:
        """The machine has stopped, in order or because its disk failed."""
        done = self._emit(Kind.STOP, (number,), {})
        self._end_process(done, is_silent=False)
        if self.disk is not None:
            self.disk.files.kill()
        self._tell_end("stop", done)

    def on_failed_start(self, error: StorageError, number: int) -> None:
        """The process could not open its directory, and has ended."""
        self.failed_start = error
        args = {"how": "start-failed", "error": error.code, "detail": str(error)}
        done = self._emit(Kind.CRASH, (number,), args)
        self._end_process(done, is_silent=False)
        if self.disk is not None:
            self.disk.files.kill()
        self._tell_end("start-failed", done)

    def _end_process(self, number: int, *, is_silent: bool) -> None:
        process, self.process = self.process, None
        self.kept_work.clear()
        self.pauses.clear()
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

    def _tell_end(self, how: str, number: int) -> None:
        if self.kernel.observer is not None:
            self.kernel.observer.on_end(self.name, how, number)

    def tell(self, kind: Kind, cause: tuple[int, ...], args: dict[str, Any]) -> int:
        """Write an event of this host; returns its number."""
        return self._emit(kind, cause, args)

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

    # The clock ---------------------------------------------------------------------------------

    def reclock(self) -> None:
        """The clock was changed: timers are due at other times."""
        if self.process is not None:
            self.process.reclock()

    def set_drift(self) -> None:
        """``drifts`` has changed."""
        begun = self.kernel.config.clocks.get(self.name, ClockConfig())
        drifts = [(begun.wall_ppm, begun.mono_ppm), *self.drifts.values()]
        wall_ppm, mono_ppm = drifts[-1]
        self.clock.set_drift(self.kernel.timeline.now_us, wall_ppm=wall_ppm, mono_ppm=mono_ppm)
        self.reclock()

    def set_frozen(self) -> None:
        """``freezes`` has changed."""
        now_us = self.kernel.timeline.now_us
        self.clock.thaw(now_us)
        if self.freezes:
            self.clock.freeze(now_us, also_mono=any(self.freezes.values()))
        self.reclock()

    # Pausing -----------------------------------------------------------------------------------

    def pause(self, cause: tuple[int, ...] = (), *, by: str = "", **args: Any) -> int:
        """Handle nothing until ``resume``, or until what pauses it has ended. Returns the event."""
        assert self.process is not None
        self.pauses[by] = None
        self.process.is_paused = True
        number = self._emit(Kind.PAUSE, cause, args)
        self.show(number)
        if self.kernel.observer is not None:
            self.kernel.observer.on_struck("", (self.name,), number)
            self.kernel.observer.on_disturbed(self.name)
        return number

    def resume(self, cause: tuple[int, ...] = (), **args: Any) -> None:
        """Go on, whatever paused it; what came meanwhile is handled in the order in which it
        came.
        """
        assert self.process is not None
        process = self.process
        self.pauses.clear()
        process.is_paused = False
        if self.kernel.observer is not None:
            self.kernel.observer.on_disturbed(self.name)
        self.show(self._emit(Kind.RESUME, cause, args))
        process.go_on()

    def end_pause(self, by: str, cause: tuple[int, ...]) -> None:
        """One reason to pause is over; with the last of them the process goes on."""
        if by in self.pauses:
            del self.pauses[by]
            if not self.pauses:
                self.resume(cause)

    def _go_on(self, process: Process, failpoint: Failpoint, cause: int) -> None:
        """The end of a failpoint's pause."""
        if self.process is process:
            self.end_pause(failpoint.id, (cause,))

    # Crash loops ---------------------------------------------------------------------------------

    def begin_loop(self, loop: CrashLoopPlan, number: int) -> None:
        """End the process; further ones end while they recover (``sim.faults.CrashLoop``)."""
        self.loop, self.loop_at = loop, 0
        if loop.how == "power" and self.is_on:
            self.cut_power((number,), loop.image, fault=loop.fault)
        elif self.is_running:
            self.kill((number,), fault=loop.fault)
        else:
            self._end_process(number, is_silent=False)

    def end_loop(self, fault_id: str, number: int) -> None:
        """The process lives on, or is started if it waits for that."""
        if self.loop is None or self.loop.fault != fault_id:
            return
        self.loop = None
        self.require_disk().files.disarm_fuse(fault_id)
        if self.process is None:
            self.start((number,))

    def _arm_loop(self, loop: CrashLoopPlan) -> None:
        assert self.disk is not None
        if self.loop_at < len(loop.calls):
            self.disk.images[loop.fault] = loop.image
            is_kill = loop.how == "process"
            self.disk.files.arm_fuse(loop.calls[self.loop_at], kills=is_kill, fault=loop.fault)
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
            self.disk.images[failpoint.id] = failpoint.image
            self.disk.files.arm_fuse_at(
                call,
                suffix,
                failpoint.hit,
                kills=failpoint.action == "process",
                fault=failpoint.id,
            )
            return
        self.failpoints.add(failpoint)

    def remove_failpoint(self, failpoint: Failpoint) -> None:
        """Disarm a failpoint that has not struck; one that has is left alone."""
        if failpoint.is_disk_call:
            self.require_disk().files.disarm_fuse(failpoint.id)
        else:
            self.failpoints.remove(failpoint)

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
        reached = self._emit(Kind.FAILPOINT, self.cause_of(struck.id, number), args)
        timeline = self.kernel.timeline
        if struck.action == "yield":
            process.resume(lane, after_us + struck.duration_us, stop, reached)
            return
        # Behind all that the handler had put before the point, whatever the scheduler draws.
        at_us, origin = timeline.now_us + after_us + 1, f"out:{self.name}"
        process.resume(lane, after_us + 2, stop, reached)
        timeline.at(at_us, EventClass.DISK, origin, self._strike, process, struck, reached)

    def _strike(self, process: Process, failpoint: Failpoint, cause: int) -> None:
        if self.process is not process:
            return
        if failpoint.action == "pause":
            timeline = self.kernel.timeline
            self.pause((cause,), by=failpoint.id)
            at_us, origin = timeline.now_us + failpoint.duration_us, f"out:{self.name}"
            timeline.at(at_us, EventClass.FAULT, origin, self._go_on, process, failpoint, cause)
        elif failpoint.action == "power":
            self.cut_power((cause,), failpoint.image)
        else:
            self.kill((cause,))

    def hold_work(self, fault_id: str, kinds: frozenset[str]) -> None:
        """Background work of these kinds (all, if none is named) waits until it is let go."""
        self.held_work[fault_id] = kinds

    def let_work_go(self, fault_id: str, cause: int) -> None:
        """What waits for this fault alone begins now."""
        self.held_work.pop(fault_id, None)
        kept, self.kept_work = self.kept_work, []
        if self.process is not None:
            for partition, work, number in kept:
                self.process.work_due(partition, work, number, cause)

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
        if self.cpu_factors:
            for factor_ppm in self.cpu_factors.values():
                cost = cost * factor_ppm // 1_000_000
        return cost

    def background_us(self) -> int:
        """How long a piece of background work waits."""
        low, high = self.kernel.config.background_us
        self._works += 1
        return low if low == high else low + self._work.below(high - low + 1, self._works)

    def begin_jitter(self, fault_id: str, ppm: int) -> None:
        """Timers that are armed from now on are late by up to so many millionths of their wait."""
        stream = self.kernel.draws.stream("timer-jitter", self.name, fault_id)
        self.jitters[fault_id] = Jitter(ppm, stream)

    def lateness(self, wait_us: int) -> tuple[int, tuple[int, ...]]:
        """How much later than it should a timer is, and the events of the faults behind it.

        Every source of it draws from a stream of its own, so one less leaves the others alone.
        """
        late_us, causes = 0, []
        most = wait_us * self.clock.jitter_ppm // 1_000_000
        if most > 0:
            self._late_timers += 1
            late_us = self._jitter.below(most + 1, self._late_timers)
        for fault_id, jitter in self.jitters.items():
            jitter.count += 1
            by_us = jitter.stream.below(max(wait_us * jitter.ppm // 1_000_000, 0) + 1, jitter.count)
            late_us += by_us
            if by_us:
                causes.append(self.begun[fault_id])
        return late_us, tuple(causes)

    def _on_disk_call(self, operation: str, path: Path, position: int, size_bytes: int) -> None:
        if self.process is not None:
            self.process.on_disk_call(operation, path, position, size_bytes)
        if self.disk is not None:
            self.disk.note_call(operation)
        observer = self.kernel.observer
        if observer is not None:
            observer.on_disk_call(self.name, operation, path, position, size_bytes)

    def _on_strike(self, fault: DiskFault, operation: str, path: Path) -> None:
        self._tell_strike(Strike(fault.id, operation, str(path)))

    def _on_full(self, operation: str, path: Path) -> None:
        fault_id = self.require_disk().full_by()
        if fault_id is not None:
            self._tell_strike(Strike(fault_id, operation, str(path)))

    def _tell_strike(self, strike: Strike) -> None:
        """At its time inside a handler, or now where none runs: a response leaves, the kernel
        writes back.
        """
        meter = None if self.process is None else self.process.meter
        if meter is not None:
            meter.puts.append(strike)
            return
        begun = self.begun.get(strike.fault)
        kind, args = strike.event()
        self._emit(kind, () if begun is None else (begun,), args)

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
