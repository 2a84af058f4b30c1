"""Carrying out one order: a run folder, the run, its result, and what may go wrong on the way.

Left out: what is printed (``sim.cli.report``).
"""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from sim.blame.loss_tests import tested
from sim.cli.console import shown
from sim.cli.documents import broken_off, document_of
from sim.cli.exits import Exit, UserError
from sim.cli.orders import Order, Settings
from sim.cli.ran import Ran
from sim.cli.run_folders import RESULT, SCENARIO, TRACE, RunFolder, begin, refused

if TYPE_CHECKING:
    from sim.running.scenario_run import Result

__all__ = ["carry_out"]

_HOST_ERRORS: Final = frozenset(
    {
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EROFS,
    }
)


def carry_out(order: Order, settings: Settings) -> Ran:
    """Run it.

    Raises:
        UserError: the run folder cannot be made, or written to.
    """
    scenario = order.scenario
    variant = "" if scenario.variant is None else _slug(scenario.variant)
    folder = begin(settings.out, scenario.slug, scenario.seed, variant)
    began = time.monotonic()
    try:
        result = _run(order, settings, folder)
    except KeyboardInterrupt:
        ran = _broken(order, settings, folder, Exit.INTERRUPTED, "interrupted")
    except Exception as error:  # noqa: BLE001 - whatever a run raises is a defect, and is told as one
        host_error = _of_host(error)
        if host_error is not None:
            raise refused(folder.path, host_error) from None
        ran = _broken(order, settings, folder, Exit.INTERNAL, "error", error)
    else:
        document = document_of(order, settings, result)
        _write(folder.path / SCENARIO, scenario.text)
        ran = Ran(order, Exit(result.verdict.exit_code), document=document, result=result)
        _write_result(folder, document)
        ran.folder = folder.publish(document)
    ran.seconds = time.monotonic() - began
    return ran


def _slug(text: str) -> str:
    from sim.scenario.names import slug

    return slug(text)


def _run(order: Order, settings: Settings, folder: RunFolder) -> Result:
    from sim.running.interpreter import EVENTS_MAX
    from sim.running.scenario_run import run_scenario
    from sim.version import leaderfall_version

    if settings.disk == "real":
        folder.nodes.mkdir()
    return run_scenario(
        order.scenario,
        root=folder.nodes if settings.disk == "real" else None,
        level=settings.level,
        path=folder.trace,
        version=leaderfall_version(),
        is_paranoid=settings.is_paranoid,
        events_max=settings.events_max or EVENTS_MAX,
        tests_losses=tested,
        is_strict=settings.is_strict,
    )


def _of_host(error: Exception) -> OSError | None:
    """What the machine itself refuses, and not a simulated disk: room, files that are open."""
    from sim.real_files import HostFailed
    from storage.errors import StorageError

    found: BaseException | None = error
    if isinstance(error, HostFailed):
        # Said by the storage, of files below a simulated disk.
        found = error.__cause__
    elif isinstance(error, StorageError):
        return None
    while found is not None and not isinstance(found, OSError):
        found = found.__cause__
    return found if found is not None and found.errno in _HOST_ERRORS else None


def _broken(
    order: Order,
    settings: Settings,
    folder: RunFolder,
    code: Exit,
    verdict: str,
    error: Exception | None = None,
) -> Ran:
    """A run without a verdict: what there is of it is kept, and said."""
    document = broken_off(order, settings, verdict, code)
    lines: list[str] = []
    if error is not None:
        from traceback import format_exception

        text = "".join(format_exception(error))
        document["error"] = text
        lines = _said(error)
        _write(folder.path / "traceback.txt", text)
    _write_result(folder, document)
    try:
        place = folder.publish(document, ending=f".{verdict}")
    except UserError as refusal:
        return Ran(order, code, document=document, error=(*lines, *refusal.lines))
    if error is not None:
        lines.append(f"trace      {shown(place / TRACE)}")
        lines.append(f"traceback  {shown(place / 'traceback.txt')}")
    return Ran(order, code, folder=place, document=document, error=tuple(lines))


def _said(error: Exception) -> list[str]:
    """A defect, for people."""
    from sim.running.agreement import OracleFault

    if not isinstance(error, OracleFault):
        return [
            f"internal error: {type(error).__name__}: {shown(error)}",
            "This is a defect of Leaderfall, not of the cluster that it simulates.",
        ]
    return [
        "internal error: what the clients saw and what the judge says cannot both be right",
        *(shown(each) for each in error.disagreements),
        "This is a defect of Leaderfall's judgement; what the cluster did is undecided.",
    ]


def _write_result(folder: RunFolder, document: dict[str, Any]) -> None:
    _write(folder.path / RESULT, json.dumps(document, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError as error:
        raise refused(path, error) from None
