"""The fixture ``cluster``: verbs, marks, judge, seeds, and what a failure leaves."""

from __future__ import annotations

import inspect
import json
from pathlib import Path

import pytest

from sim.pytest_plugin.awaited import AwaitedCluster
from sim.pytest_plugin.blocking import BlockingCluster
from sim.scripts import ScriptCluster
from sim.trace.lines import Footer
from sim.trace.reader import TraceReader, verify
from tests.plugin.projects import LOSS, Project, failures

pytest_plugins = ["pytester"]

BOTH_FORMS = """
    from pathlib import Path

    def test_plain(cluster):
        cluster.create_topic("orders", replicas=3)
        cluster.produce("orders", 5)
        fault = cluster.cut("leader:orders-0", "followers:orders-0", only=["FetchResponse"])
        cluster.produce("orders", ["x"], acks=1)
        cluster.crash("leader:orders-0")
        cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")
        cluster.heal(fault)
        cluster.start("b1")
        cluster.advance(3)
        assert len(cluster.consume("orders", 5)) == 5
        cluster.partition(["one"], ["majority"])
        cluster.pause("controller")
        cluster.sleep(0.5)
        cluster.resume("controller")
        cluster.shutdown("b3")
        Path("plain").write_text(cluster.world.trace.digest())

    async def test_async(scripted_cluster):
        cluster = scripted_cluster
        await cluster.create_topic("orders", replicas=3)
        await cluster.produce("orders", 5)
        fault = await cluster.cut("leader:orders-0", "followers:orders-0", only=["FetchResponse"])
        await cluster.produce("orders", ["x"], acks=1)
        await cluster.crash("leader:orders-0")
        await cluster.wait_for(lambda: cluster.view.leader("orders") == "b2")
        await cluster.heal(fault)
        await cluster.start("b1")
        await cluster.advance(3)
        assert len(await cluster.consume("orders", 5)) == 5
        await cluster.partition(["one"], ["majority"])
        await cluster.pause("controller")
        await cluster.sleep(0.5)
        await cluster.resume("controller")
        await cluster.shutdown("b3")
        Path("script").write_text(cluster.world.trace.digest())
"""


def properties(project: Project, name: str) -> list[str]:
    """Of the tests of a run, from its JUnit XML, which is one line here."""
    text = (project.path / "junit.xml").read_text()
    return [part.split('"')[0] for part in text.split(f'<property name="{name}" value="')[1:]]


def footer(path: Path) -> Footer:
    """Of a trace that is whole."""
    assert verify(path).is_complete
    found = TraceReader(path).footer
    assert found is not None
    return found


def test_a_test_is_one_run_in_both_forms(project: Project) -> None:
    project.write("tests/test_both.py", BOTH_FORMS)
    project.run().assert_outcomes(passed=2)
    plain, script = ((project.path / name).read_text() for name in ("plain", "script"))
    assert plain == script
    assert project.saved() == []
    assert not (project.path / ".leaderfall").exists()


def test_both_clusters_have_the_verbs_of_scripts() -> None:
    verbs = [
        name
        for name, value in vars(ScriptCluster).items()
        if not name.startswith("_") and inspect.isfunction(value) and name != "nursery"
    ]
    assert len(verbs) > 15
    for name in verbs:
        parameters = inspect.signature(getattr(ScriptCluster, name)).parameters
        for kind in (BlockingCluster, AwaitedCluster):
            assert inspect.signature(getattr(kind, name)).parameters == parameters, (kind, name)


# Marks -------------------------------------------------------------------------------------------


