"""Follows producers and consumers: what they are told, and what they read.

Left out: what brokers answer (``sim.checks.answers``), histories of clients.
"""

from __future__ import annotations

from cluster.consumer_events import PolledRecord, TruncationDetected
from cluster.outcomes import Outcome, OutcomeKind
from sim.checks import consistent_read, losses
from sim.checks.ledger import Ledger, Place
from sim.checks.ranges import Records, Span
from sim.checks.scene import Acked, Scene

__all__ = ["ClientWatch"]


class ClientWatch:
    """See the module.

    Attributes:
        truncations: how often consumers were told of a truncation, by partition.
    """

    def __init__(self, scene: Scene) -> None:
        self.scene = scene
        self.truncations: dict[str, int] = {}

    def on_outcome(self, node: str, outcome: Outcome, event: int) -> None:
        """A producer knows what became of a record."""
        scene = self.scene
        if outcome.error_code.number:
            name = outcome.error_code.name
            scene.errors[name] = scene.errors.get(name, 0) + 1
        partition = outcome.partition
        if outcome.kind is not OutcomeKind.ACKED or partition is None:
            return
        ledger = scene.ledger(partition)
        ledger.acked_count += 1
        epoch = ledger.answered.get(node, {}).pop(outcome.offset, None)
        if epoch is None:
            return
        told = Records((Span(epoch, outcome.offset, outcome.offset + 1),))
        ledger.acked.add(told)
        scene.acked[node, outcome.operation] = Acked(partition, epoch, outcome.offset, event)
        leader = _newest_leader(ledger)
        if leader is None or (newer := _epoch_led(leader)) <= epoch:
            return
        batch = leader.mirror.at(outcome.offset)
        is_there = batch is not None and batch.epoch == epoch
        if ledger.is_compacted:
            is_there = not ledger.missing_at(leader, told)
        if not is_there and outcome.offset >= leader.start:
            is_unclean = any(each <= newer for each in ledger.unclean_epochs)
            losses.note(scene, ledger, leader, newer, "acknowledging", event, is_unclean=is_unclean)

    def on_polled(self, node: str, record: PolledRecord, event: int) -> None:
        """A consumer hands a record over."""
        consistent_read.check(self.scene, self.scene.ledger(record.partition), node, record, event)

    def on_position(self, node: str, told: object, event: int) -> None:
        """A consumer tells of anything else."""
        if isinstance(told, TruncationDetected):
            where = str(told.partition)
            self.truncations[where] = self.truncations.get(where, 0) + 1


def _epoch_led(place: Place) -> int:
    """The epoch in which a replica leads, -1 where it does not."""
    leading = None if place.replica is None else place.replica.leading
    return -1 if leading is None else leading.leader_epoch


def _newest_leader(ledger: Ledger) -> Place | None:
    """Whoever leads in the highest epoch; the controller may have deposed it, unheard."""
    leaders = [place for place in ledger.places.values() if _epoch_led(place) >= 0]
    return max(leaders, key=_epoch_led, default=None)
