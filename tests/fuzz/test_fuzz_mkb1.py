"""The fuzz entry without the fuzzer: its check, its first inputs, and what it says without one."""

from __future__ import annotations

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from storage import decode_batch
from tests.fuzz import mkb1
from tests.storage.naive_mkb1 import framed


def test_seeds_are_payloads_of_legal_frames() -> None:
    kinds = [decode_batch(framed(payload)) for payload in mkb1.seeds()]
    assert {batch.format_version for batch in kinds} == {1, 2}
    assert any(batch.control for batch in kinds)
    assert any(not batch.records and not batch.control for batch in kinds)


@given(st.binary(max_size=100) | st.sampled_from(mkb1.seeds()))
def test_check_holds_for_what_the_decoder_does(data: bytes) -> None:
    mkb1.check(data)


def test_check_finds_a_decoder_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    decode = mkb1.decode_batch
    monkeypatch.setattr(mkb1, "decode_batch", lambda data: decode(data).assign(1, 1))
    with pytest.raises(AssertionError, match="expected"):
        mkb1.check(mkb1.seeds()[0])


def test_without_atheris_the_entry_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "atheris", None)
    assert mkb1.main([]) == 2
    assert "pip install atheris" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["x"], ["-1"], ["1", "2"]])
def test_other_arguments_than_seconds_are_a_usage_error(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert mkb1.main(arguments) == 2
    assert capsys.readouterr().err.startswith("usage: ")
