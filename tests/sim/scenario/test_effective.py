"""Variants and --set: what they change, in which order, and how a wrong one is told."""

from __future__ import annotations

from typing import Any

import pytest

from sim.scenario.effective import effective, parse_override
from sim.scenario.paths import FORMS
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import read_scenario
from sim.scenario_files import REGRESSIONS, scenario_files
from tests.house import ROOT
from tests.sim.scenario.texts import EXAMPLES, read

TEXT = """
[cluster]
config = { "replica.lag.time.max.ms" = 20000 }
[cluster.guards]
hw-freeze = false
[[topic]]
name = "a.b"
[[variant]]
name = "two"
set = { "cluster.truncation" = "kip-101", "topic.a.b:retention.ms" = 5, "workload.w1.rate" = 7 }
[[variant]]
name = "empty"
[[workload]]
name = "w1"
kind = "producer"
topic = "orders"
rate = 50
[[fault]]
id = "f"
kind = "clog"
target = "b1"
start = "1s"
[[expect]]
variant = ["two", "empty"]
at_end = "True"
[[expect]]
variant = "two"
at_end = "True"
[[expect]]
at_end = "True"
"""


def test_a_variant_changes_values_and_chooses_expectations() -> None:
    base = read(TEXT)
    assert base.variant is None
    assert len(base.expects) == 3
    found = effective(base, "two")
    assert found.cluster.truncation == "kip-101"
    assert found.cluster.config == {"replica.lag.time.max.ms": 20_000}
    assert found.cluster.guards == {"hw-freeze": False}
    assert found.topics[1].config == {"retention.ms": "5"}
    assert found.workloads[0].interval_us == 1_000_000 // 7
    assert (found.variant, [each.number for each in found.expects]) == ("two", [1, 2, 3])
    assert [each.number for each in effective(base, "empty").expects] == [1, 3]
    assert [each.number for each in effective(base).expects] == [3]
    assert base == read(TEXT)
    assert base.cluster.truncation == "fetch"
    assert effective(base).seed == 0
    assert effective(base, seed=9).seed == 9


@pytest.mark.parametrize(
    ("text", "path", "value"),
    [
        ("cluster.brokers=5", "cluster.brokers", 5),
        ("cluster.truncation = fetch", "cluster.truncation", "fetch"),
        ('cluster.truncation="fetch"', "cluster.truncation", "fetch"),
        ("cluster.guards.hw-freeze=true", "cluster.guards.hw-freeze", True),
        ("cluster.latency.base=['1ms', '2ms']", "cluster.latency.base", ["1ms", "2ms"]),
        ("cluster.writeback=", "cluster.writeback", ""),
        ("cluster.name=a=b", "cluster.name", "a=b"),
        ("cluster.x=1\ny=2", "cluster.x", "1\ny=2"),
        ("cluster.x=" + "[" * 3_000, "cluster.x", "[" * 3_000),
    ],
)
def test_overrides_are_read(text: str, path: str, value: Any) -> None:
    assert parse_override(text) == (path, value)


