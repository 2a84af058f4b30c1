"""Interaction scripts: commands to a small cluster, and what came of them, in one text file.

A script is a list of steps, in the style of etcd-raft's data-driven files: a command, ``----``,
the output, an empty line. Lines that begin with ``#`` are comments. Output shows what was
delivered, then what the command asks for.

* ``cluster [brokers=3] [mode=fetch] [KEY=VALUE of the topic]``: the first command
* ``lead NAME|none [isr=..] [replicas=..] [told=..]``: name a leader in the next epoch; only
  ``told`` brokers hear of it
* ``tell NAME..``: they hear of everything
* ``isr NAME..``: the controller changes the ISR alone
* ``produce NAME VALUE.. [acks=all]``, ``fetch NAME OFFSET``, ``delete-records NAME OFFSET``
* ``hold A B``, ``release [A B]``, ``lose A B`` (what is held, and the connection), ``deliver N``
  (of what is held, oldest first)
* ``kill NAME``, ``restart NAME``, ``stop NAME`` (controlled), ``damage NAME`` (while it is down)
* ``fence NAME``, ``leaving NAME`` (in controlled shutdown), ``recreate`` (the topic, under
  another id), ``snapshot NAME`` (it is told by snapshots from now on), ``run-for MS``
* ``show``: every log as runs ``epoch:offsets``, high watermark and end, and the controller's view

After each step some things must hold whatever the script expects; ``Runner.broken`` has what did
not. Such lines are in the output too, and can never be expected.
"""

from __future__ import annotations

from itertools import combinations, groupby
from pathlib import Path

from attrs import define, evolve

from cluster.broker import Broker
from cluster.config import BrokerConfig
from cluster.messages_data import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    FetchPartition,
    FetchRequest,
    FetchResponse,
    IsolationLevel,
    ProducePartition,
    ProduceRequest,
)
from cluster.names import TopicIdPartition
from cluster.records import PartitionRecord, RemoveTopicRecord, TopicRecord
from cluster.replica import Replica
from cluster.truncation import TruncationMode
from storage.mkb1 import MKB1, decode_batch
from tests.cluster.histories import History, is_settled, violations
from tests.cluster.script_text import is_idle, line_of
from tests.cluster.scripted import ORDERS, frame_of

SEPARATOR = "----"
VIOLATION = "VIOLATION"


@define
class Step:
    """One command with the lines in front of it, and its expected output."""

    above: list[str]
    command: str
    expected: list[str]


def parse(text: str) -> list[Step]:
    """The steps of a script.

    Raises:
        ValueError: a command has no separator below it, or is not followed by an empty line.
    """
    steps: list[Step] = []
    above: list[str] = []
    lines = iter([*text.splitlines(), ""])
    for number, line in enumerate(lines, 1):
        if not line or line.startswith("#"):
            above.append(line)
            continue
        if next(lines, None) != SEPARATOR:
            raise ValueError(f"step {len(steps) + 1} ({line!r}), near line {number}: no ----")
        expected = []
        for output in lines:
            if not output:
                break
            expected.append(output)
        steps.append(Step(above, line, expected))
        above = []
    return steps


def render(steps: list[Step], outputs: list[list[str]]) -> str:
    """The script with other outputs."""
    lines: list[str] = []
    for step, output in zip(steps, outputs, strict=True):
        lines += [*step.above, step.command, SEPARATOR, *output, ""]
    return "\n".join(lines)


