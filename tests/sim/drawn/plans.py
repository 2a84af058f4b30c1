"""What strikes a drawn world: faults and steps of people, in two envelopes (FAULTS C.0).

``recoverable`` keeps to what a correct cluster survives without losing what is committed. Each
world has one of four grounds for that:

* ``kills``: processes die and nothing that they have written is lost;
* ``flush``: every replica syncs before it answers, so power may go anywhere;
* ``elr``: with eligible leader replicas, so few brokers may lose their memory or their disk, that
  fewer unclean shutdowns come together than ``min.insync.replicas``;
* ``calm``: nobody dies; links, clocks and time trouble everybody.

``unrestricted`` takes any fault, any number of times.

Left out: topics, clients and configuration (``worlds``).
"""

from __future__ import annotations

import random
from typing import Any

from attrs import define, field

__all__ = ["Plan", "fill_plan"]

IMAGES = ("lost", "kept", "drawn", "file-prefix", "disk-prefix", "sector-subset", "torn", "garbage")
SOUND_IMAGES = ("lost", "kept", "file-prefix", "disk-prefix", "sector-subset")
"""Those in which what was synced cannot share the fate of a sector that is written anew."""
ONLY: tuple[list[str], ...] = (
    [],
    [],
    ["Fetch"],
    ["FetchResponse"],
    ["FetchRequest"],
    ["BrokerHeartbeat"],
    ["AlterPartition"],
    ["MetadataFetchResponse"],
    ["Produce"],
    ["ProduceResponse"],
)
IN_FLIGHT = ("drop", "hold", "deliver")
POINTS = (
    "produce-appended",
    "fetch-read",
    "fetch-received",
    "hw-advanced",
    "isr-change-sent",
    "metadata-applied",
    "registered",
)
CALLS = (
    "disk:write_at:.log",
    "disk:complete_fsync:",
    "disk:begin_fsync:",
    "disk:rename:",
    "disk:truncate:",
    "disk:fsync_dir:",
)
LINK_KINDS = "cut cut partition clog slow loss reset refuse limit flap swizzle lag".split()
TIME_KINDS = (
    "pause cpu jitter drift clock-step strobe freeze slow-disk stall hold split-write short-read"
).split()
DISK_KINDS = (
    "fsync-lie fsync-fail fsync-read-only enospc eio fill lost-write misdirected-write bit-rot "
    "bad-sector read-only disk-gone write-back-fail corrupt-step"
).split()
END_KINDS = "crash crash power power wiped image another loop failpoint shutdown".split()
PEOPLE = "elect unclean force reassign cancel min-isr allow-unclean delete recreate node".split()


@define(eq=False)
class Plan:
    """A plan while it is drawn.

    Attributes:
        brokers: how many.
        ground: of ``recoverable``; empty for ``unrestricted``.
        victims: brokers that may lose their memory, their disk or parts of it.
        places: ``TOPIC-PARTITION`` and replicas.
        span_ms: faults begin in this time.
        busy: when each node's process is in the hands of a fault, in ms.
    """

    rng: random.Random
    brokers: int
    ground: str
    victims: list[str]
    places: dict[str, list[str]]
    span_ms: int
    clock_is_safe: bool = True
    writes_back: bool = True
    faults: list[dict[str, Any]] = field(factory=list)
    steps: list[dict[str, Any]] = field(factory=list)
    busy: dict[str, list[tuple[int, int]]] = field(factory=dict)
    fragile: set[str] = field(factory=set)
    recreated: set[str] = field(factory=set)

    @property
    def names(self) -> list[str]:
        return [f"b{number}" for number in range(1, self.brokers + 1)]

    @property
    def is_recoverable(self) -> bool:
        return bool(self.ground)

    def key(self, kind: str) -> str:
        return f"{kind}{len(self.faults) + len(self.steps)}"

    def window(self, longest_ms: int = 9_000) -> tuple[int, int]:
        start = self.rng.randint(1_500, self.span_ms)
        return start, start + self.rng.choice([20, 200, 1_500, 4_000, longest_ms])

    def node(self, *, of_victims: bool = False, with_controller: bool = False) -> str:
        names = self.victims if of_victims else self.names
        if with_controller and self.rng.random() < 0.2:
            return "c1"
        return self.rng.choice(names)

    def role(self) -> str:
        place = self.rng.choice(sorted(self.places))
        return self.rng.choice([f"leader:{place}", f"followers:{place}", f"isr:{place}"])

    def take(self, node: str, start: int, end: int) -> bool:
        """Whether nothing else handles this node's process in that time; then it is taken."""
        taken = self.busy.setdefault(node, [])
        if any(start < other_end and other < end for other, other_end in taken):
            return False
        taken.append((start, end))
        return True

    def fault(self, kind: str, target: Any, start: int, end: int | None, **keys: Any) -> str:
        name = self.key("f")
        times = {"start": f"{start}ms"} | ({} if end is None else {"end": f"{end}ms"})
        self.faults.append({"id": name, "kind": kind, "target": target, **times, **keys})
        return name

    def step(self, at_ms: int, **keys: Any) -> None:
        self.steps.append({"at": f"{at_ms}ms", **keys})


