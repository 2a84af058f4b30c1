"""Why records were lost, or a rule was broken: the chain of causes in sentences.

A chain for records says who acknowledged them and who had them then; why the others did not; who
became leader without them; how each copy went (``sim.present.tales``). A chain for anything else
tells what its events name as causes.

Left out: what counts as lost (the judge of a run says so; ``sim.present.fates.lost`` is a guess
from the trace for whoever has no judge).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from sim.present.fates import Records, epochs_at, records_of
from sim.present.history import Finding
from sim.present.loose_rules import loose_rules
from sim.present.loss_tales import links_of
from sim.present.losses import what_of
from sim.present.spans import joined, without
from sim.present.story import Story
from sim.present.tale_base import Chain, Sentence, capital, when
from sim.present.tales import Tale
from sim.present.tellings import tell
from sim.present.words import listed, name, sentence, these

__all__ = ["Chain", "Sentence", "causes", "chain"]

CAUSES_MAX: Final = 12
_LEFT_OUT: Final = ("sent", "hw", "append", "copy", "ack", "check", "expect")
RANGES_MAX: Final = 4


def chain(story: Story, subject: Records | Finding | int) -> Chain:
    """The chain for records, for a broken rule, or for the event of a number."""
    if isinstance(subject, Records):
        return Tale(story, subject).chain()
    if isinstance(subject, Finding):
        return _of_finding(story, subject)
    for finding in story.findings:
        if finding.n == subject:
            return _of_finding(story, finding)
    for loss in story.losses:
        if loss.n == subject:
            spans = joined(loss.spans)
            links = links_of(story, [loss], spans, loss.culprits)
            what = capital(what_of(loss.partition, spans))
            were = "was" if loss.count == 1 else "were"
            return Chain(
                f"{what}, {were} lost at {when(story, loss.n)}",
                tuple(Sentence(link.n, link.text) for link in links),
            )
    for partition in story.partitions.values():
        for replica in partition.replicas.values():
            for cut in replica.cuts:
                if cut.n == subject:
                    gone = [piece for piece in replica.pieces if piece.cut is cut]
                    gone.sort(key=lambda piece: piece.base)
                    ranges = [(piece.epoch, piece.base, piece.end) for piece in gone]
                    parts = _parts(story, partition.name, ranges)
                    summary = f"{capital(these(cut.base, cut.end))} went from {name(replica.node)}"
                    return _united(story, f"{summary} at {when(story, cut.n)}", parts, cut.n)
    found = causes(story, subject)
    if not found:
        found = _wrong_by(story, subject)
        if found:
            return Chain(f"{when(story, subject)} names no cause; wrong by then was", tuple(found))
    return Chain(f"What led to {when(story, subject)}", tuple(found))


def _wrong_by(story: Story, n: int) -> list[Sentence]:
    """Broken rules and losses in front of an expectation that does not hold; else nothing."""
    known = [each for each in story.happenings if each.n <= n]
    judged = (each for each in known if each.n == n and each.what == "expect")
    if not any(each.data.get("holds") is False for each in judged):
        return []
    wrong = [(each.n, tell(story, [each])) for each in known if each.what in ("check", "loss")]
    found = [
        Sentence(n, f"{when(story, n)}: {told.text}.") for n, told in wrong if told is not None
    ]
    return found[:CAUSES_MAX]


def causes(story: Story, n: int) -> list[Sentence]:
    """What an event goes back to, oldest first: what its causes did that is worth telling.

    Left out: the boot of the world, unless there is nothing else.
    """
    seen = {n}
    front = [n]
    while front:
        brief = story.brief(front.pop())
        for cause in () if brief is None else brief.cause:
            if cause not in seen:
                seen.add(cause)
                front.append(cause)
    found = []
    for happening in story.happenings:
        brief = story.brief(happening.n)
        is_done = brief is not None and brief.cause[:1] and brief.cause[0] in seen - {n}
        if not (happening.n in seen or is_done) or happening.what in _LEFT_OUT:
            continue
        if story.time_us(happening.n) >= 0 or story.time_us(n) < 0:
            told = tell(story, [happening])
            if told is not None and happening.n <= n:
                found.append(Sentence(happening.n, f"{when(story, happening.n)}: {told.text}."))
    return found[-CAUSES_MAX:]


def _united(story: Story, summary: str, parts: list[Records], n: int) -> Chain:
    """The chains of several ranges, one behind the other."""
    chains = [Tale(story, each).chain() for each in parts[:RANGES_MAX]]
    if not chains:
        return Chain(summary, tuple(causes(story, n)))
    if len(chains) == 1:
        return chains[0]
    sentences = []
    for each in chains:
        first = each.sentences[0].n if each.sentences else n
        sentences += [Sentence(first, f"{each.summary}.")]
        sentences += each.sentences
    if len(parts) > RANGES_MAX:
        sentences.append(Sentence(n, f"{len(parts) - RANGES_MAX} more ranges have fates like it."))
    return Chain(summary, tuple(sentences))


def _parts(
    story: Story, partition: str, ranges: list[tuple[int | None, int, int]]
) -> list[Records]:
    """Ranges of (epoch, base, end), neighbours of one epoch whole, in parts of one fate each."""
    whole: list[tuple[int | None, int, int]] = []
    for epoch, base, end in ranges:
        if whole and whole[-1][0] == epoch and whole[-1][2] == base:
            whole[-1] = epoch, whole[-1][1], end
        else:
            whole.append((epoch, base, end))
    parts = [
        records
        for epoch, base, end in whole
        for records in records_of(story, partition, base, end, epoch)
    ]
    return [each for each in parts if each.acks] or parts


# Broken rules --------------------------------------------------------------------------------


def _of_finding(story: Story, finding: Finding) -> Chain:
    where = f" of {name(finding.partition)}" if finding.partition else ""
    detail = finding.detail or finding.kind
    event = max(finding.causes, default=finding.n)
    summary = f"{name(finding.check)}{where} is broken at {when(story, event)}"
    summary += f": {sentence(detail)}" if detail else ""
    sentences: list[Sentence] = []
    if finding.partition in story.partitions:
        assert finding.partition is not None
        for base, end, epoch in _ranges_in(finding.evidence)[:RANGES_MAX]:
            epochs: list[int | None] = [epoch]
            if epoch is None:
                epochs = [*epochs_at(story, finding.partition, base, known_by=finding.n)]
            for each in epochs[-RANGES_MAX:]:
                sentences += _of_records(story, finding, base, end, each)
            sentences += _differences(story, finding.partition, base, finding.n)
    known = {sentence.n for sentence in sentences}
    behind = [each for each in causes(story, finding.n) if each.n not in known | {finding.n}]
    settings = loose_rules(story, finding.n)
    return Chain(summary, (*sentences, *behind, *settings))


def _of_records(
    story: Story, finding: Finding, base: int, end: int, epoch: int | None
) -> Iterator[Sentence]:
    """What became of records that a finding names; not again what a loss tells of them."""
    partition = finding.partition
    assert partition is not None
    for loss in reversed(story.losses):
        if loss.partition != partition or epoch is None:
            continue
        if not without([(epoch, base, end)], loss.spans):
            what = f"{these(base, end)} of epoch {epoch}"
            text = f"What became of {what} is told with the loss at {when(story, loss.n)}."
            yield Sentence(finding.n, text)
            return
    for records in records_of(story, partition, base, end, epoch)[:RANGES_MAX]:
        tale = Tale(story, records)
        told = tale.chain()
        first = told.sentences[0].n if told.sentences else finding.n
        had = listed(map(name, tale.holders(finding.n)))
        if had and all(ack.n > finding.n for ack in records.acks):
            # The acknowledgement was under way: who has them when it arrives is another matter.
            it = "it" if records.is_one else "them"
            yield Sentence(finding.n, f"When the rule was broken, only {had} had {it}.")
        yield Sentence(first, f"{told.summary}.")
        yield from told.sentences


def _ranges_in(evidence: Any) -> list[tuple[int, int, int | None]]:
    """Offsets that a check names as evidence, with their epoch if it does."""
    if not isinstance(evidence, dict):
        return []
    epoch = next(
        (evidence[key] for key in ("leader_epoch", "epoch") if type(evidence.get(key)) is int),
        None,
    )
    missing = evidence.get("missing")
    if isinstance(missing, list):
        spans = [each for each in missing if isinstance(each, list | tuple) and len(each) == 3]
        found = [span for span in spans if all(type(each) is int for each in span)]
        if found:
            return [(base, end, known) for known, base, end in found]
    offset = evidence.get("offset", evidence.get("base_offset"))
    if type(offset) is int and offset >= 0:
        count, end = evidence.get("count"), evidence.get("next_offset")
        if type(end) is int and offset < end:
            return [(offset, end, epoch)]
        return [(offset, offset + (count if type(count) is int and count > 0 else 1), epoch)]
    offsets = evidence.get("offsets")
    if isinstance(offsets, list):
        return [(each, each + 1, epoch) for each in offsets if type(each) is int and each >= 0]
    return []


def _differences(story: Story, partition: str, offset: int, n: int) -> Iterator[Sentence]:
    """What the replicas have at an offset, if it is not the same."""
    held: dict[int | None, list[str]] = {}
    for node, replica in story.replicas(partition):
        piece = replica.had(offset, None, n)
        if piece is not None:
            held.setdefault(piece.epoch, []).append(name(node))
    if len(held) > 1:
        parts = [f"{listed(nodes)} the record of epoch {epoch}" for epoch, nodes in held.items()]
        yield Sentence(n, f"At offset {offset} the logs differ: {listed(parts)}.")
