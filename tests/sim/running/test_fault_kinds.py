"""What each kind of fault does to a cluster, from a scenario file: its effect, and none without it.

A case is a scenario with one fault ``f`` from 2 s to 4 s, and a question to its run. The answer is
yes with the fault and no without; and whatever names the fault goes back to its beginning.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Final

import pytest
from attrs import field, frozen

from sim.running.interpreter import BOOT_US
from sim.running.scenario_run import Result
from sim.scenario.fault_kinds import FAULT_KINDS
from sim.trace.kinds import Kind
from sim.trace.lines import Event
from sim.world import World
from tests.sim.running.scenarios import (
    SECOND_US,
    TOPIC,
    done_at,
    failed,
    fault,
    of_kind,
    passed,
    ran,
)

WRITES = (
    '[[workload]]\nname = "w"\nkind = "producer"\ntopic = "orders-0"\nrate = 10\n'
    'acks = "1"\nstart = "1s"\nstop = "6s"\n'
)
FEW = 'at = "1s"; produce = { to = "orders-0", count = 5, acks = "all" }'
FLUSH = 'at = "3s"; flush = "b3"'
DATAGRAM = 'network = "datagram"'
RESTART = ('at = "2.5s"; crash = { node = "b3" }', 'at = "3s"; start = "b3"')
POWER = 'at = "3.5s"; crash = { node = "b3", how = "power" }'


@frozen(kw_only=True)
class Run:
    """A run and its world."""

    result: Result
    world: World

    def of(self, kind: Kind, node: str | None = None, **args: object) -> list[Event]:
        return of_kind(self.result, kind, node, **args)

    def times(self, kind: Kind, node: str | None = None, **args: object) -> list[float]:
        return [each.t_us / SECOND_US for each in self.of(kind, node, **args)]


@frozen
class Case:
    """A fault's keys, the question, and what else the scenario has."""

    words: str
    shows: Callable[[Run], bool]
    steps: tuple[str, ...] = ()
    more: str = WRITES
    cluster: str = ""
    until: str = field(default="10s", kw_only=True)
    window: str = field(default='start = "2s"; end = "4s"', kw_only=True)


READS_S = 0.105
# Questions ---------------------------------------------------------------------------------------


def is_quiet(node: str, first: float = 2.3, last: float = 4.0) -> Callable[[Run], bool]:
    """A replica gets nothing for a while."""

    def shows(run: Run) -> bool:
        return not [at for at in run.times(Kind.REPLICATE, node) if first <= at < last]

    return shows


def is_late(at_least_s: float) -> Callable[[Run], bool]:
    """An acknowledgement takes so long."""

    def shows(run: Run) -> bool:
        sent, acked = run.times(Kind.PRODUCE, "w"), run.times(Kind.ACK, "w")
        waits = [after - before for before, after in zip(sent, acked, strict=False)]
        return len(acked) < len(sent) or max(waits) >= at_least_s

    return shows


def fails(node: str) -> Callable[[Run], bool]:
    """A broker gives up its disk."""
    return lambda run: bool(run.of(Kind.ERROR, node, note="halt"))


def loses(run: Run) -> bool:
    """A power loss takes bytes of a log that were synced."""
    return any(each.args["file"].endswith(".log") for each in run.of(Kind.LOST, "b3"))


def is_quarantined(run: Run) -> bool:
    """A log does not open."""
    return bool(run.of(Kind.RECOVER, "b3", role="quarantined"))


def reads_long(run: Run) -> bool:
    """A process needs more calls of the disk until it can register; each takes 5 ms."""
    (start,) = [at for at in run.times(Kind.START, "b3") if at >= 3.0]
    sent = [at for at in run.times(Kind.SEND, "b3") if at >= start]
    return sent[0] - start > READS_S


