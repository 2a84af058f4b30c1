"""What a scenario expects: watched while it runs, judged when its time has come.

``at`` is judged after everything that happens at its time. A window begins at a time, after
everything that happens then, or at the moment at which a step is done or a fault begins; it ends
after everything that happens at its end. In it, ``eventually`` and ``always`` are asked behind
every entry of the timeline that something came of.

A run that broke off leaves what it did not come to: ``finish`` says whether that fails, or stays
undecided.

Left out: broken invariants and losses, which are judged at the end (``sim.running.verdicts``).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import define

from sim.scenario.durations import show_duration
from sim.scenario.model import Expect
from sim.scenario.terms import Call, Environment
from sim.timeline import EventClass
from sim.trace.kinds import Kind
from sim.world import World

__all__ = ["Expectation", "Expectations"]


@define(eq=False)
class Expectation:
    """One of them.

    Attributes:
        begin_us, end_us: the window, in the world's time; None while it is not known.
        holds: None while it is not judged, and for what is judged elsewhere or not at all.
        event: the first event of the entry that broke it, or made it hold first; else the event of
            the judgement. 0 while it is not judged.
        t_us: when that was, in the world's time.
        values: what the expression asked, with the answers, when it was judged; none where
            it held all the time.
        detail: why it could not be judged by its expression.
    """

    expect: Expect
    begin_us: int | None = None
    end_us: int | None = None
    holds: bool | None = None
    event: int = 0
    t_us: int = 0
    values: tuple[tuple[str, Any], ...] = ()
    detail: str = ""

    @property
    def number(self) -> int:
        """In the file, from 1."""
        return self.expect.number

    @property
    def is_watched(self) -> bool:
        """Whether every entry matters to it now."""
        return (
            self.holds is None
            and self.begin_us is not None
            and self.expect.form in ("eventually", "always")
        )


class Expectations:
    """Those of one run."""

    def __init__(self, world: World, expects: Iterable[Expect], env: Environment) -> None:
        self._world = world
        self._env = env
        self._zero_us = self._last_us = 0
        self.all = [Expectation(each) for each in expects]
        self._open: list[Expectation] = []

    def begin(self, zero_us: int, end_us: int) -> None:
        """Time 0 has come: enter what has a time of its own into the timeline."""
        self._zero_us, self._last_us = zero_us, end_us
        for each in self.all:
            expect = each.expect
            match expect.form:
                case "at":
                    assert expect.at_us is not None
                    self._enter(zero_us + expect.at_us, self._judge_now, each)
                case "always" | "eventually" if expect.after is None:
                    begin_us = expect.after_us if expect.from_us is None else expect.from_us
                    self._enter(zero_us + (begin_us or 0), self._open_now, each)

    def _enter(self, at_us: int, call: Any, each: Expectation) -> None:
        # The last class of a moment: behind everything else that happens then.
        origin = f"expect:{each.number:06}"
        self._world.timeline.at(at_us, EventClass.CHECK, origin, call, each)

    def reached(self, known_as: str, event: int) -> None:
        """A step is done, or a fault has begun: windows behind it open.

        Args:
            event: that says so, or the first one of the entry in which it was.
        """
        for each in self.all:
            if each.expect.after == known_as and each.begin_us is None:
                self._open_now(each, event)

    def _open_now(self, each: Expectation, event: int = 0) -> None:
        expect, now_us = each.expect, self._world.now_us
        each.begin_us = now_us
        each.end_us = self._last_us
        if expect.within_us is not None:
            each.end_us = min(self._last_us, now_us + expect.within_us)
        elif expect.to_us is not None:
            each.end_us = self._zero_us + expect.to_us
        self._sort_out()
        self._look(each, event)
        self._sort_out()

    def _sort_out(self) -> None:
        self._open = [each for each in self.all if each.is_watched]

    # Judging -----------------------------------------------------------------------------------

    def after_entry(self, event: int) -> None:
        """Something may have changed by an entry, whose first event is given."""
        if not self._open:
            return
        for each in self._open:
            self._look(each, event)
        self._sort_out()

    def _look(self, each: Expectation, event: int) -> None:
        """Whether the window is open, and its expression decides it now."""
        assert each.end_us is not None
        if self._world.now_us > each.end_us:
            return
        value = self._ask(each)
        if value is (each.expect.form == "eventually"):
            self._judge(each, holds=value, event=event)

    def _judge_now(self, each: Expectation) -> None:
        self._judge(each, holds=self._ask(each))

    def finish(self, *, is_cut_short: bool) -> None:
        """The run is over: whatever is open is judged now.

        Args:
            is_cut_short: the budget ended, so what has not come about might have; it stays
                undecided. A run that failed has come to its end.
        """
        for each in self.all:
            if each.holds is not None or each.expect.that is None:
                continue
            missing = self._missing(each)
            is_over = each.end_us is not None and each.end_us < self._world.now_us
            if each.expect.form == "sometimes" or (is_cut_short and not is_over):
                each.detail = missing
                continue
            match each.expect.form:
                case _ if missing:
                    each.detail = missing
                    self._judge(each, holds=False)
                case "at_end":
                    self._judge(each, holds=self._ask(each))
                case "always":
                    self._judge(each, holds=True)
                case "eventually":
                    self._judge(each, holds=False)

    def _missing(self, each: Expectation) -> str:
        """Why there was nothing to judge; empty where there was."""
        expect = each.expect
        if expect.form == "at":
            return "the run ended before"
        if expect.form not in ("always", "eventually"):
            return ""
        if each.begin_us is None:
            if expect.after is not None:
                return f"{expect.after!r} has not come about"
            return "the run ended before its window"
        assert each.end_us is not None
        if each.end_us < each.begin_us:
            at = show_duration(each.begin_us - self._zero_us)
            return f"{expect.after!r} came about at {at}, behind the end of the window"
        return ""

    def _ask(self, each: Expectation) -> bool:
        assert each.expect.that is not None
        return bool(each.expect.that.evaluate(self._env))

    def _judge(self, each: Expectation, *, holds: bool, event: int = 0) -> None:
        world, that = self._world, each.expect.that
        assert that is not None
        each.holds = holds
        each.t_us = world.now_us
        if not (holds and each.expect.form == "always"):  # What held then may be otherwise now.
            each.values = tuple((str(call), _answer(call, self._env)) for call in that.calls)
        args = {
            "id": str(each.number),
            "form": each.expect.form,
            "text": that.text,
            "holds": holds,
            "judged": True,
        }
        cause = (event,) if event else ()
        told = world.trace.emit(world.now_us, "world", Kind.EXPECT, cause, args)
        each.event = event or told


def _answer(call: Call, env: Environment) -> Any:
    value = call.evaluate(env)
    return sorted(value) if isinstance(value, set | frozenset) else value
