"""What becomes of a process and its disk: ends and starts, pauses, failpoints, crash loops."""

from __future__ import annotations

import pytest

from cluster.config import BrokerConfig
from cluster.failpoints import FAILPOINTS
from sim import faults
from sim.cluster_config import ClusterConfig, DiskConfig
from sim.disk_faults import DiskFault
from sim.draws import Draws
from sim.failpoints import Failpoint
from sim.plans import Planned, schedule
from sim.schedulers import Seeded
from sim.trace.kinds import Kind
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World, WorldError
from tests.sim.worlds import SECOND_US, events, led_world, new_world, values_of

VALUES = [f"p1-{number}".encode() for number in range(20)]


# Ends and starts ---------------------------------------------------------------------------------


def test_a_kill_keeps_what_was_written_and_a_power_loss_takes_it() -> None:
    for how, image, left in (
        ("process", "lost", VALUES),
        ("power", "kept", VALUES),
        ("power", "lost", []),
    ):
        world, cluster = led_world()
        cluster.produce("orders", 20).wait()
        world.crash("b2", how, image=image)
        assert values_of(world, "b2") == left, (how, image)
        assert world.view().status("b2") == ("off" if how == "power" else "down")


def test_a_power_loss_says_what_it_took() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 20).wait()
    world.crash("b2", "power")
    crash = events(world, Kind.CRASH)[0]
    lost = events(world, Kind.LOST)
    log = [each for each in lost if each.args["file"].endswith(".log")]
    assert [each.cause for each in lost] == [(crash.n,)] * len(lost)
    assert [(each.args["position"], each.args["how"]) for each in log] == [(0, "lost")]


def test_synced_records_survive_a_power_loss() -> None:
    world, cluster = led_world(topic={"min.insync.replicas": "2", "flush.messages": "1"})
    cluster.produce("orders", 20).wait()
    for name in ("b1", "b2"):
        world.crash(name, "power")
    assert values_of(world, "b1") == VALUES


def test_write_back_makes_records_durable_without_a_sync() -> None:
    found = []
    for delays in (None, (100_000, 400_000)):
        world, cluster = led_world(disk=DiskConfig(writeback_us=delays))
        cluster.produce("orders", 20).wait()
        world.run_for(SECOND_US)
        world.crash("b1", "power")
        found.append(values_of(world, "b1"))
    assert found == [[], VALUES]


def test_a_broker_that_was_killed_comes_back_and_joins() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 20).wait()
    world.crash("b1", "power")
    world.run_for(20 * SECOND_US)
    assert world.view().isr("orders") == ("b2", "b3")
    world.start("b1")
    world.run_for(10 * SECOND_US)
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    assert values_of(world, "b1") == VALUES


def test_a_controlled_shutdown_moves_the_leader_first_and_loses_nothing() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 20).wait()
    world.shutdown("b1")
    assert world.run_until_true(lambda: world.view().status("b1") == "down", 30 * SECOND_US)
    assert world.view().leader("orders") == "b2"
    world.crash("b1", "power")
    assert values_of(world, "b1") == VALUES
    assert [each.kind for each in events(world, Kind.SHUTDOWN, Kind.CLOSE, Kind.STOP)] == [
        Kind.SHUTDOWN,
        Kind.CLOSE,
        Kind.STOP,
    ]


def test_a_wiped_disk_and_an_older_one() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 10).wait()
    world.run_for(SECOND_US)
    world.copy_disk("b3", "before")
    cluster.produce("orders", 10).wait()
    world.run_for(SECOND_US)
    found = {}
    for disk in ("before", "wiped"):
        world.crash("b3")
        world.start("b3", disk=disk)
        found[disk] = values_of(world, "b3")
        world.run_for(20 * SECOND_US)
        assert values_of(world, "b3") == VALUES
    assert found == {"before": VALUES[:10], "wiped": []}
    world.crash("b3")
    with pytest.raises(WorldError, match=r"disk is 'after', allowed are same, wiped, before"):
        world.start("b3", disk="after")


