"""A short time line in words: what happened, in lines of one sentence.

What clients and replicas do all the time (sending, appending, copying, acknowledging) is added up
between two lines of anything else. A long run is shortened further: neighbours of the least weight
become one line, until there are ``LINES_MAX``.

Left out: why (``sim.present.chains``), printing (``sim.present.text``).
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum, StrEnum
from typing import Final

from attrs import frozen

from sim.present.story import Happening, Story
from sim.present.tallies import Tallies
from sim.present.tellings import Told, tell
from sim.present.words import counted

__all__ = ["LINES_MAX", "Line", "Tone", "Weight", "timeline"]

LINES_MAX: Final = 80
GAP_US: Final = 1_000_000
"""What is further apart is not added up."""


class Tone(StrEnum):
    """What a line is about, for its colour."""

    STEP = "step"
    FAULT = "fault"
    BAD = "bad"
    GOOD = "good"
    TRAFFIC = "traffic"
    PLAIN = "plain"


class Weight(IntEnum):
    """How much a line matters: the least go first where there are too many."""

    TRAFFIC = 0
    ROUTINE = 1
    CHANGE = 2
    LOSS = 3


@frozen
class Line:
    """One line.

    Attributes:
        first, last: numbers of the events that it tells of.
        t_us: when the first one was.
        words: what kinds of things it adds up, for lines that are shortened.
    """

    first: int
    last: int
    t_us: int
    text: str
    tone: Tone
    weight: Weight
    words: tuple[str, ...] = ()


def timeline(story: Story, *, lines_max: int = LINES_MAX) -> list[Line]:
    """The lines, oldest first."""
    lines = list(_lines(story))
    for weight in (Weight.TRAFFIC, Weight.ROUTINE, Weight.CHANGE, Weight.LOSS):
        if len(lines) > lines_max:
            lines = _shortened(lines, weight, lines_max)
    return lines


def _lines(story: Story) -> Iterable[Line]:
    tallies = Tallies(story)
    group: list[Happening] = []
    last_us = 0
    for happening in story.happenings:
        if tallies.takes(happening):
            yield from _hard(story, tallies, group)
            group = []
            if story.time_us(happening.n) - last_us > GAP_US:
                yield from _soft(story, tallies)
            last_us = story.time_us(happening.n)
            tallies.take(happening)
            continue
        # What one handler does is one line.
        if group and not _belong_together(story, group[-1], happening):
            yield from _hard(story, tallies, group)
            group = []
        group.append(happening)
    yield from _hard(story, tallies, group)
    yield from _soft(story, tallies)


def _belong_together(story: Story, one: Happening, other: Happening) -> bool:
    """Whether two happenings are of one node and one handler, or all begin the world."""
    if one.what == other.what == "start" and story.time_us(one.n) == story.time_us(other.n):
        return True
    if one.node != other.node:
        return False
    first, second = story.briefs[one.n - 1], story.briefs[other.n - 1]
    return (
        first.cause == second.cause != () or second.cause[:1] == (one.n,)
    ) and first.t_us == second.t_us


def _hard(story: Story, tallies: Tallies, group: list[Happening]) -> Iterable[Line]:
    told = tell(story, group)
    if told is None:
        return
    yield from _soft(story, tallies)
    yield _line(story, told)


def _soft(story: Story, tallies: Tallies) -> Iterable[Line]:
    return (_line(story, told) for told in tallies.flush())


def _line(story: Story, told: Told) -> Line:
    return Line(
        told.first,
        told.last,
        story.time_us(told.first),
        told.text,
        Tone(told.tone),
        Weight(told.weight),
        told.words,
    )


# Shortening ------------------------------------------------------------------------------------


def _shortened(lines: list[Line], weight: Weight, lines_max: int) -> list[Line]:
    """Runs of lines up to a weight become one line each; if that is not enough, longer ones."""
    found = _merged(lines, weight, span=None)
    if len(found) < lines_max // 2 and len(lines) > lines_max:
        # More of it fits: runs are cut into as many parts as there is room for.
        light = sum(line.weight <= weight for line in lines)
        room = max(1, lines_max - (len(lines) - light) - len(found))
        found = _merged(lines, weight, span=max(2, -(-light // room)))
    return found if len(found) <= lines_max or weight < Weight.LOSS else _halved(found, lines_max)


def _merged(lines: list[Line], weight: Weight, span: int | None) -> list[Line]:
    found: list[Line] = []
    run: list[Line] = []
    for line in lines:
        if line.weight <= weight and (span is None or len(run) < span):
            run.append(line)
            continue
        found += _one(run)
        run = [line] if line.weight <= weight else []
        if line.weight > weight:
            found.append(line)
    return found + _one(run)


def _halved(lines: list[Line], lines_max: int) -> list[Line]:
    size = -(-len(lines) // lines_max)
    return [each for at in range(0, len(lines), size) for each in _one(lines[at : at + size])]


def _one(run: list[Line]) -> list[Line]:
    """One line for several: how many of each kind."""
    if len(run) < 2:
        return run
    counts: dict[str, int] = {}
    for line in run:
        for word in line.words or ("line",):
            what, _, number = word.partition("=")
            counts[what] = counts.get(what, 0) + (int(number) if number else 1)
    told = [counted(count, *_plural(what)) for what, count in counts.items()]
    tones = [line.tone for line in run]
    weight = max(line.weight for line in run)
    tone = next((t for t in (Tone.BAD, Tone.FAULT, Tone.STEP) if t in tones), tones[0])
    words = tuple(f"{what}={count}" for what, count in counts.items())
    first, last = run[0], run[-1]
    return [Line(first.first, last.last, first.t_us, ", ".join(told), tone, weight, words)]


def _plural(what: str) -> tuple[str, str]:
    one, _, many = what.partition("/")
    return one, many or one + "s"
