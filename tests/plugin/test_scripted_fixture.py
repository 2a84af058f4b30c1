"""The fixture ``scripted_cluster``: async tests in virtual time, alone and with pytest-trio."""

from __future__ import annotations

import pytest

from tests.plugin.projects import Project, failures, needs_pytest_trio

pytest_plugins = ["pytester"]

TRIO_MODE = "trio_mode = true\n"


def test_trios_time_is_virtual(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        import time
        import trio

        async def test_a(scripted_cluster):
            began = time.monotonic()
            await trio.sleep(500)
            assert trio.current_time() == scripted_cluster.now == 500
            with trio.move_on_after(50) as scope:
                await trio.sleep_forever()
            assert scope.cancelled_caught
            assert scripted_cluster.now == 550
            assert time.monotonic() - began < 500
        """,
    )
    project.run().assert_outcomes(passed=1)


def test_scripts_may_be_several(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        async def test_a(scripted_cluster):
            cluster, outcomes = scripted_cluster, []

            async def writer(name):
                outcomes.extend(await cluster.produce("orders", 3, client=name))

            await cluster.create_topic("orders")
            async with cluster.nursery() as nursery:
                nursery.start_soon(writer, "p1")
                nursery.start_soon(writer, "p2")
            assert sorted(each.offset for each in outcomes) == list(range(6))
        """,
    )
    project.run().assert_outcomes(passed=1)


FIXTURES = """
    import pytest
    import trio

    SEEN = []

    @pytest.fixture(params=["a", "b"])
    def word(request):
        yield request.param
        SEEN.append("word ends")

    @pytest.fixture
    async def orders(scripted_cluster):
        await scripted_cluster.create_topic("orders")
        yield "orders"
        await trio.sleep(100)
        SEEN.append(f"orders ends {scripted_cluster.now >= 100}")

    @pytest.fixture
    async def filled(scripted_cluster, orders, word):
        await scripted_cluster.produce(orders, [word])
        return orders

    @pytest.fixture
    def plain(filled):
        yield filled * 2
        SEEN.append("plain ends")

    @pytest.fixture(autouse=True)
    def always():
        SEEN.clear()
        yield
        SEEN.append("always ends")

    MARK
    class TestAll:
        @pytest.mark.parametrize("n", [1, 2])
        async def test_all(self, scripted_cluster, plain, filled, orders, word, n, nursery):
            assert (plain, filled) == ("ordersorders", "orders")
            (record,) = await scripted_cluster.consume(orders, 1)
            assert record.value == word.encode()
            nursery.start_soon(trio.sleep_forever)
            nursery.start_soon(scripted_cluster.sleep, 10**6)
            assert SEEN == []
            assert n == 1

    async def test_without(nursery, autojump_clock):
        '''Is pytest-trio's, as ever.'''
        nursery.start_soon(trio.sleep_forever)
        await trio.sleep(1000)
        assert SEEN == []
"""


@needs_pytest_trio
@pytest.mark.parametrize(
    ("ini", "mark"), [(TRIO_MODE, ""), ("", "@pytest.mark.trio")], ids=["mode", "mark"]
)
def test_fixtures_of_pytest_trio_go_on_working(ini: str, mark: str, project: Project) -> None:
    project.ini(ini)
    text = FIXTURES.replace("MARK", mark)
    if mark:
        text = text.replace("    async def test_without", f"    {mark}\n    async def test_without")
    project.write("tests/test_a.py", text)
    project.write(
        "tests/conftest.py",
        """
        def pytest_runtest_logfinish(nodeid):
            import sys
            module = sys.modules.get("test_a") or sys.modules.get("tests.test_a")
            print(nodeid, module and module.SEEN)
        """,
    )
    result = project.run("-s", "-v")
    result.assert_outcomes(passed=3, failed=2)
    text = str(result.stdout)
    ends = "['plain ends', 'orders ends True', 'word ends', 'always ends']"
    for name in ("a-1", "b-1", "a-2", "b-2"):
        assert f"tests/test_a.py::TestAll::test_all[{name}] {ends}" in text
    assert "assert 2 == 1" in failures(result)
    assert "ExceptionGroup" not in text
    assert "sim/" not in failures(result)


