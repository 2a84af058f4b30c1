"""What lies over the screen for a while: a line to type, a list to choose from, a page to read.

Left out: what an answer does (``sim.tui.screen``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar, Final

from rich.console import Console
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from sim.present.chains import Chain
from sim.tui.panes import Pane
from storage.inspection.escaping import safe

__all__ = ["PageDialog", "PromptDialog", "WhyDialog"]

INPUT_MAX: Final = 1_000


class PromptDialog(ModalScreen[str | None]):
    """Asks for a line; None if the user wants none."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", show=False)]

    def __init__(self, label: str) -> None:
        super().__init__()
        self._label = label

    def compose(self) -> ComposeResult:
        with Horizontal(id="prompt"):
            yield Static(Text(self._label), id="label", markup=False)
            yield Input(max_length=INPUT_MAX, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)


class WhyDialog(ModalScreen[int | None]):
    """Chains of causes; answers with the event of the sentence that was chosen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,w", "leave", show=False),
        Binding("n", "step(1)", show=False),
        Binding("p", "step(-1)", show=False),
    ]

    def __init__(self, chains: Iterable[Chain]) -> None:
        super().__init__()
        self._chains = tuple(chains)
        self._numbers: list[int | None] = []

    def compose(self) -> ComposeResult:
        options = []
        for chain in self._chains:
            options.append(Option(Text(f"{safe(chain.summary)}.", "bold"), disabled=True))
            self._numbers.append(None)
            for sentence in chain.sentences:
                options.append(Option(Text(f"- {safe(sentence.text)}")))
                self._numbers.append(sentence.n)
        with Vertical(id="dialog") as box:
            box.border_title = "why"
            box.border_subtitle = "Enter: go to the event  Esc: back"
            yield OptionList(*options, markup=False)

    def action_step(self, by: int) -> None:
        shown = self.query_one(OptionList)
        if by > 0:
            shown.action_cursor_down()
        else:
            shown.action_cursor_up()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(self._numbers[event.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)


class PageDialog(ModalScreen[None]):
    """A page that can be scrolled."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,question_mark", "leave", show=False)
    ]

    def __init__(self, title: str, make: Callable[[Console], None]) -> None:
        super().__init__()
        self._title = title
        self._make = make

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog") as box:
            box.border_title = self._title
            box.border_subtitle = "Esc: back"
            yield Pane(place="page")

    def on_mount(self) -> None:
        page = self.query_one(Pane)
        page.show(self._make)
        page.focus()

    def action_leave(self) -> None:
        self.dismiss(None)
