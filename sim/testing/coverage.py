"""What a run came to, for ``hypothesis.event`` and ``hypothesis.target``.

Words are coarse, so that the statistics of a test (``--hypothesis-show-statistics``) say how many
cases had an unclean election, a truncation, or a fault that struck.

Left out: judgement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any, Final

from attrs import frozen
from hypothesis import currently_in_test_context, event, target
from hypothesis.errors import InvalidArgument

from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.trace.writer import Trace

__all__ = ["Coverage", "coverage_of", "tell"]

EVENTS_MAX: Final = 100_000
"""A longer run is not looked at: that would take longer than the run."""


@frozen
class Coverage:
    """What a run came to.

    Attributes:
        words: each once, in order.
        longest_cut: the most records that one truncation took.
        losses: how many records were lost, under any licence.
    """

    words: tuple[str, ...]
    longest_cut: int = 0
    losses: int = 0


def coverage_of(events: Iterable[Event]) -> Coverage:
    """See the module."""
    words: dict[str, None] = {}
    kinds: dict[str, str] = {}
    longest = losses = 0
    for each in events:
        args = each.args
        match each.kind:
            case Kind.FAULT:
                kinds[str(args.get("id"))] = _kind_of(args)
                continue
            case Kind.HEAL:
                continue
            case Kind.ELECT:
                words[f"election: {_election(args)}"] = None
            case Kind.TRUNCATE | Kind.RESTART_AT:
                cut = _number(args, "log_end") - _number(args, "offset")
                if cut > 0:
                    words["truncation > 0"] = None
                    longest = max(longest, cut)
            case Kind.LOSS:
                words[f"loss: {args.get('licence')}"] = None
                losses += _number(args, "records")
            case Kind.RECOVER if "clean" in args:
                words[f"recovery: {'clean' if args['clean'] else 'unclean'}"] = None
                if _number(args, "cut_bytes"):
                    words["recovery: torn tail cut"] = None
            case Kind.QUARANTINE | Kind.SALVAGE:
                words[f"recovery: {each.kind.value}"] = None
        if "fault" in args:
            known = kinds.get(str(args["fault"]), each.kind.value)
            words[f"fault struck: {known}"] = None
    return Coverage(tuple(sorted(words)), longest, losses)


def _kind_of(args: Mapping[str, Any]) -> str:
    """Of a fault: of a call of the disk that which fails."""
    inner = args.get("args")
    fault = inner.get("fault") if isinstance(inner, Mapping) else None
    if isinstance(fault, Mapping) and "kind" in fault:
        return str(fault["kind"])
    return str(args.get("kind"))


def _election(args: Mapping[str, Any]) -> str:
    if args.get("leader") is None:
        return "nobody"
    if args.get("last_known"):
        return "last known"
    return "unclean" if args.get("unclean") else "clean"


def _number(args: Mapping[str, Any], key: str) -> int:
    value = args.get(key)
    return value if isinstance(value, int) else 0


def tell(trace: Trace, *words: str) -> None:
    """Tell Hypothesis of a run, if one of its tests is running.

    Args:
        trace: with its events.
        words: more of them.
    """
    if not currently_in_test_context():
        return
    found = Coverage(())
    if trace.count <= EVENTS_MAX:
        found = coverage_of(trace.events())
    for word in (*found.words, *words):
        event(word)
    for value, label in (
        (found.longest_cut, "records cut at once"),
        (found.losses, "records lost"),
    ):
        # A test may check several runs, and may name a target only once.
        with suppress(InvalidArgument):
            if value:
                target(value, label=label)
