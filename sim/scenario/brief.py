"""A scenario in a few words: what a failing test prints of it.

Left out: everything that the file says (``sim.scenario.writing``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

__all__ = ["brief"]

_STEP_KEYS: Final = frozenset({"at", "after", "delay", "id", "within"})
_SHOWN_MAX: Final = 12
_VALUE_CHARS: Final = 60


def brief(document: Mapping[str, Any], seed: int) -> str:
    """``Scenario('drawn', seed 3: 3 brokers, guard fetch-epoch off; t1-0 on b1 b2 b3; ...)``."""
    parts = [*_cluster(document), *_topics(document), *_clients(document)]
    parts += _few([_fault(each) for each in document.get("fault", ())], "faults")
    parts += _few([_step(each) for each in document.get("step", ())], "steps")
    return f"Scenario({document.get('name')!r}, seed {seed}: {'; '.join(parts)})"


def _few(words: Sequence[str], what: str) -> list[str]:
    left = len(words) - _SHOWN_MAX
    return [*words[:_SHOWN_MAX], *([f"{left} more {what}"] if left > 0 else [])]


def _cluster(document: Mapping[str, Any]) -> Iterator[str]:
    cluster = document.get("cluster", {})
    brokers = cluster.get("brokers", 3)
    words = ["1 broker" if brokers == 1 else f"{brokers} brokers"]
    words += ["ELR"] if cluster.get("eligible_leader_replicas") else []
    words += [f"guard {name} off" for name, on in cluster.get("guards", {}).items() if not on]
    yield ", ".join(words)


def _topics(document: Mapping[str, Any]) -> Iterator[str]:
    for topic in document.get("topic", ()):
        lists = topic.get("replicas")
        if lists is None:
            where = f"{topic.get('partitions', 1)} partitions"
        else:
            where = " | ".join(" ".join(each) for each in lists)
        least = topic.get("config", {}).get("min.insync.replicas")
        yield f"{topic.get('name')} on {where}" + (f", min ISR {least}" if least else "")


def _clients(document: Mapping[str, Any]) -> Iterator[str]:
    for each in document.get("workload", ()):
        if each.get("kind") == "producer":
            acks = each.get("acks", "all")
            yield f"{each.get('name')} writes {each.get('topic')} {each.get('rate')}/s acks={acks}"
        else:
            yield f"{each.get('name')} reads {each.get('topic')}"


def _fault(each: Mapping[str, Any]) -> str:
    words = [f"{each.get('kind')} {_value(each.get('target'))} at {_value(each.get('start'))}"]
    words += [f"to {_value(each['end'])}"] if "end" in each else []
    return " ".join(words)


def _step(each: Mapping[str, Any]) -> str:
    action = next((key for key in each if key not in _STEP_KEYS), "")
    when = f" at {each['at']}" if "at" in each else ""
    return f"step {action} {_value(each.get(action))}{when}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        text = " ".join(f"{key}={_value(each)}" for key, each in value.items())
    elif isinstance(value, list | tuple):
        text = " ".join(_value(each) for each in value)
    else:
        text = str(value)
    return text if len(text) <= _VALUE_CHARS else f"{text[: _VALUE_CHARS - 3]}..."