@pytest.mark.parametrize("text", ["", "cluster.brokers", "=5", " =5", "x" * 20_000 + "=1"])
def test_what_is_no_override(text: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        parse_override(text)
    (found,) = caught.value.problems
    assert (found.text, found.hint) == ("this sets nothing", "write PATH=VALUE")
    assert "cluster.KEY" in found.allowed


PATHS: list[tuple[str, Any, Any]] = [
    ("cluster.brokers", 5, lambda s: s.cluster.brokers),
    ("cluster.config.request.timeout.ms", 900, lambda s: s.cluster.config["request.timeout.ms"]),
    ("cluster:request.timeout.ms", 900, lambda s: s.cluster.config["request.timeout.ms"]),
    ("cluster.guards.hw-freeze", True, lambda s: s.cluster.guards["hw-freeze"]),
    ("cluster.disk.bytes_per_us", 3, lambda s: s.cluster.disk.bytes_per_us),
    ("cluster.clocks.b1.wall_ppm", 3, lambda s: s.cluster.clocks["b1"].wall_ppm),
    ("topic.orders:retention.ms", "6", lambda s: s.topics[0].config["retention.ms"]),
    ("topic.a.b:retention.ms", "6", lambda s: s.topics[1].config["retention.ms"]),
    ("workload.w1.batch", 3, lambda s: s.workloads[0].batch),
    ("fault.f.only", ["Fetch"], lambda s: list(s.faults[0].only)),
]


@pytest.mark.parametrize(("path", "value", "get"), PATHS)
def test_every_form_of_a_path(path: str, value: Any, get: Any) -> None:
    base = read(TEXT)
    found = effective(base, None, [(path, value)])
    assert get(found) == value
    assert found.overrides == ((path, value),)


def test_the_command_line_wins_and_its_last_value_does() -> None:
    overrides = [("cluster.truncation", "kip-279"), ("cluster.truncation", "high-watermark")]
    assert effective(read(TEXT), "two", overrides).cluster.truncation == "high-watermark"


DEEP: list[Any] = []
for _ in range(400):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("path", "value", "said", "hint"),
    [
        ("cluster.brokers", "5", '"5" is no integer', "write 5 without quotes"),
        ("cluster.brokers", 2, 'there is no broker "b3"', ""),
        ("cluster.broker", 5, 'unknown key "broker"', 'did you mean "brokers"?'),
        ("cluster", 5, '"cluster" is no path', ""),
        ("clustr.brokers", 5, '"clustr.brokers" is no path', 'did you mean "cluster"?'),
        ("topic.x:retention.ms", 5, 'there is no topic "x"', ""),
        ("topic.orders", 5, '"topic.orders" has no Kafka key', 'write "topic.orders:min'),
        ("topic.orders:x", 5, 'unknown topic config "x"', ""),
        ("workload.w2.rate", 5, 'there is no workload "w2"', ""),
        ("workload.w1.rat", 5, 'unknown key "rat"', 'did you mean "rate"?'),
        ("fault.f", 5, '"fault.f" is no path', ""),
        ("fault.f.id", 5, "5 is no id", ""),
        ("cluster.brokers.x", 5, '"brokers" has no keys that deep', ""),
        (
            "cluster.replica.lag.time.max.ms",
            5,
            'unknown key "replica"',
            "a Kafka key stands behind",
        ),
        ("cluster.guards.x", False, 'there is no guard "x"', ""),
        ("cluster.brokers", DEEP, "nested too deeply", ""),
        ("cluster:broker.session.timeout.ms", 10, "must be more than twice", ""),
        ("seed", 5, '"seed" is no path', ""),
        ("", 5, '"" is no path', ""),
        ("\x1b[31m", 5, '"\\x1b[31m" is no path', ""),
    ],
)
def test_a_wrong_override_is_told(path: str, value: Any, said: str, hint: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        effective(read(TEXT), None, [(path, value)])
    found = caught.value.problems[0]
    assert said in found.text
    assert found.hint.startswith(hint)
    if 'broker "b3"' not in said and "twice" not in said:
        assert (found.file, found.line) == (f"--set {path}", 0)
    assert all(line.isprintable() for line in caught.value.lines())


def test_a_value_below_a_value() -> None:
    overrides = [("cluster.latency", 5), ("cluster.latency.base", "1ms")]
    with pytest.raises(ScenarioError) as caught:
        effective(read(TEXT), None, overrides)
    assert caught.value.problems[0].text == '"cluster.latency.base" is below a value'


def test_an_unknown_variant() -> None:
    with pytest.raises(ScenarioError) as caught:
        effective(read(TEXT), "tow")
    (found,) = caught.value.problems
    assert (found.file, found.text) == ("--variant", 'there is no variant "tow"')
    assert found.hint == 'did you mean "two"?'
    assert found.allowed == ("two", "empty")


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_variant_of_the_shipped_files(path: Any) -> None:
    base = read_scenario(path)
    for variant in (None, *(each.name for each in base.variants)):
        found = effective(base, variant)
        assert found.steps == base.steps
        assert all(each.applies_to(variant) for each in found.expects)


def test_the_readme_of_the_scenarios_has_every_file_and_every_form_of_a_path() -> None:
    folder = ROOT / "scenarios"
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert all(f"{path.name}`" in text for path in scenario_files().values())
    assert f"`{REGRESSIONS}/`" in text
    assert all(f"`{form}`" in text for form in FORMS)
