"""Equal and similar names of several records in the report of an import."""

import json
from pathlib import Path
from typing import Any

import pytest

from lexarium.services.transfer import name_check
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from tests.support.imports import build_term

_PREFIXES = "@prefix skos: <http://www.w3.org/2004/02/skos/core#> .\n@prefix ex: <https://example.org/terms/> .\n"


def _import_skos(database: Database, folder: Path, names: dict[str, str], **options: Any) -> ImportReport:
    lines = [f'ex:{local_id} a skos:Concept ; skos:prefLabel "{name}"@en .' for local_id, name in names.items()]
    file = folder / "names.ttl"
    file.write_text(_PREFIXES + "ex:scheme a skos:ConceptScheme .\n" + "\n".join(lines))
    return run_import(database, ImportRequest([file], vocabulary="names", **options))


def _list_kinds(report: ImportReport) -> dict[str, tuple[int, list[str]]]:
    kinds = [kind for kind in report.warnings.kinds if kind.examples[0].field == "names"]
    return {kind.message: (kind.count, [example.detail for example in kind.examples]) for kind in kinds}


def test_equal_and_similar_names_of_a_vocabulary_are_counted_by_kind(database: Database, tmp_path: Path) -> None:
    names = {"a": "Grey matter", "b": "gray-matter", "c": "GRAY MATTER", "d": "grey mater", "e": "cell", "f": "cells"}
    kinds = _list_kinds(_import_skos(database, tmp_path, names, dry_run=True))
    assert _list_kinds(_import_skos(database, tmp_path, names)) == kinds
    count, [detail] = kinds["several concepts have this name"]
    assert count == 1
    assert all(local_id in detail for local_id in ("a,", "b,", "c)"))
    count, details = kinds["two concepts have similar names"]
    assert count == 4
    assert all("\x1f" not in text for text in (*details, detail))


def test_names_in_a_file_are_compared_with_existing_names(database: Database, tmp_path: Path) -> None:
    assert not _list_kinds(_import_skos(database, tmp_path, {"old": "working memory", "other": "attention"}))
    kinds = _list_kinds(_import_skos(database, tmp_path, {"new": "Working Memory", "typo": "workin memory"}))
    assert kinds["several concepts have this name"][0] == 1
    assert kinds["two concepts have similar names"][0] == 2
    assert not _list_kinds(_import_skos(database, tmp_path, {"more": "something else"})), "none of them is in the file"


def test_names_are_compared_in_all_languages(database: Database, tmp_path: Path) -> None:
    file = tmp_path / "names.ttl"
    names = {"a": '"sleep"@en, "Schlaf"@de', "b": '"sleeping"@en, "Schlaf"@de', "c": '"Schläfe"@de, "temple"@en'}
    names["d"] = '"colour"@en, "color"@en-US'
    lines = [f"ex:{local_id} a skos:Concept ; skos:prefLabel {labels} ." for local_id, labels in names.items()]
    file.write_text(_PREFIXES + "ex:scheme a skos:ConceptScheme .\n" + "\n".join(lines))
    kinds = _list_kinds(run_import(database, ImportRequest([file], vocabulary="names")))
    count, [detail] = kinds["several concepts have this name"]
    assert count == 1, "d has no name of another record"
    assert detail.startswith("Schlaf (names:a, names:b)")
    count, details = kinds["two concepts have similar names"]
    assert count == 2, "a and b share a name, and c is similar to both"
    assert all("Schläfe (names:c)" in detail for detail in details)


def test_records_imported_by_field_are_compared_within_their_class(database: Database, tmp_path: Path) -> None:
    terms = [build_term("one", name="Go/no-go"), build_term("two", name="go no go"), build_term("three", name="stop")]
    file = tmp_path / "concept.json"
    file.write_text(json.dumps(terms))
    report = run_import(database, ImportRequest([file]))
    assert list(_list_kinds(report)) == ["several concepts have this name"]
    tasks = tmp_path / "task.json"
    tasks.write_text(json.dumps([build_term("four", name="stop")]))
    assert not _list_kinds(run_import(database, ImportRequest([tasks])))


def test_many_names_are_compared_only_for_equality_and_the_report_says_so(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(name_check, "MAX_NEAR_NAMES", 2)
    kinds = _list_kinds(_import_skos(database, tmp_path, {"a": "one two", "b": "One Two", "c": "two one"}))
    assert kinds["several concepts have this name"][0] == 1
    assert any("similar names were not checked" in message for message in kinds)
    assert len(kinds) == 2
