"""Files: what they may be, and what they must not; and what a file becomes."""

# ruff: noqa: E501 - a row of a table is a line

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from sim.scenario.actions import ACTIONS, Crash, Cut, Heal, Partition, Produce, Settle, Wait
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.scenario.fault_links import ClogFault
from sim.scenario.model import Scenario
from sim.scenario.names import PartitionName
from sim.scenario.problems import Problem, ScenarioError, escaped
from sim.scenario.reading import FILE_BYTES_MAX, parse_scenario, read_scenario
from sim.scenario.selectors import Selector
from sim.scenario.template import template
from sim.scenario.wiring import notes_of, require_wired, unwired
from tests.sim.scenario.texts import BASE, EXAMPLES, HEAD, example, problems, read

ORDERS = PartitionName("orders", 0)
LEADER = Selector("leader", partition=ORDERS)


# What a file becomes -----------------------------------------------------------------------------


def shipped(name: str) -> Scenario:
    return read_scenario(next(path for path in EXAMPLES if path.stem == name))


def test_the_first_example() -> None:
    found = shipped("leader_crash_acks1")
    assert (found.name, found.slug, found.seed) == ("leader-crash-acks1",) * 2 + (7,)
    assert (found.until_us, found.cluster.brokers) == (20_000_000, 3)
    (topic,) = found.topics
    assert topic.replicas == (("b1", "b2", "b3"),)
    assert topic.config == {"min.insync.replicas": "1"}
    assert [step.action.NAME for step in found.steps] == [
        "produce", "settle", "cut", "produce", "crash", "heal", "start",
    ]  # fmt: skip
    produce, settle, cut, _, crash, heal, _ = (step.action for step in found.steps)
    assert produce == Produce(to=("orders", 0), count=10, acks="1")
    assert (produce.timeout_us, produce.client, produce.is_idempotent) == (30_000_000, "p1", False)
    assert settle == Settle(within_us=2_000_000)
    assert cut == Cut(
        sources=(LEADER,),
        targets=(Selector("followers", partition=ORDERS),),
        only=("FetchResponse",),
        in_flight="drop",
    )
    assert crash == Crash(nodes=(LEADER,), how="process")
    assert heal == Heal(ids=("lag",))
    assert [step.at_us for step in found.steps] == [
        1_000_000, None, 3_000_000, 3_100_000, 3_500_000, 3_600_000, 14_000_000,
    ]  # fmt: skip
    assert [step.within_us for step in found.steps] == [None, 2_000_000, *[None] * 5]
    assert [step.line for step in found.steps] == [20, 24, 27, 32, 36, 41, 45]
    assert [step.fault_id for step in found.steps][:3] == ["produce@1", "settle@2", "lag"]
    assert [each.form for each in found.expects] == [
        "at", "eventually", "always", "at_end", "at_end", "breaks",
    ]  # fmt: skip
    assert found.expects[0].at_us == 3_400_000
    assert (found.expects[1].after, found.expects[1].within_us) == ("kill", 12_000_000)
    assert found.expects[3].because.startswith("acks=1 acknowledges")
    assert found.expects[5].breaks == ("acked-records-survive",)


def test_the_second_example() -> None:
    found = shipped("kip101_divergence")
    assert found.seed == 0
    assert found.cluster.writeback is None
    assert [each.name for each in found.variants] == ["high-watermark", "fetch"]
    assert found.variants[0].set == {"cluster.truncation": "high-watermark"}
    wait = next(step for step in found.steps if isinstance(step.action, Wait))
    assert (str(wait.action.that), wait.within_us) == ("isr('orders-0') == {b2}", 10_000_000)  # type: ignore[attr-defined]
    assert [each.variants for each in found.expects] == [
        (), (), (), ("high-watermark",), ("high-watermark",), ("fetch",), (),
    ]  # fmt: skip


def test_the_third_example() -> None:
    found = shipped("partition_unclean")
    assert [each.slug for each in found.variants] == ["unclean-on", "unclean-off"]
    partition = found.steps[1].action
    assert isinstance(partition, Partition)
    assert [[str(node) for node in group] for group in partition.groups] == [["b1"], ["b2", "b3"]]
    assert found.steps[6].action.timeout_us == 10_000_000  # type: ignore[attr-defined]
    window = found.expects[5]
    assert (window.form, window.from_us, window.to_us) == ("always", 71_000_000, 105_000_000)


