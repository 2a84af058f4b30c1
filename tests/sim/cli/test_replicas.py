"""``--replica``: what is no class of brokers is told so before anything runs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sim.cli.exits import Exit
from sim.cli.replicas import replica_of
from tests.sim.cli.tools import SMALL, call, write

MINE = """
from cluster.broker import Broker

class Mine(Broker):
    pass

def made(*args, **named):
    return Broker(*args, **named)

def short(name, config, disk, path):
    return Broker(name, config, disk, path)
"""


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nothing", "names no class"),
        ("os:nope", 'has no "nope"'),
        ("no_such_module:Mine", "cannot be imported"),
        ("os:path", "is a module; it must make brokers"),
        ("os:getcwd", "cannot be called as cluster.broker.Broker is, with name, config"),
        ("builtins:dict", "cannot be called as cluster.broker.Broker is"),
        ("builtins:print", "cannot be called as cluster.broker.Broker is"),
        ("mine:short", "cannot be called as cluster.broker.Broker is"),
    ],
)
def test_what_makes_no_brokers_is_refused(name: str, said: str, folder: Path) -> None:
    write(folder, SMALL)
    (folder / "mine.py").write_text(MINE)
    done = call("run", "small.toml", "--replica", name)
    assert done.exit_code == Exit.USAGE
    assert said in done.stderr
    assert sorted(each for each in os.listdir(folder) if each != "__pycache__") == [
        "mine.py",
        "small.toml",
    ]


@pytest.mark.parametrize("name", ["Mine", "made"])
def test_a_class_and_a_function_may_make_brokers(name: str, folder: Path) -> None:
    write(folder, SMALL)
    (folder / "mine.py").write_text(MINE)
    done = call("run", "small.toml", "-q", "--disk", "memory", "--replica", f"mine:{name}")
    assert done.exit_code == Exit.OK, done.output
    assert replica_of(f"mine:{name}") is not None