def test_marks_make_the_world(project: Project) -> None:
    project.write(
        "tests/test_marks.py",
        """
        import pytest
        from sim.cluster_config import ClusterConfig

        pytestmark = pytest.mark.leaderfall(brokers=2, seed=4)

        @pytest.mark.leaderfall(
            seed=9, config={"min.insync.replicas": 2}, guards={"fetch_epoch": False}
        )
        def test_keys(cluster, leaderfall_seed):
            config = cluster.world.config
            assert (config.brokers, cluster.world.seed, leaderfall_seed) == (2, 9, 9)
            assert config.topic.min_insync_replicas == 2
            assert not config.guards.fetch_epoch

        def test_module(cluster):
            assert (cluster.world.config.brokers, cluster.world.seed) == (2, 4)

        class TestWhole:
            pytestmark = []

            @pytest.mark.parametrize("n", [1, 2])
            def test_class(self, cluster, n):
                assert cluster.world.seed == 4
        """,
    )
    project.write(
        "tests/test_whole.py",
        """
        import pytest
        from sim.cluster_config import ClusterConfig

        @pytest.mark.leaderfall(ClusterConfig(brokers=1))
        def test_whole(cluster):
            assert cluster.world.config.brokers == 1
            assert cluster.world.seed == 0
        """,
    )
    project.run().assert_outcomes(passed=5)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ('leaderfall(brokers="3")', '"3" is no integer (write 3 without quotes)'),
        ("leaderfall(borkers=3)", 'unknown key "borkers" (did you mean "brokers"?), allowed are'),
        ("leaderfall(brokers=101)", "101"),
        ("leaderfall(brokers=object())", "it has a value that no scenario file can have"),
        ("leaderfall(3)", "it was given 3, allowed is one ClusterConfig"),
        ("leaderfall(seed=-1)", "seed is -1, allowed is 0.."),
        ("leaderfall(judge=1)", "judge is 1, allowed is True or False"),
        ('leaderfall(breaks="log-matching")', "breaks is 'log-matching', allowed is a list"),
        ('leaderfall(breaks=["odd"])', "breaks has 'odd', allowed are ack-honours-min-isr"),
        ('leaderfall(guards={"epoch": False})', 'there is no guard "epoch"'),
    ],
)
def test_marks_that_cannot_be(mark: str, expected: str, project: Project) -> None:
    text = f"import pytest\n@pytest.mark.{mark}\ndef test_a(cluster):\n    pass\n"
    project.write("tests/test_a.py", text)
    result = project.run()
    result.assert_outcomes(errors=1)
    output = str(result.stdout)
    assert "@pytest.mark.leaderfall of tests/test_a.py::test_a: " in output
    assert expected in output
    assert "During handling" not in output


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("leaderfall_seeds()", "no seed is named"),
        ("leaderfall_seeds(0)", "0 seeds are wanted, allowed are 1..100000"),
        ("leaderfall_seeds(1, 1)", "seeds are 1, 1, allowed is each once"),
        ("leaderfall_seeds('5')", "it was given '5', allowed is how many"),
        ("leaderfall_seeds(n=5)", "it was given n, allowed are numbers only"),
    ],
)
def test_seeds_that_cannot_be(mark: str, expected: str, project: Project) -> None:
    text = f"import pytest\n@pytest.mark.{mark}\ndef test_a(cluster):\n    pass\n"
    project.write("tests/test_a.py", text)
    result = project.run()
    result.assert_outcomes(errors=1)
    assert expected in str(result.stdout)


def test_seeds_need_a_cluster(project: Project) -> None:
    text = "import pytest\n@pytest.mark.leaderfall_seeds(2)\ndef test_a():\n    pass\n"
    project.write("tests/test_a.py", text)
    result = project.run()
    result.assert_outcomes(errors=1)
    assert "has @pytest.mark.leaderfall_seeds and neither cluster" in str(result.stdout)


# Seeds -------------------------------------------------------------------------------------------

SEEDED = """
    import pytest

    @pytest.mark.parametrize("n", [1])
    @pytest.mark.leaderfall_seeds(0, 5)
    def test_marked(cluster, n):
        cluster.create_topic("orders")
        assert cluster.world.seed != 5

    def test_unmarked(cluster):
        pass
"""


def test_seeds_of_mark_option_and_replay(project: Project) -> None:
    project.write("tests/test_a.py", SEEDED)
    result = project.run("-v")
    result.assert_outcomes(passed=2, failed=1)
    assert "tests/test_a.py::test_marked[1-seed5] FAILED" in str(result.stdout)
    assert "replay  pytest 'tests/test_a.py::test_marked[1]' --leaderfall-replay 5" in str(
        result.stdout
    )
    result = project.run("-v", "--leaderfall-seeds", "3,5")
    result.assert_outcomes(passed=3, failed=1)
    assert "tests/test_a.py::test_unmarked[seed3] PASSED" in str(result.stdout)
    # What the report says is what runs it again; others are left out.
    result = project.run("-v", "tests/test_a.py::test_marked[1]", "--leaderfall-replay", "5")
    result.assert_outcomes(failed=1)
    project.run("--leaderfall-replay", "6").assert_outcomes(passed=2)


