"""Expectations: when each form is judged, and the verdict over all of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sim.checks.judge import Judge
from sim.running.expectations import Expectation
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import Result, expect, failed, of_kind, passed, ran, text_of

PRODUCE = 'at = "2s"; produce = { to = "orders-0", count = 2, acks = "1" }'
ZERO_US = 10_000_000


def judged(*steps: str, line: str, **parts: Any) -> Expectation:
    """The only expectation of a run."""
    (found,) = ran(*steps, more=expect(line), **parts).expectations
    return found


# at ----------------------------------------------------------------------------------------------


def test_at_is_judged_after_all_that_happens_then() -> None:
    steps = [
        'id = "a"; at = "2s"; pause = "b3"',
        'resume = "b3"',
        'crash = { node = "b3" }',
        'after = "a"; crash = { node = "b2" }',
    ]
    for that, holds in (("not alive(b3) and not alive(b2)", True), ("alive(b2)", False)):
        found = judged(*steps, line=f'at = "2s"; that = "{that}"')
        assert found.holds is holds
        assert found.t_us == ZERO_US + 2_000_000
    assert judged(*steps, line='at = "1.999999s"; that = "alive(b2)"').holds is True


def test_at_the_end_of_the_run_is_judged_too() -> None:
    steps = 'at = "3s"; crash = { node = "b3" }'
    assert judged(steps, until="3s", line='at = "3s"; that = "not alive(b3)"').holds is True


def test_a_run_that_ended_before_fails_at_and_judges_at_end() -> None:
    result = ran(
        'at = "1s"; resume = "leader:orders-0"',
        more=expect('at = "3s"; that = "alive(b1)"', 'at_end = "alive(b1)"'),
    )
    first, second = result.expectations
    assert (first.holds, first.detail) == (False, "the run ended before")
    assert second.holds is True
    assert second.t_us == ZERO_US + 1_000_000
    assert result.verdict.word == "failed"
    assert result.verdict.reasons[0] == "step 1: b1 is running, not paused"


# eventually --------------------------------------------------------------------------------------


def test_eventually_tells_the_first_moment() -> None:
    result = passed(PRODUCE, more=expect("eventually = \"acked('orders-0') >= 1\""))
    (found,) = result.expectations
    ack = of_kind(result, Kind.ACK)[0]
    assert found.t_us == ack.t_us + ZERO_US
    (told,) = of_kind(result, Kind.EXPECT)
    assert told.cause == (found.event,)
    assert found.event <= ack.n < told.n
    assert found.values == (("acked('orders-0')", 1),)
    entry = [each for each in result.trace.events() if found.event <= each.n <= told.n]
    assert {each.t_us for each in entry} == {ack.t_us}


@pytest.mark.parametrize(
    ("window", "holds"),
    [
        ("", True),
        ('within = "1s"', False),
        ('within = "2.5s"', True),
        ('after = "1.9s"; within = "500ms"', True),
        ('after = "1s"; within = "500ms"', False),
        ('from = "1s"; to = "1.9s"', False),
        ('from = "1s"; to = "2.5s"', True),
        ('from = "2.5s"; to = "3s"', False),
        ('from = "1s"; within = "1.5s"', True),
        ('after = "paused"', False),
        ('after = "early"; within = "2s"', True),
        ('after = "early"; within = "500ms"', False),
        ('after = "early"; to = "1.5s"', False),
        ('after = "gc"; within = "500ms"', True),
    ],
)
def test_windows_of_eventually(window: str, holds: bool) -> None:
    """It holds from 2s to 2.1s: b3 is down."""
    that = 'eventually = "not alive(b3)"'
    found = judged_with_fault(
        'id = "early"; at = "1s"; pause = "b2"',
        'at = "2s"; crash = { node = "b3" }',
        'at = "2.1s"; start = "b3"',
        'id = "paused"; at = "3s"; resume = "b2"',
        line=f"{that}; {window}" if window else that,
    )
    assert found.holds is holds


def judged_with_fault(*steps: str, line: str) -> Expectation:
    gc = '[[fault]]\nid = "gc"\nkind = "clock-step"\ntarget = "b1"\nby = "1s"\nstart = "1.8s"\n'
    (found,) = ran(*steps, more=expect(line) + gc).expectations
    return found


def test_what_holds_when_a_window_opens_counts() -> None:
    # Nothing but the crash happens between: the state at 2s is looked at on its own.
    line = 'from = "2s"; to = "5s"; eventually = "not alive(b3)"'
    for start, holds in (("2.000001s", True), ("2s", False)):
        steps = ['at = "1s"; crash = { node = "b3" }', f'at = "{start}"; start = "b3"']
        assert judged(*steps, line=line).holds is holds


# always ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("window", "holds"),
    [
        ("", False),
        ('to = "1.999999s"', True),
        ('to = "2s"', False),
        ('from = "2.1s"', True),
        ('from = "2.099999s"', False),
        ('from = "2.05s"; to = "2.06s"', False),
        ('after = "2.2s"', True),
        ('after = "early"; within = "500ms"', True),
        ('after = "early"; within = "2s"', False),
        ('after = "again"; within = "5s"', True),
        ('after = "again"; to = "2.05s"', False),
        ('after = "never"', False),
    ],
)
def test_windows_of_always(window: str, holds: bool) -> None:
    """It does not hold from 2s to 2.1s: b3 is down."""
    that = 'always = "alive(b3)"'
    found = judged(
        'id = "early"; at = "1s"; pause = "b2"',
        'at = "2s"; crash = { node = "b3" }',
        'id = "again"; at = "2.1s"; start = "b3"',
        'id = "never"; at = "3s"; wait = "leader(\'orders-0\') == b3"',
        line=f"{that}; {window}" if window else that,
    )
    assert found.holds is holds


def test_always_names_the_first_event_that_breaks_it() -> None:
    result = ran(
        'id = "kill"; at = "2s"; crash = { node = "b3" }',
        'at = "3s"; crash = { node = "b2" }',
        more=expect('always = "alive(b3)"; because = "why"', 'always = "alive(b1)"'),
    )
    broken, kept = result.expectations
    begun = [each for each in of_kind(result, Kind.STEP, id="kill") if "done" not in each.args]
    assert broken.event == begun[0].n
    assert broken.t_us == ZERO_US + 2_000_000
    assert broken.values == (("alive(b3)", False),)
    assert kept.holds is True
    assert result.verdict.reasons == ("expect 1 does not hold: alive(b3)",)


def test_a_window_that_never_opens_or_opens_too_late_fails() -> None:
    step = 'id = "late"; at = "3s"; pause = "b3"'
    found = judged(step, line='after = "late"; to = "2s"; always = "alive(b1)"')
    assert (found.holds, found.detail) == (
        False,
        "'late' came about at 3s, behind the end of the window",
    )
    step = 'id = "never"; at = "3s"; wait = "leader(\'orders-0\') == b3"'
    found = judged(step, line='after = "never"; eventually = "alive(b1)"')
    assert (found.holds, found.detail) == (False, "'never' has not come about")


# at_end, variants, and what is not judged --------------------------------------------------------


def test_at_end_sees_what_the_last_look_finds() -> None:
    def rot(world: World) -> None:
        path = Path("/orders-0/00000000000000000000.log")
        world.host("b3").require_disk().files.flip_bit(path, 30)

    passed(
        PRODUCE,
        'at = "4s"; crash = { node = "b3" }',
        on_world=at_time(rot, 5),
        more=expect(
            "at = \"4s\"; that = \"record('orders-0', b3, 0) == 'p1-0'\"",
            "at_end = \"record('orders-0', b3, 0) is None\"",
        ),
    )


def test_numbers_are_those_of_the_file_in_every_variant() -> None:
    more = '[[variant]]\nname = "one"\n[[variant]]\nname = "two"\n' + expect(
        'variant = "one"; at_end = "not alive(b1)"',
        'variant = "two"; at = "1s"; that = "not alive(b2)"',
        'at = "2s"; that = "not alive(b3)"',
    )
    assert ran(variant="one", more=more).verdict.reasons == (
        "expect 1 does not hold: not alive(b1)",
        "expect 3 does not hold: not alive(b3)",
    )
    result = ran(variant="two", more=more)
    assert [each.number for each in result.expectations] == [2, 3]
    assert {each.args["id"] for each in of_kind(result, Kind.EXPECT)} == {"2", "3"}


def test_sometimes_and_sweeps_are_reported_as_not_judged() -> None:
    result = passed(more=expect('sometimes = "not alive(b1)"') + '[sweep]\nseeds = "0..9"\n')
    assert [each.holds for each in result.expectations] == [None]
    assert len(result.verdict.unjudged) == 2
    for word, text in zip(("sometimes", "[sweep]"), result.verdict.unjudged, strict=True):
        assert text.startswith(word)


# Verdicts ----------------------------------------------------------------------------------------


class at_time:  # noqa: N801 - reads like a verb
    """Do something to a world, once, at a second of the scenario."""

    def __init__(self, call: Callable[[World], None], second: int) -> None:
        self._call, self._at_us = call, ZERO_US + second * 1_000_000

    def __call__(self, world: World) -> None:
        world.watchers.append(self._watch)

    def _watch(self, world: World) -> None:
        if world.now_us >= self._at_us:
            world.watchers.remove(self._watch)
            self._call(world)


def planted(check: str) -> at_time:
    def report(world: World) -> None:
        Judge.of(world).scene.report(check, None, "planted", world.trace.count, "by a test")

    return at_time(report, 3)


def test_an_invariant_that_nobody_expects_to_break_fails() -> None:
    result = ran(on_world=planted("hw-valid"))
    assert result.verdict.reasons == ("hw-valid was violated",)
    (broken,) = result.verdict.broken
    assert (broken.is_expected, broken.is_excused) == (False, False)
    assert broken.first is not None
    assert broken.first.detail == "by a test"
    assert len(of_kind(result, Kind.CHECK, check="hw-valid")) == 1


def test_breaks_wants_each_of_its_names() -> None:
    more = expect('breaks = ["hw-valid", "epoch-prefix"]')
    assert (
        failed(more=more, on_world=planted("hw-valid")) == "breaks: epoch-prefix was not violated"
    )
    more = expect('breaks = "hw-valid"', 'breaks = "log-matching"')
    assert (
        failed(more=more, on_world=planted("hw-valid")) == "breaks: log-matching was not violated"
    )
    passed(more=expect('breaks = "hw-valid"'), on_world=planted("hw-valid"))


@pytest.mark.parametrize("check", ["committed-log-matching", "epoch-prefix"])
def test_log_matching_stands_for_two(check: str) -> None:
    passed(more=expect('breaks = "log-matching"'), on_world=planted(check))


@pytest.mark.parametrize("cluster", ['truncation = "kip-101"', "guards = { fetch-epoch = false }"])
def test_a_guard_off_or_an_older_mode_excuses_other_invariants(cluster: str) -> None:
    result = passed(on_world=planted("hw-valid"), cluster=cluster)
    (broken,) = result.verdict.broken
    assert (broken.name, broken.is_expected, broken.is_excused) == ("hw-valid", False, True)


def test_guards_that_are_on_by_name_excuse_nothing() -> None:
    cluster = 'truncation = "fetch"\nguards = { fetch-epoch = true }'
    assert failed(on_world=planted("hw-valid"), cluster=cluster) == "hw-valid was violated"


LOSING = (
    'id = "lag"; at = "1s"; cut = { from = "b1", to = ["b2", "b3"], only = ["FetchResponse"] }',
    PRODUCE,
    'at = "3s"; crash = { node = "b1" }',
    'at = "3.1s"; heal = "lag"',
)
"""Two records are lost under L0."""


def test_losses_fail_where_nothing_covers_them_even_with_a_guard_off() -> None:
    text = "2 records were lost under L0, and neither allow nor a promise in breaks covers it: "
    for cluster in ("", "guards = { fetch-epoch = false }"):
        assert failed(*LOSING, until="20s", cluster=cluster).startswith(text)
    passed(*LOSING, until="20s", more=expect('breaks = "acked-records-survive"'))
    reason = failed(PRODUCE, more=expect('breaks = "acked-records-survive"'))
    assert reason == "breaks: acked-records-survive was not violated"


def test_allow_covers_losses_and_demands_them() -> None:
    for good in ('["L0"]', "{ L0 = 2 }", '{ L0 = ">=1", L1 = 0 }', '["L0", "L2"]'):
        result = passed(*LOSING, until="20s", more=expect(f"allow = {good}"))
        (lost,) = result.verdict.lost
        assert (lost.licence, lost.records, lost.is_covered) == ("L0", 2, True)
        assert lost.promises == ("acked-records-survive",)
    for bad in ("{ L0 = 3 }", '{ L0 = "<2" }', '{ L0 = 2, L1 = ">=1" }'):
        reason = failed(*LOSING, until="20s", more=expect(f"allow = {bad}"))
        assert reason.startswith("allow L")
        assert "does not hold" in reason
    for other in ('["L1"]', '["L2", "L3", "L4"]'):
        reason = failed(*LOSING, until="20s", more=expect(f"allow = {other}"))
        assert reason.startswith("2 records were lost under L0")
    # A demand that is not met fails, whatever breaks says.
    both = expect('breaks = "acked-records-survive"', "allow = { L0 = 1 }")
    assert failed(*LOSING, until="20s", more=both).startswith("allow L0 == 1 does not hold")
    assert failed(PRODUCE, more=expect("allow = { L0 = 1 }")).startswith("allow L0 == 1")
    passed(PRODUCE, more=expect('allow = ["L0"]'))


def test_every_form_can_fail() -> None:
    lines = [
        'at = "1s"; that = "not alive(b1)"',
        'eventually = "not alive(b1)"',
        'always = "not alive(b1)"',
        'at_end = "not alive(b1)"',
    ]
    result = ran(more=expect(*lines))
    assert [each.holds for each in result.expectations] == [False] * 4
    assert len(result.verdict.reasons) == 4
    passed(more=expect(*lines).replace("not alive", "alive"))


def test_an_expectation_watched_does_not_change_what_happens() -> None:
    def others(result: Result) -> list[tuple[Any, ...]]:
        return [
            (each.t_us, each.node, each.kind, each.args)
            for each in result.trace.events()
            if each.kind is not Kind.EXPECT
        ]

    assert "always" in text_of(more=expect('always = "alive(b1)"'))
    bare = ran(PRODUCE)
    watched = ran(
        PRODUCE, more=expect('always = "alive(b1)"', 'from = "2s"; eventually = "alive(b2)"')
    )
    assert others(bare) == others(watched)
