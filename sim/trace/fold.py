"""The state at any event: reversible changes, folded forward and back.

The state maps a path (``b1/orders-0/leo``) to a plain value. A change is (path, old, new), and None
is "absent": a path whose value becomes None is gone. Going forward demands that the old value is
there, going back that the new one is, so a trace that contradicts itself is found at the event
where it does.

Left out: what the values mean.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from sim.trace.lines import Change, Event, encode

__all__ = ["Fold", "FoldError"]


class FoldError(Exception):
    """A change does not fit the state; the text names event, path, value seen and value needed.

    Attributes:
        n: number of the event.
        path: of the change.
    """

    def __init__(self, n: int, path: str, what: str) -> None:
        super().__init__(f"event {n}: {encode(path)} {what}")
        self.n = n
        self.path = path


class Fold:
    """The state behind event ``n``.

    Attributes:
        n: number of the event applied last; 0 at the beginning, where the state is empty.
        state: value by path; for reading.
    """

    __slots__ = ("n", "state")

    def __init__(self) -> None:
        self.n = 0
        self.state: dict[str, Any] = {}

    def forward(self, event: Event) -> None:
        """Apply the next event; where it does not fit, the state stays as it was.

        Raises:
            FoldError: a path does not have the old value.
            ValueError: it is not the next event.
        """
        if event.n != self.n + 1:
            raise ValueError(f"event {event.n}, the next one is {self.n + 1}")
        self._apply(event.n, event.changes)
        self.n += 1

    def back(self, event: Event) -> None:
        """Take the last event back; where it does not fit, the state stays as it was.

        Raises:
            FoldError: a path does not have the new value.
            ValueError: it is not the event applied last.
        """
        if event.n != self.n:
            raise ValueError(f"event {event.n}, the one applied last is {self.n}")
        self._apply(event.n, _reversed(event.changes))
        self.n -= 1

    def go(self, n: int, events: Sequence[Event]) -> None:
        """Go forward or back to event ``n``; ``events`` are all of the trace, from the first."""
        if not 0 <= n <= len(events):
            raise ValueError(f"event {n}, allowed is 0..{len(events)}")
        while self.n < n:
            self.forward(events[self.n])
        while self.n > n:
            self.back(events[self.n - 1])

    def _apply(self, n: int, changes: Iterable[Change]) -> None:
        done: list[Change] = []
        for change in changes:
            path, old, new = change
            seen = self.state.get(path)
            if not _is_same(seen, old):
                for path_done, old_done, _ in reversed(done):
                    self._put(path_done, old_done)
                raise FoldError(n, path, f"is {_shown(seen)}, the change needs {_shown(old)}")
            self._put(path, new)
            done.append(change)

    def _put(self, path: str, value: object) -> None:
        if value is None:
            self.state.pop(path, None)
        else:
            self.state[path] = value


def _reversed(changes: Sequence[Change]) -> Iterable[Change]:
    return ((path, new, old) for path, old, new in reversed(changes))


def _is_same(one: object, other: object) -> bool:
    """As JSON: 1 is not true, and a tuple is a list."""
    if type(one) is type(other) and isinstance(one, int | str | None):
        return one == other
    return encode(one) == encode(other)


def _shown(value: object) -> str:
    return "absent" if value is None else encode(value)[:200]
