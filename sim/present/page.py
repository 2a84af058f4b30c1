"""One HTML page for one run: the viewer's template, with the run's data inside.

The data is JSON, compressed (gzip, without a time stamp) and written in base64, so nothing of a
trace can end an element or begin one. The page takes it apart again, and shows it as text. Integers
that JavaScript cannot count exactly (from 2^53 on) become text.

Left out: the template and its sources (``sim/viewer``), and what the data is
(``sim.present.tracks``).
"""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

__all__ = ["TEMPLATE", "PageError", "fill"]

TEMPLATE: Final = Path(__file__).parent.parent / "viewer" / "template.html"
_PLACE: Final = "@@PAYLOAD@@"
_COUNTABLE: Final = 1 << 53
_LONG: Final = re.compile("[0-9]{16}")
_LEVEL: Final = 6
"""Of compression: 9 takes four times as long for a few per cent."""


class PageError(Exception):
    """The template is not there, or is not one."""


def fill(tracks: Mapping[str, Any], panels: Mapping[str, Any] | None = None) -> str:
    """The page as text, ASCII and a few signs besides.

    Args:
        tracks: what ``Tracks.plain()`` gives.
        panels: data of further panels by name, as ``xray`` and ``compare``; JSON each.

    Raises:
        PageError: the template is missing or damaged.
    """
    try:
        template = TEMPLATE.read_text(encoding="utf-8")
    except OSError:
        raise PageError(f"the page's template cannot be read: {TEMPLATE}") from None
    if template.count(_PLACE) != 1:
        raise PageError("the page's template is damaged: it has no one place for the data")
    return template.replace(_PLACE, payload({"tracks": tracks, "panels": panels or {}}))


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def _countable(data: Any) -> Any:
    if type(data) is int:
        return data if abs(data) < _COUNTABLE else str(data)
    if isinstance(data, Mapping):
        return {key: _countable(each) for key, each in data.items()}
    if isinstance(data, list | tuple):
        return [_countable(each) for each in data]
    return data


def payload(data: Mapping[str, Any]) -> str:
    """JSON, compressed, in base64; the same data gives the same text."""
    text = _json(data)
    if _LONG.search(text):
        text = _json(_countable(data))
    # The byte behind the header's time is the system's name in some Pythons, and must not be.
    packed = bytearray(gzip.compress(text.encode("ascii"), _LEVEL, mtime=0))
    packed[9] = 255
    return b64encode(packed).decode("ascii")
