"""I12: nothing that does not count holds a leader's high watermark back.

Behind an append and a settled change of its ISR a leader's high watermark is as high as its log and
all who count allow: members of the maximal ISR, and caught-up followers that may join (A5).

Left out: leaders with too few in sync, whose high watermark is frozen, and moments at which nothing
but time has passed: a follower that begins to lag lets it rise when something happens next.
"""

from __future__ import annotations

from cluster.broker import Broker
from cluster.names import NO_BROKER_EPOCH
from cluster.replica import Replica
from sim.checks.ledger import Place
from sim.checks.scene import Scene

__all__ = ["check"]

CHECK = "progress"


def check(scene: Scene, place: Place, event: int) -> None:
    """Compare a leader's high watermark with the positions that it knows of."""
    replica, broker = place.replica, scene.broker(place.node)
    if replica is None or broker is None or replica.leading is None or replica.state is None:
        return
    isr = replica.leading.isr
    if len(isr.isr) < min(replica.config.min_insync_replicas, len(replica.state.replicas)):
        return
    now = scene.world.hosts[place.node].clock.now(scene.world.now_us)
    since_us = now.timer_us - broker.core.config.replica_lag_time_max_ms * 1_000
    bound, slowest = _bound(replica, broker, since_us)
    if replica.high_watermark < bound:
        scene.report(
            CHECK,
            place.partition,
            "held-back",
            event,
            f"{place.node} leads with high watermark {replica.high_watermark}, and {slowest}, the "
            f"last that counts, has {bound}",
            leader=place.node,
            high_watermark=replica.high_watermark,
            bound=bound,
            isr=sorted(isr.maximal),
        )


def _bound(replica: Replica, broker: Broker, since_us: int) -> tuple[int, str]:
    """How high the high watermark has to be, and whose position that is.

    Args:
        since_us: who was caught up since then does not lag.
    """
    leader = replica.leading
    assert leader is not None
    found = replica.synced_end, broker.name
    unseen = leader.isr.maximal - {broker.name, *leader.followers}
    if unseen:
        return -1, min(unseen)
    for name, remote in leader.followers.items():
        known = broker.core.image.brokers.get(name)
        is_eligible = (
            known is not None
            and known.is_active
            and remote.broker_epoch in (NO_BROKER_EPOCH, known.broker_epoch)
        )
        may_join = is_eligible and 0 < remote.caught_up.caught_up_us >= since_us
        if name in leader.isr.maximal or may_join:
            found = min(found, (remote.leo, name))
    return found
