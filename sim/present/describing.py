"""Single events in few words, for columns.

Left out: what an event means in a story (``sim.present.tellings``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from sim.present.args import number, text
from sim.present.step_words import step_words
from sim.present.words import acks_word, counted, name, offsets, sentence, target_words, value
from sim.trace.kinds import Kind
from sim.trace.lines import Event

__all__ = ["describe"]

_ARGS_MAX: Final = 6
_ARG_MAX: Final = 40


def describe(event: Event) -> str:
    """What an event says; its node and its time stand elsewhere."""
    made = _WORDS.get(event.kind)
    found = _plain(event) if made is None else made(event.args)
    fault = text(event.args, "fault")
    return found if fault is None else f"{found} [{name(fault)}]"


def _plain(event: Event) -> str:
    return _plain_of(event.kind.value, event.args)


def _plain_of(kind: str, args: Mapping[str, Any]) -> str:
    """The kind and its arguments as they are."""
    shown = [
        f"{name(key)}={_value(each)}" for key, each in args.items() if key not in ("fault", "note")
    ]
    note = text(args, "note")
    words = [kind if note is None else name(note), *shown[:_ARGS_MAX]]
    return " ".join(words) + (" …" if len(shown) > _ARGS_MAX else "")


def _value(each: Any) -> str:
    if each is None:
        return "none"
    if isinstance(each, bool):
        return "yes" if each else "no"
    if isinstance(each, list | tuple):
        found = ",".join(_value(one) for one in each)
    elif isinstance(each, dict):
        found = ",".join(f"{key}:{_value(one)}" for key, one in each.items())
    else:
        found = str(each)
    return name(found if len(found) <= _ARG_MAX else found[: _ARG_MAX - 1] + "…")


def _send(args: Mapping[str, Any]) -> str:
    return f"→{name(args.get('to'))} {name(args.get('type'))}"


def _transmit(args: Mapping[str, Any]) -> str:
    return f"⇒{name(args.get('to'))} {name(args.get('type'))} {number(args, 'size', 0)} B"


def _deliver(args: Mapping[str, Any]) -> str:
    return f"←{name(args.get('from'))} {name(args.get('type'))}"


def _drop(args: Mapping[str, Any]) -> str:
    ends = f"{name(args.get('from'))}→{name(args.get('to'))}"
    return f"lost {ends} {name(args.get('type'))} ({name(args.get('why'))})"


def _timer(args: Mapping[str, Any]) -> str:
    return f"timer {name(args.get('key'))}"


def _file(verb: str) -> Callable[[Mapping[str, Any]], str]:
    def words(args: Mapping[str, Any]) -> str:
        size = number(args, "size", 0)
        return f"{verb} {name(args.get('file'))} {number(args, 'position', 0)}+{size}"

    return words


def _disk(args: Mapping[str, Any]) -> str:
    return f"{name(args.get('operation'))} {name(args.get('file'))}"


def _append(args: Mapping[str, Any]) -> str:
    who = f" {name(args['client'])} {acks_word(args.get('acks'))}" if "client" in args else ""
    return f"append {_range(args)}{who}"


def _range(args: Mapping[str, Any]) -> str:
    base, end = number(args, "base_offset"), number(args, "next_offset")
    return f"{name(args.get('partition'))} {offsets(base, end)} e{number(args, 'leader_epoch')}"


def _replicate(args: Mapping[str, Any]) -> str:
    return f"copy {_range(args)}"


def _truncate(args: Mapping[str, Any]) -> str:
    found = f"truncate {name(args.get('partition'))} {number(args, 'log_end')}"
    found += f" to {number(args, 'offset')}"
    epoch, end = number(args, "leader_epoch"), number(args, "end_offset")
    return found + (f" (epoch {epoch} ends at {end})" if epoch >= 0 else "")


def _high_watermark(args: Mapping[str, Any]) -> str:
    return f"HW {name(args.get('partition'))} {number(args, 'high_watermark')}"


def _isr(args: Mapping[str, Any]) -> str:
    return f"ISR {name(args.get('partition'))} {_value(args.get('isr'))}"


def _elect(args: Mapping[str, Any]) -> str:
    unclean = " unclean" if args.get("unclean") is True else ""
    leader = name(args["leader"]) if args.get("leader") is not None else "nobody"
    epoch = number(args, "leader_epoch")
    return f"elect{unclean} {leader} for {name(args.get('partition'))} e{epoch}"


def _role(args: Mapping[str, Any]) -> str:
    epoch = number(args, "leader_epoch")
    return f"{name(args.get('role'))} of {name(args.get('partition'))} e{epoch}"


def _produce(args: Mapping[str, Any]) -> str:
    topic, place = name(args.get("topic")), args.get("partition")
    where = topic if type(place) is not int else f"{topic}-{place}"
    return f"produce {value(args.get('value'))} to {where} {acks_word(args.get('acks'))}"


def _ack(args: Mapping[str, Any]) -> str:
    offset = number(args, "offset")
    return f"acked {name(args.get('partition'))} {offset} {acks_word(args.get('acks'))}"


def _fault(args: Mapping[str, Any]) -> str:
    return (
        f"fault {name(args.get('id'))}: {name(args.get('kind'))} {target_words(args.get('target'))}"
    )


def _poll(args: Mapping[str, Any]) -> str:
    found = f"read {name(args.get('partition'))} {number(args, 'offset')}"
    return f"{found} {value(args.get('value'))}"


def _step(args: Mapping[str, Any]) -> str:
    id_ = f"step {name(args.get('id'))}"
    if args.get("done") is True:
        return f"{id_} is done"
    given = args.get("args")
    what = text(args, "step")
    if what is None or not isinstance(given, Mapping):
        return _plain_of("step", args)
    return f"{id_}: {sentence(step_words(what, given))}"


def _heal(args: Mapping[str, Any]) -> str:
    return f"fault {name(args.get('id'))} ends"


def _loss(args: Mapping[str, Any]) -> str:
    records = counted(number(args, "count", 0), "record")
    where = name(args.get("partition"))
    who = f", {name(args['leader'])} leads" if args.get("leader") is not None else ""
    return f"{records} of {where} lost ({name(args.get('licence'))}){who}"


def _check(args: Mapping[str, Any]) -> str:
    where = f" of {name(args['partition'])}" if args.get("partition") is not None else ""
    detail = sentence(args.get("detail") or args.get("kind"))
    return f"{name(args.get('check'))}{where} is broken: {detail}"


def _expect(args: Mapping[str, Any]) -> str:
    holds = args.get("holds") is True
    word = "holds" if holds else "does not hold"
    if args.get("judged") is True:
        word = "is met" if holds else "fails"
    return f"expectation {name(args.get('id'))} {word}: {sentence(args.get('text'))}"


_WORDS: Final[dict[Kind, Callable[[Mapping[str, Any]], str]]] = {
    Kind.SEND: _send,
    Kind.TRANSMIT: _transmit,
    Kind.DELIVER: _deliver,
    Kind.DROP: _drop,
    Kind.TIMER: _timer,
    Kind.WRITE: _file("write"),
    Kind.FSYNC: _file("fsync"),
    Kind.LOST: _file("lost"),
    Kind.DISK: _disk,
    Kind.APPEND: _append,
    Kind.REPLICATE: _replicate,
    Kind.TRUNCATE: _truncate,
    Kind.HW: _high_watermark,
    Kind.ISR: _isr,
    Kind.ELECT: _elect,
    Kind.ROLE: _role,
    Kind.PRODUCE: _produce,
    Kind.ACK: _ack,
    Kind.POLL: _poll,
    Kind.FAULT: _fault,
    Kind.HEAL: _heal,
    Kind.STEP: _step,
    Kind.LOSS: _loss,
    Kind.CHECK: _check,
    Kind.EXPECT: _expect,
}
