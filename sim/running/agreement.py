"""Whether the layers of judgement agree: what clients saw, and what the judge says became of it.

A history with an anomaly that nothing makes legal, in a partition of which the judge says nothing,
is a fault of Leaderfall's judgement, and so is a record that the judge calls lost and that a reader
who came later reads all the same. Either means that one of the two is wrong, whatever the cluster
did (FAULTS D).

Left out: invariants that were broken without any client noticing, which is how it should be.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from attrs import evolve, frozen

from cluster.guards import Guards
from cluster.names import TopicIdPartition
from sim.checks.judge import Judge
from sim.checks.ranges import Records
from sim.checks.violations import Violation
from sim.histories.anomalies import SAFETY, Anomaly, Conditions, illegal
from sim.histories.checking import check
from sim.histories.recorder import Recorder
from sim.histories.values import Excuse, History, Poll, Signal
from sim.network_rules import Corrupt
from sim.world import World

__all__ = [
    "Disagreement",
    "OracleFault",
    "anomalies_of",
    "conditions_of",
    "disagreements",
    "excuses_of",
]

_GUARDED: Final[dict[str, tuple[str, ...]]] = {
    "bump_epoch_only_when_idle": ("duplicate", "int-nonmonotonic-send", "nonmonotonic-send"),
    "one_epoch_per_position": ("poll-skip", "int-poll-skip", "stale-read", "lost-write"),
    "newer_metadata_only": ("stale-read", "false-truncation"),
    "topic_id_tells_topics": ("nonmonotonic-poll", "stale-read", "phantom", "duplicate"),
}
"""Guards of clients, and the anomalies that each alone prevents: no invariant of brokers does."""


@frozen
class Disagreement:
    """Two layers say what cannot both be.

    Attributes:
        partition: as ``orders-0``.
        history: what clients saw.
        judgement: what the judge says, or that it says nothing.
        events: of the trace, ascending: those that clients saw, and those that the judge names.
    """

    partition: str
    history: str
    judgement: str
    events: tuple[int, ...]

    def __str__(self) -> str:
        events = ", ".join(f"#{each}" for each in self.events)
        return f"{self.partition}: clients saw {self.history}; {self.judgement} (events {events})"


class OracleFault(Exception):
    """Leaderfall's own judgement of a run is wrong; what the cluster did is unknown.

    Attributes:
        disagreements: at least one; text is what the ledger itself cannot account for.
    """

    def __init__(self, found: Sequence[Disagreement | str]) -> None:
        super().__init__(
            "the layers of Leaderfall's judgement disagree, so this run has no verdict: "
            + "; ".join(str(each) for each in found)
        )
        self.disagreements = tuple(found)


def anomalies_of(
    world: World,
    judge: Judge,
    *,
    is_drained: bool,
    unavailable: Iterable[str] = (),
    is_strict: bool = False,
) -> list[Anomaly]:
    """What the clients of a world saw that contradicts itself; the judge's losses excuse.

    Args:
        is_strict: a guard that is off excuses nothing.
        is_drained: readers have gone on to the ends of all logs that can be read.
        unavailable: partitions that cannot be read.
    """
    conditions = conditions_of(world, judge, unavailable)
    if is_strict:
        conditions = evolve(conditions, guards_off=frozenset())
    return check(
        Recorder.of(world).history(),
        is_drained=is_drained,
        excused=excuses_of(judge),
        conditions=conditions,
    )


def excuses_of(judge: Judge) -> list[Excuse]:
    """Every record that the judge has seen lost, or replaced, or that is about to be lost."""
    found = [
        Excuse(place, span.epoch, span.start, span.end, loss.event)
        for place in judge.scene.ledgers
        for loss in judge.facts.losses_of(place)
        for span in loss.spans
    ]
    found += [
        Excuse(place, span.epoch, span.start, span.end, event)
        for place, ledger in judge.scene.ledgers.items()
        for span, event in ledger.replaced
    ]
    return [*found, *_about_to_be_lost(judge)]


def _about_to_be_lost(judge: Judge) -> Iterator[Excuse]:
    """What was acknowledged, never committed, and is not where the next leader begins.

    While nobody leads as the controller has it, two logs may have two records at one offset, both
    acknowledged under acks 1: one of them is lost as soon as somebody does. A deposed leader that
    has not heard that its topic is gone acknowledges what goes with it.
    """
    scene, event = judge.scene, judge.scene.world.trace.count
    for partition, ledger in scene.ledgers.items():
        record = scene.records.get(partition)
        if scene.legitimate_leader(ledger) is not None:
            continue
        doubtful = Records(ledger.acked)
        for sure in (ledger.owed, ledger.committed):
            doubtful.discard(list(sure))
        spans = list(doubtful)
        if record is not None:
            leader = ledger.places.get(record.leader or "")
            places = ledger.places.values() if leader is None else [leader]
            spans = [span for place in places for span in ledger.missing_at(place, doubtful)]
        for span in spans:
            yield Excuse(partition, span.epoch, span.start, span.end, event)


def conditions_of(world: World, judge: Judge, unavailable: Iterable[str] = ()) -> Conditions:
    """What else makes anomalies of a world legal."""
    ledgers, guards = judge.scene.ledgers, world.config.guards
    return Conditions(
        compacted=frozenset(
            place.topic_id for place, ledger in ledgers.items() if ledger.is_compacted
        ),
        log_starts={place: ledger.start for place, ledger in ledgers.items()},
        gone=frozenset(place.topic_id for place in ledgers if place not in judge.scene.records),
        taken_again={place: ledger.taken_again for place, ledger in ledgers.items()},
        taken_ahead={place: ledger.taken_ahead for place, ledger in ledgers.items()},
        unavailable=frozenset(unavailable),
        has_flipped_bits=any(isinstance(each, Corrupt) for each in world.faults.values()),
        guards_off=_unguarded(guards),
    )


def _unguarded(guards: Guards) -> frozenset[str]:
    off = [names for guard, names in _GUARDED.items() if not getattr(guards, guard)]
    return frozenset(name for names in off for name in names)


def disagreements(
    world: World, judge: Judge, anomalies: Iterable[Anomaly], *, is_drained: bool
) -> list[Disagreement | str]:
    """Where both layers cannot be right, and what does not add up in the ledger itself.

    The judge has finished.
    """
    history = Recorder.of(world).history()
    unguarded = _unguarded(world.config.guards)
    found: list[Disagreement | str] = [*judge.doubts]
    found += [
        *_unseen_by_judge(anomalies, judge.violations, unguarded),
        *_miscounted(history, judge),
    ]
    if is_drained:
        found += _read_though_lost(history, judge)
    return found


def _unseen_by_judge(
    anomalies: Iterable[Anomaly], violations: Sequence[Violation], unguarded: frozenset[str]
) -> Iterator[Disagreement]:
    """Anomalies of safety, where the judge saw neither a loss of these records nor a violation."""
    broken = {each.partition for each in violations}
    for each in illegal(anomalies):
        if each.name in SAFETY - unguarded and not broken & {each.partition, ""}:
            yield Disagreement(
                each.partition,
                f"{each.name}: {each.detail}",
                "the judge knows of no loss of that record, and of no broken rule there",
                each.events,
            )


def _miscounted(history: History, judge: Judge) -> Iterator[Disagreement]:
    """Acknowledgements that the judge did not count, or that nobody got."""
    told: dict[str, list[int]] = {}
    ids: dict[str, set[str]] = {}
    for end in history.ends.values():
        if end.kind == "ok" and end.place is not None:
            told.setdefault(str(end.place), []).append(end.event)
    for place in judge.scene.ledgers:
        ids.setdefault(str(place), set()).add(place.topic_id)
    for partition in sorted({*told, *ids}):
        events = told.get(partition, [])
        counted = judge.facts.acked(partition)
        if len(ids.get(partition, ())) <= 1 and counted != len(events):
            yield Disagreement(
                partition,
                f"{len(events)} acknowledgements",
                f"the judge counts {counted}",
                tuple(sorted(events)[-1:]),
            )


def _read_though_lost(history: History, judge: Judge) -> Iterator[Disagreement]:
    """Records that are lost for good, and read by a session that began behind the loss."""
    lost: dict[TopicIdPartition, tuple[Records, int]] = {}
    for place, ledger in judge.scene.ledgers.items():
        gone = Records(ledger.gone)
        gone.discard(list(ledger.back))
        events = [each.event for each in judge.facts.losses_of(place)]
        if gone and place in judge.scene.records:
            lost[place] = gone, max(events, default=0)
    begun: dict[tuple[str, int, str], int] = {}
    for each in history.readings:
        if isinstance(each, Signal):
            if each.kind in ("assigned", "sought"):
                key = each.client, each.session, f"{each.topic}-{each.partition}"
                begun[key] = each.event
            continue
        found = _shown_again(each, lost, begun)
        if found is not None:
            yield found
            del lost[each.place]


def _shown_again(
    poll: Poll,
    lost: dict[TopicIdPartition, tuple[Records, int]],
    begun: dict[tuple[str, int, str], int],
) -> Disagreement | None:
    partition = str(poll.place)
    gone, event = lost.get(poll.place, (Records(), 0))
    if begun.get((poll.client, poll.session, partition), 0) <= event:
        return None
    if not gone.has(poll.epoch, poll.offset):
        return None
    return Disagreement(
        partition,
        f"offset {poll.offset} of epoch {poll.epoch}, which {poll.client} read",
        "the judge has it as lost for good",
        (event, poll.event),
    )
