"""Both ways from the page cache to a consumer, measured on this machine.

``measure`` sends the same bytes of a temporary file through a TCP connection to this machine
itself, once with ``sendfile`` and once through a buffer, and tells what each took. What it finds
depends on the machine, the kernel and what else runs, and loopback has no card: the kernel copies
from the pages of the file into the reader's buffer. It says which way is cheaper for the sender,
not how fast a broker is.

Left out: TLS. It has to read what it ciphers, so a broker with TLS listeners takes the copying path
whatever it is set to (kernel TLS aside, which Kafka does not use).
"""

from __future__ import annotations

import hashlib
import os
import socket
import threading
import time
from collections.abc import Callable
from tempfile import TemporaryFile
from typing import Any, Final

from attrs import define, field

from sim.xray.transfer import NOTE_TLS

__all__ = ["CHUNK_BYTES", "SIZES", "TransferError", "measure", "send_copying", "send_file"]

SIZES: Final = (64 << 10, 1 << 20, 16 << 20)
CHUNK_BYTES: Final = 64 << 10
ROUNDS: Final = 5
_TIMEOUT_S: Final = 30.0


class TransferError(Exception):
    """The transfer cannot be measured here; the text says why."""


def send_file(target: socket.socket, fd: int, size: int) -> int:
    """Send the first bytes of a file with ``sendfile``; returns how many calls that took."""
    position = calls = 0
    while position < size:
        sent = os.sendfile(target.fileno(), fd, position, min(CHUNK_BYTES, size - position))
        calls += 1
        if sent == 0:
            raise TransferError(f"sendfile sent nothing at byte {position} of {size}")
        position += sent
    return calls


def send_copying(target: socket.socket, fd: int, size: int) -> int:
    """The same through a buffer of this process; returns how many calls that took."""
    buffer = memoryview(bytearray(CHUNK_BYTES))
    position = calls = 0
    while position < size:
        count = os.preadv(fd, [buffer[: min(CHUNK_BYTES, size - position)]], position)
        calls += 1
        if count == 0:
            raise TransferError(f"the file ends at byte {position} of {size}")
        sent = 0
        while sent < count:
            sent += target.send(buffer[sent:count])
            calls += 1
        position += count
    return calls


def measure(
    sizes: tuple[int, ...] = SIZES,
    rounds: int = ROUNDS,
    *,
    clock: Callable[[], int] = time.perf_counter_ns,
    cpu_clock: Callable[[], int] = time.thread_time_ns,
) -> dict[str, Any]:
    """Send each size both ways, several times in turn, and take the best of each.

    Returns::

        {"chunk_bytes": N, "rounds": N, "transport": text, "sizes": [
            {"size_bytes": N, "sendfile": way, "copying": way, "ratio": x, "cpu_ratio": x|null,
             "is_same": bool}, ...], "meaning": [text, ...]}
        way := {"elapsed_us": x, "cpu_us": x, "calls": N, "mb_per_s": x}

    ``cpu_us`` is the sender's; ``ratio`` is the copying path's time over sendfile's. ``is_same``
    tells that the reader got the same bytes both ways.

    Raises:
        TransferError: the system has no sendfile, or no socket can be had.
    """
    if not hasattr(os, "sendfile"):
        raise TransferError("this system has no sendfile")
    rows = []
    try:
        for size in sizes:
            rows.append(_measure_size(size, rounds, clock, cpu_clock))
    except OSError as error:
        raise TransferError(f"{error.strerror or error}") from None
    return {
        "chunk_bytes": CHUNK_BYTES,
        "rounds": rounds,
        "transport": "TCP to this machine itself; the file is in the page cache",
        "sizes": rows,
        "meaning": _meaning(rows),
    }


