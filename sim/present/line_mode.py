"""The line mode of the stepper: a command a line, an answer on a console.

Left out: where lines come from (``sim.cli.step``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.text import Text

from sim.present.chains import Chain, chain
from sim.present.columns import Selection, columns
from sim.present.fates import epochs_at, records_of
from sim.present.step_text import (
    MORE_WORDS,
    print_changes,
    print_expects,
    print_files,
    print_help,
    print_messages,
    print_state,
    print_timers,
    print_view,
)
from sim.present.step_view import changed, differences
from sim.present.stepper import KEYS, NoSuchMove, Stepper
from sim.present.text import print_chain, print_columns, put
from sim.present.words import at, name

__all__ = ["LineMode", "NoSuchCommand"]

AROUND: Final = 8
DIFF_MAX: Final = 200
_TIME: Final = re.compile(r"(-?\d{1,9})(?:\.(\d{1,6}))?(s|ms|us)")
_NUMBER: Final = re.compile(r"#?(\d{1,12})")
_UNITS_US: Final = {"s": 1_000_000, "ms": 1_000, "us": 1}


class NoSuchCommand(Exception):
    """A line is no command, or its argument is none; the text says what there is."""


class LineMode:
    """Takes lines, and prints on a console.

    Args:
        compare: compares with another trace, named by its path, and prints; it may raise
            ``NoSuchCommand``.

    Attributes:
        is_brief: whether only what changed is shown.
        is_over: whether the user has asked to end it.
    """

    def __init__(
        self, console: Console, stepper: Stepper, compare: Callable[[str], None] | None = None
    ) -> None:
        self.console = console
        self.stepper = stepper
        self.is_brief = False
        self.is_over = False
        self._compare = compare
        self._before = max(0, stepper.n - 1)
        self._again = "n"

    def show(self) -> None:
        """Print the step."""
        print_view(self.console, self.stepper.view, is_brief=self.is_brief)

    def take(self, line: str) -> None:
        """Do what a line says.

        Raises:
            NoSuchMove: there is nothing to go to.
            NoSuchCommand: it is no command.
        """
        word, argument = self.parsed(line)
        if word in _MOVES:
            self.move(word, argument)
            self.show()
        elif word in _SHOWS:
            _SHOWS[word](self, argument)
        else:
            raise NoSuchCommand(_no_command(word))

    def parsed(self, line: str) -> tuple[str, str]:
        """The command of a line, by its key if it has one, and its argument."""
        line = line.strip() or self._again
        word, _, argument = line.partition(" ")
        argument = argument.strip()
        if line.startswith("/"):
            word, argument = "/", line[1:].strip()
        elif _NUMBER.fullmatch(word) and not argument:
            word, argument = "g", word
        return _WORDS.get(word, word), argument

    def is_move(self, word: str) -> bool:
        """Whether a command goes to another event."""
        return word in _MOVES

    def move(self, word: str, argument: str = "") -> None:
        """Go to another event, and show nothing.

        Raises:
            NoSuchMove: there is nothing to go to.
            NoSuchCommand: it is no move, or its argument is none.
        """
        if word not in _MOVES:
            raise NoSuchCommand(_no_command(word))
        before = self.stepper.n
        _MOVES[word](self, argument)
        self._before = before
        self._again = word if word == "/" else f"{word} {argument}" if word in "np" else word

    # Moves ---------------------------------------------------------------------------------------

    def _next(self, argument: str) -> None:
        self.stepper.next(_count(argument))

    def _previous(self, argument: str) -> None:
        self.stepper.next(-_count(argument))

    def _go(self, argument: str) -> None:
        stepper = self.stepper
        number = _NUMBER.fullmatch(argument)
        time = _TIME.fullmatch(argument)
        if argument in ("start", "end"):
            stepper.go(0 if argument == "start" else stepper.last)
        elif number:
            stepper.go(int(number[1]))
        elif time:
            unit_us = _UNITS_US[time[3]]
            part = int((time[2] or "").ljust(6, "0")) * unit_us // 1_000_000
            whole = int(time[1]) * unit_us
            stepper.go_to_time(whole - part if argument.startswith("-") else whole + part)
        else:
            raise NoSuchCommand(
                f"g needs an event (0 to {stepper.last}), a time as 3.5s, start or end, "
                f'not "{argument}".'
            )

    def _search(self, argument: str) -> None:
        self.stepper.search(argument)

    # Shows ---------------------------------------------------------------------------------------

    def _why(self, argument: str) -> None:
        for each in self.chains(argument):
            print_chain(self.console, each)

    def chains(self, argument: str = "") -> list[Chain]:
        """Why this event came to be, or another one, or why records had the fate that they had.

        Args:
            argument: an event's number, or a partition and an offset as ``orders-0:12``; the event
                shown if it is empty.

        Raises:
            NoSuchMove: there is nothing to tell.
            NoSuchCommand: there is no such event or partition.
        """
        story = self.stepper.tracks.story
        node, _, offset = argument.rpartition(":")
        if node:
            return self._chains_of_records(node, offset)
        n = _event(argument, self.stepper.last) if argument else self.stepper.n
        if not n:
            raise NoSuchMove("The beginning has no causes.")
        return [chain(story, n)]

    def _chains_of_records(self, where: str, offset: str) -> list[Chain]:
        story = self.stepper.tracks.story
        partition = self._partition_of(where)
        if partition is None or not re.fullmatch(r"[0-9]{1,18}", offset):
            known = ", ".join(story.partitions) or "none"
            raise NoSuchCommand(
                f"why needs an event, or a partition ({known}) and an offset, as orders-0:12, "
                f'not "{where}:{offset}".'
            )
        at_ = int(offset)
        replicas = story.partitions[partition].replicas.values()
        if not any(replica.held(at_, at_ + 1, None) for replica in replicas):
            raise NoSuchMove(f"No log of {name(partition)} ever had offset {at_}.")
        epochs: list[int | None] = [*epochs_at(story, partition, at_)]
        return [
            chain(story, records)
            for epoch in epochs or [None]
            for records in records_of(story, partition, at_, at_ + 1, epoch)
        ]

    def _partition_of(self, where: str) -> str | None:
        """A partition, named by itself or by a node that has no other."""
        partitions = self.stepper.tracks.story.partitions
        if where in partitions:
            return where
        held = [each.name for each in partitions.values() if where in each.replicas]
        return held[0] if len(held) == 1 else None

    def _diff(self, argument: str) -> None:
        stepper = self.stepper
        other = _event(argument, stepper.last) if argument else self._before
        found = differences(stepper.tracks, other, stepper.n)
        put(self.console, Text(f"  from {at(other)} to {at(stepper.n)}:"))
        print_changes(self.console, found, rows_max=DIFF_MAX)
        if not found:
            put(self.console, Text("  No field differs."))

    def _state(self, argument: str) -> None:
        stepper = self.stepper
        state = stepper.tracks.state(stepper.n, argument)
        now = {each.path for each in changed(stepper.tracks, stepper.n)}
        print_state(self.console, state, now)
        if not state:
            put(self.console, Text(f'  No field has a path that begins with "{name(argument)}".'))

    def _logs(self, argument: str) -> None:
        _no_argument("logs", argument)
        print_files(self.console, self.stepper.view.files)

    def _messages(self, argument: str) -> None:
        _no_argument("messages", argument)
        print_messages(self.console, self.stepper.view, self.stepper.tracks)

    def _timers(self, argument: str) -> None:
        _no_argument("timers", argument)
        print_timers(self.console, self.stepper.view.timers, self.stepper.tracks)

    def _expect(self, argument: str) -> None:
        _no_argument("expect", argument)
        print_expects(self.console, self.stepper.view)

    def _around(self, argument: str) -> None:
        _no_argument("around", argument)
        tracks = self.stepper.tracks
        selection = Selection(around=max(1, self.stepper.n), context=AROUND, nodes=(), kinds=())
        first = max(1, self.stepper.n - AROUND)
        last = min(tracks.last, self.stepper.n + AROUND)
        events = (tracks.event(n) for n in range(first, last + 1))
        print_columns(self.console, columns(tracks.story, selection, events))

    def _brief(self, argument: str) -> None:
        _no_argument("d", argument)
        self.is_brief = not self.is_brief
        self.show()

    def _compared(self, argument: str) -> None:
        if self._compare is None or not argument:
            raise NoSuchCommand("c needs the path of another trace or run folder.")
        self._compare(argument)

    def _help(self, argument: str) -> None:
        print_help(self.console)

    def _quit(self, argument: str) -> None:
        self.is_over = True


def _count(argument: str) -> int:
    if not argument:
        return 1
    if not argument.isascii() or not argument.isdigit() or len(argument) > 12:
        raise NoSuchCommand(f'n and p take a number of events, not "{argument}".')
    return int(argument)


def _event(argument: str, last: int) -> int:
    found = _NUMBER.fullmatch(argument)
    if argument in ("start", "end"):
        return 0 if argument == "start" else last
    if not found or int(found[1]) > last:
        raise NoSuchCommand(f'There is no event "{argument}". There are 0 to {last}, start, end.')
    return int(found[1])


def _no_argument(word: str, argument: str) -> None:
    if argument:
        raise NoSuchCommand(f'{word} takes no argument, seen "{argument}".')


def _no_command(word: str) -> str:
    keys = " ".join(each.key for each in KEYS)
    words = ", ".join(left.partition(" ")[0] for left, _ in MORE_WORDS)
    return f'There is no command "{word}". There are {keys} and {words}; ? explains them.'


_WORDS: Final = {
    "next": "n",
    "prev": "p",
    "previous": "p",
    "goto": "g",
    "violation": "v",
    "fault": "f",
    "why": "w",
    "compare": "c",
    "help": "?",
    "quit": "q",
    "exit": "q",
    "expectations": "expect",
}
_MOVES: Final[dict[str, Callable[[LineMode, str], None]]] = {
    "n": LineMode._next,
    "p": LineMode._previous,
    "N": lambda mode, argument: mode.stepper.next_of(argument),
    "P": lambda mode, argument: mode.stepper.next_of(argument, is_back=True),
    "g": LineMode._go,
    "v": lambda mode, _: mode.stepper.next_mark("violation", "loss"),
    "V": lambda mode, _: mode.stepper.next_mark("violation", "loss", is_back=True),
    "f": lambda mode, _: mode.stepper.next_mark("fault"),
    "F": lambda mode, _: mode.stepper.next_mark("fault", is_back=True),
    "/": LineMode._search,
}
_SHOWS: Final[dict[str, Callable[[LineMode, str], None]]] = {
    "w": LineMode._why,
    "d": LineMode._brief,
    "c": LineMode._compared,
    "diff": LineMode._diff,
    "state": LineMode._state,
    "logs": LineMode._logs,
    "messages": LineMode._messages,
    "timers": LineMode._timers,
    "expect": LineMode._expect,
    "around": LineMode._around,
    "?": LineMode._help,
    "q": LineMode._quit,
}
