"""Single happenings in words: crashes, starts, faults, elections, cuts, findings.

Left out: what is added up (``sim.present.tallies``), and reasons (``sim.present.chains``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from attrs import frozen

from sim.present.args import flag, number, text
from sim.present.history import Fault, Finding, Loss, Step
from sim.present.protocol_tellings import Said, cut, elect, isr_change, role
from sim.present.story import Happening, Story
from sim.present.trouble_tellings import corruption, disk_error, error, fault_words
from sim.present.words import counted, listed, name, offsets, sentence, these

__all__ = ["Told", "tell"]


@frozen
class Told:
    """What a line says; ``words`` are what it counts as when lines are added up."""

    first: int
    last: int
    text: str
    tone: str
    weight: int
    words: tuple[str, ...] = ()


def tell(story: Story, group: Sequence[Happening]) -> Told | None:
    """One line for what belongs together; None where nothing of it is worth one."""
    texts: list[str] = []
    words: list[str] = []
    tone, weight = "plain", 0
    by_kind: dict[str, list[Happening]] = {}
    for each in group:
        by_kind.setdefault(each.what, []).append(each)
    for what, happenings in by_kind.items():
        teller = _TELLERS.get(what)
        said = None if teller is None else teller(story, happenings)
        if said is None:
            continue
        said_text, said_tone, said_weight, word = said
        subject = f"{name(group[0].node)} "
        if texts and said_text.startswith(subject) and texts[-1].startswith(subject):
            texts[-1] += " and " + said_text[len(subject) :]
        else:
            texts.append(said_text)
        words.append(f"{word}={len(happenings)}")
        if said_weight > weight or tone == "plain":
            tone = said_tone if said_tone != "plain" or said_weight >= weight else tone
        weight = max(weight, said_weight)
    if not texts:
        return None
    return Told(group[0].n, group[-1].n, "; ".join(texts), tone, weight, tuple(words))


# Nodes -------------------------------------------------------------------------------------------


def _start(story: Story, group: list[Happening]) -> Said:
    again = [each for each in group if number(each.data, "incarnation", 0) > 0]
    if not again and story.time_us(group[0].n) > 0 and story.nodes[group[0].node].is_client:
        return None
    nodes = listed(name(each.node) for each in (again or group))
    if not again:
        return f"{nodes} {'start' if len(group) > 1 else 'starts'}", "plain", 1, "start"
    disk = text(again[0].data, "disk")
    on = "" if disk in (None, "same") else f" on an older image of its disk ({name(disk)})"
    on = " on an empty disk" if disk == "wiped" else on
    verb = "start" if len(again) > 1 else "starts"
    return f"{nodes} {verb} again{on}", "good", 2, "start"


def _crash(story: Story, group: list[Happening]) -> Said:
    node, args = group[0].node, group[0].data
    how = text(args, "how")
    if how == "power":
        found = f"{name(node)} loses power"
    elif how == "start-failed":
        found = f"{name(node)} cannot start: {name(text(args, 'detail') or text(args, 'error'))}"
    else:
        found = f"{name(node)} is killed; what it wrote stays on its disk"
    return found, "bad", 2, "crash/crashes"


def _plain(verb: str, tone: str, weight: int, word: str) -> Callable[[Story, Any], Said]:
    def said(story: Story, group: list[Happening]) -> Said:
        return f"{name(group[0].node)} {verb}", tone, weight, word

    return said


def _recover(story: Story, group: list[Happening]) -> Said:
    refused = [each for each in group if text(each.data, "error")]
    opened = [each for each in group if not text(each.data, "error")]
    parts = []
    if len(opened) > 3:
        parts.append(f"opens {len(opened)} logs")
    else:
        for each in opened:
            end = number(each.data, "log_end")
            if end < 0:
                continue
            start = number(each.data, "log_start", 0)
            has = f"has {these(start, end)}" if end > start else "is empty"
            torn = number(each.data, "cut_bytes", 0)
            cut = f", {counted(torn, 'torn byte')} cut" if torn > 0 else ""
            parts.append(f"its log of {name(each.partition)} {has}{cut}")
    for each in refused:
        error = name(text(each.data, "error"))
        parts.append(f"its log of {name(each.partition)} is damaged ({error}) and in quarantine")
    if not parts:
        return None
    return ", ".join(parts), "bad" if refused else "plain", 2, "log opened/logs opened"


def _unfence(story: Story, group: list[Happening]) -> Said:
    again = [
        broker
        for each in group
        if (broker := str(each.data.get("broker"))) in story.nodes
        and story.nodes[broker].statuses.since(each.n) > 0
        and _starts_before(story, broker, each.n) > 1
    ]
    if not again:
        return None
    found = f"{name(group[0].node)} lets {listed(map(name, again))} take part again"
    return found, "good", 1, "broker back/brokers back"


def _starts_before(story: Story, node: str, n: int) -> int:
    statuses = list(story.nodes[node].statuses)
    was = [status for number_, status in statuses if number_ <= n and status != "paused"]
    return sum(1 for before, now in zip([None, *was], was, strict=False) if now == "up" != before)


def _leaves(story: Story, group: list[Happening]) -> Said:
    gone = listed(name(each.data.get("broker")) for each in group)
    return f"{name(group[0].node)} takes leaderships away from {gone}", "plain", 1, "departure"


def _fence(story: Story, group: list[Happening]) -> Said:
    gone = listed(name(each.data.get("broker")) for each in group)
    return f"{name(group[0].node)} fences {gone}", "plain", 2, "fencing"


def _failpoint(story: Story, group: list[Happening]) -> Said:
    args = group[0].data
    point, action = name(text(args, "point")), name(text(args, "action"))
    return f"{name(group[0].node)} reaches {point}: {action}", "fault", 2, "failpoint"


# The scenario ------------------------------------------------------------------------------------


def _step(story: Story, group: list[Happening]) -> Said:
    step = group[0].data
    assert isinstance(step, Step)
    id_ = "" if step.id.startswith("#") else f"{name(step.id)}: "
    return f"step {id_}{sentence(step.text)}", "step", 1, "step"


def _fault(story: Story, group: list[Happening]) -> Said:
    fault = group[0].data
    assert isinstance(fault, Fault)
    return f"fault {name(fault.id)} begins: {fault_words(fault)}", "fault", 2, "fault"


def _heal(story: Story, group: list[Happening]) -> Said:
    fault = group[0].data
    assert isinstance(fault, Fault)
    struck = f"; it struck {counted(fault.strikes, 'time')}" if fault.strikes else ""
    return f"fault {name(fault.id)} ends{struck}", "good", 2, "healing"


# Logs and clients --------------------------------------------------------------------------------


def _quarantine(story: Story, group: list[Happening]) -> Said:
    return f"{name(group[0].partition)} is in quarantine on its leader", "bad", 2, "quarantine"


def _salvage(story: Story, group: list[Happening]) -> Said:
    end = number(group[0].data, "log_end", 0)
    found = f"{name(group[0].node)} salvages {name(group[0].partition)} up to offset {end}"
    return found, "plain", 2, "salvage"


def _position(story: Story, group: list[Happening]) -> Said:
    args: Mapping[str, Any] = group[0].data
    event = text(args, "event") or "?"
    place = "" if group[0].partition is None else f" of {name(group[0].partition)}"
    if event == "OffsetReset" and "to_offset" in args:
        before, to = number(args, "from_offset"), number(args, "to_offset")
        found = f"begins at offset {to}{place}"
        if before >= 0:
            found = f"goes from offset {before} to offset {to}{place}"
        return f"{name(group[0].node)} {found}", "plain", 1, "position"
    if event == "TruncationDetected" and "diverging_offset" in args:
        offset = number(args, "diverging_offset")
        found = f"finds that what it has read from offset {offset}{place} on was cut off since"
        return f"{name(group[0].node)} {found}", "bad", 2, "position"
    where = f" at offset {number(args, 'offset')}" if "offset" in args else ""
    words = _POSITIONS.get(event, f"says {name(event)}")
    return f"{name(group[0].node)} {words}{place}{where}", "plain", 1, "position"


_POSITIONS: Final = {
    "OffsetReset": "begins anew",
    "TruncationDetected": "finds that what it has read was cut off since",
    "PositionFailed": "finds no position to read from",
    "TopicRecreated": "finds another topic under the name",
    "CorruptRecords": "gets damaged records",
    "CommitFailed": "cannot commit its position",
}


# Judgement ---------------------------------------------------------------------------------------


def _check(story: Story, group: list[Happening]) -> Said:
    finding = group[0].data
    assert isinstance(finding, Finding)
    where = f" of {name(finding.partition)}" if finding.partition else ""
    more = f" and {len(group) - 1} more" if len(group) > 1 else ""
    found = (
        f"{name(finding.check)}{where} is broken: {sentence(finding.detail or finding.kind)}{more}"
    )
    return found, "bad", 3, "violation"


def _expect(story: Story, group: list[Happening]) -> Said:
    judged = [each.data for each in group if flag(each.data, "judged")]
    if not judged:
        return None
    failed = [args for args in judged if not flag(args, "holds")]
    texts = []
    for found, one, many in (
        (failed, "does not hold", "do not hold"),
        ([args for args in judged if flag(args, "holds")], "holds", "hold"),
    ):
        ids = listed(name(args.get("id")) for args in found)
        if len(found) == 1:
            texts.append(f"expectation {ids} {one}: {name(text(found[0], 'text'))}")
        elif found:
            texts.append(f"expectations {ids} {many}")
    return "; ".join(texts), "bad" if failed else "good", 3 if failed else 1, "expectation"


def _loss(story: Story, group: list[Happening]) -> Said:
    texts = []
    for each in group[:3]:
        loss = each.data
        assert isinstance(loss, Loss)
        ranges = ", ".join(offsets(base, end) for _, base, end in loss.spans[:3])
        licence = f" ({name(loss.licence)})" if loss.licence else ""
        texts.append(f"{ranges} of {name(loss.partition)}{licence}")
    more = f" and {len(group) - 3} more" if len(group) > 3 else ""
    return f"lost: {', '.join(texts)}{more}", "bad", 3, "loss/losses"


_TELLERS: Final[dict[str, Callable[[Story, list[Happening]], Said]]] = {
    "start": _start,
    "crash": _crash,
    "stop": _plain("has stopped", "plain", 2, "stop"),
    "shutdown": _plain("is asked to stop", "plain", 2, "shutdown"),
    "pause": _plain("stands still", "bad", 2, "pause"),
    "resume": _plain("goes on", "good", 2, "resumption"),
    "recover": _recover,
    "leave": _leaves,
    "fence": _fence,
    "unfence": _unfence,
    "failpoint": _failpoint,
    "error": error,
    "disk-error": disk_error,
    "corrupt": corruption,
    "step": _step,
    "fault": _fault,
    "heal": _heal,
    "elect": elect,
    "role": role,
    "isr": isr_change,
    "cut": cut,
    "quarantine": _quarantine,
    "salvage": _salvage,
    "position": _position,
    "check": _check,
    "expect": _expect,
    "loss": _loss,
}
