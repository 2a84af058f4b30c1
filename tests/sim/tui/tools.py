"""The whole screen without a terminal: keys go in, and what is on the screen comes out.

Tests are plain functions: pytest-trio would take a coroutine, and Textual needs asyncio.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from attrs import frozen
from rich.segment import Segment

from sim.present.stepper import Stepper
from sim.present.tracks import Tracks
from sim.tui import StepApp
from sim.tui.screen import Compare, StepScreen

__all__ = ["Key", "Seen", "grid", "play", "start"]

Key = str | tuple[int, int] | Callable[[StepScreen], None]


@frozen
class Seen:
    """What is there when the keys have been pressed.

    Attributes:
        lines: the screen.
        segments: its parts with their styles.
        top: the name of the dialog on top, or of the screen itself.
    """

    lines: list[str]
    segments: list[Segment]
    n: int
    message: str
    focused: str | None
    top: str
    code: int | None
    screen: StepScreen

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def start(path: Path, *, at: int | None = None) -> Stepper:
    """A stepper, at its opening or at an event."""
    stepper = Stepper(Tracks.load(path))
    if at is not None:
        stepper.go(at)
    return stepper


def grid(app: StepApp) -> list[list[Segment]]:
    """The lines on the screen."""
    return [list(strip) for strip in app.screen._compositor.render_strips()]


def play(
    stepper: Stepper,
    *keys: Key,
    size: tuple[int, int] = (120, 40),
    compare: Compare | None = None,
) -> Seen:
    """Press keys, one by one; a pair is a new size of the terminal, a function is called."""

    async def played() -> Seen:
        app = StepApp(stepper, compare)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            screen = app.screen
            assert isinstance(screen, StepScreen)
            for key in keys:
                if callable(key):
                    key(screen)
                elif isinstance(key, tuple):
                    await pilot.resize_terminal(*key)
                else:
                    await pilot.press(key)
                await pilot.pause()
                await app.workers.wait_for_complete()
            await pilot.pause()
            rows = grid(app)
            return Seen(
                ["".join(each.text for each in row) for row in rows],
                [each for row in rows for each in row],
                stepper.n,
                screen.message,
                None if app.focused is None else app.focused.id,
                type(app.screen).__name__,
                app.return_value,
                screen,
            )

    return asyncio.run(played())
