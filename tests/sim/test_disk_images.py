"""What a power cut leaves is legal, for every crash mode and every enumerated image.

Random histories are held against ``tests.sim.legality``, a naive model that shares no code with
``sim``. Exact examples for each mode and rule are in ``test_disk_examples``.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from sim.disk_crash import Manifest
from sim.disk_images import CRASH_MODES
from sim.disk_names import NamesMode
from sim.disks import SimDisk
from sim.draws import Draws
from storage.memdisk import MemDisk
from tests.sim.legality import Content, Model

Step = tuple[Any, ...]
Files = dict[str, bytes]

NAMES = st.sampled_from(["a", "b", "c"])
POSITIONS = st.sampled_from([0, 100, 511, 4_000, 4_096, 5_000, 8_192])
SIZES = st.sampled_from([1, 60, 700, 5_000])
STEPS = st.one_of(
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("append"), NAMES, SIZES),
    st.tuples(st.just("write"), NAMES, POSITIONS, SIZES),
    st.tuples(st.just("truncate"), NAMES, POSITIONS),
    st.tuples(st.just("fsync"), NAMES),
    st.tuples(st.just("fsync around a write"), NAMES, SIZES),
    st.tuples(st.just("fsync_dir")),
    st.tuples(st.just("rename"), NAMES, NAMES),
    st.tuples(st.just("unlink"), NAMES),
)
HISTORIES = st.lists(STEPS, min_size=1, max_size=9)
NAMES_MODES = st.sampled_from(["posix", "ext4"])


class Twin:
    """A simulated disk and the naive model, taking the same steps."""

    def __init__(self, mode: NamesMode, seed: int) -> None:
        self.backing = MemDisk()
        self.disk = SimDisk(self.backing, Path("b1"), Draws(seed), names_mode=mode)
        self.model = Model(mode)

    def take(self, operation: str, name: str = "", *rest: Any) -> None:
        disk, model = self.disk, self.model
        if operation == "fsync_dir":
            disk.fsync_dir(Path())
            model.sync_names(model.number)
        elif operation in ("rename", "unlink"):
            if name not in model.visible or rest == (name,):
                return
            getattr(disk, operation)(Path(name), *map(Path, rest))
            getattr(model, operation)(name, *rest)
        else:
            content = model.file(name)
            self._on_file(operation, Path(name), content, *rest)

    def _on_file(self, operation: str, path: Path, content: Content, *rest: Any) -> None:
        file = self.disk.open(path, create=True)
        token, covered = file.begin_fsync(), self.model.number
        number = self.model.next()
        # The value names the operation, so a byte tells who wrote it.
        data = bytes([number]) * (rest[-1] if rest else 0)
        if operation in ("append", "fsync around a write"):
            content.write(number, len(content.now), data)
            file.append(data)
        elif operation == "write":
            content.write(number, rest[0], data)
            file.write_at(rest[0], data)
        elif operation == "truncate":
            content.truncate(number, rest[0])
            file.truncate(rest[0])
        if operation.startswith("fsync"):
            file.complete_fsync(token)
            self.model.sync(content, covered)
        file.close()

    def after(self, image: Any = None, **how: Any) -> tuple[SimDisk, Manifest]:
        """The disk after a power cut, the original left as it was."""
        copy = self.disk.copy(self.backing.copy())
        return copy, copy.power_cut(image, **how)


def history(mode: NamesMode, steps: list[Step], seed: int = 1) -> Twin:
    twin = Twin(mode, seed)
    for step in steps:
        twin.take(*step)
    return twin


def files(disk: SimDisk) -> Files:
    """Every file's bytes by name."""
    found = {}
    for name in disk.listdir(Path()):
        file = disk.open(Path(name), write=False)
        found[name] = file.read_at(0, file.size() + 1)
        file.close()
    return found


def visible(model: Model) -> Files:
    return {name: model.files[inode].now for name, inode in model.visible.items()}


def check_closed(disk: SimDisk) -> None:
    """Another power cut has nothing to take."""
    digest = disk.digest()
    assert disk.pending_count == 0
    images = list(disk.images())
    assert len(images) == 1
    assert not disk.power_cut(images[0]).lost_anything
    assert disk.digest() == digest


