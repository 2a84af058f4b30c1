"""The scenario and its judges, read into a story: steps, faults, findings, losses.

Left out: what a malformed loss is (``sim.present.loss_events``).
"""

from __future__ import annotations

from typing import Final

from sim.present.args import flag, number, text
from sim.present.history import Fault, Finding, Step
from sim.present.loss_events import read_loss
from sim.present.reading_state import Reader, ReadingState
from sim.present.step_words import step_words
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["READERS"]


def _step(state: ReadingState, event: Event) -> None:
    args = event.args
    id_ = str(args.get("id", f"#{event.n}"))
    if flag(args, "done"):
        if id_ in state.story.steps:
            state.story.steps[id_].end = event.n
        return
    cause = state.story.brief(event.cause[0]) if event.cause else None
    if "id" not in args and cause is not None and cause.kind is Kind.STEP:
        return  # A step of the scenario tells of it.
    shown = args.get("args")
    told = dict(shown) if isinstance(shown, dict) else {}
    told |= {key: args[key] for key in ("topic", "partition", "offset", "count") if key in args}
    if number(told, "count", 0) >= _WITHOUT_END:
        del told["count"]
    what = text(args, "step") or ("consume" if "topic" in args else "client")
    step = Step(id_, step_words(what, told), event.n)
    if "id" not in args:
        step.end = event.n  # Asked of a client or the operator; no event says when it is done.
    state.story.steps[id_] = step
    state.tell(event.n, "step", event.node, None, step)


def _fault(state: ReadingState, event: Event) -> None:
    args = event.args
    id_ = str(args.get("id", f"#{event.n}"))
    kind = text(args, "kind") or "fault"
    shown = args.get("args")
    details = dict(shown) if isinstance(shown, dict) else {}
    fault = Fault(id_, kind, args.get("target"), details, event.node, event.n)
    state.story.faults[id_] = fault
    state.tell(event.n, "fault", event.node, None, fault)


def _heal(state: ReadingState, event: Event) -> None:
    fault = state.story.faults.get(str(event.args.get("id")))
    if fault is not None:
        fault.end = event.n
        state.tell(event.n, "heal", event.node, None, fault)


def _check(state: ReadingState, event: Event) -> None:
    args = event.args
    finding = Finding(
        event.n,
        text(args, "check") or "?",
        text(args, "partition"),
        text(args, "kind") or "",
        text(args, "detail") or "",
        args.get("evidence"),
        event.cause,
    )
    state.story.findings.append(finding)
    state.tell(event.n, "check", event.node, finding.partition, finding)


def _loss(state: ReadingState, event: Event) -> None:
    loss = read_loss(event)
    if loss.spans:
        state.story.losses.append(loss)
        state.tell(event.n, "loss", event.node, loss.partition, loss)


_WITHOUT_END: Final = 1 << 60
"""A consumer that wants so many records reads whatever there is."""


READERS: Final[dict[Kind, Reader]] = {
    Kind.STEP: _step,
    Kind.FAULT: _fault,
    Kind.HEAL: _heal,
    Kind.CHECK: _check,
    Kind.LOSS: _loss,
}
