"""What damage proves that its process does not know of: who is behind it gets no further.

So it is with who has failed since a request, or its answer, was garbled on its way.

A leader that runs does not read its own log, so nothing makes it notice. Whoever asks it for such
bytes, or for others in the same request, gets an error, or nothing.

Pure: a snapshot in, proofs out. Left out: logs in quarantine (``sim.liveness.recoverability``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from sim.liveness.proofs import Impossible
from sim.liveness.snapshot import Culprit, Partition, Replica, Snapshot

__all__ = ["Gap", "gaps", "of_damage"]


def of_damage(now: Snapshot, each: Partition, gaps: Sequence[Gap]) -> Iterator[Impossible]:
    """All that is proven of one partition.

    Args:
        gaps: of all partitions.
    """
    yield from _damaged_leader(now, each)
    yield from _damaged_followers(each)
    yield from _refused_roles(each)
    failing = {gap.client: gap for gap in gaps if gap.concerns(each)}
    yield from _failing_answers(now, each, failing)
    yield from _out_of_sync(now, each, failing)


def _damaged_leader(now: Snapshot, each: Partition) -> Iterator[Impossible]:
    """Who reads from a leader gets no further than to bytes that cannot be read.

    It would notice when it opens its log anew, and nothing makes it do that.
    """
    led = each.log(each.leader or "")
    if led is None or not led.damages:
        return
    by = () if led.culprit is None else (led.culprit,)
    for name, position in _positions(now, each).items():
        at = -1 if position < 0 else led.damaged_at(position)
        if at >= 0:
            text = (
                f"{led.node} leads {each.name} and cannot read offset {at}, which "
                f"{name or 'a reader'} needs"
            )
            is_certain = position == at
            yield Impossible("leader-damaged", each.name, name, text, by, is_certain)
        elif led.is_hidden(position):
            text = (
                f"{led.node} leads {each.name} and does not find offset {position}, which "
                f"{name or 'a reader'} needs, since a header in front of it is damaged"
            )
            yield Impossible("leader-damaged", each.name, name, text, by, False)


def _positions(now: Snapshot, each: Partition) -> dict[str, int]:
    """Where everybody who reads a partition is: the final reader, followers, consumers."""
    found = {"": -1 if each.read_end is None else each.read_end}
    found |= {log.node: log.end for log in each.logs if log.role == "follower"}
    for wait in now.waits:
        if wait.what == "consume" and wait.partition == each.name:
            found[wait.client] = wait.offset
    return found


class Gap(NamedTuple):
    """Somebody asks a leader for bytes that its file does not have any more."""

    leader: str
    client: str
    partition: str
    offset: int
    culprit: Culprit | None

    def concerns(self, each: Partition) -> bool:
        """Whether another partition is asked for in the same requests."""
        return each.leader == self.leader and each.name != self.partition


def gaps(now: Snapshot) -> Iterator[Gap]:
    """A request names all that a client reads of a leader, and its response is sent as a whole."""
    for each in now.partitions:
        led = each.log(each.leader or "")
        if led is None or led.role != "leader":
            continue
        for name, position in _positions(now, each).items():
            log = each.log(name)
            is_asked = log is None or (log.leader == led.node and log.fetch != "failed")
            at = next((max(start, position) for start, end in led.torn if position < end), -1)
            if is_asked and position >= 0 and at >= 0:
                yield Gap(led.node, name, each.name, at, led.culprit)


def _failing_answers(
    now: Snapshot, each: Partition, failing: Mapping[str, Gap]
) -> Iterator[Impossible]:
    """Whoever has a gap in the way of one partition gets nothing of the others, either.

    A response may have no room for what is gone, so nothing is certain.
    """
    for name in _positions(now, each):
        gap = failing.get(name)
        if gap is not None:
            text = (
                f"{gap.leader} cannot answer {name or 'a reader'} for {each.name}, since it has to "
                f"answer for offset {gap.offset} of {gap.partition} too, and its file ends before "
                f"that"
            )
            by = () if gap.culprit is None else (gap.culprit,)
            yield Impossible("answers-fail", each.name, name, text, by, False)


def _damaged_followers(each: Partition) -> Iterator[Impossible]:
    """A log that has failed is offline until it is opened anew, and nothing makes it do that."""
    for log in each.logs:
        if not _has_failed(log):
            continue
        by = () if log.culprit is None else (log.culprit,)
        if log.damages:
            text = f"{log.node} cannot read offset {log.damaged_at()} of its own log of {each.name}"
            yield Impossible("follower-damaged", each.name, log.node, text, by)
        else:
            text = f"the fetcher of {log.node} has failed for {each.name} (#{log.failed})"
            yield Impossible("follower-misled", each.name, log.node, text, by)


def _refused_roles(each: Partition) -> Iterator[Impossible]:
    """Who cannot read the end of its log takes no role, and tries again when its metadata changes.

    To the controller it is the leader, or a follower, all the same.
    """
    for log in each.logs:
        if _has_no_role(each, log):
            text = f"{log.node} cannot take its role for {each.name} (#{log.refused})"
            by = () if log.culprit is None else (log.culprit,)
            node = "" if log.node == each.leader else log.node
            yield Impossible("role-refused", each.name, node, text, by, False)


def _has_no_role(each: Partition, log: Replica) -> bool:
    is_behind = log.leader_epoch < each.leader_epoch and each.leader is not None
    return is_behind and log.refused > 0 and bool(log.damages)


def _out_of_sync(
    now: Snapshot, each: Partition, failing: Mapping[str, Gap]
) -> Iterator[Impossible]:
    """Whom damage keeps from the end of the leader's log holds back every write, in sync or not.

    It holds back a reassignment that waits for it, too. One that has all that is committed joins
    the ISR, does not get on, and is put out again. While it is in, it may be elected, so nothing is
    certain.
    """
    led = each.log(each.leader or "")
    mark = -1 if led is None else led.high_watermark
    kept = _kept(each, failing)
    refused = [log.node for log in kept if _has_no_role(each, log)]
    by = _blame(each, kept, failing)
    has_moved = each.changed_us > 0 and now.t_us - each.changed_us < now.stable_us
    circling = [
        log.node
        for log in kept
        if not (_has_failed(log) or log.node in refused)
        and (log.node in each.isr or (has_moved and log.end >= mark))
    ]
    surely = [
        log.node
        for log in kept
        if _has_failed(log)
        or (
            led is not None
            and led.damaged_at(log.end) == log.end
            and log.node not in (*circling, *refused)
        )
    ]
    waiting = [log for log in kept if each.is_reassigned and log.node in each.goal]
    if waiting:
        names = ", ".join(log.node for log in waiting)
        text = f"a reassignment of {each.name} needs {names} in sync, which damage keeps from it"
        is_certain = any(log.node in surely for log in waiting)
        yield Impossible("reassignment-stuck", each.name, "", text, by, is_certain)
    left = [name for name in now.usable(each) if name not in [log.node for log in kept]]
    if not kept or len(left) >= each.min_isr:
        return
    thinkable = [name for name in now.thinkable(each) if name not in surely]
    text = (
        f"{each.name} needs {each.min_isr} in sync for acks=all, and only "
        f"{', '.join(left) or 'nobody'} can be, since damage keeps "
        f"{', '.join(log.node for log in kept)} from its end"
    )
    yield Impossible("isr-behind-damage", each.name, "", text, by, len(thinkable) < each.min_isr)
    if circling:
        text = f"{', '.join(circling)} joins the ISR of {each.name} and leaves it again and again"
        yield Impossible("isr-circles", each.name, each.leader or "", text, by, False)


def _kept(each: Partition, failing: Mapping[str, Gap]) -> list[Replica]:
    """Whom damage, anybody's, keeps from the end of the leader's log."""
    led = each.log(each.leader or "")
    refused = [log for log in each.logs if log is not led and _has_no_role(each, log)]
    return [
        log
        for log in each.logs
        if log in refused
        or (
            log.role == "follower"
            and (
                _has_failed(log)
                or log.node in failing
                or (led is not None and 0 <= log.end <= _stop(led, log.end))
            )
        )
    ]


def _blame(
    each: Partition, kept: Sequence[Replica], failing: Mapping[str, Gap]
) -> tuple[Culprit, ...]:
    led = each.log(each.leader or "")
    culprits = [log.culprit for log in (led, *kept) if log is not None]
    culprits += [failing[log.node].culprit for log in kept if log.node in failing]
    return tuple(dict.fromkeys(one for one in culprits if one is not None))


def _stop(led: Replica, offset: int) -> int:
    """Where who reads from an offset gets no further, itself where a look-up fails; or -1."""
    return offset if led.is_hidden(offset) else led.damaged_at(offset)


def _has_failed(log: Replica) -> bool:
    is_hopeless = bool(log.damages) or log.misled > 0
    return log.role == "follower" and log.fetch == "failed" and is_hopeless
