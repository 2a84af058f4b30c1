"""What people read of a run: the time line, the logs, the reasons.

The exact texts of the three runs of the scenario reference stand here, to be read as a stranger
would; everything else is a property: other names give the same text with other names, nothing from
outside steers a terminal, every width is kept.
"""

from __future__ import annotations

import re
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from sim.present.chains import chain
from sim.present.columns import Selection, columns
from sim.present.fates import records_of
from sim.present.losses import told_losses
from sim.present.story import Story
from sim.present.strips import strips
from sim.present.text import print_chain, print_columns, print_strips, print_timeline
from sim.present.timeline import Line, Tone, Weight, timeline
from sim.trace.kinds import Kind
from sim.trace.lines import Event, Header
from sim.world import World
from tests.sim import stories
from tests.sim.stories import header_of, lost, printed, renamed_events, renamed_header, renamed_text
from tests.sim.test_present_story import RUNS, disturbed

OTHERS = {
    "b1": "k7",
    "b2": "a9",
    "b3": "z0",
    "c1": "m5",
    "p1": "q3",
    "p2": "b4",
    "p3": "t8",
    "admin": "owner",
    "orders": "events",
    "lag": "wet",
    "split": "cleft",
    "f-cut": "g-tuc",
    "f-one": "g-uno",
    "f-two": "g-due",
    "f-three": "g-third",
}
"""Other names, each as long as the old one, so that columns stay where they are."""


@cache
def world_of(name: str, level: str = "full") -> World:
    if name.startswith("disturbed"):
        return disturbed(int(name.split()[1]), level=level, image="drawn")
    return RUNS[name](level)


def whole(story: Story, events: list[Event], width: int = 100) -> str:
    """Everything that can be printed of a story."""
    wanted = story.partitions["orders-0" if "orders-0" in story.partitions else "events-0"]
    cut = max((c.n for r in wanted.replicas.values() for c in r.cuts), default=9)
    texts = [
        printed(print_timeline, timeline(story), width=width),
        printed(print_strips, strips(story), width=width),
        *(printed(print_chain, chain(story, each), width=width) for each in lost(story)),
        printed(print_chain, chain(story, cut), width=width),
        printed(print_chain, chain(story, story.last_n), width=width),
        printed(
            print_columns,
            columns(story, Selection(around=cut, context=40), events),
            width=width,
        ),
    ]
    return "\n".join(texts)


ACKS1_CHAIN = """\
Offsets 10..14 of orders-0, acked from #453 on with acks=1, were truncated on b1 at #706: b2 \
became leader with epoch 1 at #594 without them, because b1 had answered before any follower had \
them.
  - Offsets 10..14 ('p1-10', 'p1-11', 'p1-12', …) were acknowledged to p1 by b1 at #453 to #461 \
(3.101s), acks=1. b1 alone had them then: with acks=1 a leader answers as soon as its own log \
has a record, before any follower has it.
  - b2 and b3 never got them: fault lag kept them from fetching from b1 (cut b1→b2, b1→b3 (only \
FetchResponse); since #415 (3.000s)).
  - b1 was killed at #462 (3.351s) and came back at #663 (14.000s); its disk kept them.
  - c1 made b2 leader with epoch 1 at #594 (11.015s), when it fenced b1 (no heartbeat), which had \
fallen at #462. b2 did not have them; it was in the ISR (b1, b2 and b3), so the election counts as \
clean.
  - Of the replicas only b1 still had them then, and was dead.
  - b1 truncated offsets 10..14 at #706 (14.005s), as a follower does: its leader b2 had answered \
that epoch 0 ends at offset 10 there.
  - That was the last copy.
"""


def test_the_chain_says_what_was_lost_and_why() -> None:
    story = stories.story_of(world_of("acks1"))
    (records,) = lost(story)
    assert printed(print_chain, chain(story, records), width=10_000) == ACKS1_CHAIN
    cut = story.partitions["orders-0"].replicas["b1"].cuts[0]
    assert chain(story, cut.n) == chain(story, records)


def test_a_loss_of_power_is_explained_by_what_was_not_synced() -> None:
    story = stories.story_of(world_of("power_loss"))
    (records,) = lost(story)
    told = chain(story, records)
    text = " ".join(each.text for each in told.sentences)
    assert re.search(
        r"b2 became leader with epoch 3 at #\d+ without it, because b2 had lost power at #\d+ "
        r"before it was synced there$",
        told.summary,
    )
    assert "b1 and b2 had it then; the ISR was b1 and b2." in text
    assert "nothing had synced that part of the file to its disk since." in text
    assert "The ISR was b2 alone from then on." in text
    assert "it was in the ISR (b2 alone), so the election counts as clean." in text
    assert text.endswith("Offset 1 is another record now, of epoch 3 on b1 and b2.")


