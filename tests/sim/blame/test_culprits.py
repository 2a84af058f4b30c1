"""Which parts events go back to: by causes, and where something happened because nothing came."""

from __future__ import annotations

import pytest

from sim.blame.culprits import Culprits
from sim.trace.kinds import Kind
from tests.sim.blame.cases import names, replays_of
from tests.sim.running.scenarios import fault, scenario

SESSION = 'config = { "broker.session.timeout.ms" = 2000, "broker.heartbeat.interval.ms" = 500 }'
PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 3 }'


def _behind(kind: Kind, *steps: str, more: str = "", nth: int = -1) -> list[str]:
    """The parts behind an event of a kind, the last one by default."""
    known = scenario(PRODUCE, *steps, more=more, cluster=SESSION, until="20s")
    replays = replays_of(known)
    events = [e.n for e in replays.base.events if e.kind is kind and e.t_us > 0]
    assert events, kind
    return names(Culprits(replays.base.events, replays.parts).behind([events[nth]]))


@pytest.mark.parametrize(
    ("steps", "more", "parts"),
    [
        (['id = "x"; at = "3s"; crash = { node = "b1" }'], "", ["x"]),
        (['id = "x"; at = "3s"; crash = { node = "b1", how = "power" }'], "", ["x"]),
        (['id = "x"; at = "3s"; pause = "b1"'], "", ["x"]),
        (['id = "x"; at = "3s"; cut = { from = "b1", to = "c1" }'], "", ["x"]),
        (['id = "x"; at = "3s"; partition = [["b1"], ["c1"]]'], "", ["x"]),
        ([], fault('id = "x"; kind = "crash"; target = "b1"; start = "3s"'), ["x"]),
        ([], fault('id = "x"; kind = "pause"; target = "b1"; start = "3s"'), ["x"]),
        ([], fault('id = "x"; kind = "cut"; target = "b1"; start = "3s"'), ["x"]),
        ([], fault('id = "x"; kind = "pause"; target = ["b1", "b2"]; start = "3s"'), ["x"]),
    ],
)
def test_a_fencing_goes_back_to_what_silenced_the_broker(
    steps: list[str], more: str, parts: list[str]
) -> None:
    other = 'id = "other"; at = "2s"; cut = { from = "b2", to = "b3", only = ["FetchRequest"] }'
    assert _behind(Kind.FENCE, other, *steps, more=more) == parts


def test_an_election_goes_back_to_what_its_operator_did() -> None:
    other = 'reassign = { partition = "orders-0", replicas = ["b2", "b1", "b3"] }'
    steps = (
        f'id = "away"; at = "2s"; {other}',
        'id = "x"; at = "4s"; elect = { partition = "orders-0", kind = "preferred" }',
    )
    assert _behind(Kind.ELECT, *steps) == ["x"]


def test_an_election_goes_back_to_a_shutdown() -> None:
    assert _behind(Kind.ELECT, 'id = "x"; at = "3s"; shutdown = "b1"', nth=0) == ["x"]


def test_a_start_goes_back_to_the_end_before_it() -> None:
    steps = ('id = "x"; at = "3s"; crash = { node = "b2" }', 'at = "8s"; start = "b2"')
    assert _behind(Kind.START, *steps) == ["x"]


def test_a_crash_long_over_is_not_behind_a_later_fencing() -> None:
    steps = (
        'id = "early"; at = "2s"; crash = { node = "b1" }',
        'at = "5s"; start = "b1"',
        'id = "x"; at = "10s"; cut = { from = "b1", to = "c1" }',
    )
    assert _behind(Kind.FENCE, *steps) == ["x"]


def test_a_cut_that_was_healed_in_time_is_not_behind_a_later_fencing() -> None:
    steps = (
        'id = "early"; at = "2s"; partition = [["b1"], ["c1"]]',
        'at = "2.9s"; heal = "early"',
        'id = "x"; at = "10s"; crash = { node = "b1" }',
    )
    assert _behind(Kind.DROP, *steps, nth=0) == ["early"]
    assert _behind(Kind.FENCE, *steps) == ["x"]


def test_damage_and_failpoints_are_the_parts_that_name_them() -> None:
    damage = 'id = "x"; at = "3s"; corrupt = { node = "b2", partition = "orders-0", offset = 1 }'
    assert _behind(Kind.CORRUPT, damage) == ["x"]
    point = 'id = "x"; at = "3s"; crash = { node = "b1", at_failpoint = "produce-appended" }'
    assert _behind(Kind.CRASH, point, 'at = "4s"; ' + PRODUCE.partition("; ")[2]) == ["x"]


def test_the_beginning_of_the_world_goes_back_to_nothing() -> None:
    replays = replays_of(scenario(PRODUCE, 'at = "3s"; crash = { node = "b1" }'))
    culprits = Culprits(replays.base.events, replays.parts)
    assert culprits.behind([1, 0, -3, 10**9]) == ()
    assert culprits.part_of(1) is None
