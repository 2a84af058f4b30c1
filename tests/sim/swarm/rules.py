"""What a recoverable document must keep to (FAULTS C.0), read off the tables alone.

Each rule is a function from a document to its offences. Nothing here knows how documents are drawn.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

Document = dict[str, Any]

DISK = frozenset(
    """fsync-lie fsync-fail fsync-read-only enospc eio fill lost-write misdirected-write bit-rot
    bad-sector read-only disk-gone write-back-fail""".split()
)
CLOCKS = frozenset(("clock-step", "clock-drift", "clock-freeze", "clock-strobe"))
SOUND = frozenset(("lost", "kept", "file-prefix", "disk-prefix", "sector-subset"))


def topics(document: Document) -> list[Document]:
    """Those of the beginning and those that are created."""
    made = [step["create_topic"] for step in document["step"] if "create_topic" in step]
    return [*document["topic"], *made]


def configs(document: Document) -> list[Document]:
    steps = [step["config"]["set"] for step in document["step"] if "config" in step]
    return [*(topic.get("config", {}) for topic in topics(document)), *steps]


def brokers(document: Document, target: Any) -> set[str]:
    """Whom a target may mean; the controller is none."""
    names = {f"b{number}" for number in range(1, document["cluster"]["brokers"] + 1)}
    given = target if isinstance(target, list) else [target]
    if all(each in names or each == "c1" for each in given):
        return names & set(given)
    return names


def ends(document: Document) -> Iterator[tuple[set[str], str, str]]:
    """Unclean ends of processes: whose, how, and with which image."""
    for each in document["fault"]:
        how = each.get("action", each.get("how", "process"))
        if each["kind"] in ("crash", "crash-loop", "failpoint") and how in ("process", "power"):
            yield brokers(document, each["target"]), how, each.get("image", "lost")
    for step in document["step"]:
        if "crash" in step:
            crash = step["crash"]
            how = crash.get("how", "process")
            yield brokers(document, crash["node"]), how, crash.get("image", "lost")


def damaged(document: Document) -> set[str]:
    """Brokers whose disk fails, is damaged or is changed."""
    found: set[str] = set()
    for each in document["fault"]:
        if each["kind"] in DISK:
            found |= brokers(document, each["target"])
    for step in document["step"]:
        for action in ("corrupt", "fill"):
            if action in step:
                found |= brokers(document, step[action]["node"])
        if "start" in step and step["start"].get("disk", "same") != "same":
            found |= brokers(document, step["start"]["node"])
    return found


def has_elr(document: Document) -> bool:
    return bool(document["cluster"].get("eligible_leader_replicas"))


# Rules -------------------------------------------------------------------------------------------


def no_bit_flips_behind_checksums(document: Document) -> Iterator[str]:
    yield from (each["id"] for each in document["fault"] if each["kind"] == "corrupt")


def no_unclean_election(document: Document) -> Iterator[str]:
    for config in configs(document):
        if config.get("unclean.leader.election.enable"):
            yield "unclean election is on"
    for step in document["step"]:
        if step.get("elect", {}).get("kind") == "unclean":
            yield step["id"]


def promises_stay(document: Document) -> Iterator[str]:
    for step in document["step"]:
        if "min.insync.replicas" in step.get("config", {}).get("set", {}):
            yield f"{step['id']} changes the minimum ISR"
        size = len(document["topic"][0]["replicas"][0])
        replicas = step.get("reassign", {}).get("replicas")
        if replicas is not None and len(document["topic"]) == 1 and len(replicas) != size:
            yield f"{step['id']} changes the number of replicas"


def few_unclean_shutdowns_with_elr(document: Document) -> Iterator[str]:
    if not has_elr(document):
        return
    struck = damaged(document).union(*(names for names, _, _ in ends(document)))
    least = min(topic["config"]["min.insync.replicas"] for topic in topics(document))
    if len(struck) > least - 1:
        yield f"{sorted(struck)} may end uncleanly, min.insync.replicas is {least}"


def no_damage_without_elr(document: Document) -> Iterator[str]:
    if not has_elr(document):
        yield from sorted(damaged(document))


def power_needs_elr_or_flush(document: Document) -> Iterator[str]:
    if has_elr(document):
        return
    flushed = all(topic["config"].get("flush.messages") == 1 for topic in topics(document))
    for names, how, image in ends(document):
        if how == "power" and not (flushed and image in SOUND):
            yield f"{sorted(names)} lose power, image {image}"


def shutdowns_are_clean(document: Document) -> Iterator[str]:
    for step in document["step"]:
        if step.get("shutdown") in damaged(document):
            yield step["id"]


def clocks_are_right_where_retention_goes_by_them(document: Document) -> Iterator[str]:
    if any("retention.ms" in config for config in configs(document)):
        yield from (each["id"] for each in document["fault"] if each["kind"] in CLOCKS)


RULES = (
    no_bit_flips_behind_checksums,
    no_unclean_election,
    promises_stay,
    few_unclean_shutdowns_with_elr,
    no_damage_without_elr,
    power_needs_elr_or_flush,
    shutdowns_are_clean,
    clocks_are_right_where_retention_goes_by_them,
)
