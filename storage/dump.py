"""Shows what is in a log's files, without changing them: ``python -m storage.dump PATH``.

Takes a segment, an index, a checkpoint, a producer snapshot or another file of a log, the directory
of a partition, or that of a broker. Says what is damaged, where, and what opening the log would do
about it.

Exit status: 0 shown, and nothing is wrong; 1 shown, and damaged, or an open would refuse; 2 bad
usage, or nothing to show; 70 an error of this program; 130 interrupted.

Strictly read-only: no lock is taken, no file is made, changed or removed, and the seal of a clean
close stays where it is. A log may be looked at while a process has it open.

Left out: what is shown (``storage.inspection``), which ``storage/README.md`` describes.
"""

from __future__ import annotations

import sys
import traceback
from argparse import (
    ArgumentParser,
    ArgumentTypeError,
    Namespace,
    RawDescriptionHelpFormatter,
)
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from storage.config import LogConfig
from storage.disk import Disk, OsDisk
from storage.errors import InvalidConfig
from storage.inspection.as_json import write_json
from storage.inspection.describe import describe
from storage.inspection.escaping import safe
from storage.inspection.text import lines
from storage.inspection.views import LogDirView, NothingView, Options, View

__all__ = ["main"]

HEALTHY, DAMAGED, UNUSABLE, INTERNAL, INTERRUPTED = 0, 1, 2, 70, 130


class _Parser(ArgumentParser):
    """Escapes what it repeats of the command line."""

    def error(self, message: str) -> NoReturn:
        super().error(safe(message))


def main(
    argv: Sequence[str] | None = None,
    *,
    disk: Disk | None = None,
    out: TextIO | None = None,
    err: TextIO | None = None,
) -> int:
    """Run the command; returns its exit status.

    Args:
        argv: arguments without the program's name; the process's by default.
        disk: what to look at; nothing of it is changed.
        out, err: instead of standard output and error.

    Raises:
        SystemExit: 2 for a command line that cannot be understood, 0 after ``--help``.
    """
    out, err = out or sys.stdout, err or sys.stderr
    arguments, options = _parse(argv)
    for stream in (out, err):
        # Only where the stream is a real one; names and values may not fit its encoding.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    try:
        return _show(arguments, options, disk or OsDisk(), out, err)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception:  # noqa: BLE001 - whatever it is, the caller must be able to tell it from damage
        print("storage.dump: an error of this program; please report it with:", file=err)
        for line in traceback.format_exc().splitlines():
            print(safe(line), file=err)
        return INTERNAL


def _parse(argv: Sequence[str] | None) -> tuple[Namespace, Options]:
    text = (__doc__ or "").split("\n\n")
    parser = _Parser(
        prog="python -m storage.dump",
        description="\n\n".join([text[0].partition(":")[0] + ".", *text[1:4]]),
        formatter_class=RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("path", metavar="PATH", type=_path, help="a file or directory of a log")
    parser.add_argument("--json", action="store_true", help="one JSON document instead of text")
    batches = parser.add_argument_group(
        "batches", "of a segment, always listed, or of a partition, listed with any of these"
    )
    batches.add_argument("--batches", action="store_true", help="list the batches")
    batches.add_argument("--records", action="store_true", help="list their records too")
    batches.add_argument(
        "--full", action="store_true", help="show keys and values whole, not 64 bytes of them"
    )
    batches.add_argument(
        "--from",
        dest="from_offset",
        metavar="OFFSET",
        type=_natural,
        help="begin with the batch that holds this offset (or the index entry behind it)",
    )
    batches.add_argument(
        "--count", metavar="N", type=_natural, help="at most so many batches, entries or producers"
    )
    limits = parser.add_argument_group("limits that the log was written with")
    limits.add_argument(
        "--max-batch-bytes",
        metavar="N",
        type=_natural,
        default=LogConfig().max_batch_bytes,
        help="largest frame, where that is above %(default)s",
    )
    limits.add_argument(
        "--index-interval-bytes",
        metavar="N",
        type=_natural,
        default=LogConfig().index_interval_bytes,
        help="distance between index entries (%(default)s); another one is noted, not blamed",
    )
    found = parser.parse_args(argv)
    try:
        config = LogConfig(
            max_batch_bytes=found.max_batch_bytes, index_interval_bytes=found.index_interval_bytes
        )
    except InvalidConfig as error:
        parser.error(str(error))
    is_part = found.from_offset is not None or found.count is not None
    options = Options(
        lists_batches=found.batches or found.records or found.full or is_part,
        with_records=found.records,
        is_full=found.full,
        from_offset=found.from_offset or 0,
        count=found.count,
        config=config,
    )
    return found, options


def _path(text: str) -> Path:
    if not text or "\0" in text:
        raise ArgumentTypeError(f"{text[:40]!r} cannot be a path")
    return Path(text)


def _natural(text: str) -> int:
    if len(text) > 19 or not (text.isascii() and text.isdigit()) or int(text) >= 2**63:
        raise ArgumentTypeError(f"{text[:40]!r}, allowed is 0 to 2^63-1")
    return int(text)


def _show(arguments: Namespace, options: Options, disk: Disk, out: TextIO, err: TextIO) -> int:
    view = describe(disk, arguments.path, options)
    if isinstance(view, LogDirView) and options.lists_batches:
        print("storage.dump: batches are listed of one partition at a time", file=err)
        return UNUSABLE
    try:
        if arguments.json:
            write_json(view, out.write, lambda: _status(view))
        else:
            stream = err if isinstance(view, NothingView) else out
            for line in lines(view):
                stream.write(line + "\n")
        out.flush()
    except BrokenPipeError:
        # The reader has seen enough (`| head`). Closing keeps the interpreter from complaining.
        with suppress(BrokenPipeError):
            out.close()
    return _status(view)


def _status(view: View) -> int:
    if isinstance(view, NothingView):
        return UNUSABLE
    return HEALTHY if view.is_healthy else DAMAGED


if __name__ == "__main__":
    sys.exit(main())
