"""Failing cases on disk: a scenario file and its trace, and what a failing test prints.

``save_case`` runs the case once more, from the file that it writes, so what is told of it is what
``leaderfall run`` shows. The file has everything applied and the seed written in. A case that does
not fail again in the same way is saved too, and the message says so.

Each test has a folder of its own, named for it; what an earlier run left there is replaced. Files
are written beside it first and then renamed, so a reader never sees half of one.

Left out: making a case smaller; finding one.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from sim.blame.loss_tests import tested
from sim.present.story import Story
from sim.present.strips import strips
from sim.present.text import strips_text
from sim.running.findings import Examined, Finding, examine
from sim.scenario.build import replica_name
from sim.scenario.model import Scenario
from sim.scenario.names import is_device, slug
from sim.scenario.problems import ScenarioError
from sim.scenario.reading import parse_scenario
from sim.scenario.writing import applied_document, scenario_text
from sim.shell_words import command_line
from sim.trace.lines import Level
from sim.trace.reader import TraceError, TraceReader
from sim.version import leaderfall_version
from storage.inspection.escaping import safe

if TYPE_CHECKING:
    from sim.trace.writer import Trace
    from sim.world import World

__all__ = ["FOLDER", "SavedCase", "folder_name", "save_case"]

FOLDER: Final = Path(".leaderfall/failures")
"""Where failing cases go, below the folder in which tests are run."""

_SCENARIO: Final = "scenario.toml"
_TRACE: Final = "trace.jsonl"
_NAME_CHARS: Final = 80
_FINDINGS_SHOWN: Final = 5
_TEXT_CHARS: Final = 500
_PICTURE_LINES: Final = 40
_FILE_LINES: Final = 200
_HASH_CHARS: Final = 8


@frozen(kw_only=True)
class SavedCase:
    """A failing case, as it was saved.

    Attributes:
        name: as given, of the test.
        scenario, trace: the files; None where they could not be written.
        findings: what is wrong with the run of the saved file; empty if it passed.
        digest: of that run; None where it broke off.
        replay: the command that does it again.
        picture: every replica's log at the end, as plain text; empty where no event tells of any.
        notes: what whoever reads this must know: that it could not be saved, that it failed
            otherwise or not at all when it was run again.
        text: of the scenario file.
    """

    name: str
    scenario: Path | None
    trace: Path | None
    findings: tuple[Finding, ...]
    digest: str | None
    replay: str
    picture: str
    notes: tuple[str, ...]
    text: str

    @property
    def identities(self) -> frozenset[tuple[str, str]]:
        return frozenset(each.identity for each in self.findings)

    def message(self) -> str:
        """What a failing test prints; the last line is the command to paste."""
        lines = [f"{safe(self.name)}: {_count(len(self.findings))} wrong"]
        lines += [f"- {each.kind}: {_short(each.text)}" for each in self.findings[:_FINDINGS_SHOWN]]
        if len(self.findings) > _FINDINGS_SHOWN:
            lines.append(f"- and {len(self.findings) - _FINDINGS_SHOWN} more")
        lines += [f"NOTE: {safe(each)}" for each in self.notes]
        if self.picture:
            lines += ["", "The logs at the end", *_first(self.picture.splitlines(), _PICTURE_LINES)]
        lines.append("")
        if self.scenario is None:
            lines += ["The scenario, which is nowhere else:", ""]
            lines += _first(self.text.splitlines(), _FILE_LINES)
            lines += ["", "Put it into a file, then:"]
        else:
            lines.append(f"scenario  {safe(str(self.scenario))}")
            lines.append(f"trace     {safe(str(self.trace))}")
        lines.append(f"replay    {self.replay}")
        return "\n".join(lines)


def save_case(
    scenario: Scenario,
    *,
    name: str,
    folder: Path | str = FOLDER,
    examined: Examined | None = None,
    digest: str | None = None,
    is_strict: bool = False,
    **options: Any,
) -> SavedCase:
    """Run a failing case once more from a file, and keep file and trace.

    Args:
        scenario: one variant, everything applied.
        name: of the test, anything; ``folder_name`` makes a folder's name of it.
        folder: where the case's own folder is made.
        examined: what the run gave that failed; the second is compared with it.
        digest: of that run, where ``examined`` has no result.
        is_strict: as for ``findings``.
        options: of ``run_scenario``, as they were; where it writes, and how much, is decided here.

    Raises:
        ValueError: the run had something left out, which no command line can do again.
        KeyboardInterrupt: of the user; nothing is left behind.
    """
    if options.get("without") is not None:
        raise ValueError("a run with something left out is no case of its own")
    for key in ("root", "level", "path", "keeps_lines", "version"):
        options.pop(key, None)
    options.setdefault("tests_losses", tested)
    seed = options.pop("seed", None)
    text = scenario_text(applied_document(scenario, seed=seed))
    folder = Path(folder)
    place = folder / folder_name(name)
    notes: list[str] = []
    replay = _replay(place, scenario, seed, options, notes, is_strict=is_strict)
    try:
        read = parse_scenario(text, str(place / _SCENARIO))
    except ScenarioError as error:
        notes.append(f"this scenario cannot be written as a file: {error.problems[0].text}")
        read = scenario if seed is None else evolve(scenario, seed=seed)
    read = evolve(read, make_broker=scenario.make_broker)
    text = f"# {safe(name)}\n# {safe(replay)}\n\n{text}"
    run = _Again(read, is_strict, options)
    is_saved = _save(run, folder, place, text, notes)
    notes += _differences(examined, digest, run.found)
    result = run.found.result
    return SavedCase(
        name=name,
        scenario=place / _SCENARIO if is_saved else None,
        trace=place / _TRACE if is_saved else None,
        findings=run.found.findings,
        digest=None if result is None else result.digest,
        replay=replay,
        picture=run.picture,
        notes=tuple(notes),
        text=text,
    )


def folder_name(name: str) -> str:
    """The folder of a test: its name, if that can be one, else what can be kept of it and a hash.

    Two names have two folders, also where small and capital letters are the same.
    """
    found = slug(name)
    if found == name and len(name) <= _NAME_CHARS and not is_device(found):
        return found
    digest = sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:_HASH_CHARS]
    return f"{found[:_NAME_CHARS].rstrip('.-')}-{digest}"


def _replay(
    place: Path,
    scenario: Scenario,
    seed: int | None,
    options: dict[str, Any],
    notes: list[str],
    *,
    is_strict: bool,
) -> str:
    file = str(place / _SCENARIO)
    words = ["leaderfall", "run", f"./{file}" if file.startswith("-") else file]
    words += ["--seed", str(scenario.seed if seed is None else seed)]
    if "events_max" in options:
        words += ["--events-max", str(options["events_max"])]
    if is_strict:
        words.append("--strict")
    if scenario.make_broker is not None:
        name = replica_name(scenario.make_broker)
        words += ["--replica", name]
        if not all(part.isidentifier() for part in name.replace(":", ".").split(".")):
            notes.append(f"the command line cannot name {name}: move it to the top of a module")
    return command_line([*words, *(["--paranoid"] if options.get("is_paranoid") else [])])


# The second run ----------------------------------------------------------------------------------


class _Again:
    """The second run, and what there is of it.

    Attributes:
        found: what is wrong with it.
        picture: the logs at its end.
    """

    found: Examined
    picture: str

    def __init__(self, scenario: Scenario, is_strict: bool, options: dict[str, Any]) -> None:
        self._scenario = scenario
        self._is_strict = is_strict
        self._options = options

    def go(self, path: Path | None) -> None:
        """Run, with the trace in a file or in memory."""
        traces: list[Trace] = []
        told: Callable[[World], None] | None = self._options.get("on_world")

        def on_world(world: World) -> None:
            traces.append(world.trace)
            if told is not None:
                told(world)

        options = self._options | {"on_world": on_world, "version": leaderfall_version()}
        self.found = examine(
            self._scenario,
            is_strict=self._is_strict,
            level=Level.FULL,
            path=path,
            keeps_lines=path is None,
            **options,
        )
        self.picture = ""
        with suppress(TraceError, OSError, ValueError):
            self.picture = _picture(path, traces)


def _picture(path: Path | None, traces: Sequence[Trace]) -> str:
    if path is not None:
        reader = TraceReader(path)
        story = Story(reader.header, reader, reader.footer)
    elif traces:
        # The first world is the one that is told of; others look what would have been.
        story = Story(None, traces[0].events(), traces[0].footer)
    else:
        return ""
    return strips_text(strips(story)) if story.last_n else ""


def _save(run: _Again, folder: Path, place: Path, text: str, notes: list[str]) -> bool:
    """Run into files; if the file system refuses, run without, and note why."""
    try:
        with _beside(folder) as temporary:
            run.go(temporary / _TRACE)
            if isinstance(run.found.error, OSError):
                raise run.found.error
            (temporary / _SCENARIO).write_text(text, encoding="utf-8", errors="backslashreplace")
            place.mkdir(exist_ok=True)
            for name in (_SCENARIO, _TRACE):
                (temporary / name).replace(place / name)
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        notes.append(f"{place} could not be written, so this case is not saved: {said}")
        run.go(None)
        return False
    return True


@contextmanager
def _beside(folder: Path) -> Iterator[Path]:
    """A folder beside those of the tests, which is gone in the end."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = Path(mkdtemp(prefix=".saving-", dir=folder))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _differences(first: Examined | None, digest: str | None, second: Examined) -> list[str]:
    """What the second run did not do as the first one had."""
    if first is None:
        return [] if second.findings else ["nothing was wrong when this was run from its file"]
    if first.result is not None:
        digest = first.result.digest
    known = None if second.result is None else second.result.digest
    is_same_run = digest is None or known is None or digest == known
    # A second run may be judged by more, and find more.
    is_same_failure = first.identities <= second.identities
    if is_same_failure and is_same_run:
        return []
    ending = (
        "one of the two runs is not deterministic, or depends on something outside the scenario"
    )
    if not is_same_run:
        ending += f" (digests {digest} and {known})"
    elif digest is not None and digest == known:
        ending = "both had the same events, so it is their judgement that differs"
    if is_same_failure:
        return [f"FLAKY: it fails in the same way from its file, by other events: {ending}"]
    was, now = (_names(each.identities) for each in (first, second))
    return [f"FLAKY: it failed by {was}, and by {now} when it was run from its file: {ending}"]


# Words -------------------------------------------------------------------------------------------


def _names(identities: frozenset[tuple[str, str]]) -> str:
    return ", ".join(f"{kind} {name}" for kind, name in sorted(identities)) or "nothing"


def _count(number: int) -> str:
    return {0: "nothing is", 1: "one thing is"}.get(number, f"{number} things are")


def _short(text: str) -> str:
    text = safe(text)
    return text if len(text) <= _TEXT_CHARS else text[: _TEXT_CHARS - 1] + "…"


def _first(lines: Sequence[str], lines_max: int) -> list[str]:
    if len(lines) <= lines_max:
        return list(lines)
    return [*lines[: lines_max - 1], f"  … {len(lines) - lines_max + 1} more lines"]
