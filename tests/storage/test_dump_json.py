"""The JSON document: one for every case of the golden text, with the same facts and stable keys.

``storage/README.md`` lists the keys of each kind; they are compared with the documents here. That
the text says what the document says is checked by looking for each fact of the document in it.
"""

from __future__ import annotations

import json
import re
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from storage.inspection.escaping import quoted, utc
from storage.inspection.views import SCHEMA
from tests.storage.dumping import FLAGS, LOG, as_json, dump
from tests.storage.test_dump_text import CASES, FIRST, odd_batches

README = (Path(__file__).parents[2] / "storage" / "README.md").read_text(encoding="utf-8")
KINDS_OF_FILES = frozenset(
    """boundaries boundary epochs kafka-file kafka-segment lock marker metadata offset-index offsets
    producer-snapshot seal time-index""".split()
)


def document_of(name: str) -> Any:
    return as_json(CASES[name].make(), *CASES[name].arguments)


@pytest.mark.parametrize("name", CASES)
def test_document_is_plain_ascii_json_with_schema_and_status(name: str) -> None:
    case = CASES[name]
    text = dump(case.make(), *case.arguments)
    ran = dump(case.make(), "--json", *case.arguments)
    assert ran.out.isascii()
    assert all(line.isprintable() for line in ran.out.split("\n"))
    document = json.loads(ran.out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    assert list(document)[:3] == ["schema", "kind", "path"]
    assert list(document)[-2:] == ["is_healthy", "exit_status"]
    assert document["schema"] == SCHEMA
    assert document["exit_status"] == ran.status == text.status
    assert ran.err == ""
    assert document["is_healthy"] == (ran.status == 0)


# The documented keys ---------------------------------------------------------------------------


def documented(title: str) -> dict[str, set[str]]:
    """Name to keys, from the table of the README that has this title."""
    start = README.index(f"| {title} | keys |")
    table = README[start : README.index("\n\n", start)]
    found = {}
    for names, keys in re.findall(r"^\| (.+?) \| (.+?) \|$", table, re.MULTILINE)[1:]:
        for name in re.findall(r"`([a-z_-]+)`", names):
            found[name] = set(re.findall(r"`([a-z_]+)`", keys.partition(";")[0].partition(":")[0]))
    return found


def objects(value: Any, key: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object in a document, with the key that it, or the list it is in, stands under."""
    if isinstance(value, list):
        for item in value:
            yield from objects(item, key)
    elif isinstance(value, dict):
        yield key, value
        for inner in value:
            yield from objects(value[inner], inner)


@pytest.mark.parametrize("name", CASES)
def test_every_object_has_the_documented_keys(name: str) -> None:
    kinds, rows = documented("`kind`"), documented("`row` in `rows`")
    parts = documented("part")
    document = document_of(name)
    for key, found in objects(document, "document"):
        keys = set(found)
        if key in ("document", "partitions"):
            assert keys - {"schema", "is_healthy", "exit_status"} == kinds[found["kind"]] | {"kind"}
        elif "row" in found:
            assert keys == rows[found["row"]] | {"row"}
        elif key == "rows":
            assert keys == set(document["columns"])
        elif key not in ("facts", "checkpoints"):
            assert keys == parts[key], key


def test_readme_names_the_schema_of_the_documents() -> None:
    assert f"`schema` is {SCHEMA}" in README


# The facts -------------------------------------------------------------------------------------


def facts_of(document: dict[str, Any]) -> Iterator[object]:
    """What must be found in the text, in any order."""
    kind = document["kind"]
    if kind == "nothing":
        yield document["reason"]
        return
    problems = [*document.get("problems", ()), *document.get("late_problems", ())]
    for problem in problems:
        yield problem["file"]
        yield problem["reason"]
    if kind in KINDS_OF_FILES:
        yield document["size_bytes"]
        for row in document["rows"]:
            for batch in row.pop("batches", ()):
                yield from (batch["first_sequence"], batch["last_sequence"], batch["base_offset"])
                yield from (batch["next_offset"] - 1, utc(batch["timestamp_ms"]))
            yield from (cell for key, cell in row.items() if not key.endswith("timestamp_ms"))
    if kind == "partition":
        for segment in document["segments"]:
            yield from (segment["file"], segment["size_bytes"])
            yield from _damage_facts(segment["damage"])
        verdict = document["verdict"]
        for cut in verdict["cuts"]:
            yield from (cut["size_bytes"], cut["position"], cut["reason"])
        yield from (*verdict["dropped"], *verdict["rebuilt"], *verdict["removed"])
        if verdict["refusal"]:
            yield from (verdict["refusal"]["reason"], verdict["refusal"]["last_good_offset"])
        yield from document["notes"]
        yield from (*document["others"], *document["snapshots"], document["producers_from"])
    if kind == "log-directory":
        for partition in document["partitions"]:
            yield partition["path"].rpartition("/")[2]
            yield partition["verdict"]["outcome"]
            yield partition["next_offset"] - 1


def _damage_facts(damage: dict[str, Any] | None) -> Iterator[object]:
    if damage is not None:
        yield from (damage["position"], damage["reason"])
        for found in damage["whole_ranges"]:
            yield from (found["position"], found["position"] + found["size_bytes"])
            yield from (found["base_offset"], found["next_offset"] - 1)


def lines_of(row: dict[str, Any]) -> Iterator[list[object]]:
    """What must be found in each line that a row takes."""
    match row["row"]:
        case "damage":
            yield [row["position"], row["size_bytes"] or "", row["reason"]]
        case "gap":
            yield [row["from_offset"], row["next_offset"] - 1]
        case "file":
            yield [row["file"]]
        case _:
            facts = [row["position"], row["size_bytes"], row["base_offset"], row["leader_epoch"]]
            facts += [row["record_count"], utc(row["max_timestamp_ms"]), row["control"] or ""]
            if row["producer_id"] != -1:
                facts += [row["producer_id"], row["producer_epoch"]]
            yield facts
    for record in row.get("records") or ():
        shown = [record["key"], record["value"]]
        texts = ["null" if one is None else quoted(b64decode(one["data"])) for one in shown]
        yield [record["offset"], utc(record["timestamp_ms"]), *texts]


@pytest.mark.parametrize("name", CASES)
def test_text_has_every_fact_of_the_document(name: str) -> None:
    ran = dump(CASES[name].make(), *CASES[name].arguments)
    document = document_of(name)
    words = ran.out + ran.err
    for fact in facts_of(document):
        assert fact is None or str(fact) in words
    if document["kind"] not in ("segment", "partition"):
        return
    listing = iter(words[words.find("\nposition") :].split("\n")[2:])
    for row in document["rows"] or ():
        for facts in lines_of(row):
            line = next(listing)
            for fact in facts:
                assert str(fact) in line


def test_document_has_whole_values_where_the_text_has_shortened_ones() -> None:
    disk = odd_batches()
    short = as_json(disk, FIRST, "--records")["rows"][-1]["records"][0]
    whole = as_json(disk, FIRST, "--records", "--full")["rows"][-1]["records"][0]
    assert short["key"] == {"size_bytes": 65, "data": short["key"]["data"]}
    assert b64decode(short["key"]["data"]) == b"k" * 64
    assert b64decode(whole["key"]["data"]) == b"k" * 65
    assert short["value"] == whole["value"]
    assert (len(short["headers"]), short["header_count"]) == (16, 18)
    assert len(whole["headers"]) == 18


def test_batches_of_a_partition_are_in_the_document_only_where_asked_for() -> None:
    disk = CASES["a healthy log"].make()
    assert as_json(disk, LOG, *FLAGS)["rows"] is None
    rows = as_json(disk, LOG, *FLAGS, "--batches")["rows"]
    assert [row["row"] for row in rows] == ["file", *["batch"] * 3] * 2 + ["file", *["batch"] * 2]
    few = as_json(disk, LOG, *FLAGS, "--from", "6", "--count", "2")["rows"]
    assert [row["base_offset"] for row in few if row["row"] == "batch"] == [6, 7]
