"""One small exact example for each crash mode and rule of FAULTS C.5.3, C.5.4 and C.6."""

from __future__ import annotations

from pathlib import Path

import pytest

from sim.disk_images import CRASH_MODES, Image
from sim.disk_names import NamesMode
from sim.disks import PowerCut, SimDisk
from sim.draws import Draws
from storage.disk import DiskFile
from storage.memdisk import MemDisk
from tests.sim.disks import Bench, files, outcomes

Files = dict[str, bytes]


def synced(bench: Bench, name: str, data: bytes) -> DiskFile:
    """An open file whose content and name are durable."""
    file = bench.disk.open(Path(name), create=True)
    file.write_at(0, data)
    file.fsync()
    bench.disk.fsync_dir(Path())
    return file


@pytest.fixture(params=["posix", "ext4"])
def bench(request: pytest.FixtureRequest) -> Bench:
    return Bench(request.param)


# Modes -----------------------------------------------------------------------------------------


def three_appends(bench: Bench) -> None:
    file = synced(bench, "a", b"sync")
    for data in (b"1111", b"2222", b"3333"):
        file.append(data)


def test_lost_is_the_last_sync_and_kept_is_everything(bench: Bench) -> None:
    three_appends(bench)
    assert files(bench.cut(mode="lost")[0]) == {"a": b"sync"}
    assert files(bench.cut(mode="kept")[0]) == {"a": b"sync111122223333"}


@pytest.mark.parametrize("mode", ["file-prefix", "disk-prefix"])
def test_prefix_modes_reach_every_prefix_and_nothing_else(bench: Bench, mode: str) -> None:
    three_appends(bench)
    seen = outcomes(bench, mode=mode)
    whole = b"sync111122223333"
    assert {tree["a"] for tree in seen} == {whole[:n] for n in (4, 8, 12, 16)}


def test_file_prefixes_of_two_files_are_independent(bench: Bench) -> None:
    one, two = synced(bench, "a", b""), synced(bench, "b", b"")
    one.append(b"1")
    two.append(b"2")
    pairs = {(tree["a"], tree["b"]) for tree in outcomes(bench, mode="file-prefix")}
    assert pairs == {(b"", b""), (b"1", b""), (b"", b"2"), (b"1", b"2")}
    pairs = {(tree["a"], tree["b"]) for tree in outcomes(bench, mode="disk-prefix")}
    assert pairs == {(b"", b""), (b"1", b""), (b"1", b"2")}, "one cut over the whole disk"


def test_sector_subset_chooses_a_version_for_each_page_of_4_kib(bench: Bench) -> None:
    old, new = b"o" * 8_192, b"n" * 8_192
    synced(bench, "a", old).write_at(0, new)
    half = 4_096
    assert {tree["a"] for tree in outcomes(bench, mode="sector-subset")} == {
        old,
        new,
        old[:half] + new[half:],
        new[:half] + old[half:],
    }


def test_size_is_metadata_of_its_own(bench: Bench) -> None:
    """Size with data, size with zeros, neither; never beyond the size of any version."""
    synced(bench, "a", b"old").append(b"new")
    seen = {tree["a"] for tree in outcomes(bench, mode="sector-subset")}
    assert seen == {b"old", b"oldnew", b"old\0\0\0"}


def test_noise_instead_of_data_comes_only_where_asked_for(bench: Bench) -> None:
    synced(bench, "a", b"old").append(b"new")
    plain = {tree["a"] for tree in outcomes(bench, mode="sector-subset")}
    noisy = {tree["a"] for tree in outcomes(bench, mode="sector-subset", noise=True)}
    assert noisy > plain
    for content in noisy - plain:
        assert content[:3] == b"old"
        assert len(content) == 6


