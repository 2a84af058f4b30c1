"""The pytest plugin: scenario files as tests, simulated clusters as fixtures, seeds, traces.

Every pytest run of an environment that has Leaderfall loads this module, so nothing heavy is
imported before a test or a file needs it: no world, no trio, no hypothesis, no cattrs.
``sim/README.md`` has what users write.

What is collected, and with which seeds, is decided here; ``files`` has the items of scenario files,
``cases`` what becomes of a test with a cluster, ``scripted`` how async tests run.

Left out: tests of Hypothesis, which make clusters of their own (``sim.testing``, ``sim.scripts``).
"""

from __future__ import annotations

import argparse
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pytest

if TYPE_CHECKING:
    from sim.pytest_plugin.awaited import AwaitedCluster
    from sim.pytest_plugin.blocking import BlockingCluster
    from sim.pytest_plugin.cases import Case
    from sim.pytest_plugin.replays import Replay
    from sim.pytest_plugin.traces import Traces

_NAMES: Final = ("leaderfall", "sim.pytest_plugin")
_MARKS: Final = (
    (
        "leaderfall(config=None, *, seed=0, breaks=(), judge=True, **cluster): how the world of "
        "cluster or scripted_cluster is made (the keys of [cluster] in scenario files, or one "
        "ClusterConfig), and what its test must break"
    ),
    (
        "leaderfall_seeds(*seeds): run a test with cluster or scripted_cluster once for each seed; "
        "one number is how many"
    ),
)


class _State:
    """What the options and the ini file say."""

    def __init__(self, config: pytest.Config) -> None:
        from sim.pytest_plugin.traces import traces_of

        self.traces: Traces = traces_of(config.option.leaderfall_traces or (), config.rootpath)
        self.seeds: list[int] | None = None
        self.replay: Replay | None = None
        self.places: list[Path] = []
        if config.option.leaderfall_seeds is not None:
            from sim.pytest_plugin.seeds import parse_seeds

            self.seeds = parse_seeds(config.option.leaderfall_seeds)
        if config.option.leaderfall_replay is not None:
            from sim.pytest_plugin.replays import replay_of

            start = config.invocation_params.dir
            self.replay = replay_of(config.option.leaderfall_replay, start)
        patterns = config.getini("leaderfall_scenarios")
        if patterns:
            from sim.pytest_plugin.files import places_of

            self.places = places_of(patterns, config.rootpath)


_STATE: Final = pytest.StashKey[_State]()
_CASE: Final = pytest.StashKey["Case"]()
_FUNCTION: Final = pytest.StashKey[Any]()
_TOLD: Final = {"leaderfall_trace": "trace", "leaderfall_replay": "replay"}
_COMPARED: Final = "leaderfall_compared"


# Being there -------------------------------------------------------------------------------------


