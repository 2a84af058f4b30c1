"""A trace's tracks as plain data for JSON: what a page embeds, and shows any step from.

Two shapes recur. A *series* is ``[[n, ...], [value, ...]]``: behind event ``n`` the value is the
last one whose number is not above ``n``; there is none before the first. A *life* is a pair
``n0, n1``: there behind event ``n`` if ``n0 <= n < n1``, and for good where ``n1`` is null. Columns
marked (s) hold indexes into ``strings``. Offsets and spans are half-open; times are µs of virtual
time. Entry ``i`` of a column of ``events`` is event ``i + 1``.

=========== =====================================================================================
v           1
head        scenario, variant, seed, version, verdict, digest, last, is_complete, notices, level,
            options (of the trace's header)
strings     texts
events      t, node (s), kind (s), text (s), cause (list or 0), set (list of [path (s), old, new]
            or 0)
nodes       name, what (controller, broker, client, other), status (series)
partitions  name, leader (series of [name, epoch]), isr, elr, last_known (series of names),
            replicas: node, since, pieces ([base, end, epoch, n0, n1, came, went]), role (series of
            [name, epoch, leader]), high_watermark, log_start, log_end, durable_end, epochs
            (series), segments and index ([offset, n0, n1])
messages    columns sent, from (s), to (s), type (s), end (or null), fate, fault ((s) or -1)
timers      [node, key, n_set, n_due]
faults      id, kind, text, begin, end, strikes
steps       id, text, begin, end
expects     id, form, text, holds (series), judged, verdict
checks      n, check, partition, kind, detail
losses      n, partition, spans ([epoch, base, end]), count, licence, rule, text
chains      n, title, sentences ([text, [n, ...], is_cause])
stories     [n, text, tone]
fields      series by path
=========== =====================================================================================

Left out: compressing, and the page (``sim.present.page``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from sim.present.args import pairs
from sim.present.chains import chain
from sim.present.describing import describe
from sim.present.history import FOREVER, Finding, Loss, Node, Replica, Series
from sim.present.loss_tales import links_of
from sim.present.losses import what_of
from sim.present.offset_lives import OffsetLife
from sim.present.spans import joined
from sim.present.tale_base import capital, when
from sim.present.timeline import timeline
from sim.present.tracks import Tracks
from sim.present.trouble_tellings import fault_words
from sim.trace.kinds import Kind

__all__ = ["plain"]

CHAINS_MAX: Final = 40
STRIKES_MAX: Final = 2_000


class _Strings:
    """One table of texts."""

    def __init__(self) -> None:
        self._known: dict[str, int] = {}

    def of(self, text: str) -> int:
        return self._known.setdefault(text, len(self._known))

    @property
    def texts(self) -> list[str]:
        return list(self._known)


def plain(tracks: Tracks) -> dict[str, Any]:
    """The whole of it; see the module.

    Raises:
        TraceError: the file has changed since it was read, and is damaged now.
    """
    strings = _Strings()
    events = _events(tracks, strings)
    chains, notices = _chains(tracks)
    story = tracks.story
    found = {
        "v": 1,
        "head": _head(tracks, notices),
        "events": events,
        "nodes": [
            {
                "name": node.name,
                "what": _what(node),
                "status": _series(node.statuses),
            }
            for node in story.nodes.values()
        ],
        "partitions": [_partition(tracks, name) for name in story.partitions],
        "messages": _messages(tracks, strings),
        "timers": [[t.node, t.key, t.n, t.due] for t in tracks.timers.things],
        "faults": _faults(tracks, events, strings),
        "steps": [
            {"id": step.id, "text": step.text, "begin": step.begin, "end": step.end}
            for step in story.steps.values()
        ],
        "expects": [
            {
                "id": each.id,
                "form": each.form,
                "text": each.text,
                "holds": _series(each.holds),
                "judged": each.judged,
                "verdict": each.verdict,
            }
            for each in tracks.expects.values()
        ],
        "checks": [
            {
                "n": each.n,
                "check": each.check,
                "partition": each.partition,
                "kind": each.kind,
                "detail": each.detail,
            }
            for each in story.findings
        ],
        "losses": [_loss(each) for each in story.losses],
        "chains": chains,
        "stories": [[line.first, line.text, line.tone.value] for line in timeline(story)],
        "fields": {path: _series(tracks.fields[path]) for path in sorted(tracks.fields)},
    }
    return {**found, "strings": strings.texts}


def _what(node: Node) -> str:
    if node.is_controller:
        return "controller"
    if node.is_broker:
        return "broker"
    return "client" if node.is_client else "other"


def _head(tracks: Tracks, notices: Iterable[str]) -> dict[str, Any]:
    header, footer = tracks.header, tracks.footer
    return {
        "scenario": header.scenario,
        "variant": header.variant,
        "seed": header.seed,
        "version": header.version,
        "options": dict(header.options),
        "verdict": None if footer is None else footer.verdict,
        "digest": None if footer is None else footer.digest,
        "last": tracks.last,
        "is_complete": footer is not None and tracks.last == footer.n,
        "notices": [*tracks.notices, *notices],
        "level": "full" if tracks.has_changes else "events",
    }


def _events(tracks: Tracks, strings: _Strings) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {
        key: [] for key in ("t", "node", "kind", "text", "cause", "set")
    }
    of = strings.of
    for event in tracks.events():
        columns["t"].append(event.t_us)
        columns["node"].append(of(event.node))
        columns["kind"].append(of(event.kind.value))
        columns["text"].append(of(describe(event)))
        columns["cause"].append(list(event.cause) or 0)
        columns["set"].append([[of(path), old, new] for path, old, new in event.changes] or 0)
    return columns


def _messages(tracks: Tracks, strings: _Strings) -> dict[str, list[Any]]:
    messages = tracks.messages
    fates = [tracks.fates.get(number, ("under way", None)) for number in range(len(messages))]
    return {
        "sent": messages.begins,
        "from": [strings.of(each.sender) for each in messages.things],
        "to": [strings.of(each.to) for each in messages.things],
        "type": [strings.of(each.type) for each in messages.things],
        "end": [_end(end) for end in messages.ends],
        "fate": [fate for fate, _ in fates],
        "fault": [-1 if fault is None else strings.of(fault) for _, fault in fates],
    }


def _partition(tracks: Tracks, name: str) -> dict[str, Any]:
    partition = tracks.story.partitions[name]
    return {
        "name": name,
        "leader": _series(partition.leaders),
        "isr": _series(partition.isrs),
        "elr": _series(partition.elrs),
        "last_known": _series(partition.last_known),
        "replicas": [_replica(tracks, each) for _, each in tracks.story.replicas(name)],
    }


def _replica(tracks: Tracks, replica: Replica) -> dict[str, Any]:
    log = replica.node, replica.partition
    path = f"{replica.node}/{replica.partition}"
    nothing: Series[Any] = Series()
    return {
        "node": replica.node,
        "since": replica.since,
        "pieces": [
            [
                piece.base,
                piece.end,
                piece.epoch,
                piece.n,
                None if piece.cut is None else piece.cut.n,
                piece.how.value,
                None if piece.cut is None else piece.cut.how.value,
            ]
            for piece in replica.pieces
        ],
        "role": [
            [n for n, _ in replica.roles],
            [[role.name, role.leader_epoch, role.leader] for _, role in replica.roles],
        ],
        "high_watermark": _series(replica.high_watermarks),
        "log_start": _series(replica.log_starts),
        "log_end": _series(replica.log_ends),
        "durable_end": _series(tracks.durable_ends.get(log, nothing)),
        "epochs": _series(tracks.fields.get(f"{path}/epochs", nothing), _epochs),
        "segments": _lives(tracks.segments.get(log, ())),
        "index": _lives(tracks.index_entries.get(log, ())),
    }


def _faults(
    tracks: Tracks, events: Mapping[str, list[Any]], strings: _Strings
) -> list[dict[str, Any]]:
    strikes: dict[str, list[int]] = {}
    for event in tracks.events():
        fault = event.args.get("fault")
        if type(fault) is str and event.kind not in (Kind.FAULT, Kind.HEAL):
            struck = strikes.setdefault(fault, [])
            if len(struck) < STRIKES_MAX:
                struck.append(event.n)
    return [
        {
            "id": fault.id,
            "kind": fault.kind,
            "text": fault_words(fault),
            "begin": fault.begin,
            "end": fault.end,
            "strikes": strikes.get(fault.id, []),
        }
        for fault in tracks.story.faults.values()
    ]


def _loss(loss: Loss) -> dict[str, Any]:
    return {
        "n": loss.n,
        "partition": loss.partition,
        "spans": [list(span) for span in loss.spans],
        "count": loss.count,
        "licence": loss.licence,
        "rule": loss.rule,
        "text": capital(what_of(loss.partition, joined(loss.spans))),
    }


def _chains(tracks: Tracks) -> tuple[list[dict[str, Any]], list[str]]:
    """Why, for every rule that was broken and every loss, up to ``CHAINS_MAX``."""
    story = tracks.story
    found: list[dict[str, Any]] = []
    subjects: list[Finding | Loss] = [*story.findings, *story.losses]
    for each in sorted(subjects, key=lambda subject: subject.n)[:CHAINS_MAX]:
        if isinstance(each, Loss):
            spans = joined(each.spans)
            links = links_of(story, [each], spans, each.culprits)
            title = f"{capital(what_of(each.partition, spans))}, lost at {when(story, each.n)}"
            sentences = [[link.text, [link.n], link.is_cited] for link in links]
        else:
            told = chain(story, each)
            title = told.summary
            sentences = [[sentence.text, [sentence.n], False] for sentence in told.sentences]
        found.append({"n": each.n, "title": title, "sentences": sentences})
    left = len(subjects) - len(found)
    notices = [f"{left} more broken rules and losses have no chain of causes here."] if left else []
    return found, notices


def _series(
    series: Series[Any], taken: Callable[[Any], Any] = lambda value: value
) -> list[list[Any]]:
    return [[n for n, _ in series], [taken(value) for _, value in series]]


def _epochs(value: Any) -> list[tuple[int, int]] | None:
    """Epochs, each with its first offset; what is none is left out."""
    return list(pairs({"epochs": value}, "epochs")) if isinstance(value, list | tuple) else None


def _lives(lives: Iterable[OffsetLife]) -> list[list[int | None]]:
    return [[each.offset, each.begin, _end(each.end)] for each in lives]


def _end(n: int) -> int | None:
    return None if n == FOREVER else n
