"""Named failpoints: places inside a handler where Kafka has a gap between two steps.

At each of them a crash, a pause or another node's step may fall. A handler reaches one through
``Effects.stops_at``: where the collector asks for it the handler ends there and ``on_resume`` goes
on; elsewhere it costs one look-up.

Left out: points inside storage, which are names of disk calls (package ``sim``).
"""

from __future__ import annotations

from typing import Final

__all__ = ["FAILPOINTS"]

FAILPOINTS: Final[dict[str, str]] = {
    "produce-appended": "the leader has appended a produce, and has answered or parked nothing",
    "fetch-read": "the leader has read for a fetch, and not yet noted the follower's position",
    "fetch-received": "the follower has a response, and has appended nothing",
    "hw-advanced": "the high watermark has risen, and parked requests are not answered",
    "isr-change-sent": "an ISR change is proposed, and the handler has more to do",
    "metadata-applied": "the broker's image has changed, and its replicas have not",
    "registered": "the broker is registered, and has applied no metadata",
}
"""Id and what has been done there."""
