"""The names of a simulated disk: visible now, durable, and what lies between.

Directories map names to inodes. Every change of names is an operation in one log; a sync makes some
of them durable. After a power loss the durable names come back, with those pending operations that
an image lets through:

``posix``
    any subset in which operations on one name keep their order and nothing is in a directory that
    is not there; a sync of a directory makes that directory's operations durable. A rename arrives
    whole; in rare images both names stay.
``ext4``
    a prefix of the log; any fsync commits all of it.

Left out: file contents (``sim.disk_files``), hard links.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from attrs import Factory, define

__all__ = ["DIRECTORY", "FILE", "NameOp", "Names", "NamesMode"]

NamesMode = Literal["posix", "ext4"]
ROOT = 0
FILE = "file"
DIRECTORY = "directory"

Entry = tuple[int, str]
"""Directory inode and name."""


class NameOp(NamedTuple):
    """A change of names that is not durable.

    Attributes:
        serial: its place in the order of all operations of the disk.
        kind: ``create``, ``mkdir``, ``rename``, ``unlink`` or ``rmdir``.
        added: entry and inode that it made, or None.
        removed: entry and inode that it took away, or None; a rename has both.
    """

    serial: int
    kind: str
    added: tuple[Entry, int] | None
    removed: tuple[Entry, int] | None

    def __deepcopy__(self, memo: object) -> NameOp:
        return self

    @property
    def entries(self) -> tuple[Entry, ...]:
        """The entries that it touches."""
        return tuple(side[0] for side in (self.added, self.removed) if side is not None)


@define
class Names:
    """Two trees over the same inodes, and the operations that separate them.

    Attributes:
        kinds: kind of every inode.
        visible, durable: per directory inode its names.
        ops: pending operations, oldest first.
    """

    kinds: dict[int, str] = Factory(lambda: {ROOT: DIRECTORY})
    visible: dict[int, dict[str, int]] = Factory(lambda: {ROOT: {}})
    durable: dict[int, dict[str, int]] = Factory(lambda: {ROOT: {}})
    ops: list[NameOp] = Factory(list)
    next_inode: int = 1

    def new_inode(self, kind: str) -> int:
        """A fresh inode, not yet named."""
        number = self.next_inode
        self.next_inode += 1
        self.kinds[number] = kind
        if kind == DIRECTORY:
            self.visible[number] = {}
            self.durable[number] = {}
        return number

    def find(self, parts: tuple[str, ...]) -> int | None:
        """The inode of a visible path, None if there is none."""
        number = ROOT
        for part in parts:
            names = self.visible.get(number)
            if names is None or part not in names:
                return None
            number = names[part]
        return number

    def add(self, serial: int, kind: str, parent: int, name: str, number: int) -> None:
        """Note a new name of an inode."""
        self.visible[parent][name] = number
        self.ops.append(NameOp(serial, kind, ((parent, name), number), None))

    def remove(self, serial: int, kind: str, parent: int, name: str) -> int:
        """Note that a name is gone; returns its inode."""
        number = self.visible[parent].pop(name)
        self.ops.append(NameOp(serial, kind, None, ((parent, name), number)))
        return number

    def move(self, serial: int, old: Entry, new: Entry) -> int | None:
        """Note a rename; returns the inode that it replaced, if any."""
        replaced = self.visible[new[0]].get(new[1])
        number = self.visible[old[0]].pop(old[1])
        self.visible[new[0]][new[1]] = number
        self.ops.append(NameOp(serial, "rename", (new, number), (old, number)))
        return replaced

    def commit(self, up_to: int, directory: int | None = None) -> None:
        """Operations up to a serial are durable: all, or those that touch ``directory`` only."""
        kept = []
        for op in self.ops:
            touches = directory is None or any(at == directory for at, _ in op.entries)
            if op.serial <= up_to and touches:
                self._apply(op)
            else:
                kept.append(op)
        self.ops = kept

    def _apply(self, op: NameOp, *, keep_old: bool = False) -> None:
        if op.removed is not None and not keep_old:
            (parent, name), number = op.removed
            if self.durable.get(parent, {}).get(name) == number:
                del self.durable[parent][name]
        if op.added is not None:
            (parent, name), number = op.added
            if parent in self.durable:
                self.durable[parent][name] = number

    def settle(self, arrived: Collection[int], both: Collection[int] = ()) -> None:
        """Power loss: the durable names, with the pending operations named, are all there is.

        Args:
            arrived: serials of the operations that reached the platter.
            both: of these, renames after which the old name is there as well.
        """
        for op in self.ops:
            if op.serial in arrived:
                self._apply(op, keep_old=op.serial in both)
        self.ops = []
        reachable = {ROOT, *(number for _, number in self._walk(self.durable))}
        self.kinds = {n: kind for n, kind in self.kinds.items() if n in reachable}
        self.durable = {n: names for n, names in self.durable.items() if n in reachable}
        self.visible = {n: dict(names) for n, names in self.durable.items()}

    def legal(self, wanted: Collection[int], mode: NamesMode) -> set[int]:
        """The largest legal part of a set of pending operations, by serial."""
        taken: set[int] = set()
        held: set[Entry] = set()
        absent: set[int] = set()
        for op in self.ops:
            if mode == "ext4" and op.serial not in wanted:
                break
            is_free = not held.intersection(op.entries)
            has_place = op.added is None or op.added[0][0] not in absent
            if op.serial in wanted and is_free and has_place:
                taken.add(op.serial)
            else:
                held.update(op.entries)
                if op.kind == "mkdir" and op.added is not None:
                    absent.add(op.added[1])
        return taken

    def paths(self) -> list[tuple[Path, int]]:
        """Visible paths and inodes, parents before children, sorted by name."""
        return list(self._walk(self.visible))

    def durable_inodes(self) -> set[int]:
        """Durable inodes alone, for whoever asks after every sync."""
        found: set[int] = set()
        directories = [ROOT]
        while directories:
            inodes = self.durable.get(directories.pop(), {}).values()
            found.update(inodes)
            directories += [each for each in inodes if self.kinds.get(each) == DIRECTORY]
        return found

    def _walk(self, tree: dict[int, dict[str, int]]) -> Iterator[tuple[Path, int]]:
        stack = [(Path(), ROOT)]
        while stack:
            path, number = stack.pop()
            for name in sorted(tree.get(number, {}), reverse=True):
                child = tree[number][name]
                if self.kinds.get(child) == DIRECTORY:
                    stack.append((path / name, child))
            for name in sorted(tree.get(number, {})):
                yield path / name, tree[number][name]

    def copy(self) -> Names:
        """An independent copy."""
        return Names(
            dict(self.kinds),
            {n: dict(names) for n, names in self.visible.items()},
            {n: dict(names) for n, names in self.durable.items()},
            list(self.ops),
            self.next_inode,
        )

    def __deepcopy__(self, memo: object) -> Names:
        return self.copy()
