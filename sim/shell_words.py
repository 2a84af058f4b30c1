"""Words for shells.

Left out: words of stories (``sim.present.words``).
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable

__all__ = ["command_line", "shell_word"]


def shell_word(text: str) -> str:
    r"""A word that a shell reads as this text; odd characters as ``$'\x1b'``, for bash and zsh."""
    if text.isprintable():
        return shlex.quote(text)
    parts = []
    for byte in text.encode("utf-8", "surrogateescape"):
        character = chr(byte)
        if character in "'\\":
            parts.append("\\" + character)
        elif 0x20 <= byte < 0x7F:
            parts.append(character)
        else:
            parts.append(f"\\x{byte:02x}")
    return "$'" + "".join(parts) + "'"


def command_line(words: Iterable[str]) -> str:
    """A line to paste."""
    return " ".join(shell_word(each) for each in words)
