"""What ``shrink`` writes: the scenario file with a head that says what it shows, its trace, and the
files of what else was found. And whether the result fails again, everywhere.

Left out: the search (``sim.shrinking``).
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

from attrs import evolve, frozen

from sim.blame.loss_tests import tested
from sim.cli.console import shown
from sim.cli.exits import UserError
from sim.cli.twice import fresh_process, other_hash_seed
from sim.failures import FOLDER, folder_name
from sim.running.findings import Examined, Finding, examine
from sim.running.interpreter import EVENTS_MAX
from sim.scenario.durations import show_duration
from sim.scenario.names import slug
from sim.scenario.reading import parse_scenario
from sim.shell_words import command_line
from sim.trace.lines import Level
from sim.version import leaderfall_version

if TYPE_CHECKING:
    from sim.cli.blamed_runs import BlamedRun
    from sim.scenario.model import Scenario
    from sim.shrinking.shrinker import Shrunk

__all__ = ["Again", "Case", "require_free", "save", "sizes"]

_SCENARIO: Final = "scenario.toml"
_TRACE: Final = "trace.jsonl"


@frozen
class Again:
    """What a run of the file is to be told beside it.

    Attributes:
        replica: what makes brokers, as ``MODULE:NAME``; None for ours.
        events_max: None for the default.
        is_strict: nothing is excused.
    """

    replica: str | None = None
    events_max: int | None = None
    is_strict: bool = False

    def words(self, file: str) -> list[str]:
        """The command that runs a file, without our name."""
        words = ["run", f"./{file}" if file.startswith("-") else file]
        if self.events_max is not None:
            words += ["--events-max", str(self.events_max)]
        if self.is_strict:
            words.append("--strict")
        return words if self.replica is None else [*words, "--replica", self.replica]

    def replay(self, file: Path) -> str:
        """The same as a line to paste."""
        return command_line(["leaderfall", *self.words(str(file))])


@frozen
class Case:
    """A shrunk scenario on disk.

    Attributes:
        trace: its trace; None beside a file that was asked for by name.
        finds: files of what else was found.
        replay: the command that runs it.
        verified: how it was run again, and failed again in the same way.
        problems: how it was not.
    """

    file: Path
    trace: Path | None
    finds: tuple[Path, ...]
    digest: str | None
    replay: str
    verified: tuple[str, ...]
    problems: tuple[str, ...]


def require_free(output: str | None) -> None:
    """Refuse a file that is there already, or cannot be, before any work is done.

    Args:
        output: as asked for; None for the folder of failures.

    Raises:
        UserError: it is, or there is no place for it.
    """
    path = FOLDER if output is None else Path(output)
    if "\0" in str(path):
        raise UserError(f'"{shown(path)}" is no name of a file: it has a null byte.')
    try:
        if output is not None and (path.exists() or path.is_symlink()):
            raise UserError(f'"{shown(output)}" is there already; nothing is overwritten.')
        if output is not None and not path.parent.is_dir():
            raise UserError(f'There is no folder "{shown(path.parent)}" for "{shown(output)}".')
        above = path.parent if output is not None else path
        while not above.exists() and above != above.parent:
            above = above.parent
        if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
            raise UserError(f'"{shown(path)}" cannot be written: "{shown(above)}" takes no files.')
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(path)}" is no name of a file: {shown(said)}') from None


def save(found: Shrunk, run: BlamedRun, output: str | None, again: Again) -> Case:
    """Write the result and what else was found, then run the file again.

    Raises:
        UserError: it cannot be written.
    """
    again = evolve(again, is_strict=found.goal.is_strict)
    scenario = run.scenario
    name = slug(scenario.name)
    if scenario.variant is not None:
        name += f"-{slug(scenario.variant)}"
    home = FOLDER / folder_name(f"{name}-shrunk")
    file = home / _SCENARIO if output is None else Path(output)
    trace = home / _TRACE if output is None else None
    replay = again.replay(file)
    _write(file, "\n".join(_head(found, run, replay)) + "\n\n" + found.text)
    finds = [_save_find(name, each.finding, each.text, run, again) for each in found.finds]
    if found.ended == "interrupted":
        return Case(file, None, tuple(finds), None, replay, (), ())
    digest, verified, problems = _verify(found, run.scenario, file, trace, again)
    has_trace = trace is not None and trace.is_file()
    return Case(
        file,
        trace if has_trace else None,
        tuple(finds),
        digest,
        replay,
        tuple(verified),
        tuple(problems),
    )


def _save_find(name: str, finding: Finding, text: str, run: BlamedRun, again: Again) -> Path:
    what = slug(f"{finding.kind} {finding.name}")
    file = FOLDER / folder_name(f"{name}-{what}") / _SCENARIO
    lines = [
        f"# {shown(finding.kind)} {shown(finding.name)}",
        f"# {shown(finding.text)}",
        f"# Found by leaderfall {leaderfall_version()} while it shrank {_origin(run)}",
        f"# {shown(again.replay(file))}",
    ]
    _write(file, "\n".join(lines) + "\n\n" + text)
    return file


def _write(file: Path, text: str) -> None:
    """Write a file, its folder too; beside it first, so nobody sees half of it."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(mkdtemp(prefix=".saving-", dir=file.parent))
        try:
            new = folder / _SCENARIO
            new.write_text(text, encoding="utf-8", errors="backslashreplace")
            new.replace(file)
        finally:
            shutil.rmtree(folder, ignore_errors=True)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(file)}" cannot be written: {shown(said)}') from None


