"""What is asked for of a drawn scenario, checked before anything is drawn.

Left out: what envelopes mean (``sim.swarm.frame``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from attrs import field, frozen

from cluster.guards import GUARDS
from sim.scenario.names import BROKERS_MAX
from sim.scenario.problems import guess
from sim.swarm.frame import ENVELOPES, RECOVERABLE
from sim.swarm.kinds import KINDS

__all__ = ["Wanted"]

SIZE_MAX: Final = 100


def _pair(value: Any) -> Any:
    return (value, value) if isinstance(value, int) else value


def _guards(value: Any) -> dict[str, bool]:
    if value is not None and not isinstance(value, Mapping):
        raise ValueError(f"guards is {value!r}, allowed is a table of names and False")
    return dict(value or {})


def _names(value: Any) -> tuple[str, ...] | None:
    if isinstance(value, str) or not (value is None or isinstance(value, Iterable)):
        raise ValueError(f"kinds is {value!r}, allowed is a list of names")
    return None if value is None else tuple(value)


def _check_pair(what: str, low_min: int, high_max: int, value: Any) -> None:
    if isinstance(value, tuple) and len(value) == 2:
        low, high = value
        if low.__class__ is high.__class__ is int and low_min <= low <= high <= high_max:
            return
    raise ValueError(
        f"{what} is {value!r}, allowed is a number or a pair (least, most) within "
        f"{low_min}..{high_max}"
    )


def _check_known(what: str, name: object, known: list[str]) -> None:
    if name not in known:
        hint = guess(name, known)
        more = f" ({hint})" if hint else ""
        raise ValueError(f"there is no {what} {name!r}{more}, allowed: {', '.join(known)}")


@frozen(kw_only=True)
class Wanted:
    """What is asked for.

    Attributes:
        envelope: of ``ENVELOPES``.
        brokers: least and most, 1 to 100; one number for both.
        faults: least and most faults and disturbing steps, 0 to 100; one number for both.
        size: how large the world is: records, time and faults grow with it. 1 is some 200
            messages.
        guards: rules of the protocol that are switched off (False), by their names in files.
        kinds: names of ``sim.swarm.KINDS`` that may be drawn; None for all that the envelope has.
    """

    envelope: str = RECOVERABLE
    brokers: tuple[int, int] = field(default=(1, 5), converter=_pair)
    faults: tuple[int, int] = field(default=(0, 6), converter=_pair)
    size: int = 1
    guards: dict[str, bool] = field(factory=dict, converter=_guards)
    kinds: tuple[str, ...] | None = field(default=None, converter=_names)

    def __attrs_post_init__(self) -> None:
        if self.envelope not in ENVELOPES:
            allowed = " and ".join(map(repr, ENVELOPES))
            raise ValueError(f"envelope is {self.envelope!r}, allowed are {allowed}")
        _check_pair("brokers", 1, BROKERS_MAX, self.brokers)
        _check_pair("faults", 0, 100, self.faults)
        if self.size.__class__ is not int or not 1 <= self.size <= SIZE_MAX:
            raise ValueError(f"size is {self.size!r}, allowed is 1..{SIZE_MAX}")
        for name in self.kinds or ():
            _check_known("kind", name, list(KINDS))
        for name, is_on in self.guards.items():
            _check_known("guard", name, [each.id for each in GUARDS])
            if not isinstance(is_on, bool):
                raise ValueError(f"guard {name!r} is {is_on!r}, allowed are True and False")

    @property
    def is_recoverable(self) -> bool:
        return self.envelope == RECOVERABLE
