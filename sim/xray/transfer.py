"""The two ways from the page cache to a consumer, as they are drawn.

``paths`` gives both as plain data::

    [{"name": "sendfile"|"read and send", "system_calls": text, "switches": N, "cpu_copies": N,
      "dma_copies": N, "note": text,
      "steps": [{"from", "to", "how": "DMA"|"CPU"|"descriptor", "text"}, ...]}, ...]

Counts are those of one ``sendfile``, and of one read with one send, where the data has to come from
the disk, and the network card can gather: with a page that is in the cache already, the first DMA
copy falls away in both. A call is two switches: into the kernel and back.

Left out: measuring them (``sim.cli.transfer``).
"""

from __future__ import annotations

from typing import Any, Final

__all__ = ["NOTE_TLS", "paths"]

NOTE_TLS: Final = "TLS forces the copying path: what is to be ciphered must pass the process."


def paths() -> list[dict[str, Any]]:
    """Both ways as plain data; see the module."""
    disk, cache = "disk", "page cache"
    buffer, kernel, card = "buffer of the process", "socket buffer", "network card"
    return [
        {
            "name": "sendfile",
            "system_calls": "sendfile(socket, file, position, bytes)",
            "switches": 2,
            "cpu_copies": 0,
            "dma_copies": 2,
            "note": "Bytes never reach the process: it names a file, a place and a length.",
            "steps": [
                _step(disk, cache, "DMA", "only if the page is not in memory yet"),
                _step(cache, kernel, "descriptor", "where the pages are, not the bytes"),
                _step(cache, card, "DMA", "the card gathers the pages"),
            ],
        },
        {
            "name": "read and send",
            "system_calls": "read(file, buffer), send(socket, buffer)",
            "switches": 4,
            "cpu_copies": 2,
            "dma_copies": 2,
            "note": f"Bytes pass through the process. {NOTE_TLS}",
            "steps": [
                _step(disk, cache, "DMA", "only if the page is not in memory yet"),
                _step(cache, buffer, "CPU", "read: into the process"),
                _step(buffer, kernel, "CPU", "send: out of the process again"),
                _step(kernel, card, "DMA", "from memory to the wire"),
            ],
        },
    ]


def _step(source: str, target: str, how: str, text: str) -> dict[str, Any]:
    return {"from": source, "to": target, "how": how, "text": text}
