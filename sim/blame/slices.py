"""How what is blamed led to the first bad state: the events between, in words and as data.

An event is between if what is blamed happened before it, and it happened before the bad state.
*Before* is the order of causes and of each process, and of what happened because nothing came
(``sim.blame.culprits``). Of these only what is worth telling is told, by the words of
``sim.present``; of records that are lost, their tale as well.

Left out: what happened behind the bad state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import frozen

from sim.blame.counterfactual import Replays
from sim.blame.culprits import Culprits
from sim.blame.parts import Part
from sim.blame.search import Target
from sim.present.describing import describe
from sim.present.fates import records_of
from sim.present.story import Story
from sim.present.tales import Tale
from sim.present.tellings import tell
from sim.present.words import listed, name, sentence, these
from sim.running.scenario_run import header_of
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["LINES_MAX", "Line", "slice_of", "story_of", "target_words"]

LINES_MAX: Final = 25
_LINES_MIN: Final = 10
_RANGES_MAX: Final = 3
_MOVES: Final = (Kind.APPEND, Kind.REPLICATE, Kind.HW, Kind.ISR_PROPOSED, Kind.ACK)
"""What is told of the partition where there is little else."""
_SURE: Final = 100
"""Above the weight of everything that may be left out."""
_LEFT_OUT: Final = frozenset("sent hw append copy ack poll expect check recover".split())


@frozen
class Line:
    """One event that is told."""

    n: int
    t_us: int
    node: str
    kind: str
    text: str

    def plain(self) -> dict[str, Any]:
        return {
            "n": self.n,
            "t_us": self.t_us,
            "node": self.node,
            "kind": self.kind,
            "text": self.text,
        }


def story_of(replays: Replays) -> Story:
    """The story of the run in which nothing is left out."""
    header = header_of(replays.scenario, replays.seed, "")
    return Story(header, replays.base.events, replays.base.result.trace.footer)


def slice_of(
    story: Story,
    events: Sequence[Event],
    culprits: Culprits,
    blamed: Iterable[Part],
    target: Target,
    *,
    lines_max: int = LINES_MAX,
) -> tuple[Line, ...]:
    """What led from the blamed parts to the bad state, oldest first.

    Args:
        events: all of the run.
        lines_max: the least telling ones are left out above that.
    """
    names = {each.name for each in blamed}
    begins = [each.n for each in events if _begins(each, culprits, names)]
    between = _behind(events, culprits, begins) & _before(culprits, target.event, events)
    between |= {n for n in begins if n <= target.event}
    told: dict[int, tuple[int, str]] = {}
    for happening in story.happenings:
        if happening.n not in between or happening.what in _LEFT_OUT:
            continue
        found = tell(story, [happening])
        if found is not None:
            sure = happening.n in begins or happening.n == target.event
            told[happening.n] = _SURE if sure else found.weight, f"{found.text}."
    tale: dict[int, list[str]] = {}
    for n, text in _tale(story, target):
        tale.setdefault(n, []).append(text)
    told |= {n: (_SURE, " ".join(texts)) for n, texts in tale.items()}
    told[target.event] = _SURE, f"{target_words(target)}."
    if len(told) < _LINES_MIN:
        place = target.violation.partition if target.violation else target.losses[0].partition
        for n in sorted(between, reverse=True):
            event = events[n - 1]
            if n not in told and event.kind in _MOVES and event.args.get("partition") == place:
                told[n] = 0, f"{name(event.node)}: {describe(event)}."
            if len(told) == _LINES_MIN:
                break
    kept = sorted(told, key=lambda n: (-told[n][0], -n))[:lines_max]
    return tuple(_line(events[n - 1], told[n][1]) for n in sorted(kept))


def _begins(event: Event, culprits: Culprits, names: set[str]) -> bool:
    """Whether it is with this event that a blamed part begins, or ends a node."""
    if event.kind not in (Kind.STEP, Kind.FAULT, Kind.CRASH, Kind.FAILPOINT, Kind.CORRUPT):
        return False
    if event.args.get("done"):
        return False
    part = culprits.part_of(event.n)
    return part is not None and part.name in names


def target_words(target: Target) -> str:
    """What is asked about, in one sentence without its stop."""
    known = target.violation
    if known is not None:
        where = f" of {known.partition}" if known.partition else ""
        return f"{known.check} ({known.number}){where} is broken: {sentence(known.detail)}"
    first = target.losses[0]
    ranges = [these(start, end) for loss in target.losses for _, start, end in loss.spans]
    without = f"{listed(ranges)} of {first.partition}"
    if first.at == "acknowledging":
        count = sum(end - start for loss in target.losses for _, start, end in loss.spans)
        verb, them = ("is", "it") if count == 1 else ("are", "them")
        return f"{without} {verb} acknowledged, and {first.leader} leads without {them}"
    return f"{first.leader} leads with epoch {first.leader_epoch} without {without}"


def _tale(story: Story, target: Target) -> Iterable[tuple[int, str]]:
    """The tale of the lost records, up to their loss."""
    spans = [(loss.partition, span) for loss in target.losses for span in loss.spans]
    for partition, (epoch, start, end) in spans[:_RANGES_MAX]:
        for records in records_of(story, partition, start, end, epoch)[:_RANGES_MAX]:
            for each in Tale(story, records).chain().sentences:
                if each.n <= target.event:
                    yield each.n, each.text


def _line(event: Event, text: str) -> Line:
    return Line(event.n, event.t_us, event.node, str(event.kind), text)


# Before and behind -------------------------------------------------------------------------------


def _behind(events: Sequence[Event], culprits: Culprits, begins: Iterable[int]) -> set[int]:
    """Everything that happened behind some events."""
    found = set(begins)
    nodes: set[str] = set()
    for event in events:
        n = event.n
        if n in found:
            nodes.add(event.node)
        elif event.node in nodes and event.node != "world":
            found.add(n)
        elif any(each in found for each in culprits.before(n)):
            found.add(n)
            nodes.add(event.node)
    return found


def _before(culprits: Culprits, n: int, events: Sequence[Event]) -> set[int]:
    """Everything that happened before an event, itself too."""
    found: set[int] = set()
    nodes: set[str] = set()
    wanted = {n}
    for event in reversed(events[:n]):
        if event.n in wanted or (event.node in nodes and event.node != "world"):
            found.add(event.n)
            nodes.add(event.node)
            wanted.update(culprits.before(event.n))
    return found
