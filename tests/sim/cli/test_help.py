"""The group: help without imports, commands, errors of usage, defects, completion."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import click
import pytest

from sim.cli import main
from sim.cli.exits import EXIT_DOCS, Exit, UserError, worst
from tests.sim.cli.tools import ROOT, call, spawn

NOT_FOR_HELP = ("attrs", "attr", "rich", "cattrs", "trio", "cluster", "storage", "sim.trace")


def test_help_names_every_command_and_every_exit_code() -> None:
    text = call("--help").output
    for name in main.COMMANDS:
        assert f"\n  {name} " in text
    for code, meaning in EXIT_DOCS.items():
        assert f"\n  {int(code):<5}{meaning[:30]}" in text


def test_the_table_of_commands_says_what_the_commands_say() -> None:
    for name, (module, text) in main.COMMANDS.items():
        command: click.Command = import_module(module).command
        assert command.name == name
        assert command.help is not None
        assert " ".join(command.help.split("\n\n")[0].split()) == text


@pytest.mark.parametrize("words", [("--help",), ("run", "--help"), ("--version",)])
def test_help_imports_nothing_that_takes_time(words: tuple[str, ...]) -> None:
    code = (
        "import sys\nfrom sim.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print('MODULES', *sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *words],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    modules = done.stdout.partition("MODULES ")[2].split()
    assert "click" in modules
    assert not [each for each in NOT_FOR_HELP if each in modules]


def test_every_command_has_help_of_its_own() -> None:
    for name in main.COMMANDS:
        done = call(name, "--help")
        assert done.exit_code == 0
        assert done.output.startswith(f"Usage: leaderfall {name}")


def test_no_command_shows_the_help_and_is_bad_usage() -> None:
    done = call()
    assert done.exit_code == Exit.USAGE
    assert "Commands:" in done.stderr


def test_an_unknown_command_gets_a_hint() -> None:
    done = call("rnu")
    assert done.exit_code == Exit.USAGE
    assert 'There is no command "rnu". Did you mean "run"?' in done.stderr


def test_the_version_is_the_projects() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    version = text.partition('\nversion = "')[2].partition('"')[0]
    assert call("--version").output == f"leaderfall {version}\n"


@pytest.mark.parametrize(
    "words",
    [
        ("\x1b[31mx",),
        ("--\x1b[31mx",),
        ("run", "--\x1b[31mx"),
        ("run", "\x1b[31mx"),
        ("run", "a\x1b]0;x\x07.toml", "--variant", "\x1b[31m"),
        ("run", "a\nb"),
        ("run", "x.toml", "--set", "\x1b[31m=1"),
        ("check", "\x1b[31mx.toml"),
        ("explain", "\x1b[31mx"),
        ("show", "\x1b[31mx"),
        ("scenarios", "show", "\x1b[31mx"),
        ("scenarios", "copy", "\x1b[31mx"),
        ("new", "\x1b[31mx"),
        ("new", "no-such-folder/\x1b[31mx.toml"),
        ("completion", "\x1b[31mx"),
        ("run", "x.toml", "--out", "\x1b[31m"),
    ],
)
def test_control_characters_of_arguments_never_reach_the_terminal(words: tuple[str, ...]) -> None:
    done = call(*words)
    assert done.exit_code == Exit.USAGE
    assert done.output == done.stderr != ""
    assert all(line.isprintable() for line in done.output.split("\n"))


def test_a_name_with_a_null_is_bad_usage() -> None:
    for words in (("run", "a\0b"), ("check", "a\0b"), ("show", "a\0b")):
        assert call(*words).exit_code == Exit.USAGE


def test_a_defect_ends_with_70_and_its_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> dict[str, Path]:
        raise AssertionError("broken \x1b[31m")

    monkeypatch.setattr("sim.cli.scenarios.shipped", fail)
    done = call("scenarios", "list")
    assert done.exit_code == Exit.INTERNAL
    assert "AssertionError: broken \\x1b[31m" in done.stderr
    assert "This is a defect of Leaderfall." in done.stderr


def test_an_interrupt_ends_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> dict[str, Path]:
        raise KeyboardInterrupt

    monkeypatch.setattr("sim.cli.scenarios.shipped", interrupt)
    done = call("scenarios", "list")
    assert done.exit_code == Exit.INTERRUPTED
    assert "Traceback" not in done.output


def test_the_worst_code_counts() -> None:
    order = (70, 4, 1, 3, 2, 0)
    for at, code in enumerate(order):
        assert worst(order[at:]) == code
        assert worst(reversed(order[at:])) == code
    assert worst([]) == 0
    assert worst([70, 130]) == 130


def test_users_errors_have_the_code_of_bad_usage() -> None:
    assert UserError("x").code == 2


# Completion ------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_gets_its_script(shell: str) -> None:
    text = call("completion", shell).output
    assert "_LEADERFALL_COMPLETE" in text
    assert f"{shell}_complete" in text


def _completed(*words: str, cwd: Path | None = None) -> list[str]:
    done = spawn(
        cwd=cwd,
        env={
            "_LEADERFALL_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(("leaderfall", *words)),
            "COMP_CWORD": str(len(words)),
        },
    )
    assert done.returncode == 0, done.stderr
    return [line.partition(",")[2] for line in done.stdout.split("\n") if line]


def test_names_are_completed(folder: Path) -> None:
    (folder / "leading.toml").write_text('[[variant]]\nname = "first"\n', encoding="utf-8")
    assert "run" in _completed("r")
    assert {"leading.toml", "leader_crash_acks1"} <= set(_completed("run", "lea", cwd=folder))
    assert "leader_crash_acks1" in _completed("scenarios", "copy", "leader-cr")
    assert _completed("explain", "hw-va") == ["hw-valid"]
    assert _completed("run", "leading.toml", "--variant", "f", cwd=folder) == ["first"]
    assert _completed("show", "x", "--kind", "trunc") == ["truncate"]
