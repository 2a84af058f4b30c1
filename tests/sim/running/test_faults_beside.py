"""Faults and workloads beside the steps: each has its effect, begins and ends when it should."""

from __future__ import annotations

import pytest

from sim.running.interpreter import BOOT_US
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import (
    begun_at,
    done_at,
    expect,
    failed,
    fault,
    of_kind,
    passed,
    ran,
)

WRITES = (
    '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders-0"\nrate = 10\n'
    'acks = "1"\nstart = "1s"\nstop = "6s"\n'
)
WINDOW = 'start = "2s"; end = "4s"'
# Kind, its parameters, and the kind of event with which it strikes in a small run.
EFFECTS = {
    "cut": ('target = { from = "b1", to = "b2" }', Kind.DROP),
    "partition": ('target = [["b1"], ["b2", "b3"]]', Kind.DROP),
    "loss": ('target = "b1"; ppm = 300000', Kind.DELAY),
    "clog": ('target = { from = "b1", to = "b2" }', Kind.HOLD),
    "reset": (
        'target = { from = "w", to = "b1" }; moment = "after"; only = ["Produce"]',
        Kind.RESET,
    ),
    "refuse": ('target = { from = "late", to = "b1" }; hangs = "500ms"', Kind.DROP),
    "corrupt": ('target = { from = "w", to = "b1" }; only = ["Produce"]', Kind.CORRUPT),
    "duplicate": ('target = "b1"; ppm = 500000', Kind.DUPLICATE),
    "crash": ('target = "b3"', Kind.CRASH),
    "crash-loop": ('target = "b3"; calls = [2, 5]; restart_after = "500ms"', Kind.CRASH),
    "failpoint": ('target = "b3"; point = "fetch-received"; action = "yield"', Kind.FAILPOINT),
    "pause": ('target = "b3"', Kind.PAUSE),
    "fill": ('target = "b3"; free = 10', Kind.DISK_ERROR),
    "fsync-fail": ('target = "b3"; path = ".log"', Kind.DISK_ERROR),
    "fsync-lie": ('target = "b3"', Kind.DISK_ERROR),
    "fsync-read-only": ('target = "b3"', Kind.DISK_ERROR),
    "enospc": ('target = "b3"; path = ".log"', Kind.DISK_ERROR),
    "eio": ('target = "b3"; path = ".log"; call = "write_at"', Kind.DISK_ERROR),
    "split-write": ('target = "b3"; path = ".log"; partial_bytes = 5', Kind.DISK_ERROR),
    "lost-write": ('target = "b3"; path = ".log"', Kind.DISK_ERROR),
    "misdirected-write": ('target = "b3"; path = ".log"; shift_bytes = 64', Kind.DISK_ERROR),
}
# Kinds whose effect is no event of its own.
OTHERS = {
    "limit": 'target = "b1"; bytes_per_s = 2000; buffer_bytes = 400',
    "reorder": 'target = "b1"; up_to = "50ms"',
    "slow": 'target = "b1"; cpu = 1000',
    "stall": 'target = "b1"; duration = "1s"',
    "background-hold": 'target = "b1"',
    "clock-step": 'target = "b1"; by = "1h"',
    "clock-drift": 'target = "b1"; mono_ppm = 500000',
    "clock-freeze": 'target = "b1"; also_mono = true',
}


def text(kind: str, words: str, when: str = WINDOW) -> str:
    return fault(f'id = "f"; kind = "{kind}"; {words}; {when}')


def cluster_of(kind: str) -> str:
    return 'network = "datagram"' if kind in ("duplicate", "reorder") else ""


@pytest.mark.parametrize("kind", EFFECTS)
def test_a_kind_strikes_in_its_window(kind: str) -> None:
    words, effect = EFFECTS[kind]
    step = {
        "refuse": 'at = "3s"; produce = { to = "orders-0", count = 1, client = "late" }',
        "fsync": 'at = "3s"; flush = "b3"',
    }.get(kind.partition("-")[0], 'at = "3s"; settle = "5s"')
    result = ran(step, more=WRITES + text(kind, words), cluster=cluster_of(kind))
    (begin,) = of_kind(result, Kind.FAULT)
    assert (begin.args["id"], begin.t_us) == ("f", 2_000_000)
    (end,) = of_kind(result, Kind.HEAL)
    assert (end.args["id"], end.t_us) == ("f", 4_000_000)
    struck = of_kind(result, effect, fault="f")
    assert struck
    assert 2_000_000 <= struck[0].t_us <= 4_000_000


