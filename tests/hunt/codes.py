"""The error codes in a message: where each class of message has them, found from its declaration.

Left out: what the codes mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, get_args, get_type_hints

from cluster import messages_control, messages_data
from cluster.errors import ErrorCode
from cluster.message import Message

__all__ = ["MESSAGES", "codes_in"]

Reader = Callable[[Any], Iterator[ErrorCode]]


def _messages() -> Iterable[type]:
    for module in (messages_control, messages_data):
        for name in sorted(vars(module)):
            found = vars(module)[name]
            if isinstance(found, type) and issubclass(found, Message) and found is not Message:
                yield found


def _plan(cls: type) -> tuple[bool, tuple[tuple[str, Any], ...]]:
    """Whether a class has a code itself, and what of its parts has, with their plans."""
    parts = []
    hints = get_type_hints(cls)
    for name, hint in hints.items():
        for inner in get_args(hint):
            if isinstance(inner, type) and hasattr(inner, "_fields"):
                plan = _plan(inner)
                if plan[0] or plan[1]:
                    parts.append((name, plan))
    return hints.get("error_code") is ErrorCode, tuple(parts)


def _read(value: Any, plan: tuple[bool, tuple[tuple[str, Any], ...]]) -> Iterator[ErrorCode]:
    has_code, parts = plan
    if has_code and value.error_code is not ErrorCode.NONE:
        yield value.error_code
    for name, inner in parts:
        for each in getattr(value, name) or ():
            yield from _read(each, inner)


MESSAGES: Final[dict[type, tuple[bool, tuple[tuple[str, Any], ...]]]] = {
    each: plan for each in _messages() for plan in [_plan(each)] if plan[0] or plan[1]
}
"""Classes of messages that have codes, and where."""


def codes_in(message: Message) -> Iterable[ErrorCode]:
    """Its codes but NONE."""
    plan = MESSAGES.get(message.__class__)
    return () if plan is None else _read(message, plan)
