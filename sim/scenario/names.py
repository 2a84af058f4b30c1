"""Names in scenario files: of topics, partitions, nodes, ids; and the words of verdicts.

``Names`` is what one document declares, gathered before its values are read, so that each value can
be held against it. It is lenient: what is itself wrong elsewhere counts as unknown (None) here, so
that one mistake is told once.

Left out: what the names stand for while a world runs.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from attrs import field, frozen

from cluster.names import ADMIN, CONTROLLER
from sim.scenario.problems import Refusal, guess, seen
from storage.errors import InvalidConfig
from storage.log_dir import TopicPartition

__all__ = [
    "BROKERS_MAX",
    "INVARIANTS",
    "LICENCES",
    "PARTITIONS_MAX",
    "PROMISES",
    "VERDICT_NAMES",
    "Names",
    "PartitionName",
    "checked_id",
    "checked_title",
    "checked_topic",
    "is_device",
    "partition_name",
    "slug",
]

BROKERS_MAX: Final = 100
PARTITIONS_MAX: Final = 1_000
_NAME_CHARS: Final = 100
_TITLE_CHARS: Final = 300
_ID: Final = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._-]{0,99}", re.ASCII)
_PARTITION: Final = re.compile(r"(.+)-(0|[1-9][0-9]{0,9})", re.ASCII | re.DOTALL)
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}", re.ASCII)
_BROKER: Final = re.compile(r"b[1-9][0-9]{0,3}", re.ASCII)
_NO_SLUG: Final = re.compile(r"[^a-z0-9._-]+")
# Windows takes these for devices, whatever follows a dot.
_DEVICES: Final = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
RESERVED: Final = frozenset(
    {ADMIN, CONTROLLER, "all", "controller", "majority", "minority", "one", "world"}
)
"""What no client is called."""

INVARIANTS: Final[dict[str, str]] = {
    "committed-durability": "I1",
    "committed-log-matching": "I2",
    "epoch-prefix": "I3",
    "leader-hw-monotonic": "I4",
    "hw-valid": "I5",
    "leader-completeness": "I6",
    "one-leader-per-epoch": "I7",
    "isr-well-formed": "I8",
    "epoch-cache-matches-log": "I9",
    "offsets-increase": "I10",
    "consistent-read": "I11",
    "progress": "I12",
    "truncation-floor": "I13",
    "offset-order": "I14",
    "idempotence": "I15",
    "transaction-isolation": "I16",
    "recovery-sound": "I17",
    "quorum-superset": "I18",
    "ack-honours-min-isr": "I19",
    "epoch-fencing": "I20",
}
"""Name and number (DECISIONS 3)."""
PROMISES: Final[dict[str, str]] = {
    "acked-records-survive": "no acknowledged record is gone",
    "committed-records-survive": "no committed record is gone",
    "exposed-records-survive": "no record below the highest high watermark shown is gone",
}
ALIASES: Final[dict[str, tuple[str, ...]]] = {
    "log-matching": ("committed-log-matching", "epoch-prefix")
}
"""One name for several invariants: any of them will do."""
VERDICT_NAMES: Final[tuple[str, ...]] = tuple(sorted([*INVARIANTS, *ALIASES, *PROMISES]))
"""What ``breaks`` may name."""
LICENCES: Final[dict[str, str]] = {
    "L0": "acknowledged under acks=1 and never committed: the next leader did not have it",
    "L1": "the leader was elected from outside ISR and ELR, which was allowed or forced",
    "L2": "power or lost disks took it from everybody whom the protocol believes",
    "L3": "an operator took every copy, or retention did by a wrong clock",
    "L4": "the only copies that could count were on disks that lied or spoilt them",
}
"""Why a loss may be legal (FAULTS D.4); what ``allow`` may name."""


class PartitionName(NamedTuple):
    """A partition as files spell it: ``orders-0``."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def __deepcopy__(self, memo: object) -> PartitionName:
        return self