def pytest_plugin_registered(
    plugin: object, plugin_name: str, manager: pytest.PytestPluginManager
) -> None:
    """By its entry point and by its module's name it is one plugin, and comes once."""
    if plugin_name in _NAMES and getattr(plugin, "__name__", "") == __name__:
        for name in _NAMES:
            if name != plugin_name:
                manager.set_blocked(name)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options and ini keys, all with our name in front."""
    parser.addini(
        "leaderfall_scenarios",
        "folders, files and globs from the root directory: the scenario files that are tests",
        type="args",
        default=[],
    )
    group = parser.getgroup("leaderfall", "simulated clusters")
    group.addoption(
        "--leaderfall-seeds",
        type=_checked_seeds,
        metavar="N|A..B|A,B",
        help="run each scenario, and each test with a cluster, once for each seed",
    )
    group.addoption(
        "--leaderfall-replay",
        metavar="SEED|FILE",
        help="run what is selected with one seed, or what a failing test or scenario has left",
    )
    group.addoption(
        "--leaderfall-traces",
        action="append",
        metavar="failed|all|none|FOLDER",
        help="which traces are kept (failed), and where (.leaderfall/failures); may be repeated",
    )


def _checked_seeds(text: str) -> str:
    from sim.pytest_plugin.seeds import parse_seeds

    try:
        parse_seeds(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def pytest_configure(config: pytest.Config) -> None:
    """Marks, and what else is collected than the arguments say."""
    for line in _MARKS:
        config.addinivalue_line("markers", line)
    state = config.stash[_STATE] = _State(config)
    replay = state.replay
    is_named = config.args_source is config.ArgsSource.ARGS
    if replay is not None and replay.scenario is not None:
        # Nothing else has to be imported for it.
        config.args[:] = [str(replay.scenario)]
    elif is_named:
        pass
    elif replay is not None and replay.test:
        config.args[:] = [str(config.rootpath / replay.test)]
    elif config.invocation_params.dir == config.rootpath:
        known = [(config.rootpath / each.split("::")[0]).resolve() for each in config.args]
        new = [each for each in state.places if not _is_below(each, known)]
        config.args += [str(each) for each in new]


def _is_below(path: Path, places: list[Path]) -> bool:
    return any(path == each or each in path.parents for each in places)


def pytest_report_header(config: pytest.Config) -> str:
    """The version."""
    from sim.version import leaderfall_version

    return f"leaderfall: {leaderfall_version()}"


# Collecting --------------------------------------------------------------------------------------


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Scenario files in the folders of ``leaderfall_scenarios``, and those that are named."""
    if file_path.suffix != ".toml":
        return None
    state = parent.config.stash[_STATE]
    is_named = parent.session.isinitpath(file_path)
    if not is_named and not _is_below(file_path.resolve(), state.places):
        return None
    from sim.pytest_plugin.files import ScenarioFile, is_scenario

    if not is_scenario(file_path):
        return None
    file: ScenarioFile = ScenarioFile.from_parent(parent, path=file_path)
    file.traces = state.traces
    file.seeds = state.seeds
    if state.replay is not None and state.replay.seed is not None:
        file.seeds = [state.replay.seed]
        file.names_seed = False
    if state.replay is not None:
        file.expected_digest = state.replay.digest
    return file


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each seed that the option or the mark says."""
    if "leaderfall_seed" not in metafunc.fixturenames:
        if any(each.name == "leaderfall_seeds" for each in metafunc.definition.own_markers):
            name = metafunc.definition.nodeid
            _fail(
                f"{name} has @pytest.mark.leaderfall_seeds and neither cluster, scripted_cluster "
                "nor leaderfall_seed among its fixtures"
            )
        return
    state = metafunc.config.stash[_STATE]
    if state.replay is not None:
        return
    seeds = state.seeds
    if seeds is None:
        seeds = _marked_seeds(metafunc.definition)
    if seeds is not None:
        names = [f"seed{each}" for each in seeds]
        metafunc.parametrize("leaderfall_seed", seeds, indirect=True, ids=names)


def _marked_seeds(item: pytest.Item) -> list[int] | None:
    from sim.pytest_plugin.seeds import seeds_of

    mark = item.get_closest_marker("leaderfall_seeds")
    if mark is None:
        return None
    try:
        if mark.kwargs:
            raise ValueError(f"it was given {', '.join(mark.kwargs)}, allowed are numbers only")
        return seeds_of(mark.args)
    except ValueError as error:
        text = f"@pytest.mark.leaderfall_seeds of {item.nodeid}: {error}"
        raise pytest.fail.Exception(text, pytrace=False) from None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A replay runs nothing but what is replayed."""
    replay = config.stash[_STATE].replay
    if replay is None:
        return
    from sim.pytest_plugin.replays import select

    found = select(replay, items)
    others = [each for each in items if each not in found]
    if others:
        config.hook.pytest_deselected(items=others)
        items[:] = found


# Fixtures ----------------------------------------------------------------------------------------


@pytest.fixture
def leaderfall_seed(request: pytest.FixtureRequest) -> int:
    """The seed of this test: of the replay, the options, or its marks; 0 by default."""
    seed: Any = getattr(request, "param", None)
    if seed is not None:
        return int(seed)
    replay = request.config.stash[_STATE].replay
    if replay is not None and replay.seed is not None:
        return replay.seed
    from sim.pytest_plugin.cases import marked

    return marked(request.node).seed or 0


@pytest.fixture
def cluster(
    request: pytest.FixtureRequest, leaderfall_seed: int
) -> Generator[BlockingCluster, None, None]:
    """A simulated cluster in virtual time, for plain functions; it is judged."""
    from sim.pytest_plugin.blocking import BlockingCluster

    case = _begin(request, "cluster", leaderfall_seed)
    yield BlockingCluster(case.test.world)
    _look_again(case)


@pytest.fixture
def scripted_cluster(
    request: pytest.FixtureRequest, leaderfall_seed: int
) -> Generator[AwaitedCluster, None, None]:
    """A simulated cluster for async tests, which run in its virtual time; it is judged."""
    from sim.pytest_plugin.awaited import AwaitedCluster

    case = _begin(request, "scripted_cluster", leaderfall_seed)
    case.cluster = AwaitedCluster(case.test.world)
    yield case.cluster
    _look_again(case)


