"""Drawn faults of disks, and disks that are wiped, put back or swapped.

Left out: slow disks (``sim.swarm.nodes``).
"""

from __future__ import annotations

from typing import Any, Final

from sim.swarm.choosing import Choices
from sim.swarm.nodes import dying
from sim.swarm.plan import Kind, Plan

__all__ = ["DISK_KINDS"]

_PATHS: Final = ("", "", ".log", ".index", "checkpoint", "boundaries")
_CALLS: Final = ("write_at", "read_at", "truncate", "rename", "fsync_dir")
_SPOIL: Final = ("lost-write", "misdirected-write")
"""They spoil what is at rest. A leader that runs on does not read its own log, and nobody gets past
the damage. In recoverable cases the broker is restarted behind all faults; in others it is up to
chance, so that damage is also left where nobody but its readers can notice it."""
_NOTICED_MS: Final = 50
_FLUSH_MS: Final = 80
"""So long before damage to what is at rest everything is synced, mostly."""


def _struck(plan: Plan, choices: Choices) -> tuple[str, tuple[int, int]]:
    """A broker whose disk may fail, and when."""
    node, (start_ms, end_ms) = plan.victim(choices), plan.window(choices)
    plan.fragile.add(node)
    return node, (start_ms, min(end_ms, plan.span_ms))


def _calls(choices: Choices) -> dict[str, Any]:
    """Which calls of a disk."""
    path = choices.pick(_PATHS)
    keys: dict[str, Any] = {"path": path} if path else {}
    return keys | {"skip": choices.pick((0, 0, 2, 9)), "times": choices.pick((1, 1, 4))}


def _of_calls(kind: str, **values: tuple[Any, ...]) -> Kind:
    """A kind that strikes calls, with one of each of these values more."""

    def draw(plan: Plan, choices: Choices) -> None:
        keys = _calls(choices)
        for key, several in values.items():
            keys[key] = choices.pick(several)
        node, window = _struck(plan, choices)
        plan.fault(kind, node, window, **keys)
        if kind == "fsync-read-only":
            # It stays so up to a power cut.
            plan.repair(node, "power")
        elif kind in _SPOIL:
            plan.repair(node, "process", is_for_all=choices.chance(50))
        elif keys.get("content") == "revert":
            # What is gone is told by the next sync, which may never come.
            plan.repair(node, "process")

    return _loses(kind, draw)


def _loses(kind: str, draw: Any, **more: Any) -> Kind:
    """A kind by which a broker may lose what it has."""
    return Kind(kind, draw, ("elr",), **({"needs": lambda plan: bool(plan.victims)} | more))


