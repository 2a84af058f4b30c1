"""The disk contract of ``storage.disk`` wholly in memory, for tests and simulated worlds.

Rules:

* An fsync only checks its arguments. A simulator that loses writes or fails wraps this disk.
* A file outlives its name while a handle or a lock is open on it, and gives back its bytes then.
* ``capacity_bytes`` bounds the sum of all file sizes. A hole counts like data, names are free.
* ``/`` is there from the start, and relative paths begin at it. Paths are taken as they are
  spelled: ``..`` is refused (``EINVAL``), and so is a way through a symbolic link (``ENOTDIR``).

Left out: hard links, permissions, and limits on the length of a name or the number of handles.
"""

from __future__ import annotations

import errno
from pathlib import Path

from attrs import define, field

from storage.disk import Buffer, FileKind, FileStat, LockState, disk_error
from storage.errors import DiskError, FileMissing
from storage.values import Copied

__all__ = ["MemDisk"]


@define(eq=False, repr=False)
class _Inode(Copied):
    """A regular file. ``references`` counts its name, its open handles and its lock."""

    content: bytearray = field(factory=bytearray)
    references: int = 1
    is_locked: bool = False


# A directory is a dict of what it holds, a symbolic link is its target.
_Directory = dict[str, "_Node"]
_Node = _Directory | _Inode | Path
_Place = tuple[_Directory, str]


@define(eq=False, repr=False)
class _MemFile(Copied):
    path: Path
    _disk: MemDisk
    _inode: _Inode
    _content: bytearray  # the inode's own: one attribute less on the hot path
    _is_writable: bool
    _is_open: bool = True

    def read_at(self, position: int, size_bytes: int) -> bytes:
        if position < 0 or size_bytes < 0 or not self._is_open:
            raise self._refusal("read_at", min(position, size_bytes))
        # Through a view: a slice of the bytearray would be a second copy.
        return bytes(memoryview(self._content)[position : position + size_bytes])

    def read_into(self, position: int, buffer: memoryview) -> int:
        if position < 0 or not self._is_open:
            raise self._refusal("read_into", position)
        with memoryview(self._content)[position : position + len(buffer)] as part:
            buffer[: len(part)] = part
            return len(part)

    def write_at(self, position: int, data: Buffer) -> None:
        self._store("write_at", position, data)

    def append(self, data: Buffer) -> int:
        position = len(self._content)
        self._store("append", position, data)
        return position

    def truncate(self, size_bytes: int) -> None:
        disk = self._disk
        if size_bytes < 0 or not self._is_writable or disk.read_only:
            raise self._refusal("truncate", size_bytes)
        growth_bytes = size_bytes - len(self._content)
        capacity_bytes = disk.capacity_bytes
        if capacity_bytes is not None and growth_bytes > max(0, capacity_bytes - disk.used_bytes):
            raise disk_error("truncate", self.path, errno.ENOSPC)
        del self._content[size_bytes:]
        self._content.extend(bytes(max(0, growth_bytes)))
        disk.used_bytes += growth_bytes

    def size(self) -> int:
        if not self._is_open:
            raise self._refusal("size")
        return len(self._content)

    def begin_fsync(self) -> int:
        return 0

    def complete_fsync(self, token: int) -> None:
        if not self._is_open:
            raise self._refusal("fsync")

    def fsync(self) -> None:
        self.complete_fsync(self.begin_fsync())

    def fileno(self) -> int | None:
        return None

    def close(self) -> None:
        if self._is_open:
            self._is_open = self._is_writable = False
            self._disk._forget(self._inode)

    def _store(self, operation: str, position: int, data: Buffer) -> None:
        disk = self._disk
        if position < 0 or not self._is_writable or disk.read_only:
            raise self._refusal(operation, position)
        content = self._content
        end = position + len(data)
        growth_bytes = end - len(content)
        # Writing no bytes makes no hole, however far behind the end it is.
        if growth_bytes > 0 and data:
            capacity_bytes = disk.capacity_bytes
            if capacity_bytes is not None and growth_bytes > capacity_bytes - disk.used_bytes:
                # Like a real full disk, store the part that there is room for.
                limit = len(content) + max(0, capacity_bytes - disk.used_bytes)
                self._store(operation, position, data[: max(0, limit - position)])
                raise disk_error(operation, self.path, errno.ENOSPC)
            if position > len(content):
                content.extend(bytes(position - len(content)))
            disk.used_bytes += growth_bytes
        content[position:end] = data

    def _refusal(self, operation: str, position: int = 0) -> DiskError:
        number = errno.EROFS if self._is_writable else errno.EBADF
        return disk_error(operation, self.path, errno.EINVAL if position < 0 else number)