def test_a_saved_test_is_run_again_by_its_folder(project: Project) -> None:
    project.write("tests/test_a.py", SEEDED)
    project.run().assert_outcomes(passed=2, failed=1)
    (folder,) = (each for each in project.saved() if "/" not in each)
    place = project.path / ".leaderfall" / "failures" / folder
    document = json.loads((place / "test.json").read_text())
    assert document["test"] == "tests/test_a.py::test_marked[1]"
    assert (document["seed"], document["wrong"]) == (5, [])
    assert footer(place / "trace.jsonl").digest == document["digest"]
    for name in ("", "trace.jsonl", "test.json"):
        result = project.run("--leaderfall-replay", str(place / name))
        result.assert_outcomes(failed=1)
        assert "replay: the same events as in the saved trace" in str(result.stdout)
    text = SEEDED.replace("orders", "other")
    project.write("tests/test_a.py", text)
    result = project.run("--leaderfall-replay", str(place))
    assert "replay: other events than in the saved trace" in str(result.stdout)
    project.write("tests/test_a.py", "def test_a():\n    pass\n")
    result = project.run("--leaderfall-replay", str(place), "tests")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert "test_marked[1] is not among what was collected" in str(result.stderr)


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ("--leaderfall-replay=nowhere", "is 'nowhere', which is no file; allowed are a seed"),
        ("--leaderfall-replay=tests", "there is no test.json or scenario.toml with it"),
        ("--leaderfall-replay=99999999999999999999", "seed is 99999999999999999999, allowed is"),
        ("--leaderfall-seeds=x", "seeds are 'x', allowed are N for seeds 0 to N-1"),
        ("--leaderfall-seeds=0", "0 seeds are wanted, allowed are 1..100000"),
    ],
)
def test_options_that_cannot_be(option: str, expected: str, project: Project) -> None:
    result = project.run(option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    assert expected in str(result.stderr)
    assert "Traceback" not in str(result.stderr)


# The judge ---------------------------------------------------------------------------------------


OFF = 'guards={"ack-waits-for-hw": False}'
BROKEN = "leader-completeness (I6) orders-0 never-held "
LOST = "3 records were lost, ILLEGAL: "


@pytest.mark.parametrize(
    ("mark", "wrong"),
    [
        ("", []),
        (OFF, [BROKEN, LOST]),
        (f"{OFF}, judge=False", []),
        (f'{OFF}, breaks=["leader-completeness"]', [LOST]),
        (f'{OFF}, breaks=["leader-completeness", "acked-records-survive"]', []),
        (
            f'{OFF}, breaks=["committed-records-survive"]',
            [BROKEN, "breaks: committed-records-survive was not violated"],
        ),
        (
            f'{OFF}, breaks=["leader-completeness", "acked-records-survive", "hw-valid"]',
            ["breaks: hw-valid was not violated"],
        ),
        ('breaks=["leader-completeness"]', ["breaks: leader-completeness was not violated"]),
    ],
)
def test_what_the_judge_finds_fails_a_test(mark: str, wrong: list[str], project: Project) -> None:
    project.write("tests/test_loss.py", LOSS.replace("MARK", mark))
    result = project.run()
    if not wrong:
        result.assert_outcomes(passed=1)
        return
    result.assert_outcomes(failed=1)
    found = [line for line in result.outlines if line.startswith("- ")]
    assert len(found) == len(wrong)
    for line, expected in zip(found, wrong, strict=True):
        assert line.startswith(f"- {expected}")
    text = str(result.stdout)
    assert "the cluster of test_loss broke its rules (seed 0):" in text
    assert "The logs at " in text
    assert "sim/pytest_plugin" not in text
    (name,) = (each for each in project.saved() if each.endswith("test.json"))
    document = json.loads((project.path / ".leaderfall/failures" / name).read_text())
    assert [f"- {each}" for each in document["wrong"]] == found


def test_a_test_that_fails_is_judged_as_well(project: Project) -> None:
    mark = f'{OFF}, breaks=["hw-valid"]'
    project.write("tests/test_loss.py", LOSS.replace("MARK", mark) + "        assert 0, 'mine'\n")
    result = project.run()
    result.assert_outcomes(failed=1)
    text = failures(result)
    assert "AssertionError: mine" in text
    assert f"- {LOST}" in text
    assert "was not violated" not in text


def test_what_a_fixture_does_behind_the_test_is_judged(project: Project) -> None:
    text = LOSS.replace("MARK", OFF)
    text = text.replace("def test_loss", "def lossy", 1).replace(
        "    @pytest.mark.leaderfall(", "    MARK = pytest.mark.leaderfall("
    )
    head, _, body = text.partition("    def lossy(cluster):\n")
    project.write(
        "tests/test_a.py",
        f"{head}\n    @pytest.fixture\n    def late(cluster):\n        yield\n{body}\n"
        "    @MARK\n    def test_a(late, cluster):\n        pass\n",
    )
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    assert f"- {LOST}" in str(result.stdout)
    assert len([each for each in project.saved() if each.endswith("trace.jsonl")]) == 1


# What is left ------------------------------------------------------------------------------------


def test_what_a_failing_test_leaves(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        import pytest

        @pytest.fixture
        def orders(cluster):
            cluster.create_topic("orders")
            return "orders"

        def test_fails(cluster, orders):
            cluster.produce(orders, 2)
            cluster.sleep(2)
            cluster.crash("leader:order-0")

        @pytest.mark.xfail(strict=True)
        def test_xfails(cluster, orders):
            assert 0

        def test_skips(cluster, orders):
            pytest.skip("no")

        @pytest.fixture
        def broken(cluster):
            cluster.elect("nothing")

        def test_errs(cluster, broken):
            pass
        """,
    )
    result = project.run("--junitxml=junit.xml")
    result.assert_outcomes(failed=1, xfailed=1, skipped=1, errors=1)
    text = failures(result)
    assert '>       cluster.crash("leader:order-0")\nE       sim.world_errors.WorldError: ' in text
    assert (
        'there is no partition "order-0", allowed are orders-0 (did you mean "orders-0"?)' in text
    )
    assert "b1 leader     00|]  HW 2, LEO 2" in text
    assert "seed    0\n" in text
    one, two = (each for each in project.saved() if "/" not in each)
    for folder, name in ((one, "test_errs"), (two, "test_fails")):
        trace = f".leaderfall/failures/{folder}/trace.jsonl"
        replay = f"pytest tests/test_a.py::{name} --leaderfall-replay 0"
        assert f"trace   {trace}\nreplay  {replay}\n" in str(result.stdout)
        assert f"tests/test_a.py::{name}\n  trace   {trace}\n  replay  {replay}" in str(
            result.stdout
        )
        assert trace in properties(project, "leaderfall_trace")
        assert replay in properties(project, "leaderfall_replay")
    assert properties(project, "leaderfall_seed") == ["0"] * 4
    assert len(properties(project, "leaderfall_trace")) == 2
    assert len(project.saved()) == 6


def test_all_traces_in_a_folder_and_none(project: Project) -> None:
    project.write("tests/test_a.py", SEEDED)
    options = ["--leaderfall-traces", "kept", "--leaderfall-traces", "all"]
    project.run(*options).assert_outcomes(passed=2, failed=1)
    traces = sorted((project.path / "kept").rglob("trace.jsonl"))
    assert len(traces) == 3
    verdicts = [footer(each).verdict for each in traces]
    assert sorted(verdicts) == ["failed", "passed", "passed"]
    assert project.saved() == []
    result = project.run("--leaderfall-traces=none")
    result.assert_outcomes(passed=2, failed=1)
    assert "saved traces" not in str(result.stdout)
    assert "replay  pytest " in str(result.stdout)
    assert project.saved() == []


def test_where_traces_cannot_be_written_tests_run_all_the_same(project: Project) -> None:
    project.write("tests/test_a.py", SEEDED)
    project.write(".leaderfall", "a file")
    result = project.run()
    result.assert_outcomes(passed=2, failed=1)
    assert "NOTE: there is no trace: " in str(result.stdout)


# Refused -----------------------------------------------------------------------------------------


def test_tests_that_cannot_have_a_cluster(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        from hypothesis import given, strategies as st

        @given(st.integers())
        def test_given(cluster, n):
            pass

        def test_two(cluster, scripted_cluster):
            pass

        async def test_two_async(cluster, scripted_cluster):
            pass

        def test_no_script(scripted_cluster):
            pass
        """,
    )
    result = project.run()
    result.assert_outcomes(errors=4)
    text = str(result.stdout)
    assert "test_given is a test of Hypothesis, whose examples would share one cluster" in text
    assert "write a plain test that calls sim.scripts.run(main, config, seed=...)" in text
    assert "test_two_async has cluster and scripted_cluster, allowed is one of both" in text
    assert "test_no_script is no async function, and scripted_cluster is for those" in text


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ('cluster.crash("leader:orders-1")', 'there is no partition "orders-1"'),
        ('cluster.crash("boss:orders-0")', 'unknown selector "boss:orders-0"'),
        ('cluster.crash("b9")', "node is 'b9', there are c1, b1, b2, b3"),
        ("cluster.crash(None)", "node is None: a partition that nobody leads has None"),
        ("cluster.crash(3)", "node is 3, allowed is a name or a selector"),
        ('cluster.elect("orders", to="followers:orders-0")', "is b2, b3 now, allowed is one node"),
        ('cluster.cut("b1", "leader:orders-0")', "link is from 'b1' to itself"),
        ('cluster.partition("b1", "b2")', "a group is 'b1', allowed is a list of names"),
        ("cluster.wait_for(lambda: False, within=2)", "the condition of line 3 does not hold"),
        ("cluster.wait_for(3)", "holds is 3, allowed is a function"),
        ('cluster.consume("orders", 1, within=2)', "consume of 1 records of orders-0 is not done"),
        ("cluster.sleep(-1)", "seconds is -1, allowed is 0 or more seconds"),
    ],
)
def test_verbs_that_are_refused(call: str, expected: str, project: Project) -> None:
    text = f"def test_a(cluster):\n    cluster.create_topic('orders')\n    {call}\n"
    project.write("tests/test_a.py", text)
    result = project.run("--leaderfall-traces=none")
    result.assert_outcomes(failed=1)
    assert expected in str(result.stdout)
