"""Planting a fault, and finding it with the crash proof."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve, frozen

from storage.config import LogRules
from storage.recovery import Verify
from tests.crash import cases
from tests.crash.catalogue import case_named
from tests.crash.harness import prove

__all__ = ["Plant", "Planted", "check_found", "rule_off", "without"]

Plant = Callable[[pytest.MonkeyPatch], None]


def rule_off(name: str) -> Plant:
    """A guard of ``LogRules`` is off."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        config = evolve(cases.CONFIG, rules=LogRules(**{name: False}))
        patch.setattr(cases, "CONFIG", config)

    return plant


def without(owner: type, method: str, *, caller: str) -> Plant:
    """A call of the disk is left out where the function ``caller`` makes it."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        real = getattr(owner, method)

        def call(self: Any, *args: Any) -> Any:
            return None if sys._getframe(1).f_code.co_name == caller else real(self, *args)

        patch.setattr(owner, method, call)

    return plant


@frozen
class Planted:
    """A fault, the case that must find it, a word of the finding, and how the log is reopened."""

    name: str
    plant: Plant
    case: str
    word: str
    verify: Verify = "all"


def check_found(planted: Planted, patch: pytest.MonkeyPatch) -> None:
    """The named case reports the fault, with the named word."""
    planted.plant(patch)
    case = case_named(planted.case)
    case = evolve(case, one_in=1, config=evolve(case.config, rules=cases.CONFIG.rules))
    tally = prove(case, verify=planted.verify, second_every=0, stops_at_finding=True)
    assert tally.findings, f"{planted.name}: not found in {tally.images} images of {tally.case}"
    assert any(planted.word in finding.what for finding in tally.findings), tally.findings[:3]