def fill_plan(plan: Plan, count: int) -> None:
    """Draw so many faults and steps; some kinds are off as a whole (swarm testing)."""
    rng = plan.rng
    on = [kinds for kinds in _allowed(plan) if kinds]
    kinds = [kind for group in on for kind in group if rng.random() < 0.5]
    kinds = kinds or list(on[0])
    for _ in range(count):
        _DRAW[_family(kind := rng.choice(kinds))](plan, kind)
    plan.steps.sort(key=lambda step: int(step["at"].removesuffix("ms")))


def _allowed(plan: Plan) -> list[list[str]]:
    if not plan.is_recoverable:
        return [LINK_KINDS, [*TIME_KINDS, "corrupt"], DISK_KINDS, END_KINDS, END_KINDS, PEOPLE]
    ends = {
        "kills": ["crash", "crash", "crash", "loop", "failpoint", "shutdown"],
        "flush": ["crash", "power", "power", "loop", "failpoint", "shutdown"],
        "elr": END_KINDS if plan.victims else [],
        "calm": ["shutdown"],
    }[plan.ground]
    people = ["elect", "delete", "reassign", "cancel", "recreate", "node"]
    disk = DISK_KINDS if plan.ground == "elr" and plan.victims else []
    clocks = ("drift", "clock-step", "strobe", "freeze")
    times = [each for each in TIME_KINDS if plan.clock_is_safe or each not in clocks]
    return [LINK_KINDS, times, ends, ends, disk, people]


def _family(kind: str) -> str:
    for name, kinds in (("link", LINK_KINDS), ("disk", DISK_KINDS), ("end", END_KINDS)):
        if kind in kinds:
            return name
    return "people" if kind in PEOPLE else "time"


# Links -------------------------------------------------------------------------------------------


def _link(plan: Plan, kind: str) -> None:
    rng = plan.rng
    start, end = plan.window()
    if kind == "partition":
        nodes = ["c1", *plan.names]
        rng.shuffle(nodes)
        at = rng.randint(1, len(nodes) - 1)
        plan.fault(kind, [nodes[:at], nodes[at:]], start, end, in_flight=rng.choice(IN_FLIGHT))
        return
    if kind == "swizzle" and plan.brokers > 1:
        plan.fault(kind, "all", start, end, period=f"{rng.choice([50, 400, 2_000])}ms")
        return
    if kind in ("lag", "swizzle"):
        records = {"skip": True} if rng.random() < 0.4 else {"records": rng.choice([1, 3, 12])}
        plan.fault("metadata-lag", plan.node(), start, end, **records)
        return
    target = _links(plan)
    if kind == "slow":
        link = rng.choice([5, 200, "30ms"])
        plan.fault(kind, plan.node(with_controller=True), start, end, link=link)
        return
    only = rng.choice(ONLY)
    keys: dict[str, Any] = {"only": only} if only and kind not in ("refuse", "limit") else {}
    if kind == "cut":
        keys["in_flight"] = rng.choice(IN_FLIGHT)
    elif kind == "loss":
        keys["ppm"] = rng.choice([20_000, 200_000, 500_000])
    elif kind == "reset":
        many = {"times": rng.choice([1, 3, 20])}
        keys |= many | {
            "moment": rng.choice(["before", "after"]),
            "ppm": rng.choice([100_000, 10**6]),
        }
    elif kind == "refuse":
        keys["hangs"] = rng.choice(["0ms", "800ms"])
    elif kind == "limit":
        keys |= {"bytes_per_s": rng.choice([2_000, 40_000]), "buffer_bytes": 16_384}
    elif kind == "flap":
        keys |= {"period": f"{rng.choice([60, 500, 3_000])}ms", "in_flight": rng.choice(IN_FLIGHT)}
    plan.fault(kind, target, start, end, **keys)