@define
class _Best:
    """The best round of one way."""

    elapsed_ns: int = 1 << 62
    cpu_ns: int = 1 << 62
    calls: int = 0
    digests: set[bytes] = field(factory=set)

    def plain(self, size: int) -> dict[str, Any]:
        seconds = max(self.elapsed_ns, 1) / 1e9
        return {
            "elapsed_us": round(self.elapsed_ns / 1e3, 1),
            "cpu_us": round(self.cpu_ns / 1e3, 1),
            "calls": self.calls,
            "mb_per_s": round(size / 1e6 / seconds, 1),
        }


def _measure_size(
    size: int, rounds: int, clock: Callable[[], int], cpu_clock: Callable[[], int]
) -> dict[str, Any]:
    ways = {"sendfile": (send_file, _Best()), "copying": (send_copying, _Best())}
    with TemporaryFile() as file:
        block = bytes(range(256)) * 256
        for at in range(0, size, len(block)):
            file.write(at.to_bytes(8, "big") + block[8 : min(len(block), max(size - at, 8))])
        file.truncate(size)
        file.flush()
        for _ in range(rounds):
            for send, best in ways.values():
                _send_once(send, best, file.fileno(), size, clock, cpu_clock)
    fast, slow = ways["sendfile"][1], ways["copying"][1]
    return {
        "size_bytes": size,
        "sendfile": fast.plain(size),
        "copying": slow.plain(size),
        "ratio": round(slow.elapsed_ns / max(fast.elapsed_ns, 1), 2),
        "cpu_ratio": round(slow.cpu_ns / fast.cpu_ns, 2) if fast.cpu_ns > 0 else None,
        "is_same": fast.digests == slow.digests and len(fast.digests) == 1,
    }


def _send_once(
    send: Callable[[socket.socket, int, int], int],
    best: _Best,
    fd: int,
    size: int,
    clock: Callable[[], int],
    cpu_clock: Callable[[], int],
) -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname(), _TIMEOUT_S) as sender,
    ):
        reader, _ = server.accept()
        reader.settimeout(_TIMEOUT_S)
        # Blocking calls, without the polls that a timeout adds to each of Python's.
        sender.settimeout(None)
        got = _Reader(reader, size)
        got.start()
        began, cpu_began = clock(), cpu_clock()
        calls = send(sender, fd, size)
        cpu_ns = cpu_clock() - cpu_began
        got.join(_TIMEOUT_S)
        elapsed_ns = clock() - began
    if got.is_alive() or got.received != size:
        raise TransferError(f"{got.received} of {size} bytes arrived")
    best.elapsed_ns, best.cpu_ns = min(best.elapsed_ns, elapsed_ns), min(best.cpu_ns, cpu_ns)
    best.calls = calls
    best.digests.add(got.digest())


class _Reader(threading.Thread):
    """Takes everything that arrives; digests it when the clock stands."""

    def __init__(self, source: socket.socket, size: int) -> None:
        super().__init__(daemon=True)
        self._source = source
        self._data = bytearray(size)
        self.received = 0

    def run(self) -> None:
        view = memoryview(self._data)
        with self._source:
            while self.received < len(view):
                try:
                    count = self._source.recv_into(view[self.received :])
                except OSError:
                    return
                if count == 0:
                    return
                self.received += count

    def digest(self) -> bytes:
        return hashlib.blake2b(self._data).digest()


def _meaning(rows: list[dict[str, Any]]) -> list[str]:
    times = [float(each["ratio"]) for each in rows]
    cpu = [float(each["cpu_ratio"]) for each in rows if each["cpu_ratio"] is not None]
    found = [NOTE_TLS]
    if cpu:
        found.insert(0, f"For the sender's CPU the copying path costs {_between(cpu)} as much.")
    if times:
        verdict = "always slower" if min(times) > 1 else "not always slower"
        found.insert(0, f"It takes {_between(times)} as long as sendfile: {verdict} here.")
    found.insert(
        -1,
        "Loopback has no card, so the kernel copies the bytes for the reader both ways; what "
        "sendfile saves is the sender's copies, which a broker with many consumers feels first.",
    )
    return found


def _between(ratios: list[float]) -> str:
    low, high = min(ratios), max(ratios)
    return f"{low} times" if low == high else f"{low} to {high} times"
