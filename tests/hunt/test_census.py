"""What a world shows: every kind of fault with an effect and not without, and no digest moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import messages_control, messages_data
from cluster.errors import ErrorCode
from cluster.messages_control import CreateTopicsResponse, TopicError
from cluster.messages_data import MetadataResponse, PartitionMetadata, TopicMetadata
from sim.running.scenario_run import run_scenario
from sim.scenario.effective import effective
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.model import Scenario
from sim.scenario.reading import read_scenario
from storage.errors import CorruptLog, DiskFull, ForeignFile, StorageError
from tests.hunt.census import Census, refusal_of
from tests.hunt.codes import MESSAGES, codes_in
from tests.hunt.effects import BEGINS_WITH_EFFECT, EFFECTS
from tests.hunt.sights import sights_of
from tests.hunt.worlds import Job, draw, parse, run_again
from tests.sim.running.scenarios import TOPIC, fault, scenario
from tests.sim.running.test_fault_kinds import CASES, Case

SCENARIOS = Path(__file__).resolve().parent.parent.parent / "scenarios"


def seen(found: Scenario) -> set[tuple[str, str]]:
    """Run it with a census."""
    census = Census(found)
    with census.looking_on():
        run_scenario(found, level="digest", on_world=census.on_world)
    return {each.key for each in sights_of(census.mask())}


def of_case(kind: str, case: Case, window: str | None = None) -> Scenario:
    words = f'id = "f"; kind = "{kind}"; {case.words}; {window or case.window}'
    more = case.more + fault(words)
    parts = {"cluster": case.cluster, "topic": TOPIC, "more": more, "until": case.until}
    return scenario(*case.steps, **parts)


@pytest.mark.slow
@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_a_fault_that_has_an_effect_is_seen(kind: str) -> None:
    assert ("fault", kind) in seen(of_case(kind, CASES[kind]))


IDLE = {
    "cut": 'target = { from = "b2", to = "b1" }; only = ["Produce"]',
    "loss": 'target = "b1"; ppm = 1',
    "reset": 'target = { from = "b2", to = "b1" }; only = ["Produce"]',
    "refuse": 'target = { from = "b2", to = "b3" }',
    "limit": 'target = "b1"; bytes_per_s = 1000000000; buffer_bytes = 4000000',
    "corrupt": 'target = { from = "b2", to = "b1" }; only = ["Produce"]',
    "failpoint": 'target = "b3"; point = "fetch-received"; hit = 100000; action = "process"',
    "background-hold": 'target = "b1"',
    "metadata-lag": 'target = "b3"; records = 1',
    "fill": 'target = "b3"; free = 100000000',
    "fsync-fail": 'target = "b3"; path = ".nothing"',
    "fsync-lie": 'target = "b3"; path = ".nothing"',
    "enospc": 'target = "b3"; path = ".nothing"',
    "eio": 'target = "b3"; path = ".nothing"; call = "write_at"',
    "lost-write": 'target = "b3"; path = ".nothing"',
}
"""Faults that begin and have nothing to do."""


@pytest.mark.slow
@pytest.mark.parametrize("kind", IDLE)
def test_a_fault_that_only_begins_is_not_seen(kind: str) -> None:
    case = Case(IDLE[kind], lambda run: True)
    assert ("fault", kind) not in seen(of_case(kind, case))


def test_every_kind_has_a_way_to_be_seen() -> None:
    by_its_node = {
        "slow": "",
        "stall": "",
        "clock-drift": "",
        "clock-freeze": "",
        "timer-jitter": "",
        "clock-step": "",
        "background-hold": "",
    }
    assert sorted([*EFFECTS, *by_its_node]) == sorted(FAULT_KINDS)
    assert {"ClockStep"} == BEGINS_WITH_EFFECT


def test_a_census_changes_nothing() -> None:
    found = parse(draw(Job(17, "unrestricted")))
    census = Census(found)
    digest = run_scenario(found, level="digest").digest
    with census.looking_on():
        looked_at = run_scenario(found, level="digest", on_world=census.on_world)
    assert census.mask()
    assert looked_at.digest == digest
    assert run_again(Job(17, "unrestricted"))["digest"] == digest


# The protocol ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "variant", "shown"),
    [
        ("licences/leader_killed", "acks1", {("election", "of the ISR"), ("licence", "L0")}),
        (
            "licences/all_killed",
            "unclean",
            {("licence", "L1"), ("election", "unclean, as configured")},
        ),
        ("licences/power_of_last", "min-isr-2", {("licence", "L2"), ("election", "nobody")}),
        ("licences/only_copy_rots", "min-isr-1", {("licence", "L4")}),
    ],
)
def test_what_a_scenario_shows(name: str, variant: str, shown: set[tuple[str, str]]) -> None:
    found = effective(read_scenario(SCENARIOS / f"{name}.toml"), variant, ())
    assert shown <= seen(found)


def test_codes_are_found_at_any_depth() -> None:
    modules = (messages_control, messages_data)
    names = {name for each in modules for name in vars(each) if name.endswith("Response")}
    assert {each.__name__ for each in MESSAGES} == names - {"MetadataFetchResponse"}
    bad, worse = ErrorCode.INVALID_CONFIG, ErrorCode.LEADER_NOT_AVAILABLE
    created = CreateTopicsResponse(1, (TopicError("a", ErrorCode.NONE), TopicError("b", bad)))
    assert list(codes_in(created)) == [bad]
    partition = PartitionMetadata(None, worse, None, 0, (), (), (), ())  # type: ignore[arg-type]
    topic = TopicMetadata(ErrorCode.UNKNOWN_TOPIC_ID, "a", "", (partition,))
    told = MetadataResponse(1, 0, "c1", (), (topic,))
    assert list(codes_in(told)) == [ErrorCode.UNKNOWN_TOPIC_ID, worse]


def corrupt(reason: str) -> CorruptLog:
    return CorruptLog(Path("a"), reason, position=0, last_good_offset=0, first_good_offset=None)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (corrupt("crc: is 1, must be 2"), "refused: damaged frame"),
        (
            corrupt("the log ends at offset 3, but 5 was durable"),
            "refused: ends below the durable boundary",
        ),
        (
            corrupt("the log ends at offset 3, below its start 5"),
            "refused: ends below its start",
        ),
        (
            corrupt("batches are missing from here to offset 9"),
            "refused: a segment is missing or misnamed",
        ),
        (DiskFull("write", Path("a"), "ENOSPC"), "refused: the disk fails"),
        (ForeignFile(Path("a"), "is a link"), "refused: foreign file"),
    ],
)
def test_a_refusal_has_a_name(error: StorageError, name: str) -> None:
    assert refusal_of(error) == name
