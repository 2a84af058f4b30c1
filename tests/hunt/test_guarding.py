"""Without a guard something goes wrong, and that is found; a guard never missed is told."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cluster.guards import GUARDS
from tests.hunt import guarding
from tests.hunt.__main__ import main
from tests.hunt.guarding import OUT_OF_REACH, job_of, tried
from tests.hunt.made import answer
from tests.hunt.pool import InProcess
from tests.hunt.worlds import Job

EASY = "ack-waits-for-hw"
SMALL = {"faults": 1, "steps": 0, "records": 2, "brokers": 3}


def made(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
    """Without one guard the fifth world is wrong, without the others none is."""
    if duty == "shrink":
        return {"text": "x = 1\n", "size": SMALL, "print": "p", "runs": 1}
    if job["guard"] == "hw-freeze" and job["seed"] == 4:
        return answer(job, ("invariant", "hw-valid", "planted"))
    return answer(job)


def test_worlds_until_found_and_what_was_never_missed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--guard", "hw-freeze", "--guard", "fetch-epoch", "--folder", str(tmp_path)]
    assert main([*call, "--budget", "6"], workers=InProcess(made)) == 1
    printed = capsys.readouterr().out
    assert "hw-freeze         5  invariant hw-valid" in printed
    assert "fetch-epoch  -       never missed in 6 worlds" in printed
    assert "1 of 2 guards missed\nnever missed: fetch-epoch" in printed
    assert (tmp_path / "guards" / "hw-freeze.toml").read_text().count("hw-freeze = false") == 1
    # Again: what was tried is not tried again, and a larger budget goes on from there.
    tried: list[int] = []

    def taken_down(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        if duty == "guard":
            tried.append(job["seed"])
        return made(duty, job)

    call = [*call, "--budget", "8", "--shrink"]
    assert main(call, workers=InProcess(taken_down)) == 1
    assert tried == [6, 7]
    assert re.search(r"invariant hw-valid +1 +0 +2 +3\n", capsys.readouterr().out)
    assert main(["--guard", "hw-freeze", *call[4:]], workers=InProcess(taken_down)) == 0


def test_all_guards_are_hunted_but_those_out_of_reach(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert OUT_OF_REACH.keys() <= {each.id for each in GUARDS}
    hunted: set[str] = set()

    def missed(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        hunted.add(job["guard"])
        return answer(job, ("invariant", "hw-valid", "planted"))

    call = ["--budget", "1", "--folder", str(tmp_path)]
    assert main([*call, "--guards"], workers=InProcess(missed)) == 0
    assert hunted == {each.id for each in GUARDS} - OUT_OF_REACH.keys()
    assert "not hunted: marker-times-count, since no cluster" in capsys.readouterr().out
    assert main([*call, "--guard", "marker-times-count"], workers=InProcess(missed)) == 0
    assert "marker-times-count" in hunted


def test_half_of_the_worlds_are_unrestricted() -> None:
    envelopes = [job_of(EASY, number, 0).envelope for number in range(4)]
    assert envelopes == ["recoverable", "unrestricted"] * 2


def test_what_is_wrong_with_the_guard_too_is_no_find(monkeypatch: pytest.MonkeyPatch) -> None:
    runs: list[str | None] = []
    both, one = ("defect", "x", "text"), ("invariant", "hw-valid", "text")

    def run(job: Job) -> dict[str, Any]:
        runs.append(job.guard)
        return answer(job.plain(), *([both] if job.guard is None else [both, one]))

    monkeypatch.setattr(guarding, "run", run)
    assert tried(job_of(EASY, 0, 0).plain())["found"] == [list(one)]
    assert runs == [EASY, None]


@pytest.mark.slow
def test_a_guard_is_missed(tmp_path: Path) -> None:
    call = ["--guard", EASY, "--budget", "40", "--folder", str(tmp_path)]
    assert main(call, workers=InProcess()) == 0
