"""The application: colours of the terminal, sizes, and the way out.

All colours are those that the terminal has set for itself, so that light and dark ones do; with
``NO_COLOR`` there are none, and everything is told by signs too.

Left out: everything that is shown (``sim.tui.screen``).
"""

from __future__ import annotations

from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType

from sim.present.stepper import Stepper
from sim.tui.screen import Compare, StepScreen

__all__ = ["StepApp"]


class StepApp(App[int]):
    """See the module."""

    CSS = """
    * { scrollbar-size-vertical: 1; scrollbar-size-horizontal: 0;
        scrollbar-color: ansi_default; scrollbar-background: ansi_default; }
    Screen { background: ansi_default; color: ansi_default; }
    #title, #message { height: 1; overflow: hidden; }
    #event { height: 3; overflow: hidden; }
    #track { height: 2; overflow: hidden; }
    #logs { height: auto; max-height: 40%; }
    #logs, #events, #fields, #wire, #expects {
        border-top: solid ansi_default; border-title-color: ansi_default;
        border-title-style: none; overflow-x: hidden; }
    #logs:focus, #events:focus, #fields:focus, #wire:focus, #expects:focus {
        border-top: heavy ansi_default; border-title-style: bold reverse; }
    #main { height: 1fr; }
    #events { display: none; width: 1fr; height: 100%; }
    #side { display: none; width: 1fr; height: 100%; }
    #fields, #wire, #expects { display: none; height: 1fr; }
    #events.-current, #side.-current, #side .-current { display: block; }
    .-wide #events { display: block; width: 3fr; }
    .-wide #side { display: block; width: 2fr; margin-left: 1; }
    .-wide #fields, .-wide #wire, .-wide #expects { display: block; height: 2fr; }
    .-wide #fields { height: 3fr; }
    .-tall #event { height: 4; }
    .-low #track { display: none; }
    .-low #logs { max-height: 5; }
    .-flat #track, .-flat #logs { display: none; }
    .-flat #event { height: 1; }
    PromptDialog { background: transparent; align: left bottom; }
    #prompt { height: 1; width: 100%; background: ansi_default; }
    #label { width: auto; text-style: bold; background: ansi_default; color: ansi_default; }
    Input, Input:focus { width: 1fr; background: ansi_default; color: ansi_default;
        background-tint: transparent; }
    Input > .input--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    WhyDialog, PageDialog { background: transparent; align: center middle; }
    #dialog { width: 90%; max-width: 120; height: auto; max-height: 90%; padding: 0 1;
        background: ansi_default; border: round ansi_default; border-title-style: bold; }
    #page { height: auto; max-height: 100%; }
    OptionList, OptionList:focus { height: auto; max-height: 100%; border: none; padding: 0;
        background: ansi_default; color: ansi_default; background-tint: transparent; }
    OptionList > .option-list--option-disabled { color: ansi_default; }
    OptionList > .option-list--option-highlighted,
    OptionList:focus > .option-list--option-highlighted {
        background: ansi_default; color: ansi_default; text-style: reverse; }
    """
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "leave", show=False, priority=True),
    ]

    def __init__(self, stepper: Stepper, compare: Compare | None = None) -> None:
        super().__init__(ansi_color=True)
        self.theme = "ansi-dark"
        self._stepper = stepper
        self._compare = compare

    def get_default_screen(self) -> StepScreen:
        return StepScreen(self._stepper, self._compare)

    def action_leave(self) -> None:
        self.exit(0)
