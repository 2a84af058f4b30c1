"""Results as plain data: ``result.json`` of a run folder, and the one document of ``--json``.

Left out: text for people (``sim.cli.report``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from attrs import fields

from sim.cli.orders import Order, Settings
from sim.version import leaderfall_version

if TYPE_CHECKING:
    from sim.cli.ran import Ran
    from sim.running.scenario_run import Result
    from sim.scenario.problems import Problem

__all__ = ["broken_off", "document_of", "options_of", "problems_document", "whole"]


def options_of(scenario: Any) -> dict[str, Any]:
    """Every effective key of ``[cluster]``, spelled as files do, defaults and all."""
    from sim.scenario.kinds import key_of, kind_of

    def table(value: Any) -> dict[str, Any]:
        found = {}
        for each in fields(type(value)):
            if "kind" not in each.metadata:
                continue
            inner = getattr(value, each.name)
            if hasattr(inner, "__attrs_attrs__"):
                found[key_of(each)] = table(inner)
            elif isinstance(inner, Mapping):
                found[key_of(each)] = {
                    key: table(one) if hasattr(one, "__attrs_attrs__") else plain(one)
                    for key, one in inner.items()
                }
            else:
                found[key_of(each)] = plain(kind_of(each).show(inner))
        return found

    return table(scenario.cluster)


def plain(value: Any) -> Any:
    """A value of a run as JSON has it; sets in order."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((plain(each) for each in value), key=str)
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    return str(value)


def _head(order: Order, settings: Settings) -> dict[str, Any]:
    """What was run."""
    scenario = order.scenario
    return {
        "leaderfall": leaderfall_version(),
        "scenario": scenario.name,
        "title": scenario.title,
        "file": order.file,
        "file_digest": blake2b(
            scenario.text.encode("utf-8", "surrogatepass"), digest_size=16
        ).hexdigest(),
        "variant": scenario.variant,
        "seed": scenario.seed,
        "overrides": plain(scenario.overrides),
        "options": options_of(scenario),
        "level": settings.level,
        "disk": settings.disk,
        "events_max": settings.events_max,
        **({"is_strict": True} if settings.is_strict else {}),
        **({} if settings.replica is None else {"replica": settings.replica}),
        "replay": order.replay(settings),
    }


def document_of(order: Order, settings: Settings, result: Result) -> dict[str, Any]:
    """What came of a run, ready for ``json.dumps``."""
    verdict, footer = result.verdict, result.trace.footer
    brokers = [f"b{number}" for number in range(1, order.scenario.cluster.brokers + 1)]
    return {
        **_head(order, settings),
        "verdict": verdict.word,
        "exit": verdict.exit_code,
        "reasons": list(verdict.reasons),
        "unjudged": list(verdict.unjudged),
        "digest": result.digest,
        "events": result.trace.count,
        "virtual_us": result.end_us,
        "failure": _failure(result),
        "passed_over": [
            {"step": each.step or None, "t_us": each.t_us, "text": each.text}
            for each in result.passed_over
        ],
        "expectations": [_expectation(each) for each in result.expectations],
        "broken": [
            {
                "name": each.name,
                "count": each.count,
                "is_expected": each.is_expected,
                "is_excused": each.is_excused,
            }
            for each in verdict.broken
        ],
        "lost": [
            {
                "licence": each.licence,
                "records": each.records,
                "promises": list(each.promises),
                "is_covered": each.is_covered,
            }
            for each in verdict.lost
        ],
        "tested": {
            str(event): {
                "outcome": each.outcome,
                "without": list(each.parts),
                "others": list(each.others),
            }
            for event, each in verdict.tested.items()
        },
        "liveness": None if result.liveness is None else plain(result.liveness.plain()),
        "violations": [] if footer is None else plain(footer.violations),
        "losses": [] if footer is None else plain(footer.losses),
        "trace": "trace.jsonl",
        "brokers": brokers if settings.disk == "real" else [],
    }


def _failure(result: Result) -> dict[str, Any] | None:
    failure = result.failure
    if failure is None:
        return None
    return {
        "step": failure.step or None,
        "t_us": failure.t_us,
        "text": failure.text,
        "is_inconclusive": failure.is_inconclusive,
    }


def _expectation(each: Any) -> dict[str, Any]:
    expect = each.expect
    return {
        "number": each.number,
        "form": expect.form,
        "that": None if expect.that is None else expect.that.text,
        "breaks": list(expect.breaks),
        "because": expect.because,
        "line": expect.line,
        "holds": each.holds,
        "event": each.event or None,
        "values": {call: plain(answer) for call, answer in each.values},
        "detail": each.detail,
    }


def broken_off(order: Order, settings: Settings, verdict: str, code: int) -> dict[str, Any]:
    """Of a run without a verdict: ``interrupted`` or ``error``."""
    return {
        **_head(order, settings),
        "verdict": verdict,
        "exit": code,
        "digest": None,
        "trace": "trace.jsonl",
        "brokers": [],
    }


def whole(ran: Sequence[Ran], code: int) -> dict[str, Any]:
    """The document of ``--json``.

    Its digest is that of the run; of several runs, that of their digests in order.
    """
    runs = []
    for each in ran:
        more: dict[str, Any] = {"folder": None if each.folder is None else str(each.folder)}
        if each.second is not None:
            more["second"] = each.second.plain()
        if each.error:
            more["error"] = list(each.error)
        runs.append({**each.document, **more, "exit": int(each.code)})
    return {
        "leaderfall": leaderfall_version(),
        "exit": code,
        "digest": _digest([each.get("digest") for each in runs]),
        "runs": runs,
        "problems": [],
    }


def _digest(digests: Sequence[str | None]) -> str | None:
    if not digests or None in digests:
        return None
    if len(digests) == 1:
        return digests[0]
    return blake2b(",".join(map(str, digests)).encode("ascii"), digest_size=16).hexdigest()


def problems_document(problems: Sequence[Problem], code: int) -> dict[str, Any]:
    """The document where nothing was run."""
    return {
        "leaderfall": leaderfall_version(),
        "exit": code,
        "digest": None,
        "runs": [],
        "problems": [
            {
                "file": each.file,
                "line": each.line or None,
                "column": each.column if each.line else None,
                "where": each.where,
                "text": each.text,
                "hint": each.hint,
                "allowed": list(each.allowed),
            }
            for each in problems
        ],
    }
