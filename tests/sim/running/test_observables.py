"""Every observable returns what its row of the table says."""

from __future__ import annotations

import pytest

from sim.scenario.observables import OBSERVABLES
from tests.sim.running.scenarios import expect, passed

PRODUCE = 'at = "1s"; produce = { to = "orders-0", count = 3 }'
SETTLE = 'settle = "1s"'
LAG = [
    PRODUCE,
    SETTLE,
    'id = "lag"; at = "3s"; cut = { from = "b1", to = ["b2", "b3"], only = ["FetchResponse"] }',
    'at = "3.1s"; produce = { to = "orders-0", count = 2, acks = "1" }',
    'at = "3.5s"; crash = { node = "b1" }',
    'at = "3.6s"; heal = "lag"',
    'at = "15s"; produce = { to = "orders-0", values = ["new"], client = "p2" }',
    'at = "20s"; start = "b1"',
    "wait = \"isr('orders-0') == {b1, b2, b3}\"",
]
BREAKS = 'breaks = "acked-records-survive"'
# Steps, and for each observable what must hold at some time, ``end`` for the end of the run.
CASES: dict[str, tuple[list[str], list[tuple[str, str]]]] = {
    "quiet": (
        [PRODUCE, SETTLE],
        [
            ("0.5s", "leader('orders-0') == b1 and epoch('orders-0') == 0"),
            ("0.5s", "isr('orders-0') == {b1, b2, b3} and len(elr('orders-0')) == 0"),
            ("0.5s", "hw('orders-0') == 0 and leo('orders-0', b2) == 0"),
            ("0.5s", "acked('orders-0') == 0 and committed('orders-0') == 0"),
            ("end", "hw('orders-0') == 3 and hw('orders-0', b3) == 3 and leo('orders-0') == 3"),
            ("end", "log_start('orders-0') == 0 and log_start('orders-0', b2) == 0"),
            ("end", "acked('orders-0') == 3 and committed('orders-0') == 3"),
            ("end", "rejected('orders-0') == 0 and unknown('orders-0') == 0 and errors() == 0"),
            ("end", "elections('any') == 0 and elections('any', 'orders-0') == 0"),
            ("end", "record('orders-0', b2, 1) == 'p1-1' and record('orders-0', b2, 3) is None"),
            ("end", "same_log('orders-0', b1, b2, b3) and not diverged('orders-0')"),
            ("end", "unflushed('orders-0', b1) == 3 and truncated('orders-0', b1) == 0"),
            ("end", "one_leader_per_epoch('orders-0') and alive(b1) and alive(c1)"),
            ("end", "not fenced(b1) and len(quarantined('orders-0')) == 0"),
            ("end", "position('orders-0') == -1 and read('orders-0') == 0"),
            ("end", "lost('acked') == 0 and lost('committed', 'orders-0') == 0"),
        ],
    ),
    "the leader falls": (
        LAG,
        [
            ("3.4s", "acked('orders-0') == 5 and hw('orders-0') == 3 and leo('orders-0') == 5"),
            ("3.4s", "not same_log('orders-0', b1, b2) and not diverged('orders-0')"),
            ("4s", "not alive(b1) and leader('orders-0') == b1 and hw('orders-0') == -1"),
            ("4s", "leo('orders-0', b1) == 5 and record('orders-0', b1, 4) == 'p1-4'"),
            ("14s", "fenced(b1) and leader('orders-0') in {b2, b3} and epoch('orders-0') == 1"),
            ("14s", "isr('orders-0') == {b2, b3} and lost('acked') == 2"),
            ("14s", "elections('clean') == 1 and elections('any', 'orders-0') == 1"),
            ("16s", "diverged('orders-0') and not same_log('orders-0', b1, b2)"),
            ("end", "lost('acked', 'orders-0') == 2 and lost('committed') == 0"),
            ("end", "lost('exposed') == 0 and truncated('orders-0', b1) == 2"),
            ("end", "not diverged('orders-0') and record('orders-0', b1, 3) == 'new'"),
            ("end", "committed('orders-0') == 4 and not fenced(b1)"),
        ],
    ),
    "nobody leads": (
        [PRODUCE, SETTLE, 'at = "3s"; crash = { node = "all" }'],
        [
            ("29s", "leader('orders-0') is None and elections('any') <= 2"),
            (
                "29s",
                "hw('orders-0') == -1 and leo('orders-0') == -1 and log_start('orders-0') == -1",
            ),
            ("29s", "leo('orders-0', b1) == 3 and hw('orders-0', b1) == -1"),
            ("29s", "log_start('orders-0', b1) == 0"),
        ],
    ),
    "clients that fail": (
        [
            'at = "1s"; produce = { to = "orders-0", count = 1, timeout = "5s" }',
            'at = "2s"; pause = "leader:orders-0"',
            'produce = { to = "orders-0", count = 2, timeout = "3s" }',
        ],
        [
            ("end", "unknown('orders-0') + rejected('orders-0') == 2 and acked('orders-0') == 1"),
            ("end", "errors() == 2 and errors('NOT_CONTROLLER') == 0"),
        ],
    ),
    "consumers": (
        [
            PRODUCE,
            'consume = { from = "orders-0", count = 2 }',
            'consume = { from = "orders-0", count = 3, client = "k2" }',
        ],
        [
            (
                "end",
                "read('orders-0') == 5 and read('orders-0', k1) == 2 and read('orders-0', k2) == 3",
            ),
            ("end", "position('orders-0', k1) == 2 and position('orders-0', k2) == 3"),
            ("end", "truncation_detected('orders-0', k1) == 0"),
        ],
    ),
    "records deleted": (
        [PRODUCE, SETTLE, 'delete_records = { partition = "orders-0", before = 2 }'],
        [("end", "log_start('orders-0') == 2 and record('orders-0', b1, 2) == 'p1-2'")],
    ),
    "topics deleted": (
        [PRODUCE, 'at = "3s"; delete_topic = "orders"'],
        [
            ("end", "leader('orders-0') is None and len(isr('orders-0')) == 0"),
            ("end", "epoch('orders-0') == -1"),
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_observables(case: str) -> None:
    steps, claims = CASES[case]
    lines = [
        f'at_end = "{that}"' if at == "end" else f'at = "{at}"; that = "{that}"'
        for at, that in claims
    ]
    if case == "the leader falls":
        lines.append(BREAKS)
    until = "60s" if case == "the leader falls" else "30s"
    passed(*steps, until=until, more=expect(*lines))


def test_the_elr_has_who_was_in_sync_last() -> None:
    passed(
        PRODUCE,
        'at = "3s"; crash = { node = ["b2"] }',
        'at = "20s"; crash = { node = ["b3"] }',
        until="40s",
        cluster="eligible_leader_replicas = true",
        topic='[[topic]]\nname = "orders"\nreplicas = [["b1", "b2", "b3"]]\n'
        'config = { "min.insync.replicas" = 2 }',
        more=expect("at_end = \"isr('orders-0') == {b1} and elr('orders-0') == {b3}\""),
    )


def test_a_log_that_is_damaged_is_quarantined_and_its_records_are_gone() -> None:
    passed(
        PRODUCE,
        SETTLE,
        'flush = "all"',
        'at = "3s"; crash = { node = "b1" }',
        'at = "3.1s"; crash = { node = ["b2", "b3"] }',
        'corrupt = { node = "b1", partition = "orders-0", offset = 0 }',
        'pause = "c1"',
        'start = "b1"',
        more=expect("at_end = \"quarantined('orders-0') == {b1}\"", 'at_end = "alive(b1)"'),
    )


def test_a_consumer_detects_a_truncation() -> None:
    result = passed(
        PRODUCE,
        SETTLE,
        'consume = { from = "orders-0", count = 3 }',
        'at = "3s"; crash = { node = ["b2", "b3"], how = "power" }',
        "wait = \"isr('orders-0') == {b1}\"",
        'produce = { to = "orders-0", count = 2, acks = "1", client = "p2" }',
        'consume = { from = "orders-0", count = 2 }',
        'at = "20s"; crash = { node = "b1", how = "power" }',
        'start = ["b2", "b3"]',
        'wait = "not fenced(b2) and not fenced(b3)"',
        'elect = { partition = "orders-0", kind = "unclean", to = "b2" }',
        'at = "50s"; produce = { to = "orders-0", count = 1, client = "p3" }',
        until="70s",
        topic='[[topic]]\nname = "orders"\nreplicas = [["b1", "b2", "b3"]]\n'
        'config = { "min.insync.replicas" = 1 }',
        more='[[workload]]\nname = "r"\nkind = "consumer"\ntopic = "orders-0"\n'
        + expect(
            "at_end = \"truncation_detected('orders-0', r) >= 1\"",
            "at_end = \"truncation_detected('orders-0') >= 1\"",
            "at_end = \"elections('unclean') == 1\"",
            'breaks = ["acked-records-survive", "committed-records-survive", '
            '"exposed-records-survive"]',
        ),
    )
    assert result.failure is None


def test_a_broker_without_a_replica_has_no_offsets() -> None:
    passed(
        PRODUCE,
        topic='[[topic]]\nname = "orders"\nreplicas = [["b1", "b2"]]\n',
        more=expect(
            "at_end = \"leo('orders-0', b3) == -1 and hw('orders-0', b3) == -1\"",
            "at_end = \"log_start('orders-0', b3) == -1 and log_start('orders-0', b2) == 0\"",
        ),
    )


def test_to_lose_the_leader_is_no_election() -> None:
    passed(
        'at = "1s"; crash = { node = "b1" }',
        until="20s",
        topic='[[topic]]\nname = "orders"\nreplicas = [["b1"]]\n',
        more=expect("at_end = \"leader('orders-0') is None and elections('any') == 0\""),
    )


def test_every_observable_is_asked_here() -> None:
    text = "".join(that for _, claims in CASES.values() for _, that in claims)
    assert {name for name in OBSERVABLES if f"{name}(" not in text} == set()
