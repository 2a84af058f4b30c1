"""What a run's settings have to do with a broken rule: guards that are off, an older truncation.

No event says so, since nothing happens: a rule is not applied. A chain that would end at no fault
ends here.

Left out: what the rules are for (``leaderfall explain`` says it).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from sim.present.story import Story
from sim.present.tale_base import Sentence
from sim.present.words import listed, name

__all__ = ["loose_rules"]

_TODAY: Final = "fetch"
_TOLD_MAX: Final = 3


def loose_rules(story: Story, n: int) -> Iterator[Sentence]:
    """A sentence for the guards that are off, three at most, and one for an older truncation.

    Args:
        n: the event that the sentences are told with.
    """
    options: Mapping[str, object] = {} if story.header is None else story.header.options
    guards = options.get("guards")
    switched = guards if isinstance(guards, Mapping) else {}
    off = [name(each) for each, is_on in sorted(switched.items()) if is_on is False]
    if off:
        rules = "a rule is off" if len(off) == 1 else f"{len(off)} rules are off"
        more = "" if len(off) <= _TOLD_MAX else " and others"
        yield Sentence(n, f"In this run {rules}: {listed(off[:_TOLD_MAX])}{more}.")
    mode = options.get("truncation", _TODAY)
    if isinstance(mode, str) and mode != _TODAY:
        yield Sentence(n, f"In this run logs are cut by an older rule, truncation {name(mode)}.")
