"""The pages that the browser opens, and what is expected of them, found without the browser.

Left out: driving the browser (``browser.mjs``).
"""

from __future__ import annotations

import json
from bisect import bisect_right
from pathlib import Path
from typing import Any

from sim.present.history import FOREVER
from sim.present.page import fill
from sim.present.plain_tracks import plain
from sim.present.tracks import Tracks
from sim.trace.kinds import Kind
from sim.trace.lines import Change, Header, Level
from sim.trace.writer import Trace
from tests.sim.cli.tools import ROOT, call

__all__ = ["LONG", "hostile_trace", "long_tracks", "make_pages"]

LONG = 100_000
"""Events of the long page."""
SCENARIO = ROOT / "scenarios" / "kip279_fast_failover.toml"
NASTY = (
    "</script><script>window.hacked = 1</script>",
    '<img src=x onerror="window.hacked = 2">',
    "\x1b]0;owned\x07\x1b[2J\x00\x7f\x9b31m",
    "\u202egnp.exe\u202c \u2066x\u2069 \u200b\ufeff",
    "שלום עולם ‮ abc مرحبا",
    "a" * 300_000,
    "\ud800 lone \udfff",
    "__proto__",
    "@@PAYLOAD@@ ${x} {{x}} javascript:alert(1)",
)


