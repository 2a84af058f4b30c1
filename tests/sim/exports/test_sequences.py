"""Diagrams for Mermaid and PlantUML, by strict grammars of what each line may be.

Both grammars are narrower than the languages: what they take, Mermaid 11 and PlantUML 1.2020 were
seen to take, the hostile text among it, which came out as it went in.
"""

from __future__ import annotations

import re

import pytest
from hypothesis import given

from sim.exports.mermaid import mermaid
from sim.exports.plantuml import plantuml
from sim.exports.selection import Selection
from sim.exports.sequence import ROWS_MAX
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Header
from tests.sim import stories
from tests.sim.comparisons import HEADER
from tests.sim.exports.sources import EVIL, Export, exported, hostile, hostile_header
from tests.sim.traces import Raw, raws

MERMAID_TEXT = r"(?:[A-Za-z0-9 .,:()=+_/-]|#\d+;)+"
MERMAID = re.compile(
    rf"    (?:title {MERMAID_TEXT}"
    rf"|participant (?P<id>P\d+) as {MERMAID_TEXT}"
    rf"|Note over (?P<over>P\d+(?:,P\d+)?): {MERMAID_TEXT}"
    rf"|(?P<a>P\d+)(?P<arrow>->>|-x|-\))(?P<b>P\d+): {MERMAID_TEXT})"
)
_SIGN = r"[.,:()_/-]"
PLANTUML_TEXT = rf"(?:[A-Za-z0-9 ]|({_SIGN})(?!{_SIGN})|{_SIGN}|<U\+[0-9A-F]{{4,6}}>)+"
PLANTUML = re.compile(
    rf"title {PLANTUML_TEXT}"
    rf'|participant "{PLANTUML_TEXT}" as (?P<id>P\d+)'
    rf"|note over (?P<over>P\d+(?:, P\d+)?) : {PLANTUML_TEXT}"
    rf"|(?P<a>P\d+) (?P<arrow>->|->x|->>) (?P<b>P\d+) : {PLANTUML_TEXT}"
)
TWICE = re.compile(r"([.,:()_/-])\1")


def parsed(export: Export, lines: list[str]) -> list[re.Match[str]]:
    """The lines between head and foot, each of which is of the grammar and names participants."""
    if export is mermaid:
        assert lines[0] == "sequenceDiagram"
        body, grammar = lines[1:], MERMAID
    else:
        assert (lines[0], lines[-1]) == ("@startuml", "@enduml")
        body, grammar = lines[1:-1], PLANTUML
    known: set[str] = set()
    found = []
    for line in body:
        match = grammar.fullmatch(line)
        assert match is not None, line
        if export is plantuml:
            text = line.partition(" : ")[2] or line.partition(" ")[2]
            assert not TWICE.search(text), line
        if match["id"]:
            assert match["id"] not in known
            known.add(match["id"])
        for each in (match["over"] or "").replace(" ", "").split(","):
            assert each in known | {""}
        assert {match["a"], match["b"]} <= known | {None}
        found.append(match)
    return found


def rows(found: list[re.Match[str]]) -> list[re.Match[str]]:
    """Arrows and notes, but for a notice that the diagram was cut."""
    return [
        each
        for each in found
        if (each["over"] or each["a"]) and not re.search(r" ?: (cut: |no event)", each[0])
    ]


both = pytest.mark.parametrize("export", [mermaid, plantuml])


@both
@given(drawn=raws(max_size=20))
def test_any_trace_gives_lines_of_the_grammar(export: Export, drawn: list[Raw]) -> None:
    events = [Event(n, *raw[:5], tuple(raw[5])) for n, raw in enumerate(drawn, 1)]
    lines, _ = exported(export, events, HEADER)
    parsed(export, lines)


@both
def test_hostile_text_is_text(export: Export) -> None:
    lines, notices = exported(export, hostile(), hostile_header())
    found = parsed(export, lines)
    assert notices == ()
    count = len(hostile()) - 2 * len(hostile_header().nodes)  # Two of the messages are one row.
    assert len(rows(found)) == count
    arrows = [each["arrow"] for each in found if each["arrow"]]
    wanted = ("->>", "-x", "-)") if export is mermaid else ("->", "->x", "->>")
    assert [arrows.count(each) for each in wanted] == [9, 9, 9]


