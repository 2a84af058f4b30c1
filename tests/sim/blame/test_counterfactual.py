"""Runs without parts: everything else is as it was, and what cannot act is passed over."""

from __future__ import annotations

import pytest

from sim.blame.blaming import target_of
from sim.blame.counterfactual import BudgetEnded, Fate, Replay, Replays, fates
from sim.blame.culprits import Culprits
from sim.blame.parts import PartUnknown, named, parts_of
from sim.checks.ledger import Loss
from sim.checks.ranges import Span
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from tests.sim.blame.cases import (
    ALONE,
    NOTHING_SYNCED,
    first_difference,
    part,
    power_cuts,
    replays_of,
    shipped,
    shipped_all,
    without_expectations,
)
from tests.sim.running.scenarios import fault, scenario

PRODUCE = 'produce = { to = "orders-0", count = 3 }'
FAULTS = "".join(
    (
        fault('id = "gc"; kind = "pause"; target = "b3"; start = "2s"; end = "3s"'),
        fault(
            'id = "slow"; kind = "slow"; target = "b2"; disk = 3; '
            "start = { when = \"leo('orders-0', b2) >= 3\" }; "
            "end = { when = \"leo('orders-0', b2) >= 6\" }"
        ),
        fault('id = "two"; kind = "slow"; target = ["b1", "b2"]; cpu = 2; start = "4s"'),
    )
)


def _many_faults() -> Replays:
    known = scenario(
        'at = "1s"; ' + PRODUCE,
        'at = "5s"; ' + PRODUCE,
        'id = "late"; after = "gc"; delay = "4s"; crash = { node = "b3" }',
        'after = "slow"; delay = "7s"; start = "b3"',
        more=FAULTS,
    )
    return replays_of(known)


# The rest is as it was ---------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "variant"), shipped_all())
def test_up_to_its_own_first_event_a_run_without_a_part_is_the_same(
    name: str, variant: str | None
) -> None:
    for scheduler in ("seeded", "pct"):
        known = without_expectations(shipped(name, variant), scheduler=scheduler)
        _check_beginnings(replays_of(known))


def test_so_it_is_without_a_fault() -> None:
    replays = _many_faults()
    assert [each.name for each in replays.parts] == ["gc", "slow", "two", "late"]
    _check_beginnings(replays)


def _check_beginnings(replays: Replays) -> None:
    base = replays.base
    assert replays.without(()).result.digest == base.result.digest
    culprits = Culprits(base.events, replays.parts)
    for each in replays.parts:
        first = next(e.n for e in base.events if culprits.part_of(e.n) == each)
        other = replays.without([each])
        assert first_difference(base.events, other.events) == first, each.name


def test_a_difference_is_noticed() -> None:
    """The comparison above can fail: another seed differs from the beginning on."""
    known = without_expectations(shipped("leader_crash_acks1"))
    one, other = Replays(known), Replays(known, 8)
    assert first_difference(one.base.events, other.base.events) < 100


def test_what_is_left_out_is_gone() -> None:
    replays = _many_faults()
    for each in replays.parts:
        other = replays.without([each])
        culprits = Culprits(other.events, replays.parts)
        assert all(culprits.part_of(e.n) != each for e in other.events), each.name


@pytest.mark.parametrize(("name", "variant"), shipped_all())
def test_the_same_record_has_the_same_value_in_both_runs(name: str, variant: str | None) -> None:
    replays = replays_of(shipped(name, variant))
    for each in replays.parts:
        other = replays.without([each])
        compared = 0
        for operation, acked in replays.base.facts.acked_records.items():
            again = other.acked(replays.base.identity(operation))
            if again is not None:
                compared += 1
                values = [
                    run.facts.value_of(a.partition, a.epoch, a.offset)
                    for run, a in ((replays.base, acked), (other, again))
                ]
                assert values[0] == values[1] is not None
        assert compared, each.name


def test_a_record_is_found_where_its_offset_is_another() -> None:
    known = scenario(
        'id = "away"; at = "1s"; pause = "a"',
        'id = "b"; at = "2s"; produce = { to = "orders-0", count = 2, client = "b" }',
        'at = "4s"; resume = "a"',
        more='[[workload]]\nname = "a"\nkind = "producer"\ntopic = "orders-0"\nrate = 1\n'
        'start = "0.5s"\nstop = "1.9s"\n',
    )
    replays = replays_of(known)
    other = replays.without([part(replays, "away")])
    for identity in (("a", 1), (2, 0), (2, 1)):
        one, two = replays.base.acked(identity), other.acked(identity)
        assert one is not None
        assert two is not None
        assert one.offset != two.offset
        assert replays.base.facts.value_of(one.partition, one.epoch, one.offset) == (
            other.facts.value_of(two.partition, two.epoch, two.offset)
        )