def make_pages(folder: Path) -> None:
    """Every page, and expected.json."""
    done = call("run", str(SCENARIO), "-q", "--variant", "kip-101", "--out", str(folder / "runs"))
    assert done.exit_code == 0, done.output
    (trace,) = (folder / "runs").glob("*/0/kip-101/trace.jsonl")
    for name in ("run", "again"):
        done = call("report", str(trace), "-o", str(folder / f"{name}.html"))
        assert done.exit_code == 0, done.output
    tracks = Tracks.load(trace)

    cut = folder / "cut.jsonl"
    cut.write_bytes(trace.read_bytes()[: trace.stat().st_size // 2])
    events = folder / "events.jsonl"
    _without_changes(tracks, events)
    many = folder / "many.jsonl"
    many_partitions(many)
    nasty = folder / "hostile.jsonl"
    count = hostile_trace(nasty)
    for path in (cut, events, nasty, many):
        done = call("report", str(path), "-o", str(path.with_suffix(".html")))
        assert done.exit_code == 0, done.output
    whole = (folder / "run.html").read_text(encoding="utf-8")
    place = whole.index("H4sI")
    (folder / "damaged.html").write_text(whole[: place + 400] + "AAAA" + whole[place + 404 :])
    (folder / "long.html").write_text(fill(long_tracks(plain(tracks), LONG)), encoding="utf-8")
    expected = {**_expected(tracks), "hostile_last": count}
    (folder / "expected.json").write_text(json.dumps(expected))


def _without_changes(tracks: Tracks, path: Path) -> None:
    trace = Trace(Level.EVENTS, path=path, header=tracks.header)
    for event in tracks.events():
        trace.emit(event.t_us, event.node, event.kind, event.cause, event.args)
    trace.close("passed", [], [])


def hostile_trace(path: Path) -> int:
    """A trace with nasty text wherever there is text; returns the number of its events."""
    header = Header("0", NASTY[0], NASTY[1], 7, {"note": NASTY[3]}, ("c1", *NASTY), [])
    trace = Trace(Level.FULL, path=path, header=header)
    kinds = (Kind.APPEND, Kind.SEND, Kind.STEP, Kind.FAULT, Kind.CHECK, Kind.EXPECT, Kind.TIMER)
    n = 0
    for text in NASTY:
        for kind in kinds:
            args = {
                "partition": f"{text}-0",
                "base_offset": n,
                "next_offset": n + 1,
                "leader_epoch": n % 5,
                "to": text,
                "type": text,
                "key": text,
                "id": text,
                "step": text,
                "kind": text,
                "text": text,
                "check": text,
                "detail": text,
                "form": text,
                "holds": False,
                "judged": True,
            }
            changes: list[Change] = [(f"{text}/{text}/{text}", None if n == 0 else n, [text, n])]
            n = trace.emit(n * 1000, text, kind, (n,) if n else (), args)
            trace.attach(n, changes)
    n = trace.emit(n * 1000, "b1", Kind.APPEND, (n,), {"partition": "p-0", "base_offset": 1 << 60})
    odd: list[Change] = [("b1/p-0/epochs", None, "none"), ("b1/p-0/durable_end_offset", None, [1])]
    trace.attach(n, [("b1/p-0/producer_id", None, 9_223_372_036_854_775_807), *odd])
    trace.abandon()
    return n


def many_partitions(path: Path, count: int = 1_000) -> None:
    """As many partitions as nodes, each with one record."""
    trace = Trace(Level.FULL, path=path, header=Header("0", "many", None, 0, {}, (), []))
    for i in range(count):
        args = {"partition": f"p-{i}", "base_offset": 0, "next_offset": 1, "leader_epoch": 0}
        trace.emit(i, f"b{i}", Kind.APPEND, (), args)
    trace.abandon()


def long_tracks(found: dict[str, Any], count: int) -> dict[str, Any]:
    """Tracks of a run, its events again and again behind each other until there are so many."""
    last = found["head"]["last"]
    columns = found["events"]
    span = columns["t"][-1] - columns["t"][0] + 1
    events: dict[str, list[Any]] = {key: [] for key in columns}
    for start in range(0, count, last):
        size = min(last, count - start)
        events["t"] += [t + span * (start // last) for t in columns["t"][:size]]
        events["cause"] += [each and [n + start for n in each] for each in columns["cause"][:size]]
        for key in ("node", "kind", "text", "set"):
            events[key] += columns[key][:size]
    return {**found, "head": {**found["head"], "last": count}, "events": events}


def _expected(tracks: Tracks) -> dict[str, Any]:
    story = tracks.story
    failed = [each.judged for each in tracks.expects.values() if each.judged and not each.verdict]
    bad = sorted({each.n for each in (*story.findings, *story.losses)} | set(failed))
    falls = {fault.begin for fault in story.faults.values()}
    falls |= {fault.end for fault in story.faults.values() if fault.end not in (None, FOREVER)}
    for node in story.nodes.values():
        falls |= {n for n, status in node.statuses if status in ("down", "off", "paused")}
    replicas = [r for p in story.partitions.values() for r in p.replicas.values()]
    cuts = sorted({cut.n for replica in replicas for cut in replica.cuts})
    rises = [n for replica in replicas for n, _ in replica.high_watermarks]
    # Where something changes, and the events right before.
    turns = sorted({n - back for n in (*cuts, *rises[::5]) for back in (0, 1)})
    chains = plain(tracks)["chains"]
    return {
        "scenario": tracks.header.scenario,
        "last": tracks.last,
        "opening": min(each.n for each in (*story.findings, *story.losses)),
        "bad": bad,
        "falls": sorted(falls),
        "chain": {
            "n": chains[0]["n"],
            "title": chains[0]["title"],
            "count": len(chains[0]["sentences"]),
        },
        "at_3_5_s": bisect_right(story.briefs, 3_500_000, key=lambda brief: brief.t_us),
        "line": {"n": cuts[-1], "numbers": _line(tracks, cuts[-1])},
        "logs": [_logs(tracks, n) for n in (*bad, *turns, tracks.last, *turns[::-1])],
    }


def _line(tracks: Tracks, n: int) -> list[int]:
    """An event, its first cause, the first cause of that, and so on."""
    found = [n]
    while cause := tracks.event(found[-1]).cause:
        found.append(cause[0])
    return found


def _logs(tracks: Tracks, n: int) -> dict[str, Any]:
    logs = [
        [
            each.node,
            ", ".join(f"epoch {span.epoch} {span.base} to {span.end - 1}" for span in each.spans),
            each.high_watermark,
            each.log_end,
        ]
        for partition in tracks.moment(n).partitions
        for each in partition.replicas
    ]
    return {"n": n, "logs": logs}