@pytest.mark.parametrize("kind", OTHERS)
def test_a_kind_without_events_of_its_own_begins_and_ends(kind: str) -> None:
    result = ran(more=WRITES + text(kind, OTHERS[kind]), cluster=cluster_of(kind))
    assert [(each.args["id"], each.t_us) for each in of_kind(result, Kind.FAULT)] == [
        ("f", 2_000_000)
    ]
    assert [each.t_us for each in of_kind(result, Kind.HEAL)] == [4_000_000]
    assert result.digest != ran(more=WRITES, cluster=cluster_of(kind)).digest


@pytest.mark.parametrize("kind", ["limit", "slow", "stall"])
def test_what_is_slow_is_slow(kind: str) -> None:
    step = 'id = "p"; at = "2.5s"; produce = { to = "orders-0", count = 3, batch = 3 }'
    words = OTHERS[kind].replace('target = "b1"; bytes', 'target = "b1"; bytes')
    quick = done_at(passed(step), "p")
    assert done_at(passed(step, more=text(kind, words)), "p") > quick + 0.02


def test_connections_are_refused_in_the_window() -> None:
    step = 'id = "p"; at = "2.5s"; produce = { to = "orders-0", count = 1, client = "late" }'
    words = 'target = { from = "late", to = "b1" }'
    assert done_at(passed(step, more=text("refuse", words)), "p") >= 4.0


def test_clocks_jump_and_stand() -> None:
    step = 'at = "3s"; produce = { to = "orders-0", count = 1 }'
    for kind, words in (("clock-step", 'by = "1h"'), ("clock-freeze", "also_mono = false")):
        seen: list[World] = []
        result = ran(step, more=text(kind, f'target = "b1"; {words}'), on_world=seen.append)
        assert result.failure is None
        now_us = result.end_us + BOOT_US
        ours, others = (seen[0].host(name).clock.now(now_us) for name in ("b1", "b2"))
        gap = {"clock-step": 3_600_000_000, "clock-freeze": -2_000_000}[kind]
        assert ours.wall_us - others.wall_us == gap


def test_background_work_is_held() -> None:
    step = 'at = "2.5s"; create_topic = { name = "more", replicas = [["b1"]] }'
    held = ran(
        step, 'at = "3s"; delete_topic = "more"', more=text("background-hold", 'target = "b1"')
    )
    works = [each.t_us for each in of_kind(held, Kind.BACKGROUND, "b1") if each.t_us >= 2_000_000]
    assert works
    assert min(works) >= 4_000_000


# When --------------------------------------------------------------------------------------------


def test_a_fault_begins_and_ends_when_a_condition_holds() -> None:
    result = passed(
        more=WRITES
        + text(
            "pause",
            'target = "b3"',
            "start = { when = \"acked('orders-0') >= 5\" }; "
            "end = { when = \"acked('orders-0') >= 12\" }",
        )
        + expect(
            'after = "f"; always = "acked(\'orders-0\') >= 5"',
            'after = "f"; within = "1us"; eventually = "acked(\'orders-0\') == 5"',
        ),
    )
    acked = [each.t_us for each in of_kind(result, Kind.ACK)]
    (pause,), (resume,) = of_kind(result, Kind.PAUSE), of_kind(result, Kind.RESUME, "b3")
    assert pause.t_us == acked[4]
    assert resume.t_us == acked[11]


def test_a_condition_that_holds_already_begins_a_fault_at_once_and_its_end_too() -> None:
    result = passed(
        'id = "a"; at = "1s"; produce = { to = "orders-0", count = 1 }',
        more=text(
            "pause",
            'target = "b3"',
            'start = { when = "alive(b3)" }; end = { when = "alive(b3)" }',
        ),
    )
    (pause,), (resume,) = of_kind(result, Kind.PAUSE), of_kind(result, Kind.RESUME, "b3")
    assert 0 <= pause.t_us == resume.t_us < 1_000_000


