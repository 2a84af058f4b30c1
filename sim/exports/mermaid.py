"""A sequence diagram for Mermaid.

Nodes are called ``P0``, ``P1``, ... and have their names as labels. Of text only letters, digits
and a few signs stay as they are; all else becomes ``#N;``, which is how Mermaid writes the
character of that number. So nothing in a trace is a comment, a directive, an end of line,
HTML or a formula.

Left out: which rows there are (``sim.exports.sequence``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Final

from sim.exports.selection import Exported, Selection
from sim.exports.sequence import Sequence, sequence
from sim.present.story import Story
from sim.present.words import name
from sim.trace.lines import Event, Header

__all__ = ["mermaid"]

_ARROWS: Final = {"delivered": "->>", "lost": "-x", "sent": "-)"}
_ESCAPED = re.compile(r"[^A-Za-z0-9 .,:()=+_/-]")


def mermaid(
    header: Header, events: Iterable[Event], story: Story, selection: Selection
) -> Exported:
    """The diagram, and a notice where it was cut."""
    found = sequence(header.scenario or "trace", events, story, selection)
    return Exported(_lines(found), (found.notice,) if found.notice else ())


def _lines(found: Sequence) -> Iterator[str]:
    ids = {node: f"P{at}" for at, node in enumerate(found.nodes)}
    yield "sequenceDiagram"
    yield f"    title {_text(name(found.title))}"
    if not ids:
        yield "    participant P0 as nobody"
    for node, id_ in ids.items():
        yield f"    participant {id_} as {_text(name(node))}"
    if found.notice:
        last = f",P{len(ids) - 1}" if len(ids) > 1 else ""
        yield f"    Note over P0{last}: {_text(found.notice)}"
    for row in found.rows:
        words = _text(row.text)
        if row.to is None:
            yield f"    Note over {ids[row.node]}: {words}"
        else:
            yield f"    {ids[row.node]}{_ARROWS[row.how]}{ids[row.to]}: {words}"


def _text(text: str) -> str:
    if not text.strip():
        return "-"
    return _ESCAPED.sub(lambda match: f"#{ord(match[0])};", text)
