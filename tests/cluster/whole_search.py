"""Search for broken histories without Hypothesis: fast, by seed, and with a shrinker of its own.

    python -m tests.cluster.whole_search --seeds 0:1000 --kind mem
    python -m tests.cluster.whole_search --seeds 0:1000 --kind sim --guard hw-freeze

Each seed is one history. What breaks is printed as a script that ``World.replay`` takes, shrunk by
taking steps out for as long as the same invariant breaks.
"""

from __future__ import annotations

import argparse
import random
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Sequence

from attrs import asdict, evolve

from cluster.guards import Guards
from cluster.truncation import TruncationMode
from tests.cluster.whole_end import finish
from tests.cluster.whole_ledger import Broken
from tests.cluster.whole_world import PRODUCERS, Script, Setup, Step, World

WAITS_MS = (1, 20, 100, 600, 1_100, 3_000, 10_000, 16_000, 25_000)
POINTS = (
    "fetch-received",
    "fetch-read",
    "produce-appended",
    "hw-advanced",
    "metadata-applied",
    "isr-change-sent",
    "registered",
)
MODES = ("lost", "lost", "kept", "file-prefix", "disk-prefix", "sector-subset")
TOPICS: tuple[dict[str, str], ...] = (
    {},
    {},
    {"segment.bytes": "400"},
    {"segment.bytes": "300", "flush.messages": "1"},
    {"segment.bytes": "500", "retention.bytes": "1500"},
    {"segment.bytes": "300", "cleanup.policy": "compact"},
    {"segment.bytes": "300", "cleanup.policy": "compact,delete", "retention.bytes": "1500"},
    {"unclean.leader.election.enable": "true"},
)

CONFIGS = (
    ("segment.bytes", "200"),
    ("segment.bytes", "100000"),
    ("cleanup.policy", "compact"),
    ("cleanup.policy", "delete"),
    ("retention.bytes", "400"),
    ("max.message.bytes", "150"),
    ("max.message.bytes", "100000"),
    ("flush.messages", "1"),
    ("segment.ms", "5000"),
)
"""What an operator may change under way; no promise rests on it."""


def draw_setup(rng: random.Random, kind: str) -> Setup:
    topic = dict(rng.choice(TOPICS))
    topic["min.insync.replicas"] = rng.choice("122")
    common = {
        "brokers": rng.choice((3, 4)),
        "partitions": rng.choice((1, 1, 2)),
        "copies": rng.choice((3, 3, 2)),
        "truncation": rng.choice(
            (TruncationMode.FETCH, TruncationMode.FETCH, TruncationMode.KIP_279)
        ),
        "fetch_bytes": rng.choice((1, 200, 1 << 20)),
        "snapshot_records": rng.choice((0, 0, 5)),
    }
    if kind == "mem":
        return Setup(topic=tuple(topic.items()), elr=rng.random() < 0.4, **common)
    disk = rng.choice(("ext4", "posix"))
    mode = rng.choice(("flush", "elr", "anything"))
    topic.pop("unclean.leader.election.enable", None)
    topic.pop("flush.messages", None)
    if mode == "flush":
        topic["flush.messages"] = "1"
    if mode == "elr":
        topic["min.insync.replicas"] = "2"
        common["copies"] = 3
    return Setup(
        topic=tuple(topic.items()),
        elr=mode == "elr" or rng.random() < 0.3,
        disk=disk,
        is_bounded=mode != "anything",
        **common,
    )


def draw_taste(rng: random.Random) -> list[int]:
    """How much a history likes each kind of step: some never, some much more than others."""
    return [rng.choice((0, 1, 1, 4)) for _ in range(30)]


