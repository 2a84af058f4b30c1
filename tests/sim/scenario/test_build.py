"""A scenario becomes the configuration of a world; and the schema knows what the reader knows."""

from __future__ import annotations

import json
import tomllib
from typing import Any

import pytest
from attrs import fields

from cluster.config import BrokerConfig, ControllerConfig, TopicConfig
from cluster.truncation import TruncationMode
from sim.cluster_config import ClockConfig, ClusterConfig
from sim.scenario.actions import ACTIONS, CreateTopic
from sim.scenario.build import assignments_of, cluster_config, options_of, scheduler_of
from sim.scenario.cluster_keys import TRUNCATIONS, ClusterKeys
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.kafka_keys import CLUSTER_KEYS, TOPIC_KEYS
from sim.scenario.kinds import doc_of, key_of
from sim.scenario.model import Topic
from sim.scenario.schema import schema
from sim.scenario.template import template
from sim.schedulers import Fifo, Pct, Seeded
from sim.world import IMAGES, World
from tests.sim.scenario.test_reading import FAULTS
from tests.sim.scenario.texts import BASE, EXAMPLES, example, read

TEXT = """
[cluster]
brokers = 4
truncation = "kip-279"
eligible_leader_replicas = true
metadata_snapshot_records = 9
writeback = ["100ms", "30s"]
names_mode = "posix"
network = "datagram"
latency = { base = ["1ms", "2ms"], jitter = "7us", tail_ppm = 3, tail = "1s", clients = "immune" }
disk = { fsync = "1ms", tail_ppm = 4, tail = "2s", call = "3us", names = "4us", capacity = 99 }
cpu = "1us"
background = ["2ms", "3ms"]
scheduler = "seeded"
[cluster.config]
"broker.session.timeout.ms" = 5000
"broker.heartbeat.interval.ms" = "1000"
"leader.imbalance.check.interval.seconds" = 3
"min.insync.replicas" = 2
"unclean.leader.election.enable" = true
"log.flush.interval.messages" = 1
[cluster.guards]
fetch-epoch = false
[cluster.clocks.b1]
offset = "-5s"
wall_ppm = -3
"""


def test_every_key_of_cluster_arrives() -> None:
    found = cluster_config(read(TEXT))
    assert (found.brokers, found.broker.truncation) == (4, TruncationMode.KIP_279)
    assert found.broker.eligible_leader_replicas
    assert found.controller.eligible_leader_replicas
    assert found.controller.metadata_snapshot_records == 9
    assert (found.broker.broker_session_timeout_ms, found.broker.broker_heartbeat_interval_ms) == (
        5_000,
        1_000,
    )
    assert found.controller.broker_session_timeout_ms == 5_000
    assert found.controller.leader_imbalance_check_interval_ms == 3_000
    assert found.topic == TopicConfig(
        min_insync_replicas=2, unclean_leader_election_enable=True, flush_messages=1
    )
    assert not found.guards.fetch_epoch
    assert found.guards.hw_freeze
    network, disk, speed = found.network, found.disk, found.disk.speed
    assert (network.mode, network.base_min_us, network.base_max_us) == ("datagram", 1_000, 2_000)
    assert (network.jitter_mean_us, network.tail_ppm, network.tail_max_us) == (7, 3, 1_000_000)
    assert network.clients == "immune"
    assert (disk.names_mode, disk.writeback_us) == ("posix", (100_000, 30_000_000))
    assert disk.capacity_bytes == 99
    assert (speed.fsync_min_us, speed.fsync_max_us, speed.tail_ppm) == (1_000, 1_000, 4)
    assert (speed.tail_max_us, speed.call_us, speed.names_us) == (2_000_000, 3, 4)
    assert (found.cpu_us, found.background_us) == ((1, 1), (2_000, 3_000))
    assert found.clocks == {"b1": ClockConfig(offset_us=-5_000_000, wall_ppm=-3)}


def test_nothing_said_is_what_a_world_has_anyway() -> None:
    assert cluster_config(read("")) == ClusterConfig()


def test_a_world_runs_with_it() -> None:
    scenario = read(TEXT)
    world = World(cluster_config(scenario), seed=3, scheduler=scheduler_of(scenario, 3))
    world.run_until(3_000_000)
    assert world.view().running() == ["b1", "b2", "b3", "b4"]


def test_schedulers() -> None:
    for word, kind in (("fifo", Fifo), ("seeded", Seeded), ("pct", Pct)):
        assert type(scheduler_of(read(f'[cluster]\nscheduler = "{word}"'), 1)) is kind


