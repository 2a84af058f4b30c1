"""Who waits for whom: what is missing, as a chain in words down to what does not move.

A chain goes from what a client asked for to the partition that it is at, to the high watermark of
its leader, to the replica that holds that back, to what keeps this replica from going on. It ends
where nobody waits for anybody else.

Pure: a snapshot in, sentences out. Left out: whether it is right to wait (``recoverability``).
"""

from __future__ import annotations

from collections.abc import Sequence

from sim.liveness.predicates import Missing
from sim.liveness.snapshot import Node, Partition, Snapshot

__all__ = ["chain", "chains"]

_CHAINS_MAX = 5


def chains(now: Snapshot, found: Sequence[Missing]) -> tuple[str, ...]:
    """One chain for each partition or node that misses something, the gravest first."""
    told: dict[tuple[str, str], str] = {}
    for each in found:
        key = (each.partition, "") if each.partition else ("", each.node)
        if key not in told:
            told[key] = chain(now, each)
    return tuple(dict.fromkeys(told.values()))[:_CHAINS_MAX]


def chain(now: Snapshot, each: Missing) -> str:
    """Why this is missing."""
    partition = next((one for one in now.partitions if one.name == each.partition), None)
    if partition is None:
        node = next((one for one in now.nodes if one.name == each.node), None)
        is_told = node is not None and not node.is_running and node.culprit is not None
        return f"{each.text}: {node.culprit}" if node is not None and is_told else each.text
    own = partition.log(each.node)
    if own is not None and own.is_same is False:
        # Nobody waits: a fetch that goes on from there finds nothing wrong.
        return each.text
    head = _head(now, partition) or each.text
    if each.predicate == "no-reassignment":
        return f"{each.text}, which waits for {_of_goal(now, partition)}"
    tail = _of_partition(now, partition, each)
    return f"{head}, which waits for {tail}" if tail else head


def _head(now: Snapshot, partition: Partition) -> str:
    """The oldest operation that waits at a partition."""
    for wait in now.waits:
        if wait.partition != partition.name or wait.what == "consume":
            continue
        since = f" (#{wait.since})" if wait.since else ""
        what = f"{wait.client}'s {wait.text or wait.what} to {partition.name}{since}"
        if wait.offset >= 0 and wait.at:
            return f"{what} waits for high watermark {wait.offset} of {wait.at}"
        if wait.at:
            return f"{what} waits for an answer of {wait.at}"
        return f"{what} waits to be sent"
    return ""


def _of_partition(now: Snapshot, partition: Partition, missing: Missing) -> str:
    """What the partition as a whole waits for; empty where it waits for nobody."""
    if not now.controller.is_running:
        return f"the controller {now.controller.name}, which is {_of_node(now.controller)}"
    if partition.leader is None:
        return _of_election(now, partition)
    leader = now.node(partition.leader)
    if not partition.is_led:
        role = partition.log(leader.name)
        what = f"{leader.name} to lead it in epoch {partition.leader_epoch}"
        if not leader.is_running or leader.impaired is not None:
            return f"{what}, which is {_of_node(leader)}"
        if role is not None and role.role == "quarantined":
            return f"{what}, whose log is in quarantine ({role.error})"
        at = f", at epoch {role.leader_epoch}" if role is not None else ""
        return f"{what}, which has not applied that{at}"
    if missing.predicate in ("elr-empty", "operations-ended") and not _holders(now, partition):
        return ""
    held = _holders(now, partition)
    few = len(partition.isr) < partition.min_isr
    words = [_of_replica(now, partition, name) for name in held]
    if few:
        sync = ", ".join(partition.isr) or "nobody"
        size = f"an ISR of {partition.min_isr}, in which only {sync} is"
        return f"{size}; {'; '.join(words)}" if words else size
    return "; ".join(words)


def _of_election(now: Snapshot, partition: Partition) -> str:
    candidates = dict.fromkeys((*partition.isr, *partition.elr)) or dict.fromkeys(
        partition.last_known_elr
    )
    words = []
    for name in candidates:
        node, log = now.node(name), partition.log(name)
        if log is not None and log.role == "quarantined" and node.is_running:
            state = f"in quarantine ({log.error})"
        else:
            state = _of_node(node)
        where = "in the ISR" if name in partition.isr else "in the ELR"
        words.append(f"{name}, {where}, is {state}")
    return f"an election: {'; '.join(words)}" if words else "an election, for which nobody is left"


def _holders(now: Snapshot, partition: Partition) -> list[str]:
    """The replicas that hold the partition back: behind, failed, or not in sync."""
    led = partition.log(partition.leader or "")
    end = -1 if led is None else led.end
    is_short = len(partition.isr) < partition.min_isr
    concerned = partition.replicas if is_short else (*partition.isr, *now.expected(partition))
    found = []
    for name in (name for name in partition.replicas if name in concerned):
        if name == partition.leader:
            continue
        log = partition.log(name)
        if log is None or log.end != end or log.fetch == "failed" or name not in partition.isr:
            found.append(name)
    return found


def _of_goal(now: Snapshot, partition: Partition) -> str:
    left = [name for name in partition.goal if name not in partition.isr]
    if not left:
        return f"{partition.leader or 'a leader'} to report an ISR with all of them"
    return "; ".join(_of_replica(now, partition, name) for name in left)


def _of_replica(now: Snapshot, partition: Partition, name: str) -> str:
    """A replica, and what keeps it from going on."""
    node, log = now.node(name), partition.log(name)
    sync = "in sync" if name in partition.isr else "out of sync"
    if log is None or log.role == "none":
        what = f"{name} ({sync})"
        return f"{what}, which is {_of_node(node)}" if not node.is_running else f"{what}: no log"
    head = f"{name} ({sync}, log end {log.end})"
    if not node.is_running or node.impaired is not None:
        return f"{head}, which is {_of_node(node)}"
    if log.role == "quarantined":
        by = f", since {log.culprit}" if log.culprit is not None else ""
        return f"{name} ({sync}), whose log is in quarantine ({log.error}{by})"
    if log.fetch == "failed":
        return f"{head}, whose fetcher is failed{f' since #{log.failed}' if log.failed else ''}"
    if log.circles:
        return f"{head}, which cuts its log again and again since #{log.circles}"
    if node.is_fenced:
        return f"{head}, which is fenced"
    if log.leader != partition.leader or log.leader_epoch != partition.leader_epoch:
        whom = log.leader or "nobody"
        epoch = f"in epoch {log.leader_epoch}, not {partition.leader_epoch}"
        return f"{head}, which follows {whom} {epoch}"
    if partition.proposed is not None and name in partition.proposed:
        return f"{head}, whom {partition.leader} has proposed for the ISR without an answer"
    return f"{head}, which fetches from {partition.leader} ({log.fetch or 'idle'}) and gets nothing"


def _of_node(node: Node) -> str:
    """The state of a node, and whose doing it is."""
    if not node.is_running:
        words = node.status
        if node.culprit is not None and node.culprit.event:
            words += f" since #{node.culprit.event}"
        return words if node.is_core else f"{words}, outside the core"
    if node.impaired is not None:
        return f"outside the core, with {node.impaired}"
    return "fenced" if node.is_fenced else "running"