@needs_pytest_trio
@pytest.mark.parametrize(
    ("body", "outcome", "expected"),
    [
        ("async with trio.open_nursery(): yield 1", "passed", ""),
        (
            "with trio.move_on_after(1): yield 1",
            "failed",
            "RuntimeError: the fixture own cancelled the test",
        ),
        ("yield 1; yield 2", "failed", "RuntimeError: the fixture own yields twice"),
        ("yield 1; assert 0, 'late'", "failed", "AssertionError: late"),
        ("assert 0, 'early'; yield 1", "failed", "AssertionError: early"),
        (
            "async with scripted_cluster.nursery() as n: n.start_soon(boom); yield 1",
            "failed",
            "ValueError: boom",
        ),
    ],
    ids=["nursery", "cancels", "twice", "late", "early", "task"],
)
def test_fixtures_that_go_wrong(body: str, outcome: str, expected: str, project: Project) -> None:
    project.ini(TRIO_MODE)
    project.write(
        "tests/test_a.py",
        f"""
        import pytest
        import trio

        async def boom():
            raise ValueError("boom")

        @pytest.fixture
        async def own(scripted_cluster):
            {body}

        async def test_a(own, scripted_cluster):
            await trio.sleep(10)
        """,
    )
    result = project.run()
    result.assert_outcomes(**{outcome: 1})
    assert expected in str(result.stdout)


def test_failures_are_told_at_the_line_of_the_test(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        import pytest

        async def helper(cluster):
            await cluster.crash("leader:orders-1")

        async def test_helper(scripted_cluster):
            await scripted_cluster.create_topic("orders")
            await helper(scripted_cluster)

        async def test_verb(scripted_cluster):
            await scripted_cluster.wait_for(lambda: False, within=5)

        async def test_skip(scripted_cluster):
            pytest.skip("not today")

        async def test_xfail(scripted_cluster):
            pytest.xfail("not yet")
        """,
    )
    result = project.run()
    result.assert_outcomes(failed=2, skipped=1, xfailed=1)
    text = failures(result)
    assert ">       await helper(scripted_cluster)" in text
    assert '    await cluster.crash("leader:orders-1")' in text
    assert 'there is no partition "orders-1"' in text
    assert "does not hold after 5 s" in text
    assert "sim/baton" not in text
    assert "site-packages/trio" not in text


@needs_pytest_trio
def test_clocks_of_tests_are_refused(project: Project) -> None:
    project.ini(TRIO_MODE)
    text = "async def test_a(scripted_cluster, autojump_clock):\n    pass\n"
    project.write("tests/test_a.py", text)
    result = project.run()
    result.assert_outcomes(failed=1)
    assert "the fixture autojump_clock is a clock or instrument of trio" in str(result.stdout)
    assert "hidden" not in str(result.stdout)


@needs_pytest_trio
def test_given_is_refused_and_the_way_around_it_works(project: Project) -> None:
    project.ini(TRIO_MODE)
    project.write(
        "tests/test_a.py",
        """
        from hypothesis import given, settings, strategies as st
        from sim.scripts import ClusterConfig, run

        @given(n=st.integers(0, 3))
        async def test_refused(scripted_cluster, n):
            pass

        @settings(max_examples=5, database=None)
        @given(n=st.integers(0, 3))
        def test_way(n):
            async def main(cluster):
                await cluster.create_topic("orders")
                return len(await cluster.produce("orders", n))

            assert run(main, ClusterConfig(brokers=1), seed=n) == n
        """,
    )
    result = project.run()
    result.assert_outcomes(passed=1, errors=1)
    assert "test_refused is a test of Hypothesis, whose examples would share" in str(result.stdout)


def test_seeds_make_worlds(project: Project) -> None:
    project.write(
        "tests/test_a.py",
        """
        import pytest

        @pytest.mark.leaderfall_seeds(3)
        @pytest.mark.leaderfall(brokers=1)
        async def test_a(scripted_cluster, leaderfall_seed):
            assert scripted_cluster.world.seed == leaderfall_seed
            assert scripted_cluster.world.config.brokers == 1
            await scripted_cluster.create_topic("orders")
        """,
    )
    result = project.run("-v", "--leaderfall-traces=all")
    result.assert_outcomes(passed=3)
    digests = {each.parent.name: each.read_text() for each in project.path.rglob("test.json")}
    assert len({text.split('"digest": ')[1] for text in digests.values()}) == 3
