"""Events of nodes, read into a story: starts, ends, and what a power cut took from a disk.

Left out: what is in a log (``sim.present.log_events``).
"""

from __future__ import annotations

from typing import Final

from sim.present.args import text
from sim.present.history import How, Role
from sim.present.reading_state import Reader, ReadingState
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["READERS"]


def _start(state: ReadingState, event: Event) -> None:
    node = state.story.node(event.node)
    node.starts += 1
    node.statuses.put(event.n, "up")
    own = [
        replica
        for partition in state.story.partitions.values()
        if (replica := partition.replicas.get(event.node)) is not None
    ]
    for replica in own:
        if len(replica.roles):
            # A role ends with the process that had it.
            replica.roles.put(event.n, Role(event.n, "none", -1, None, None))
    held = [replica for replica in own if replica.alive]
    disk = text(event.args, "disk")
    state.images.pop(event.node, None)
    if disk == "wiped":
        for replica in own:
            state.logs.empty(replica, event.n, How.WIPED, event.n)
        held = []
    elif disk is not None and disk != "same":
        state.images[event.node] = event.n
    if event.node in state.images or disk == "wiped":
        for key in [key for key in state.shortened if key[0] == event.node]:
            del state.shortened[key]
    state.unseen[event.node] = {replica.partition for replica in held}
    state.tell(event.n, "start", event.node, None, event.args)


def _crash(state: ReadingState, event: Event) -> None:
    how = text(event.args, "how") or "process"
    state.story.node(event.node).statuses.put(event.n, "off" if how == "power" else "down")
    if how != "start-failed" or event.node not in state.crashes:
        # Who could not even start had lost what it lost before.
        state.crashes[event.node] = event.n, how
    for key, cut in list(state.shortened.items()):
        if key[0] == event.node and cut.cause[-1:] != event.cause[-1:]:
            del state.shortened[key]
    state.tell(event.n, "crash", event.node, None, event.args)


def _stop(state: ReadingState, event: Event) -> None:
    state.story.node(event.node).statuses.put(event.n, "stopped")
    state.crashes[event.node] = event.n, "stop"
    state.tell(event.n, "stop", event.node, None, event.args)


def _pause(state: ReadingState, event: Event) -> None:
    state.story.node(event.node).statuses.put(event.n, "paused")
    state.tell(event.n, "pause", event.node, None, event.args)


def _resume(state: ReadingState, event: Event) -> None:
    state.story.node(event.node).statuses.put(event.n, "up")
    state.tell(event.n, "resume", event.node, None, event.args)


def _lost(state: ReadingState, event: Event) -> None:
    crash = event.cause[0] if event.cause else event.n
    for partition in state.story.partitions.values():
        replica = partition.replicas.get(event.node)
        if replica is not None:
            lost = state.logs.lose_bytes(replica, crash, event.args)
            if lost is not None:
                state.tell(event.n, "cut", event.node, partition.name, lost)
            state.logs.bring_back(replica, crash, event.args)


def _register(state: ReadingState, event: Event) -> None:
    """A broker that has registered has opened all logs that it found."""
    if "broker" in event.args:
        state.story.node(event.node).is_controller = True
        return
    node = state.story.node(event.node)
    node.is_broker = True
    how, by = state.what_took(event.node)
    unseen = state.unseen.pop(event.node, set())
    for name in [each for each in state.story.partitions if each in unseen]:
        replica = state.story.replica(event.node, name)
        for cut in state.logs.empty(replica, event.n, How.WIPED if how is How.TORN else how, by):
            state.tell(event.n, "cut", event.node, name, cut)


READERS: Final[dict[Kind, Reader]] = {
    Kind.START: _start,
    Kind.CRASH: _crash,
    Kind.STOP: _stop,
    Kind.PAUSE: _pause,
    Kind.RESUME: _resume,
    Kind.LOST: _lost,
    Kind.REGISTER: _register,
}
