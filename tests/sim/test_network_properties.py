"""Whatever happens to the network, its promises hold; and rules do not disturb one another's draws.

Method: Hypothesis draws histories of sends, rules, deaths and returns on three nodes, under a
scheduler with drawn ties; the promises are checked on what nodes got and heard.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given, settings
from hypothesis import strategies as st

from cluster.message import Message
from sim.draws import Draws
from sim.network_rules import (
    Clog,
    Corrupt,
    Cut,
    Duplicate,
    Edge,
    Loss,
    Reorder,
    ResetOn,
    Rule,
    Slow,
)
from sim.schedulers import Seeded
from sim.trace.kinds import Kind
from tests.sim.networks import Net, fetched, heartbeat

NODES = ("b1", "b2", "b3")
EDGES: tuple[Edge, ...] = (("b1", "b2"), ("*", "b1"), ("b2", "*"), ("*", "*"))

ways = st.sampled_from([(a, b) for a in NODES for b in NODES if a != b])
delays = st.sampled_from([0, 1, 100, 700, 5_000, 300_000])
sends = st.tuples(st.just("send"), ways, st.sampled_from([0, 0, 0, 5, 3_000]), st.booleans())
waits = st.tuples(st.just("wait"), delays)


def rules(lossless: bool) -> st.SearchStrategy[Any]:
    edges = st.sampled_from(EDGES).map(lambda edge: (edge,))
    kinds: list[st.SearchStrategy[Any]] = [
        st.builds(lambda e: Clog(id="r", edges=e), edges),
        st.builds(
            lambda e, cap: Cut(id="r", edges=e, in_flight="hold", backoff_cap_us=cap),
            edges,
            st.sampled_from([0, 1, 250_000]),
        ),
        st.builds(
            lambda e, f, a: Slow(id="r", edges=e, factor_ppm=f, addend_us=a),
            edges,
            st.sampled_from([0, 500_000, 9_000_000]),
            st.sampled_from([0, 2_000]),
        ),
        st.builds(lambda e: Loss(id="r", edges=e, ppm=200_000 if lossless else 700_000), edges),
    ]
    if not lossless:
        kinds.append(st.builds(lambda e: ResetOn(id="r", edges=e, ppm=200_000), edges))
    return st.one_of(kinds)


def begins(lossless: bool) -> st.SearchStrategy[Any]:
    return st.tuples(st.just("begin"), st.integers(0, 2), rules(lossless))


ends = st.tuples(st.just("end"), st.integers(0, 2))
deaths = st.tuples(st.just("die"), st.sampled_from(NODES))
cuts = st.tuples(st.just("lose_power"), st.sampled_from(NODES))
starts = st.tuples(st.just("start"), st.sampled_from(NODES))
closes = st.tuples(st.just("close"), ways)
resets = st.tuples(st.just("reset"), ways)


@define
class Sent:
    """Attributes: ``heard``: how often its sender had heard of its peer's end before it."""

    src: str
    dst: str
    lives: tuple[int, int]
    heard: int
    departs_us: int
    read: bool