@pytest.mark.parametrize("mode", ["torn", "garbage"])
def test_write_under_way_is_torn_at_any_byte(mode: str) -> None:
    bench = Bench("ext4")
    file = synced(bench, "a", b"o" * 1_024)
    bench.disk.arm_fuse(1)
    with pytest.raises(PowerCut):
        file.write_at(0, b"n" * 1_024)
    ends = set()
    for tree in outcomes(bench, mode=mode, count=200):
        image = tree["a"]
        assert len(image) == 1_024
        torn = len(image) - len(image.lstrip(b"n"))
        ends.add(torn % 512)
        spoilt = image[torn:].rstrip(b"o")
        if mode == "torn":
            assert not spoilt
        else:
            assert len(spoilt) <= 512, "at most the sector in which the write ended"
    assert len(ends) > 20 or mode == "garbage", "not only at the borders of sectors"


def test_weights_choose_the_mode() -> None:
    bench = Bench("ext4")
    three_appends(bench)
    seen = {bench.cut(seed=seed)[1].label for seed in range(200)}
    assert seen == set(CRASH_MODES)
    assert {bench.cut(seed=s, weights={"kept": 1})[1].label for s in range(9)} == {"kept"}


def test_unknown_mode_is_refused_with_the_allowed_ones() -> None:
    with pytest.raises(ValueError, match=r"'dropped', allowed: lost, kept, file-prefix"):
        Bench("ext4").disk.power_cut(mode="dropped")


# Truncation ------------------------------------------------------------------------------------


def test_cut_tail_comes_back_until_a_sync(bench: Bench) -> None:
    file = synced(bench, "a", b"0123456789")
    file.truncate(4)
    after, manifest = bench.cut(mode="lost")
    assert files(after) == {"a": b"0123456789"}
    assert (manifest.files[0].tail_back, manifest.files[0].tail_bytes) == ((4, 10), (4, 10))
    file.fsync()
    assert files(bench.cut(mode="lost")[0]) == {"a": b"0123"}


def test_a_tail_that_had_not_arrived_does_not_come_back(bench: Bench) -> None:
    file = synced(bench, "a", b"0123456")
    file.append(b"789")
    file.truncate(4)
    _, manifest = bench.cut(mode="lost")
    assert (manifest.files[0].tail_back, manifest.files[0].tail_bytes) == ((4, 10), (4, 7))


def test_tail_and_later_appends_mix_inside_the_block_of_the_cut_only(bench: Bench) -> None:
    old = b"o" * 12_288
    file = synced(bench, "a", old)
    file.truncate(1_000)
    file.append(b"n" * 11_288)
    seen = {tree["a"] for tree in outcomes(bench, mode="sector-subset", count=300)}
    mixed = {image for image in seen if b"o" in image[1_000:]}
    assert any(b"n" in image for image in mixed), "they do mix"
    for image in mixed:
        assert b"n" not in image[4_096:]
    by_rule = {image.label: tree["a"] for image, tree in bench.enumerated()}
    all_but_cut = next(by_rule[label] for label in by_rule if label.startswith("all but"))
    assert all_but_cut == old[:1_000] + b"n" * 3_096 + old[4_096:]


def test_manifest_names_what_a_lost_cut_keeps_from_showing(bench: Bench) -> None:
    """Blocks that a lost cut would have freed are the old file's: the new bytes are nowhere."""
    file = synced(bench, "a", b"o")
    file.truncate(0)
    file.append(b"n" * 60)
    cut_lost = next(image for image in bench.disk.images() if image.label.startswith("all but"))
    after, manifest = bench.cut(cut_lost)
    assert files(after) == {"a": b"o" + b"\0" * 59}
    assert manifest.files[0].lost == ((0, 60),)
    assert manifest.lost_anything


def test_the_lowest_of_several_lost_cuts_bounds_what_shows(bench: Bench) -> None:
    file = synced(bench, "a", b"o" * 12_288)
    file.truncate(5_000)
    file.truncate(100)
    file.append(b"n" * 8_000)
    for tree in outcomes(bench, mode="sector-subset", count=300):
        if len(tree["a"]) > 8_100:
            assert b"n" not in tree["a"][4_096:]


def test_growing_shows_zeros_and_can_be_lost(bench: Bench) -> None:
    synced(bench, "a", b"ab").truncate(5)
    assert {tree["a"] for tree in outcomes(bench)} == {b"ab", b"ab\0\0\0"}