def test_an_end_that_has_passed_ends_a_fault_at_once() -> None:
    result = passed(
        'at = "3s"; produce = { to = "orders-0", count = 1 }',
        more=text(
            "pause", 'target = "b3"', 'start = { when = "acked(\'orders-0\') == 1" }; end = "2s"'
        ),
    )
    assert of_kind(result, Kind.PAUSE)[0].t_us == of_kind(result, Kind.RESUME, "b3")[0].t_us


def test_a_step_can_heal_a_fault_before_its_end() -> None:
    result = passed('at = "3s"; heal = "f"', more=text("pause", 'target = ["b2", "b3"]'))
    assert [each.t_us for each in of_kind(result, Kind.HEAL)] == [3_000_000] * 2
    assert {each.args["id"] for each in of_kind(result, Kind.HEAL)} == {"f/b2", "f/b3"}


def test_a_fault_that_never_began_is_told_of() -> None:
    result = passed(
        more=text("pause", 'target = "b3"', "start = { when = \"epoch('orders-0') == 9\" }")
    )
    assert result.verdict.unjudged == ("fault 'f' never began",)


def test_a_fault_that_strikes_nobody_ends_the_run() -> None:
    reason = failed(
        'at = "1s"; crash = { node = "all" }',
        'at = "25s"; start = "b1"',
        until="30s",
        more=text("pause", 'target = "leader:orders-0"', 'start = "20s"'),
    )
    assert reason == "fault 'f' strikes nobody: its target names nobody now"
    reason = failed(more=text("partition", 'target = [["leader:orders-0"], ["b1"]]'))
    assert reason.startswith("fault 'f': groups are")
    reason = failed(
        'at = "1s"; crash = { node = "all" }',
        until="30s",
        more=text("reset", 'target = "b1"; half_open = "leader:orders-0"', 'start = "20s"'),
    )
    assert reason == "fault 'f': half_open is leader:orders-0, which names nobody now"


def test_drawn_groups_are_two_sides_and_follow_the_seed() -> None:
    groups = text("partition", 'target = [["minority"], ["majority"]]')
    sides = set()
    for seed in range(8):
        (begin,) = of_kind(passed(more=groups, seed=seed), Kind.FAULT)
        sources = [src for src, _ in begin.args["target"]]
        (alone,) = {each for each in sources if sources.count(each) == 2}
        sides.add(alone)
    assert sides == {"b1", "b2", "b3"}


@pytest.mark.parametrize(
    ("words", "effect"),
    [
        ('point = "fetch-received"; action = "process"', Kind.CRASH),
        ('point = "fetch-received"; action = "power"; image = "drawn"', Kind.CRASH),
        ('point = "fetch-received"; action = "pause"; duration = "700ms"', Kind.PAUSE),
        ('point = "disk:write_at:.log"; action = "process"', Kind.CRASH),
        ('point = "disk:write_at:.log"; action = "power"', Kind.CRASH),
    ],
)
def test_what_happens_at_a_failpoint(words: str, effect: Kind) -> None:
    words = f'target = "b3"; hit = 3; {words}'
    result = ran(more=WRITES + text("failpoint", words, 'start = "2s"'))
    (struck,) = of_kind(result, effect, "b3")
    assert struck.t_us > 2_000_000
    (begun,) = of_kind(result, Kind.FAULT)
    if effect is Kind.PAUSE:
        (resumed,) = [e for e in of_kind(result, Kind.RESUME, "b3") if "point" not in e.args]
        assert resumed.t_us == struck.t_us + 700_000
    elif "disk" in words:
        assert begun.n in struck.cause
    if "disk" not in words:
        (reached,) = of_kind(result, Kind.FAILPOINT, fault="f")
        assert (reached.args["hit"], struck.cause[0]) == (3, reached.n)
        assert begun.n in reached.cause


