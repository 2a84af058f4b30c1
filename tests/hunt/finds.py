"""Failing worlds as scenario files, a few of each sort.

The fingerprint is coarse (FAULTS E.4): what is wrong, and the kinds of faults that are left. Two
worlds with one fingerprint need not fail for one reason; two without fail differently.

Left out: shrinking (``sim.shrinking``), which a worker does.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from sim.scenario.writing import scenario_text

__all__ = ["KEPT_EACH", "Finds", "fingerprint"]

KEPT_EACH: Final = 4
"""So many scenario files are kept of one fingerprint."""


def fingerprint(kind: str, name: str, document: Mapping[str, Any]) -> str:
    """What is wrong, and with which kinds of faults, in one line."""
    kinds = sorted({str(each["kind"]) for each in document.get("fault", ())})
    return f"{kind}/{name}: {', '.join(kinds) or 'no fault'}"


class Finds:
    """The folder of scenario files of one hunt.

    Attributes:
        folder: of the files; made when there is one.
        counts: how often each fingerprint was found.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.counts: Counter[str] = Counter()

    def again(self, prints: Sequence[str]) -> None:
        """A find of an earlier process, whose file is there."""
        self.counts.update(prints)

    def add(
        self,
        name: str,
        document: Mapping[str, Any],
        found: Sequence[Sequence[str]],
        prints: Sequence[str],
    ) -> Path | None:
        """Take down a find; the path of its file, if it is one of the first with a fingerprint.

        Args:
            document: empty where there is none.
            found: kind, name and text of each finding.
            prints: the fingerprint of each.
        """
        is_new = any(self.counts[each] < KEPT_EACH for each in prints)
        self.counts.update(prints)
        if not is_new or not document:
            return None
        kind, what, _ = found[0]
        slug = re.sub(r"[^a-z0-9]+", "-", f"{kind}-{what}".lower()).strip("-")[:60]
        folder = self.folder / slug
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}.toml"
        path.write_text(scenario_text(dict(document)), encoding="utf-8")
        findings = [
            {"kind": one, "name": two, "text": three, "fingerprint": each}
            for (one, two, three), each in zip(found, prints, strict=True)
        ]
        text = json.dumps({"world": name, "findings": findings}, indent=2)
        path.with_suffix(".json").write_text(text + "\n", encoding="utf-8")
        return path
