"""A comparison of two runs as text on a console.

Left out: what is compared (``sim.present.comparing``), JSON (``Comparison.plain``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from attrs import evolve

from sim.cli.console import shown
from sim.cli.wrapping import print_line, print_wrapped
from sim.present.words import at, name, seconds
from storage.inspection.escaping import safe

if TYPE_CHECKING:
    from rich.console import Console

    from sim.present.compared import Compared
    from sim.present.compared_states import PartitionPair, ReplicaPair, StateAt
    from sim.present.comparing import Comparison
    from sim.present.comparison_rows import Cell, PairRow
    from sim.present.divergence import Link
    from sim.present.outcomes import Item, Outcome

__all__ = ["print_comparison"]

_HEADER_MAX: Final = 20
_ITEMS_MAX: Final = 20
_PARTITIONS_MAX: Final = 6
_REPLICAS_MAX: Final = 12
_SIDE_BY_SIDE: Final = 80
_SIGNS: Final = {"same": " ", "changed": "|", "alike": "~", "only-a": "<", "only-b": ">"}


def print_comparison(console: Console, found: Comparison, *, context: int) -> None:
    """All of it; a few lines where the runs are the same."""
    _run(console, "A", found.a)
    _run(console, "B", found.b)
    if found.header:
        _section(console, "What they were told differently")
        for each in found.header[:_HEADER_MAX]:
            print_wrapped(console, each.text, 4, first=2)
        _left_out(console, len(found.header) - _HEADER_MAX)
    if found.is_same:
        console.print()
        print_line(console, ("The runs are the same", "bold green"), (_same_words(found), ""))
        return
    _divergence(console, found, context)
    for state in found.states:
        _state(console, found, state)
    _outcome(console, found)
    console.print()
    print_line(console, ("The runs differ.", "bold red"))


def _run(console: Console, side: str, run: Compared) -> None:
    header, footer = run.source.header, run.source.footer
    words = [name(header.scenario or "no scenario")]
    words += [] if header.variant is None else [f"variant {name(header.variant)}"]
    words += [f"seed {header.seed}", f"{run.last_n} events"]
    words += ["cut short" if footer is None else name(footer.verdict)]
    print_line(console, (f"{side}  ", "bold"), (shown(run.source.name), ""))
    print_wrapped(console, ", ".join(words), 3)


def _section(console: Console, title: str) -> None:
    console.print()
    print_line(console, (title, "bold"))


def _left_out(console: Console, count: int) -> None:
    if count > 0:
        print_line(console, (f"  … and {count} more", "dim"))


def _same_words(found: Comparison) -> str:
    digest = f", digest {found.a.keys.digest} of {found.a.last_n} events"
    if found.header:
        return f"{digest}: what they were told differently changed nothing."
    return f"{digest}."


# Where they part ---------------------------------------------------------------------------------


def _divergence(console: Console, found: Comparison, context: int) -> None:
    from sim.present.comparison_rows import rows

    place = found.divergence
    _section(console, "Where they part")
    if found.shift is not None:
        what = {"time": "Times", "length": "Lengths of time", "order": "The order"}
        lead = f"{what.get(found.shift.what, 'Numbers')} differ first: "
        print_wrapped(console, f"{lead}{found.shift.text}.", 4, first=2)
    if place is None:
        if found.shift is None:
            print_wrapped(
                console, "The events are the same; how they were judged is not.", 4, first=2
            )
        else:
            print_wrapped(console, "But for that the events are the same.", 4, first=2)
        return
    print_wrapped(console, f"{place.text}.", 4, first=2)
    for each in place.unlike:
        print_wrapped(
            console, f"{name(each.path)}: {_value(each.a)} in A, {_value(each.b)} in B", 6, first=4
        )
    print_wrapped(console, f"What is behind it: {place.origin.text}.", 4, first=2)
    for side, chain in (("A", place.chain_a), ("B", place.chain_b)):
        if chain:
            _chain(console, side, chain)
    _rows(console, rows(found, before=context, behind=context))


def _value(text: str | None) -> str:
    return "absent" if text is None else name(text)


def _chain(console: Console, side: str, chain: Sequence[Link]) -> None:
    print_line(console, (f"  Its causes in {side}", "dim"))
    for link in chain:
        text = f"{at(link.n)} {name(link.node)}: {safe(link.text)}"
        print_wrapped(console, text, 6, first=4)


def _rows(console: Console, found: Sequence[PairRow]) -> None:
    """Both runs beside each other, or one row below the other where that is too narrow."""
    console.print()
    if console.width < _SIDE_BY_SIDE:
        for row in found:
            for side, cell in (("A", row.a), ("B", row.b)):
                if cell is not None:
                    print_line(
                        console,
                        (f"{side} {_SIGNS[row.mark]} ", _style(row)),
                        (_cell(cell), _style(row)),
                    )
        return
    width = (console.width - 3) // 2
    print_line(console, ("A".ljust(width + 3) + "B", "bold"))
    for row in found:
        left = _fit("" if row.a is None else _cell(row.a), width)
        right = _fit("" if row.b is None else _cell(row.b), width).rstrip()
        print_line(console, (f"{left} {_SIGNS[row.mark]} {right}".rstrip(), _style(row)))
    legend = "| says something else; < > only there; ~ the same for another reason"
    print_wrapped(console, legend, 2, first=0, style="dim")


def _style(row: PairRow) -> str:
    if row.is_divergence:
        return "reverse"
    return "dim" if row.mark == "same" else "" if row.mark == "alike" else "yellow"


def _cell(cell: Cell) -> str:
    return f"{at(cell.n)} {seconds(cell.t_us)} {name(cell.node)}: {safe(cell.text)}"


def _fit(text: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    if cell_len(text) > width:
        return set_cell_size(text, width - 1) + "…"
    return text + " " * (width - cell_len(text))


# States ------------------------------------------------------------------------------------------


def _state(console: Console, found: Comparison, state: StateAt) -> None:
    from sim.present.strips import strips
    from sim.present.text import print_strips

    _section(console, state.text)
    pair = state.states
    if pair.is_same:
        print_wrapped(console, "All nodes and replicas are in the same state.", 4, first=2)
        return
    for node, mine, theirs in pair.statuses[:_REPLICAS_MAX]:
        print_wrapped(console, f"{name(node)}: {mine} in A, {theirs} in B", 4, first=2)
    _left_out(console, len(pair.statuses) - _REPLICAS_MAX)
    unlike = [each for each in pair.partitions if not each.is_same]
    for each in unlike[:_PARTITIONS_MAX]:
        _partition(console, each)
    _left_out(console, len(unlike) - _PARTITIONS_MAX)
    names = {each.name for each in unlike[:_PARTITIONS_MAX]}
    logs = [
        evolve(each, partition=f"{side}, {each.partition}")
        for side, story, n in (("A", found.a.story, pair.a), ("B", found.b.story, pair.b))
        for each in strips(story, n)
        if each.partition in names
    ]
    print_strips(console, logs)


def _partition(console: Console, pair: PartitionPair) -> None:
    for each in pair.unlike:
        if each == "partition":
            side = "A" if pair.b is None else "B"
            print_wrapped(console, f"{name(pair.name)} is only in {side}", 4, first=2)
        else:
            mine, theirs = _shown(getattr(pair.a, each)), _shown(getattr(pair.b, each))
            words = f"{name(pair.name)}, {each.replace('_', ' ')}: {mine} in A, {theirs} in B"
            print_wrapped(console, words, 4, first=2)
    unlike = [each for each in pair.replicas if each.unlike]
    for replica in unlike[:_REPLICAS_MAX]:
        print_wrapped(console, _replica_words(pair.name, replica), 4, first=2)
    _left_out(console, len(unlike) - _REPLICAS_MAX)


def _replica_words(partition: str, pair: ReplicaPair) -> str:
    whose = f"{name(pair.node)}, {name(partition)}"
    if pair.a is None or pair.b is None:
        return f"{whose}: only in {'A' if pair.b is None else 'B'}"
    words = []
    for each in pair.unlike:
        if each == "spans":
            words.append("other records")
        else:
            mine, theirs = _shown(getattr(pair.a, each)), _shown(getattr(pair.b, each))
            words.append(f"{each.replace('_', ' ')} {mine} in A, {theirs} in B")
    return f"{whose}: {'; '.join(words)}"


def _shown(value: object) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ", ".join(name(each) for each in value) or "empty"
    return name(value)


# Outcome -----------------------------------------------------------------------------------------


def _outcome(console: Console, found: Comparison) -> None:
    parts = (
        ("Losses", found.losses),
        ("Broken rules", found.findings),
        ("Expectations", found.expectations),
    )
    _section(console, "What came of it")
    for title, outcome in parts:
        _part(console, title, outcome)
    verdicts = [
        "cut short" if each.source.footer is None else name(each.source.footer.verdict)
        for each in (found.a, found.b)
    ]
    print_line(console, (f"  Verdict: {verdicts[0]} in A, {verdicts[1]} in B", ""))


def _part(console: Console, title: str, outcome: Outcome) -> None:
    both, only = len(outcome.both), len(outcome.a) + len(outcome.b)
    if both or only:
        print_line(console, (f"  {title}: {both} in both, {only} in one only", ""))
    for side, items in (("A", outcome.a), ("B", outcome.b)):
        _items(console, side, items)


def _items(console: Console, side: str, items: Sequence[Item]) -> None:
    for each in items[:_ITEMS_MAX]:
        print_wrapped(console, f"{side} {at(each.n)}: {safe(each.text)}", 6, first=4)
    _left_out(console, len(items) - _ITEMS_MAX)
