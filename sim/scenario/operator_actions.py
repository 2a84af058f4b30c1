"""Actions of operators and of hardware: topics, elections, slow and full disks, damage.

Left out: clients, processes and the network (``sim.scenario.actions``).
"""

from __future__ import annotations

from typing import ClassVar

from attrs import frozen

from cluster.names import CONTROLLER, NO_OFFSET
from sim.scenario.action_base import Action
from sim.scenario.action_kinds import (
    ANY_CONFIG,
    ASSIGNMENTS,
    BYTES_MAX,
    REPLICAS,
    TOPIC_CONFIG,
    check_assignments,
    is_file_name,
    nodes,
)
from sim.scenario.kafka_keys import BROKER_KEYS, TOPIC_KEYS
from sim.scenario.kinds import (
    TOPIC_NAME,
    Choice,
    Flag,
    Integer,
    Text,
    item,
)
from sim.scenario.name_kinds import BrokerKind, PartitionKind, SelectorKind, TopicKind
from sim.scenario.names import PARTITIONS_MAX, PartitionName
from sim.scenario.problems import Refusal, guess, seen
from sim.scenario.selectors import Selector
from sim.scenario.slowness import Slowness, SlownessKind

__all__ = [
    "Config",
    "Corrupt",
    "CreateTopic",
    "DeleteRecords",
    "DeleteTopic",
    "Elect",
    "Fill",
    "Reassign",
    "Slow",
]

# Operators ---------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Elect(Action):
    """Ask for an election. Done when it is answered.

    ``to`` goes with an unclean election: that replica leads, in sync or not, and the present leader
    is deposed. ``force`` leaves the choice open: the first replica that runs and does not lead now,
    in sync or not, even if its log is damaged.
    """

    NAME: ClassVar[str] = "elect"
    partition: PartitionName = item(PartitionKind(), "of which partition")
    to: Selector | None = item(SelectorKind(is_single=True), "who shall lead", default=None)
    kind: str = item(Choice(("preferred", "unclean")), "by which rule", default="preferred")
    force: bool = item(Flag(), "whatever the rules say", default=False)

    def check(self) -> list[Refusal]:
        if self.force and self.kind != "unclean":
            text = "only an unclean election can be forced"
            return [Refusal(text, at=("force",), hint='write kind = "unclean"')]
        if self.to is not None and self.kind != "unclean":
            text = "a preferred election is won by the first replica"
            return [Refusal(text, at=("to",), is_key=True, hint='write kind = "unclean"')]
        if self.to is not None and (self.to.kind == "controller" or self.to.node == CONTROLLER):
            return [Refusal("the controller leads no partition", at=("to",), hint="name a broker")]
        return []


@frozen(kw_only=True)
class Reassign(Action):
    """Give a partition other replicas, or cancel a reassignment under way. Done when accepted."""

    NAME: ClassVar[str] = "reassign"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("replicas", "cancel"),)
    partition: PartitionName = item(PartitionKind(), "which")
    replicas: tuple[str, ...] | None = item(
        REPLICAS, "its new replicas, preferred leader first", default=None
    )
    cancel: bool = item(Flag(), "stay with the old ones", default=False)

    def check(self) -> list[Refusal]:
        if self.replicas is None and not self.cancel:
            return [Refusal("it changes nothing", at=("cancel",), hint="write replicas")]
        return []


@frozen(kw_only=True)
class Config(Action):
    """Change the configuration of a topic, or of a broker.

    A topic's is in force when the brokers hear of it. A broker's stands in its file: it is in force
    when the broker is started next.
    """

    NAME: ClassVar[str] = "config"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("topic", "node"),)
    topic: str | None = item(TopicKind(), "whose", default=None)
    node: str | None = item(BrokerKind(), "whose", default=None)
    set: dict[str, str] = item(ANY_CONFIG, "new values by Kafka's names")

    def check(self) -> list[Refusal]:
        found = [] if self.set else [Refusal("it changes nothing", at=("set",))]
        whose, others = ("a topic", TOPIC_KEYS) if self.topic else ("a broker", BROKER_KEYS)
        for key in self.set:
            if key not in others:
                text = f"{seen(key)} is no configuration of {whose}"
                hint = guess(key, others)
                found.append(Refusal(text, at=("set", key), is_key=True, hint=hint, allowed=others))
        return found


