"""The determinism check finds non-determinism: it is run on workloads that are planted here."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from tests.determinism import HASH_SEEDS, ROOT_NAMES, differing, run_all, table, this_interpreter


def _steady(root: Path) -> str:
    (root / "file").write_bytes(b"bytes")
    return hashlib.sha256(b"bytes").hexdigest()


def _set_order(root: Path) -> str:
    """The order of a set of strings follows PYTHONHASHSEED."""
    words = {f"word-{number}" for number in range(100)}
    return hashlib.sha256("".join(words).encode()).hexdigest()


def _path(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def _failing(root: Path) -> str:
    raise RuntimeError("planted failure")


def _no_digest(root: Path) -> str:
    return "not a digest"


WORKLOADS = {
    "steady": _steady,
    "set-order": _set_order,
    "path": _path,
    "failing": _failing,
    "no-digest": _no_digest,
}


@pytest.mark.slow
def test_planted_workloads_differ_and_the_steady_one_does_not() -> None:
    runs = run_all(__name__, WORKLOADS, [this_interpreter()])
    assert len(runs) == len(WORKLOADS) * len(HASH_SEEDS) * len(ROOT_NAMES)
    assert differing(runs) == ["set-order", "path", "failing", "no-digest"]

    digests = {name: {run.digest for run in runs if run.workload == name} for name in WORKLOADS}
    assert len(digests["steady"]) == 1
    assert len(digests["set-order"]) == len(HASH_SEEDS)
    assert digests["failing"] == digests["no-digest"] == {""}

    text = table(runs)
    assert "planted failure" in text
    lines = text.splitlines()
    assert [line.split()[-1] for line in lines[1:6]] == ["same"] + ["DIFFERS"] * 4
    assert any("set-order" in line and "PYTHONHASHSEED 12345" in line for line in lines)
