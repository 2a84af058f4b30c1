"""Steps of clients, processes, operators and the network: what they do, and when they are done."""

from __future__ import annotations

import pytest

from sim.scenario.problems import ScenarioError
from sim.trace.kinds import Kind
from sim.world import World
from tests.sim.running.scenarios import (
    TOPIC,
    begun_at,
    done_at,
    expect,
    failed,
    of_kind,
    parameters_of,
    passed,
    scenario,
)

PRODUCE = 'produce = { to = "orders-0", count = 3 }'


# When --------------------------------------------------------------------------------------------


def test_a_step_without_a_time_runs_when_the_one_before_it_is_done() -> None:
    result = passed(
        'id = "a"; at = "1s"; ' + PRODUCE,
        'id = "b"; settle = "2s"',
        'id = "c"; wait = "leo(\'orders-0\') == 4"',
        'id = "d"; at = "3s"; produce = { to = "orders-0", count = 1 }',
    )
    assert begun_at(result, "a") == 1.0
    assert 1.0 < done_at(result, "a") == begun_at(result, "b")
    assert done_at(result, "b") == begun_at(result, "c")
    assert begun_at(result, "d") == 3.0 < done_at(result, "c")


def test_the_first_step_without_a_time_runs_at_0() -> None:
    assert begun_at(passed('id = "a"; ' + PRODUCE), "a") == 0


def test_a_step_runs_behind_another_and_a_delay() -> None:
    result = passed(
        'id = "a"; at = "1s"; crash = { node = "b3" }',
        'id = "b"; at = "5s"; ' + PRODUCE,
        'id = "c"; after = "a"; delay = "1.5s"; start = "b3"',
        'id = "d"; settle = "2s"',
    )
    assert begun_at(result, "c") == 2.5
    assert begun_at(result, "d") == 2.5


def test_a_step_runs_behind_the_begin_of_a_fault() -> None:
    result = passed(
        'id = "a"; after = "gc"; delay = "500ms"; ' + PRODUCE,
        more='[[fault]]\nid = "gc"\nkind = "pause"\ntarget = "b3"\nstart = "2s"\nend = "3s"',
    )
    assert begun_at(result, "a") == 2.5


@pytest.mark.parametrize("scheduler", ["fifo", "seeded", "pct"])
def test_steps_of_one_time_run_in_the_order_of_the_file(scheduler: str) -> None:
    steps = [
        'at = "2s"; crash = { node = "b3" }',
        'at = "2s"; start = "b3"',
        'at = "2s"; pause = "b3"',
        'at = "2s"; resume = "b3"',
    ] * 3
    result = passed(
        *steps, cluster=f'scheduler = "{scheduler}"', seed=5, more=expect('at_end = "alive(b3)"')
    )
    begun = [each for each in of_kind(result, Kind.STEP, "world") if "done" not in each.args]
    assert [each.args["id"] for each in begun] == [str(number) for number in range(1, 13)]


def test_steps_that_are_not_done_or_never_begin_fail_the_run() -> None:
    assert failed(
        'at = "2s"; ' + PRODUCE.replace("3", "1"),
        'at = "4s"; consume = { from = "orders-0", count = 5 }',
    ) == ("step 2: not done by the end: consume of 5 records of orders-0 is not done: 1 are read")
    assert failed(
        'id = "a"; at = "1s"; ' + PRODUCE, 'after = "a"; delay = "20s"; crash = { node = "b1" }'
    ) == ("step 2: never begun: 20s after 'a' is too late")
    fault = (
        '[[fault]]\nid = "f"\nkind = "pause"\ntarget = "b1"\n'
        "start = { when = \"leo('orders-0') > 100\" }"
    )
    assert failed('after = "f"; crash = { node = "b1" }', more=fault) == (
        "step 1: never begun: 'f' has not come about"
    )


# Clients -----------------------------------------------------------------------------------------


