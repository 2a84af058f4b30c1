"""The world: brokers, controller, clients and operator on hosts, in virtual time.

A world does nothing on its own account: ``step`` does the next entry of the timeline, and whoever
drives it decides what is to happen when. The same configuration, seed and calls give the same
events and the same digest, on real files or in memory, at every trace level.

A world can be copied at any moment between two entries, unless its files are real or scripts are
under way in it.

Left out: what users do in the words of their trade (``sim.verbs``), scripts (``sim.scripts``).
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from attrs import evolve

from cluster.config import BrokerConfig, ConsumerConfig, ProducerConfig
from cluster.consumer import Consumer
from cluster.machine import Machine
from cluster.message import Message
from cluster.names import ADMIN, CONTROLLER
from cluster.producer import Producer
from sim.clients import ClientFactory, ConsumerNotes, ProducerNotes
from sim.clocks import HostClock
from sim.cluster_config import ClockConfig, ClusterConfig
from sim.disk_copies import DiskCopy
from sim.disk_core import PowerCut, ProcessKill
from sim.disk_speed import DiskQueue
from sim.disks import SimDisk
from sim.draws import Draws
from sim.failpoints import ENDS, IMAGES, Failpoint
from sim.faults import Fault
from sim.host_disks import HostDisk
from sim.hosts import Host
from sim.kernel import Kernel
from sim.metadata_lags import MetadataLags
from sim.network import Network
from sim.operators import Operator
from sim.range_reads import with_bytes
from sim.real_files import RealFiles
from sim.schedulers import Scheduler
from sim.state_keys import state_key
from sim.timeline import EventClass, Timeline
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.views import View
from sim.world_errors import WorldError
from storage.disk import Disk, FileKind, OsDisk
from storage.errors import InvalidConfig
from storage.memdisk import MemDisk

__all__ = ["World", "WorldError"]


class World:
    """See the module.

    Attributes:
        config, seed: as given.
        hosts: by name.
        timeline, draws, trace, network: what the hosts share.
        watchers: called with the world behind each entry of the timeline.
        producers, consumers: what their hosts have told so far.
        faults: all that are known, by id; ``active_faults`` has the events at which those that are
            active began.
        broker_configs: of those brokers that have one of their own.
    """

    def __init__(
        self,
        config: ClusterConfig | None = None,
        *,
        seed: int = 0,
        scheduler: Scheduler | None = None,
        root: Path | None = None,
        trace: Trace | None = None,
    ) -> None:
        """Every node is started at time 0; nothing has happened before the first ``step``.

        Args:
            seed: 0 to 2^64-1.
            root: an empty folder for the brokers' directories; in memory by default.
            trace: by default one that keeps a digest only.

        Raises:
            WorldError: ``root`` is no folder, or has something in it.
        """
        if root is not None:
            _require_empty(root)
        self.config = config = config or ClusterConfig()
        self.seed = seed
        self.draws = Draws(seed)
        self.timeline = Timeline(scheduler)
        self.trace = trace or Trace()
        self.kernel = Kernel(config, self.timeline, self.draws, self.trace)
        self.network = Network(self.timeline, self.draws, self.trace, self, config.network)
        self.kernel.network = self.network
        self.root = root
        self.hosts: dict[str, Host] = {}
        self._late_metadata = self.kernel.metadata = MetadataLags(self.hosts)
        self.watchers: list[Callable[[World], None]] = []
        self.producers: dict[str, ProducerNotes] = {}
        self.consumers: dict[str, ConsumerNotes] = {}
        self.disk_copies: dict[str, DiskCopy] = {}
        self.faults: dict[str, Fault] = {}
        self.active_faults: dict[str, int] = {}
        self.broker_configs: dict[str, BrokerConfig] = {}
        for name in (CONTROLLER, *config.names):
            self._add_host(name, self._build_server, has_disk=True)
        self.hosts[CONTROLLER].adapter = self._on_controller
        self._add_host(ADMIN, self._build_operator, has_disk=False)
        for name in (CONTROLLER, *config.names, ADMIN):
            self.timeline.at(0, EventClass.FAULT, f"start:{name}", self.hosts[name].start)

    # Hosts -------------------------------------------------------------------------------------

    def _add_host(self, name: str, build: Callable[[Host], Machine], *, has_disk: bool) -> Host:
        clock = self.config.clocks.get(name, ClockConfig())
        host = self.hosts[name] = Host(
            name=name,
            kernel=self.kernel,
            build=build,
            clock=HostClock(
                offset_us=clock.offset_us,
                wall_ppm=clock.wall_ppm,
                mono_ppm=clock.mono_ppm,
                jitter_ppm=clock.jitter_ppm,
                timer_clock=self.config.timer_clock,
            ),
            is_single_lane=name not in self.config.names,
            disk=self._new_disk(name) if has_disk else None,
        )
        return host

    def _new_disk(self, name: str) -> HostDisk:
        backing: Disk = MemDisk() if self.root is None else RealFiles()
        disk = self.config.disk
        files = SimDisk(
            backing,
            (self.root or Path("/")) / name,
            self.draws,
            name=name,
            names_mode=disk.names_mode,
            auto_da_alloc=disk.auto_da_alloc,
            capacity_bytes=disk.capacity_bytes,
        )
        return HostDisk(self.kernel, name, files, DiskQueue(disk.speed, self.draws, name))

    def _build_server(self, host: Host) -> Machine:
        config = self.config
        assert host.disk is not None
        if host.name == CONTROLLER:
            return config.make_controller(
                host.name,
                config.controller,
                host.disk.files,
                Path("/"),
                guards=config.guards,
                incarnation=host.starts,
                default_topic_config=config.topic,
            )
        return config.make_broker(
            host.name,
            self.broker_configs.get(host.name, config.broker),
            host.disk.files,
            Path("/"),
            guards=config.guards,
            incarnation=host.starts,
            controller=CONTROLLER,
        )

    def _build_operator(self, host: Host) -> Machine:
        return Operator(host.starts)

    def host(self, name: str) -> Host:
        """A host by name.

        Raises:
            WorldError: there is none of that name.
        """
        if name not in self.hosts:
            raise WorldError(f"node is {name!r}, there are {', '.join(self.hosts)}")
        return self.hosts[name]

    # Time --------------------------------------------------------------------------------------

    @property
    def now_us(self) -> int:
        """Virtual time in microseconds."""
        return self.timeline.now_us

    def next_us(self) -> int | None:
        """When the next entry of the timeline is due; None if there is none."""
        return self.timeline.next_us()

    def step(self) -> bool:
        """Do the next entry of the timeline; False if there is none."""
        try:
            call, values = self.timeline.pop()
        except IndexError:
            return False
        call(*values)
        for watch in self.watchers:
            watch(self)
        return True

    def run_until(self, at_us: int) -> None:
        """Do everything that is due up to a time, that included, and go there.

        Raises:
            WorldError: it is no integer.
        """
        # A float would spread from here into every time of the world.
        if at_us.__class__ is not int:
            raise WorldError(f"at_us is {at_us!r}, allowed is an integer")
        while (due_us := self.timeline.next_us()) is not None and due_us <= at_us:
            self.step()
        self.timeline.advance(at_us)

    def run_for(self, duration_us: int) -> None:
        """``run_until`` so much later than now."""
        self.run_until(self.now_us + duration_us)

    def run_until_true(self, holds: Callable[[], bool], within_us: int) -> bool:
        """Go on until a condition holds behind an entry, at most so long; whether it did."""
        if within_us.__class__ is not int:
            raise WorldError(f"within_us is {within_us!r}, allowed is an integer")
        end_us = self.now_us + within_us
        while not holds():
            due_us = self.timeline.next_us()
            if due_us is None or due_us > end_us:
                self.timeline.advance(end_us)
                return holds()
            self.step()
        return True

    # Processes ---------------------------------------------------------------------------------

    def crash(
        self,
        name: str,
        how: str = "process",
        *,
        image: str = "lost",
        cause: tuple[int, ...] = (),
        **args: Any,
    ) -> int:
        """End a process without warning. Returns the event.

        Args:
            how: ``process`` keeps the page cache, ``power`` takes what the image says.
            image: of the disk behind a power loss: ``lost``, ``kept``, ``drawn`` or a crash mode.
            args: for the trace, as the fault's id.

        Raises:
            WorldError: no process runs there (a power loss may strike a host that is only down),
                it is the operator, or a word is none.
        """
        host = self._struck(name)
        if how not in ENDS:
            raise WorldError(f"how is {how!r}, allowed are {', '.join(ENDS)}")
        if image not in IMAGES:
            raise WorldError(f"image is {image!r}, allowed are {', '.join(IMAGES)}")
        if how == "power":
            if not host.is_on:
                raise WorldError(f"{name} is off already")
            return host.cut_power(cause, image, **args)
        if not host.is_running:
            raise WorldError(f"{name} is {host.status}: no process runs there")
        return host.kill(cause, **args)

    def start(
        self, name: str, *, disk: str = "same", cause: tuple[int, ...] = (), **args: Any
    ) -> None:
        """Start a process where none runs.

        Args:
            disk: ``same``, ``wiped``, or the name of a copy that ``copy_disk`` made.

        Raises:
            WorldError: a process runs there, or the disk has no such copy.
        """
        host = self.host(name)
        if host.is_running:
            raise WorldError(f"{name} is {host.status} already")
        if disk != "same":
            self._replace_disk(host, disk)
            args = {"disk": disk, **args}
        host.start(cause, **args)

    def _replace_disk(self, host: Host, disk: str) -> None:
        if host.disk is None:
            raise WorldError(f"{host.name} has no disk, so it cannot be {disk!r}")
        if disk == "wiped":
            DiskCopy().put(host.disk.files)
        elif disk in self.disk_copies:
            self.disk_copies[disk].put(host.disk.files)
        else:
            known = ", ".join(("same", "wiped", *self.disk_copies))
            raise WorldError(f"disk is {disk!r}, allowed are {known}")
        if self.kernel.observer is not None:
            self.kernel.observer.on_disk_replaced(host.name)

    def copy_disk(self, name: str, copy_name: str) -> None:
        """Keep a host's files as they are, for a later ``start`` of the same or another host.

        Raises:
            WorldError: the host has no disk, or the copy's name means something else.
        """
        host = self.host(name)
        if host.disk is None:
            raise WorldError(f"{name} has no disk")
        if copy_name in ("", "same", "wiped"):
            raise WorldError(f"copy is {copy_name!r}, allowed is a name other than same, wiped")
        self.disk_copies[copy_name] = DiskCopy.take(host.disk.files)

    def configure_broker(self, name: str, values: Mapping[str, Any]) -> None:
        """Change what one broker is configured by, from its next start on.

        Args:
            values: by the names of ``BrokerConfig``.

        Raises:
            WorldError: it is no broker, or the values cannot be.
        """
        if name not in self.config.names:
            raise WorldError(f"broker is {name!r}, allowed are {', '.join(self.config.names)}")
        try:
            changed = evolve(self.broker_configs.get(name, self.config.broker), **values)
        except (InvalidConfig, TypeError) as error:
            raise WorldError(f"{name} cannot be configured so: {error}") from error
        self.broker_configs[name] = changed

    def shutdown(self, name: str, cause: tuple[int, ...] = ()) -> None:
        """Ask a process to stop in order; it is gone when its machine is done."""
        self._struck(name)
        self._running(name).stop(cause)

    def pause(self, name: str, cause: tuple[int, ...] = (), **args: Any) -> int:
        """A process handles nothing until ``resume``. Returns the event."""
        self._struck(name)
        host = self._running(name)
        if host.is_paused:
            raise WorldError(f"{name} is paused already")
        return host.pause(cause, **args)

    def resume(self, name: str, cause: tuple[int, ...] = (), **args: Any) -> None:
        """A paused process goes on."""
        host = self.host(name)
        if not host.is_paused:
            raise WorldError(f"{name} is {host.status}, not paused")
        host.resume(cause, **args)

    def _struck(self, name: str) -> Host:
        if name == ADMIN:
            raise WorldError(f"{ADMIN} is the operator, whom nothing strikes")
        return self.host(name)

    def _running(self, name: str) -> Host:
        host = self.host(name)
        if host.process is None:
            raise WorldError(f"{name} is {host.status}: no process runs there")
        return host

    def add_failpoint(self, name: str, failpoint: Failpoint, cause: tuple[int, ...] = ()) -> None:
        """Arm a failpoint of a host; what it does cites the last event of ``cause``.

        Raises:
            ValueError: the host cannot reach it.
        """
        host = self.host(name)
        host.add_failpoint(failpoint)
        if cause:
            host.begun[failpoint.id] = cause[-1]

    # What the network asks ---------------------------------------------------------------------

    def incarnation(self, node: str) -> int:
        """Of the running process; -1 where none runs."""
        process = self.hosts[node].process
        return -1 if process is None else process.incarnation

    def is_powered(self, node: str) -> bool:
        """Whether a host has power, with or without a process."""
        return self.hosts[node].is_on

    def left_before_death(self, node: str, incarnation: int, departs_us: int) -> bool:
        """Processes of this world hand over messages only as they leave."""
        return True

    def transmit(self, node: str, message: Message) -> Message | None:
        """Fill the references of a fetch response with bytes as they are now (DECISIONS 2.5)."""
        host = self.hosts[node]
        if host.process is None:
            return None
        try:
            return with_bytes(host.process.machine, message)
        except (PowerCut, ProcessKill) as end:
            host.on_cut(end, self.trace.count)
            return None

    def receive(self, node: str, src: str, message: Message, sent: int) -> None:
        """Hand a message to the process that runs there."""
        process = self.hosts[node].process
        if process is None:
            return
        if self._late_metadata.lags and self._late_metadata.take(node, src, message, sent):
            return
        process.deliver(src, message, sent)

    def _on_controller(self, process: Any, number: int) -> None:
        """Behind each handler of the controller."""
        self._late_metadata.on_committed()

    def disconnected(self, node: str, peer: str, cause: int) -> None:
        """Tell a process that a connection is gone."""
        process = self.hosts[node].process
        if process is not None:
            process.disconnected(peer, cause)

    # Clients -----------------------------------------------------------------------------------

    def add_producer(self, name: str, config: ProducerConfig | None = None) -> Host:
        """Start a producer.

        Raises:
            WorldError: a node has that name.
        """
        config = config or ProducerConfig()
        notes = ProducerNotes(config)
        host = self._add_client(name, ClientFactory(self.config, Producer, config))
        self.producers[name], host.adapter = notes, notes.take
        host.start()
        return host

    def add_consumer(self, name: str, config: ConsumerConfig | None = None) -> Host:
        """Start a consumer.

        Raises:
            WorldError: a node has that name.
        """
        config = config or ConsumerConfig()
        notes = ConsumerNotes(config)
        host = self._add_client(name, ClientFactory(self.config, Consumer, config))
        self.consumers[name], host.adapter = notes, notes.take
        host.start()
        return host

    def _add_client(self, name: str, factory: ClientFactory) -> Host:
        if not name or name in self.hosts:
            taken = ", ".join(self.hosts)
            raise WorldError(f"client is {name!r}, allowed is a name other than {taken}")
        self.network.add_client(name)
        return self._add_host(name, factory.build, has_disk=False)

    def call(
        self,
        name: str,
        kind: Kind,
        args: dict[str, Any],
        method: str,
        *values: Any,
        cause: tuple[int, ...] = (),
        **named: Any,
    ) -> Any:
        """What the user of a client asks of it, now: ``machine.METHOD(now, fx, ...)``.

        Args:
            kind, args: of the event that the trace has of it.
        """
        process = self._running(name).process
        assert process is not None
        return process.call(kind, args, cause, method, *values, named)

    # Looking at it, and copying it -------------------------------------------------------------

    def view(self) -> View:
        """The cluster as it is, read from logs and images."""
        return View(self.hosts)

    def state_key(self) -> str:
        """Names the state: two worlds with one key go on alike, given the same calls.

        It covers everything that decides what happens next: machines, files and what a power loss
        could make of them, clocks, connections, the timeline. Event numbers are not part of it.

        Raises:
            ValueError: a script waits in it.
            Misuse: scripts are under way, as for ``copy``.
        """
        if self.timeline.driver is not None:
            self.timeline.driver.check_alone()
        return state_key(self)

    def copy(self) -> World:
        """An independent world in the same state; its trace goes on without a file.

        A script may copy its world, and step the copy, while no other script is under way.

        Raises:
            WorldError: its files are real.
            Misuse: scripts are under way.
        """
        if self.root is not None:
            raise WorldError(
                f"the files of this world are real ({self.root}), and cannot be copied with it: "
                "without a root it runs in memory, and gives the same digest"
            )
        self.timeline.sweep()
        return copy.deepcopy(self)


def _require_empty(root: Path) -> None:
    disk = OsDisk()
    if disk.stat(root).kind is not FileKind.DIRECTORY:
        raise WorldError(f"root is {root}, allowed is a folder that is there")
    if found := disk.listdir(root):
        raise WorldError(f"root is {root}, which has {found[0]!r}; allowed is an empty folder")
