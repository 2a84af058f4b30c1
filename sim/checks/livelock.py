"""Livelock: a follower that does the same again and again, and gets nowhere (I12, kind livelock).

Seen while a world runs, in time that does not depend on logs:

* ``note_truncation``: one replica cuts its log at the same offset, for the same answer, under the
  same epoch, ``TRUNCATIONS_MAX`` times, and has got no new bytes in between. Bytes that it had
  before, and cuts again, are not new;
* ``note_answer``: a follower takes ``ANSWERS_MAX`` fetch responses in a row from one leader that
  change nothing, the first and the last of them less than ``BUSY_US`` apart for each. A leader
  holds back a fetch that has nothing to return, and a follower rests behind an error, so whoever
  asks faster than that turns in circles.

Each begins anew with a process, a leader's epoch, and anything new.

Left out: clients that ask again and again; they end by their time-outs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from cluster.broker import Broker
from cluster.messages_data import FetchResponse
from sim.checks.ledger import Ledger, Place
from sim.checks.scene import Scene

__all__ = [
    "ANSWERS_MAX",
    "BUSY_US",
    "TRUNCATIONS_MAX",
    "Turns",
    "circles",
    "count",
    "note_answer",
    "note_truncation",
]

CHECK = "progress"
TRUNCATIONS_MAX: Final = 5
ANSWERS_MAX: Final = 50
BUSY_US: Final = 20_000
"""Of one round. A link and back takes a few milliseconds; a fetch that waits takes hundreds."""


class Turns(NamedTuple):
    """How often the same was seen.

    Attributes:
        same: what must not be new for the next one to count.
        since_us: virtual time of the first.
        first: its event.
    """

    same: tuple[Any, ...]
    times: int
    since_us: int
    first: int


def count(scene: Scene) -> int:
    """How often livelock was seen so far, anywhere."""
    return sum(
        times
        for (check, _, kind), times in scene.repeats.items()
        if (check, kind) == (CHECK, "livelock")
    )


def circles(scene: Scene, partition: str, node: str) -> int:
    """The event since which a replica cuts its log again and again; 0 if it does not."""
    found = scene.turns.get((partition, node, "truncation"))
    return 0 if found is None or found.times < TRUNCATIONS_MAX else int(found.first)


def _count(scene: Scene, key: tuple[str, str, str], same: tuple[Any, ...], event: int) -> Turns:
    before = scene.turns.get(key)
    if before is None or before.same != same:
        found = Turns(same, 1, scene.world.now_us, event)
    else:
        found = before._replace(times=before.times + 1)
    scene.turns[key] = found
    return found


def note_truncation(
    scene: Scene, ledger: Ledger, place: Place, args: Mapping[str, Any], event: int
) -> None:
    """A replica has truncated its log, or begun it anew."""
    replica = place.replica
    epoch = -1 if replica is None else replica.leader_epoch
    same = (
        scene.incarnation(place.node),
        epoch,
        args["offset"],
        args["log_end"],
        args.get("leader_epoch"),
        args.get("end_offset"),
        # What stands below the cut is the same batch, so nothing there was written anew.
        _top(place),
    )
    key = str(ledger.partition), place.node, "truncation"
    found = _count(scene, key, same, event)
    if found.times == TRUNCATIONS_MAX:
        scene.report(
            CHECK,
            ledger.partition,
            "livelock",
            event,
            f"{place.node} cuts its log from {args['log_end']} to {args['offset']} for the "
            f"{TRUNCATIONS_MAX}th time in epoch {epoch}, and has got nothing new since "
            f"#{found.first}",
            causes=(found.first,),
            node=place.node,
            offset=args["offset"],
            log_end=args["log_end"],
            leader_epoch=epoch,
            first=found.first,
        )


def _top(place: Place) -> tuple[int, int]:
    batches = place.mirror.batches
    return (batches[-1].epoch, batches[-1].next) if batches else (-1, -1)


def note_answer(
    scene: Scene,
    node: str,
    broker: Broker,
    leader: str,
    answer: FetchResponse,
    places: Mapping[Any, Place],
    event: int,
) -> None:
    """A follower has taken a fetch response."""
    if any(each.records for each in answer.partitions):
        scene.turns.pop(("", node, f"fetches from {leader}"), None)
        return
    same: list[Any] = [broker.core.broker_epoch]
    for each in answer.partitions:
        place = places.get(each.partition)
        replica = None if place is None else place.replica
        if replica is None or replica.log is None:
            continue
        log = replica.log
        same.append(
            (
                each.partition,
                each.error_code.name,
                each.diverging_epoch,
                replica.leader_epoch,
                log.leo,
                log.log_start_offset,
                replica.high_watermark,
            )
        )
    key = "", node, f"fetches from {leader}"
    found = _count(scene, key, tuple(same), event)
    passed_us = scene.world.now_us - found.since_us
    if found.times < ANSWERS_MAX:
        if passed_us > BUSY_US * found.times:
            # It rests in between. Count from here on.
            scene.turns[key] = Turns(found.same, 1, scene.world.now_us, event)
        return
    del scene.turns[key]
    if passed_us <= BUSY_US * ANSWERS_MAX:
        partition = answer.partitions[0].partition if answer.partitions else None
        scene.report(
            CHECK,
            partition,
            "livelock",
            event,
            f"{node} has taken {ANSWERS_MAX} fetch responses of {leader} within "
            f"{passed_us // 1_000} ms, and nothing has changed by them since #{found.first}",
            causes=(found.first,),
            node=node,
            leader=leader,
            first=found.first,
        )
