"""How a history ends: everything is healed, and then nothing may be missing (I12, FAULTS D.5).

Every broker runs and hears everybody. Within a bounded time each partition has a leader and a
complete ISR, all copies are equal and committed, every operation has its outcome, the consumer has
read everything once and in order, and what producers were told is true.

Left out: what holds at every moment (``tests.cluster.whole_watch``).
"""

from __future__ import annotations

from cluster.consumer_events import OffsetReset, TruncationDetected
from cluster.names import TopicIdPartition
from cluster.outcomes import OutcomeKind
from tests.cluster.whole_ledger import Broken, Copy, Ledger
from tests.cluster.whole_world import PRODUCERS, World

SETTLING_MS = 60_000
IDEMPOTENT = ("p1", "p2")


def finish(world: World) -> None:
    """Heal everything, let time pass, and judge."""
    world.do("resume")
    world.do("no_fuses")
    for name in ("c1", *world.names):
        world.do("fast", name)
    world.do("heal")
    for name in ("c1", *world.names):
        world.do("start", name)
    world.do("wait", SETTLING_MS)
    # Who stopped in order while this began is started again.
    for name in ("c1", *world.names):
        world.do("start", name)
    world.do("min_isr", 1)
    world.do("wait", SETTLING_MS)
    if not world.topic_id:
        world.do("recreate")
    for number in range(world.setup.partitions):
        world.do("send", "p1", number, 1)
        world.do("send", "p3", number, 1)
    world.do("wait", 5_000)
    check_progress(world)
    check_outcomes(world)
    check_consumer(world)


def check_progress(world: World) -> None:
    """I12."""
    waiting = sorted(set(world.sent) - set(world.outcomes))
    if waiting:
        raise Broken("I12", f"no outcome of {waiting}\n{world.draw()}")
    for key in list(world.sent)[-2 * world.setup.partitions :]:
        outcome = world.outcomes[key]
        # Where an allowed loss took a producer's batches, its next one may have to find out.
        may_fail = key[0] == "p1" and not is_clean(world)
        if outcome.kind is not OutcomeKind.ACKED and not may_fail:
            raise Broken("I12", f"{key} not even now: {outcome}\n{world.draw()}")
    for partition, record in world.watch.records.items():
        found = {
            place[0]: copy for place, copy in world.watch.copies.items() if place[1] == partition
        }
        is_whole = (
            record.leader is not None
            and set(record.isr) == set(record.replicas) == set(found)
            and not record.adding_replicas
            and not record.removing_replicas
            and not record.elr
        )
        if not is_whole:
            raise Broken("I12", f"{partition} is not whole\n{world.draw()}")
        for name in found:
            state = world.broker(name).fields().get(f"{partition}/fetch_state", "fetching")
            if state != "fetching":
                raise Broken("I12", f"{partition} at {name} is {state}\n{world.draw()}")
        check_equal(world, found, partition)


def check_equal(world: World, found: dict[str, Copy], partition: TopicIdPartition) -> None:
    start = max(copy.marks.start for copy in found.values())
    ledger = world.watch.ledger(partition)
    ends = {(copy.marks.high_watermark, copy.marks.leo) for copy in found.values()}
    if len({end for pair in ends for end in pair}) != 1:
        raise Broken("I12", f"{partition} is not committed everywhere\n{world.draw()}")
    contents = [
        {offset: entry for offset, entry in copy.records.items() if offset >= start}
        for copy in found.values()
    ]
    for content in contents[1:]:
        common = content.keys() & contents[0].keys()
        is_equal = (
            all(content[offset] == contents[0][offset] for offset in common)
            if ledger.is_compacted
            else content == contents[0]
        )
        if not is_equal:
            raise Broken("I12", f"copies of {partition} differ\n{world.draw()}")


def final(world: World, partition: TopicIdPartition) -> Copy:
    record = world.watch.records[partition]
    assert record.leader is not None
    return world.watch.copies[record.leader, partition]


