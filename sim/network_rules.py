"""Network faults as data: rules that are active on directed links for a while.

A rule names its links (``edges``) and, if it is not meant for all, the messages that it strikes
(``only``). When it begins and ends is the caller's business: ``Network.add`` and ``remove``. What
striking means is carried out by ``sim.network``. Source: FAULTS C.1.

Every rule draws from a stream of its own, keyed by its id, the link and the frame's ordinal there.
So taking one rule out leaves all other draws as they were.

Left out: composites (flapping, swizzling), which are lists of rules with times; selectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import frozen

from cluster.messages import MESSAGES

__all__ = [
    "IN_FLIGHT",
    "MESSAGE_NAMES",
    "RULES",
    "Clog",
    "Corrupt",
    "Cut",
    "Duplicate",
    "Edge",
    "Limit",
    "Loss",
    "Refuse",
    "Reorder",
    "ResetOn",
    "Rule",
    "Slow",
    "isolate_edges",
    "partition_edges",
    "stem",
]

Edge = tuple[str, str]
"""Source and destination; ``*`` stands for every node."""

IN_FLIGHT: Final = ("drop", "hold", "deliver")
MILLION: Final = 1_000_000


def stem(message_name: str) -> str:
    """``Fetch`` of ``FetchRequest`` and of ``FetchResponse``."""
    return message_name.removesuffix("Request").removesuffix("Response")


MESSAGE_NAMES: Final[tuple[str, ...]] = tuple(
    sorted({name for c in MESSAGES.classes for name in (c.__name__, stem(c.__name__))})
)
"""What ``only`` may hold."""


def _choose(rule: Rule, name: str, allowed: Sequence[str]) -> None:
    if getattr(rule, name) not in allowed:
        raise rule.refuse(name, repr(getattr(rule, name)), ", ".join(allowed))


def _bound(rule: Rule, name: str, least: int, most: int | None = None) -> None:
    value = getattr(rule, name)
    if value < least or (most is not None and value > most):
        allowed = f"{least} or more" if most is None else f"{least}..{most}"
        raise rule.refuse(name, value, allowed)


def _bound_times(rule: Rule) -> None:
    times = getattr(rule, "times")  # noqa: B009 - of those rules that have it
    if times is not None and times < 1:
        raise rule.refuse("times", times, "1 or more, or None")


def _is_meant(name: str, node: str) -> bool:
    """Whether a name in a rule means a node; ``p1`` is a client's ``p1.2``, too (``sim.verbs``)."""
    return name in ("*", node, node.partition(".")[0])


@frozen(kw_only=True)
class Rule:
    """What all rules have.

    Attributes:
        id: names it in traces.
        edges: the directed links that it is active on.
        only: messages that it strikes: ``Fetch`` for requests and responses, or whole names of
            classes. Empty for all, and then it also strikes the news that a connection has ended.
    """

    id: str
    edges: tuple[Edge, ...]
    only: frozenset[str] = frozenset()

    def __attrs_post_init__(self) -> None:
        if not self.id:
            raise ValueError("id is '', allowed is a name")
        if not self.edges or not all(src and dst for src, dst in self.edges):
            raise self.refuse(
                "edges", self.edges, "one (source, destination) or more, '*' for every node"
            )
        for name in sorted(self.only):
            if name not in MESSAGE_NAMES:
                raise self.refuse("only", repr(name), ", ".join(MESSAGE_NAMES))
        self._check()

    def refuse(self, name: str, seen: object, allowed: str) -> ValueError:
        """What to raise for a value that cannot be."""
        kind = type(self).__name__
        return ValueError(f"{name} of {kind} {self.id!r} is {seen}, allowed: {allowed}")

    def _check(self) -> None:
        """Look at the values that only this kind has."""

    def covers(self, src: str, dst: str) -> bool:
        """Whether one of the edges is this link."""
        return any(_is_meant(a, src) and _is_meant(b, dst) for a, b in self.edges)

    def names(self) -> frozenset[str] | None:
        """The names of the message classes that are struck; None for all."""
        if not self.only:
            return None
        names = (each.__name__ for each in MESSAGES.classes)
        return frozenset(n for n in names if n in self.only or stem(n) in self.only)


@frozen(kw_only=True)
class Cut(Rule):
    """Nothing passes.

    Attributes:
        in_flight: ``drop``: what is under way and what is sent meanwhile is never delivered.
            ``deliver``: what is under way arrives, the rest never. ``hold``: all of it arrives
            after the end.
        backoff_cap_us: with ``hold``: 0 to arrive at the end; else at the next retransmission
            after it: they come 200 ms, 400 ms, ... apart, and never more than this.
    """

    in_flight: str = "drop"
    backoff_cap_us: int = 0

    def _check(self) -> None:
        _choose(self, "in_flight", IN_FLIGHT)
        _bound(self, "backoff_cap_us", 0)
        if self.backoff_cap_us and self.in_flight != "hold":
            raise self.refuse("backoff_cap_us", self.backoff_cap_us, "0 unless in_flight is 'hold'")


@frozen(kw_only=True)
class Clog(Rule):
    """Everything waits until the end, and then arrives in order."""