@define(eq=False, repr=False)
class _MemLock:
    _disk: MemDisk
    _inode: _Inode
    _is_held: bool = True

    def release(self) -> None:
        if self._is_held:
            self._is_held = self._inode.is_locked = False
            self._disk._forget(self._inode)


class MemDisk:
    """Files in memory; see the module header for how it differs from a real disk.

    Attributes:
        capacity_bytes: room for file contents, None is no limit. A write past it stores what
            fits, growing by ``truncate`` past it changes nothing; both raise ``DiskFull``.
        read_only: while true, every change raises ``DiskReadOnly``, on open handles too.
        used_bytes: sum of the sizes of all files, nameless open ones included. Do not set it.
    """

    __slots__ = ("_top", "capacity_bytes", "read_only", "used_bytes")

    def __init__(self, *, capacity_bytes: int | None = None, read_only: bool = False) -> None:
        self.capacity_bytes = capacity_bytes
        self.read_only = read_only
        self.used_bytes = 0
        self._top: _Directory = {"/": {}}  # the root is an entry too: every path has a parent

    def copy(self) -> MemDisk:
        """An independent disk with the same named files; open handles and locks stay behind."""
        twin = MemDisk(capacity_bytes=self.capacity_bytes, read_only=self.read_only)
        twin._top = twin._copied(self._top)
        return twin

    def open(self, path: Path, *, create: bool = False, write: bool = True) -> _MemFile:
        inode = self._open_inode("open", path, create=create, write=write)
        return _MemFile(path, self, inode, inode.content, write)

    def stat(self, path: Path) -> FileStat:
        try:
            directory, name = self._place("stat", path)
            node = directory[name]
        except (FileMissing, KeyError):
            return FileStat(FileKind.MISSING, 0)
        if isinstance(node, _Inode):
            return FileStat(FileKind.FILE, len(node.content))
        return FileStat(FileKind.DIRECTORY if isinstance(node, dict) else FileKind.SYMLINK, 0)

    def listdir(self, path: Path) -> list[str]:
        return sorted(self._directory("listdir", path))

    def mkdir(self, path: Path) -> None:
        self._add("mkdir", path, {})

    def symlink(self, path: Path, target: Path) -> None:
        """Create a symbolic link, which no call follows. Not part of the contract."""
        self._add("symlink", path, target)

    def rename(self, old: Path, new: Path) -> None:
        old_parent, old_name = self._place("rename", old)
        new_parent, new_name = self._place("rename", new, blame=old)
        node, target = old_parent.get(old_name), new_parent.get(new_name)
        moves_directory, onto_directory = isinstance(node, dict), isinstance(target, dict)
        here, there = _parts(old), _parts(new)
        # In the order in which Linux checks them.
        for is_wrong, number in (
            ("/" in (old_name, new_name), errno.EBUSY),
            (self.read_only, errno.EROFS),
            (node is None, errno.ENOENT),
            (here != there and there[: len(here)] == here, errno.EINVAL),
            (here != there and here[: len(there)] == there, errno.ENOTEMPTY),
            (moves_directory and not (onto_directory or target is None), errno.ENOTDIR),
            (onto_directory and not moves_directory, errno.EISDIR),
            (onto_directory and target and target is not node, errno.ENOTEMPTY),
        ):
            if is_wrong:
                raise disk_error("rename", old, number)
        if target is not node:
            self._forget(target)
        new_parent[new_name] = old_parent.pop(old_name)

    def unlink(self, path: Path) -> None:
        directory, name = self._place("unlink", path)
        self._check_writable("unlink", path)
        node = directory.get(name)
        if node is None or isinstance(node, dict):
            raise disk_error("unlink", path, errno.ENOENT if node is None else errno.EISDIR)
        self._forget(directory.pop(name))

    def rmdir(self, path: Path) -> None:
        parent, name = self._place("rmdir", path)
        self._check_writable("rmdir", path)
        if self._directory("rmdir", path) or name == "/":
            raise disk_error("rmdir", path, errno.EBUSY if name == "/" else errno.ENOTEMPTY)
        del parent[name]

    def fsync_dir(self, path: Path) -> None:
        self._directory("fsync_dir", path)

    def lock(self, path: Path) -> _MemLock:
        inode = self._open_inode("lock", path, create=True, write=True)
        if inode.is_locked:
            self._forget(inode)
            raise disk_error("lock", path, errno.EWOULDBLOCK)
        inode.is_locked = True
        return _MemLock(self, inode)

    def lock_state(self, path: Path) -> LockState:
        """See ``storage.disk.LockProbe``."""
        directory, name = self._place("lock_state", path)
        node = directory.get(name)
        return LockState(isinstance(node, _Inode) and node.is_locked)

    def _place(self, operation: str, path: Path, *, blame: Path | None = None) -> _Place:
        """Where ``path`` is or would be. An error names ``blame`` instead, if given."""
        *way, last = _parts(path)
        if last == ".." or ".." in way:
            raise disk_error(operation, blame or path, errno.EINVAL, f"'..' in {path}")
        directory = self._top
        for name in way:
            node = directory.get(name)
            if not isinstance(node, dict):
                number = errno.ENOENT if node is None else errno.ENOTDIR
                raise disk_error(operation, blame or path, number)
            directory = node
        return directory, last

    def _directory(self, operation: str, path: Path) -> _Directory:
        # Any name inside a directory has that directory as its place.
        return self._place(operation, path / "name", blame=path)[0]

    def _open_inode(self, operation: str, path: Path, *, create: bool, write: bool) -> _Inode:
        directory, name = self._place(operation, path)
        node = directory.get(name, _Inode() if create else None)
        if not isinstance(node, _Inode):
            directory_or_link = errno.EISDIR if isinstance(node, dict) else errno.ELOOP
            raise disk_error(operation, path, errno.ENOENT if node is None else directory_or_link)
        if write or name not in directory:
            self._check_writable(operation, path)
        directory[name] = node
        node.references += 1
        return node

    def _add(self, operation: str, path: Path, node: _Node) -> None:
        directory, name = self._place(operation, path)
        if name in directory:
            raise disk_error(operation, path, errno.EEXIST)
        self._check_writable(operation, path)
        directory[name] = node

    def _check_writable(self, operation: str, path: Path) -> None:
        if self.read_only:
            raise disk_error(operation, path, errno.EROFS)

    def _copied(self, original: _Directory) -> _Directory:
        """A deep copy, its files counted in ``used_bytes`` of this disk."""
        twin: _Directory = {}
        for name, node in original.items():
            if isinstance(node, _Inode):
                self.used_bytes += len(node.content)
                node = _Inode(node.content.copy())
            twin[name] = self._copied(node) if isinstance(node, dict) else node
        return twin

    def _forget(self, node: _Node | None) -> None:
        """One name, handle or lock of ``node`` is gone; the last gives back a file's bytes."""
        if isinstance(node, _Inode):
            node.references -= 1
            self.used_bytes -= 0 if node.references else len(node.content)


def _parts(path: Path) -> tuple[str, ...]:
    """The names on the way to ``path``; a relative one is below the root."""
    return ("/", *path.parts[1 if path.anchor else 0 :])
