"""``check``, ``new`` and ``scenarios``: files are read, written, and never overwritten."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from sim.cli.exits import Exit
from sim.cli.files import scenario_paths
from sim.scenario_files import FOLDERS, REGRESSIONS
from tests.sim.cli.tools import ROOT, SMALL, VARIANTS, call, write

FOLDER = ROOT / "scenarios"
SHIPPED = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*.toml")
    if path.parent != FOLDER / REGRESSIONS
)


def test_every_shipped_scenario_is_right() -> None:
    done = call("check", str(ROOT / "scenarios"))
    assert done.exit_code == 0, done.output
    for name in SHIPPED:
        assert f"/{name}: right (" in done.output


def test_check_says_what_a_file_has(folder: Path) -> None:
    write(folder, SMALL + VARIANTS)
    done = call("check", "small.toml")
    assert done.output == "small.toml: right (2 variants, 1 step, 1 expectation)\n"
    assert call("check", "-q", "small.toml").output == ""


def test_check_tells_all_problems_of_all_files(folder: Path) -> None:
    write(folder, SMALL.replace("produce", "produze"), "a.toml")
    write(folder, SMALL.replace("leo(", "lo("), "b.toml")
    done = call("check", ".")
    assert done.exit_code == Exit.USAGE
    assert done.stdout == ""
    assert 'a.toml:15  step 1, at 1s: unknown action "produze"' in done.stderr
    assert 'did you mean "produce"?' in done.stderr
    assert 'b.toml:18  expect 1: unknown observable "lo"' in done.stderr
    assert "2 problems, nothing was run (exit 2)" in done.stderr


def test_what_cannot_be_run_yet_is_right_and_is_not_run(folder: Path) -> None:
    step = 'consume = { from = "orders-0", count = 1, isolation = "read_committed" }'
    write(folder, SMALL + f"\n[[step]]\n{step}\n")
    done = call("check", "small.toml")
    assert done.exit_code == 0
    assert "cannot be run: step 2: reading committed transactions only" in done.stdout
    done = call("run", "small.toml")
    assert done.exit_code == Exit.USAGE
    assert "small.toml:22  step 2: reading committed" in done.stderr
    assert os.listdir(folder) == ["small.toml"]


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("leader-crash", 'did you mean "leader_crash_acks1", which comes with Leaderfall?'),
        ("qqqq", "leaderfall scenarios list shows those that come with Leaderfall"),
        ("folder/leader-crash", ""),
    ],
)
def test_a_name_that_is_no_file_gets_a_guess(folder: Path, name: str, hint: str) -> None:
    done = call("check", name)
    assert done.exit_code == Exit.USAGE
    assert f"{name}  there is no such file" in done.stderr
    assert hint in done.stderr
    assert ("comes with" in done.stderr or "come with" in done.stderr) is bool(hint)


def test_check_needs_a_file() -> None:
    assert call("check").exit_code == Exit.USAGE


def test_check_prints_the_schema() -> None:
    assert json.loads(call("check", "--schema").output)["type"] == "object"


@pytest.mark.parametrize("data", [b"", b"\0\1\2", b"\xff\xfe", b"x" * 2_000_000, b"[" * 5_000])
def test_what_is_no_scenario_is_told_and_nothing_is_written(data: bytes, folder: Path) -> None:
    (folder / "x.toml").write_bytes(data)
    for command in ("check", "run"):
        done = call(command, "x.toml")
        assert done.exit_code == Exit.USAGE
        assert "x.toml" in done.stderr
    assert os.listdir(folder) == ["x.toml"]


def test_a_folder_gives_its_files_in_order(folder: Path) -> None:
    for name in ("b.toml", "a.toml", "c.txt"):
        write(folder, name=name)
    assert list(scenario_paths(["."])) == ["a.toml", "b.toml"]
    assert list(scenario_paths(["b.toml", "."])) == ["b.toml", "a.toml"]


def test_a_folder_gives_those_of_its_folders_too(folder: Path) -> None:
    for name in ("sub/deep/c.toml", "sub/b.toml", "z.toml", ".hidden/x.toml", "y.toml/a.toml"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write(folder, name=name)
    (folder / "link").symlink_to(folder / "sub", target_is_directory=True)
    found = ["z.toml", "sub/b.toml", "sub/deep/c.toml", "y.toml/a.toml"]
    assert list(scenario_paths(["."])) == found
    assert list(scenario_paths(["sub"])) == ["sub/b.toml", "sub/deep/c.toml"]


def test_a_folder_gives_nothing_of_the_runs_in_it(folder: Path) -> None:
    write(folder, SMALL)
    first = call("run", ".", "-q", "--disk", "memory").output
    assert first == "small: passed\n"
    assert list((folder / "runs").rglob("scenario.toml"))
    assert call("run", ".", "-q", "--disk", "memory").output == first


def test_folders_may_lie_as_deep_as_they_like(folder: Path) -> None:
    for _ in range(1_200):
        (folder / "a").mkdir()
        os.chdir("a")
        folder = Path()
    write(Path(), SMALL)
    os.chdir("../" * 1_200)
    try:
        assert [len(each.parts) for each in scenario_paths(["."]).values()] == [1_201]
    finally:
        # What clears old folders of tests away (shutil.rmtree) gives up at a thousand levels.
        while (inner := Path("a")).is_dir():
            inner.rename("top")
            for left in Path("top").iterdir():
                left.rename(left.name)
            Path("top").rmdir()


def test_a_folder_without_scenarios_is_an_error(folder: Path) -> None:
    done = call("check", ".")
    assert done.exit_code == Exit.USAGE
    assert "has no scenario file" in done.stderr


def test_shipped_names_are_files_unless_there_is_one_here(folder: Path) -> None:
    name = "leader_crash_acks1"
    assert list(scenario_paths([name]).values()) == [FOLDER / f"{name}.toml"]
    (folder / name).touch()
    assert list(scenario_paths([name]).values()) == [Path(name)]
    assert list(scenario_paths([f"./{name}x"]).values()) == [Path(f"{name}x")]


def test_shipped_names_have_a_folder_that_may_be_left_out(folder: Path) -> None:
    path = FOLDER / "power" / "all_at_once.toml"
    for name in ("power/all_at_once", "power/all-at-once.toml", "all_at_once", "all-at-once"):
        assert list(scenario_paths([name]).values()) == [path]
        assert call("scenarios", "show", name).output == path.read_text("utf-8")
    for name in ("powr/all_at_once", "./all_at_once"):
        assert list(scenario_paths([name]).values()) == [Path(name)]
    assert len({each.rpartition("/")[2] for each in SHIPPED}) == len(SHIPPED)
    assert 'did you mean "power/all_at_once"' in call("check", "power/all-at-onc").stderr
    assert 'did you mean "power/all_at_once"' in call("check", "all-at-onc").stderr
    call("scenarios", "copy", "power/all_at_once")
    assert os.listdir(folder) == ["all_at_once.toml"]


# new -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "file"),
    [
        ((), "first-scenario.toml"),
        (("mine",), "mine.toml"),
        (("My first",), "my-first.toml"),
        (("other.toml",), "other.toml"),
    ],
)
def test_a_new_file_passes_check(words: tuple[str, ...], file: str, folder: Path) -> None:
    done = call("new", *words)
    assert done.exit_code == 0, done.output
    assert f"leaderfall run {file}" in done.output
    assert os.listdir(folder) == [file]
    assert call("check", file).exit_code == 0


def test_a_new_file_passes_when_it_is_run() -> None:
    call("new", "mine")
    done = call("run", "mine.toml", "-q")
    assert done.output == "mine: passed\n"
    assert done.exit_code == 0


def test_new_overwrites_nothing(folder: Path) -> None:
    (folder / "mine.toml").write_text("x", encoding="utf-8")
    done = call("new", "mine")
    assert done.exit_code == Exit.USAGE
    assert "is there already" in done.stderr
    assert (folder / "mine.toml").read_text(encoding="utf-8") == "x"


@pytest.mark.parametrize("name", ["", "..", "../", "/", "nope/x.toml", "é", "con", "x" * 300])
def test_new_refuses_names_that_are_none(name: str, folder: Path) -> None:
    done = call("new", name)
    assert done.exit_code == Exit.USAGE
    assert os.listdir(folder) == []
    assert os.listdir(folder.parent) == ["here"]


# scenarios -------------------------------------------------------------------------------------


def test_the_list_has_names_and_titles() -> None:
    text = call("scenarios", "list").output
    assert "leader_crash_acks1" in text
    assert "acks=1: the leader dies with records no follower has" in text
    assert call("scenarios", "list", "--paths").output.count("\n") == len(SHIPPED)


def test_the_list_goes_folder_by_folder() -> None:
    lines = call("scenarios", "list").output.split("\n")
    assert set(FOLDERS) >= {each.rpartition("/")[0] for each in SHIPPED} - {""}
    at = [lines.index(FOLDERS[each]) for each in FOLDERS if (FOLDER / each).is_dir()]
    assert at == sorted(at)
    for name in SHIPPED:
        folder = name.rpartition("/")[0]
        (line,) = [each for each in lines if each.split(" ")[0] == name.removesuffix(".toml")]
        above = [each for each in lines[: lines.index(line)] if each in FOLDERS.values()]
        assert above[-1:] == ([FOLDERS[folder]] if folder else [])


def test_the_list_fits_narrow_terminals() -> None:
    lines = call("scenarios", "list", env={"COLUMNS": "40"}).output.split("\n")
    assert "leader_crash_acks1" in lines


def test_show_prints_the_file() -> None:
    path = ROOT / "scenarios" / "leader_crash_acks1.toml"
    assert call("scenarios", "show", "leader-crash-acks1").output == path.read_text("utf-8")


def test_copy_writes_the_file_once(folder: Path) -> None:
    (folder / "sub").mkdir()
    source = (ROOT / "scenarios" / "leader_crash_acks1.toml").read_bytes()
    for dest, file in (
        ((), "leader_crash_acks1.toml"),
        (("sub",), "sub/leader_crash_acks1.toml"),
        (
            ("x.toml",),
            "x.toml",
        ),
    ):
        assert call("scenarios", "copy", "leader_crash_acks1", *dest).exit_code == 0
        assert (folder / file).read_bytes() == source
        again = call("scenarios", "copy", "leader_crash_acks1", *dest)
        assert again.exit_code == Exit.USAGE
        assert "is there already" in again.stderr


def test_unknown_names_get_a_hint() -> None:
    for command in ("show", "copy"):
        done = call("scenarios", command, "leader_crash_acks2")
        assert done.exit_code == Exit.USAGE
        assert 'Did you mean "leader_crash_acks1"?' in done.stderr
