"""Arguments of events, which come from a file and may be anything: read without believing them.

Left out: the lines themselves, which ``sim.trace.parsing`` has checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["flag", "integer", "names", "number", "pairs", "text"]


def number(args: Mapping[str, Any], key: str, default: int = -1) -> int:
    """An integer, or the default."""
    found = args.get(key)
    return found if type(found) is int else default


def integer(args: Mapping[str, Any], key: str) -> int | None:
    """An integer, or None."""
    found = args.get(key)
    return found if type(found) is int else None


def text(args: Mapping[str, Any], key: str) -> str | None:
    """Text, or None."""
    found = args.get(key)
    return found if type(found) is str else None


def flag(args: Mapping[str, Any], key: str) -> bool:
    """Whether it is there and true."""
    return args.get(key) is True


def names(args: Mapping[str, Any], key: str) -> tuple[str, ...] | None:
    """A list of names, or None."""
    found = args.get(key)
    if type(found) is not list and type(found) is not tuple:
        return None
    return tuple(each for each in found if type(each) is str)


def pairs(args: Mapping[str, Any], key: str) -> tuple[tuple[int, int], ...]:
    """A list of pairs of integers; what is none is left out."""
    found = args.get(key)
    if type(found) is not list and type(found) is not tuple:
        return ()
    return tuple(
        (each[0], each[1])
        for each in found
        if (type(each) is list or type(each) is tuple)
        and len(each) == 2
        and type(each[0]) is int
        and type(each[1]) is int
    )