def test_every_action_and_its_short_form() -> None:
    text = """
[[step]]
id = "lag"
cut = { from = ["b1", "c1"], to = "all", both = true }
[[step]]
id = "parts"
partition = { groups = [["b1", "p1"], ["c1"]], in_flight = "hold" }
[[step]]
heal = ["lag", "parts"]
[[step]]
produce = { to = "orders", keys = ["a", "b"], values = ["x", "y"], batch = 2 }
[[step]]
consume = { from = "orders-0", count = 2, offset = 1, group = "g" }
[[step]]
wait = "hw('orders-0') == 2"
[[step]]
settle = { within = "1s" }
[[step]]
pause = "b1"
[[step]]
resume = { node = "b1" }
[[step]]
id = "off"
crash = { node = "b1", how = "power", image = "torn" }
[[step]]
start = { node = "b1", disk = "wiped" }
[[step]]
flush = ["b1", "b2"]
[[step]]
shutdown = "b2"
[[step]]
elect = { partition = "orders-0", to = "b3", kind = "unclean" }
[[step]]
reassign = { partition = "orders-0", replicas = ["b3", "b1"] }
[[step]]
config = { topic = "orders", set = { "retention.ms" = 1 } }
[[step]]
delete_records = { partition = "orders-0", before = 1 }
[[step]]
create_topic = { name = "new", partitions = 2 }
[[step]]
delete_topic = "new"
[[step]]
id = "slow"
slow = { node = "b1", link = "5ms" }
[[step]]
id = "full"
fill = { node = "b1", free = 0 }
[[step]]
heal = "all"
[[step]]
corrupt = { node = "b1", partition = "orders-0", file = "00.log", byte = 3, how = "zero" }
"""
    found = read(text)
    assert {step.action.NAME for step in found.steps} == set(ACTIONS)
    assert found.steps[3].action.to == ("orders", None)  # type: ignore[attr-defined]
    assert found.steps[5].within_us == 60_000_000
    assert all(cls.__doc__ and name == cls.NAME for name, cls in ACTIONS.items())


FAULTS = {
    "partition": 'target = [["b1"], ["b2", "b3"]]',
    "loss": 'target = "*"\nppm = 5',
    "limit": 'target = { from = "b1" }\nbytes_per_s = 5',
    "reorder": 'target = "b1"\nup_to = "1ms"',
    "flap": 'target = "b1"\nperiod = "1s"',
    "swizzle": 'target = "all"\nperiod = "1s"',
    "metadata-lag": 'target = "b1"\nskip = true',
    "crash-loop": 'target = "b1"\ncalls = [3]',
    "failpoint": 'target = "b1"\npoint = "disk:append:.log"\naction = "power"',
    "slow": 'target = "b1"\nlink = "1.5x"',
    "clock-step": 'target = "b1"\nby = "-2m"',
    "stall": 'target = "b1"\nduration = "1s"',
    "fill": 'target = "b1"\nfree = 1',
    "bit-rot": 'target = "b1"\npartition = "orders-0"\noffset = 3',
    "background-hold": 'target = "b1"\nwork = "flush"',
    "clock-strobe": 'target = "b1"\nby = "-2m"\nperiod = "1s"',
    "timer-jitter": 'target = "b1"\nppm = 5',
    "bad-sector": 'target = "b1"\npartition = "orders-0"\nfile = "00.log"',
}


@pytest.mark.parametrize("kind", FAULT_KINDS)
def test_every_kind_of_fault(kind: str) -> None:
    more = FAULTS.get(kind, 'target = "b1"')
    head = '[cluster]\nnetwork = "datagram"\nwriteback = ["1s", "2s"]\n[[fault]]\n'
    text = (
        f'{head}id = "f"\nkind = "{kind}"\nstart = "1s"\nend = {{ when = "alive(b1)" }}\n{more}\n'
    )
    found = read(text)
    (fault,) = found.faults
    assert type(fault) is FAULT_KINDS[kind]
    assert (fault.id, fault.number, fault.line, fault.start.at_us) == ("f", 1, 10, 1_000_000)
    assert fault.end is not None
    assert str(fault.end.that) == "alive(b1)"
    assert type(fault).__doc__
    assert unwired(found) == []


def test_links_of_faults() -> None:
    text = '[[fault]]\nid = "f"\nkind = "clog"\nstart = "1s"\ntarget = '
    for target, wanted in (
        ('"b1"', ("b1", "*", True)),
        ('"*"', ("*", "*", False)),
        ('{ from = "b1" }', ("b1", "*", False)),
        ('{ to = ["b1", "c1"], both = true }', ("*", "b1 c1", True)),
    ):
        (fault,) = read(text + target).faults
        assert isinstance(fault, ClogFault)
        ends = [
            "*" if each is None else " ".join(map(str, each))
            for each in (fault.target.sources, fault.target.targets)
        ]
        assert (*ends, fault.target.both) == wanted


