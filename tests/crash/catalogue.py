"""All operations that are proved against crashes."""

from __future__ import annotations

from tests.crash.case import Case
from tests.crash.cases import LOG_CASES
from tests.crash.cleaning_cases import CLEANING_CASES
from tests.crash.log_dir_cases import LOG_DIR_CASES
from tests.crash.producer_cases import PRODUCER_CASES

__all__ = ["CASES", "case_named"]

CASES = [*LOG_CASES, *CLEANING_CASES, *PRODUCER_CASES, *LOG_DIR_CASES]


def case_named(name: str) -> Case:
    """One of ``CASES``."""
    return next(case for case in CASES if case.name == name)
