"""Every error of the package has a code, and can be copied and pickled with all that it says."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from storage import errors
from storage.errors import CorruptLog, DiskError, FsyncFailed, LogOffline, StorageError

HERE = Path("/logs/orders-0")
BY_NAME: dict[str, tuple[object, ...]] = {
    "BatchTooLarge": (70, 60),
    "OffsetOutOfRange": (9, 1, 5),
    "UnexpectedOffset": (5, 9),
    "StaleLeaderEpoch": (1, 2),
    "InvalidProducerEpoch": (7, 1, 2),
    "OutOfOrderSequence": (7, 0, 5, 3),
    "NotTruncatable": (4, "inside a batch"),
    "ForeignFile": (HERE, "no number"),
    "LogOffline": (HERE, FsyncFailed("fsync", HERE, "EIO")),
    "CorruptBatch": ("crc", "1 is not 2"),
    "CorruptIndex": (HERE, "falls"),
    "CorruptCheckpoint": (HERE, 3, "no number"),
}


def example(kind: type[StorageError]) -> StorageError:
    if kind is CorruptLog:
        return CorruptLog(HERE, "crc", position=3, last_good_offset=4, first_good_offset=None)
    if issubclass(kind, DiskError):
        return kind("fsync", HERE, "EIO", "why")
    return kind(*BY_NAME.get(kind.__name__, ("in words",)))


KINDS = [getattr(errors, name) for name in errors.__all__]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
@pytest.mark.parametrize(
    "again",
    [copy.deepcopy, copy.copy, lambda error: pickle.loads(pickle.dumps(error))],
    ids=["deepcopy", "copy", "pickle"],
)
def test_an_error_says_the_same_when_it_is_copied(
    kind: type[StorageError], again: Callable[[StorageError], StorageError]
) -> None:
    error = example(kind)
    twin = again(error)
    assert type(twin) is kind
    assert twin is not error
    assert str(twin) == str(error)
    assert twin.code == error.code
    assert {name: str(value) for name, value in vars(twin).items()} == {
        name: str(value) for name, value in vars(error).items()
    }


def test_a_copy_of_an_error_has_a_copy_of_its_cause() -> None:
    error = LogOffline(HERE, FsyncFailed("fsync", HERE, "EIO"))
    twin = copy.deepcopy(error)
    assert twin.cause is not error.cause
    assert isinstance(twin.cause, FsyncFailed)
    assert twin.cause.path == HERE
