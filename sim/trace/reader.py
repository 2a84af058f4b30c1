"""Reading a trace file, which may come from anywhere, and may have been cut short.

Reading streams: one line is in memory at a time. Each line is checked, and so is their order; what
is wrong raises ``TraceError``. A trace without a footer was cut short by a kill; a last line
without its newline was cut in the middle, and does not count. Both are readable, and
``is_complete`` says so.

``verify`` recomputes digest and sum. It notices any changed byte up to the last check point or
footer, and names the lines between which it is; what a cut trace has behind its last check point
nobody can vouch for.

Left out: repairing, and traces compressed or on a pipe.
"""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from pathlib import Path
from stat import S_ISREG
from typing import BinaryIO, Final, NamedTuple, overload

from attrs import frozen

from sim.trace.lines import Check, Event, Footer, Header, canonical, new_hash, sum_tail
from sim.trace.parsing import Line, Malformed, parse

__all__ = ["LINE_BYTES_MAX", "CheckPoints", "TraceError", "TraceReader", "Verified", "verify"]

LINE_BYTES_MAX: Final = 16 << 20
"""How long a line may be, unless the reader is told otherwise."""
_HEADER_MARK = b'{"leaderfall":'
_CHECK_MARK = b'{"check":'
_EVENT_MARK = b'{"n":'


class TraceError(Exception):
    """A trace file is not one, or is damaged.

    Attributes:
        path: the file.
        line: number of the line, from 1.
        what: what is wrong: the value seen, and the values allowed.
    """

    def __init__(self, path: Path, line: int, what: str) -> None:
        name = str(path)
        super().__init__(f"{name if name.isprintable() else ascii(name)}:{line}: {what}")
        self.path = path
        self.line = line
        self.what = what


