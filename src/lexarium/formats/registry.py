"""The table of formats. A codec is loaded when it is first used, so that starting stays fast.

A codec is a module with `read(stream, reading)`, bytes to `Incoming`, or `write(format, about, wholes)`, records to
bytes, or both. Several formats may share one.
"""

from dataclasses import dataclass
from importlib import import_module
from typing import Any


@dataclass(frozen=True)
class Format:
    """A format that files may have."""

    name: str
    description: str
    media_type: str
    extensions: tuple[str, ...]
    """How the names of such files end; what is written gets the first."""
    codec_module: str
    """Its codec."""
    can_read: bool = True
    can_write: bool = True

    @property
    def codec(self) -> Any:
        """Its module, loaded now."""
        return import_module(f"lexarium.formats.{self.codec_module}")


FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("v-alpha", "JSON as a v-alpha server gives it", "application/json", (".json",), "json.valpha"),
        Format(
            "jsonl", "JSON Lines: everything, with history", "application/jsonl", (".jsonl", ".ndjson"), "json.jsonl"
        ),
        Format("csv", "Comma-separated values", "text/csv", (".csv",), "tables.codec"),
        Format("tsv", "Tab-separated values", "text/tab-separated-values", (".tsv", ".tab"), "tables.codec"),
        Format("skos", "SKOS in Turtle", "text/turtle", (".ttl",), "rdf.codec"),
        Format("rdfxml", "SKOS in RDF/XML", "application/rdf+xml", (".rdf",), "rdf.codec"),
        Format("ntriples", "SKOS in N-Triples", "application/n-triples", (".nt",), "rdf.codec"),
        Format("jsonld", "SKOS in JSON-LD", "application/ld+json", (".jsonld",), "rdf.codec"),
        Format("obo", "OBO 1.4", "text/obo", (".obo",), "obo.codec"),
        Format(
            "owl",
            "OWL in RDF/XML, Turtle or any other RDF",
            "application/rdf+xml",
            (".owl",),
            "rdf.codec",
            can_write=False,
        ),
    )
}
