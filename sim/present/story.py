"""One pass over a trace: what happened, kept so that every face can ask.

Level ``events`` is enough. From a trace of level ``full`` more is known that has no events of its
own: high watermarks and log starts of followers, and what the controller holds true.

A copy of a record is known by its offset and its leader epoch. What a follower copied has the
epochs of the log that it copied from. What a power loss took is read from the bytes that the trace
says are gone, and corrected by what the next start finds.

Left out: judgement; sentences (``sim.present.timeline``, ``chains``).
"""

from __future__ import annotations

from collections.abc import Iterable

from sim.present.reading import Reading
from sim.present.story_data import Happening, StoryData
from sim.trace.lines import Event, Footer, Header

__all__ = ["Happening", "Story"]


class Story(StoryData):
    """See the module.

    Args:
        header: None where there is none; then nodes are known as they appear.
        events: all of a trace, from the first on; read once.
        footer: None where the trace was cut short.
    """

    def __init__(
        self, header: Header | None, events: Iterable[Event], footer: Footer | None = None
    ) -> None:
        super().__init__(header, footer)
        reading = Reading(self)
        for event in events:
            reading.take(event)
        reading.finish()