def _open_at_once(path: str, flags: int) -> int:
    """Open, without waiting for whoever writes into a pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


class _Read(NamedTuple):
    """One whole line as it was read."""

    number: int
    data: bytes
    line: Line


class TraceReader:
    """One trace file. Each iteration reads the events anew, from the first on.

    Attributes:
        path: the file.
        header: its first line.
        footer: its last line; None where the trace was cut short.

    Raises:
        TraceError: the file does not begin with a header, or is no regular file.
        OSError: it cannot be read.
    """

    def __init__(self, path: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> None:
        self.path = path
        self._line_bytes_max = line_bytes_max
        self._checks: CheckPoints | None = None
        with self._open() as file:
            first = self._read_line(file, 1)
            if not first.endswith(b"\n"):
                raise TraceError(path, 1, "no whole line, a trace begins with a header")
            header = self._header(first)
            if not isinstance(header, Header):
                raise TraceError(path, 1, "the line is no header, a trace begins with one")
            self.header = header
            self.footer = self._find_footer(file)

    def _header(self, first: bytes) -> Line:
        try:
            return self._parse(1, first)
        except TraceError as error:
            if first.startswith(_HEADER_MARK):
                raise
            what = f"this is no trace, which begins with a header: {error.what}"
            raise TraceError(self.path, 1, what) from None

    @property
    def is_complete(self) -> bool:
        """Whether the trace was ended in order; otherwise it was cut short."""
        return self.footer is not None

    @property
    def checks(self) -> CheckPoints:
        """The check points; the file is looked through once, each one is parsed when asked for."""
        if self._checks is None:
            self._checks = CheckPoints(self)
        return self._checks

    def __iter__(self) -> Iterator[Event]:
        return self.fetch(1)

    def fetch(self, first: int, last: int | None = None) -> Iterator[Event]:
        """The events from one number to another, both included; None for all that follow.

        Beyond the first check point the reading begins at the one in front of ``first``.
        """
        start, count = (1, 0), 0
        if first > 1:
            if not self.checks.has_events:
                return
            index = bisect_left(self.checks, first, key=lambda check: check.n)
            if index:
                start, count = self.checks.place(index - 1), self.checks[index - 1].n
        for read in self._lines(*start, count):
            if isinstance(read.line, Event):
                if last is not None and read.line.n > last:
                    return
                if read.line.n >= first:
                    yield read.line

    def lines(self) -> Iterator[_Read]:
        """Every whole line, with its number and its bytes."""
        return self._lines(1, 0, 0)

    def event_lines(self) -> Iterator[tuple[int, bytes]]:
        """Every whole line that begins as an event does, unparsed, with its number."""
        number = 1
        with self._open() as file:
            while (data := self._read_line(file, number)).endswith(b"\n"):
                if data.startswith(_EVENT_MARK):
                    yield number, data
                number += 1

    def parse_event(self, number: int, data: bytes) -> Event:
        """The event of a line that ``event_lines`` gave.

        Raises:
            TraceError: it is none.
        """
        line = self._parse(number, data)
        if not isinstance(line, Event):
            raise TraceError(self.path, number, "the line is no event")
        return line

    def _lines(self, number: int, offset: int, count: int) -> Iterator[_Read]:
        """The lines from a place on, in front of which there are ``count`` events."""
        order = _Order(self.path, count, begins=number == 1)
        with self._open() as file:
            file.seek(offset)
            while (data := self._read_line(file, number)).endswith(b"\n"):
                line = self._parse(number, data)
                order.take(number, line)
                yield _Read(number, data, line)
                number += 1

    def _open(self) -> BinaryIO:
        """The file, which may have become another since it was last opened."""
        file = open(self.path, "rb", opener=_open_at_once)  # noqa: SIM115 - the caller closes it
        if not S_ISREG(os.fstat(file.fileno()).st_mode):
            # A pipe gives its lines only once, and a device has no end.
            file.close()
            raise TraceError(self.path, 1, "it is no regular file")
        return file

    def _read_line(self, file: BinaryIO, number: int) -> bytes:
        data = file.readline(self._line_bytes_max + 1)
        if len(data) > self._line_bytes_max:
            limit = self._line_bytes_max
            raise TraceError(self.path, number, f"the line is longer than {limit} bytes")
        return data

    def _parse(self, number: int, data: bytes) -> Line:
        try:
            return parse(data)
        except Malformed as error:
            raise TraceError(self.path, number, str(error)) from None

    def _find_footer(self, file: BinaryIO) -> Footer | None:
        """The last line, read from the end of the file, if it is one."""
        size_bytes = file.seek(0, 2)
        take_bytes = 4_096
        while True:
            take_bytes = min(take_bytes, size_bytes)
            file.seek(size_bytes - take_bytes)
            tail = file.read(take_bytes)
            start = tail.rfind(b"\n", 0, -1) + 1
            if start or take_bytes == size_bytes or take_bytes > self._line_bytes_max:
                break
            take_bytes *= 2
        if not tail.startswith(b'{"end":', start) or not tail.endswith(b"\n"):
            return None
        try:
            line = parse(tail[start:])
        except Malformed:
            return None  # Whoever reads up to it gets the error, with its line.
        return line if isinstance(line, Footer) else None


class _Order:
    """Whether lines follow each other as they must."""

    def __init__(self, path: Path, count: int, *, begins: bool) -> None:
        self._path = path
        self._count = count
        self._begins = begins
        self._has_events = count > 0
        self._has_ended = False

    def take(self, number: int, line: Line) -> None:
        count = self._count
        if self._has_ended:
            raise TraceError(self._path, number, "a line behind the footer")
        if isinstance(line, Event):
            if line.n != count + 1:
                what = f"the event's number is {line.n}, allowed is {count + 1}"
                raise TraceError(self._path, number, what)
            if count and not self._has_events:
                what = f"an event, where those up to {count} were left out"
                raise TraceError(self._path, number, what)
            self._count, self._has_events = line.n, True
        elif isinstance(line, Header):
            if not self._begins:
                raise TraceError(self._path, number, "a second header")
            self._begins = False
        elif self._has_events:
            if line.n != count:
                what = f"it names event {line.n}, allowed is the last one, {count}"
                raise TraceError(self._path, number, what)
        elif line.n < count + isinstance(line, Check):
            # A trace of level digest.
            raise TraceError(self._path, number, f"it names event {line.n} behind {count}")
        else:
            self._count = line.n
        self._has_ended = isinstance(line, Footer)


class CheckPoints(Sequence[Check]):
    """The check points of a file, each one parsed when it is asked for.

    Attributes:
        parsed: how many were asked for.
        has_events: whether the file has event lines at all.
    """

    def __init__(self, reader: TraceReader) -> None:
        self._reader = reader
        self._offsets = array("Q")
        self._numbers = array("Q")
        self.parsed = 0
        self.has_events = False
        offset = number = 0
        with reader._open() as file:
            while (data := reader._read_line(file, number + 1)).endswith(b"\n"):
                number += 1
                if data.startswith(_CHECK_MARK):
                    self._offsets.append(offset)
                    self._numbers.append(number)
                elif not self.has_events:
                    self.has_events = data.startswith(_EVENT_MARK)
                offset += len(data)

    def __len__(self) -> int:
        return len(self._offsets)

    @overload
    def __getitem__(self, index: int) -> Check: ...
    @overload
    def __getitem__(self, index: slice) -> list[Check]: ...
    def __getitem__(self, index: int | slice) -> Check | list[Check]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        self.parsed += 1
        reader, number = self._reader, self._numbers[index]
        with reader._open() as file:
            file.seek(self._offsets[index])
            line = reader._parse(number, reader._read_line(file, number))
        if not isinstance(line, Check):
            raise TraceError(reader.path, number, "the line is no check point")
        return line

    def place(self, index: int) -> tuple[int, int]:
        """Number and byte offset of a check point's line."""
        return self._numbers[index], self._offsets[index]


