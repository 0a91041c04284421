"""The table of formats. A codec is imported on first use, so that starting stays fast.

A codec is a module with `write(items, options)`, which takes the items that the format names and WriteOptions and
yields bytes. That of a format which is read by field, and not only as statements, has `read(stream, options)` too,
which takes a BufferedReader of UTF-8 and ReadOptions and yields ParsedRecords. Several formats may share one.
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
    # Only about records that are there already.
    needs_records: bool = False
    # The module that reads the resources of a file as statements, if there is one: `open_document(stream, options)`.
    resource_module: str = ""
    # Collections whose records are written before others, if the vocabulary has them.
    leading_collections: tuple[str, ...] = ()

    @property
    def names_vocabulary(self) -> bool:
        """Return whether a file names its vocabulary."""
        return self.resource_module in ("rdf.resources", "obo.resources")

    @property
    def codec(self) -> Any:
        """The codec module, imported now."""
        return import_module(f"lexarium.formats.{self.codec_module}")

    def open_document(self, stream: "BufferedReader[Any]", options: Any) -> Any:
        """Read a file whose resources are statements, as a `ResourceDocument`; raise ParseError."""
        return import_module(f"lexarium.formats.{self.resource_module}").open_document(stream, options)


# fmt: off
FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format("v-alpha", "JSON of the v-alpha API", "application/json", (".json",), "json.valpha",
               "documents"),
        Format("linkml", "LinkML instances: JSON by the slots of each class",
               "application/vnd.linkml+json", (".json", ".yaml", ".yml"), "json.linkml", "members",
               resource_module="json.linkml_resources"),
        Format("jsonl", "JSON Lines: everything, with history", "application/jsonl", (".jsonl", ".ndjson"),
               "json.jsonl", "changes"),
        Format("csv", "Comma-separated values", "text/csv", (".csv",), "tables.codec",
               resource_module="tables.resources"),
        Format("tsv", "Tab-separated values", "text/tab-separated-values", (".tsv", ".tab"), "tables.codec",
               resource_module="tables.resources"),
        Format("sssom", "SSSOM: mappings as a table", "text/x-sssom", (".sssom.tsv",), "tables.sssom",
               needs_records=True, resource_module="tables.sssom"),
        Format("translation", "Table of translations, such as Babelon", "text/tab-separated-values",
               (".babelon.tsv",), "", can_write=False, needs_records=True, resource_module="tables.translations"),
        Format("skos", "SKOS in Turtle", "text/turtle", (".ttl",), "rdf.statements",
               resource_module="rdf.resources"),
        Format("rdfxml", "SKOS in RDF/XML", "application/rdf+xml", (".rdf",), "rdf.statements",
               resource_module="rdf.resources"),
        Format("ntriples", "SKOS in N-Triples", "application/n-triples", (".nt",), "rdf.statements",
               resource_module="rdf.resources"),
        Format("jsonld", "SKOS in JSON-LD", "application/ld+json", (".jsonld",), "rdf.statements",
               resource_module="rdf.resources"),
        Format("obo", "OBO 1.4", "text/obo", (".obo",), "obo.statements",
               resource_module="obo.resources", leading_collections=("subset_def", "synonym_type_def")),
        Format("owl", "OWL in RDF/XML", "application/rdf+xml", (".owl",), "rdf.statements",
               resource_module="rdf.resources"),
    )
}
EXPORT_FORMATS = {name: item for name, item in FORMATS.items() if item.can_write}
