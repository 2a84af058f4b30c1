"""Names for states of a world: equal keys, equal futures.

The whole graph of objects that a world holds is written down in one canonical way and hashed:
machines with every private field, files with what a power loss could make of them, clocks,
connections, entries of the timeline. Whatever a machine keeps is covered, also a user's own.

Event numbers (``EventNumber``) are left out, and so is what follows from the rest or only shows it
(``_NOT_STATE``). Dictionaries count with their order, since a machine may go through them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from enum import Enum
from hashlib import blake2b
from pathlib import PurePath
from types import FunctionType, MethodType
from typing import Any

from cluster.controller import Controller
from sim.disk_crash import Inode
from sim.disks import SimDisk
from sim.draws import Draws, Stream
from sim.hosts import Host
from sim.kernel import Kernel
from sim.timeline import Timeline
from sim.trace.lines import EventNumber
from sim.trace.writer import Trace

__all__ = ["state_key"]

_NOT_STATE: dict[type, frozenset[str]] = {
    SimDisk: frozenset(
        {"_backing", "_root", "_graveyard", "calls", "on_call", "records_calls", "rewrites"}
    ),
    Inode: frozenset({"handle", "location"}),
    Host: frozenset({"shown", "build", "adapter", "manifest"}),
    Kernel: frozenset({"trace", "config", "observer", "recorder"}),
    Controller: frozenset({"_shown"}),
    # Its entries are written down one by one; where they lie does not matter.
    Timeline: frozenset({"_heap", "_cancelled", "driver"}),
}
_NOT_STATE_OF_WORLDS = frozenset({"root", "trace", "watchers"})
_SKIPPED = (Trace, Draws, Stream, EventNumber)


def state_key(world: Any) -> str:
    """The key of a world: 32 hexadecimal digits.

    Raises:
        ValueError: a script waits in it.
    """
    entries = list(world.timeline.entries())
    if any(origin.startswith("script:") for _, _, _, origin, *_ in entries):
        raise ValueError("a script waits in this world, and scripts have no state to name")
    walk = _Walk({**_NOT_STATE, type(world): _NOT_STATE_OF_WORLDS})
    walk.add(world)
    for at_us, event_class, tie, origin, ordinal, call, values in entries:
        walk.add((at_us, int(event_class), tie, origin, ordinal, call, values))
    return walk.state.hexdigest()


class _Walk:
    """One pass over a graph; an object that was met before is its number."""

    def __init__(self, not_state: Mapping[type, frozenset[str]]) -> None:
        self._not_state = not_state
        self._known: dict[type, frozenset[str]] = {}
        self.state = blake2b(digest_size=16)
        self._met: dict[int, int] = {}
        # What was met must not be freed on the way: another object would get its identity.
        self._kept: list[object] = []

    def add(self, value: Any) -> None:
        """Write a value down."""
        if isinstance(value, _SKIPPED):
            return
        write = _WRITERS.get(type(value))
        if write is not None:
            write(self, value)
        elif isinstance(value, Enum):
            self._put(f"E{type(value).__qualname__}.{value.name};")
        elif isinstance(value, PurePath):
            self._put(f"p{value};")
        elif isinstance(value, tuple):
            _write_sequence(self, value)
        elif isinstance(value, type):
            self._put(f"T{value.__module__}.{value.__qualname__};")
        else:
            self._add_object(value)

    def _put(self, text: str) -> None:
        self.state.update(text.encode())

    def _add_object(self, value: Any) -> None:
        number = self._met.get(id(value))  # identity only tells what was met; it is not written
        if number is not None:
            self._put(f"@{number};")
            return
        self._met[id(value)] = len(self._met)
        self._kept.append(value)
        self._put(f"O{type(value).__qualname__}{{")
        if isinstance(value, SimDisk):
            self._put(value.digest())
        left_out = self._left_out(type(value))
        for name in _names_of(type(value), value):
            if name not in left_out and hasattr(value, name):
                self._put(f"{name}=")
                self.add(getattr(value, name))
        self._put("}")

    def _left_out(self, kind: type) -> frozenset[str]:
        """What is no state of such an object, as its base classes have it."""
        found = self._known.get(kind)
        if found is None:
            parts = (self._not_state.get(each, frozenset()) for each in kind.__mro__)
            found = self._known[kind] = frozenset().union(*parts)
        return found


def _names_of(kind: type, value: object) -> list[str]:
    """The attributes of an object, of slots and dictionary, in the order of their names."""
    names = set(getattr(value, "__dict__", ()))
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        slots = (slots,) if isinstance(slots, str) else slots
        names.update(
            f"_{each.__name__.lstrip('_')}{name}"
            if name.startswith("__") and not name.endswith("__")
            else name
            for name in slots
        )
    return sorted(names - {"__weakref__", "__dict__"})


def _write_plain(walk: _Walk, value: Any) -> None:
    walk._put(f"{type(value).__name__[0]}{value!r};")


def _write_bytes(walk: _Walk, value: Any) -> None:
    walk._put(f"y{len(value)}:")
    walk.state.update(value)


def _write_sequence(walk: _Walk, value: Any) -> None:
    walk._put("(")
    for each in value:
        walk.add(each)
    walk._put(")")


def _write_mapping(walk: _Walk, value: Mapping[Any, Any]) -> None:
    walk._put("{")
    for key, each in value.items():
        walk.add(key)
        walk._put(":")
        walk.add(each)
    walk._put("}")


def _write_set(walk: _Walk, value: Any) -> None:
    """Elements are values, so each has a digest of its own to sort by."""
    found = []
    for each in value:
        part = _Walk(walk._not_state)
        part.add(each)
        found.append(part.state.hexdigest())
    walk._put("<")
    walk._put(",".join(sorted(found)))
    walk._put(">")


def _write_method(walk: _Walk, value: MethodType) -> None:
    walk._put(f"M{value.__func__.__qualname__}")
    walk.add(value.__self__)


def _write_function(walk: _Walk, value: FunctionType) -> None:
    walk._put(f"F{value.__module__}.{value.__qualname__};")


_WRITERS: dict[type, Callable[[_Walk, Any], None]] = {
    type(None): _write_plain,
    bool: _write_plain,
    int: _write_plain,
    str: _write_plain,
    bytes: _write_bytes,
    bytearray: _write_bytes,
    memoryview: _write_bytes,
    tuple: _write_sequence,
    list: _write_sequence,
    deque: _write_sequence,
    dict: _write_mapping,
    set: _write_set,
    frozenset: _write_set,
    MethodType: _write_method,
    FunctionType: _write_function,
}