def is_off(run: Run) -> bool:
    """The wall clock of b1 is off at the end."""
    clocks = [run.world.host(name).clock for name in ("b1", "b2")]
    ours, others = (each.now(run.result.end_us + BOOT_US) for each in clocks)
    return ours.wall_us != others.wall_us or ours.mono_us != others.mono_us


def is_doubled(run: Run) -> bool:
    arrived = [
        (each.node, each.args["from"], each.args["type"], each.args["id"])
        for each in run.of(Kind.DELIVER)
    ]
    return len(arrived) != len(set(arrived))


def is_overtaken(run: Run) -> bool:
    """Messages of a link arrive in another order than they were sent in."""
    sent: dict[tuple[str, str], list[tuple[str, int]]] = {}
    arrived: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for each in run.of(Kind.SEND):
        what = each.args["type"], each.args["id"]
        sent.setdefault((each.node, each.args["to"]), []).append(what)
    for each in run.of(Kind.DELIVER):
        what = each.args["type"], each.args["id"]
        arrived.setdefault((each.args["from"], each.node), []).append(what)
    for link, found in arrived.items():
        places = [sent[link].index(what) for what in found if what in sent.get(link, [])]
        if places != sorted(places):
            return True
    return False


def swizzles(run: Run) -> bool:
    """Two brokers are silent one behind the other, and speak again in the other order."""
    turns = [
        (each.args["rule"].removeprefix("f/"), each.args["is_on"], each.t_us / SECOND_US)
        for each in run.of(Kind.NOTE, "world", note="turn")
    ]
    if len(turns) != 4:
        return False
    (one, *_), (other, *_), (first, *_), (last, *_) = turns
    held = {each.args["from"] for each in run.of(Kind.HOLD)}
    held |= {each.args["to"] for each in run.of(Kind.HOLD)}
    assert [at for _, _, at in turns] == [2.0, 2.4, 2.8, 3.2]
    assert [on for _, on, _ in turns] == [True, True, False, False]
    return (first, last) == (other, one) and one != other and {one, other} <= held


def flaps(run: Run) -> bool:
    """b2 hears nothing in the first half of each second of the window, and something in both
    others.
    """
    times = run.times(Kind.REPLICATE, "b2")

    def has(first: float, last: float) -> bool:
        return any(first <= at < last for at in times)

    cut = has(2.2, 2.5) or has(3.1, 3.5)
    return not cut and has(2.5, 3.0) and has(3.5, 4.0)


def metadata_of(run: Run, node: str, until: float = 4.0) -> int:
    """The metadata offset that a broker knew behind a time."""
    ends = [e.args["end_offset"] for e in run.of(Kind.METADATA, node) if e.t_us < until * SECOND_US]
    return int(ends[-1])


def seen_versions(run: Run, node: str) -> list[int]:
    """The metadata offsets that a broker came to know from the beginning of the fault on."""
    return [e.args["end_offset"] for e in run.of(Kind.METADATA, node) if e.t_us >= 2 * SECOND_US]


def log_of(run: Run, node: str) -> bytes:
    """What a process would see of the partition's first segment."""
    disk = run.world.host(node).require_disk().files
    number = disk.names.find(("orders-0", "00000000000000000000.log"))
    assert number is not None
    return disk.content_of(number)


def is_behind(run: Run) -> bool:
    return metadata_of(run, "b3") < metadata_of(run, "b2")


def timers_are_late(run: Run) -> bool:
    times = run.times(Kind.TIMER, "b1", key="heartbeat")
    return any(later - sooner > 2.02 for sooner, later in pairwise(times))


def work_waits(run: Run) -> bool:
    works = [at for at in run.times(Kind.BACKGROUND, "b1") if at >= 2.0]
    return bool(works) and min(works) >= 4.0


def is_strobed(run: Run) -> bool:
    """The leader takes b2, which has only just fallen behind, for one that is so for long."""
    proposed = run.of(Kind.ISR_PROPOSED, "b1")
    return any("b2" not in each.args["isr"] for each in proposed)


# Cases -------------------------------------------------------------------------------------------

