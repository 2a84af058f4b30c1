"""The comparison with another run, for a page: what its panel shows beside the run's own tracks.

``compare_panel`` gives plain data for ``panels.compare``::

    {"v": 1, "comparison": see ``sim.present.comparing``,
     "b": of ``sim.present.plain_tracks`` for the other run: "head", "strings", "nodes",
          "partitions", and "events" without "cause" and "set"}

Left out: the X-ray of a run's files (``sim.xray.panel``), and what a page does with the comparison
(``sim/viewer/src/comparepanel.js``).
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from sim.present.comparing import Source, compare
from sim.present.plain_tracks import plain
from sim.present.tracks import Tracks
from sim.trace.lines import Event
from sim.trace.reader import TraceReader

__all__ = ["compare_panel"]

_TRACE: Final = "trace.jsonl"


def compare_panel(a: Path, b: Path, other: Tracks, *, events_max: int) -> dict[str, Any]:
    """Two traces compared, with what a page shows of the second one.

    Args:
        other: the tracks of ``b``, with as many events.
        events_max: so many events of each are compared, 1 or more.

    Raises:
        TraceError: one is no trace, or damaged.
        OSError: one cannot be read.
    """
    found = compare(_source(a, events_max), _source(b, events_max)).plain()
    tracks = plain(other)
    events = {key: tracks["events"][key] for key in ("t", "node", "kind", "text")}
    kept = {key: tracks[key] for key in ("head", "strings", "nodes", "partitions")}
    return {"v": 1, "comparison": found, "b": kept | {"events": events}}


def _source(path: Path, events_max: int) -> Source:
    reader = TraceReader(path)
    is_cut = reader.footer is not None and reader.footer.n > events_max

    def fetch(first: int, last: int | None) -> Iterable[Event]:
        return reader.fetch(first, events_max if last is None else min(last, events_max))

    # The whole path is nobody's business where the page is passed on.
    name = path.name if path.name != _TRACE else "/".join(path.parts[-3:-1]) or path.name
    return Source(name, reader.header, fetch, None if is_cut else reader.footer)
