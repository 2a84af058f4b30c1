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

from sim.liveness.damage_proofs import Gap, gaps, of_damage
from sim.liveness.predicates import Missing
from sim.liveness.proofs import KINDS, Impossible
from sim.liveness.snapshot import Culprit, Node, Partition, Snapshot, Wait

__all__ = ["KINDS", "Impossible", "impossible", "unlicensed"]


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
    asked = dict.fromkeys(each.at for each in now.waits if each.what == "request")
    for node in now.nodes[1:]:
        by = node.culprit or node.impaired
        if node.name in asked and node.is_lost and by is not None:
            text = f"{node.name} answers no operator any more"
            yield Impossible("asked-is-gone", "", node.name, text, (by,), node.is_dead)
    yield from _asked_for(now)
    found = list(gaps(now))
    for each in now.partitions:
        yield from _of_partition(now, each, found)


def _asked_for(now: Snapshot) -> Iterator[Impossible]:
    """What every open request to one node needs is gone."""
    waits = [each for each in now.waits if each.what == "request"]
    for at in dict.fromkeys(each.at for each in waits):
        gone: dict[str, Node] = {}
        for wait in waits:
            if wait.at == at:
                lacking = _lacking(now, wait)
                if not lacking:
                    break
                gone |= {node.name: node for node in lacking}
        else:
            text = f"an operator asks {at} for replicas on {', '.join(gone)}, which cannot come"
            is_certain = all(node.is_dead for node in gone.values())
            blame = (node.culprit or node.impaired or _unknown(node) for node in gone.values())
            yield Impossible(
                "asked-for-gone", "", at, text, tuple(dict.fromkeys(blame)), is_certain
            )


def _lacking(now: Snapshot, wait: Wait) -> list[Node]:
    """Whom a request needs active who will never be, where too few are left without them."""
    for count, names in wait.needs:
        gone = [node for name in names if (node := now.node(name)).is_lost and node.is_fenced]
        if len(names) - len(gone) < count:
            return gone
    return []


def _of_partition(now: Snapshot, each: Partition, found: Sequence[Gap]) -> Iterator[Impossible]:
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
    yield from of_damage(now, each, found)
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
    lost = [name for name in each.goal if each.is_reassigned and name not in usable]
    if lost:
        text = f"a reassignment of {each.name} needs {', '.join(lost)} in sync, which can never be"
        thinkable = now.thinkable(each)
        is_certain = any(name not in thinkable for name in lost)
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
