"""The commented file that ``leaderfall new`` writes; it runs as it is.

Left out: where it is written.
"""

from __future__ import annotations

from typing import Final

from sim.scenario.names import checked_name
from sim.scenario.problems import Problem, Refusal, ScenarioError

__all__ = ["template"]

_TEMPLATE: Final = """schema = 1
name   = "@NAME@"
title  = "The leader dies, and nothing is lost"
until  = "30s"                   # of virtual time; text with a unit: "250ms", "3.5s", "2m"
seed   = 0                       # --seed on the command line wins

# Draw here what the logs look like; it helps whoever reads this next.
#
#   offset   0 .. 9
#   b1       e0        the leader, killed at 3s
#   b2, b3   e0        one of them leads from about 12s on

[cluster]
brokers = 3                      # b1, b2, b3; the controller is c1
# config = { "broker.session.timeout.ms" = 9000 }   # Kafka's names, in quotes
# truncation = "fetch"           # or "kip-279", "kip-101", "high-watermark"

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"]]  # one list a partition; the first is the preferred leader
config   = { "min.insync.replicas" = 2 }

# Variants run the same steps with some values changed; without any, the file runs once.
# [[variant]]
# name = "two are enough"
# set  = { "topic.orders:min.insync.replicas" = 1 }

# Steps: one action each. Without "at", a step runs when the one before it is done.
# Actions: produce consume settle wait crash start shutdown cut partition heal pause resume flush
# elect reassign config delete_records create_topic delete_topic slow corrupt fill

[[step]]
at      = "1s"
produce = { to = "orders-0", count = 10, acks = "all" }

[[step]]
settle  = "2s"                   # until every live replica has caught up

[[step]]
id      = "kill"
at      = "3s"
crash   = { node = "leader:orders-0", how = "process" }   # or how = "power"

[[step]]
at      = "20s"
start   = "b1"

# Expectations: exactly one of at + that, eventually, always, at_end, breaks.
# `leaderfall explain observables` lists what can be asked.

[[expect]]
after      = "kill"
within     = "12s"
eventually = "leader('orders-0') in {b2, b3} and epoch('orders-0') == 1"

[[expect]]
at_end  = "lost('acked') == 0 and leo('orders-0') == 10"
because = "acks=all with two in-sync replicas: the new leader had every record"

[[expect]]
at_end  = "same_log('orders-0', b1, b2, b3)"
"""


def template(name: str) -> str:
    """The text of a new scenario file.

    Raises:
        ScenarioError: the name is none.
    """
    try:
        return _TEMPLATE.replace("@NAME@", checked_name(name))
    except Refusal as refusal:
        problem = Problem("name", 0, 0, 1, "", refusal.text, refusal.hint)
        raise ScenarioError([problem]) from None
