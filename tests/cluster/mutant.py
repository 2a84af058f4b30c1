"""What a mutant is: one line of the packages, changed, and the test that then fails.

Left out: the table (``tests.cluster.mutants``).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Mutant"]


class Mutant(NamedTuple):
    """One row of the table.

    Attributes:
        rule: of the protocol's description, "A5".
        what: what is wrong with it, in words; unique.
        file: below the root of the repository.
        old: the line as it stands.
        new: the line that takes its place.
        test: the node id of a test that fails then.
    """

    rule: str
    what: str
    file: str
    old: str
    new: str
    test: str