@frozen
class Names:
    """What a document declares; None where that itself is wrong.

    Attributes:
        brokers: how many.
        clients: name and kind, ``producer`` or ``consumer``.
        topics: name and number of partitions.
        steps: id and number of the step, from 1; ``actions`` the action of each of them.
        faults: ids of ``[[fault]]`` tables.
        variants: names.
    """

    brokers: int | None = 3
    clients: Mapping[str, str] = field(factory=dict)
    topics: Mapping[str, int | None] = field(factory=dict)
    steps: Mapping[str, int] = field(factory=dict)
    actions: Mapping[str, str] = field(factory=dict)
    faults: frozenset[str] = frozenset()
    variants: tuple[str, ...] = ()

    @property
    def broker_names(self) -> tuple[str, ...]:
        return tuple(f"b{number}" for number in range(1, (self.brokers or 3) + 1))

    @property
    def nodes(self) -> tuple[str, ...]:
        """Brokers, controller, clients."""
        return (*self.broker_names, CONTROLLER, *self.clients)

    def is_broker(self, name: str) -> bool:
        if self.brokers is None:
            return _BROKER.fullmatch(name) is not None
        return name in self.broker_names

    def is_node(self, name: str) -> bool:
        return name == CONTROLLER or name in self.clients or self.is_broker(name)

    def topic(self, name: str) -> str:
        """The name, if it is known.

        Raises:
            Refusal: it is not.
        """
        if name not in self.topics:
            raise Refusal(
                f"there is no topic {seen(name)}",
                hint=guess(name, self.topics),
                allowed=sorted(self.topics),
            )
        return name

    def partition(self, text: object) -> PartitionName:
        """A partition that exists at some time of the run.

        Raises:
            Refusal: it does not.
        """
        name = partition_name(text)
        known = self._partitions()
        if name.topic not in self.topics:
            raise Refusal(
                f"there is no partition {seen(text)}", hint=guess(text, known), allowed=known
            )
        count = self.topics[name.topic]
        if count is not None and name.partition >= count:
            only = "one partition" if count == 1 else f"{count} partitions"
            raise Refusal(
                f"there is no partition {seen(text)}: {name.topic} has {only}", allowed=known
            )
        return name

    def _partitions(self) -> list[str]:
        return [
            f"{topic}-{number}"
            for topic, count in sorted(self.topics.items())
            if _TOPIC.fullmatch(topic)
            for number in range(min(count or 1, 10))
        ]

    def broker(self, name: object) -> str:
        """A broker's name.

        Raises:
            Refusal: it is none.
        """
        if not isinstance(name, str) or not self.is_broker(name):
            raise Refusal(
                f"there is no broker {seen(name)}",
                hint=guess(name, self.broker_names),
                allowed=self.broker_names,
            )
        return name


def partition_name(text: object) -> PartitionName:
    """``orders-0``, whether there is such a partition or not.

    Raises:
        Refusal: no topic or no number.
    """
    match = _PARTITION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        hint = ""
        if isinstance(text, str) and text and len(text) < _NAME_CHARS:
            hint = f'write topic and number: "{escaped_name(text)}-0"'
        raise Refusal(f"{seen(text)} names no partition", hint=hint)
    return PartitionName(match[1], int(match[2]))


def escaped_name(text: str) -> str:
    return seen(text)[1:-1]


def checked_topic(value: object) -> str:
    """A name that Kafka would take, so one that stays inside its directory.

    Raises:
        Refusal: it would not.
    """
    if not isinstance(value, str):
        raise Refusal(f"{seen(value)} is no topic name", hint="write it in quotes")
    try:
        return TopicPartition.checked(value, 0).topic
    except InvalidConfig:
        raise Refusal(
            f"{seen(value)} is no topic name",
            hint=_look_alike(value) or "allowed are 1 to 249 of A-Z a-z 0-9 . _ - and not . or ..",
        ) from None


def checked_id(value: object, what: str = "id") -> str:
    """An id of a step, fault, client: what can stand in paths and expressions.

    Raises:
        Refusal: it cannot.
    """
    if not isinstance(value, str):
        raise Refusal(f"{seen(value)} is no {what}", hint="write it in quotes")
    if _ID.fullmatch(value) is None:
        raise Refusal(
            f"{seen(value)} is no {what}",
            hint=_look_alike(value) or "allowed is a letter, then letters, digits, - and _",
        )
    return value


