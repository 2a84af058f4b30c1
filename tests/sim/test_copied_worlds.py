"""A deep copy of a running cluster goes on like the original, and neither moves the other.

Clusters of ``tests.cluster.whole_world``, on simulated disks, driven by drawn histories: kills,
power cuts, held links, flushes and background work under way, handlers stopped at failpoints.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType
from typing import Any

import pytest

from sim.disks import SimDisk
from sim.draws import Draws, Stream
from storage.disk import OsDisk
from storage.partition_log import PartitionLog
from storage.values import Value
from tests.cluster.whole_end import finish
from tests.cluster.whole_search import draw_setup, draw_step, draw_taste
from tests.cluster.whole_world import Setup, World

SEEDS = (0, 10, 14, 29, 46, 56, 80, 87)
STEPS = 30


def state_of(world: World) -> dict[str, Any]:
    """Everything that a history may show, and more."""
    net = world.net
    return {
        "now": net.now_us,
        "logs": world.draw(),
        "fields": {name: dict(node.fields()) for name, node in sorted(net.nodes.items())},
        "timers": sorted(net.timers.items(), key=repr),
        "under way": (list(net.queue), net.kept, net.held, net.stopped_at),
        "delivered": net.delivered,
        "notes": net.notes,
        "outcomes": world.outcomes,
        "polled": world.polled,
        "events": world.events,
        "disks": {name: disk_state(disk) for name, disk in sorted(world._sim.items())},
    }


def disk_state(disk: SimDisk) -> tuple[object, ...]:
    return (
        disk.digest(),
        disk.serial,
        disk.call_count,
        disk.crash_count,
        disk.pending_count,
        disk.incarnation,
        sorted(disk.locks),
        sorted(disk.inodes),
        disk.is_powered,
        [image.label for image in disk.images()],
    )


def differences(one: dict[str, Any], other: dict[str, Any]) -> list[str]:
    return [key for key in one if one[key] != other[key]]


def history(seed: int, steps: int) -> tuple[World, random.Random, list[int]]:
    rng = random.Random(seed)
    world, taste = World(draw_setup(rng, "sim")), draw_taste(rng)
    for _ in range(steps):
        world.do(*draw_step(rng, world, taste))
    return world, rng, taste


@pytest.mark.parametrize("seed", SEEDS)
def test_copy_and_original_go_on_alike_and_apart(seed: int) -> None:
    world, rng, taste = history(seed, STEPS)
    twin = copy.deepcopy(world)
    before = state_of(copy.deepcopy(world))
    assert differences(before, state_of(twin)) == []

    # The copy goes first, with steps of its own; the original has not moved.
    states = []
    for _ in range(12):
        twin.do(*draw_step(rng, twin, taste))
        states.append(state_of(copy.deepcopy(twin)))
    assert differences(state_of(world), before) == []

    # Then the original makes the same steps; the copy has not moved.
    after = states[-1]
    for expected, (kind, *args) in zip(states, twin.script[len(world.script) :], strict=True):
        world.do(kind, *args)
        assert differences(state_of(world), expected) == [], (kind, *args)
    assert differences(state_of(twin), after) == []

    # Healed and restarted, both end alike, with every check of a history.
    finish(twin)
    finish(world)
    assert differences(state_of(world), state_of(twin)) == []


def test_histories_have_under_way_what_is_hard_to_copy() -> None:
    """Else the test above shows little."""
    seen = set()
    for seed in SEEDS:
        world, _, _ = history(seed, STEPS)
        net = world.net
        disks = list(world._sim.values())
        found = {
            "held link": net.kept,
            "flush or work": net.held,
            "stopped handler": net.stopped_at,
            "process that ended": net.gone,
            "power cut": any(disk.crash_count for disk in disks),
            "fuse": any(disk.fuses.armed for disk in disks),
            "undo records": any(inode.state.ops for d in disks for inode in d.inodes.values()),
            "names not durable": any(disk.names.ops for disk in disks),
            "file without a name": any(disk._graves for disk in disks),
            "flush begun": any(log._flushes for log in all_of(world, PartitionLog)),
        }
        seen |= {name for name, value in found.items() if value}
    assert seen == set(found)


def test_copies_of_copies_are_worlds_too() -> None:
    world, _, _ = history(3, 15)
    twin = world
    for _ in range(5):
        twin = copy.deepcopy(twin)
        twin.do("send", "p1", 0, 2)
        twin.do("wait", 600)
    for _ in range(5):
        world.do("send", "p1", 0, 2)
        world.do("wait", 600)
    assert differences(state_of(world), state_of(twin)) == []


# What copies share -----------------------------------------------------------------------------

PLAIN = (int, str, bytes, type(None), Enum, Path, Draws, Stream, type)
SHARED = (*PLAIN, Value, tuple, frozenset)


def parts(thing: object) -> Iterator[object]:
    """What an object holds."""
    if isinstance(thing, dict):
        yield from thing.keys()
        yield from thing.values()
    elif isinstance(thing, (tuple, list, set, frozenset)) or type(thing).__name__ == "deque":
        yield from thing  # type: ignore[misc]
    if isinstance(thing, MethodType):
        yield thing.__self__
    yield from getattr(thing, "__dict__", {}).values()
    for kind in type(thing).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{kind.__name__.lstrip('_')}{name}" if name.startswith("__") else name
            if hasattr(thing, mangled) and name != "__weakref__":
                yield getattr(thing, mangled)


def everything(root: object) -> list[object]:
    """All that can be reached, each once; nothing behind a class, a function or a module."""
    found: dict[int, object] = {}
    stack = [root]
    while stack:
        thing = stack.pop()
        if id(thing) in found or isinstance(thing, (type, FunctionType, BuiltinFunctionType, Enum)):
            continue
        if isinstance(thing, (int, str, bytes, type(None), Path, Draws, Stream)):
            continue
        found[id(thing)] = thing
        stack.extend(parts(thing))
    return list(found.values())


def all_of(root: object, kind: type[Any]) -> list[Any]:
    return [thing for thing in everything(root) if isinstance(thing, kind)]


def test_a_copy_shares_nothing_that_can_change() -> None:
    world, _, _ = history(5, 30)
    twin = copy.deepcopy(world)
    mine = {id(thing): thing for thing in everything(world)}
    shared = [thing for thing in everything(twin) if id(thing) in mine]
    values = all_of(twin, Value)
    assert len(values) > 30
    assert all(id(value) in mine for value in values)
    for thing in shared:
        assert isinstance(thing, SHARED), thing
        for part in parts(thing):
            assert isinstance(part, SHARED), (thing, part)


def test_values_are_frozen() -> None:
    kinds = [Value]
    for kind in kinds:
        kinds.extend(kind.__subclasses__())
    with_fields = [kind for kind in kinds if hasattr(kind, "__attrs_attrs__")]
    assert len(with_fields) > 60
    assert [kind for kind in with_fields if kind.__setattr__ is object.__setattr__] == []


def test_a_world_on_real_files_says_that_it_is_not_copied(tmp_path: Path) -> None:
    world = World(Setup(disk="posix"))
    world._sim["b1"] = SimDisk(OsDisk(), tmp_path / "b1", Draws(1))
    with pytest.raises(TypeError, match="real files are not copied"):
        copy.deepcopy(world)
    disk = OsDisk()
    for thing in (disk, disk.open(tmp_path / "a", create=True), disk.lock(tmp_path / "lock")):
        with pytest.raises(TypeError, match="runs on disks in memory"):
            copy.deepcopy(thing)