# Verifying -------------------------------------------------------------------------------------


@frozen
class Verified:
    """What ``verify`` found to be intact.

    Attributes:
        count: how many events there are.
        verified: so many of them, from the first on, are surely as they were written.
        digest: of all events that there are.
        has_events: whether the file has event lines; otherwise the digests are taken as they are.
        is_complete: whether the trace was ended in order.
    """

    count: int
    verified: int
    digest: str
    has_events: bool
    is_complete: bool


def verify(path: Path, *, line_bytes_max: int = LINE_BYTES_MAX) -> Verified:
    """Recompute digest and sum, and compare them with each check point and the footer.

    Raises:
        TraceError: a byte was changed; the text says between which lines.
        OSError: the file cannot be read.
    """
    reader = TraceReader(path, line_bytes_max=line_bytes_max)
    events, total = new_hash(), new_hash()
    count = verified = 0
    line_from, has_events, has_ended, stated = 1, False, False, events.hexdigest()
    for number, data, line in reader.lines():
        if isinstance(line, Event):
            has_events, count = True, line.n
            events.update(canonical(line))
            total.update(data)
        elif isinstance(line, Header):
            total.update(data)
        else:
            head = data[: -len(sum_tail("0" * 32))]
            total.update(head)
            between = f"between line {line_from} and line {number}"
            if has_events and line.digest != events.hexdigest():
                what = f"the digest is {line.digest}, the events give {events.hexdigest()}"
                raise TraceError(path, number, f"{what}: something was changed {between}")
            if data != head + sum_tail(total.hexdigest()):
                what = f"the sum does not fit, its value would be {total.hexdigest()}"
                if has_events:
                    what += "; the events give the digest"
                raise TraceError(path, number, f"{what}: something was changed {between}")
            if not has_events and line.n == verified and line.digest != stated:
                raise TraceError(path, number, f"the digest is {line.digest}, it was {stated}")
            total.update(data[len(head) :])
            count = verified = line.n
            line_from, has_ended, stated = number + 1, isinstance(line, Footer), line.digest
    digest = events.hexdigest() if has_events else stated
    return Verified(count, verified, digest, has_events, has_ended)
