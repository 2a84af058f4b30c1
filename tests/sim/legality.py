"""A naive model of what a power cut may leave (FAULTS C.5.3 and C.5.4), written without ``sim``.

It keeps every version that a file had since its last sync, and every change of names that was not
synced, and tries all explanations of what it is shown:

* a byte is one that some version has there, or zero where no data arrived;
* of each shrinking it is assumed that it arrived, or not. If not, nothing that was written later
  shows behind the block of the cut; if so, nothing older shows behind the cut;
* the size is at most the largest of any version and at least the smallest;
* names are a prefix of the changes (``ext4``), or any subset in which the changes of one name keep
  their order (``posix``), where a rename may leave both names.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, product

from attrs import define, evolve, field, frozen

PAGE = 4_096


@frozen
class Version:
    """A file's content after the operation with this number; ``cut`` is where it shrank to."""

    number: int
    content: bytes
    cut: int | None = None


@define
class Content:
    """The versions of one inode since its last sync, the synced one first."""

    versions: list[Version] = field(factory=lambda: [Version(0, b"")])

    @property
    def now(self) -> bytes:
        return self.versions[-1].content

    def write(self, number: int, position: int, data: bytes) -> None:
        old = self.now.ljust(position, b"\0")
        new = old[:position] + data + old[position + len(data) :]
        self.versions.append(Version(number, new))

    def truncate(self, number: int, size: int) -> None:
        cut = size if size < len(self.now) else None
        self.versions.append(Version(number, self.now[:size].ljust(size, b"\0"), cut))

    def sync(self, up_to: int) -> None:
        at = max(n for n, version in enumerate(self.versions) if version.number <= up_to)
        self.versions = [evolve(self.versions[at], cut=None), *self.versions[at + 1 :]]

    def at(self, number: int) -> bytes:
        """What the file was after the operation ``number``."""
        return next(v.content for v in reversed(self.versions) if v.number <= number)

    def allows(self, image: bytes) -> bool:
        """Whether a power cut may leave these bytes."""
        sizes = [len(v.content) for v in self.versions]
        if not min(sizes) <= len(image) <= max(sizes):
            return False
        cuts = [n for n, v in enumerate(self.versions) if v.cut is not None]
        return any(
            self._explains(image, dict(zip(cuts, arrived, strict=True)))
            for arrived in product((False, True), repeat=len(cuts))
        )

    def _explains(self, image: bytes, cuts: dict[int, bool]) -> bool:
        for at, byte in enumerate(image):
            oldest, newest = 0, len(self.versions) - 1
            for number, arrived in cuts.items():
                size = self.versions[number].cut
                assert size is not None
                if arrived and at >= size:
                    oldest = max(oldest, number)
                if not arrived and at >= -(-size // PAGE) * PAGE:
                    newest = min(newest, number - 1)
            found = {
                v.content[at] for v in self.versions[oldest : newest + 1] if at < len(v.content)
            }
            if byte and byte not in found:
                return False
        return True


@frozen
class Change:
    """A change of names: ``added`` and ``removed`` are (name, inode) or None."""

    number: int
    added: tuple[str, int] | None
    removed: tuple[str, int] | None

    def names(self) -> set[str]:
        return {side[0] for side in (self.added, self.removed) if side}


@define
class Model:
    """Files and names of a disk.

    Attributes:
        mode: ``posix`` or ``ext4``.
        visible, durable: name to inode.
        pending: changes of names that no sync covered.
        number: operations so far.
    """

    mode: str
    files: dict[int, Content] = field(factory=dict)
    visible: dict[str, int] = field(factory=dict)
    durable: dict[str, int] = field(factory=dict)
    pending: list[Change] = field(factory=list)
    number: int = 0

    def next(self) -> int:
        self.number += 1
        return self.number

    def file(self, name: str) -> Content:
        """The file of that name, created if need be."""
        if name not in self.visible:
            inode = len(self.files) + 1
            self.files[inode] = Content()
            self.visible[name] = inode
            self.pending.append(Change(self.next(), (name, inode), None))
        return self.files[self.visible[name]]

    def rename(self, old: str, new: str) -> None:
        inode = self.visible.pop(old)
        self.visible[new] = inode
        self.pending.append(Change(self.next(), (new, inode), (old, inode)))

    def unlink(self, name: str) -> None:
        inode = self.visible.pop(name)
        self.pending.append(Change(self.next(), None, (name, inode)))

    def sync(self, file: Content, up_to: int) -> None:
        file.sync(up_to)
        if self.mode == "ext4":
            self.sync_names(up_to)

    def sync_names(self, up_to: int) -> None:
        due = [change for change in self.pending if change.number <= up_to]
        self.durable = applied(self.durable, due)
        self.pending = [change for change in self.pending if change.number > up_to]

    def inodes_named(self, name: str) -> set[int]:
        """Every inode that may bear the name after a power cut."""
        found = {self.durable[name]} if name in self.durable else set()
        added = (change.added for change in self.pending)
        return found | {side[1] for side in added if side and side[0] == name}

    def trees(self) -> Iterator[dict[str, int]]:
        """Every legal mapping of names to inodes."""
        if self.mode == "ext4":
            for count in range(len(self.pending) + 1):
                yield applied(self.durable, self.pending[:count])
            return
        for count in range(len(self.pending) + 1):
            for chosen in combinations(self.pending, count):
                if not _keeps_order(self.pending, chosen):
                    continue
                renames = [c for c in chosen if c.added and c.removed]
                for kept in range(len(renames) + 1):
                    for both in combinations(renames, kept):
                        yield applied(self.durable, chosen, both)

    def allows(self, image: dict[str, bytes]) -> bool:
        """Whether a power cut may leave these files."""
        known: dict[tuple[int, bytes], bool] = {}
        for tree in self.trees():
            if tree.keys() != image.keys():
                continue
            for name, inode in tree.items():
                key = inode, image[name]
                if key not in known:
                    known[key] = self.files[inode].allows(image[name])
            if all(known[inode, image[name]] for name, inode in tree.items()):
                return True
        return False


def applied(
    tree: dict[str, int], changes: list[Change] | tuple[Change, ...], both: tuple[Change, ...] = ()
) -> dict[str, int]:
    """A tree after some changes; those in ``both`` leave the old name."""
    result = dict(tree)
    for change in changes:
        if (
            change.removed
            and change not in both
            and result.get(change.removed[0]) == change.removed[1]
        ):
            del result[change.removed[0]]
        if change.added:
            result[change.added[0]] = change.added[1]
    return result


def _keeps_order(pending: list[Change], chosen: tuple[Change, ...]) -> bool:
    """A change is there only with all earlier ones of its names."""
    for change in chosen:
        for earlier in pending:
            if earlier.number < change.number and earlier not in chosen:
                if earlier.names() & change.names():
                    return False
    return True