@define
class History:
    """Plays operations and remembers what was sent.

    Attributes:
        sent: by number.
        active: rule of each slot.
        closed: who closed the connection to whom; it does not hear of that.
    """

    net: Net
    sent: dict[int, Sent] = field(factory=dict)
    active: dict[int, Rule] = field(factory=dict)
    closed: list[tuple[str, str]] = field(factory=list)

    def play(self, operations: list[Any]) -> None:
        for operation in operations:
            getattr(self, operation[0])(*operation[1:])
        for slot in sorted(self.active):
            self.end(slot)
        self.net.run()

    def life(self, node: str) -> int:
        return self.net.hosts.running.get(node, 0)

    def heard(self, node: str, peer: str) -> int:
        return self.net.heard().count((node, peer))

    def send(self, way: tuple[str, str], later_us: int, is_read: bool) -> None:
        src, dst = way
        if self.life(src) < 0:
            return
        number = len(self.sent)
        departs_us = self.net.timeline.now_us + later_us
        lives = self.life(src), self.life(dst)
        self.sent[number] = Sent(src, dst, lives, self.heard(src, dst), departs_us, is_read)
        message: Message = fetched(number) if is_read else heartbeat(number)
        self.net.send(src, dst, message, departs_us)

    def wait(self, for_us: int) -> None:
        self.net.run(self.net.timeline.now_us + for_us)

    def begin(self, slot: int, rule: Any) -> None:
        if slot not in self.active:
            self.active[slot] = evolve(rule, id=f"r{slot}")
            self.net.add(self.active[slot])

    def end(self, slot: int) -> None:
        if self.active.pop(slot, None) is not None:
            self.net.network.remove(f"r{slot}")

    def die(self, node: str) -> None:
        if self.life(node) >= 0:
            self.net.die(node)

    def lose_power(self, node: str) -> None:
        if self.life(node) >= 0:
            self.net.die(node, is_silent=True)

    def start(self, node: str) -> None:
        if self.life(node) < 0:
            self.net.start(node)

    def close(self, way: tuple[str, str]) -> None:
        if self.life(way[0]) >= 0:
            self.closed.append(way)
            self.net.network.close(*way, ())

    def reset(self, way: tuple[str, str]) -> None:
        self.net.network.reset(*way)


def play(seed: int, operations: list[Any]) -> History:
    history = History(Net.new(seed, scheduler=Seeded(Draws(seed)), jitter_mean_us=400))
    history.play(operations)
    return history


@settings(max_examples=150, deadline=None)
@given(st.integers(0, 1_000), st.lists(sends | waits | begins(lossless=True) | ends, max_size=60))
def test_streams_lose_and_double_nothing_and_keep_order(seed: int, operations: list[Any]) -> None:
    history = play(seed, operations)
    net = history.net
    if net.kinds(Kind.RESET):
        return
    assert not net.heard()
    for way in {(each.src, each.dst) for each in history.sent.values()}:
        got = [n for _, dst, src, n, _ in net.hosts.got if (src, dst) == way]
        sent = [n for n, each in history.sent.items() if (each.src, each.dst) == way]
        assert got == sorted(sent, key=lambda n: (history.sent[n].departs_us, n))


@settings(max_examples=400, deadline=None)
@given(
    st.integers(0, 1_000),
    st.lists(
        sends | sends | waits | begins(lossless=False) | ends | deaths | starts | closes | resets,
        max_size=60,
    ),
)
def test_connections_keep_their_promises(seed: int, operations: list[Any]) -> None:
    history = play(seed, operations)
    net = history.net
    got = [number for *_, number, _ in net.hosts.got]
    assert len(set(got)) == len(got), "no frame arrives twice"
    order: dict[tuple[str, str, int], list[tuple[int, int]]] = {}
    for at_us, dst, src, number, _ in net.hosts.got:
        each = history.sent[number]
        order.setdefault((src, dst, each.lives[0]), []).append((each.departs_us, number))
        heard_until = sum(
            1 for t, node, peer, _ in net.hosts.heard if (node, peer) == (src, dst) and t < at_us
        )
        if history.life(src) == each.lives[0]:
            assert heard_until == each.heard, "who has heard of the end lost what it had sent"
    for line in order.values():
        assert line == sorted(line), "first in, first out"
    for number, each in history.sent.items():
        if number in got or history.life(each.src) != each.lives[0]:
            continue
        if (each.src, each.dst) in history.closed:
            continue
        assert history.heard(each.src, each.dst) > each.heard, "what is lost is heard of"


