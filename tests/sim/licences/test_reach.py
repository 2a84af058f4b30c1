"""How far a licence reaches: which records an election, a quarantine or a new minimum excuses.

Runs in which something legal happens first, and must not cover what comes behind it.
"""

from __future__ import annotations

from typing import Any

import pytest

from cluster.controller_state import ControllerState
from cluster.errors import ErrorCode
from cluster.messages_control import ElectLeadersRequest, ElectLeadersResponse, PartitionError
from cluster.names import TopicIdPartition
from cluster.partition_changes import next_record
from sim.checks.judge import Judge
from sim.checks.ledger import Ledger
from sim.checks.ranges import Records, Span
from sim.checks.standing import Elected
from sim.running.scenario_run import Result
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import expect, failed, fault, of_kind, passed, ran

CONFIG = """
writeback = "off"
{more}
[cluster.config]
"broker.session.timeout.ms" = 2000
"broker.heartbeat.interval.ms" = 500
"replica.lag.time.max.ms" = 3000
{tables}
"""
THREE = """
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
config = {{ "min.insync.replicas" = {min_isr} }}
"""


def cluster(more: str = "", tables: str = "") -> str:
    return CONFIG.format(more=more, tables=tables)


def run(*steps: str, **parts: Any) -> tuple[Result, Judge]:
    worlds: list[World] = []
    result = ran(*steps, on_world=worlds.append, **parts)
    return result, Judge.of(worlds[0])


# What others have --------------------------------------------------------------------------------

# Whoever is back before its old life is over is registered at once, and stays in sync.
UNGUARDED = """
[cluster.guards]
"registration-incarnation" = false
"unclean-restart-leaves-isr" = false
"""
TWO = THREE.replace(', "b3"', "")


def test_a_member_that_dies_just_before_the_election_still_had_what_the_leader_lost() -> None:
    """b2 was in sync with b1 when it came back empty. That b1 has left the ISR since, which made
    b2 the leader, does not make b2 the last that knew.
    """
    _, judge = run(
        'at = "1s"; produce = { to = "orders-0", count = 3 }',
        'settle = "2s"',
        'at = "4s"; cut = { from = "b1", to = "b2", only = ["FetchResponse"] }',
        'at = "5s"; crash = { node = "b2", how = "power" }',
        'start = "b2"',
        'at = "6s"; crash = { node = "b1", how = "process" }',
        until="20s",
        cluster=cluster("", UNGUARDED).replace('max.ms" = 3000', 'max.ms" = 30000'),
        topic=TWO.format(min_isr=1),
    )
    (loss,) = judge.facts.losses()
    assert (loss.leader, loss.how, loss.records) == ("b2", "power", 3)
    assert loss.licence == "ILLEGAL"


def test_both_members_lost_the_records_and_neither_is_the_last() -> None:
    """As above, and b1 loses its power in the same moment: nobody is left that could know."""
    _, judge = run(
        'at = "1s"; produce = { to = "orders-0", count = 3 }',
        'settle = "2s"',
        'at = "4s"; cut = { from = "b1", to = "b2", only = ["FetchResponse"] }',
        'at = "5s"; crash = { node = "b1", how = "power" }',
        'at = "5s"; crash = { node = "b2", how = "power" }',
        'start = "b2"',
        until="20s",
        cluster=cluster("", UNGUARDED).replace('max.ms" = 3000', 'max.ms" = 30000'),
        topic=TWO.format(min_isr=1),
    )
    (loss,) = judge.facts.losses()
    assert (loss.leader, loss.how, loss.licence) == ("b2", "power", "L2")
    assert "every member of the ISR" in loss.rule


def test_a_record_that_rots_elsewhere_excuses_none_of_its_neighbours() -> None:
    """b1 cuts three records behind damage. Of one the other copies are damaged too."""
    _, judge = run(
        'at = "1s"; produce = { to = "orders-0", count = 5 }',
        'settle = "2s"',
        'at = "4s"; corrupt = { node = "b1", partition = "orders-0", offset = 2 }',
        'corrupt = { node = "b2", partition = "orders-0", offset = 3 }',
        'corrupt = { node = "b3", partition = "orders-0", offset = 3 }',
        'at = "5s"; crash = { node = "b1", how = "process" }',
        'start = "b1"',
        until="20s",
        cluster=cluster("", UNGUARDED),
        topic=THREE.format(min_isr=1),
    )
    judged = {each.licence: [(s.start, s.end) for s in each.spans] for each in judge.facts.losses()}
    assert judged == {"ILLEGAL": [(2, 3), (4, 5)], "L4": [(3, 4)]}


