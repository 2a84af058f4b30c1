"""Options of the tests of the machines."""

from __future__ import annotations

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--rewrite",
        action="store_true",
        help="write what the scripts in tests/cluster/scripts print into them; "
        "an invariant that does not hold fails all the same",
    )