def test_produce_is_idempotent_with_acks_all_only_and_tells_its_parameters() -> None:
    result = passed(
        'id = "a"; at = "1s"; produce = { to = "orders-0", count = 2 }',
        'id = "b"; produce = { to = "orders-0", values = ["x", "y"], acks = "1", client = "p2" }',
        'id = "c"; produce = { to = "orders", keys = ["k", "l"], acks = "0", client = "p3" }',
        more=expect(
            "at_end = \"acked('orders-0') == 4 and leo('orders-0') == 6\"",
            "at_end = \"record('orders-0', b1, 0) == 'p1-0' and record('orders-0', b1, 3) == 'y'\"",
        ),
    )
    assert [each.args["acks"] for each in of_kind(result, Kind.PRODUCE)] == [-1, -1, 1, 1, 0, 0]
    assert parameters_of(result, "a") == {"to": "orders-0", "count": 2}
    assert parameters_of(result, "c")["to"] == "orders"
    sent = of_kind(result, Kind.SEND, type="InitProducerIdRequest")
    assert {each.node for each in sent} == {"p1"}


def test_produce_is_done_when_every_outcome_is_known() -> None:
    result = passed(
        'id = "stop"; at = "1s"; pause = "b1"',
        'id = "a"; at = "2s"; produce = { to = "orders-0", count = 2, timeout = "3s" }',
        'id = "b"; resume = "b1"',
        more=expect('at_end = "errors() == 2"'),
    )
    assert done_at(result, "a") == begun_at(result, "b") == pytest.approx(5.0, abs=0.1)


def test_batches_hold_as_many_records_as_they_may() -> None:
    steps = ['at = "1s"; produce = { to = "orders-0", count = 6, batch = 3 }']
    one, many = passed(steps[0].replace("batch = 3", "batch = 1")), passed(*steps)
    assert len(of_kind(many, Kind.APPEND, "b1")) < len(of_kind(one, Kind.APPEND, "b1")) == 6


def test_consume_begins_where_it_says_and_is_done_when_the_records_are_read() -> None:
    result = passed(
        'at = "1s"; ' + PRODUCE.replace("3", "5"),
        'id = "a"; consume = { from = "orders-0", count = 2 }',
        'id = "on"; consume = { from = "orders-0", count = 1 }',
        'id = "seek"; consume = { from = "orders-0", count = 2, offset = 1 }',
        'consume = { from = "orders-0", count = 1, offset = 4, client = "k2", reset = "none" }',
        'id = "late"; at = "3s"; consume = { from = "orders-0", count = 1, offset = "latest", '
        'client = "k3" }',
        'at = "4s"; produce = { to = "orders-0", count = 1 }',
        more=expect(
            "at_end = \"read('orders-0', k1) == 5 and position('orders-0', k1) == 3\"",
            "at_end = \"position('orders-0', k2) == 5 and position('orders-0', k3) == 6\"",
        ),
    )
    polled = [(each.node, each.args["offset"]) for each in of_kind(result, Kind.POLL)]
    assert polled == [("k1", 0), ("k1", 1), ("k1", 2), ("k1", 1), ("k1", 2), ("k2", 4), ("k3", 5)]
    assert done_at(result, "late") > 4.0


def test_the_word_for_where_to_begin_leaves_the_reset_policy_alone() -> None:
    worlds: list[World] = []
    result = passed(
        'at = "1s"; ' + PRODUCE,
        'consume = { from = "orders-0", count = 3, reset = "none" }',
        on_world=worlds.append,
        more=expect("at_end = \"position('orders-0', k1) == 3\""),
    )
    assert [each.args["offset"] for each in of_kind(result, Kind.POLL)] == [0, 1, 2]
    assert worlds[0].consumers["k1"].config.auto_offset_reset == "none"
    reason = failed(
        'at = "1s"; crash = { node = "all" }',
        'at = "20s"; consume = { from = "orders-0", count = 3, reset = "none" }',
        until="30s",
    )
    assert "has no leader that could say what its earliest is" in reason


# Waiting -----------------------------------------------------------------------------------------


def test_settle_past_its_limit_names_who_lags() -> None:
    cut = 'at = "1s"; cut = { from = "leader:orders-0", to = "b3", only = ["FetchResponse"] }'
    produce = 'at = "2s"; produce = { to = "orders-0", count = 1, acks = "1" }'
    assert failed(cut, produce, 'settle = "1s"') == (
        "step 3: not done in time: b3 has orders-0 to 0 with high watermark 0, the leader b1 to 1 "
        "with 0"
    )


