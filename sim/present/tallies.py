"""What goes on all the time, added up: records sent, appended, copied, acknowledged, read.

Left out: everything that is told one by one (``sim.present.tellings``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from attrs import define, field

from sim.present.args import integer, number, text
from sim.present.history import Ack
from sim.present.story import Happening, Story
from sim.present.tellings import Told
from sim.present.words import acks_word, counted, listed, name, offsets

__all__ = ["Ranges", "Tallies"]

RANGES_MAX: Final = 4


class Ranges:
    """Offsets in ascending ranges."""

    def __init__(self) -> None:
        self.ranges: list[list[int]] = []
        self.count = 0

    def add(self, base: int, end: int) -> None:
        """Add a half-open range."""
        self.count += end - base
        for each in reversed(self.ranges[-RANGES_MAX:]):
            if each[0] <= base <= each[1]:
                each[1] = max(each[1], end)
                return
        self.ranges.append([base, end])

    def __str__(self) -> str:
        found = self._joined()
        shown = [offsets(base, end) for base, end in found[:RANGES_MAX]]
        return ", ".join(shown) + (", …" if len(found) > RANGES_MAX else "")

    def _joined(self) -> list[list[int]]:
        found: list[list[int]] = []
        for base, end in sorted(self.ranges):
            if found and base <= found[-1][1]:
                found[-1][1] = max(found[-1][1], end)
            else:
                found.append([base, end])
        return found


@define(eq=False)
class _Client:
    """What one client did with one partition under one ``acks``."""

    first: int
    last: int
    sent: int = 0
    acked: Ranges = field(factory=Ranges)
    untold: int = 0
    rejected: dict[str, int] = field(factory=dict)
    unknown: dict[str, int] = field(factory=dict)
    read: Ranges = field(factory=Ranges)

    @property
    def has_any(self) -> bool:
        """Whether there is anything to tell; what was sent may be told with its partition."""
        parts = (self.sent, self.untold, self.acked.count, self.read.count)
        return any(parts) or bool(self.rejected or self.unknown)


@define(eq=False)
class _Log:
    """What the replicas of one partition did."""

    first: int
    last: int
    appended: dict[str, Ranges] = field(factory=dict)
    copied: dict[str, Ranges] = field(factory=dict)
    high_watermark: int | None = None


class Tallies:
    """Takes what is added up, and gives the lines of it when something else is told."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self._clients: dict[tuple[str, str | None, Any], _Client] = {}
        self._logs: dict[str, _Log] = {}

    def takes(self, happening: Happening) -> bool:
        """Whether it is something that is added up."""
        return happening.what in _TAKERS

    def take(self, happening: Happening) -> None:
        """Add it up."""
        _TAKERS[happening.what](self, happening)

    def flush(self) -> Iterator[Told]:
        """The lines of everything taken so far, which is then forgotten."""
        told = [
            *(self._tell_client(key, each) for key, each in self._clients.items() if each.has_any),
            *(self._tell_log(key, each) for key, each in self._logs.items()),
        ]
        self._clients, self._logs = {}, {}
        yield from sorted(told, key=lambda each: each.first)

    # Taking --------------------------------------------------------------------------------------

    def _client(self, happening: Happening, acks: Any) -> _Client:
        key = happening.node, happening.partition, acks
        found = self._clients.setdefault(key, _Client(happening.n, happening.n))
        found.last = happening.n
        return found

    def _answered(self, happening: Happening, acks: Any) -> _Client:
        """The client that is answered; what it had sent to the topic went to this partition."""
        client = self._client(happening, acks)
        topic, _, number_ = (happening.partition or "").rpartition("-")
        waiting = self._clients.get((happening.node, topic, acks))
        if waiting is not None and waiting.sent and number_.isdecimal():
            waiting.sent -= 1
            client.sent += 1
            client.first = min(client.first, waiting.first)
        return client

    def _log(self, happening: Happening) -> _Log:
        partition = happening.partition or "?"
        found = self._logs.setdefault(partition, _Log(happening.n, happening.n))
        found.last = happening.n
        return found

    def _sent(self, happening: Happening) -> None:
        self._client(happening, integer(happening.data, "acks")).sent += 1

    def _ack(self, happening: Happening) -> None:
        ack = happening.data
        assert isinstance(ack, Ack)
        client = self._answered(happening, ack.acks)
        if ack.offset < 0:
            client.untold += 1
        else:
            client.acked.add(ack.offset, ack.offset + 1)

    def _reject(self, happening: Happening) -> None:
        rejected = self._answered(happening, integer(happening.data, "acks")).rejected
        error = text(happening.data, "error") or "no error"
        rejected[error] = rejected.get(error, 0) + 1

    def _unknown(self, happening: Happening) -> None:
        unknown = self._answered(happening, integer(happening.data, "acks")).unknown
        error = text(happening.data, "error") or "no answer"
        unknown[error] = unknown.get(error, 0) + 1

    def _poll(self, happening: Happening) -> None:
        offset = number(happening.data, "offset")
        self._client(happening, None).read.add(offset, offset + 1)

    def _append(self, happening: Happening) -> None:
        self._add(self._log(happening).appended, happening)

    def _copy(self, happening: Happening) -> None:
        self._add(self._log(happening).copied, happening)

    def _add(self, ranges: dict[str, Ranges], happening: Happening) -> None:
        base, end = number(happening.data, "base_offset"), number(happening.data, "next_offset")
        ranges.setdefault(happening.node, Ranges()).add(base, max(base, end))

    def _hw(self, happening: Happening) -> None:
        self._log(happening).high_watermark = number(happening.data, "high_watermark", 0)

    # Telling -------------------------------------------------------------------------------------

    def _tell_client(self, key: tuple[str, str | None, Any], each: _Client) -> Told:
        client, partition, acks = key
        counts: list[str] = []
        outcomes = each.acked.count + each.untold + sum(each.rejected.values())
        outcomes += sum(each.unknown.values())
        where = "" if partition is None else f" to {name(partition)}"
        how = "" if acks is None else f", {acks_word(acks)}"
        words = []
        if each.sent and each.sent != each.acked.count + each.untold:
            words.append(f"{each.sent} sent{where}")
        if each.acked.count:
            words.append(f"{each.acked.count} acked ({name(partition)} {each.acked})")
        if each.untold:
            words.append(f"{each.untold} sent{where} without waiting for an answer")
        if each.rejected:
            words.append(f"{sum(each.rejected.values())} rejected ({_codes(each.rejected)})")
        if each.unknown:
            unknown = sum(each.unknown.values())
            words.append(f"{unknown} with unknown outcome ({_codes(each.unknown)})")
        if each.sent > outcomes:
            still = each.sent - outcomes
            words.append("no answer yet" if not outcomes else f"{still} not answered yet")
        if each.read.count:
            read = counted(each.read.count, "record")
            words.append(f"reads {read} of {name(partition)} ({each.read})")
        words[-1] += how
        counts = [
            f"{what}={count}"
            for what, count in (
                ("record sent/records sent", each.sent),
                ("acknowledged/acknowledged", each.acked.count + each.untold),
                ("rejected/rejected", sum(each.rejected.values())),
                ("of unknown outcome/of unknown outcome", sum(each.unknown.values())),
                ("read/read", each.read.count),
            )
            if count
        ]
        is_bad = bool(each.rejected or each.unknown)
        tone = "bad" if is_bad else "traffic"
        text_ = f"{name(client)}: {', '.join(words)}"
        return Told(each.first, each.last, text_, tone, 1 if is_bad else 0, tuple(counts))

    def _tell_log(self, partition: str, each: _Log) -> Told:
        words = [f"{name(node)} appended {ranges}" for node, ranges in each.appended.items()]
        same: dict[str, list[str]] = {}
        for node, ranges in each.copied.items():
            same.setdefault(str(ranges), []).append(name(node))
        words += [f"{listed(nodes)} copied {ranges}" for ranges, nodes in same.items()]
        if each.high_watermark is not None:
            words.append(f"high watermark {each.high_watermark}")
        counts = [
            f"{what}={count}"
            for what, count in (
                ("appended/appended", sum(ranges.count for ranges in each.appended.values())),
                ("copied/copied", sum(ranges.count for ranges in each.copied.values())),
            )
            if count
        ]
        return Told(
            each.first,
            each.last,
            f"{name(partition)}: {'; '.join(words)}",
            "traffic",
            0,
            tuple(counts),
        )


def _codes(counts: dict[str, int]) -> str:
    """Codes of errors, with how often where there are several."""
    if len(counts) == 1:
        return name(next(iter(counts)))
    return ", ".join(f"{name(code)} {count}" for code, count in counts.items())


_TAKERS: Final[dict[str, Callable[[Tallies, Happening], None]]] = {
    "sent": Tallies._sent,
    "ack": Tallies._ack,
    "reject": Tallies._reject,
    "unknown": Tallies._unknown,
    "poll": Tallies._poll,
    "append": Tallies._append,
    "copy": Tallies._copy,
    "hw": Tallies._hw,
}