def test_a_topic_may_be_named_like_a_partition() -> None:
    text = HEAD + '[[topic]]\nname = "a-1"\n[[step]]\nproduce = { to = "a-1-0", count = 1 }\n'
    assert parse_scenario(text).steps[0].action.to == ("a-1", 0)  # type: ignore[attr-defined]


def test_values_of_kafka_may_be_integers_booleans_and_texts() -> None:
    for value in ("1", '"1"'):
        text = f'[[topic]]\nname = "t"\nconfig = {{ "min.insync.replicas" = {value} }}\n'
        assert read(text).topics[1].config == {"min.insync.replicas": "1"}
    text = '[[topic]]\nname = "t"\nconfig = { "unclean.leader.election.enable" = true }\n'
    assert read(text).topics[1].config == {"unclean.leader.election.enable": "true"}


def test_the_template_is_a_scenario() -> None:
    found = parse_scenario(template("my first one"))
    assert (found.name, len(found.steps), len(found.expects)) == ("my first one", 4, 3)
    for action in ACTIONS:
        assert f"{action}" in template("x")
    with pytest.raises(ScenarioError):
        template("a/b")


def test_what_is_read_and_not_built_is_told_with_its_place() -> None:
    text = """
[[step]]
consume = { from = "orders-0", count = 1, isolation = "read_committed" }
[[expect]]
breaks = "transaction-isolation"
[[expect]]
sometimes = "alive(b1)"
[[expect]]
allow = { L0 = 5, L1 = ">=1" }
[sweep]
seeds = "0..9"
"""
    found = read(text)
    assert [(each.line, each.where) for each in unwired(found)] == [
        (9, "step 1"),
        (11, "expect 1"),
    ]
    with pytest.raises(ScenarioError):
        require_wired(found)
    require_wired(read(""))
    assert [each.split(" ")[0] for each in notes_of(found)] == ["expect", "[sweep]"]
    allow = found.expects[2].allow
    assert [str(each) for each in allow] == ["L0 == 5", "L1 >= 1"]
    assert [each.holds(5) for each in allow] == [True, True]
    assert [each.holds(0) for each in allow] == [False, False]


# Bad files ---------------------------------------------------------------------------------------


def refused(path: Path) -> Problem:
    with pytest.raises(ScenarioError) as caught:
        read_scenario(path)
    (only,) = caught.value.problems
    assert escaped(str(path)) in "\n".join(caught.value.lines())
    return only


def written(folder: Path, data: bytes) -> Path:
    path = folder / "x.toml"
    path.write_bytes(data)
    return path


@pytest.mark.parametrize(
    ("data", "said", "line"),
    [
        (b"", "is empty", 0),
        (b" \n\n", "is empty", 0),
        (b"\xef\xbb\xbf", "is empty", 0),
        (b"\x7fELF\x00\x01\xff\xfe", "is no text", 0),
        (b"a = 1\n\x00\n", "is no text", 0),
        (b"name = 1\nx = '\xff'\n", "is no UTF-8 text: byte 0xff", 2),
        ("schema = 1".encode("utf-16"), "is UTF-16 text; save it as UTF-8", 0),
        (b"# x\n" * 300_000, "is larger than 1,000,000 bytes", 0),
        (b"a = 1\nb = \x01\n", "this is no TOML: Invalid value", 2),
        (b"x = " + b"9" * 5_000, "the number has too many digits", 1),
        (b"d = 1979-02-30", "this is no TOML", 1),
        (b"x = " + b"[" * 5_000 + b"]" * 5_000, "nested deeper than 24", 1),
        (b"x = " + b"[" * 100_000, "nested deeper than 24", 1),
        (b"x = " + b"{a = " * 2_000 + b"1" + b"}" * 2_000, "nested deeper than 24", 1),
        (b"a\n= 1", "this is no TOML", 1),
        (b"\n" + b"a." * 100_000 + b"a = 1", "nested deeper than 24", 2),
        (b"\n[" + b"'a' . " * 50_000 + b"a]", "nested deeper than 24", 2),
        (b"x = { " + b"a." * 100_000 + b"a = 1 }", "nested deeper than 24", 1),
        (b"'''", "this is no TOML", 1),
        (b'"' * 100_000, "this is no TOML", 1),
    ],
)  # fmt: skip
def test_files_that_are_no_scenario(tmp_path: Path, data: bytes, said: str, line: int) -> None:
    begin = time.perf_counter()
    found = refused(written(tmp_path, data))
    assert said in found.text
    assert found.line == line
    assert time.perf_counter() - begin < 20, "quadratic"


