"""Writing a trace: events are numbered, digested, and written to a file where one is wanted.

Events are kept in a small batch and encoded together, so an event costs little at the moment when
it is emitted. A batch ends at a check point at the latest, and goes into the file by one write of
whole lines. So a process that is killed loses one batch at most, and the file stays readable.

A trace can be copied with its world: the copy goes on counting and digesting, without the file.

Left out: what to emit (the world), pickling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from io import FileIO
from pathlib import Path
from typing import Any, Final

from sim.trace.kinds import Kind
from sim.trace.lines import (
    CHECK_EVERY,
    Change,
    Check,
    Event,
    EventNumber,
    Footer,
    Header,
    Level,
    encode,
    events_of,
    new_hash,
    sum_tail,
)
from sim.trace.parsing import parse

__all__ = ["BATCH_EVENTS_MAX", "Trace"]

BATCH_EVENTS_MAX: Final = 250
"""How many events a killed process may lose; a divisor of ``CHECK_EVERY`` fills all batches."""

_Raw = tuple[int, int, str, Kind, Sequence[int], dict[str, Any]]


class Trace:
    """The trace of one world.

    Args:
        level: what goes into the file, or is kept; the digest is the same at each.
        path: the file to write, which must not exist; None for no file.
        header: the file's first line; needed with a path.
        check_every: events from one check point to the next, from 1.
        keeps_lines: keep all events in memory, for ``events()``; at level digest they cost nothing
            but their space, and have no changes.
        zero_us: the virtual time that the trace calls 0; what is before it has negative times.

    Attributes:
        level, zero_us: as given.
        count: how many events there are; the last one has this number.
        footer: how it ended; None until it is closed.
        on_batch: told of the events of each batch, as ``emit`` had them, before they are digested;
            it changes nothing. Copies tell nobody.
    """

    __slots__ = (
        "_batch",
        "_changes",
        "_check_every",
        "_checks",
        "_flush_behind",
        "_hash",
        "_kept",
        "_next_check",
        "_put",
        "_quoted",
        "_sink",
        "count",
        "footer",
        "level",
        "on_batch",
        "wants_changes",
        "zero_us",
    )

    def __init__(
        self,
        level: Level | str = Level.DIGEST,
        *,
        path: Path | None = None,
        header: Header | None = None,
        check_every: int = CHECK_EVERY,
        keeps_lines: bool = False,
        zero_us: int = 0,
    ) -> None:
        if check_every < 1:
            raise ValueError(f"check_every is {check_every}, allowed is 1 or more")
        if path is not None and header is None:
            raise ValueError("a trace with a file needs a header")
        self.level = Level(level)
        self.zero_us = zero_us
        self.count = 0
        self.footer: Footer | None = None
        self.on_batch: Callable[[Sequence[_Raw]], None] | None = None
        self._check_every = check_every
        self._checks: list[bytes] = []
        self._next_check = check_every
        self._hash = new_hash()
        self._batch: list[_Raw] = []
        self._put = self._batch.append
        self._changes: dict[int, list[Change]] = {}
        self._quoted: dict[str, str] = {}
        self._kept: list[bytes] | None = [] if keeps_lines else None
        self._sink: _Sink | None = None
        if path is not None and header is not None:
            self._sink = _Sink(path)
            try:
                self._sink.write(header.line())
            except BaseException:
                self._sink.close()
                raise
        self._flush_behind = min(BATCH_EVENTS_MAX, check_every)
        self.wants_changes = self._takes_lines() and self.level is Level.FULL
        """Whether ``attach`` does anything; where it does not, changes need not be derived."""

    def __deepcopy__(self, memo: object) -> Trace:
        """Goes on from here without the file; lines kept in memory are kept on."""
        # Nobody changes an event's args, so the events themselves are shared.
        other = Trace(self.level, check_every=self._check_every, zero_us=self.zero_us)
        other.count, other.footer = self.count, self.footer
        other._checks = list(self._checks)
        other._next_check = self._next_check
        other._hash = self._hash.copy()
        other._batch = list(self._batch)
        other._put = other._batch.append
        other._flush_behind = self._flush_behind
        if self._kept is not None:
            other._kept = list(self._kept)
            other._changes = dict(self._changes)
            other.wants_changes = self.wants_changes
        return other

    __copy__ = __deepcopy__

    # Emitting ----------------------------------------------------------------------------------

    def emit(
        self, t_us: int, node: str, kind: Kind, cause: Sequence[int], args: dict[str, Any]
    ) -> EventNumber:
        """Add an event, and return its number.

        Args:
            t_us: virtual time.
            cause: numbers of earlier events.
            args: plain values: int, str, bool, None, lists, tuples (which count as lists) and dicts
                with str keys. Their order counts. The caller never changes them again: they may be
                encoded later.

        Raises:
            TypeError: an earlier event had args that are not plain; the text names it.
            ValueError: the trace is closed, or a cause is no earlier event.
            OSError: the file cannot be written; the trace goes on without it.
        """
        n = self.count + 1
        for each in cause:
            if not 0 < each < n:
                raise ValueError(f"cause {each} of event {n}, allowed are earlier events")
        if n > self._flush_behind:
            self._flush()
        self.count = n
        self._put((n, t_us - self.zero_us, node, kind, cause, args))
        return EventNumber(n)

    def attach(self, n: int, changes: list[Change]) -> None:
        """Say what event ``n``, which was emitted last, changed: (path, old, new), None for absent.

        Does nothing where ``wants_changes`` is false. The caller never changes the list again.
        """
        if not self.wants_changes or not changes:
            return
        if n != self.count or not self._batch:
            raise ValueError(f"changes of event {n}, allowed is the one emitted last, {self.count}")
        self._changes[n] = changes

    # Looking at it -----------------------------------------------------------------------------

    def digest(self) -> str:
        """The digest of all events so far, 32 hex digits."""
        return self._digest_now().hex()

    @property
    def checks(self) -> list[Check]:
        """The check points so far."""
        every, digests = self._check_every, self._checks
        if self.count == self._next_check:
            digests = [*digests, self._digest_now()]
        return [Check((i + 1) * every, digest.hex()) for i, digest in enumerate(digests)]

    def events(self) -> list[Event]:
        """All events so far, as a reader would give them, of a trace that keeps its lines.

        Raises:
            ValueError: it does not keep them.
        """
        if self._kept is None:
            raise ValueError("the trace keeps no events; make it with keeps_lines")
        if self.level is Level.DIGEST:
            forms = [*self._kept, *([self._canonical()] if self._batch else [])]
            return [each for form in forms for each in events_of(form)]
        lines, _ = self._encoded()
        return [each for line in (*self._kept, *lines) if isinstance(each := parse(line), Event)]

    # Ending ------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write all events so far into the file; the last one's changes must be attached before."""
        self._flush()

    def close(
        self, verdict: str, violations: Sequence[Any] = (), losses: Sequence[Any] = ()
    ) -> None:
        """End the trace: the footer is written, and nothing can be emitted any more."""
        self._flush()
        self.footer = Footer(self.count, verdict, self.digest(), tuple(violations), tuple(losses))
        self._flush_behind = -1
        if self._sink is not None:
            self._sink.write_with_sum(self.footer.line())
            self._sink.close()
            self._sink = None

    def abandon(self) -> None:
        """Write what there is, and leave the file without a footer: the run broke off."""
        try:
            if self.footer is None:
                self._flush()
        finally:
            if self._sink is not None:
                self._sink.close()
                self._sink = None

    # Inside ------------------------------------------------------------------------------------

    def _takes_lines(self) -> bool:
        return self._sink is not None or self._kept is not None

    def _digest_now(self) -> bytes:
        if not self._batch:
            return self._hash.digest()
        state = self._hash.copy()
        state.update(self._canonical())
        return state.digest()

    def _canonical(self) -> bytes:
        """What the batch adds to the digest."""
        try:
            return (encode(self._batch)[1:-1] + ",").encode("ascii")
        except (TypeError, ValueError, RecursionError) as error:
            raise self._blamed(error) from error

    def _blamed(self, error: Exception) -> Exception:
        """The error, with the number of the event that it is about."""
        for raw in self._batch:
            try:
                encode(raw)
            except (TypeError, ValueError, RecursionError) as cause:
                return TypeError(f"event {raw[0]} ({raw[3]} at {raw[2]}): {cause}")
        return error

    def _encoded(self) -> tuple[list[bytes], bytes]:
        """The batch's lines, and what it adds to the digest; args are encoded once for both."""
        quoted, changes = self._quoted, self._changes
        lines, forms = [], []
        try:
            for n, t_us, node, kind, cause, args in self._batch:
                name = quoted.get(node)
                if name is None:
                    name = quoted[node] = encode(node)
                head = f'"n":{n},"t":{t_us},"node":{name},"kind":"{kind}"'
                cause_text = encode(cause) if cause else ""
                if cause_text:
                    head += ',"cause":' + cause_text
                args_text = encode(args) if args else ""
                if args_text:
                    head += ',"args":' + args_text
                if n in changes:
                    head += ',"set":' + encode(changes[n])
                lines.append(f"{{{head}}}\n".encode("ascii"))
                forms.append(
                    f'[{n},{t_us},{name},"{kind}",{cause_text or "[]"},{args_text or "{}"}],'
                )
        except (TypeError, ValueError, RecursionError) as error:
            raise self._blamed(error) from error
        return lines, "".join(forms).encode("ascii")

    def _flush(self) -> None:
        """End the batch; a check point follows where one is due."""
        if self.footer is not None:
            raise ValueError("the trace is closed")
        data = b""
        if self._batch:
            if self.on_batch is not None:
                self.on_batch(self._batch)
            if self._takes_lines() and self.level is not Level.DIGEST:
                lines, form = self._encoded()
                if self._kept is not None:
                    self._kept += lines
                data = b"".join(lines)
            else:
                form = self._canonical()
                if self._kept is not None:
                    self._kept.append(form)
            self._hash.update(form)
            self._batch.clear()
            self._changes.clear()
        is_due = self.count == self._next_check
        if is_due:
            self._checks.append(self._hash.digest())
            self._next_check += self._check_every
        self._flush_behind = min(self.count + BATCH_EVENTS_MAX, self._next_check)
        self._write(data)
        if is_due:
            self._write(Check(self.count, self._checks[-1].hex()).line(), has_sum=True)

    def _write(self, data: bytes, *, has_sum: bool = False) -> None:
        if self._sink is None:
            return
        try:
            if has_sum:
                self._sink.write_with_sum(data)
            else:
                self._sink.write(data)
        except OSError:
            # A torn line must stay the last one.
            self._sink.close()
            self._sink = None
            raise


class _Sink:
    """The file, and the sum over what went into it."""

    __slots__ = ("_file", "_sum")

    def __init__(self, path: Path) -> None:
        self._file = FileIO(path, "x")
        self._sum = new_hash()

    def write(self, data: bytes) -> None:
        self._sum.update(data)
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) :]

    def write_with_sum(self, data: bytes) -> None:
        """A line that ends with the sum over all in front of it."""
        state = self._sum.copy()
        state.update(data)
        self.write(data + sum_tail(state.hexdigest()))

    def close(self) -> None:
        self._file.close()