def test_impossible_steps_say_what_the_node_is() -> None:
    world, _ = led_world()
    with pytest.raises(WorldError, match="b1 is running already"):
        world.start("b1")
    world.crash("b1")
    with pytest.raises(WorldError, match="b1 is down: no process runs there"):
        world.crash("b1")
    with pytest.raises(WorldError, match="node is 'b9', there are c1, b1, b2, b3, admin"):
        world.crash("b9")
    with pytest.raises(WorldError, match="how is 'axe', allowed are process, power"):
        world.crash("b2", "axe")
    with pytest.raises(WorldError, match="image is 'odd', allowed are lost, kept, drawn, "):
        world.crash("b2", "power", image="odd")
    world.crash("b1", "power")
    with pytest.raises(WorldError, match="b1 is off already"):
        world.crash("b1", "power")
    with pytest.raises(WorldError, match="b2 is running, not paused"):
        world.resume("b2")
    world.pause("b2")
    with pytest.raises(WorldError, match="b2 is paused already"):
        world.pause("b2")


# Dead processes ----------------------------------------------------------------------------------


def test_nothing_of_a_dead_process_acts() -> None:
    """At whatever entry it is struck: no event of its node, but the end's own, until it starts."""
    world, cluster = led_world()
    cluster.produce("orders", 5)
    checked = 0
    while world.now_us < 2_700_000 and world.step():
        twin = world.copy()
        count = twin.trace.count
        twin.crash("b1", "process")
        twin.run_for(SECOND_US)
        heard = [each for each in twin.trace.events()[count:] if each.node == "b1"]
        allowed = {Kind.CRASH, Kind.DROP, Kind.RESET, Kind.REFUSE}
        assert {each.kind for each in heard} <= allowed, heard
        checked += 1
    assert checked > 70


def test_a_new_process_gets_nothing_that_was_meant_for_the_old_one() -> None:
    """Restart at once, at any entry: no response reaches a machine that has not asked for it."""
    world, cluster = led_world()
    cluster.produce("orders", 5)
    checked = 0
    while world.now_us < 2_600_000 and world.step():
        twin = world.copy()
        twin.crash("b2")
        twin.start("b2")
        first = twin.trace.count
        twin.run_for(SECOND_US)
        asked = {
            each.args["id"]
            for each in twin.trace.events()[first:]
            if each.node == "b2"
            and each.kind is Kind.SEND
            and each.args["type"].endswith("Request")
        }
        answers = {
            each.args["id"]
            for each in twin.trace.events()[first:]
            if each.node == "b2"
            and each.kind is Kind.DELIVER
            and each.args["type"].endswith("Response")
        }
        assert answers <= asked
        checked += 1
    assert checked > 50


# Pauses and slowness -----------------------------------------------------------------------------


def test_a_paused_host_handles_nothing_and_then_everything_in_order() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    paused = world.pause("b2")
    world.run_for(2 * SECOND_US)
    assert not [each for each in world.trace.events() if each.n > paused and each.node == "b2"]
    resumed_us = world.now_us
    world.resume("b2")
    world.run_for(SECOND_US)
    handled = [
        each
        for each in events(world, Kind.DELIVER, Kind.TIMER, node="b2")
        if each.n > paused and each.t_us < resumed_us + 5_000
    ]
    assert len(handled) >= 3
    assert handled[0].t_us == resumed_us
    deliveries = [each.cause[0] for each in handled if each.kind is Kind.DELIVER]
    assert deliveries == sorted(deliveries)


def test_what_a_handler_was_about_to_send_leaves_when_its_host_goes_on() -> None:
    world, cluster = led_world(cpu_us=(1_000, 1_000))
    pending = cluster.produce("orders", 1, acks=1)
    assert world.run_until_true(lambda: values_of(world, "b1") != [], SECOND_US)
    world.pause("b1")
    world.run_for(2 * SECOND_US)
    assert not pending.is_done()
    resumed_us = world.now_us
    world.resume("b1")
    pending.wait()
    (acked,) = events(world, Kind.ACK)
    assert resumed_us < acked.t_us < resumed_us + 10_000


def test_a_long_pause_of_the_leader_makes_a_zombie_that_steps_back() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 5).wait()
    world.pause("b1")
    assert world.run_until_true(lambda: world.view().leader("orders") == "b2", 20 * SECOND_US)
    world.resume("b1")
    replica = world.view().replica("b1", "orders")
    assert replica is not None
    assert replica.leading is not None
    world.run_for(5 * SECOND_US)
    assert replica.leading is None
    assert world.view().isr("orders") == ("b1", "b2", "b3")


def test_a_slow_cpu_makes_acknowledgements_late() -> None:
    times = []
    for factor_ppm in (1_000_000, 1_000_000_000):
        world, cluster = led_world()
        fault = faults.SlowCpu(id="slow", node="b2", factor_ppm=factor_ppm)
        schedule(world, [Planned(fault, world.now_us)])
        world.run_for(1)
        begun_us = world.now_us
        cluster.produce("orders", 1).wait()
        times.append(world.now_us - begun_us)
    assert times[1] > times[0] + 5_000


