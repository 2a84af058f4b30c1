"""The hunt on made-up answers: what is run, what is taken down, and what it comes to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.hunt.__main__ import main
from tests.hunt.finds import KEPT_EACH
from tests.hunt.hunting import job_of
from tests.hunt.made import Backwards, answer, hunted, passes
from tests.hunt.pool import InProcess
from tests.hunt.sights import BY_NAME, SIGHTS, Sight, mask_of, sights_of, unseen

EVERYTHING = mask_of(each.key for each in SIGHTS if each.is_wanted)
PLANTED = ("invariant", "leader-completeness", "planted")


def test_one_world_in_six_is_unrestricted() -> None:
    jobs = [job_of(number, 100) for number in range(12)]
    assert [each.seed for each in jobs] == list(range(100, 112))
    assert [each.envelope for each in jobs].count("unrestricted") == 2


def test_whoever_runs_them_the_lines_are_the_same(tmp_path: Path) -> None:
    def by_number(lines: list[Any]) -> list[Any]:
        return sorted(lines, key=lambda line: line["n"])

    _, alone = hunted(tmp_path / "one", 13, InProcess(passes), every=4)
    _, together = hunted(tmp_path / "two", 13, Backwards(), every=4)
    assert [line["n"] for line in together] != [line["n"] for line in alone]
    assert by_number(together) == alone
    assert [line["n"] for line in alone if line.get("twice")] == [3, 7, 11]


def test_a_hunt_goes_on_where_it_was_interrupted(tmp_path: Path) -> None:
    run: list[int] = []

    def interrupted(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        if len(run) == 5:
            raise KeyboardInterrupt
        run.append(job["seed"])
        return answer(job, PLANTED) if job["seed"] == 2 else answer(job)

    def rest(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        run.append(job["seed"])
        return answer(job)

    with pytest.raises(KeyboardInterrupt):
        hunted(tmp_path, 9, InProcess(interrupted))
    path = tmp_path / "worlds.jsonl"
    path.write_bytes(path.read_bytes()[:-9])
    hunt, lines = hunted(tmp_path, 9, InProcess(rest))
    assert run == [0, 1, 2, 3, 4, 4, 5, 6, 7, 8]
    assert [line["n"] for line in lines] == list(range(9))
    assert hunt.summary().failed == 1
    assert sum(hunt.finds.counts.values()) == 1
    assert hunted(tmp_path, 9, InProcess(rest))[0].summary().worlds == 9
    assert len(run) == 10


def test_of_one_sort_of_find_a_few_files_are_kept(tmp_path: Path) -> None:
    def fails(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        return answer(job, PLANTED)

    # Found over and over, by processes that know each other's finds from the file alone.
    hunted(tmp_path, 10, InProcess(fails))
    hunted(tmp_path, 20, InProcess(fails))
    hunt, lines = hunted(tmp_path, 60, InProcess(fails))
    assert sum(hunt.finds.counts.values()) == 60 == len(lines)
    kept: dict[str, int] = {}
    for path in sorted((tmp_path / "finds").rglob("*.json")):
        told = json.loads(path.read_text())
        assert path.with_suffix(".toml").exists()
        (finding,) = told["findings"]
        assert [finding[key] for key in ("kind", "name", "text")] == list(PLANTED)
        kept[finding["fingerprint"]] = kept.get(finding["fingerprint"], 0) + 1
    assert kept == {each: min(n, KEPT_EACH) for each, n in hunt.finds.counts.items()}


def test_a_world_that_differs_the_second_time_is_a_find(tmp_path: Path) -> None:
    def differs(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        found = answer(job)
        if duty == "again" and job["seed"] == 3:
            found["digest"] = "another"
        return found

    workers = Backwards(differs)
    hunt, lines = hunted(tmp_path, 8, workers, every=2)
    assert [line["n"] for line in lines if line["found"]] == [3]
    assert hunt.summary().failed == 1
    assert len([each for each in workers.avoided if each is not None]) == 4


def test_a_process_that_dies_is_a_find_and_no_end(tmp_path: Path) -> None:
    def dies(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        return {"died": -9} if job["seed"] == 1 else answer(job)

    _, lines = hunted(tmp_path, 4, InProcess(dies))
    assert [line["n"] for line in lines] == [0, 1, 2, 3]
    assert [line["found"][0][:2] for line in lines if line["found"]] == [["defect", "process died"]]


# What must be seen -------------------------------------------------------------------------------


def seeing(mask: int) -> InProcess:
    """Each world sees one thing in three of a mask, so that none sees all."""
    sights = [each.key for each in sights_of(mask)]

    def sees(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        return answer(job, seen=mask_of(sights[job["seed"] % 3 :: 3]))

    return InProcess(sees)


def test_names_and_masks_are_one_to_one() -> None:
    assert len(BY_NAME) == len(SIGHTS)
    assert mask_of(each.key for each in sights_of(EVERYTHING)) == EVERYTHING
    assert unseen(EVERYTHING) == []
    assert [each.key for each in unseen(EVERYTHING & ~1)] == [SIGHTS[0].key]


@pytest.mark.parametrize("sight", [each for each in SIGHTS if each.is_wanted], ids=str)
def test_a_hunt_that_lacks_one_thing_fails(
    sight: Sight, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--worlds", "3", "--every", "0", "--folder", str(tmp_path)]
    lacking = EVERYTHING & ~mask_of([sight.key])
    assert main([*call, "--demand-coverage"], workers=seeing(lacking)) == 1
    printed = capsys.readouterr().out
    assert printed.count("NOT SEEN") == 1
    assert f"never seen: {sight.group} {sight.name!r}\n" in printed


def test_a_short_hunt_need_not_see_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    call = ["--worlds", "2", "--every", "0", "--folder", str(tmp_path)]
    assert main(call, workers=seeing(EVERYTHING)) == 0
    assert "not demanded of so few worlds" in capsys.readouterr().out
    assert main([*call, "--demand-coverage"], workers=seeing(EVERYTHING)) == 1
    call = ["--worlds", "3", "--every", "0", "--folder", str(tmp_path / "all")]
    assert main([*call, "--demand-coverage"], workers=seeing(EVERYTHING)) == 0
    assert "NOT SEEN" not in capsys.readouterr().out.split("never seen")[-1]


def test_from_many_worlds_on_everything_is_demanded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.hunt.__main__.DEMAND_FROM", 4)
    call = ["--every", "0", "--folder", str(tmp_path), "--worlds"]
    assert main([*call, "3"], workers=InProcess(passes)) == 0
    assert main([*call, "4"], workers=InProcess(passes)) == 1
    assert main([*call, "4", "--no-demand-coverage"], workers=InProcess(passes)) == 0


# The command line --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("", "either --worlds N, or --guards, or --guard NAME"),
        ("--worlds 5 --guards", "either --worlds N, or --guards"),
        ("--worlds 0", "'0', allowed is 1.."),
        ("--worlds many", "'many', allowed is 1.."),
        ("--worlds 3 --first -1", "'-1', allowed is 0.."),
        ("--worlds 3 --processes 0", "'0', allowed is 1..1000"),
        ("--guard fetch-epok", "there is no guard 'fetch-epok'"),
        ("--worlds 3 --what", "unrecognized arguments: --what"),
    ],
)
def test_a_wrong_call_is_told(call: str, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(call.split(), workers=InProcess(passes))
    assert end.value.code == 2
    assert text in capsys.readouterr().err


def test_a_find_an_interrupt_and_other_code_end_with_their_own_status(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        return answer(job, PLANTED)

    def interrupts(duty: str, job: Mapping[str, Any]) -> dict[str, Any]:
        raise KeyboardInterrupt

    call = ["--every", "0", "--folder", str(tmp_path), "--worlds"]
    assert main([*call, "2"], workers=InProcess(fails)) == 1
    assert "invariant/leader-completeness" in capsys.readouterr().out
    assert main([*call, "3"], workers=InProcess(interrupts)) == 130
    assert "the same call goes on" in capsys.readouterr().err
    assert main([*call, "3", "--first", "9"], workers=InProcess(passes)) == 2
    assert "first is 0 there and 9 here; --anew" in capsys.readouterr().err
    monkeypatch.setattr("tests.hunt.__main__.digest_of_sources", lambda: "other")
    assert main([*call, "3"], workers=InProcess(passes)) == 2
    assert main([*call, "3", "--anew"], workers=InProcess(passes)) == 0
