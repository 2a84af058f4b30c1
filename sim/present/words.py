"""Small words: times, offsets, lists, names from outside.

Left out: sentences, and escaping of whole lines (each face does that where it prints).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from storage.inspection.escaping import plain

__all__ = [
    "acks_word",
    "at",
    "counted",
    "duration",
    "listed",
    "name",
    "offsets",
    "seconds",
    "sentence",
    "target_words",
    "these",
    "value",
]

NAME_MAX: Final = 60
VALUE_MAX: Final = 40
SENTENCE_MAX: Final = 400
LIST_MAX: Final = 8
EDGES_MAX: Final = 6


def seconds(t_us: int) -> str:
    """A virtual time: ``3.100s``."""
    sign, t_us = ("-" if t_us < 0 else ""), abs(t_us)
    return f"{sign}{t_us // 1_000_000}.{t_us % 1_000_000 // 1_000:03d}s"


def duration(t_us: int) -> str:
    """A length of time: ``2s``, ``1.500s``, ``300us``."""
    if t_us % 1_000:
        return f"{t_us}us"
    if t_us % 1_000_000:
        return seconds(t_us)
    return f"{t_us // 1_000_000}s"


def at(n: int) -> str:
    """An event's number: ``#341``."""
    return f"#{n}"


def name(text: object) -> str:
    """A name from outside, escaped, at most ``NAME_MAX`` characters of it."""
    found = str(text)
    return plain(found if len(found) <= NAME_MAX else found[: NAME_MAX - 1] + "…")


def sentence(text: object) -> str:
    """Words from outside, escaped, at most ``SENTENCE_MAX`` characters of them."""
    found = str(text)
    return plain(found if len(found) <= SENTENCE_MAX else found[: SENTENCE_MAX - 1] + "…")


def value(text: object, longest: int = VALUE_MAX) -> str:
    """A record's value from outside, in quotes, cut behind so many characters; null for none."""
    if text is None:
        return "null"
    found = str(text)
    found = found if len(found) <= longest else found[: longest - 1] + "…"
    return "'" + plain(found).replace("'", "\\'") + "'"


def offsets(base: int, end: int) -> str:
    """A half-open range as people count: ``10..14``, or ``10`` alone."""
    return f"{base}" if end - base == 1 else f"{base}..{end - 1}"


def these(base: int, end: int) -> str:
    """A half-open range in a sentence: ``offset 10``, ``offsets 10..14``."""
    return f"offset{'' if end - base == 1 else 's'} {offsets(base, end)}"


def counted(count: int, what: str, many: str | None = None) -> str:
    """``1 record``, ``2 records``."""
    return f"{count} {what if count == 1 else many or what + 's'}"


def listed(texts: Iterable[str], last: str = "and") -> str:
    """``a, b and c``; ``nobody`` for none; long lists are cut short."""
    found: Sequence[str] = list(texts)
    if not found:
        return "nobody"
    if len(found) == 1:
        return found[0]
    if len(found) > LIST_MAX:
        return ", ".join(found[: LIST_MAX - 1]) + f" {last} {len(found) - LIST_MAX + 1} more"
    return ", ".join(found[:-1]) + f" {last} {found[-1]}"


def target_words(target: Any) -> str:
    """What a fault strikes: a node, or edges as ``a→b``."""
    if not isinstance(target, list):
        return "" if target is None else name(target)
    edges = [
        f"{name(edge[0])}→{name(edge[1])}"
        for edge in target
        if isinstance(edge, list) and len(edge) == 2
    ]
    return ", ".join(edges[:EDGES_MAX]) + (", …" if len(edges) > EDGES_MAX else "")


def acks_word(acks: Any) -> str:
    """``acks=all`` for -1."""
    return "acks=all" if acks == -1 else f"acks={name(acks)}"
