"""The determinism check finds non-determinism: it is run on workloads that are planted here.

A planted ``uv`` brings interpreters, or fails to, so that no test needs a network.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests import determinism
from tests.determinism import HASH_SEEDS, ROOT_NAMES, differing, run_all, table, this_interpreter


def _steady(root: Path) -> str:
    (root / "file").write_bytes(b"bytes")
    return hashlib.sha256(b"bytes").hexdigest()


def _set_order(root: Path) -> str:
    """The order of a set of strings follows PYTHONHASHSEED."""
    words = {f"word-{number}" for number in range(100)}
    return hashlib.sha256("".join(words).encode()).hexdigest()


def _path(root: Path) -> str:
    return hashlib.sha256(os.fsencode(root)).hexdigest()


def _import_first(root: Path) -> str:
    return hashlib.sha256(b"%d" % ("hypothesis" in sys.modules)).hexdigest()


def _failing(root: Path) -> str:
    raise RuntimeError("planted failure")


def _no_digest(root: Path) -> str:
    return "not a digest"


WORKLOADS = {
    "steady": _steady,
    "set-order": _set_order,
    "path": _path,
    "import-first": _import_first,
    "failing": _failing,
    "no-digest": _no_digest,
}


@pytest.mark.slow
def test_planted_workloads_differ_and_the_steady_one_does_not() -> None:
    runs = run_all(__name__, WORKLOADS, [this_interpreter()])
    assert len(runs) == len(WORKLOADS) * (len(HASH_SEEDS) * len(ROOT_NAMES) + 1)
    assert differing(runs) == ["set-order", "path", "import-first", "failing", "no-digest"]

    digests = {name: {run.digest for run in runs if run.workload == name} for name in WORKLOADS}
    assert len(digests["steady"]) == 1
    assert len(digests["set-order"]) == len(HASH_SEEDS)
    assert digests["failing"] == digests["no-digest"] == {""}

    text = table(runs)
    assert "planted failure" in text
    lines = text.splitlines()
    assert [line.split()[-1] for line in lines[1:7]] == ["same"] + ["DIFFERS"] * 5
    assert any("set-order" in line and "PYTHONHASHSEED 12345" in line for line in lines)
    assert (
        sum("import-first" in line and "hypothesis imported first" in line for line in lines) == 1
    )


def test_without_hypothesis_that_run_is_left_out_and_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(determinism, "FIRST_IMPORT", "no_such_module")
    here = this_interpreter()
    assert not here.has_first_import
    said = capsys.readouterr().out
    assert said == f"python {here.label} has no no_such_module: not run after importing it\n"
    runs = run_all(__name__, ["steady"], [here])
    assert {run.first_import for run in runs} == {""}
    assert differing(runs) == []


UV = """#!/bin/sh
echo "$2 $UV_HTTP_CONNECT_TIMEOUT" >> {calls}
case "$2" in
    find) if [ -e {mark} ]; then echo "warning: old" >&2; echo {python}; exit 0; fi; exit 2 ;;
    install) {install} ;;
esac
"""


def _plant_uv(
    folder: Path, monkeypatch: pytest.MonkeyPatch, install: str, python: str = sys.executable
) -> Path:
    """A uv that has no interpreter until ``install`` has made the file ``mark``."""
    calls, mark = folder / "calls", folder / "mark"
    text = UV.format(calls=calls, mark=mark, python=shlex.quote(python), install=install)
    (folder / "uv").write_text(text.replace("MARK", str(mark)))
    (folder / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.defpath}")
    monkeypatch.setattr(sys, "executable", str(folder / "python"))
    return calls


def test_uv_brings_what_is_absent_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    python = sys.executable
    calls = _plant_uv(tmp_path, monkeypatch, "touch MARK", python)
    assert determinism._bring("3.12") == Path(python)
    assert determinism._bring("3.12") == Path(python)
    assert calls.read_text() == "find 5\ninstall 5\nfind 5\nfind 5\n"
    assert capsys.readouterr().out == "python 3.12 brought by uv\n"


@pytest.mark.parametrize(
    ("install", "reason"),
    [
        ("echo error >&2; echo '  cause: no network' >&2; exit 1", "cause: no network"),
        ("exit 1", "no output"),
        ("touch MARK; exit 1", "no output"),
        ("exec sleep 30", "timed out after 0.5 seconds"),
    ],
)
def test_what_uv_cannot_bring_is_left_out_with_the_reason(
    install: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(determinism, "UV_TIMEOUT_S", 0.5)
    _plant_uv(tmp_path, monkeypatch, install)
    found = determinism._bring("3.12")
    assert isinstance(found, str)
    assert found.startswith("not found, and uv could not bring it: ")
    assert found.endswith(reason)


def test_an_interpreter_that_does_not_run_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _plant_uv(tmp_path, monkeypatch, "touch MARK", str(tmp_path / "absent"))
    assert determinism._bring("3.12") == f"not found, uv's {tmp_path / 'absent'} fails"


def test_without_uv_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    assert determinism._bring("3.12") == "not found, and there is no uv to bring it"
