"""House rules that no linter states, each one a function from a tree to its offences.

An offence names the file, the line and what to do instead. The tree must have none, and each rule
must find the offence planted for it: a rule that cannot fail protects nothing.

Imports across packages are contracts of import-linter in ``pyproject.toml``
(``tests/test_import_contracts.py``); what is here is what those contracts cannot see. What keeps
simulated code deterministic has rules of its own (``tests/test_simulated_code.py``).
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house import PACKAGES, ROOT, Rule, assert_finds, clean_tree, modules

TOP_LEVEL = frozenset(
    {"CHANGELOG.md", "LICENSE", "README.md", "pyproject.toml", "scenarios", "tests", *PACKAGES}
)
MODULE_LINES_MAX = 600

# Methods of pathlib that reach the operating system and that no type of ours shares.
PATH_CALLS = frozenset(
    """exists glob hardlink_to is_dir is_file is_symlink iterdir read_bytes read_text resolve rglob
    samefile symlink_to touch write_bytes write_text""".split()
)
# The modules of storage whose subject is the operating system, or a demonstration on it.
PATH_CALLS_ALLOWED = frozenset({"storage/disk.py", "storage/experiment.py"})

PRESENT_IMPORTS = ("sim.present", "sim.trace", "storage.inspection.escaping")

# The rules -------------------------------------------------------------------------------------


def modules_are_short(root: Path) -> list[str]:
    return [
        f"{name}:{MODULE_LINES_MAX + 1}: the module has {lines} lines, at most {MODULE_LINES_MAX}; "
        "split it by subject"
        for name, path, _ in modules(root, *PACKAGES, "tests")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > MODULE_LINES_MAX
    ]


def imports_name_what_they_import(root: Path) -> list[str]:
    return [
        f"{name}:{node.lineno}: from {node.module} import *; name what is imported"
        for name, _, tree in modules(root, *PACKAGES, "tests")
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.names[0].name == "*"
    ]


def public_modules_have_docstrings(root: Path) -> list[str]:
    return [
        f"{name}:1: no module docstring; say what the module is, its rules and what it leaves out"
        for name, path, tree in modules(root, *PACKAGES)
        if (path.name == "__init__.py" or not path.name.startswith("_"))
        and not (ast.get_docstring(tree) or "").strip()
    ]


def only_the_disk_module_touches_files(root: Path) -> list[str]:
    """Imports of ``os`` are a contract; ``open`` and ``Path`` reach the system without one."""
    offences = []
    for name, _, tree in modules(root, "cluster", "storage"):
        if name in PATH_CALLS_ALLOWED:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call):
                continue
            match node.func:
                case ast.Name(id="open" as call):
                    pass
                case ast.Attribute(attr=call) if call in PATH_CALLS:
                    pass
                case _:
                    continue
            offences.append(
                f"{name}:{node.lineno}: {call}() reaches the operating system; "
                "call the Disk that the caller passes in"
            )
    return offences


def present_knows_only_traces(root: Path) -> list[str]:
    """A story must come from its trace alone, so what makes traces is out of reach."""
    offences = []
    for name, _, tree in modules(root, "sim"):
        if not name.startswith("sim/present/"):
            continue
        for node in ast.walk(tree):
            match node:
                case ast.ImportFrom(module=str(module)):
                    imported = [module]
                case ast.Import(names=names):
                    imported = [each.name for each in names]
                case _:
                    continue
            offences += [
                f"{name}:{node.lineno}: {each} is imported; take it from the trace"
                for each in imported
                if each.split(".")[0] in PACKAGES and not each.startswith(PRESENT_IMPORTS)
            ]
    return offences


def modules_of_a_package_have_no_cycles(root: Path) -> list[str]:
    """Imports inside functions and under TYPE_CHECKING count: they hide a cycle, not end it."""
    offences = []
    for package in PACKAGES:
        graph = _import_graph(root, package)
        for start in sorted(graph):
            cycle = _shortest_cycle(graph, start)
            if cycle and start == min(cycle):
                file, line = graph[start][cycle[1]]
                offences.append(
                    f"{file}:{line}: import cycle {' -> '.join(cycle)}; "
                    "move what both need into a third module"
                )
    return offences


def top_level_is_fixed(root: Path) -> list[str]:
    """Names that .gitignore lists, dot files and a source distribution's PKG-INFO are free."""
    ignored = {"PKG-INFO"}
    gitignore = root / ".gitignore"
    if gitignore.is_file():
        ignored |= {line.strip().strip("/") for line in gitignore.read_text().splitlines()}
    seen = {path.name for path in root.iterdir() if not path.name.startswith(".")} - ignored
    return [
        f"{name}:1: not allowed at the top level; move it below one of {', '.join(PACKAGES)}, "
        "scenarios or tests"
        for name in sorted(seen - TOP_LEVEL)
    ] + [f"{name}:1: missing at the top level; restore it" for name in sorted(TOP_LEVEL - seen)]


def _import_graph(root: Path, package: str) -> dict[str, dict[str, tuple[str, int]]]:
    """Module -> imported module of the same package -> (file, line) of the import."""
    found = {}
    for name, _, tree in modules(root, package):
        parts = name.removesuffix(".py").split("/")
        module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[module] = (name, tree)
    graph: dict[str, dict[str, tuple[str, int]]] = {}
    for module, (name, tree) in found.items():
        edges = graph[module] = {}
        for node in ast.walk(tree):
            for target in _imported(node):
                while target and target not in found:
                    target = target.rpartition(".")[0]
                if target and target != module:
                    edges.setdefault(target, (name, getattr(node, "lineno", 1)))
    return graph


