"""``leaderfall completion``: the script with which a shell completes commands.

Left out: what is completed, which parameters say themselves.
"""

from __future__ import annotations

from typing import Final

import click

from sim.cli.console import say
from sim.cli.exits import Exit

__all__ = ["HINTS", "command"]

HINTS: Final[dict[str, str]] = {
    "bash": 'add to ~/.bashrc:  eval "$(leaderfall completion bash)"',
    "zsh": 'add to ~/.zshrc, behind compinit:  eval "$(leaderfall completion zsh)"',
    "fish": "leaderfall completion fish > ~/.config/fish/completions/leaderfall.fish",
}
"""How each shell is told."""
VARIABLE: Final = "_LEADERFALL_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(list(HINTS)))
def command(shell: str) -> int:
    """Print a script that completes commands in your shell.

    SHELL then completes commands, options and names of scenarios.

    \b
    bash  add to ~/.bashrc: eval "$(leaderfall completion bash)"
    zsh   add to ~/.zshrc, behind compinit: eval "$(leaderfall completion zsh)"
    fish  leaderfall completion fish > ~/.config/fish/completions/leaderfall.fish
    """
    from click.shell_completion import get_completion_class

    found = get_completion_class(shell)
    assert found is not None, f"click completes no {shell}"
    root = click.get_current_context().find_root().command
    complete = found(root, {}, "leaderfall", VARIABLE)
    # ``source()`` would ask the bash on the path for its version first, and warn.
    say(complete.source_template % complete.source_vars())
    return Exit.OK
