"""``leaderfall scenarios``: the files that come with Leaderfall.

Left out: running them.
"""

from __future__ import annotations

from pathlib import Path

import click

from sim.cli.console import color_option, make_console, say, shown
from sim.cli.exits import Exit, UserError
from sim.cli.files import complete_shipped, shipped, shipped_path
from sim.cli.new import write_new
from sim.scenario_files import FOLDERS, SUFFIX
from sim.shell_words import shell_word

__all__ = ["command"]


@click.group("scenarios")
def command() -> None:
    """The scenario files that come with Leaderfall."""


@command.command("list")
@click.option("--paths", "is_paths", is_flag=True, help="Print the files' paths only.")
@color_option
def _list(*, is_paths: bool, color: str) -> int:
    """List them, folder by folder, each with its title."""
    found = shipped()
    if is_paths:
        for path in found.values():
            say(shown(path))
        return Exit.OK
    from rich.text import Text

    console = make_console(color)
    width = max(map(len, found), default=0)
    titles = {name: _title(path) for name, path in found.items()}
    is_narrow = width + 2 + max(map(len, titles.values()), default=0) > console.width
    group = ""
    for name, title in titles.items():
        folder = name.rpartition("/")[0]
        if folder != group:
            group = folder
            console.print(Text(f"\n{shown(FOLDERS.get(folder, folder))}"))
        if is_narrow:
            console.print(Text(shown(name), style="bold"))
            console.print(Text(f"  {title}"))
        else:
            console.print(Text().append(shown(name).ljust(width), "bold").append(f"  {title}"))
    return Exit.OK


def _title(path: Path) -> str:
    import tomllib

    try:
        return shown(tomllib.loads(path.read_text(encoding="utf-8")).get("title", ""))
    except (OSError, ValueError) as error:
        return f"cannot be read: {shown(error)}"


@command.command("show")
@click.argument("name", shell_complete=complete_shipped)
def _show(name: str) -> int:
    """Print the file of a scenario."""
    for line in _read(shipped_path(name)).decode("utf-8", "replace").splitlines():
        say(shown(line))
    return Exit.OK


@command.command("copy")
@click.argument("name", shell_complete=complete_shipped)
@click.argument("dest", default=".", metavar="[DEST]")
def _copy(name: str, dest: str) -> int:
    """Copy one, to edit it.

    DEST is a folder (by default this one) or a new file; nothing is overwritten.
    """
    source = shipped_path(name)
    path = Path(dest)
    if path.is_dir():
        path = path / source.name
    elif dest.endswith("/"):
        raise UserError(f'There is no folder "{shown(dest)}".')
    write_new(path, _read(source))
    say(f"{shown(path)} is written. Run it: leaderfall run {shell_word(str(path))}")
    if path.suffix != SUFFIX:
        say(f"(A folder of scenarios is run by the names that end in {SUFFIX}; this does not.)")
    return Exit.OK


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UserError(shown(error)) from None
