"""The lines of a trace file, and the digest over its events.

A trace is ASCII text, one JSON object a line, each line ended by a newline:

========= =====================================================================================
header    ``{"leaderfall":1,"version","scenario","variant","seed","options","nodes","topics"}``
event     ``{"n":341,"t":3500000,"node":"b1","kind":"append","cause":[338],"args":{...},
          "set":[["b1/orders-0/leo",10,15]]}``: ``n`` rises by one from 1, ``t`` is virtual time
          in µs, ``cause`` numbers earlier events, ``set`` lists reversible changes
          ``[path, old, new]`` with null for "absent". Empty ``cause``, ``args`` and ``set`` are
          left out.
check     ``{"check":1000,"digest":"<32 hex digits>","sum":"<32 hex digits>"}``: a check point
          behind event 1000.
footer    ``{"end":902,"verdict","digest","violations","losses","sum"}``; only a trace that was
          ended in order has one.
========= =====================================================================================

``digest`` is blake2b (16 bytes) over the events so far in canonical form: the compact JSON of
``[n,t,node,kind,cause,args]`` followed by a comma. A comma, since a batch of events is then one
JSON array without its brackets, and is encoded in one call. ``set`` is derived and stays outside,
so the level of a trace does not change its digest.
``sum`` is blake2b (16 bytes) over the file from its beginning up to the comma in front of ``"sum"``
itself, so that a changed byte is noticed in a header, a ``set`` or a footer, too.

A trace of level ``digest`` has no event lines; its check points are there all the same.

Left out: parsing lines (``sim.trace.parsing``), and files (``sim.trace.reader`` and ``writer``).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from hashlib import blake2b
from json import encoder as json_encoder
from typing import Any, Final, NamedTuple, NoReturn

from attrs import frozen

from sim.trace.kinds import Kind

__all__ = [
    "CHECK_EVERY",
    "FORMAT_VERSION",
    "Change",
    "Check",
    "Event",
    "EventNumber",
    "Footer",
    "Header",
    "Level",
    "canonical",
    "encode",
    "events_of",
    "new_hash",
    "sum_tail",
]

FORMAT_VERSION: Final = 1
CHECK_EVERY: Final = 1_000
"""Events from one check point to the next, by default."""

Change = tuple[str, Any, Any]
"""Path, old value, new value; None is "absent"."""


class Level(StrEnum):
    """How much a trace keeps; the digest is the same at each."""

    DIGEST = "digest"
    EVENTS = "events"
    FULL = "full"


class EventNumber(int):
    """The number of an event, told apart from other numbers: states are named without it."""

    __slots__ = ()

    def __deepcopy__(self, memo: object) -> EventNumber:
        return self


class Event(NamedTuple):
    """One event; ``changes`` is the line's ``set``."""

    n: int
    t_us: int
    node: str
    kind: Kind
    cause: tuple[int, ...]
    args: Mapping[str, Any]
    changes: tuple[Change, ...] = ()


@frozen
class Header:
    """What the run was.

    Attributes:
        version: of Leaderfall.
        options: every effective option, plain values.
        topics: as the scenario says, plain values.
    """

    version: str
    scenario: str | None
    variant: str | None
    seed: int
    options: Mapping[str, Any]
    nodes: Sequence[str]
    topics: Any

    def line(self) -> bytes:
        return _line(
            {
                "leaderfall": FORMAT_VERSION,
                "version": self.version,
                "scenario": self.scenario,
                "variant": self.variant,
                "seed": self.seed,
                "options": self.options,
                "nodes": list(self.nodes),
                "topics": self.topics,
            }
        )


class Check(NamedTuple):
    """A check point: the digest of events 1 to ``n``."""

    n: int
    digest: str

    def line(self) -> bytes:
        """Up to its sum."""
        return f'{{"check":{self.n},"digest":"{self.digest}"'.encode("ascii")


@frozen
class Footer:
    """How the run ended.

    Attributes:
        n: how many events there were.
        digest: of all of them.
        violations, losses: plain values.
    """

    n: int
    verdict: str
    digest: str
    violations: Sequence[Any] = ()
    losses: Sequence[Any] = ()

    def line(self) -> bytes:
        """Up to its sum."""
        plain = {
            "end": self.n,
            "verdict": self.verdict,
            "digest": self.digest,
            "violations": list(self.violations),
            "losses": list(self.losses),
        }
        return _line(plain)[:-2]


# Encoding --------------------------------------------------------------------------------------


def _not_plain(value: object) -> NoReturn:
    raise TypeError(f"{value!r} is a {type(value).__name__}, allowed are plain values")


def _make_encode() -> Callable[[Any], str]:
    """An encoder made once: ``JSONEncoder.encode`` makes its own at each call, at 1.5 µs."""
    make = getattr(json_encoder, "c_make_encoder", None)
    if make is None:  # Not CPython.
        return json.JSONEncoder(
            separators=(",", ":"), check_circular=False, allow_nan=False, default=_not_plain
        ).encode
    quote = json_encoder.encode_basestring_ascii
    chunks = make(None, _not_plain, quote, None, ":", ",", False, False, False)
    join = "".join

    def encode_plain(value: Any) -> str:
        return join(chunks(value, 0))

    return encode_plain


encode: Final[Callable[[Any], str]] = _make_encode()
"""Compact JSON of a list, tuple or dict: ASCII, no blanks, keys in their order."""


def _line(plain: Mapping[str, Any]) -> bytes:
    return encode(plain).encode("ascii") + b"\n"


def new_hash() -> blake2b:
    """The state of an empty digest or sum."""
    return blake2b(digest_size=16)


def canonical(event: Event) -> bytes:
    """What an event adds to the digest."""
    return (encode(event[:6]) + ",").encode("ascii")


def events_of(form: bytes) -> list[Event]:
    """The events that have added ``form`` to the digest; the inverse of ``canonical``."""
    plain = json.loads(b"[" + form[:-1] + b"]")
    return [
        Event(n, t_us, node, Kind(kind), tuple(cause), args)
        for n, t_us, node, kind, cause, args in plain
    ]


def sum_tail(value: str) -> bytes:
    """The end of a line that has a sum."""
    return f',"sum":"{value}"}}\n'.encode("ascii")
