"""Failpoints of one host: what is to happen when it reaches a named point for the n-th time.

Points between the steps of a handler stand in ``cluster.failpoints``; a point ``disk:CALL:SUFFIX``
is a call of the disk on a path that ends so, and can end the process or cut the power only.

Left out: carrying it out (``sim.hosts``).
"""

from __future__ import annotations

from typing import Final

from attrs import define, field, frozen

from cluster.failpoints import FAILPOINTS
from sim.disk_images import CRASH_MODES

__all__ = ["ENDS", "FAILPOINT_ACTIONS", "IMAGES", "CrashLoopPlan", "Failpoint", "Failpoints"]

FAILPOINT_ACTIONS = ("process", "power", "pause", "yield")
ENDS: Final = ("process", "power")
"""How a process can end without warning: alone, or with the power of its host."""
IMAGES: Final = ("lost", "kept", "drawn", *(m for m in CRASH_MODES if m not in ("lost", "kept")))
"""What a power loss can leave of a disk."""


@frozen(kw_only=True)
class Failpoint:
    """What is to happen at the ``hit``-th time.

    Attributes:
        id: names it in traces.
        point: one of ``cluster.failpoints.FAILPOINTS``, or ``disk:CALL:PATH-SUFFIX``.
        hit: counted from when it is armed.
        action: ``process`` or ``power`` end the process there; ``pause`` stops the host, ``yield``
            the handler alone, both for ``duration_us``.
        image: of the disk, for ``power``.
    """

    id: str
    point: str
    hit: int = 1
    action: str = "process"
    duration_us: int = 0
    image: str = "lost"

    def __attrs_post_init__(self) -> None:
        if self.action not in FAILPOINT_ACTIONS:
            allowed = ", ".join(FAILPOINT_ACTIONS)
            raise ValueError(f"action is {self.action!r}, allowed are {allowed}")
        if self.image not in IMAGES:
            raise ValueError(f"image is {self.image!r}, allowed are {', '.join(IMAGES)}")
        if self.hit < 1 or self.duration_us < 0:
            raise ValueError(
                f"hit is {self.hit}, allowed is 1 or more; duration_us is {self.duration_us}, "
                "allowed is 0 or more"
            )
        if self.is_disk_call:
            if self.action not in ("process", "power") or self.point.count(":") != 2:
                raise ValueError(
                    f"point is {self.point!r} with action {self.action!r}, allowed at a disk call "
                    "is disk:CALL:PATH-SUFFIX with process or power"
                )
        elif self.point not in FAILPOINTS:
            allowed = ", ".join(FAILPOINTS)
            raise ValueError(
                f"point is {self.point!r}, allowed are {allowed} and disk:CALL:PATH-SUFFIX"
            )

    @property
    def is_disk_call(self) -> bool:
        return self.point.startswith("disk:")


@frozen
class CrashLoopPlan:
    """In which disk call of each of its next lives a process ends (``sim.faults.CrashLoop``)."""

    fault: str
    calls: tuple[int, ...]
    how: str
    image: str
    restart_after_us: int


@define
class Failpoints:
    """The points of one host that are armed.

    Attributes:
        hits: how often each was reached since, by id.
        yields: the points at which handlers stop.
    """

    armed: list[Failpoint] = field(factory=list)
    hits: dict[str, int] = field(factory=dict)
    yields: frozenset[str] = frozenset()

    def add(self, failpoint: Failpoint) -> None:
        """Arm one; it strikes once."""
        self.armed.append(failpoint)
        self.yields = frozenset(each.point for each in self.armed)

    def remove(self, failpoint: Failpoint) -> None:
        """Disarm one, if it is armed."""
        if failpoint in self.armed:
            self.armed.remove(failpoint)
            self.hits.pop(failpoint.id, None)
            self.yields = frozenset(each.point for each in self.armed)

    def reach(self, point: str) -> Failpoint | None:
        """A handler is there: what strikes now, if anything does."""
        struck = None
        for each in self.armed:
            if each.point == point:
                hits = self.hits[each.id] = self.hits.get(each.id, 0) + 1
                if struck is None and hits >= each.hit:
                    struck = each
        if struck is not None:
            self.armed.remove(struck)
            del self.hits[struck.id]
            self.yields = frozenset(left.point for left in self.armed)
        return struck
