"""What came of two runs: losses, broken rules and expectations that only one of them has.

Left out: the states of their replicas (``sim.present.compared_states``).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import NamedTuple

from attrs import frozen

from sim.present.args import text
from sim.present.history import Finding, Loss
from sim.present.story import Story
from sim.present.words import counted, name, offsets, sentence

__all__ = ["Item", "Outcome", "expectations", "findings", "losses"]


@frozen
class Item:
    """Something that a run has, and the event that says so."""

    n: int
    text: str


@frozen
class Outcome:
    """What both runs have, as pairs of events, and what only one has."""

    both: tuple[tuple[int, int], ...]
    a: tuple[Item, ...]
    b: tuple[Item, ...]


class _Known(NamedTuple):
    key: Hashable
    item: Item


def losses(a: Story, b: Story) -> Outcome:
    """Losses; the same are of the same records, in the same kind of place, of one licence."""
    return _outcome(map(_loss, a.losses), map(_loss, b.losses))


def _loss(loss: Loss) -> _Known:
    ranges = ", ".join(f"{offsets(base, end)} of epoch {epoch}" for epoch, base, end in loss.spans)
    words = f"{counted(loss.count, 'record')} of {name(loss.partition)} lost: {ranges}"
    words += f" ({name(loss.licence)})" if loss.licence else ""
    key = loss.partition, loss.spans, loss.count, loss.licence, loss.rule, loss.at
    return _Known(key, Item(loss.n, sentence(words)))


def findings(a: Story, b: Story) -> Outcome:
    """Rules found broken; the same are of the same check, partition and kind."""
    return _outcome(map(_finding, a.findings), map(_finding, b.findings))


def _finding(finding: Finding) -> _Known:
    where = "" if finding.partition is None else f" of {name(finding.partition)}"
    words = f"{name(finding.check)}{where}: {sentence(finding.detail or finding.kind)}"
    return _Known((finding.check, finding.partition, finding.kind), Item(finding.n, words))


def expectations(a: Story, b: Story) -> Outcome:
    """What became of each expectation: whether it held when it was last looked at."""
    return _outcome(_expected(a), _expected(b))


def _expected(story: Story) -> list[_Known]:
    last: dict[tuple[str | None, str | None], _Known] = {}
    for happening in story.happenings:
        if happening.what == "expect":
            key = text(happening.data, "form"), text(happening.data, "text")
            holds = happening.data.get("holds") is True
            words = f"{name(key[0])} {sentence(key[1])}: {'holds' if holds else 'does not hold'}"
            last[key] = _Known((*key, holds), Item(happening.n, words))
    return list(last.values())


def _outcome(a: Iterable[_Known], b: Iterable[_Known]) -> Outcome:
    """Equal keys are paired in order."""
    waiting: dict[Hashable, list[Item]] = {}
    for known in a:
        waiting.setdefault(known.key, []).append(known.item)
    both, only_b = [], []
    for known in b:
        same = waiting.get(known.key)
        if same:
            both.append((same.pop(0).n, known.item.n))
        else:
            only_b.append(known.item)
    only_a = sorted((each for items in waiting.values() for each in items), key=lambda it: it.n)
    return Outcome(tuple(sorted(both)), tuple(only_a), tuple(only_b))
