"""Workloads of the determinism check: deterministic work whose digest must never change.

A workload takes an empty directory of its own and returns a digest in hex. It may use the
directory, but nothing of the directory's path may reach the digest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path

from attrs import asdict

from cluster.outcomes import OutcomeKind
from sim.trace.lines import Event, Header
from sim.trace.reader import TraceReader
from sim.trace.writer import Trace
from storage import Header as RecordHeader
from storage import LogConfig, PartitionLog, Record, RecordBatch
from storage.disk import Disk, OsDisk
from storage.memdisk import MemDisk
from storage.producer_state import ProducerEntry
from tests.cluster.whole import Whole, files_below
from tests.sim.rich import KINDS, Run, rich_world
from tests.sim.rich_scripts import rich_scripts

__all__ = ["WORKLOADS", "Workload"]

Workload = Callable[[Path], str]

BATCHES = 200
MORE_BATCHES = 40


def _storage(root: Path) -> str:
    """The same history on both disks, which must leave the same bytes."""
    in_memory = _log_history(MemDisk(), Path("/log"))
    on_disk = _log_history(OsDisk(), root / "log")
    if in_memory != on_disk:
        raise AssertionError(f"MemDisk gives {in_memory}, OsDisk gives {on_disk}")
    return on_disk


def _log_history(disk: Disk, directory: Path) -> str:
    """Append, roll, change epoch, truncate, append, close, tear the tail, reopen, read."""
    config = LogConfig(segment_max_bytes=4_096, index_interval_bytes=300)
    log = PartitionLog.open(directory, config, leader_epoch=3, disk=disk)
    for number in range(BATCHES):
        if number == BATCHES // 2:
            log.roll()
            log.become_leader(5)
        log.append(_batch(number, log.producers))
    starts = [batch.base_offset for batch in log.all_batches()]
    target = starts[BATCHES * 3 // 4]
    assert target is not None
    log.truncate_to(target)
    for number in range(BATCHES, BATCHES + MORE_BATCHES):
        log.append(_batch(number, log.producers))
    active = log.active.log_path
    log.close()

    torn = disk.open(active)
    torn.append(b"MKB1\x00\x00\x00\x20partial")
    torn.close()

    log = PartitionLog.open(directory, config, disk=disk)
    log.append(_batch(BATCHES + MORE_BATCHES, log.producers))
    batches = list(log.all_batches())
    records = log.fetch(0, log.leo)
    assert len(batches) == BATCHES * 3 // 4 + MORE_BATCHES + 1
    assert len(log.segments) > 3
    log.close()

    digest = hashlib.sha256()
    for name in disk.listdir(directory):
        file = disk.open(directory / name, write=False)
        digest.update(f"{name}:{file.size()}\n".encode())
        digest.update(file.read_at(0, file.size()))
        file.close()
    for record in records:
        digest.update(repr(tuple(record)).encode())
    return digest.hexdigest()


def _batch(number: int, producers: Mapping[int, ProducerEntry]) -> RecordBatch:
    """The batch of this number: sizes, nulls, headers and producers follow from it alone, the
    sequence from what the log has of the producer."""
    records = []
    for index in range(1 + number % 5):
        turn = number * 7 + index * 3
        records.append(
            Record(
                None if turn % 4 == 0 else b"key-%d" % (turn % 13),
                None if turn % 11 == 0 else bytes((turn * step) % 251 for step in range(turn % 90)),
                1_700_000_000_000 + number * 1_000 - turn % 17,
                tuple(RecordHeader(f"h{step}", b"v" * step or None) for step in range(turn % 3)),
            )
        )
    if number % 3:
        return RecordBatch.unassigned(records)
    producer_id = number % 6
    known = producers.get(producer_id)
    return RecordBatch.unassigned(
        records,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=number if known is None else known.next_sequence,
        format_version=1 + number % 2,
    )


def _cluster(root: Path) -> str:
    """A failover, a controlled shutdown, a restart of the controller, and every note on the way."""
    whole = Whole()
    whole.create_topic(partitions=3, min_insync_replicas="2", segment_bytes="600")
    producer = whole.producer()
    consumer = whole.consumer()
    for number in range(30):
        whole.send(producer, b"%d" % number, partition=number % 3)
        if number == 10:
            whole.kill("b1")
        elif number == 15:
            whole.start("b1")
        elif number == 20:
            whole.stop("b2")
        elif number == 25:
            whole.kill("c1")
            whole.start("c1")
        whole.router.run_for(700)
    outcomes = whole.outcomes(producer, 30)
    whole.start("b2")
    whole.router.run_for(20_000)
    digest = hashlib.sha256()
    for note in whole.router.notes:
        digest.update(repr(note).encode())
    digest.update(repr(outcomes).encode())
    digest.update(repr(consumer.poll()).encode())
    for name, machine in sorted(whole.router.nodes.items()):
        digest.update(repr((name, sorted(machine.fields().items()))).encode())
    for name, disk in sorted(whole.disks.items()):
        for path, data in files_below(disk, Path("/") / name):
            digest.update(f"{path}:{len(data)}\n".encode())
            digest.update(data)
    assert all(outcome.kind is OutcomeKind.ACKED for outcome in outcomes), outcomes
    return digest.hexdigest()


# Level, whether the files are real, whether the trace is written to a file.
VARIANTS = (
    ("digest", False, False),
    ("full", False, True),
    ("events", True, True),
    ("full", True, False),
)


def _world(root: Path) -> str:
    """Every fault at once, on both backings and at every level of the trace."""
    return _same_in_all_variants(rich_world, root)


def _scripts(root: Path) -> str:
    """Scripts that run at once, are cancelled and break things, likewise."""
    return _same_in_all_variants(rich_scripts, root)


def _same_in_all_variants(run: Callable[[Path | None, Trace], Run], root: Path) -> str:
    """The digest of a run that is the same in all of them, events and their changes included."""
    runs: list[Run] = []
    events: list[list[Event]] = []
    header = Header("0", None, None, 0, {}, ("b1",), {})
    for number, (level, is_real, has_file) in enumerate(VARIANTS):
        path = root / f"{number}.jsonl" if has_file else None
        folder = root / str(number)
        folder.mkdir()
        trace = Trace(level, path=path, header=header, keeps_lines=not has_file)
        runs.append(run(folder if is_real else None, trace))
        trace.close("pass")
        if level != "digest":
            events.append(trace.events() if path is None else list(TraceReader(path)))
    for variant, found in zip(VARIANTS, runs, strict=True):
        unlike = [name for name, value in asdict(found).items() if value != asdict(runs[0])[name]]
        assert not unlike, f"{variant} has another {', '.join(unlike)} than {VARIANTS[0]}"
    full, plain, other = events
    assert [each[:6] for each in full] == [each[:6] for each in plain]
    assert full == other, "the changes differ between memory and files"
    if run is rich_world:
        assert not KINDS - {event.kind for event in full}, "the run is poorer than it was"
    state = hashlib.sha256(repr(runs[0]).encode())
    for event in full:
        state.update(repr(event).encode())
    return state.hexdigest()


WORKLOADS: dict[str, Workload] = {
    "storage": _storage,
    "cluster": _cluster,
    "world": _world,
    "scripts": _scripts,
}
