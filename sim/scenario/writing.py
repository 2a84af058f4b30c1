"""The tables of a scenario as the text of its file, so that every scenario is a file.

Left out: what TOML can say beyond texts, integers, booleans, lists and tables.
"""

from __future__ import annotations

import json
from typing import Any

__all__ = ["scenario_text"]

_LISTS = ("topic", "workload", "fault", "step", "expect")


def scenario_text(document: dict[str, Any]) -> str:
    """The file: top keys, then tables, then lists of tables, in the order of the document."""
    lines = [f"{key} = {_inline(value)}" for key, value in document.items() if _is_top(key, value)]
    for key, value in document.items():
        if key in _LISTS:
            for each in value:
                lines += ["", f"[[{key}]]"]
                lines += [f"{_key(inner)} = {_inline(one)}" for inner, one in each.items()]
        elif isinstance(value, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{_key(inner)} = {_inline(one)}" for inner, one in value.items()]
    return "\n".join(lines) + "\n"


def _is_top(key: str, value: Any) -> bool:
    return key not in _LISTS and not isinstance(value, dict)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() else json.dumps(key)


def _inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(k)} = {_inline(v)}" for k, v in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_inline(each) for each in value) + "]"
    return json.dumps(value)
