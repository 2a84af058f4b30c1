"""A scenario with a variant and command-line values applied, checked again as a whole.

``effective(scenario, variant, overrides)`` is what runs; ``parse_override`` reads ``PATH=VALUE``.

Left out: what paths there are (``sim.scenario.paths``).
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from typing import Any, Final

from attrs import evolve

from sim.scenario.documents import Source, check_document
from sim.scenario.model import Scenario, Variant
from sim.scenario.paths import FORMS, apply_paths
from sim.scenario.places import Places
from sim.scenario.problems import Problem, Refusals, ScenarioError, guess, seen

__all__ = ["effective", "parse_override"]

_OVERRIDE_CHARS: Final = 10_000


def effective(
    scenario: Scenario,
    variant: str | None = None,
    overrides: Sequence[tuple[str, Any]] = (),
    *,
    seed: int | None = None,
) -> Scenario:
    """What runs: values of the variant over those of the file, and the command line's over both.

    Args:
        scenario: as read from a file, nothing applied.
        variant: name of one of its variants; None for none.
        overrides: path and plain TOML value, as ``parse_override`` gives them.
        seed: instead of the file's.

    Returns:
        A scenario with ``variant`` and ``overrides`` set, and those of the expectations that are
        judged in this variant.

    Raises:
        ScenarioError: the variant is unknown, a path leads nowhere, or a value cannot stand there.
    """
    chosen = _variant(scenario, variant)
    places = Places(scenario.text)
    source = Source(scenario.file, scenario.text, places)
    document, applied = scenario.document, source.applied
    try:
        if chosen is not None:
            at = scenario.variants.index(chosen)
            document, applied = apply_paths(document, chosen.set.items(), ("variant", at, "set"))
        document, more = apply_paths(document, overrides, None)
    except Refusals as refusals:
        raise ScenarioError(
            [_set_problem(str(each.at[-1]), each) for each in refusals.found]
        ) from None
    found = check_document(document, evolve(source, applied=(*applied, *more)))
    if seed is not None:
        found = evolve(found, seed=seed)
    return evolve(
        found,
        variant=variant,
        overrides=tuple(overrides),
        expects=tuple(each for each in found.expects if each.applies_to(variant)),
    )


def _variant(scenario: Scenario, name: str | None) -> Variant | None:
    if name is None:
        return None
    for each in scenario.variants:
        if each.name == name:
            return each
    names = [each.name for each in scenario.variants]
    text = f"there is no variant {seen(name)}"
    problem = Problem("--variant", 0, 0, 1, "", text, guess(name, names), tuple(names))
    raise ScenarioError([problem])


def _set_problem(path: str, refusal: Any) -> Problem:
    file = f"--set {path}"
    return Problem(file, 0, 0, 1, "", refusal.text, refusal.hint, refusal.allowed)


def parse_override(text: str) -> tuple[str, Any]:
    """``PATH=VALUE`` of the command line; a VALUE that is no TOML value is a text.

    Raises:
        ScenarioError: there is no ``=``, or no path in front of it.
    """
    path, equals, value = text.partition("=")
    path, value = path.strip(), value.strip()
    if not equals or not path or len(text) > _OVERRIDE_CHARS:
        problem = Problem(
            f"--set {text[:60]}", 0, 0, 1, "", "this sets nothing", "write PATH=VALUE", FORMS
        )
        raise ScenarioError([problem])
    if "\n" not in value and "\r" not in value:
        try:
            return path, tomllib.loads(f"value = {value}")["value"]
        except (ValueError, RecursionError):
            pass
    return path, value
