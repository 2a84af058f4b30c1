"""Elections, roles, ISR and what clients were told, read into a story.

Left out: sentences (``sim.present.protocol_tellings``).
"""

from __future__ import annotations

from typing import Final

from sim.present.args import flag, names, number, text
from sim.present.history import Ack, Elected, Election, Partition, Role
from sim.present.reading_state import Reader, ReadingState
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["READERS"]


def _elect(state: ReadingState, event: Event) -> None:
    name = text(event.args, "partition")
    if name is None:
        return
    args, partition = event.args, state.story.partition(name)
    state.story.node(event.node).is_controller = True
    isr = names(args, "isr")
    election = Election(
        event.n,
        event.node,
        name,
        text(args, "leader"),
        number(args, "leader_epoch"),
        _kind(partition, event),
        isr,
        partition.elrs.at(event.n),
        text(args, "old_leader"),
        names(args, "old_isr"),
        event.cause,
    )
    partition.elections.append(election)
    partition.leaders.put(event.n, (election.leader, election.leader_epoch))
    if isr is not None:
        partition.isrs.put(event.n, isr)
        state.told_isrs[name] = isr
    state.tell(event.n, "elect", event.node, name, election)


def _kind(partition: Partition, event: Event) -> Elected:
    """From where a leader is: the event says only whether from outside ISR and ELR."""
    leader, old_isr = text(event.args, "leader"), names(event.args, "old_isr")
    if leader is None:
        return Elected.NOBODY
    if not flag(event.args, "unclean"):
        return Elected.ISR if old_isr is None or leader in old_isr else Elected.ELR
    if "last_known" in event.args:
        return Elected.LAST_KNOWN if flag(event.args, "last_known") else Elected.UNCLEAN
    # The first event of a handler has all of its changes: what was before it is asked for.
    before = (event.cause[0] if event.cause else event.n) - 1
    known = partition.last_known.at(before)
    if known is not None:
        is_last = leader in known and not partition.elrs.at(before)
    else:
        led = [who for n, (who, _) in partition.leaders if n < event.n and who is not None]
        is_last = led[-1:] == [leader]
    return Elected.LAST_KNOWN if is_last and old_isr == () else Elected.UNCLEAN


def _role(state: ReadingState, event: Event) -> None:
    replica = state.replica_of(event)
    if replica is None:
        return
    args, partition = event.args, state.story.partition(replica.partition)
    epoch = number(args, "leader_epoch")
    log_end = number(args, "log_end")
    role = Role(
        event.n,
        text(args, "role") or "?",
        epoch,
        text(args, "leader"),
        log_end if log_end >= 0 else None,
    )
    replica.roles.put(event.n, role)
    isr = names(args, "isr")
    place = event.node, replica.partition
    # A topic that is created anew begins its epochs anew.
    is_new = role.name == "leader" and place in state.deleted
    state.deleted.discard(place)
    if role.log_end is not None and replica.log_ends.last is None:
        replica.log_ends.put(event.n, role.log_end)
    now = partition.leaders.last
    if isr and (
        is_new or replica.partition not in state.told_isrs or (now is not None and now[1] < epoch)
    ):
        state.told_isrs[replica.partition] = isr
        if replica.partition not in state.ruled:
            partition.isrs.put(event.n, isr)
    if replica.partition not in state.ruled and role.name == "leader":
        if is_new or now is None or now[1] < epoch:
            partition.leaders.put(event.n, (event.node, epoch))
    state.tell(event.n, "role", event.node, replica.partition, role)


def _isr(state: ReadingState, event: Event) -> None:
    name, isr = text(event.args, "partition"), names(event.args, "isr")
    if name is None or isr is None:
        return
    before = state.told_isrs.get(name)
    state.told_isrs[name] = isr
    if name not in state.ruled:
        # What a leader learns has been so at the controller for a while.
        state.story.partition(name).isrs.put(event.n, isr)
    cause = state.story.brief(event.cause[0]) if event.cause else None
    asked = state.asked.get(name)
    why = ""
    if cause is not None and asked is not None and (asked[0], asked[1]) == (event.node, isr):
        why = " (too far behind)" if asked[2] is Kind.TIMER else ""
    state.tell(event.n, "isr", event.node, name, (before, isr, why))


def _isr_proposed(state: ReadingState, event: Event) -> None:
    name, isr = text(event.args, "partition"), names(event.args, "isr")
    cause = state.story.brief(event.cause[0]) if event.cause else None
    if name is not None and isr is not None and cause is not None:
        state.asked[name] = event.node, isr, cause.kind


def _produce(state: ReadingState, event: Event) -> None:
    state.story.node(event.node).is_client = True
    state.values[event.n] = event.args.get("value")
    topic, place = text(event.args, "topic") or "?", event.args.get("partition")
    name = topic if type(place) is not int else f"{topic}-{place}"
    state.tell(event.n, "sent", event.node, name, event.args)


def _ack(state: ReadingState, event: Event) -> None:
    state.story.node(event.node).is_client = True
    name = text(event.args, "partition")
    if name is None:
        return
    partition = state.story.partition(name)
    begun = next((each for each in event.cause if each in state.values), 0)
    heard = state.story.brief(event.cause[0]) if event.cause else None
    by = heard.peer if heard is not None and heard.kind is Kind.DELIVER else None
    offset = number(event.args, "offset")
    epoch = None
    if by is not None and by in partition.replicas:
        # The answer may have been under way while the record went.
        sent = heard.cause[0] if heard is not None and heard.cause else 0
        held = partition.replicas[by].had(offset, None, sent)
        epoch = held.epoch if held else state.logs.epoch_of(partition.replicas[by], offset)
    acks = number(event.args, "acks", 1)
    value = state.values.get(begun)
    ack = Ack(event.n, event.node, name, offset, acks, value, begun, by, epoch)
    partition.acks.append(ack)
    state.tell(event.n, "ack", event.node, name, ack)


READERS: Final[dict[Kind, Reader]] = {
    Kind.ELECT: _elect,
    Kind.ROLE: _role,
    Kind.ISR: _isr,
    Kind.ISR_PROPOSED: _isr_proposed,
    Kind.PRODUCE: _produce,
    Kind.ACK: _ack,
}