# Elections from outside --------------------------------------------------------------------------

# b2 waits for an answer of b3, out of sync, is forced to lead, and writes; then the answer comes.
LATE_ANSWER = (
    'at = "1s"; produce = { to = "orders-0", count = 3, batch = 3 }',
    'settle = "2s"',
    (
        'id = "late"; at = "4s"; cut = { from = "b3", to = "b2", '
        'only = ["OffsetsForLeaderEpochResponse"], in_flight = "hold" }'
    ),
    (
        'id = "not-yet"; cut = { from = "b2", to = "b3", '
        'only = ["OffsetsForLeaderEpochRequest"], in_flight = "hold" }'
    ),
    'reassign = { partition = "orders-0", replicas = ["b3", "b1", "b2"] }',
    'elect = { partition = "orders-0", kind = "preferred" }',
    'id = "b3-leads"; wait = "leader(\'orders-0\') == b3"',
    'id = "asks"; after = "b3-leads"; delay = "1s"; heal = "not-yet"',
    'id = "alone"; after = "asks"; wait = "isr(\'orders-0\') == {b3, b1}"',
    (
        'after = "alone"; delay = "1s"; '
        'elect = { partition = "orders-0", kind = "unclean", to = "b2", force = true }'
    ),
    "wait = \"leader('orders-0') == b2 and isr('orders-0') == {b1, b2, b3}\"",
    'id = "xy"; produce = { to = "orders-0", values = ["X", "Y"], batch = 2, client = "p2" }',
    'after = "xy"; delay = "1s"; heal = "late"',
    'settle = "10s"',
)


def test_an_unclean_election_does_not_excuse_what_was_written_behind_it() -> None:
    guards = '[cluster.guards]\n"epoch-answer-is-current" = false'
    result, judge = run(
        *LATE_ANSWER,
        until="60s",
        cluster=cluster('truncation = "kip-279"', guards),
        topic=THREE.format(min_isr=1),
    )
    assert len(of_kind(result, Kind.ELECT, unclean=True)) == 1
    (loss,) = judge.facts.losses()
    assert (loss.licence, loss.how, list(loss.spans)) == ("ILLEGAL", "truncated", [Span(2, 3, 5)])
    assert "committed-durability" in {each.check for each in judge.violations}


def parted(*elections: tuple[int, list[Span]]) -> Ledger:
    ledger = Ledger(TopicIdPartition("id", "orders", 0))
    ledger.parted = [(epoch, Records(had)) for epoch, had in elections]
    return ledger


OLD = Span(1, 5, 8)


@pytest.mark.parametrize(
    ("elections", "found"),
    [
        ([], []),
        ([(3, [])], [(3, [OLD])]),
        ([(3, [Span(1, 0, 6)])], [(3, [Span(1, 6, 8)])]),
        ([(3, [Span(1, 0, 8)])], []),
        ([(1, [])], []),
        ([(3, []), (5, [])], [(3, [OLD])]),
        ([(3, [OLD]), (5, [])], [(5, [OLD])]),
        ([(3, []), (5, [OLD])], []),
    ],
    ids=["none", "had-none", "had-some", "had-all", "own", "first", "second", "back-again"],
)
def test_an_unclean_leader_parts_with_what_it_did_not_have(
    elections: list[tuple[int, list[Span]]], found: list[tuple[int, list[Span]]]
) -> None:
    assert parted(*elections).parted_by([OLD]) == found


START = ('at = "2s"; produce = { to = "orders-0", values = ["k", "l"] }', 'settle = "2s"')


