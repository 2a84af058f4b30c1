"""The simulated disk: real files that always show what a process sees, and what a crash may leave.

``SimDisk`` keeps the contract of ``storage.disk.Disk`` over any other disk, its *backing*: the
operating system's or one in memory. Writes go through at once; what is not durable is remembered
with enough to undo it. A process kill therefore needs nothing, and a power cut rewrites the files
to a legal image and says what was lost (a ``Manifest``). Nothing here syncs the backing.

Rules: FAULTS C.5. Two metadata modes: ``posix`` makes names durable by a sync of their directory
only, ``ext4`` by any sync, in order. Left out: virtual time (what a call costs), the cluster, and
which bytes belong to which batch.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Mapping
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

from sim.disk_core import DiskCore, PowerCut, ProcessKill, parts_of
from sim.disk_crash import Inode, Manifest, carry_out
from sim.disk_faults import DiskFault
from sim.disk_files import SECTOR_BYTES, FileState
from sim.disk_handles import SimFile, SimLock
from sim.disk_images import CRASH_MODES, Image, draw_image, enumerate_images
from sim.disk_names import DIRECTORY, FILE
from storage.disk import Disk, DiskFile, DiskLock, FileKind, FileStat, disk_error

__all__ = ["Manifest", "PowerCut", "ProcessKill", "SimDisk"]


@lru_cache(maxsize=4_096)
def _joined(root: Path, parts: tuple[str, ...]) -> Path:
    """A path below a root; worlds make the same ones again and again."""
    return root.joinpath(*parts)


class SimDisk(DiskCore):
    """The calls of a simulated disk, its power switch, and what happens behind a process's back."""

    def _location(self, path: Path) -> Path:
        return _joined(self._root, parts_of(path))

    # The Disk contract -------------------------------------------------------------------------

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> DiskFile:
        fault, blows = self.enter("open", path)
        self.fail(fault, "open", path)
        if write:
            self.check_writable("open", path)
        inode = self._found_or_created("open", path, create=create)
        self.report("open", path)
        self.blow_after(blows)
        inode.opens += 1
        self.handle_of(inode)
        return SimFile(self, inode, path, self.incarnation, is_writable=write)

    def _found_or_created(self, operation: str, path: Path, *, create: bool) -> Inode:
        parent, entry = self.place(path, operation)
        number = self.names.visible[parent].get(entry)
        if number is None:
            if not create:
                raise disk_error(operation, path, errno.ENOENT)
            self.check_writable(operation, path)
            number = self.names.new_inode(FILE)
            location = self._location(path)
            handle = self._backing.open(location, create=True)
            self.inodes[number] = Inode(FileState(number), location, handle)
            self.names.add(self.next_serial(), "create", parent, entry, number)
        elif self.names.kinds[number] == DIRECTORY:
            raise disk_error(operation, path, errno.EISDIR)
        return self.inodes[number]

    def stat(self, path: Path) -> FileStat:
        fault, blows = self.enter("stat", path)
        self.fail(fault, "stat", path)
        self.blow_after(blows)
        parts = parts_of(path)
        number = self.names.find(parts)
        if number is None and self.why_missing(parts) == errno.ENOTDIR:
            raise disk_error("stat", path, errno.ENOTDIR)
        self.report("stat", path)
        if number is None:
            return FileStat(FileKind.MISSING, 0)
        if self.names.kinds[number] == DIRECTORY:
            return FileStat(FileKind.DIRECTORY, 0)
        return FileStat(FileKind.FILE, self.inodes[number].state.size)

    def listdir(self, path: Path) -> list[str]:
        fault, blows = self.enter("listdir", path)
        self.fail(fault, "listdir", path)
        self.blow_after(blows)
        found = sorted(self.names.visible[self._directory("listdir", path)])
        self.report("listdir", path)
        return found

    def mkdir(self, path: Path) -> None:
        fault, blows = self.enter("mkdir", path)
        self.fail(fault, "mkdir", path)
        self.check_writable("mkdir", path)
        parent, entry = self.place(path, "mkdir")
        if entry in self.names.visible[parent]:
            raise disk_error("mkdir", path, errno.EEXIST)
        self._backing.mkdir(self._location(path))
        number = self.names.new_inode(DIRECTORY)
        self.names.add(self.next_serial(), "mkdir", parent, entry, number)
        self.report("mkdir", path)
        self.blow_after(blows)

    def rename(self, old: Path, new: Path) -> None:
        fault, blows = self.enter("rename", old)
        self.fail(fault, "rename", old)
        self.check_writable("rename", old)
        source, target = self.place(old, "rename"), self.place(new, "rename", old)
        number = self.names.visible[source[0]].get(source[1])
        if number is None:
            raise disk_error("rename", old, errno.ENOENT)
        replaced = self.names.visible[target[0]].get(target[1])
        if replaced == number:
            self.report("rename", old)
            return
        self.check_rename(old, number, replaced, parts_of(old), parts_of(new))
        serial = self.next_serial()
        if replaced is not None and replaced in self.inodes:
            if self.auto_da_alloc:
                self.inodes[number].state.sync(serial)
            self._bury(replaced)
        elif replaced is not None:
            self._backing.rmdir(self._location(new))
        here, there = self._location(old), self._location(new)
        self._backing.rename(here, there)
        if number in self.inodes:
            self.inodes[number].location = there
        else:
            self._relocate(here, there)
        self.names.move(serial, source, target)
        self.report("rename", old)
        self.blow_after(blows)

    def unlink(self, path: Path) -> None:
        fault, blows = self.enter("unlink", path)
        self.fail(fault, "unlink", path)
        self.check_writable("unlink", path)
        parent, entry = self.place(path, "unlink")
        number = self.names.visible[parent].get(entry)
        if number is None:
            raise disk_error("unlink", path, errno.ENOENT)
        if self.names.kinds[number] == DIRECTORY:
            raise disk_error("unlink", path, errno.EISDIR)
        self._bury(number)
        self.names.remove(self.next_serial(), "unlink", parent, entry)
        self.report("unlink", path)
        self.blow_after(blows)

    def rmdir(self, path: Path) -> None:
        fault, blows = self.enter("rmdir", path)
        self.fail(fault, "rmdir", path)
        self.check_writable("rmdir", path)
        parent, entry = self.place(path, "rmdir")
        number = self.names.visible[parent].get(entry)
        if number is None:
            raise disk_error("rmdir", path, errno.ENOENT)
        if self.names.kinds[number] != DIRECTORY:
            raise disk_error("rmdir", path, errno.ENOTDIR)
        if self.names.visible[number]:
            raise disk_error("rmdir", path, errno.ENOTEMPTY)
        self._backing.rmdir(self._location(path))
        self.names.remove(self.next_serial(), "rmdir", parent, entry)
        self.report("rmdir", path)
        self.blow_after(blows)

    def fsync_dir(self, path: Path) -> None:
        fault, blows = self.enter("fsync_dir", path)
        if fault is not None and fault.kind == "fsync-lie":
            self.report("fsync_dir", path)
            return
        self.fail(fault, "fsync_dir", path)
        self.fail_sync(fault, "fsync_dir", path)
        directory = self._directory("fsync_dir", path)
        self.blow_after(blows)
        self.commit_names(self.serial, directory)
        self.report("fsync_dir", path)

    def lock(self, path: Path) -> DiskLock:
        fault, blows = self.enter("lock", path)
        self.fail(fault, "lock", path)
        self.check_writable("lock", path)
        inode = self._found_or_created("lock", path, create=True)
        if inode.state.number in self.locks:
            raise disk_error("lock", path, errno.EWOULDBLOCK)
        self.report("lock", path)
        self.blow_after(blows)
        # The lock is the file's and not its name's, so it keeps a file without a name.
        inode.opens += 1
        self.locks.add(inode.state.number)
        return SimLock(self, inode, self.incarnation)

    # Power and process ---------------------------------------------------------------------------

    def arm_fuse(self, calls: int, *, kills: bool = False, fault: str = "") -> None:
        """Cut the power inside the ``calls``-th call from now (1 is the next): ``PowerCut``.

        A call that changes something is under way then: images with and without it are legal.
        With ``kills`` only the process ends, after the call: ``ProcessKill``. ``fault`` is an id
        that ``fuses.blown`` has then.
        """
        self.fuses.arm(calls, kills=kills, fault=fault)

    def arm_fuse_at(
        self,
        operation: str,
        path_suffix: str,
        hit: int = 1,
        *,
        kills: bool = False,
        fault: str = "",
    ) -> None:
        """Cut the power inside the ``hit``-th call from now of one operation on such paths.

        Several such fuses may wait at once. A call that fails by itself leaves its fuse to the next
        one that matches.

        Args:
            operation: one of ``sim.disk_fuses.OPERATIONS``.
            path_suffix: how the path ends; empty for every path. A rename is known by its old path.
        """
        self.fuses.arm_at(operation, path_suffix, hit, kills=kills, fault=fault)

    def disarm_fuse(self, fault: str | None = None) -> None:
        """Take all fuses out, or those of one fault."""
        self.fuses.disarm(fault)

    def kill(self) -> None:
        """The process ends: handles and locks go, the page cache stays."""
        self._drop_process()

    def images(self) -> Iterator[Image]:
        """The enumerated images of a power cut now, or of the one that a fuse made."""
        return enumerate_images(
            self._files(), self.names, self.names_mode, in_progress=self._in_progress
        )

    def power_cut(
        self,
        image: Image | None = None,
        *,
        mode: str | None = None,
        weights: Mapping[str, int] = CRASH_MODES,
        noise: bool = False,
    ) -> Manifest:
        """The power goes off (or went off at the fuse) and comes back: the files are an image.

        Args:
            image: one of ``images()``; drawn by default.
            mode: draw in this crash mode.
            noise: a size may arrive with noise instead of data.
        """
        if image is None:
            image = draw_image(
                self._files(),
                self.names,
                self.names_mode,
                self.draws,
                (self.name, self.crash_count),
                mode=mode,
                weights=weights,
                in_progress=self._in_progress,
                noise=noise,
            )
        self.crash_count += 1
        self._drop_process()
        manifest = carry_out(
            self._backing, self._root, self._graveyard, self.names, self.inodes, image
        )
        self._graves.clear()
        self.come_up()
        return manifest

    def _files(self) -> dict[int, FileState]:
        return {n: inode.state for n, inode in sorted(self.inodes.items()) if inode.state.ops}

    # Events behind the process's back -------------------------------------------------------------

    def write_back(self, path: Path | None = None, *, share_ppm: int = 1_000_000) -> int:
        """Background write-back: dirty pages reach the platter without anybody being told.

        Args:
            path: one file; all files by default.
            share_ppm: how many of a million pages, by keyed draw.

        Returns:
            How many pages were written.
        """
        count = 0
        if self.is_read_only or self.faults.has("read-only"):
            return count
        only = None if path is None else self.names.find(parts_of(path))
        is_struck = not self.faults.is_idle()
        paths: dict[int, Path] = {}
        if is_struck:
            paths = {number: Path("/") / found for found, number in self.names.paths()}
        # A file with nothing pending has no page to write, and a sync of it changes nothing.
        for number, state in self._files().items():
            if path is not None and number != only:
                continue
            pages = [
                page
                for page in state.dirty_pages(self.serial)
                if self.draws.chance(share_ppm, "write-back", self.name, number, page, self.serial)
            ]
            if is_struck:
                pages = self._without_lost(self.inodes[number], pages, paths.get(number, Path()))
            state.write_back(pages, self.serial)
            if share_ppm == 1_000_000 and not state.phantoms:
                state.sync(self.serial)
            count += len(pages)
        if self.names_mode == "ext4" and path is None and share_ppm == 1_000_000:
            self.commit_names(self.serial)
        return count

    def _without_lost(self, inode: Inode, pages: list[int], path: Path) -> list[int]:
        """The pages that can be written; the next fsync of the file tells of the others."""
        needing = set(inode.state.pages_without_block(self.serial)).intersection(pages)
        fault = self.match_fault("write_back", path) if needing else None
        if fault is None and pages:
            fault, needing = self.match_fault("write_back_io", path), set(pages)
        if fault is None:
            return pages
        self.late_reports[inode.state.number] = fault
        inode.state.write_back([page for page in pages if page not in needing], self.serial)
        self.lose_pages(inode, sorted(needing), fault)
        return []

    def evict(self) -> None:
        """Memory pressure: pages that a failed fsync or a lost write left clean are read anew."""
        for inode in self.inodes.values():
            if inode.state.phantoms:
                self.revert(inode)

    def flip_bit(self, path: Path, byte: int, bit: int = 0) -> None:
        """Bit rot: the platter's copy changes, and so does what is read."""
        self.flip_bits(path, byte, 1 << bit)

    def flip_bits(self, path: Path, byte: int, mask: int) -> None:
        """``flip_bit`` for several bits of one byte.

        Raises:
            ValueError: there is no such byte.
        """
        inode = self._inode_at(path)
        old = self.handle_of(inode).read_at(byte, 1)
        if not old:
            raise ValueError(f"byte {byte} is behind the end of {path}")
        self.place_bytes(inode, byte, bytes([old[0] ^ mask]))
        self.let_go(inode)

    def overwrite(self, path: Path, byte: int, data: bytes) -> None:
        """The platter's copy becomes ``data`` there, and so does what is read.

        Raises:
            ValueError: it would reach behind the end of the file.
        """
        inode = self._inode_at(path)
        if byte + len(data) > inode.state.size:
            end = inode.state.size
            raise ValueError(f"{len(data)} bytes at {byte} are behind the end of {path} ({end})")
        self.place_bytes(inode, byte, data)
        self.let_go(inode)

    def shorten(self, path: Path, size_bytes: int) -> None:
        """The file ends there, on the platter too; what is left of it is durable."""
        inode = self._inode_at(path)
        state = inode.state
        if size_bytes < state.size:
            self.rewrites += 1
            handle = self.handle_of(inode)
            old = handle.read_at(size_bytes, state.size - size_bytes)
            handle.truncate(size_bytes)
            state.note_truncate(self.next_serial(), size_bytes, old)
            state.sync(self.serial)
            self.let_go(inode)

    def spoil_sectors(
        self,
        path: Path,
        byte: int,
        size_bytes: int = SECTOR_BYTES,
        *,
        by: DiskFault | None = None,
    ) -> None:
        """Reads of these sectors fail with EIO until they are written again.

        Args:
            by: the fault that is told of then.
        """
        last = (byte + size_bytes - 1) // SECTOR_BYTES
        sectors = range(byte // SECTOR_BYTES, last + 1)
        self._inode_at(path).bad_sectors.update(dict.fromkeys(sectors, by))

    def mend_sectors(self, fault_id: str) -> None:
        """The sectors that a fault spoiled can be read again."""
        for inode in self.inodes.values():
            bad = inode.bad_sectors.items()
            left = {at: by for at, by in bad if by is None or by.id != fault_id}
            inode.bad_sectors = left

    def _inode_at(self, path: Path) -> Inode:
        number = self.names.find(parts_of(path))
        if number is None or number not in self.inodes:
            raise ValueError(f"{path} is no file of disk {self.name}")
        return self.inodes[number]

    # Looking at it --------------------------------------------------------------------------------

    @property
    def pending_count(self) -> int:
        """Operations that a power cut could take."""
        return len(self.names.ops) + sum(len(i.state.ops) for i in self.inodes.values())

    def digest(self) -> str:
        """Digest of visible names and contents, in hex; the same on every backing."""
        state = blake2b(digest_size=16)
        for path, number in self.names.paths():
            inode = self.inodes.get(number)
            state.update(f"{path}\0{self.names.kinds[number]}\0".encode())
            if inode is not None:
                state.update(f"{inode.state.size}\0".encode())
                state.update(self._visible(inode, 0))
                self.let_go(inode)
        return state.hexdigest()

    def copy(self, backing: Disk) -> SimDisk:
        """The same disk over a copy of its backing, without handles, locks and listeners."""
        twin = SimDisk.__new__(SimDisk)
        for name, value in self.__dict__.items():
            setattr(twin, name, value)
        twin._backing = backing
        twin.names = self.names.copy()
        twin.faults = self.faults.copy()
        twin.fuses = self.fuses.copy()
        twin.on_call = twin.on_strike = twin.on_full = None
        twin.calls = list(self.calls)
        twin.locks = set()
        twin._graves = set(self._graves)
        twin.late_reports = dict(self.late_reports)
        twin.inodes = {
            number: Inode(inode.state.copy(), inode.location, None, 0, dict(inode.bad_sectors))
            for number, inode in self.inodes.items()
        }
        return twin
