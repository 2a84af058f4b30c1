"""JUnit XML of runs, for servers that show tests.

Left out: text for people (``sim.cli.report``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from sim.cli.console import shown
from sim.cli.exits import Exit, UserError

if TYPE_CHECKING:
    from sim.cli.orders import Settings
    from sim.cli.ran import Ran

__all__ = ["junit", "write_junit"]


def write_junit(path: str, ran: Sequence[Ran], settings: Settings) -> None:
    """Write the file; one of an earlier time is replaced.

    Raises:
        UserError: it cannot be written.
    """
    try:
        Path(path).write_bytes(junit(ran, settings))
    except (OSError, ValueError) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise UserError(f'"{shown(path)}" cannot be written: {shown(said)}') from None


def junit(ran: Sequence[Ran], settings: Settings) -> bytes:
    """One test case a run, in a suite a file."""
    root = ElementTree.Element("testsuites", {"name": "leaderfall", **_counts(ran)})
    suites: dict[str, list[Ran]] = {}
    for each in ran:
        suites.setdefault(each.order.file, []).append(each)
    for file, runs in suites.items():
        suite = ElementTree.SubElement(root, "testsuite", {"name": shown(file), **_counts(runs)})
        for each in runs:
            _case(suite, each, settings)
    ElementTree.indent(root)
    text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _counts(ran: Sequence[Ran]) -> dict[str, str]:
    failures = sum(each.code in (Exit.FAILED, Exit.NOT_DETERMINISTIC) for each in ran)
    errors = sum(each.code != Exit.OK for each in ran) - failures
    seconds = sum(each.seconds for each in ran)
    return {
        "tests": str(len(ran)),
        "failures": str(failures),
        "errors": str(errors),
        "skipped": "0",
        "time": f"{seconds:.3f}",
    }


def _case(suite: ElementTree.Element, ran: Ran, settings: Settings) -> None:
    order = ran.order
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=shown(order.scenario.slug),
        name=shown(f"{order.name}, seed {order.scenario.seed}"),
        file=shown(order.file),
        time=f"{ran.seconds:.3f}",
    )
    reasons = [shown(each) for each in ran.document.get("reasons", ())]
    if ran.code is Exit.NOT_DETERMINISTIC:
        lines = () if ran.second is None else ran.second.lines
        _problem(case, "failure", "not deterministic", [shown(each) for each in lines])
    elif ran.code is Exit.FAILED:
        _problem(case, "failure", reasons[0] if reasons else "failed", reasons)
    elif ran.code is not Exit.OK:
        told = [shown(each) for each in ran.error] or reasons
        if ran.second is not None:
            told += [shown(each) for each in ran.second.lines]
        _problem(case, "error", told[0] if told else ran.code.name.lower(), told)
    out = [f"digest {ran.document.get('digest')}", f"replay {order.replay(settings)}"]
    if ran.folder is not None:
        out.append(f"folder {shown(ran.folder)}")
    ElementTree.SubElement(case, "system-out").text = "\n".join(out)


def _problem(case: ElementTree.Element, tag: str, message: str, lines: Sequence[str]) -> None:
    ElementTree.SubElement(case, tag, message=message).text = "\n".join(lines)
