"""Where the time of a call goes: functions are wrapped while it runs, and time each is in is its.

    watch = Stopwatch({"boot": [(Interpreter, "boot")]})
    with watch.watching():
        ...
    watch.took_s["boot"]

The clock is stopped for a part while another runs inside it, so the parts add up. A part that is
``whole`` keeps what runs inside it, but for the parts named with it.

Left out: the cost of looking, about a microsecond a call, which makes parts of many short calls
look larger than they are.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from time import thread_time
from typing import Any

__all__ = ["Stopwatch"]

Place = tuple[Any, str]
"""A module or class, and the name of a function in it."""


class Stopwatch:
    """See the module.

    Attributes:
        took_s: CPU seconds by part.
    """

    def __init__(
        self,
        parts: Mapping[str, Sequence[Place]],
        whole: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        self._parts = parts
        self._whole = whole or {}
        self._inside: list[str] = []
        self._since_s = 0.0
        self.took_s: defaultdict[str, float] = defaultdict(float)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """The functions are wrapped here, and as they were afterwards."""
        found = [
            (place, name, vars(place)[name], part)
            for part, places in self._parts.items()
            for place, name in places
        ]
        for place, name, function, part in found:
            setattr(place, name, self.timed(part, function))
        try:
            yield
        finally:
            for place, name, function, _ in found:
                setattr(place, name, function)

    def timed(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, timed as one of a part."""

        @wraps(function)
        def call(*values: Any, **named: Any) -> Any:
            inside = self._inside
            if inside and part not in self._whole.get(inside[-1], self._parts):
                return function(*values, **named)
            self._charge()
            inside.append(part)
            try:
                return function(*values, **named)
            finally:
                self._charge()
                inside.pop()

        return call

    def _charge(self) -> None:
        """What has passed was of the innermost part."""
        now_s = thread_time()
        if self._inside:
            self.took_s[self._inside[-1]] += now_s - self._since_s
        self._since_s = now_s