def test_an_unclean_election_is_explained_by_the_isr() -> None:
    story = stories.story_of(world_of("unclean"))
    (records,) = lost(story)
    assert (records.base, records.end, records.epoch) == (10, 31, 0)
    told = chain(story, records)
    assert "in an unclean election, because b1 had answered" in told.summary
    assert "the ISR was b1 alone when the acknowledgement was due" in told.summary
    text = " ".join(each.text for each in told.sentences)
    assert "when b2 and b3 had left it: b1 had them, nobody else." in text
    assert "b2 did not have them, and was not in the ISR (b1): an unclean election." in text


STRIPS = """\
orders-0: leader b2, epoch 1, ISR b1, b2, b3
              0           10     15
b1 follower   0000000000|]         HW 10, LEO 10
  #706                    ~~~~~    10..14 truncated #706: at b2 epoch 0 ends at offset 10
b2 leader     0000000000|]         HW 10, LEO 10
b3 follower   0000000000|]         HW 10, LEO 10
"""


def test_the_strips_show_what_was_cut() -> None:
    story = stories.story_of(world_of("acks1"))
    assert printed(print_strips, strips(story)).startswith(STRIPS)


def test_the_strips_of_any_moment_can_be_shown() -> None:
    story = stories.story_of(world_of("acks1"))
    text = printed(print_strips, strips(story, 600))
    assert "b1 down       0000000000| 00000 ]  HW 10, LEO 15" in text
    assert "~" not in text.splitlines()[2]


def test_without_the_changes_of_level_full_only_the_leader_has_a_high_watermark() -> None:
    story = stories.story_of(world_of("acks1", "events"))
    text = printed(print_strips, strips(story))
    assert "b3 follower   0000000000 ]         LEO 10" in text
    assert "b2 leader     0000000000|]         HW 10, LEO 10" in text


def test_a_long_log_is_shown_around_what_matters() -> None:
    events = [
        Event(1, 0, "n1", Kind.START, (), {}),
        Event(2, 0, "n2", Kind.START, (), {}),
        _append(3, "n1", 0, 1_000_000, 0),
        _append(4, "n2", 0, 999_990, 0),
        _append(5, "n2", 999_990, 1_000_020, 3),
        Event(6, 0, "n1", Kind.HW, (), {"partition": "t-0", "high_watermark": 500_000}),
    ]
    for width in (100, 60, 40):
        text = printed(print_strips, strips(Story(None, events)), width=width)
        assert all(cell_len(line) <= width for line in text.splitlines()), text
        assert "…" in text
        assert "|" in text
        assert "3" in text
    assert "LEO 1000020, differs" not in text  # Nobody leads: nobody is right.


@pytest.mark.parametrize("name", [*RUNS, "disturbed 5"])
def test_a_typical_run_is_told_in_few_lines(name: str) -> None:
    world = world_of(name)
    lines = timeline(stories.story_of(world))
    assert 15 <= len(lines) <= 80
    assert [line.t_us for line in lines if line.first < 0] == []
    story = stories.story_of(world)
    for line in lines:
        assert 0 < line.first <= line.last <= story.last_n
    acked = sum(len(p.acks) for p in story.partitions.values())
    told = sum(int(n) for line in lines for n in re.findall(r"(\d+) acked \(orders", line.text))
    assert told == acked


@pytest.mark.parametrize("lines_max", [5, 12, 30])
def test_a_long_time_line_is_shortened_without_losing_the_count(lines_max: int) -> None:
    story = stories.story_of(world_of("disturbed 5"))
    lines = timeline(story, lines_max=lines_max)
    assert len(lines) <= lines_max
    acked = sum(len(p.acks) for p in story.partitions.values())
    numbers = [
        int(n)
        for line in lines
        for n in re.findall(r"(\d+) (?:acked \(orders|acknowledged)", line.text)
    ]
    assert sum(numbers) == acked
    assert [line.first for line in lines] == sorted(line.first for line in lines)


# Names ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*RUNS, "disturbed 5", "disturbed 6"])
@pytest.mark.parametrize("width", [100, 40])
def test_other_names_give_the_same_text_with_other_names(name: str, width: int) -> None:
    world = world_of(name)
    events = world.trace.events()
    before = whole(Story(header_of(world), events), events, width)
    others = renamed_events(events, OTHERS)
    after = whole(Story(renamed_header(header_of(world), OTHERS), others), others, width)
    # Values of records stay: they are in quotes.
    expected = re.sub(
        r"'[^'\n]*'|[^']+",
        lambda part: part[0] if part[0][0] == "'" else renamed_text(part[0], OTHERS),
        before,
    )
    assert _spaced(after) == _spaced(expected)
    assert not re.search(r"(?<![\w'-])(b[123]|orders)(?![\w'])", re.sub(r"'[^']*'", "", after))


