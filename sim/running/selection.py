"""Which nodes a selector means now, and what a step's parameters are then, for the trace.

Nodes are drawn without repetition: what one step or fault names or draws in one place is not drawn
in another, so a minority and a majority are two sides of a cluster.

Left out: when it is asked; what is drawn is keyed by the step or fault that asks.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from attrs import fields

from cluster.names import CONTROLLER
from sim.plain import plain
from sim.scenario.actions import Action
from sim.scenario.durations import show_duration
from sim.scenario.expressions import Expression
from sim.scenario.kinds import key_of
from sim.scenario.names import PartitionName
from sim.scenario.selectors import Selector
from sim.scenario.slowness import Slowness
from sim.world import World

__all__ = ["Chosen", "choose", "choose_all", "choose_for", "choose_groups", "parameters"]

_DRAWN: Final = ("one", "minority", "majority")
_PPM: Final = 1_000_000
_LISTED_MAX: Final = 20

Chosen = dict[str, Any]
"""Nodes by the attribute of an action: a list of names, or a list of such lists."""


def choose(world: World, selector: Selector, key: str, without: Iterable[str] = ()) -> list[str]:
    """The nodes by name, in order; none where nobody has the role.

    Args:
        key: names whoever asks, for what is drawn.
        without: these are not drawn.
    """
    view, brokers = world.view(), list(world.config.names)
    place = selector.partition
    match selector.kind:
        case "node":
            return [selector.node]
        case "controller":
            return [CONTROLLER]
        case "all":
            return brokers
        case "one":
            return _drawn(world, 1, key, without)
        case "minority":
            return _drawn(world, (len(brokers) - 1) // 2, key, without)
        case "majority":
            return _drawn(world, len(brokers) // 2 + 1, key, without)
    found = None if place is None else view.partition(place.topic, place.partition)
    if found is None:
        return []
    if selector.kind == "isr":
        return list(found.isr)
    if selector.kind == "leader":
        return [] if found.leader is None else [found.leader]
    return [name for name in found.replicas if name != found.leader]


def choose_all(
    world: World, selectors: Iterable[Selector], key: str, without: Iterable[str] = ()
) -> list[str]:
    """The nodes of several selectors, each once, in their order."""
    found = _each(world, list(selectors), key, without)
    return list(dict.fromkeys(name for names in found for name in names))


def choose_groups(world: World, groups: Iterable[Sequence[Selector]], key: str) -> list[list[str]]:
    """The nodes of several groups; what is drawn is in one of them only."""
    listed = list(groups)
    flat = [(at, each) for at, group in enumerate(listed) for each in group]
    found: list[dict[str, None]] = [{} for _ in listed]
    chosen = _each(world, [each for _, each in flat], key, ())
    for (at, _), names in zip(flat, chosen, strict=True):
        found[at].update(dict.fromkeys(names))
    return [list(group) for group in found]


def choose_for(world: World, action: Action, key: str) -> Chosen:
    """The nodes that an action means, for each of its attributes that names nodes.

    An attribute that names nobody now has an empty list.
    """
    chosen: Chosen = {}
    taken: list[str] = []
    for attribute in fields(type(action)):
        value = getattr(action, attribute.name)
        if isinstance(value, Selector):
            value = (value,)
        if not isinstance(value, tuple) or not value:
            continue
        inner = f"{key}/{attribute.name}"
        if isinstance(value[0], Selector):
            chosen[attribute.name] = choose_all(world, value, inner, taken)
            taken += chosen[attribute.name]
        elif isinstance(value[0], tuple) and value[0] and isinstance(value[0][0], Selector):
            chosen[attribute.name] = choose_groups(world, value, inner)
    return chosen


def parameters(action: Action, chosen: Chosen) -> dict[str, Any]:
    """What an action says beyond its defaults, plain, with the nodes that it means now."""
    found: dict[str, Any] = {}
    for attribute in fields(type(action)):
        value = getattr(action, attribute.name)
        if attribute.name in chosen:
            found[key_of(attribute)] = chosen[attribute.name]
        elif value != attribute.default and value is not None and value != {}:
            found[key_of(attribute)] = _shown(attribute.name, value)
    return found


def _shown(name: str, value: Any) -> Any:
    if name.endswith("_us"):
        return show_duration(value)
    if name == "to":
        topic, number = value
        return topic if number is None else f"{topic}-{number}"
    if isinstance(value, PartitionName):
        return str(value)
    if isinstance(value, tuple) and len(value) > _LISTED_MAX:
        return f"{len(value)} of them"
    if isinstance(value, Expression):
        return value.text
    if isinstance(value, Slowness):
        whole, rest = divmod(value.factor_ppm, _PPM)
        factor = f"{whole}.{rest:06}".rstrip("0").rstrip(".") + "x"
        return show_duration(value.addend_us) if value.addend_us else factor
    try:
        return plain(value)
    except TypeError:
        return str(value)


def _each(
    world: World, selectors: list[Selector], key: str, without: Iterable[str]
) -> list[list[str]]:
    """The nodes of each selector; nobody is drawn who is named, or was drawn before."""
    fixed = [
        None if each.kind in _DRAWN else choose(world, each, f"{key}/{at}")
        for at, each in enumerate(selectors)
    ]
    taken = [*without, *(name for names in fixed if names is not None for name in names)]
    found = []
    for at, names in enumerate(fixed):
        if names is None:
            names = choose(world, selectors[at], f"{key}/{at}", taken)
            taken += names
        found.append(names)
    return found


def _drawn(world: World, count: int, key: str, without: Iterable[str]) -> list[str]:
    names, taken = list(world.config.names), set(without)
    left = [name for name in names if name not in taken]
    chosen = [
        left.pop(world.draws.below(len(left), "selector", key, at))
        for at in range(min(count, len(left)))
    ]
    return sorted(chosen, key=names.index)
