"""Finds made small: the duty of a worker, and the finds of a folder one by one.

Left out: how (``sim.shrinking``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from sim.scenario.effective import effective
from sim.scenario.reading import parse_scenario, read_scenario
from sim.shrinking.goals import look
from sim.shrinking.shrinker import NotTheSame, shrink
from tests.hunt.finds import fingerprint
from tests.hunt.workers import Workers
from tests.hunt.worlds import EVENTS_MAX

__all__ = ["RUNS_MAX", "shrink_finds", "shrunk"]

RUNS_MAX: Final = 400
"""So many candidates are run for one find."""
_SUFFIX: Final = ".small.toml"


def shrunk(job: Mapping[str, Any]) -> dict[str, Any]:
    """Make the scenario file ``path`` small, for the finding ``kind`` and ``name``.

    Returns:
        ``text`` of the small one and its ``size``, ``print`` (its fingerprint) and ``runs``; or
        ``why`` it cannot be made small.
    """
    scenario = effective(read_scenario(Path(job["path"])), None, ())
    base = look(
        scenario, is_strict=bool(job.get("is_strict")), level="digest", events_max=EVENTS_MAX
    )
    wanted = (job["kind"], job["name"])
    finding = next((each for each in base.examined.findings if each.identity == wanted), None)
    if finding is None:
        return {"why": f"its run has no finding {wanted[0]} {wanted[1]}"}
    try:
        found = shrink(base, finding, runs_max=RUNS_MAX, events_max=EVENTS_MAX)
    except NotTheSame:
        return {"why": "as a file of its own it does not fail so"}
    document = parse_scenario(found.text).document
    return {
        "text": found.text,
        "size": found.after.plain(),
        "print": fingerprint(*wanted, document),
        "runs": found.runs,
    }


def shrink_finds(folder: Path, workers: Workers) -> dict[str, str]:
    """Make every find of a folder small that is not yet, beside it.

    Returns:
        The fingerprint of each small file by its path, or why there is none.
    """
    told: dict[str, str] = {}
    todo = [
        path
        for path in sorted(folder.rglob("*.toml"))
        if not path.name.endswith(_SUFFIX) and not _small(path).exists()
    ]
    under_way = 0
    while todo or under_way:
        if todo and workers.room():
            path = todo.pop(0)
            first = json.loads(path.with_suffix(".json").read_text())["findings"][0]
            job = {"path": str(path), "kind": first["kind"], "name": first["name"]}
            workers.give("shrink", job, path)
            under_way += 1
            continue
        taken = workers.take()
        if taken is None:
            continue
        path, answer, _ = taken
        under_way -= 1
        if "text" in answer:
            _small(path).write_text(answer["text"], encoding="utf-8")
            told[str(_small(path))] = answer["print"]
        else:
            told[str(path)] = answer.get("why", "the process that shrank it died")
    return told


def _small(path: Path) -> Path:
    return path.with_name(path.stem + _SUFFIX)
