"""The presenter: a whole trace as plain data, from which every face shows any step.

Whatever changes in a run is kept with the events at which it began and ended. So the state behind
event ``n`` (from 1; 0 is the empty beginning) is a question that bisection answers: a step back is
as exact as a step forward, and a jump costs no more than either.

What is only shown for one event (its arguments, its changes, its words) is read from the file
again, in blocks, of which a few are kept.

Left out: words for people (``sim.present.describing``, ``chains``, ``text``), the JSON form for
pages (``sim.present.plain_tracks``), and moving about (``sim.present.stepper``).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Self

from sim.present.expects import Expect
from sim.present.history import Series
from sim.present.lives import Lives
from sim.present.moments import Moment, moment
from sim.present.offset_lives import OffsetLife, index_lives_of, lives_of
from sim.present.story import Story
from sim.present.track_reading import Fields, Message, Timer, TrackReading
from sim.trace.lines import Event, Footer, Header
from sim.trace.reader import TraceError, TraceReader

__all__ = ["EVENTS_MAX", "Tracks"]

EVENTS_MAX: Final = 1_000_000
"""So many events are read unless the caller wants another number; about 1.5 KB of memory each."""
_BLOCK: Final = 512
_BLOCKS_KEPT: Final = 8


class Tracks:
    """One trace, read once.

    Attributes:
        path: of the file.
        header, footer: of the trace; the footer is None where it was cut short.
        story: what happened (``sim.present.story``).
        fields: a value over time for every path of the trace's changes, None for absent.
        messages, timers: those under way, and those that were set and came due.
        fates: how a message ended, and by which fault, by its number in ``messages``.
        segments, index_entries: by node and partition, base offsets of segments that have records,
            and of batches that have entries in an offset index.
        durable_ends: by node and partition, up to where a log is synced; a broker that is down has
            the one that it had.
        expects: the scenario's expectations, in the order in which they are first told.
        notices: what is missing in this view, in sentences.
        last: number of the last event that was read.
    """

    def __init__(self, reader: TraceReader, *, events_max: int = EVENTS_MAX) -> None:
        self._reader = reader
        self.path = reader.path
        self.header: Header = reader.header
        self.footer: Footer | None = reader.footer
        self.notices: list[str] = []
        self._blocks: OrderedDict[int, Sequence[Event]] = OrderedDict()
        reading = TrackReading()
        self.story = Story(reader.header, reading.pass_on(reader, events_max), reader.footer)
        self.fields: Fields = reading.fields
        self.messages: Lives[Message] = reading.messages
        self.timers: Lives[Timer] = reading.timers()
        self.expects: dict[str, Expect] = reading.expects
        self.segments = lives_of(self.story, reading.segments)
        self.index_entries = index_lives_of(
            self.story, reading.index_entries, self.segments, reading.new_indexes
        )
        self.durable_ends = _durable_ends(reading.fields)
        self.fates = reading.fates
        self.has_changes = reading.has_changes
        self.last = self.story.last_n
        self._note(reading, events_max)
        # The check points are looked for now, so that the first jump takes no longer than others.
        _ = reader.checks.has_events

    @classmethod
    def load(cls, path: Path, *, events_max: int = EVENTS_MAX) -> Self:
        """Read a trace file.

        Raises:
            TraceError: it is none, of another version, or damaged.
            OSError: it cannot be read.
        """
        return cls(TraceReader(path), events_max=events_max)

    def _note(self, reading: TrackReading, events_max: int) -> None:
        """Say what is missing."""
        if reading.is_cut:
            ends = "" if self.footer is None else f" of {self.footer.n}"
            self.notices.append(
                f"Only the first {events_max} events{ends} are shown: the trace is long."
            )
        elif self.footer is None:
            self.notices.append(f"The trace was cut short behind event {self.last}.")
        if self.footer is not None and self.footer.n and not self.last:
            self.notices.append("The trace keeps no events, only digests (--trace-level digest).")
        elif self.last and not self.has_changes:
            self.notices.append(
                "The trace does not keep the changes of states (--trace-level events)."
            )
        if reading.contradiction is not None:
            self.notices.append(reading.contradiction)

    # Events --------------------------------------------------------------------------------------

    def event(self, n: int) -> Event:
        """One event, whole.

        Raises:
            IndexError: there is none of that number.
            TraceError: the file has changed since: it is damaged now, or cannot be read any more.
        """
        if not 1 <= n <= self.last:
            raise IndexError(f"event {n}, allowed is 1..{self.last}")
        block = (n - 1) // _BLOCK
        found = self._blocks.get(block)
        if found is None:
            first = block * _BLOCK + 1
            last = min(first + _BLOCK - 1, self.last)
            try:
                found = tuple(self._reader.fetch(first, last))
            except OSError:
                raise TraceError(self.path, 1, "it cannot be read any more") from None
            if len(found) != last - first + 1:
                what = f"event {first + len(found)} is no longer there: the file has changed"
                raise TraceError(self.path, 1, what)
            self._blocks[block] = found
            while len(self._blocks) > _BLOCKS_KEPT:
                self._blocks.popitem(last=False)
        else:
            self._blocks.move_to_end(block)
        return found[n - 1 - block * _BLOCK]

    def events(self) -> Iterator[Event]:
        """All that are shown, read anew."""
        return self._reader.fetch(1, self.last) if self.last else iter(())

    # States --------------------------------------------------------------------------------------

    def moment(self, n: int) -> Moment:
        """Who runs, who leads and what the logs have behind event ``n``."""
        return moment(self.story, n)

    def state(self, n: int, prefix: str = "") -> dict[str, Any]:
        """Every path of this prefix that has a value behind event ``n``, sorted."""
        found = {}
        for path in sorted(self.fields):
            if path.startswith(prefix):
                value = self.fields[path].at(n)
                if value is not None:
                    found[path] = value
        return found

    def value(self, path: str, n: int) -> Any:
        """What a path has behind event ``n``; None where it is absent."""
        series: Series[Any] | None = self.fields.get(path)
        return None if series is None else series.at(n)

    def segments_at(self, node: str, partition: str, n: int) -> list[int]:
        """Base offsets of the segments that have records, in order."""
        return _offsets_at(self.segments.get((node, partition), ()), n)

    def index_at(self, node: str, partition: str, n: int) -> list[int]:
        """Offsets of the batches that have entries in an offset index, in order."""
        return _offsets_at(self.index_entries.get((node, partition), ()), n)


def _durable_ends(fields: Fields) -> dict[tuple[str, str], Series[int]]:
    found: dict[tuple[str, str], Series[int]] = {}
    for path, told in fields.items():
        node, _, rest = path.partition("/")
        partition, _, name = rest.rpartition("/")
        if name == "durable_end_offset" and partition:
            series = found[node, partition] = Series()
            for n, value in told:
                if type(value) is int:
                    series.put(n, value)
    return found


def _offsets_at(spans: Sequence[OffsetLife], n: int) -> list[int]:
    return sorted(each.offset for each in spans if each.begin <= n < each.end)