def _spaced(text: str) -> list[str]:
    """Words in order: where lines end depends on how long names are."""
    return text.split()


# Text from outside ---------------------------------------------------------------------------

HOSTILE = (
    "\x1b[31mred\x1b]0;title\x07 \u202eevil\u2066 [bold]x[/bold] \n\r\t\x00\x9b2J\ud800 \u2028"
)


@settings(max_examples=10, deadline=None)
@given(data=st.data())
def test_nothing_from_outside_steers_the_terminal(data: st.DataObject) -> None:
    events = world_of("acks1", "events").trace.events()
    evil = data.draw(st.sampled_from([HOSTILE, "\x1b[2J" * 30, "a" * 5_000, "\u202e", "]["]))
    place = data.draw(st.sampled_from(["values", "names", "faults", "errors", "everything"]))
    strange = [_hostile(event, evil, place) for event in events]
    last = strange[-1].n
    strange.append(
        Event(
            last + 1,
            1,
            evil,
            Kind.CHECK,
            (last,),
            {
                "check": evil,
                "detail": evil,
                "partition": "orders-0",
                "kind": evil,
                "evidence": {"offset": 12, "leader_epoch": 0, evil: evil},
            },
        )
    )
    strange.append(
        Event(last + 2, 1, evil, Kind.ERROR, (), {"error": evil, "detail": evil, "note": evil})
    )
    header = Header("0", evil, evil, 1, {}, [evil, "b1"], {})
    story = Story(header, strange)
    text = "".join(
        [
            printed(print_timeline, timeline(story)),
            printed(print_strips, strips(story)),
            printed(print_chain, chain(story, last + 1)),
            *(printed(print_chain, chain(story, each)) for each in lost(story)),
            printed(print_columns, columns(story, Selection(around=430, context=40), strange)),
            printed(print_columns, columns(story, Selection(around=last), strange)),
        ]
    )
    assert all(char.isprintable() or char == "\n" for char in text)
    assert "\\x1b[31m" in text or evil != HOSTILE
    # Markup is text: it is neither obeyed nor dropped.
    assert "[bold]x[/bold]" in text or evil != HOSTILE


def _hostile(event: Event, evil: str, place: str) -> Event:
    args = dict(event.args)
    if place in ("values", "everything") and "value" in args:
        args["value"] = evil
    if place in ("faults", "everything") and event.kind in (Kind.FAULT, Kind.HEAL, Kind.DROP):
        args |= {"id": evil, "fault": evil}
    if place == "everything":
        args |= {key: evil for key in ("why", "type", "detail", "error", "key") if key in args}
    if place == "names":
        names = {"b2": evil, "orders": evil}
        (event,) = renamed_events([event], names)
        return event
    return event._replace(args=args)


@pytest.mark.parametrize("width", [40, 60, 80, 120])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    world = world_of("unclean")
    events = world.trace.events()
    story = Story(header_of(world), events)
    for line in whole(story, events, width).splitlines():
        assert cell_len(line) <= width, line
        assert line == line.rstrip()


def test_colours_are_the_consoles_own_choice() -> None:
    story = stories.story_of(world_of("acks1"))
    plain = printed(print_strips, strips(story))
    coloured = printed(
        print_strips, strips(story), no_color=False, force_terminal=True, color_system="standard"
    )
    assert "\x1b[" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == plain


def test_a_line_is_escaped_where_it_is_printed() -> None:
    line = Line(1, 1, 0, f"told {HOSTILE}", Tone.BAD, Weight.LOSS)
    text = printed(print_timeline, [line], width=400)
    assert text.count("\n") == 1
    assert text[:-1].isprintable()
    assert "told \\x1b[31mred" in text


# Columns -------------------------------------------------------------------------------------


def test_columns_show_a_node_each() -> None:
    world = world_of("acks1")
    events = world.trace.events()
    story = Story(header_of(world), events)
    text = printed(print_columns, columns(story, Selection(around=594, context=1), events))
    assert text.splitlines()[:4] == [
        "                     c1     b1     b2     b3     admin  p1",
        "     #593   11.015s  broker-fenced broker=b1     |      |",
        ">    #594   11.015s  elect b2 for orders-0 e1    |      |",
        "     #595   11.015s  write /00000000000000000000.log 1009+259",
    ]
    narrow = printed(
        print_columns, columns(story, Selection(around=594, context=1), events), width=40
    )
    assert narrow.splitlines()[2] == ">#594 11.015s c1: elect b2 for orders-0"


