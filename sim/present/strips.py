"""The logs of a partition's replicas, one below the other, aligned by offset.

A strip is cut into runs at every offset where something changes in one of the logs: an epoch, the
high watermark, the end, the border of what was cut. So all offsets of a run look alike in each log,
and a long run can be shown by a few of its cells.

Left out: characters and colours (``sim.present.text``).
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from attrs import frozen

from sim.present.history import Cut, How, Replica
from sim.present.moments import Moment, PartitionAt, ReplicaAt, moment
from sim.present.story import Story
from sim.present.words import at, name, offsets

__all__ = ["CutRow", "LogRow", "Run", "Strip", "strips", "strips_of"]

CUTS_MAX: Final = 6
RUNS_MAX: Final = 60


@frozen
class Run:
    """Offsets that look alike in every log; ``is_left_out`` where they do not, but are too many."""

    base: int
    end: int
    is_left_out: bool = False


@frozen
class CutRow:
    """What went from a log: for each run the epoch that was there, -1 if unknown, None if none."""

    n: int
    cells: tuple[int | None, ...]
    text: str


@frozen
class LogRow:
    """One log.

    Attributes:
        cells: for each run the epoch that is there, -1 if unknown, None if nothing is.
        high_watermark: None where the trace does not say.
        cuts: what went, oldest first; deletions of old records are not among them.
        is_diverging: whether it has a record where the leader has another one.
    """

    node: str
    status: str
    role: str
    cells: tuple[int | None, ...]
    log_start: int
    log_end: int
    high_watermark: int | None
    cuts: tuple[CutRow, ...]
    is_diverging: bool


@frozen
class Strip:
    """One partition."""

    partition: str
    leader: str | None
    leader_epoch: int
    isr: tuple[str, ...] | None
    runs: tuple[Run, ...]
    rows: tuple[LogRow, ...]


def strips(story: Story, n: int | None = None) -> list[Strip]:
    """Every partition's logs behind event ``n``; behind the last one by default."""
    return strips_of(story, moment(story, n))


def strips_of(story: Story, now: Moment) -> list[Strip]:
    """The same from a moment that is known."""
    return [_strip(story, partition, now.n) for partition in now.partitions]


def _strip(story: Story, now: PartitionAt, n: int) -> Strip:
    replicas = story.partitions[now.name].replicas
    shown = {each.node: _cuts(replicas[each.node], n) for each in now.replicas}
    runs = _runs(now, shown)
    leader = next((each for each in now.replicas if each.node == now.leader), None)
    rows = []
    for each in now.replicas:
        cells = tuple(_epoch_in(each, run) for run in runs)
        theirs = cells if leader is None else tuple(_epoch_in(leader, run) for run in runs)
        is_diverging = any(
            mine is not None and other is not None and mine != other and not run.is_left_out
            for mine, other, run in zip(cells, theirs, runs, strict=True)
        )
        cuts = tuple(_cut_row(story, replicas[each.node], cut, runs) for cut in shown[each.node])
        rows.append(
            LogRow(
                each.node,
                each.status,
                each.role,
                cells,
                each.log_start,
                each.log_end,
                each.high_watermark,
                cuts,
                is_diverging,
            )
        )
    return Strip(now.name, now.leader, now.leader_epoch, now.isr, runs, tuple(rows))


def _cuts(replica: Replica, n: int) -> list[Cut]:
    found = [
        cut for cut in replica.cuts if cut.n <= n and cut.how not in (How.EXPIRED, How.DELETED)
    ]
    return found[-CUTS_MAX:]


def _runs(now: PartitionAt, cuts: dict[str, list[Cut]]) -> tuple[Run, ...]:
    borders: set[int] = set()
    for each in now.replicas:
        for span in each.spans:
            borders |= {span.base, span.end}
        borders |= {each.log_start, each.log_end}
        if each.high_watermark is not None:
            borders.add(each.high_watermark)
        for cut in cuts[each.node]:
            borders |= {cut.base, cut.end}
    ordered = sorted(borders)
    runs = [Run(base, end) for base, end in pairwise(ordered)]
    if len(runs) > RUNS_MAX:
        left = len(runs) - RUNS_MAX + 1
        runs = [Run(runs[0].base, runs[left - 1].end, True), *runs[left:]]
    return tuple(runs)


def _epoch_in(replica: ReplicaAt, run: Run) -> int | None:
    for span in replica.spans:
        if span.base < run.end and run.base < span.end:
            return -1 if span.epoch is None else span.epoch
    return None


def _cut_row(story: Story, replica: Replica, cut: Cut, runs: tuple[Run, ...]) -> CutRow:
    gone = [piece for piece in replica.pieces if piece.cut is cut]
    cells = []
    for run in runs:
        piece = next((p for p in gone if p.base < run.end and run.base < p.end), None)
        epoch = None if piece is None else piece.epoch
        cells.append(None if piece is None else -1 if epoch is None else epoch)
    where = offsets(cut.base, cut.end)
    return CutRow(cut.n, tuple(cells), f"{where} {cut.how} {at(cut.n)}{_because(story, cut)}")


def _because(story: Story, cut: Cut) -> str:
    if cut.epoch_ended is not None and cut.epoch_ended[0] >= 0:
        answer = story.brief(cut.by)
        if answer is not None and answer.peer is not None:
            epoch, end = cut.epoch_ended
            return f": at {name(answer.peer)} epoch {epoch} ends at offset {end}"
    return ""
