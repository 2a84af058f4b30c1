"""``leaderfall``: the commands by name, and what becomes of errors.

A command is a module with ``command``, imported when it is used; it returns an exit code, or raises
``UserError`` for what users can mend. Whatever else is raised is a defect: exit 70.

Left out: the commands.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from typing import Any, Final, NoReturn

import click

from sim.cli.console import outlet, say, shown
from sim.cli.exits import EXIT_DOCS, Exit, UserError

__all__ = ["COMMANDS", "cli", "main"]

COMMANDS: Final[dict[str, tuple[str, str]]] = {
    "run": ("sim.cli.run", "Run scenario files, and say what was lost and why."),
    "check": ("sim.cli.check", "Check scenario files without running them."),
    "new": ("sim.cli.new", "Write a commented scenario file to begin with."),
    "scenarios": ("sim.cli.scenarios", "The scenario files that come with Leaderfall."),
    "show": ("sim.cli.show", "Show a trace: one line an event, one column a node."),
    "report": ("sim.cli.page", "Write a trace as one HTML page, to step through in a browser."),
    "step": ("sim.cli.step", "Step through a trace, forward and back."),
    "xray": ("sim.cli.xray", "Look through a log's directory: segments, indexes, pages, bytes."),
    "blame": ("sim.cli.blame", "Say which faults and steps a loss or a violation takes."),
    "shrink": (
        "sim.cli.shrink",
        "Make a failing scenario small: the same failure with less in it.",
    ),
    "diff": (
        "sim.cli.diff",
        "Compare two runs: where they part first, and what their replicas have then.",
    ),
    "export": ("sim.cli.export", "Write a trace for ShiViz, Mermaid, PlantUML or Perfetto."),
    "explain": ("sim.cli.explain", "Explain a name that files, reports or traces use."),
    "doctor": ("sim.cli.doctor", "Check this installation."),
    "completion": ("sim.cli.completion", "Print a script that completes commands in your shell."),
}
"""Name: module, and the first line of its help, so that help needs no imports."""

_HELP: Final = """What happens to the data when the leader falls?

Runs a cluster of simulated brokers, with real segment logs, through crashes, partitions and disk
faults, deterministically, and says what was lost, which rule was broken, and why.
"""
_EXAMPLES: Final = (
    ("leaderfall scenarios copy leader_crash_acks1", "a scenario to look at"),
    ("leaderfall run leader_crash_acks1.toml", "run it"),
    ("leaderfall new mine && leaderfall run mine.toml", "begin your own"),
)


class Leaderfall(click.Group):
    """The group: commands are imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(COMMANDS[cmd_name][0]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            found = get_close_matches(args[0].lower(), COMMANDS, n=1)
            hint = f' Did you mean "{found[0]}"?' if found else ""
            ctx.fail(f'There is no command "{args[0]}".{hint} There are {", ".join(COMMANDS)}.')
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in COMMANDS.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(str(int(code)), text) for code, text in EXIT_DOCS.items()])
            order = "70, 4, 1, 3, 2, 0"
            formatter.write_text(f"Of several runs the worst counts, in the order {order}.")
        with formatter.section("Examples"):
            formatter.write_dl(_EXAMPLES)

    def main(self, args: Sequence[str] | None = None, *_: Any, **__: Any) -> NoReturn:
        """Run, and end the process with its exit code; under one name, however it was called."""
        sys.exit(self._code(args))

    def _code(self, args: Sequence[str] | None) -> int:
        try:
            found = super().main(args, "leaderfall", standalone_mode=False)
            outlet().flush()
            return int(found or Exit.OK)
        except UserError as error:
            _tell(error.lines)
            return error.code
        except click.exceptions.NoArgsIsHelpError as error:
            say(error.format_message(), is_error=True)
            return Exit.USAGE
        except click.ClickException as error:
            _tell_usage(error)
            return Exit.USAGE
        except (click.Abort, KeyboardInterrupt):
            say("\ninterrupted", is_error=True)
            return Exit.INTERRUPTED
        except BrokenPipeError:
            return Exit.OK
        except OSError as error:
            return _unwritten(error) if _is_of_click(error) else _internal(error)
        except Exception as error:  # noqa: BLE001 - whatever it is, it has an exit code
            return _internal(error)


def _tell(lines: Sequence[str]) -> None:
    for at, line in enumerate(lines):
        say(f"Error: {line}" if at == 0 else line, is_error=True)


def _tell_usage(error: click.ClickException) -> None:
    ctx = getattr(error, "ctx", None)
    if ctx is not None:
        for line in ctx.get_usage().split("\n"):
            say(line, is_error=True)
        say(f"Try '{ctx.command_path} --help' for help.\n", is_error=True)
    _tell([shown(line) for line in error.format_message().split("\n")])


def _is_of_click(error: OSError) -> bool:
    """Whether click could not print, which prints help by itself."""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code is click.echo.__code__:
            return True
        trace = trace.tb_next
    return False


def _unwritten(error: OSError) -> int:
    try:
        outlet().fail(error)
    except UserError as refusal:
        _tell(refusal.lines)
        return refusal.code
    return Exit.OK


def _internal(error: Exception) -> int:
    from traceback import format_exception

    for line in "".join(format_exception(error)).rstrip("\n").split("\n"):
        say(shown(line), is_error=True)
    say("This is a defect of Leaderfall.", is_error=True)
    return Exit.INTERNAL


def _version(ctx: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if not is_asked or ctx.resilient_parsing:
        return
    from sim.version import leaderfall_version

    say(f"leaderfall {leaderfall_version()}")
    ctx.exit()


cli = Leaderfall(
    name="leaderfall",
    help=_HELP,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        )
    ],
)


def main() -> NoReturn:
    """The console script; who ends the process in order gets what an interrupt at a key gives."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(each) is signal.SIG_DFL:
            signal.signal(each, signal.default_int_handler)
    cli.main()