def _links(plan: Plan) -> Any:
    rng, node = plan.rng, plan.node(with_controller=True)
    if rng.random() < 0.25:
        return node if rng.random() < 0.5 else plan.role()
    others = [each for each in ["c1", *plan.names] if each != node]
    to = rng.choice(others) if rng.random() < 0.7 else others
    ends = (node, to) if rng.random() < 0.5 else (to, node)
    return {"from": ends[0], "to": ends[1], "both": rng.random() < 0.4}


# Time --------------------------------------------------------------------------------------------


def _time(plan: Plan, kind: str) -> None:
    rng = plan.rng
    start, end = plan.window()
    node = plan.node(with_controller=True)
    if kind == "corrupt":
        keys: dict[str, Any] = {
            "ppm": rng.choice([1_000, 100_000]),
            "times": 3,
            "bits": rng.choice([1, 3]),
        }
        plan.fault(
            kind, node, start, end, only=rng.choice([["Produce"], ["FetchResponse"]]), **keys
        )
    elif kind == "cpu":
        plan.fault("slow", node, start, end, cpu=rng.choice([20, 500]))
    elif kind == "slow-disk":
        plan.fault("slow", node, start, end, disk=rng.choice([50, "20ms"]))
    elif kind == "stall":
        plan.fault(kind, node, start, None, duration=f"{rng.choice([300, 2_500, 7_000])}ms")
    elif kind == "hold":
        plan.fault("background-hold", plan.node(), start, end)
    elif kind == "jitter":
        plan.fault("timer-jitter", node, start, end, ppm=100_000)
    elif kind == "drift":
        keys = {"wall_ppm": rng.choice([-50_000, 50_000]), "mono_ppm": rng.choice([0, 20_000])}
        plan.fault("clock-drift", node, start, end, **keys)
    elif kind == "clock-step":
        plan.fault(kind, node, start, None, by=f"{rng.choice([-40, -3, 1, 5, 60, 3_600])}s")
    elif kind == "strobe":
        plan.fault("clock-strobe", node, start, end, by="3s", period="150ms")
    elif kind == "freeze":
        plan.fault("clock-freeze", node, start, end, also_mono=rng.random() < 0.3)
    elif kind == "split-write":
        plan.fault(kind, node, start, end, partial_bytes=rng.choice([0, 30]), times=20)
    elif kind == "short-read":
        plan.fault(kind, node, start, end, partial_bytes=rng.choice([1, 30]), times=20)
    else:
        plan.fault("pause", node if rng.random() < 0.7 else plan.role(), start, end)


# Disks -------------------------------------------------------------------------------------------