# Steps that find nothing to do -------------------------------------------------------------------


def _passed_over(replay: Replay) -> list[int]:
    return [each.step for each in replay.result.passed_over]


def test_a_start_whose_crash_is_gone_is_passed_over_and_the_run_goes_on() -> None:
    known = scenario(
        'id = "fall"; at = "1s"; crash = { node = "b3" }',
        'at = "2s"; start = "b3"',
        'at = "3s"; ' + PRODUCE,
    )
    replays = replays_of(known)
    other = replays.without([part(replays, "fall")])
    assert _passed_over(other) == [2]
    assert other.result.failure is None
    assert len(other.facts.acked_records) == 3
    assert other.result.end_us == replays.base.result.end_us


def test_a_wait_that_never_holds_holds_nothing_up() -> None:
    known = scenario(
        'id = "fall"; at = "1s"; crash = { node = "b1" }',
        'wait = "leader(\'orders-0\') == b2"; within = "15s"',
        'id = "then"; crash = { node = "b2" }',
        until="30s",
    )
    replays = replays_of(known)
    other = replays.without([part(replays, "fall")])
    begun = [e.t_us for run in (replays.base, other) for e in run.events if _begins(e, "then")]
    assert len(begun) == 2
    assert begun[0] == begun[1] > 2_000_000
    assert 2 in _passed_over(other)


def test_a_failpoint_that_is_not_reached_holds_nothing_up() -> None:
    known = scenario(
        'id = "point"; at = "1s"; crash = { node = "b1", at_failpoint = "metadata-applied" }',
        'id = "new"; at = "2s"; config = { topic = "orders", set = { "retention.ms" = "9000" } }',
        'id = "then"; after = "point"; produce = { to = "orders-0", count = 1, acks = "1" }',
        until="40s",
    )
    replays = replays_of(known)
    assert replays.base.result.failure is None
    other = replays.without([part(replays, "new")])
    begun = [e.t_us for run in (replays.base, other) for e in run.events if _begins(e, "then")]
    assert len(begun) == 2
    assert begun[0] == begun[1]
    crashes = [
        [e.node for e in run.events if e.kind is Kind.CRASH] for run in (replays.base, other)
    ]
    assert crashes == [["b1"], []]


def test_a_step_behind_a_fault_that_is_gone_keeps_its_time() -> None:
    replays = _many_faults()
    for gone in ("gc", "slow"):
        other = replays.without([part(replays, gone)])
        assert other.result.moments.steps == replays.base.result.moments.steps


def test_a_heal_of_two_faults_heals_the_one_that_is_left() -> None:
    known = scenario(
        'id = "one"; at = "1s"; cut = { from = "b1", to = "b2" }',
        'id = "other"; at = "1s"; cut = { from = "b1", to = "b3" }',
        'at = "2s"; heal = ["one", "other"]',
    )
    replays = replays_of(known)
    other = replays.without([part(replays, "one")])
    assert [e.args["id"] for e in other.events if e.kind is Kind.HEAL] == ["other"]


def test_a_start_of_two_nodes_starts_the_one_that_is_down() -> None:
    known = scenario(
        'id = "one"; at = "1s"; crash = { node = "b2" }',
        'id = "other"; at = "1s"; crash = { node = "b3" }',
        'at = "2s"; start = ["b2", "b3"]',
    )
    replays = replays_of(known)
    other = replays.without([part(replays, "one")])
    assert [e.node for e in other.events if e.kind is Kind.START and e.t_us > 0] == ["b3"]
    assert _passed_over(other) == [3]


def test_without_a_wiped_disk_a_node_starts_on_its_own() -> None:
    known = scenario(
        'at = "1s"; ' + PRODUCE,
        'id = "fall"; at = "3s"; crash = { node = "b3" }',
        'id = "new"; at = "4s"; start = { node = "b3", disk = "wiped" }',
    )
    replays = replays_of(known)
    assert [each.name for each in replays.parts] == ["fall", "new"]
    disks = []
    for run in (replays.base, replays.without([part(replays, "new")])):
        starts = [e for e in run.events if e.kind is Kind.START and e.node == "b3" and e.t_us > 0]
        disks.append([e.args.get("disk", "same") for e in starts])
    assert disks == [["wiped"], ["same"]]


def _begins(event: Event, step: str) -> bool:
    args = event.args
    return args.get("id") == step and "done" not in args and "step" in args


# Fates and names ---------------------------------------------------------------------------------


