"""Steps of a scenario in words: ``crash b1, how power``.

Left out: what a step did (``sim.present.tellings``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from sim.present.words import listed, sentence

__all__ = ["step_words"]

_WITHOUT_KEY: Final = ("that", "node", "id", "name", "partition")
_LINKS: Final = ("from", "to")


def step_words(what: str, args: Mapping[str, Any]) -> str:
    """A step with its parameters: ``crash b1, how power``."""
    links = [f"{key} {_shown(args[key])}" for key in _LINKS if key in args]
    own = [key for key in _WITHOUT_KEY if key in args and type(args[key]) is not int]
    plain = [_shown(args[key]) for key in own]
    others = [
        _other(str(key), each) for key, each in args.items() if key not in own and key not in _LINKS
    ]
    first = " ".join([sentence(what).replace("_", " "), *plain, *links])
    return ", ".join([first, *others])


def _other(key: str, value: object) -> str:
    words = key.replace("_", " ")
    return words if value is True else f"{words} {_shown(value)}"


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_shown(each)}" for key, each in value.items())
    if isinstance(value, list | tuple):
        if any(isinstance(each, list | tuple | dict) for each in value):
            return " | ".join(_shown(each) for each in value)
        return listed(_shown(each) for each in value) if value else "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