# Syncs -----------------------------------------------------------------------------------------


def test_fsync_covers_what_was_written_when_it_began(bench: Bench) -> None:
    file = synced(bench, "a", b"")
    file.append(b"before")
    token = file.begin_fsync()
    file.append(b" between")
    assert files(bench.cut(mode="lost")[0]) == {"a": b""}, "begun is not done"
    file.complete_fsync(token)
    assert files(bench.cut(mode="lost")[0]) == {"a": b"before"}
    assert all(tree["a"].startswith(b"before") for tree in outcomes(bench))


def test_fsync_of_one_file_covers_no_other(bench: Bench) -> None:
    one, two = synced(bench, "a", b""), synced(bench, "b", b"")
    one.append(b"1")
    two.append(b"2")
    two.fsync()
    assert files(bench.cut(mode="lost")[0]) == {"a": b"", "b": b"2"}


def test_written_back_pages_survive_without_a_sync(bench: Bench) -> None:
    file = synced(bench, "a", b"o" * 8_192)
    file.write_at(0, b"n" * 100)
    assert bench.disk.write_back(Path("a")) == 1
    file.write_at(5_000, b"m" * 100)
    lost = files(bench.cut(mode="lost")[0])["a"]
    assert lost == b"n" * 100 + b"o" * 8_092


# Names -----------------------------------------------------------------------------------------


def make(bench: Bench, *names: str) -> None:
    for name in names:
        file = bench.disk.open(Path(name), create=True)
        file.append(name.encode())
        file.fsync()
        file.close()


def test_posix_name_needs_a_sync_of_its_directory() -> None:
    bench = Bench("posix")
    make(bench, "a")
    assert files(bench.cut(mode="lost")[0]) == {}
    bench.disk.fsync_dir(Path())
    assert files(bench.cut(mode="lost")[0]) == {"a": b"a"}


def test_posix_sync_of_one_directory_covers_no_other() -> None:
    bench = Bench("posix")
    for name in ("d", "e"):
        bench.disk.mkdir(Path(name))
    bench.disk.fsync_dir(Path())
    make(bench, "d/x", "e/x")
    bench.disk.fsync_dir(Path("d"))
    assert files(bench.cut(mode="lost")[0]) == {"d/x": b"d/x"}


def test_posix_names_come_in_any_subset() -> None:
    bench = Bench("posix")
    make(bench, "a", "b", "c")
    assert len({tuple(tree) for tree in outcomes(bench, count=300)}) == 8


def test_posix_names_of_a_directory_need_the_directory() -> None:
    bench = Bench("posix")
    bench.disk.mkdir(Path("d"))
    make(bench, "d/x")
    bench.disk.fsync_dir(Path("d"))
    assert files(bench.cut(mode="lost")[0]) == {}


def test_ext4_names_are_a_prefix_and_any_sync_commits_them() -> None:
    bench = Bench("ext4")
    synced(bench, "a", b"")
    for name in ("b", "c", "d"):
        bench.disk.open(Path(name), create=True).close()
    seen = {"".join(sorted(tree)) for tree in outcomes(bench)}
    assert seen == {"a", "ab", "abc", "abcd"}
    file = bench.disk.open(Path("a"))
    file.append(b"!")
    file.fsync()
    assert {"".join(sorted(tree)) for tree in outcomes(bench)} == {"abcd"}


def test_rename_over_a_name_leaves_the_old_file_or_the_new(bench: Bench) -> None:
    synced(bench, "a", b"old")
    synced(bench, "b", b"new")
    bench.disk.rename(Path("b"), Path("a"))
    trees = outcomes(bench, mode="disk-prefix")
    assert trees == [{"a": b"new"}, {"a": b"old", "b": b"new"}]


def test_rename_may_be_durable_before_the_data_under_it(bench: Bench) -> None:
    """Hazards B-13 and B-59: a checkpoint that was not synced before it got its name."""
    synced(bench, "a", b"old")
    file = bench.disk.open(Path("b"), create=True)
    file.append(b"new!")
    bench.disk.rename(Path("b"), Path("a"))
    seen = {tree.get("a") for tree in outcomes(bench, count=300)}
    assert {b"old", b"new!", b"", b"\0\0\0\0"} <= seen


