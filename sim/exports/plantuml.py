"""A sequence diagram for PlantUML.

Nodes are called ``P0``, ``P1``, ... and have their names as labels. Of text only letters, digits
and a few signs stay as they are, and of these only such as stand alone, since two of them are
markup; all else becomes ``<U+HHHH>``, which is how PlantUML writes a character. So nothing in a
trace is a directive, a call of the preprocessor, a link, markup or an end of line.

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

__all__ = ["plantuml"]

_ARROWS: Final = {"delivered": "->", "lost": "->x", "sent": "->>"}
_ESCAPED = re.compile(r"[^A-Za-z0-9 .,:()_/-]|([.,:()_/-])(?=\1)|(?<=([.,:()_/-]))\2")


def plantuml(
    header: Header, events: Iterable[Event], story: Story, selection: Selection
) -> Exported:
    """The diagram, and a notice where it was cut."""
    found = sequence(header.scenario or "trace", events, story, selection)
    return Exported(_lines(found), (found.notice,) if found.notice else ())


def _lines(found: Sequence) -> Iterator[str]:
    ids = {node: f"P{at}" for at, node in enumerate(found.nodes)}
    yield "@startuml"
    yield f"title {_text(name(found.title))}"
    if not ids:
        yield 'participant "nobody" as P0'
    for node, id_ in ids.items():
        yield f'participant "{_text(name(node))}" as {id_}'
    if found.notice:
        last = f", P{len(ids) - 1}" if len(ids) > 1 else ""
        yield f"note over P0{last} : {_text(found.notice)}"
    for row in found.rows:
        words = _text(row.text)
        if row.to is None:
            yield f"note over {ids[row.node]} : {words}"
        else:
            yield f"{ids[row.node]} {_ARROWS[row.how]} {ids[row.to]} : {words}"
    yield "@enduml"


def _text(text: str) -> str:
    if not text.strip():
        return "-"
    return _ESCAPED.sub(lambda match: f"<U+{ord(match[0]):04X}>", text)