def test_settle_waits_for_replicas_that_are_opening_and_not_for_those_that_are_down() -> None:
    result = passed(
        'at = "1s"; ' + PRODUCE,
        'at = "2s"; crash = { node = "b3" }',
        'id = "without"; settle = "1s"',
        'at = "20s"; ' + PRODUCE.replace("3", "2"),
        'at = "30s"; start = "b3"',
        'id = "with"; settle = "20s"',
        until="60s",
        more=expect("at_end = \"same_log('orders-0', b1, b3) and hw('orders-0', b3) == 5\""),
    )
    assert done_at(result, "without") == 2.0
    end = done_at(result, "with")
    moments = [
        each.t_us for each in of_kind(result, Kind.REPLICATE, "b3") if each.t_us > 30_000_000
    ]
    assert end >= moments[-1] / 1_000_000 > 30.0


def test_settle_waits_for_the_high_watermark_too() -> None:
    passed(
        'at = "1s"; produce = { to = "orders-0", count = 3, acks = "1" }',
        'id = "settled"; settle = "2s"',
        more=expect(
            'after = "settled"; within = "1us"; '
            "eventually = \"hw('orders-0', b2) == 3 and hw('orders-0', b3) == 3\"",
        ),
    )


def test_settle_waits_for_a_replica_that_is_not_there_yet() -> None:
    result = passed(
        'at = "1s"; ' + PRODUCE,
        'at = "2s"; crash = { node = "b3", how = "power" }',
        'at = "20s"; start = { node = "b3", disk = "wiped" }',
        'id = "with"; settle = "20s"',
        until="60s",
    )
    (last,) = [
        each.t_us for each in of_kind(result, Kind.REPLICATE, "b3") if each.t_us > 20_000_000
    ]
    assert done_at(result, "with") >= last / 1_000_000 > 20.0


def test_wait_says_what_does_not_hold_and_how_things_are() -> None:
    reason = failed('at = "1s"; wait = "leader(\'orders-0\') == b2"; within = "2s"')
    assert reason == (
        "step 1: not done in time: leader('orders-0') == b2 does not hold: leader('orders-0') is b1"
    )


def test_a_wait_without_a_limit_has_one_of_a_minute() -> None:
    step = 'at = "1s"; wait = "isr(\'orders-0\') == {b2}"'
    reason = failed(step, until="100s")
    assert reason.startswith("step 1: not done in time: isr('orders-0') == {b2} does not hold: ")
    assert "isr('orders-0') is {b1, b2, b3}" in reason
    assert failed(step, until="61s") == reason
    assert failed(step, until="60s").startswith("step 1: not done by the end: isr(")


# Processes ---------------------------------------------------------------------------------------


def test_crash_of_a_process_keeps_the_page_cache_and_of_the_power_does_not() -> None:
    for how, image, left in (("process", "lost", 3), ("power", "lost", 0), ("power", "kept", 3)):
        word = f', image = "{image}"' if how == "power" else ""
        result = passed(
            'at = "1s"; ' + PRODUCE,
            'settle = "2s"',
            f'id = "c"; at = "3s"; crash = {{ node = "b3", how = "{how}"{word} }}',
            more=expect(
                f"at_end = \"leo('orders-0', b3) == {left} or {left} == 0\"",
                f'at = "4s"; that = "(record(\'orders-0\', b3, 2) is None) == {left == 0}"',
            ),
        )
        (event,) = of_kind(result, Kind.CRASH, "b3")
        assert event.args["how"] == how
        assert event.args["fault"] == "c"
        assert done_at(result, "c") == 3.0


def test_the_default_of_crash_is_the_process() -> None:
    result = passed('at = "1s"; crash = { node = "b3" }')
    assert [each.args["how"] for each in of_kind(result, Kind.CRASH)] == ["process"]


