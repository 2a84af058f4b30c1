"""Whether what is missing can come at all (FAULTS D.5, point 5).

``impossible`` proves that something cannot: no controller, nobody who may lead, a lead that is with
a broker outside the core which others do not reach, a leader whose log is damaged where it lies,
too few who can ever be in sync, a broker that cannot live since its disk is full or damaged, a log
that cannot be salvaged. Each proof names its culprits. ``unlicensed`` is what no proof covers: a
failure of the cluster.

A proof rests on what will not change any more: nodes outside the core are frozen for ever, and a
log in quarantine stays there while the controller counts on it and nobody else leads. Whoever is
alive and undamaged is taken to come back, so what is proven is certain, and what is not proven may
yet be impossible. Where a proof rests on a broker that runs outside the core with a fault, it is
not certain (``is_certain``): the fault may be a light one. Such a proof counts only for what is
still missing at the bound.

Pure: a snapshot in, proofs out. Left out: what an operator could do (forced elections, wipes).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from sim.liveness.predicates import Missing
from sim.liveness.snapshot import Culprit, Node, Partition, Replica, Snapshot

__all__ = ["KINDS", "Impossible", "impossible", "unlicensed"]

KINDS: Final[dict[str, str]] = {
    "no-controller": "the controller is down for good",
    "cannot-live": "a broker of the core cannot run: its disk is full, or damaged",
    "no-electable": "everybody who may lead is gone or damaged, and unclean election is off",
    "quarantined-everywhere": "all logs of a partition are in quarantine",
    "leader-outside": "the lead is with a broker outside the core that others do not reach",
    "zombie-outside": "a broker outside the core, cut off, takes itself for a leader that it was",
    "leader-damaged": "a leader has bytes that nobody can read, and does not know",
    "follower-damaged": "a follower has failed on bytes of its own that nobody can read",
    "isr-behind-damage": "damage keeps so many out of sync that too few are left for acks=all",
    "min-isr-unreachable": "too few replicas can ever be in sync for acks=all",
    "quarantined": "a log is damaged in a way that cannot be salvaged",
    "reassignment-stuck": "a replica that is being added is gone",
}
"""By kind: what is proven."""

_OF_WHOLE_PARTITION: Final = frozenset({"no-electable", "quarantined-everywhere", "leader-outside"})
_OF_CLIENTS: Final = frozenset({"writes-answered", "operations-ended", "readers-drained"})
_OF_READERS: Final = frozenset({"readers-drained", "isr-complete", "logs-equal"})
_OF_FAILED: Final = frozenset({"replicas-sound", "isr-complete", "logs-equal"})
_OF_NODE: Final = frozenset({"brokers-run", "brokers-unfenced", "metadata-applied"})


class Impossible(NamedTuple):
    """One proof.

    Attributes:
        kind: of ``KINDS``.
        partition, node: what it is about; empty for none.
        text: the proof in words, without its culprits.
        is_certain: there is nothing to wait for. A fault that stays with a broker outside the core
            may be light, and clients may find out about a zombie.
    """

    kind: str
    partition: str
    node: str
    text: str
    culprits: tuple[Culprit, ...]
    is_certain: bool = True

    def explains(self, found: Iterable[Missing]) -> bool:
        """Whether something is unavailable by it: it covers what is missing, or writes fail."""
        return self.kind == "min-isr-unreachable" or any(map(self.covers, found))

    def covers(self, each: Missing) -> bool:
        """Whether it says why this is missing."""
        if self.kind == "no-controller":
            return True
        if self.kind == "cannot-live":
            return each.node == self.node and each.predicate in _OF_NODE
        if each.partition != self.partition:
            return False
        if self.kind == "min-isr-unreachable":
            return each.predicate == "operations-ended"
        if self.kind == "zombie-outside":
            return each.predicate in _OF_CLIENTS
        if self.kind == "leader-damaged":
            return each.node == self.node and each.predicate in _OF_READERS
        if self.kind == "isr-behind-damage":
            return each.predicate in ("writes-answered", "operations-ended")
        if self.kind == "follower-damaged":
            return each.node == self.node and each.predicate in _OF_FAILED
        if self.kind == "quarantined":
            return each.predicate == "replicas-sound" and each.node == self.node
        if self.kind == "reassignment-stuck":
            return each.predicate in ("no-reassignment", "operations-ended")
        return self.kind in _OF_WHOLE_PARTITION

    def __str__(self) -> str:
        by = "; ".join(map(str, self.culprits))
        return f"{self.text}: {by}" if by else self.text


def impossible(now: Snapshot) -> tuple[Impossible, ...]:
    """All that is proven."""
    return tuple(_all(now))


def unlicensed(found: Iterable[Missing], proofs: Sequence[Impossible]) -> list[Missing]:
    """What is missing and could come."""
    return [each for each in found if not any(proof.covers(each) for proof in proofs)]


def _all(now: Snapshot) -> Iterator[Impossible]:
    controller = now.controller
    if controller.is_gone and not controller.is_running and controller.culprit is not None:
        text = f"the controller {controller.name} cannot come back"
        yield Impossible("no-controller", "", controller.name, text, (controller.culprit,))
    for node in now.nodes[1:]:
        if node.is_core and node.is_gone and not node.is_running and node.culprit is not None:
            text = f"{node.name} cannot live"
            if node.is_full:
                text += ", since its disk is full of live data"
            yield Impossible("cannot-live", "", node.name, text, (node.culprit,))
    for each in now.partitions:
        yield from _of_partition(now, each)


def _of_partition(now: Snapshot, each: Partition) -> Iterator[Impossible]:
    # A leader that runs will lead; one that is gone is replaced, if anybody can replace it.
    leader = None if each.leader is None else now.node(each.leader)
    if leader is None or (leader.is_gone and not leader.is_running):
        yield from _nobody_leads(now, each)
    elif leader.is_lost and not leader.is_fenced:
        assert leader.impaired is not None
        text = f"{leader.name} leads {each.name} from outside the core, and keeps the lead"
        yield Impossible("leader-outside", each.name, leader.name, text, (leader.impaired,), False)
    for log in each.logs:
        zombie = now.node(log.node)
        is_stale = log.role == "leader" and log.leader_epoch < each.leader_epoch
        if is_stale and zombie.is_lost and zombie.impaired is not None:
            text = (
                f"{zombie.name} takes itself for the leader of {each.name} in epoch "
                f"{log.leader_epoch}, and clients may believe it"
            )
            by = (zombie.impaired,)
            yield Impossible("zombie-outside", each.name, zombie.name, text, by, False)
    yield from _damaged_leader(now, each)
    yield from _damaged_followers(each)
    yield from _out_of_sync(now, each)
    usable = now.usable(each)
    if len(usable) < each.min_isr and len(each.isr) <= len(usable):
        text = (
            f"{each.name} needs {each.min_isr} in sync for acks=all, and only "
            f"{', '.join(usable) or 'nobody'} can be"
        )
        gone = [name for name in each.replicas if name not in usable]
        is_certain = len(now.thinkable(each)) < each.min_isr
        blame = _blame(now, each, gone)
        yield Impossible("min-isr-unreachable", each.name, "", text, blame, is_certain)
    for log in each.logs:
        if log.role == "quarantined" and not log.is_salvageable:
            text = f"{log.node} cannot salvage {each.name} ({log.error})"
            blame = _blame(now, each, [log.node])
            yield Impossible("quarantined", each.name, log.node, text, blame)
    lost = [name for name in each.adding if now.node(name).is_lost]
    if lost:
        text = f"{each.name} is to get {', '.join(lost)}, and never will"
        is_certain = any(now.node(name).is_dead for name in lost)
        blame = _blame(now, each, lost)
        yield Impossible("reassignment-stuck", each.name, "", text, blame, is_certain)


def _nobody_leads(now: Snapshot, each: Partition) -> Iterator[Impossible]:
    if all(_is_damaged(each, name) for name in each.replicas):
        text = f"every log of {each.name} is in quarantine"
        blame = _blame(now, each, each.replicas)
        yield Impossible("quarantined-everywhere", each.name, "", text, blame)
        return
    candidates = tuple(dict.fromkeys((*each.isr, *each.elr)))
    if not candidates and len(each.last_known_elr) == 1:
        candidates = each.last_known_elr
    if each.is_unclean_allowed:
        candidates = each.replicas
    if any(not now.node(name).is_lost and not _is_damaged(each, name) for name in candidates):
        return
    text = (
        f"nobody may lead {each.name}: ISR {_listed(each.isr)}, ELR {_listed(each.elr)}, "
        f"unclean election {'on' if each.is_unclean_allowed else 'off'}"
    )
    sound = [name for name in candidates if not _is_damaged(each, name)]
    is_certain = all(now.node(name).is_dead for name in sound)
    blame = _blame(now, each, candidates)
    yield Impossible("no-electable", each.name, "", text, blame, is_certain)


def _damaged_leader(now: Snapshot, each: Partition) -> Iterator[Impossible]:
    """Who reads from a leader gets no further than to bytes that cannot be read.

    It would notice when it opens its log anew, and nothing makes it do that.
    """
    led = each.log(each.leader or "")
    if led is None or led.damaged_at < 0:
        return
    positions = {"": each.read_end}
    positions |= {log.node: log.end for log in each.logs if log.role == "follower"}
    for wait in now.waits:
        if wait.what == "consume" and wait.partition == each.name:
            positions[wait.client] = wait.offset
    by = () if led.culprit is None else (led.culprit,)
    for name, position in positions.items():
        if position is not None and 0 <= position <= led.damaged_at:
            text = (
                f"{led.node} leads {each.name} and cannot read offset {led.damaged_at}, which "
                f"{name or 'a reader'} needs"
            )
            is_certain = position == led.damaged_at
            yield Impossible("leader-damaged", each.name, name, text, by, is_certain)


def _damaged_followers(each: Partition) -> Iterator[Impossible]:
    """A log that has failed is offline until it is opened anew, and nothing makes it do that."""
    for log in each.logs:
        if _has_failed(log):
            text = f"{log.node} cannot read offset {log.damaged_at} of its own log of {each.name}"
            by = () if log.culprit is None else (log.culprit,)
            yield Impossible("follower-damaged", each.name, log.node, text, by)


def _out_of_sync(now: Snapshot, each: Partition) -> Iterator[Impossible]:
    """Who is in sync stays so, and whom damage keeps out does not come in."""
    led = each.log(each.leader or "")
    at = -1 if led is None else led.damaged_at
    out = [log for log in each.logs if log.role == "follower" and log.node not in each.isr]
    kept = [log for log in out if _has_failed(log) or log.end <= at]
    left = [name for name in now.usable(each) if name not in [log.node for log in kept]]
    if not kept or len(left) >= each.min_isr:
        return
    surely = [log.node for log in kept if _has_failed(log) or log.end == at]
    thinkable = [name for name in now.thinkable(each) if name not in surely]
    text = (
        f"{each.name} needs {each.min_isr} in sync for acks=all, and only "
        f"{', '.join(left) or 'nobody'} can be, since damage keeps "
        f"{', '.join(log.node for log in kept)} out"
    )
    culprits = [log.culprit for log in (led, *kept) if log is not None and log.damaged_at >= 0]
    by = tuple(dict.fromkeys(one for one in culprits if one is not None))
    yield Impossible("isr-behind-damage", each.name, "", text, by, len(thinkable) < each.min_isr)


def _has_failed(log: Replica) -> bool:
    return log.role == "follower" and log.fetch == "failed" and log.damaged_at >= 0


def _is_damaged(each: Partition, name: str) -> bool:
    log = each.log(name)
    return log is not None and log.role == "quarantined"


def _listed(names: Iterable[str]) -> str:
    return "{" + ", ".join(names) + "}"


def _blame(now: Snapshot, each: Partition, names: Iterable[str]) -> tuple[Culprit, ...]:
    found: dict[Culprit, None] = {}
    for name in names:
        node, log = now.node(name), each.log(name)
        if node.is_lost:
            culprit = node.culprit or node.impaired or _unknown(node)
        elif log is not None and log.role == "quarantined":
            culprit = log.culprit or Culprit(f"{name} has it in quarantine ({log.error})")
        else:
            continue
        found[culprit] = None
    return tuple(found)


def _unknown(node: Node) -> Culprit:
    return Culprit(f"{node.name} is {node.status}")
