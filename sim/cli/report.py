"""What a run prints: what was run, what happened, the logs, what was expected, what broke and why.

The story comes from the trace alone (``sim.present``); verdicts come from the run.

Left out: JSON (``sim.cli.documents``).
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from sim.cli.console import shown
from sim.cli.exits import Exit
from sim.cli.report_views import views_of
from sim.cli.run_folders import TRACE
from sim.cli.wrapping import print_line, print_wrapped
from sim.shell_words import command_line

if TYPE_CHECKING:
    from rich.console import Console

    from sim.cli.orders import Settings
    from sim.cli.ran import Ran
    from sim.present.losses import LossTold
    from sim.present.story import Story

__all__ = ["print_run", "print_summary"]

_CHAINS_MAX: Final = 6
_PASSED_OVER_MAX: Final = 6
_BROKERS_SHOWN: Final = 9
_WORDS: Final = {
    Exit.OK: ("passed", "bold green"),
    Exit.FAILED: ("failed", "bold red"),
    Exit.INCONCLUSIVE: ("inconclusive", "bold yellow"),
    Exit.NOT_DETERMINISTIC: ("not deterministic", "bold red"),
    Exit.INTERNAL: ("broke off: internal error", "bold red"),
    Exit.INTERRUPTED: ("interrupted", "bold yellow"),
}


def print_run(
    console: Console, ran: Ran, settings: Settings, *, is_quiet: bool, is_verbose: bool
) -> None:
    """The report on one run; ``is_quiet`` leaves the verdict, and what it rests on if it is bad."""
    if is_quiet:
        _verdict(console, ran, with_name=True)
        if ran.code is not Exit.OK:
            _print_again(console, ran, settings)
        return
    _print_head(console, ran)
    story = None if ran.result is None else _story_of(ran)
    if ran.result is not None and story is None:
        print_wrapped(console, "(This trace keeps no events, so there is no story to tell.)", 2)
    if story is not None:
        _print_story(console, story, is_verbose=is_verbose)
    if ran.result is not None:
        _print_passed_over(console, ran, is_verbose=is_verbose)
        _print_expectations(console, ran, story)
        _print_broken(console, ran, story, is_verbose=is_verbose)
        _print_liveness(console, ran)
    console.print()
    _verdict(console, ran, with_name=False)
    _print_again(console, ran, settings)


def print_summary(console: Console, ran: Sequence[Ran], wanted: int, *, is_quiet: bool) -> None:
    """One line a run, behind the reports on several; ``is_quiet`` counts only."""
    if not is_quiet:
        console.print()
    width = max((len(shown(each.order.name)) for each in ran), default=0)
    width = min(width, max(20, console.width - 40))
    for each in () if is_quiet else ran:
        word, style = _WORDS[each.code]
        digest = each.document.get("digest") or ""
        print_line(
            console,
            (f"{shown(each.order.name):<{width}}  ", ""),
            (word, style),
            (f"  {digest}", "dim"),
        )
    good = sum(each.code is Exit.OK for each in ran)
    more = "" if len(ran) == wanted else f", {wanted - len(ran)} not run"
    console.print(f"{good} of {len(ran)} passed{more}", soft_wrap=True)


# Head ------------------------------------------------------------------------------------------


def _print_head(console: Console, ran: Ran) -> None:
    """What is run: every effective option, and the seed."""
    scenario, document = ran.order.scenario, ran.document
    print_line(
        console,
        (shown(ran.order.name), "bold"),
        (f": {scenario.title}" if scenario.title else "", ""),
    )
    version = document.get("leaderfall", "")
    words = [shown(ran.order.file), f"seed {scenario.seed}", f"leaderfall {version}"]
    print_wrapped(console, ", ".join(words), 2)
    given = scenario.document.get("cluster", {})
    options = document.get("options", {})
    told = {key: value for key, value in options.items() if key in given}
    print_wrapped(console, f"cluster: {_options(told) or 'as by default'}", 4, first=2)
    rest = _options({key: value for key, value in options.items() if key not in given})
    print_wrapped(console, f"defaults: {rest}", 4, first=2, style="dim")
    for topic in scenario.topics:
        print_wrapped(console, f"topic {topic.name}: {_topic(topic)}", 4, first=2)
    for path, value in scenario.overrides:
        print_wrapped(console, f"--set {shown(path)} = {shown(value)}", 4, first=2)


def _options(options: dict[str, Any], prefix: str = "") -> str:
    parts = []
    for key, value in options.items():
        if isinstance(value, dict):
            # Kafka's own keys are known by their own names.
            inner = _options(value, "" if key == "config" else f"{prefix}{key}.") if value else ""
            parts.append(inner or f"{prefix}{key} " + ("all on" if key == "guards" else "default"))
        elif value is not None:
            parts.append(f"{prefix}{key} {_value(value)}")
    return ", ".join(parts)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "..".join(map(_value, value))
    return shown(value)


def _topic(topic: Any) -> str:
    if topic.replicas is not None:
        parts = ["replicas " + " | ".join(" ".join(each) for each in topic.replicas)]
    else:
        parts = [f"{topic.partitions} partitions"]
        if topic.replication is not None:
            parts.append(f"replication {topic.replication}")
    return ", ".join([*parts, *(f"{key} {shown(each)}" for key, each in topic.config.items())])


# The story -------------------------------------------------------------------------------------


def _story_of(ran: Ran) -> Story | None:
    """The story of the trace in its folder; None where that keeps no events."""
    from sim.present.story import Story
    from sim.trace.reader import TraceReader

    if ran.folder is None:
        return None
    reader = TraceReader(ran.folder / TRACE)
    story = Story(reader.header, reader, reader.footer)
    return story if story.last_n else None


def _print_story(console: Console, story: Story, *, is_verbose: bool) -> None:
    from sim.present.strips import strips
    from sim.present.text import print_strips, print_timeline
    from sim.present.timeline import LINES_MAX, timeline

    _section(console, "What happened")
    lines = timeline(story, lines_max=sys.maxsize if is_verbose else LINES_MAX)
    print_timeline(console, lines)
    found = strips(story)
    if found:
        _section(console, "The logs at the end")
        print_strips(console, found)


def _print_passed_over(console: Console, ran: Ran, *, is_verbose: bool) -> None:
    """What could not act, where the scenario says that this ends no run."""
    from sim.present.words import seconds

    assert ran.result is not None
    found = ran.result.passed_over
    if not found:
        return
    _section(console, "What was passed over")
    listed = found if is_verbose else found[:_PASSED_OVER_MAX]
    for each in listed:
        where = f"step {each.step}, " if each.step else ""
        text = f"- {where}{seconds(each.t_us)}: {shown(each.text)}"
        print_wrapped(console, text, 4, first=2)
    if len(found) > len(listed):
        more = f"(and {len(found) - len(listed)} more; -v shows all)"
        print_wrapped(console, more, 2, style="dim")


# Expectations ------------------------------------------------------------------------------------


def _print_expectations(console: Console, ran: Ran, story: Story | None) -> None:
    assert ran.result is not None
    if not ran.result.expectations:
        return
    broken = {each.name for each in ran.result.verdict.broken}
    _section(console, "What was expected")
    for each in ran.result.expectations:
        _print_expectation(console, ran, each, broken, story)


def _print_expectation(
    console: Console, ran: Ran, each: Any, broken: set[str], story: Story | None
) -> None:
    assert ran.result is not None
    expect = each.expect
    holds, text = each.holds, ""
    if expect.form == "breaks":
        from sim.scenario.names import ALIASES

        names = expect.breaks
        holds = all(any(one in broken for one in ALIASES.get(name, (name,))) for name in names)
        text = f"breaks {', '.join(names)}"
    elif expect.form == "allow":
        counts = {one.licence: one.records for one in ran.result.verdict.lost}
        holds = all(one.holds(counts.get(one.licence, 0)) for one in expect.allow)
        text = f"allow {', '.join(map(_allowance, expect.allow))}"
    else:
        text = f"{_form(expect)}: {'' if expect.that is None else expect.that.text}"
    word, style = {
        True: ("holds", "green"),
        False: ("FAILS", "bold red"),
        None: ("unjudged", "yellow"),
    }[holds]
    from rich.text import Text

    head = Text("  ").append(f"{word:<9}", style).append(f"{each.number:>2}  ", "dim")
    print_wrapped(console, shown(text), 15, head=head)
    indent = 15 if console.width >= 60 else 4
    if each.event:
        print_wrapped(console, _when(each, story), indent, style="dim")
    if each.values and (holds is False or expect.form != "always"):
        values = ", ".join(f"{call} = {_answer(answer)}" for call, answer in each.values)
        print_wrapped(console, shown(values), indent, style="" if holds is False else "dim")
    if each.detail:
        print_wrapped(console, shown(each.detail), indent)
    if expect.because:
        print_wrapped(console, f"because {shown(expect.because)}", indent)


def _allowance(each: Any) -> str:
    return shown(each)


def _form(expect: Any) -> str:
    from sim.scenario.durations import show_duration

    if expect.form == "at":
        return f"at {show_duration(expect.at_us)}"
    words = ["at the end" if expect.form == "at_end" else expect.form]
    if expect.after is not None:
        words.append(f"after {expect.after}")
    for word, value in (
        ("after", expect.after_us),
        ("within", expect.within_us),
        ("from", expect.from_us),
        ("to", expect.to_us),
    ):
        if value is not None:
            words.append(f"{word} {show_duration(value)}")
    return " ".join(words)


def _when(each: Any, story: Story | None) -> str:
    from sim.present.words import at, seconds

    verb = "first held at" if each.expect.form == "eventually" and each.holds else "judged at"
    if each.expect.form == "always" and each.holds is False:
        verb = "broken at"
    time = "" if story is None else f" ({seconds(story.time_us(each.event))})"
    return f"{verb} {at(each.event)}{time}"


def _answer(value: Any) -> str:
    if isinstance(value, list | tuple):
        return "{" + ", ".join(map(str, value)) + "}"
    return "None" if value is None else str(value)


# What was broken ---------------------------------------------------------------------------------


def _print_broken(console: Console, ran: Ran, story: Story | None, *, is_verbose: bool) -> None:
    assert ran.result is not None
    verdict = ran.result.verdict
    if verdict.broken:
        _section(console, "What was broken")
        for each in verdict.broken:
            _print_one_broken(console, each)
    told = [] if story is None or not verdict.lost else _told_losses(story)
    # What is lost behind the end of the run is told with its recovery.
    if told:
        from sim.cli.report_losses import print_losses

        _section(console, "What was lost")
        covered = {each.licence: each.is_covered for each in verdict.lost}
        print_losses(console, told, covered, verdict.tested, is_verbose=is_verbose)
    if story is not None and story.findings:
        _print_chains(console, story, sys.maxsize if is_verbose else _CHAINS_MAX)
    if verdict.unjudged:
        _section(console, "What is not judged yet")
        for text in verdict.unjudged:
            print_wrapped(console, f"- {shown(text)}", 4, first=2)


def _told_losses(story: Story) -> list[LossTold]:
    from sim.present.losses import told_losses

    return list(told_losses(story))


def _print_one_broken(console: Console, each: Any) -> None:
    from rich.text import Text

    if each.is_expected:
        word, style = "expected", "green"
    elif each.first is None and each.is_excused:
        word, style = "allowed", "green"
    elif each.is_excused:
        word, style = "excused: a guard is off, or an older truncation mode is on", "yellow"
    else:
        word, style = "NOT expected", "bold red"
    if each.first is None:
        what = f"{each.count} record{'' if each.count == 1 else 's'} lost"
    else:
        times = "" if each.count == 1 else f", {each.count} times"
        what = f"violated at #{each.first.event}{times}: {each.first.detail}"
    head = Text("  ").append(f"{each.name}", "bold").append(f" ({word})", style).append(": ")
    print_wrapped(console, shown(what), 4, head=head)


def _print_chains(console: Console, story: Story, chains_max: int) -> None:
    """Why: one chain a broken rule, each that says something new."""
    from sim.present.chains import Chain, Sentence, chain
    from sim.present.text import print_chain

    told: set[str] = set()
    chains = []
    for finding in story.findings:
        found = chain(story, finding)
        if found.summary in told:
            continue
        told.add(found.summary)
        links = [each for each in found.sentences if each.text not in told]
        if len(links) < len(found.sentences):
            known = Sentence(links[0].n if links else 0, "The rest of it is told above.")
            found = Chain(found.summary, (*links, known))
        told.update(each.text for each in links)
        chains.append(found)
    if chains:
        _section(console, "Why")
    for at, each in enumerate(chains[:chains_max]):
        if at:
            console.print()
        print_chain(console, each)
    if len(chains) > chains_max:
        print_wrapped(
            console, f"(and {len(chains) - chains_max} more; -v shows all)", 2, style="dim"
        )


# Behind the end ----------------------------------------------------------------------------------


def _print_liveness(console: Console, ran: Ran) -> None:
    """Whether the cluster recovers once its faults are over."""
    assert ran.result is not None
    found, wanted = ran.result.liveness, ran.order.scenario.liveness
    if wanted is None:
        return
    _section(console, "Whether it recovers")
    if found is None:
        print_wrapped(console, "not asked, since the run ended early", 4, first=2)
        return
    core = ", ".join(found.core)
    if wanted.core == "drawn":
        print_wrapped(console, f"core: {core}; faults of others stay", 4, first=2, style="dim")
    for line in found.lines():
        print_wrapped(console, f"- {shown(line)}", 4, first=2)
    for each in found.violations:
        print_wrapped(console, f"- {shown(each)}", 4, first=2)


# End -------------------------------------------------------------------------------------------


def _lost(ran: Ran) -> Sequence[Any]:
    return () if ran.result is None else ran.result.verdict.lost


def _verdict(console: Console, ran: Ran, *, with_name: bool) -> None:
    word, style = _WORDS[ran.code]
    name = f"{shown(ran.order.name)}: " if with_name else "Verdict: "
    losses = ", ".join(f"{each.licence} {each.records}" for each in _lost(ran)) if with_name else ""
    print_line(console, (name, "bold"), (word, style), (f", lost {losses}" if losses else "", ""))
    reasons = [*ran.document.get("reasons", ()), *ran.error]
    for reason in reasons if ran.code is not Exit.OK else ():
        print_wrapped(console, f"- {shown(reason)}", 4, first=2)
    if ran.second is not None and not ran.second.is_same:
        for line in ran.second.lines:
            print_wrapped(console, shown(line), 4, first=2)


def _print_again(console: Console, ran: Ran, settings: Settings) -> None:
    """Digest, paths, and the line to paste; lines that are pasted are not wrapped."""
    rows: list[tuple[str, str]] = []
    if ran.document.get("digest"):
        count = ran.document.get("events")
        rows.append(("digest", f"{ran.document['digest']} of {count} events"))
    if ran.second is not None and ran.second.is_same:
        rows.append(("twice", f"the same with PYTHONHASHSEED={ran.second.hash_seed}"))
    if ran.folder is not None:
        if (ran.folder / TRACE).is_file():
            rows.append(("trace", _path(ran.folder / TRACE)))
        names = ran.document.get("brokers", ())
        if names:
            rows.append(("brokers", _braced(ran, names)))
            first = str(ran.folder / names[0])
            rows.append(("logs", command_line(["python", "-m", "storage.dump", first])))
    rows.append(("again", ran.order.replay(settings)))
    if ran.folder is not None and (ran.folder / TRACE).is_file():
        rows += views_of(ran.document, str(ran.folder))
    for name, text in rows:
        print_line(console, (f"{name:<8}", "dim"), (text, ""))


def _braced(ran: Ran, names: Sequence[str]) -> str:
    shown_names = [*names[:_BROKERS_SHOWN], *(["..."] if len(names) > _BROKERS_SHOWN else [])]
    joined = ",".join(shown_names)
    inside = "{" + joined + "}" if len(names) > 1 else joined
    return f"{_path(ran.folder)}/{inside}"


def _path(path: object) -> str:
    return shown(path)


def _section(console: Console, title: str) -> None:
    console.print()
    print_line(console, (title, "bold underline"))
