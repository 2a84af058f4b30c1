"""The tale of a loss: every event that mattered to the records, once, in the order of time.

Records of one loss may have had several fates. Each range has a tale of its own, and sentences that
say the same of several ranges become one.

Left out: licences, and which losses belong together (``sim.present.losses``).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Final

from attrs import define, frozen

from sim.present.fates import Records, records_of
from sim.present.history import Ack, How, Loss, Piece
from sim.present.spans import Triple, common, joined, without
from sim.present.story import Story
from sim.present.tale_base import DEAD, Marks, when
from sim.present.tales import ALONE_ACKS_1, Tale
from sim.present.tallies import Ranges
from sim.present.tellings import tell
from sim.present.words import listed, name
from sim.trace.kinds import Kind

__all__ = ["Link", "links_of"]

GROUPS_MAX: Final = 4
PARTS_MAX: Final = 200
_WORDS: Final = {
    "damaged": "has {what} damaged",
    "overwritten": "has others in the place of {what}",
    "hidden": "hides {what} behind its log start, and nothing had deleted that",
    "vanished": "lost {what}, and nothing in the trace says how",
    "unaccounted": "had {what}, and the ledger does not know where they went",
}
"""Fates that a log does not show to whoever reads only offsets and epochs."""


_NO_EVENTS: Final = (" never got ", "Of the replicas only ")
"""What a tale says where it matters, and is no event of its own."""


@frozen
class Link:
    """One sentence about event ``n``; ``is_cited`` where the licence goes by that event."""

    n: int
    text: str
    is_cited: bool = False


@define
class _Said:
    """A sentence with marks, and the records that it is about."""

    n: int
    is_event: bool
    spans: list[Triple]


class _LossTale:
    """The links of some losses in one partition, under way."""

    def __init__(
        self, story: Story, losses: Sequence[Loss], spans: list[Triple], cited: Sequence[int]
    ) -> None:
        self.story = story
        self.losses = losses
        self.name = losses[0].partition
        self.spans = spans
        self.cited = cited
        parts = [
            records
            for epoch, base, end in spans
            for records in records_of(story, self.name, base, end, epoch)
        ]
        self.tales = [Tale(story, each, cited) for each in parts[:PARTS_MAX]]
        self.said: dict[str, _Said] = {}
        self.links: list[Link] = []

    def tell(self) -> list[Link]:
        self._births()
        self._promises()
        for tale in self.tales:
            tale.fates()
            for each in tale.told:
                is_event = not any(words in each.text for words in _NO_EVENTS)
                self._merge(each.n, each.text, tale.records, is_event=is_event)
        self._spoilt()
        self._moments()
        self._forgotten()
        for text, said in self.said.items():
            self._link(said.n, self._filled(text, said.spans), is_event=said.is_event)
        self._culprits()
        self._end()
        return sorted(self.links, key=lambda each: each.n)

    def _link(self, n: int, text: str, *, is_event: bool) -> None:
        self.links.append(Link(n, text, is_event and self._is_cited(n)))

    def _is_cited(self, n: int) -> bool:
        """Whether the licence goes by an event, or by the step that made it."""
        if n in self.cited:
            return True
        brief = self.story.brief(n)
        if brief is None or brief.kind is Kind.LOSS:
            return False
        return any(each in self.cited and self._is_step(each) for each in brief.cause)

    def _is_step(self, n: int) -> bool:
        brief = self.story.brief(n)
        return brief is not None and brief.kind is Kind.STEP

    def _merge(self, n: int, text: str, records: Records, *, is_event: bool) -> None:
        said = self.said.setdefault(text, _Said(n, is_event, []))
        said.n = min(n, said.n)
        said.spans.append((_epoch(records), records.base, records.end))

    def _filled(self, text: str, spans: list[Triple]) -> str:
        """A sentence, whose records are named unless they are all."""
        is_all = not without(self.spans, spans)
        is_one = sum(end - base for _, base, end in joined(spans)) == 1
        pronoun = "it" if is_one else "them"
        ranges = _ranges(spans)
        if is_all:
            ranges = "the record" if is_one else "the records"
        if not is_all and Marks.WHAT not in text:
            text = text.replace(Marks.IT, Marks.WHAT, 1)
        return Marks.filled(text, what=ranges, it=pronoun, is_one=is_one)

    # Who had them, and who was told ---------------------------------------------------------------

    def _births(self) -> None:
        """Who wrote them first, and who copied them."""
        first: dict[tuple[str, How], list[tuple[Piece, Triple]]] = {}
        copied: dict[str, list[Triple]] = {}
        for tale in self.tales:
            epoch = _epoch(tale.records)
            for place, copy in enumerate(tale.copies):
                span = (epoch, tale.records.base, tale.records.end)
                if not place:
                    first.setdefault((copy.node, copy.piece.how), []).append((copy.piece, span))
                elif copy.piece.how is How.COPIED:
                    copied.setdefault(copy.node, []).append(span)
        for (node, how), pieces in first.items():
            spans = [span for _, span in pieces]
            n = min(piece.n for piece, _ in pieces)
            verb = {How.APPENDED: "appended", How.COPIED: "copied"}.get(how, "already had")
            epochs = list(dict.fromkeys(piece.epoch for piece, _ in pieces))
            lead = f", leader of epoch {epochs[0]}," if len(epochs) == 1 else ""
            lead = lead if how is How.APPENDED else ""
            moment = f"at {when(self.story, n)}"
            if sum(end - base for _, base, end in spans) > 1:
                moment = f"from {when(self.story, n)} on"
            text = f"{name(node)}{lead} {verb} {Marks.WHAT} {moment}{self._copied(copied, spans)}."
            copied = {each: without(kept, spans) for each, kept in copied.items()}
            self._link(n, self._filled(text, spans), is_event=True)

    def _copied(self, copied: dict[str, list[Triple]], spans: list[Triple]) -> str:
        by_ranges: dict[str, list[str]] = {}
        for node, kept in copied.items():
            hit = common(kept, spans)
            if hit:
                ranges = Marks.IT if not without(spans, hit) else _ranges(hit)
                by_ranges.setdefault(ranges, []).append(name(node))
        ordered = sorted(by_ranges.items(), key=lambda item: item[0] != Marks.IT)
        parts = [f"{listed(nodes)} copied {ranges}" for ranges, nodes in ordered]
        return f"; {', '.join(parts)}" if parts else ""

    def _promises(self) -> None:
        groups: dict[object, tuple[Tale, list[Ack]]] = {}
        untold: list[Triple] = []
        for tale in self.tales:
            for key, acks in tale.groups().items():
                groups.setdefault(key, (tale, []))[1].extend(acks)
            if not tale.records.acks:
                untold.append((_epoch(tale.records), tale.records.base, tale.records.end))
        ordered = sorted(groups.values(), key=lambda group: group[1][0].n)
        for tale, acks in ordered[:GROUPS_MAX]:
            before = len(tale.told)
            tale.acknowledged(acks)
            for each in tale.told[before:]:
                text = self._filled(each.text, self.spans)
                if any(ALONE_ACKS_1 in link.text for link in self.links):
                    text = text.replace(ALONE_ACKS_1, "")
                self._link(each.n, text, is_event=False)
            del tale.told[before:]
        rest = [ack for _, acks in ordered[GROUPS_MAX:] for ack in acks]
        if rest:
            n = min(ack.n for ack in rest)
            more = f"{len(rest)} more of them were acknowledged from {when(self.story, n)} on"
            self._link(n, f"{more}, as the holders of copies changed.", is_event=False)
        if untold:
            self._untold(joined(untold))

    def _untold(self, spans: list[Triple]) -> None:
        """Why records count that were acknowledged to nobody: committed, or shown."""
        read = self._read(spans)
        if read is not None:
            n, who = read
            why = f"{name(who)} had read from {Marks.IT} at {when(self.story, n)}"
        else:
            n, who = self._committed(spans)
            if not n:
                return
            why = f"{Marks.THEY} {Marks.WAS} committed on {name(who)}, whose high watermark was "
            why += f"above {Marks.IT} at {when(self.story, n)}"
        text = f"Nobody was told that {Marks.WHAT} {Marks.WAS} written, but {why}."
        self._link(n, self._filled(text, spans), is_event=False)

    def _read(self, spans: list[Triple]) -> tuple[int, str] | None:
        for each in self.story.happenings:
            if each.what == "poll" and each.partition == self.name:
                offset, epoch = each.data.get("offset"), each.data.get("leader_epoch")
                if any(e == epoch and base <= offset < end for e, base, end in spans):
                    return each.n, each.node
        return None

    def _committed(self, spans: list[Triple]) -> tuple[int, str]:
        """When a replica that had the first of them had a high watermark above it; 0 for never."""
        epoch, base, _ = spans[0]
        found = [
            (n, node)
            for node, replica in self.story.replicas(self.name)
            for n, high_watermark in replica.high_watermarks
            if high_watermark > base and replica.had(base, epoch, n) is not None
        ]
        return min(found, default=(0, ""))

    # What became of them ------------------------------------------------------------

    def _spoilt(self) -> None:
        """Copies that are there by their offsets, and are not what they should be."""
        for loss in self.losses:
            for node, fate, event in loss.copies:
                words = _WORDS.get(fate)
                if words is None:
                    continue
                n = event or loss.n
                text = f"{name(node)} {words.format(what=Marks.WHAT)}"
                moment = f" since {when(self.story, event)}" if event else ""
                for span in common(list(loss.spans), self.spans):
                    records = Records(self.name, span[1], span[2], span[0], ())
                    self._merge(n, f"{text}{moment}.", records, is_event=bool(event))

    def _moments(self) -> None:
        """When a leader was there without them."""
        for loss in self.losses:
            leader = f"{name(loss.leader)}, leader of epoch {loss.leader_epoch}"
            text = ""
            if loss.at in ("serving", "leading"):
                served = "served" if loss.at == "serving" else "led on"
                text = f"{leader}, {served} without {Marks.IT} from {when(self.story, loss.n)} on."
            elif loss.at == "deleting":
                text = f"{leader}, deleted {Marks.IT} at {when(self.story, loss.n)}."
            for span in common(list(loss.spans), self.spans) if text else ():
                records = Records(self.name, span[1], span[2], span[0], ())
                self._merge(loss.n, text, records, is_event=True)

    def _forgotten(self) -> None:
        """Where a controller came back without an election that it had told of."""
        last = max(each.n for each in self.losses)
        epochs = {epoch for epoch, _, _ in self.spans}
        known = self.story.partitions.get(self.name)
        for (_, (who, epoch)), (n, (other, lower)) in pairwise(known.leaders if known else ()):
            brief = self.story.brief(n)
            if n > last or epoch not in epochs or not 0 <= lower < epoch or brief is None:
                continue
            crash = self.story.crash_before(brief.node, n)
            why = (
                f": it had gone at {when(self.story, crash)} and had not kept that" if crash else ""
            )
            held = "nobody" if who is None else name(who)
            led = "nobody leads" if other is None else f"{name(other)} leads again"
            text = f"{name(brief.node)} no longer knew at {when(self.story, n)} that {held} leads "
            text += f"with epoch {epoch}{why}. By its word {led}, with epoch {lower}."
            self._link(n, text, is_event=True)

    def _culprits(self) -> None:
        """What the licence goes by and nothing has told yet, in the words of the time line."""
        told = [each.n for each in self.links if each.is_cited]
        for n in self.cited:
            if n in told or (self._is_step(n) and self._told_by_step(n, told)):
                continue
            happenings = [each for each in self.story.happenings if each.n == n]
            found = tell(self.story, happenings) if happenings else None
            brief = self.story.brief(n)
            text = "something happened" if found is None else found.text
            if found is None and brief is not None:
                text = f"an event of kind {name(brief.kind)} at {name(brief.node)}"
            self.links.append(Link(n, f"At {when(self.story, n)} {text}.", is_cited=True))

    def _told_by_step(self, n: int, told: list[int]) -> bool:
        briefs = [self.story.brief(each) for each in told]
        return any(brief is not None and n in brief.cause for brief in briefs)

    def _end(self) -> None:
        """Who has them at the end, and what is in their place."""
        n = self.story.last_n
        kept: dict[str, list[Triple]] = {}
        for tale in self.tales:
            for node in tale.holders(n):
                if node not in tale.spoilt:
                    span = (_epoch(tale.records), tale.records.base, tale.records.end)
                    kept.setdefault(node, []).append(span)
        if not kept:
            text = f"At the end no log has {Marks.IT}{self._replaced()}."
            self.links.append(Link(n, self._filled(text, self.spans)))
        same: dict[tuple[str, tuple[Triple, ...]], list[str]] = {}
        for node, spans in kept.items():
            key = self.story.status(node, n), tuple(joined(spans))
            same.setdefault(key, []).append(name(node))
        for (status, whole), nodes in same.items():
            are, has = ("is", "has") if len(nodes) == 1 else ("are", "have")
            dead = f", which {are} {DEAD[status]}," if status in DEAD else ""
            text = f"At the end {listed(nodes)}{dead} still {has} {Marks.IT}."
            self.links.append(Link(n, self._filled(text, list(whole))))

    def _replaced(self) -> str:
        """What is at the first one's place now."""
        epoch, base, _ = self.spans[0]
        now: dict[int | None, list[str]] = {}
        for node, replica in self.story.replicas(self.name):
            piece = replica.had(base, None, self.story.last_n)
            if piece is not None and piece.epoch != epoch:
                now.setdefault(piece.epoch, []).append(name(node))
        if not now:
            return ""
        parts = [f"of epoch {other} on {listed(nodes)}" for other, nodes in now.items()]
        return f"; offset {base} is another record, {listed(parts)}"


def links_of(
    story: Story, losses: Sequence[Loss], spans: list[Triple], cited: Sequence[int]
) -> list[Link]:
    """The links of losses in one partition.

    Args:
        losses: one at least, all of one partition.
        spans: what of them is told.
        cited: the events that the licence goes by.
    """
    return _LossTale(story, losses, joined(spans), cited).tell()


def _epoch(records: Records) -> int:
    return -1 if records.epoch is None else records.epoch


def _ranges(spans: list[Triple]) -> str:
    ranges = Ranges()
    for _, base, end in joined(spans):
        ranges.add(base, end)
    is_one = ranges.count == 1
    return f"offset{'' if is_one else 's'} {ranges}"
