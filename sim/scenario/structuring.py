"""From plain tables to classes, by cattrs, strictly: all mistakes of a table at once.

A class of the model declares its keys (``sim.scenario.kinds.item``); here cattrs gets a hook for
each key, forbids all others, and its groups of errors become ``Refusals`` with paths. A class may
further say:

* ``SHORT``: the key that a value stands for which is no table (``start = "b1"``);
* ``ONE_OF``: keys of which exactly one must be there;
* ``check()``: what is wrong between several keys, as refusals, once each alone is right.

Left out: what a document has at its top (``sim.scenario.reading``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import fields, has
from cattrs import Converter
from cattrs.errors import ClassValidationError, ForbiddenExtraKeysError
from cattrs.gen import make_dict_structure_fn, override

from sim.scenario.kinds import Kind, key_of, kind_of, no_such_key
from sim.scenario.names import Names
from sim.scenario.problems import REFUSALS_MAX, Refusal, Refusals, seen

__all__ = ["Structurer"]


class Structurer:
    """Makes instances of the model's classes.

    Attributes:
        names: what the document declares; set by who reads a document.
    """

    def __init__(self) -> None:
        self.names = Names()
        self._converter = Converter(detailed_validation=True, forbid_extra_keys=True)
        self._converter.register_structure_hook_factory(has, self._hook)

    def table(self, value: object, cls: type) -> Any:
        """See ``sim.scenario.kinds.Reader``."""
        short: str | None = getattr(cls, "SHORT", None)
        is_short = not isinstance(value, dict) and short is not None
        table = {short: value} if is_short else value
        if not isinstance(table, dict):
            raise Refusals([Refusal(f"{seen(value)} is no table", hint="write { key = value }")])
        refused = _check_groups(table, cls)
        found: Any = None
        try:
            found = self._converter.structure(table, cls)
        except ClassValidationError as error:
            refused = _refusals(error, cls, table) + refused
        if not refused:
            refused = list(getattr(found, "check", list)())
        if refused:
            for each in refused if is_short else ():
                each.at = each.at[1:]
            raise Refusals(refused)
        return found

    def _hook(self, cls: type) -> Any:
        overrides = {
            each.name: override(rename=key_of(each), struct_hook=self._reads(kind_of(each)))
            for each in fields(cls)
            if each.init
        }
        return make_dict_structure_fn(
            cls,
            self._converter,
            _cattrs_forbid_extra_keys=True,
            _cattrs_detailed_validation=True,
            **overrides,  # type: ignore[arg-type]
        )

    def _reads(self, kind: Kind) -> Any:
        def read(value: object, _: object) -> Any:
            return kind.read(value, self)

        return read


def _check_groups(table: Mapping[str, Any], cls: type) -> list[Refusal]:
    refused = []
    for group in getattr(cls, "ONE_OF", ()):
        given = [key for key in table if key in group]
        words = " or ".join(group)
        if not given:
            refused.append(Refusal(f"there is no {words}", hint="write one of them"))
        for key in given[1:]:
            text = f'"{key}" and "{given[0]}" exclude each other'
            refused.append(Refusal(text, at=(key,), is_key=True, hint="leave one of them out"))
    return refused


def _refusals(error: ClassValidationError, cls: Any, table: Mapping[str, Any]) -> list[Refusal]:
    """What cattrs has found, in the order of the table."""
    keys = {each.name: key_of(each) for each in fields(cls) if each.init}
    found: list[Refusal] = []
    noted, others = error.group_exceptions()
    for exception, note in noted:
        key = keys[note.name]
        if key not in table:
            found.append(Refusal(f'there is no "{key}"', hint=f'"{key}" must be there'))
        else:
            found += [each.below(key) for each in _all_of(exception)]
    for other in others:
        if isinstance(other, ForbiddenExtraKeysError):
            allowed = keys.values()
            unknown = sorted(map(str, other.extra_fields))[:REFUSALS_MAX]
            found += [no_such_key(key, allowed) for key in unknown]
        else:
            found += _all_of(other)
    return found


def _all_of(exception: BaseException) -> Iterable[Refusal]:
    if isinstance(exception, Refusals):
        return exception.found
    if isinstance(exception, Refusal):
        return [exception]
    # Nothing else is a mistake of the file.
    raise exception