@pytest.mark.parametrize(
    "text",
    ["a;b", "a#b", "a\nb", "a<b>", 'a"b', "a%%b", "a`b", "a$$b", "a\\b", "é", "a--b", "{", "\x1b"],
)
@both
def test_a_sign_that_means_something_is_written_as_its_number(export: Export, text: str) -> None:
    events = [
        Event(1, 0, text, Kind.START, (), {}),
        Event(2, 0, text, Kind.SEND, (1,), {"to": text, "type": text}),
    ]
    lines, _ = exported(export, events, Header("0", text, None, 1, {}, (), []))
    parsed(export, lines)
    raw = "\n".join(lines)
    assert text not in raw.replace("\nb", "") or text == "a--b"
    if export is mermaid:
        shown = re.sub(r"#(\d+);", lambda match: chr(int(match[1])), lines[2])
    else:
        shown = re.sub(r"<U\+([0-9A-F]+)>", lambda match: chr(int(match[1], 16)), lines[2])
    escaped = text.replace("\\", "\\\\").replace("\n", "\\n").replace("\x1b", "\\x1b")
    assert escaped in shown


@both
def test_a_grammar_notices_what_is_not_escaped(export: Export) -> None:
    lines, _ = exported(export, hostile(), hostile_header())
    for planted in ("x;y", "x#y", "<b>", "%%", '"'):
        wrong = [*lines]
        wrong[-2] = f"{wrong[-2]}{planted}"
        with pytest.raises(AssertionError):
            parsed(export, wrong)


@both
def test_every_message_and_milestone_of_a_small_run_is_a_row(export: Export) -> None:
    events = list(stories.acks1().trace.events())
    picked = Selection(kinds=(Kind.DELIVER, Kind.DROP, Kind.APPEND))
    last = [each for each in events if each.kind in picked.kinds][ROWS_MAX - 1].n
    selection = Selection(kinds=picked.kinds, last=last)
    lines, notices = exported(export, events, HEADER, selection)
    wanted = [each for each in events if selection.has(each.n, each.node, each.kind)]
    numbers = [int(re.findall(r": (\d+) ", each[0])[0]) for each in rows(parsed(export, lines))]
    assert numbers == [each.n for each in wanted]
    assert notices == ()


@both
def test_a_long_trace_is_cut_around_the_first_loss_and_says_so(export: Export) -> None:
    events = [
        Event(n, n, f"b{n % 3}", Kind.HW, (), {"partition": "o-0", "high_watermark": n})
        for n in range(1, 1_001)
    ]
    lost = Event(600, 600, "world", Kind.LOSS, (), {"partition": "o-0", "spans": [[0, 1, 2]]})
    events[599] = lost
    lines, notices = exported(export, events, HEADER)
    found = parsed(export, lines)
    numbers = [int(re.findall(r": (\d+) ", each[0])[0]) for each in rows(found)]
    assert len(numbers) == ROWS_MAX
    assert numbers[0] < 600 < numbers[-1]
    assert numbers == list(range(numbers[0], numbers[-1] + 1))
    (notice,) = notices
    assert f"rows {numbers[0]} to {numbers[-1]} of 1000" in notice
    inside = [each for each in lines if ": cut: rows" in each]
    assert len(inside) == 1
    chosen, notices = exported(export, events, HEADER, Selection(first=900))
    assert notices == ()
    assert len(rows(parsed(export, chosen))) == 101
    _, notices = exported(export, events, HEADER, Selection(first=2))
    assert "events 2 to 201" in notices[0]


@both
def test_without_trouble_the_diagram_begins_with_the_first_step(export: Export) -> None:
    events = [
        Event(n, n - 500, "b1", Kind.HW, (), {"partition": "o-0", "high_watermark": n})
        for n in range(1, 1_001)
    ]
    events[599] = Event(600, 100, "world", Kind.STEP, (), {"id": "1", "step": "crash"})
    lines, _ = exported(export, events, HEADER)
    numbers = [int(re.findall(r": (\d+) ", each[0])[0]) for each in rows(parsed(export, lines))]
    assert numbers[0] == 600


@both
def test_quiet_kinds_are_rows_only_if_asked_for_and_nothing_is_a_notice(export: Export) -> None:
    events = [Event(1, 0, "b1", Kind.TIMER, (), {"key": EVIL})]
    lines, notices = exported(export, events, HEADER)
    parsed(export, lines)
    assert notices == ("no event is of this selection",)
    lines, notices = exported(export, events, HEADER, Selection(kinds=(Kind.TIMER,)))
    assert len(rows(parsed(export, lines))) == 1
    assert notices == ()


@both
def test_many_nodes_are_cut_and_told(export: Export) -> None:
    events = [Event(n, n, f"b{n}", Kind.START, (), {}) for n in range(1, 101)]
    lines, notices = exported(export, events, HEADER)
    assert sum(bool(each["id"]) for each in parsed(export, lines)) == 40
    assert "60 nodes are left out" in notices[0]