def _begin(request: pytest.FixtureRequest, fixture: str, seed: int) -> Case:
    from sim.pytest_plugin.cases import begin_case
    from sim.pytest_plugin.scripted import refusal

    item, state = request.node, request.config.stash[_STATE]
    text = refusal(item.stash.get(_FUNCTION, request.function), fixture)
    if _CASE in item.stash:
        text = f"{item.nodeid} has cluster and scripted_cluster, allowed is one of both"
    if text:
        _fail(text)
    case = begin_case(item, fixture, seed, state.traces)
    if state.replay is not None:
        case.expected_digest = state.replay.digest
    item.user_properties.append(("leaderfall_seed", seed))
    item.stash[_CASE] = case
    return case


def _look_again(case: Case) -> None:
    """Fixtures that ended before may have gone on with the cluster, behind the test."""
    new = case.test.look() if case.is_looked_at else []
    if new:
        case.is_told = True
        _fail("\n".join([_heading(case), *(f"- {each}" for each in new)]))


def _fail(text: str) -> NoReturn:
    """In a frame that is not hidden: pytest remarks on it where all of them are."""
    raise pytest.fail.Exception(text, pytrace=False)


def _heading(case: Case) -> str:
    return f"the cluster of {case.item.name} broke its rules (seed {case.test.seed}):"


# Running -----------------------------------------------------------------------------------------


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Remember the test as it was written: pytest-trio puts a runner of its own there."""
    if "leaderfall_seed" in getattr(item, "fixturenames", ()) and _FUNCTION not in item.stash:
        item.stash[_FUNCTION] = item.obj  # type: ignore[attr-defined]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> object | None:
    """Async tests with ``scripted_cluster`` run here, whoever else runs async tests."""
    __tracebackhide__ = True
    case = pyfuncitem.stash.get(_CASE, None)
    if case is None or case.cluster is None:
        return None
    from sim.pytest_plugin.scripted import run_test

    names = pyfuncitem._fixtureinfo.argnames
    arguments = {name: pyfuncitem.funcargs[name] for name in names}
    run_test(pyfuncitem.stash[_FUNCTION], arguments, case.cluster)
    return True


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """A test that has passed fails where its cluster broke a rule."""
    __tracebackhide__ = True
    result = yield
    case = item.stash.get(_CASE, None)
    if case is not None:
        case.is_looked_at = True
        if case.test.look():
            case.is_told = True
            _fail("\n".join([_heading(case), *(f"- {each}" for each in case.test.wrong)]))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """What a test with a cluster leaves: a section of its report, properties, its trace."""
    report = yield
    case = item.stash.get(_CASE, None)
    if case is None:
        if report.failed and call.excinfo is not None:
            from sim.pytest_plugin.saved_cases import saved_properties

            found = list(saved_properties(call.excinfo.value))
            report.user_properties += found
            item.user_properties += found
        return report
    is_last = report.when == "teardown"
    if report.failed:
        case.has_failed = True
        case.look_behind()
    if (report.failed or is_last) and case.traces.wants(is_failed=case.has_failed):
        case.keep()
    for name, value in (*case.properties(is_last=is_last),):
        if (name, value) not in item.user_properties:
            item.user_properties.append((name, value))
        if (name, value) not in report.user_properties:
            report.user_properties.append((name, value))
    if report.failed:
        report.sections.append(("leaderfall", case.text()))
    if is_last:
        case.end(is_failed=case.has_failed)
        del item.stash[_CASE]
    return report


# Telling -----------------------------------------------------------------------------------------


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Where traces were saved, and how each is run again."""
    saved: dict[str, list[tuple[str, str]]] = {}
    compared: dict[str, str] = {}
    for reports in terminalreporter.stats.values():
        for report in reports:
            found = list(getattr(report, "user_properties", ()))
            if any(name == "leaderfall_trace" for name, _ in found):
                saved[report.nodeid] = [
                    (_TOLD[name], text) for name, text in found if name in _TOLD
                ]
            compared.update((report.nodeid, text) for name, text in found if name == _COMPARED)
    if compared:
        terminalreporter.section("leaderfall: replay")
        for nodeid, text in compared.items():
            terminalreporter.line(f"{nodeid}: {text}")
    if saved:
        terminalreporter.section("leaderfall: saved traces")
        for nodeid in sorted(saved):
            terminalreporter.line(nodeid)
            for word, text in saved[nodeid]:
                terminalreporter.line(f"  {word:<6}  {text}")


def pytest_unconfigure(config: pytest.Config) -> None:
    """Leave no empty folder."""
    state = config.stash.get(_STATE, None)
    if state is not None:
        state.traces.tidy()
