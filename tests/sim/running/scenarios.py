"""Small scenarios for tests: their texts, their runs, and what the traces of these say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sim.running.scenario_run import Result, run_scenario
from sim.scenario.effective import effective
from sim.scenario.model import Scenario
from sim.scenario.reading import parse_scenario
from sim.trace.kinds import Kind
from sim.trace.lines import Event

SECOND_US = 1_000_000
TOPIC = """
[[topic]]
name = "orders"
replicas = [["b1", "b2", "b3"]]
"""


def text_of(
    *steps: str, until: str = "10s", topic: str = TOPIC, cluster: str = "", more: str = ""
) -> str:
    """A scenario whose steps are given line by line: ``'at = "1s"; crash = "b1"'``."""
    head = f'schema = 1\nname = "small"\nuntil = "{until}"\n'
    tables = "".join("[[step]]\n" + step.replace("; ", "\n") + "\n" for step in steps)
    return f"{head}[cluster]\n{cluster}\n{topic}\n{tables}\n{more}\n"


def scenario(*steps: str, variant: str | None = None, **parts: str) -> Scenario:
    return effective(parse_scenario(text_of(*steps, **parts)), variant)


def ran(*steps: str, variant: str | None = None, **parts: Any) -> Result:
    """What came of it; events are kept. Arguments of ``run_scenario`` go there."""
    own = {key: parts.pop(key) for key in list(parts) if key in _OF_RUN}
    own.setdefault("keeps_lines", True)
    return run_scenario(scenario(*steps, variant=variant, **parts), **own)


_OF_RUN = frozenset("seed root level path keeps_lines is_paranoid events_max on_world".split())


def passed(*steps: str, **parts: Any) -> Result:
    """It has passed."""
    result = ran(*steps, **parts)
    assert result.verdict.word == "passed", result.verdict.reasons
    assert result.verdict.exit_code == 0
    return result


def failed(*steps: str, **parts: Any) -> str:
    """It has failed, for one reason: which."""
    result = ran(*steps, **parts)
    assert result.verdict.word == "failed"
    assert result.verdict.exit_code == 1
    assert len(result.verdict.reasons) == 1, result.verdict.reasons
    return result.verdict.reasons[0]


def of_kind(result: Result, kind: Kind, node: str | None = None, **args: Any) -> list[Event]:
    """The events of a kind, of a node, with these args."""
    return [
        each
        for each in result.trace.events()
        if each.kind == kind
        and node in (None, each.node)
        and all(each.args.get(key) == value for key, value in args.items())
    ]


def begun_at(result: Result, step_id: str) -> float:
    """When a step began, in seconds."""
    (event,) = [each for each in of_kind(result, Kind.STEP, "world", id=step_id) if _begins(each)]
    return event.t_us / SECOND_US


def done_at(result: Result, step_id: str) -> float:
    """When a step was done, in seconds."""
    (event,) = of_kind(result, Kind.STEP, "world", id=step_id, done=True)
    return event.t_us / SECOND_US


def parameters_of(result: Result, step_id: str) -> dict[str, Any]:
    """What the trace says that a step does."""
    (event,) = [each for each in of_kind(result, Kind.STEP, "world", id=step_id) if _begins(each)]
    found: dict[str, Any] = event.args["args"]
    return found


def _begins(event: Event) -> bool:
    return "done" not in event.args


def expect(*lines: str) -> str:
    """Tables of expectations, one for each line: ``'at_end = "..."; because = "..."'``."""
    return "".join("[[expect]]\n" + line.replace("; ", "\n") + "\n" for line in lines)


def fault(line: str) -> str:
    return "[[fault]]\n" + line.replace("; ", "\n") + "\n"


def new_trace(folder: Path) -> Path:
    return folder / "trace.jsonl"
