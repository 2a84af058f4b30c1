"""Links with a bandwidth and a send buffer (rule ``Limit``).

A frame takes room in the buffer from the moment it is transmitted until the wire has taken it. The
wire takes one frame after another.

Left out: waking a link when there is room (``sim.network``).
"""

from __future__ import annotations

from cluster.message import Message
from cluster.messages import MESSAGES
from cluster.messages_data import FetchResponse
from sim.links import Active, Link
from sim.network_rules import Limit

__all__ = ["limit_of", "room_us", "size_bytes", "take_wire_us"]

SECOND_US = 1_000_000


def limit_of(link: Link) -> tuple[int, int, Active] | None:
    """Bytes a second, bytes of the buffer, and the first rule that limits; None without one."""
    found = [active for active in link.rules if isinstance(active.rule, Limit)]
    rules = [active.rule for active in found if isinstance(active.rule, Limit)]
    if not rules:
        return None
    rate = min(rule.bytes_per_s for rule in rules)
    return rate, min(rule.buffer_bytes for rule in rules), found[0]


def size_bytes(message: Message | None) -> int:
    """What a message takes on the wire, with the bytes that it refers to."""
    if message is None:
        return 0
    size = len(MESSAGES.encode(message))
    if isinstance(message, FetchResponse):
        refs = (result.range_ref for result in message.partitions)
        size += sum(ref.size_bytes for ref in refs if ref is not None)
    return size


def room_us(link: Link, buffer_bytes: int, size: int, now_us: int) -> int:
    """When a frame may go into the buffer: now, or a later time."""
    buffer = link.buffer
    while buffer and buffer[0][0] <= now_us:
        buffer.popleft()
    used = sum(each for _, each in buffer)
    at_us = now_us
    for done_us, each in buffer:
        if used + size <= buffer_bytes:
            break
        used -= each
        at_us = done_us
    return at_us


def take_wire_us(link: Link, bytes_per_s: int, size: int, now_us: int) -> int:
    """Put a frame into the buffer; returns how long it takes until the wire has taken it."""
    done_us = max(now_us, link.busy_us) + -(-size * SECOND_US // bytes_per_s)
    link.busy_us = done_us
    link.buffer.append((done_us, size))
    return done_us - now_us
