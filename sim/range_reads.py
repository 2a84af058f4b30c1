"""Reading what a fetch response refers to, at the moment of its transmission (DECISIONS 2.5).

Left out: when that moment is (``sim.network``).
"""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from attrs import evolve

from cluster.message import Message
from cluster.messages_data import FetchResponse, RangeRef

__all__ = ["with_bytes"]


@runtime_checkable
class _Reads(Protocol):
    """A machine that answers fetches."""

    def read_range_ref(self, ref: RangeRef) -> bytes | None: ...


def with_bytes(machine: object, message: Message) -> Message | None:
    """The message with bytes for references; None where a range is gone."""
    if not isinstance(message, FetchResponse):
        return message
    filled = []
    for result in message.partitions:
        if result.range_ref is not None:
            data = machine.read_range_ref(result.range_ref) if isinstance(machine, _Reads) else None
            if data is None:
                return None
            result = result._replace(records=data, range_ref=None)
        filled.append(result)
    return evolve(message, partitions=tuple(filled))
