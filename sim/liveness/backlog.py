"""How much is left to be done: what followers have to fetch, readers to read, clients to hear.

Behind the end of all load this only gets less, unless nothing moves. So a cluster that has reached
a new least is on its way, however long it takes, and one that has not for a while is not. While no
record moves, somebody may still be at work with what he was given.

Left out: whether all is done (``sim.liveness.predicates``).
"""

from __future__ import annotations

from sim.liveness.snapshot import Snapshot

__all__ = ["backlog"]


def backlog(now: Snapshot) -> tuple[int, int]:
    """What is left, to be compared.

    First the records that replicas, high watermarks and the reader lack, or producers still have,
    with the operations that have no end; then for how long, in us, somebody is busy.
    """
    # An unanswered record may yet be lacking everywhere, so to append it is no step back.
    most = max((len(each.replicas) for each in now.partitions), default=0)
    left = len(now.waits) + now.unanswered * (most + 2)
    for each in now.partitions:
        led = each.log(each.leader or "")
        if led is None or led.end < 0:
            continue
        left += max(0, led.end - led.high_watermark)
        left += led.end if each.read_end is None else max(0, led.end - each.read_end)
        left += sum(max(0, led.end - log.end) for log in each.logs if log.node != led.node)
    return left, now.busy_us
