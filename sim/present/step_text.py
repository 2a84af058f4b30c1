"""Steps of a trace as text, on a console that the caller has made.

Left out: what is shown (``sim.present.step_view``), and commands (``sim.present.line_mode``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.text import Text

from sim.present.step_view import Changed, LogFiles, View
from sim.present.stepper import KEYS
from sim.present.text import print_strips, put, wrapped
from sim.present.track_reading import Message, Timer
from sim.present.tracks import Tracks
from sim.present.words import at, counted, name, seconds, sentence
from sim.trace.lines import encode

__all__ = [
    "MORE_WORDS",
    "heading",
    "print_changes",
    "print_cluster",
    "print_event",
    "print_expects",
    "print_files",
    "print_help",
    "print_messages",
    "print_state",
    "print_timers",
    "print_view",
    "value_text",
]

CHANGES_MAX: Final = 24
STATE_MAX: Final = 200
ROWS_MAX: Final = 40
VALUE_MAX: Final = 60
OFFSETS_MAX: Final = 10
_MARK_STYLES: Final = {"violation": "bold red", "loss": "bold red", "fault": "yellow"}
MORE_WORDS: Final = (
    ("diff [EVENT]", "what differs between an event, or the step before, and here"),
    ("state [PATH]", "every field, or those whose path begins so: state b2/orders-0"),
    ("logs", "each log's synced end, segments, index entries and epochs"),
    ("messages", "what is under way"),
    ("timers", "what has been set and will come due"),
    ("expect", "the scenario's expectations"),
    ("around", "the events around this one, one column a node"),
)
"""Words of the line mode besides the keys."""


def heading(tracks: Tracks) -> str:
    """Which trace this is, and how its run ended."""
    header, footer = tracks.header, tracks.footer
    scenario = "a trace" if header.scenario is None else name(header.scenario)
    variant = "" if header.variant is None else f" ({name(header.variant)})"
    verdict = "no verdict" if footer is None or not footer.verdict else name(footer.verdict)
    return f"{scenario}{variant}, seed {name(header.seed)}: {verdict}"


def value_text(value: Any) -> str:
    """A field's value, escaped and cut."""
    if value is None:
        return "absent"
    found = value if type(value) is str else encode(value)
    return name(found) if len(found) <= VALUE_MAX else f"{name(found[: VALUE_MAX - 1])}…"


def print_view(console: Console, shown: View, *, is_brief: bool = False) -> None:
    """One step: the event, what it changed, and unless ``is_brief`` the cluster behind it."""
    print_event(console, shown)
    print_changes(console, shown.changes)
    if not is_brief:
        print_strips(console, shown.strips, has_legend=False)
        print_cluster(console, shown)


def print_event(console: Console, shown: View) -> None:
    """The event, what it is known for, and what it goes back to at once."""
    head = Text().append(f"{at(shown.n)} of {shown.last}  {seconds(shown.t_us)}  ", "dim")
    words = f"{name(shown.node)} {shown.text}" if shown.n else "the empty beginning"
    wrapped(console, head, words, "bold", 4)
    for mark in shown.marks:
        label = Text().append(f"  {mark.what}: ", _MARK_STYLES.get(mark.what, "cyan"))
        wrapped(console, label, sentence(mark.text), "", 4)
    if shown.causes:
        causes = ", ".join(map(at, shown.causes[:OFFSETS_MAX]))
        put(console, Text(f"  because of {causes}", "dim"))


def print_changes(
    console: Console, changes: Sequence[Changed], *, rows_max: int = CHANGES_MAX
) -> None:
    """One line a field, at most so many: path, old value, new value."""
    width = max((len(name(each.path)) for each in changes[:rows_max]), default=0)
    for each in changes[:rows_max]:
        line = Text().append(f"  {name(each.path):<{width}}  ")
        line.append(value_text(each.old), "dim").append(" -> ", "dim")
        line.append(value_text(each.new), "bold")
        put(console, line)
    if len(changes) > rows_max:
        put(console, Text(f"  and {len(changes) - rows_max} more", "dim"))


def print_state(
    console: Console, state: Mapping[str, Any], now: Container[str], *, rows_max: int = STATE_MAX
) -> None:
    """One line a field, at most so many; those whose paths are in ``now`` have just changed."""
    paths = list(state)[:rows_max]
    width = max((len(name(path)) for path in paths), default=0)
    for path in paths:
        style = "bold" if path in now else ""
        put(console, Text(f"  {name(path):<{width}}  {value_text(state[path])}", style))
    if len(state) > rows_max:
        left = len(state) - rows_max
        put(console, Text(f"  and {counted(left, 'more field', 'more fields')}"))


