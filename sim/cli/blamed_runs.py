"""What ``blame`` is asked about: a run folder, a trace in one, or a scenario file.

A run folder says what ran: ``scenario.toml`` is the file as it was read, ``result.json`` has
variant, seed, overrides and digest.

Left out: running it again (``sim.blame``).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from attrs import evolve, frozen

from sim.cli.console import shown
from sim.cli.exits import UserError
from sim.cli.replicas import replica_of
from sim.cli.run_folders import RESULT, SCENARIO, TRACE
from sim.shell_words import command_line

if TYPE_CHECKING:
    from sim.scenario.model import Scenario
    from sim.scenario.problems import Problem

__all__ = ["BlamedRun", "FileProblems", "blamed_run", "possible_runs"]

_BYTES_MAX: Final = 64 << 20
_RUNS_MAX: Final = 10
_SEED_MAX: Final = 2**63 - 1


class FileProblems(Exception):
    """A scenario file, or what was set in it, is wrong."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__(f"{len(problems)} problems")
        self.problems = list(problems)


@frozen
class BlamedRun:
    """A run that can be made again.

    Attributes:
        scenario: as it ran, variant and overrides applied, with its seed.
        folder: of the run; None for a scenario file.
        digest, version: of that run, and of the Leaderfall that made it.
        events_max: what it had; None for the default.
        again: the words of the command that runs it.
        is_strict: whether it excused nothing.
    """

    scenario: Scenario
    folder: Path | None
    digest: str | None
    version: str
    events_max: int | None
    again: tuple[str, ...]
    is_strict: bool = False


def blamed_run(
    name: str,
    *,
    variant: str | None,
    seed: int | None,
    sets: Sequence[str],
    replica: str | None = None,
) -> BlamedRun:
    """The run that is meant.

    Args:
        variant, seed, sets: of a scenario file; a run folder has its own.
        replica: what makes brokers, as ``MODULE:NAME``; of a run folder that which it had.

    Raises:
        UserError: there is no such run, or it cannot be made again.
        FileProblems: the scenario file is wrong.
    """
    found = possible_runs(name, variant=variant, seed=seed, sets=sets, replica=replica)
    if len(found) > 1:
        names = ", ".join(shown(each.scenario.variant) for each in found)
        raise UserError(
            "The file has several variants; --variant names one.", f"There are {names}."
        )
    return found[0]


def possible_runs(
    name: str,
    *,
    variant: str | None,
    seed: int | None,
    sets: Sequence[str],
    replica: str | None = None,
) -> list[BlamedRun]:
    """The runs that may be meant: one, or those of all variants of a file where none is named.

    Args:
        variant, seed, sets: of a scenario file; a run folder has its own.

    Args:
        variant, seed, sets, replica: as for ``blamed_run``.

    Raises:
        UserError: there is no such run, or it cannot be made again.
        FileProblems: the scenario file is wrong.
    """
    folder = _folder(name)
    if folder is None:
        return _of_file(name, variant, seed, sets, replica)
    given = [
        option
        for option, value in (("--variant", variant), ("--seed", seed), ("--set", sets or None))
        if value is not None
    ]
    if given:
        verb = "goes" if len(given) == 1 else "go"
        raise UserError(
            f"{' and '.join(given)} {verb} with a scenario file; this is a run, which has its own."
        )
    return [_of_folder(folder, replica)]


# Run folders -------------------------------------------------------------------------------------


def _folder(name: str) -> Path | None:
    """The run folder that is meant; None where it is a scenario file."""
    path = Path(name)
    try:
        if path.is_dir():
            if (path / RESULT).is_file() or (path / TRACE).is_file():
                return path
            if any(each.suffix == ".toml" for each in sorted(path.iterdir())):
                return None
            raise _no_run(path)
        if path.is_file() and (path.suffix == ".jsonl" or _is_trace(path)):
            return _with_trace(path)
    except (OSError, ValueError) as error:
        raise UserError(f'"{shown(name)}" cannot be read: {shown(error)}') from None
    return None