def _disk(plan: Plan, kind: str) -> None:
    rng = plan.rng
    start, end = plan.window()
    node = plan.node(of_victims=True)
    path = rng.choice(["", "", ".log", ".index", "checkpoint", "boundaries"])
    keys: dict[str, Any] = {"path": path} if path else {}
    keys |= {"skip": rng.choice([0, 0, 2, 9])} | {"times": rng.choice([1, 1, 4])}
    plan.fragile.add(node)
    if kind in ("bit-rot", "bad-sector", "corrupt-step"):
        _at_rest(plan, kind, node)
    elif kind == "fill":
        plan.fault(kind, node, start, end, free=rng.choice([0, 200, 3_000]))
    elif kind in ("read-only", "disk-gone"):
        plan.fault(kind, node, start, end)
    elif kind == "enospc":
        more: dict[str, Any] = (
            {"late": True} if rng.random() < 0.4 else {"partial_bytes": rng.choice([0, 40])}
        )
        plan.fault(kind, node, start, end, **keys, **more)
    elif kind == "eio":
        call = rng.choice(["write_at", "read_at", "truncate", "rename", "fsync_dir"])
        plan.fault(kind, node, start, end, **keys, call=call)
    elif kind == "misdirected-write":
        plan.fault(kind, node, start, end, **keys, shift_bytes=rng.choice([-200, 60, 4_096]))
    elif kind == "fsync-fail":
        more = {"content": rng.choice(["keep", "revert"]), "report": rng.choice(["now", "next"])}
        plan.fault(kind, node, start, end, **keys, **more)
    elif kind == "write-back-fail" and plan.writes_back:
        plan.fault(kind, node, start, end, **keys, content=rng.choice(["keep", "revert"]))
    else:
        kind = "fsync-lie" if kind == "write-back-fail" else kind
        plan.fault(kind, node, start, end, **keys)


def _at_rest(plan: Plan, kind: str, node: str) -> None:
    """Bytes must be there and written back; a fault waits until they are."""
    rng = plan.rng
    place = rng.choice(
        [each for each, names in sorted(plan.places.items()) if node in names] or [""]
    )
    if not place:
        return
    least = rng.choice([2, 6, 15])
    calm = f"alive({node}) and leo('{place}', {node}) > {least}"
    ripe = {"when": f"{calm} and unflushed('{place}', {node}) == 0"}
    if kind == "corrupt-step":
        trigger = plan.key("f")
        mark = {"id": trigger, "kind": "timer-jitter", "target": node, "start": ripe, "ppm": 1}
        plan.faults.append(mark)
        how = rng.choice(["flip", "flip", "zero", "truncate"])
        corrupt = {"node": node, "partition": place, "offset": rng.randint(0, least), "how": how}
        plan.steps.append({"at": f"{plan.span_ms}ms", "after": trigger, "corrupt": corrupt})
        return
    keys = {"id": plan.key("f"), "kind": kind, "target": node, "start": ripe, "partition": place}
    if kind == "bad-sector" and rng.random() < 0.5:
        keys["end"] = f"{plan.span_ms + 4_000}ms"
    plan.faults.append(keys)
    if plan.is_recoverable and plan.take(node, plan.span_ms + 4_900, plan.span_ms + 5_500):
        # A leader that runs on does not read its own log, and nobody gets past the damage.
        plan.fault("crash", node, plan.span_ms + 5_000, plan.span_ms + 5_400, how="process")


# Processes ---------------------------------------------------------------------------------------


def _end(plan: Plan, kind: str) -> None:
    rng = plan.rng
    start, end = plan.window()
    victims = plan.ground in ("elr", "")
    node = plan.node(of_victims=victims)
    images = SOUND_IMAGES if plan.ground == "flush" else IMAGES
    power = {"how": "power", "image": rng.choice(images)}
    dies = power if rng.random() < 0.6 and plan.ground != "kills" else {"how": "process"}
    if kind == "power" and rng.random() < 0.15:
        node = "c1"
    if kind == "crash" and not victims and rng.random() < 0.2:
        node = "c1"
    if kind == "power" and victims and not plan.is_recoverable and rng.random() < 0.15:
        plan.fault("crash", rng.choice(["all", plan.role(), "majority"]), start, end, **power)
        return
    if not plan.take(node, start - 10, end + 10):
        return
    if kind in ("crash", "power"):
        plan.fault("crash", node, start, end, **(power if kind == "power" else {"how": "process"}))
    elif kind == "loop":
        calls = [rng.randint(1, 30) for _ in range(rng.randint(1, 3))]
        plan.fault("crash-loop", node, start, end, calls=calls, restart_after="300ms", **dies)
    elif kind == "failpoint":
        point = rng.choice([*POINTS, *CALLS])
        action = rng.choice(["process", dies["how"]] + ["pause", "yield"] * (point in POINTS))
        keys: dict[str, Any] = {"image": power["image"]} if action == "power" else {}
        keys |= {"duration": "1500ms"} if action in ("pause", "yield") else {}
        keys |= {"point": point, "hit": rng.choice([1, 3, 10]), "action": action}
        plan.fault(kind, node, start, end, **keys)
        # Whoever it has killed comes back.
        plan.fault("crash", node, end, end + 300, how="process")
        plan.fragile.add(node)
    elif kind == "shutdown":
        _shutdown(plan, node, start, end)
    else:
        _replaced(plan, kind, node, start, end)


