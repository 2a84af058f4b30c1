"""Determinism check: ``python -m tests.determinism`` from the top of a checkout.

Every workload runs in fresh processes: with three hash seeds, each under two temporary roots whose
paths differ, and once more after importing Hypothesis, on this interpreter and on each other
supported one that is found. All digests of a workload must be equal. Where Hypothesis is absent,
that run is left out and named.

Another interpreter gets a virtual environment with the project installed for its dependencies; the
code under test is the checkout's. One that is absent uv brings, where there is a uv and the network
allows it, into the folder where uv keeps its interpreters. One that cannot be had or set up is
named and left out: that is a fact of the machine, not a difference.

Exit status: 0 all equal, 1 a difference, a failed workload or nothing to run.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

WORKLOADS_MODULE = "tests.workloads"
HASH_SEEDS = ("0", "1", "12345")
# Different lengths and depths, in case a path leaks into sizes or order.
ROOT_NAMES = ("a", "a-second-root/with-a-longer-path")
# What a process imports first: it seeds and patches things that simulated code must not depend on.
FIRST_IMPORT = "hypothesis"
SUPPORTED = ("3.11", "3.12", "3.13")
DIGEST = re.compile(r"[0-9a-f]{32,128}")

RUN_TIMEOUT_S = 600
SETUP_TIMEOUT_S = 300
# uv waits so long for a connection, then for data, and so long for a whole interpreter.
UV_LIMITS = {"UV_HTTP_CONNECT_TIMEOUT": "5", "UV_HTTP_TIMEOUT": "10", "UV_HTTP_RETRIES": "1"}
UV_TIMEOUT_S = 180


@dataclass(frozen=True)
class Interpreter:
    """A Python that can import the project's dependencies; ``label`` is its full version."""

    label: str
    executable: Path
    has_first_import: bool = True


@dataclass(frozen=True)
class Run:
    """One workload in one process. ``digest`` is empty where it failed; ``error`` says why."""

    workload: str
    interpreter: str
    hash_seed: str
    root_name: str
    first_import: str
    digest: str
    error: str = ""


def this_interpreter() -> Interpreter:
    return _checked(Interpreter(platform.python_version(), Path(sys.executable)))


def _checked(found: Interpreter) -> Interpreter:
    """Whether it has what is imported first; says so if it has not."""
    status, _ = _output([found.executable, "-c", f"import {FIRST_IMPORT}"])
    if status != 0:
        print(f"python {found.label} has no {FIRST_IMPORT}: not run after importing it")
    return replace(found, has_first_import=status == 0)


def run_all(module: str, names: Iterable[str], interpreters: Sequence[Interpreter]) -> list[Run]:
    """Run the named workloads of ``module`` (a dict WORKLOADS) in every combination, in order."""
    plain = [(seed, root_name, "") for seed in HASH_SEEDS for root_name in ROOT_NAMES]
    imports = (HASH_SEEDS[-1], ROOT_NAMES[0], FIRST_IMPORT)
    combinations = [
        (name, interpreter, *how)
        for name in names
        for interpreter in interpreters
        for how in ([*plain, imports] if interpreter.has_first_import else plain)
    ]
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return list(pool.map(lambda combination: _run(module, *combination), combinations))


def differing(runs: Sequence[Run]) -> list[str]:
    """The workloads, in order, that failed once or whose runs do not all have one digest."""
    names = dict.fromkeys(run.workload for run in runs)
    return [
        name
        for name in names
        if len({run.digest for run in runs if run.workload == name} | {""}) != 2
        or any(run.error for run in runs if run.workload == name)
    ]


def table(runs: Sequence[Run]) -> str:
    """One line for each workload and interpreter; every single run of a workload that differs."""
    bad = differing(runs)
    rows = [("workload", "python", "runs", "digest", "result")]
    for name, label in dict.fromkeys((run.workload, run.interpreter) for run in runs):
        mine = [run for run in runs if (run.workload, run.interpreter) == (name, label)]
        digests = {run.digest for run in mine}
        shown = mine[0].digest[:16] if len(digests) == 1 else f"{len(digests)} digests"
        rows.append((name, label, str(len(mine)), shown, "DIFFERS" if name in bad else "same"))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in rows]
    for run in runs:
        if run.workload in bad:
            what = run.digest or f"FAILED: {run.error}"
            lines.append(
                f"  {run.workload}, python {run.interpreter}, PYTHONHASHSEED {run.hash_seed}, "
                f"root {run.root_name}, {run.first_import or 'nothing'} imported first: {what}"
            )
    return "\n".join(lines)