LINK = 'target = { from = "b1", to = "b2", both = true }'
LAGGING = 'at = "1.5s"; cut = { from = "b1", to = "b2", only = ["Fetch"], both = true }'
CHANGE = (
    'at = "2.5s"; config = { topic = "orders", set = { "retention.ms" = 100000 } }',
    'at = "3s"; config = { topic = "orders", set = { "retention.ms" = 200000 } }',
)
CASES: Final[dict[str, Case]] = {
    "cut": Case(LINK, is_quiet("b2")),
    "partition": Case('target = [["b1"], ["b2", "b3"]]', is_quiet("b2")),
    "clog": Case('target = { from = "b1", to = "b2" }', is_quiet("b2")),
    "loss": Case('target = "b1"; ppm = 400000', is_late(0.15)),
    "reset": Case(
        'target = { from = "w", to = "b1" }; moment = "after"; only = ["Produce"]',
        lambda run: len(run.of(Kind.APPEND, "b1")) > 50,
    ),
    "refuse": Case(
        'target = { from = "late", to = "b1" }; hangs = "500ms"',
        lambda run: done_at(run.result, "p") >= 3.0,
        ('id = "p"; at = "2.5s"; produce = { to = "orders-0", count = 1, client = "late" }',),
    ),
    "limit": Case('target = "b1"; bytes_per_s = 2000; buffer_bytes = 400', is_late(0.1)),
    "corrupt": Case(
        'target = { from = "w", to = "b1" }; only = ["Produce"]; bits = 3',
        lambda run: len(run.of(Kind.SEND, "w", type="ProduceRequest")) > 50,
    ),
    "duplicate": Case('target = "b1"; ppm = 500000', is_doubled, cluster=DATAGRAM),
    "reorder": Case('target = "b1"; ppm = 500000; up_to = "900ms"', is_overtaken, cluster=DATAGRAM),
    "flap": Case(f'{LINK}; period = "1s"; in_flight = "hold"', flaps),
    "swizzle": Case('target = "all"; period = "400ms"', swizzles),
    "metadata-lag": Case('target = "b3"; records = 1', is_behind, CHANGE),
    "crash": Case('target = "b3"', lambda run: run.times(Kind.CRASH, "b3") == [2.0]),
    "crash-loop": Case(
        'target = "b3"; calls = [2, 5]; restart_after = "500ms"',
        lambda run: len(run.of(Kind.CRASH, "b3")) == 3,
    ),
    "failpoint": Case(
        'target = "b3"; point = "fetch-received"; action = "process"',
        lambda run: len(run.of(Kind.CRASH, "b3")) == 1,
    ),
    "pause": Case('target = "b3"', is_quiet("b3")),
    "slow": Case('target = "b1"; cpu = 10000', is_late(0.05)),
    "background-hold": Case(
        'target = "b1"',
        work_waits,
        (
            'at = "2.5s"; create_topic = { name = "more", replicas = [["b1"]] }',
            'at = "3s"; delete_topic = "more"',
        ),
        "",
    ),
    "clock-step": Case('target = "b1"; by = "1h"', is_off),
    "clock-drift": Case('target = "b1"; mono_ppm = 500000', is_off),
    "clock-freeze": Case('target = "b1"; also_mono = true', is_off),
    "clock-strobe": Case('target = "b1"; by = "1m"; period = "300ms"', is_strobed, (LAGGING,)),
    "timer-jitter": Case(
        'target = "b1"; ppm = 100000',
        timers_are_late,
        until="20s",
        window='start = "2s"; end = "18s"',
    ),
    "stall": Case('target = "b1"; duration = "1s"', is_late(0.5)),
    "fill": Case('target = "b3"; free = 10', fails("b3")),
    "fsync-fail": Case('target = "b3"; path = ".log"', fails("b3"), (FLUSH,)),
    "fsync-lie": Case('target = "b3"; times = 9', loses, (FEW, FLUSH, POWER), ""),
    "fsync-read-only": Case('target = "b3"', fails("b3"), (FLUSH,)),
    "enospc": Case('target = "b3"; path = ".log"', fails("b3")),
    "eio": Case('target = "b3"; path = ".log"; call = "write_at"', fails("b3")),
    "split-write": Case(
        'target = "b3"; path = ".log"; partial_bytes = 5',
        lambda run: any(each.args["size"] == 5 for each in run.of(Kind.WRITE, "b3")),
    ),
    "lost-write": Case(
        'target = "b3"; path = ".log"; times = 9',
        loses,
        (FEW.replace("1s", "2.1s"), FLUSH, POWER),
        "",
    ),
    "misdirected-write": Case(
        'target = "b3"; path = ".log"; shift_bytes = 64',
        lambda run: any(each.args.get("cut_bytes") for each in run.of(Kind.RECOVER, "b3")),
        ('at = "5s"; crash = { node = "b3" }', 'at = "7s"; start = "b3"'),
        until="20s",
    ),
    "short-read": Case(
        'target = "b3"; times = 3', reads_long, RESTART, cluster='disk = { call = "5ms" }'
    ),
    "write-back-fail": Case(
        'target = "b3"; path = ".log"',
        fails("b3"),
        (FLUSH,),
        cluster='writeback = ["200ms", "200ms"]',
    ),
    "read-only": Case('target = "b3"', fails("b3")),
    "disk-gone": Case('target = "b3"', fails("b3")),
    "bad-sector": Case(
        'target = "b1"; partition = "orders-0"; offset = 2',
        fails("b1"),
        (
            FEW,
            'at = "1.5s"; flush = "b1"',
            'at = "3s"; consume = { from = "orders-0", count = 1 }',
        ),
        "",
    ),
    "bit-rot": Case(
        'target = "b3"; partition = "orders-0"; offset = 2',
        is_quarantined,
        (
            FEW,
            'at = "1.5s"; flush = "b3"',
            'at = "2.5s"; crash = { node = "b3" }',
            'at = "5s"; start = "b3"',
        ),
        "",
        until="20s",
    ),
}


