"""The smallest world that the baton can run scripts in: a timeline, and a log of what happened."""

from __future__ import annotations

from collections.abc import Callable

from sim.schedulers import Scheduler
from sim.timeline import EventClass, Timeline

__all__ = ["FakeWorld"]


class FakeWorld:
    """Entries are done as they are popped.

    Attributes:
        log: (time, what) in the order in which it happened.
        steps: how many entries were done.
        watchers: called after each entry.
    """

    def __init__(self, scheduler: Scheduler | None = None) -> None:
        self.timeline = Timeline(scheduler)
        self.log: list[tuple[int, str]] = []
        self.steps = 0
        self.watchers: list[Callable[[], object]] = []

    @property
    def now_us(self) -> int:
        return self.timeline.now_us

    def step(self) -> bool:
        if not len(self.timeline):
            return False
        call, args = self.timeline.pop()
        self.steps += 1
        call(*args)
        for watcher in self.watchers:
            watcher()
        return True

    def next_us(self) -> int | None:
        return self.timeline.next_us()

    def note(self, what: object) -> None:
        self.log.append((self.now_us, str(what)))

    def later(self, at_us: int, what: str, event_class: EventClass = EventClass.DELIVERY) -> None:
        """Something of the world itself happens at a time, and is noted."""
        self.timeline.at(at_us, event_class, "world", self.note, what)

    def tick(self, every_us: int, times: int) -> None:
        """An entry that enters itself again, so many times."""
        if times:
            at_us = self.now_us + every_us
            self.timeline.at(at_us, EventClass.TIMER, "tick", self.tick, every_us, times - 1)
