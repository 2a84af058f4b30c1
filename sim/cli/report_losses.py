"""The section "What was lost": one paragraph for what has one licence and one cause.

Everything comes from the story of a trace; only whether the scenario covers it is the verdict's.

Left out: what the words are (``sim.present.losses``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from sim.cli.console import shown
from sim.cli.wrapping import print_wrapped

if TYPE_CHECKING:
    from rich.console import Console

    from sim.present.losses import LossTold
    from sim.running.coverage import Tested

__all__ = ["print_losses"]

LOSSES_MAX: Final = 6


def print_losses(
    console: Console,
    told: list[LossTold],
    covered: Mapping[str, bool] | None = None,
    tested: Mapping[int, Tested] | None = None,
    *,
    is_verbose: bool = False,
) -> None:
    """Losses, one paragraph each.

    Args:
        covered: whether the scenario covers losses under a licence; None where nobody judged.
        tested: what runs without the culprits have shown, by the event that tells of a loss.
        is_verbose: all of them, not only the first ones.
    """
    from rich.text import Text

    from sim.present.text import print_loss

    shown_ones = told if is_verbose else told[:LOSSES_MAX]
    for place, each in enumerate(shown_ones):
        if place:
            console.print()
        head = Text("  ")
        if covered is not None:
            is_covered = covered.get(each.licence, False)
            head.append(
                "covered: " if is_covered else "NOT COVERED: ",
                "green" if is_covered else "bold red",
            )
        print_loss(console, head, each)
        found = [tested[n] for n in each.covers if n in tested] if tested else []
        for text in dict.fromkeys(map(_test_told, found)):
            print_wrapped(console, shown(text), 4, first=4)
    if len(told) > len(shown_ones):
        more = f"(and {len(told) - len(shown_ones)} more; -v shows all)"
        print_wrapped(console, more, 4, first=2, style="dim")


def _test_told(test: Tested) -> str:
    """What the run without the culprits has shown."""
    without = " and ".join(f'"{part}"' for part in test.parts)
    run = f"Tested: the run without {without}"
    if test.outcome == "confirmed":
        return f"{run} does not lose this."
    if test.outcome == "never-acknowledged":
        return f"{run} never acknowledges this, which proves nothing."
    if test.outcome == "overdetermined":
        others = " and ".join(f'"{part}"' for part in test.others)
        return f"{run} loses this as well, {f'by {others}' if others else 'in another way'}."
    if test.outcome == "refuted":
        return f"{run} loses this all the same, and nothing says why: the licence is wrong."
    return "Not tested: it goes back to no step and no fault."
