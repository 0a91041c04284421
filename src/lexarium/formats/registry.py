"""The table of formats. A codec is imported on first use, so that starting stays fast.

A codec is a module with `read(stream, options)`, which yields parsed records, or `write(format, vocabulary, records)`,
which yields bytes, or both. Several formats may share one.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    description: str
    media_type: str
    # Exported files get the first.
    extensions: tuple[str, ...]
    codec_module: str
    can_read: bool = True
    can_write: bool = True

    @property
    def codec(self) -> Any:
        """The codec module, imported now."""
        return import_module(f"lexarium.formats.{self.codec_module}")


_OWL_DESCRIPTION = "OWL in RDF/XML, Turtle or any other RDF"
_JSONL_DESCRIPTION = "JSON Lines: everything, with history"

FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("v-alpha", "JSON as a v-alpha server gives it", "application/json", (".json",), "json.valpha"),
        Format("jsonl", _JSONL_DESCRIPTION, "application/jsonl", (".jsonl", ".ndjson"), "json.jsonl"),
        Format("csv", "Comma-separated values", "text/csv", (".csv",), "tables.codec"),
        Format("tsv", "Tab-separated values", "text/tab-separated-values", (".tsv", ".tab"), "tables.codec"),
        Format("skos", "SKOS in Turtle", "text/turtle", (".ttl",), "rdf.codec"),
        Format("rdfxml", "SKOS in RDF/XML", "application/rdf+xml", (".rdf",), "rdf.codec"),
        Format("ntriples", "SKOS in N-Triples", "application/n-triples", (".nt",), "rdf.codec"),
        Format("jsonld", "SKOS in JSON-LD", "application/ld+json", (".jsonld",), "rdf.codec"),
        Format("obo", "OBO 1.4", "text/obo", (".obo",), "obo.codec"),
        Format("owl", _OWL_DESCRIPTION, "application/rdf+xml", (".owl",), "rdf.codec", can_write=False),
    )
}