@pytest.mark.parametrize(
    ("how", "unclean", "back", "licence"),
    [("process", "true", ["b2"], "L1"), ("power", "false", ["b2", "b1"], "L2")],
    ids=["b1-is-eligible", "nobody-is"],
)
def test_the_last_leader_known_is_elected_as_such_only_where_nobody_is_eligible(
    how: str, unclean: str, back: list[str], licence: str
) -> None:
    """While b1 is eligible, b2 leads because the topic allows anybody. Once both have come back
    unclean, b2 leads because there is nobody else: decided while b1 registers.
    """
    steps = [
        *START,
        f'crash = {{ node = "b1", how = "{how}" }}',
        'wait = "fenced(b1)"',
        'crash = { node = "b2", how = "power" }',
        'wait = "fenced(b2)"',
        f'start = "{back[0]}"',
        f'wait = "not fenced({back[0]})"',
        *[f'start = "{node}"' for node in back[1:]],
        f"wait = \"leader('orders-0') == {back[0]}\"",
    ]
    config = f'"min.insync.replicas" = 2, "unclean.leader.election.enable" = {unclean}'
    passed(
        *steps,
        until="30s",
        cluster=cluster("eligible_leader_replicas = true"),
        topic=PAIR.replace('"unclean.leader.election.enable" = true', config),
        more=expect(f"allow = {{ {licence} = 2 }}"),
    )


@pytest.mark.parametrize(
    ("kinds", "epoch", "first"),
    [
        ({3: "unclean"}, 3, 3),
        ({3: "unclean", 5: "last-known"}, 5, 3),
        ({3: "last-known", 5: "unclean"}, 5, 5),
        ({3: "last-known", 5: "last-known"}, 5, 5),
        ({3: "unclean", 5: "unclean"}, 4, 3),
        ({3: "clean"}, 3, None),
        ({5: "unclean"}, 4, None),
    ],
)
def test_of_elections_in_a_row_the_first_that_was_allowed_explains_a_loss(
    kinds: dict[int, str], epoch: int, first: int | None
) -> None:
    ledger = Ledger(TopicIdPartition("id", "orders", 0))
    for each, kind in kinds.items():
        ledger.standing.elected[each] = Elected(each, kind, each)
        if kind != "clean":
            ledger.unclean_epochs.add(each)
    found = ledger.outside(epoch)
    assert (None if found is None else found.epoch) == first


# The controller elects b2 from outside, and loses power before that is durable. Nobody was told.
FORGOTTEN = (
    'at = "2s"; produce = { to = "orders-0", values = ["k"] }',
    "wait = \"isr('orders-0') == {b1}\"",
    'id = "mute"; at = "20s"; cut = { from = "b1", to = "c1", both = true }',
    'at = "24s"; crash = { node = "c1", how = "power" }',
    'heal = "mute"',
    'start = "c1"',
    'at = "30s"; wait = "isr(\'orders-0\') == {b1, b2}"',
    'crash = { node = "b1" }',
    "wait = \"leader('orders-0') == b2\"",
    'start = "b1"',
)
PAIR = """
[[topic]]
name = "orders"
replicas = [["b1", "b2"]]
config = { "unclean.leader.election.enable" = true }
"""
SLOW_CONTROLLER = fault(
    'id = "deaf"; kind = "cut"; target = { from = "b1", to = "b2" }; only = ["FetchResponse"]; '
    'start = "1s"; end = "30s"'
) + fault('id = "slow"; kind = "stall"; target = "c1"; start = "21s"; duration = "6s"')


def test_an_election_that_the_controller_forgot_makes_no_history_unclean() -> None:
    result, judge = run(
        *FORGOTTEN,
        until="50s",
        cluster=cluster("", '"request.timeout.ms" = 1000'),
        topic=PAIR,
        more=SLOW_CONTROLLER,
    )
    assert result.verdict.word == "passed"
    first, second = of_kind(result, Kind.ELECT, "c1", leader="b2", leader_epoch=1)
    assert (first.args["unclean"], second.args["unclean"]) == (True, False)
    (ledger,) = judge.scene.ledgers.values()
    assert not ledger.was_unclean
    assert ledger.standing.elected[1].event == second.n


DEAF = fault(
    'id = "deaf"; kind = "cut"; target = { from = "b1", to = "b3" }; only = ["FetchResponse"]; '
    'start = "1s"; end = "40s"'
)
"""b3 gets no records, and leaves the ISR."""