def run_of(kind: str, *, has_fault: bool = True) -> Run:
    return run_case(kind, CASES[kind], has_fault=has_fault)


def run_case(kind: str, case: Case, *, has_fault: bool = True) -> Run:
    more = case.more
    if has_fault:
        more += fault(f'id = "f"; kind = "{kind}"; {case.words}; {case.window}')
    worlds: list[World] = []
    parts = {"cluster": case.cluster, "topic": TOPIC, "more": more, "until": case.until}
    result = ran(*case.steps, on_world=worlds.append, **parts)
    return Run(result=result, world=worlds[0])


def test_every_kind_has_a_case() -> None:
    assert sorted(CASES) == sorted(FAULT_KINDS)


@pytest.mark.parametrize("kind", CASES)
def test_a_kind_has_its_effect_and_without_it_there_is_none(kind: str) -> None:
    with_it = run_of(kind)
    assert CASES[kind].shows(with_it)
    assert not CASES[kind].shows(run_of(kind, has_fault=False))
    require_causes(with_it.result)


def require_causes(result: Result) -> None:
    """Every event that names the fault goes back to its beginning."""
    (begin,) = [each for each in of_kind(result, Kind.FAULT) if each.args["id"] == "f"]
    behind = {begin.n}
    for each in result.trace.events():
        if behind.intersection(each.cause):
            behind.add(each.n)
    named = [
        each
        for each in result.trace.events()
        if str(each.args.get("fault", "")).partition("/")[0] == "f"
    ]
    assert [each for each in named if each.n not in behind] == []


# Ways of a kind ----------------------------------------------------------------------------------