def _is_trace(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(14).startswith(b'{"leaderfall"')


def _no_run(path: Path) -> UserError:
    inside = [each.parent.name for each in sorted(path.glob(f"*/{RESULT}"))]
    hints = [f"Runs in it: {', '.join(map(shown, inside[:_RUNS_MAX]))}."] if inside else []
    return UserError(f'The folder "{shown(path)}" is no run folder: it has no {RESULT}.', *hints)


def _with_trace(path: Path) -> Path:
    """The run folder that a trace lies in; the trace must be whole."""
    if not (path.parent / RESULT).is_file():
        raise UserError(
            f'"{shown(path)}" lies in no run folder, and a trace alone does not say what ran.',
            "Ask about the scenario file: leaderfall blame FILE --variant NAME --seed N",
        )
    return path.parent


def _footer_digest(path: Path) -> str:
    from sim.trace.reader import TraceError, TraceReader

    try:
        reader = TraceReader(path)
    except TraceError as error:
        raise UserError(shown(error)) from None
    except OSError as error:
        raise UserError(f'"{shown(path)}" cannot be read: {shown(error)}') from None
    if reader.footer is None:
        raise UserError(
            f'The trace "{shown(path)}" was cut short: it has no end, so the run had no verdict.'
        )
    return reader.footer.digest


def _of_folder(folder: Path, replica: str | None) -> BlamedRun:
    from sim.scenario.effective import effective
    from sim.scenario.problems import ScenarioError
    from sim.scenario.reading import parse_scenario

    document = _document(folder / RESULT)
    variant, seed, digest = (document.get(key) for key in ("variant", "seed", "digest"))
    text = _text(folder, document)
    if digest is None:
        verdict = shown(document.get("verdict"))
        raise UserError(f'The run in "{shown(folder)}" broke off ({verdict}): it has no verdict.')
    if document.get("replica") != replica:
        # No file may say which code is run.
        raise UserError(
            f'The run in "{shown(folder)}" had the brokers of '
            f"{shown(document.get('replica') or 'Leaderfall')}; --replica must name the same."
        )
    overrides = _overrides(document)
    is_seed = type(seed) is int and 0 <= seed <= _SEED_MAX
    is_known = isinstance(variant, str | None) and is_seed and isinstance(digest, str)
    if overrides is None or not is_known:
        raise UserError(f'"{shown(folder / RESULT)}" does not say what ran.')
    if (folder / TRACE).exists() and _footer_digest(folder / TRACE) != digest:
        raise UserError(
            f'{RESULT} and {TRACE} in "{shown(folder)}" are of two runs: their digests differ.'
        )
    try:
        scenario = effective(
            parse_scenario(text, str(folder / SCENARIO)), variant, overrides, seed=seed
        )
    except ScenarioError as error:
        raise FileProblems(error.problems) from None
    scenario = evolve(scenario, make_broker=replica_of(replica))
    events_max = document.get("events_max")
    return BlamedRun(
        scenario,
        folder,
        digest,
        shown(document.get("leaderfall")),
        events_max if type(events_max) is int and events_max > 0 else None,
        ("leaderfall", "step", str(folder)),
        document.get("is_strict") is True,
    )


def _document(path: Path) -> dict[str, Any]:
    try:
        if not path.is_file():
            raise UserError(f'There is no "{shown(path)}", which says what ran.')
        if path.stat().st_size > _BYTES_MAX:
            raise UserError(f'"{shown(path)}" is larger than {_BYTES_MAX:,} bytes.')
        found = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as error:
        raise UserError(f'"{shown(path)}" cannot be read: {shown(error)}') from None
    if not isinstance(found, dict):
        raise UserError(f'"{shown(path)}" is no result of a run.')
    return found


def _text(folder: Path, document: dict[str, Any]) -> str:
    path = folder / SCENARIO
    if not path.is_file():
        words = ["leaderfall", "blame", str(document.get("file", "FILE"))]
        if isinstance(document.get("variant"), str):
            words += ["--variant", document["variant"]]
        words += ["--seed", str(document.get("seed", "N"))]
        raise UserError(
            f'The run folder "{shown(folder)}" has no {SCENARIO}: an older Leaderfall wrote it.',
            f"Ask about the file: {command_line(words)}",
        )
    try:
        if path.stat().st_size > _BYTES_MAX:
            raise UserError(f'"{shown(path)}" is larger than {_BYTES_MAX:,} bytes.')
        text = path.read_bytes().decode("utf-8")
    except (OSError, ValueError) as error:
        raise UserError(f'"{shown(path)}" cannot be read: {shown(error)}') from None
    digest = blake2b(text.encode("utf-8"), digest_size=16).hexdigest()
    if digest != document.get("file_digest"):
        raise UserError(f'"{shown(path)}" is not the file that ran: it was changed since.')
    return text


def _overrides(document: dict[str, Any]) -> list[tuple[str, Any]] | None:
    known = document.get("overrides", [])
    if not isinstance(known, list):
        return None
    is_good = all(
        isinstance(each, list) and len(each) == 2 and isinstance(each[0], str) for each in known
    )
    return [(path, value) for path, value in known] if is_good else None


# Scenario files ----------------------------------------------------------------------------------


def _of_file(
    name: str, variant: str | None, seed: int | None, sets: Sequence[str], replica: str | None
) -> list[BlamedRun]:
    from sim.cli.files import read_all, scenario_paths
    from sim.cli.orders import Settings, orders_of, parse_overrides

    paths = scenario_paths([name])
    if len(paths) > 1:
        raise UserError(f'"{shown(name)}" has {len(paths)} scenario files; name one.')
    overrides, problems = parse_overrides(sets)
    scenarios, wrong = read_all(paths)
    variants = [] if variant is None else [variant]
    orders, more = orders_of(
        scenarios, seed=seed, variants=variants, overrides=overrides, texts=sets
    )
    problems = [*problems, *wrong, *more]
    if problems:
        raise FileProblems(problems)
    make_broker, settings = replica_of(replica), Settings(replica=replica)
    return [
        BlamedRun(
            order.of_replica(make_broker).scenario,
            None,
            None,
            "",
            None,
            tuple(order.words(settings)),
        )
        for order in orders
    ]
