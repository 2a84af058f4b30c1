"""The page as a file: its data in its one place, whatever the data is."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sim.present import page
from sim.present.page import TEMPLATE, PageError, fill

_PAYLOAD = re.compile(r'<script type="application/octet-stream" id="payload">([^<]*)</script>')


def _data(text: str) -> Any:
    found = _PAYLOAD.findall(text)
    assert len(found) == 1
    return json.loads(gzip.decompress(b64decode(found[0], validate=True)))


@given(
    st.recursive(
        st.none() | st.booleans() | st.text() | st.integers(-(2**53) + 1, 2**53 - 1),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_data_comes_out_as_it_went_in_and_touches_nothing_else(data: Any) -> None:
    text = fill({"v": 1, "any": data}, {"xray": data})
    assert _data(text) == {"tracks": {"v": 1, "any": data}, "panels": {"xray": data}}
    before, behind = TEMPLATE.read_text(encoding="utf-8").split("@@PAYLOAD@@")
    assert text.startswith(before)
    assert text.endswith(behind)


def test_what_javascript_cannot_count_is_text() -> None:
    data = {"a": [2**53, -(2**53), 2**53 - 1, True], "b": {"9007199254740993": -(2**80)}}
    assert _data(fill(data))["tracks"] == {
        "a": [str(2**53), str(-(2**53)), 2**53 - 1, True],
        "b": {"9007199254740993": str(-(2**80))},
    }


def test_the_same_data_gives_the_same_page() -> None:
    assert fill({"a": "b" * 1000}) == fill({"a": "b" * 1000})


def test_the_page_may_load_nothing() -> None:
    text = TEMPLATE.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
    assert [each.strip() for each in policy.split(";")] == [
        "default-src 'none'",
        "script-src 'unsafe-inline'",
        "style-src 'unsafe-inline'",
        "img-src data:",
    ]
    assert len(re.findall(r"<script\b", text)) == 2
    assert not re.findall(r"<(?:link|img|iframe|base|object|embed)\b", text)
    assert not re.findall(r"\bsrc\s*=\s*[\"']", text)
    assert "@@STYLES@@" not in text
    assert "@@SCRIPT@@" not in text


def test_sources_write_no_markup() -> None:
    for path in sorted((TEMPLATE.parent / "src").glob("*.js")):
        text = path.read_text(encoding="utf-8")
        for word in ("innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval("):
            assert word not in text, f"{path.name} has {word}"


@pytest.mark.parametrize("text", ["", "no place", "@@PAYLOAD@@ @@PAYLOAD@@"])
def test_a_damaged_template_is_told(
    text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    template = tmp_path / "template.html"
    template.write_text(text)
    monkeypatch.setattr(page, "TEMPLATE", template)
    with pytest.raises(PageError, match="damaged: it has no one place for the data"):
        fill({})


def test_a_missing_template_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "TEMPLATE", tmp_path / "none.html")
    with pytest.raises(PageError, match=r"template cannot be read: .*none\.html"):
        fill({})
