"""A failure of the machine's own files is none of the simulated world's."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from sim.cluster_config import ClusterConfig
from sim.real_files import HostFailed, RealFiles
from sim.trace.writer import Trace
from sim.verbs import Cluster
from sim.world import World
from storage.disk import DiskFile


def test_a_world_whose_files_are_taken_away_ends_and_no_node_hears_of_it(tmp_path: Path) -> None:
    world = World(ClusterConfig(), seed=1, root=tmp_path, trace=Trace("full", keeps_lines=True))
    cluster = Cluster(world)
    cluster.create_topic("orders", assignments=[["b1", "b2", "b3"]]).wait()
    shutil.rmtree(tmp_path / "b1")
    cluster.produce("orders", 5)
    with pytest.raises(HostFailed, match=r"files of this world failed: .*ENOENT") as failed:
        world.run_for(30_000_000)
    assert "of b1 at event" in failed.value.__notes__[0]
    assert [each for each in world.trace.events() if str(tmp_path) in str(each)] == []


FILE_CALLS: dict[str, Callable[[DiskFile], object]] = {
    "read_at": lambda file: file.read_at(0, 1),
    "read_into": lambda file: file.read_into(0, memoryview(bytearray(1))),
    "write_at": lambda file: file.write_at(0, b"x"),
    "append": lambda file: file.append(b"x"),
    "truncate": lambda file: file.truncate(0),
    "size": lambda file: file.size(),
}
DISK_CALLS: dict[str, Callable[[Path], object]] = {
    "open": RealFiles().open,
    "stat": lambda path: RealFiles().stat(path.parent / "file" / "below"),
    "listdir": RealFiles().listdir,
    "mkdir": lambda path: RealFiles().mkdir(path / "below"),
    "rename": lambda path: RealFiles().rename(path, path.parent / "other"),
    "unlink": RealFiles().unlink,
    "rmdir": RealFiles().rmdir,
}


@pytest.mark.parametrize("call", FILE_CALLS)
def test_every_call_of_a_file_fails_so(call: str, tmp_path: Path) -> None:
    file = RealFiles().open(tmp_path / "file", create=True)
    file.close()
    with pytest.raises(HostFailed, match=f"{call} {tmp_path}/file"):
        FILE_CALLS[call](file)


@pytest.mark.parametrize("call", DISK_CALLS)
def test_every_call_of_the_disk_fails_so(call: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(HostFailed, match=f"{call} {tmp_path}/"):
        DISK_CALLS[call](tmp_path / "missing")
