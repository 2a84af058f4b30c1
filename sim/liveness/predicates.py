"""What holds in a cluster that has recovered (FAULTS D.5, point 4), each rule on its own.

A predicate takes a ``Snapshot`` and says what is missing, one ``Missing`` with a sentence for each
thing; nothing where it holds. ``PREDICATES`` names them in the order in which they come to hold in
a healthy recovery.

They cover the liveness list of the KIP-966 TLA+ work: a broker eventually runs (``brokers-run``)
and is unfenced (``brokers-unfenced``), metadata converges (``metadata-applied``), a write is
accepted or rejected (``writes-answered``, ``operations-ended``), what is acknowledged is fully
replicated (``isr-complete``, ``logs-equal``), a reassignment completes (``no-reassignment``).

While workloads write (``is_loaded``), followers are always a little behind: then log ends need not
be equal, and readers and operations need not be done.

Left out: whether what is missing can come at all (``sim.liveness.recoverability``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from sim.liveness.snapshot import Snapshot

__all__ = ["PREDICATES", "Missing", "missing"]


class Missing(NamedTuple):
    """What a predicate misses.

    Attributes:
        predicate: its name.
        partition, node: what it is about; empty for none.
    """

    predicate: str
    partition: str
    node: str
    text: str


_Found = tuple[str, str, str]
"""Partition, node and text."""


def controller_leads(now: Snapshot) -> Iterator[_Found]:
    """The controller runs and has its log."""
    if not now.controller.is_running:
        name = now.controller.name
        yield "", name, f"the controller {name} is {now.controller.status}"


def brokers_run(now: Snapshot) -> Iterator[_Found]:
    """Every core broker runs."""
    for node in now.nodes[1:]:
        if node.is_core and not node.is_running:
            yield "", node.name, f"{node.name} is {node.status}"


def brokers_unfenced(now: Snapshot) -> Iterator[_Found]:
    """Every core broker that runs is registered and not fenced."""
    for node in now.nodes[1:]:
        if node.is_core and node.is_running and node.is_fenced:
            yield "", node.name, f"{node.name} is fenced"


def metadata_applied(now: Snapshot) -> Iterator[_Found]:
    """Every core broker that runs has applied all that the controller has committed."""
    for node in now.nodes[1:]:
        if node.is_core and node.is_running and node.is_behind:
            yield "", node.name, f"{node.name} has not applied the newest metadata"


def partitions_led(now: Snapshot) -> Iterator[_Found]:
    """Every partition has a leader that serves."""
    for each in now.partitions:
        if each.leader is None:
            yield each.name, "", f"{each.name} has no leader"
        elif not each.is_led:
            yield each.name, each.leader, f"{each.leader} is elected and does not lead {each.name}"


def replicas_sound(now: Snapshot) -> Iterator[_Found]:
    """No replica at a core broker that runs is failed, missing, or quarantined."""
    for each in now.partitions:
        for name in each.replicas:
            node, log = now.node(name), each.log(name)
            if not node.is_core or not node.is_running:
                continue
            if log is None or log.role == "none":
                yield each.name, name, f"{name} has no replica of {each.name}"
            elif log.role == "quarantined":
                yield each.name, name, f"{name} has {each.name} in quarantine: {log.error}"
            elif log.fetch == "failed":
                yield each.name, name, f"the fetcher of {name} has failed for {each.name}"


def isr_complete(now: Snapshot) -> Iterator[_Found]:
    """Every live core replica is in sync."""
    for each in now.partitions:
        for name in now.expected(each):
            if name not in each.isr:
                yield each.name, name, f"{name} is not in sync for {each.name}"


def logs_equal(now: Snapshot) -> Iterator[_Found]:
    """Members of the ISR have the same bytes to the same end, and all of it is committed."""
    for each in now.partitions:
        led = each.log(each.leader or "")
        if led is None or not each.is_led:
            continue
        members = [name for name in now.expected(each) if name in each.isr]
        # Too few in sync commit nothing. What holds the others back is told of the leader, whether
        # it is of the core or not.
        is_enough = len(each.isr) >= each.min_isr
        if members and is_enough and not now.is_loaded and led.high_watermark != led.end:
            mark = f"high watermark {led.high_watermark} of {each.name}, which ends at {led.end}"
            yield each.name, led.node, f"{led.node} has {mark}"
        for name in members:
            log = each.log(name)
            if log is None or log.role in ("none", "quarantined"):
                continue
            if log.is_same is False:
                yield each.name, name, f"{name} has other bytes than {each.leader} in {each.name}"
            elif not now.is_loaded and log.end != led.end:
                ends = f"ends at {log.end}, the leader {each.leader} at {led.end}"
                yield each.name, name, f"{name} {ends} in {each.name}"
            elif not now.is_loaded and log.high_watermark != led.high_watermark:
                mark = f"high watermark {log.high_watermark} of {each.name}"
                yield each.name, name, f"{name} has {mark}, the leader has {led.high_watermark}"


def elr_empty(now: Snapshot) -> Iterator[_Found]:
    """With enough in sync nobody is eligible beside them."""
    for each in now.partitions:
        if each.elr and len(each.isr) >= each.min_isr:
            isr, elr = ", ".join(each.isr), ", ".join(each.elr)
            yield each.name, "", f"{each.name} has {elr} in the ELR with an ISR of {isr}"


def no_reassignment(now: Snapshot) -> Iterator[_Found]:
    """No reassignment is under way."""
    for each in now.partitions:
        if each.is_reassigned:
            words = [f"adds {name}" for name in each.adding]
            words += [f"removes {name}" for name in each.removing]
            yield each.name, "", f"a reassignment of {each.name} {' and '.join(words)}"


def writes_answered(now: Snapshot) -> Iterator[_Found]:
    """A write with acks=all succeeds with enough in sync, and is rejected otherwise."""
    for each in now.partitions:
        wanted = ["acked"] if len(now.thinkable(each)) >= each.min_isr else ["rejected"]
        if len(now.usable(each)) < each.min_isr and wanted == ["acked"]:
            # It depends on brokers outside the core, with whom faults stay, or that leave.
            wanted.append("rejected")
        if each.probe not in wanted:
            error = f" ({each.probe_error})" if each.probe_error else ""
            found = {"": "was not asked for", "waiting": "has no answer"}.get(
                each.probe, f"is {each.probe}{error}"
            )
            yield (
                each.name,
                "",
                f"a write to {each.name} {found}, and must be {' or '.join(wanted)}",
            )


def operations_ended(now: Snapshot) -> Iterator[_Found]:
    """Whatever clients asked for has an outcome, but reads that wait for records to come."""
    for each in now.waits if not now.is_loaded else ():
        if each.what != "consume":
            about = f" to {each.partition}" if each.partition else ""
            # An operator's request is answered by the one whom it asks, or by nobody.
            yield (
                each.partition,
                each.at if each.what == "request" else each.client,
                f"{each.client}'s {each.text or each.what}{about} has no outcome",
            )


def readers_drained(now: Snapshot) -> Iterator[_Found]:
    """A reader gets from the start of each partition to the end of what is committed."""
    for each in now.partitions if not now.is_loaded else ():
        led = each.log(each.leader or "")
        if led is None or not each.is_led:
            continue
        if each.read_end is None or each.read_end < led.high_watermark:
            at = "has not begun" if each.read_end is None else f"is at {each.read_end}"
            text = f"the reader of {each.name} {at}, committed is up to {led.high_watermark}"
            yield each.name, "", text
        for wait in now.waits:
            if wait.what == "consume" and wait.partition == each.name:
                if 0 <= wait.offset < led.high_watermark:
                    text = f"{wait.client} is at {wait.offset} of {each.name}, committed is up to"
                    yield each.name, wait.client, f"{text} {led.high_watermark}"


def epochs_stable(now: Snapshot) -> Iterator[_Found]:
    """No epoch has changed for one session time-out."""
    session = f"a session is {now.stable_us / 1e6:g} s"
    if now.t_us - now.changed_us < now.stable_us:
        ago = (now.t_us - now.changed_us) / 1e6
        yield "", "", f"an epoch changed {ago:.1f} s ago, {session}"
    for each in now.partitions:
        if each.changed_us and now.t_us - each.changed_us < now.stable_us:
            ago = (now.t_us - each.changed_us) / 1e6
            yield each.name, "", f"an epoch of {each.name} changed {ago:.1f} s ago, {session}"


PREDICATES: Final[dict[str, Callable[[Snapshot], Iterator[_Found]]]] = {
    each.__name__.replace("_", "-"): each
    for each in (
        controller_leads,
        brokers_run,
        brokers_unfenced,
        metadata_applied,
        partitions_led,
        replicas_sound,
        isr_complete,
        elr_empty,
        no_reassignment,
        writes_answered,
        logs_equal,
        operations_ended,
        readers_drained,
        epochs_stable,
    )
}
"""By name, in the order of a healthy recovery."""


def missing(now: Snapshot) -> list[Missing]:
    """All that is missing now, in the order of ``PREDICATES``."""
    return [
        Missing(name, partition, node, text)
        for name, predicate in PREDICATES.items()
        for partition, node, text in predicate(now)
    ]