BETWEEN = 'at = "2.5s"; produce = { to = "orders-0", count = 2, acks = "all", client = "p2" }'
WAYS: Final[dict[str, tuple[str, Case]]] = {
    "a skipped version of the metadata": (
        "metadata-lag",
        Case(
            'target = "b3"; skip = true',
            lambda run: seen_versions(run, "b2") == [9, 10] and seen_versions(run, "b3") == [10],
            CHANGE,
        ),
    ),
    "old metadata of a client": (
        "metadata-lag",
        Case(
            'target = "w"; records = 50',
            lambda run: not [at for at in run.times(Kind.ACK, "w") if 2.6 <= at < 4.0],
            ('at = "2.5s"; elect = { partition = "orders-0", kind = "unclean", to = "b2" }',),
        ),
    ),
    "a response that never comes, and a requester that does not hear why": (
        "reset",
        Case(
            'target = { from = "w", to = "b1" }; moment = "after"; only = ["Produce"]; '
            'half_open = "w"',
            lambda run: (
                run.times(Kind.DISCONNECT, "b1")[:1] < [2.05]
                and run.times(Kind.DISCONNECT, "w")[:1] >= [2.1]
            ),
        ),
    ),
    "a request that is lost with its connection": (
        "reset",
        Case(
            'target = { from = "w", to = "b1" }; only = ["Produce"]; times = 3',
            lambda run: len(run.of(Kind.DISCONNECT, "w")) == 3,
        ),
    ),
    "a connection that is refused at once": (
        "refuse",
        Case(
            'target = { from = "late", to = "b1" }',
            lambda run: done_at(run.result, "p") >= 4.0,
            ('id = "p"; at = "2.5s"; produce = { to = "orders-0", count = 1, client = "late" }',),
        ),
    ),
    "a failed sync that takes the new bytes back": (
        "fsync-fail",
        Case(
            'target = "b3"; path = ".log"; content = "revert"',
            lambda run: not any(log_of(run, "b3")),
            (FEW, FLUSH),
            "",
        ),
    ),
    "a failed sync of which the next one tells": (
        "fsync-fail",
        Case(
            'target = "b3"; path = ".log"; report = "next"',
            lambda run: run.times(Kind.ERROR, "b3", note="halt") == [3.5],
            (FEW, FLUSH, BETWEEN.replace("2.5s", "3.2s"), 'at = "3.5s"; flush = "b3"'),
            "",
        ),
    ),
    "a failed write-back that takes the new bytes back": (
        "write-back-fail",
        Case(
            'target = "b3"; path = ".log"; content = "revert"',
            lambda run: not any(log_of(run, "b3")),
            (FEW.replace("1s", "2.1s"),),
            "",
            'writeback = ["200ms", "200ms"]',
        ),
    ),
    "blocks that are missing at the sync": (
        "enospc",
        Case('target = "b3"; path = ".log"; late = true', fails("b3"), (FEW, FLUSH), ""),
    ),
    "a write that is stored in part": (
        "enospc",
        Case(
            'target = "b3"; path = ".log"; partial_bytes = 7',
            lambda run: any(each.args["size"] == 7 for each in run.of(Kind.WRITE, "b3")),
        ),
    ),
    "a rename that fails": (
        "eio",
        Case(
            'target = "b3"; call = "rename"',
            fails("b3"),
            (FEW, FLUSH),
            "",
        ),
    ),
    "a sync of a directory that fails": (
        "eio",
        Case('target = "b3"; call = "fsync_dir"', fails("b3"), (FEW, FLUSH), ""),
    ),
    "a read that fails": (
        "eio",
        Case(
            'target = "b1"; call = "read_at"; path = ".log"',
            fails("b1"),
            (FEW, 'at = "3s"; consume = { from = "orders-0", count = 1 }'),
            "",
        ),
    ),
    "a slow disk": (
        "slow",
        Case(
            'target = "b1"; disk = "200ms"',
            is_late(0.15),
        ),
    ),
    "a slow link": ("slow", Case('target = "b1"; link = "200ms"', is_late(0.3))),
    "a power loss with an image": (
        "crash",
        Case('target = "b3"; how = "power"', lambda run: bool(run.of(Kind.LOST, "b3"))),
    ),
    "a disk whose read-only file system is writable again": (
        "read-only",
        Case(
            'target = "b3"',
            lambda run: fails("b3")(run) and run.times(Kind.REGISTER, "b3")[-1] > 5.0,
            more=WRITES
            + fault('id = "g"; kind = "crash"; target = "b3"; start = "5s"; end = "6s"'),
            until="20s",
        ),
    ),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_way_of_a_kind_has_its_effect_and_without_it_there_is_none(way: str) -> None:
    kind, case = WAYS[way]
    with_it = run_case(kind, case)
    assert case.shows(with_it)
    assert not case.shows(run_case(kind, case, has_fault=False))
    require_causes(with_it.result)


def test_a_broker_that_gave_up_its_disk_can_be_started_by_a_step() -> None:
    words = 'id = "f"; kind = "disk-gone"; target = "b3"; start = "2s"; end = "4s"'
    result = passed('at = "5s"; start = "b3"', more=WRITES + fault(words), until="20s")
    assert of_kind(result, Kind.REGISTER, "b3")[-1].t_us > 5 * SECOND_US


# What cannot strike ------------------------------------------------------------------------------

ROT = 'target = "b3"; partition = "orders-0"'
NOWHERE = [
    ("bit-rot", ROT, "nothing of orders-0 is at rest on b3 there (00000000000000000000.log 0..0)"),
    ("bit-rot", f"{ROT}; offset = 3", "b3 has no record at offset 3 of orders-0"),
    ("bit-rot", f'{ROT}; file = "x.log"', "b3 has no file /orders-0/x.log"),
    (
        "bad-sector",
        f'{ROT}; file = "00000000000000000000.log"; byte = 5',
        "/orders-0/00000000000000000000.log of b3 has 0 bytes, byte is 5",
    ),
]


@pytest.mark.parametrize(("kind", "words", "text"), NOWHERE)
def test_a_fault_that_finds_nothing_to_strike_ends_the_run(
    kind: str, words: str, text: str
) -> None:
    found = failed(more=fault(f'id = "f"; kind = "{kind}"; {words}; start = "2s"'))
    assert found.startswith(f"fault 'f': {text}")


def test_a_client_that_is_not_there_yet_cannot_lag() -> None:
    words = 'id = "f"; kind = "metadata-lag"; target = "w"; skip = true; start = "500ms"'
    assert failed(more=WRITES + fault(words)) == (
        "fault 'f': there is no w yet, whom it could strike"
    )


def test_what_has_not_been_written_back_cannot_rot() -> None:
    more = fault(f'id = "f"; kind = "bit-rot"; {ROT}; offset = 2; start = "2s"')
    reason = failed(FEW, more=more)
    assert reason.endswith("has not been written back; a step flush does that")
    passed(FEW, 'at = "1.5s"; flush = "b3"', more=more)


def test_what_rots_is_drawn_by_the_faults_id_within_the_batch_it_names() -> None:
    places: dict[str, set[tuple[int, int]]] = {}
    for names in ("fghij", "ghij"):
        words = f'kind = "bit-rot"; {ROT}; offset = 2; start = "2s"; bits = 2'
        more = "".join(fault(f'id = "{name}"; {words}') for name in names)
        result = passed(FEW, 'at = "1.5s"; flush = "b3"', more=more)
        for each in of_kind(result, Kind.CORRUPT):
            assert each.args["bits"] == 2
            assert 172 <= each.args["position"] < 258
            (begun,) = [
                e for e in of_kind(result, Kind.FAULT) if e.args["id"] == each.args["fault"]
            ]
            place = each.args["position"], begun.args["args"]["mask"]
            places.setdefault(each.args["fault"], set()).add(place)
    assert sorted(places) == list("fghij")
    assert all(len(found) == 1 for found in places.values())
    assert len(set.union(*places.values())) == 5
