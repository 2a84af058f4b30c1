"""The pages with panels that the browser opens, and what is expected of them, from Python alone.

Left out: driving the browser (``panels.mjs``).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sim.present.page import fill
from sim.present.page_panels import compare_panel
from sim.present.plain_tracks import plain
from sim.present.tracks import Tracks
from sim.xray.lookup import lookup, lookup_time
from sim.xray.panel import xray_panel
from tests.sim.cli.tools import ROOT, call
from tests.viewer.pages import NASTY

__all__ = ["make_panel_pages", "segmented_run"]

SEGMENTED = """schema = 1
name   = "segmented"
until  = "12s"
seed   = 3

[cluster]
brokers = 3

[[topic]]
name     = "orders"
replicas = [["b1", "b2", "b3"], ["b2", "b3", "b1"]]
config   = { "segment.bytes" = 16384, "index.interval.bytes" = 512 }

[[workload]]
name         = "w1"
kind         = "producer"
topic        = "orders"
rate         = 150
acks         = "all"
record_bytes = 100
start        = "1s"
stop         = "10s"

[[step]]
at    = "5s"
crash = { node = "b2" }

[[step]]
at    = "8s"
start = { node = "b2" }
"""
SCENARIO = ROOT / "scenarios" / "kip101_divergence.toml"


def segmented_run(folder: Path) -> Path:
    """A run whose logs have several segments with many index entries; its trace."""
    scenario = folder / "segmented.toml"
    scenario.write_text(SEGMENTED)
    done = call("run", str(scenario), "-q", "--out", str(folder / "runs"))
    assert done.exit_code == 0, done.output
    return folder / "runs" / "segmented" / "3" / "trace.jsonl"


def make_panel_pages(folder: Path) -> None:
    """xray.html, compare.html, same.html and hostile.html, and expected.json."""
    trace = segmented_run(folder)
    done = call("report", str(trace.parent), "-o", str(folder / "xray.html"))
    assert done.exit_code == 0, done.output
    done = call("run", str(SCENARIO), "-q", "--out", str(folder / "runs"))
    assert done.exit_code == 0, done.output
    one, other = (
        folder / "runs" / "kip101-divergence" / "0" / name for name in ("high-watermark", "fetch")
    )
    for page, b in (("compare", other), ("same", one)):
        done = call(
            "report", str(one), "--compare", str(b), "-o", str(folder / f"{page}.html"), "--no-xray"
        )
        assert done.exit_code == 0, done.output
    found = xray_panel(trace)
    assert found is not None
    (folder / "hostile.html").write_text(_hostile(one / "trace.jsonl", found), encoding="utf-8")
    expected = {"xray": _xray(found, trace.parent), "compare": _compare(one, other)}
    (folder / "expected.json").write_text(json.dumps(expected))


def _compare(one: Path, other: Path) -> dict[str, Any]:
    a, b = one / "trace.jsonl", other / "trace.jsonl"
    found = compare_panel(a, b, Tracks.load(b), events_max=250_000)["comparison"]
    assert found["divergence"]
    assert len(found["states"]) == 3
    return {key: found[key] for key in ("divergence", "states", "findings", "pairs", "header")}


def _xray(found: dict[str, Any], run: Path) -> dict[str, Any]:
    logs = []
    for each in found["directories"]:
        end = each["marks"]["log_end"]["offset"]
        times = [row[5] for segment in each["segments"] for row in segment["batches"]]
        offsets = sorted({0, 1, end - 1, end, end + 1, *range(0, end, max(1, end // 7))})
        asked = sorted({times[0], times[-1], times[-1] + 1, *times[:: max(1, len(times) // 5)]})
        safe = each["pages"]["power"]["log_end"]
        logs.append(
            {
                "name": each["name"],
                "files": [segment["file"] for segment in each["segments"]],
                "end": end,
                "lookups": [_short(lookup(each, offset)) for offset in offsets],
                "times": [_short(lookup_time(each, time)) for time in asked],
                "at_risk": end - safe if safe is not None else None,
                "on_disk": sorted(path.name for path in (run / each["name"]).iterdir()),
                "bytes": _bytes(run / each["name"], each),
            }
        )
    return {"logs": logs}


def _bytes(directory: Path, data: dict[str, Any]) -> list[Any]:
    """The last batch: its offset, and its bytes as the file has them."""
    segment = [each for each in data["segments"] if each["batches"]][-1]
    row = segment["batches"][-1]
    content = (directory / segment["file"]).read_bytes()[row[0] : row[0] + row[1]]
    return [row[2], content.hex()]


def _short(found: dict[str, Any]) -> dict[str, Any]:
    kept = {key: found[key] for key in ("target", "verdict", "text", "seek")}
    kept |= {key: found[key] for key in ("bytes_scanned", "records_scanned")}
    kept["probes"] = len(found["probes"]) + len(found.get("time_probes", ()))
    if found["kind"] == "offset":
        kept["probes"] += len(found["segment_probes"])
    return kept


def _nasty(data: Any, count: list[int]) -> Any:
    """The same data, with nasty text in every text that is not a word of the page's own."""
    if isinstance(data, dict):
        return {key: _replaced(key, value, count) for key, value in data.items()}
    if isinstance(data, list):
        return [_nasty(each, count) for each in data]
    return data


_OWN = ("format", "where", "bytes", "kind", "how", "what", "unusable", "verdict", "goes")


def _replaced(key: str, value: Any, count: list[int]) -> Any:
    if isinstance(value, str) and key not in _OWN:
        count[0] += 1
        return NASTY[count[0] % len(NASTY)][:5_000]
    if isinstance(value, list) and value and isinstance(value[0], str) and key != "unlike":
        count[0] += 1
        return [NASTY[(count[0] + i) % len(NASTY)][:5_000] for i in range(len(value))]
    return _nasty(value, count)


def _hostile(trace: Path, xray: dict[str, Any]) -> str:
    tracks = Tracks.load(trace)
    other = trace.parent.with_name("fetch") / "trace.jsonl"
    compare = compare_panel(trace, other, Tracks.load(other), events_max=250_000)
    panels = {"xray": _nasty(xray, [0]), "compare": _nasty(compare, [0])}
    panels["xray"]["fields"] = [list(NASTY[:2]) for _ in xray["fields"]]
    return fill(plain(tracks), panels)
