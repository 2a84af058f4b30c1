"""Flushes that an answer waits for: topics with ``flush.messages`` (DECISIONS 2.9).

After so many records a log is synced before its leader answers, or before its follower fetches on.
The disk's time is the world's: a flush is begun, the effect ``Fsync`` names it, ``on_synced``
completes it. Flushes that nobody waits for are pending work of the log.

Left out: what happens then (``cluster.broker``).
"""

from __future__ import annotations

from cluster.broker_core import BrokerCore
from cluster.effects import Effects
from cluster.names import TopicIdPartition
from cluster.replica import Replica
from storage.errors import DiskError, LogOffline
from storage.log_durability import FlushToken

__all__ = ["Flushing"]


class Flushing:
    """The flushes under way at one broker."""

    def __init__(self, core: BrokerCore) -> None:
        self._core = core
        self._tokens: dict[FlushToken, TopicIdPartition] = {}

    def after_append(self, replica: Replica, fx: Effects) -> bool:
        """Begin a flush if the topic asks for one by now; returns whether it did.

        What a role before the present one appended counts too. A disk that fails halts the broker.
        """
        log = replica.opened
        if log.leo - replica.unflushed_from < replica.config.flush_messages:
            return False
        try:
            token = log.begin_flush()
        except (DiskError, LogOffline) as error:
            self._core.halt(error, fx)
            return False
        replica.flushes[token.id] = replica.unflushed_from
        replica.unflushed_from = log.leo
        self._tokens[token] = replica.partition
        fx.fsync(token)
        return True

    def take(self, token: FlushToken) -> Replica | None:
        """Whose flush it is; None for one that is not known, or whose replica is gone."""
        partition = self._tokens.pop(token, None)
        replica = None if partition is None else self._core.replicas.get(partition)
        return None if replica is None or replica.log is None else replica

    def forget(self, partition: TopicIdPartition) -> None:
        """The replica is gone: its flushes stand for nothing that another may append."""
        for token in [token for token, of in self._tokens.items() if of == partition]:
            del self._tokens[token]

    def completed(self, replica: Replica, token: FlushToken) -> None:
        """The broker's own copy counts as far as no earlier flush is under way."""
        replica.flushes.pop(token.id, None)
