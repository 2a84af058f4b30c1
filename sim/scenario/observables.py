"""Observables: what an expression may ask of a world. One closed table, for ``explain`` too.

The interpreter binds each name to a callable; it gets the arguments as the table says: a partition
as ``PartitionName``, a node, client or word as text, a number as int. An argument that may be left
out is not passed. What comes back must be of ``result``: ``node`` is text or None, ``nodes`` a set
or frozenset of text, ``int`` and ``bool`` themselves, ``text`` is text or None.

Left out: reading them from a world.
"""

from __future__ import annotations

from typing import Final

from attrs import frozen

from cluster.errors import ErrorCode

__all__ = ["OBSERVABLES", "Argument", "Observable"]

_LOSSES: Final = ("acked", "committed", "exposed")
_ELECTIONS: Final = ("clean", "preferred", "unclean", "last-known", "none", "any")
_ERRORS: Final = tuple(each.name for each in ErrorCode if each is not ErrorCode.NONE)


@frozen
class Argument:
    """One argument.

    Attributes:
        name: for people.
        kind: ``partition``, ``broker``, ``node`` (a broker or the controller), ``client`` (a
            consumer), ``number`` (an offset), ``word`` (one of ``words``).
        is_optional: may be left out, and then all behind it too.
        is_many: stands for one or more; the last only.
    """

    name: str
    kind: str
    words: tuple[str, ...] = ()
    is_optional: bool = False
    is_many: bool = False


@frozen
class Observable:
    """One row.

    Attributes:
        result: ``node``, ``nodes``, ``int``, ``bool`` or ``text``.
    """

    name: str
    arguments: tuple[Argument, ...]
    result: str
    doc: str

    @property
    def signature(self) -> str:
        """``hw(partition[, node]) -> int``."""
        text = ""
        for at, each in enumerate(self.arguments):
            comma = ", " if at else ""
            piece = f"{comma}{each.name}{', ...' if each.is_many else ''}"
            text += f"[{piece}]" if each.is_optional else piece
        result = {"node": "node or None", "nodes": "set of nodes", "text": "text or None"}
        return f"{self.name}({text}) -> {result.get(self.result, self.result)}"

    @property
    def least(self) -> int:
        """How many arguments there must be."""
        return sum(not each.is_optional for each in self.arguments)

    @property
    def most(self) -> int | None:
        """How many there may be; None for any number."""
        is_open = bool(self.arguments) and self.arguments[-1].is_many
        return None if is_open else len(self.arguments)


_PARTITION: Final = Argument("partition", "partition")
_BROKER: Final = Argument("node", "broker")
_ANY_BROKER: Final = Argument("node", "broker", is_optional=True)
_ANY_CLIENT: Final = Argument("client", "client", is_optional=True)


def _table(*rows: tuple[str, tuple[Argument, ...], str, str]) -> dict[str, Observable]:
    return {name: Observable(name, arguments, result, doc) for name, arguments, result, doc in rows}


OBSERVABLES: Final[dict[str, Observable]] = _table(
    # What the controller says.
    ("leader", (_PARTITION,), "node", "Who leads, by the controller's word"),
    ("isr", (_PARTITION,), "nodes", "The in-sync replicas, by the controller's word"),
    ("elr", (_PARTITION,), "nodes", "The eligible leader replicas (KIP-966)"),
    ("epoch", (_PARTITION,), "int", "The leader epoch, by the controller's word; -1 without topic"),
    (
        "elections",
        (
            Argument("kind", "word", _ELECTIONS),
            Argument("partition", "partition", is_optional=True),
        ),
        "int",
        (
            "Elections of that kind so far, a new partition's first left out; preferred moves the "
            "lead from a leader that is fit, none finds nobody"
        ),
    ),
    ("fenced", (_BROKER,), "bool", "Whether the controller has fenced the broker"),
    ("quarantined", (_PARTITION,), "nodes", "Brokers whose log refused to open and is set aside"),
    # What the logs have.
    (
        "hw",
        (_PARTITION, _ANY_BROKER),
        "int",
        "The high watermark of the leader, or of one broker; -1 where there is none",
    ),
    (
        "leo",
        (_PARTITION, _ANY_BROKER),
        "int",
        "The log end offset of the leader, or of one broker; -1 where there is none",
    ),
    (
        "log_start",
        (_PARTITION, _ANY_BROKER),
        "int",
        "The log start offset of the leader, or of one broker; -1 where there is none",
    ),
    (
        "record",
        (_PARTITION, _BROKER, Argument("offset", "number")),
        "text",
        "The value of the record at an offset of a broker's log, running or not; None without one",
    ),
    (
        "same_log",
        (_PARTITION, _BROKER, Argument("node", "broker", is_many=True)),
        "bool",
        "Whether the logs of these brokers have the same records at the same offsets",
    ),
    (
        "diverged",
        (_PARTITION,),
        "bool",
        "Whether two brokers have different records at one offset, running or not",
    ),
    (
        "truncated",
        (_PARTITION, _BROKER),
        "int",
        "Records that a broker has cut off its log so far to agree with a leader",
    ),
    (
        "unflushed",
        (_PARTITION, _BROKER),
        "int",
        "Records of a broker's log that a power loss could take now",
    ),
    # What producers were told.
    ("acked", (_PARTITION,), "int", "Records acknowledged to producers so far"),
    ("rejected", (_PARTITION,), "int", "Records that producers know are not in the log"),
    ("unknown", (_PARTITION,), "int", "Records of which producers do not know whether they are"),
    ("committed", (_PARTITION,), "int", "Records that were committed so far"),
    (
        "lost",
        (
            Argument("promise", "word", _LOSSES),
            Argument("partition", "partition", is_optional=True),
        ),
        "int",
        "Records acked (committed, exposed) that a leader serves without, or that no log has",
    ),
    (
        "errors",
        (Argument("code", "word", _ERRORS, is_optional=True),),
        "int",
        "Operations of clients that ended with an error so far, or with this one",
    ),
    # What consumers saw.
    (
        "position",
        (_PARTITION, _ANY_CLIENT),
        "int",
        "The offset that a consumer reads next; the only consumer's by default; -1 without one",
    ),
    ("read", (_PARTITION, _ANY_CLIENT), "int", "Records that a consumer has read so far"),
    (
        "truncation_detected",
        (_PARTITION, _ANY_CLIENT),
        "int",
        "How often a consumer found that what it had read was cut off",
    ),
    # The world.
    ("alive", (Argument("node", "node"),), "bool", "Whether a process runs there, paused or not"),
    (
        "one_leader_per_epoch",
        (_PARTITION,),
        "bool",
        "Whether no epoch so far had two brokers that led in it",
    ),
)
