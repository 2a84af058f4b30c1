"""The necessity test: each outcome, planted; and that the shipped scenarios' culprits are needed.

Losses get their licences and culprits here, so that right and wrong ones can be tried.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve

from sim.blame import necessity as module
from sim.blame.counterfactual import Fate, Replay, Replays
from sim.blame.culprits import Culprits
from sim.blame.necessity import NotTheSame, Trial, necessity
from sim.checks.facts import Facts
from sim.checks.ledger import Loss
from sim.scenario.model import Scenario
from sim.trace.kinds import Kind
from tests.sim.blame.cases import NOTHING_SYNCED, names, power_cuts, replays_of, shipped
from tests.sim.running.scenarios import scenario


def _step(replays: Replays, step: str) -> int:
    """The event with which a step begins."""
    return next(
        e.n for e in replays.base.events if e.kind is Kind.STEP and e.args.get("id") == step
    )


def _tested(known: Scenario, licence: str, *culprits: str) -> Trial:
    """The first loss, with a licence and culprits of our own."""
    replays = replays_of(known)
    loss = replays.base.facts.losses()[0]
    numbers = tuple(_step(replays, each) for each in culprits)
    losses = [evolve(loss, licence=licence, culprits=numbers)]
    found = necessity(known, losses=losses, digest=replays.base.result.digest)
    (tested,) = found.tested
    return tested


# Outcomes ----------------------------------------------------------------------------------------


def test_a_culprit_that_was_needed_is_confirmed() -> None:
    found = _tested(power_cuts(3), "L2", "cut-3")
    assert (found.outcome, found.parts, found.licence) == ("confirmed", ("cut-3",), "L2")
    assert [each.fate for each in found.ranges] == [Fate.SURVIVES]


def test_a_loss_that_comes_about_by_another_part_too_is_overdetermined() -> None:
    found = _tested(power_cuts(3, 6), "L2", "cut-3")
    assert (found.outcome, found.others, found.licence) == ("overdetermined", ("cut-6",), "L2")
    assert [each.fate for each in found.ranges] == [Fate.LOST]


def test_all_cited_parts_are_left_out_together() -> None:
    found = _tested(power_cuts(3, 6), "L2", "cut-3", "cut-6")
    assert (found.outcome, found.parts) == ("confirmed", ("cut-3", "cut-6"))


def test_a_record_that_is_never_acknowledged_without_the_culprit_proves_nothing() -> None:
    known = scenario(
        'at = "1s"; crash = { node = "b2" }',
        "wait = \"isr('orders-0') == {b1}\"",
        'id = "lower"; config = { topic = "orders", set = { "min.insync.replicas" = "1" } }',
        'produce = { to = "orders-0", count = 3, acks = "all", timeout = "3s" }',
        'crash = { node = "b1", how = "power" }',
        'at = "30s"; start = "b1"',
        topic='[[topic]]\nname = "orders"\nreplicas = [["b1", "b2"]]\n'
        'config = { "min.insync.replicas" = 2 }\n',
        cluster=NOTHING_SYNCED,
        until="45s",
    )
    found = _tested(known, "L2", "lower")
    assert found.outcome == "never-acknowledged"
    assert [each.fate for each in found.ranges] == [Fate.NEVER_ACKED]


def test_a_loss_without_any_step_is_not_tested_where_the_configuration_explains_it() -> None:
    known = power_cuts(3)
    replays = replays_of(known)
    boot = evolve(replays.base.facts.losses()[0], licence="L3", culprits=(1,))
    (found,) = necessity(known, losses=[boot]).tested
    assert (found.outcome, found.parts) == ("untested", ())


def test_culprits_that_no_part_is_behind_stand_for_all_that_had_begun() -> None:
    known = power_cuts(3)
    loss = evolve(replays_of(known).base.facts.losses()[0], licence="L2", culprits=(1,))
    (found,) = necessity(known, losses=[loss]).tested
    assert (found.outcome, found.parts, found.is_coarse) == ("confirmed", ("cut-3",), True)


class _Stubborn(Replays):
    """Runs without something that come out as if it were there: a ledger that is wrong."""

    def without(self, parts: Iterable[Any], **_: Any) -> Replay:
        return super().without(())


def test_a_loss_that_nothing_else_explains_is_refuted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Replays", _Stubborn)
    found = _tested(power_cuts(3), "L2", "cut-3")
    assert (found.outcome, found.licence) == ("refuted", "UNEXPLAINED")
    assert found.plain()["licence"] == "UNEXPLAINED"
    assert found.plain()["claimed"] == "L2"


@pytest.mark.parametrize(
    ("licence", "outcome"),
    [
        ("L1", "overdetermined"),
        ("L2", "overdetermined"),
        ("ILLEGAL", "refuted"),
        ("UNEXPLAINED", "refuted"),
    ],
)
def test_under_which_licence_they_are_lost_otherwise_decides(
    monkeypatch: pytest.MonkeyPatch, licence: str, outcome: str
) -> None:
    known = power_cuts(3, 6)
    losses_of = Facts.losses_of

    def licensed(facts: Facts, place: Any) -> list[Loss]:
        return [evolve(each, licence=licence) for each in losses_of(facts, place)]

    monkeypatch.setattr(Facts, "losses_of", licensed)
    assert _tested(known, "L2", "cut-3").outcome == outcome


# Why the lead moved ------------------------------------------------------------------------------

QUICK = """
writeback = "off"
[cluster.config]
"broker.session.timeout.ms" = 2000
"broker.heartbeat.interval.ms" = 500
"leader.imbalance.check.interval.seconds" = 5
"""
PAIR = '[[topic]]\nname = "orders"\nreplicas = [["b1", "b2"]]\n'
# Three records that nobody has fetched when the lead goes back to the preferred replica, at 10s.
UNFETCHED = (
    'at = "9s"; cut = { from = "LEADER", to = "OTHER", only = ["FetchResponse"] }',
    'at = "9500ms"; produce = { to = "orders-0", count = 3, acks = "1" }',
)


def _moved(*steps: str) -> Trial:
    """The only loss of a run, with the culprits that the ledger names."""
    known = scenario(*steps, topic=PAIR, cluster=QUICK, until="20s")
    (found,) = necessity(known).tested
    assert found.loss.licence == "L0"
    assert (found.outcome, found.is_coarse) == ("confirmed", False)
    return found


def _unfetched(leader: str, other: str) -> list[str]:
    return [each.replace("LEADER", leader).replace("OTHER", other) for each in UNFETCHED]


def test_the_lead_goes_back_because_something_had_moved_it_away() -> None:
    away = ('id = "away"; at = "6s"; shutdown = "b1"', 'start = "b1"')
    assert _moved(*away, *_unfetched("b2", "b1")).parts == ("away",)


def test_the_lead_goes_to_who_is_preferred_since_a_reassignment() -> None:
    turn = 'id = "turn"; at = "6s"; reassign = { partition = "orders-0", replicas = ["b2", "b1"] }'
    assert _moved(turn, *_unfetched("b1", "b2")).parts == ("turn",)


def test_what_ended_the_last_lead_counts_though_others_were_elected_since() -> None:
    """b2 is elected and fenced in its sleep, and elected again when it is awake."""
    found = _moved(
        'at = "3s"; cut = { from = "b1", to = "b2", only = ["FetchResponse"] }',
        'at = "4s"; produce = { to = "orders-0", count = 3, acks = "1" }',
        'id = "kill"; at = "5s"; crash = { node = "b1", how = "process" }',
        'id = "sleep"; at = "5600ms"; pause = "b2"',
        'at = "12s"; resume = "b2"',
    )
    assert found.loss.leader_epoch == 3
    assert "kill" in found.parts


# All of them -------------------------------------------------------------------------------------

LOSING = (
    ("kip101_divergence", "fetch", ["step 9"]),
    ("kip101_lost_write", "high-watermark", ["first", "second"]),
    ("kip279_fast_failover", "fetch", ["step 6"]),
    ("leader_crash_acks1", None, ["kill"]),
    ("min_isr_freeze", "without ELR", ["dark"]),
    ("partition_unclean", "unclean on", ["kill"]),
)


@pytest.mark.parametrize(("name", "variant", "parts"), LOSING)
def test_elections_power_cuts_and_truncations_lead_to_the_steps_behind_them(
    name: str, variant: str | None, parts: list[str]
) -> None:
    known = shipped(name, variant)
    replays = replays_of(known)
    loss = replays.base.facts.losses()[0]
    elected = [e.n for e in replays.base.events if e.kind is Kind.ELECT and e.n < loss.event]
    culprits = tuple(each for each in (loss.cause or elected[-1], elected[-1]) if each)
    if loss.how == "power":
        culprits = (loss.cause,)
    found = Culprits(replays.base.events, replays.parts).behind(culprits)
    assert names(found) == parts
    (tested,) = necessity(known, losses=[evolve(loss, licence="L1", culprits=culprits)]).tested
    assert tested.outcome == "confirmed"


def test_losses_of_the_same_parts_take_one_run() -> None:
    known = shipped("min_isr_freeze", "without ELR")
    losses = [evolve(each, licence="L2") for each in replays_of(known).base.facts.losses()]
    assert len(losses) == 2
    assert necessity(known, losses=losses).runs == 1


def test_losses_without_a_licence_take_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "Replays", None)
    loss = Loss("serving", 1, "orders-0", "b1", 1, (), "power", 1, True, False, "ILLEGAL")
    assert necessity(power_cuts(3), losses=[loss]).plain() == {"runs": 0, "losses": []}


def test_a_run_that_comes_out_otherwise_is_told() -> None:
    loss = Loss("serving", 1, "orders-0", "b1", 1, (), "power", 1, True, False, "L2")
    with pytest.raises(NotTheSame, match="digest was 00, made again it is"):
        necessity(power_cuts(3), losses=[loss], digest="00")


def test_the_answer_is_the_same_twice() -> None:
    known = shipped("kip279_fast_failover", "fetch")
    losses = [evolve(each, licence="L0") for each in replays_of(known).base.facts.losses()]
    one, other = (necessity(known, losses=losses) for _ in range(2))
    assert one == other
    assert one.plain() == other.plain()
    assert [str(each) for each in one.tested] == [str(each) for each in other.tested]
