"""What shipped scenarios show at rest is what the nodes' own fields say, from the trace alone."""

from __future__ import annotations

from typing import Any

import pytest

from sim.exports.perfetto_tracks import intervals
from sim.exports.selection import Selection
from sim.present.history import How
from sim.present.moments import PartitionAt, moment
from sim.present.plain_tracks import plain
from sim.present.story import Story
from sim.present.strips import strips
from sim.present.text import print_strips
from sim.present.tracks import Tracks
from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.reading import parse_scenario
from sim.trace.fold import Fold
from sim.trace.kinds import Kind
from tests.sim.cli.tools import ROOT
from tests.sim.stories import printed
from tests.sim.test_present_fates import PART, Script

RUNS = {
    "clients/topic_recreated": "topic ids",
    "clients/records_deleted": "earliest",
    "disks/full_leader": None,
    "disks/wiped_disk": "ELR",
    "kip320_zombie_follower": "today",
    "licences/controller_forgets": "elr-unguarded",
    "licences/disk_wiped": "elr-last",
    "partition_unclean": "unclean on",
    "truncation/retention_restarts_follower": None,
}
OF_LOGS = {
    "log_start": "log_start_offset",
    "log_end": "log_end_offset",
    "high_watermark": "high_watermark",
}


@pytest.fixture(scope="module", params=sorted(RUNS))
def tracks(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Tracks:
    name = request.param
    text = (ROOT / "scenarios" / f"{name}.toml").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("run") / "trace.jsonl"
    run_scenario(effective(parse_scenario(text), RUNS[name]), path=path)
    return Tracks.load(path)


def at_rest(tracks: Tracks) -> list[tuple[int, dict[str, Any]]]:
    """Events behind which no handler is under way, with all fields."""
    fold, found, before = Fold(), [], None
    for event in tracks.events():
        if before is not None and event.t_us != before.t_us:
            found.append((before.n, dict(fold.state)))
        fold.forward(event)
        before = event
    return found


def test_replicas_are_as_their_brokers_say(tracks: Tracks) -> None:
    checked = 0
    series = {
        (each["name"], replica["node"]): replica
        for each in plain(tracks)["partitions"]
        for replica in each["replicas"]
    }
    for n, state in at_rest(tracks):
        for partition in tracks.moment(n).partitions:
            for replica in partition.replicas:
                path = f"{replica.node}/{partition.name}"
                if f"{path}/log_end_offset" not in state:
                    continue
                checked += 1
                assert replica.role == state[f"{path}/role"], (n, path)
                page = series[partition.name, replica.node]
                for key, field in OF_LOGS.items():
                    told = state[f"{path}/{field}"]
                    assert getattr(replica, key) == told, (n, path, key)
                    numbers, values = page[key]
                    shown = [value for at, value in zip(numbers, values, strict=True) if at <= n]
                    assert (shown[-1] if shown else 0 if key == "log_start" else None) == told
                assert all(each.base >= replica.log_start for each in replica.spans), (n, path)
    assert checked > 1_000


def test_leaders_and_isr_are_as_the_controller_says(tracks: Tracks) -> None:
    checked = 0
    last: dict[str, object] = {}
    for n, state in at_rest(tracks):
        for each in tracks.moment(n).partitions:
            if state.get("c1/status") != "running":
                # What a controller that has ended has told still holds.
                assert (each.leader, each.leader_epoch, each.isr) == last[each.name]
                continue
            checked += 1
            told = {key: state.get(f"c1/{each.name}/{key}") for key in ("leader", "leader_epoch")}
            isr, elr = (state.get(f"c1/{each.name}/{key}") or () for key in ("isr", "elr"))
            epoch = -1 if told["leader_epoch"] is None else told["leader_epoch"]
            assert (each.leader, each.leader_epoch) == (told["leader"], epoch), n
            assert sorted(each.isr or ()) == sorted(isr), n
            assert sorted(tracks.story.partitions[each.name].elrs.at(n) or ()) == sorted(elr), n
            last[each.name] = each.leader, each.leader_epoch, each.isr
    assert checked > 300


# Traces of level "events" ------------------------------------------------------------------------


def now_of(script: Script) -> PartitionAt:
    (found,) = moment(script.story()).partitions
    return found


def role_of(script: Script, node: str, role: str, epoch: int, leader: str) -> None:
    args = {"role": role, "leader_epoch": epoch, "leader": leader, "isr": ["a", "b"]}
    script.put(node, Kind.ROLE, **PART, **args, log_end=0)


@pytest.mark.parametrize("is_first", [True, False])
def test_a_topic_that_is_created_anew_has_a_leader_of_a_lower_epoch(is_first: bool) -> None:
    script = Script("c", "a", "b")
    script.elect("a", 2, ["a", "b"], ["a", "b"])
    script.append("a", 0, 5)
    script.put("a", Kind.LOG_START, **PART, log_start_offset=3)
    if is_first:
        script.put("a", Kind.DELETE, **PART)
        now = now_of(script)
        assert (now.leader, now.leader_epoch, now.isr) == (None, -1, ())
        assert [(each.log_start, each.log_end) for each in now.replicas] == [(0, 0)]
    script.put("b", Kind.DELETE, **PART)
    role_of(script, "b", "leader", 0, "b")
    if not is_first:
        script.put("a", Kind.DELETE, **PART)
    role_of(script, "a", "follower", 0, "b")
    now = now_of(script)
    assert (now.leader, now.leader_epoch, now.isr) == ("b", 0, ("a", "b"))


def test_who_hears_late_of_an_old_epoch_is_not_the_leader() -> None:
    script = Script("c", "a", "b")
    script.elect("b", 2, ["b"], ["a", "b"])
    role_of(script, "a", "leader", 1, "a")
    now = now_of(script)
    assert (now.leader, now.leader_epoch, now.isr) == ("b", 2, ("b",))


def test_a_log_that_restarts_is_committed_up_to_where_it_begins() -> None:
    script = Script("a")
    script.append("a", 0, 5)
    script.put("a", Kind.RESTART_AT, **PART, offset=40, log_end=5, high_watermark=5)
    (replica,) = now_of(script).replicas
    assert (replica.log_start, replica.log_end, replica.high_watermark) == (40, 40, 40)


def test_a_log_that_is_cut_below_its_start_begins_there() -> None:
    script = Script("a")
    script.append("a", 0, 9)
    script.put("a", Kind.LOG_START, **PART, log_start_offset=6)
    script.put("a", Kind.TRUNCATE, **PART, offset=4, log_end=9, high_watermark=9)
    (replica,) = now_of(script).replicas
    assert (replica.log_start, replica.log_end) == (4, 4)


def test_an_older_disk_has_an_older_log_start() -> None:
    script = Script("a")
    script.append("a", 0, 9)
    script.put("a", Kind.LOG_START, **PART, log_start_offset=6)
    script.put("a", Kind.START, disk="image")
    script.put("a", Kind.RECOVER, **PART, log_start=0, log_end=4, epochs=[[0, 0]])
    (replica,) = now_of(script).replicas
    assert (replica.log_start, replica.log_end) == (0, 4)


def test_a_wiped_log_without_records_begins_at_zero() -> None:
    script = Script("a")
    script.append("a", 0, 6)
    script.put("a", Kind.LOG_START, **PART, log_start_offset=6)
    script.put("a", Kind.START, disk="wiped")
    (replica,) = now_of(script).replicas
    assert (replica.log_start, replica.log_end, replica.role) == (0, 0, "none")


# Fields of a handler -----------------------------------------------------------------------------


@pytest.mark.parametrize("has_event", [True, False])
def test_a_log_start_is_told_by_its_event_or_else_by_the_field(has_event: bool) -> None:
    script = Script("a", "b")
    script.append("a", 0, 9)
    handler = change(script, Kind.TIMER, [("a/t-0/log_start_offset", 0, 4)], node="a")
    cut = script.put("a", Kind.WRITE, handler, file="/x", position=0, size=1)
    if has_event:
        cut = script.put("a", Kind.LOG_START, handler, **PART, log_start_offset=4)
    script.append("b", 0, 1)
    script.events = [each._replace(t_us=0) for each in script.events]
    replica = script.story().replica("a", "t-0")
    assert [(each.n, each.how, each.base, each.end) for each in replica.cuts] == [
        (cut, How.EXPIRED, 0, 4)
    ]


def test_a_controller_that_ends_takes_nothing_back() -> None:
    script = Script("c", "a", "b")
    fields = {"leader": "a", "leader_epoch": 0, "isr": ["a", "b"], "partition_epoch": 0}
    values = [("c/status", "running"), *((f"c/t-0/{key}", value) for key, value in fields.items())]
    change(script, Kind.TIMER, [(path, None, value) for path, value in values])
    script.append("a", 0, 1)
    ends = [("c/status", "running", "down"), *((path, was, None) for path, was in values[1:])]
    change(script, Kind.CRASH, ends)
    script.append("a", 1, 2)
    assert (now_of(script).leader, now_of(script).isr) == ("a", ("a", "b"))
    change(script, Kind.START, [(path, None, value) for path, value in values])
    change(script, Kind.TIMER, [(path, value, None) for path, value in values[1:]])
    script.append("a", 2, 3)
    assert (now_of(script).leader, now_of(script).leader_epoch, now_of(script).isr) == (
        None,
        -1,
        (),
    )


def change(script: Script, kind: Kind, changes: list[tuple[str, Any, Any]], node: str = "c") -> int:
    n = script.put(node, kind)
    script.events[-1] = script.events[-1]._replace(changes=tuple(changes))
    return n


def test_what_is_last_in_a_trace_is_said() -> None:
    script = Script("c", "a")
    change(script, Kind.TIMER, [("c/t-0/partition_epoch", None, 0), ("c/t-0/leader", None, "a")])
    assert Story(None, script.events).partitions["t-0"].leaders.last == ("a", -1)


def test_a_loss_by_a_forgotten_election_goes_back_to_the_crash(tracks: Tracks) -> None:
    if tracks.header.scenario != "controller-forgets":
        assert all("no longer knew" not in str(each) for each in plain(tracks)["chains"])
        return
    crash = next(
        event.n
        for event in tracks.events()
        if event.kind is Kind.CRASH and event.node == "c1" and event.t_us > 0
    )
    chains = [each for each in plain(tracks)["chains"] if ", lost at " in each["title"]]
    assert chains
    for each in chains:
        (text,) = (words for words, *_ in each["sentences"] if "no longer knew" in words)
        assert f"it had gone at #{crash} " in text
        assert "that b1 leads with epoch 1" in text
        assert text.endswith("By its word b2 leads again, with epoch 0.")


# In words ----------------------------------------------------------------------------------------


def test_who_has_no_epoch_is_shown_with_none() -> None:
    script = Script("c", "a")
    change(script, Kind.TIMER, [("c/t-0/partition_epoch", None, 0), ("c/t-0/leader", None, "a")])
    script.append("a", 0, 1)
    script.put("a", Kind.RECOVER, **PART, role="waiting", log_start=0, log_end=1)
    change(script, Kind.TIMER, [(f"c/t-0/{key}", 0, None) for key in ("partition_epoch", "leader")])
    story = script.story()
    shown = printed(print_strips, strips(story))
    assert "t-0: no leader, ISR empty" in shown
    selection = Selection()
    told = [each.text for each in intervals(story, selection) if each.what == "role"]
    assert told == ["waiting"]