def elect_anyway(patch: pytest.MonkeyPatch) -> None:
    """A controller that lets b3 lead whatever it is asked for."""

    def elect(state: ControllerState, request: ElectLeadersRequest) -> Any:
        record, _ = state.find(request.partitions[0])
        assert record is not None
        state.decide_change(record, next_record(record, state.circumstances(record), to="b3"))
        done = (PartitionError(request.partitions[0], ErrorCode.NONE),)
        return ElectLeadersResponse(request.correlation_id, done)

    patch.setattr("cluster.topic_admin.elect_leaders", elect)


@pytest.mark.parametrize("kind", ["preferred", "unclean"])
def test_the_operator_allows_only_what_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Neither asks for a leader from outside while members may lead."""
    elect_anyway(monkeypatch)
    steps = (
        'at = "2s"; produce = { to = "orders-0", values = ["k"] }',
        "wait = \"isr('orders-0') == {b1, b2}\"",
        f'at = "30s"; elect = {{ partition = "orders-0", kind = "{kind}" }}',
        "wait = \"leader('orders-0') == b3\"",
    )
    _, judge = run(*steps, until="50s", cluster=cluster(), topic=THREE.format(min_isr=1), more=DEAF)
    (loss,) = judge.facts.losses()
    assert loss.licence == "ILLEGAL"
    assert "nothing allowed that" in loss.rule
    assert "leader-completeness" in {each.check for each in judge.violations}


# Bits of disks -----------------------------------------------------------------------------------

ROT_AND_POWER = (
    'at = "2s"; produce = { to = "orders-0", values = ["k", "l"] }',
    'settle = "2s"',
    'shutdown = { node = "b2" }',
    'wait = "fenced(b2)"',
    'id = "rot"; corrupt = { node = "b2", partition = "orders-0", offset = 0 }',
    'crash = { node = "b1", how = "power" }',
    'wait = "fenced(b1)"',
    'start = "b2"',
    'wait = "not fenced(b2)"',
    'start = "b1"',
    "wait = \"leader('orders-0') == b1\"",
    'settle = "10s"',
)


def test_a_log_in_quarantine_counts_like_an_unclean_shutdown() -> None:
    """Both members have lost the records, one to rot and one to power, and 2 is the minimum."""
    result = passed(
        *ROT_AND_POWER,
        until="60s",
        cluster=cluster("eligible_leader_replicas = true"),
        topic=PAIR.replace('"unclean.leader.election.enable" = true', '"min.insync.replicas" = 2'),
        more=expect("allow = { L2 = 2 }", "at_end = \"elections('last-known') == 1\""),
    )
    ((loss, _),) = result.verdict.lost[0].losses
    (rot,) = of_kind(result, Kind.CORRUPT)
    assert loss.how == "power"
    assert rot.n in loss.culprits


# Replicas that are given back ---------------------------------------------------------------------


def test_a_replica_that_was_deleted_and_given_back_has_to_fetch_anew_before_it_leads() -> None:
    steps = (
        'at = "2s"; produce = { to = "orders-0", values = ["k", "l"] }',
        'settle = "2s"',
        'reassign = { partition = "orders-0", replicas = ["b1", "b2"] }',
        'at = "10s"; cut = { from = "b1", to = "b3", only = ["FetchResponse"] }',
        'reassign = { partition = "orders-0", replicas = ["b1", "b2", "b3"] }',
        "wait = \"isr('orders-0') == {b1, b2, b3}\"",
        'crash = { node = "b2" }',
        'crash = { node = "b1" }',
        "wait = \"leader('orders-0') == b3\"",
    )
    guards = '[cluster.guards]\n"join-at-high-watermark" = false\n"epoch-start-rule" = false'
    _, judge = run(*steps, until="30s", cluster=cluster("", guards), topic=THREE.format(min_isr=1))
    (loss,) = judge.facts.losses()
    assert (loss.licence, loss.how) == ("ILLEGAL", "removed")


# A new minimum -----------------------------------------------------------------------------------


def test_a_new_minimum_does_not_matter_once_enough_are_in_sync() -> None:
    """All are, when it changes: from then on the ELR keeps old records like new ones."""
    steps = (
        'at = "2s"; produce = { to = "orders-0", values = ["k", "l"] }',
        'settle = "2s"',
        'config = { topic = "orders", set = { "min.insync.replicas" = 2 } }',
        'crash = { node = "b3" }',
        'wait = "fenced(b3)"',
        'shutdown = { node = "b2" }',
        'wait = "fenced(b2)"',
        'crash = { node = "b1", how = "power" }',
        'wait = "fenced(b1)"',
        'start = "b1"',
        "wait = \"not fenced(b1) and leader('orders-0') == b1\"",
        'start = "b2"',
        'settle = "10s"',
    )
    guards = '[cluster.guards]\n"unclean-restart-leaves-isr" = false'
    _, judge = run(
        *steps,
        until="60s",
        cluster=cluster("eligible_leader_replicas = true", guards),
        topic=THREE.format(min_isr=1),
    )
    (loss,) = judge.facts.losses()
    assert loss.licence == "ILLEGAL"
    # Judged by the ELR, and not by who was the last.
    assert "shut down uncleanly 1 times" in loss.rule


DARK = ('crash = { node = "b2", how = "power" }', 'wait = "fenced(b2)"')
BACK = ('start = "b2"', "wait = \"leader('orders-0') == b2\"", 'at = "20s"; start = "b1"')
RAISED = 'config = { topic = "orders", set = { "min.insync.replicas" = 3 } }'


@pytest.mark.parametrize("steps", [(RAISED, *DARK), (*DARK, RAISED)], ids=["before", "behind"])
def test_a_minimum_that_was_raised_asks_for_no_more_unclean_shutdowns(
    steps: tuple[str, ...],
) -> None:
    """There are two replicas: 3 is no other effective minimum than 2. It empties the ELR all the
    same while somebody is in the ISR.
    """
    passed(
        *START,
        'crash = { node = "b1" }',
        'wait = "fenced(b1)"',
        *steps,
        *(['start = "b1"', 'wait = "not fenced(b1)"'] if steps[-1] == RAISED else []),
        *BACK[: 2 if steps[-1] == RAISED else 3],
        'settle = "20s"',
        until="60s",
        cluster=cluster("eligible_leader_replicas = true"),
        topic=PAIR.replace('"unclean.leader.election.enable" = true', '"min.insync.replicas" = 2'),
        more=expect("allow = { L2 = 2 }"),
    )


def test_the_minimum_of_then_counts_for_what_was_committed_under_it() -> None:
    passed(
        *START,
        'crash = { node = "b1" }',
        'wait = "fenced(b1)"',
        *DARK,
        RAISED.replace("3", "2"),
        *BACK,
        'settle = "20s"',
        until="60s",
        cluster=cluster("eligible_leader_replicas = true"),
        topic=PAIR.replace('"unclean.leader.election.enable" = true', '"min.insync.replicas" = 1'),
        more=expect("allow = { L2 = 2 }", "at_end = \"elections('last-known') == 1\""),
    )


# Topics that are created anew --------------------------------------------------------------------


@pytest.mark.parametrize("is_again", [False, True])
def test_what_a_topic_lost_stays_lost_when_another_one_has_its_name(is_again: bool) -> None:
    steps = [
        'at = "1s"; produce = { to = "orders-0", count = 3, batch = 3 }',
        'crash = { node = "b1", how = "power" }',
        'wait = "fenced(b1)"',
        'start = "b1"',
        "wait = \"leader('orders-0') == b1\"",
    ]
    if is_again:
        steps += [
            'at = "15s"; delete_topic = { name = "orders" }',
            'at = "18s"; create_topic = { name = "orders", replicas = [["b1", "b2", "b3"]] }',
            'at = "25s"; produce = { to = "orders-0", count = 3, batch = 3 }',
        ]
    topic = '[[topic]]\nname = "orders"\nreplicas = [["b1"]]\n'
    assert failed(*steps, until="40s", cluster=cluster(), topic=topic).startswith("3 records were")
    allow = expect("allow = { L2 = 3 }")
    passed(*steps, until="40s", cluster=cluster(), topic=topic, more=allow)