def _run(
    module: str,
    name: str,
    interpreter: Interpreter,
    hash_seed: str,
    root_name: str,
    first_import: str,
) -> Run:
    with tempfile.TemporaryDirectory(prefix="determinism-") as scratch:
        root = Path(scratch) / root_name
        root.mkdir(parents=True)
        command = [str(interpreter.executable), "-m", "tests.determinism"]
        command += ["--child", module, name, str(root), first_import]
        digest, error = "", ""
        try:
            result = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, "PYTHONHASHSEED": hash_seed},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=RUN_TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            error = f"no end after {RUN_TIMEOUT_S} s"
        else:
            digest = result.stdout.strip()
            if result.returncode != 0 or not DIGEST.fullmatch(digest):
                error = f"exit status {result.returncode}\n{result.stdout}{result.stderr}"
                digest = ""
    return Run(name, interpreter.label, hash_seed, root_name, first_import, digest, error)


def _child(module: str, name: str, root: str, first_import: str) -> None:
    if first_import:
        importlib.import_module(first_import)
    print(importlib.import_module(module).WORKLOADS[name](Path(root)))


# Other interpreters ----------------------------------------------------------------------------


def _other_interpreters(scratch: Path) -> list[Interpreter]:
    """Set up the supported versions other than this one; says on stdout which are left out."""
    here = ".".join(platform.python_version_tuple()[:2])
    wanted = [version for version in SUPPORTED if version != here]
    with ThreadPoolExecutor(len(wanted)) as pool:
        found = list(pool.map(lambda version: _set_up(version, scratch), wanted))
    interpreters = []
    for version, interpreter in zip(wanted, found, strict=True):
        if isinstance(interpreter, Interpreter):
            interpreters.append(interpreter)
        else:
            print(f"python {version} left out: {interpreter}")
    return interpreters


def _set_up(version: str, scratch: Path) -> Interpreter | str:
    """An interpreter of this minor version with the project installed, or why there is none."""
    base = _find(version) or _bring(version)
    if isinstance(base, str):
        return base
    python = scratch / version / "bin" / "python"
    commands: list[list[str | Path]] = [
        [base, "-m", "venv", scratch / version],
        # With the extra, since one run imports Hypothesis first.
        [python, "-m", "pip", "install", "--quiet", f"{ROOT}[test]"],
        [python, "-c", "import attrs, platform, trio; print(platform.python_version())"],
    ]
    output = ""
    for command in commands:
        status, output = _output(command)
        if status != 0:
            return f"{' '.join(map(str, command[1:4]))} failed: {_last_line(output)}"
    return _checked(Interpreter(output.strip(), python))


def _find(version: str) -> Path | None:
    """A pyenv shim on the path fails unless its version is selected, so its folder is tried too."""
    candidates = []
    if on_path := shutil.which(f"python{version}"):
        candidates.append(Path(on_path))
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    candidates += sorted(pyenv.glob(f"versions/{version}.*/bin/python{version}"), reverse=True)
    return next((path for path in candidates if _output([path, "-c", ""])[0] == 0), None)


def _bring(version: str) -> Path | str:
    """The interpreter that uv has of this minor version, or brings; or why there is none."""
    beside = Path(sys.executable).parent
    uv = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', '')}")
    if uv is None:
        return "not found, and there is no uv to bring it"
    find = [uv, "python", "find", "--managed-python", version]
    status, output = _output(find)
    if status != 0:
        install = [uv, "python", "install", "--no-bin", version]
        status, output = _output(install, timeout_s=UV_TIMEOUT_S)
        if status == 0:
            print(f"python {version} brought by uv")
            status, output = _output(find)
    if status != 0:
        return f"not found, and uv could not bring it: {_last_line(output)}"
    python = Path(_last_line(output))
    return python if _output([python, "-c", ""])[0] == 0 else f"not found, uv's {python} fails"


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["no output"])[-1].strip()


def _output(
    command: Sequence[str | Path], *, timeout_s: float = SETUP_TIMEOUT_S
) -> tuple[int, str]:
    """Exit status and combined output of a command; a status of -1 where it could not run."""
    try:
        result = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**UV_LIMITS, **os.environ},
            timeout=timeout_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return -1, str(error)
    return result.returncode, result.stdout


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.determinism", description=__doc__)
    parser.add_argument("names", nargs="*", help="workloads to run (default: all)")
    parser.add_argument("--this-python", action="store_true", help="leave other interpreters out")
    parser.add_argument(
        "--child", nargs=4, metavar=("MODULE", "NAME", "ROOT", "IMPORT"), help="one run"
    )
    options = parser.parse_args()
    if options.child:
        _child(*options.child)
        return 0
    known = importlib.import_module(WORKLOADS_MODULE).WORKLOADS
    names = options.names or sorted(known)
    if unknown := sorted(set(names) - set(known)):
        parser.error(f"no workload named {', '.join(unknown)}; there are {', '.join(known)}")
    if not names:
        print("no workloads: nothing was checked")
        return 1
    with tempfile.TemporaryDirectory(prefix="determinism-") as scratch:
        interpreters = [this_interpreter()]
        if not options.this_python:
            interpreters += _other_interpreters(Path(scratch))
        runs = run_all(WORKLOADS_MODULE, names, interpreters)
    print(table(runs))
    return 1 if differing(runs) else 0


if __name__ == "__main__":
    sys.exit(main())