def test_nodes_that_are_down_cannot_crash_stop_pause_or_flush() -> None:
    # "isr" hides from the reader of the file who is meant.
    down = 'at = "1s"; crash = { node = "all" }'
    some = "isr:orders-0"
    for step, text in (
        (f'at = "2s"; crash = {{ node = "{some}" }}', "b1 is down: no process runs there"),
        (f'at = "2s"; shutdown = "{some}"', "b1 is down: no process runs there"),
        (f'at = "2s"; pause = "{some}"', "b1 is down: no process runs there"),
        (f'at = "2s"; resume = "{some}"', "b1 is down, not paused"),
        (f'at = "2s"; flush = "{some}"', "b1 is down: no process runs there"),
        (
            'at = "2s"; crash = { node = "leader:orders-0", at_failpoint = "fetch-read" }',
            "b1 is down: no process runs there",
        ),
    ):
        assert failed(down, step) == f"step 2: {text}"
    off = 'at = "1s"; crash = { node = "all", how = "power" }'
    assert failed(off, f'at = "2s"; crash = {{ node = "{some}", how = "power" }}') == (
        "step 2: b1 is off already"
    )
    assert failed(f'at = "2s"; start = "{some}"') == "step 1: b1 is running already"


def test_a_selector_that_names_nobody_ends_the_run() -> None:
    down = 'at = "1s"; crash = { node = "all" }'
    for step in (
        'at = "30s"; crash = { node = "leader:orders-0" }',
        'at = "30s"; cut = { from = "leader:orders-0", to = "b2" }',
        'at = "30s"; partition = [["leader:orders-0"], ["b2"]]',
        'at = "30s"; elect = { partition = "orders-0", kind = "unclean", to = "leader:orders-0" }',
        'at = "30s"; corrupt = { node = "leader:orders-0", partition = "orders-0", offset = 0 }',
    ):
        reason = failed(down, step, 'at = "35s"; start = "b1"', until="40s")
        assert reason == "step 2: leader:orders-0 names nobody now"


def test_the_trace_has_whom_a_selector_meant() -> None:
    result = passed(
        'id = "a"; at = "1s"; pause = "leader:orders-0"',
        'id = "b"; at = "1.1s"; resume = ["b1"]',
        'id = "c"; at = "2s"; cut = { from = "one", to = "all", only = ["Fetch"], both = true }',
        'id = "d"; at = "3s"; heal = "c"',
        'id = "e"; at = "4s"; partition = [["minority"], ["majority"]]',
        'id = "f"; at = "4.5s"; heal = ["e"]',
        'id = "g"; at = "5s"; slow = { node = "followers:orders-0", cpu = 3 }',
    )
    assert parameters_of(result, "a") == {"node": ["b1"]}
    told = parameters_of(result, "c")
    assert len(told["from"]) == 1
    assert told["to"] == ["b1", "b2", "b3"]
    assert told["only"] == ["Fetch"]
    assert told["both"] is True
    one, two = parameters_of(result, "e")["groups"]
    assert (len(one), len(two)) == (1, 2)
    assert sorted(one + two) == ["b1", "b2", "b3"]
    assert parameters_of(result, "g") == {"node": ["b2", "b3"], "cpu": "3x"}


def test_at_failpoint_is_done_at_the_hit_and_not_before() -> None:
    result = passed(
        'id = "arm"; at = "1s"; crash = { node = "b1", hit = 2, '
        'at_failpoint = "produce-appended" }',
        'at = "2s"; produce = { to = "orders-0", count = 1, timeout = "2s" }',
        'id = "second"; at = "5s"; produce = { to = "orders-0", count = 1, timeout = "2s" }',
        'id = "again"; at = "20s"; start = "b1"',
        'id = "rearm"; at = "40s"; crash = { node = "leader:orders-0", '
        'at_failpoint = "produce-appended", how = "power" }',
        'at = "41s"; produce = { to = "orders-0", count = 1, client = "p2", timeout = "2s" }',
        until="60s",
    )
    assert 5.0 < done_at(result, "arm") < 5.1
    assert 41.0 < done_at(result, "rearm") < 41.1
    assert [each.args["how"] for each in of_kind(result, Kind.CRASH)] == ["process", "power"]