def draw_step(rng: random.Random, world: World, taste: Sequence[int]) -> Step:
    """One step; which ones are likely depends on what there is, and on the history's taste."""
    names, nodes = world.names, ("c1", *world.names)
    down = [name for name in nodes if not world.is_up(name)]
    state = world.state(rng.randrange(world.setup.partitions))
    leader = state.leader if state is not None else None
    ways = sorted({each[:2] for each in world.net.kept})
    slow = sorted({name for name, _ in world.net.held})
    some = leader if leader is not None and rng.random() < 0.5 else rng.choice(names)
    pair = rng.sample([n for n in nodes if n != "c1" or rng.random() < 0.4], 2)
    client = [rng.choice(("p1", "p2", "p3", "p4", "k1")), rng.choice(names)]
    rng.shuffle(client)
    choices: list[tuple[int, Callable[[], Step]]] = [
        (14, lambda: ("send", rng.choice(list(PRODUCERS)), rng.randrange(2), rng.randint(1, 3))),
        (14, lambda: ("wait", rng.choice(WAITS_MS))),
        (4, lambda: ("kill", some)),
        (1, lambda: ("kill", "c1")),
        (7 if down else 0, lambda: ("start", rng.choice(down))),
        (2, lambda: ("stop", some)),
        (3, lambda: ("cut", *pair)),
        (2, lambda: ("hold", *pair)),
        (2, lambda: ("hold", *client)),
        (1, lambda: ("isolate", some)),
        (12 if ways else 0, lambda: ("let", *rng.choice(ways), rng.randint(1, 3))),
        (3 if ways else 0, lambda: ("release", *rng.choice(ways))),
        (3 if ways else 0, lambda: ("heal",)),
        (3 if ways else 0, lambda: ("reset", *rng.choice(ways))),
        (1, lambda: ("slow", rng.choice(nodes), rng.choice(("fsync", "background")))),
        (4 if slow else 0, lambda: ("work", rng.choice(slow), rng.randint(1, 3))),
        (2 if slow else 0, lambda: ("fast", rng.choice(slow))),
        (1, lambda: ("yield", rng.choice(names), rng.choice(POINTS))),
        (3 if world.net.yields else 0, lambda: ("resume",)),
        (1, lambda: ("prefer",)),
        (1, lambda: _reassign(rng, world)),
        (2, lambda: ("delete", rng.randrange(2), rng.randint(0, 4))),
        (1 if may_change_min_isr(world) else 0, lambda: ("min_isr", rng.randint(1, 2))),
        (1 if rng.random() < 0.3 else 0, lambda: ("recreate",)),
        (1, lambda: ("config", *rng.choice(CONFIGS))),
    ]
    if world.setup.disk != "mem":
        choices.append((4, lambda: ("power", some, rng.choice(MODES))))
        choices.append((1, lambda: ("power", "c1", rng.choice(MODES))))
        calls = rng.choice((1, 2, 3, 5, 8, 13, 30))
        fused = rng.choice((some, some, "c1", *down))
        choices.append((4, lambda: ("fuse", fused, calls, rng.choice((*MODES, "torn")))))
    weights = [weight * liking for (weight, _), liking in zip(choices, taste, strict=False)]
    if not any(weights[2:]):
        weights = [weight for weight, _ in choices]
    weights[0], weights[1] = choices[0][0], choices[1][0]
    return rng.choices([make for _, make in choices], weights)[0]()


def may_change_min_isr(world: World) -> bool:
    """Another minimum empties the ELR, and with it goes a promise that rests on it (FAULTS D.4)."""
    setup = world.setup
    is_flushed = setup.config.get("flush.messages") == "1"
    return setup.disk == "mem" or is_flushed or not setup.is_bounded


def _reassign(rng: random.Random, world: World) -> Step:
    if rng.random() < 0.2:
        return ("reassign", rng.randrange(2), "")
    count = min(len(world.names), rng.choice((2, 3, 3)))
    return ("reassign", rng.randrange(2), " ".join(rng.sample(world.names, count)))


# Running ---------------------------------------------------------------------------------------


def run(setup: Setup, script: Script, *, ends: bool = True) -> BaseException | None:
    """What breaks, if anything."""
    try:
        world = World(setup)
        world.replay(script)
        if ends:
            finish(world)
    except Exception as error:  # noqa: BLE001 - everything that a handler raises is a finding
        return error
    return None


def sign(error: BaseException) -> str:
    """Whether two failures are the same one."""
    if isinstance(error, Broken):
        return error.invariant
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__} in {place.name}"


def explore(seed: int, kind: str, steps: int, guards: Guards) -> tuple[Setup, Script, str | None]:
    rng = random.Random(seed)
    setup = evolve(draw_setup(rng, kind), guards=guards)
    world, taste = World(setup), draw_taste(rng)
    try:
        if rng.random() < 0.4:
            world.do("stepwise")
        for _ in range(rng.randint(steps // 3, steps)):
            world.do(*draw_step(rng, world, taste))
        drawn = len(world.script)
        finish(world)
    except Exception as error:  # noqa: BLE001 - as above
        return setup, tuple(world.script), sign(error)
    return setup, tuple(world.script[:drawn]), None


def shrink(setup: Setup, script: Script, wanted: str) -> Script:
    """Take steps out, larger parts first, for as long as the same breaks."""

    def breaks(steps: Script) -> bool:
        error = run(setup, steps)
        return error is not None and sign(error) == wanted

    steps = list(script)
    size = max(1, len(steps) // 2)
    while True:
        at, has_changed = 0, False
        while at < len(steps):
            fewer = steps[:at] + steps[at + size :]
            if breaks(fewer):
                steps, has_changed = fewer, True
            else:
                at += size
        if size == 1 and not has_changed:
            return steps
        size = max(1, size // 2)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--seeds", default="0:200")
    parser.add_argument("--kind", choices=("mem", "sim"), default="mem")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--guard", action="append", default=[])
    parser.add_argument("--most", type=int, default=3, help="stop after so many kinds")
    given = parser.parse_args()
    guards = Guards.from_ids(dict.fromkeys(given.guard, False))
    first, last = (int(part) for part in given.seeds.split(":"))
    found: Counter[str] = Counter()
    for seed in range(first, last):
        setup, script, broken = explore(seed, given.kind, given.steps, guards)
        if seed % 100 == 0:
            print(f"seed {seed}", file=sys.stderr, flush=True)
        if broken is None:
            continue
        found[broken] += 1
        if found[broken] > 1:
            continue
        short = shrink(setup, script, broken)
        error = run(setup, short)
        shown = ", ".join(
            f"{k}={v!r}" for k, v in asdict(setup, recurse=False).items() if k != "guards"
        )
        print(f"seed {seed}: {broken}: {error}\nSetup({shown})")
        for step in short:
            print(f"    {step},")
        sys.stdout.flush()
        if len(found) >= given.most:
            break
    print(f"seeds {first}:{seed + 1}, broken: {dict(found)}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
