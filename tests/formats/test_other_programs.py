"""Other programs read exported files and find the same numbers of terms, names and parents."""

import json
import subprocess
from collections import Counter
from pathlib import Path

import fastobo  # type: ignore[import-untyped]
import pytest
from pyoxigraph import BlankNode, NamedNode, RdfFormat, parse

from lexarium.domain.schema.predicates import expand_predicate
from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.services.transfer.sample import sample_files
from lexarium.store.database import Database
from tests.schema.test_linkml_runtime import PYTHON
from tests.support.requirements import skip_or_fail

pytestmark = pytest.mark.full

SAMPLE = "settings.ttl"
FILES = ["do-cancer.obo", "do-cancer.owl", "hcrt.ttl", SAMPLE]
OWL = {"term": "owl:Class", "name": "rdfs:label", "parent": "rdfs:subClassOf"}
SKOS = {"term": "skos:Concept", "name": "skos:prefLabel", "parent": "skos:broader"}

# Both count terms, terms with a name, and parents of terms.
RUN_RDFLIB = """
import json, sys
from rdflib import RDF, Graph, URIRef

path, syntax, term, name, parent = sys.argv[1:]
graph = Graph().parse(path, format=syntax)
terms = {item for item in graph.subjects(RDF.type, URIRef(term)) if isinstance(item, URIRef)}
names = {item for item in graph.subjects(URIRef(name)) if item in terms}
parents = [target for item in terms for target in graph.objects(item, URIRef(parent)) if isinstance(target, URIRef)]
print(json.dumps({"terms": len(terms), "names": len(names), "parents": len(parents)}))
"""
RUN_PRONTO = """
import json, sys, warnings
import pronto

warnings.simplefilter("ignore")
terms = list(pronto.Ontology(sys.argv[1], import_depth=0).terms())
parents = sum(len(list(term.superclasses(distance=1, with_self=False))) for term in terms)
print(json.dumps({"terms": len(terms), "names": sum(bool(term.name) for term in terms), "parents": parents}))
"""

Counts = dict[str, int]


def run_program(program: str, *arguments: str | Path) -> Counts:
    command = [str(PYTHON), "-c", program, *map(str, arguments)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    counts: Counts = json.loads(result.stdout)
    return counts


def count_ours(database: Database, slug: str) -> Counts:
    """Count by the statements of records, which JSON Lines have as they are stored."""
    counts: Counter[str] = Counter()
    for line in export(database, slug, "jsonl").splitlines()[1:]:
        item = json.loads(line)
        if item.get("collection") in ("term", "concept"):
            names = SKOS if item["collection"] == "concept" else OWL
            parents = item["statements"].get(names["parent"], [])
            parents = parents if isinstance(parents, list) else [parents]
            counts["terms"] += 1
            counts["names"] += names["name"] in item["statements"]
            counts["parents"] += sum("ref" in parent for parent in parents)
    return counts


def count_fastobo(path: Path) -> Counts:
    counts: Counter[str] = Counter()
    for frame in fastobo.load(str(path)):
        if isinstance(frame, fastobo.term.TermFrame):
            tags = Counter(clause.raw_tag() for clause in frame)
            counts.update({"terms": 1, "names": tags["name"], "parents": tags["is_a"]})
    return counts


def count_pyoxigraph(path: Path, syntax: RdfFormat, names: dict[str, str]) -> Counts:
    triples = [quad.triple for quad in parse(path=path, format=syntax, base_iri="https://base.example/")]
    expanded = {key: NamedNode(expand_predicate(name)) for key, name in names.items()}
    typed = {item.subject for item in triples if item.object == expanded["term"]}
    terms = {item for item in typed if isinstance(item, NamedNode)}
    named = {item.subject for item in triples if item.predicate == expanded["name"]}
    parents = [item for item in triples if item.predicate == expanded["parent"] and item.subject in terms]
    parents = [item for item in parents if not isinstance(item.object, BlankNode)]
    return {"terms": len(terms), "names": len(terms & named), "parents": len(parents)}


def export(database: Database, slug: str, format: str) -> bytes:
    vocabulary = VOCABULARIES[slug]
    return b"".join(export_records(database, vocabulary, FORMATS[format], vocabulary.collections))


@pytest.fixture(params=FILES)
def imported(request: pytest.FixtureRequest, database: Database) -> tuple[Database, str, str]:
    """Database with a vocabulary, its slug, and the format that it came in."""
    if not PYTHON.exists() or subprocess.run([PYTHON, "-c", "import pronto, rdflib"], check=False).returncode:
        skip_or_fail("no rdflib and pronto (make .venv-linkml/ready)")
    with sample_files(SAMPLE) as [sample]:
        path = sample if request.param == SAMPLE else request.getfixturevalue("real_vocabularies") / request.param
        slug = run_import(database, ImportRequest([path])).vocabulary
    return database, slug, {".obo": "obo", ".owl": "owl", ".ttl": "skos"}[path.suffix]


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
def test_other_programs_count_the_same_terms_and_statements(
    imported: tuple[Database, str, str], tmp_path: Path
) -> None:
    database, slug, own_format = imported
    ours = count_ours(database, slug)
    assert ours["terms"] > 10
    for name in sorted({own_format, "obo", "owl"}):
        path = tmp_path / f"written{FORMATS[name].extensions[0]}"
        path.write_bytes(export(database, slug, name))
        if name == "obo":
            counted = {"fastobo": count_fastobo(path), "pronto": run_program(RUN_PRONTO, path)}
        else:
            names, syntax = (OWL, RdfFormat.RDF_XML) if name == "owl" else (SKOS, RdfFormat.TURTLE)
            arguments = ("xml" if name == "owl" else "turtle", *map(expand_predicate, names.values()))
            counted = {
                "pyoxigraph": count_pyoxigraph(path, syntax, names),
                "rdflib": run_program(RUN_RDFLIB, path, *arguments),
            }
            if name == "owl":
                counted["pronto"] = run_program(RUN_PRONTO, path)
        assert counted == dict.fromkeys(counted, ours), name
