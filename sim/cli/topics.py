"""What ``explain`` explains: topics by group, made from the tables and docstrings of the code.

A group is a function that imports what it reads, so that a topic costs no more than its
group.

Left out: printing (``sim.cli.explain``).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import Any, Final

from attrs import NOTHING, fields, frozen

__all__ = ["GROUPS", "Topic"]


@frozen
class Topic:
    """One thing that is explained.

    Attributes:
        name: as users write it.
        title: one line.
        text: paragraphs; a line that begins with blanks is kept as it is.
        rows: a table of two columns behind the text.
        others: further names for it.
    """

    name: str
    title: str
    text: tuple[str, ...] = ()
    rows: tuple[tuple[str, str], ...] = ()
    others: tuple[str, ...] = ()


def _doc(thing: Any) -> tuple[str, ...]:
    """The paragraphs of a docstring, without what concerns its code only."""
    found = []
    for paragraph in (inspect.getdoc(thing) or "").split("\n\n"):
        if paragraph.startswith(("Left out:", "Attributes:", "Args:", "Raises:")):
            continue
        is_kept = any(line.startswith("  ") for line in paragraph.split("\n"))
        found.append((paragraph if is_kept else " ".join(paragraph.split())).replace("``", '"'))
    return tuple(found)


# Judgement ---------------------------------------------------------------------------------------


def _invariants() -> Iterable[Topic]:
    from sim.checks.violations import CHECKS

    guards = _guards_by_invariant()
    for name, (number, rule) in CHECKS.items():
        try:
            text = _doc(import_module(f"sim.checks.{name.replace('-', '_')}"))
        except ModuleNotFoundError:
            text = ()
        rows = [("number", number)]
        if guards.get(number):
            rows.append(("guards without which it breaks", ", ".join(guards[number])))
        rows.append(("in a scenario", f'breaks = "{name}" expects that it is violated'))
        yield Topic(name, f"{number}: {rule}", text, tuple(rows), (number,))


def _guards_by_invariant() -> dict[str, list[str]]:
    from cluster.guards import GUARDS

    found: dict[str, list[str]] = {}
    for guard in GUARDS:
        for number in guard.invariants.split():
            found.setdefault(number, []).append(guard.id)
    return found


def _promises() -> Iterable[Topic]:
    from sim.scenario.names import ALIASES, PROMISES

    text = (
        "A promise is about what is lost; a run fails if one is broken and nothing expects it.",
    )
    for name, rule in PROMISES.items():
        rows = (("in a scenario", f'breaks = "{name}" expects losses'),)
        yield Topic(name, rule, text, rows)
    for name, parts in ALIASES.items():
        yield Topic(name, f"stands for {' or '.join(parts)}")


_LICENCE: Final = (
    "A licence says why a loss is legal in a configuration. It is decided when the loss comes "
    "about, by the fate of every copy and by who could lead; the first of L0, L3, L1, L2, L4 "
    "that fits counts. A run passes with such a loss only if the scenario allows it, or names "
    "a promise in breaks."
)
_LICENCE_TEXTS: Final = {
    "L2": "Without ELR: the leader lost the record with its power or its disk, and was the last "
    "member of the ISR when it was fenced or came back; or every member lost it. With ELR: as "
    "many members of ISR and ELR came back from unclean shutdowns as min.insync.replicas says, "
    "since so many were last clean; a plain kill counts.",
    "L3": "Retention, compaction and DeleteRecords as configured are no loss at all. Retention "
    "counts where the leader's wall clock was ahead by a fault, and the records were young.",
    "L4": "A disk lied about a sync, dropped or misplaced a write, or spoilt what it had; nobody "
    "else in ISR or ELR had the record. Where somebody had, the loss is illegal.",
}


def _licences() -> Iterable[Topic]:
    from sim.scenario.names import LICENCES

    for name, rule in LICENCES.items():
        rows = (
            ("any number", f'allow = ["{name}"]'),
            ("five records, no more, no less", f"allow = {{ {name} = 5 }}"),
        )
        own = (_LICENCE_TEXTS[name],) if name in _LICENCE_TEXTS else ()
        yield Topic(name, rule, (*own, _LICENCE), rows)
    illegal = "no licence fits: a correct cluster does not lose the record"
    unknown = "no licence fits: the ledger does not know how a copy of the record went"
    text = (
        (
            "It fails a run, unless a guard is off or an older truncation mode is on, and breaks "
            "names a promise or committed-durability."
        ),
    )
    yield Topic("ILLEGAL", illegal, text)
    yield Topic("UNEXPLAINED", unknown, text)


def _blame() -> Iterable[Topic]:
    for name, others, title in (
        ("parts", ("part",), "what of a scenario can be left out"),
        ("necessity", (), "whether the culprits of a loss were needed for it"),
        ("search", ("smallest set",), "a smallest set of parts to blame"),
        ("slices", ("slice",), "how what is blamed led to the bad state"),
    ):
        module = import_module(f"sim.blame.{name}")
        rows = (("of a run", "leaderfall blame RUN"),)
        yield Topic(name, title, _doc(module)[1:], rows, others)


def _guards() -> Iterable[Topic]:
    from cluster.guards import GUARDS

    for guard in GUARDS:
        rows = (
            ("without it", guard.without),
            ("must then be violated", guard.invariants),
            ("history", guard.history),
            ("rule of the protocol", guard.rule),
            ("in a scenario", f"[cluster.guards] {guard.id} = false"),
        )
        yield Topic(guard.id, f"a rule of the protocol; without it {guard.without}", (), rows)


def _hazards() -> Iterable[Topic]:
    """Known defects of Kafka that a guard brings back."""
    from cluster.guards import GUARDS

    found: dict[str, list[Any]] = {}
    for guard in GUARDS:
        for word in guard.history.replace(",", " ").split():
            if word.startswith("B-"):
                found.setdefault(word, []).append(guard)
    for name in sorted(found):
        guards = found[name]
        tickets = [each.history for each in guards]
        rows = [(f"guard {each.id} = false", each.without) for each in guards]
        rows.append(("history", "; ".join(dict.fromkeys(tickets))))
        title = f"a known defect: {guards[0].without}"
        text = ("Switching the guard off in [cluster.guards] brings the defect back.",)
        yield Topic(name, title, text, tuple(rows))


# Scenario files ----------------------------------------------------------------------------------


def _keys(cls: type) -> tuple[tuple[str, str], ...]:
    """The keys of a table of the grammar, with what each one is for."""
    from sim.scenario.kinds import doc_of, key_of, kind_of

    rows = []
    for each in fields(cls):
        if "kind" not in each.metadata:
            continue
        default = "required"
        if each.default is not NOTHING:
            plain = each.default
            is_made = hasattr(plain, "factory")
            value = None if is_made or plain is None else kind_of(each).show(plain)
            default = "" if value in (None, [], ()) else f"default {_toml(value)}"
        words = (doc_of(each), default, _choices(kind_of(each)))
        rows.append((key_of(each), "; ".join(word for word in words if word)))
    return tuple(rows)


def _choices(kind: Any) -> str:
    words = getattr(kind, "words", ())
    return f"one of {', '.join(words)}" if words and len(words) < 12 else ""


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f'"{value}"' if isinstance(value, str) else str(value)


def _steps() -> Iterable[Topic]:
    from sim.scenario.actions import ACTIONS
    from sim.scenario.model import StepKeys

    every = _keys(StepKeys)
    for name, cls in ACTIONS.items():
        doc = _doc(cls)
        rows = (*_keys(cls), *((f"(step) {key}", text) for key, text in every))
        short = getattr(cls, "SHORT", None)
        more = (f'Written short, {name} = ... stands for its "{short}".',) if short else ()
        yield Topic(name, doc[0], (*doc[1:], *more), rows)


def _faults() -> Iterable[Topic]:
    from sim.scenario.fault_kinds import FAULT_KINDS

    for name, cls in FAULT_KINDS.items():
        doc = _doc(cls)
        rows = (("in a scenario", f'[[fault]] kind = "{name}"'), *_keys(cls))
        yield Topic(name, doc[0], doc[1:], rows)


def _tables() -> Iterable[Topic]:
    from sim.scenario import cluster_keys, model

    for name, cls in (
        ("[top]", model.Head),
        ("[cluster]", cluster_keys.ClusterKeys),
        ("[cluster.latency]", cluster_keys.Latency),
        ("[cluster.disk]", cluster_keys.Disk),
        ("[cluster.clocks]", cluster_keys.Clock),
        ("[[topic]]", model.Topic),
        ("[[variant]]", model.Variant),
        ("[[workload]]", model.Workload),
        ("[[step]]", model.StepKeys),
        ("[[expect]]", model.ExpectKeys),
        ("[liveness]", model.Liveness),
        ("[sweep]", model.Sweep),
    ):
        doc = _doc(cls)
        bare = name.strip("[]")
        yield Topic(name, doc[0], doc[1:], _keys(cls), (bare, bare.rpartition(".")[2]))


def _cluster_keys() -> Iterable[Topic]:
    from cluster.guards import GUARDS
    from sim.scenario.cluster_keys import ClusterKeys

    values = {
        "guards": (
            ("one of", ", ".join(each.id for each in GUARDS)),
            ("in a scenario", "[cluster.guards] NAME = false"),
        )
    }
    for key, text in _keys(ClusterKeys):
        yield Topic(f"cluster.{key}", text, rows=values.get(key, ()), others=(key,))


def _kafka_keys() -> Iterable[Topic]:
    from cluster.config import TopicConfig
    from sim.scenario.kafka_keys import CLUSTER_KEYS, TOPIC_KEYS

    defaults = {each.name.replace("_", "."): each.default for each in fields(TopicConfig)}
    docs: dict[str, str] = {}
    for key, row in CLUSTER_KEYS.items():
        if row.topic:
            docs[row.topic] = row.doc
        where = [("in a scenario", f'[cluster] config = {{ "{key}" = ... }}')]
        where.append(("on the command line", f"--set cluster:{key}=..."))
        if row.topic:
            where.append(("of a topic", row.topic))
        if key not in TOPIC_KEYS:
            yield Topic(key, row.doc, (), tuple(where))
    for key in TOPIC_KEYS:
        default = defaults.get(key)
        rows = [("in a scenario", f'[[topic]] config = {{ "{key}" = ... }}')]
        rows.append(("on the command line", f"--set topic.NAME:{key}=..."))
        if default is not None and default is not NOTHING:
            rows.append(("default", _toml(default)))
        if key in CLUSTER_KEYS:
            rows.append(("for all topics", f'[cluster] config = {{ "{key}" = ... }}'))
        yield Topic(key, docs.get(key, "a topic's configuration, as in Kafka"), (), tuple(rows))


def _observables() -> Iterable[Topic]:
    from sim.scenario.observables import OBSERVABLES

    for name, row in OBSERVABLES.items():
        words = [
            (f"{each.name}{' (optional)' if each.is_optional else ''}", ", ".join(each.words))
            for each in row.arguments
            if each.words and len(each.words) < 12
        ]
        yield Topic(name, row.doc, (f"  {row.signature}",), tuple(words))


def _selectors() -> Iterable[Topic]:
    from sim.scenario.selectors import SELECTORS

    for name, text in SELECTORS.items():
        role, colon, _ = name.partition(":")
        yield Topic(name, text, others=(role,) if colon else ())


def _expectations() -> Iterable[Topic]:
    from sim.scenario.model import EXPECT_FORMS, ExpectKeys

    keys = dict(_keys(ExpectKeys))
    for name, text in EXPECT_FORMS.items():
        goes_with = [key for key, forms in ExpectKeys.BELONGS.items() if name in forms]
        rows = [(key, keys[key]) for key in (*goes_with, "variant", "because")]
        yield Topic(name, text, (f"  [[expect]]\n  {name} = ...",), tuple(rows))


def _paths() -> Iterable[Topic]:
    from sim.scenario.paths import FORMS

    text = "a value of a scenario, for set in a variant and for --set on the command line"
    for name in FORMS:
        yield Topic(name, text)


# Events, places ----------------------------------------------------------------------------------


def _kinds() -> Iterable[Topic]:
    from sim.trace.kind_docs import COMMON_ARGS, KINDS

    common = tuple((f"{key} (any kind)", text) for key, text in COMMON_ARGS.items())
    for kind, row in KINDS.items():
        yield Topic(str(kind), row.text, (), (*row.args.items(), *common))


def _failpoints() -> Iterable[Topic]:
    from cluster.failpoints import FAILPOINTS

    text = ('  crash = { node = "b1", at_failpoint = "NAME" }',)
    for name, where in FAILPOINTS.items():
        yield Topic(name, where, text)
    title = "a call of the disk on a path that ends so"
    yield Topic("disk:CALL:PATH-SUFFIX", title, text, others=("disk",))


def _exit_codes() -> Iterable[Topic]:
    from sim.cli.exits import EXIT_DOCS

    for code, text in EXIT_DOCS.items():
        yield Topic(f"exit {int(code)}", text, others=(f"exit-{int(code)}",))


GROUPS: Final[Mapping[str, tuple[str, Callable[[], Iterable[Topic]]]]] = {
    "invariants": ("what must always hold", _invariants),
    "promises": ("what users hope for", _promises),
    "licences": ("why a loss may be legal", _licences),
    "blame": ("what a loss or a violation takes", _blame),
    "steps": ("what a [[step]] does", _steps),
    "faults": ("kinds of [[fault]]", _faults),
    "observables": ("what expressions ask", _observables),
    "expectations": ("forms of [[expect]]", _expectations),
    "selectors": ("whom steps and faults mean", _selectors),
    "tables": ("tables of a scenario file", _tables),
    "cluster": ("keys of [cluster]", _cluster_keys),
    "config": ("Kafka's configuration keys", _kafka_keys),
    "paths": ("values by name, for --set", _paths),
    "guards": ("rules that can be switched off", _guards),
    "hazards": ("known defects that guards bring back", _hazards),
    "failpoints": ("places where a process can be made to end", _failpoints),
    "events": ("kinds of events in a trace", _kinds),
    "exit-codes": ("what leaderfall ends with", _exit_codes),
}
"""Name: what it is, and its topics."""