def test_a_stalled_disk_blocks_its_lane_and_not_the_heartbeats() -> None:
    """Hazard B-46: the broker is alive for the controller, and appends nothing."""
    world, cluster = led_world(topic={"flush.messages": "1", "min.insync.replicas": "1"})
    begun_us = world.now_us
    stall = faults.DiskStall(id="stall", node="b1", duration_us=30 * SECOND_US)
    schedule(world, [Planned(stall, begun_us)])
    produced = cluster.produce("orders", 1, timeout_us=60 * SECOND_US)
    world.run_for(20 * SECOND_US)
    assert not produced.is_done()
    assert not events(world, Kind.FENCE)
    beats = [
        each
        for each in events(world, Kind.SEND, node="b1")
        if each.args["type"] == "BrokerHeartbeatRequest" and each.t_us > begun_us
    ]
    assert len(beats) >= 8
    produced.wait()
    assert world.now_us >= begun_us + 30 * SECOND_US


# Failpoints --------------------------------------------------------------------------------------


@pytest.mark.parametrize("action", ["process", "power"])
@pytest.mark.parametrize("point", ["produce-appended", "hw-advanced"])
def test_a_leader_dies_at_a_failpoint(point: str, action: str) -> None:
    world, cluster = led_world()
    cluster.produce("orders", 3).wait()
    world.add_failpoint("b1", Failpoint(id="f1", point=point, hit=1, action=action))
    cluster.produce("orders", 1)
    world.run_for(SECOND_US)
    reached, crash = events(world, Kind.FAILPOINT, Kind.CRASH)
    assert reached.args == {"fault": "f1", "point": point, "hit": 1, "action": action}
    assert (crash.args["how"], crash.cause) == (action, (reached.n,))
    # Behind the append and in front of the answer.
    assert len(events(world, Kind.APPEND, node="b1")) == 4
    assert len(events(world, Kind.ACK)) == 3


def test_the_hit_counts() -> None:
    world, cluster = led_world()
    world.add_failpoint("b1", Failpoint(id="f1", point="produce-appended", hit=4))
    cluster.produce("orders", 10)
    world.run_for(SECOND_US)
    assert len(events(world, Kind.APPEND, node="b1")) == 4


def test_hits_count_from_when_a_failpoint_is_armed() -> None:
    world, cluster = led_world()
    for number, hit in enumerate((2, 1, 3)):
        failpoint = Failpoint(id=f"f{number}", point="produce-appended", hit=hit, action="yield")
        world.add_failpoint("b1", failpoint)
        before = len(events(world, Kind.APPEND, node="b1"))
        for _ in range(4):
            cluster.produce("orders", 1).wait()
        appends = [each.n for each in events(world, Kind.APPEND, node="b1")][before:]
        struck = events(world, Kind.FAILPOINT, node="b1")[number]
        assert sum(n < struck.n for n in appends) == hit


@pytest.mark.parametrize("point", sorted(FAILPOINTS))
def test_a_yield_at_every_point_changes_nothing_but_time(point: str) -> None:
    world = new_world()
    for name in ("b1", "b2", "b3"):
        world.add_failpoint(
            name, Failpoint(id=f"f-{name}", point=point, action="yield", duration_us=200_000)
        )
    world_cluster_produces(world)
    if point != "isr-change-sent":
        assert events(world, Kind.FAILPOINT)
    resumed = [each for each in events(world, Kind.RESUME) if each.args["point"] == point]
    assert len(resumed) >= len(events(world, Kind.FAILPOINT))


def world_cluster_produces(world: World) -> None:
    """Twenty records arrive everywhere."""
    cluster = Cluster(world)
    cluster.create_topic("orders", config={"min.insync.replicas": "2"}).wait()
    outcomes = cluster.produce("orders", 20).wait()
    assert {outcome.kind.value for outcome in outcomes} == {"acked"}
    world.run_for(5 * SECOND_US)
    assert [values_of(world, name) for name in ("b1", "b2", "b3")] == [VALUES] * 3


