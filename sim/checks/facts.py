"""Facts of a world for expectations: what was acknowledged, committed, exposed, cut and lost.

Partitions are given as ``orders-0``, nodes by name. A topic that was created anew counts as the new
one alone. A record is *lost* once a leader of the controller's current epoch could serve without
it, or once it was acknowledged while such a leader lacked it. It stays lost, unless a later leader
has it and commits it. It is lost too while no log has it any more and a disk or the power took a
copy, whether anybody leads or not.

Left out: expressions (scenario files).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import evolve

from cluster.names import TopicIdPartition
from sim.checks.comparing import difference
from sim.checks.ledger import DISK_LOSSES, Fate, Ledger, Loss, Place
from sim.checks.losses import nowhere
from sim.checks.ranges import Records, Span
from sim.checks.recovery_sound import durable_end
from sim.checks.scene import Acked, Scene

__all__ = ["LOST_KINDS", "Facts"]

LOST_KINDS = ("acked", "committed", "exposed")


class Facts:
    """See the module."""

    def __init__(self, scene: Scene) -> None:
        self._scene = scene

    # What was promised -------------------------------------------------------------------------

    def acked(self, partition: str | None = None) -> int:
        """Records whose producer was told that they are stored, under acks 1 or all."""
        return sum(ledger.acked_count for ledger in self._ledgers(partition))

    def committed(self, partition: str | None = None) -> int:
        """Records that were ever below the high watermark of a legitimate leader."""
        return sum(len(ledger.committed) for ledger in self._ledgers(partition))

    def exposed(self, partition: str | None = None) -> int:
        """Records that were ever below a high watermark that anybody was shown."""
        return sum(len(ledger.exposed) for ledger in self._ledgers(partition))

    def exposed_high_watermark(self, partition: str) -> int:
        """The highest high watermark that anybody was shown."""
        return max((ledger.exposed_top for ledger in self._ledgers(partition)), default=0)

    def lost(self, kind: str, partition: str | None = None) -> int:
        """How many acked, committed or exposed records are lost.

        Raises:
            ValueError: there is no such kind.
        """
        if kind not in LOST_KINDS:
            raise ValueError(f"kind is {kind!r}, allowed are {', '.join(LOST_KINDS)}")
        return sum(
            len(self._lost(ledger, getattr(ledger, kind))) for ledger in self._ledgers(partition)
        )

    def _lost(self, ledger: Ledger, records: Records) -> Records:
        lost = Records(records.common(ledger.gone))
        lost.discard(list(ledger.back))
        lost.add(self._nowhere(ledger, records))
        return lost

    # Records one by one ------------------------------------------------------------------------

    @property
    def acked_records(self) -> Mapping[tuple[str, int], Acked]:
        """What was acknowledged under acks 1 or all, by client and operation."""
        return self._scene.acked

    def lost_of(self, partition: TopicIdPartition, *, ever: bool = False) -> Records:
        """Which acknowledged or committed records of a partition are lost, of deleted ones too.

        Args:
            ever: those too that a later leader has brought back.
        """
        ledger = self._scene.ledgers.get(partition)
        if ledger is None:
            return Records()
        if ever:
            return ledger.gone
        found = self._lost(ledger, ledger.acked)
        found.add(self._lost(ledger, ledger.committed))
        return found

    def losses_of(self, partition: TopicIdPartition) -> list[Loss]:
        """The loss events of a partition, in order."""
        ledger = self._scene.ledgers.get(partition)
        return [] if ledger is None else list(ledger.losses)

    def value_of(self, partition: TopicIdPartition, epoch: int, offset: int) -> bytes | None:
        """The value of a record, whoever had it; None where there is no such record."""
        ledger = self._scene.ledgers.get(partition)
        for batch in () if ledger is None else ledger.history.at(epoch, offset):
            if offset in (values := batch.values()):
                return values[offset][1]
        return None

    def places_of(self, name: str) -> list[TopicIdPartition]:
        """The partitions that ever had a name; several where its topic was created anew."""
        return [place for place in self._scene.ledgers if str(place) == name]

    def losses(self, partition: str | None = None) -> list[Loss]:
        """The loss events, in order; what one leader goes on to acknowledge in vain is one."""
        return [loss for _, loss in self._losses(partition)]

    def _losses(self, partition: str | None) -> list[tuple[Ledger, Loss]]:
        known = [(each, loss) for each in self._ledgers(partition) for loss in each.losses]
        found: list[tuple[Ledger, Loss]] = []
        for ledger, loss in sorted(known, key=lambda pair: pair[1].event):
            before, last = found[-1] if found else (None, None)
            if last is not None and before is ledger and last.at == loss.at == "acknowledging":
                spans = tuple(Records((*last.spans, *loss.spans)))
                both = evolve(last, spans=spans)
                if evolve(loss, spans=spans, event=last.event, told=last.told) == both:
                    found[-1] = ledger, both
                    continue
            found.append((ledger, loss))
        return found

    def standing_losses(
        self, besides: Facts | None = None
    ) -> list[tuple[Loss, int, tuple[str, ...]]]:
        """The loss events, how many of their records stay lost, and which of ``LOST_KINDS`` these
        were; without those whose records a later leader has all had back.

        Of records that were lost more than once, had back between, the last event counts. What a
        topic has lost stays lost when another one is created under its name.

        Args:
            besides: of the run that this one goes on from: what it ever lost is left out.
        """
        left: dict[TopicIdPartition, Records] = {}
        for ledger in self._ledgers(None):
            left[ledger.partition] = Records(ledger.gone)
            left[ledger.partition].discard(list(ledger.back))
            if besides is not None:
                known = besides.lost_of(ledger.partition, ever=True)
                left[ledger.partition].discard(list(known))
        found = []
        for ledger, loss in reversed(self._losses(None)):
            spans = left[ledger.partition].common(loss.spans)
            if spans:
                left[ledger.partition].discard(spans)
                of_kind = [each for each in LOST_KINDS if getattr(ledger, each).common(spans)]
                found.append((loss, len(Records(spans)), tuple(of_kind)))
        return found[::-1]

    def promises(self) -> dict[str, bool]:
        """The promises of the ledger by name, and whether each was kept."""
        return {f"{kind}-records-survive": not self.lost(kind) for kind in LOST_KINDS}

    # Logs --------------------------------------------------------------------------------------

    def truncated(self, partition: str, node: str) -> int:
        """How many records a node has cut off to agree with a leader."""
        return self._gone(partition, node, ("truncated", "restarted"))

    def lost_on_disk(self, partition: str, node: str) -> int:
        """How many records faults of power and disk have taken from a node's log."""
        return self._gone(partition, node, tuple(sorted(DISK_LOSSES)))

    def _gone(self, partition: str, node: str, hows: tuple[str, ...]) -> int:
        return sum(
            span.end - span.start
            for place in self._places(partition, node)
            for fate in place.fates
            if fate.how in hows
            for span in fate.spans
        )

    def fates(self, partition: str, node: str) -> list[Fate]:
        """What became of the copies that a node has no more."""
        return [fate for place in self._places(partition, node) for fate in place.fates]

    def copies(self, partition: str, offset: int) -> dict[str, tuple[int, str, int]]:
        """What every node has, or had, at an offset: epoch, fate and event.

        The fate of a copy that is there is ``durable`` or ``cached``, with event 0.
        """
        found = {}
        for ledger in self._ledgers(partition):
            for node, place in sorted({**ledger.retired, **ledger.places}.items()):
                batch = place.mirror.at(offset) if node in ledger.places else None
                if batch is not None:
                    is_durable = batch.next <= durable_end(place)
                    found[node] = batch.epoch, "durable" if is_durable else "cached", 0
                    continue
                for fate in reversed(place.fates):
                    epochs = [s.epoch for s in fate.spans if s.start <= offset < s.end]
                    if epochs:
                        found[node] = epochs[-1], fate.how, fate.event
                        break
        return found

    def diverged(self, partition: str) -> bool:
        """Whether two logs have different records at one offset, below both their ends."""
        places = [p for ledger in self._ledgers(partition) for p in ledger.places.values()]
        return any(
            difference(one, other, 0, min(one.mirror.end, other.mirror.end)) is not None
            for number, one in enumerate(places)
            for other in places[number + 1 :]
        )

    def unflushed(self, partition: str, node: str) -> int:
        """How many records of a node's log a power loss could take now."""
        count = 0
        for place in self._places(partition, node):
            place.mirror.refresh()
            end = durable_end(place)
            count += sum(
                min(batch.count, batch.next - max(batch.base, end))
                for batch in place.mirror.between(end, place.mirror.end)
            )
        return count

    def log_start(self, partition: str, node: str) -> int:
        """The lowest offset that a node's log has, as its replica said last."""
        return max((place.start for place in self._places(partition, node)), default=0)

    def log_end(self, partition: str, node: str) -> int:
        """The end of a node's log by its files; -1 where it has none."""
        return max((place.files_end for place in self._places(partition, node)), default=-1)

    def record(self, partition: str, node: str, offset: int) -> str | None:
        """The value of a node's record, as text; None where there is none."""
        for place in self._places(partition, node):
            batch = place.mirror.at(offset)
            if batch is None or batch.base in place.mirror.damaged:
                return None
            value = batch.values().get(offset, (None, None))[1]
            return None if value is None else value.decode(errors="backslashreplace")
        return None

    def same_log(self, partition: str, *nodes: str) -> bool:
        """Whether nodes have the same records from the highest log start on, up to one end."""
        places = [place for node in nodes for place in self._places(partition, node)]
        if len(places) != len(nodes):
            return False
        ends = {place.files_end for place in places}
        return len(ends) == 1 and all(
            difference(places[0], place, 0, place.mirror.end) is None for place in places[1:]
        )

    # Decisions ---------------------------------------------------------------------------------

    def elections(self, kind: str | None = None, partition: str | None = None) -> int:
        """How many elections there were: ``clean``, ``preferred``, ``unclean``, ``last-known``,
        ``none``."""
        return sum(
            kind in (None, found) and partition in (None, where)
            for where, _, _, found, _ in self._scene.elections
        )

    def errors(self, code: str | None = None) -> int:
        """How many operations of producers ended with an error, or with one of that name."""
        found = self._scene.errors
        return sum(found.values()) if code is None else found.get(code, 0)

    def one_leader_per_epoch(self, partition: str | None = None) -> bool:
        """Whether no two processes have appended under one epoch so far."""
        return not any(
            found.check == "one-leader-per-epoch" and partition in (None, found.partition)
            for found in self._scene.violations
        )

    # Inside ------------------------------------------------------------------------------------

    def _ledgers(self, partition: str | None) -> Iterator[Ledger]:
        for where, ledger in self._scene.ledgers.items():
            if partition is None or str(where) == partition:
                is_old = where not in self._scene.records and partition is not None
                if not is_old or self._is_newest(ledger):
                    yield ledger

    def _nowhere(self, ledger: Ledger, records: Records) -> list[Span]:
        """Which of some records no log has, of a topic that there is."""
        if ledger.partition not in self._scene.records:
            return []
        return nowhere(ledger, records)

    def _is_newest(self, ledger: Ledger) -> bool:
        """Of several topics of one name, none of which exists, the last one counts."""
        same = [p for p in self._scene.ledgers if str(p) == str(ledger.partition)]
        exists = any(p in self._scene.records for p in same)
        return not exists and same[-1] == ledger.partition

    def _places(self, partition: str, node: str) -> Iterator[Place]:
        for ledger in self._ledgers(partition):
            if node in ledger.places:
                yield ledger.places[node]
