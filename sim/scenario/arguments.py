"""Arguments of observables: what is wrong with one.

Left out: reading them out of an expression (``sim.scenario.expressions``).
"""

from __future__ import annotations

from typing import Final

from sim.scenario.names import Names
from sim.scenario.observables import Argument
from sim.scenario.problems import Refusal, guess, seen

__all__ = ["NUMBER_MAX", "check_argument"]

NUMBER_MAX: Final = 2**63 - 1


def check_argument(
    value: str | int, is_name: bool, argument: Argument, names: Names
) -> Refusal | None:
    """What is wrong with one argument of a call; None if nothing is."""
    kind = argument.kind
    if kind == "number":
        if value.__class__ is int and value <= NUMBER_MAX:
            return None
        return Refusal(f"{seen(value)} is no {argument.name}")
    if kind == "word":
        if value in argument.words and not is_name:
            return None
        hint = f"write '{value}', in quotes" if value in argument.words else ""
        hint = hint or guess(value, argument.words)
        return Refusal(f"{seen(value)} is no {argument.name}", hint=hint, allowed=argument.words)
    if kind == "partition":
        if is_name:
            return Refusal(f"{seen(value)} names no partition", hint=f"write '{value}-0'")
        try:
            names.partition(value)
        except Refusal as refusal:
            return refusal
        return None
    is_consumer = value in names.clients and names.clients[str(value)] == "consumer"
    consumers = [name for name, each in names.clients.items() if each == "consumer"]
    allowed = {
        "broker": names.broker_names,
        "node": (*names.broker_names, "c1"),
        "client": tuple(consumers),
    }[kind]
    holds = {
        "broker": names.is_broker(str(value)),
        "node": names.is_broker(str(value)) or value == "c1",
        "client": is_consumer,
    }[kind]
    if holds:
        return None
    what = {"broker": "broker", "node": "broker or controller", "client": "consumer"}[kind]
    return Refusal(f"there is no {what} {seen(value)}", hint=guess(value, allowed), allowed=allowed)
