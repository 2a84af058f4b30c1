"""Nondeterminism in the shipped code is found by running twice, and named by its first event.

Each plant changes one place of a copy of the three packages. The same small world runs twice, in
fresh processes with different PYTHONHASHSEED, and ``python -m sim.trace diff`` compares the traces.
What the rules about source text claim to see, they see in the plant as well.

Left out: nondeterminism that is the same in every process of one machine; the determinism check
runs on other Pythons and roots too (``tests.determinism``).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from sim.trace.reader import TraceReader
from tests.house import PACKAGES, ROOT, Rule
from tests.test_simulated_code import (
    listings_are_sorted,
    no_clock_chance_host_or_task,
    no_identity_hash_or_finalizer,
    order_of_sets_does_not_show,
)

HASH_SEEDS = ("1", "2", "3", "4")


class Plant(NamedTuple):
    """One place, changed.

    Attributes:
        what: in words.
        file: below the root of the repository.
        old, new: text that is there once, and what takes its place.
        node, kind: of the first event that differs; None for any.
        unlike: what differs in it, as ``diff`` names it.
        rule: about source text, which sees it; None where none does.
    """

    what: str
    file: str
    old: str
    new: str
    node: str | None
    kind: str
    unlike: str
    rule: Rule | None


PLANTS = (
    Plant(
        "an election goes through a set",
        "cluster/elections.py",
        "for broker in replicas:\n        if is_valid(broker):",
        "for broker in {*replicas}:\n        if is_valid(broker):",
        "c1",
        "elect",
        "args.leader",
        order_of_sets_does_not_show,
    ),
    Plant(
        "a session of the controller ends by wall time",
        "cluster/broker_control.py",
        'fx.arm(("session", broker_id), now.mono_us + self._session_us)',
        "import time; wall_us = time.monotonic_ns() // 1_000 % 300_007\n"
        '        fx.arm(("session", broker_id), now.mono_us + 500_000 + wall_us)',
        "c1",
        "timer",
        "t",
        no_clock_chance_host_or_task,
    ),
    Plant(
        "timers of a host are late by wall time",
        "sim/process.py",
        "armed.token = None\n        if due_us is not None:",
        "armed.token = None\n        if due_us is not None:\n"
        "            import time; due_us += time.monotonic_ns() % 100_003",
        None,
        "timer",
        "t",
        no_clock_chance_host_or_task,
    ),
    Plant(
        "latency is drawn from the global generator",
        "sim/latency.py",
        "return self._frames_us[ordinal & _BLOCK - 1]",
        "import random; return self._frames_us[0] + random.randrange(100_003)",
        "c1",
        "deliver",
        "t",
        no_clock_chance_host_or_task,
    ),
    Plant(
        "the end of a process is told to the links in the order of a set",
        "sim/network.py",
        "for _, link in sorted(self._links.items()):\n            if link.src != node:",
        "for link in map(self._links.get, {*self._links}):\n            if link.src != node:",
        "b1",
        "drop",
        "args.to",
        order_of_sets_does_not_show,
    ),
    Plant(
        "a directory is listed as the file system likes",
        "storage/disk.py",
        "return sorted(os.listdir(fd))",
        "return os.listdir(fd)",
        "b2",
        "lost",
        "args",
        listings_are_sorted,
    ),
    Plant(
        "ties are broken by identity",
        "sim/timeline.py",
        "tie = 0 if self._is_fifo else self.scheduler.tie(event_class, origin, ordinal)",
        "tie = id(origin) * 2_654_435_761 >> 8 & 0xFFFF",
        None,
        # Addresses may agree for a while: then something later is the first to differ.
        "",
        "",
        no_identity_hash_or_finalizer,
    ),
    Plant(
        "ties are broken by the hash of a name",
        "sim/timeline.py",
        "tie = 0 if self._is_fifo else self.scheduler.tie(event_class, origin, ordinal)",
        "tie = hash(origin) & 0xFFFF",
        None,
        "start",
        "node",
        no_identity_hash_or_finalizer,
    ),
    Plant(
        "an event shows an object as it is",
        "sim/process.py",
        'args = {"key": "/".join(map(str, key)), "clock": armed.clock}',
        'args = {"key": "/".join(map(str, key)), "clock": repr(self.host.build)}',
        None,
        "timer",
        "args.clock",
        None,
    ),
)

FIELDS = Plant(
    "a broker shows its replicas in the order of a set",
    "cluster/broker.py",
    "for partition in sorted(core.replicas):\n            for name",
    "for partition in {*core.replicas}:\n            for name",
    None,
    "",
    "set",
    order_of_sets_does_not_show,
)


@pytest.fixture
def root() -> Iterator[Path]:
    """An empty folder that goes with the test: pytest would keep all the copies."""
    with TemporaryDirectory() as name:
        yield Path(name)


def tree(root: Path, plant: Plant | None) -> Path:
    """A copy of the packages with the plant in it."""
    for package in PACKAGES:
        shutil.copytree(ROOT / package, root / package)
    (root / "tests").symlink_to(ROOT / "tests")
    if plant is not None:
        path = root / plant.file
        text = path.read_text(encoding="utf-8")
        assert text.count(plant.old) == 1, f"{plant.file} has {text.count(plant.old)}: {plant.old}"
        path.write_text(text.replace(plant.old, plant.new), encoding="utf-8")
        for stale in (path.parent / "__pycache__").glob(f"{path.stem}.*.pyc"):
            stale.unlink()
    return root


def traced(root: Path, level: str, hash_seed: str) -> Path:
    """The trace file of a run of the tree's packages."""
    folder, file = root / f"disks-{hash_seed}", root / f"{hash_seed}.jsonl"
    folder.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "tests.sim.planted_world", file, level, folder],
        capture_output=True,
        text=True,
        cwd=root,
        env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONDONTWRITEBYTECODE": "1"},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return file


