"""``sim/README.md``: its programs run and print what it says, its table of faults is the code's.

``PYTHONPATH=. python -m tests.sim.test_readme`` writes table and output anew.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from pathlib import Path

from sim import faults
from sim.network_rules import RULES, Rule

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "sim" / "README.md"
OUTPUT = re.compile(r"(<!-- output of the program -->\n```text\n)(.*?)(```\n)", re.DOTALL)
FAULTS = re.compile(r"(<!-- faults -->\n)(.*?)(<!-- /faults -->)", re.DOTALL)


def first_sentence(kind: type) -> str:
    """Of the class's docstring, on one line."""
    doc = inspect.getdoc(kind) or ""
    text = " ".join(doc.split("\n\n")[0].replace("``", "`").split())
    end = re.search(r"\.(?= [A-Z`]|$)", text)
    return text[: end.start()] if end else text


def fault_table() -> str:
    """A row a class, links first."""
    kinds = [
        kind
        for name in faults.__all__
        if isinstance(kind := getattr(faults, name), type)
        and issubclass(kind, faults.HostFault | faults.Composite)
        and kind not in (faults.HostFault, faults.Composite)
    ]
    lines = ["| fault | strikes | what it does |", "|---|---|---|"]
    for kind in (*RULES, *kinds):
        where = "links" if issubclass(kind, Rule | faults.Composite) else "a node"
        lines.append(f"| `{kind.__name__}` | {where} | {first_sentence(kind)} |")
    return "\n".join(lines) + "\n"


def programs() -> list[str]:
    return re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)


def output_of(program: str) -> str:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


def test_the_program_prints_what_it_is_said_to_print() -> None:
    found = OUTPUT.search(README.read_text())
    assert found is not None
    assert output_of(programs()[0]) == found[2]


def test_the_script_prints_what_it_is_said_to_print() -> None:
    assert output_of(programs()[1]) == "[b'a', b'b', b'c']\n"
    assert "It prints `[b'a', b'b', b'c']`" in README.read_text()


def test_the_table_of_faults_is_what_the_code_says() -> None:
    found = FAULTS.search(README.read_text())
    assert found is not None
    assert found[2] == fault_table()


def test_every_module_is_in_the_house() -> None:
    text = README.read_text()
    named = set(re.findall(r"`([a-z_*]+)/?`", text.split("## The house")[1].split("## ")[0]))
    missing = [
        path.stem
        for path in sorted((ROOT / "sim").iterdir())
        if (path.suffix == ".py" or (path / "__init__.py").is_file())
        and path.stem not in ("__init__", "scenario_files", "plain")
        and path.stem not in named
        and not any(path.stem.startswith(name[:-1]) for name in named if name.endswith("*"))
    ]
    assert not missing, f"sim/README.md, The house: add {', '.join(missing)}"


def main() -> None:
    text = FAULTS.sub(lambda m: m[1] + fault_table() + m[3], README.read_text())
    README.write_text(text)
    printed = output_of(programs()[0])
    README.write_text(OUTPUT.sub(lambda m: m[1] + printed + m[3], text))


if __name__ == "__main__":
    main()
