"""Lines on a console: whole ones, and words within its width.

Left out: what they say.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

__all__ = ["print_line", "print_wrapped"]


def print_line(console: Console, *parts: tuple[str, str]) -> None:
    """One line, however long: terminals wrap it, and what is copied stays whole."""
    from rich.text import Text

    text = Text()
    for part, style in parts:
        text.append(part, style)
    console.print(text, soft_wrap=True)


def print_wrapped(
    console: Console,
    text: str,
    indent: int,
    *,
    first: int | None = None,
    head: object = None,
    style: str = "",
) -> None:
    """Words within the width; further lines are indented, the first one by ``first`` or a head."""
    from rich.cells import cell_len
    from rich.text import Text

    narrow = console.width < 60
    indent = min(indent, 4) if narrow else indent
    line = head if isinstance(head, Text) else Text(" " * (indent if first is None else first))
    is_empty = True
    for word in _words(text):
        needed = line.cell_len + (0 if is_empty else 1) + cell_len(word)
        if line.plain.strip() and needed > console.width:
            line.rstrip()
            console.print(line, soft_wrap=True)
            line, is_empty = Text(" " * indent), True
        line.append(word if is_empty else f" {word}", style)
        is_empty = False
    console.print(line, soft_wrap=True)


def _words(text: str) -> Iterable[str]:
    return text.split(" ")
