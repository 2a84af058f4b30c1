"""Seeds as users write them: how many, a range, or one by one.

Left out: which tests have which (``sim.pytest_plugin``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["SEEDS_MAX", "SEED_MAX", "checked_seed", "parse_seeds", "seeds_of"]

SEED_MAX: Final = 2**63 - 1
SEEDS_MAX: Final = 100_000
_FORMS: Final = "N for seeds 0 to N-1, A..B for both and all between, or A,B,..."


def parse_seeds(text: str) -> list[int]:
    """``20``: 0 to 19; ``5..9``: five of them; ``0,5,9``: these.

    Raises:
        ValueError: it is none of these, or more than ``SEEDS_MAX``.
    """
    if re.fullmatch(r"[0-9]{1,19}", text):
        return _counted(int(text))
    match = re.fullmatch(r"([0-9]{1,19})\.\.([0-9]{1,19})", text)
    if match is not None:
        first, last = checked_seed(int(match[1])), checked_seed(int(match[2]))
        if first > last:
            raise ValueError(f"seeds are {text}, allowed is the smaller one first")
        if last - first >= SEEDS_MAX:
            raise ValueError(f"seeds are {text}, allowed are {SEEDS_MAX} at most")
        return list(range(first, last + 1))
    if re.fullmatch(r"[0-9]{1,19}(,[0-9]{1,19})+", text):
        return _listed([int(each) for each in text.split(",")])
    raise ValueError(f"seeds are {text!r}, allowed are {_FORMS}")


def seeds_of(values: Sequence[object]) -> list[int]:
    """What ``@pytest.mark.leaderfall_seeds`` was given: a number of seeds, or several seeds.

    Raises:
        ValueError: it was given nothing, or what is no seed.
    """
    if len(values) == 1 and isinstance(values[0], list | tuple | range):
        return _listed(list(values[0]))
    if len(values) == 1:
        if type(values[0]) is not int:
            raise ValueError(f"it was given {values[0]!r}, allowed is how many, or several seeds")
        return _counted(values[0])
    return _listed(list(values))


def checked_seed(value: object) -> int:
    """A seed.

    Raises:
        ValueError: it is none.
    """
    if type(value) is not int or not 0 <= value <= SEED_MAX:
        raise ValueError(f"seed is {value!r}, allowed is 0..{SEED_MAX}")
    return value


def _counted(count: int) -> list[int]:
    if not 1 <= count <= SEEDS_MAX:
        raise ValueError(f"{count} seeds are wanted, allowed are 1..{SEEDS_MAX}")
    return list(range(count))


def _listed(values: list[object] | list[int]) -> list[int]:
    seeds = [checked_seed(each) for each in values]
    if not seeds:
        raise ValueError("no seed is named, allowed is one or more")
    if len(set(seeds)) != len(seeds):
        raise ValueError(f"seeds are {', '.join(map(str, seeds))}, allowed is each once")
    return seeds
