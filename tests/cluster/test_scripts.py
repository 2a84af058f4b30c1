"""The interaction scripts: each must print what it says, and break no invariant.

``pytest tests/cluster/test_scripts.py --rewrite`` writes the output anew. What it then says is to
be read as closely as code.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.script_runner import VIOLATION, Runner, Step, parse, render

SCRIPTS = sorted((Path(__file__).parent / "scripts").glob("*.txt"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_prints_what_it_says(path: Path, request: pytest.FixtureRequest) -> None:
    text = path.read_text(encoding="utf-8")
    steps, runner = parse(text), Runner()
    outputs = [runner.run(step) for step in steps]
    assert not runner.broken
    if request.config.getoption("rewrite", default=False):
        path.write_text(render(steps, outputs), encoding="utf-8")
        return
    assert VIOLATION not in text
    for step, output in zip(steps, outputs, strict=True):
        assert output == step.expected, step.command
    assert render(steps, outputs) == text


def test_there_are_scripts() -> None:
    assert len(SCRIPTS) >= 12


def test_a_broken_invariant_is_no_output_that_can_be_expected() -> None:
    runner = Runner()
    for command in ("cluster brokers=2", "lead b1", "produce b1 x"):
        runner.run(Step([], command, []))
    assert runner.broken == []
    runner.replicas()["b2"].high_watermark = 9
    output = runner.run(Step([], "show", []))
    assert any(VIOLATION in line for line in output)
    assert len(runner.broken) == 1


@pytest.mark.parametrize("text", ["lead b1\n", "lead b1\nlead b2\n----\n"])
def test_a_script_without_separator_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no ----"):
        parse(text)
