"""Drawn record batches: legal, of every kind, and simple when nothing is demanded."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from sim.strategies import batches
from storage.batch import Record, RecordBatch
from tests.sim.strategies.test_scenarios import QUICK, smallest


def kind_of(batch: RecordBatch) -> str:
    if batch.control is not None:
        return "marker"
    if not batch.records:
        return "emptied"
    dense = tuple(range(len(batch.records)))
    is_dense = batch.offset_deltas == dense and batch.last_offset_delta == dense[-1]
    return "dense" if is_dense else "holes"


def test_the_simplest_batch_is_one_empty_record() -> None:
    found = smallest(batches(), lambda _: True)
    assert found.records == (Record(None, None, 0, ()),)
    assert (found.base_offset, found.leader_epoch, found.format_version) == (0, 0, 2)


@pytest.mark.parametrize("kind", ["dense", "holes", "marker", "emptied"])
@pytest.mark.parametrize("version", [1, 2])
def test_every_kind_of_both_versions_comes(kind: str, version: int) -> None:
    if (kind, version) == ("emptied", 1):
        pytest.skip("a frame of version 1 has a record")
    found = smallest(batches(versions=[version]), lambda batch: kind_of(batch) == kind)
    assert found.format_version == version


@QUICK
@given(batches(kinds=["dense"], records_max=2, versions=[2]))
def test_arguments_limit_what_comes(batch: RecordBatch) -> None:
    assert (kind_of(batch), batch.format_version) == ("dense", 2)
    assert 1 <= len(batch.records) <= 2


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ({"kinds": ["sparse"]}, "kind is 'sparse', allowed are 'dense', 'holes'"),
        ({"kinds": []}, "there is no kind, at least one is needed"),
        ({"versions": [3]}, "version is 3, allowed are 1, 2"),
        ({"records_max": 0}, "records_max is 0, allowed is 1 or more"),
    ],
)
def test_bad_arguments_are_refused(values: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        batches(**values)
