"""What all hosts of one world share.

Left out: the hosts (``sim.hosts``) and how they are put together (``sim.world``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from attrs import define, field

from sim.cluster_config import ClusterConfig
from sim.draws import Draws
from sim.network import Network
from sim.timeline import Timeline
from sim.trace.writer import Trace

__all__ = ["ClientRecorder", "Kernel", "LateMetadata", "Observer"]


class Observer(Protocol):
    """Who looks on while a world runs, and changes nothing in it (``sim.checks``)."""

    def on_handled(self, process: Any, number: int, task: Any, effects: Sequence[Any]) -> None:
        """A handler, whose event is ``number``, has run, and its events are written."""

    def on_disk_call(
        self, node: str, operation: str, path: Path, position: int, size_bytes: int
    ) -> None:
        """A call of a disk took effect (``DiskCore.report``)."""

    def before_power_cut(self, node: str) -> None:
        """The power is about to go; what is durable can still be asked for."""

    def on_end(self, node: str, how: str, number: int) -> None:
        """A process has ended: ``process``, ``power``, ``stop`` or ``start-failed``."""

    def on_disk_replaced(self, node: str) -> None:
        """A host has other files: none, or an older copy."""

    def on_damaged(self, node: str) -> None:
        """Bytes of a host's disk were changed behind its process's back."""

    def on_disturbed(self, node: str) -> None:
        """A process was paused or goes on, a fault begins or ends; ``world`` stands for links."""

    def on_struck(self, fault_id: str, nodes: Sequence[str], number: int) -> None:
        """A fault of these nodes, or of their links, begins; ``*`` stands for all.

        A pause has no id.
        """

    def on_outcome(self, node: str, outcome: Any, acks: int, number: int) -> None:
        """A producer knows what became of a record; ``number`` is the event that says so."""

    def on_polled(self, node: str, record: Any, number: int) -> None:
        """A consumer has handed a record to its user."""

    def on_position(self, node: str, event: Any, number: int) -> None:
        """A consumer has told its user of anything else."""


class ClientRecorder(Protocol):
    """Who takes down what clients ask and are told (``sim.histories``).

    ``session`` counts the client's earlier starts.
    """

    def on_invoked(
        self,
        node: str,
        session: int,
        operation: int,
        place: tuple[str, int | None],
        record: Any,
        config: Any,
        *,
        event: int,
        t_us: int,
    ) -> None:
        """A record was given to a producer, which may have told its outcome by now."""

    def on_outcome(self, node: str, session: int, outcome: Any, *, event: int, t_us: int) -> None:
        """A producer knows what became of a record."""

    def on_polled(
        self, node: str, session: int, poll: int, record: Any, *, event: int, t_us: int
    ) -> None:
        """A consumer has handed a record to its user, in the poll of that number."""

    def on_told(
        self, node: str, session: int, told: Any, group: str | None, *, event: int, t_us: int
    ) -> None:
        """A consumer has told its user of anything else."""

    def on_asked(
        self,
        node: str,
        session: int,
        place: tuple[str, int],
        offset: int | None,
        *,
        event: int,
        t_us: int,
    ) -> None:
        """A consumer is about to be assigned a partition, or, with an offset, to seek there."""


class LateMetadata(Protocol):
    """What makes brokers hear of metadata late (``sim.metadata_lags``)."""

    def begin(self, node: str, fault_id: str, records: int | None) -> None:
        """A broker hears of metadata so many records late, or of none (None)."""

    def end(self, node: str, fault_id: str, number: int) -> None:
        """That is over, with event ``number``."""


@define(eq=False)
class Kernel:
    """Time, chance, the trace, the network, late metadata and the configuration of one world.

    Attributes:
        observer: who looks on; None for nobody. It is no part of the world's state.
        recorder: who takes down what clients see; the same holds.
    """

    config: ClusterConfig
    timeline: Timeline
    draws: Draws
    trace: Trace
    network: Network = field(init=False)
    metadata: LateMetadata = field(init=False)
    observer: Observer | None = None
    recorder: ClientRecorder | None = None
