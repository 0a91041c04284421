"""Round trips of real vocabularies: every triple and every clause is kept."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyoxigraph import CanonicalizationAlgorithm, Dataset, RdfFormat, parse

from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.detection import detect_format
from lexarium.formats.registry import FORMATS
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_report import ImportReport
from lexarium.services.transfer.import_request import ImportMode, ImportRequest
from lexarium.store.database import Database
from lexarium.store.maintenance.upgrade import open_database
from tests.support.databases import ENGINES, DatabaseUrlFactory

Imported = tuple[Database, dict[str, ImportReport]]

_COMMENT = re.compile(" +! .*$")
_XREFS = re.compile(r"\[([^\[\]]*)\]")


def import_file(database: Database, path: Path, slug: str = "", mode: ImportMode = ImportMode.UPDATE) -> ImportReport:
    return run_import(database, ImportRequest([path], slug, mode=mode))


def export(database: Database, slug: str, format: str) -> bytes:
    vocabulary = VOCABULARIES[slug]
    return b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections))


def parse_rdf(document: bytes, format: RdfFormat, base: str) -> set[str]:
    dataset = Dataset(parse(document, format, base_iri=base))
    dataset.canonicalize(CanonicalizationAlgorithm.UNSTABLE)
    return {str(quad.triple) for quad in dataset}


def _sort_xrefs(match: re.Match[str]) -> str:
    return f"[{', '.join(sorted(match[1].split(', ')))}]"


def parse_obo(document: bytes) -> set[tuple[str, str]]:
    """Return the clauses of a file, each with its stanza, without comments. The order of xrefs does not matter."""
    clauses, stanza = set(), ""
    for line in document.decode().splitlines():
        if line.startswith("["):
            stanza = line
        elif line.startswith("id: "):
            stanza = f"{stanza.partition(' ')[0]} {line}"
        elif line.strip():
            clauses.add((stanza, _XREFS.sub(_sort_xrefs, _COMMENT.sub("", line)).rstrip()))
    return clauses


@pytest.fixture(scope="module", params=ENGINES)
def imported(
    request: pytest.FixtureRequest, new_url: DatabaseUrlFactory, real_vocabularies: Path
) -> Iterator[Imported]:
    """Database with three vocabularies, and the reports of their imports by the name of the file."""
    database = open_database(new_url(request.param))
    names = ("do-cancer.obo", "do-nci.obo", "hcrt.ttl")
    yield database, {name: import_file(database, real_vocabularies / name) for name in names}
    database.close()


@pytest.mark.parametrize(
    ("name", "format", "syntax"),
    [("hcrt.ttl", "skos", RdfFormat.TURTLE), ("do-cancer.owl", "owl", RdfFormat.RDF_XML)],
)
def test_rdf_is_exported_with_every_triple(
    database: Database, real_vocabularies: Path, name: str, format: str, syntax: RdfFormat
) -> None:
    path = real_vocabularies / name
    report = import_file(database, path)
    base = f"https://w3id.org/kim/{path.stem}/"
    written = parse_rdf(export(database, report.vocabulary, format), syntax, base)
    assert written == parse_rdf(path.read_bytes(), syntax, base)
    assert [kind.message for kind in report.warnings.kinds if kind.is_loss] == []


@pytest.mark.parametrize("name", ["do-cancer.obo", "do-nci.obo"])
def test_obo_is_exported_with_every_clause(imported: Imported, real_vocabularies: Path, name: str) -> None:
    database, report = imported[0], imported[1][name]
    written = parse_obo(export(database, report.vocabulary, "obo"))
    # The version of the format is that of the writer.
    original = parse_obo((real_vocabularies / name).read_bytes()) - {("", "format-version: 1.2")}
    assert written == original | {("", "format-version: 1.4")}
    assert [kind.message for kind in report.warnings.kinds if kind.is_loss] == []


@pytest.mark.parametrize("name", ["hcrt.ttl", "do-cancer.obo"])
def test_exporting_and_reimporting_in_another_format_changes_nothing(
    imported: Imported, tmp_path: Path, name: str
) -> None:
    database, slug = imported[0], imported[1][name].vocabulary
    for other in ("csv", "tsv", "jsonl", "linkml", "rdfxml", "ntriples", "jsonld"):
        path = tmp_path / f"again{FORMATS[other].extensions[0]}"
        path.write_bytes(export(database, slug, other))
        report = import_file(database, path, slug)
        assert (report.has_changes, report.conflicts.count) == (False, 0), other


def test_obo_and_owl_of_one_ontology_agree(database: Database, real_vocabularies: Path) -> None:
    first = import_file(database, real_vocabularies / "do-cancer.obo")
    second = import_file(database, real_vocabularies / "do-cancer.owl")
    assert (second.vocabulary, second.created, second.retired) == (first.vocabulary, {}, {})
    changes = [change for item in second.affected["updated"] for change in item.changes]
    # OWL adds the id as an annotation, and qualifiers of definitions.
    assert {change.field for change in changes} <= {"id", "def"}
    for change in changes:
        if change.field == "def":
            assert change.added == [f"{text} (en)" for text in change.removed]


def test_translations_are_matched_to_their_vocabulary_and_change_only_their_language(
    database: Database, real_vocabularies: Path
) -> None:
    slug = import_file(database, real_vocabularies / "do-cancer.obo").vocabulary
    table = real_vocabularies / "doid-es.tsv"
    assert detect_format(table.name, table.read_bytes()[:1000]).name == "translation"
    report = import_file(database, table, slug)
    assert report.updated["term"] > 100
    assert {
        language for item in report.affected["updated"] for change in item.changes for language in change.removed
    } == set()
    [kind] = report.warnings.kinds
    assert kind.message.startswith(f"is not in the vocabulary {slug}; it was skipped")
    assert not import_file(database, table, slug).has_changes


def test_two_subsets_of_one_ontology_stay_separate(imported: Imported, real_vocabularies: Path) -> None:
    database, reports = imported
    assert len({reports[name].vocabulary for name in ("do-cancer.obo", "do-nci.obo")}) == 2
    assert not import_file(database, real_vocabularies / "do-cancer.obo").has_changes
