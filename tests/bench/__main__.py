"""``python -m tests.bench NAME [--quick] [--json]``: run one bench and print what it found.

Exit status: 0 whatever the figures, 2 for a wrong call.
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from collections.abc import Sequence
from time import perf_counter

from tests.bench.measure import FULL, QUICK, Scale
from tests.bench.report import Report

# A bench is a module with a function ``run(scale, report)``; its docstring is its description.
BENCHES = {
    "cli": "tests.bench.cli",
    "cluster": "tests.bench.cluster",
    "disks": "tests.bench.disks",
    "sim": "tests.bench.sim",
    "storage": "tests.bench.storage",
    "viewers": "tests.bench.viewers",
    "worlds": "tests.bench.worlds",
}


def run(name: str, scale: Scale, report: Report) -> None:
    """Run the bench ``name`` at ``scale``."""
    begin = perf_counter()
    bench = importlib.import_module(BENCHES[name])
    report.facts = {
        "bench": name,
        "scale": scale.name,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "cpus": os.cpu_count(),
        **bench.facts(),
    }
    report.emit(" | ".join(f"{key}: {value}" for key, value in report.facts.items()))
    bench.run(scale, report)
    load, cpus = os.getloadavg()[0], os.cpu_count() or 1
    report.facts["load"] = round(load, 1)
    if load > cpus:
        report.note(f"The machine is busy (load {load:.1f} on {cpus} CPUs): run it again later.")
    report.facts["seconds"] = round(perf_counter() - begin, 1)
    report.finish()
    report.emit(f"{report.facts['seconds']} s")


def main(arguments: Sequence[str] | None = None, *, scale: Scale | None = None) -> int:
    """The command line; ``scale`` overrides what the options say."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description="Measure against references that run in the same process.",
        epilog="A missed budget is a finding and not a failure: the exit status is 0.",
    )
    parser.add_argument("name", choices=sorted(BENCHES), help="which bench")
    parser.add_argument("--quick", action="store_true", help="seconds instead of minutes")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of a table")
    options = parser.parse_args(arguments)
    if scale is None:
        scale = QUICK if options.quick else FULL
    emit = _drop if options.json else _print_now
    report = Report(emit)
    run(options.name, scale, report)
    if options.json:
        print(report.to_json())
    return 0


def _print_now(line: str) -> None:
    print(line, flush=True)


def _drop(line: str) -> None:
    del line


if __name__ == "__main__":
    sys.exit(main())