def two_runs(root: Path, level: str) -> tuple[Path, Path]:
    """Of two runs. Where few things are in another order, two hash seeds may give the same one,
    so there are some more.
    """
    first, *others = HASH_SEEDS
    one = traced(root, level, first)
    for hash_seed in others:
        other = traced(root, level, hash_seed)
        if other.read_bytes() != one.read_bytes():
            break
    return one, other


def diff(one: Path, other: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "sim.trace", "diff", one, other],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def first_events(report: str) -> list[list[str]]:
    """Number, time, node and kind of the first event that differs, in A and in B."""
    return [line.split()[:4] for line in re.findall(r"^[AB]:\n(.+)", report, re.MULTILINE)]


@pytest.mark.slow
def test_without_a_plant_the_traces_are_the_same(root: Path) -> None:
    one, other = two_runs(tree(root, None), "full")
    assert one.read_bytes() == other.read_bytes()
    done = diff(one, other)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("The events are the same.\n")


@pytest.mark.slow
@pytest.mark.parametrize("plant", PLANTS, ids=[plant.what for plant in PLANTS])
def test_a_plant_is_found_and_its_first_event_named(plant: Plant, root: Path) -> None:
    files = two_runs(tree(root, plant), "events")
    done = diff(*files)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    a, b = first_events(done.stdout)
    assert a[0] == b[0]
    assert re.search(rf"^They differ first in event {a[0]}\.$", done.stdout, re.MULTILINE)
    # Where a time differs, the other run may have something else at that place.
    named = [node for _, _, node, kind in (a, b) if plant.kind in ("", kind)]
    assert named, done.stdout
    assert plant.node is None or set(named) == {plant.node}, done.stdout
    assert f"\n  {plant.unlike}" in done.stdout[done.stdout.index("What differs:") :], done.stdout
    # The digests say it too, and all in front of it is the same.
    one, other = (list(TraceReader(file).fetch(1, int(a[0]))) for file in files)
    assert one[:-1] == other[:-1]
    assert one[-1] != other[-1]


@pytest.mark.slow
def test_what_only_viewers_see_is_found_by_traces_of_level_full(root: Path) -> None:
    files = two_runs(tree(root, FIELDS), "full")
    done = diff(*files)
    assert (done.returncode, done.stderr) == (1, ""), done.stdout
    assert "\nThe events are the same. What event " in done.stdout
    (event,) = re.findall(r"changed differs:\n(.+)", done.stdout)
    assert re.fullmatch("b[1-5]", event.split()[2])
    assert "\n  set (order of keys): " in done.stdout
    one, other = (TraceReader(file).footer for file in files)
    assert one is not None
    assert one == other


@pytest.mark.slow
@pytest.mark.parametrize("plant", [*PLANTS, FIELDS], ids=lambda plant: plant.what)
def test_the_rules_about_source_text_see_what_they_claim_to_see(plant: Plant, root: Path) -> None:
    # The planted module alone: that the rest keeps the rules is tested elsewhere.
    text = (ROOT / plant.file).read_text(encoding="utf-8")
    assert text.count(plant.old) == 1
    path = root / plant.file
    path.parent.mkdir(parents=True)
    path.write_text(text.replace(plant.old, plant.new), encoding="utf-8")
    rules = (
        listings_are_sorted,
        no_clock_chance_host_or_task,
        no_identity_hash_or_finalizer,
        order_of_sets_does_not_show,
    )
    found = [rule for rule in rules if rule(root)]
    assert found == ([] if plant.rule is None else [plant.rule])