@settings(max_examples=200, deadline=None)
@given(
    st.integers(0, 1_000), st.lists(sends | waits | deaths | cuts | starts | starts, max_size=60)
)
def test_a_frame_is_for_one_process_and_comes_before_the_end_of_its_sender(
    seed: int, operations: list[Any]
) -> None:
    history = play(seed, operations)
    net = history.net
    for (*_, number, _), life in zip(net.hosts.got, net.hosts.by, strict=True):
        assert history.sent[number].lives[1] in (-1, life), "sent to one process, given to another"
    log: dict[str, list[Any]] = {}
    for at_us, node, src, number, _ in net.hosts.got:
        log.setdefault(node, []).append((at_us, src, history.sent[number].lives))
    for node, entries in log.items():
        lives: dict[str, int] = {}
        for at_us, src, (life, peer_life) in entries:
            ends_heard = [
                t for t, to, peer, _ in net.hosts.heard if (to, peer) == (node, src) and t <= at_us
            ]
            assert lives.get(src, 0) <= life, "no frame of an older process behind a newer one's"
            if life > lives.get(src, 0) and src in lives and peer_life == lives.get(node):
                assert ends_heard, "a newer process is heard behind the end of the older one"
            lives[src], lives[node] = life, peer_life


# Rules leave one another's draws alone -----------------------------------------------------------

STREAM: tuple[Rule, ...] = (
    Slow(id="slow", edges=(("*", "b2"),), factor_ppm=2_000_000),
    Loss(id="loss", edges=(("b1", "*"),), ppm=300_000),
    ResetOn(id="reset", edges=(("*", "*"),), ppm=300_000, times=None),
    Corrupt(id="bits", edges=(("b1", "b2"),), ppm=300_000, times=None),
)
DATAGRAM: tuple[Rule, ...] = (
    Slow(id="slow", edges=(("*", "b2"),), factor_ppm=2_000_000),
    Loss(id="loss", edges=(("b1", "*"),), ppm=300_000),
    Loss(id="other-loss", edges=(("b1", "*"),), ppm=200_000),
    Duplicate(id="double", edges=(("b1", "b2"),), ppm=300_000),
    Reorder(id="order", edges=(("b1", "b2"),), ppm=300_000, up_to_us=500),
    Corrupt(id="bits", edges=(("b1", "b2"),), ppm=300_000, times=None),
)


def struck(mode: str, active: tuple[Rule, ...]) -> tuple[dict[int, list[Any]], dict[int, int]]:
    """What rules did to each of 150 frames that are far apart, and when it arrived, if sound."""
    net = Net.new(5, mode=mode, tail_ppm=50_000, tail_max_us=4_000)
    for rule in active:
        net.add(rule)
    for number in range(150):
        net.send("b1", "b2", number)
        net.send("b1", "b3", 1_000 + number)
        net.run()
        net.run(net.timeline.now_us - net.timeline.now_us % 20_000_000 + 20_000_000)
    effects: dict[int, list[Any]] = {}
    for event in net.trace.events:
        if "fault" in event.args and "id" in event.args:
            more = {k: v for k, v in event.args.items() if k not in ("from", "to", "id", "type")}
            effects.setdefault(event.args["id"], []).append((event.kind, more))
    arrived: dict[int, int] = {}
    for at_us, _, _, number, _ in net.hosts.got:
        arrived.setdefault(number, at_us % 20_000_000)
    return effects, arrived


@pytest.mark.parametrize("mode", ["stream", "datagram"])
def test_taking_a_rule_out_leaves_all_other_draws_as_they_were(mode: str) -> None:
    active = STREAM if mode == "stream" else DATAGRAM
    effects, arrived = struck(mode, active)
    names = {more["fault"] for each in effects.values() for _, more in each}
    assert names == {rule.id for rule in active} - {"slow"}
    for rule in active:
        others = tuple(each for each in active if each is not rule)
        left, came = struck(mode, others)
        compared = 0
        for number in [*range(150), *range(1_000, 1_150)]:
            if any(more["fault"] == rule.id for _, more in effects.get(number, ())):
                continue
            assert left.get(number, []) == effects.get(number, []), (rule.id, number)
            if rule.id != "slow" or number >= 1_000:
                assert came.get(number) == arrived.get(number), (rule.id, number)
                compared += 1
        assert compared > 100