def test_a_failpoint_can_be_armed_again_at_the_same_point() -> None:
    arm = 'crash = { node = "b1", at_failpoint = "produce-appended" }'
    result = passed(
        f'id = "one"; at = "1s"; {arm}',
        'at = "2s"; produce = { to = "orders-0", count = 1, timeout = "1s" }',
        'at = "4s"; start = "b1"',
        'at = "30s"; elect = { partition = "orders-0" }',
        f'id = "two"; at = "35s"; {arm}',
        'at = "40s"; produce = { to = "orders-0", count = 1, client = "p2", timeout = "1s" }',
        until="60s",
    )
    assert 40.0 < done_at(result, "two") < 40.1


def test_a_failpoint_that_is_never_hit_fails_the_run_even_if_the_process_dies_otherwise() -> None:
    arm = 'at = "1s"; crash = { node = "b1", at_failpoint = "%s", hit = 3 }'
    for point in ("produce-appended", "disk:write_at:.log"):
        reason = failed(arm % point, 'at = "2s"; crash = { node = "b1", how = "process" }')
        assert reason == f"step 1: not done by the end: b1 has not reached {point} for the 3rd time"


def test_a_failpoint_waits_for_one_node() -> None:
    step = 'at = "1s"; crash = { node = "followers:orders-0", at_failpoint = "fetch-read" }'
    assert failed(step) == "step 1: at_failpoint waits for one node, not for b2, b3"


def test_a_failpoint_in_a_call_of_the_disk() -> None:
    result = passed(
        'id = "arm"; at = "1s"; crash = { node = "b1", how = "power", '
        'at_failpoint = "disk:write_at:.log" }',
        'at = "2s"; produce = { to = "orders-0", count = 1, timeout = "2s" }',
    )
    assert 2.0 < done_at(result, "arm") < 2.1


def test_start_takes_the_disk_as_it_is_wiped_or_as_it_was() -> None:
    before = [
        'at = "1s"; ' + PRODUCE,
        'settle = "1s"',
        'id = "early"; flush = "all"',
        'at = "3s"; produce = { to = "orders-0", count = 4 }',
        'settle = "1s"',
        'at = "5s"; crash = { node = "b3" }',
        'at = "5.5s"; pause = ["b1", "b2", "c1"]',
    ]
    for disk, left in (("same", 7), ("wiped", -1), ("image:early", 3)):
        passed(
            *before,
            f'at = "6s"; start = {{ node = "b3", disk = "{disk}" }}',
            more=expect(f'at = "6.2s"; that = "leo(\'orders-0\', b3) == {left}"'),
        )


def test_the_controller_starts_on_an_older_disk_too() -> None:
    result = passed(
        'id = "early"; at = "1s"; ' + PRODUCE,
        'at = "2s"; crash = { node = "c1" }',
        'at = "3s"; start = { node = "c1", disk = "image:early" }',
    )
    (event,) = [each for each in of_kind(result, Kind.START, "c1") if each.t_us > 0]
    assert event.args["disk"] == "early/c1"


def test_shutdown_is_done_when_the_process_is_gone() -> None:
    result = passed(
        'id = "a"; at = "1s"; shutdown = "b1"',
        'id = "b"; start = "b1"',
        more=expect("at_end = \"elections('any') >= 1 and alive(b1)\""),
    )
    (stop,) = of_kind(result, Kind.STOP, "b1")
    assert done_at(result, "a") == stop.t_us / 1_000_000 == begun_at(result, "b") > 1.0


def test_pause_and_resume() -> None:
    passed(
        'at = "1s"; pause = "b3"',
        'at = "2s"; produce = { to = "orders-0", count = 1, acks = "1" }',
        'at = "4s"; resume = "b3"',
        more=expect(
            'at = "3s"; that = "alive(b3) and leo(\'orders-0\', b3) == 0"',
            'at = "5s"; that = "leo(\'orders-0\', b3) == 1"',
        ),
    )


