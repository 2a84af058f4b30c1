"""One step of a trace as plain data: the event, what it changed, and everything behind it.

Left out: text (``sim.present.step_text``), and moving about (``sim.present.stepper``).
"""

from __future__ import annotations

from typing import Any

from attrs import frozen

from sim.present.describing import describe
from sim.present.strips import Strip, strips_of
from sim.present.track_reading import Message, Timer
from sim.present.tracks import Tracks
from sim.present.trouble_tellings import fault_words
from sim.present.words import sentence

__all__ = ["Changed", "Expected", "LogFiles", "Mark", "View", "changed", "differences", "view"]


@frozen
class Changed:
    """A field that an event changed; None is absent."""

    path: str
    old: Any
    new: Any


@frozen
class Expected:
    """An expectation, and whether it is open, holds, is broken, met or failed."""

    id: str
    form: str
    text: str
    state: str


@frozen
class Mark:
    """Something that an event is known for: ``violation``, ``loss``, ``fault`` or ``step``."""

    n: int
    what: str
    text: str


@frozen
class LogFiles:
    """What the trace tells of a log's files; None and empty where it does not.

    Attributes:
        durable_end: what is below it survives a power cut; of a broker that is down, as it was.
        segments: base offsets of the segments that have records.
        index: offsets of the batches that have entries in an offset index.
        epochs: the epoch cache, each epoch with its first offset.
    """

    node: str
    partition: str
    durable_end: int | None
    segments: tuple[int, ...]
    index: tuple[int, ...]
    epochs: tuple[tuple[int, int], ...]


@frozen
class View:
    """Everything behind event ``n``; event 0 is the empty beginning.

    Attributes:
        last: number of the last event.
        causes: the events that this one goes back to at once.
        marks: what this event is known for.
        eligible: of each partition that has any, the eligible leader replicas.
        statuses: of the nodes: up, paused, down, off, stopped or never.
        faults: id and words of those that are active.
    """

    n: int
    last: int
    t_us: int
    node: str
    kind: str
    text: str
    causes: tuple[int, ...]
    changes: tuple[Changed, ...]
    marks: tuple[Mark, ...]
    strips: tuple[Strip, ...]
    files: tuple[LogFiles, ...]
    eligible: dict[str, tuple[str, ...]]
    statuses: dict[str, str]
    faults: tuple[tuple[str, str], ...]
    expects: tuple[Expected, ...]
    messages: tuple[Message, ...]
    timers: tuple[Timer, ...]


def view(tracks: Tracks, n: int) -> View:
    """The step behind event ``n``.

    Raises:
        IndexError: there is no such event.
        TraceError: the file has changed since it was read, and is damaged now.
    """
    if not 0 <= n <= tracks.last:
        raise IndexError(f"event {n}, allowed is 0..{tracks.last}")
    now = tracks.moment(n)
    event = tracks.event(n) if n else None
    elrs = {
        name: found
        for name, partition in tracks.story.partitions.items()
        if (found := partition.elrs.at(n))
    }
    faults = tuple((id_, sentence(fault_words(tracks.story.faults[id_]))) for id_ in now.faults)
    return View(
        n=n,
        last=tracks.last,
        t_us=now.t_us if n else tracks.story.time_us(1),
        node="" if event is None else event.node,
        kind="" if event is None else event.kind.value,
        text="the empty beginning" if event is None else describe(event),
        causes=() if event is None else tuple(event.cause),
        changes=() if event is None else tuple(Changed(*each) for each in event.changes),
        marks=tuple(each for each in marks(tracks) if each.n == n),
        strips=tuple(strips_of(tracks.story, now)),
        files=tuple(
            _files(tracks, replica.node, partition.name, n)
            for partition in now.partitions
            for replica in partition.replicas
        ),
        eligible=elrs,
        statuses=now.statuses,
        faults=faults,
        expects=tuple(
            Expected(each.id, each.form, each.text, each.state(n))
            for each in tracks.expects.values()
        ),
        messages=tuple(tracks.messages.at(n)),
        timers=tuple(sorted(tracks.timers.at(n), key=lambda each: each.due)),
    )


def _files(tracks: Tracks, node: str, partition: str, n: int) -> LogFiles:
    path = f"{node}/{partition}"
    durable = tracks.durable_ends.get((node, partition))
    epochs = tracks.value(f"{path}/epochs", n)
    return LogFiles(
        node,
        partition,
        None if durable is None else durable.at(n),
        tuple(tracks.segments_at(node, partition, n)),
        tuple(tracks.index_at(node, partition, n)),
        tuple(
            (each[0], each[1])
            for each in (epochs if isinstance(epochs, list | tuple) else ())
            if isinstance(each, list | tuple) and len(each) == 2
        ),
    )


def marks(tracks: Tracks) -> tuple[Mark, ...]:
    """What every event of note is known for, in order."""
    story = tracks.story
    found = [
        Mark(each.n, "violation", f"{each.check} {each.partition or ''} {each.kind}".rstrip())
        for each in story.findings
    ]
    found += [
        Mark(each.n, "loss", f"{each.count} records of {each.partition}, {each.licence}")
        for each in story.losses
    ]
    found += [
        Mark(each.judged, "violation", f"expectation {each.id} failed: {each.text}")
        for each in tracks.expects.values()
        if each.judged is not None and not each.verdict
    ]
    for fault in story.faults.values():
        found.append(Mark(fault.begin, "fault", f"{fault.id} begins: {fault_words(fault)}"))
        if fault.end is not None:
            found.append(Mark(fault.end, "fault", f"{fault.id} ends"))
    for node in story.nodes.values():
        found += [
            Mark(n, "fault", f"{node.name} is {status}")
            for n, status in node.statuses
            if status in ("down", "off", "paused")
        ]
    for step in story.steps.values():
        found.append(Mark(step.begin, "step", f"{step.id} {step.text}"))
    return tuple(sorted(found, key=lambda each: (each.n, each.what, each.text)))


def changed(tracks: Tracks, n: int) -> tuple[Changed, ...]:
    """What an event changed."""
    return tuple(Changed(*each) for each in tracks.event(n).changes) if n else ()


def differences(tracks: Tracks, one: int, other: int) -> tuple[Changed, ...]:
    """Every path whose value behind event ``one`` is another one than behind ``other``."""
    before, behind = tracks.state(one), tracks.state(other)
    return tuple(
        Changed(path, before.get(path), behind.get(path))
        for path in sorted(before.keys() | behind.keys())
        if before.get(path) != behind.get(path)
    )
