"""The file of a hunt: a header, then one line of JSON for each world, in the order they ended.

A file is gone on with by the same code only: worlds of other code say nothing about this one. A
process that was killed leaves a torn last line at most, which is cut off; any other line that
cannot be read is an error, and so is a file that another hunt writes.

Left out: what stands in a line (``tests.hunt.worlds``).
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

__all__ = ["SOURCES", "Lines", "LinesError", "digest_of_sources"]

_ROOT: Final = Path(__file__).resolve().parent.parent.parent
SOURCES: Final = ("cluster", "sim", "storage", "tests/hunt")
"""Folders whose modules decide what a line says."""


class LinesError(Exception):
    """A file cannot be gone on with; the message says what to do."""


def digest_of_sources(root: Path = _ROOT) -> str:
    """A digest of all modules that decide what a line says, but tests; 16 hex digits."""
    found = hashlib.blake2b(digest_size=8)
    for folder in SOURCES:
        for path in sorted((root / folder).rglob("*.py")):
            if not path.name.startswith("test_"):
                found.update(path.relative_to(root).as_posix().encode() + b"\0")
                found.update(path.read_bytes() + b"\0")
    return found.hexdigest()


class Lines:
    """The lines of a file, which is open for more.

    Attributes:
        path: of the file.
        found: the lines that there are, in order, without the header.
    """

    def __init__(self, path: Path, header: Mapping[str, Any], *, anew: bool = False) -> None:
        """Open a file, or begin it with the header.

        Args:
            anew: put an earlier file aside, as ``NAME.old``, whatever is in it.

        Raises:
            LinesError: the file is of another header, is damaged, or is being written.
        """
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file: BinaryIO = open(path, "a+b")  # noqa: SIM115 - open for as long as this lives
        try:
            self._lock()
            if anew and os.fstat(self._file.fileno()).st_size:
                os.replace(path, path.with_name(path.name + ".old"))
                self._file.close()
                self._file = open(path, "a+b")  # noqa: SIM115
                self._lock()
            self.found = list(self._read(dict(header)))
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one more line; it is in the file when this returns."""
        self.found.append(dict(line))
        self._write(line)

    def _write(self, line: Mapping[str, Any]) -> None:
        self._file.write(json.dumps(line, separators=(",", ":")).encode("ascii") + b"\n")
        self._file.flush()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LinesError(f"{self.path}: another hunt writes this file") from None

    def _read(self, header: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._file.seek(0)
        whole, torn = _split(self._file.read())
        if torn:
            # Torn in the middle of its line: whoever wrote it is gone.
            self._file.truncate(sum(len(each) + 1 for each in whole))
        if not whole:
            self._write(header)
            return
        old = self._parsed(1, whole[0])
        for key, value in header.items():
            if old.get(key) != value:
                raise LinesError(
                    f"{self.path}: {key} is {old.get(key)!r} there and {value!r} here; "
                    "--anew puts that file aside and begins a new one"
                )
        for number, each in enumerate(whole[1:], 2):
            yield self._parsed(number, each)

    def _parsed(self, number: int, data: bytes) -> dict[str, Any]:
        try:
            found = json.loads(data)
        except ValueError:
            found = None
        if not isinstance(found, dict):
            raise LinesError(f"{self.path}: line {number} is no JSON object: {data[:60]!r}")
        return found


def _split(data: bytes) -> tuple[list[bytes], bytes]:
    """Whole lines, and what is left behind the last of them."""
    *whole, torn = data.split(b"\n")
    return whole, torn
