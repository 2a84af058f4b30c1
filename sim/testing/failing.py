"""A test has failed: its error, and when its case is saved.

Hypothesis runs a failing case many times while it makes it smaller, and once more at last. Only
then is it saved, and only then has the error the whole message. Outside Hypothesis it is saved at
once.

Hypothesis tells failures apart by the type of the error and where it was raised. All of ours are
raised in one place, so there is a type for each identity: a case is not made smaller into another
failure, and two failures of one test are two. What shows in a run, and what shows only while the
cluster recovers behind one, are two as well.

Left out: what is wrong (``sim.running.findings``), and how a case is saved (``sim.failures``).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from hypothesis import currently_in_test_context, note

from sim.failures import SavedCase
from sim.running.findings import Finding, Identity

__all__ = ["ScenarioFailed", "case_name", "failure", "is_last"]

_CURRENT_TEST: Final = "PYTEST_CURRENT_TEST"
_SHOWN: Final = 5


class ScenarioFailed(AssertionError):
    """Something is wrong with a run.

    Attributes:
        findings: what.
        saved: the case on disk; None while Hypothesis makes it smaller.
    """

    def __init__(
        self, text: str, findings: tuple[Finding, ...], saved: SavedCase | None = None
    ) -> None:
        super().__init__(text)
        self.findings = findings
        self.saved = saved


_Key = tuple[Identity, bool]
"""Of a failure; and whether it shows behind the run only."""
_types: dict[_Key, type[ScenarioFailed]] = {}
_cases: dict[str, dict[_Key, None]] = {}


def failure(
    findings: tuple[Finding, ...],
    name: str,
    save: Callable[[str], SavedCase],
    *,
    is_behind: bool = False,
) -> ScenarioFailed:
    """The error to raise.

    Args:
        findings: at least one.
        name: of the test.
        save: saves the case under a name.
        is_behind: it shows only behind the run.
    """
    key = findings[0].identity, is_behind
    if not is_last():
        lines = [f"{each.kind} {each.name}: {each.text}" for each in findings[:_SHOWN]]
        return _type(key)("\n".join(lines), findings)
    saved = save(_numbered(name, key))
    if currently_in_test_context():
        note(f"replay: {saved.replay}")
    return _type(key)(saved.message(), findings, saved)


def _type(key: _Key) -> type[ScenarioFailed]:
    known = _types.get(key)
    if known is None:
        known = _types[key] = type("ScenarioFailed", (ScenarioFailed,), {})
        known.__module__, known.__qualname__ = ScenarioFailed.__module__, "ScenarioFailed"
    return known


def _numbered(name: str, key: _Key) -> str:
    """The name, and a number behind the first of several failures of one test."""
    cases = _cases.setdefault(name, {})
    number = list(cases).index(key) if key in cases else len(cases)
    cases[key] = None
    return f"{name} {number + 1}" if number else name


def is_last() -> bool:
    """Whether this run of a test is the one that is told of.

    Hypothesis says so to ``note`` by ``is_final``, which has no public name. Where that is gone
    every failing run counts: then the last one that is saved is the smallest.
    """
    if not currently_in_test_context():
        return True
    try:
        from hypothesis.control import current_build_context

        return bool(current_build_context().is_final)
    except (ImportError, AttributeError):
        return True


def case_name(otherwise: str) -> str:
    """The running test, as pytest names it: ``tests/test_a.py::test_b[1]``."""
    named = os.environ.get(_CURRENT_TEST, "")
    return named.rpartition(" (")[0] or named or otherwise
