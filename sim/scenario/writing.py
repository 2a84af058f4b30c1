"""The tables of a scenario as the text of its file, so that every scenario is a file.

``applied_document`` is the document of what runs: everything that a variant, the command line or a
program has set is in its place.

Left out: what TOML can say beyond texts, integers, booleans, lists and tables; comments.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from sim.scenario.durations import show_duration
from sim.scenario.model import Liveness, Scenario

__all__ = ["applied_document", "scenario_text"]

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)
_HEAD: Final = ("schema", "name", "title")
_LISTS = ("topic", "workload", "fault", "step", "expect")


def applied_document(scenario: Scenario, *, seed: int | None = None) -> dict[str, Any]:
    """The document of a scenario as it runs: no variants, and the seed and its end written in.

    Args:
        seed: instead of its own.
    """
    given = scenario.document
    found: dict[str, Any] = {key: given[key] for key in _HEAD if key in given}
    found["until"] = show_duration(scenario.until_us)
    found["seed"] = scenario.seed if seed is None else seed
    for key, value in given.items():
        if key not in (*found, "expect", "liveness", "sweep", "variant"):
            found[key] = value
    expects = [each.number for each in scenario.expects if each.applies_to(scenario.variant)]
    if expects:
        tables = [given["expect"][number - 1] for number in expects]
        found["expect"] = [{k: v for k, v in each.items() if k != "variant"} for each in tables]
    if scenario.liveness is not None:
        found["liveness"] = given.get("liveness") or _liveness(scenario.liveness)
    return found


def _liveness(asked: Liveness) -> dict[str, Any]:
    return {
        "within": show_duration(asked.within_us),
        "core": asked.core,
        "demand": asked.demand,
        "metastability": asked.metastability,
    }


def scenario_text(document: dict[str, Any]) -> str:
    """The file: top keys, then tables, then lists of tables, in the order of the document.

    What is no list of tables where one should be is written as it stands, for a reader to refuse.

    Raises:
        ValueError: a value is None, or something else that no file can say.
    """
    top = {key: value for key, value in document.items() if _is_top(key, value)}
    lines = [f"{_key(key)} = {_inline(value)}" for key, value in top.items()]
    for key, value in document.items():
        if key in top:
            continue
        if key in _LISTS:
            for each in value:
                lines += ["", f"[[{key}]]"]
                lines += [f"{_key(inner)} = {_inline(one)}" for inner, one in each.items()]
        else:
            lines += ["", f"[{_key(key)}]"]
            lines += [f"{_key(inner)} = {_inline(one)}" for inner, one in value.items()]
    return "\n".join(lines) + "\n"


def _is_top(key: str, value: Any) -> bool:
    if key in _LISTS and isinstance(value, list | tuple):
        return not all(isinstance(each, dict) for each in value)
    return not isinstance(value, dict) or key in _LISTS


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise ValueError(f"there is a key {key!r} in a scenario, allowed are texts")
    return key if _BARE.fullmatch(key) else _text(key)


def _text(value: str) -> str:
    """JSON and TOML differ in two things: halves of characters, and the sign DEL."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    if isinstance(value, str):
        return _text(value)
    if not isinstance(value, int | float):
        raise ValueError(
            f"a scenario file cannot say {value!r}: allowed are texts, numbers, true and false, "
            "lists and tables"
        )
    return json.dumps(value)
