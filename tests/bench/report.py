"""Rows of a bench's table: figures, ratios, budgets, verdicts; as text and as JSON.

A ratio is always speed: 2x is twice as fast as the reference, 0.5x takes twice the time.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

__all__ = ["Budget", "Figure", "Report", "Row", "above", "at_least", "below", "rated", "timed"]

_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_SMALL = ((1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_COLUMNS = "{:<56} {:>16} {:>31} {:>8} {:>10}  {}"
_HEADINGS = ("what", "ours", "reference", "ratio", "budget", "verdict")


@dataclass(frozen=True)
class Figure:
    """A number with its unit; ``of`` names what a reference is."""

    value: float
    unit: str
    of: str = ""

    def __str__(self) -> str:
        factor, prefix = 1.0, ""
        if self.unit == "s" or self.unit.endswith("/s"):
            scales = _SMALL if self.unit == "s" else _LARGE
            factor, prefix = next((s for s in scales if self.value >= s[0]), scales[-1])
        value = self.value / factor
        digits = 0 if value >= 99.95 else 1 if value >= 9.995 else 2
        return f"{value:.{digits}f} {prefix}{self.unit} {self.of}".rstrip()


@dataclass(frozen=True)
class Budget:
    """A lower bound for the ratio, or an upper or lower one for the figure itself."""

    ratio_min: float | None = None
    value_max: Figure | None = None
    value_min: Figure | None = None

    def __str__(self) -> str:
        if self.ratio_min is not None:
            return f">= {self.ratio_min:.3g}x"
        return f"< {self.value_max}" if self.value_max else f">= {self.value_min}"


def at_least(ratio: float) -> Budget:
    """The budget of a row that must reach ``ratio`` times the reference's speed."""
    return Budget(ratio_min=ratio)


def below(value: float, unit: str) -> Budget:
    """The budget of a row whose own figure must stay below ``value``."""
    return Budget(value_max=Figure(value, unit))


def above(value: float, unit: str) -> Budget:
    """The budget of a row whose own figure must reach ``value``."""
    return Budget(value_min=Figure(value, unit))


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        group: what the row belongs to; rows of a group stand together.
        what: what was measured.
        ours: our figure, None where it could not be measured.
        reference: the other figure, None where there is none or its package is not installed.
        ratio: our speed as a multiple of the reference's.
        budget: what is demanded, None for information only.
        absent: why there is no figure.
    """

    group: str
    what: str
    ours: Figure | None
    reference: Figure | None = None
    ratio: float | None = None
    budget: Budget | None = None
    absent: str = ""

    @property
    def verdict(self) -> str:
        """``met``, ``missed``, ``no reference``, ``absent``; nothing where there is no budget."""
        if self.budget is None:
            return ""
        if self.ours is None:
            return "absent"
        if self.budget.value_min is not None:
            return "met" if self.ours.value >= self.budget.value_min.value else "missed"
        if self.budget.value_max is not None:
            return "met" if self.ours.value < self.budget.value_max.value else "missed"
        if self.ratio is None:
            return "no reference"
        assert self.budget.ratio_min is not None
        return "met" if self.ratio >= self.budget.ratio_min else "missed"

    def to_json(self) -> dict[str, Any]:
        """The row as plain values."""
        budget = self.budget
        return {
            "group": self.group,
            "what": self.what,
            "ours": self.ours and _figure_json(self.ours),
            "reference": self.reference and _figure_json(self.reference),
            "ratio": self.ratio,
            "budget": budget
            and {
                "ratio_min": budget.ratio_min,
                "value_max": budget.value_max and _figure_json(budget.value_max),
                "value_min": budget.value_min and _figure_json(budget.value_min),
            },
            "verdict": self.verdict,
            "absent": self.absent,
        }


def _figure_json(figure: Figure) -> dict[str, Any]:
    return {"value": figure.value, "unit": figure.unit, "of": figure.of}


@dataclass
class Report:
    """What a bench found, told to ``emit`` line by line as it is found."""

    emit: Callable[[str], object]
    facts: dict[str, Any] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *rows: Row) -> None:
        """Add rows and print them, under their group's heading where it is new."""
        for row in rows:
            if not self.rows or self.rows[-1].group != row.group:
                self.emit("")
                self.emit(_COLUMNS.format(row.group.upper(), *_HEADINGS[1:]).rstrip())
            self.rows.append(row)
            ratio = "" if row.ratio is None else f"{row.ratio:.3g}x"
            said = row.absent or row.verdict
            cells = (row.what, row.ours or "absent", row.reference or "", ratio, row.budget or "")
            self.emit(_COLUMNS.format(*map(str, cells), said).rstrip())

    def note(self, text: str) -> None:
        """Add a remark for the end of the table, once."""
        if text not in self.notes:
            self.notes.append(text)

    def finish(self) -> None:
        """Print the remarks and the count of verdicts."""
        self.emit("")
        for text in self.notes:
            self.emit(f"* {text}")
        verdicts = [row.verdict for row in self.rows if row.verdict]
        counted = ", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts))
        self.emit(f"{len(self.rows)} rows, {len(verdicts)} budgets: {counted}")

    def to_json(self) -> str:
        """The whole report as one JSON document."""
        rows = [row.to_json() for row in self.rows]
        return json.dumps({**self.facts, "notes": self.notes, "rows": rows}, indent=1)


def timed(group: str, what: str, took_s: float, **rest: Any) -> Row:
    """A row whose figure is the seconds one operation takes.

    Keywords: ``reference_s`` and ``of`` (its name), ``budget``.
    """
    return _row(group, what, took_s, lambda seconds: (seconds, "s"), **rest)


def rated(group: str, what: str, took_s: float, amount: float, unit: str, **rest: Any) -> Row:
    """A row whose figure is how much of ``unit`` is done in a second, ``amount`` an operation.

    Keywords as for ``timed``.
    """
    return _row(group, what, took_s, lambda seconds: (amount / seconds, f"{unit}/s"), **rest)


def _row(
    group: str,
    what: str,
    took_s: float,
    convert: Callable[[float], tuple[float, str]],
    *,
    reference_s: float | None = None,
    of: str = "",
    budget: Budget | None = None,
) -> Row:
    if reference_s is None:
        return Row(group, what, Figure(*convert(took_s)), budget=budget)
    reference = Figure(*convert(reference_s), of)
    return Row(group, what, Figure(*convert(took_s)), reference, reference_s / took_s, budget)