def test_columns_are_filtered_by_node_and_kind() -> None:
    world = world_of("acks1")
    events = world.trace.events()
    story = Story(header_of(world), events)
    wanted = Selection(nodes=("b1", "b3"), kinds=(Kind.ROLE, Kind.TRUNCATE))
    found = columns(story, wanted, events)
    assert found.nodes == ("b1", "b3")
    rows = list(found.rows)
    assert [(row.node, str(row.kind)) for row in rows] == [
        ("b3", "role"),
        ("b1", "role"),
        ("b3", "role"),
        ("b1", "role"),
        ("b1", "truncate"),
    ]
    around = Selection(around=600, context=2, kinds=(Kind.ROLE,))
    numbers = [row.n for row in columns(story, around, events).rows]
    assert len(numbers) == 5
    assert numbers[2] == 600
    behind = Selection(around=10**9, context=3)
    assert [row.n for row in columns(story, behind, events).rows] == [952, 953, 954]
    nothing = columns(story, Selection(nodes=("nobody",)), events)
    assert printed(print_columns, nothing) == "no event is of this selection\n"


# What judges say -----------------------------------------------------------------------------


def test_a_violation_is_told_with_the_fate_of_its_records() -> None:
    events = world_of("acks1").trace.events()
    last = events[-1].n
    evidence = {"offset": 12, "leader_epoch": 0}
    args = {"check": "committed-durability", "partition": "orders-0", "kind": "lost"}
    events.append(
        Event(
            last + 1,
            20_000_000,
            "world",
            Kind.CHECK,
            (706,),
            {**args, "detail": "offset 12 is in no log", "evidence": evidence},
        )
    )
    loss = {"partition": "orders-0", "spans": [[0, 10, 15]], "count": 5, "licence": "L1"}
    events.append(Event(last + 2, 20_000_000, "world", Kind.LOSS, (706,), loss))
    expect = {"id": "2", "form": "at_end", "text": "lost('acked') == 5", "holds": False}
    events.append(Event(last + 3, 20_000_000, "world", Kind.EXPECT, (), {**expect, "judged": True}))
    story = Story(header_of(world_of("acks1")), events)
    told = chain(story, story.findings[0])
    assert told.summary == (
        "committed-durability of orders-0 is broken at #706 (14.005s): offset 12 is in no log"
    )
    assert told.sentences[0].text == (
        f"What became of offset 12 of epoch 0 is told with the loss at #{last + 2} (20.000s)."
    )
    assert chain(story, last + 1) == told
    unjudged = Story(None, [each for each in events if each.kind is not Kind.LOSS])
    told = chain(unjudged, unjudged.findings[0])
    assert told.sentences[0].text.startswith("Offset 12 of orders-0, acked at #457 with acks=1,")
    (lost_ones,) = told_losses(story)
    assert [each.text for each in chain(story, last + 2).sentences] == [
        each.text for each in lost_ones.links
    ]
    text = printed(print_timeline, timeline(story), width=200)
    assert "committed-durability of orders-0 is broken: offset 12 is in no log" in text
    assert "lost: 10..14 of orders-0 (L1)" in text
    assert "expectation 2 does not hold: lost('acked') == 5" in text


def test_an_event_without_a_tale_is_followed_back_to_what_began_it() -> None:
    story = stories.story_of(world_of("acks1"))
    role = next(h for h in story.happenings if h.what == "role" and h.n > 600 and h.node == "b2")
    told = [each.text for each in chain(story, role.n).sentences]
    assert any("c1 fences b1" in each for each in told) or told
    assert told[-1].endswith("b2 leads orders-0, epoch 1 from offset 10.")


def test_records_that_are_still_there_are_said_to_be() -> None:
    story = stories.story_of(world_of("acks1"))
    (records,) = records_of(story, "orders-0", 3, 4, 0)
    assert chain(story, records).sentences[-1].text == "At the end b1, b2 and b3 still had it."


def test_logs_that_differ_are_shown_to() -> None:
    events = [
        Event(1, 0, "n1", Kind.START, (), {}),
        Event(2, 0, "n2", Kind.START, (), {}),
        _append(3, "n1", 0, 3, 0),
        _append(4, "n2", 0, 2, 0),
        Event(5, 0, "n2", Kind.ROLE, (), {"partition": "t-0", "role": "leader", "leader_epoch": 1}),
        _append(6, "n2", 2, 4, 1),
    ]
    text = printed(print_strips, strips(Story(None, events)))
    assert "n1 none     00  0 ]     LEO 3, differs from the leader" in text
    assert "n2 leader   00  1  1 ]  LEO 4" in text


def _append(n: int, node: str, base: int, end: int, epoch: int) -> Event:
    args = {"partition": "t-0", "base_offset": base, "next_offset": end, "leader_epoch": epoch}
    return Event(n, n * 1_000, node, Kind.APPEND, (), args)
