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


@pytest.mark.parametrize("name", sorted(TABLES))
def test_table_is_what_the_code_says(name: str) -> None:
    assert section(README.read_text(encoding="utf-8"), name) == TABLES[name]()


def test_fidelity_covers_every_rule() -> None:
    named: set[int] = set()
    for row in section(README.read_text(encoding="utf-8"), "fidelity").splitlines()[2:]:
        rules, how, _ = (cell.strip() for cell in row.strip("|").split("|"))
        assert how in ("modelled", "simplified", "absent"), row
        named |= {int(number) for number in re.findall(r"A(\d+)", rules)}
    assert named == set(range(1, 25))


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
    for name, table in TABLES.items():
        text = re.sub(
            rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)",
            lambda found, table=table: f"{found[1]}{table()}\n{found[2]}",
            text,
            flags=re.DOTALL,
        )
    README.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write()
