"""Kinds of faults for ``[[fault]]`` tables, one frozen class for each (FAULTS C.1 to C.5).

Every table has ``id``, ``kind``, ``target``, ``start`` and mostly ``end``; a time or
``{ when = "EXPR" }``. Kinds of links take a target that is a node (all its links) or
``{ from = ..., to = ... }``. ``FAULT_KINDS`` is the closed table.

Left out: making ``sim.faults`` and ``sim.network_rules`` of them (``sim.running``).
"""

from __future__ import annotations

from typing import Final

from sim.scenario.fault_base import Fault, Links, When
from sim.scenario.fault_links import (
    ClogFault,
    CorruptFault,
    CutFault,
    DuplicateFault,
    FlapFault,
    LimitFault,
    LossFault,
    MetadataLagFault,
    PartitionFault,
    RefuseFault,
    ReorderFault,
    ResetFault,
    SwizzleFault,
)
from sim.scenario.fault_nodes import (
    BackgroundHoldFault,
    BadSectorFault,
    BitRotFault,
    ClockDriftFault,
    ClockFreezeFault,
    ClockStepFault,
    ClockStrobeFault,
    CrashFault,
    CrashLoopFault,
    DiskGoneFault,
    EioFault,
    EnospcFault,
    FailpointFault,
    FillFault,
    FsyncFailFault,
    FsyncLieFault,
    FsyncReadOnlyFault,
    LostWriteFault,
    MisdirectedWriteFault,
    PauseFault,
    ReadOnlyFault,
    ShortReadFault,
    SlowFault,
    SplitWriteFault,
    StallFault,
    TimerJitterFault,
    WriteBackFailFault,
)

__all__ = ["FAULT_KINDS", "Fault", "Links", "When"]

FAULT_KINDS: Final[dict[str, type[Fault]]] = {
    each.KIND: each
    for each in (
        CutFault,
        PartitionFault,
        ClogFault,
        LossFault,
        ResetFault,
        RefuseFault,
        LimitFault,
        CorruptFault,
        DuplicateFault,
        ReorderFault,
        FlapFault,
        SwizzleFault,
        MetadataLagFault,
        CrashFault,
        CrashLoopFault,
        FailpointFault,
        PauseFault,
        SlowFault,
        BackgroundHoldFault,
        ClockStepFault,
        ClockDriftFault,
        ClockFreezeFault,
        ClockStrobeFault,
        TimerJitterFault,
        StallFault,
        FillFault,
        FsyncFailFault,
        FsyncLieFault,
        FsyncReadOnlyFault,
        EnospcFault,
        EioFault,
        SplitWriteFault,
        LostWriteFault,
        MisdirectedWriteFault,
        ShortReadFault,
        WriteBackFailFault,
        ReadOnlyFault,
        DiskGoneFault,
        BadSectorFault,
        BitRotFault,
    )
}
"""Kind as files spell it, and class."""
