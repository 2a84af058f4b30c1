"""Traces with values that no run writes: every face shows them, or the reader refuses the line."""

from __future__ import annotations

import io
import json
import random
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from sim.present.line_mode import LineMode
from sim.present.plain_tracks import plain
from sim.present.stepper import Stepper
from sim.present.tracks import Tracks
from sim.running.scenario_run import run_scenario
from sim.scenario.reading import parse_scenario
from tests.sim.cli.tools import LOSING

VALUES = (None, -1, 0, 10**18, "x", "</b>\x1b", "b1", "orders-0", [], [[0, 0]], [["b1", 1]], True)
KINDS = ("loss", "check", "append", "elect", "role", "recover", "truncate", "crash", "lost", "hw")
SHOWS = ("w", "state", "logs", "messages", "timers", "expect", "around", "diff")


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    path = tmp_path_factory.mktemp("trace") / "trace.jsonl"
    run_scenario(parse_scenario(LOSING), path=path)
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [line for line in found if "check" not in line]


def mutated(line: dict[str, Any], chance: random.Random) -> dict[str, Any]:
    """An event with one thing in it changed."""
    line = json.loads(json.dumps(line))
    args = line.get("args")
    what = chance.choice(("args", "args", "args", "drop", "cause", "node", "kind", "set"))
    if what == "args" and args:
        args[chance.choice(sorted(args))] = chance.choice(VALUES)
    elif what == "drop" and args and len(args) > 1:
        args.pop(chance.choice(sorted(args)))
    elif what == "cause" and line["n"] > 3:
        line["cause"] = [chance.randrange(1, line["n"])]
    elif what == "node":
        line["node"] = chance.choice(("b1", "c1", "zz", "world"))
    elif what == "kind" and args:
        line["kind"] = chance.choice(KINDS)
    elif what == "set" and "set" in line:
        line["set"] = [[path, old, chance.choice(VALUES)] for path, old, _ in line["set"]]
    return line


@pytest.mark.parametrize("seed", range(10))
def test_faces_show_what_no_run_writes(
    lines: list[dict[str, Any]], seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    path = tmp_path / "trace.jsonl"
    path.write_text(
        "".join(
            json.dumps(mutated(line, chance) if "kind" in line and chance.random() < 0.03 else line)
            + "\n"
            for line in lines
        )
    )
    tracks = Tracks.load(path)
    assert json.loads(json.dumps(plain(tracks)))["head"]["last"] == tracks.last
    stepper, out = Stepper(tracks), io.StringIO()
    mode = LineMode(Console(file=out, width=80, color_system=None), stepper)
    for n in (0, tracks.last, *(chance.randrange(1, tracks.last) for _ in range(8))):
        stepper.go(n)
        mode.show()
        for word in SHOWS:
            if n or word != "w":  # The beginning has no causes.
                mode.take(word)
    assert all(sign.isprintable() or sign == "\n" for sign in out.getvalue())
