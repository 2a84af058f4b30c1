"""A follower that fails since its own request was garbled is no failure of the cluster."""

from __future__ import annotations

import pytest
from attrs import evolve

import sim.strikes
from cluster.messages import MESSAGES
from cluster.messages_data import FetchRequest
from cluster.wire import MalformedMessage
from sim.running.findings import examine
from sim.scenario.effective import effective
from sim.scenario.reading import parse_scenario

WORLD = """
schema = 1
name = "misled"
until = "3s"
boot = "2s"

[cluster]
brokers = 3
config = { "broker.heartbeat.interval.ms" = 500 }

[liveness]
within = "60s"

[[topic]]
name = "t1"
replicas = [["b2", "b1", "b3"]]

[[step]]
at = "100ms"
reassign = { partition = "t1-0", replicas = ["b1", "b2", "b3"] }

[[step]]
at = "500ms"
elect = { partition = "t1-0", kind = "preferred" }

[[fault]]
id = "corrupt1"
kind = "corrupt"
target = "b3"
start = "1.2s"
end = "2.9s"
only = ["FetchRequest"]
times = 1
"""

_flip = sim.strikes.flip


def _lower_epoch(data: bytes, positions: list[int]) -> bytes:
    """The one bit is flipped that makes a fetch one of an earlier leader epoch."""
    asked = MESSAGES.decode(data)
    assert isinstance(asked, FetchRequest)
    for position in range(len(data) * 8):
        changed = _flip(data, [position])
        try:
            message = MESSAGES.decode(changed)
        except MalformedMessage:
            continue
        if not isinstance(message, FetchRequest):
            continue
        epochs = [each.current_leader_epoch for each in message.partitions]
        others = evolve(message, partitions=asked.partitions)
        if others == asked and epochs == [asked.partitions[0].current_leader_epoch - 1]:
            return changed
    pytest.fail("no bit lowers the epoch")


def test_by_its_own_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sim.strikes, "flip", _lower_epoch)
    found = examine(effective(parse_scenario(WORLD), None, ()), is_strict=True)
    assert found.findings == ()
    assert found.result is not None
    assert found.result.liveness is not None
    assert found.result.liveness.word == "unavailable"
