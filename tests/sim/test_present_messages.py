"""Messages under way, whatever a network does to them: counted by who sends what to whom."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from sim.present.tracks import Tracks
from sim.running.scenario_run import run_scenario
from sim.scenario.reading import parse_scenario
from sim.trace.kinds import Kind

HEAD = """schema = 1
name   = "wires"
until  = "9s"

[cluster]
brokers = 3
network = "{network}"

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"]]

[[step]]
at      = "1s"
produce = {{ to = "orders-0", count = 40, acks = "all" }}

[[step]]
at    = "4s"
crash = {{ node = "b3", how = "process" }}

[[step]]
at    = "5s"
start = "b3"

[[expect]]
at_end = "leo('orders-0') == 40"
"""
FAULT = """
[[fault]]
id     = "{kind}"
kind   = "{kind}"
start  = "{start}"
end    = "{end}"
target = {{ from = "b1", to = ["b2", "b3"], both = true }}
{more}
"""
STREAM = [
    FAULT.format(kind="loss", start="500ms", end="3s", more="ppm = 200000"),
    FAULT.format(kind="clog", start="3500ms", end="6s", more=""),
]
DATAGRAM = [
    FAULT.format(kind="duplicate", start="500ms", end="6s", more="ppm = 500000"),
    FAULT.format(kind="reorder", start="500ms", end="6s", more='ppm = 300000\nup_to = "3ms"'),
    FAULT.format(kind="corrupt", start="500ms", end="3s", more="ppm = 100000\nbits = 1"),
]


@pytest.mark.parametrize(
    ("network", "faults", "kinds"),
    [
        ("stream", STREAM, {Kind.DELAY, Kind.HOLD}),
        ("datagram", DATAGRAM, {Kind.DELAY, Kind.DUPLICATE, Kind.CORRUPT}),
    ],
)
def test_each_copy_is_under_way_until_it_arrives_or_is_lost(
    network: str, faults: list[str], kinds: set[Kind], tmp_path: Path
) -> None:
    scenario = parse_scenario(HEAD.format(network=network) + "".join(faults))
    run_scenario(scenario, path=tmp_path / "trace.jsonl")
    tracks = Tracks.load(tmp_path / "trace.jsonl")
    flying: Counter[tuple[str, str, str]] = Counter()
    seen: Counter[Kind] = Counter()
    for event in tracks.events():
        args, node = event.args, event.node
        seen[event.kind] += 1
        if event.kind in (Kind.SEND, Kind.DUPLICATE):
            flying[args.get("from", node), args.get("to", node), args["type"]] += 1
        elif event.kind in (Kind.DELIVER, Kind.DROP):
            flying[args.get("from", node), args.get("to", node), args["type"]] -= 1
        else:
            continue
        told = Counter((each.sender, each.to, each.type) for each in tracks.messages.at(event.n))
        assert told == +flying, event.n
    assert all(seen[kind] for kind in kinds), seen
