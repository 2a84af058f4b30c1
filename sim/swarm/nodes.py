"""Drawn faults of processes, hosts and clocks.

Left out: disks (``sim.swarm.disks``).
"""

from __future__ import annotations

from typing import Any, Final

from cluster.failpoints import FAILPOINTS
from sim.scenario.action_kinds import IMAGES
from sim.swarm.choosing import Choices
from sim.swarm.plan import Kind, Plan

__all__ = ["MORTAL", "NODE_KINDS", "SOUND_IMAGES", "death", "dying"]

SOUND_IMAGES: Final = ("lost", "kept", "file-prefix", "disk-prefix", "sector-subset")
"""Those in which what was synced cannot share the fate of a sector that is written anew."""
_IMAGES: Final = tuple(IMAGES)
_CALLS: Final = (
    "disk:write_at:.log",
    "disk:complete_fsync:",
    "disk:begin_fsync:",
    "disk:rename:",
    "disk:truncate:",
    "disk:fsync_dir:",
)
_POINTS: Final = (*FAILPOINTS, *_CALLS)
_SLOW: Final[tuple[tuple[str, Any], ...]] = (
    ("cpu", 20),
    ("cpu", 500),
    ("disk", 50),
    ("disk", "20ms"),
    ("link", 5),
    ("link", 200),
    ("link", "30ms"),
)
MORTAL: Final = ("kills", "flush", "elr")
"""Grounds on which processes end."""


def dying(plan: Plan, choices: Choices) -> str:
    """Whose process ends: with ``elr`` a victim."""
    if plan.ground == "elr":
        return plan.victim(choices)
    return choices.pick([*plan.names, *plan.names, "c1"])


def _power(plan: Plan, choices: Choices) -> dict[str, Any]:
    images = SOUND_IMAGES if plan.ground == "flush" else _IMAGES
    return {"how": "power", "image": choices.pick(images)}


def death(plan: Plan, choices: Choices) -> dict[str, Any]:
    """How a process ends, as the ground allows."""
    if plan.ground != "kills" and choices.chance(50):
        return _power(plan, choices)
    return {"how": "process"}


def _has_victims(plan: Plan) -> bool:
    return bool(plan.victims)


# Processes ---------------------------------------------------------------------------------------


