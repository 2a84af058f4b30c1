"""A plan while it is drawn: faults, steps, and who takes part in what.

Left out: which faults there are (``sim.swarm.kinds``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from attrs import define, field, frozen

from sim.swarm.choosing import Choices, sample
from sim.swarm.frame import ANYTHING, Cluster

__all__ = ["Kind", "Plan", "draw_plan", "topic_of", "victims_of"]

_GRID_MS: Final = 50
_FIRST_MS: Final = 100
_LENGTHS_MS: Final = (100, 200, 500, 1_000, 2_000)


@define(eq=False)
class Plan:
    """See the module.

    Attributes:
        places: ``TOPIC-PARTITION`` and replicas.
        topics: configuration by topic.
        victims: brokers that may lose their memory, their disk or parts of it.
        span_ms: faults and steps begin in this time; ``end_ms`` is the end of the run.
        has_exact_clocks: no clock may be off, since retention goes by them.
        clients: names of those that go on beside the steps.
        fragile: brokers whose disk fails in some way.
        gone: topics that somebody deletes, or makes.
        repairs: how a broker is restarted behind all faults (``process`` or ``power``), where
            nothing less makes it whole.
    """

    cluster: Cluster
    places: dict[str, list[str]]
    topics: dict[str, dict[str, Any]]
    victims: list[str]
    span_ms: int
    end_ms: int
    has_exact_clocks: bool = False
    clients: Sequence[str] = ()
    faults: list[dict[str, Any]] = field(factory=list)
    steps: list[tuple[int, dict[str, Any]]] = field(factory=list)
    fragile: set[str] = field(factory=set)
    gone: set[str] = field(factory=set)
    repairs: dict[str, str] = field(factory=dict)
    _busy: dict[str, list[tuple[int, int]]] = field(factory=dict)
    _counts: dict[str, int] = field(factory=dict)

    @property
    def ground(self) -> str:
        return self.cluster.ground

    @property
    def is_recoverable(self) -> bool:
        return self.cluster.is_recoverable

    @property
    def names(self) -> list[str]:
        return self.cluster.names

    # What is drawn ------------------------------------------------------------------------------

    def moment(self, choices: Choices) -> int:
        """A time at which something happens, in ms."""
        steps = (self.span_ms - _FIRST_MS) // _GRID_MS
        return _FIRST_MS + _GRID_MS * choices.integer(0, steps)

    def window(self, choices: Choices) -> tuple[int, int]:
        """Begin and end, in ms."""
        start = self.moment(choices)
        return start, min(start + choices.pick(_LENGTHS_MS), self.end_ms)

    def broker(self, choices: Choices) -> str:
        return choices.pick(self.names)

    def server(self, choices: Choices) -> str:
        """A broker, or the controller."""
        return choices.pick([*self.names, "c1"])

    def victim(self, choices: Choices) -> str:
        return choices.pick(self.victims)

    def place(self, choices: Choices) -> str:
        return choices.pick(sorted(self.places))

    def role(self, choices: Choices) -> str:
        return choices.pick(("leader", "followers", "isr")) + f":{self.place(choices)}"

    # What is noted ------------------------------------------------------------------------------

    def key(self, kind: str) -> str:
        """An id that does not change when something of another kind is taken out."""
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        return f"{kind}{number}"

    def fault(self, kind: str, target: Any, when: tuple[int, int | None], **keys: Any) -> str:
        """A fault from a time to another, or for ever."""
        start_ms, end_ms = when
        name = self.key(kind)
        times = {"start": f"{start_ms}ms"}
        if end_ms is not None:
            times["end"] = f"{end_ms}ms"
        self.faults.append({"id": name, "kind": kind, "target": target, **times, **keys})
        return name

    def step(self, at_ms: int, action: str, value: Any, **keys: Any) -> str:
        """A step with an id, by which chance in it is keyed."""
        name = self.key(f"{action.replace('_', '-')}-step")
        step = {"at": f"{at_ms}ms", "id": name, **keys, action: value}
        self.steps.append((at_ms, step))
        return name

    def repair(self, node: str, how: str, *, is_for_all: bool = False) -> None:
        """A broker is restarted once the faults are over: in a recoverable case, or in any."""
        if (self.is_recoverable or is_for_all) and self.repairs.get(node) != "power":
            self.repairs[node] = how

    def claim(self, *topics: str) -> bool:
        """Whether there are no topics of these names; then one sequence makes them."""
        if not self.gone.isdisjoint(topics) or not self.topics.keys().isdisjoint(topics):
            return False
        self.gone.update(topics)
        return True

    def take(self, node: str, start_ms: int, end_ms: int) -> bool:
        """Whether nothing else ends this node's process around that time; then it is taken."""
        taken = self._busy.setdefault(node, [])
        if any(start_ms <= other_end and other <= end_ms for other, other_end in taken):
            return False
        taken.append((start_ms, end_ms))
        return True


@frozen
class Kind:
    """One kind of fault or step.

    Attributes:
        name: of it.
        draw: puts one into a plan.
        grounds: of recoverable cases that may have it; empty for none.
        needs: what the cluster must be like.
        weight: how often it comes, against others that are on.
    """

    name: str
    draw: Callable[[Plan, Choices], None]
    grounds: tuple[str, ...] = ("calm", "kills", "flush", "elr")
    needs: Callable[[Plan], bool] = lambda plan: True
    weight: int = 1

    def is_possible(self, plan: Plan) -> bool:
        return (plan.ground == ANYTHING or plan.ground in self.grounds) and self.needs(plan)


def topic_of(place: str) -> str:
    """The topic of a partition: of ``t1-0`` it is ``t1``."""
    return place.rsplit("-", 1)[0]


def victims_of(choices: Choices, cluster: Cluster, topics: list[dict[str, Any]]) -> list[str]:
    """Brokers that may lose something: with ``elr`` fewer than any ``min.insync.replicas``."""
    if cluster.ground != "elr":
        return cluster.names
    least = min(int(topic["config"]["min.insync.replicas"]) for topic in topics)
    return sample(choices, cluster.names, least - 1)


def draw_plan(plan: Plan, choices: Choices, kinds: list[Kind], least: int, most: int) -> None:
    """Draw so many faults and disturbing steps of those kinds that are possible."""
    possible = [each for each in kinds if each.is_possible(plan)]
    if not possible:
        return
    on = [each for each in choices.swarm(possible) for _ in range(each.weight)]

    def one(inner: Choices) -> None:
        inner.pick(on).draw(plan, inner)

    choices.several(least, most, one)