def _enospc(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = choices.pick(({}, {"partial_bytes": 40}, {"late": True}))
    node, window = _struck(plan, choices)
    plan.fault("enospc", node, window, **_calls(choices), **keys)


def _write_back_fail(plan: Plan, choices: Choices) -> None:
    content = choices.pick(("keep", "revert"))
    node, window = _struck(plan, choices)
    plan.fault("write-back-fail", node, window, **_calls(choices), content=content)
    if content == "revert":
        plan.repair(node, "process")


def _fill(plan: Plan, choices: Choices) -> None:
    plan.fault("fill", *_struck(plan, choices), free=choices.pick((3_000, 200, 0)))


def _whole_disk(kind: str) -> Kind:
    def draw(plan: Plan, choices: Choices) -> None:
        plan.fault(kind, *_struck(plan, choices))

    return _loses(kind, draw)


def _split(kind: str) -> Kind:
    """Calls that take two: nothing is lost by that."""

    def draw(plan: Plan, choices: Choices) -> None:
        node, window = plan.server(choices), plan.window(choices)
        plan.fault(kind, node, window, partial_bytes=choices.pick((1, 30)), times=20)

    return Kind(kind, draw)


def _stall(plan: Plan, choices: Choices) -> None:
    node, start_ms = plan.server(choices), plan.moment(choices)
    duration = choices.pick(("100ms", "500ms", "2500ms"))
    plan.fault("stall", node, (start_ms, None), duration=duration)


# Bytes at rest -----------------------------------------------------------------------------------


def _at_rest(plan: Plan, choices: Choices) -> tuple[str, str, int]:
    """A victim, a partition that it has, and when; what it has is synced before, mostly."""
    node, (at_ms, _) = _struck(plan, choices)
    mine = [place for place, names in sorted(plan.places.items()) if node in names]
    at_ms = max(at_ms, plan.span_ms // 3)
    if choices.chance(80):
        plan.step(at_ms - _FLUSH_MS, "flush", node)
    plan.repair(node, "process", is_for_all=choices.chance(50))  # As behind _SPOIL.
    back_ms = at_ms + choices.pick((300, 900))
    if not plan.is_recoverable and choices.chance(60) and plan.take(node, at_ms, back_ms):
        # Who runs on does not notice.
        plan.fault("crash", node, (at_ms + _NOTICED_MS, back_ms), how="process")
        plan.end_ms = max(plan.end_ms, back_ms)
    return node, choices.pick(mine) if mine else "", at_ms


def _bit_rot(plan: Plan, choices: Choices) -> None:
    node, place, at_ms = _at_rest(plan, choices)
    if place:
        plan.fault("bit-rot", node, (at_ms, None), partition=place)


def _bad_sector(plan: Plan, choices: Choices) -> None:
    node, place, at_ms = _at_rest(plan, choices)
    end_ms = choices.pick((None, plan.span_ms + 100))
    if place:
        plan.fault("bad-sector", node, (at_ms, end_ms), partition=place)


def _corrupt_step(plan: Plan, choices: Choices) -> None:
    node, place, at_ms = _at_rest(plan, choices)
    how, offset = choices.pick(("flip", "zero", "truncate")), choices.pick((0, 1, 3, 8))
    if place:
        damage = {"node": node, "partition": place, "offset": offset, "how": how}
        plan.step(at_ms, "corrupt", damage)


def _fill_step(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = _struck(plan, choices)
    known_as = plan.step(start_ms, "fill", {"node": node, "free": choices.pick((3_000, 200, 0))})
    plan.step(end_ms, "heal", known_as)


# Other disks -------------------------------------------------------------------------------------


def _replaced(plan: Plan, choices: Choices) -> None:
    """A broker goes down and comes back on another disk."""
    node, (start_ms, end_ms) = dying(plan, choices), plan.window(choices)
    disk = choices.pick(("wiped", "image", "another"))
    if node == "c1" or not plan.take(node, start_ms, end_ms):
        return
    plan.fragile.add(node)
    others = [each for each in plan.names if each != node]
    how = choices.pick(("process", "power"))
    if disk == "image":
        # The step behind which its disk is copied.
        earlier = max(0, start_ms - choices.pick((100, 500, 1_000)))
        disk = f"image:{plan.step(earlier, 'wait', 'True == True')}"
    elif disk == "another" and others:
        disk = f"of:{choices.pick(others)}"
    else:
        disk = "wiped"
    plan.fault("crash", node, (start_ms, None), how=how)
    plan.step(end_ms, "start", {"node": node, "disk": disk})


DISK_KINDS: Final = (
    _split("split-write"),
    _split("short-read"),
    Kind("stall", _stall),
    _of_calls("fsync-lie"),
    _of_calls("fsync-fail", content=("keep", "revert"), report=("now", "next")),
    _of_calls("fsync-read-only"),
    _of_calls("eio", call=_CALLS),
    _of_calls("lost-write"),
    _of_calls("misdirected-write", shift_bytes=(60, -200, 4_096)),
    _loses("enospc", _enospc),
    _loses(
        "write-back-fail",
        _write_back_fail,
        needs=lambda plan: bool(plan.victims) and "writeback" in plan.cluster.keys,
    ),
    _loses("fill", _fill),
    _whole_disk("read-only"),
    _whole_disk("disk-gone"),
    _loses("bit-rot", _bit_rot),
    _loses("bad-sector", _bad_sector),
    _loses("step corrupt", _corrupt_step),
    _loses("step fill", _fill_step),
    _loses("replaced disk", _replaced),
)