def test_flush_makes_logs_durable() -> None:
    passed(
        'at = "1s"; ' + PRODUCE,
        'settle = "1s"',
        'at = "3s"; flush = "b1"',
        more=expect(
            'at = "2.9s"; that = "unflushed(\'orders-0\', b1) == 3"',
            'at = "3s"; that = "unflushed(\'orders-0\', b1) == 0"',
            "at_end = \"unflushed('orders-0', b2) == 3\"",
        ),
    )
    reason = failed('at = "1s"; flush = "controller"')
    assert reason == "step 1: c1 is no broker: it has no logs to flush"


# The network -------------------------------------------------------------------------------------


def test_cut_strikes_what_it_names_until_it_is_healed() -> None:
    result = passed(
        'id = "lag"; at = "1s"; cut = { from = "leader:orders-0", to = "followers:orders-0", '
        'only = ["FetchResponse"] }',
        'at = "2s"; produce = { to = "orders-0", count = 1, acks = "1" }',
        'at = "3s"; heal = "lag"',
        until="50s",
        more=expect(
            "at = \"2.9s\"; that = \"hw('orders-0') == 0 and leo('orders-0', b2) == 0\"",
            "at_end = \"hw('orders-0') == 1\"",
        ),
    )
    (fault,) = of_kind(result, Kind.FAULT)
    assert fault.args["id"] == "lag"
    assert fault.args["target"] == [["b1", "b2"], ["b1", "b3"]]
    assert fault.args["args"]["only"] == ["FetchResponse"]
    assert of_kind(result, Kind.HEAL)[0].t_us == 3_000_000
    dropped = {each.args["type"] for each in of_kind(result, Kind.DROP)}
    assert dropped == {"FetchResponse"}


def test_cut_of_both_ways_and_of_what_is_under_way() -> None:
    steps = 'at = "1s"; cut = { from = "b1", to = "b2", both = true, in_flight = "hold" }'
    (fault,) = of_kind(passed(steps), Kind.FAULT)
    assert fault.args["target"] == [["b1", "b2"], ["b2", "b1"]]
    assert fault.args["args"]["in_flight"] == "hold"
    assert failed('at = "1s"; cut = { from = "b1", to = "leader:orders-0" }') == (
        "step 1: there is no link from b1 to b1"
    )


def test_partition_leaves_those_in_no_group_alone() -> None:
    (fault,) = of_kind(passed('at = "1s"; partition = [["b1"], ["b2"]]'), Kind.FAULT)
    assert fault.args["target"] == [["b1", "b2"], ["b2", "b1"]]
    reason = failed('at = "1s"; partition = [["b1"], ["isr:orders-0"]]')
    assert reason.endswith("allowed is each node once: 'b1' is twice")


def test_heal_of_all_and_of_what_is_not_active() -> None:
    fault = '[[fault]]\nid = "f"\nkind = "pause"\ntarget = "b3"\nstart = "1s"\nend = "%s"\n'
    result = passed(
        'at = "1s"; cut = { from = "b1", to = "b2" }',
        'at = "1.5s"; fill = { node = "b2", free = 100 }',
        'at = "2s"; heal = "all"',
        'at = "3s"; heal = "all"',
        more=fault % "9s",
    )
    assert [each.t_us for each in of_kind(result, Kind.HEAL)] == [2_000_000] * 3
    assert failed('at = "3s"; heal = "f"', more=fault % "2s") == (
        "step 1: 'f' is not active, active are: none"
    )


# The operator and hardware -----------------------------------------------------------------------


def test_the_operators_steps() -> None:
    passed(
        'at = "1s"; ' + PRODUCE,
        'create_topic = { name = "bills", replicas = [["b2", "b3"]], '
        'config = { "min.insync.replicas" = 1 } }',
        'produce = { to = "bills-0", count = 2 }',
        'config = { topic = "bills", set = { "min.insync.replicas" = 2 } }',
        'delete_records = { partition = "orders-0", before = 2 }',
        'reassign = { partition = "bills-0", replicas = ["b1", "b2"] }',
        "wait = \"isr('bills-0') == {b1, b2} and leader('bills-0') == b2\"",
        'elect = { partition = "bills-0" }',
        "wait = \"leader('bills-0') == b1\"",
        'id = "gone"; delete_topic = "bills"',
        until="40s",
        more=expect(
            "at_end = \"log_start('orders-0') == 2 and epoch('bills-0') == -1\"",
        ),
    )


