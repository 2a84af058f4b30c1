"""The parts of a comparison as plain data, in the shape that ``sim.present.comparing`` documents.

Left out: whatever the comparison does not have.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import asdict

from sim.present.aligning import Alignment
from sim.present.compared import Compared
from sim.present.compared_states import PartitionPair, StateAt
from sim.present.divergence import Divergence, Link
from sim.present.header_differences import HeaderDifference
from sim.present.moments import PartitionAt, ReplicaAt
from sim.present.outcomes import Outcome

__all__ = [
    "plain_divergence",
    "plain_header",
    "plain_outcome",
    "plain_pairs",
    "plain_run",
    "plain_states",
]


def plain_header(header: Iterable[HeaderDifference]) -> list[dict[str, Any]]:
    return [{**asdict(each), "text": each.text} for each in header]


def plain_pairs(alignment: Alignment) -> dict[str, list[int]]:
    pairs = list(alignment.pairs())
    return {
        "a": [a for a, _, _ in pairs],
        "b": [b for _, b, _ in pairs],
        "how": [int(how) for _, _, how in pairs],
    }


def plain_run(side: Compared) -> dict[str, Any]:
    header, footer = side.source.header, side.source.footer
    return {
        "name": side.source.name,
        "scenario": header.scenario,
        "variant": header.variant,
        "seed": header.seed,
        "version": header.version,
        "verdict": None if footer is None else footer.verdict,
        "digest": side.keys.digest,
        "last": side.last_n,
        "end_us": side.story.end_us,
        "is_complete": footer is not None,
        "has_watermarks": side.keys.has_changes,
    }


def plain_divergence(found: Divergence) -> dict[str, Any]:
    return {
        "what": found.what,
        "a": found.a,
        "b": found.b,
        "at_a": found.at_a,
        "at_b": found.at_b,
        "text": found.text,
        "unlike": [asdict(each) for each in found.unlike],
        "origin": asdict(found.origin),
        "chain_a": _links(found.chain_a),
        "chain_b": _links(found.chain_b),
    }


def _links(links: tuple[Link, ...]) -> list[list[Any]]:
    return [[each.n, each.node, each.text] for each in links]


def plain_states(found: StateAt) -> dict[str, Any]:
    return {
        "what": found.what,
        "text": found.text,
        "a": found.states.a,
        "b": found.states.b,
        "is_same": found.states.is_same,
        "statuses": [list(each) for each in found.states.statuses],
        "partitions": [_partition(each) for each in found.states.partitions],
    }


def _partition(pair: PartitionPair) -> dict[str, Any]:
    return {
        "name": pair.name,
        "is_same": pair.is_same,
        "unlike": list(pair.unlike),
        "a": _partition_at(pair.a),
        "b": _partition_at(pair.b),
        "replicas": [
            {
                "node": each.node,
                "unlike": list(each.unlike),
                "a": _replica_at(each.a),
                "b": _replica_at(each.b),
            }
            for each in pair.replicas
        ],
    }


def _partition_at(found: PartitionAt | None) -> dict[str, Any] | None:
    if found is None:
        return None
    isr = None if found.isr is None else list(found.isr)
    return {"leader": found.leader, "leader_epoch": found.leader_epoch, "isr": isr}


def _replica_at(found: ReplicaAt | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "status": found.status,
        "role": found.role,
        "leader_epoch": found.leader_epoch,
        "log_start": found.log_start,
        "log_end": found.log_end,
        "high_watermark": found.high_watermark,
        "spans": [[each.base, each.end, each.epoch] for each in found.spans],
    }


def plain_outcome(found: Outcome) -> dict[str, Any]:
    return {
        "both": [list(each) for each in found.both],
        "a": [asdict(each) for each in found.a],
        "b": [asdict(each) for each in found.b],
    }