@frozen(kw_only=True)
class DeleteRecords(Action):
    """Delete what is below an offset; -1 stands for the high watermark."""

    NAME: ClassVar[str] = "delete_records"
    partition: PartitionName = item(PartitionKind(), "of which partition")
    before: int = item(Integer(NO_OFFSET), "the offset that the log starts at then")


@frozen(kw_only=True)
class CreateTopic(Action):
    """Create a topic. Done when every partition is led. Keys are those of ``[[topic]]``."""

    NAME: ClassVar[str] = "create_topic"
    name: str = item(TOPIC_NAME, "its name")
    replicas: tuple[tuple[str, ...], ...] | None = item(
        ASSIGNMENTS, "one list of brokers a partition, preferred leader first", default=None
    )
    partitions: int = item(Integer(1, PARTITIONS_MAX), "how many, without replicas", default=1)
    replication: int | None = item(
        Integer(1, 100), "replicas of each, without replicas; 3 or as many as brokers", default=None
    )
    config: dict[str, str] = item(TOPIC_CONFIG, "by Kafka's names", factory=dict)

    def check(self) -> list[Refusal]:
        return check_assignments(self)


@frozen(kw_only=True)
class DeleteTopic(Action):
    """Delete a topic."""

    NAME: ClassVar[str] = "delete_topic"
    SHORT: ClassVar[str] = "name"
    name: str = item(TopicKind(), "its name")


# Hardware ----------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Slow(Action):
    """Slow a node down until it is healed by the step's id: one of its disk, its CPU, its links.

    An integer is a factor (10 is ten times slower), ``"1.5x"`` too; a duration is added.
    """

    NAME: ClassVar[str] = "slow"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("disk", "cpu", "link"),)
    nodes: tuple[Selector, ...] = nodes("who")
    disk: Slowness | None = item(SlownessKind(), "each call of the disk", default=None)
    cpu: Slowness | None = item(SlownessKind(takes_addend=False), "each handler", default=None)
    link: Slowness | None = item(SlownessKind(), "each message from and to it", default=None)


@frozen(kw_only=True)
class Corrupt(Action):
    """Damage a log on disk: the record at an offset, or a byte of a file.

    ``flip`` changes a bit, ``zero`` writes zeros, ``truncate`` cuts the file there.
    """

    NAME: ClassVar[str] = "corrupt"
    ONE_OF: ClassVar[tuple[tuple[str, ...], ...]] = (("offset", "file"),)
    node: Selector = item(SelectorKind(is_single=True), "on whose disk")
    partition: PartitionName = item(PartitionKind(), "of which partition")
    offset: int | None = item(Integer(), "of a record", default=None)
    file: str | None = item(Text(), "name in the partition's directory", default=None)
    byte: int | None = item(Integer(0, BYTES_MAX), "position in the file", default=None)
    how: str = item(Choice(("flip", "zero", "truncate")), "what happens there", default="flip")

    def check(self) -> list[Refusal]:
        found = []
        if (self.file is None) != (self.byte is None):
            key = "file" if self.byte is None else "byte"
            found.append(Refusal("file and byte stand together", at=(key,), is_key=True))
        if self.file is not None and not is_file_name(self.file):
            text = f"{seen(self.file)} is no name of a file in the directory"
            found.append(Refusal(text, at=("file",), hint="write it without a path"))
        return found


@frozen(kw_only=True)
class Fill(Action):
    """Leave only so much room on a disk until it is healed by the step's id."""

    NAME: ClassVar[str] = "fill"
    nodes: tuple[Selector, ...] = nodes("whose")
    free: int = item(Integer(0, BYTES_MAX), "bytes that are left")
