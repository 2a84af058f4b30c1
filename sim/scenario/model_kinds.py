"""Kinds of values that stand in one place only: rates, licences, seeds, paths, guards.

Left out: the tables that they stand in (``sim.scenario.model``).
"""

from __future__ import annotations

import re
from typing import Any, Final

from attrs import frozen

from cluster.guards import GUARDS
from sim.scenario.durations import UNITS_US, duration_us
from sim.scenario.kinds import Flag, ListOf, Reader
from sim.scenario.names import LICENCES
from sim.scenario.problems import Refusal, Refusals, guess, seen

__all__ = [
    "GUARD_IDS",
    "AfterKind",
    "AllowKind",
    "Allowance",
    "RateKind",
    "SeedsKind",
    "SetKind",
    "VariantsKind",
    "guard_pair",
]

_RATE_MAX: Final = 100_000
_RATE: Final = re.compile(r"([1-9][0-9]{0,5})/(s|m|h)", re.ASCII)
_SEEDS: Final = re.compile(r"([0-9]{1,18})\.\.([0-9]{1,18})", re.ASCII)
_SEEDS_MAX: Final = 1_000_000
_COUNT: Final = re.compile(r"(>=|<=|==|>|<) *([0-9]{1,9})", re.ASCII)
_COUNT_MAX: Final = 10**9
_ID_START: Final = re.compile(r"[A-Za-z]")


GUARD_IDS: Final = tuple(each.id for each in GUARDS)


def guard_pair(key: str, value: object, reader: Reader) -> tuple[str, bool]:
    """One of ``[cluster.guards]``."""
    if key not in GUARD_IDS:
        hint = guess(key, GUARD_IDS)
        raise Refusal(f"there is no guard {seen(key)}", hint=hint, allowed=GUARD_IDS, is_key=True)
    return key, Flag().read(value, reader)


@frozen
class AfterKind:
    """The id of a step or a fault; with ``takes_time`` also a time."""

    takes_time: bool = False

    def read(self, value: object, reader: Reader) -> str | int:
        if not isinstance(value, str) or (self.takes_time and not _ID_START.match(value)):
            if self.takes_time:
                return duration_us(value)
            raise Refusal(f"{seen(value)} is no id", hint="write it in quotes")
        known = [*reader.names.steps, *sorted(reader.names.faults)]
        if value not in known:
            hint = guess(value, known)
            raise Refusal(f"there is no step or fault {seen(value)}", hint=hint, allowed=known)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def show(self, value: Any) -> Any:
        return value


@frozen
class VariantsKind:
    """The name of a variant, or a list of them."""

    def read(self, value: object, reader: Reader) -> tuple[str, ...]:
        return ListOf(_VariantKind(), takes_one=True, is_distinct=True, what="variants").read(
            value, reader
        )

    def schema(self) -> dict[str, Any]:
        one = {"type": "string"}
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}]}

    def show(self, value: Any) -> Any:
        return list(value)


@frozen
class _VariantKind:
    def read(self, value: object, reader: Reader) -> str:
        known = reader.names.variants
        if not isinstance(value, str) or value not in known:
            hint = guess(value, known)
            raise Refusal(f"there is no variant {seen(value)}", hint=hint, allowed=known)
        return value

    def schema(self) -> dict[str, Any]:
        return {"type": "string"}

    def show(self, value: Any) -> Any:
        return value


@frozen
class RateKind:
    """Records a second as an integer, or ``"5/m"``; read as microseconds between two of them."""

    def read(self, value: object, reader: Reader) -> int:
        if isinstance(value, int) and not isinstance(value, bool):
            count, unit = value, "s"
        else:
            match = _RATE.fullmatch(value) if isinstance(value, str) else None
            if match is None:
                hint = 'write records a second, or "5/m" (s, m, h)'
                raise Refusal(f"{seen(value)} is no rate", hint=hint)
            count, unit = int(match[1]), match[2]
        if not 1 <= count <= _RATE_MAX:
            raise Refusal(f"{seen(value)} is out of range", hint=f"allowed is 1..{_RATE_MAX}")
        return UNITS_US[unit] // count

    def schema(self) -> dict[str, Any]:
        text = {"type": "string", "pattern": "^[1-9][0-9]{0,5}/(s|m|h)$"}
        return {"anyOf": [{"type": "integer", "minimum": 1, "maximum": _RATE_MAX}, text]}

    def show(self, value: Any) -> Any:
        return value


