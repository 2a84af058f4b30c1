"""``leaderfall explain``: what a name means, from the code's own tables and docstrings.

Left out: the topics (``sim.cli.topics``).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click
from click.shell_completion import CompletionItem

from sim.cli.console import color_option, make_console, shown
from sim.cli.exits import Exit, UserError

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

    from sim.cli.topics import Topic

__all__ = ["command"]

_NEAR: Final = 5
_WITH_KEYS: Final = ("steps", "faults", "tables")
"""Groups whose topics have keys that users write."""


def complete_topics(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """Names of topics, and of groups."""
    from sim.cli.topics import GROUPS

    found = dict.fromkeys(GROUPS, "")
    for name, topics in _all().items():
        found.update((each.name, name) for each in topics)
    return [
        CompletionItem(each, help=text or None)
        for each, text in found.items()
        if each.startswith(incomplete)
    ]


@click.command("explain")
@click.argument("topic", nargs=-1, shell_complete=complete_topics)
@color_option
def command(topic: tuple[str, ...], *, color: str) -> int:
    """Explain a name that files, reports or traces use.

    TOPIC is an invariant, promise, licence, step, kind of fault, observable, selector,
    configuration key, guard, hazard (B-nn), failpoint, kind of event, or a group of these. Without
    it, all groups are listed.
    """
    console = make_console(color)
    wanted = " ".join(topic).strip()
    groups = _all()
    if not wanted:
        _list(console, groups, is_long=False)
        return Exit.OK
    named = next((each for each in groups if each in (wanted.lower(), f"{wanted.lower()}s")), None)
    found = _find(groups, wanted)
    if not found and named is None:
        bare = _bare(groups, wanted)
        found = _find(groups, bare)
        if not found and not _print_keys(console, groups, bare):
            raise _unknown(groups, wanted)
    if named is not None and not found:
        _list(console, {named: groups[named]}, is_long=True)
        return Exit.OK
    for at, (group, each) in enumerate(found):
        if at:
            console.print()
        _explain(console, group, each)
    return Exit.OK


def _all() -> dict[str, list[Topic]]:
    from sim.cli.topics import GROUPS

    return {name: list(make()) for name, (_, make) in GROUPS.items()}


def _find(groups: dict[str, list[Topic]], wanted: str) -> list[tuple[str, Topic]]:
    """Topics of a name; ``step:crash`` only that of its group."""
    group, colon, rest = wanted.partition(":")
    only = next((each for each in groups if colon and each in (group, f"{group}s")), None)
    name = rest if only is not None else wanted
    exact = _matches(groups, only, lambda topic: name in (topic.name, *topic.others))
    if exact:
        return exact
    key = _key(name)
    return _matches(groups, only, lambda topic: key in map(_key, (topic.name, *topic.others)))


def _matches(
    groups: dict[str, list[Topic]], only: str | None, is_meant: Callable[[Topic], bool]
) -> list[tuple[str, Topic]]:
    return [
        (name, topic)
        for name, topics in groups.items()
        if only is None or name == only
        for topic in topics
        if is_meant(topic)
    ]


def _key(name: str) -> str:
    return name.lower().replace("_", "-")


def _bare(groups: dict[str, list[Topic]], wanted: str) -> str:
    """A name without what files write behind it: ``acks=all``, ``leader:orders-0``."""
    front = re.split(r"[=:(]", wanted)[0].strip()
    return wanted if front in groups or f"{front}s" in groups else front


def _print_keys(console: Console, groups: dict[str, list[Topic]], wanted: str) -> bool:
    """What has a key of this name: ``acks`` is one of the step produce and of [[workload]]."""
    from rich.text import Text

    found = [
        (f"{group.removesuffix('s')} {topic.name}", text)
        for group in _WITH_KEYS
        for topic in groups[group]
        for name, text in topic.rows
        if _key(name) == _key(wanted)
    ]
    if found:
        console.print(Text(wanted, style="bold").append("  (a key of these)", "dim"))
        _rows(console, found)
    return bool(found)


def _unknown(groups: dict[str, list[Topic]], wanted: str) -> UserError:
    names: dict[str, str] = {each: each for each in groups}
    for topics in groups.values():
        for topic in topics:
            names.update((_key(each), topic.name) for each in (topic.name, *topic.others))
    near = [names[each] for each in get_close_matches(_key(wanted)[:100], names, n=_NEAR)]
    lines = [f'There is no topic "{shown(wanted)}".']
    if near:
        lines.append(f"Did you mean {', '.join(dict.fromkeys(near))}?")
    lines.append(f"Groups: {', '.join(groups)}. leaderfall explain GROUP lists one.")
    return UserError(*lines)


# Printing --------------------------------------------------------------------------------------


def _list(console: Console, groups: dict[str, list[Topic]], *, is_long: bool) -> None:
    from rich.text import Text

    from sim.cli.topics import GROUPS

    for at, (name, topics) in enumerate(groups.items()):
        if at:
            console.print()
        text = Text().append(name, "bold").append(f": {GROUPS[name][0]}")
        console.print(text)
        if is_long:
            _rows(console, [(each.name, each.title) for each in topics])
        else:
            _wrapped(console, ", ".join(each.name for each in topics), 2)
    if not is_long:
        console.print()
        _wrapped(console, "leaderfall explain TOPIC explains one, explain GROUP lists a group.", 0)


def _explain(console: Console, group: str, topic: Topic) -> None:
    from rich.text import Text

    from sim.cli.topics import GROUPS

    head = Text().append(topic.name, "bold").append(f"  ({group}: {GROUPS[group][0]})", "dim")
    console.print(head, soft_wrap=False)
    _wrapped(console, f"{topic.title[:1].upper()}{topic.title[1:]}", 2)
    for paragraph in topic.text:
        console.print()
        if paragraph.startswith(" ") or "\n" in paragraph:
            for line in paragraph.split("\n"):
                console.print(Text(f"  {line}"), soft_wrap=True)
        else:
            _wrapped(console, paragraph, 2)
    if topic.rows:
        console.print()
        _rows(console, list(topic.rows))


def _rows(console: Console, rows: list[tuple[str, str]]) -> None:
    """Two columns; one below the other where there is no room."""
    from rich.text import Text

    width = max((len(name) for name, _ in rows), default=0)
    width = min(width, console.width // 3)
    is_narrow = console.width < 60
    for name, text in rows:
        if is_narrow or len(name) > width:
            console.print(Text(f"  {name}", style="cyan"), soft_wrap=True)
            _wrapped(console, text, 6 if is_narrow else width + 4)
        else:
            _wrapped(console, text, width + 4, Text().append(f"  {name.ljust(width)}  ", "cyan"))


def _wrapped(console: Console, text: str, indent: int, head: Text | None = None) -> None:
    """Words within the width, behind a head or an indent."""
    from textwrap import wrap

    from rich.text import Text

    room = max(10, console.width - indent)
    lines = wrap(text, room, break_long_words=False, break_on_hyphens=False) or [""]
    for at, line in enumerate(lines):
        start = head if at == 0 and head is not None else Text(" " * indent)
        console.print(start + Text(line), soft_wrap=True)
