"""Generated RDF and OBO files are unchanged after a round trip through a database, on both engines."""

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st
from pyoxigraph import Triple

from lexarium.domain.vocabulary import VOCABULARIES
from lexarium.formats.registry import FORMATS
from lexarium.services.maintenance.database_check import check_database
from lexarium.services.transfer.export import export_records
from lexarium.services.transfer.file_import import run_import
from lexarium.services.transfer.import_request import ImportRequest
from lexarium.store.database import Database
from tests.formats.test_obo_round_trip import EVERY_CLAUSE, split_stanzas, to_clauses
from tests.formats.test_rdf_round_trip import (
    close_inverses,
    has_twins,
    name,
    owl_triples,
    skos_triples,
    to_bytes,
    xml_texts,
)
from tests.support.round_trip import parse_rdf

pytestmark = pytest.mark.full

EXAMPLES = settings(
    max_examples=15, phases=[Phase.explicit, Phase.generate], suppress_health_check=list(HealthCheck), deadline=None
)

Rewrite = Callable[[bytes, str, str], bytes]


@pytest.fixture
def rewrite(database: Database, tmp_path: Path) -> Iterator[Rewrite]:
    """Function that imports a file into a new vocabulary, twice, and exports it in another format."""
    numbers = count(1)

    def run(data: bytes, source_format: str, target_format: str) -> bytes:
        slug, path = f"made{next(numbers)}", tmp_path / "made"
        path.write_bytes(data)
        request = ImportRequest([path], slug, FORMATS[source_format])
        report = run_import(database, request)
        assert [kind.message for kind in report.warnings.kinds if kind.is_loss] == []
        assert not run_import(database, request).has_changes
        vocabulary = VOCABULARIES[slug]
        return b"".join(export_records(database, vocabulary, FORMATS[target_format], vocabulary.collections))

    yield run
    assert check_database(database).problems == []


# Of an empty value and another one, the empty one is left out, and reported.
SINGLE_VALUED = {name(text) for text in ("rdfs:label", "IAO:0000115", "skos:prefLabel", "skos:definition")}


def check_rdf(rewrite: Rewrite, triples: list[Triple], format: str) -> None:
    assume(not has_twins(triples))
    assume(not any(str(value).startswith('""') for _, predicate, value in triples if predicate in SINGLE_VALUED))
    written = rewrite(to_bytes(triples, "ntriples"), "ntriples", format)
    assert parse_rdf(written, format) == parse_rdf(to_bytes(close_inverses(triples), "ntriples"), "ntriples")


@EXAMPLES
@given(skos_triples(), st.sampled_from(["skos", "ntriples", "jsonld"]))
def test_skos_is_unchanged_after_a_database_round_trip(rewrite: Rewrite, triples: list[Triple], format: str) -> None:
    check_rdf(rewrite, triples, format)


@EXAMPLES
@given(owl_triples(xml_texts))
def test_owl_is_unchanged_after_a_database_round_trip(rewrite: Rewrite, triples: list[Triple]) -> None:
    check_rdf(rewrite, triples, "owl")


@st.composite
def obo_documents(draw: st.DrawFn) -> str:
    """Draw a document with a random subset of all clauses, and arbitrary texts."""
    header, stanzas = split_stanzas(EVERY_CLAUSE)
    parts = []
    for first, identifier, *clauses in stanzas:
        chosen = draw(st.lists(st.sampled_from(clauses), unique=True, max_size=len(clauses)))
        # Only obsolete terms have a replacement.
        obsolete = [clause for clause in clauses if clause.startswith("is_obsolete: true")]
        kept = [clause for clause in chosen if clause.partition(":")[0] not in ("def", "is_obsolete", "comment")]
        text = quote(draw(xml_texts))
        parts.append("\n".join([first, identifier, *kept, *obsolete, f'def: "{text}" [] {{note="{text}"}}']))
    return "\n\n".join([header, *draw(st.permutations(parts))]) + "\n"


def quote(text: str) -> str:
    escapes = {"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r", "\t": r"\t"}
    return "".join(escapes.get(char, char) for char in text)


@EXAMPLES
@given(obo_documents())
def test_obo_is_unchanged_after_a_database_round_trip(rewrite: Rewrite, text: str) -> None:
    assert to_clauses(rewrite(text.encode(), "obo", "obo").decode()) == to_clauses(text)
