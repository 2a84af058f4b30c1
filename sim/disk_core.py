"""State and inner workings of the simulated disk.

Counting calls, blowing the fuse, finding what strikes a call, telling of calls, keeping inodes
without a name. Left out: the calls themselves (``sim.disks``, ``sim.disk_handles``).
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from sim.disk_crash import Inode
from sim.disk_faults import DiskFault, FaultPlan
from sim.disk_files import FileOp, FileState, Reached, pages_of, render
from sim.disk_fuses import Fuses
from sim.disk_images import without_pages
from sim.disk_names import DIRECTORY, FILE, Names, NamesMode
from sim.draws import Draws
from storage.disk import Disk, DiskFile, FileKind, disk_error

__all__ = ["DiskCore", "PowerCut", "ProcessKill", "parts_of"]

GRAVEYARD = ".inodes"
SYNCS = {"complete_fsync": "fsync"}
ROOT_ERRNOS = {"mkdir": errno.EEXIST, "rename": errno.EBUSY, "rmdir": errno.EBUSY}


class PowerCut(BaseException):
    """The power went off inside a disk call. Not an ``Exception``: only a host handles it."""


class ProcessKill(BaseException):
    """The process ended inside a disk call; the page cache stays."""


class DiskCore:
    """State and inner workings of a simulated disk; ``sim.disks.SimDisk`` has its calls.

    Attributes:
        name: of the disk, for draws and messages.
        call_count: disk calls so far, failed ones included.
        calls: operation and path of each call, while ``records_calls`` is on.
        is_powered: False between a blown fuse and ``power_cut``.
        crash_count: power cuts so far.
        faults: what strikes its calls.
        fuses: where the power goes off.
        on_call: told of each call that took effect: operation, path, position, size in bytes. See
            ``report``.
        on_full: told of each call for which there is no room: operation and path.
        on_strike: told of each fault that strikes: the fault, operation and path of the call. It
            hears so before the call has its effect, or fails.
        is_read_only: the kernel has remounted it read-only, up to the next power cut.
        read_only_by: the fault behind that.
        rewrites: how often bytes changed behind the process's back, by no call: bit rot, pages that
            a failed sync took back. Power cuts and replaced files are not counted.
    """

    def __init__(
        self,
        backing: Disk,
        root: Path,
        draws: Draws,
        *,
        name: str = "disk",
        names_mode: NamesMode = "ext4",
        auto_da_alloc: bool = False,
        capacity_bytes: int | None = None,
    ) -> None:
        """A disk whose files are under ``root`` of ``backing``; what is there already is durable.

        Inodes without a name are kept beside it, in ``ROOT.inodes``.

        Args:
            auto_da_alloc: a rename over an existing name makes the file's data durable first.
            capacity_bytes: how much visible data fits; None for no limit.
        """
        self.name = name
        self.names_mode: NamesMode = names_mode
        self.auto_da_alloc = auto_da_alloc
        self.capacity_bytes = capacity_bytes
        self.call_count = 0
        self.records_calls = False
        self.calls: list[tuple[str, str]] = []
        self.is_powered = True
        self.is_read_only = False
        self.read_only_by: DiskFault | None = None
        self.crash_count = 0
        self.faults = FaultPlan()
        self.fuses = Fuses()
        self.on_call: Callable[[str, Path, int, int], None] | None = None
        self.on_strike: Callable[[DiskFault, str, Path], None] | None = None
        self.on_full: Callable[[str, Path], None] | None = None
        self.draws = draws
        self._backing = backing
        self._root = root
        self._graveyard = root.with_name(root.name + GRAVEYARD)
        self.names = Names()
        self.inodes: dict[int, Inode] = {}
        self._graves: set[int] = set()
        self.locks: set[int] = set()
        self.serial = 0
        self.rewrites = 0
        self._in_progress: int | None = None
        self.incarnation = 0
        self.late_reports: dict[int, DiskFault] = {}
        for directory in (root, self._graveyard):
            if backing.stat(directory).kind is FileKind.MISSING:
                backing.mkdir(directory)
        self._adopt_all()

    def _adopt_all(self) -> None:
        self._adopt(self._root, 0)
        self.names.commit(self.serial)

    def _adopt(self, directory: Path, parent: int) -> None:
        for entry in self._backing.listdir(directory):
            path = directory / entry
            kind, size = self._backing.stat(path)
            is_directory = kind is FileKind.DIRECTORY
            number = self.names.new_inode(DIRECTORY if is_directory else FILE)
            self.names.add(self.next_serial(), "create", parent, entry, number)
            if is_directory:
                self._adopt(path, number)
            else:
                self.inodes[number] = Inode(FileState(number, size), path)

    # Inside ------------------------------------------------------------------------------------

    def enter(self, operation: str, path: Path) -> tuple[DiskFault | None, bool]:
        """Count a call; the fault that strikes it, and whether the power goes off inside it."""
        if not self.is_powered:
            raise PowerCut
        self.call_count += 1
        if self.records_calls:
            self.calls.append((operation, str(path)))
        blows = bool(self.fuses.armed) and self.fuses.count(operation, str(path))
        if self.faults.is_idle():
            return None, blows
        fault = self.match_fault(operation, path)
        if fault is not None and fault.kind == "gone":
            raise disk_error(SYNCS.get(operation, operation), path, fault.errno)
        return fault, blows

    def match_fault(self, operation: str, path: Path) -> DiskFault | None:
        """The fault that strikes a call, or the kernel's own ``write_back``."""
        fault = self.faults.match(operation, str(path))
        if fault is not None:
            self.tell_strike(fault, operation.removesuffix("_io"), path)
        return fault

    def tell_strike(self, fault: DiskFault, operation: str, path: Path) -> None:
        """Tell ``on_strike``."""
        if self.on_strike is not None:
            self.on_strike(fault, operation, path)

    def report(self, operation: str, path: Path, position: int = 0, size_bytes: int = 0) -> None:
        """Tell ``on_call`` of a call that took effect, before a fuse blows in it.

        Calls that change what is visible are told of although the power goes off or the process
        ends inside them: their effect is there for a power cut to lose or to keep. Reads, looks
        and syncs are not then: nobody got their answer, and nothing was made durable.

        Position and size by operation:

        * reads: what was read; writes: what was stored, also the part that a failing write stores,
          and a split write is told of in two parts;
        * ``truncate``: what was cut off, or the new size and 0 where the file grew;
        * ``fsync`` (both halves at once) and ``complete_fsync``: from the first to the last byte
          that was pending and is durable now; ``begin_fsync``, and a sync that lied or failed
          without saying so: 0 and 0;
        * ``size``: 0 and the size; all others: 0 and 0. ``rename`` names the old path.

        A call that fails is not told of, but for what a failing write stores.
        """
        if self.on_call is not None:
            self.on_call(operation, path, position, size_bytes)

    def blow_after(self, blows: bool) -> None:
        """Cut the power at the end of a call whose effect may or may not have arrived."""
        if not blows:
            return
        self._drop_process()
        if self.fuses.blow() == "process":
            raise ProcessKill
        self._in_progress = self.serial
        self.is_powered = False
        raise PowerCut

    def _drop_process(self) -> None:
        self.incarnation += 1
        self.locks.clear()
        for inode in self.inodes.values():
            inode.opens = 0
            if inode.handle is not None:
                inode.handle.close()
                inode.handle = None
        self.sweep()

    def come_up(self) -> None:
        """The power is back, and nothing is pending."""
        self.is_powered = True
        self.is_read_only, self.read_only_by = False, None
        self.fuses.disarm()
        self._in_progress = None
        self.late_reports.clear()

    @contextmanager
    def refilled(self) -> Iterator[tuple[Disk, Path]]:
        """Backing and root, to change what is there; afterwards that is all, and it is durable."""
        self._drop_process()
        for number in sorted(self._graves):
            self._backing.unlink(self.inodes[number].location)
        self._graves.clear()
        yield self._backing, self._root
        self.names = Names()
        self.inodes = {}
        self._adopt_all()
        self.come_up()

    def fail_full(self, operation: str, path: Path) -> NoReturn:
        """There is no room for what a call would store."""
        if self.on_full is not None:
            self.on_full(operation, path)
        raise disk_error(operation, path, errno.ENOSPC)

    def fail(self, fault: DiskFault | None, operation: str, path: Path) -> None:
        if fault is not None and fault.kind == "error":
            raise disk_error(operation, path, fault.errno)

    def check_writable(self, operation: str, path: Path) -> None:
        """Raise EROFS where the file system is read-only, for a while or up to a power cut."""
        fault = self.read_only_by
        if not self.is_read_only and not self.faults.is_idle():
            fault = self.faults.match("change", str(path))
        if fault is not None:
            self.tell_strike(fault, operation, path)
        if fault is not None or self.is_read_only:
            raise disk_error(operation, path, errno.EROFS)

    def fail_sync(self, fault: DiskFault | None, operation: str, path: Path) -> None:
        """Fail a sync of a file system that is read-only, or that becomes so at this one."""
        self.check_writable(operation, path)
        if fault is not None and fault.kind == "fsync-read-only":
            self.is_read_only, self.read_only_by = True, fault
            raise disk_error(operation, path, fault.errno)

    def lose_pages(self, inode: Inode, pages: list[int], fault: DiskFault) -> None:
        """Linux: what could not be written is marked clean."""
        inode.state.phantoms.update(pages)
        if fault.content == "revert" and inode.state.phantoms:
            self.revert(inode)

    def next_serial(self) -> int:
        self.serial += 1
        return self.serial

    def place(self, path: Path, operation: str, about: Path | None = None) -> tuple[int, str]:
        """Parent directory's inode and the name in it; errors are about ``path`` by default."""
        parts = parts_of(path)
        about = about or path
        if not parts:
            raise disk_error(operation, about, ROOT_ERRNOS.get(operation, errno.EISDIR))
        return self._directory(operation, about, parts[:-1]), parts[-1]

    def _directory(self, operation: str, path: Path, parts: tuple[str, ...] | None = None) -> int:
        parts = parts_of(path) if parts is None else parts
        number = self.names.find(parts)
        if number is None:
            raise disk_error(operation, path, self.why_missing(parts))
        if self.names.kinds[number] != DIRECTORY:
            raise disk_error(operation, path, errno.ENOTDIR)
        return number

    def why_missing(self, parts: tuple[str, ...]) -> int:
        """The errno of a path that leads nowhere: a file may stand in its way."""
        for count in range(1, len(parts)):
            number = self.names.find(parts[:count])
            if number is not None and self.names.kinds[number] != DIRECTORY:
                return errno.ENOTDIR
        return errno.ENOENT

    def check_rename(
        self,
        path: Path,
        number: int,
        replaced: int | None,
        old: tuple[str, ...],
        new: tuple[str, ...],
    ) -> None:
        """Raise what Linux does where a name cannot take the place of another."""
        is_directory = self.names.kinds[number] == DIRECTORY
        if is_directory and new[: len(old)] == old:
            raise disk_error("rename", path, errno.EINVAL)
        if old[: len(new)] == new:
            raise disk_error("rename", path, errno.ENOTEMPTY)
        if replaced is None:
            return
        over_directory = self.names.kinds[replaced] == DIRECTORY
        if over_directory and not is_directory:
            raise disk_error("rename", path, errno.EISDIR)
        if is_directory and not over_directory:
            raise disk_error("rename", path, errno.ENOTDIR)
        if over_directory and self.names.visible[replaced]:
            raise disk_error("rename", path, errno.ENOTEMPTY)

    def handle_of(self, inode: Inode) -> DiskFile:
        if inode.handle is None:
            inode.handle = self._backing.open(inode.location)
        return inode.handle

    def _bury(self, number: int) -> None:
        """Take a file's visible name away; its bytes stay for handles and for power cuts."""
        inode = self.inodes[number]
        grave = self._graveyard / str(number)
        self._backing.rename(inode.location, grave)
        inode.location = grave
        self._graves.add(number)

    def _relocate(self, old: Path, new: Path) -> None:
        """A directory has another name."""
        for inode in self.inodes.values():
            if old in inode.location.parents:
                inode.location = new / inode.location.relative_to(old)

    def commit_names(self, up_to: int, directory: int | None = None) -> None:
        self.names.commit(up_to, directory if self.names_mode == "posix" else None)
        self.sweep()

    def sweep(self) -> None:
        """Remove the bytes of files that no name, handle or power cut can bring back."""
        if not self._graves:
            return
        named = self.names.durable_inodes()
        named.update(op.added[1] for op in self.names.ops if op.added is not None)
        named.update(op.removed[1] for op in self.names.ops if op.removed is not None)
        for number in sorted(self._graves):
            inode = self.inodes[number]
            if number not in named and inode.opens == 0:
                if inode.handle is not None:
                    inode.handle.close()
                self._backing.unlink(inode.location)
                del self.inodes[number]
                self._graves.discard(number)

    def _visible(self, inode: Inode, start: int) -> bytes:
        return self.handle_of(inode).read_at(start, inode.state.size - start)

    def content_of(self, number: int) -> bytes:
        """A file's visible bytes, by its inode."""
        inode = self.inodes[number]
        content = self._visible(inode, 0)
        self.let_go(inode)
        return content

    def room(self, growth: int) -> int:
        """How many of ``growth`` further bytes fit."""
        if self.capacity_bytes is None:
            return growth
        return max(0, min(growth, self.capacity_bytes - self.used_bytes()))

    def used_bytes(self) -> int:
        """How much data is visible, or kept for handles and power cuts."""
        return sum(inode.state.size for inode in self.inodes.values())

    def place_bytes(self, inode: Inode, position: int, data: bytes) -> None:
        """Change visible and durable bytes alike."""
        self.rewrites += 1
        old = self.handle_of(inode).read_at(position, len(data))
        self.handle_of(inode).write_at(position, data)
        serial = self.next_serial()
        inode.state.note_write(serial, position, data, old)
        inode.state.write_back(list(pages_of(position, position + len(data))), serial)

    def revert(self, inode: Inode) -> None:
        """Show what the platter has of the phantom pages; the rest stays pending as one write."""
        self.rewrites += 1
        state = inode.state
        start = state.window_start()
        visible = self._visible(inode, start)
        base = state.base_window(visible, start)
        forced = {op.serial: state.forced(op) for op in state.ops}
        reached = {}
        for op in state.ops:
            ranges = ((op.position, op.end),) if op.data is not None else ()
            kept = without_pages(ranges, state.phantoms)
            reached[op.serial] = Reached((*kept, *forced[op.serial].ranges), True)
        platter = render(state, bytearray(base), start, forced, fill=b"")
        now = render(state, base, start, reached, fill=b"")
        self.handle_of(inode).write_at(start, bytes(now))
        self.handle_of(inode).truncate(start + len(now))
        old, old_size = bytes(platter), start + len(platter)
        state.ops = []
        if len(now) < len(old):
            tail = old[len(now) :]
            state.ops.append(FileOp(self.next_serial(), start + len(now), None, tail, old_size))
            old, old_size = old[: len(now)], start + len(now)
        if now != old:
            state.ops.append(FileOp(self.next_serial(), start, bytes(now), old, old_size))
        state.undo_bytes = sum(len(op.old) + len(op.data or b"") for op in state.ops)
        state.size = start + len(now)
        state.phantoms.clear()
        state.floors.clear()
        self.let_go(inode)

    def let_go(self, inode: Inode) -> None:
        if inode.opens == 0 and inode.handle is not None:
            inode.handle.close()
            inode.handle = None


def parts_of(path: Path) -> tuple[str, ...]:
    """A path's names below the disk's root."""
    parts = path.parts[1:] if path.is_absolute() else path.parts
    if ".." in parts:
        raise disk_error("resolve", path, errno.EINVAL, "'..' is not resolved here")
    return parts