def _shutdown(plan: Plan, node: str, start: int, end: int) -> None:
    if node in plan.fragile:
        plan.fault("crash", node, start, end, how="process")
        return
    plan.step(start, shutdown=node)
    plan.fault("crash", node, max(end, start + 4_000), max(end, start + 4_000) + 1, how="process")


def _replaced(plan: Plan, kind: str, node: str, start: int, end: int) -> None:
    rng = plan.rng
    plan.fault("crash", node, start, None, how=rng.choice(["process", "power"]))
    others = [each for each in plan.names if each != node]
    disk = "wiped"
    if kind == "another" and others:
        disk = f"of:{rng.choice(others)}"
    elif kind == "image":
        mark = plan.key("mark")
        plan.step(rng.randint(200, start), id=mark, wait="True == True")
        disk = f"image:{mark}"
    plan.step(end, start={"node": node, "disk": disk})


# People ------------------------------------------------------------------------------------------


def _people(plan: Plan, kind: str) -> None:
    rng = plan.rng
    at, _ = plan.window()
    place = rng.choice(sorted(plan.places))
    topic = place.rsplit("-", 1)[0]
    replicas = plan.places[place]
    if topic in plan.recreated:
        return
    if kind == "elect":
        plan.step(at, elect={"partition": place})
    elif kind == "unclean":
        to = {"to": rng.choice(replicas)} if rng.random() < 0.5 else {}
        plan.step(at, elect={"partition": place, "kind": "unclean", **to})
    elif kind == "force":
        plan.step(at, elect={"partition": place, "kind": "unclean", "force": True})
    elif kind == "cancel":
        plan.step(at, reassign={"partition": place, "cancel": True})
    elif kind == "reassign":
        size = len(replicas) if plan.is_recoverable else rng.randint(1, plan.brokers)
        plan.step(at, reassign={"partition": place, "replicas": rng.sample(plan.names, size)})
    elif kind == "min-isr":
        value = {"min.insync.replicas": rng.randint(1, max(1, len(replicas)))}
        plan.step(at, config={"topic": topic, "set": value})
    elif kind == "allow-unclean":
        value = {"unclean.leader.election.enable": rng.random() < 0.7}
        plan.step(at, config={"topic": topic, "set": value})
    elif kind == "delete":
        before = rng.choice([-1, 3, 12])
        plan.step(at, delete_records={"partition": place, "before": before})
    elif kind == "node":
        plan.step(at, config={"node": plan.node(), "set": {"replica.lag.time.max.ms": 6_000}})
    else:
        _recreate(plan, topic, at)


def _recreate(plan: Plan, topic: str, at: int) -> None:
    plan.recreated.add(topic)
    mine = {each: names for each, names in plan.places.items() if each.rsplit("-", 1)[0] == topic}
    # Steps that were drawn for it before would find nothing for a moment.
    plan.steps = [step for step in plan.steps if topic not in str(step)]
    plan.step(at, delete_topic=topic)
    lists = [mine[each] for each in sorted(mine)]
    plan.step(at + 1_500, create_topic={"name": topic, "replicas": lists})


_DRAW = {"link": _link, "time": _time, "disk": _disk, "end": _end, "people": _people}