def checked_name(value: object) -> str:
    """The name of a scenario or variant: it becomes the name of a folder (``slug``).

    Raises:
        Refusal: it cannot.
    """
    if not isinstance(value, str):
        raise Refusal(f"{seen(value)} is no name", hint="write it in quotes")
    if _NAME.fullmatch(value) is None or is_device(slug(value)):
        raise Refusal(
            f"{seen(value)} is no name",
            hint=_look_alike(value)
            or f"allowed are up to {_NAME_CHARS} letters, digits, blanks and . _ -",
        )
    return value


def checked_title(value: object) -> str:
    """One line of text.

    Raises:
        Refusal: it is not.
    """
    if not isinstance(value, str):
        raise Refusal(f"{seen(value)} is no text", hint="write it in quotes")
    if len(value) > _TITLE_CHARS:
        raise Refusal(f"{seen(value)} is too long", hint=f"allowed are {_TITLE_CHARS} characters")
    if seen(value[:60])[1:-1] != value[:60].replace("\t", " ") or not value.isprintable():
        at = next((i for i, each in enumerate(value) if not each.isprintable()), 0)
        raise Refusal(
            f"{seen(value)} has a character that cannot be shown",
            hint=f"take U+{ord(value[at]):04X} out",
            offset=at,
            width=1,
        )
    return value


def slug(name: str) -> str:
    """The name as a folder's: ``Unclean ON`` is ``unclean-on``."""
    return _NO_SLUG.sub("-", name.lower()).strip(".-") or "x"


def is_device(name: str) -> bool:
    """Whether a slug is a name that Windows takes for a device."""
    return _DEVICES.fullmatch(name) is not None


def _look_alike(value: str) -> str:
    """A hint, if characters only look as if they were ASCII."""
    for each in value:
        if not each.isascii() and each.isprintable():
            name = unicodedata.name(each, "no name")
            return f"{each} is U+{ord(each):04X} ({name.lower()}), not a letter of A-Z a-z"
    return ""


def gather(document: Mapping[str, Any]) -> Names:
    """What a document declares, as far as it can be told."""
    brokers = _table(document.get("cluster")).get("brokers", 3)
    is_count = brokers.__class__ is int and 1 <= brokers <= BROKERS_MAX
    topics: dict[str, int | None] = {}
    steps: dict[str, int] = {}
    actions: dict[str, str] = {}
    clients: dict[str, str] = {}
    for topic in _tables(document, "topic"):
        _add_topic(topics, topic)
    for workload in _tables(document, "workload"):
        name = workload.get("name")
        if isinstance(name, str):
            clients.setdefault(name, str(workload.get("kind", "producer")))
    for number, step in enumerate(_tables(document, "step"), 1):
        _add_topic(topics, _table(step.get("create_topic")))
        for action, kind, default in (("produce", "producer", "p1"), ("consume", "consumer", "k1")):
            client = _table(step.get(action)).get("client", default)
            if action in step and isinstance(client, str):
                clients.setdefault(client, kind)
        if isinstance(step.get("id"), str):
            steps.setdefault(step["id"], number)
            actions.setdefault(step["id"], next((k for k in step if k not in _STEP_KEYS), ""))
    variants = [each.get("name") for each in _tables(document, "variant")]
    faults = [each.get("id") for each in _tables(document, "fault")]
    return Names(
        brokers=brokers if is_count else None,
        clients={k: v for k, v in clients.items() if _ID.fullmatch(k)},
        topics=topics,
        steps=steps,
        actions=actions,
        faults=frozenset(each for each in faults if isinstance(each, str)),
        variants=tuple(each for each in variants if isinstance(each, str)),
    )


_STEP_KEYS: Final = frozenset({"at", "after", "delay", "id", "within"})


def _add_topic(topics: dict[str, int | None], table: Mapping[str, Any]) -> None:
    name = table.get("name")
    if not isinstance(name, str):
        return
    lists, count = table.get("replicas"), table.get("partitions", 1)
    if isinstance(lists, list):
        found: int | None = len(lists)
    else:
        found = count if count.__class__ is int and lists is None else None
    # Of two topics of one name (a mistake, or deleted and made again) the larger counts.
    known = topics.get(name, 0)
    topics[name] = None if found is None or known is None else max(found, known)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _tables(document: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
    value = document.get(key)
    return [_table(each) for each in value] if isinstance(value, list) else []
