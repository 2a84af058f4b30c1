"""Any value of a machine as one that JSON holds, always the same for the same value.

Left out: text with a size limit; who traces long values pays for them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any

from cluster.names import TopicIdPartition

__all__ = ["plain", "plain_items", "shown"]

_AS_IT_IS = (int, str, bool)


def plain(value: Any) -> Any:
    """Integers, text and the like as they are; sequences as lists, sets as sorted lists, mappings
    with text for keys, enums by value, partitions as ``orders-0``, bytes in hexadecimal.

    Raises:
        TypeError: the value has no such form.
    """
    if value is None or value.__class__ in _AS_IT_IS:
        return value
    if isinstance(value, TopicIdPartition):
        return str(value)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, frozenset | set):
        return sorted(plain(each) for each in value)
    if isinstance(value, Enum):
        return plain(value.value)
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, str):
        return str(value)
    raise TypeError(f"a {type(value).__name__} has no place in a trace")


def shown(value: bytes | None) -> str | None:
    """A record's key or value for people: text where it is some, else hexadecimal."""
    if value is None:
        return None
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return value.hex()
    return text if text.isprintable() else value.hex()


def plain_items(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """A mapping of names to values that JSON holds."""
    return {key: value if value.__class__ in _AS_IT_IS else plain(value) for key, value in items}
