"""The search: known answers, every answer checked by runs, and ddmin against all subsets."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sim.blame import search as module
from sim.blame.blaming import blame, target_of
from sim.blame.counterfactual import Replay
from sim.blame.parts import Part
from sim.blame.search import Answer, Loosened, answer_of, loosened
from sim.running.verdicts import Broken, Verdict
from tests.sim.blame.cases import (
    loss_target,
    names,
    part,
    power_cuts,
    replays_of,
    searched,
    shipped,
    violation_target,
)

# Known answers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variant", "parts", "alone"),
    [
        ("leader_crash_acks1", None, ["kill"], ["kill", "lag"]),
        ("partition_unclean", "unclean on", ["kill"], ["kill", "split"]),
        ("kip101_divergence", "fetch", ["step 9"], ["step 9", "step 7"]),
        ("kip101_lost_write", "high-watermark", ["second"], ["second", "first", "refetch"]),
        ("min_isr_freeze", "today", ["dark"], ["dark", "split"]),
    ],
)
def test_what_the_first_loss_takes(
    name: str, variant: str | None, parts: list[str], alone: list[str]
) -> None:
    replays = replays_of(shipped(name, variant))
    found = searched(replays, loss_target(replays))
    assert (found.status, names(found.parts), names(found.alone)) == ("found", parts, alone)
    assert found.is_smallest
    assert found.is_complete


def test_what_is_not_needed_is_not_blamed() -> None:
    """The network was split, but the high watermark is cut off as soon as a leader has died."""
    replays = replays_of(shipped("kip101_lost_write", "high-watermark"))
    found = searched(replays, violation_target(replays, "truncation-floor"))
    assert (names(found.parts), names(found.alone)) == (["first"], ["first"])


@pytest.mark.parametrize("times", [(3, 6), (3, 6, 9), (3, 6, 9, 12)])
def test_where_each_would_do_it_takes_the_absence_of_all(times: tuple[int, ...]) -> None:
    """The first one takes the records, and without it the next one, which comes later."""
    replays = replays_of(power_cuts(*times))
    target = loss_target(replays)
    found = searched(replays, target)
    wanted = [f"cut-{at}" for at in times]
    assert (found.status, names(found.parts), found.alone) == ("found", wanted, ())
    assert found.is_smallest == (len(times) <= 3)
    base = replays.base
    assert answer_of(base, replays.without(found.parts), target) is Answer.ABSENT
    for each in found.parts:
        rest = [x for x in found.parts if x != each]
        assert answer_of(base, replays.without(rest), target) is Answer.HAPPENS


def test_guards_that_are_off_are_tried_on() -> None:
    replays = replays_of(shipped("min_isr_freeze", "without freeze"))
    target = violation_target(replays, "quorum-superset")
    assert loosened(replays, target) == (Loosened("guard hw-freeze", Answer.ABSENT),)
    assert replays.count == 1
    replays = replays_of(shipped("min_isr_freeze", "today"))
    assert loosened(replays, loss_target(replays)) == ()


def test_a_violation_that_stays_without_any_part_is_unavoidable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    replays = replays_of(shipped("min_isr_freeze", "without freeze"))
    target = violation_target(replays, "quorum-superset")
    monkeypatch.setattr(Replay, "has_violation", lambda *_: True)
    found = searched(replays, target)
    assert (found.status, found.parts) == ("unavoidable", ())


def test_records_that_are_never_acknowledged_tell_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    replays = replays_of(power_cuts(3))
    target = loss_target(replays)
    monkeypatch.setattr(Replay, "acked", lambda *_: None)
    assert searched(replays, target).status == "unknown"


def test_the_violation_that_failed_the_run_is_asked_about_first() -> None:
    replays = replays_of(shipped("min_isr_freeze", "without freeze"))
    assert not target_of(replays).violation
    base, wanted = replays.base, replays.base.violations[1]
    broken = [
        Broken("a", 1, True, False, base.violations[0]),
        Broken("b", 1, False, True, base.violations[0]),
        Broken("acked-records-survive", 1, False, False),
        Broken("c", 1, False, False, wanted),
    ]
    base.result = evolve(base.result, verdict=Verdict("failed", (), tuple(broken)))
    assert target_of(replays).violation == wanted


# Budget, the same twice --------------------------------------------------------------------------


def test_a_budget_that_ends_leaves_it_open() -> None:
    replays = replays_of(shipped("kip101_lost_write", "high-watermark"), runs_max=1)
    found = searched(replays, loss_target(replays))
    assert (names(found.parts), found.is_complete, found.runs) == (["second"], False, 1)
    replays = replays_of(shipped("kip101_divergence", "high-watermark"), runs_max=1)
    target = violation_target(replays, "epoch-prefix")
    assert not blame(replays, target).is_complete


def test_a_budget_that_ends_among_the_pairs_leaves_a_minimal_set() -> None:
    replays = replays_of(power_cuts(3, 6, 9, 12))
    runs = searched(replays, loss_target(replays)).runs
    replays = replays_of(power_cuts(3, 6, 9, 12), runs_max=runs - 1)
    found = searched(replays, loss_target(replays))
    assert (found.status, len(found.parts)) == ("found", 4)
    assert found.is_complete
    assert replays.count <= runs - 1


def test_a_budget_that_ends_before_anything_is_found_is_inconclusive() -> None:
    replays = replays_of(power_cuts(3, 6), runs_max=2)
    found = searched(replays, loss_target(replays))
    assert (found.status, found.parts, found.runs) == ("inconclusive", (), 2)


def test_the_answer_is_the_same_twice() -> None:
    answers = []
    for _ in range(2):
        replays = replays_of(shipped("kip320_zombie_follower", "without fences"))
        answers.append(blame(replays, target_of(replays)).plain())
    assert answers[0] == answers[1]


# ddmin against all subsets -----------------------------------------------------------------------

_PARTS = tuple(Part(f"p{at}", "crash", at + 1, f"p{at}") for at in range(6))
_MEMBERS = st.frozensets(st.integers(0, 5), min_size=1, max_size=4).filter(lambda x: x != {5})
"""One that begins too late saves nothing alone."""


class _Imagined:
    """Runs in which it happens unless one of some sets of parts is left out as a whole."""

    def __init__(self, saving: Iterable[frozenset[int]]) -> None:
        self.saving = list(saving)
        self.parts = _PARTS
        moments = SimpleNamespace(end_us=9)
        self.base = SimpleNamespace(result=SimpleNamespace(moments=moments))
        self.count = 0

    def without(self, parts: Iterable[Part]) -> Any:
        self.count += 1
        gone = {each.step - 1 for each in parts}
        is_absent = any(each <= gone for each in self.saving)
        return Answer.ABSENT if is_absent else Answer.HAPPENS

    def begun_by(self, t_us: int) -> tuple[Part, ...]:
        """The last one begins behind the bad state."""
        return self.parts if t_us else self.parts[:5]

    def time_us(self, event: int) -> int:
        return 0


@given(st.lists(_MEMBERS, min_size=1, max_size=4), st.frozensets(st.integers(0, 5)))
def test_a_found_set_is_minimal_and_as_small_as_it_says(
    saving: list[frozenset[int]], cited: frozenset[int]
) -> None:
    replays: Any = _Imagined(saving)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "answer_of", lambda base, other, target: other)
        patch.setattr(module._Hunt, "_notes", lambda *_: ())
        found = module.search(replays, module.Target(1), [_PARTS[at] for at in cited])
        assert found.status == "found"
        assert replays.without(found.parts) is Answer.ABSENT
        for each in found.parts:
            assert replays.without(x for x in found.parts if x != each) is Answer.HAPPENS
        sizes = [
            size
            for size in range(1, 7)
            if any(replays.without(each) is Answer.ABSENT for each in combinations(_PARTS, size))
        ]
        assert not found.is_smallest or len(found.parts) == sizes[0]
        alone = {_PARTS[at] for each in saving if len(each) == 1 for at in each if at < 5}
        assert set(found.alone) == alone


# Slices ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variant", "violation"),
    [
        ("leader_crash_acks1", None, None),
        ("kip101_lost_write", "high-watermark", "leader-completeness"),
        ("partition_unclean", "unclean on", None),
        ("kip320_zombie_follower", "without fences", "log-matching"),
    ],
)
def test_a_slice_goes_from_what_is_blamed_to_the_bad_state(
    name: str, variant: str | None, violation: str | None
) -> None:
    replays = replays_of(shipped(name, variant))
    target = target_of(replays, violation=violation)
    found = blame(replays, target)
    numbers = [each.n for each in found.lines]
    assert numbers == sorted(set(numbers))
    assert 4 <= len(numbers) <= 25
    assert numbers[-1] == target.event
    assert {each.event for each in (*found.parts, *found.alone)} <= set(numbers)
    for each in found.lines:
        event = replays.base.events[each.n - 1]
        assert (each.t_us, each.node, each.kind) == (event.t_us, event.node, event.kind)
        assert each.text


def test_what_is_not_between_is_left_out() -> None:
    replays = replays_of(shipped("kip101_lost_write", "high-watermark"))
    found = blame(replays, violation_target(replays, "truncation-floor"))
    texts = " ".join(each.text for each in found.lines)
    assert "second" not in texts
    assert "step first" in texts
    assert part(replays, "first").name in found.cited