@pytest.mark.parametrize("point", ["fetch-received", "disk:write_at:.log"])
def test_a_failpoint_that_is_not_reached_by_the_end_never_strikes(point: str) -> None:
    words = f'target = "b3"; hit = 30; action = "process"; point = "{point}"'
    short = ran(more=WRITES + text("failpoint", words, 'start = "2s"; end = "2.2s"'))
    assert not of_kind(short, Kind.CRASH)
    assert of_kind(ran(more=WRITES + text("failpoint", words, 'start = "2s"')), Kind.CRASH)


# Workloads ---------------------------------------------------------------------------------------


def test_a_producer_sends_at_its_rate_from_its_start_to_its_stop() -> None:
    result = passed(
        more='[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders-0"\nrate = 4\nkeys = 3\n'
        'record_bytes = 10\nstart = "1s"\nstop = "3s"\n'
        + expect(
            "at_end = \"acked('orders-0') == 8 and record('orders-0', b1, 7) == 'w-7.......'\""
        )
    )
    sent = of_kind(result, Kind.PRODUCE, "w")
    assert [each.t_us for each in sent] == [1_000_000 + 250_000 * at for at in range(8)]
    assert {each.args["acks"] for each in sent} == {-1}


def test_a_producer_runs_to_the_end_by_default() -> None:
    more = (
        '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders"\nrate = "60/m"\nacks = "0"\n'
    )
    result = passed(until="3s", more=more)
    assert [each.t_us for each in of_kind(result, Kind.PRODUCE, "w")] == [0, 1_000_000, 2_000_000]
    assert not of_kind(result, Kind.SEND, "w", type="InitProducerIdRequest")


def test_a_batch_gathers_what_waits() -> None:
    far = 'latency = { base = ["20ms", "20ms"] }'
    more = WRITES.replace("rate = 10", "rate = 500\nbatch = 50").replace('"6s"', '"1.2s"')
    counts = []
    for size in ("batch = 50", "batch = 1"):
        text = more.replace("batch = 50", size)
        result = passed(
            until="3s", cluster=far, more=text + expect("at_end = \"leo('orders-0') == 100\"")
        )
        counts.append(len(of_kind(result, Kind.APPEND, "b1")))
    assert counts[0] < counts[1] == 100


def test_keys_spread_records_over_partitions() -> None:
    topic = '[[topic]]\nname = "orders"\npartitions = 2\n'
    more = WRITES.replace("orders-0", "orders") + "keys = 8\n"
    passed(
        topic=topic,
        more=more
        + expect(
            "at_end = \"leo('orders-0') > 5 and leo('orders-1') > 5\"",
            "at_end = \"leo('orders-0') + leo('orders-1') == 50\"",
        ),
    )


def test_a_consumer_reads_what_there_is_until_its_stop() -> None:
    reader = (
        '[[workload]]\nname = "r"\nkind = "consumer"\ntopic = "orders"\nstart = "2s"\nstop = "4s"\n'
    )
    result = passed(
        more=WRITES
        + reader
        + expect(
            'at = "3.95s"; that = "read(\'orders-0\', r) >= 29"',
            "at_end = \"read('orders-0') == 30\"",
        )
    )
    polled = [each.t_us for each in of_kind(result, Kind.POLL, "r")]
    assert 2_000_000 < polled[0] < 2_100_000
    assert polled[-1] <= 4_000_000


def test_a_workload_that_cannot_work_ends_the_run() -> None:
    more = '[[workload]]\nname = "r"\nkind = "consumer"\ntopic = "orders"\nstart = "2s"\n'
    reason = failed('at = "1s"; delete_topic = "orders"', more=more)
    assert reason == "workload 'r': there is no topic 'orders' now"


def test_a_step_behind_a_fault_with_a_condition() -> None:
    result = passed(
        'id = "s"; after = "f"; crash = { node = "b2" }',
        more=WRITES
        + text(
            "pause", 'target = "b3"', 'start = { when = "acked(\'orders-0\') == 5" }; end = "5s"'
        ),
    )
    assert begun_at(result, "s") == of_kind(result, Kind.PAUSE)[0].t_us / 1_000_000
