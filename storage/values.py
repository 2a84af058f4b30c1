"""What copies of a world share, and how they come by the rest.

A world is copied with everything in it. What nothing ever changes needs no copy of its own, so
``copy.deepcopy`` of a ``Value`` returns it as it is: a copy of a cluster costs a third less.

What does change, and there is much of, is ``Copied``: the copy has the same numbers, words and
paths and copies of everything else, and is made without the detour over ``__reduce_ex__``, which
takes several times as long.

Left out: named tuples, which cannot have a root; those that there are many of have the method.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any, Final, Self, TypeVar

__all__ = ["Copied", "Value"]

_T = TypeVar("_T")
_PLAIN: Final = frozenset({bool, bytes, int, str, type(None), type(Path())})


class Value:
    """A value: neither it nor anything that it holds ever changes."""

    __slots__ = ()

    def __deepcopy__(self: _T, memo: object) -> _T:
        return self


class Copied:
    """Something with slots that changes, and of which a copied world has its own."""

    __slots__ = ()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cls: Any = type(self)
        twin: Self = object.__new__(cls)
        memo[id(self)] = twin  # At once: what it holds may hold it.
        for name in _slots(cls):
            if hasattr(self, name):
                value = getattr(self, name)
                setattr(twin, name, value if type(value) in _PLAIN else deepcopy(value, memo))
        return twin


@cache
def _slots(cls: type) -> tuple[str, ...]:
    """The names of all that instances of a class have."""
    if cls.__dictoffset__:
        raise TypeError(f"{cls.__name__} has attributes that are no slots, and cannot be Copied")
    names = [name for each in cls.__mro__ for name in getattr(each, "__slots__", ())]
    return tuple(name for name in names if name != "__weakref__")
