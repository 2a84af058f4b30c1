"""Logs as parts that come and go, and the bytes in which they lie.

Left out: which event says what (``sim.present.story``).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import Any, Final

from sim.present.args import number, text
from sim.present.history import Cut, How, Piece, Replica
from sim.trace.lines import Event

__all__ = ["Bytes", "Logs"]

_SUFFIX: Final = ".log"


class Bytes:
    """Which bytes of log files were written with which event, and which syncs came since."""

    def __init__(self) -> None:
        self._writes: dict[tuple[str, str], list[tuple[str, int, int]]] = {}
        self._syncs: dict[tuple[str, str], list[tuple[int, int]]] = {}

    def write(self, event: Event) -> None:
        """Note a write until the append that it is for is told."""
        file = _file(event.args)
        if file.endswith(_SUFFIX):
            start = number(event.args, "position", 0)
            place = file, start, start + number(event.args, "size", 0)
            self._writes.setdefault((event.node, _folder(file)), []).append(place)

    def fsync(self, event: Event) -> None:
        """Note how far a file is durable."""
        file = _file(event.args)
        if file.endswith(_SUFFIX):
            end = number(event.args, "position", 0) + number(event.args, "size", 0)
            self._syncs.setdefault((event.node, file), []).append((event.n, end))

    def taken(self, node: str, partition: str) -> tuple[str, int, int] | None:
        """Where the append that is told now was written; None if it is not known exactly."""
        writes = self._writes.pop((node, partition), [])
        return writes[0] if len(writes) == 1 else None

    def synced(self, node: str, piece: Piece) -> int:
        """The event with which a part became durable; 0 if none did, -1 if it is not known."""
        if piece.place is None:
            return -1
        file, _, end = piece.place
        for n, covered in self._syncs.get((node, file), ()):
            if n > piece.n and covered >= end:
                return n
        return 0


class Logs:
    """Changes of replicas' logs; each returns what went."""

    def __init__(self, places: Bytes) -> None:
        self._bytes = places

    def extend(
        self,
        replica: Replica,
        event: Event,
        how: How,
        known: Replica | None,
        source: str | None = None,
    ) -> None:
        """Records are appended; the epochs are those of the log that they come from."""
        args = event.args
        base, end = number(args, "base_offset"), number(args, "next_offset")
        place = self._bytes.taken(replica.node, replica.partition)
        if not 0 <= base < end:
            return
        self.shorten(replica, event.n, base, How.TRUNCATED)
        epoch = number(args, "leader_epoch")
        ranges: list[tuple[int, int, int | None]] = [(base, end, epoch)]
        if known is not None:
            ranges = _epochs_of(known, base, end, epoch)
        for start, stop, each in ranges:
            piece = Piece(start, stop, each, event.n, how, source, place)
            replica.pieces.append(piece)
            replica.alive.append(piece)
        replica.log_ends.put(event.n, end)

    def shorten(
        self,
        replica: Replica,
        n: int,
        end: int,
        how: How,
        by: int = 0,
        ended: tuple[int, int] | None = None,
        high_watermark: int | None = None,
    ) -> list[Cut]:
        """Everything from an offset on goes."""
        alive = replica.alive
        if not alive or alive[-1].end <= end:
            return []
        old_end = alive[-1].end
        first = next(piece.base for piece in alive if piece.end > end)
        cut = Cut(n, how, max(end, first), old_end, by, ended, high_watermark)
        self._remove(replica, cut)
        replica.log_ends.put(n, end)
        seen = replica.high_watermarks.last
        if seen is not None and seen > end:
            replica.high_watermarks.put(n, end)
        return [cut]

    def empty(self, replica: Replica, n: int, how: How, by: int) -> list[Cut]:
        """All of it goes, and its offsets begin at 0."""
        alive = replica.alive
        cuts = [Cut(n, how, alive[0].base, alive[-1].end, by)] if alive else []
        for cut in cuts:
            self._remove(replica, cut)
        for series in (replica.log_starts, replica.log_ends, replica.high_watermarks):
            if len(series):
                series.put(n, 0)
        return cuts

    def raise_start(self, replica: Replica, n: int, start: int) -> list[Cut]:
        """The log begins at an offset: everything below it goes."""
        alive = replica.alive
        replica.log_starts.put(n, start)
        if not alive or alive[0].base >= start:
            return []
        cut = Cut(n, How.EXPIRED, alive[0].base, min(start, alive[-1].end), n)
        self._remove(replica, cut)
        return [cut]

    def found(
        self,
        replica: Replica,
        n: int,
        start: int,
        end: int,
        how: How,
        epochs: Sequence[tuple[int, int]] = (),
        by: int = 0,
    ) -> list[Cut]:
        """A log was opened: what is not there any more goes, and what is there again comes.

        Args:
            by: the event that made it so, as the power cut before; 0 if none is known.
            epochs: of what is there, each with its first offset. A cut or a write that was not
                durable is undone by a power cut: other records than the last ones may be there.
        """
        ranges = _ranges(epochs, start, end)
        others = (_first_other(replica.alive, *each) for each in ranges)
        same_end = min([end, *(each for each in others if each is not None)])
        old_end = replica.alive[-1].end if replica.alive else start
        cuts = self.shorten(replica, n, same_end, how, by)
        cuts += self.raise_start(replica, n, start)
        at = max(min(old_end, same_end), start)
        for first, stop, epoch in ranges:
            if at < first:
                self._restore(replica, n, at, first, None)
            self._restore(replica, n, max(at, first), stop, epoch)
            at = max(at, stop)
        self._restore(replica, n, at, end, None)
        replica.log_ends.put(n, end)
        return cuts

    def lose_bytes(self, replica: Replica, crash: int, args: Mapping[str, Any]) -> Cut | None:
        """Bytes of a file, or its name, are gone since a crash; returns what went with them."""
        how, file = text(args, "how"), _file(args)
        if how not in ("lost", "torn", "name"):
            return None
        start = number(args, "position", 0)
        end = start + number(args, "size", 0)
        first: int | None = None
        for piece in replica.alive:
            if piece.place is None:
                continue
            place, piece_start, piece_end = piece.place
            if how == "name":
                if file not in (place, _folder(place)):
                    continue
                offset = piece.base
            elif place != file or piece_end <= start or end <= piece_start:
                continue
            else:
                # Where in a batch of many the loss begins is estimated; the next start knows.
                kept = max(0, start - piece_start) * (piece.end - piece.base)
                offset = piece.base + kept // max(1, piece_end - piece_start)
            first = offset if first is None else min(first, offset)
        if first is None:
            return None
        cuts = self.shorten(replica, crash, first, How.POWER, crash)
        return cuts[0] if cuts else None

    def bring_back(self, replica: Replica, crash: int, args: Mapping[str, Any]) -> None:
        """A truncation was not durable: since a crash its bytes are there again.

        Only whole parts that follow what is left are believed; the next start knows.
        """
        if text(args, "how") != "tail-back":
            return
        file, start = _file(args), number(args, "position", 0)
        end = start + number(args, "size", 0)
        gone: list[Piece] = []
        for cut in reversed(replica.cuts):
            if cut.how is How.TRUNCATED and cut.n < crash:
                gone = [
                    piece
                    for piece in replica.held(cut.base, cut.end, None)
                    if piece.cut is cut and _is_within(piece, file, start, end)
                ]
            if gone:
                break
        at = replica.alive[-1].end if replica.alive else replica.log_starts.last or 0
        for piece in sorted(gone, key=lambda each: each.base):
            if piece.base == at:
                at = piece.end
                back = Piece(piece.base, at, piece.epoch, crash, How.FOUND, None, piece.place)
                replica.pieces.append(back)
                replica.alive.append(back)
                replica.log_ends.put(crash, at)

    def epoch_of(self, replica: Replica, offset: int) -> int | None:
        """The epoch of an offset in the part that came last, whether it is still there or not."""
        for piece in reversed(replica.pieces):
            if piece.base <= offset < piece.end:
                return piece.epoch
        return None

    def _restore(self, replica: Replica, n: int, base: int, end: int, epoch: int | None) -> None:
        """What was thought to be gone is there after all, or nobody knows its past.

        Where the epoch is not told, it is that of the records that were there last.
        """
        known = replica.held(base, end, epoch)
        while base < end:
            piece = next((p for p in reversed(known) if p.base <= base < p.end), None)
            if piece is None:
                stop = min((p.base for p in known if p.base > base), default=end)
                back = Piece(base, stop, epoch, n, How.FOUND)
            else:
                stop = min(end, piece.end)
                back = Piece(base, stop, piece.epoch, n, How.FOUND, None, piece.place)
            replica.pieces.append(back)
            replica.alive.append(back)
            base = stop

    def _remove(self, replica: Replica, cut: Cut) -> None:
        """Take a range at either end out of what is alive."""
        left = []
        for piece in replica.alive:
            base, end = max(piece.base, cut.base), min(piece.end, cut.end)
            if base >= end:
                left.append(piece)
                continue
            gone = (piece.base, piece.end) == (base, end)
            if not gone:
                # The part that stays is a piece of its own, from the same event.
                keep = (piece.base, base) if piece.base < base else (end, piece.end)
                rest = Piece(*keep, piece.epoch, piece.n, piece.how, piece.source, piece.place)
                replica.pieces.append(rest)
                left.append(rest)
            piece.base, piece.end, piece.cut = base, end, cut
        replica.alive[:] = left
        replica.cuts.append(cut)


