"""One process on a host: a machine, its lanes and timers, and what its handlers leave behind.

Rules (DECISIONS 2.3):

* Every event goes to a lane. A lane does one thing at a time: its next event waits until CPU and
  disk time of the one before are spent. Other lanes go on, so a broker with a stalled disk keeps
  sending heartbeats (hazard B-46).
* A handler changes its machine at the moment at which it begins. What it sends leaves when the time
  that had been spent before it was put has passed.
* A power cut or a kill inside a handler discards what it put.
* When a process ends its object is dropped. Nothing runs on the way out, and what it had on the
  timeline does nothing any more.

Left out: hosts, which own disks and clocks and start processes (``sim.hosts``).
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import Any, NamedTuple

from attrs import define, field

from cluster.effects import (
    Arm,
    Background,
    Disarm,
    Disconnect,
    Effect,
    Fsync,
    Note,
    Reply,
    Send,
    Stopped,
    TimerKey,
    Yield,
)
from cluster.lanes import Lane, lane_of_message, lane_of_timer, lane_of_work
from cluster.machine import Machine
from cluster.message import Message
from cluster.names import Clock, TopicIdPartition
from sim.disk_core import PowerCut, ProcessKill
from sim.meter import DiskCall, Meter, Put, Strike
from sim.plain import plain_items
from sim.process_hosts import ProcessHost
from sim.timeline import EventClass, Token
from sim.trace.kinds import Kind, of_note
from storage.errors import StorageError
from storage.log_durability import FlushToken, Work
from storage.values import Copied

__all__ = ["Process"]

_NOT_HANDLED = 0


class Task(NamedTuple):
    """One call of a handler: what the trace says of it, and the call."""

    kind: Kind
    cause: tuple[int, ...]
    args: dict[str, Any]
    handler: str
    values: tuple[Any, ...]
    timer: _Armed | None = None


@define(eq=False)
class _Armed(Copied):
    """A timer: when it is due on which clock, which event armed it, how late it is and through the
    faults that began with which events, and its entry if it has one.
    """

    at_us: int
    clock: Clock
    cause: int
    late_us: int = 0
    late_by: tuple[int, ...] = ()
    token: Token | None = None


@define(eq=False)
class Process:
    """See the module.

    Attributes:
        incarnation: how many processes the host had before.
        is_alive: False once it has ended, however it did.
        is_paused: it handles and sends nothing; what comes waits in ``kept``, what would leave in
            ``held``.
        busy_until_us: by lane.
        left_us: with a single lane, when what was put last leaves.
        requests: the events at which each request that has no answer yet was handled, by sender
            and correlation id. Those of a connection that has ended are forgotten, also while they
            wait for their lane, and are not answered.
    """

    host: ProcessHost
    machine: Machine
    incarnation: int
    is_single_lane: bool
    is_alive: bool = True
    is_paused: bool = False
    kept: deque[tuple[Lane, Task]] = field(factory=deque)
    kept_lanes: list[Lane] = field(factory=list)
    held: list[tuple[int, list[Effect]]] = field(factory=list)
    meter: Meter | None = None
    busy_until_us: dict[Lane, int] = field(factory=dict)
    left_us: int = 0
    waiting: dict[Lane, deque[Task]] = field(factory=dict)
    woken: dict[Lane, bool] = field(factory=dict)
    timers: dict[TimerKey, _Armed] = field(factory=dict)
    requests: dict[tuple[str, int], list[int]] = field(factory=dict)

    # What happens to it ------------------------------------------------------------------------

    def start(self, cause: tuple[int, ...], args: dict[str, Any]) -> None:
        """Call ``on_start`` at once."""
        lane = Lane.REQUESTS if self.is_single_lane else Lane.METADATA
        self._run(lane, Task(Kind.START, cause, args, "on_start", ()))

    def stop(self, cause: tuple[int, ...]) -> None:
        """Begin a controlled shutdown."""
        self._enter(Lane.HEARTBEAT, Task(Kind.SHUTDOWN, cause, {}, "on_stop", ()))

    def deliver(self, src: str, message: Message, sent: int) -> None:
        """A message has arrived; ``sent`` is the event that put it under way."""
        name = type(message).__name__
        if name.endswith("Request"):
            key = src, message.correlation_id
            self.requests.setdefault(key, []).append(_NOT_HANDLED)
        args = {"from": src, "type": name, "id": message.correlation_id}
        task = Task(Kind.DELIVER, (sent,), args, "on_message", (src, message))
        self._enter(lane_of_message(message), task)

    def disconnected(self, peer: str, cause: int) -> None:
        """The connection to a node is gone."""
        self.requests = {key: at for key, at in self.requests.items() if key[0] != peer}
        causes = (cause,) if cause else ()
        task = Task(Kind.DISCONNECT, causes, {"peer": peer}, "on_disconnected", (peer,))
        # It waits for no lane: what a machine sends from here on goes on another connection, and it
        # must not hear afterwards that those requests were lost.
        if self.is_paused:
            self.kept.append((Lane.REQUESTS, task))
        elif self.is_alive:
            self._run(Lane.REQUESTS, task)

    def call(self, kind: Kind, args: dict[str, Any], cause: tuple[int, ...], *call: Any) -> Any:
        """What the user of a client asks of it: ``machine.METHOD(now, fx, *values)``, at once.

        Args:
            call: the method's name, its values, and a dict of named ones last.
        """
        return self._run(Lane.REQUESTS, Task(kind, cause, args, "", call))

    def reclock(self) -> None:
        """The host's clock was changed: every timer is due at another time."""
        for key, armed in self.timers.items():
            if armed.token is not None:
                self.host.kernel.timeline.cancel(armed.token)
            self._schedule(key, armed)

    def end(self) -> None:
        """The process is gone, with all that it had in memory."""
        self.is_alive = False
        for armed in self.timers.values():
            if armed.token is not None:
                self.host.kernel.timeline.cancel(armed.token)
        self.timers.clear()
        self.waiting.clear()
        self.kept.clear()
        self.held.clear()
        self.requests.clear()

    # Lanes -------------------------------------------------------------------------------------

    def _enter(self, lane: Lane, task: Task) -> None:
        """Call the handler now, or when the host goes on and the lane is free."""
        if not self.is_alive:
            return
        if self.is_single_lane:
            lane = Lane.REQUESTS
        if self.is_paused:
            self.kept.append((lane, task))
            return
        queue = self.waiting.get(lane)
        if not queue and self.busy_until_us.get(lane, 0) <= self.host.kernel.timeline.now_us:
            self._run(lane, task)
            return
        if queue is None:
            queue = self.waiting[lane] = deque()
        queue.append(task)
        self._wake(lane)

    def go_on(self) -> None:
        """The pause is over: what waited leaves, and what came is handled in its order."""
        self.is_paused = False
        held, self.held = self.held, []
        for number, effects in held:
            self._leave(number, effects)
        lanes, self.kept_lanes = self.kept_lanes, []
        for lane in lanes:
            self.drain(lane)
        while self.kept and not self.is_paused:
            self._enter(*self.kept.popleft())

    def _wake(self, lane: Lane) -> None:
        if self.woken.get(lane):
            return
        self.woken[lane] = True
        timeline, name = self.host.kernel.timeline, self.host.name
        at_us = self.busy_until_us.get(lane, 0)
        timeline.at(at_us, EventClass.DISK, f"lane:{name}", self.drain, lane)

    def drain(self, lane: Lane) -> None:
        """The lane is free for the oldest that waits, or the host goes on."""
        if not self.is_alive:
            return
        if self.is_paused:
            self.kept_lanes.append(lane)
            return
        self.woken[lane] = False
        queue = self.waiting[lane]
        if self.busy_until_us.get(lane, 0) <= self.host.kernel.timeline.now_us:
            self._run(lane, queue.popleft())
        if queue and self.is_alive:
            self._wake(lane)

    # Handlers ----------------------------------------------------------------------------------

    def _run(self, lane: Lane, task: Task) -> Any:
        """Call a handler, and carry out what it put."""
        if task.timer is not None:
            key = task.values[0]
            if self.timers.get(key) is not task.timer:
                return None
            del self.timers[key]
        host = self.host
        kernel = host.kernel
        now_us = kernel.timeline.now_us
        number = kernel.trace.emit(now_us, host.name, task.kind, task.cause, task.args)
        if task.kind is Kind.DELIVER:
            asked = self.requests.get((task.values[0], task.args["id"]))
            if asked is not None and _NOT_HANDLED in asked:
                asked[asked.index(_NOT_HANDLED)] = number
        meter = Meter(host.failpoints.yields, host.cpu_us())
        self.meter = meter
        result = None
        try:
            now = host.clock.now(now_us)
            if task.handler:
                getattr(self.machine, task.handler)(now, *task.values, meter)
            else:
                method, *values, named = task.values
                result = getattr(self.machine, method)(now, meter, *values, **named)
        except (PowerCut, ProcessKill) as end:
            self.meter = None
            self._emit_disk(number, meter)
            host.on_cut(end, number)
            return None
        except StorageError as error:
            self.meter = None
            if task.kind is not Kind.START:
                error.add_note(self._place(task, number))
                raise
            self._emit_disk(number, meter)
            host.on_failed_start(error, number)
            return None
        except Exception as error:
            error.add_note(self._place(task, number))
            raise
        self.meter = None
        puts = meter.close()
        busy_us = self.busy_until_us.get(lane, 0)
        self.busy_until_us[lane] = max(busy_us, now_us + meter.spent_us)
        if kernel.trace.wants_changes:
            host.show(number)
        self._carry_out(number, lane, meter.cpu_us, puts)
        if kernel.observer is not None:
            kernel.observer.on_handled(self, number, task, puts)
        if host.adapter is not None:
            host.adapter(self, number)
        return result

    def _place(self, task: Task, number: int) -> str:
        kernel = self.host.kernel
        return (
            f"in {task.handler or task.values[0]} of {self.host.name} at event {number}, "
            f"{kernel.timeline.now_us} us, seed {kernel.draws.seed}"
        )

    # What handlers put -------------------------------------------------------------------------

    def _carry_out(self, number: int, lane: Lane, after_us: int, puts: list[Put]) -> None:
        """``after_us``: how long after the handler began the first of them was put."""
        leaving: list[Effect] = []
        leaves_after_us = 0
        for effect in puts:
            match effect:  # the most frequent first
                case Arm():
                    self._arm(effect, number)
                case Disarm():
                    self._disarm(effect.key)
                case Note():
                    self._emit_note(number, effect)
                case DiskCall():
                    after_us = effect.spent_us
                    self._emit_call(number, effect)
                case Send() | Reply() | Disconnect() | Stopped():
                    if leaving and after_us != leaves_after_us:
                        self._let_leave(number, leaves_after_us, leaving)
                        leaving = []
                    leaves_after_us = after_us
                    leaving.append(effect)
                case Fsync():
                    self._begin_fsync(number, after_us, effect.token)
                case Background():
                    self._give_out(number, after_us, effect)
                case Strike():
                    self._emit(number, *effect.event())
                case Yield():
                    self._let_leave(number, leaves_after_us, leaving)
                    leaving = []
                    self.host.on_failpoint(lane, after_us, effect, number)
        if leaving:
            self._let_leave(number, leaves_after_us, leaving)

    def _let_leave(self, number: int, after_us: int, effects: list[Effect]) -> None:
        if effects:
            timeline = self.host.kernel.timeline
            at_us = timeline.now_us + after_us
            if self.is_single_lane:
                # A call waits for no lane, but what it sends does not overtake what was put before.
                at_us = self.left_us = max(at_us, self.left_us + 1)
            origin = f"out:{self.host.name}"
            timeline.at(at_us, EventClass.DISK, origin, self._leave, number, effects)

    def _leave(self, number: int, effects: list[Effect]) -> None:
        """What a handler put leaves the process, if it still lives."""
        network, name = self.host.kernel.network, self.host.name
        if self.is_paused:
            self.held.append((number, effects))
            return
        for effect in effects:
            if not self.is_alive:
                return
            match effect:
                case Send(to, message):
                    network.send(
                        name,
                        to,
                        message,
                        departs_us=self.host.kernel.timeline.now_us,
                        cause=(number,),
                    )
                case Reply(to, message):
                    asked = self._take_request(to, message)
                    if asked is None:
                        self._emit(number, Kind.DROP, _unanswerable(to, message))
                        continue
                    network.send(
                        name,
                        to,
                        message,
                        departs_us=self.host.kernel.timeline.now_us,
                        cause=(number,) if asked == number else (number, asked),
                    )
                case Disconnect(peer):
                    network.close(name, peer, (number,))
                case Stopped():
                    self.host.on_stopped(number)

    def _emit_note(self, number: int, note: Note) -> None:
        self._emit(number, *of_note(note.kind, plain_items(note.args)))

    def _emit_call(self, number: int, call: DiskCall) -> None:
        event = call.event()
        if event is not None:
            self._emit(number, *event)

    def _emit(self, number: int, kind: Kind, args: dict[str, Any]) -> None:
        kernel = self.host.kernel
        cause: tuple[int, ...] = (number,)
        if kind is Kind.DISK_ERROR:
            cause = self.host.cause_of(args["fault"], number)
        kernel.trace.emit(kernel.timeline.now_us, self.host.name, kind, cause, args)

    def _emit_disk(self, number: int, meter: Meter) -> None:
        """A handler that never came to its end has changed the disk all the same."""
        for kind, args in meter.disk_events():
            self._emit(number, kind, args)

    # Timers ------------------------------------------------------------------------------------

    def _arm(self, effect: Arm, number: int) -> None:
        key = effect.key
        if key in self.timers:
            self._disarm(key)
        armed = self.timers[key] = _Armed(effect.at_us, effect.clock, number)
        host = self.host
        if host.clock.jitter_ppm or host.jitters:
            # Drawn once, whatever happens to the clock: a fault must not move the draws of others.
            now = host.clock.now(host.kernel.timeline.now_us)
            shown_us = now.mono_us if effect.clock == "mono" else now.wall_us
            armed.late_us, armed.late_by = host.lateness(effect.at_us - shown_us)
        self._schedule(key, armed)

    def _schedule(self, key: TimerKey, armed: _Armed) -> None:
        """Enter a timer for when its clock will have reached it; a clock that stands never does."""
        host, timeline = self.host, self.host.kernel.timeline
        due_us = host.clock.due(armed.clock, armed.at_us, timeline.now_us)
        armed.token = None
        if due_us is not None:
            due_us += armed.late_us
            armed.token = timeline.at(
                due_us, EventClass.TIMER, f"timer:{host.name}", self._due, key, armed
            )

    def _disarm(self, key: TimerKey) -> None:
        armed = self.timers.pop(key, None)
        if armed is not None and armed.token is not None:
            self.host.kernel.timeline.cancel(armed.token)

    def _due(self, key: TimerKey, armed: _Armed) -> None:
        armed.token = None
        args = {"key": "/".join(map(str, key)), "clock": armed.clock}
        cause = (armed.cause, *armed.late_by)
        task = Task(Kind.TIMER, cause, args, "on_timer", (key,), armed)
        self._enter(lane_of_timer(key), task)

    # The disk ----------------------------------------------------------------------------------

    def _take_request(self, to: str, message: Message) -> int | None:
        """The event of the request that a message answers; None if its connection has ended."""
        key = to, message.correlation_id
        asked = self.requests.get(key)
        if asked is None:
            return None
        if len(asked) == 1:
            del self.requests[key]
        return asked.pop(0)

    def on_disk_call(self, operation: str, path: Path, position: int, size_bytes: int) -> None:
        """The disk has done a call for a handler: it costs time, and may have changed something."""
        meter, disk = self.meter, self.host.disk
        if meter is None or disk is None:
            return
        begin_us = self.host.kernel.timeline.now_us + meter.spent_us
        cost_us = disk.queue.cost_us(operation, size_bytes, begin_us)
        meter.note_call(operation, path, position, size_bytes, cost_us)

    def _begin_fsync(self, number: int, after_us: int, token: FlushToken) -> None:
        host, timeline = self.host, self.host.kernel.timeline
        assert host.disk is not None
        done_us = host.disk.queue.fsync_done_us(timeline.now_us + after_us)
        origin = f"disk:{host.name}"
        timeline.at(done_us, EventClass.DISK, origin, self._synced, token, number)

    def _synced(self, token: FlushToken, number: int) -> None:
        """The device is done with a flush, unless it was stalled meanwhile."""
        host, timeline = self.host, self.host.kernel.timeline
        assert host.disk is not None
        done_us = host.disk.queue.stalled_until_us(timeline.now_us)
        if done_us > timeline.now_us:
            origin = f"disk:{host.name}"
            timeline.at(done_us, EventClass.DISK, origin, self._synced, token, number)
            return
        task = Task(Kind.SYNCED, (number,), {}, "on_synced", (token,))
        self._enter(Lane.REQUESTS, task)

    def _give_out(self, number: int, after_us: int, effect: Background) -> None:
        host, timeline = self.host, self.host.kernel.timeline
        at_us = timeline.now_us + after_us + host.background_us()
        origin = f"work:{host.name}"
        timeline.at(
            at_us, EventClass.DISK, origin, self.work_due, effect.partition, effect.work, number
        )

    def work_due(
        self, partition: TopicIdPartition | None, work: Work, number: int, *causes: int
    ) -> None:
        """Background work of event ``number`` begins, unless a fault holds it back."""
        if not self.is_alive or self.host.holds_back(partition, work, number):
            return
        args = {"work": work.kind, "partition": None if partition is None else str(partition)}
        cause = (number, *causes)
        task = Task(Kind.BACKGROUND, cause, args, "on_background", (partition, work))
        self._enter(lane_of_work(work), task)

    # Failpoints --------------------------------------------------------------------------------

    def resume(self, lane: Lane, after_us: int, stop: Yield, number: int) -> None:
        """Go on behind a failpoint; until then the lane is taken."""
        timeline = self.host.kernel.timeline
        self.busy_until_us[lane] = timeline.now_us + after_us
        args = {"point": stop.point}
        task = Task(Kind.RESUME, (number,), args, "on_resume", (stop.point, stop.args))
        queue = self.waiting.setdefault(lane, deque())
        queue.appendleft(task)
        self._wake(lane)


def _unanswerable(to: str, message: Message) -> dict[str, Any]:
    """What the trace says of an answer to nobody: the connection that asked is gone."""
    return {
        "to": to,
        "type": type(message).__name__,
        "id": message.correlation_id,
        "why": "closed",
    }
