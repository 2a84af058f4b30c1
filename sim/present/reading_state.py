"""What a pass over a trace knows besides the story: what later events need to be understood.

Left out: reading events (``sim.present.reading`` and the modules that it names).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sim.present.args import text
from sim.present.history import How, Replica
from sim.present.logs import Logs
from sim.present.story_data import Happening, StoryData
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["Reader", "ReadingState"]


class ReadingState:
    """A pass under way.

    Attributes:
        story: what has been read so far.
        logs: changes the replicas' logs.
        values: of records, by the event with which they were sent.
        asked: who asked last for which ISR of a partition, and on what kind of event.
        crashes: with which event each node ended last, and how.
        images: with which event a node began on an older disk that it still has.
        unseen: partitions of which a node had records, until it has opened their logs again.
        told_isrs: which ISR events have told of last, by partition.
        deleted: replicas that were deleted, by node and partition, until they take a role again.
        ruled: partitions of which a controller's fields say who leads, and who is in the ISR.
        shortened: log files that were cut, by node and partition, until an event says why.
    """

    def __init__(self, story: StoryData) -> None:
        self.story = story
        self.logs = Logs(story.bytes)
        self.values: dict[int, Any] = {}
        self.asked: dict[str, tuple[str, tuple[str, ...], Kind]] = {}
        self.crashes: dict[str, tuple[int, str]] = {}
        self.images: dict[str, int] = {}
        self.unseen: dict[str, set[str]] = {}
        self.told_isrs: dict[str, tuple[str, ...]] = {}
        self.deleted: set[tuple[str, str]] = set()
        self.ruled: set[str] = set()
        self.shortened: dict[tuple[str, str], Event] = {}

    def tell(
        self, n: int, what: str, node: str, partition: str | None = None, data: Any = None
    ) -> None:
        """Keep something for the time line."""
        self.story.happenings.append(Happening(n, what, node, partition, data))

    def replica_of(self, event: Event) -> Replica | None:
        """The copy that an event is about."""
        name = text(event.args, "partition")
        return None if name is None else self.story.replica(event.node, name)

    def what_took(self, node: str) -> tuple[How, int]:
        """What takes records from a node that it has no more when it starts, and the event."""
        if node in self.images:
            return How.OLDER, self.images[node]
        ended, how = self.crashes.get(node, (0, ""))
        return (How.POWER if how == "power" else How.TORN), ended


Reader = Callable[[ReadingState, Event], None]