def print_cluster(console: Console, shown: View) -> None:
    """What is special behind the event: nodes that do not run, faults, and what is under way."""
    for partition, members in shown.eligible.items():
        put(console, Text(f"ELR of {name(partition)}: {', '.join(map(name, members))}"))
    halted = [
        f"{name(node)} {status}"
        for node, status in shown.statuses.items()
        if status not in ("up", "never")
    ]
    if halted:
        wrapped(console, Text().append("nodes   ", "dim"), ", ".join(halted), "red", 8)
    for id_, words in shown.faults:
        wrapped(console, Text().append("fault   ", "dim"), f"{name(id_)}: {words}", "yellow", 8)
    if shown.expects:
        counts = Counter(each.state for each in shown.expects)
        told = ", ".join(f"{count} {state}" for state, count in sorted(counts.items()))
        put(console, Text().append("expect  ", "dim").append(told))
    if shown.messages:
        put(console, Text().append("wire    ", "dim").append(_wire(shown.messages)))


def _wire(messages: Sequence[Message]) -> str:
    types = Counter(each.type for each in messages)
    told = ", ".join(f"{count} {name(type_)}" for type_, count in sorted(types.items()))
    return f"{counted(len(messages), 'message')} under way: {told}"


def print_expects(console: Console, shown: View) -> None:
    """One line an expectation."""
    styles = {"failed": "red", "broken": "yellow", "met": "green"}
    for each in shown.expects:
        head = Text().append(f"  {each.state:<7}", styles.get(each.state, ""))
        wrapped(console, head, f"{name(each.id)} {each.form}: {sentence(each.text)}", "", 9)
    if not shown.expects:
        put(console, Text("  The trace tells of no expectations."))


def print_messages(console: Console, shown: View, tracks: Tracks) -> None:
    """What is under way, one line a message, oldest first."""
    for each in shown.messages[:ROWS_MAX]:
        sent = f"{at(each.n)} {seconds(tracks.story.time_us(each.n))}"
        put(console, Text(f"  {name(each.sender)} -> {name(each.to)}  {name(each.type)}  {sent}"))
    _print_rest(console, len(shown.messages), "No message is under way.")


def print_timers(console: Console, timers: Sequence[Timer], tracks: Tracks) -> None:
    """Timers that come due, one line each, by the time at which they do."""
    for each in timers[:ROWS_MAX]:
        due = f"{at(each.due)} {seconds(tracks.story.time_us(each.due))}"
        put(console, Text(f"  {name(each.node)}  {name(each.key)}  due with {due}"))
    _print_rest(console, len(timers), "No timer that comes due is set.")


def _print_rest(console: Console, count: int, nothing: str) -> None:
    if not count:
        put(console, Text(f"  {nothing}"))
    elif count > ROWS_MAX:
        put(console, Text(f"  and {count - ROWS_MAX} more", "dim"))


def print_files(console: Console, files: Iterable[LogFiles]) -> None:
    """What the trace tells of each log's files."""
    for each in files:
        durable = "unknown" if each.durable_end is None else str(each.durable_end)
        epochs = ", ".join(f"{epoch} from {start}" for epoch, start in each.epochs[-OFFSETS_MAX:])
        head = f"{name(each.node)} {name(each.partition)}"
        put(console, Text(f"  {head}", "bold"))
        put(console, Text(f"    synced end  {durable}"))
        put(console, Text(f"    segments    {_some(each.segments)}"))
        put(console, Text(f"    index       {_some(each.index)}"))
        put(console, Text(f"    epochs      {epochs or 'unknown'}"))


def _some(numbers: Sequence[int]) -> str:
    if len(numbers) <= OFFSETS_MAX:
        return ", ".join(map(str, numbers)) or "none that has records"
    ends = ", ".join(map(str, numbers[-OFFSETS_MAX + 2 :]))
    return f"{numbers[0]}, {numbers[1]}, … {ends} ({len(numbers)} of them)"


def print_help(console: Console) -> None:
    """The keys and words."""
    rows = [(f"{key.key} {key.argument}".rstrip(), key.text) for key in KEYS]
    rows += list(MORE_WORDS)
    width = max(len(left) for left, _ in rows)
    for left, right in rows:
        wrapped(console, Text().append(f"  {left:<{width}}  ", "bold"), right, "", width + 4)
    put(console, Text("  An empty line does the last move again.", "dim"))
