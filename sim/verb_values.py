"""What users hand to verbs: checked before anything is done with it.

Left out: the verbs (``sim.verbs``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from cluster.config import TopicConfig
from cluster.metadata import MetadataImage
from sim.world_errors import WorldError

__all__ = [
    "as_bytes",
    "as_text",
    "check_config",
    "check_keys",
    "check_names",
    "check_number",
    "check_topic_config",
    "check_values",
    "known_partitions",
    "refused_values",
]

_LISTED_MAX = 20


def as_bytes(value: str | bytes) -> bytes:
    """A record's key or value."""
    return value.encode() if isinstance(value, str) else value


def as_text(value: str | bytes) -> str:
    """A record's value, for the trace."""
    return value if isinstance(value, str) else value.hex()


def check_number(what: str, number: object) -> None:
    """How many records are wanted, an offset, a partition."""
    if type(number) is not int or number < 0:
        raise WorldError(f"{what} is {number!r}, allowed is a number, 0 or more")


def check_values(values: object) -> None:
    """The values of records, or how many."""
    if type(values) is int and values >= 0:
        return
    _check_texts("values", values, "allowed are how many (0 or more), or a list of str or bytes")


def check_keys(keys: object, count: int) -> None:
    """The keys of so many records."""
    _check_texts("keys", keys, "allowed is a list of str or bytes")
    if isinstance(keys, Sequence) and len(keys) != count:
        raise WorldError(f"there are {len(keys)} keys, allowed are {count}: one a value")


def _check_texts(what: str, texts: object, allowed: str) -> None:
    if isinstance(texts, str | bytes) or not isinstance(texts, Sequence):
        raise WorldError(f"{what} is {texts!r}, {allowed}")
    for text in texts:
        if not isinstance(text, str | bytes):
            raise WorldError(f"{what} has {text!r}, {allowed}")


def check_names(what: str, names: object) -> None:
    """A list of names; a single one is taken for its letters too easily."""
    if isinstance(names, str):
        raise WorldError(f"{what} is {names!r}, allowed is a list of names: [{names!r}]")


def check_topic_config(config: Mapping[str, str | None]) -> None:
    """The configuration of a topic."""
    check_config(config)
    with refused_values():
        TopicConfig.from_kafka({key: text for key, text in config.items() if text is not None})


@contextmanager
def refused_values() -> Iterator[None]:
    """What a configuration or a fault does not take is the user's mistake."""
    try:
        yield
    except ValueError as exc:
        raise WorldError(str(exc)) from exc


def check_config(config: Mapping[str, str | None]) -> None:
    """A configuration, which is text as Kafka spells it."""
    for key, value in config.items():
        if value is not None and not isinstance(value, str):
            raise WorldError(f"{key} is {value!r}, allowed is text: {str(value).lower()!r}")


def known_partitions(image: MetadataImage) -> str:
    """The partitions that there are, not too many, for an error."""
    ids = [image.topic_ids[topic] for topic in sorted(image.topic_ids)]
    names = [str(each.partition) for topic_id in ids for each in image.partitions_of(topic_id)]
    more = ["..."] if len(names) > _LISTED_MAX else []
    return ", ".join([*names[:_LISTED_MAX], *more]) or "none"