def test_paths_that_are_no_file(tmp_path: Path) -> None:
    assert refused(tmp_path).text == "is a folder, not a scenario file"
    assert refused(tmp_path / "none.toml").text == "there is no such file"
    assert refused(tmp_path / ("x" * 5_000)).text.startswith("cannot be read")
    assert refused(tmp_path / "none.toml" / "x").text.startswith(("cannot be read", "there is"))
    assert "cannot be read" in refused(Path("a\0b")).text


@pytest.mark.skipif(sys.platform == "win32", reason="no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe").text == "is no regular file"


def test_a_byte_order_mark_and_line_ends_of_windows_do_not_matter(tmp_path: Path) -> None:
    text = example(EXAMPLES[0])
    data = b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
    assert read_scenario(written(tmp_path, data)) == read_scenario(EXAMPLES[0])
    (found,) = problems("\ufeffsed = 1\r\n" + HEAD.replace("\n", "\r\n"))
    assert (found.line, found.column, found.source) == (1, 1, "sed = 1")


@pytest.mark.slow
def test_a_large_file_is_read_in_little_time() -> None:
    body = '[[step]]\nat = "1s"\nproduce = { to = "orders-0", values = ["a", "b"] }\n' * 1_000
    begin = time.perf_counter()
    assert len(read(body).steps) == 1_000
    many = "[[step]]\nproduce = { to = 'orders-0', values = [" + "'a'," * 200_000 + "] }\n"
    (found,) = problems(BASE + many)
    assert (found.text, found.hint) == ("a list of 200000", "allowed are 1 to 10000 values")
    nothing = "# " + "x" * (FILE_BYTES_MAX - 500)
    assert read(nothing) == read("")
    keys = "".join(f"k{at} = 1\n" for at in range(60_000))
    problems(HEAD + keys)
    assert time.perf_counter() - begin < 60


@pytest.mark.parametrize(
    ("text", "said", "line", "column", "hint"),
    [
        ("at = 250ms\n", "this is no TOML: Expected newline", 1, 6, 'texts stand in quotes: "250ms"'),
        ("kill = leader\n", "this is no TOML: Invalid value", 1, 8, 'texts stand in quotes: "leader"'),
        ("a = 1\na = 2\n", "it is there twice", 2, 1, "a key or table stands once"),
        ("[step]\n[step]\n", "it is there twice", 2, 1, "a key or table stands once"),
        ("[[step]]\n[step]\n", "it is there twice", 2, 1, "a key or table stands once"),
        ("a = { b = 1,\n c = 2 }\n", "this is no TOML", 1, 13, "a table in { } stands on one line"),
        ("a = { b = 1, }\n", "this is no TOML", 1, 14, ""),
        ('a = "x\n', "this is no TOML", 1, 7, ""),
        ("a = \n", "this is no TOML", 1, 5, ""),
        ("a\n", "this is no TOML", 1, 2, ""),
        ("a = [1,\n2", "this is no TOML", 2, 2, ""),
        ("= 1", "this is no TOML", 1, 1, ""),
    ],
)  # fmt: skip
def test_what_is_no_toml(text: str, said: str, line: int, column: int, hint: str) -> None:
    (found,) = problems(text)
    assert said in found.text
    assert (found.line, found.hint.startswith(hint)) == (line, True)
    if sys.version_info[:2] == (3, 11):
        assert found.column == column


def test_text_that_comes_from_no_file() -> None:
    (found,) = problems("x" * (FILE_BYTES_MAX + 1))
    assert "is larger than" in found.text
    (found,) = problems("title = '\udc80'")[:1]
    assert found.text


def test_as_many_variants_as_can_be_tried() -> None:
    def text(variants: int, steps: int) -> str:
        head = HEAD + "".join(f'[[variant]]\nname = "v{at}"\n' for at in range(variants))
        return head + '[[step]]\nsettle = "1s"\n' * steps

    assert len(parse_scenario(text(20, 5)).variants) == 20
    (found,) = problems(text(200, 60))
    assert found.text == "there are 200 of them, for 260 tables"
    assert found.hint == "allowed are 192 for so many"