def _crash(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = dying(plan, choices), plan.window(choices)
    if plan.take(node, start_ms, end_ms):
        plan.fault("crash", node, (start_ms, end_ms), how="process")


def _power_loss(plan: Plan, choices: Choices) -> None:
    (start_ms, end_ms), power = plan.window(choices), _power(plan, choices)
    if not plan.is_recoverable and choices.chance(15):
        target = choices.pick(("all", "majority", plan.role(choices)))
        plan.fault("crash", target, (start_ms, end_ms), **power)
        return
    node = dying(plan, choices)
    if plan.take(node, start_ms, end_ms):
        plan.fault("crash", node, (start_ms, end_ms), **power)


def _crash_loop(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = dying(plan, choices), plan.window(choices)
    calls = [choices.pick((1, 3, 6, 12, 30)) for _ in range(choices.integer(1, 3))]
    keys = death(plan, choices) | {"calls": calls, "restart_after": "150ms"}
    if plan.take(node, start_ms, end_ms):
        plan.fault("crash-loop", node, (start_ms, end_ms), **keys)
        plan.step(end_ms, "start", {"node": node})


def _failpoint(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = dying(plan, choices), plan.window(choices)
    point = choices.pick(_POINTS)
    stops = ("pause", "yield") if point in FAILPOINTS else ()
    how = death(plan, choices)
    action = choices.pick((how["how"], *stops))
    keys: dict[str, Any] = {"point": point, "hit": choices.pick((1, 2, 5, 12)), "action": action}
    if action == "power":
        keys["image"] = how["image"]
    elif action != "process":
        keys["duration"] = choices.pick(("100ms", "1500ms"))
    if plan.take(node, start_ms, end_ms):
        plan.fault("failpoint", node, (start_ms, end_ms), **keys)
        # Whoever it has killed comes back.
        plan.step(end_ms, "start", {"node": node})


def _pause(plan: Plan, choices: Choices) -> None:
    target = choices.pick((plan.server(choices), plan.server(choices), plan.role(choices)))
    plan.fault("pause", target, plan.window(choices))


def _slow(plan: Plan, choices: Choices) -> None:
    node, window = plan.server(choices), plan.window(choices)
    what, how = choices.pick(_SLOW)
    plan.fault("slow", node, window, **{what: how})


def _background_hold(plan: Plan, choices: Choices) -> None:
    plan.fault("background-hold", plan.broker(choices), plan.window(choices))


# Clocks ------------------------------------------------------------------------------------------


def _timer_jitter(plan: Plan, choices: Choices) -> None:
    ppm = choices.pick((10_000, 100_000))
    plan.fault("timer-jitter", plan.server(choices), plan.window(choices), ppm=ppm)


def _drift(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = {"wall_ppm": choices.pick((200, 50_000, -200, -50_000))}
    keys["mono_ppm"] = choices.pick((0, 200, 20_000))
    plan.fault("clock-drift", plan.server(choices), plan.window(choices), **keys)


def _step(plan: Plan, choices: Choices) -> None:
    node, start_ms = plan.server(choices), plan.moment(choices)
    by = choices.pick(("200ms", "1s", "5s", "60s", "1h", "-200ms", "-3s", "-40s"))
    plan.fault("clock-step", node, (start_ms, None), by=by)


def _strobe(plan: Plan, choices: Choices) -> None:
    keys: dict[str, Any] = {
        "by": choices.pick(("100ms", "3s")),
        "period": choices.pick(("100ms", "30ms")),
    }
    plan.fault("clock-strobe", plan.server(choices), plan.window(choices), **keys)


def _freeze(plan: Plan, choices: Choices) -> None:
    node, window = plan.server(choices), plan.window(choices)
    plan.fault("clock-freeze", node, window, also_mono=choices.chance(30))


# Steps -------------------------------------------------------------------------------------------


def _crash_step(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = dying(plan, choices), plan.window(choices)
    crash: dict[str, Any] = {"node": node} | death(plan, choices)
    point = choices.pick(("", "", *FAILPOINTS))
    if point:
        crash |= {"at_failpoint": point, "hit": choices.pick((1, 3))}
    if plan.take(node, start_ms, end_ms):
        plan.step(start_ms, "crash", crash)
        plan.step(end_ms, "start", {"node": node})


def _shutdown_step(plan: Plan, choices: Choices) -> None:
    node = dying(plan, choices) if plan.ground == "elr" else plan.broker(choices)
    start_ms, end_ms = plan.window(choices)
    if plan.take(node, start_ms, end_ms):
        plan.step(start_ms, "shutdown", node)
        plan.step(end_ms, "start", {"node": node})


def _pause_step(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = (
        choices.pick([*plan.names, "c1", *plan.clients]),
        plan.window(choices),
    )
    plan.step(start_ms, "pause", node)
    plan.step(end_ms, "resume", node)


def _slow_step(plan: Plan, choices: Choices) -> None:
    node, (start_ms, end_ms) = plan.server(choices), plan.window(choices)
    what, how = choices.pick((("cpu", 20), ("disk", "20ms"), ("link", "30ms")))
    known_as = plan.step(start_ms, "slow", {"node": node, what: how})
    plan.step(end_ms, "heal", known_as)


def _clocks_may_be_off(plan: Plan) -> bool:
    """A clock that is ahead makes retention delete early, which is a loss (L3)."""
    return not (plan.is_recoverable and plan.has_exact_clocks)


NODE_KINDS: Final = (
    Kind("crash", _crash, MORTAL, _has_victims),
    Kind("power", _power_loss, ("flush", "elr"), _has_victims),
    Kind("crash-loop", _crash_loop, MORTAL, _has_victims),
    Kind("failpoint", _failpoint, MORTAL, _has_victims),
    Kind("pause", _pause),
    Kind("slow", _slow),
    Kind("background-hold", _background_hold),
    Kind("timer-jitter", _timer_jitter),
    Kind("clock-drift", _drift, needs=_clocks_may_be_off),
    Kind("clock-step", _step, needs=_clocks_may_be_off),
    Kind("clock-strobe", _strobe, needs=_clocks_may_be_off),
    Kind("clock-freeze", _freeze, needs=_clocks_may_be_off),
    Kind("step crash", _crash_step, MORTAL, _has_victims),
    Kind("step shutdown", _shutdown_step, needs=_has_victims),
    Kind("step pause", _pause_step),
    Kind("step slow", _slow_step),
)