def test_the_records_of_a_loss_survive_without_what_took_them() -> None:
    replays = replays_of(power_cuts(3))
    (loss,) = replays.base.facts.losses()
    other = replays.without([part(replays, "cut-3")])
    assert [each.fate for each in fates(replays.base, other, loss)] == [Fate.SURVIVES]


def test_they_are_lost_otherwise_where_something_else_takes_them() -> None:
    replays = replays_of(power_cuts(3, 6))
    loss = replays.base.facts.losses()[0]
    other = replays.without([part(replays, "cut-3")])
    (found,) = fates(replays.base, other, loss)
    assert (found.fate, found.start, found.end) == (Fate.LOST, 0, 3)
    assert found.loss is not None
    assert found.loss.event > loss.event


def test_a_record_that_nobody_was_told_of_is_known_by_its_value() -> None:
    known = scenario(
        'at = "1s"; produce = { to = "orders-0", values = ["x"], acks = "1", client = "q" }',
        topic=ALONE,
        cluster=NOTHING_SYNCED,
    )
    replays = replays_of(known)
    ((operation, acked),) = replays.base.facts.acked_records.items()
    span = (Span(acked.epoch, acked.offset, acked.offset + 1),)
    loss = Loss("serving", 1, "orders-0", "b1", 1, span, "power", 1, True, False)
    identity = replays.base.identity(operation)
    assert replays.base.lost_records(loss) == [(span[0], identity)]
    assert isinstance(replays.base.facts.acked_records, dict)
    replays.base.facts.acked_records.clear()
    assert replays.base.lost_records(loss) == [(span[0], identity)]


def test_no_more_runs_are_made_than_are_allowed() -> None:
    replays = replays_of(power_cuts(3), runs_max=1)
    replays.without(())
    with pytest.raises(BudgetEnded, match="1 runs were made"):
        replays.without(())


def test_an_unknown_part_gets_a_hint() -> None:
    with pytest.raises(PartUnknown, match='no part "cut-4", there are cut-3; did you mean "cut-3"'):
        named(parts_of(power_cuts(3)), "cut-4")


def test_a_run_out_of_events_has_not_ended() -> None:
    count = Replays(power_cuts(3)).base.result.trace.count
    assert Replays(power_cuts(3), events_max=count).base.has_ended
    assert not Replays(power_cuts(3), events_max=count // 2).base.has_ended


def test_a_run_that_failed_early_is_made_again_up_to_there() -> None:
    known = scenario(
        'at = "1s"; produce = { to = "orders-0", count = 3, acks = "1" }',
        'id = "cut"; at = "3s"; crash = { node = "b1", how = "power" }',
        'at = "3.5s"; start = "b1"',
        'wait = "leo(\'orders-0\') == 99"; within = "25s"',
        'id = "never"; crash = { node = "b1" }',
        topic=ALONE,
        cluster=NOTHING_SYNCED,
        until="40s",
    )
    replays = replays_of(known)
    assert replays.base.result.failure is not None
    other = replays.without([part(replays, "cut")])
    assert other.result.end_us == replays.base.result.end_us == 28_500_000
    assert not any(_begins(e, "never") for e in other.events)
    assert replays.begun_us(part(replays, "never")) is None
    (loss,) = replays.base.facts.losses()
    assert [each.fate for each in fates(replays.base, other, loss)] == [Fate.SURVIVES]


def test_records_that_came_back_are_compared_by_whether_they_were_ever_lost() -> None:
    replays = replays_of(shipped("kip279_fast_failover", "fetch"))
    base, (back, lasting) = replays.base, replays.base.facts.losses()
    assert (base.is_final(back), base.is_final(lasting)) == (False, True)
    same = replays.without(())
    for loss in (back, lasting):
        assert [each.fate for each in fates(base, same, loss)] == [Fate.LOST]
    assert [each.fate for each in fates(base, replays.without(replays.parts), back)] == [
        Fate.SURVIVES
    ]
    assert target_of(replays).losses == (lasting,)


def test_nothing_comes_early_where_what_held_it_up_is_gone() -> None:
    known = scenario(
        'id = "still"; at = "1s"; pause = "b1"',
        'at = "1.2s"; ' + PRODUCE,
        'id = "then"; crash = { node = "b3" }',
        'at = "3s"; resume = "b1"',
        more=fault(
            'id = "slow"; kind = "slow"; target = "b2"; disk = 3; '
            "start = { when = \"leo('orders-0', b2) == 3\" }; "
            'end = { when = "not alive(b3)" }'
        ),
    )
    replays = replays_of(known)
    moments = replays.base.result.moments
    assert moments.steps[3] > 3_000_000
    assert moments.faults["slow"] > 3_000_000
    other = replays.without([part(replays, "still")])
    assert other.result.moments == moments
    assert other.facts.acked() == 3
