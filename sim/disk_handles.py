"""Open files and locks of the simulated disk.

Left out: names and directories (``sim.disks``), what a crash leaves (``sim.disk_files``).
"""

from __future__ import annotations

import errno
from pathlib import Path

from sim.disk_core import DiskCore, PowerCut
from sim.disk_crash import Inode
from sim.disk_faults import DiskFault
from sim.disk_files import SECTOR_BYTES, pages_of
from storage.disk import Buffer, DiskFile, disk_error
from storage.values import Copied

__all__ = ["SimFile", "SimLock"]

UNDO_LIMIT_BYTES = 64 << 20


class SimFile(Copied):
    """An open file. After the end of its process every call but ``close`` is a ``PowerCut``."""

    __slots__ = ("_disk", "_incarnation", "_inode", "_is_open", "_is_writable", "_path")

    def __init__(
        self, disk: DiskCore, inode: Inode, path: Path, incarnation: int, *, is_writable: bool
    ) -> None:
        self._disk = disk
        self._inode = inode
        self._path = path
        self._incarnation = incarnation
        self._is_writable = is_writable
        self._is_open = True

    @property
    def path(self) -> Path:
        return self._path

    def _enter(self, operation: str) -> tuple[DiskFault | None, bool]:
        if self._incarnation != self._disk.incarnation:
            raise PowerCut
        fault, blows = self._disk.enter(operation, self._path)
        if not self._is_open:
            raise disk_error(operation, self._path, errno.EBADF, "closed")
        return fault, blows

    def read_at(self, position: int, size_bytes: int) -> bytes:
        fault = self._begin_read("read_at", position, size_bytes)
        disk = self._disk
        data = disk.handle_of(self._inode).read_at(position, size_bytes)
        if fault is not None:
            self._report_parts("read_at", position, len(data), fault)
        elif disk.on_call is not None:
            disk.on_call("read_at", self._path, position, len(data))
        return data

    def read_into(self, position: int, buffer: memoryview) -> int:
        fault = self._begin_read("read_into", position, len(buffer))
        count = self._disk.handle_of(self._inode).read_into(position, buffer)
        self._report_parts("read_into", position, count, fault)
        return count

    def _report_parts(
        self, operation: str, position: int, size_bytes: int, fault: DiskFault | None
    ) -> None:
        """A read was done, which a short read does in two parts."""
        first = 0 if fault is None else min(fault.partial_bytes, size_bytes)
        if first:
            self._disk.report(operation, self._path, position, first)
        self._disk.report(operation, self._path, position + first, size_bytes - first)

    def _begin_read(self, operation: str, position: int, size_bytes: int) -> DiskFault | None:
        """Returns the fault that strikes a read which comes to its end all the same."""
        fault, blows = self._enter(operation)
        self._disk.fail(fault, operation, self._path)
        if position < 0 or size_bytes < 0:
            raise disk_error(operation, self._path, errno.EINVAL)
        self._disk.blow_after(blows)
        if self._inode.bad_sectors:
            sectors = range(position // SECTOR_BYTES, -(-(position + size_bytes) // SECTOR_BYTES))
            bad = [each for each in sectors if each in self._inode.bad_sectors]
            if bad:
                by = self._inode.bad_sectors[bad[0]]
                if by is not None:
                    self._disk.tell_strike(by, operation, self._path)
                raise disk_error(operation, self._path, errno.EIO)
        return fault

    def write_at(self, position: int, data: Buffer) -> None:
        self._write("write_at", position, data)

    def append(self, data: Buffer) -> int:
        position = self._inode.state.size
        self._write("append", position, data)
        return position

    def _write(self, operation: str, position: int, data: Buffer) -> None:
        disk = self._disk
        fault, blows = self._enter(operation)
        if position < 0:
            raise disk_error(operation, self._path, errno.EINVAL)
        self._check_writable(operation)
        body = data if data.__class__ is bytes else bytes(data)
        if fault is not None:
            self._struck_write(operation, position, body, fault)
        else:
            self._store(operation, position, body)
        if blows:
            disk.blow_after(blows)

    def _check_writable(self, operation: str) -> None:
        if not self._is_writable:
            raise disk_error(operation, self._path, errno.EBADF, "opened read-only")
        self._disk.check_writable(operation, self._path)

    def _store(self, operation: str, position: int, data: bytes) -> None:
        disk, inode = self._disk, self._inode
        state = inode.state
        size = state.size
        handle = inode.handle or disk.handle_of(inode)
        growth = position + len(data) - size
        if disk.capacity_bytes is not None and growth > 0:
            fits = disk.room(growth)
            if fits < growth:
                part = data[: max(len(data) - growth + fits, 0)]
                self._store_of_failing(operation, handle, position, part)
                disk.fail_full(operation, self._path)
        self._store_part(handle, position, data)
        if disk.on_call is not None:
            disk.on_call(operation, self._path, position, len(data))

    def _store_of_failing(
        self, operation: str, handle: DiskFile, position: int, data: bytes
    ) -> None:
        self._store_part(handle, position, data)
        if data:
            self._disk.report(operation, self._path, position, len(data))

    def _store_part(self, handle: DiskFile, position: int, data: bytes) -> None:
        if not data:
            return
        disk, state = self._disk, self._inode.state
        old = b""
        if position < state.size:
            old = handle.read_at(position, min(len(data), state.size - position))
        handle.write_at(position, data)
        disk.serial += 1
        state.note_write(disk.serial, position, data, old)
        if self._inode.bad_sectors:
            first, last = -(-position // SECTOR_BYTES), (position + len(data)) // SECTOR_BYTES
            for sector in range(first, last):
                self._inode.bad_sectors.pop(sector, None)
        if state.undo_bytes > UNDO_LIMIT_BYTES:
            state.sync(disk.serial)

    def _struck_write(self, operation: str, position: int, data: bytes, fault: DiskFault) -> None:
        disk, state = self._disk, self._inode.state
        handle = disk.handle_of(self._inode)
        if fault.kind == "error":
            self._store_of_failing(operation, handle, position, data[: fault.partial_bytes])
            raise disk_error(operation, self._path, fault.errno)
        if fault.kind == "split-write":
            self._store(operation, position, data[: fault.partial_bytes])
            rest = position + len(data[: fault.partial_bytes])
            self._store(operation, rest, data[fault.partial_bytes :])
            return
        size = state.size
        self._store(operation, position, data)
        state.phantoms.update(pages_of(position, position + len(data)))
        if fault.kind == "misdirected-write":
            victim = position + fault.shift_bytes
            if not 0 <= victim < size:
                victim = max(0, position - fault.shift_bytes)
            body = data[: max(0, min(len(data), position - victim if victim < position else size))]
            if victim < size:
                disk.place_bytes(self._inode, victim, body[: size - victim])

    def truncate(self, size_bytes: int) -> None:
        disk, state = self._disk, self._inode.state
        fault, blows = self._enter("truncate")
        disk.fail(fault, "truncate", self._path)
        if size_bytes < 0:
            raise disk_error("truncate", self._path, errno.EINVAL)
        self._check_writable("truncate")
        if size_bytes > state.size and disk.room(size_bytes - state.size) < size_bytes - state.size:
            disk.fail_full("truncate", self._path)
        handle = disk.handle_of(self._inode)
        old = b""
        if size_bytes < state.size:
            old = handle.read_at(size_bytes, state.size - size_bytes)
        handle.truncate(size_bytes)
        state.note_truncate(disk.next_serial(), size_bytes, old)
        disk.report("truncate", self._path, size_bytes, len(old))
        disk.blow_after(blows)

    def size(self) -> int:
        fault, blows = self._enter("size")
        self._disk.fail(fault, "size", self._path)
        self._disk.blow_after(blows)
        size_bytes = self._inode.state.size
        self._disk.report("size", self._path, 0, size_bytes)
        return size_bytes

    def begin_fsync(self) -> int:
        token = self._begin_fsync()
        self._disk.report("begin_fsync", self._path)
        return token

    def _begin_fsync(self) -> int:
        _, blows = self._enter("begin_fsync")
        self._disk.blow_after(blows)
        return self._disk.serial

    def complete_fsync(self, token: int) -> None:
        self._complete_fsync("complete_fsync", token)

    def _complete_fsync(self, name: str, token: int) -> None:
        disk, state = self._disk, self._inode.state
        fault, blows = self._enter("complete_fsync")
        late = disk.late_reports.pop(state.number, None)
        if late is not None:
            disk.tell_strike(late, "fsync", self._path)
            raise disk_error("fsync", self._path, errno_of(late))
        if fault is not None and fault.kind == "fsync-lie":
            disk.report(name, self._path)
            return
        disk.check_writable("fsync", self._path)
        lost = self._lost_pages(fault, token)
        if fault is not None and (lost or fault.kind != "late-enospc"):
            self._fail_fsync(fault, lost, token)
            disk.report(name, self._path)
            return
        disk.blow_after(blows)
        span = (0, 0) if disk.on_call is None else state.pending_span(token)
        state.sync(token)
        if disk.names_mode == "ext4":
            disk.commit_names(token)
        disk.report(name, self._path, span[0], span[1] - span[0])

    def _lost_pages(self, fault: DiskFault | None, token: int) -> list[int]:
        if fault is None:
            return []
        state = self._inode.state
        if fault.kind == "late-enospc":
            return state.pages_without_block(token)
        return state.dirty_pages(token)

    def _fail_fsync(self, fault: DiskFault, lost: list[int], token: int) -> None:
        """Linux: what could not be written is marked clean, and only one caller hears of it."""
        disk, state = self._disk, self._inode.state
        written = [page for page in state.dirty_pages(token) if page not in lost]
        state.write_back(written, token)
        disk.lose_pages(self._inode, lost, fault)
        disk.fail_sync(fault, "fsync", self._path)
        if fault.report == "next":
            disk.late_reports[state.number] = fault
            return
        raise disk_error("fsync", self._path, errno_of(fault))

    def fsync(self) -> None:
        self._complete_fsync("fsync", self._begin_fsync())

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        if self._incarnation != self._disk.incarnation:
            return
        release(self._disk, self._inode)


class SimLock:
    """A lock of the simulated disk."""

    __slots__ = ("_disk", "_incarnation", "_inode", "_is_held")

    def __init__(self, disk: DiskCore, inode: Inode, incarnation: int) -> None:
        self._disk = disk
        self._inode = inode
        self._incarnation = incarnation
        self._is_held = True

    def release(self) -> None:
        if not self._is_held:
            return
        self._is_held = False
        if self._incarnation != self._disk.incarnation:
            return
        self._disk.locks.discard(self._inode.state.number)
        release(self._disk, self._inode)


def errno_of(fault: DiskFault) -> int:
    """What a failed fsync reports."""
    return errno.ENOSPC if fault.kind == "late-enospc" else fault.errno


def release(disk: DiskCore, inode: Inode) -> None:
    """A handle or lock of the inode is gone."""
    inode.opens -= 1
    if inode.opens == 0:
        disk.let_go(inode)
        disk.sweep()