class Runner:
    """Carries out a script. ``broken`` has the invariants that did not hold, with their step."""

    def __init__(self) -> None:
        self.history: History
        self.partition = ORDERS
        self.broken: list[str] = []
        self.incarnations = 0

    def run(self, step: Step) -> list[str]:
        """The output of a step."""
        verb, *words = step.command.split()
        named = dict(word.split("=", 1) for word in words if "=" in word)
        plain = [word for word in words if "=" not in word]
        if verb != "cluster":
            self.history.router.delivered.clear()
        output = getattr(self, "do_" + verb.replace("-", "_"))(plain, named) or []
        lines = [*self.deliveries(is_short=verb == "run-for"), *output]
        found = [f"{VIOLATION} {each}" for each in self.check()]
        self.broken += [f"{step.command}: {each}" for each in found]
        return lines + found

    def deliveries(self, *, is_short: bool) -> list[str]:
        lines, idle = [], 0
        for src, dst, message in self.history.router.delivered:
            line = line_of(src, dst, message)
            if line is None:
                continue
            if is_short and is_idle(message):
                idle += 1
                continue
            is_lost = dst in self.history.names and dst not in self.history.router.nodes
            lines.append(line + " (nobody there)" * is_lost)
        return lines + [f"({idle} fetches and empty answers)"] * bool(idle)

    # Commands ----------------------------------------------------------------------------------

    def do_cluster(self, plain: list[str], named: dict[str, str]) -> None:
        count = int(named.pop("brokers", "3"))
        mode = TruncationMode(named.pop("mode", "fetch"))
        self.history = History(count, config=BrokerConfig(truncation=mode), topic=named)
        self.history.router.delivered.clear()

    def do_lead(self, plain: list[str], named: dict[str, str]) -> None:
        before = self.history.controller.image.partition(self.partition)
        replicas = _names(named.get("replicas")) or (
            before.replicas if before else self.history.names
        )
        isr = _names(named.get("isr")) or (before.isr if before else replicas)
        leader = None if plain[0] == "none" else plain[0]
        told = _names(named.get("told"))
        if told:
            self.history.controller.silent_to = set(self.history.names) - set(told)
        epochs = (before.leader_epoch + 1, before.partition_epoch + 1) if before else (0, 0)
        self.history.decide(PartitionRecord(self.partition, replicas, isr, leader, *epochs))

    def do_tell(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.tell(*plain)

    def do_isr(self, plain: list[str], named: dict[str, str]) -> None:
        state = self.history.controller.image.partition(self.partition)
        assert state is not None
        changed = evolve(state, isr=tuple(plain), partition_epoch=state.partition_epoch + 1)
        self.history.decide(changed)

    def do_produce(self, plain: list[str], named: dict[str, str]) -> None:
        acks = {"all": -1, "1": 1, "0": 0}[named.get("acks", "all")]
        now_ms = self.history.router.now.wall_ms
        frame = frame_of(*(word.encode() for word in plain[1:]), now_ms=now_ms)
        part = ProducePartition(self.partition, frame)
        self.history.send(plain[0], ProduceRequest(self.history.number(), acks, 30_000, (part,)))

    def do_fetch(self, plain: list[str], named: dict[str, str]) -> list[str]:
        part = FetchPartition(self.partition, -1, int(plain[1]))
        level = IsolationLevel.READ_UNCOMMITTED
        request = FetchRequest(self.history.number(), "", -1, 0, 1, 1 << 20, level, (part,))
        answer = self.history.ask(plain[0], request)
        if not isinstance(answer, FetchResponse):
            return ["no answer"]
        (result,) = answer.partitions
        values, at = [], memoryview(result.records)
        while len(at):
            size = MKB1.hop(at, 0)[0]
            batch = decode_batch(at[:size], max_batch_bytes=1 << 20)
            values += [record.value or b"" for record in batch.records]
            at = at[size:]
        return [f"read {' '.join(value.decode() for value in values)}"] if values else []

    def do_delete_records(self, plain: list[str], named: dict[str, str]) -> None:
        part = DeleteRecordsPartition(self.partition, int(plain[1]))
        request = DeleteRecordsRequest(self.history.number(), 30_000, (part,))
        self.history.send(plain[0], request, client="k1")

    def do_hold(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.cut.add(frozenset(plain))

    def do_release(self, plain: list[str], named: dict[str, str]) -> None:
        if not plain:
            self.history.heal()
            return
        self.history.cut.discard(frozenset(plain))
        kept, self.history.router.kept = self.history.router.kept, []
        for envelope in kept:
            is_of_link = frozenset(envelope[:2]) == frozenset(plain)
            (self.history.router.queue if is_of_link else self.history.router.kept).append(envelope)
        self.history.router.settle()

    def do_lose(self, plain: list[str], named: dict[str, str]) -> None:
        router = self.history.router
        router.kept = [each for each in router.kept if set(each[:2]) != set(plain)]
        for name, peer in (plain, plain[::-1]):
            if name in router.nodes:
                router.call(name, "on_disconnected", peer)
        router.settle()

    def do_deliver(self, plain: list[str], named: dict[str, str]) -> None:
        router, count = self.history.router, int(plain[0])
        router.queue.extend(router.kept[:count])
        del router.kept[:count]
        router.settle()

    def do_kill(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.kill(plain[0])

    def do_restart(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.start(plain[0])

    def do_stop(self, plain: list[str], named: dict[str, str]) -> list[str]:
        self.history.router.call(plain[0], "on_stop")
        self.history.router.settle()
        if plain[0] in self.history.router.stopped:
            self.history.kill(plain[0])
            return [f"{plain[0]} has stopped"]
        return [f"{plain[0]} is not let go"]

    def do_damage(self, plain: list[str], named: dict[str, str]) -> None:
        name = plain[0]
        assert name not in self.history.router.nodes, "damage a log while its broker is down"
        disk = self.history.disks[name]
        path = Path("/") / name / str(self.partition) / f"{0:020d}.log"
        file = disk.open(path)
        position = int(named.get("at", "100"))
        file.write_at(position, bytes([file.read_at(position, 1)[0] ^ 1]))
        file.close()

    def do_fence(self, plain: list[str], named: dict[str, str]) -> None:
        broker = self.history.controller.image.brokers[plain[0]]
        self.history.decide(evolve(broker, is_fenced=True))

    def do_leaving(self, plain: list[str], named: dict[str, str]) -> None:
        broker = self.history.controller.image.brokers[plain[0]]
        self.history.decide(evolve(broker, in_controlled_shutdown=True))

    def do_recreate(self, plain: list[str], named: dict[str, str]) -> None:
        self.incarnations += 1
        old = self.partition
        topic_id = f"{self.incarnations:021d}Q"
        self.partition = TopicIdPartition(topic_id, "orders", 0)
        self.history.decide(
            RemoveTopicRecord(old.topic_id, "orders"), TopicRecord(topic_id, "orders")
        )

    def do_snapshot(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.controller.snapshots_to.update(plain)

    def do_run_for(self, plain: list[str], named: dict[str, str]) -> None:
        self.history.router.run_for(int(plain[0].removesuffix("ms")))

    def do_show(self, plain: list[str], named: dict[str, str]) -> list[str]:
        state = self.history.controller.image.partition(self.partition)
        lines = [self.draw(name) for name in plain or self.history.names]
        if state is not None and not plain:
            isr = ",".join(state.isr)
            lines.append(f"c1 leader {state.leader} epoch {state.leader_epoch} isr {isr}")
        return lines

    # Looking -----------------------------------------------------------------------------------

    def replicas(self) -> dict[str, Replica]:
        """Of the brokers that run, by name; quarantined ones are left out."""
        found = {}
        for name in self.history.names:
            broker = self.history.router.nodes.get(name)
            if isinstance(broker, Broker):
                replica = broker.core.replicas.get(self.partition)
                if replica is not None and replica.log is not None:
                    found[name] = replica
        return found

    def draw(self, name: str) -> str:
        broker = self.history.router.nodes.get(name)
        if not isinstance(broker, Broker):
            return f"{name} down"
        replica = broker.core.replicas.get(self.partition)
        if replica is None:
            return f"{name} no replica"
        role = replica.role.name
        if replica.log is None:
            return f"{name} {role}"
        fetch = self.history.broker(name).fields().get(f"{self.partition}/fetch_state", "")
        log, parts = replica.opened, []
        records = log.fetch(log.log_start_offset, 1 << 20)
        for epoch, group in groupby(records, key=lambda record: record.leader_epoch):
            offsets = [record.offset for record in group]
            last = f"-{offsets[-1]}" * (len(offsets) > 1)
            parts.append(f"{epoch}:{offsets[0]}{last}")
        start = f" start {log.log_start_offset}" if log.log_start_offset else ""
        state = f" ({fetch})" if fetch not in ("", "fetching") else ""
        text = " ".join(parts) or "empty"
        return (
            f"{name} {role}@{replica.leader_epoch}{state}: {text} | "
            f"hw {replica.high_watermark} leo {log.leo}{start}"
        )

    def check(self) -> list[str]:
        """Offsets in order, epochs as the batches, equal committed prefixes of settled replicas."""
        replicas = self.replicas()
        found = [f"{name}: {each}" for name in replicas for each in violations(replicas[name])]
        settled = [name for name in replicas if is_settled(name, replicas)]
        content = {
            name: {
                record.offset: (record.leader_epoch, record.value)
                for record in replicas[name].opened.fetch(
                    replicas[name].opened.log_start_offset, 1 << 20
                )
            }
            for name in settled
        }
        for a, b in combinations(settled, 2):
            limit = min(replicas[a].high_watermark, replicas[b].high_watermark)
            both = sorted(content[a].keys() & content[b].keys())
            for offset in both:
                if offset < limit and content[a][offset] != content[b][offset]:
                    found.append(f"{a} and {b} differ at {offset}, both have committed it")
                    break
        return found


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(",")) if text else ()
