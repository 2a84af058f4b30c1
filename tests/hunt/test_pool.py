"""Real processes: they answer as this one would, and a dead one is replaced."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.hunt.hunting import job_of
from tests.hunt.made import hunted
from tests.hunt.pool import InProcess, Pool

ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.slow
def test_processes_write_the_lines_that_one_writes(tmp_path: Path) -> None:
    with Pool(2) as pool:
        _, together = hunted(tmp_path / "two", 6, pool, every=6)
    _, alone = hunted(tmp_path / "one", 6, InProcess(), every=6)
    measured = {"cpu_ms", "rss_kb"}
    told = [
        sorted(json.dumps({k: v for k, v in line.items() if k not in measured}) for line in lines)
        for lines in (alone, together)
    ]
    assert told[0] == told[1]
    assert [line.get("twice") for line in alone] == [None] * 5 + [True]
    assert all(line["digest"] for line in alone)


@pytest.mark.slow
def test_a_worker_that_dies_says_so_and_is_replaced() -> None:
    with Pool(1) as pool:
        assert pool.room()
        pool.give("no such duty", {}, "first")
        assert not pool.room()
        taken = pool.take()
        assert taken is not None
        tag, answer, by = taken
        assert (tag, answer, by) == ("first", {"died": 1}, 0)
        pool.give("again", job_of(0, 0).plain(), "second", avoid=1)
        taken = pool.take()
        assert taken is not None
        assert taken[0] == "second"
        assert taken[1]["digest"]


def test_a_worker_ends_with_its_input() -> None:
    command = [sys.executable, "-m", "tests.hunt.worker"]
    ended = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, timeout=60, check=False)
    assert ended.returncode == 0


def test_a_pool_has_processes() -> None:
    with pytest.raises(ValueError, match="processes is 0, allowed is 1 or more"):
        Pool(0)
