"""A test with a cluster, from the fixture that makes its world to what is kept and told of it.

Left out: the fixtures and hooks themselves (``sim.pytest_plugin``).
"""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from attrs import define, field

from sim.pytest_plugin.settings import MarkError, Settings, settings_of
from sim.pytest_plugin.traces import Traces
from sim.pytest_plugin.worlds import TestWorld
from sim.shell_words import command_line
from storage.inspection.escaping import safe

if TYPE_CHECKING:
    from sim.pytest_plugin.awaited import AwaitedCluster

__all__ = ["TEST_FILE", "Case", "begin_case", "marked", "seedless"]

TEST_FILE: Final = "test.json"
_TRACE: Final = "trace.jsonl"
_PICTURE_LINES: Final = 40


@define(kw_only=True)
class Case:
    """See the module.

    Attributes:
        item: of pytest.
        path: of the trace, wherever it is now; None for no file.
        saved: its folder, once it is kept.
        cluster: of an async test, which is run as a script of it.
        expected_digest: of the trace that is replayed; empty for none.
        notes: what could not be done.
        is_looked_at: the test has passed, and its cluster was judged.
        is_told: what the judge found is the failure itself.
        has_failed: some phase of the test has.
    """

    item: pytest.Item
    test: TestWorld
    traces: Traces
    fixture: str
    path: Path | None
    expected_digest: str = ""
    saved: Path | None = None
    cluster: AwaitedCluster | None = None
    notes: list[str] = field(factory=list)
    is_looked_at: bool = False
    is_told: bool = False
    has_failed: bool = False

    @property
    def replay(self) -> str:
        """The command that runs this test again with its seed."""
        file, colons, name = seedless(self.item).partition("::")
        where = shown_path(self.item.config.rootpath / file, self.item.config)
        words = ["pytest", f"{where}{colons}{name}", "--leaderfall-replay", str(self.test.seed)]
        return command_line(words)

    @property
    def trace(self) -> str:
        """Where the trace is, as people read it; empty where it is not kept."""
        return "" if self.saved is None else shown_path(self.saved / _TRACE, self.item.config)

    def keep(self) -> None:
        """Give the trace its place, over what an earlier run left there."""
        if self.path is None or self.saved is not None:
            return
        from sim.failures import folder_name

        place = self.traces.folder / folder_name(self.item.nodeid)
        document = {
            "test": seedless(self.item),
            "seed": self.test.seed,
            "digest": self.test.trace.digest(),
            "wrong": self.test.wrong,
            "replay": self.replay,
        }
        try:
            self.test.trace.flush()
            place.mkdir(parents=True, exist_ok=True)
            self.path.replace(place / _TRACE)
            (place / TEST_FILE).write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        except (OSError, ValueError) as error:
            self.notes.append(f"the trace could not be saved in {place}: {error}")
            return
        self.saved, self.path = place, place / _TRACE

    def look_behind(self) -> None:
        """Judge a test that failed by itself; what is not violated yet might have been."""
        try:
            self.test.look(is_cut_short=not self.is_looked_at)
        except Exception as error:  # noqa: BLE001  the test's own failure is what matters
            self.notes.append(f"it could not be judged: {error!r}")

    def properties(self, *, is_last: bool) -> list[tuple[str, str]]:
        """For reports: JUnit XML has them, and workers of xdist send them on."""
        found = []
        if self.saved is not None:
            found.append(("leaderfall_trace", self.trace))
        if self.has_failed or self.saved is not None:
            found.append(("leaderfall_replay", self.replay))
        if is_last:
            found += [("leaderfall_compared", text) for text in self.compared()]
        return found

    def end(self, *, is_failed: bool) -> None:
        """The test is over, with all its fixtures."""
        self.test.close("failed" if is_failed else "passed")
        if self.path is not None and self.saved is None:
            with suppress(OSError):
                self.path.unlink(missing_ok=True)

    def text(self) -> str:
        """What a failing test's report says of its cluster."""
        wrong = [] if self.is_told else self.test.wrong
        lines = [f"- {safe(each)}" for each in wrong]
        lines += [f"NOTE: {safe(each)}" for each in (*self.notes, *self.compared())]
        picture = self._picture().splitlines()
        if len(picture) > _PICTURE_LINES:
            more = len(picture) - _PICTURE_LINES + 1
            picture = [*picture[: _PICTURE_LINES - 1], f"  … {more} more lines"]
        if picture:
            lines += ["", f"The logs at {self.test.world.now_us / 1e6:g} s", *picture]
        lines += ["", f"seed    {self.test.seed}"]
        if self.trace:
            lines.append(f"trace   {safe(self.trace)}")
        lines.append(f"replay  {self.replay}")
        return "\n".join(lines).lstrip("\n")

    def compared(self) -> list[str]:
        """Whether a replay has had the same events as the trace that is replayed."""
        if not self.expected_digest:
            return []
        digest = self.test.trace.digest()
        if digest == self.expected_digest:
            return ["replay: the same events as in the saved trace"]
        was = self.expected_digest
        text = f"replay: other events than in the saved trace (digests {was} and {digest})"
        return [f"{text}: the test or the code is another now"]

    def _picture(self) -> str:
        if self.path is None:
            return ""
        from sim.present.story import Story
        from sim.present.strips import strips
        from sim.present.text import strips_text
        from sim.trace.reader import TraceError, TraceReader

        with suppress(OSError, ValueError):
            # Closed already, or no room: what there is is told.
            self.test.trace.flush()
        with suppress(TraceError, OSError, ValueError):
            reader = TraceReader(self.path)
            story = Story(reader.header, reader, reader.footer)
            return strips_text(strips(story)) if story.last_n else ""
        return ""


def begin_case(item: pytest.Item, fixture: str, seed: int, traces: Traces) -> Case:
    """The world for a test that asks for a cluster.

    Raises:
        pytest.fail.Exception: its marks say what cannot be.
    """
    settings = marked(item)
    path: Path | None = None
    notes: list[str] = []
    try:
        path = traces.running()
        test = TestWorld(settings, seed, item.nodeid, path)
    except OSError as error:
        notes.append(f"there is no trace: {error}")
        test, path = TestWorld(settings, seed, item.nodeid, None), None
    return Case(item=item, test=test, traces=traces, fixture=fixture, path=path, notes=notes)


def marked(item: pytest.Item) -> Settings:
    """What the marks of an item say.

    Raises:
        pytest.fail.Exception: they say what cannot be.
    """
    try:
        return settings_of([(each.args, each.kwargs) for each in item.iter_markers("leaderfall")])
    except MarkError as error:
        text = f"@pytest.mark.leaderfall of {item.nodeid}: {error}"
        raise pytest.fail.Exception(text, pytrace=False) from None


def seedless(item: pytest.Item) -> str:
    """The id that a test has where nothing is parametrized by seed."""
    call: Any = getattr(item, "callspec", None)
    if call is None or "leaderfall_seed" not in call.params:
        return item.nodeid
    last = f"seed{call.params['leaderfall_seed']}]"
    head = item.nodeid.removesuffix(last)
    if head == item.nodeid:
        return head
    return head[:-1] if head.endswith("[") else head[:-1] + "]"


def shown_path(path: Path, config: pytest.Config) -> str:
    """A path as people read it: from where pytest was started, if it is below."""
    try:
        return str(path.relative_to(config.invocation_params.dir))
    except ValueError:
        return str(path)