def test_what_the_operator_is_refused_ends_the_run() -> None:
    assert "create topic orders: orders TOPIC_ALREADY_EXISTS" in failed(
        'at = "1s"; delete_topic = "bills"',
        'id = "x"; after = "y"; create_topic = { name = "orders" }',
        'at = "3s"; settle = "1s"',
        topic=TOPIC + TOPIC.replace("orders", "bills"),
        more='[[fault]]\nid = "y"\nkind = "clock-step"\ntarget = "b1"\nby = "1s"\nstart = "1.5s"',
    )
    reason = failed('at = "1s"; elect = { partition = "orders-0" }')
    assert reason == "step 1: elect orders-0: orders-0 ELECTION_NOT_NEEDED"
    reason = failed('at = "1s"; delete_records = { partition = "orders-0", before = 7 }')
    assert "OFFSET_OUT_OF_RANGE" in reason


def test_an_unclean_election_names_its_leader() -> None:
    passed(
        'at = "1s"; ' + PRODUCE,
        'at = "2s"; elect = { partition = "orders-0", kind = "unclean", to = "b3" }',
        more=expect("at = \"3s\"; that = \"leader('orders-0') == b3 and epoch('orders-0') == 1\""),
    )
    with pytest.raises(ScenarioError, match="won by the first replica"):
        scenario('at = "1s"; elect = { partition = "orders-0", to = "b3" }')


def test_slow_makes_a_node_slow_until_it_is_healed() -> None:
    def time(*steps: str) -> float:
        result = passed(*steps, 'id = "p"; at = "2s"; produce = { to = "orders-0", count = 1 }')
        return done_at(result, "p")

    plain = time()
    for words in ('link = "20ms"', "cpu = 1000", 'disk = "20ms"'):
        step = f'id = "s"; at = "1s"; slow = {{ node = "leader:orders-0", {words} }}'
        assert time(step) > plain + 0.015
        assert time(step, 'at = "1.5s"; heal = "s"') == pytest.approx(plain, abs=0.002)


def test_fill_leaves_no_room() -> None:
    result = passed(
        'id = "full"; at = "1s"; fill = { node = "b1", free = 10 }',
        'at = "2s"; produce = { to = "orders-0", count = 1, timeout = "1s" }',
        until="20s",
    )
    assert of_kind(result, Kind.DISK_ERROR, "b1", fault="full/b1")


def test_corrupt_strikes_a_record_or_a_byte() -> None:
    name = "00000000000000000000.log"
    for where in ("offset = 1", f'file = "{name}", byte = 95'):
        for how in ("flip", "zero", "truncate"):
            result = passed(
                'at = "1s"; ' + PRODUCE,
                'settle = "1s"',
                'id = "rot"; at = "3s"; corrupt = { node = "b3", partition = "orders-0", '
                f'{where}, how = "{how}" }}',
                more=expect('at = "3s"; that = "record(\'orders-0\', b3, 1) is None"'),
            )
            (event,) = of_kind(result, Kind.CORRUPT, "b3")
            assert event.args["fault"] == "rot"
    for words, text in (
        ("offset = 9", "b3 has no record at offset 9 of orders-0"),
        ('file = "x.log", byte = 1', "b3 has no file /orders-0/x.log"),
        (f'file = "{name}", byte = 99999', "/orders-0/00000000000000000000.log of b3 has"),
    ):
        reason = failed(
            'at = "1s"; ' + PRODUCE,
            f'at = "3s"; corrupt = {{ node = "b3", partition = "orders-0", {words} }}',
        )
        assert reason.startswith(f"step 2: {text}")


def test_a_record_behind_damage_is_not_found() -> None:
    rot = 'corrupt = { node = "b3", partition = "orders-0", offset = %d, how = "zero" }'
    reason = failed('at = "1s"; ' + PRODUCE, 'at = "3s"; ' + rot % 1, 'at = "4s"; ' + rot % 2)
    assert reason == "step 3: b3 has no record at offset 2 of orders-0"
