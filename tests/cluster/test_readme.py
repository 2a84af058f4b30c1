"""The tables of ``cluster/README.md`` are what the code says, and its example runs.

``PYTHONPATH=. python -m tests.cluster.test_readme`` writes the tables anew.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from cluster.guards import GUARDS
from cluster.replica import TRANSITIONS
from tests.cluster.mutants import MUTANTS

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "cluster" / "README.md"


def transitions() -> str:
    """A row a role, a column an event, in the order of the code."""
    roles = list(dict.fromkeys(role for role, _ in TRANSITIONS))
    events = list(dict.fromkeys(event for _, event in TRANSITIONS))
    lines = [
        "| | " + " | ".join(event.value for event in events) + " |",
        "|---" * (len(events) + 1) + "|",
    ]
    for role in roles:
        cells = [TRANSITIONS.get((role, event)) for event in events]
        names = [cell.name if cell is not None else "" for cell in cells]
        lines.append(f"| **{role.name}** | " + " | ".join(names) + " |")
    return "\n".join(lines)


def guards() -> str:
    lines = [
        "| guard | rule | invariants | history | without it |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| `{g.id}` | {g.rule} | {g.invariants} | {g.history or 'ours'} | {g.without} |"
        for g in GUARDS
    ]
    return "\n".join(lines)


TABLES = {"transitions": transitions, "guards": guards}


def section(text: str, name: str) -> str:
    found = re.search(rf"<!-- {name} -->\n(.*?)<!-- /{name} -->", text, re.DOTALL)
    assert found is not None, f"README.md has no section {name}"
    return found[1].strip()


def fidelity(text: str) -> list[tuple[str, str, str, str]]:
    """The rows: rules, how, notes, proved by."""
    rows = []
    for line in section(text, "fidelity").splitlines()[2:]:
        rules, how, notes, proved = (cell.strip() for cell in line.strip("|").split("|"))
        rows.append((rules, how, notes, proved))
    return rows


def rules_of(text: str) -> list[str]:
    return re.findall(r"A\d+", text)


def proofs(rules: str) -> str:
    """The guards and the mutants of a row's rules."""
    wanted = set(rules_of(rules))
    found = [f"`{guard.id}`" for guard in GUARDS if wanted & set(rules_of(guard.rule))]
    found += [f"“{mutant.what}”" for mutant in MUTANTS if mutant.rule in wanted]
    return ", ".join(found)


def proved_fidelity(text: str) -> str:
    """The table with its last column anew; the others are written by hand."""
    lines = section(text, "fidelity").splitlines()[:2]
    for rules, how, notes, _ in fidelity(text):
        cells = (rules, how, notes, proofs(rules) if how == "modelled" else "")
        lines.append("|" + "|".join(f" {cell} " if cell else " " for cell in cells) + "|")
    return "\n".join(lines)


@pytest.mark.parametrize("name", sorted(TABLES))
def test_table_is_what_the_code_says(name: str) -> None:
    assert section(README.read_text(encoding="utf-8"), name) == TABLES[name]()


def test_fidelity_covers_every_rule() -> None:
    named: set[str] = set()
    for rules, how, _, _ in fidelity(README.read_text(encoding="utf-8")):
        assert how in ("modelled", "simplified", "absent"), rules
        named |= set(rules_of(rules))
    assert named == {f"A{number}" for number in range(1, 25)}


def test_what_is_modelled_is_proved() -> None:
    known = {guard.id for guard in GUARDS} | {mutant.what for mutant in MUTANTS}
    for rules, how, _, proved in fidelity(README.read_text(encoding="utf-8")):
        assert proved == (proofs(rules) if how == "modelled" else ""), rules
        names = re.findall(r"`([^`]+)`|“([^”]+)”", proved)
        assert bool(names) is (how == "modelled"), rules
        assert {guard or what for guard, what in names} <= known, rules


def test_every_module_stands_in_the_house() -> None:
    text = README.read_text(encoding="utf-8")
    house = text[text.index("## The house") : text.index("## Roles")]
    named = set(re.findall(r"`([a-z_]+)`", house))
    modules = {path.stem for path in (ROOT / "cluster").glob("*.py")} - {"__init__"}
    assert modules - named == set()


def test_example_prints_what_the_text_says() -> None:
    text = README.read_text(encoding="utf-8")
    code, after = re.findall(r"```python\n(.*?)```\n\nIt prints `(.*?)`", text, re.DOTALL)[0]
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == after


def write() -> None:
    text = README.read_text(encoding="utf-8")
    tables = {name: table() for name, table in TABLES.items()}
    tables["fidelity"] = proved_fidelity(text)
    for name, table in tables.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda found, table=table: f"{found[1]}{table}\n{found[2]}",
            text,
            flags=re.DOTALL,
        )
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