def _epochs_of(known: Replica, base: int, end: int, last: int) -> list[tuple[int, int, int | None]]:
    """A range in parts of one epoch each, as another log has it; ``last`` where it does not say."""
    found: list[tuple[int, int, int | None]] = []
    index = max(0, bisect_right(known.alive, base, key=_base_of) - 1)
    at = base
    while at < end:
        while index < len(known.alive) and known.alive[index].end <= at:
            index += 1
        piece = known.alive[index] if index < len(known.alive) else None
        if piece is None or piece.base > at:
            stop, epoch = end if piece is None else min(end, piece.base), last
        else:
            stop, epoch = min(end, piece.end), last if piece.epoch is None else piece.epoch
        if found and found[-1][2] == epoch:
            found[-1] = found[-1][0], stop, epoch
        else:
            found.append((at, stop, epoch))
        at = stop
    return found


def _is_within(piece: Piece, file: str, start: int, end: int) -> bool:
    """Whether a part lies wholly in a range of a file."""
    place = piece.place
    return place is not None and place[0] == file and start <= place[1] and place[2] <= end


def _ranges(epochs: Sequence[tuple[int, int]], start: int, end: int) -> list[tuple[int, int, int]]:
    """Epochs with their first offsets as ranges within a log."""
    ends = [base for _, base in epochs[1:]] + [end]
    found = [
        (max(base, start), min(stop, end), epoch)
        for (epoch, base), stop in zip(epochs, ends, strict=False)
    ]
    return [each for each in found if each[0] < each[1]]


def _first_other(alive: Sequence[Piece], base: int, end: int, epoch: int) -> int | None:
    """The first offset of a range that a log has with another epoch; None where it has none."""
    for piece in alive:
        if piece.base < end and base < piece.end and piece.epoch != epoch:
            return max(base, piece.base)
    return None


def _base_of(piece: Piece) -> int:
    return piece.base


def _file(args: Mapping[str, Any]) -> str:
    """The path of a file below its node's directory; some events write it with a slash in front."""
    return (text(args, "file") or "").strip("/")


def _folder(file: str) -> str:
    parts = file.split("/")
    return parts[-2] if len(parts) > 1 else ""
