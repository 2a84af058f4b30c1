"""Reading what a fetch response refers to, at the moment of its transmission (DECISIONS 2.5).

Left out: when that moment is (``sim.network``).
"""

from __future__ import annotations

from collections.abc import Callable

from cluster.message import Message
from cluster.messages_data import FetchResponse, RangeRef

__all__ = ["with_bytes"]


def with_bytes(machine: object, message: Message) -> Message | None:
    """The message with bytes for references; None where a range is gone."""
    if not isinstance(message, FetchResponse):
        return message
    # Of a machine that answers fetches.
    reads: Callable[[RangeRef], bytes | None] | None = getattr(machine, "read_range_ref", None)
    filled = []
    for result in message.partitions:
        if result.range_ref is not None:
            data = None if reads is None else reads(result.range_ref)
            if data is None:
                return None
            result = result._replace(records=data, range_ref=None)
        filled.append(result)
    return FetchResponse(message.correlation_id, tuple(filled))