@given(NAMES_MODES, HISTORIES, st.sampled_from(list(CRASH_MODES)), st.integers(0, 99))
def test_a_drawn_image_is_legal(mode: NamesMode, steps: list[Step], crash: str, seed: int) -> None:
    twin = history(mode, steps, seed)
    assert files(twin.disk) == visible(twin.model)
    after, manifest = twin.after(mode=crash)
    image = files(after)
    assert manifest.label == crash
    assert twin.model.allows(image), (crash, manifest)
    check_manifest(twin.model, image, manifest)
    check_closed(after)


@given(NAMES_MODES, st.lists(STEPS, min_size=1, max_size=6))
def test_every_enumerated_image_is_legal(mode: NamesMode, steps: list[Step]) -> None:
    twin = history(mode, steps)
    for image in twin.disk.images():
        after, manifest = twin.after(image)
        left = files(after)
        assert twin.model.allows(left), (image.label, manifest)
        check_manifest(twin.model, left, manifest)
    check_closed(after)


@given(NAMES_MODES, HISTORIES)
def test_lost_and_kept_are_exact(mode: NamesMode, steps: list[Step]) -> None:
    twin = history(mode, steps)
    model = twin.model
    assert files(twin.after(mode="kept")[0]) == visible(model)
    lost = {name: model.files[inode].versions[0].content for name, inode in model.durable.items()}
    assert files(twin.after(mode="lost")[0]) == lost


@given(NAMES_MODES, HISTORIES, st.integers(0, 99))
def test_prefix_modes_show_versions_that_were_there(
    mode: NamesMode, steps: list[Step], seed: int
) -> None:
    twin = history(mode, steps, seed)
    model = twin.model
    image = files(twin.after(mode="file-prefix")[0])
    for content in image.values():
        assert any(content == v.content for f in model.files.values() for v in f.versions)
    image = files(twin.after(mode="disk-prefix")[0])
    if mode == "ext4":
        assert any(image == disk_at(model, number) for number in range(model.number + 1))


def disk_at(model: Model, number: int) -> Files:
    """The whole disk as of one operation, or as of the sync behind it where that is newer."""
    tree = dict(model.durable)
    for change in model.pending:
        if change.number <= number:
            if change.removed:
                del tree[change.removed[0]]
            if change.added:
                tree[change.added[0]] = change.added[1]
    return {
        name: model.files[inode].at(max(number, model.files[inode].versions[0].number))
        for name, inode in tree.items()
    }


@given(HISTORIES, st.integers(0, 99))
def test_a_page_shows_one_version(steps: list[Step], seed: int) -> None:
    """Without truncations, pages of a sector-subset image are pages of versions."""
    twin = history("ext4", [step for step in steps if step[0] != "truncate"], seed)
    image = files(twin.after(mode="sector-subset")[0])
    contents = twin.model.files.values()
    for content in image.values():
        assert any(shows_versions(content, candidate) for candidate in contents)


def shows_versions(image: bytes, content: Content) -> bool:
    versions = [v.content.ljust(len(image), b"\0") for v in content.versions]
    return all(
        any(image[at : at + 4_096] == v[at : min(at + 4_096, len(image))] for v in versions)
        for at in range(0, len(image), 4_096)
    )


def check_manifest(model: Model, image: Files, manifest: Manifest) -> None:
    """The manifest against a comparison of the bytes before and after."""
    before = visible(model)
    assert set(manifest.names_lost) == before.keys() - image.keys()
    assert set(manifest.names_back) == image.keys() - before.keys()
    for loss in manifest.files:
        if loss.path not in before or loss.path not in image:
            continue
        if model.inodes_named(loss.path) != {model.visible[loss.path]}:
            continue  # another file may be there under this name
        was, now = before[loss.path], image[loss.path]
        assert loss.size == (len(was), len(now))
        if len(now) > len(was):
            assert loss.tail_back is not None
        lost = {at for a, b in loss.lost for at in range(a, b)}
        back = range(*loss.tail_back) if loss.tail_back else range(0)
        for at, byte in enumerate(was):
            differs = at >= len(now) or now[at] != byte
            assert not (differs and byte) or at in lost or at in back, (loss, at)
        is_appends = len(was) == sum(1 for byte in was if byte) and not loss.tail_back
        versions = model.files[model.visible[loss.path]].versions
        grows = all(v.content.startswith(u.content) for u, v in pairwise(versions))
        if is_appends and grows:
            assert lost == {n for n, b in enumerate(was) if n >= len(now) or now[n] != b}
