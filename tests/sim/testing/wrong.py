"""Brokers that are deliberately wrong, for state machines to find."""

from __future__ import annotations

from cluster.broker import Broker
from cluster.effects import Effects
from cluster.leading import Leading
from cluster.names import Now
from cluster.replica import Replica


class HastyLeading(Leading):
    """The high watermark is the log's end, whoever has the records."""

    def advance(self, now: Now, replica: Replica, fx: Effects) -> None:
        if replica.leading is not None and replica.opened.leo > replica.high_watermark:
            replica.high_watermark = replica.opened.leo
            fx.note("hw", partition=str(replica.partition), high_watermark=replica.high_watermark)
            self.after_rise(now, replica, fx)


class Hasty(Broker):
    """It waits for nobody."""

    leading_class = HastyLeading


class KeepingReplica(Replica):
    """What a new leader does not have stays."""

    def truncate(self, offset: int) -> int:
        return self.opened.leo


class Keeping(Broker):
    """It never truncates."""

    replica_class = KeepingReplica


class Broken(Broker):
    """It fails once it hears of anything."""

    def on_start(self, now: Now, fx: Effects) -> None:
        super().on_start(now, fx)
        if self._incarnation:
            raise KeyError("nothing is known of a second life")
