"""The leader-epoch cache as its rules read, on a plain list: the twin of ``storage.epochs``."""

from __future__ import annotations

Entries = list[tuple[int, int]]


def assign(entries: Entries, epoch: int, start: int) -> Entries:
    if entries and epoch == entries[-1][0] and start >= entries[-1][1]:
        return entries
    kept = list(entries)
    while kept and (kept[-1][0] >= epoch or kept[-1][1] >= start):
        kept.pop()
    return [*kept, (epoch, start)]


def truncate_from_end(entries: Entries, offset: int) -> Entries:
    if offset < 0:
        return entries
    return [(epoch, start) for epoch, start in entries if start < offset]


def truncate_from_start(entries: Entries, offset: int) -> Entries:
    dropped = [(epoch, start) for epoch, start in entries if start <= offset]
    kept = [(epoch, start) for epoch, start in entries if start > offset]
    return [(dropped[-1][0], offset), *kept] if dropped else kept


def end_offset_for(entries: Entries, requested: int, log_end: int) -> tuple[int, int]:
    epochs = [epoch for epoch, _ in entries]
    if requested == -1:
        return (-1, -1)
    if epochs and requested == epochs[-1]:
        return (requested, log_end)
    higher = [start for epoch, start in entries if epoch > requested]
    if not higher:
        return (-1, -1)
    lower = [epoch for epoch in epochs if epoch <= requested]
    return (lower[-1] if lower else requested, higher[0])


def epoch_for_offset(entries: Entries, offset: int) -> int:
    return max((epoch for epoch, start in entries if start <= offset), default=-1)
