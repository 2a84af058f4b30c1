"""The table of kinds is complete, and knows every note that the machines make.

The notes are read from the sources of package ``cluster``: a note that nobody gave a kind, or an
argument that nobody described, fails here and not in a run.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from sim.trace.kind_docs import COMMON_ARGS, KINDS
from sim.trace.kinds import NOTE_KINDS, Kind, of_note

CLUSTER = Path(__file__).resolve().parents[2] / "cluster"


def _texts(node: ast.expr) -> Iterator[str]:
    """The strings that an expression may be."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.IfExp(body=body, orelse=orelse):
            yield from _texts(body)
            yield from _texts(orelse)
        case _:
            raise AssertionError(f"line {node.lineno}: a note's kind is {ast.unparse(node)}")


def notes(folder: Path) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """(place, note, names of its arguments) of every ``fx.note(...)``, in order."""
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_bytes())):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="fx"), attr="note")):
                    for note in _texts(node.args[0]):
                        names = tuple(str(keyword.arg) for keyword in node.keywords)
                        yield f"{path.name}:{node.lineno}", note, names


NOTES = list(notes(CLUSTER))


def test_every_kind_is_described() -> None:
    assert list(KINDS) == list(Kind)
    assert all(doc.text and all(doc.args.values()) for doc in KINDS.values())


def test_the_sources_have_notes_of_one_line_and_of_several() -> None:
    found = {note for _, note, _ in NOTES}
    assert len(NOTES) > 45
    assert {"stop", "append", "truncate", "restart-at", "role", "isr-proposed"} <= found


def test_every_note_of_the_machines_has_a_kind() -> None:
    missing = [(place, note) for place, note, _ in NOTES if note not in NOTE_KINDS]
    assert missing == []


def test_the_table_names_no_note_that_nobody_makes() -> None:
    assert sorted(set(NOTE_KINDS) - {note for _, note, _ in NOTES}) == []


def test_every_argument_of_a_note_is_described() -> None:
    missing = [
        (place, note, name)
        for place, note, names in NOTES
        for name in names
        if name not in KINDS[NOTE_KINDS[note]].args
    ]
    assert missing == []


def test_a_note_named_as_its_kind_keeps_its_arguments() -> None:
    args = {"partition": "orders-0", "high_watermark": 7}
    assert of_note("hw", dict(args)) == (Kind.HW, args)


@pytest.mark.parametrize(
    ("note", "kind"),
    [("retention", Kind.LOG_START), ("halt", Kind.ERROR), ("users-own", Kind.NOTE)],
)
def test_another_note_says_what_it_was(note: str, kind: Kind) -> None:
    assert of_note(note, {"why": "x", "note": "y"}) == (kind, {"why": "x", "note": note})


def test_no_kind_has_an_argument_that_all_have() -> None:
    assert not any(set(doc.args) & set(COMMON_ARGS) for doc in KINDS.values())


def test_kinds_are_written_as_slugs() -> None:
    assert all(kind.value == kind.name.lower().replace("_", "-") for kind in Kind)
