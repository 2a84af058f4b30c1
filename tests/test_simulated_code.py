"""What simulated code must not do, so that one seed is one run (FAULTS C.0, its forbidden list).

Simulated code is ``storage``, ``cluster`` and all of ``sim`` but its rim: the modules in ``RIM``,
which may do what is named there and nothing else of it. Most of the imports are contracts of
import-linter too; here they are refused with what to use instead, and with them what no contract
sees: builtins, attributes, coroutines, and the order of sets and of directories.

An offence that is none goes into ``HARMLESS``, with the reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house import PACKAGES, ROOT, Rule, assert_finds, clean_tree, modules
from tests.set_order import Definitions, unsorted_uses

# Pattern of modules -> the topics (the keys of INSTEAD) that they may use, and why.
RIM: dict[str, tuple[frozenset[str], str]] = {
    "sim/baton*.py": (frozenset({"collector", "task"}), "runs user code, and sees where it waits"),
    "sim/cli*": (frozenset({"chance", "clock", "host", "task"}), "talks to people"),
    "sim/failures.py": (frozenset({"chance", "host"}), "writes files for people"),
    "sim/pytest_plugin/*": (frozenset({"host", "task"}), "talks to pytest, and runs user code"),
    "sim/scripts.py": (frozenset({"task"}), "user code is coroutines, one runs at a time"),
    "sim/state_keys.py": (frozenset({"identity"}), "tells what it has met, and writes none of it"),
    "sim/testing/failing.py": (frozenset({"host"}), "asks pytest for the name of the test"),
    "sim/tui*": (frozenset({"clock", "host", "task"}), "talks to people"),
    "storage/disk.py": (frozenset({"host"}), "is the operating system's face"),
    "storage/experiment.py": (frozenset({"chance"}), "a demonstration in a temporary folder"),
    "storage/values.py": (frozenset({"identity"}), "what is copied is known so, to ``copy`` alone"),
}

# (module, source of the set) -> why its order shows nowhere.
HARMLESS: dict[tuple[str, str], str] = {}

INSTEAD = {
    "chance": "draw from the sim.draws.Draws that the caller passes in",
    "collector": "close it, or drop it, where its owner ends",
    "clock": "take the time that the caller passes in: Now, or Timeline.now_us",
    "host": "take it as a parameter: it differs from machine to machine",
    "identity": "give the object a number or a name of its own",
    "task": "return effects, or enter them on the Timeline: one thing runs at a time",
}
MODULES = {
    "chance": frozenset("random secrets tempfile uuid".split()),
    "clock": frozenset("datetime time zoneinfo".split()),
    "host": frozenset("getpass grp locale platform pwd resource".split()),
    "task": frozenset(
        """_thread anyio asyncio concurrent contextvars multiprocessing queue sched select selectors
        signal socket socketserver subprocess threading trio""".split()
    ),
}
# Of the module ``os``.
SYSTEM = {
    "chance": frozenset("getrandom urandom".split()),
    "clock": frozenset("times utime".split()),
    "host": frozenset(
        """cpu_count environ environb getcwd getcwdb getenv getenvb getlogin getpid getppid getuid
        sched_getaffinity uname""".split()
    ),
    "task": frozenset("fork forkpty popen system".split()),
}
# Attributes of anything.
HOST_ATTRIBUTES = frozenset(
    """expanduser st_atime st_atime_ns st_ctime st_ctime_ns st_dev st_ino st_mtime st_mtime_ns
    strerror""".split()
)
HOST_CALLS_OF_PATH = frozenset({"cwd", "home"})

LISTINGS_OF_OS = frozenset("fwalk listdir scandir walk".split())
LISTINGS_OF_PATH = frozenset("glob iterdir rglob".split())
SORT = {
    "a key with equals": "end the key in the element itself: lambda x: (..., x)",
    "pop()": "take min() and discard it, or pop from a dict",
}
COLLECTED = frozenset({"gc", "weakref"})


def _refused(name: str, topic: str) -> bool:
    return not any(
        topic in topics for pattern, (topics, _) in RIM.items() if fnmatch(name, pattern)
    )


# The rules -------------------------------------------------------------------------------------


def no_clock_chance_host_or_task(root: Path) -> list[str]:
    return [
        f"{name}:{line}: {what}; {INSTEAD[topic]}"
        for name, _, tree in modules(root, *PACKAGES)
        for node in ast.walk(tree)
        for topic, what, line in _outside(node)
        if _refused(name, topic)
    ]


def no_identity_hash_or_finalizer(root: Path) -> list[str]:
    offences = []
    for name, _, tree in modules(root, *PACKAGES):
        for node in ast.walk(tree):
            match node:
                case ast.Name(id="id" | "hash" as builtin, ctx=ast.Load()):
                    topic, what = "identity", f"{builtin}() differs from process to process"
                case ast.FunctionDef(name="__del__"):
                    topic, what = "collector", "__del__ runs when the garbage collector likes"
                case ast.Import() | ast.ImportFrom() if COLLECTED & _top_levels(node):
                    module = min(COLLECTED & _top_levels(node))
                    topic, what = "collector", f"{module} shows what the garbage collector did"
                case _:
                    continue
            if _refused(name, topic):
                offences.append(f"{name}:{node.lineno}: {what}; {INSTEAD[topic]}")
    return offences


def listings_are_sorted(root: Path) -> list[str]:
    """``Disk.listdir`` is sorted by contract; what lists a directory itself is refused bare."""
    offences = []
    for name, _, tree in modules(root, *PACKAGES):
        sorted_here = {
            argument
            for node in ast.walk(tree)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
            if node.func.id == "sorted"
            for argument in node.args[:1]
        }
        for node in ast.walk(tree):
            match node:
                case ast.Call(func=ast.Attribute(value=ast.Name("os"), attr=call)):
                    is_listing = call in LISTINGS_OF_OS
                case ast.Call(func=ast.Attribute(value=ast.Name("glob"), attr=call)):
                    is_listing = call in {"glob", "iglob"}
                case ast.Call(func=ast.Attribute(attr=call)):
                    is_listing = call in LISTINGS_OF_PATH
                case ast.ImportFrom(module="os" | "glob", names=aliases):
                    call = aliases[0].name
                    is_listing = any(a.name in LISTINGS_OF_OS | {"glob", "iglob"} for a in aliases)
                case _:
                    continue
            if is_listing and node not in sorted_here:
                offences.append(
                    f"{name}:{node.lineno}: {call} lists in the order of the file system; "
                    "wrap it in sorted() right there, or call Disk.listdir"
                )
    return offences


def order_of_sets_does_not_show(root: Path) -> list[str]:
    found = list(modules(root, *PACKAGES))
    definitions = Definitions()
    for name, _, tree in found:
        definitions.add(name, tree)
    return [
        f"{name}:{node.lineno}: {ast.unparse(node)} is a set, and {how} shows its order; "
        + SORT.get(how, "wrap it in sorted()")
        for name, _, tree in found
        for node, how in unsorted_uses(name, tree, definitions)
        if (name, ast.unparse(node)) not in HARMLESS
    ]


def _outside(node: ast.AST) -> Iterator[tuple[str, str, int]]:
    """(topic, what it is, line) of what a node takes from outside the simulated world."""
    match node:
        case ast.Import() | ast.ImportFrom():
            for topic, names in MODULES.items():
                for module in sorted(names & _top_levels(node)):
                    yield topic, f"imports {module}", node.lineno
            if isinstance(node, ast.ImportFrom) and node.module == "os":
                for alias in node.names:
                    yield from _of_os(alias.name, node.lineno)
        case ast.Attribute(value=ast.Name("os"), attr=attr):
            yield from _of_os(attr, node.lineno)
        case ast.Attribute(value=ast.Name("Path"), attr=attr) if attr in HOST_CALLS_OF_PATH:
            yield "host", f"Path.{attr}", node.lineno
        case ast.Attribute(attr=attr) if attr in HOST_ATTRIBUTES:
            yield "host", f".{attr}", node.lineno
        case ast.AsyncFunctionDef():
            yield "task", f"async def {node.name}", node.lineno
        case _:
            pass


def _of_os(attr: str, line: int) -> Iterator[tuple[str, str, int]]:
    for topic, names in SYSTEM.items():
        if attr in names:
            yield topic, f"os.{attr}", line


def _top_levels(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.ImportFrom):
        return {(node.module or "").partition(".")[0]}
    return {alias.name.partition(".")[0] for alias in node.names}


# The tree keeps them, and each of them can fail ------------------------------------------------

RULES: tuple[Rule, ...] = (
    listings_are_sorted,
    no_clock_chance_host_or_task,
    no_identity_hash_or_finalizer,
    order_of_sets_does_not_show,
)

# Text behind a docstring, with the offence in its last line: the start of the one offence expected.
OUTSIDE = {
    "import time": "imports time; take the time",
    "import datetime as dt": "imports datetime; take",
    "from time import monotonic": "imports time; take",
    "import random": "imports random; draw from",
    "from random import choice": "imports random; draw",
    "import secrets": "imports secrets; draw",
    "import uuid": "imports uuid; draw",
    "import tempfile": "imports tempfile; draw",
    "import threading": "imports threading; return effects",
    "import concurrent.futures": "imports concurrent; return",
    "import multiprocessing.pool": "imports multiprocessing; return",
    "import asyncio": "imports asyncio; return",
    "import trio": "imports trio; return",
    "import subprocess": "imports subprocess; return",
    "async def f() -> None: ...": "async def f; return",
    "import locale": "imports locale; take it as a parameter",
    "import platform": "imports platform; take",
    "x = os.environ['A']": "os.environ; take",
    "x = os.getenv('A')": "os.getenv; take",
    "from os import environ": "os.environ; take",
    "x = os.getpid()": "os.getpid; take",
    "x = os.urandom(8)": "os.urandom; draw",
    "from os import urandom": "os.urandom; draw",
    "x = Path.home()": "Path.home; take",
    "x = path.expanduser()": ".expanduser; take",
    "x = found.st_mtime_ns": ".st_mtime_ns; take",
    "x = error.strerror": ".strerror; take",
}
IDENTITY = {
    "x = id(y)": "id() differs",
    "x = hash(y)": "hash() differs",
    "x = sorted(y, key=id)": "id() differs",
    "class A:\n    def __hash__(self) -> int:\n        return hash(1)": "hash() differs",
    "class A:\n    def __del__(self) -> None: ...": "__del__ runs",
    "import weakref": "weakref shows",
    "from gc import collect": "gc shows",
}
LISTINGS = {
    "x = os.listdir(y)": "listdir lists in the order",
    "for x in os.scandir(y): ...": "scandir lists",
    "x = list(os.walk(y))": "walk lists",
    "x = [p for p in y.iterdir()]": "iterdir lists",
    "x = set(y.glob('*'))": "glob lists",
    "x = next(y.rglob('*'))": "rglob lists",
    "x = sorted(len(os.listdir(p)) for p in y)": "listdir lists",
    "from os import listdir": "listdir lists",
    "from glob import glob": "glob lists",
    "x = glob.iglob(y)": "iglob lists",
}
ORDER = {
    "for x in {1, 2}: ...": "{1, 2} is a set, and for shows",
    "for x in set(y): ...": "set(y) is a set, and for",
    "for x in frozenset[int](y): ...": "frozenset[int](y) is a set, and for",
    "x = [z for z in {a for a in y}]": "{a for a in y} is a set, and a comprehension",
    "x = {z: 1 for z in set(y)}": "set(y) is a set, and a comprehension",
    "x = f(z for z in set(y))": "set(y) is a set, and a comprehension",
    "x = [z for w in y for z in set(w)]": "set(w) is a set, and a comprehension",
    "x = list(set(y))": "set(y) is a set, and list()",
    "x = tuple(set(y) - z)": "set(y) - z is a set, and tuple()",
    "x = list(y.keys() - z)": "y.keys() - z is a set, and list()",
    "x = list(y.keys() & z.keys())": "y.keys() & z.keys() is a set, and list()",
    "x = ','.join({'a', 'b'})": "{'a', 'b'} is a set, and join()",
    "x = enumerate(y.union(z))": "y.union(z) is a set, and enumerate()",
    "x = next(iter(set(y)))": "set(y) is a set, and iter()",
    "x = [z for z in enumerate(set(y))]": "set(y) is a set, and enumerate()",
    "x = [*set(y)]": "set(y) is a set, and *",
    "x = f(*set(y))": "set(y) is a set, and *",
    "x, y = {1, 2}": "{1, 2} is a set, and unpacking",
    "x = dict.fromkeys(set(y))": "set(y) is a set, and fromkeys()",
    "x.extend(set(y))": "set(y) is a set, and extend()",
    "x += set(y)": "set(y) is a set, and +=",
    "x = str(set(y))": "set(y) is a set, and str()",
    "x = f'{set(y)}'": "set(y) is a set, and an f-string",
    "x = set(y).pop()": "set(y) is a set, and pop() shows its order; take min()",
    "x = sorted(set(y), key=len)": "set(y) is a set, and a key with equals shows its order; end",
    "x = min({1, 2}, key=f)": "{1, 2} is a set, and a key with equals",
    "def f():\n    yield from set(y)": "set(y) is a set, and yield from",
    "def f():\n    x = set(y)\n    return list(x)": "x is a set, and list()",
    "def f(x: set[int]):\n    return list(x)": "x is a set, and list()",
    "def f(x: 'frozenset[int] | None'):\n    return list(x or ())": "x or () is a set",
    "def f(x: AbstractSet[int]):\n    for y in x: ...": "x is a set, and for",
    "def f(x: dict[str, set[int]]):\n    return list(x['a'])": "x['a'] is a set",
    "def f(x: dict[str, set[int]]):\n    return [list(y) for y in x.values()]": "y is a set",
    "def f(x: dict[str, set[int]]):\n    for k, v in x.items():\n        g(*v)": "v is a set",
    "def f(x: Mapping[str, set[int]]):\n    return list(x.get('a', ()))": "x.get('a', ()) is",
    "def f() -> set[int]: ...\nx = list(f())": "f() is a set, and list()",
    "class A:\n    x: set[int]\n    def f(self):\n        return list(self.x)": "self.x is a set",
    "class A:\n    def __init__(self):\n        self.x = set()\n"
    "    def f(self):\n        return list(self.x)": "self.x is a set, and list()",
    "class A:\n    x: set[int]\ndef f(a: A):\n    return list(a.x)": "a.x is a set, and list()",
}

CLEAN = """
import os
from pathlib import Path
x = os.path.join("a", "b")
a = sorted(os.listdir(p))
b = sorted(p.iterdir())
c = disk.listdir(p)
s = set(a) | {1} - frozenset(b)
t = {y for y in s}
for y in sorted(s): ...
u = any(y for y in s), all(s), len(s), sum(s), min(s), max(y for y in s), 1 in s
v = sorted(y for y in s), sorted(s, key=lambda y: (-y, y)), max(s, key=lambda y: (f(y), y))
w = frozenset(y for y in s).union(z for z in s)
s.update(y for y in t)
d = {"a": 1}
e = list(d.keys()), list(d), d.pop("a"), [y for y in d.items()]
g = set(map(str, s)), sorted(enumerate(sorted(s)))
(only,) = s