def _imported(node: ast.AST) -> list[str]:
    """What a statement may import; a name that is no module stands for the module that has it.

    Relative imports are left out: ruff refuses them (TID252).
    """
    match node:
        case ast.Import(names=names):
            return [alias.name for alias in names]
        case ast.ImportFrom(module=str(module), names=names, level=0):
            return [f"{module}.{alias.name}" for alias in names]
        case _:
            return []


def _shortest_cycle(graph: dict[str, dict[str, tuple[str, int]]], start: str) -> list[str]:
    """The shortest path from ``start`` back to itself, both ends included, or an empty list."""
    paths = [[start]]
    seen = set()
    while paths:
        path = paths.pop(0)
        for target in sorted(graph[path[-1]]):
            if target == start:
                return [*path, start]
            if target not in seen:
                seen.add(target)
                paths.append([*path, target])
    return []


# The tree keeps them, and each of them can fail ------------------------------------------------

RULES: tuple[Rule, ...] = (
    imports_name_what_they_import,
    modules_are_short,
    modules_of_a_package_have_no_cycles,
    only_the_disk_module_touches_files,
    present_knows_only_traces,
    public_modules_have_docstrings,
    top_level_is_fixed,
)

# Rule, files added to a clean tree, start of the one offence expected.
PLANTED: tuple[tuple[Rule, dict[str, str], str], ...] = (
    (
        imports_name_what_they_import,
        {"sim/a.py": '"""A."""\n\nfrom storage import *\n'},
        "sim/a.py:3: from storage import *",
    ),
    (
        imports_name_what_they_import,
        {"tests/a.py": "from os import *\n"},
        "tests/a.py:1: from os import *",
    ),
    (
        modules_are_short,
        {"storage/a.py": '"""A."""\n' + "x = 1\n" * 600},
        "storage/a.py:601: the module has 601 lines, at most 600",
    ),
    (
        modules_of_a_package_have_no_cycles,
        {
            "storage/a.py": '"""A."""\nimport storage.b\n',
            "storage/b.py": '"""B."""\nfrom storage import c\n',
            "storage/c.py": '"""C."""\n\n\ndef f():\n    from storage.a import x\n',
        },
        "storage/a.py:2: import cycle storage.a -> storage.b -> storage.c -> storage.a",
    ),
    (
        modules_of_a_package_have_no_cycles,
        {
            "sim/__init__.py": '"""Sim."""\nfrom sim.a import f\n',
            "sim/a.py": '"""A."""\nfrom sim import f\n',
        },
        "sim/__init__.py:2: import cycle sim -> sim.a -> sim",
    ),
    (
        only_the_disk_module_touches_files,
        {"storage/a.py": '"""A."""\nfile = open("x")\n'},
        "storage/a.py:2: open() reaches the operating system",
    ),
    (
        only_the_disk_module_touches_files,
        {"cluster/a.py": '"""A."""\ndata = path.read_bytes()\n'},
        "cluster/a.py:2: read_bytes() reaches the operating system",
    ),
    (
        present_knows_only_traces,
        {"sim/present/a.py": '"""A."""\n\n\ndef f():\n    from sim.world import World\n'},
        "sim/present/a.py:5: sim.world is imported",
    ),
    (
        present_knows_only_traces,
        {"sim/present/a.py": '"""A."""\nimport sim.trace.kinds, cluster.names\n'},
        "sim/present/a.py:2: cluster.names is imported",
    ),
    (
        public_modules_have_docstrings,
        {"cluster/a.py": "x = 1\n"},
        "cluster/a.py:1: no module docstring",
    ),
    (
        public_modules_have_docstrings,
        {"cluster/a/__init__.py": '""" """\n'},
        "cluster/a/__init__.py:1: no module docstring",
    ),
    (
        top_level_is_fixed,
        {"utils/a.py": ""},
        "utils:1: not allowed at the top level",
    ),
    (
        top_level_is_fixed,
        {"setup.py": ""},
        "setup.py:1: not allowed at the top level",
    ),
)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_this_tree_keeps_the_rule(rule: Rule) -> None:
    offences = rule(ROOT)
    assert not offences, "\n".join(offences)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_clean_tree_has_no_offence(rule: Rule, tmp_path: Path) -> None:
    clean_tree(tmp_path)
    assert rule(tmp_path) == []


@pytest.mark.parametrize(
    ("rule", "files", "expected"), PLANTED, ids=lambda value: getattr(value, "__name__", "")
)
def test_a_planted_offence_is_found(
    rule: Rule, files: dict[str, str], expected: str, tmp_path: Path
) -> None:
    assert_finds(rule, files, expected, tmp_path)


def test_a_missing_top_level_name_is_found(tmp_path: Path) -> None:
    clean_tree(tmp_path)
    (tmp_path / "LICENSE").unlink()
    assert top_level_is_fixed(tmp_path) == ["LICENSE:1: missing at the top level; restore it"]


def test_every_rule_has_a_planted_offence() -> None:
    assert {rule for rule, _, _ in PLANTED} == set(RULES)