def test_replicas_that_no_file_names() -> None:
    assert assignments_of(Topic(name="t"), 5) == (("b1", "b2", "b3"),)
    assert assignments_of(Topic(name="t"), 2) == (("b1", "b2"),)
    made = CreateTopic(name="t", partitions=3, replication=2)
    assert assignments_of(made, 3) == (("b1", "b2"), ("b2", "b3"), ("b3", "b1"))
    given = Topic(name="t", replicas=(("b3",), ("b1",)))
    assert assignments_of(given, 3) == (("b3",), ("b1",))


def test_effective_options_are_plain_and_complete() -> None:
    found = options_of(read(TEXT))
    assert json.loads(json.dumps(found)) == found
    assert (found["brokers"], found["guards"]) == (4, {"fetch-epoch": False})
    assert found["config"]["broker.session.timeout.ms"] == 5_000
    assert found["config"]["leader.imbalance.check.interval.seconds"] == 3
    assert found["config"]["replica.lag.time.max.ms"] == 30_000
    assert found["config"]["min.insync.replicas"] == "2"
    assert options_of(read(""))["writeback"] == "off"


# Tables that must not drift ----------------------------------------------------------------------


def test_kafka_keys_name_fields_and_keys_that_there_are() -> None:
    brokers = {each.name for each in fields(BrokerConfig)}
    controllers = {each.name for each in fields(ControllerConfig)}
    for key, known in CLUSTER_KEYS.items():
        assert known.doc, key
        assert known.broker in brokers | {""}
        assert known.controller in controllers | {""}
        assert known.topic in (*TOPIC_KEYS, "")
        assert known.broker or known.controller or known.topic
    others = {"eligible_leader_replicas", "truncation", "parked_requests_max", "log"}
    assert brokers - others <= {each.broker for each in CLUSTER_KEYS.values()}
    reached = {each.controller for each in CLUSTER_KEYS.values()}
    assert controllers - others - {"metadata_snapshot_records"} <= reached


def test_words_are_those_of_the_world() -> None:
    assert set(TRUNCATIONS) == {each.value for each in TruncationMode}
    images = schema()["$defs"]["Crash"]["properties"]["image"]["enum"]
    assert tuple(images) == IMAGES


@pytest.mark.parametrize("cls", [*ACTIONS.values(), *FAULT_KINDS.values(), ClusterKeys, Topic])
def test_every_key_says_what_it_is(cls: Any) -> None:
    keys = [key_of(each) for each in fields(cls) if each.init]
    assert len(set(keys)) == len(keys)
    assert all(doc_of(each) for each in fields(cls) if each.init)


# The schema --------------------------------------------------------------------------------------


def documents() -> list[dict[str, Any]]:
    texts = [example(path) for path in EXAMPLES] + [template("x"), BASE, BASE + TEXT]
    for kind in FAULT_KINDS:
        more = FAULTS.get(kind, 'target = "b1"')
        texts.append(f'{BASE}[[fault]]\nid = "f"\nkind = "{kind}"\nstart = "1s"\n{more}\n')
    return [tomllib.loads(text) for text in texts]


def test_the_schema_accepts_what_the_reader_accepts() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    found = schema()
    jsonschema.Draft202012Validator.check_schema(found)
    validator = jsonschema.Draft202012Validator(found)
    for document in documents():
        assert [each.message for each in validator.iter_errors(document)] == []


@pytest.mark.parametrize(
    "text",
    [
        "sed = 1",
        "[cluster]\nbrokers = '3'",
        "[cluster]\nbrokerss = 3",
        "[[step]]\nat = '1s'",
        "[[step]]\nat = '1s'\nsettle = '1s'\nwait = 'True'",
        "[[step]]\nsettle = 2",
        "[[step]]\ncrash = { node = 'b1', how = 'kill' }",
        "[[expect]]\nat_end = 'True'\nalways = 'True'",
        "[[fault]]\nid = 'f'\nkind = 'clogg'\nstart = '1s'\ntarget = 'b1'",
    ],
)
def test_the_schema_refuses_shapes_that_the_reader_refuses(text: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    head = 'schema = 1\nname = "x"\nuntil = "1s"\n'
    document = tomllib.loads(head + text)
    assert list(jsonschema.Draft202012Validator(schema()).iter_errors(document))


def test_the_schema_has_every_key_and_word() -> None:
    found = json.loads(json.dumps(schema()))
    assert found["required"] == ["schema", "name", "until"]
    assert set(ACTIONS) < set(found["properties"]["step"]["items"]["properties"])
    kinds = [
        each["properties"]["kind"]["const"]
        for each in found["properties"]["fault"]["items"]["oneOf"]
    ]
    assert kinds == list(FAULT_KINDS)
    cluster = found["properties"]["cluster"]
    assert set(cluster["properties"]) == {key_of(each) for each in fields(ClusterKeys)}
    assert cluster["properties"]["brokers"]["default"] == 3
    assert found["$defs"]["Produce"]["properties"]["timeout"]["default"] == "30s"
    assert found["$defs"]["Cut"]["required"] == ["from", "to"]