class A:
    id: int
    many: set[int]
    def f(self, other: B) -> list[int]:
        return [*sorted(self.many), *other.some]

class B:
    some: list[int]
    many: list[int]

def h(x: B, y: list[int], id_: int) -> list[int]:
    return [*x.many, *y]
"""


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_tree_keeps_the_rule(rule: Rule) -> None:
    offences = rule(ROOT)
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_what_is_allowed_is_no_offence(rule: Rule, tmp_path: Path) -> None:
    clean_tree(tmp_path)
    for package in PACKAGES:
        (tmp_path / package / "clean.py").write_text(CLEAN)
    assert rule(tmp_path) == []


@pytest.mark.parametrize("package", PACKAGES)
@pytest.mark.parametrize(
    ("rule", "text", "expected"),
    [
        (rule, text, expected)
        for rule, planted in (
            (no_clock_chance_host_or_task, OUTSIDE),
            (no_identity_hash_or_finalizer, IDENTITY),
            (listings_are_sorted, LISTINGS),
            (order_of_sets_does_not_show, ORDER),
        )
        for text, expected in planted.items()
    ],
)
def test_a_planted_offence_is_found(
    rule: Rule, text: str, expected: str, package: str, tmp_path: Path
) -> None:
    files = {f"{package}/planted.py": f'"""Planted."""\n\n{text}\n'}
    line = 3 + text.count("\n")
    assert_finds(rule, files, f"{package}/planted.py:{line}: {expected}", tmp_path)


def test_the_rim_may_do_what_is_named_and_nothing_else(tmp_path: Path) -> None:
    clean_tree(tmp_path)
    for name in ("baton.py", "baton_threads.py", "scripts.py", "core_of_baton.py"):
        (tmp_path / "sim" / name).write_text("import threading\n")
    (tmp_path / "sim" / "cli").mkdir()
    (tmp_path / "sim" / "cli" / "run.py").write_text("import os, time\nx = os.environ\n")
    assert no_clock_chance_host_or_task(tmp_path) == [
        f"sim/core_of_baton.py:1: imports threading; {INSTEAD['task']}"
    ]
    (tmp_path / "sim" / "state_keys.py").write_text("x = id(y)\n")
    (tmp_path / "sim" / "baton.py").write_text("import gc\nx = id(y)\n")
    assert no_identity_hash_or_finalizer(tmp_path) == [
        f"sim/baton.py:2: id() differs from process to process; {INSTEAD['identity']}"
    ]
    (tmp_path / "sim" / "scripts.py").write_text("import random\n")
    (tmp_path / "sim" / "core_of_baton.py").unlink()
    assert no_clock_chance_host_or_task(tmp_path) == [
        f"sim/scripts.py:1: imports random; {INSTEAD['chance']}"
    ]


def test_a_set_of_another_module_is_followed_by_its_name(tmp_path: Path) -> None:
    clean_tree(tmp_path)
    (tmp_path / "storage" / "one.py").write_text("class A:\n    alive: frozenset[str]\n")
    (tmp_path / "cluster" / "two.py").write_text("def f(a: object):\n    return [*a.alive]\n")
    (offence,) = order_of_sets_does_not_show(tmp_path)
    assert offence.startswith("cluster/two.py:2: a.alive is a set")
    # Where something else bears the name too, nobody can tell.
    (tmp_path / "sim" / "three.py").write_text("class B:\n    alive: tuple[str, ...]\n")
    assert order_of_sets_does_not_show(tmp_path) == []


def test_what_is_harmless_is_still_there() -> None:
    texts = {name: path.read_text() for name, path, _ in modules(ROOT, *PACKAGES)}
    assert [key for key in HARMLESS if key[1] not in texts.get(key[0], "")] == []