def test_a_pause_at_a_failpoint_stops_the_whole_host() -> None:
    world, cluster = led_world()
    failpoint = Failpoint(
        id="f", point="fetch-received", hit=1, action="pause", duration_us=3 * SECOND_US
    )
    world.add_failpoint("b2", failpoint)
    cluster.produce("orders", 5).wait()
    pause, resume = (
        each
        for each in events(world, Kind.PAUSE, Kind.RESUME, node="b2")
        if "point" not in each.args
    )
    assert resume.t_us - pause.t_us >= 3 * SECOND_US
    between = [
        each for each in world.trace.events() if each.node == "b2" and pause.n < each.n < resume.n
    ]
    assert not between


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("action", ["process", "pause"])
def test_what_was_put_before_a_failpoint_has_left(action: str, seed: int) -> None:
    world = World(
        ClusterConfig(broker=BrokerConfig(replica_lag_time_max_ms=2_000)),
        seed=seed,
        scheduler=Seeded(Draws(seed)),
        trace=Trace("events", keeps_lines=True),
    )
    cluster = Cluster(world)
    cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]]).wait()
    fault = cluster.cut("b1", "b3", both=True)
    cluster.produce("orders", 1, acks=1).wait()
    assert world.run_until_true(lambda: world.view().isr("orders") == ("b1", "b2"), 60 * SECOND_US)
    failpoint = Failpoint(id="f", point="isr-change-sent", action=action, duration_us=SECOND_US)
    world.add_failpoint("b1", failpoint)
    cluster.heal(fault)
    armed = world.hosts["b1"].failpoints.armed
    assert world.run_until_true(lambda: not armed, 60 * SECOND_US)
    (reached,) = events(world, Kind.FAILPOINT)
    world.run_for(SECOND_US // 2)
    (end,) = events(world, Kind.CRASH, Kind.PAUSE, node="b1")
    sent = [
        each
        for each in events(world, Kind.SEND, node="b1")
        if each.args["type"] == "AlterPartitionRequest" and reached.n < each.n
    ]
    assert [each.cause for each in sent] == [reached.cause]
    assert sent[0].n < end.n


def test_power_is_cut_inside_a_named_disk_call() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 3).wait()
    point = "disk:write_at:00000000000000000000.log"
    world.add_failpoint("b1", Failpoint(id="f", point=point, hit=2, action="power", image="kept"))
    cluster.produce("orders", 5)
    world.run_for(SECOND_US)
    assert world.view().status("b1") == "off"
    # The second append from then on is under way: it is in the file, and nobody noted it.
    assert len(values_of(world, "b1")) == 5
    assert len(events(world, Kind.APPEND, node="b1")) == 4


@pytest.mark.parametrize(
    ("point", "action", "text"),
    [
        ("nowhere", "process", "point is 'nowhere', allowed are produce-appended, "),
        ("hw-advanced", "melt", "action is 'melt', allowed are process, power, pause, yield"),
        ("disk:append:.log", "pause", "allowed at a disk call is disk:CALL:PATH-SUFFIX with"),
        ("disk:append", "power", "allowed at a disk call is disk:CALL:PATH-SUFFIX with"),
    ],
)
def test_failpoints_that_are_none(point: str, action: str, text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Failpoint(id="f", point=point, action=action)


def test_a_crash_loop_ends_recovery_at_each_call_and_then_lets_it_be() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 20).wait()
    loop = faults.CrashLoop(id="loop", node="b2", calls=(3, 40, 7), how="power", image="drawn")
    schedule(world, [Planned(loop, world.now_us)])
    world.run_for(30 * SECOND_US)
    ends = events(world, Kind.CRASH, node="b2")
    starts = events(world, Kind.START, node="b2")
    assert len(ends) == 4
    assert len(starts) == 5
    (begun,) = events(world, Kind.FAULT)
    assert [each.cause for each in ends[1:]] == [(begun.n, each.n) for each in starts[1:-1]]
    assert world.view().isr("orders") == ("b1", "b2", "b3")
    assert values_of(world, "b2") == VALUES


def test_a_directory_that_cannot_be_opened_ends_the_start_and_says_why() -> None:
    world, cluster = led_world()
    cluster.produce("orders", 3).wait()
    world.crash("b2")
    world.run_for(SECOND_US)
    error = DiskFault(id="eio", kind="error", operation="listdir")
    fault = faults.DiskCallFault(id="eio", node="b2", fault=error)
    schedule(world, [Planned(fault, world.now_us)])
    world.run_for(1)
    world.start("b2")
    start, crash = events(world, Kind.START, Kind.CRASH, node="b2")[-2:]
    assert (crash.args["how"], crash.args["error"]) == ("start-failed", "DISK_ERROR")
    assert crash.cause == (start.n,)
    assert world.view().status("b2") == "down"
    assert world.host("b2").failed_start is not None
    world.start("b2")
    assert world.view().status("b2") == "running"
