"""What tales are made of: sentences about records, and what a tale under way knows.

Left out: the sentences (``sim.present.tales``, ``sim.present.tale_copies``).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from attrs import frozen

from sim.present.fates import Records, copies
from sim.present.story import Story
from sim.present.words import at, seconds, these

__all__ = ["DEAD", "SPOILT", "Chain", "Marks", "Sentence", "TaleBase", "capital", "when"]

DEAD: Final = {
    "down": "dead",
    "off": "without power",
    "stopped": "stopped",
    "never": "not started",
}
"""Nodes that do nothing, by status."""
SPOILT: Final = frozenset({"damaged", "overwritten", "hidden", "vanished", "unaccounted"})
"""Fates of copies that a log does not show to whoever reads only offsets and epochs."""


class Marks:
    """Stand in sentences for the records, until it is known which ones are spoken of."""

    WHAT: Final = "\x01"
    IT: Final = "\x02"
    THEY: Final = "\x03"
    WAS: Final = "\x04"

    @classmethod
    def filled(cls, text: str, *, what: str, it: str, is_one: bool) -> str:
        """A sentence about records, which are called ``what``, or ``it`` in an object's place."""
        return (
            text.replace(cls.WHAT, what)
            .replace(cls.IT, it)
            .replace(cls.THEY, "it" if is_one else "they")
            .replace(cls.WAS, "was" if is_one else "were")
        )


@frozen
class Sentence:
    """One link; ``n`` is the event that it is about."""

    n: int
    text: str


@frozen
class Chain:
    """Links in the order in which they happened; ``summary`` is one sentence, without its stop."""

    summary: str
    sentences: tuple[Sentence, ...]


def when(story: Story, n: int) -> str:
    """An event's number, and its time."""
    return f"{at(n)} ({seconds(story.time_us(n))})"


class TaleBase:
    """One tale under way; sentences have ``Marks`` until it is done.

    Args:
        known: events that are told elsewhere, and need not be told again with what they did.

    Attributes:
        copies: every copy that there ever was of the first record.
        spoilt: nodes whose copies are no more what they should be, though a log has their offsets
            and epochs, and since which event.
        lied: nodes whose disks had called lost bytes synced.
        reasons: why who led in the end did not have them.
        told: the sentences so far, in no order.
    """

    def __init__(self, story: Story, records: Records, known: Collection[int] = ()) -> None:
        self.story = story
        self.known = known
        self.records = records
        self.partition = story.partition(records.partition)
        self.copies = copies(story, records)
        self.what = these(records.base, records.end)
        fates = [
            fate
            for loss in story.losses
            if loss.partition == records.partition
            for fate in loss.copies
        ]
        self.spoilt = {node: event for node, how, event in fates if how in SPOILT}
        self.lied = {node for node, how, _ in fates if how == "lied"}
        self.reasons: list[str] = []
        self.told: list[Sentence] = []

    def say(self, n: int, text: str) -> None:
        """Add a sentence about event ``n``."""
        self.told.append(Sentence(n, text))

    def when(self, n: int) -> str:
        """An event's number, and its time."""
        return when(self.story, n)

    def holders(self, n: int) -> list[str]:
        """Who had a copy of the first record behind event ``n``."""
        found = dict.fromkeys(
            each.node for each in self.copies if each.piece.n <= n < each.piece.until
        )
        return list(found)

    def because(self, reason: str) -> None:
        """Add a reason why who led in the end did not have them."""
        if reason not in self.reasons:
            self.reasons.append(reason)


def capital(text: str) -> str:
    """A text that begins a sentence."""
    return text[:1].upper() + text[1:]
