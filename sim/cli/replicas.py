"""``--replica MODULE:NAME``: brokers of the user's own, instead of ours.

Only this option names code; no scenario file or run folder does. The folder in which the command is
given comes first where modules are looked for, as with ``python -m``.

Left out: what such a broker is (``sim.cluster_config.BrokerFactory``).
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any

import click

from sim.cli.console import shown
from sim.cli.exits import UserError

__all__ = ["replica_of", "replica_option"]

_CALLED = "name, config, disk, path, guards=, incarnation= and controller="


def replica_option(command: Any) -> Any:
    """``--replica``, for commands that run."""
    return click.option(
        "--replica",
        metavar="MODULE:NAME",
        help="A broker class of yours to run instead of Leaderfall's; its module is imported.",
    )(command)


def replica_of(text: str | None) -> Callable[..., Any] | None:
    """What makes brokers; None where nothing is named.

    Raises:
        UserError: it cannot be imported, or makes nothing.
    """
    if text is None:
        return None
    module, colon, name = text.partition(":")
    if not colon or not all(part.isidentifier() for part in (*module.split("."), *name.split("."))):
        raise UserError(
            f'--replica "{shown(text)}" names no class.',
            "Write MODULE:NAME, as my_module:MyBroker.",
        )
    found: Any = _module(module)
    for part in name.split("."):
        if not hasattr(found, part):
            raise UserError(f'--replica: "{shown(module)}" has no "{shown(name)}".')
        found = getattr(found, part)
    if not callable(found):
        kind = type(found).__name__
        raise UserError(f'--replica: "{shown(text)}" is a {kind}; it must make brokers.')
    if not _is_called_as_a_broker_is(found):
        raise UserError(
            f'--replica: "{shown(text)}" cannot be called as cluster.broker.Broker is, with '
            f"{_CALLED}.",
            "A subclass of cluster.broker.Broker can.",
        )
    return found  # type: ignore[no-any-return]


def _is_called_as_a_broker_is(found: Callable[..., Any]) -> bool:
    """By its signature; where Python knows none, as of some built-in functions, it is no broker."""
    try:
        signature = inspect.signature(found)
        signature.bind("b1", None, None, None, guards=None, incarnation=0, controller="c1")
    except (TypeError, ValueError):
        return False
    return True


def _module(name: str) -> Any:
    if "" not in sys.path:
        sys.path.insert(0, "")
    try:
        return importlib.import_module(name)
    except Exception as error:  # noqa: BLE001 - it is the user's module, and may fail in any way
        said = f"{type(error).__name__}: {shown(error)}"
        raise UserError(f'--replica: "{shown(name)}" cannot be imported: {said}') from None