@frozen(kw_only=True)
class Slow(Rule):
    """Latency times ``factor_ppm`` millionths, and ``addend_us`` more."""

    factor_ppm: int = MILLION
    addend_us: int = 0

    def _check(self) -> None:
        _bound(self, "factor_ppm", 0)
        _bound(self, "addend_us", 0)


@frozen(kw_only=True)
class Loss(Rule):
    """``ppm`` of a million transmissions are lost.

    In stream mode a lost one is repeated after 200 ms, 400 ms, ..., and what was sent behind it
    waits; six losses in a row and the connection fails. In datagram mode the frame is gone.
    """

    ppm: int

    def _check(self) -> None:
        _bound(self, "ppm", 0, MILLION)


@frozen(kw_only=True)
class ResetOn(Rule):
    """The connection fails when a request arrives, or when its response does.

    Attributes:
        edges: the way of the requests, for both kinds.
        when: ``before`` the request is applied: it is dropped. ``after``: the response is dropped,
            so the requester does not know what happened.
        ppm: so many of a million arrivals are struck.
        times: at most so many strikes; None for ever.
        half_open: the end that hears nothing before its next frame has arrived at the other.
    """

    when: str = "before"
    ppm: int = MILLION
    times: int | None = 1
    half_open: str | None = None

    def _check(self) -> None:
        _choose(self, "when", ("before", "after"))
        _bound(self, "ppm", 0, MILLION)
        _bound_times(self)

    def covers(self, src: str, dst: str) -> bool:
        if self.when == "after":
            src, dst = dst, src
        return super().covers(src, dst)

    def names(self) -> frozenset[str] | None:
        stems = frozenset(stem(name) for name in self.only)
        end = "Request" if self.when == "before" else "Response"
        names = (each.__name__ for each in MESSAGES.classes)
        return frozenset(n for n in names if n.endswith(end) and (not stems or stem(n) in stems))


@frozen(kw_only=True)
class Refuse(Rule):
    """New connections from source to destination fail; those that there are go on.

    Attributes:
        hangs_us: 0: refused as soon as the first frame arrives; else the source hears of it so
            long after that frame has left.
    """

    hangs_us: int = 0

    def _check(self) -> None:
        _bound(self, "hangs_us", 0)
        if self.only:
            raise self.refuse("only", sorted(self.only), "none: connections carry all messages")


@frozen(kw_only=True)
class Limit(Rule):
    """Bandwidth, and a send buffer: while it is full, frames wait in the process in front of it.

    A frame larger than the buffer goes when the buffer is empty. Of several limits on a link the
    smallest numbers count.
    """

    bytes_per_s: int
    buffer_bytes: int = 1 << 18

    def _check(self) -> None:
        _bound(self, "bytes_per_s", 1)
        _bound(self, "buffer_bytes", 1)
        if self.only:
            raise self.refuse("only", sorted(self.only), "none: a link carries all messages")


@frozen(kw_only=True)
class Corrupt(Rule):
    """``bits`` bits of a frame's bytes are flipped behind all checksums of the transport.

    The receiver gets what the bytes mean then; where they mean nothing, the connection is reset.
    """

    bits: int = 1
    ppm: int = MILLION
    times: int | None = 1

    def _check(self) -> None:
        _bound(self, "bits", 1, 32)
        _bound(self, "ppm", 0, MILLION)
        _bound_times(self)


@frozen(kw_only=True)
class Duplicate(Rule):
    """A second copy arrives at a time of its own. Datagram mode only."""

    ppm: int

    def _check(self) -> None:
        _bound(self, "ppm", 0, MILLION)


@frozen(kw_only=True)
class Reorder(Rule):
    """A frame arrives up to ``up_to_us`` later, and others overtake it. Datagram mode only."""

    ppm: int
    up_to_us: int

    def _check(self) -> None:
        _bound(self, "ppm", 0, MILLION)
        _bound(self, "up_to_us", 1, 1 << 31)


RULES: Final[tuple[type[Rule], ...]] = (
    Cut,
    Clog,
    Slow,
    Loss,
    ResetOn,
    Refuse,
    Limit,
    Corrupt,
    Duplicate,
    Reorder,
)


def partition_edges(groups: Iterable[Iterable[str]]) -> tuple[Edge, ...]:
    """The links between different groups, both ways; nodes in no group keep all of theirs.

    Raises:
        ValueError: fewer than two groups, an empty one, or a node in two of them.
    """
    sets = [sorted(set(group)) for group in groups]
    if len(sets) < 2 or not all(sets):
        raise ValueError(f"groups are {sets}, allowed are two or more, none of them empty")
    seen: set[str] = set()
    for group in sets:
        for node in group:
            if node in seen:
                raise ValueError(f"groups are {sets}, allowed is each node once: {node!r} is twice")
            seen.add(node)
    return tuple(
        (a, b) for one in sets for other in sets if one is not other for a in one for b in other
    )


def isolate_edges(
    nodes: Iterable[str], *, is_inbound: bool = True, is_outbound: bool = True
) -> tuple[Edge, ...]:
    """All links to and from each of the nodes, or of one direction only."""
    edges: list[Edge] = []
    for node in sorted(set(nodes)):
        edges += [(node, "*")] if is_outbound else []
        edges += [("*", node)] if is_inbound else []
    return tuple(edges)
