"""The space-time diagram and the tracks in a real browser, against the run itself.

``spacetime.mjs`` drives the page; what it expects is counted here from the tracks.

Left out: what ``test_page`` has, and what a page is made of (``pages``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from sim.present.plain_tracks import plain
from sim.present.tracks import Tracks
from tests.viewer.driving import HERE, Answers, checks_of, drive, judge
from tests.viewer.pages import make_pages

DRIVER = HERE / "spacetime.mjs"
CHECKS = checks_of(DRIVER)
STATUS = {"off": "power off", "stopped": "stopped"}

pytestmark = pytest.mark.slow


def _at(series: list[list[Any]], n: int) -> Any:
    """The value behind event ``n``, by looking at every entry."""
    values = [value for at, value in zip(*series, strict=True) if at <= n]
    return values[-1] if values else None


def _track(found: dict[str, Any], n: int) -> dict[str, Any]:
    (partition,) = found["partitions"]
    leader, epoch = _at(partition["leader"], n) or (None, None)
    isr = _at(partition["isr"], n)
    ends = {each["node"]: _at(each["log_end"], n) for each in partition["replicas"]}
    ahead = ends.get(leader)
    told = {
        each["name"]: _at(each["status"], n)
        for each in found["nodes"]
        if each["what"] in {"broker", "controller"}
    }
    named = "–" if epoch is None else f"{'none,' if leader is None else leader} e{epoch}"
    return {
        "n": n,
        "leader": named,
        "isr": "–" if isr is None else " ".join(isr) or "nobody",
        "behind": {
            node: None
            if leader is None or end is None
            else 0
            if node == leader
            else max(0, (ahead or 0) - end)
            for node, end in ends.items()
        },
        "status": {
            node: "–" if status is None else STATUS.get(status, status)
            for node, status in told.items()
        },
        "judged": sum(1 for each in found["expects"] if each["judged"] and each["judged"] <= n),
    }


def _has_second_cause(causes: list[Any], n: int) -> bool:
    """Whether a cause besides the first one is near, and is not among the first ones' causes."""
    line, at = {n}, n
    while causes[at - 1]:
        at = causes[at - 1][0]
        line.add(at)
    return any(n - 10 <= each and each not in line for each in (causes[n - 1] or [])[1:])


def _expected(folder: Path) -> dict[str, Any]:
    (trace,) = (folder / "runs").glob("*/0/kip-101/trace.jsonl")
    found = plain(Tracks.load(trace))
    strings, events, messages = found["strings"], found["events"], found["messages"]
    last, head = found["head"]["last"], found["head"]
    (partition,) = found["partitions"]
    changes = sorted({n for n in partition["leader"][0] if n <= last})
    places = sorted({1, 400, *changes, *(n - 1 for n in changes), last // 2, last})
    columns = (messages[key] for key in ("sent", "end", "from", "to", "fate"))
    return {
        "scenario": head["scenario"],
        "verdict": head["verdict"],
        "last": last,
        "opening": min(each["n"] for each in found["checks"]),
        "nodes": [strings[each] for each in events["node"]],
        "causes": [each or [] for each in events["cause"]],
        "joins": [n for n in range(100, last + 1) if _has_second_cause(events["cause"], n)][:5],
        "messages": list(zip(*columns, strict=True)),
        "drops": [
            end
            for end, fate in zip(messages["end"], messages["fate"], strict=True)
            if fate == "dropped"
        ],
        "tracks": [_track(found, n) for n in places],
        "leader_changes": changes,
        "replicas": len(partition["replicas"]),
        "chains": [
            text for each in found["chains"] for text in (each["title"], each["sentences"][0][0])
        ],
    }


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """What the browser found, by check."""
    folder = tmp_path_factory.mktemp("pages")
    make_pages(folder)
    (folder / "spacetime.json").write_text(json.dumps(_expected(folder)), encoding="utf-8")
    return drive(DRIVER, folder)


def test_the_checks_are_known() -> None:
    assert len(CHECKS) >= 12


@pytest.mark.parametrize("check", CHECKS)
def test_space_and_time(check: str, answers: Answers) -> None:
    judge(answers, check)
