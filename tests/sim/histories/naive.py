"""The checks of histories once more, from their definitions: quadratic, and without an index.

It gives names, partitions and why they are legal, not witnesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from sim.histories.anomalies import LEGAL, Conditions, Reason
from sim.histories.values import Excuse, History, Poll, Signal

Key = tuple[str, str, str]
MOVING = ("assigned", "sought", "reset", "truncated", "failed", "recreated")


class Naive:
    """Everything that one history shows."""

    def __init__(
        self, history: History, excused: list[Excuse], conditions: Conditions, is_drained: bool
    ) -> None:
        self.history, self.excused, self.conditions = history, excused, conditions
        self.is_drained = is_drained
        # (place, offset, epoch, content, event, operation)
        seen: list[Any] = []
        for op in history.operations:
            end = history.ends.get(op.id)
            if end and end.kind == "ok" and end.place is not None and end.offset >= 0:
                content = op.topic, op.key, op.value
                seen.append((end.place, end.offset, -1, content, end.event, op))
        for each in history.readings:
            if isinstance(each, Poll):
                content = each.place.topic, each.key, each.value
                seen.append((each.place, each.offset, each.epoch, content, each.event, None))
        self.seen = sorted(seen, key=lambda each: each[4])
        self.found: set[Key] = set()
        for check in (
            self.offsets,
            self.duplicates,
            self.writes,
            self.reads,
            self.moves,
            self.truncations,
            self.sends,
            self.commits,
        ):
            check()

    def add(self, name: str, place: Any, holds: set[Reason]) -> None:
        if self.conditions.has_flipped_bits:
            legal: str = Reason.FLIPPED_BITS
        elif name in self.conditions.guards_off:
            legal = Reason.GUARD_OFF
        else:
            legal = next((each for each in LEGAL[name][1] if each in holds), "")
        self.found.add((name, str(place), str(legal)))

    def losses(self, place: Any, offset: int, epoch: int) -> list[int]:
        return [
            each.event
            for each in self.excused
            if each.place == place
            and each.start <= offset < each.end
            and (epoch < 0 or each.epoch in (-1, epoch))
        ]

    def why(self, place: Any, offset: int, epoch: int = -1) -> set[Reason]:
        conditions, found = self.conditions, set()
        if self.losses(place, offset, epoch):
            found.add(Reason.LOSS)
        if place.topic_id in conditions.compacted:
            found.add(Reason.COMPACTED)
        if offset < conditions.log_starts.get(place, 0) or place.topic_id in conditions.gone:
            found.add(Reason.DELETED)
        if str(place) in conditions.unavailable:
            found.add(Reason.UNAVAILABLE)
        if any(a <= offset < b for a, b in conditions.taken_again.get(place, [])):
            found.add(Reason.FORGOTTEN)
        if any(a <= offset < b for a, b in conditions.taken_ahead.get(place, [])):
            found.add(Reason.AHEAD)
        return found

    def pair(self, one: Any, other: Any) -> set[Reason]:
        last = max(one[4], other[4])
        lost = [
            event <= last or bool(each[5] and each[5].acks in (0, 1))
            for each in (one, other)
            for event in self.losses(*each[:3])
        ]
        return {Reason.LOSS} if any(lost) else set()

    def sole(self, content: Any) -> Any:
        sent = [op for op in self.history.operations if (op.topic, op.key, op.value) == content]
        return sent[0] if len(sent) == 1 else None

    def offsets(self) -> None:
        for number, each in enumerate(self.seen):
            before = [one for one in self.seen[:number] if one[:2] == each[:2]]
            acks = [one for one in before if one[5]]
            reads = [one for one in before if not one[5]]
            if before and before[-1][3] != each[3]:
                self.add("inconsistent-offsets", each[0], self.pair(before[-1], each))
            elif each[5] and acks and acks[-1][5].id != each[5].id:
                self.add("inconsistent-offsets", each[0], self.pair(acks[-1], each))
            if not each[5] and reads and reads[-1][2:4] != each[2:4]:
                self.add("fractured-read", each[0], self.pair(reads[-1], each))

    def duplicates(self) -> None:
        for number, each in enumerate(self.seen):
            op = self.sole(each[3])
            before = [
                one
                for one in self.seen[:number]
                if one[0].topic_id == each[0].topic_id and one[3] == each[3]
            ]
            if op is None or not before or before[-1][:2] == each[:2]:
                continue
            holds = self.pair(before[-1], each)
            if not op.is_idempotent:
                holds.add(Reason.NOT_IDEMPOTENT)
            holds |= self.why(before[-1][0], min(before[-1][1], each[1])) & {Reason.DELETED}
            for place, offset, *_ in (before[-1], each):
                holds |= self.why(place, offset) & {Reason.FORGOTTEN}
            self.add("duplicate", each[0], holds)

    def steps(self) -> Iterator[tuple[Poll, Poll | None, int | None]]:
        """Every poll, the one before it and the position, if it was not moved in between."""
        for number, each in enumerate(self.history.readings):
            if isinstance(each, Signal):
                continue
            earlier = [
                one
                for one in self.history.readings[:number]
                if (one.client, one.session) == (each.client, each.session)
                and _name(one) == _name(each)
                and (isinstance(one, Poll) or one.kind in MOVING)
            ]
            last = earlier[-1] if earlier else None
            if isinstance(last, Poll):
                is_same = last.place == each.place
                yield each, last if is_same else None, last.offset + 1 if is_same else None
            else:
                yield each, None, last.offset if last and last.offset >= 0 else None

    def writes(self) -> None:
        passed = [
            (poll.place, position, poll.offset)
            for poll, _, position in self.steps()
            if position is not None
        ]
        for place, offset, _, content, _, op in self.seen:
            here = [each for each in self.seen if each[:2] == (place, offset) and not each[5]]
            if op is None or any(each[3] == content for each in here):
                continue
            reads = [each[1] for each in self.seen if each[0] == place and not each[5]]
            holds = self.why(place, offset)
            if here or any(at == place and a <= offset < b for at, a, b in passed):
                self.add("lost-write", place, holds)
            elif self.is_drained:
                is_tail = offset > max(reads, default=-1)
                is_tail = is_tail and Reason.UNAVAILABLE not in holds
                self.add("lost-tail" if is_tail else "unseen", place, holds)

    def reads(self) -> None:
        for place, _, _, content, _, op in self.seen:
            if op is not None:
                continue
            kinds = [
                end.kind if (end := self.history.ends.get(sent.id)) else "open"
                for sent in self.history.operations
                if (sent.topic, sent.key, sent.value) == content
            ]
            if not kinds:
                self.add("phantom", place, set())
            elif all(kind == "fail" for kind in kinds):
                self.add("aborted-read", place, set())

    def truncations(self) -> None:
        for number, told in enumerate(self.history.readings):
            if not isinstance(told, Signal) or told.kind != "truncated":
                continue
            earlier = [
                one
                for one in self.history.readings[:number]
                if (one.client, one.session) == (told.client, told.session)
                and _name(one) == _name(told)
                and (isinstance(one, Poll) or one.kind in MOVING)
            ]
            last = earlier[-1] if earlier else None
            if isinstance(last, Poll) and last.offset >= told.offset:
                holds = self.why(last.place, last.offset, last.epoch)
                self.add("false-truncation", last.place, holds)

    def moves(self) -> None:
        for poll, before, position in self.steps():
            if position is None:
                continue
            inside = "int-" if before is not None and before.poll == poll.poll else ""
            if poll.offset < position:
                self.add(f"{inside}nonmonotonic-poll", poll.place, set())
            over = [
                each[1]
                for each in self.seen
                if each[0] == poll.place and position <= each[1] < poll.offset
            ]
            if over:
                # One jump is one anomaly: it is legal if every record may be gone.
                gone = [self.why(poll.place, each) for each in sorted(over)]
                allowed = set(LEGAL["poll-skip"][1])
                whys = [each for each in gone if not each & allowed] or gone
                self.add(f"{inside}poll-skip", poll.place, whys[0])
            if before and poll.epoch < before.epoch and poll.offset > before.offset:
                self.add("stale-read", poll.place, set())

    def sends(self) -> None:
        stands = []
        for op in sorted(self.history.operations, key=lambda each: each.id):
            mine = [
                each
                for each in self.seen
                if (each[5] or self.sole(each[3])) and (each[5] or self.sole(each[3])).id == op.id
            ]
            for place in {each[0] for each in mine}:
                stands.append((op, min((e for e in mine if e[0] == place), key=lambda e: e[1])))
        for number, (op, each) in enumerate(stands):
            same = [
                (one, other)
                for one, other in stands[:number]
                if (one.client, one.session, other[0]) == (op.client, op.session, each[0])
            ]
            moments = [one.t_us for one, _ in same]
            for at, (one, other) in enumerate(same):
                if other[1] <= each[1]:
                    continue
                is_now = all(t_us == op.t_us for t_us in moments[at:])
                name = "int-nonmonotonic-send" if is_now else "nonmonotonic-send"
                self.add(name, each[0], self.loose(op, each) | self.loose(one, other))

    def loose(self, op: Any, stand: Any) -> set[Reason]:
        end = self.history.ends.get(op.id)
        holds = self.why(*stand[:3]) & {Reason.LOSS, Reason.FORGOTTEN, Reason.AHEAD}
        if not op.is_idempotent and (op.in_flight_max > 1 or end is None or end.kind == "info"):
            holds.add(Reason.UNORDERED)
        for each in self.seen:
            sender = each[5] or self.sole(each[3])
            if sender and each[0] == stand[0] and sender.id[:2] == op.id[:2]:
                lowest = min(
                    other[1]
                    for other in self.seen
                    if other[0] == each[0] and (other[5] or self.sole(other[3])) == sender
                )
                holds |= self.why(each[0], lowest) & {Reason.DELETED}
        return holds

    def commits(self) -> None:
        signals = [each for each in self.history.readings if isinstance(each, Signal)]
        kept = [each for each in signals if each.kind == "committed" or each.kind in MOVING]
        for one, other in pairwise_of(kept):
            if one.kind == other.kind == "committed" and other.offset < one.offset:
                self.add("commit-regression", _place(other), set())
        for each in signals:
            if each.kind != "committed":
                continue
            name = each.topic, each.partition
            seen = [one for one in self.seen if (one[0].topic, one[0].partition) == name]
            moved = [
                one.offset
                for one in signals
                if (one.topic, one.partition) == name and one.kind in MOVING
            ]
            end = max([0, *[one[1] + 1 for one in seen], *moved])
            if each.offset > end:
                holds = set().union(*[self.why(one[0], end) for one in seen])
                self.add("commit-beyond-end", _place(each), holds)


def pairwise_of(signals: list[Signal]) -> Iterator[tuple[Signal, Signal]]:
    """Neighbours of one reader."""
    readers = {(each.client, each.session, each.topic, each.partition) for each in signals}
    for reader in readers:
        yield from pairwise(
            each
            for each in signals
            if (each.client, each.session, each.topic, each.partition) == reader
        )


def _name(each: Poll | Signal) -> tuple[str, int]:
    if isinstance(each, Poll):
        return each.place.topic, each.place.partition
    return each.topic, each.partition


def _place(signal: Signal) -> str:
    return f"{signal.topic}-{signal.partition}"
