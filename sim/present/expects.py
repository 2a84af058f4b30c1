"""Expectations of a scenario over time.

Left out: judging them (``sim.running.expectations``).
"""

from __future__ import annotations

from attrs import define, field

from sim.present.history import Series

__all__ = ["Expect"]


@define(eq=False)
class Expect:
    """One expectation.

    Attributes:
        form: at, eventually, always or at_end.
        holds: whether it held, over time; nothing before it was first looked at.
        judged: the event with which it was judged; None if it never was.
        verdict: whether it was met.
    """

    id: str
    form: str
    text: str
    holds: Series[bool] = field(factory=Series)
    judged: int | None = None
    verdict: bool | None = None

    def state(self, n: int) -> str:
        """``open``, ``holds``, ``broken``, ``met`` or ``failed`` behind event ``n``."""
        if self.judged is not None and self.judged <= n:
            return "met" if self.verdict else "failed"
        holds = self.holds.at(n)
        return "open" if holds is None else "holds" if holds else "broken"