@frozen
class Allowance:
    """A licence, and how many losses under it there may be.

    Attributes:
        licence: of ``LICENCES``.
        operator: ``== != < <= > >=`` as written; ``>=`` with count 0 for any number.
    """

    licence: str
    operator: str = ">="
    count: int = 0

    def holds(self, losses: int) -> bool:
        """Whether so many losses are accepted."""
        return {
            "==": losses == self.count,
            ">=": losses >= self.count,
            "<=": losses <= self.count,
            ">": losses > self.count,
            "<": losses < self.count,
        }[self.operator]

    def __str__(self) -> str:
        if (self.operator, self.count) == (">=", 0):
            return self.licence
        return f"{self.licence} {self.operator} {self.count}"


@frozen
class AllowKind:
    """``["L0", "L1"]``, or ``{ L0 = 5, L1 = ">=1" }``."""

    def read(self, value: object, reader: Reader) -> tuple[Allowance, ...]:
        if isinstance(value, dict):
            found, refused = [], []
            for key, count in value.items():
                try:
                    found.append(_allowance(key, count))
                except Refusal as refusal:
                    refused.append(refusal.below(key))
            if refused:
                raise Refusals(refused)
            if not found:
                raise Refusal("it allows nothing", hint="name a licence", allowed=tuple(LICENCES))
            return tuple(found)
        kind = ListOf(_LicenceKind(), high=20, takes_one=True, is_distinct=True, what="licences")
        return tuple(Allowance(each) for each in kind.read(value, reader))

    def schema(self) -> dict[str, Any]:
        one = {"enum": list(LICENCES)}
        count = {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string"}]}
        table = {
            "type": "object",
            "properties": dict.fromkeys(LICENCES, count),
            "additionalProperties": False,
        }
        return {"anyOf": [one, {"type": "array", "items": one, "minItems": 1}, table]}

    def show(self, value: Any) -> Any:
        return [str(each) for each in value]


@frozen
class _LicenceKind:
    def read(self, value: object, reader: Reader) -> str:
        if not isinstance(value, str) or value not in LICENCES:
            hint = guess(value, LICENCES)
            raise Refusal(f"there is no licence {seen(value)}", hint=hint, allowed=tuple(LICENCES))
        return value

    def schema(self) -> dict[str, Any]:
        return {"enum": list(LICENCES)}

    def show(self, value: Any) -> Any:
        return value


def _allowance(key: str, count: object) -> Allowance:
    if key not in LICENCES:
        hint = guess(key, LICENCES)
        text = f"there is no licence {seen(key)}"
        raise Refusal(text, hint=hint, allowed=tuple(LICENCES), is_key=True)
    if isinstance(count, int) and not isinstance(count, bool) and 0 <= count <= _COUNT_MAX:
        return Allowance(key, "==", count)
    match = _COUNT.fullmatch(count) if isinstance(count, str) else None
    if match is None:
        raise Refusal(f"{seen(count)} is no count", hint='write 5, ">=1" or "<=3"')
    return Allowance(key, match[1], int(match[2]))


@frozen
class SeedsKind:
    """``"0..199"``, both included."""

    def read(self, value: object, reader: Reader) -> tuple[int, int]:
        match = _SEEDS.fullmatch(value) if isinstance(value, str) else None
        if match is None:
            raise Refusal(f"{seen(value)} is no range of seeds", hint='write "0..199"')
        low, high = int(match[1]), int(match[2])
        if not low <= high < low + _SEEDS_MAX:
            raise Refusal(f"{seen(value)} is out of range", hint=f"1 to {_SEEDS_MAX} seeds, rising")
        return low, high

    def schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": r"^[0-9]{1,18}\.\.[0-9]{1,18}$"}

    def show(self, value: Any) -> Any:
        return value


@frozen
class SetKind:
    """A table from path to value; what the paths lead to is looked at where they are applied."""

    def read(self, value: object, reader: Reader) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise Refusal(f"{seen(value)} is no table", hint='write { "cluster.brokers" = 5 }')
        for key, each in value.items():
            if isinstance(each, dict) and "." not in key and ":" not in key:
                hint = f'paths stand in quotes: "{key}.{next(iter(each), "KEY")}"'
                raise Refusal(f"{seen(key)} is no path", hint=hint, at=(key,), is_key=True)
        return dict(value)

    def schema(self) -> dict[str, Any]:
        return {"type": "object"}

    def show(self, value: Any) -> Any:
        return value