# Its head ----------------------------------------------------------------------------------------


def _origin(run: BlamedRun) -> str:
    scenario = run.scenario
    file = scenario.file if run.folder is None else str(run.folder)
    variant = "" if scenario.variant is None else f", variant {shown(scenario.variant)}"
    return f"{shown(file)}{variant}, seed {scenario.seed}"


def _head(found: Shrunk, run: BlamedRun, replay: str) -> Iterator[str]:
    finding = found.finding
    yield f"# {shown(finding.kind)} {shown(finding.name)}"
    yield f"# {shown(finding.text)}"
    yield f"# Shrunk by leaderfall {leaderfall_version()} from {_origin(run)}"
    for set_path, value in run.scenario.overrides:
        yield f"# with --set {shown(set_path)}={shown(value)}"
    changed = [f"{was} -> {now} {what}" for what, was, now in sizes(found) if was != now]
    if changed:
        yield f"# {', '.join(changed)}"
    if found.ended != "minimal":
        yield "# The search did not come to its end; there may be a smaller one."
    if found.goal.is_strict:
        yield "# The file excuses or expects this: without --strict its run may pass."
    yield f"# {shown(replay)}"


def sizes(found: Shrunk) -> Iterator[tuple[str, str, str]]:
    """What is counted, before and after."""
    before, after = found.before, found.after
    for what, key in (
        ("faults", "faults"),
        ("steps", "steps"),
        ("records", "records"),
        ("workloads", "workloads"),
        ("topics", "topics"),
        ("brokers", "brokers"),
        ("expectations", "expects"),
    ):
        if getattr(before, key) or getattr(after, key):
            yield what, str(getattr(before, key)), str(getattr(after, key))
    yield "of virtual time", show_duration(before.until_us), show_duration(after.until_us)
    yield "lines", str(before.lines), str(after.lines)


# Running it again --------------------------------------------------------------------------------


def _verify(
    found: Shrunk, origin: Scenario, file: Path, trace: Path | None, again: Again
) -> tuple[str | None, list[str], list[str]]:
    """Run the file as it was written: in memory, on real files, and in a fresh process."""
    read = parse_scenario(file.read_text(encoding="utf-8"))
    scenario = evolve(read, make_broker=origin.make_broker)
    verified: list[str] = []
    problems: list[str] = []
    root = Path(mkdtemp(prefix="leaderfall-shrink-"))
    try:
        first = _run(scenario, again, trace=None if trace is None else root / _TRACE)
        _compare(found, "in memory", first, None, verified, problems)
        if trace is not None and (root / _TRACE).is_file():
            _move(root / _TRACE, trace)
        nodes = root / "nodes"
        nodes.mkdir()
        second = _run(scenario, again, root=nodes)
        _compare(found, "on real files", second, first, verified, problems)
        digest = None if first.result is None else first.result.digest
        if digest is not None:
            now = _fresh_digest(file, root / "runs", again)
            words = "in a fresh process"
            if now == digest:
                verified.append(words)
            else:
                problems.append(f"{words} it has the digest {now}, not {digest}")
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return digest, verified, problems


def _move(source: Path, target: Path) -> None:
    """To where the scenario is, over what an earlier search has left there."""
    try:
        shutil.copyfile(source, target)
    except OSError as error:
        said = error.strerror or str(error)
        raise UserError(f'"{shown(target)}" cannot be written: {shown(said)}') from None


def _run(
    scenario: Scenario, again: Again, *, root: Path | None = None, trace: Path | None = None
) -> Examined:
    return examine(
        scenario,
        is_strict=again.is_strict,
        level=Level.DIGEST if trace is None else Level.FULL,
        path=trace,
        version=leaderfall_version(),
        root=root,
        events_max=again.events_max or EVENTS_MAX,
        tests_losses=tested,
    )


def _compare(
    found: Shrunk,
    words: str,
    now: Examined,
    first: Examined | None,
    verified: list[str],
    problems: list[str],
) -> None:
    if found.goal.finding(now) is None:
        names = ", ".join(" ".join(each) for each in sorted(now.identities)) or "nothing"
        problems.append(f"{words} it shows {names}")
        return
    if first is not None and first.result is not None and now.result is not None:
        if first.result.digest != now.result.digest:
            problems.append(
                f"{words} it has the digest {now.result.digest}, not {first.result.digest}"
            )
            return
    verified.append(words)


def _fresh_digest(file: Path, out: Path, again: Again) -> str | None:
    words = [*again.words(str(file.absolute())), "--json", "-q", "--disk", "memory"]
    words += ["--trace-level", "digest", "--out", str(out)]
    done = fresh_process(words, other_hash_seed())
    try:
        found = json.loads(done.stdout)["runs"][0]["digest"]
    except (ValueError, KeyError, IndexError, TypeError):
        return None
    return None if found is None else str(found)
