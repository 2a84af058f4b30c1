"""Losses in words: what was lost, under which licence and why, and the tale of it.

Losses of one licence, one rule and one cause are told together, however many ranges they are, and
whether one partition or several lost them. Records that a later leader had back are not lost.

Left out: which losses there are (``sim.checks`` says so in the trace), and whether a scenario
covers them (``sim.running.coverage``).
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from sim.present.history import Loss
from sim.present.loss_tales import Link, links_of
from sim.present.moments import spans_at
from sim.present.spans import Triple, common, joined, without
from sim.present.story import Story
from sim.present.words import counted, listed, name, sentence, these
from sim.trace.kinds import Kind

__all__ = ["LossTold", "standing", "told_losses", "what_of"]

SPANS_MAX: Final = 3
PARTITIONS_MAX: Final = 3
LINKS_MAX: Final = 30

_LEGAL: Final = {
    "L0": "acks=1 promises no more",
    "L1": "an unclean election",
    "L2": "the last copies in sync went with power or disks",
    "L3": "the operator, or a wrong clock, took every copy",
    "L4": "spoilt disks",
    "ILLEGAL": "a correct cluster does not lose them",
    "UNEXPLAINED": "the ledger does not know how they went",
}


@frozen
class LossTold:
    """Losses for people.

    Attributes:
        licence: as the trace has it.
        head: the licence with what it means, and what was lost.
        rule: the row of the licence table that decided, as a sentence.
        links: what happened to them, in order.
        covers: the events of kind ``loss`` that it tells of.
    """

    licence: str
    head: str
    rule: str
    links: tuple[Link, ...]
    covers: tuple[int, ...]


def standing(story: Story) -> list[tuple[Loss, list[Triple]]]:
    """The losses with what is lost for good, oldest first.

    A record that a later leader had is not lost; of one that was lost twice the last loss counts.
    """
    found = []
    told: dict[str, list[Triple]] = {}
    for loss in reversed(story.losses):
        seen = told.setdefault(loss.partition, [])
        left = without(loss.spans, seen)
        left = without(left, _back(story, loss))
        if left:
            found.append((loss, left))
        seen += loss.spans
    return found[::-1]


def _back(story: Story, loss: Loss) -> list[Triple]:
    """What a leader had that came later."""
    found: list[Triple] = []
    for _, replica in story.replicas(loss.partition):
        for n, role in replica.roles:
            if role.name == "leader" and n > loss.n:
                found += [
                    (each.epoch, each.base, each.end)
                    for each in spans_at(replica, n)
                    if each.epoch is not None
                ]
    return common(loss.spans, found)


def told_losses(story: Story) -> list[LossTold]:
    """All that is lost for good, in words; what has one licence and one cause is told together."""
    groups: dict[object, list[tuple[Loss, list[Triple]]]] = {}
    for loss, spans in standing(story):
        key = loss.licence, loss.rule, _cause(story, loss)
        groups.setdefault(key, []).append((loss, spans))
    return [_told(story, group) for group in groups.values()]


def _cause(story: Story, loss: Loss) -> tuple[int, ...]:
    """What is behind a loss; several partitions whose leader one event chose have one cause."""
    found: set[int] = set()
    for n in loss.culprits:
        brief = story.brief(n)
        found.update(brief.cause if brief is not None and brief.kind is Kind.ELECT else (n,))
    return tuple(sorted(found))


def _told(story: Story, group: list[tuple[Loss, list[Triple]]]) -> LossTold:
    by_partition: dict[str, list[tuple[Loss, list[Triple]]]] = {}
    for loss, spans in group:
        by_partition.setdefault(loss.partition, []).append((loss, spans))
    first = group[0][0]
    parts: list[str] = []
    links: dict[str, Link] = {}
    for place, (partition, losses) in enumerate(by_partition.items()):
        spans = joined(span for _, each in losses for span in each)
        parts.append(what_of(partition, spans))
        if place < PARTITIONS_MAX:
            cited = sorted({n for loss, _ in losses for n in loss.culprits})
            for link in links_of(story, [loss for loss, _ in losses], spans, cited):
                links.setdefault(link.text, link)
    more = len(parts) - PARTITIONS_MAX
    if more > 0:
        parts = [*parts[:PARTITIONS_MAX], f"{counted(more, 'more partition')} in the same way"]
    licence = name(first.licence) or "?"
    meaning = _LEGAL.get(first.licence)
    head = f"{licence} ({meaning}): " if meaning else f"{licence}: "
    rule = f"Because {sentence(first.rule)}." if first.rule else ""
    if any(link.is_cited for link in links.values()):
        rule = f"{rule} Its causes are marked with *.".strip()
    return LossTold(
        first.licence,
        head + "; ".join(parts),
        rule,
        tuple(sorted(links.values(), key=lambda link: link.n)[:LINKS_MAX]),
        tuple(loss.n for loss, _ in group),
    )


def what_of(partition: str, spans: list[Triple]) -> str:
    """``5 records of orders-0, offsets 10..14 of epoch 0``."""
    spans = joined(spans)
    ranges = [f"{these(base, end)} of epoch {epoch}" for epoch, base, end in spans]
    more = len(ranges) - SPANS_MAX
    if more > 0:
        ranges = [*ranges[:SPANS_MAX], f"{counted(more, 'more range')}"]
    count = sum(end - base for _, base, end in spans)
    return f"{counted(count, 'record')} of {name(partition)}, {listed(ranges)}"
