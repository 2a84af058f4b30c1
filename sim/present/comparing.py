"""Two traces compared: which events correspond, where they part first and why, what is different.

``compare`` gives a ``Comparison``, which each face draws in its own way. Its plain form, for a page
and other programs, is ``comparison.plain()``; A and B are the two traces, event numbers are those
of the trace that the key names, null is "none"::

    {
     "v": 1,
     "is_same": bool,                    the same events, times and judgement; headers may differ
     "a": run, "b": run,
       run := {"name","scenario"|null,"variant"|null,"seed","version","verdict"|null,"digest",
               "last": N,"end_us","is_complete": bool,"has_watermarks": bool}
     "header": [{"path","what","a": JSON text|null,"b": JSON text|null,"text"}, ...],
                                         what: scenario|variant|seed|version|guard|config|option|
                                         node|topic
     "pairs": {"a": [n...], "b": [n...], "how": [0 same|1 changed|2 alike, ...]},
                                         three columns, by "a"; see ``sim.present.aligning``.
                                         An event in no pair is only in its own run
     "shift": null | {"a": n,"b": n,"what": "time"|"length"|"order"|"numbers","text"},
                                         the earliest pair in front of the divergence that is at
                                         another time, takes longer, ...; null where none is
     "divergence": null | {
        "what": "changed"|"only-a"|"only-b"|"both"|"end-a"|"end-b",
        "a": n|null, "b": n|null,        the first event of each run without its like; end-a: A
                                         ends here, and B goes on with "b"
        "at_a": n, "at_b": n,            just behind it: show the states there
        "text",                          one sentence
        "unlike": [{"path","a": JSON text|null,"b": JSON text|null}, ...],   for "changed"
        "origin": {"what": "step"|"fault"|"configuration"|"variant"|"scenario"|"seed"|"timing"|
                           "version"|"end"|"unknown", "text", "a": n|null, "b": n|null},
                                         step: also one that is at another time
        "chain_a": [[n, node, text], ...], "chain_b": [...]},     causes, oldest first, itself last
     "states": [{"what": "divergence"|"parting"|"end", "text", "a": n, "b": n, "is_same": bool,
        "statuses": [[node, status in A, status in B], ...],      only those that differ
        "partitions": [{"name","is_same","unlike": ["leader"|"leader_epoch"|"isr"|"partition"...],
            "a": null | {"leader"|null,"leader_epoch","isr": [names]|null}, "b": ...,
            "replicas": [{"node","unlike": [field...],  "a": null | {"status","role",
                "leader_epoch","log_start","log_end","high_watermark"|null,
                "spans": [[base,end,epoch|null], ...]}, "b": ...}, ...]}, ...]}, ...],
                                         "parting" is the first point where replicas differ,
                                         missing if they never do; "divergence" likewise
     "losses": {"both": [[n_a, n_b]...], "a": [item...], "b": [item...]},
     "findings": the same, "expectations": the same
       item := {"n","text"}              only this run has it, or has it otherwise
    }

Left out: reading files, words for terminals (``sim.present.comparison_text``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import asdict, frozen

from sim.present.aligning import Alignment
from sim.present.compared import Compared, Source, read
from sim.present.compared_states import StateAt, StatePair, Track, first_parting, state_pair
from sim.present.comparison_plain import (
    plain_divergence,
    plain_header,
    plain_outcome,
    plain_pairs,
    plain_run,
    plain_states,
)
from sim.present.divergence import Divergence, Shift, find
from sim.present.header_differences import HeaderDifference, header_differences
from sim.present.outcomes import Outcome, expectations, findings, losses
from sim.present.words import at, name
from sim.trace.lines import Footer

__all__ = ["Comparison", "Source", "StateAt", "compare"]


@frozen
class Comparison:
    """See the module; ``plain`` says what each attribute is."""

    a: Compared
    b: Compared
    is_same: bool
    header: tuple[HeaderDifference, ...]
    alignment: Alignment
    shift: Shift | None
    divergence: Divergence | None
    states: tuple[StateAt, ...]
    losses: Outcome
    findings: Outcome
    expectations: Outcome

    def plain(self) -> dict[str, Any]:
        """For programs; the shape is documented at the module."""
        return {
            "v": 1,
            "is_same": self.is_same,
            "a": plain_run(self.a),
            "b": plain_run(self.b),
            "header": plain_header(self.header),
            "pairs": plain_pairs(self.alignment),
            "shift": None if self.shift is None else asdict(self.shift),
            "divergence": None if self.divergence is None else plain_divergence(self.divergence),
            "states": [plain_states(each) for each in self.states],
            "losses": plain_outcome(self.losses),
            "findings": plain_outcome(self.findings),
            "expectations": plain_outcome(self.expectations),
        }


def compare(a: Source, b: Source) -> Comparison:
    """Two traces, each of them read once, and again where its events are shown.

    Raises:
        TraceError, OSError: a source does.
    """
    one, other, alignment = read(a, b)
    header = tuple(header_differences(a.header, b.header))
    divergence, shift = find(one, other, alignment, header)
    is_same = divergence is None and shift is None and _judgement(a.footer) == _judgement(b.footer)
    stories = one.story, other.story
    return Comparison(
        one,
        other,
        is_same,
        header,
        alignment,
        shift,
        divergence,
        tuple(_states(one, other, alignment, divergence)),
        losses(*stories),
        findings(*stories),
        expectations(*stories),
    )


def _states(
    a: Compared, b: Compared, alignment: Alignment, divergence: Divergence | None
) -> Iterator[StateAt]:
    has_watermarks = a.keys.has_changes == b.keys.has_changes
    stories = a.story, b.story
    if divergence is not None:
        places = divergence.at_a, divergence.at_b
        pair = state_pair(*stories, *places, has_watermarks=has_watermarks)
        yield StateAt("divergence", f"Just behind the divergence, {_where(pair)}", pair)
    parting = first_parting(*stories, alignment, has_watermarks=has_watermarks)
    if parting is not None:
        track, pair = parting
        text = f"Where replicas differ first, {_track_words(track)}, {_where(pair)}"
        yield StateAt("parting", text, pair, track)
    ends = a.story.last_n, b.story.last_n
    pair = state_pair(*stories, *ends, has_watermarks=has_watermarks)
    yield StateAt("end", f"At the end, {_where(pair)}", pair)


def _where(pair: StatePair) -> str:
    return f"behind A {at(pair.a)} and B {at(pair.b)}"


def _track_words(track: Track) -> str:
    what = track.what.replace("_", " ")
    whose = [] if track.node is None else [name(track.node)]
    whose += [] if track.partition is None else [name(track.partition)]
    return f"in the {what} of {', '.join(whose)}"


def _judgement(footer: Footer | None) -> Mapping[str, Any] | None:
    return None if footer is None else asdict(footer)
