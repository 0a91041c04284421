"""The table of formats. A codec is imported on first use, so that starting stays fast.

A codec is a module with `read(stream, options)`, which takes a BufferedReader of UTF-8 and ReadOptions and yields
ParsedRecords, and with `write(items, options)`, which takes the items that the format names and WriteOptions and yields
bytes. Several formats may share one.
"""

from dataclasses import dataclass
from importlib import import_module
from io import BufferedReader
from typing import Any, Literal


@dataclass(frozen=True)
class Format:
    """A file format."""

    name: str
    description: str
    media_type: str
    # Exported files get the first.
    extensions: tuple[str, ...]
    codec_module: str
    # What `write` takes: records in any state, published records of these collections or with further classes, all
    # changes (None: pause), or rendered v-alpha documents.
    items: Literal["records", "members", "changes", "documents"] = "records"
    can_write: bool = True
    # The module that reads the resources of a file as statements, if there is one: `open_document(stream)`.
    resource_module: str = ""

    @property
    def codec(self) -> Any:
        """The codec module, imported now."""
        return import_module(f"lexarium.formats.{self.codec_module}")

    def open_document(self, stream: "BufferedReader[Any]") -> Any:
        """Read a file whose resources are statements, as a `ResourceDocument`; raise ParseError."""
        return import_module(f"lexarium.formats.{self.resource_module}").open_document(stream)


# fmt: off
FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("v-alpha", "JSON as a v-alpha server gives it", "application/json", (".json",), "json.valpha",
               "documents"),
        Format("linkml", "LinkML instances in JSON, of each class by its slots; YAML is read too",
               "application/vnd.linkml+json", (".json", ".yaml", ".yml"), "json.linkml", "members"),
        Format("jsonl", "JSON Lines: everything, with history", "application/jsonl", (".jsonl", ".ndjson"),
               "json.jsonl", "changes"),
        Format("csv", "Comma-separated values", "text/csv", (".csv",), "tables.codec"),
        Format("tsv", "Tab-separated values", "text/tab-separated-values", (".tsv", ".tab"), "tables.codec"),
        Format("skos", "SKOS in Turtle", "text/turtle", (".ttl",), "rdf.codec",
               resource_module="rdf.resources"),
        Format("rdfxml", "SKOS in RDF/XML", "application/rdf+xml", (".rdf",), "rdf.codec",
               resource_module="rdf.resources"),
        Format("ntriples", "SKOS in N-Triples", "application/n-triples", (".nt",), "rdf.codec",
               resource_module="rdf.resources"),
        Format("jsonld", "SKOS in JSON-LD", "application/ld+json", (".jsonld",), "rdf.codec",
               resource_module="rdf.resources"),
        Format("obo", "OBO 1.4", "text/obo", (".obo",), "obo.codec",
               resource_module="obo.resources"),
        Format("owl", "OWL in RDF/XML, Turtle or any other RDF", "application/rdf+xml", (".owl",), "rdf.codec",
               can_write=False, resource_module="rdf.resources"),
    )
}