def test_auto_da_alloc_writes_the_data_before_the_rename() -> None:
    bench = Bench("ext4", auto_da_alloc=True)
    synced(bench, "a", b"old")
    bench.disk.open(Path("b"), create=True).append(b"new!")
    bench.disk.rename(Path("b"), Path("a"))
    assert {tree.get("a") for tree in outcomes(bench, count=300)} == {b"old", b"new!"}


def test_rename_may_leave_both_names_in_posix_mode_only() -> None:
    for mode, expected in (("posix", True), ("ext4", False)):
        bench = Bench(mode)
        synced(bench, "a", b"x")
        bench.disk.rename(Path("a"), Path("b"))
        both = {"a": b"x", "b": b"x"} in outcomes(bench, mode="file-prefix", count=400)
        assert both is expected


def test_two_names_of_a_rename_are_two_files_afterwards() -> None:
    bench = Bench("posix")
    synced(bench, "a", b"x")
    bench.disk.rename(Path("a"), Path("b"))
    kept = next(image for image in bench.disk.images() if image.names)
    after, _ = bench.cut(Image("both", kept.reached, kept.names, both=kept.names))
    after.open(Path("a")).append(b"y")
    assert files(after) == {"a": b"xy", "b": b"x"}


def test_unlinked_name_can_come_back_with_its_bytes(bench: Bench) -> None:
    synced(bench, "a", b"kept").append(b" lost")
    bench.disk.unlink(Path("a"))
    after, manifest = bench.cut(mode="lost")
    assert files(after) == {"a": b"kept"}
    assert manifest.names_back == ("a",)
    bench.disk.fsync_dir(Path())
    assert files(bench.cut(mode="lost")[0]) == {}


# Enumeration -----------------------------------------------------------------------------------


def test_enumeration_has_the_images_of_its_definition() -> None:
    bench = Bench("ext4")
    file = synced(bench, "a", b"")
    file.append(b"1" * 100)
    file.append(b"2" * 1_100)
    labels = [image.label.replace("5", "2").replace("4", "1") for image in bench.disk.images()]
    rules = [" ".join(w for w in label.split() if not w.strip(",").isdigit()) for label in labels]
    assert rules.count("prefix of") == 3
    assert rules.count("all but") == 2
    assert rules.count("only") == 2
    assert rules.count("size of without data") == 2
    borders = [r for r in rules if r.startswith("up to byte")]
    assert len(borders) == 4, "bytes 512 and 1024 of the last write, twice each"


def test_enumeration_has_each_file_without_what_was_written_to_it(bench: Bench) -> None:
    one, two = synced(bench, "a", b"old"), synced(bench, "b", b"old")
    for file in (one, two):
        file.truncate(0)
        file.append(b"new")
    trees = [tree for image, tree in bench.enumerated() if image.label.startswith("nothing of")]
    assert trees == [{"a": b"old", "b": b"new"}, {"a": b"new", "b": b"old"}]


@pytest.mark.parametrize("mode", ["posix", "ext4"])
def test_n_undecided_operations_have_order_n_images(mode: NamesMode) -> None:
    bench = Bench(mode)
    file = synced(bench, "a", b"")
    for _ in range(40):
        file.append(b"x" * 100)
    assert len(list(bench.disk.images())) < 41 + 80 + 40 + 20


def test_enumeration_is_the_same_every_time(bench: Bench) -> None:
    three_appends(bench)
    assert [(i.label, t) for i, t in bench.enumerated()] == [
        (i.label, t) for i, t in bench.enumerated()
    ]


def test_draws_of_two_crashes_differ_and_repeat() -> None:
    def labels() -> list[str]:
        disk = SimDisk(MemDisk(), Path("b1"), Draws(5))
        found = []
        for _ in range(12):
            disk.open(Path("a"), create=True).append(b"x")
            found.append(disk.power_cut().label)
        return found

    assert labels() == labels()
    assert len(set(labels())) > 3