def is_clean(world: World, ledger: Ledger | None = None) -> bool:
    """Whether nothing of a partition, or of any, was allowed to be lost."""
    ledgers = world.watch.ledgers.values() if ledger is None else [ledger]
    return not world.watch.is_lossy and not any(each.was_unclean for each in ledgers)


# Clients ---------------------------------------------------------------------------------------


def check_outcomes(world: World) -> None:
    """What was acknowledged is there, what was rejected is not, and numbered values once."""
    there: dict[bytes, list[tuple[TopicIdPartition, int]]] = {}
    for partition in world.watch.records:
        for offset, entry in final(world, partition).records.items():
            there.setdefault(entry.value or b"", []).append((partition, offset))
    for key, outcome in world.outcomes.items():
        value, _ = world.sent[key]
        places = there.get(value, [])
        where = f"{key} {value!r} {outcome}, found at {places}"
        if outcome.kind is OutcomeKind.REJECTED and places:
            raise Broken("outcome", f"rejected and there: {where}")
        if key[0] in IDEMPOTENT and len(places) > 1:
            if len({place[0] for place in places}) < len(places):
                raise Broken("I15", f"twice: {where}")
        if outcome.kind is OutcomeKind.ACKED and PRODUCERS[key[0]].acks == -1:
            check_acked(world, key, where)
    for producer in IDEMPOTENT:
        check_order(world, producer, there)


def check_acked(world: World, key: tuple[str, int], where: str) -> None:
    outcome, (value, _) = world.outcomes[key], world.sent[key]
    partition = outcome.partition
    if partition is None or partition not in world.watch.records:
        return
    ledger, copy = world.watch.ledger(partition), final(world, partition)
    if not is_clean(world, ledger) or outcome.offset < copy.marks.start:
        return
    found = copy.records.get(outcome.offset)
    if found is None and ledger.is_compacted:
        return
    if found is None or found.value != value:
        raise Broken("I1", f"acknowledged and gone: {where}, instead {found}")


def check_order(
    world: World, producer: str, there: dict[bytes, list[tuple[TopicIdPartition, int]]]
) -> None:
    last: dict[TopicIdPartition, int] = {}
    for key in sorted(key for key in world.sent if key[0] == producer):
        for partition, offset in there.get(world.sent[key][0], []):
            if offset <= last.get(partition, -1):
                raise Broken("I15", f"{key} is at {offset}, before what was sent before it")
            last[partition] = offset


def check_consumer(world: World) -> None:
    """It has read the final log: everything once, in order, nothing else (I11)."""
    for partition in world.watch.records:
        ledger, copy = world.watch.ledger(partition), final(world, partition)
        if not is_clean(world, ledger):
            continue
        for event in world.events:
            if isinstance(event, TruncationDetected) and event.partition == partition:
                raise Broken("I11", f"{event}")
            if isinstance(event, OffsetReset) and event.partition == partition:
                if event.to_offset < event.from_offset:
                    raise Broken("I11", f"{event}")
        read = [record for record in world.polled if record.partition == partition]
        offsets = [record.offset for record in read]
        if offsets != sorted(set(offsets)):
            raise Broken("I11", f"{partition}: read {offsets}")
        for record in read:
            found = copy.records.get(record.offset)
            is_gone = record.offset < copy.marks.start or ledger.is_compacted
            if found is None and is_gone:
                continue
            if found is None or found.value != record.value:
                raise Broken("I11", f"{partition}: read {record}, there is {found}")
        # What one replica has deleted may be there again under the next leader (PROTOCOL A6).
        skipped = sorted(each for each in set(copy.records) - set(offsets) if each >= ledger.start)
        if skipped and not ledger.is_compacted:
            invariant = "I12" if not offsets or skipped[0] > offsets[-1] else "I11"
            raise Broken(invariant, f"{partition}: never read {skipped}, read {offsets}")
