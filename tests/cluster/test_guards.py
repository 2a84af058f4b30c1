"""The table of guards is well formed, and every switch reaches its place."""

from __future__ import annotations

import re

import attrs
import pytest

from cluster.guards import GUARDS, STORAGE_GUARDS, Guards
from storage.config import LogRules

RULE = re.compile(r"A([1-9]|1\d|2[0-4])|C\.2|DECISIONS \d+\.\d+")
INVARIANT = re.compile(r"I([1-9]|1\d|20)")
HISTORY = re.compile(r"KAFKA-\d+|KIP-\d+|B-(\d\d|H\d)|C\.2|KRaft")
NAMES = [field.name for field in attrs.fields(Guards)]


def test_every_guard_is_on_and_is_a_row_of_the_table() -> None:
    assert [guard.id.replace("-", "_") for guard in GUARDS] == NAMES
    assert all(getattr(Guards(), name) is True for name in NAMES)
    assert len(NAMES) >= 40


def test_ids_are_unique_and_spelled_as_scenario_files_have_them() -> None:
    ids = [guard.id for guard in GUARDS]
    assert len(ids) == len(set(ids))
    assert all(re.fullmatch(r"[a-z]+(-[a-z]+)+", each) for each in ids)


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.id)
def test_every_row_names_rule_invariants_history_and_the_world_without(
    guard: tuple[str, str, str, str, str],
) -> None:
    _, rule, invariants, history, without = guard
    rules = re.findall(r"DECISIONS \S+|\S+", rule)
    assert rules
    assert all(RULE.fullmatch(each) for each in rules)
    assert invariants.split()
    assert all(INVARIANT.fullmatch(each) for each in invariants.split())
    assert len(set(invariants.split())) == len(invariants.split())
    assert all(HISTORY.fullmatch(each) for each in re.split(r",? ", history) if each)
    assert history or rule.startswith("DECISIONS"), "our own rules have no history"
    assert 20 < len(without) < 80
    assert without[0].islower()
    assert not without.endswith(".")


def test_no_two_guards_bring_the_same_world_back() -> None:
    assert len({guard.without for guard in GUARDS}) == len(GUARDS)


@pytest.mark.parametrize("name", NAMES)
def test_an_id_switches_its_guard_and_no_other(name: str) -> None:
    guards = Guards.from_ids({name.replace("_", "-"): False})
    assert {other for other in NAMES if not getattr(guards, other)} == {name}
    assert guards == Guards(**{name: False})
    assert Guards.from_ids({name.replace("_", "-"): True}) == Guards()


def test_an_unknown_id_is_refused_with_all_that_there_are() -> None:
    assert Guards.from_ids({}) == Guards()
    for wrong in ("fetch_epoch", "", "Fetch-Epoch", "everything"):
        allowed = ", ".join(sorted(guard.id for guard in GUARDS))
        said = re.escape(f"guard is {wrong!r}, allowed are {allowed}")
        with pytest.raises(ValueError, match=f"^{said}$"):
            Guards.from_ids({"hw-freeze": False, wrong: False})


@pytest.mark.parametrize("wrong", [0, 1, None, "false", "off"])
def test_a_switch_is_true_or_false(wrong: object) -> None:
    said = f"guard hw_freeze is {wrong!r}, allowed is True or False"
    with pytest.raises(ValueError, match=f"^{re.escape(said)}$"):
        Guards.from_ids({"hw-freeze": wrong})  # type: ignore[dict-item]


# In the log ------------------------------------------------------------------------------------


def test_every_rule_of_the_log_is_a_guard_and_the_other_way_round() -> None:
    assert sorted(STORAGE_GUARDS) == sorted(field.name for field in attrs.fields(LogRules))
    assert Guards().log_rules() == LogRules()


@pytest.mark.parametrize("name", STORAGE_GUARDS)
def test_a_guard_of_the_log_off_switches_its_rule_alone(name: str) -> None:
    assert Guards(**{name: False}).log_rules() == LogRules(**{name: False})


def test_the_other_guards_leave_the_log_as_it_is() -> None:
    others = {name: False for name in NAMES if name not in STORAGE_GUARDS}
    assert Guards(**others).log_rules() == LogRules()
